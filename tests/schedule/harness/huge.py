"""Random loop steps on loops that no memory could hold: what runs is looked at, not run.

    check_huge(seed)          raises unless each of some cells of the result is written by exactly one iteration

A program `B[i, …] = A[i, …]` over sizes around and beyond 2^31 is split, fused, reordered, and tiled, with guarded and
peeled tails. Its blocks' bindings are maps from loops to cells: isl says how many iterations write a cell.
Then the program is lowered, and no loop of it may count in a type that cannot hold its last value.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod

import islpy as isl

from loopwright import te, tir
from loopwright.analysis.accesses import accesses_of
from loopwright.arith.isl import BudgetExceeded, divisions_in, within_budget
from loopwright.ir import For, IntImm, PrimFunc, TooManyElements, pre_order_visit
from loopwright.schedule.errors import ScheduleError
from loopwright.transform import lower

SIZES = (3, 7, 1 << 15, 46341, 65536, 65537, (1 << 31) - 1, 1 << 31, (1 << 31) + 11, 1 << 33, 10**12 + 39)
FACTORS = (2, 3, 16, 64, 1000, 65536, 1 << 20, (1 << 31) - 1)
STEPS = 5
BUDGET = 50_000  # isl operations
CELLS = 4  # that are looked at, beside the first and the last


def huge_program(rng: random.Random) -> tuple[PrimFunc, tuple[int, ...]]:
    """A copy of a tensor of one to three dimensions."""
    while True:
        shape = tuple([rng.choice(SIZES) for _ in range(rng.choice((1, 2, 2, 3)))])
        if prod(shape) < 1 << 62:
            break
    A = te.placeholder(shape, "int8", name="A")
    return te.create_prim_func([A, te.compute(shape, lambda *i: A(*i), name="B")]), shape


def huge_schedule(rng: random.Random, func: PrimFunc) -> tir.Schedule:
    """Random loop steps; those that are refused are left out."""
    sch = tir.Schedule(func)
    for _ in range(STEPS):
        blocks = [block.name for block in sch.get_child_blocks("root")]
        loops = sch.get_loops(rng.choice(blocks))
        try:
            match rng.choice(("split", "split", "fuse", "fuse", "reorder", "unit")):
                case "split" if len(loops) < 7:
                    factors: list[int | None] = [None, *rng.choices(FACTORS, k=rng.choice((1, 1, 2)))]
                    rng.shuffle(factors)
                    sch.split(rng.choice(loops), factors, tail=rng.choice(("guard", "guard", "peel")))
                case "fuse" if len(loops) > 1:
                    at = rng.randrange(len(loops) - 1)
                    sch.fuse(*loops[at : at + rng.choice((2, 2, 3))])
                case "reorder" if len(loops) > 1:
                    sch.reorder(*rng.sample(loops, 2))
                case "unit":
                    sch.add_unit_loop(rng.choice(loops))
        except (ScheduleError, TooManyElements):
            continue
    return sch


def cells_of(rng: random.Random, shape: Sequence[int]) -> list[tuple[int, ...]]:
    """The first and the last cell, and some between them: beside 2^31 where there are that many."""
    drawn = [tuple([rng.choice(_places(rng, size)) for size in shape]) for _ in range(CELLS)]
    return [tuple([0] * len(shape)), tuple([size - 1 for size in shape]), *drawn]


def _places(rng: random.Random, size: int) -> list[int]:
    beside = [(1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 0, size - 1]
    return [place for place in beside if place < size] + [rng.randrange(size)]


def written_once(func: PrimFunc, cells: Sequence[Sequence[int]]) -> str | None:
    """What is wrong, if anything: a cell that no iteration writes, or that two of them do.

    Bindings that are not affine are not judged: a 64-bit index that only a guard keeps within an int32 axis.
    """
    program = accesses_of(func)
    times = dict.fromkeys(map(tuple, cells), 0)
    for realized in program.realized:
        if not realized.exact or any([value is None for value in realized.values]):
            return None
        variables = {loop.var: f"i{k}" for k, loop in enumerate(realized.loops)}
        values = [program.polyhedra.form(value, variables) for value in realized.values if value is not None]
        runs = program.polyhedra.domain(realized.loops, realized.guards, variables)
        for cell in times:
            found = _iterations(list(variables.values()), [*runs, *[f"{v} = {c}" for v, c in zip(values, cell)]])
            if found is None:
                return None
            times[cell] += found
    wrong = [f"B{list(cell)} is written {count} times" for cell, count in times.items() if count != 1]
    return wrong[0] if wrong else None


def _iterations(dims: Sequence[str], constraints: Sequence[str]) -> int | None:
    """How many iterations there are, where 2 says more than one; None where isl takes too long."""
    text = f"{{ [{', '.join(dims)}] : {' and '.join(constraints)} }}"

    def ask(ctx: isl.Context) -> int:
        runs = isl.Set.read_from_str(ctx, text)
        if runs.is_empty():
            return 0
        return 1 if runs.lexmin().is_equal(runs.lexmax()) else 2

    try:
        return within_budget(ask, BUDGET, divisions_in(text))
    except BudgetExceeded:
        return None


def check_huge(seed: int) -> None:
    """Raise unless the scheduled program writes every cell once, and its lowered loops can count that far."""
    rng = random.Random(seed)
    func, shape = huge_program(rng)
    sch = huge_schedule(rng, func)
    wrong = written_once(sch.mod["main"], cells_of(rng, shape))
    assert wrong is None, f"seed {seed}: {wrong}\n{sch.mod}"

    def look(node: object) -> None:
        if isinstance(node, For) and isinstance(node.extent, IntImm):
            assert 0 <= node.extent.value <= node.loop_var.dtype.highest, f"seed {seed}: {node.extent}"

    pre_order_visit(sch.mod["main"].body, look)
    pre_order_visit(lower(sch.mod, "llvm")["main"].body, look)
