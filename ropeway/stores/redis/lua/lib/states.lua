-- The states of a job: the letter of each, and its counter in the queue's row.
-- Uses: row
local COUNTERS = {
  waiting = WAITING, ['waiting-children'] = WAITING_CHILDREN, delayed = DELAYED, active = ACTIVE, completed = COMPLETED,
  failed = FAILED, cancelled = CANCELLED,
}
local LETTERS = {
  waiting = 'w', ['waiting-children'] = 'k', delayed = 'd', active = 'a', completed = 'c', failed = 'f', cancelled = 'x',
}
