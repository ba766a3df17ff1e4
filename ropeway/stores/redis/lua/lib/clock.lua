-- The server's clock, for scripts without a queue.
-- Uses: calls

local function server_time()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
