-- Children that jobs get while they run.
-- Uses: flow_bundles

-- Takes [names, number of queues, what jobs have rarely, for each update [children, jobs, whether it is refused, name, text]]:
-- its children as in `adopt`, they and their descendants as in a bundle, and what goes into the outbox; and the jobs' texts.
-- Call it before anything is written: it opens other queues.
local function read_child_updates(q, packed, texts)
  local names, number_of_queues, rare, updates = unpack(cmsgpack.unpack(packed))
  local queues, rare_of, text_at, number = { q }, spread(rare), 1, 0
  for i = 2, number_of_queues do
    queues[i] = open_queue(KEYS[i], q.now)
  end
  for i = 1, #updates do
    local length, own = 0, {}
    for j, job in ipairs(updates[i][2]) do
      length, number = length + job[LENGTH], number + 1
      own[j] = rare_of[number]
    end
    updates[i].texts, updates[i].rare_of = sub(texts, text_at, text_at + length - 1), own
    text_at = text_at + length
  end
  return { names = names, queues = queues, updates = updates, new = {} }
end

-- Makes a running job a parent, if it is none.
local function open_family(q, job)
  local family = load_family(q, job.id, {})
  if family then
    return family
  end
  family = begin_family(q, job.id, new_family(0, false, true))
  call('HSET', q.base .. ':runs', job.id, sub(job.run, 1, STALLED - 1) .. char(WITH_EXTRAS) .. sub(job.run, STALLED + 1))
  return family
end

-- Adds the children of one update; false if one of their ids exists already, and then none is added.
local function add_children(given, number, job)
  local q, queues = given.queues[1], given.queues
  local update = given.updates[number]
  local children, jobs, is_refused, name, text = unpack(update)
  if not children then
    return true
  elseif is_refused then
    return false
  end
  if #jobs > 0 then
    step_of(q)
    queues.adopter = key_of(q.queue, job.id)
    local looks = rarely().add_all(queues, given.names, { jobs }, true, update.texts, update.rare_of)
    if string.find(looks[1], '{{CONFLICT}}', 1, true) then
      return false
    end
    local answer = rarely().add_all(queues, given.names, { jobs }, false, update.texts, update.rare_of)
    for _, new in ipairs(answer[2]) do
      given.new[#given.new + 1] = new
    end
  end
  local family = open_family(q, job)
  local has_new = adopt(family, children)
  family.has_other_size = true
  save_family(family)
  if name and has_new then
    call('HSET', q.base .. ':outbox', name, text)
  end
  return true
end

local function close_child_updates(given)
  for i = 2, #given.queues do
    close_queue(given.queues[i])
  end
  return given.new
end
