"""Errors of calls that may have taken effect although they failed."""

from __future__ import annotations

import pytest

from ropeway.errors import NotConnected, StoreError, StoreFull, StoreRefused, StoreUnavailable
from ropeway.store.doubt import in_doubt, said, unknown


@pytest.mark.parametrize("kind", [NotConnected, StoreFull, StoreRefused, StoreUnavailable])
def test_whatever_comes_after_a_try_that_may_have_taken_effect_leaves_that_open(kind: type[StoreError]):
    with pytest.raises(StoreUnavailable) as raised, in_doubt():
        raise kind("there", "it went wrong")
    assert raised.type is StoreUnavailable
    assert str(raised.value) == "there: it went wrong; whether the call took effect is unknown"
    assert isinstance(raised.value.__cause__, kind)


def test_it_is_said_once():
    error = unknown("there", "it went wrong")
    with pytest.raises(StoreUnavailable) as raised, in_doubt():
        raise error
    assert raised.value is error
    assert said(error) == "it went wrong"


def test_without_a_doubt_an_error_stays_what_it_is():
    with pytest.raises(NotConnected), in_doubt(False):
        raise NotConnected("there", "nobody answers")
