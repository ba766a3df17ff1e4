-- Parents, and what they know of their children.
--
-- A parent has a hash, `children:` and its id. A field is a child's queue, a slash and its id; the value is a letter for
-- how the child stands, one for its policy, and its result or why it failed. The field without a name holds the
-- family itself: counters instead of counts, so that the end of a child costs the same however many there are. Fields that
-- begin with `#` list the keys of children as they were added, CHUNK in each, for pages.
-- Uses: calls, extras
local FAMILY = {
  LEFT = 1, LAST = 2, TOTAL = 3, DELAY = 4, DUE_AT = 5, IS_RELEASED = 6, OWED_EFFECT = 7, OWED_REASON = 8,
}
local CHUNK_OF_KEYS = 500
-- How many children there are of each end.
local ENDED = { ['{{CHILD_COMPLETED}}'] = 9, ['{{CHILD_FAILED}}'] = 10, ['{{CHILD_CANCELLED}}'] = 11 }

local function new_family(delay, due_at, is_released)
  return { 0, 0, 0, delay, due_at, is_released, false, '', 0, 0, 0 }
end

local function begin_family(q, id, row)
  return { q = q, id = id, row = row, links = {}, changed = {} }
end

-- The family of a job and some of its links, by key; nil if it has none.
local function load_family(q, id, keys)
  local number = #keys
  keys[number + 1] = ''
  local found = fields_of(q.base .. ':children:' .. id, keys)
  if not found[number + 1] then
    return nil
  end
  local family = begin_family(q, id, cmsgpack.unpack(found[number + 1]))
  for i = 1, number do
    family.links[keys[i]] = found[i]
  end
  return family
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

-- Gives a family children: keys and policies in turn. Those it has already stay as they are. Returns whether there
-- are new ones. Call `save_family` then.
local function adopt(family, children)
  local row, keys, added, is_added, links = family.row, {}, {}, {}, family.changed
  local key = family.q.base .. ':children:' .. family.id
  for i = 1, #children, 2 do
    keys[#keys + 1] = children[i]
  end
  local there = family.is_new and {} or fields_of(key, keys)
  for i = 1, #keys do
    local child = keys[i]
    if not there[i] and not is_added[child] then
      is_added[child], added[#added + 1] = true, child
      links[#links + 1] = child
      links[#links + 1] = '{{CHILD_PENDING}}' .. children[2 * i]
    end
  end
  local number, last = #added, row[FAMILY.LAST]
  append_keys(key, last, added)
  row[FAMILY.LEFT], row[FAMILY.LAST], row[FAMILY.TOTAL] =
    row[FAMILY.LEFT] + number, last + number, row[FAMILY.TOTAL] + number
  return number > 0
end

-- A family that waits for children, of a job that is new.
local function found_family(q, id, delay, due_at, children)
  local family = begin_family(q, id, new_family(delay, due_at, false))
  family.is_new = true
  adopt(family, children)
  save_family(family)
end

local function drop_family(q, id)
  call('UNLINK', q.base .. ':children:' .. id)
end
