-- Who holds a dedupe key.
--
-- A value of `held` is mostly the id of a job. If the key is held for a time, or another job waits for the end of this one,
-- it is a zero byte, the instant until which it is held whatever becomes of the job, or 0, the length of the job's id, the id,
-- and the id of the job that waits.
-- Uses: calls

local function pack_hold(id, till, next)
  return till == 0 and not next and id or '\0' .. struct.pack('>I8B', till, #id) .. id .. (next or '')
end

local function read_hold(stored)
  if byte(stored) ~= 0 then
    return { id = stored, till = 0 }
  end
  local till, length = struct.unpack('>I8B', stored, 2)
  local next = sub(stored, length + 11)
  return { id = sub(stored, 11, length + 10), till = till, next = next ~= '' and next or nil }
end

local function is_over(hold, now)
  return hold.till > 0 and hold.till <= now
end
