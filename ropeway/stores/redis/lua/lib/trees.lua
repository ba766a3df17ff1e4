-- Removes parents with their descendants.
-- Uses: parents, groups, removal, releases

-- Takes a parent from a child that has not ended. Returns the child if it has no other.
local function orphan(q, id, queue, parent)
  local job, parents = load_child(q, id, queue, parent)
  if not job or IS_FINAL[job.state] then
    return nil
  end
  local left = {}
  for _, one in ipairs(parents) do
    if one[1] ~= queue or one[2] ~= parent then
      left[#left + 1] = one
    end
  end
  change_extras(q, id, PARENTS, left)
  return #left == 0 and job or nil
end

-- Removes a job with its unfinished descendants, except those for which another parent waits.
local function remove_tree(q, top)
  local step, going, by_queue, at = step_of(q), { { q, top } }, {}, 1
  write_releases(step)
  while going[at] do
    local own, job = unpack(going[at])
    add_to(by_queue, own.queue, job)
    for _, key in ipairs(call('HKEYS', own.base .. ':children:' .. job.id)) do
      local name, id = read_key(key)
      local there = name and reach(step, name)
      if there then
        local child = orphan(there, id, own.queue, job.id)
        going[#going + 1] = child and { there, child }
      elseif name then
        add_work(step, ITEM.ORPHAN, name, id, own.queue, job.id)
      end
    end
    at = at + 1
  end
  for name, jobs in pairs(by_queue) do
    remove(step.opened[name], jobs)
  end
end

local function drop_orphan(q, id, parent_queue, parent)
  local job = orphan(q, id, parent_queue, parent)
  if job then
    remove_tree(q, job)
  end
end
