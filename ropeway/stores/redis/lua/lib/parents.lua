-- The parents of jobs, and what they are to be told when these end or are removed.
-- Uses: child_keys, steps, families, changing
local ENDS = {{ENDS}}

-- The parents of a job: [queue, id] of each.
local function parents_of(q, id)
  local stored = call('HGET', q.base .. ':extras', id)
  return stored and cmsgpack.unpack(stored)[PARENTS] or {}
end

local function is_among(parents, queue, id)
  for i = 1, #parents do
    if parents[i][1] == queue and parents[i][2] == id then
      return true
    end
  end
  return false
end

-- The child of a link, and its parents. Another job may have its id since it was removed.
local function load_child(q, id, queue, parent)
  local job = load_job(q, id)
  local parents = job and parents_of(q, id)
  if job and is_among(parents, queue, parent) then
    return job, parents
  end
  return nil
end

-- Begins to tell the parents that some extras name; false if they name none.
local function begin_news(q, ended, extras)
  local news, parents = { ids = {}, words = {}, number = 0 }, cmsgpack.unpack(extras)[PARENTS] or {}
  for i = 1, #parents do
    add_work(step_of(q), ITEM.END, parents[i][1], parents[i][2], q.queue, ended, news.ids, news.words)
  end
  return #parents > 0 and news
end

-- Notes what parents are to be told about jobs that ended by a move; `words` are their results or reasons, and `stored`
-- their extras.
local function note_news(q, move, ids, words, stored)
  step_of(q)
  -- Most who end together have the same parents, and so the same extras.
  local ended, by_extras = ENDS[move], {}
  local has_reason = ended ~= '{{CHILD_COMPLETED}}' and ended ~= '{{CHILD_REMOVED}}'
  for i = 1, #ids do
    local extras = stored[i]
    local news = extras and by_extras[extras]
    if extras and news == nil then
      news = begin_news(q, ended, extras)
      by_extras[extras] = news
    end
    if news then
      local number, word = news.number + 1, words[i] or ''
      news.number, news.ids[number] = number, ids[i]
      news.words[number] = has_reason and reason_for_parents(q.queue, ids[i], move, word) or word
    end
  end
end

local function have_rules(stored, number)
  for i = 1, number do
    if has_rules(stored[i]) then
      return true
    end
  end
  return false
end

-- What follows for jobs with extras that ended by a move; `words` are their results or reasons.
local function note_ends(q, move, state, ids, words)
  local stored = fields_of(q.base .. ':extras', ids)
  note_news(q, move, ids, words, stored)
  if have_rules(stored, #ids) then
    with_rules().leave_rules(q, state, ids, words, stored)
  end
end

-- What follows for jobs that are removed; `stored` are their extras.
local function note_removals(q, state, ids, stored)
  local has_children, families = {}, {}
  for i = 1, #ids do
    local extras = stored[i]
    if extras and has_children[extras] == nil then
      has_children[extras] = cmsgpack.unpack(extras)[CHILDREN] ~= nil
    end
    if has_children[extras] then
      families[#families + 1] = q.base .. ':children:' .. ids[i]
    end
  end
  if #families > 0 then
    -- Naming one twice does no harm.
    call_with('UNLINK', families[1], families)
  end
  if not IS_FINAL[state] then
    note_news(q, '{{REMOVE}}', ids, {}, stored)
    if have_rules(stored, #ids) then
      with_rules().leave_rules(q, state, ids, {}, stored)
    end
  end
end
