-- Parents, and what they know of their children.
--
-- A parent has a hash, `children:` and its id. A field is a child's queue, a slash and its id; the value is a letter for
-- how the child stands, one for its policy, and its result or why it failed. The field without a name holds the
-- family itself: counters instead of counts, so that the end of a child costs the same however many there are. `order:`
-- has the children by number, for pages.
-- Uses: calls, extras
local FAMILY = {
  LEFT = 1, LAST = 2, TOTAL = 3, DELAY = 4, DUE_AT = 5, IS_RELEASED = 6, HAS_FAILED = 7, OWED_EFFECT = 8, OWED_REASON = 9,
}
-- How many children there are of each end.
local ENDED = { ['{{CHILD_COMPLETED}}'] = 10, ['{{CHILD_FAILED}}'] = 11, ['{{CHILD_CANCELLED}}'] = 12 }

local function new_family(delay, due_at, is_released)
  return { 0, 0, 0, delay, due_at, is_released, false, false, '', 0, 0, 0 }
end

-- The family of a job and some of its links, by key; nil if it has none.
local function load_family(q, id, keys)
  local row = call('HGET', q.base .. ':children:' .. id, '')
  if not row then
    return nil
  end
  local family = { q = q, id = id, links = {}, changed = {}, row = cmsgpack.unpack(row) }
  local links = fields_of(q.base .. ':children:' .. id, keys)
  for i = 1, #keys do
    family.links[keys[i]] = links[i]
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
  family.links[key] = state .. policy .. word
  family.changed[key] = true
end

local function forget_link(family, key)
  local row, base = family.row, family.q.base
  row[FAMILY.TOTAL] = row[FAMILY.TOTAL] - 1
  family.links[key], family.changed[key], family.has_other_size = nil, nil, true
  call('HDEL', base .. ':children:' .. family.id, key)
  call('ZREM', base .. ':order:' .. family.id, key)
end

local function save_family(family)
  local q, id = family.q, family.id
  local fields = { '', cmsgpack.pack(family.row) }
  for key in pairs(family.changed) do
    fields[#fields + 1] = key
    fields[#fields + 1] = family.links[key]
  end
  call_with('HSET', q.base .. ':children:' .. id, fields)
  if family.has_other_size then
    change_extras(q, id, CHILDREN, family.row[FAMILY.TOTAL])
  end
  family.changed, family.has_other_size = {}, false
end

-- Gives a family children: keys and policies in turn. Those it has already stay as they are. Returns whether there
-- are new ones. Call `save_family` then.
local function adopt(family, children)
  local q, id, row, keys = family.q, family.id, family.row, {}
  for i = 1, #children, 2 do
    keys[#keys + 1] = children[i]
  end
  local key, there, order, links = q.base .. ':children:' .. id, nil, {}, {}
  there = family.is_new and {} or fields_of(key, keys)
  for i = 1, #keys do
    local child = keys[i]
    if not there[i] and not links[child] then
      row[FAMILY.LEFT], row[FAMILY.LAST], row[FAMILY.TOTAL] = row[FAMILY.LEFT] + 1, row[FAMILY.LAST] + 1, row[FAMILY.TOTAL] + 1
      links[child] = true
      links[#links + 1] = child
      links[#links + 1] = '{{CHILD_PENDING}}' .. children[2 * i]
      order[#order + 1] = row[FAMILY.LAST]
      order[#order + 1] = child
    end
  end
  call_with('HSET', key, links)
  call_with('ZADD', q.base .. ':order:' .. id, order)
  return #order > 0
end

-- A family that waits for children, of a job that is new.
local function found_family(q, id, delay, due_at, children)
  local family = { q = q, id = id, links = {}, changed = {}, row = new_family(delay, due_at, false), is_new = true }
  adopt(family, children)
  save_family(family)
end

local function drop_family(q, id)
  call('UNLINK', q.base .. ':children:' .. id, q.base .. ':order:' .. id)
end
