"""Steps, sleeps, waits and gathers, as the marks of a job say."""

from __future__ import annotations

from datetime import timedelta

from ropeway.job.instants import LAST_INSTANT, moment_of
from ropeway.job.marks import Mark, scoped
from ropeway.job.steps import steps_of


def test_steps_come_in_the_order_of_their_ends():
    marks = (Mark("signal:a", "1", 1), Mark("step:a", '{"result":1,"took":0.5}', 900), Mark("step:b", "{}", 800))

    first, second = steps_of(marks)

    assert (first.name, first.ended_at, first.took, first.result) == ("b", moment_of(800), 0.0, None)
    assert (second.name, second.ended_at, second.took, second.result) == ("a", moment_of(900), 0.5, 1)
    assert (first.started_at, second.started_at) == (moment_of(800), moment_of(400))


def test_a_sleep_comes_before_what_began_when_it_ended():
    marks = (Mark("gather:#1", '[["emails","a"]]', 30), Mark("sleep:#1", "30", 10))

    assert [step.kind for step in steps_of(marks)] == ["sleep", "gather"]


def test_a_sleep_lasts_until_its_end():
    [sleep] = steps_of((Mark(scoped("sleep:", "upload", "nap"), "3010", 10),))

    assert (sleep.kind, sleep.phase, sleep.name) == ("sleep", "upload", "nap")
    assert (sleep.started_at, sleep.ended_at, sleep.until) == (moment_of(10), moment_of(3010), moment_of(3010))
    assert sleep.lasts_at(moment_of(1010))
    assert sleep.length_at(moment_of(1010)) == 1
    assert not sleep.lasts_at(moment_of(9010))
    assert sleep.length_at(moment_of(9010)) == sleep.took == 3


def test_a_sleep_until_a_moment_that_has_passed_took_no_time():
    [sleep] = steps_of((Mark("sleep:#1", "10", 3000),))

    assert (sleep.started_at, sleep.ended_at, sleep.took) == (moment_of(3000), moment_of(3000), 0)


def test_a_wait_lasts_until_its_signal_or_its_timeout():
    waits = (
        Mark("wait:lasts", "5000", 10),
        Mark("wait:for ever", str(LAST_INSTANT), 20),
        Mark("wait:answered", '{"data":{"by":"card"},"began":1030}', 2030),
        Mark("wait:late", '{"is_late":true,"began":40}', 2040),
        Mark("wait:at once", '{"data":5}', 2050),
    )
    lasts, for_ever, answered, late, at_once = steps_of(waits)

    assert (lasts.ended_at, lasts.until, lasts.took) == (None, moment_of(5000), None)
    assert (for_ever.ended_at, for_ever.until) == (None, None)
    assert for_ever.length_at(moment_of(20) + timedelta(days=2)) == 2 * 86400
    assert (answered.result, answered.started_at, answered.took) == ({"by": "card"}, moment_of(1030), 1)
    assert (late.reason, late.started_at, late.took) == ("no signal came in time", moment_of(40), 2)
    assert (at_once.result, at_once.started_at, at_once.took) == (5, moment_of(2050), 0)


def test_a_gather_has_begun():
    [gather] = steps_of((Mark("gather:#1", '[["emails","a"]]', 10),))

    assert (gather.kind, gather.name, gather.started_at, gather.ended_at) == ("gather", "#1", moment_of(10), None)
    assert not gather.lasts_at(moment_of(20)), "its children say that"
    assert gather.length_at(moment_of(20)) is None
