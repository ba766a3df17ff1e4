-- The stored form of a job, and its place in line.
--
-- A value of `jobs` is name, data and options as MessagePack texts, then its place and created_at (6 bytes).
-- A place is priority (3 bytes) and order (7), each with its sign turned round: places sort as jobs are claimed.
-- Uses: calls
local PRIORITY_ZERO, ORDER_ZERO, HIGH = 8388608, 128, 281474976710656

local function make_place(priority, order)
  if priority == 0 and order >= 0 and order < HIGH then
    return struct.pack('>I4I6', 2147483776, order)
  end
  return struct.pack('>I3BI6', priority + PRIORITY_ZERO, ORDER_ZERO + math.floor(order / HIGH), order % HIGH)
end

-- Priority, order and created_at of a value.
local function read_tail(value)
  local priority, high, low, created_at = struct.unpack('>I3BI6I6', value, #value - 15)
  return priority - PRIORITY_ZERO, (high - ORDER_ZERO) * HIGH + low, created_at
end

local function place_of(value)
  return sub(value, -16, -7)
end

local function with_place(value, place)
  return sub(value, 1, -17) .. place .. sub(value, -6)
end

local function pack_created(created_at)
  return struct.pack('>I6', created_at)
end
