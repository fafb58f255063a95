"""Tiles are chosen by what they cost: candidates, ties, and what a stride of B does to the choice."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from loopwright.autosched import Machine
from loopwright.autosched.rules.contraction.tiles import Size, choose_tiles
from loopwright.autosched.tile_search import cheapest, divisors, register_tiles

MACHINES = [
    "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=2",
    "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -num-cores=2",
    "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -num-cores=2",
]


class _Sizes(NamedTuple):
    cycles: float
    register_tile: int


def test_of_two_that_cost_the_same_the_larger_register_tile_is_taken():
    assert cheapest([_Sizes(3.0, 9), _Sizes(2.0, 4), _Sizes(2.0, 6)]) == _Sizes(2.0, 6)
    with pytest.raises(ValueError, match="empty"):
        cheapest([])


@pytest.mark.parametrize("machine", MACHINES)
def test_register_tiles_leave_room_for_the_operands(machine):
    machine = Machine.of(machine)
    found = list(register_tiles(machine, 30, 6, 2))
    assert (1, 1) in found
    assert max(rows * vectors + vectors + 2 for rows, vectors in found) <= machine.registers


@pytest.mark.parametrize(("size", "parts"), [(1, [1]), (7, [1, 7]), (12, [1, 2, 3, 4, 6, 12])])
def test_divisors(size, parts):
    assert divisors(size) == parts


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("n", [512, 768, 1024])
def test_rows_half_a_page_apart_are_packed(machine, n):
    """No hardware prefetches along such a stride: read in place, B would come line by line."""
    assert choose_tiles(Size(49, n, 2048, 1, "float32", n), Machine.of(machine)).packs


@pytest.mark.parametrize("machine", MACHINES)
def test_one_row_of_tiles_reads_in_place_what_it_reads_once(machine):
    assert not choose_tiles(Size(1, 64, 64, 1, "float32", 64), Machine.of(machine)).packs
