-- What became of jobs since they were added.
--
-- A value of `runs` begins with a letter for the job's state (o: waiting or delayed, a: active, c, f, x: completed,
-- failed, cancelled), then pieces of fixed width, its token and its worker, and ends with its place. A job that was
-- never claimed has none.
-- Uses: calls
local UNTIL, FINISHED_AT, STARTED_AT, RENEWED_AT, MADE, STARTS, STALLED, TOKEN = 2, 11, 20, 29, 38, 43, 48, 53

local function is_held(run, token)
  return byte(run) == 97 and sub(run, TOKEN, TOKEN + #token - 1) == token
end

-- What orders jobs of equal times: the sequence, whether lifo or not. Takes a text that ends with a place.
local function sequence_of(placed)
  local order = sub(placed, -14)
  if byte(order) == 48 then
    return format('%014x', 9007199254740992 - tonumber(order, 16))
  end
  return order
end
