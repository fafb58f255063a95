"""Measuring this machine gives a description; how fast the machine is, no test may ask."""

from __future__ import annotations

import json

from loopwright.model import measure_machine as measuring
from loopwright.target import detect_host
from loopwright.target.microarchitecture import from_data


def test_the_description_is_whole(monkeypatch):
    monkeypatch.setattr(measuring, "_STEPS", 2000)
    monkeypatch.setattr(measuring, "_PATIENCE", 0.0)
    monkeypatch.setattr(measuring, "_FAR", 1)
    measured = measuring.measure_machine()
    assert measured.name == detect_host().cpu
    assert from_data(json.loads(measured.to_json())) == measured
