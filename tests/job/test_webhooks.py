"""Deliveries of webhooks: jobs that report the end of another."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ropeway.errors import InvalidOption
from ropeway.job.extras import Extras, Origin, WebhookRule
from ropeway.job.follow_ups import follow_ups_of
from ropeway.job.names import LONGEST_ID
from ropeway.job.options import stored_options
from ropeway.job.record import JobRecord
from ropeway.job.states import FINAL
from ropeway.job.webhooks import DELIVERIES, DELIVERY_OPTIONS, check_webhook, delivery_id
from ropeway.testing.factories import NOW, QUEUE

DONE = JobRecord(QUEUE, "a", "send", "1", '{"attempts":3}', "completed", 5, 1, NOW, attempts_made=1, result="5")
RULE = WebhookRule("https://example.com/", FINAL)


def test_a_delivery_has_all_that_is_sent_and_is_not_reported_itself():
    [delivery] = follow_ups_of(DONE, Extras(webhook=RULE), NOW)

    origin = Origin(QUEUE, "a", "", 1, NOW, "completed", "5", priority=5)
    assert (delivery.queue, delivery.name, delivery.data, delivery.options) == (
        DELIVERIES,
        "send",
        "1",
        DELIVERY_OPTIONS,
    )
    assert delivery.extras == Extras(origin=origin, webhook=WebhookRule(RULE.url))
    assert [*follow_ups_of(replace(DONE, extras=delivery.extras), delivery.extras, NOW)] == []


def test_retries_span_about_a_day():
    options = stored_options(DELIVERY_OPTIONS)
    assert options.backoff is not None

    spans = [sum(options.backoff.after(n, luck) for n in range(1, options.attempts)) for luck in (0, 1)]

    assert 18 * 3_600_000 <= min(spans) <= max(spans) <= 24 * 3_600_000


def test_an_id_that_leaves_no_room_for_that_of_a_delivery_is_refused():
    room = LONGEST_ID - len(delivery_id(QUEUE, "", 10**14, "completed"))

    check_webhook(QUEUE, "x" * (room - 1))
    with pytest.raises(InvalidOption, match="too long for a job with a webhook, by 1 characters"):
        check_webhook(QUEUE, "x" * (room + 1))


def test_deliveries_have_no_webhook():
    with pytest.raises(InvalidOption, match="the queue of deliveries"):
        check_webhook(DELIVERIES, "a")
