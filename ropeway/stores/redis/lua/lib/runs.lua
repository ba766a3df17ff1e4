-- The run of a job: its state, times, counters and holder since it was added.
--
-- A value of `runs` begins with a letter for the job's state (o: waiting or delayed, else that of lib/states.lua), then
-- come pieces of fixed width, its token and its worker, and at the end its place. A job that was
-- never claimed and has no extras has none. While it is active, FINISHED_AT says whether the attempt runs alone in its
-- process: ALONE, or NEVER. The byte at STALLED, which tells MessagePack how a number is written, is a flag too:
-- WITH_EXTRAS says that `extras` has an entry for the job (see lib/extras.lua). So is the byte at STARTS: EARLY_PROGRESS
-- says that a job with extras that was never claimed has progress. And the byte at MADE: WITH_MARKS says that the job may
-- have marks (see lib/marks.lua).
-- Uses: calls
local UNTIL, FINISHED_AT, STARTED_AT, RENEWED_AT, MADE, STARTS, STALLED, TOKEN = 2, 11, 20, 29, 38, 43, 48, 53
local ALONE = '\207\0\0\0\0\0\0\0\1'
local WITH_EXTRAS, WITHOUT_EXTRAS, EARLY_PROGRESS, WITH_MARKS = 210, 206, 210, 210
-- For runs whose place nobody reads.
local ANY_PLACE = string.rep('0', 10)

local function is_held(run, token)
  return byte(run) == 97 and sub(run, TOKEN, TOKEN + #token - 1) == token
end

-- What orders jobs of equal times: the sequence, whether lifo or not. Takes a text that ends with a place.
local function sequence_of(placed)
  local order = sub(placed, -7)
  if byte(order) < 128 then
    local high, low = struct.unpack('>BI6', order)
    local sequence = (128 - high) * 281474976710656 - low
    return struct.pack('>BI6', 128 + math.floor(sequence / 281474976710656), sequence % 281474976710656)
  end
  return order
end
