"""Threads and barriers: what the threads of a block do to the same memory, with no barrier between.

`races.py` judges what threads do in one stretch between barriers. Here two stretches are compared: the one before a
barrier that is not always reached and the one after it, or the last of one iteration of a loop and the first of the
next. Two accesses of different threads to one cell, with a write among them, need a barrier in between:

    for k in range(4):
        S[tx] = A[k, tx]              thread 0 may write S[0] of k = 1 …
        T.tvm_storage_sync("shared")
        B[k, tx] = S[31 - tx]         … while thread 31 still reads it for k = 0: a second barrier is needed here

That a barrier is reached by all threads of a block or by none, `barriers.py` makes sure of.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from operator import gt, lt
from typing import Final

from loopwright.analysis.accesses import Access, Program, accesses_of, disturb
from loopwright.analysis.barriers import check_barriers
from loopwright.analysis.instances import Barrier, Loop, common_depth
from loopwright.analysis.polyhedral import Undecided
from loopwright.analysis.races import ParallelRace, check_loops
from loopwright.analysis.same_cell import same_indices, same_owner
from loopwright.analysis.thread_axes import axis_of, is_block_tag, is_thread_tag, is_virtual_tag, tag_of
from loopwright.analysis.time_order import before
from loopwright.analysis.witness import actor, assignment, deed, element, named_values, values_of
from loopwright.ir import AttrStmt, Buffer, For, Node, PrimFunc, Stmt, Var, pre_order_visit, structural_equal
from loopwright.runtime.errors import LoopwrightError

PAIRS: Final = 300  # of accesses to one buffer that isl is asked about


class ThreadRace(LoopwrightError, ValueError):
    """Two threads touch one element, one of them writes it, and no barrier stands between.

    The threads of a block run in any order between two barriers, so the result would depend on who is faster. Put
    `T.tvm_storage_sync("shared")` between the write and the read; in a loop also between the last read of one
    iteration and the first write of the next. Loops bound to threads have barriers around them without asking.

    For example:

        from loopwright.analysis import check_program
        from loopwright.script import tir as T

        @T.prim_func
        def reverse(A: T.Buffer(32), B: T.Buffer(32)):
            S = T.alloc_buffer(32, scope="shared")
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                S[tx] = A[tx]
                B[tx] = S[31 - tx]

        check_program(reverse)
    """

    code = "LW0834"

    def __init__(
        self,
        pair: tuple[Access, Access],
        indices: Sequence[int],
        values: tuple[Mapping[Var, int], Mapping[Var, int]],
    ) -> None:
        cell = element(pair[0].cell[0], indices)
        names = [thread_text(access, point) for access, point in zip(pair, values, strict=True)]

        def why() -> str:
            message = [
                f"{actor(access)} {deed(access)} it at {assignment(point, access.loops)}"
                for access, point in zip(pair, values, strict=True)
            ]
            return f"{message[0]}, and {message[1]}; no barrier stands between, so either may come first"

        super().__init__(
            lambda: f"thread {names[0]} and thread {names[1]} both touch {cell} between two barriers",
            at=pair[0].instance.statement,
            why=why,
            hint='put T.tvm_storage_sync("shared") between the write and the read, '
            "or give each thread elements of its own",
            fields={
                "buffer": pair[0].cell[0].name,
                "indices": tuple(indices),
                "threads": tuple(names),
                "iterations": tuple(
                    [named_values(point, access.loops) for access, point in zip(pair, values, strict=True)]
                ),
            },
        )


def thread_text(access: Access, values: Mapping[Var, int]) -> str:
    """`(ty=0, tx=3)`: the thread that makes an access."""
    result = [f"{loop.var.name}={values[loop.var]}" for loop in access.loops if is_thread_tag(loop.thread_tag)]
    return f"({', '.join(result)})" if result else "(any)"


def check_thread_races(function: PrimFunc) -> None:
    """Raise ThreadRace or BarrierNotReached when threads certainly disturb each other or wait for ever."""
    check_thread_races_in(accesses_of(function))


def check_thread_races_in(program: Program) -> None:
    """The same for a program already walked."""
    if not program.has_threads:
        return
    check_barriers(program)
    if program.regions.reason is not None:
        return
    try:
        check_loops(program, lambda loop: is_thread_tag(loop.thread_tag))
    except ParallelRace as race:
        raise ThreadRace(*race.meeting) from None
    check_loops(program, lambda loop: is_block_tag(loop.thread_tag))
    crossing = find_crossing(program, certain=True)
    if isinstance(crossing, ThreadRace):
        raise crossing


# --- between stretches ----------------------------------------------------------------------------------------------


class _Point:
    """Where an access or a barrier stands among the loops that all threads run together."""

    def __init__(self, loops: Sequence[Loop], positions: Sequence[int]) -> None:
        self.loops, self.positions = tuple(loops), tuple(positions)

    def time(self, names: Mapping[Var, str]) -> list[int | str]:
        vector: list[int | str] = []
        for position, loop in zip(self.positions, self.loops, strict=False):
            vector += [position, names[loop.var]]
        return [*vector, self.positions[-1]]


def find_crossing(program: Program, certain: bool) -> ThreadRace | str | None:
    """The first race of threads between two stretches; unless `certain`, also why it is not known whether there is one.

    What `races.py` finds within one stretch is left to it.
    """
    if certain not in program.crossings:
        program.crossings[certain] = _find_crossing(program, certain) if program.barriers else None
    result: ThreadRace | str | None = program.crossings[certain]
    return result


def _find_crossing(program: Program, certain: bool) -> ThreadRace | str | None:
    touched: dict[tuple[Stmt, Buffer], list[tuple[Access, _Point]]] = {}
    for access in [*program.accesses, *program.handoffs]:
        for depth, loop in enumerate(access.instance.loops):
            kernel = program.regions.kernels.get(loop.node) if isinstance(loop.node, Stmt) else None
            if kernel is not None:
                point = _Point(access.instance.loops[:depth], access.instance.positions[: depth + 1])
                touched.setdefault((kernel, access.cell[0]), []).append((access, point))
                break
    for (kernel, buffer), result in touched.items():
        if _is_private(program, buffer, result) or not any([access.writes for access, _ in result]):
            continue
        inside = _loop_variables(kernel)
        asked = 0
        for pair in _pairs(result):
            if _always_separated(program, pair[0][1], pair[1][1], inside):
                continue
            asked += 1
            if asked > PAIRS:
                return None if certain else f"{buffer.name} is touched in too many ways between barriers"
            if certain and not (pair[0][0].is_must and pair[1][0].is_must):
                continue
            try:
                race = _ask(program, pair, inside, certain)
            except Undecided:
                if certain:
                    continue
                return f"whether a barrier stands between two uses of {buffer.name} is too complex to decide"
            if race is not None:
                return race
    return None


def _pairs(
    result: Sequence[tuple[Access, _Point]],
) -> Iterator[tuple[tuple[Access, _Point], tuple[Access, _Point]]]:
    """Ordered pairs with a write among them: the first of a pair comes first in time."""
    for one in result:
        for other in result:
            if disturb(one[0], other[0], are_blocks=False):
                yield one, other


def _is_private(program: Program, buffer: Buffer, result: Sequence[tuple[Access, _Point]]) -> bool:
    loops = {loop for access, _ in result for loop in access.instance.loops if is_thread_tag(loop.thread_tag)}
    return all([program.is_own(buffer, loop) for loop in loops])


def _loop_variables(root: Stmt) -> set[Var]:
    result: set[Var] = set()

    def look(node: Node) -> None:
        if isinstance(node, For):
            result.add(node.loop_var)
        elif isinstance(node, AttrStmt) and tag_of(node):
            result.add(axis_of(node).var)

    pre_order_visit(root, look)
    return result


def _always_separated(program: Program, one: _Point, other: _Point, inside: set[Var]) -> bool:
    """A quick yes: a barrier without conditions stands between the two whenever the first comes first."""
    depth = common_depth(one, other)
    barriers = [barrier for barrier in program.barriers if barrier.exact and not barrier.guards]

    def beside(point: _Point, levels: int, is_right: Callable[[int, int], bool]) -> bool:
        """Whether a barrier stands in one of the loops around `point`, `levels` and deeper, on the right side of it."""
        for barrier in barriers:
            level = len(barrier.loops)
            if levels <= level <= len(point.loops) and barrier.loops == point.loops[:level]:
                if barrier.positions[:-1] == point.positions[:level]:
                    if is_right(barrier.positions[-1], point.positions[level]):
                        return True
        return False

    # In one iteration of the loops around both.
    a, b = one.positions[depth], other.positions[depth]
    between = any(
        [
            barrier.loops == one.loops[:depth]
            and barrier.positions[:-1] == one.positions[:depth]
            and a < barrier.positions[-1] < b
            for barrier in barriers
        ]
    )
    if a < b and not (between or beside(one, depth + 1, gt) or beside(other, depth + 1, lt)):
        return False
    # In a later iteration of each of these loops.
    for level in range(depth):
        if one.loops[level].var in inside and not (beside(one, level + 1, gt) or beside(other, level + 1, lt)):
            return False
    return True


def _ask(
    program: Program,
    pair: tuple[tuple[Access, _Point], tuple[Access, _Point]],
    inside: set[Var],
    certain: bool,
) -> ThreadRace | None:
    (one, here), (other, there) = pair
    polyhedra = program.polyhedra.begin()

    def named(loops: Sequence[Loop], letter: str) -> dict[Var, str]:
        own = [loop.var in inside or loop.product is not None for loop in loops]
        return {loop.var: f"{letter if own[k] else 'o'}{k}" for k, loop in enumerate(loops)}

    first, second = named(one.loops, "i"), named(other.loops, "j")
    constraints = polyhedra.domain(one.loops, one.guards, first) + polyhedra.domain(other.loops, other.guards, second)
    constraints += same_indices(program, one, first, other, second) + same_owner(program, one, first, other, second)
    other_thread = _other_thread(one, other, first, second)
    early = before(here.time(first), there.time(second))
    if other_thread is None or early is None:
        return None
    constraints += [other_thread, early]
    between = [_between(program, barrier, here, there, first, second, inside, certain) for barrier in program.barriers]
    dims = list(dict.fromkeys([*first.values(), *second.values()]))
    point = polyhedra.smallest(dims, constraints, [text for text in between if text is not None], certain=certain)
    if point is None:
        return None
    values = values_of(point, first, polyhedra), values_of(point, second, polyhedra)
    return ThreadRace((one, other), [index.at(values[0]) for index in one.cell[1] if index is not None], values)


def _other_thread(one: Access, other: Access, first: Mapping[Var, str], second: Mapping[Var, str]) -> str | None:
    """The condition that two threads are not the same; one that stands for others may be any."""
    mine = {_key(loop): first[loop.var] for loop in one.loops if is_thread_tag(loop.thread_tag)}
    its = {_key(loop): second[loop.var] for loop in other.loops if is_thread_tag(loop.thread_tag)}
    if set(mine) != set(its):
        return "0 = 0"
    cases = [f"{name} != {its[key]}" for key, name in mine.items()]
    return f"({' or '.join(cases)})" if cases else None


def _key(loop: Loop) -> str | Var:
    return loop.var if is_virtual_tag(loop.thread_tag) else loop.thread_tag


def _between(
    program: Program,
    barrier: Barrier,
    here: _Point,
    there: _Point,
    first: Mapping[Var, str],
    second: Mapping[Var, str],
    inside: set[Var],
    certain: bool,
) -> str | None:
    """The condition that the barrier is reached between the two."""
    if not barrier.exact and not certain:
        return None
    names = {loop.var: f"w{k}" if loop.var in inside else f"o{k}" for k, loop in enumerate(barrier.loops)}
    time = _Point(barrier.loops, barrier.positions).time(names)
    after, early = before(here.time(first), time), before(time, there.time(second))
    if after is None or early is None:
        return None
    own = [name for name in names.values() if name.startswith("w")]
    text = " and ".join([*program.polyhedra.domain(barrier.loops, barrier.guards, names), after, early])
    return f"exists ({', '.join(own)} : {text})" if own else text


def may_meet(
    program: Program,
    one: Access,
    other: Access,
    around: Sequence[Var] = (),
    carried: Container[Var] = (),
    certain: bool = False,
    just: Container[Var] = (),
) -> bool:
    """Whether two threads of one block may touch one cell by two accesses; where that is not known yes, or no if only
    what is `certain` counts.

    The loops `around`, outermost first, stand still, up to the first that is `carried`: of that one, `one` belongs to
    an earlier iteration than `other`, of loops in `just` to the one right before. All other loops run freely, but those
    over blocks.
    """
    threads = [loop for loop in one.loops if is_thread_tag(loop.thread_tag)]
    its = [loop.var for loop in other.loops if is_thread_tag(loop.thread_tag)]
    if threads and [loop.var for loop in threads] == its:
        if all([program.is_own(one.cell[0], loop) for loop in threads]):
            return False  # registers, of which a kernel has many: each thread has its own
    if one.cell[0].data in program.untold:
        return not certain
    is_alike = one.cell[0] is other.cell[0] or _same_shape(one.cell[0], other.cell[0])
    is_exact = is_alike and one.is_must and other.is_must and None not in (*one.cell[1], *other.cell[1])
    if certain and not is_exact:
        return False
    polyhedra = program.polyhedra.begin()

    def named(loops: Sequence[Loop], letter: str) -> dict[Var, str]:
        return {loop.var: f"o{k}" if is_block_tag(loop.thread_tag) else f"{letter}{k}" for k, loop in enumerate(loops)}

    first, second = named(one.loops, "i"), named(other.loops, "j")
    other_thread = _other_thread(one, other, first, second)
    if other_thread is None:
        return False
    constraints = [other_thread]
    for loop in one.loops:
        if loop.var in second and program.is_own(one.cell[0], loop):
            constraints.append(f"{first[loop.var]} = {second[loop.var]}")
    for var in around:
        if var in first and var in second:
            before = " + 1 =" if var in just else " <" if var in carried else " ="
            constraints.append(f"{first[var]}{before} {second[var]}")
        if var in carried:
            break
    dims = list(dict.fromkeys([*first.values(), *second.values()]))
    try:
        constraints += polyhedra.domain(one.loops, one.guards, first)
        constraints += polyhedra.domain(other.loops, other.guards, second)
        if is_alike:  # else two buffers lie in one memory, and any cells of theirs may be the same
            constraints += same_indices(program, one, first, other, second)
        return polyhedra.smallest(dims, constraints, certain=False) is not None
    except Undecided:
        return not certain


def _same_shape(one: Buffer, other: Buffer) -> bool:
    """Whether equal indices mean equal cells of two buffers in one memory, and other indices other cells."""
    mine = (one.dtype, *one.shape, *one.strides, one.elem_offset)
    its = (other.dtype, *other.shape, *other.strides, other.elem_offset)
    return len(mine) == len(its) and one.dtype == other.dtype and all(map(structural_equal, mine[1:], its[1:]))
