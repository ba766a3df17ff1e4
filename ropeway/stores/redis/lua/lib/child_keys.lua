-- How a parent names a child, and the reasons that name children.
-- Uses: calls

local function key_of(queue, id)
  return queue .. '/' .. id
end

local function read_key(key)
  return string.match(key, '^([^/]*)/(.*)$')
end

-- An id as users know it: see ids.py.
local function in_full(id)
  if #id ~= 22 or byte(id) == 61 then
    return byte(id) == 61 and sub(id, 2) or id
  end
  local alphabet, hex, bits, number = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', {}, 0, 0
  for i = 1, 22 do
    number, bits = number * 64 + string.find(alphabet, sub(id, i, i), 1, true) - 1, bits + 6
    while bits >= 4 and #hex < 32 do
      bits = bits - 4
      hex[#hex + 1] = format('%x', math.floor(number / 2 ^ bits))
      number = number % 2 ^ bits
    end
  end
  return (string.gsub(table.concat(hex), '^(........)(....)(....)(....)', '%1-%2-%3-%4-'))
end

-- As `reason_for_parents` of job/flows.py.
local function reason_for_parents(queue, id, move, reason)
  if move == '{{FAIL_BY_CHILD}}' then
    return reason
  end
  local head = '{{REASON_CHILD}}' .. key_of(queue, in_full(id))
  if move == '{{CANCEL}}' then
    return head .. '{{REASON_CANCELLED}}' .. (reason and reason ~= '' and '{{REASON_WHY}}' .. reason or '')
  end
  return head .. '{{REASON_FAILED}}' .. reason
end
