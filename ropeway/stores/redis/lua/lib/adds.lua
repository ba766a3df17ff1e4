-- Jobs that outcomes add, in the step that accepts these.
-- Uses: bundles

-- Takes [names, jobs, for each job the number of its outcome, number of queues, parcels, what jobs have rarely] and the
-- jobs' texts; a parcel is [number of its outcome, name, text] for the outbox. Call it before anything is written: it opens other queues.
local function read_adds(q, packed, texts)
  local names, jobs, owners, number_of_queues, parcels, rare = unpack(cmsgpack.unpack(packed))
  local queues = { q }
  for i = 2, number_of_queues do
    queues[i] = open_queue(KEYS[i], q.now)
  end
  return {
    names = names, jobs = jobs, owners = owners, queues = queues, parcels = parcels, rare_of = spread(rare), texts = texts,
  }
end

-- Adds the jobs of outcomes that were accepted; each is a bundle by itself, so one whose id exists hinders no other.
-- Returns the numbers of queues that are new.
local function add_accepted(adds, answers)
  local bundles, texts, rare_of, text_at, queues = {}, {}, {}, 1, adds.queues
  for i, job in ipairs(adds.jobs) do
    local next_at = text_at + job[LENGTH]
    if answers[adds.owners[i]] == '{{ACCEPTED}}' then
      bundles[#bundles + 1], texts[#texts + 1] = { job }, sub(adds.texts, text_at, next_at - 1)
      rare_of[#bundles] = adds.rare_of[i]
    end
    text_at = next_at
  end
  for _, parcel in ipairs(adds.parcels) do
    if answers[parcel[1]] == '{{ACCEPTED}}' then
      call('HSET', queues[1].base .. ':outbox', parcel[2], parcel[3])
    end
  end
  if #bundles == 0 then
    return {}
  end
  local answer = add_all(queues, adds.names, bundles, false, table.concat(texts), rare_of)
  for i = 2, #queues do
    close_queue(queues[i])
  end
  return answer[2]
end
