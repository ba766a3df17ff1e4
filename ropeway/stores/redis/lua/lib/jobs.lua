-- Jobs as they are stored.
--
-- A value of `jobs` is name, data and options as MessagePack texts, then priority, order and created_at (23 bytes).
-- A value of `runs` is what became of a job since: it begins with a letter for its state (o: waiting or delayed, a:
-- active, c, f, x: completed, failed, cancelled), then pieces of fixed width, its token and its worker, and ends with its
-- place. A job that was never claimed has none.
--
-- A place is priority (6 hex digits) and order (14): places sort as jobs are claimed.
local UNTIL, FINISHED_AT, STARTED_AT, RENEWED_AT, MADE, STARTS, STALLED, TOKEN = 2, 11, 20, 29, 38, 43, 48, 53
local LEAST_PRIORITY, ORDER_ZERO = 2097152, 4503599627370496
local STATES = { a = 'active', c = 'completed', f = 'failed', x = 'cancelled' }
local COUNTERS = {
  waiting = WAITING, delayed = DELAYED, active = ACTIVE, completed = COMPLETED, failed = FAILED, cancelled = CANCELLED,
}
local LETTERS = { waiting = 'w', delayed = 'd', active = 'a', completed = 'c', failed = 'f', cancelled = 'x' }

local function pack_tail(priority, order, created_at)
  return struct.pack('>Bi4Bi8BI8', 210, priority, 211, order, 207, created_at)
end

local function make_place(priority, order)
  if priority == 0 then
    return '200000' .. format('%014x', order + ORDER_ZERO)
  end
  return format('%06x%014x', priority + LEAST_PRIORITY, order + ORDER_ZERO)
end

local function place_of(value)
  local tail = #value - 22
  return make_place(struct.unpack('>i4', value, tail + 1), struct.unpack('>i8', value, tail + 6))
end

-- What orders jobs of equal times: the sequence, whether lifo or not. Takes a text that ends with a place.
local function sequence_of(placed)
  local order = sub(placed, -14)
  if byte(order) == 48 then
    return format('%014x', 2 * ORDER_ZERO - tonumber(order, 16))
  end
  return order
end

local function name_of(value)
  return (read_text(value, 1))
end

local function blank_run(place)
  return 'o' .. NEVER .. NEVER .. NEVER .. NEVER .. NONE .. NONE .. NONE .. NIL .. NIL .. place
end

local function count_at(run, at)
  return unpack_count(sub(run, at, at + 4))
end

local function time_at(run, at)
  return unpack_time(sub(run, at, at + 8))
end

local function is_held(run, token)
  return byte(run) == 97 and sub(run, TOKEN, TOKEN + #token - 1) == token
end

-- Token and worker of a run, as packed pieces.
local function holder_of(run)
  local worker_at = TOKEN + 1
  if byte(run, TOKEN) ~= 192 then
    worker_at = select(2, read_text(run, TOKEN))
  end
  return sub(run, TOKEN, worker_at - 1), sub(run, worker_at, -21)
end

local function worker_of(run)
  local _, worker = holder_of(run)
  return worker ~= NIL and read_text(worker, 1) or nil
end

-- The run after an attempt: back in line, or at its end. Counters may be given as packed pieces.
local function ended_run(run, letter, until_piece, finished_piece, made, stalled)
  return letter .. until_piece .. finished_piece .. sub(run, STARTED_AT, MADE - 1) .. (made or sub(run, MADE, STARTS - 1))
    .. sub(run, STARTS, STALLED - 1) .. (stalled or sub(run, STALLED, TOKEN - 1)) .. sub(run, TOKEN)
end

local function without_token(run)
  local _, worker = holder_of(run)
  return sub(run, 1, TOKEN - 1) .. NIL .. worker .. sub(run, -20)
end

-- Everything about one job that decides what may be done to it; nil if there is none.
local function load_job(q, id)
  local value = call('HGET', q.base .. ':jobs', id)
  if not value then
    return nil
  end
  local run = call('HGET', q.base .. ':runs', id)
  local job = { id = id, value = value, run = run, place = place_of(value) }
  job.state = run and STATES[sub(run, 1, 1)]
  if not job.state then
    job.due = q.row[DELAYED] > 0 and call('ZSCORE', q.base .. ':delayed', sub(job.place, 7) .. id)
    job.state = job.due and 'delayed' or 'waiting'
  end
  return job
end
