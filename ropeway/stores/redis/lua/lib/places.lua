-- Jobs as they are added.
--
-- A value of `jobs` is name, data and options as MessagePack texts, then priority, order and created_at (23 bytes).
-- A place is priority (6 hex digits) and order (14): places sort as jobs are claimed.
-- Uses: calls
local LEAST_PRIORITY, ORDER_ZERO = 2097152, 4503599627370496

local function pack_tail(priority, order, created_at)
  return struct.pack('>Bi4Bi8BI8', 210, priority, 211, order, 207, created_at)
end

local function make_place(priority, order)
  if priority == 0 then
    return '200000' .. format('%014x', order + ORDER_ZERO)
  end
  return format('%06x%014x', priority + LEAST_PRIORITY, order + ORDER_ZERO)
end
