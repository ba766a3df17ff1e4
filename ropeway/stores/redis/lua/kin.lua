-- Looks which jobs are there, and which children parents have.
-- Takes the queue's base; [ids, parents, for each of these the key of a child].
-- Returns 1 or 0 for each id, and for each parent.
-- Uses: calls
local ids, parents, keys = unpack(cmsgpack.unpack(ARGV[1]))
local there, has = {}, {}
for i = 1, #ids do
  there[i] = call('HEXISTS', KEYS[1] .. ':jobs', ids[i])
end
for i = 1, #parents do
  has[i] = call('HEXISTS', KEYS[1] .. ':children:' .. parents[i], keys[i])
end
return { there, has }
