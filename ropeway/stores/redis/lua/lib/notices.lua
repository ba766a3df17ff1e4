-- Events that updates and outcomes announce about their jobs, in as few entries as keep those of each job in order.
-- Uses: announcing

local function drafts_of(q)
  q.notices = q.notices or { before = 0 }
  return q.notices
end

-- Notes an event of some jobs, of which nothing was noted behind the place `last`; `detail` is JSON. Returns its place.
local function note(q, ids, what, detail, last)
  local drafts, place = drafts_of(q), last + 1
  while drafts[place] and drafts[place].what ~= what do
    place = place + 1
  end
  local groups = drafts[place] or { what = what, number = 0 }
  drafts[place] = groups
  groups.number, groups[#groups + 1] = groups.number + #ids, { ids, detail }
  return place
end

-- Takes events and their details in turn.
local function note_notices(q, ids, notices)
  local last = drafts_of(q).before
  for i = 1, #notices, 2 do
    last = note(q, ids, notices[i], notices[i + 1], last)
  end
end

-- From now on events may be noted of jobs of which some were noted before.
local function separate_notices(q)
  local drafts = drafts_of(q)
  drafts.before = #drafts
end

local function announce_notices(q)
  -- Jobs that report alike announce several events: the text of their ids is made once.
  local drafts, listed = q.notices or {}, {}
  q.notices = nil
  for _, groups in ipairs(drafts) do
    local common, jobs = groups[1][2], {}
    for i = 2, #groups do
      common = groups[i][2] == common and common or nil
    end
    for i = 1, #groups do
      local ids = groups[i][1]
      if common then
        listed[ids] = listed[ids] or each(ids, 'null')
      end
      jobs[i] = common and listed[ids] or each(ids, groups[i][2])
    end
    announce(q, groups.what, nil, groups.number, table.concat(jobs, ','), common)
  end
end
