-- Redis commands with any number of arguments.
local call, sub, byte, char, format = redis.call, string.sub, string.byte, string.char, string.format

-- Numbers beyond 14 digits would lose some by mere concatenation.
local function whole(n)
  return format('%.0f', n)
end

-- Lua's stack holds only some thousand values.
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
