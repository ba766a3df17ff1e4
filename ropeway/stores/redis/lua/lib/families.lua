-- Parents, and what they know of their children.
--
-- A parent has a hash, `children:` and its id. A field is a child's queue, a slash and its id; the value is a letter for
-- how the child stands, one for its policy, and its result or why it failed. The field without a name holds the
-- family itself: counters instead of counts, so that the end of a child costs the same however many there are. Fields that
-- begin with `#` list the keys of children as they were added, CHUNK_OF_KEYS in each, for pages.
-- Uses: calls, extras
local FAMILY = {
  LEFT = 1, LAST = 2, TOTAL = 3, DELAY = 4, DUE_AT = 5, IS_RELEASED = 6, OWED_EFFECT = 7, OWED_REASON = 8,
}
local CHUNK_OF_KEYS = {{CHUNK_OF_KEYS}}
-- How many children there are of each end.
local ENDED = { ['{{CHILD_COMPLETED}}'] = 9, ['{{CHILD_FAILED}}'] = 10, ['{{CHILD_CANCELLED}}'] = 11 }

local function new_family(delay, due_at, is_released)
  return { 0, 0, 0, delay, due_at, is_released, false, '', 0, 0, 0 }
end

local function begin_family(q, id, row)
  return { q = q, id = id, row = row, links = {}, changed = {} }
end

-- The family of a job and the links of some keys, in their order; nil if it has none.
local function load_family(q, id, keys)
  local number = #keys
  keys[number + 1] = ''
  local found = fields_of(q.base .. ':children:' .. id, keys)
  if not found[number + 1] then
    return nil
  end
  return begin_family(q, id, cmsgpack.unpack(found[number + 1])), found
end

local function set_link(family, key, state, policy, word)
  local row, before = family.row, family.links[key]
  local from, to = ENDED[sub(before, 1, 1)], ENDED[state]
  if from then
    row[from] = row[from] - 1
  end
  if to then
    row[to] = row[to] + 1
  end
  local link, changed = state .. policy .. word, family.changed
  family.links[key] = link
  changed[#changed + 1] = key
  changed[#changed + 1] = link
end

local function forget_link(family, key)
  local row, ended = family.row, ENDED[sub(family.links[key], 1, 1)]
  row[FAMILY.TOTAL] = row[FAMILY.TOTAL] - 1
  if ended then
    row[ended] = row[ended] - 1
  end
  family.links[key], family.has_other_size = nil, true
  call('HDEL', family.q.base .. ':children:' .. family.id, key)
end

local function save_family(family)
  local q, id = family.q, family.id
  local changed = family.changed
  changed[#changed + 1] = ''
  changed[#changed + 1] = cmsgpack.pack(family.row)
  call_with('HSET', q.base .. ':children:' .. id, changed)
  if family.has_other_size then
    change_extras(q, id, CHILDREN, family.row[FAMILY.TOTAL])
  end
  family.changed, family.has_other_size = {}, false
end

local function chunk_of(number)
  return '#' .. math.floor((number - 1) / CHUNK_OF_KEYS)
end

-- The keys of children from a number on, to the end of its chunk.
local function keys_from(key, number)
  local stored, keys = call('HGET', key, chunk_of(number)), {}
  local all = stored and cmsgpack.unpack(stored) or {}
  for i = (number - 1) % CHUNK_OF_KEYS + 1, #all do
    keys[#keys + 1] = all[i]
  end
  return keys
end

-- Lists keys behind those that are there; `last` is the number of the last one.
local function append_keys(key, last, keys)
  local at, chunk = 1, keys_from(key, last - last % CHUNK_OF_KEYS + 1)
  while at <= #keys do
    local name = chunk_of(last + 1)
    while at <= #keys and #chunk < CHUNK_OF_KEYS do
      chunk[#chunk + 1] = keys[at]
      at, last = at + 1, last + 1
    end
    call('HSET', key, name, cmsgpack.pack(chunk))
    chunk = {}
  end
end

-- The links of new children, as pairs of key and link. Takes what the client makes of children: letters of their policies,
-- or one if all have the same, and their keys, packed in chunks.
local function read_links(children)
  local policies, chunks = children[1], children[2]
  local pending, links, number = #policies == 1 and '{{CHILD_PENDING}}' .. policies, {}, 0
  for i = 1, #chunks do
    local keys = cmsgpack.unpack(chunks[i])
    for j = 1, #keys do
      number = number + 1
      links[2 * number - 1] = keys[j]
      links[2 * number] = pending or '{{CHILD_PENDING}}' .. sub(policies, number, number)
    end
  end
  return links, number
end

local function count_new(family, number)
  local row = family.row
  row[FAMILY.LEFT], row[FAMILY.LAST], row[FAMILY.TOTAL] =
    row[FAMILY.LEFT] + number, row[FAMILY.LAST] + number, row[FAMILY.TOTAL] + number
end

-- Gives a family children. Those it has already stay as they are. Returns whether there are new ones. Call `save_family`
-- then.
local function adopt(family, children)
  local links, number = read_links(children)
  local key, keys, added, changed = family.q.base .. ':children:' .. family.id, {}, {}, family.changed
  for i = 1, number do
    keys[i] = links[2 * i - 1]
  end
  local there = fields_of(key, keys)
  for i = 1, number do
    if not there[i] then
      added[#added + 1] = keys[i]
      changed[#changed + 1] = keys[i]
      changed[#changed + 1] = links[2 * i]
    end
  end
  append_keys(key, family.row[FAMILY.LAST], added)
  count_new(family, #added)
  return #added > 0
end

-- Writes the family of a new job that waits for children.
local function found_family(q, id, delay, due_at, children)
  local family = begin_family(q, id, new_family(delay, due_at, false))
  local links, number = read_links(children)
  for i, chunk in ipairs(children[2]) do
    links[2 * (number + i) - 1], links[2 * (number + i)] = '#' .. i - 1, chunk
  end
  family.changed = links
  count_new(family, number)
  save_family(family)
end
