-- A queue's row: numbers as Lua has them, then the name of HEADED, then the paused names as MessagePack, if any are.
--
-- FORMAT: how the row is written. EVENTS: the number of the newest event. EVENTS_FROM: the one before the oldest; once
-- some were trimmed -1, less that number where it is known, because readers must not take it for a place of theirs.
-- PARKED_UNTIL: until when claims may be parked, or 0. ADDED: jobs added in the minute of MINUTE, which go into the
-- metrics with the next minute. HEADED: the name of a line that has a head which goes before whatever is added without
-- priority; empty if none is known. HEADED_LENGTH: that of this name, in bytes. DEADLINE: no job that was not started expires
-- before it; 0 if none ever does. SCHEDULES: how many there are. CONFIGURED: whether it has settings, WITH_STAGES if
-- `stages` has some of them.
local FORMAT, EPOCH, AT, SKEW, SEQ, EVENTS, EVENTS_FROM, MINUTE, REVOKED = 1, 2, 3, 4, 5, 6, 7, 8, 9
local CONFIGURED, PAUSED, MAX_ACTIVE = 10, 11, 12
local WITH_STAGES = 2
local WAITING, WAITING_CHILDREN, DELAYED, ACTIVE, COMPLETED, FAILED, CANCELLED = 13, 14, 15, 16, 17, 18, 19
local PARKED_UNTIL, ADDED, DEADLINE, SCHEDULES, HEADED_LENGTH = 20, 21, 22, 23, 24
local HEADED, PAUSED_NAMES = 25, 26
local NUMBERS, NAMES_AT, THIS_FORMAT = '<dddddddddddddddddddddddd', 193, 3
local BATCH, EVENTS_KEPT = {{BATCH}}, {{EVENTS_KEPT}}
