-- Grouping of items by a key, and of jobs by name.
-- Uses: lines

local function add_to(groups, key, item)
  local group = groups[key]
  if group then
    group[#group + 1] = item
  else
    groups[key] = { item }
  end
end

local function put_all_in_line(q, by_name)
  for name, members in pairs(by_name) do
    put_in_line(q, name, members)
  end
end
