"""The suite, on every store."""

from ropeway.testing.conformance import *  # noqa: F403 - pytest collects what the suite exports
