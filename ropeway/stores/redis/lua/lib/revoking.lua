-- Revokes locks of running jobs.
-- Uses: jobs

local function revoke(q, id, run, why)
  local token = holder_of(run)
  token = token ~= NIL and read_text(token, 1) or ''
  q.row[REVOKED] = q.row[REVOKED] + 1
  call('ZADD', q.base .. ':revoked', q.row[REVOKED], cmsgpack.pack({ q.row[REVOKED], q.now, id, token, why }))
  q.changed = true
  wake(q, 'revoked')
end
