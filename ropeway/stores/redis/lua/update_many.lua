-- Writes down progress and marks of running jobs, which are all different.
-- Takes the queue's base; [now, ids, tokens, different reports, for each id which of these it has, different markings, for each
-- id which of these it has, or 0]; a report is [progress or false, events and their details in turn].
-- Returns an answer code for each id, its verdict and the job's state.
-- Uses: marking, notices
-- Rarely: jobs
local now, ids, tokens, reports, which_report, markings, which_marking = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local stored, answers, packed_tokens = fields_of(q.base .. ':runs', ids), {}, {}
local progress, marked, runs, own, number, reported = {}, {}, {}, {}, 0, 0
for i = 1, #reports do
  reports[i].ids = {}
end
for i = 1, #ids do
  local id, run, token, report, marking = ids[i], stored[i], packed_tokens[tokens[i]], reports[which_report[i]], which_marking[i]
  if not token then
    token = pack_text(tokens[i])
    packed_tokens[tokens[i]] = token
  end
  if run and is_held(run, token) then
    answers[i] = '{{ACCEPTED}}'
    if report[1] then
      reported = reported + 2
      progress[reported - 1], progress[reported] = id, report[1]
    end
    report.ids[#report.ids + 1] = id
    if marking > 0 then
      number = number + 1
      marked[number], runs[number], own[number] = id, run, markings[marking]
    end
  else
    answers[i] = rarely().lost_code(q, id)
  end
end
call_with('HSET', q.base .. ':progress', progress)
for i = 1, #reports do
  local report = reports[i]
  if #report.ids > 0 then
    if report[1] then
      note(q, report.ids, '{{PROGRESS}}', '{"progress":' .. report[1] .. '}', 0)
    end
    note_notices(q, report.ids, report[2])
  end
end
call_with('HSET', q.base .. ':runs', mark(q, marked, runs, own))
announce_notices(q)
close_queue(q)
return table.concat(answers)
