"""For all tests: how Hypothesis searches, and asserts of the suite that explain themselves."""

import os

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("ropeway.testing")

# The same examples in every run: a failure is the change's fault. ROPEWAY_EXAMPLES=5000 looks for new ones.
_examples = int(os.environ.get("ROPEWAY_EXAMPLES", "0"))
settings.register_profile(
    "ropeway",
    max_examples=_examples or 100,
    derandomize=not _examples,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ropeway")
