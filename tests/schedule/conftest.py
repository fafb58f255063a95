"""Refusals in these tests are read very often: only tests of suggestions have some tried."""

from __future__ import annotations

import pytest

from loopwright.schedule.diagnose import suggestions


@pytest.fixture(autouse=True)
def without_suggestions(monkeypatch, request):
    """No time for tries, unless a test asks for the fixture `with_suggestions`."""
    if "with_suggestions" not in request.fixturenames:
        monkeypatch.setattr(suggestions, "TIME", -1.0)


@pytest.fixture
def with_suggestions(monkeypatch):
    """All the time in the world: what is found must not depend on how busy the machine is."""
    monkeypatch.setattr(suggestions, "TIME", 1e9)
    monkeypatch.setattr(suggestions, "HOPELESS", 1e9)
