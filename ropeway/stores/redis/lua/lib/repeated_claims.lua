-- Claims that are repeated because an answer was lost, or that meet jobs whose data is gone.
-- Uses: second_starts, lost, lines

-- Without jobs whose data somebody evicted: they leave the line too, or they would stand in the way for ever.
local function without_lost(q, members, ids, values)
  local kept, lost = { {}, {}, {} }, {}
  for i = 1, #ids do
    if values[i] then
      table.insert(kept[1], members[i])
      table.insert(kept[2], ids[i])
      table.insert(kept[3], values[i])
    else
      lost[#lost + 1] = ids[i]
    end
  end
  drop_lost(q, '{{WAITING}}', lost)
  return unpack(kept)
end

-- What a claim under this token still holds.
local function held(q, request)
  local all, mine, token = call('ZRANGE', q.base .. ':locks', 0, -1), {}, pack_text(request.token)
  local runs = fields_of(q.base .. ':runs', all)
  for i = 1, #all do
    if runs[i] and is_held(runs[i], token) then
      mine[#mine + 1] = sub(runs[i], -10) .. all[i]
    end
  end
  table.sort(mine, is_before)
  local ids, numbers, heads = {}, {}, {}
  for i = 1, #mine do
    ids[i], numbers[i] = sub(mine[i], 11), i
  end
  runs = fields_of(q.base .. ':runs', ids)
  for i = 1, #ids do
    heads[i] = sub(runs[i], 1, -11)
  end
  return ids, fields_of(q.base .. ':jobs', ids), pack_rests(q, { ids = ids, numbers = numbers, runs = heads, is_new = {} })
end
