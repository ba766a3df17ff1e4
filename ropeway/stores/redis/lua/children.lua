-- Reads the children of a job, in the order in which they were added.
-- Takes the queue's base; [id, number of the first child, states (as letters), how many].
-- Returns keys and links in turn, the number of the next one or false, how many children there are, completed, failed and
-- cancelled ones, and 1 if the job would wait for them; nil if there is no such job.
-- Uses: families
local id, first, states, most = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], 0)
if call('HEXISTS', q.base .. ':jobs', id) == 0 then
  return false
end
local family = load_family(q, id, {})
if not family then
  return { {}, false, 0, 0, 0, 0, 0 }
end
local key, found, next_at, at = q.base .. ':children:' .. id, {}, false, math.max(first, 1)
while not next_at and at <= family.row[FAMILY.LAST] do
  local keys = keys_from(key, at)
  local links = fields_of(key, keys)
  for i = 1, #keys do
    if links[i] and string.find(states, sub(links[i], 1, 1), 1, true) then
      if #found == 2 * most then
        next_at = whole(at + i - 1)
        break
      end
      found[#found + 1] = keys[i]
      found[#found + 1] = links[i]
    end
  end
  at = at + math.max(#keys, 1)
end
local row = family.row
return { found, next_at, row[FAMILY.TOTAL], row[ENDED['{{CHILD_COMPLETED}}']], row[ENDED['{{CHILD_FAILED}}']],
  row[ENDED['{{CHILD_CANCELLED}}']], (row[FAMILY.LEFT] > 0 or row[FAMILY.OWED_EFFECT]) and 1 or 0 }
