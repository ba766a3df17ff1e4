-- Parents and children in bundles.
-- Uses: parents, announcing, bundle_fields

-- Whether all parents of a job were read before it in this call; takes what it has rarely.
local function comes_after_parents(queues, rare)
  for _, parent in ipairs(rare[FROM]) do
    local q = queues[parent[1]]
    if not q or not q.seen[parent[2]] then
      return false
    end
  end
  -- Its siblings come after them too.
  rare.is_after = true
  return true
end

-- The code of a job that was added with its parents, and now comes from their slot.
local function judge_delivered(q, job, from, there)
  if not there then
    return '{{CREATED}}'
  end
  local known = parents_of(q, job[ID])
  for _, parent in ipairs(from) do
    if not is_among(known, parent[3], parent[2]) then
      return '{{CONFLICT}}'
    end
  end
  return '{{FOUND}}'
end

-- The code of a job that has parents. It comes with them, or to the running job `queues.adopter`; a parent that was there
-- before is found as it is, with the children that it has, which may be gone by now. `own` has the texts of this bundle, by
-- number of queue and id.
local function judge_child(queues, job, from, there, own)
  local id, q, old, new = job[ID], queues[job[QUEUE]], 0, 0
  local step = step_of(q)
  if q.is_delivery then
    return judge_delivered(q, job, from, there)
  end
  for _, parent in ipairs(from) do
    local number, parent_id, name = unpack(parent)
    if own[number .. ' ' .. parent_id] then
      new = new + 1
    elseif queues.adopter == key_of(name, parent_id) then
      local is_known = call('HEXISTS', step.head .. name .. '}:children:' .. parent_id, key_of(q.queue, id))
      old, new = old + is_known, new + 1 - is_known
    else
      old = old + 1
    end
  end
  if new == 0 then
    return '{{FOUND}}'
  end
  return old == 0 and not there and '{{CREATED}}' or '{{CONFLICT}}'
end

-- Adds a job that waits for children, after its extras and run. Its delay begins when they have ended.
local function add_parent(q, job, place, name)
  local id = job[ID]
  q.runs[q.extra] = STATE_CODES['{{WAITING_CHILDREN}}'] .. sub(q.runs[q.extra], 2)
  found_family(q, id, job[DELAY], job[DUE_AT], job[LINKS])
  local parents = q.parents or { members = {}, announced = {} }
  parents.members[#parents.members + 1] = 0
  parents.members[#parents.members + 1] = sequence_of(place) .. id
  parents.announced[#parents.announced + 1] = '["' .. id .. '",{"name":' .. name[2] .. '}]'
  q.parents = parents
end

local function write_parents(q)
  local announced = q.parents.announced
  call_with('ZADD', q.base .. ':' .. '{{WAITING_CHILDREN}}', q.parents.members)
  count(q, nil, WAITING_CHILDREN, #announced)
  announce_all(q, '{{ADD}}', '{{WAITING_CHILDREN}}', announced)
end
