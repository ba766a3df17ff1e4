-- Jobs whose data somebody evicted or deleted. They are told of as removed, so that nobody waits for them.
-- Uses: events
local function tell_lost(q, ids, state)
  if #ids > 0 then
    local detail = '{"prev":"' .. state .. '","reason":"the server lost its data"}'
    call_with('HDEL', q.base .. ':runs', ids)
    announce(q, 'remove', nil, #ids, each(ids, detail))
  end
end
