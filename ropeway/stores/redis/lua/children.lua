-- Reads the children of a job, in the order in which they were added.
-- Takes the queue's base; [id, number of the first child, states (as letters), how many].
-- Returns keys and links in turn, the number of the next one or false, and how many children there are, completed, failed
-- and cancelled ones; nil if there is no such job.
-- Uses: families
local id, first, states, most = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], 0)
if call('HEXISTS', q.base .. ':jobs', id) == 0 then
  return false
end
local family = load_family(q, id, {})
if not family then
  return { {}, false, 0, 0, 0, 0 }
end
local found, next_at, at = {}, false, first
repeat
  local keys = call('ZRANGEBYSCORE', q.base .. ':order:' .. id, at, '+inf', 'WITHSCORES', 'LIMIT', 0, BATCH)
  local names = {}
  for i = 1, #keys, 2 do
    names[#names + 1] = keys[i]
  end
  local links = fields_of(q.base .. ':children:' .. id, names)
  for i = 1, #names do
    if string.find(states, sub(links[i], 1, 1), 1, true) then
      if #found == 2 * most then
        next_at = keys[2 * i]
        break
      end
      found[#found + 1] = names[i]
      found[#found + 1] = links[i]
    end
    at = '(' .. keys[2 * i]
  end
until next_at or #names < BATCH
local row = family.row
return { found, next_at, row[FAMILY.TOTAL], row[ENDED['{{CHILD_COMPLETED}}']], row[ENDED['{{CHILD_FAILED}}']],
  row[ENDED['{{CHILD_CANCELLED}}']] }
