-- Reads what lib/pack.lua writes.
-- Uses: calls

-- A text piece as the client or `pack_text` wrote it: answers the text, and where the next piece begins.
local function read_text(packed, at)
  local next, text = cmsgpack.unpack_one(packed, at - 1)
  if next < 0 then
    next = #packed
  end
  return text, next + 1
end

local function unpack_time(piece)
  return (struct.unpack('>I8', piece, 2))
end

local function unpack_count(piece)
  return (struct.unpack('>I4', piece, 2))
end

local function count_at(run, at)
  return unpack_count(sub(run, at, at + 4))
end

local function time_at(run, at)
  return unpack_time(sub(run, at, at + 8))
end
