"""Set-up shared by all tests."""

from __future__ import annotations

import gc
import os

# Before the first import of loopwright: nodes refuse to be written to while tests run.
os.environ["LOOPWRIGHT_FREEZE"] = "1"
# Every build really builds, also in the processes that tests start, and nothing is written to the cache of whoever runs
# the tests. Tests of the cache itself switch it on, in a folder of their own.
os.environ["LOOPWRIGHT_CACHE"] = "0"

import pytest
from hypothesis import HealthCheck, settings

# Deadlines measure the machine, not the code; under CI a failure must come back on the next run.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("local"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Programs are made of many small objects, few of them in cycles: looking for those took a tenth of the time.
gc.set_threshold(50_000)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Most tests are about what is computed, not about machine code, and LLVM would take half of their time to optimize
    # it. It does so for tests that say they are (`pytestmark = pytest.mark.optimized`), and for all in `make fuzz`.
    is_optimized = item.get_closest_marker("optimized") is not None or "LOOPWRIGHT_LONG" in os.environ
    os.environ["LOOPWRIGHT_OPT_LEVEL"] = "" if is_optimized else "0"


def pytest_collection_finish() -> None:
    gc.freeze()  # modules and tests stay


@pytest.fixture
def no_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark collects garbage before it measures; to look through what all tests have left takes long."""
    monkeypatch.setattr(gc, "collect", lambda *_: 0)
