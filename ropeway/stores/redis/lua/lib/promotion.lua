-- Moves delayed jobs to waiting.
-- Uses: events, groups, jobs, lost

local function promote(q, members)
  local ids, by_name, announced, lost = {}, {}, {}, {}
  for i = 1, #members do
    ids[i] = sub(members[i], 8)
  end
  local values = fields_of(q.base .. ':jobs', ids)
  for i = 1, #members do
    if values[i] then
      add_to(by_name, name_of(values[i]), place_of(values[i]) .. ids[i])
      announced[#announced + 1] = ids[i]
    else
      lost[#lost + 1] = ids[i]
    end
  end
  call_with('ZREM', q.base .. ':delayed', members)
  put_all_in_line(q, by_name)
  count(q, DELAYED, WAITING, #announced)
  if #announced > 0 then
    announce(q, '{{PROMOTE}}', '{{WAITING}}', #announced, each(announced, 'null'))
  end
  drop_lost(q, '{{DELAYED}}', lost)
  wake(q, 'jobs')
end

local function promote_due(q)
  if q.row[DELAYED] == 0 then
    return 0
  end
  local members = call('ZRANGEBYSCORE', q.base .. ':delayed', '-inf', q.now, 'LIMIT', 0, BATCH)
  if #members > 0 then
    promote(q, members)
  end
  return #members
end
