-- What follows for other jobs when some end, as one list of work (see lib/steps.lua).
-- Uses: child_ends, trees, retries

-- Does one round of work; more may come of it.
local function work_round(step, items)
  local groups, follow_ups, elsewhere = {}, {}, {}
  for i = 1, #items do
    local item = items[i]
    local kind, name, id = item[1], item[2], item[3]
    local q = reach(step, name)
    if not q then
      add_to(elsewhere, name, item)
    elseif kind == ITEM.AGAIN then
      retry_child(q, id, unpack(item, 4))
    elseif kind == ITEM.FOLLOW_UP then
      add_to(follow_ups, name, item)
    elseif kind == ITEM.ORPHAN then
      drop_orphan(q, id, item[4], item[5])
    else
      -- Those of one parent together: its family is read and written once.
      local key = key_of(name, id)
      if not groups[key] then
        groups[#groups + 1] = key
      end
      add_to(groups, key, item)
    end
  end
  for i = 1, #groups do
    local first = groups[groups[i]][1]
    tell(step.opened[first[2]], first[3], groups[groups[i]])
  end
  write_releases(step)
  for name, own in pairs(follow_ups) do
    with_rules().add_follow_ups(step.opened[name], own)
  end
  for name, posted in pairs(elsewhere) do
    post(step, name, posted)
  end
end

-- Does what follows for parents and children from the jobs that ended, and closes the queues that it opened. Returns names
-- and texts of what went into the outbox.
local function conclude(q)
  local step = step_of(q)
  while #step.work > 0 do
    local items = step.work
    step.work = {}
    work_round(step, items)
  end
  if #step.followers > 0 then
    with_rules().start_followers(step)
  end
  for key, ids in pairs(step.retried) do
    local name, to = string.match(key, '^(%S*) (.*)$')
    announce(step.opened[name], '{{RETRY_BY_HAND}}', to, #ids, each(ids, 'null'))
    wake(step.opened[name], 'jobs')
  end
  for _, ending in ipairs(step.endings) do
    apply_retention(unpack(ending))
  end
  for _, other in ipairs(step.others) do
    notice_drained(other)
    close_queue(other)
  end
  for _, opened in pairs(step.opened) do
    opened.step = nil
  end
  return step.posted
end
