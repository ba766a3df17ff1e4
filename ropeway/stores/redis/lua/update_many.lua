-- Writes down progress and marks of running jobs, which are all different.
-- Takes the queue's base; [now, ids, tokens, different changes, for each id which of these it has]; a change is [progress,
-- marking], with false for what is not given.
-- Returns an answer code for each id, its verdict and the job's state.
-- Uses: marking
-- Rarely: jobs
local now, ids, tokens, changes, which = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local stored, answers, packed_tokens = fields_of(q.base .. ':runs', ids), {}, {}
local progress, marked, runs, markings, number, reported = {}, {}, {}, {}, 0, 0
for i = 1, #changes do
  changes[i].ids = {}
end
for i = 1, #ids do
  local id, run, token, change = ids[i], stored[i], packed_tokens[tokens[i]], changes[which[i]]
  if not token then
    token = pack_text(tokens[i])
    packed_tokens[tokens[i]] = token
  end
  if run and is_held(run, token) then
    answers[i] = '{{ACCEPTED}}'
    if change[1] then
      reported = reported + 2
      progress[reported - 1], progress[reported] = id, change[1]
      change.ids[#change.ids + 1] = id
    end
    if change[2] then
      number = number + 1
      marked[number], runs[number], markings[number] = id, run, change[2]
    end
  else
    answers[i] = rarely().lost_code(q, id)
  end
end
call_with('HSET', q.base .. ':progress', progress)
for i = 1, #changes do
  if #changes[i].ids > 0 then
    note(q, changes[i].ids, '{{PROGRESS}}', '{"progress":' .. changes[i][1] .. '}', 0)
  end
end
call_with('HSET', q.base .. ':runs', mark(q, marked, runs, markings))
announce_notices(q)
close_queue(q)
return table.concat(answers)
