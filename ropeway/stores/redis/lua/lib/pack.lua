-- MessagePack pieces, put together by hand: the client decodes whole records of them at once.
-- Numbers have a fixed width, so that a field of a stored text is found, and replaced, by its place.
local call, sub, byte, char, format = redis.call, string.sub, string.byte, string.char, string.format
local NIL = '\192'
local NEVER = '\207\0\0\0\0\0\0\0\0'
local NONE = '\206\0\0\0\0'

local function pack_time(n)
  return '\207' .. struct.pack('>I8', n)
end

local function unpack_time(piece)
  return (struct.unpack('>I8', piece, 2))
end

local function pack_count(n)
  return '\206' .. struct.pack('>I4', n)
end

local function unpack_count(piece)
  return (struct.unpack('>I4', piece, 2))
end

local function pack_text(text)
  local length = #text
  if length < 256 then
    return '\217' .. char(length) .. text
  elseif length < 65536 then
    return '\218' .. struct.pack('>I2', length) .. text
  end
  return '\219' .. struct.pack('>I4', length) .. text
end

-- A text piece as the client or `pack_text` wrote it: answers the text, and where the next piece begins.
local function read_text(packed, at)
  local next, text = cmsgpack.unpack_one(packed, at - 1)
  if next < 0 then
    next = #packed
  end
  return text, next + 1
end

-- Numbers beyond 14 digits would lose some by mere concatenation.
local function whole(n)
  return format('%.0f', n)
end

-- Calls a command with any number of arguments, a few thousand at a time: Lua's stack holds no more.
local MOST = 4000
local function call_with(command, key, arguments)
  local length = #arguments
  if length <= MOST then
    if length > 0 then
      call(command, key, unpack(arguments))
    end
    return
  end
  for first = 1, length, MOST do
    call(command, key, unpack(arguments, first, math.min(first + MOST - 1, length)))
  end
end

-- The values of many fields of a hash, in order; false where there is none.
local function fields_of(key, ids)
  local length = #ids
  if length == 0 then
    return {}
  elseif length <= MOST then
    return call('HMGET', key, unpack(ids))
  end
  local values = {}
  for first = 1, length, MOST do
    local part = call('HMGET', key, unpack(ids, first, math.min(first + MOST - 1, length)))
    for i = 1, #part do
      values[first + i - 1] = part[i]
    end
  end
  return values
end
