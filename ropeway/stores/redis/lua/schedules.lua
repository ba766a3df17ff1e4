-- Reads schedules, by their ids or a page of all in the order of ids.
-- Takes the queue's base; [ids or false, the id after which the page begins or false, how many].
-- Returns ids and values in turn.
-- Uses: calls
local ids, after, limit = unpack(cmsgpack.unpack(ARGV[1]))
local base, found = KEYS[1], {}
if not ids then
  ids = call('ZRANGEBYLEX', base .. ':planned', after and '(' .. after or '-', '+', 'LIMIT', 0, limit)
end
local stored = fields_of(base .. ':schedules', ids)
for i = 1, #ids do
  if stored[i] then
    found[#found + 1] = ids[i]
    found[#found + 1] = stored[i]
  end
end
return found
