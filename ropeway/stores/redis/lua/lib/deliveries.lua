-- What arrives from other slots of a cluster.
-- Uses: flows

-- Does work that came from other slots, and tells parents of children that could not be added: [id, parents as in a bundle]
-- of each. Returns what `conclude` returns.
local function receive_work(q, items, refused)
  local step = step_of(q)
  for i = 1, #items do
    step.work[#step.work + 1] = items[i]
  end
  for i = 1, #refused do
    local id, from = unpack(refused[i])
    local reason = '{{REASON_CHILD}}' .. key_of(q.queue, in_full(id)) .. '{{REASON_NOT_ADDED}}'
    for _, parent in ipairs(from) do
      add_work(step, ITEM.END, parent[3], parent[2], q.queue, '{{CHILD_FAILED}}', { id }, { reason })
    end
  end
  return conclude(q)
end
