"""What a core does in a cycle: the listed chips, and the description of this machine that was measured."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from loopwright.autosched import Machine
from loopwright.target import Microarchitecture, Moves, describe
from loopwright.target.architectures import AARCH64, X86_64
from loopwright.target.microarchitecture import NONE_AHEAD, Caches, from_data, store, stored, stored_file
from loopwright.target.microarchitectures import MICROARCHITECTURES, UNKNOWN, ZEN_4

MEASURED = Microarchitecture(
    "chip", fma_ports=4, fma_bits=128, moves=Moves(packed=0.7), caches=Caches(64 << 10, 1 << 20, 0, 64), source="test"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))
    stored.cache_clear()
    yield tmp_path
    stored.cache_clear()


@pytest.mark.parametrize("name", sorted(MICROARCHITECTURES))
def test_every_listed_chip_is_one_of_llvms_and_says_where_its_numbers_come_from(name):
    assert name in X86_64.cpus or name in AARCH64.cpus
    core = MICROARCHITECTURES[name]
    assert core.source and core.caches is not None
    assert core.l2_bytes_per_cycle >= core.l3_bytes_per_cycle >= core.memory_bytes_per_cycle > 0
    triple = "x86_64-linux-gnu" if name in X86_64.cpus else "aarch64-linux-gnu"
    machine = Machine.of(f"llvm -mtriple={triple} -mcpu={name}")
    assert machine.cpu.microarchitecture is core
    assert machine.l1_bytes_per_cycle >= machine.l2_bytes_per_cycle
    # No port is wider than the vectors that the instruction set has.
    assert core.fma_per_cycle(machine.cpu.vector_bits) in (1, 2, 4)


@pytest.mark.parametrize(("bits", "each_cycle"), [(512, 1), (256, 2), (128, 2)])
def test_wide_vectors_take_a_narrow_port_twice(bits, each_cycle):
    assert ZEN_4.fma_per_cycle(bits) == each_cycle
    assert ZEN_4.l1_bytes_per_cycle(bits) == each_cycle * bits / 8


def test_a_named_chip_has_its_own_caches_wherever_it_is_compiled_for():
    assert describe("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4").cache_sizes == ZEN_4.caches
    assert describe("llvm -mtriple=aarch64-linux-gnu -mcpu=apple-m1").cache_sizes.line == 128


def test_a_chip_that_nobody_describes_is_priced_as_a_usual_one():
    assert describe("llvm -mtriple=aarch64-linux-gnu -mcpu=tsv110").microarchitecture is UNKNOWN


def test_what_was_measured_is_found_again_for_that_chip_alone(folder):
    assert stored("chip") is None
    assert store(MEASURED) == folder / "machine.json"
    assert stored("chip") == MEASURED
    assert stored("another") is None


@pytest.mark.parametrize(
    "change",
    [
        {"fma_ports": 0},
        {"fma_ports": "2"},
        {"fma_latency": True},
        {"lookahead": -2},
        {"lookahead": 1.5},
        {"l2_bytes_per_cycle": -1.0},
        {"caches": [1, 2, 3]},
        {"caches": "large"},
        {"moves": None},
        {"moves": {}},
        {"moves": {**asdict(Moves()), "packed": 0.0}},
        {"moves": {**asdict(Moves()), "more": 1.0}},
        {"name": 5},
        {"source": None},
        {"more": 1},
    ],
)
def test_a_damaged_description_is_no_description(change):
    data = json.loads(MEASURED.to_json())
    assert from_data(data) == MEASURED
    assert from_data({**data, **change}) is None
    assert from_data([data]) is None


def test_a_core_that_has_nothing_under_way_in_time_is_described():
    measured = replace(MEASURED, lookahead=NONE_AHEAD)
    assert from_data(json.loads(measured.to_json())) == measured


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "null", "\x00"])
def test_a_file_that_is_no_description_is_ignored(folder, text):
    file = stored_file()
    assert file is not None
    file.write_text(text)
    file.chmod(0o600)
    assert stored("chip") is None


def test_a_file_that_others_can_write_is_not_trusted(folder):
    file = store(MEASURED)
    assert file is not None
    file.chmod(0o666)
    stored.cache_clear()
    assert stored("chip") is None
