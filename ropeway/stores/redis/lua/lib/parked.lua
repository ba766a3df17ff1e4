-- Parked claims, which are served by scripts that add jobs: see `parked.py`.
-- Uses: claims
local MOST_SERVED, MOST_BYTES = 16, 262144

-- The message with the jobs of a claim. It is empty if they are large, and the worker fetches them: a server drops
-- subscribers that do not keep up.
local function pack_served(request, claimed)
  local now, again_at, ids, values, rests = unpack(claimed)
  local rest_of, pieces, length = {}, {}, 0
  for i = 1, rests and #rests or 0 do
    for number = rests[i][1], rests[i][2] do
      rest_of[number] = rests[i][3]
    end
  end
  for i = 1, #ids do
    local rest = rest_of[i] or ''
    pieces[i] = struct.pack('>I4I4I4', #ids[i], #values[i], #rest) .. ids[i] .. values[i] .. rest
    length = length + #pieces[i]
  end
  if length > MOST_BYTES then
    return ''
  end
  return struct.pack('>I4I8I8', #request[1], now, again_at or 0) .. request[1] .. table.concat(pieces)
end

-- Serves the claims that were parked first. Nothing is given to a worker whose connection has ended.
local function serve_parked(q)
  local row, key = q.row, q.base .. ':parked'
  local found, gone = call('ZRANGE', key, 0, MOST_SERVED - 1, 'WITHSCORES'), {}
  for i = 1, #found, 2 do
    if row[WAITING] == 0 then
      break
    end
    local request, channel = unpack(cmsgpack.unpack(found[i]))
    if tonumber(found[i + 1]) < q.now or call('PUBSUB', 'NUMSUB', channel)[2] == 0 then
      gone[#gone + 1] = found[i]
    else
      local claimed = claim(q, request)
      if #claimed[3] > 0 then
        gone[#gone + 1] = found[i]
        call('PUBLISH', channel, pack_served(request, claimed))
      end
    end
  end
  call_with('ZREM', key, gone)
  if #gone * 2 == #found and #gone < MOST_SERVED then
    row[PARKED_UNTIL] = 0
  end
end
