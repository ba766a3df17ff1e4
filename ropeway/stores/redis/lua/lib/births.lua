-- Children that jobs get while they run.
-- Uses: flow_bundles

-- Takes [names, number of queues, what jobs have rarely, for each update [links, jobs, whether it is refused, name, text]]: its children as in
-- `adopt`, they and their descendants as in a bundle, and what goes into the outbox; and the jobs' texts. Call it before
-- anything is written: it opens other queues.
local function read_births(q, packed, texts)
  local names, number_of_queues, rare, updates = unpack(cmsgpack.unpack(packed))
  local queues, text_at = { q }, 1
  for i = 2, number_of_queues do
    queues[i] = open_queue(KEYS[i], q.now)
  end
  for i = 1, #updates do
    local length = 0
    for _, job in ipairs(updates[i][2]) do
      length = length + job[LENGTH]
    end
    updates[i].texts = sub(texts, text_at, text_at + length - 1)
    text_at = text_at + length
  end
  return { names = names, queues = queues, rare = rare, updates = updates, new = {} }
end

-- Makes a running job a parent, if it is none.
local function open_family(q, job)
  local family = load_family(q, job.id, {})
  if family then
    return family
  end
  family = begin_family(q, job.id, new_family(0, false, true))
  family.is_new = true
  call('HSET', q.base .. ':runs', job.id, sub(job.run, 1, STALLED - 1) .. char(WITH_EXTRAS) .. sub(job.run, STALLED + 1))
  return family
end

-- Adds the children of one update; false if one of their ids exists already, and then none is added.
local function add_children(births, number, job)
  local q, queues = births.queues[1], births.queues
  local links, jobs, is_refused, name, text = unpack(births.updates[number])
  if #links == 0 then
    return true
  elseif is_refused then
    return false
  end
  if #jobs > 0 then
    local texts = births.updates[number].texts
    step_of(q)
    queues.adopter = key_of(q.queue, job.id)
    local looks = rarely().add_all(queues, births.names, { jobs }, true, texts, births.rare)
    if string.find(looks[1], '{{CONFLICT}}', 1, true) then
      return false
    end
    local answer = rarely().add_all(queues, births.names, { jobs }, false, texts, births.rare)
    for _, new in ipairs(answer[2]) do
      births.new[#births.new + 1] = new
    end
  end
  local family = open_family(q, job)
  local has_new = adopt(family, links)
  family.has_other_size = true
  save_family(family)
  if name and has_new then
    call('HSET', q.base .. ':outbox', name, text)
  end
  return true
end

local function close_births(births)
  for i = 2, #births.queues do
    close_queue(births.queues[i])
  end
  return births.new
end
