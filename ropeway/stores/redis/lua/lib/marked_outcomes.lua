-- Outcomes that write marks, or wait for one.
-- Uses: marking, notices, awaited_marks

-- Of several outcomes of one job the first is accepted whose token holds it.
local function first_held(s, ids, stored)
  local accepted = {}
  for i = 1, #ids do
    if stored[i] and not accepted[ids[i]] and is_held(stored[i], s.packed_token(i)) then
      accepted[ids[i]] = i
    end
  end
  return accepted
end

-- Writes the marks of outcomes that will be accepted, before anything else is done about them. Takes numbers of outcomes,
-- the different markings, each with the notices that it announces, and for each number which of these it has;
-- `are_different` says that no id is there twice.
local function mark_outcomes(q, s, ids, stored, are_different, numbers, markings, which)
  local accepted = not are_different and first_held(s, ids, stored)
  local places, own_ids, runs, own, found = {}, {}, {}, {}, 0
  for i = 1, #markings do
    markings[i].ids = {}
  end
  for i = 1, #numbers do
    local number = numbers[i]
    local id, run = ids[number], stored[number]
    local is_accepted = run and are_different and is_held(run, s.packed_token(number))
    if is_accepted or (accepted and accepted[id] == number) then
      found = found + 1
      local marking = markings[which[i]]
      places[found], own_ids[found], runs[found], own[found] = number, id, run, marking
      marking.ids[#marking.ids + 1] = id
    end
  end
  mark(q, own_ids, runs, own)
  for i = 1, #markings do
    if #markings[i].ids > 0 then
      note_notices(q, markings[i].ids, markings[i][3])
    end
  end
  for i = 1, found do
    stored[places[i]] = runs[i]
  end
  announce_notices(q)
end
