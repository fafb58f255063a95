"""Changed parts: what a step cannot have meddled with is left out, and every difference is found all the same."""

from __future__ import annotations

import random

import pytest

from loopwright import te
from loopwright.ir import PrimFunc, SeqStmt, Stmt, seq
from loopwright.schedule import Schedule
from loopwright.schedule.proof.changed_parts import changed_parts
from loopwright.schedule.proof.find_mismatch import find_mismatch
from loopwright.schedule.proof.lemmas import top_level, with_top_level


def chain(links: int) -> PrimFunc:
    """Each link doubles what the one before it gives."""
    tensors = [te.placeholder((8,), name="X")]

    def link(before: te.Tensor, number: int) -> te.Tensor:
        return te.compute((8,), lambda i: before[i] * 2.0, name=f"T{number}")

    for number in range(links):
        tensors.append(link(tensors[-1], number))
    return te.create_prim_func([tensors[0], tensors[-1]])


def kept(before: PrimFunc, after: PrimFunc) -> tuple[int, int]:
    old, new = changed_parts(before, after)
    return len(top_level(old)), len(top_level(new))


def test_only_neighbours_of_a_changed_nest_stay():
    sch = Schedule(chain(20))
    before = sch.mod["main"]
    sch.split(sch.get_loops("T9")[0], [2, 4])
    assert kept(before, sch.mod["main"]) == (3, 3)  # who writes what it reads, itself, and who reads what it writes
    split = sch.mod["main"]
    sch.compute_inline("T9")
    assert kept(split, sch.mod["main"]) == (4, 3)  # the reader is another now, and has a reader


def test_small_functions_stay_whole():
    before = chain(3)
    sch = Schedule(before)
    sch.split(sch.get_loops("T1")[0], [2, 4])
    old, new = changed_parts(sch.mod["main"], sch.mod["main"])
    assert len(top_level(old)) == len(top_level(new)) == 1  # nothing changed: nothing is left to compare
    after = sch.mod["main"]
    assert changed_parts(before, after) == (before, after)


def test_the_same_nest_elsewhere_is_a_change():
    function = chain(12)
    parts = list(top_level(function))
    parts[4], parts[5] = parts[5], parts[4]
    moved = with_top_level(function, seq(parts))
    assert find_mismatch(function, moved) is not None


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
def test_the_verdict_is_that_of_the_whole_comparison(seed: int):
    """Nests of a program with many independent chains, moved about."""
    rng = random.Random(seed)
    function = tangle(rng)
    parts: list[Stmt] = list(top_level(function))
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(parts) - 1)
        parts[place], parts[place + 1] = parts[place + 1], parts[place]
    moved = with_top_level(function, seq(parts))
    whole, short = find_mismatch(function, moved, by_lemmas=False), find_mismatch(function, moved)
    assert type(whole) is type(short)


def tangle(rng: random.Random) -> PrimFunc:
    tensors = [te.placeholder((4,), name=f"X{k}") for k in range(3)]

    def sum_of(one: te.Tensor, other: te.Tensor, number: int) -> te.Tensor:
        return te.compute((4,), lambda i: one[i] + other[i], name=f"T{number}")

    inputs = list(tensors)
    for number in range(14):
        tensors.append(sum_of(rng.choice(tensors), rng.choice(tensors[-4:]), number))
    return te.create_prim_func([*inputs, *tensors[-3:]])


def test_functions_of_one_statement():
    function = chain(1)
    assert not isinstance(top_level(function), SeqStmt) and changed_parts(function, function)[0] is not None
    assert find_mismatch(function, function) is None
