-- The queues that one step reaches in which jobs end, and the work that is left to do in it.
--
-- Work is a list of items, [kind, queue, id of a job there, ...]: flows may be deep, and recursion may not. On one server
-- a step reaches every queue. In a cluster it reaches its own, and items for others go into the outbox (see outbox.py).
-- Uses: queue, pack
local ITEM = { JUDGE = 1, END = 2, ORPHAN = 3, AGAIN = 4, GONE = 5, LETTER = 6 }

local function step_of(q)
  if not q.step then
    -- No prefix has a colon.
    local head, name = string.match(q.base, '^([^:]*:)(.*)}$')
    q.queue = name
    q.step = {
      home = q, head = head, opened = { [name] = q }, others = {}, work = {}, endings = {}, retried = {}, posted = {},
      releasing = {}, followers = {},
      -- Only in a cluster scripts are called with this key.
      is_split = sub(KEYS[#KEYS], -6) == ':never',
    }
  end
  return q.step
end

-- Lets a step reach all queues that a script adds to, so that none is opened twice. Then `conclude` of the first must follow,
-- which closes the others.
local function share_step(queues)
  local step = step_of(queues[1])
  step.is_shared = true
  for i = 2, #queues do
    local q = queues[i]
    if q.step ~= step then
      q.step, q.queue = step, string.match(q.base, '^[^:]*:(.*)}$')
      step.opened[q.queue], step.others[#step.others + 1] = q, q
    end
  end
end

-- A queue by its name; nil if it is in another slot.
local function reach(step, name)
  local q = step.opened[name]
  if not q and not step.is_split then
    q = open_queue(step.head .. name .. '}', step.home.now)
    q.step, q.queue = step, name
    step.opened[name], step.others[#step.others + 1] = q, q
  end
  return q
end

local function add_work(step, ...)
  step.work[#step.work + 1] = { ... }
end

local function pack_bytes(text)
  return '\198' .. struct.pack('>I4', #text) .. text
end

-- Puts items for another slot into the outbox: an entry with one parcel, as `receive` takes it.
local function post(step, queue, items)
  local home = step.home
  local time = call('TIME')
  local unique =
    table.concat({ home.base, #step.posted, home.row[EPOCH], whole(home.row[EVENTS]), time[1], time[2] }, ' ')
  local name, token = sub(redis.sha1hex(unique), 1, 32), sub(redis.sha1hex('token ' .. unique), 1, 32)
  local parcel = pack_text(queue) .. pack_bytes(cmsgpack.pack({ false, {}, {}, 1, false, {}, items })) .. pack_bytes('')
  local text = token .. '\145\147' .. parcel
  call('HSET', home.base .. ':outbox', name, text)
  step.posted[#step.posted + 1] = name
  step.posted[#step.posted + 1] = text
end
