-- Jobs whose data somebody evicted or deleted. They are announced as removed, so that nobody waits for them.
-- Uses: endings
local function drop_lost(q, state, ids)
  if #ids > 0 then
    drop_jobs(q, state, ids, false, 'the server lost its data')
    if q.step then
      in_flows().conclude(q)
    end
  end
end
