"""Set-up shared by all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from unittest.mock import patch
from zlib import crc32

# The suite starts hundreds of Pythons: bytecode is kept, also where the environment says otherwise.
os.environ["PYTHONDONTWRITEBYTECODE"] = ""
# Before the first import of loopwright: nodes refuse to be written to while tests run.
os.environ["LOOPWRIGHT_FREEZE"] = "1"
# Every build really builds, also in the processes that tests start, and nothing is written to the cache of whoever runs
# the tests. Tests of the cache itself switch it on, in a folder of their own.
os.environ["LOOPWRIGHT_CACHE"] = "0"

import pytest
from hypothesis import HealthCheck, settings

sys.dont_write_bytecode = False

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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test that says `one_in(3)` every third variant runs, of one that is `long` none.

    All of them do in `make fuzz`, and when a test is named.
    """
    if "LOOPWRIGHT_LONG" in os.environ or any(["::" in argument for argument in config.args]):
        return
    variants: dict[tuple[object, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("one_in") is not None:
            variants.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    left = [item for item in items if item.get_closest_marker("long") is not None]
    for (_, name), members in variants.items():
        share = members[0].get_closest_marker("one_in").args[0]
        first = crc32(name.encode()) % min(share, len(members))  # tests of the same types choose different ones
        left += [item for position, item in enumerate(members) if position % share != first]
    dropped = set(left)
    items[:] = [item for item in items if item not in dropped]
    config.hook.pytest_deselected(items=left)


def pytest_collection_finish() -> None:
    gc.freeze()  # modules and tests stay


@pytest.fixture(autouse=True, scope="session")
def serial_compilation() -> Iterator[None]:
    """Beside another process of tests, models are compiled by one: the others would be forks of all that was loaded."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    with patch("loopwright.model.workers.usual_processes", lambda: 1):
        yield


@pytest.fixture
def no_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark collects garbage before it measures; to look through what all tests have left takes long."""
    monkeypatch.setattr(gc, "collect", lambda *_: 0)
