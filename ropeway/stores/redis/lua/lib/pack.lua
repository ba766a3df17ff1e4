-- MessagePack pieces, put together by hand: the client decodes whole records of them at once.
-- Numbers have a fixed width, so that a field of a stored text is found, and replaced, by its place.
-- Uses: calls
local NIL, NEVER, NONE = '\192', '\207\0\0\0\0\0\0\0\0', '\206\0\0\0\0'

local function pack_time(n)
  return '\207' .. struct.pack('>I8', n)
end

local function pack_count(n)
  return '\206' .. struct.pack('>I4', n)
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
