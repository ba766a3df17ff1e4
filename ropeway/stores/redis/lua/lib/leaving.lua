-- What jobs with `Extras` leave behind when they end or are removed: dedupe keys, deadlines and follow-ups.
-- Uses: dedupe_keys, follow_ups, changing

-- Takes jobs that are in a state now, or were until they are removed; `words` are results or reasons, `stored` their extras.
local function leave_rules(q, state, ids, words, stored)
  local keys, holders, late = {}, {}, {}
  for i = 1, #ids do
    local extras = has_rules(stored[i]) and cmsgpack.unpack(stored[i])
    local rules = extras and extras[RULES]
    if rules then
      if rules.dedupe then
        keys[#keys + 1], holders[#holders + 1] = rules.dedupe.key, ids[i]
      end
      if rules.start_within or rules.start_by then
        late[#late + 1] = ids[i]
      end
      if IS_FINAL[state] then
        note_follow_ups(q, ids[i], rules, extras[TAGS], state, words[i])
      end
    end
  end
  call_with('ZREM', q.base .. ':deadlines', late)
  if #keys > 0 then
    free_keys(q, keys, holders, IS_FINAL[state])
  end
end
