-- Counts the waiting jobs of some priorities.
-- Takes the queue's base; [priorities].
-- Returns a number for each.
-- Uses: queue, lines, places
local asked = cmsgpack.unpack(ARGV[1])[1]
local q = open_queue(KEYS[1], 0)
local counts, sorted = {}, {}
for i = 1, #asked do
  local priority = asked[i]
  -- Others fit into no place.
  if not counts[priority] and math.abs(priority) < PRIORITY_ZERO - 1 then
    counts[priority] = 0
    sorted[#sorted + 1] = priority
  end
end
table.sort(sorted)

-- The first that is asked for from this priority on.
local function next_asked(priority)
  local low, high = 1, #sorted + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if sorted[middle] < priority then
      low = middle + 1
    else
      high = middle
    end
  end
  return sorted[low]
end

local function from(priority)
  return struct.pack('>I3', priority + PRIORITY_ZERO)
end

-- Goes from one priority that is asked for to the next that is there: lines may have a great many, and so may calls.
local function count_line(line, place)
  while place do
    local priority = next_asked(struct.unpack('>I3', place) - PRIORITY_ZERO)
    if not priority then
      return
    end
    local beyond = from(priority + 1)
    counts[priority] = counts[priority] + call('ZLEXCOUNT', line, '[' .. from(priority), '(' .. beyond)
    place = priority ~= sorted[#sorted] and call('ZRANGEBYLEX', line, '[' .. beyond, '+', 'LIMIT', 0, 1)[1]
  end
end

for _, head in ipairs(call('ZRANGE', q.base .. ':heads', 0, -1)) do
  count_line(line_of(q, sub(head, 11)), head)
end
local answers = {}
for i = 1, #asked do
  answers[i] = counts[asked[i]] or 0
end
return answers
