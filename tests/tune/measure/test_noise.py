"""Load and drift: what is noticed, and what is said of it."""

from __future__ import annotations

from loopwright.tune.measure import noise
from loopwright.tune.measure.noise import Drift, Load, LoadMeter


def test_a_machine_that_slows_down_has_drifted():
    drift = Drift()
    for seconds in (1.1, 1.0, 1.05):
        drift.observe(seconds)
    assert not drift.has_drifted and drift.note() == ""
    drift.observe(1.6)
    drift.observe(1.5)
    assert not drift.has_drifted  # twice may be chance
    drift.observe(1.55)
    assert drift.has_drifted and drift.note() == "the machine is 1.55 times slower than before"
    drift.observe(1.0)
    assert not drift.has_drifted


def test_a_slower_machine_can_be_accepted():
    drift = Drift()
    for seconds in (1.0, 2.0, 2.0, 2.1):
        drift.observe(seconds)
    assert drift.has_drifted
    drift.accept()
    assert not drift.has_drifted and drift.best == 2.0


def test_load_is_told_where_it_matters():
    assert Load(0.01, 0.0, 5.0).note() == ""
    assert Load(0.4, 0.0, 2.5).note() == "waited 40% of the time for a CPU that others had (load 2.5)"
    assert Load(0.0, 0.2, 1.0).note().endswith("the hypervisor took 20%")


def test_a_meter_reads_shares():
    meter = LoadMeter()
    sum(range(100_000))
    load = meter.read()
    assert 0 <= load.waited <= 1 and 0 <= load.stolen <= 1 and load.average >= 0


def test_without_the_kernels_figures_the_thread_is_compared_with_the_clock(monkeypatch):
    monkeypatch.setattr(noise, "_waited_seconds", lambda: None)
    meter = LoadMeter()
    sum(range(100_000))
    assert 0 <= meter.read().waited <= 1
