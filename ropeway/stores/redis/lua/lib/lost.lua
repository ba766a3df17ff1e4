-- Jobs whose data somebody evicted or deleted. They are announced as removed, so that nobody waits for them.
-- Uses: endings, new_runs
local function drop_lost(q, state, ids)
  if #ids > 0 then
    local runs = fields_of(q.base .. ':runs', ids)
    for i = 1, #ids do
      if runs[i] and is_folded(runs[i]) then
        unfold(q, ids[i], runs[i], ANY_PLACE)
      end
    end
    drop_jobs(q, state, ids, false, 'the server lost its data')
    if q.step then
      in_flows().conclude(q)
    end
  end
end
