-- Looks which jobs are there, and which children a parent has.
-- Takes the queue's base; [ids, parent, keys of children].
-- Returns 1 or 0 for each id, and for each key.
-- Uses: calls
local ids, parent, keys = unpack(cmsgpack.unpack(ARGV[1]))
local there, has = {}, {}
for i = 1, #ids do
  there[i] = call('HEXISTS', KEYS[1] .. ':jobs', ids[i])
end
for i = 1, #keys do
  has[i] = call('HEXISTS', KEYS[1] .. ':children:' .. parent, keys[i])
end
return { there, has }
