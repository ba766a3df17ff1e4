-- What jobs have rarely, as scripts take it. EXTRAS: as they are stored. FROM: for each parent the number of its queue in
-- the call, or 0, its id and the name of its queue; false without parents. JOBS: which jobs have this, siblings above all:
-- numbers of the first and the last of those that follow each other, in turn, or one number. Behind that, as far as there is
-- something: the dedupe key, or false, its mode, if it is not the default, or false, and its time; how long after its add a
-- job may be started, and by when, or false.
local EXTRAS, FROM, JOBS, KEY, MODE, TTL, START_WITHIN, START_BY = 1, 2, 3, 4, 5, 6, 7, 8
