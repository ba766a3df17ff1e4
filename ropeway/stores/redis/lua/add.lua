-- Stores bundles of jobs, each whole or not at all.
-- Takes bases of queues; [now, [[name, name as JSON]], [[job]], number of queues, whether it only looks], the jobs'
-- texts one after the other, and what goes into the outbox of the first queue: a number and a text.
-- Returns a letter for each job (c created, f found, x conflict, s skipped), and the numbers of queues that are new.
-- Uses: events, places, lines
-- Rarely: bundles
local now, names, bundles, number_of_queues, only_looks = unpack(cmsgpack.unpack(ARGV[1]))
local job = bundles[1][1]
-- One job that waits like most is the common case, and goes without the tables that bundles need.
local is_alone = job and not bundles[2] and not bundles[1][2] and #job == 4 and not only_looks and not ARGV[3]
if not is_alone or call('HEXISTS', KEYS[1] .. ':jobs', job[1]) == 1 then
  return rarely().add_all(now, names, bundles, number_of_queues, only_looks)
end
local q, id, name = open_queue(KEYS[1], now), job[1], names[1]
local row, line = q.row, line_of(q, name[1])
local seq = row[SEQ] + 1
local place = make_place(0, seq)
row[SEQ] = seq
call('HSET', q.base .. ':jobs', id, ARGV[2] .. pack_tail(0, seq, q.now))
call('ZADD', line, '0', place .. id)
-- With no priority and not lifo it stands behind all others of its priority, but perhaps before less urgent ones.
local first = call('ZRANGE', line, 0, 1)
if first[1] == place .. id then
  call('ZADD', q.base .. ':heads', '0', place .. name[1])
  if first[2] then
    call('ZREM', q.base .. ':heads', sub(first[2], 1, 20) .. name[1])
  end
end
count(q, nil, WAITING, 1)
announce(q, 'add', 'waiting', 1, '["' .. id .. '",{"name":' .. name[2] .. '}]')
wake(q, 'jobs')
close_queue(q)
return { 'c', q.is_new and { 1 } or {} }
