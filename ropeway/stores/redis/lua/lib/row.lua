-- Where a queue's row has what. STANDING: until when claims may stand, or 0. ADDED: jobs added in the minute of MINUTE,
-- which go into the metrics with the next minute.
local EPOCH, AT, SKEW, SEQ, EVENTS, EVENTS_FROM, MINUTE, REVOKED = 1, 2, 3, 4, 5, 6, 7, 8
local CONFIGURED, PAUSED, MAX_ACTIVE, PAUSED_NAMES = 9, 10, 11, 12
local WAITING, WAITING_CHILDREN, DELAYED, ACTIVE, COMPLETED, FAILED, CANCELLED = 13, 14, 15, 16, 17, 18, 19
local STANDING, ADDED = 20, 21
local BATCH, EVENTS_KEPT = 1000, 10000
