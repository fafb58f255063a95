"""`with database:` makes it the current one, for this thread."""

from __future__ import annotations

import threading

import pytest

from loopwright.tune.database import MemoryDatabase, current_database
from tests.tune.database.samples import record


def test_the_innermost_is_current():
    first, second = MemoryDatabase(), MemoryDatabase()
    assert current_database() is None
    with first as entered:
        assert entered is first is current_database()
        with second:
            assert current_database() is second
            with first:
                assert current_database() is first
            assert current_database() is second
        assert current_database() is first
    assert current_database() is None
    first.add(record())  # it is still open


def test_an_error_ends_it():
    with pytest.raises(ZeroDivisionError), MemoryDatabase():
        _ = 1 / 0
    assert current_database() is None


def test_threads_have_their_own():
    seen = []
    with MemoryDatabase():
        thread = threading.Thread(target=lambda: seen.append(current_database()))
        thread.start()
        thread.join()
    assert seen == [None]
