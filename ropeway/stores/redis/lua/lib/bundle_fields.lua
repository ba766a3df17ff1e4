-- The fields of a job that is to be added. LINKS: of a parent, see `found_family`.
-- Uses: rare_fields
local ID, LENGTH, NAME, QUEUE, PRIORITY, LIFO, DELAY, DUE_AT, LINKS = 1, 2, 3, 4, 5, 6, 7, 8, 9

-- What each job of a call has rarely, by the job's number.
local function spread(rare)
  local rare_of = {}
  for i = 1, #rare do
    local own = rare[i]
    local jobs = own[JOBS]
    if type(jobs) == 'number' then
      rare_of[jobs] = own
    else
      for j = 1, #jobs, 2 do
        for number = jobs[j], jobs[j + 1] do
          rare_of[number] = own
        end
      end
    end
  end
  return rare_of
end
