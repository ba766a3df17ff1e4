-- Extends locks.
-- Takes the queue's base; [now, [[id, token]], lock].
-- Returns an answer code for each lock: its verdict and the job's state.
-- Uses: room, queue, pack, runs
-- Rarely: jobs
local now, locks, lock = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local ids, answers, runs, scores = {}, {}, {}, {}
local renewed, locked = pack_time(q.now), 'a' .. pack_time(q.now + lock)
for i = 1, #locks do
  ids[i] = locks[i][1]
end
local stored = fields_of(q.base .. ':runs', ids)
for i = 1, #locks do
  local id, run = ids[i], stored[i]
  if run and is_held(run, pack_text(locks[i][2])) then
    runs[#runs + 1] = id
    runs[#runs + 1] = locked .. sub(run, FINISHED_AT, RENEWED_AT - 1) .. renewed .. sub(run, MADE)
    scores[#scores + 1] = q.now + lock
    scores[#scores + 1] = id
    answers[i] = '{{ACCEPTED}}'
  else
    answers[i] = rarely().lost_code(q, id)
  end
end
call_with('HSET', q.base .. ':runs', runs)
call_with('ZADD', q.base .. ':locks', scores)
close_queue(q)
return table.concat(answers)
