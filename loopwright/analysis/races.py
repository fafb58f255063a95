"""check_races: the iterations of parallel and vectorized loops do not disturb each other.

Under a parallel loop no two iterations may touch one cell of memory from outside the loop when one of them writes it;
that both would write the same value, or that the updates form a reduction, is no excuse. A vectorized loop runs its
iterations in lockstep, each statement's loads before its stores: it is refused when that order differs from the serial
one for two iterations that touch one cell with a write among them.

A lemma settles the common case: in some dimension, the loop variable moves the index further than everything within
the loop does; or several dimensions do so with its digits (`f // 8` and `f % 8` of a fused loop). isl decides the
rest. Of parallel loops, refused is only what certainly conflicts: accesses whose index or condition depends on data (a
scatter) are not judged, so a parallel loop around them is the author's responsibility. Lanes of vectorized loops must
be proved to keep apart: code runs some of their statements as vectors and others lane by lane. Of loops bound to
threads, and of the barriers between them, `thread_races.py` speaks.

A buffer whose values do not leave their iteration is no reason to refuse a parallel loop: each iteration gets memory of
its own (`private_memory.py`). `privatised` writes that down.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import permutations
from typing import Final, NamedTuple

from loopwright.analysis.accesses import Access, Program, accesses_of, disturb
from loopwright.analysis.around_loop import around_loop
from loopwright.analysis.effects import called_name, reaches_outside
from loopwright.analysis.instances import Instance, Loop
from loopwright.analysis.polyhedral import Undecided
from loopwright.analysis.private_memory import with_private_memory
from loopwright.analysis.products import coefficient_of
from loopwright.analysis.same_cell import same_indices, same_owner
from loopwright.analysis.thread_axes import is_block_tag, is_of_block, is_thread_tag, takes_turns
from loopwright.analysis.time_order import before
from loopwright.analysis.vector_loops import runs_in_lockstep
from loopwright.analysis.witness import actor, assignment, deed, element, named_values, values_of
from loopwright.arith.affine import Form, Part, inequalities
from loopwright.ir import (
    Block,
    Buffer,
    BufferStore,
    Call,
    Expr,
    For,
    ForKind,
    IntImm,
    Node,
    PrimFunc,
    Var,
    deep,
    pre_order_visit,
)
from loopwright.runtime.description import UNPROVED
from loopwright.runtime.errors import LoopwrightError

PAIRS: Final = 500  # of accesses to one buffer that isl is asked about


class ParallelRace(LoopwrightError, ValueError):
    """Two iterations of a parallel or vectorized loop touch one element, and at least one of them writes it.

    The result would depend on which of them comes first. The message shows the two iterations and the element, for the
    smallest sizes. Run the loop serially, parallelise a loop that runs over the output, or give each iteration
    memory of its own and combine the parts afterwards.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def mirror(A: T.Buffer(8)):
            for i in T.parallel(8):
                A[i] = A[7 - i]

        loopwright.build(mirror)
    """

    code = "LW0823"

    def __init__(
        self,
        loop: Loop,
        pair: tuple[Access, Access],
        indices: Sequence[int],
        values: tuple[Mapping[Var, int], Mapping[Var, int]],
    ) -> None:
        name, kind = loop.var.name, _KIND_NAMES[loop.kind]
        self.loop = loop
        self.meeting = pair, indices, values
        first, second = values[0][loop.var], values[1][loop.var]
        cell = element(pair[0].cell[0], indices)

        def why() -> str:
            message = [
                f"{actor(access)} {deed(access)} it at {assignment(point, access.loops)}"
                for access, point in zip(pair, values, strict=True)
            ]
            order = "in lockstep, not one after the other" if kind == "vectorized" else "in any order"
            return f"{message[0]}, and {message[1]}; a {kind} loop runs them {order}"

        super().__init__(
            lambda: f"iterations {name} = {first} and {name} = {second} of the {kind} loop {name} both touch {cell}",
            at=loop.node,
            why=why,
            hint=f"make the loop {name} serial, or give each of its iterations elements of its own",
            fields={
                "loop": name,
                "kind": kind,
                "buffer": pair[0].cell[0].name,
                "indices": tuple(indices),
                "iterations": tuple(
                    [named_values(point, access.loops) for access, point in zip(pair, values, strict=True)]
                ),
                "accesses": tuple([deed(access) for access in pair]),
                "blocks": tuple([access.instance.block and access.instance.block.name_hint for access in pair]),
            },
        )


class LanesMayMeet(LoopwrightError, ValueError):
    """Whether the lanes of a vectorized loop disturb each other depends on data, or is too complex to decide.

    The lanes of a vectorized loop run in lockstep: each statement's loads come before its stores. That is what the
    generated code does only where lanes keep apart, and where they do so must be known when the program is built.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def shift(B: T.Buffer(8), S: T.Buffer(1)):
            if S[0] > T.float32(0):
                for i in T.vectorized(8):
                    B[(i + 1) % 8] = B[i] * T.float32(10)

        loopwright.build(shift)
    """

    code = "LW0825"

    def __init__(self, loop: Loop, reason: str) -> None:
        super().__init__(
            f"the lanes of the vectorized loop {loop.var.name} are not proved independent",
            at=loop.node,
            why=reason,
            hint=f"make the loop {loop.var.name} serial, or let each lane write elements of its own",
            fields={"loop": loop.var.name, "reason": reason},
        )


_KIND_NAMES: Final[dict[ForKind | None, str]] = {
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorized",
    ForKind.THREAD_BINDING: "bound",
    None: "launched",
}
_KINDS: Final = (ForKind.PARALLEL, ForKind.VECTORIZED)


def check_races(function: PrimFunc) -> None:
    """Raise ParallelRace when two iterations of a parallel or vectorized loop certainly conflict.

    LanesMayMeet when those of a vectorized loop may, unless the function says that it is not proved.
    """
    check_races_in(accesses_of(function))


def check_races_in(program: Program) -> None:
    """The same for a program already walked."""
    is_unproved = bool(program.function.attrs.get(UNPROVED, False))
    check_loops(program, lambda loop: loop.kind in _KINDS and (is_unproved or not _has_lanes(loop)))
    if not is_unproved:
        check_lanes(program)


def check_loops(program: Program, is_judged: Callable[[Loop], bool]) -> None:
    """The same for chosen loops."""
    try:
        _check_loops(program, is_judged)
    except ParallelRace as race:
        private = without_race(program.function, race)
        if private is None:
            raise
        check_loops(accesses_of(private), is_judged)


def without_race(function: PrimFunc, race: object) -> PrimFunc | None:
    """The function in which each iteration of a parallel loop has the memory that its iterations meet in; or None."""
    if not isinstance(race, ParallelRace) or race.loop.kind is not ForKind.PARALLEL:
        return None
    first, buffer = race.meeting[0][0], race.meeting[0][0].cell[0]
    if is_of_block(buffer.scope()) and any([is_thread_tag(loop.thread_tag) for loop in first.instance.loops]):
        return None  # what threads share is no iteration's own
    around = [loop for loop in first.instance.loops if loop.kind is ForKind.PARALLEL]
    depth = [loop.of for loop in around].index(race.loop.of)
    for loop in reversed(around[depth:]):  # innermost first: what is private to those inside is to this one as well
        private = with_private_memory(function, loop.of, buffer)
        if private is not None:
            return private
    return None


@deep
def privatised(function: PrimFunc) -> PrimFunc:
    """The function with memory for each iteration of a parallel loop, where iterations share a buffer by accident."""
    for var in _sharing_loops(function):
        while isinstance(race := prove_no_race(accesses_of(around_loop(function, var)), var), ParallelRace):
            private = without_race(function, race)
            if private is None:
                break
            function = private
    return function


def _sharing_loops(function: PrimFunc) -> list[Var]:
    """The parallel loops that write buffers of blocks outside of them, outermost first: a quick look."""
    allocated: set[Var] = set()
    result: dict[Var, None] = {}
    around: list[tuple[Var, set[Var]]] = []

    def look(node: Node) -> bool:
        if isinstance(node, Block):
            allocated.update([buffer.data for buffer in node.alloc_buffers])
        elif isinstance(node, For) and node.kind is ForKind.PARALLEL:
            around.append((node.loop_var, set(allocated)))
            pre_order_visit(node.body, look)
            around.pop()
            return False
        elif isinstance(node, BufferStore):
            result.update({var: None for var, outside in around if node.buffer.data in outside})
        return not isinstance(node, Expr)

    pre_order_visit(function.body, look)
    return list(result)


def _check_loops(program: Program, is_judged: Callable[[Loop], bool]) -> None:
    shared: dict[Loop, dict[Buffer, list[Access]]] = {}
    for access in [*program.accesses, *program.handoffs]:
        if not access.is_must:
            continue
        buffer = access.cell[0]
        for loop in access.instance.loops:
            if is_judged(loop) and not takes_turns(loop.node) and not program.is_own(buffer, loop):
                shared.setdefault(loop, {}).setdefault(buffer, []).append(access)
    for loop, buffers in shared.items():
        if loop.low is not None and loop.high is not None:
            for accesses in buffers.values():
                if any([access.writes for access in accesses]) and not _disjoint(program, loop, accesses):
                    _ask_pairs(program, loop, accesses)


def find_race_in(function: PrimFunc, var: Var) -> ParallelRace | str | None:
    """The same as `prove_no_race`, for a function in which memory may be made private to iterations."""
    result = prove_no_race(accesses_of(around_loop(function, var)), var)
    private = without_race(function, result)
    return result if private is None else find_race_in(private, var)


def _has_lanes(loop: Loop) -> bool:
    """Whether the iterations of the loop are lanes; a vectorized loop around another one runs serially."""
    return loop.kind is ForKind.VECTORIZED and isinstance(loop.node, For) and runs_in_lockstep(loop.node)


def check_lanes(program: Program) -> None:
    """Raise ParallelRace or LanesMayMeet unless the lanes of every vectorized loop are proved to keep apart.

    Code for a vectorized loop runs some statements as vectors and others lane by lane, which is the same only then.
    """
    touching = [*program.accesses, *program.pointers]
    loops = {loop for access in touching for loop in access.instance.loops}
    loops |= {loop for _, instance in program.outside for loop in instance.loops}
    lanes = {loop for loop in loops if _has_lanes(loop)}
    if not lanes:
        return
    within: dict[Loop, dict[Buffer, list[Access]]] = {}
    calls: dict[Loop, list[tuple[Call, Instance]]] = {}
    for access in touching:
        for loop in access.instance.loops:
            if loop in lanes and not program.is_own(access.cell[0], loop):
                within.setdefault(loop, {}).setdefault(access.cell[0], []).append(access)
    for call, instance in program.outside:
        for loop in instance.loops:
            if loop in lanes:
                calls.setdefault(loop, []).append((call, instance))
    for loop in {**within, **calls}:
        program.polyhedra.questions = 0
        result: ParallelRace | str | None = _calls_in_lanes(loop, calls.get(loop, ()))
        for buffer, accesses in within.get(loop, {}).items():
            if result is None and any([access.writes for access in accesses]):
                if buffer.data in program.opaque and not program.is_left_alone(buffer, loop):
                    result = f"{buffer.name} is touched by calls, or goes by several names"
                elif not _disjoint(program, loop, accesses):
                    result = _first_race(program, loop, accesses)
        if isinstance(result, str):
            raise LanesMayMeet(loop, result)
        if result is not None:
            raise result


def _calls_in_lanes(loop: Loop, calls: Sequence[tuple[Call, Instance]]) -> str | None:
    """Calls come in the order of lanes where they stand in one statement, right in the loop."""
    for call, instance in calls:
        if instance is not calls[0][1] or instance.loops[-1] is not loop:
            return f"{called_name(call)} may have effects, and lanes call it in another order than iterations would"
    return None


def _called_by_init(program: Program, var: Var) -> Call | None:
    """A call in the init of a reduction inside the loop: wherever that runs, its loops are of the same kind."""
    if not program.calls or not program.inits:
        return None
    result: list[Call] = []
    inside = False

    def look(node: Node) -> bool:
        nonlocal inside
        if isinstance(node, For) and node.loop_var is var:
            inside = not (isinstance(node.extent, IntImm) and node.extent.value <= 1)
            pre_order_visit(node.body, look)
            inside = False
            return False
        if inside and isinstance(node, Block) and node.init is not None:
            pre_order_visit(node.init, call)
        return not isinstance(node, Expr)

    def call(node: Node) -> None:
        if isinstance(node, Call) and reaches_outside(node):
            result.append(node)

    pre_order_visit(program.function.body, look)
    return result[0] if result else None


def prove_no_race(program: Program, var: Var) -> ParallelRace | str | None:
    """None when the iterations of the loop that counts with `var` are proved not to disturb each other.

    Else the race, or, where it depends on data or is too complex to decide, the reason why there is no proof.
    """
    if program.regions.reason is not None:
        return program.regions.reason
    if any([data not in program.homes for data in program.opaque]):
        return "a call may touch any memory"
    started = _called_by_init(program, var)
    if started is not None:
        return f"the init of a reduction calls {called_name(started)}, which may have effects, once for each iteration"
    var = program.regions.aliases.get(var, var)
    for call, instance in program.outside:
        if any([loop.of is var and not _runs_once(loop) for loop in instance.loops]):
            return f"its iterations call {called_name(call)}, which may have effects: their order would not be kept"
    # The loop of a thread is there once for each stretch between barriers.
    counters = _counters(program, var)
    shared: dict[tuple[Loop, Buffer], list[Access]] = {}
    for access in [*program.accesses, *program.pointers]:
        for loop in access.instance.loops:
            if loop.of in counters and not takes_turns(loop.node) and not program.is_own(access.cell[0], loop):
                shared.setdefault((loop, access.cell[0]), []).append(access)
    for (result, buffer), accesses in shared.items():
        if not any([access.writes for access in accesses]):
            continue
        # The lanes of a vector meet each other only: what the rest of the program does comes before or after them.
        is_vector = result.kind is ForKind.VECTORIZED and program.is_left_alone(buffer, result)
        if buffer.data in program.opaque and not is_vector:
            return f"{buffer.name} is touched by calls, or goes by several names"
        if _disjoint(program, result, accesses):
            continue
        race = _first_race(program, result, accesses)
        if race is not None:
            return race
    return None


def _counters(program: Program, var: Var) -> set[Var]:
    """The variables of a loop: its own, and those of the loops that mirror it in inits before it."""
    return {var, *[mine for mine, of in program.init_loops.items() if of is var]}


def _runs_once(loop: Loop) -> bool:
    """Whether the loop has at most one iteration, whatever the sizes."""
    if loop.low is None or loop.high is None:
        return False
    span = loop.high.plus(loop.low, -1)
    return not span.terms and span.const <= 0


def _first_race(program: Program, loop: Loop, accesses: Sequence[Access]) -> ParallelRace | str | None:
    for k, one in enumerate(accesses):
        for other in accesses[k:]:
            if not (one.writes or other.writes):
                continue
            try:
                values = _meeting(program, loop, one, other, certain=False)
            except Undecided:
                return f"whether the iterations of {loop.var.name} touch one cell is too complex to decide"
            if values is None:
                continue
            if one.is_must and other.is_must:
                return ParallelRace(loop, (one, other), _indices(one, values[0]), values)
            culprit = other if one.is_must else one
            return f"which cell of {one.cell[0].name} {actor(culprit)} {deed(culprit)}, or whether, depends on data"
    return None


def _indices(access: Access, values: Mapping[Var, int]) -> list[int]:
    return [index.at(values) for index in access.cell[1] if index is not None]


# --- the lemma ----------------------------------------------------------------------------------------------------


def _disjoint(program: Program, loop: Loop, accesses: Sequence[Access]) -> bool:
    """Whether the dimensions tell any two iterations of `loop` apart, whatever runs within it."""
    cells = _rejoined([access.loose for access in accesses])
    result = [_told_apart(program, loop, accesses, indices) for indices in zip(*cells, strict=True)]
    return _determine([term for term in result if term is not None], loop, 1)


Cell = tuple[Form | None, ...]


def _rejoined(cells: Sequence[Cell]) -> Sequence[Cell]:
    """The cells with `x // m` and `x % m`, where they are two dimensions of all, put together to x.

    Such cells are equal exactly where the others are: of loops fused over sizes that are not known, and split again.
    """
    for quotient, remainder in permutations(range(len(cells[0])), 2):
        pairs = [_divided(cell[quotient], cell[remainder]) for cell in cells]
        divided = [pair[0] for pair in pairs if pair is not None]
        if len(divided) == len(cells) and len({pair[1].key for pair in pairs if pair is not None}) == 1:
            kept = [k for k in range(len(cells[0])) if k not in (quotient, remainder)]
            return _rejoined([(x, *[cell[k] for k in kept]) for x, cell in zip(divided, cells, strict=True)])
    return cells


def _divided(quotient: Form | None, remainder: Form | None) -> tuple[Form, Form] | None:
    """x and m, where the forms are `x // m` and `x % m`."""
    one, other = _only_part(quotient), _only_part(remainder)
    if one is None or other is None or (one.op, other.op) != ("quotient", "remainder"):
        return None
    same = [arg.key for arg in one.args] == [arg.key for arg in other.args]
    return (one.args[0], one.args[1]) if same else None


def _only_part(form: Form | None) -> Part | None:
    """The part that a form is."""
    if form is None or form.const or len(form.terms) != 1:
        return None
    ((term, k),) = form.terms.items()
    return term if isinstance(term, Part) and k == 1 else None


class _Index(NamedTuple):
    """An index as `step * term + inside + around`, where `term` is the loop variable or a digit of it."""

    term: Var | Part
    step: Form
    inside: Form  # of the loops within
    around: Hashable  # of what stands still


def _told_apart(program: Program, loop: Loop, accesses: Sequence[Access], indices: Cell) -> Var | Part | None:
    """The term of the loop variable (itself, or a digit of it) that must be equal where the `indices` are equal."""
    chosen: _Index | None = None
    low = high = 0
    spans: list[tuple[Form, Access]] = []
    for access, index in zip(accesses, indices, strict=True):
        result = None if index is None else _index_of(index, loop, access)
        if result is None:
            return None
        if chosen is None:
            chosen = result
        elif chosen.term is not result.term or chosen.step.key != result.step.key or chosen.around != result.around:
            return None
        spans.append((result.inside, access))
    assert chosen is not None
    if chosen.step.terms:
        return chosen.term if _spans_less(program, loop, spans, chosen.step) else None
    for k, (span, access) in enumerate(spans):
        top, bottom = program.ranges.greatest(span, access.loops), program.ranges.greatest(span.negated(), access.loops)
        if top is None or bottom is None:
            return None
        low, high = (-bottom, top) if k == 0 else (min(low, -bottom), max(high, top))
    return chosen.term if high - low < abs(chosen.step.const) else None


def _index_of(index: Form, loop: Loop, access: Access) -> _Index | None:
    inner = {item.var for item in access.loops[access.loops.index(loop) + 1 :]}
    inside: dict[Var | Part, int] = {}
    outside: list[tuple[Var | Part, int]] = []
    parts = [(term, c) for term, c in index.terms.items() if isinstance(term, Part) and loop.var in term.variables]
    term: Var | Part = loop.var
    split = coefficient_of(index, loop.var)
    if split is None:
        # A digit of the loop variable, and nothing else of it.
        if len(parts) != 1 or loop.var in index.terms or len(parts[0][0].variables) > 1:
            return None
        term = parts[0][0]
        split = Form({}, parts[0][1]), Form({t: c for t, c in index.terms.items() if t is not term}, index.const)
    step, rest = split
    if not step.terms and not step.const:
        return None
    for other, c in rest.terms.items():
        if (other.variables if isinstance(other, Part) else {other}) & inner:
            inside[other] = c
        else:
            outside.append((other, c))
    return _Index(term, step, Form(inside, rest.const), frozenset(outside))


def _spans_less(program: Program, loop: Loop, spans: Sequence[tuple[Form, Access]], step: Form) -> bool:
    """Whether what is added within an iteration stays below one step, a size that is not known."""
    ranges = program.ranges
    at_least = ranges.greatest(step.negated(), ())
    if at_least is None or at_least > 0:
        return False
    tops = [_ends(program, loop, span, access) for span, access in spans]
    bottoms = [_ends(program, loop, span.negated(), access) for span, access in spans]

    def is_less(top: Form, bottom: Form) -> bool:
        result = ranges.greatest(top.plus(bottom).plus(step, -1), ())
        return result is not None and result < 0

    return all(any(is_less(top, bottom) for top in some for bottom in others) for some in tops for others in bottoms)


def _loosely(loop: Loop) -> Loop:
    return loop if loop.high is loop.loose_high else Loop(loop.var, loop.low, loop.loose_high, loop.node)


def _ends(program: Program, loop: Loop, span: Form, access: Access) -> list[Form]:
    """Forms of sizes that a span never passes: by the bounds of loops, or by one condition as well."""
    within = [_loosely(item) for item in access.loops[access.loops.index(loop) + 1 :]]
    result = []
    for fact in [Form({}, 0), *inequalities(access.guards)]:
        # fact ≥ 0, so span ≤ span + fact.
        end = program.ranges.top(span.plus(fact), within)
        if end is not None and end.variables().isdisjoint(program.affine.values):
            result.append(end)
    return result


def _determine(terms: Sequence[Var | Part], loop: Loop, divisor: int) -> bool:
    """Whether the values of `terms` fix floor(loop / divisor): it, or its last digit and the rest, are among them."""
    if divisor > 1 and loop.low is not None and loop.high is not None and not loop.low.terms and not loop.high.terms:
        if loop.low.const >= 0 and loop.high.const < divisor:
            return True
    for term in terms:
        if not isinstance(term, Part):
            if divisor == 1:
                return True
        elif term.op == "floor" and term.divisor == divisor and _divided_by(term.args[0], loop) == 1:
            return True
        elif term.op == "mod" and _divided_by(term.args[0], loop) == divisor:
            if _determine(terms, loop, divisor * term.divisor):
                return True
    return False


def _divided_by(form: Form, loop: Loop) -> int | None:
    """The divisor d when the form is floor(loop / d), 1 when it is the loop variable itself."""
    if form.const or len(form.terms) != 1:
        return None
    ((term, k),) = form.terms.items()
    if k != 1:
        return None
    if term is loop.var:
        return 1
    if isinstance(term, Part) and term.op == "floor" and _divided_by(term.args[0], loop) == 1:
        return term.divisor
    return None


# --- the exact test -----------------------------------------------------------------------------------------------


def _ask_pairs(program: Program, loop: Loop, accesses: Sequence[Access]) -> None:
    asked = 0
    for k, one in enumerate(accesses):
        for other in accesses[k:]:
            if not disturb(one, other, is_block_tag(loop.thread_tag)):
                continue
            asked += 1
            if asked > PAIRS:
                return
            try:
                values = _meeting(program, loop, one, other, certain=True)
            except Undecided:
                continue
            if values is not None:
                raise ParallelRace(loop, (one, other), _indices(one, values[0]), values)


def _begins_by_lane(access: Access, depth: int) -> bool:
    """Whether a loop within a vectorized one begins elsewhere in each lane.

    Lanes in lockstep are then at different values of its variable, and it does not tell the time.
    """
    within = access.loops[depth + 1 :]
    lanes = {item.var for item in access.loops[depth:]}
    return any([item.low is None or not lanes.isdisjoint(item.low.variables()) for item in within])


def _meeting(
    program: Program, loop: Loop, one: Access, other: Access, certain: bool
) -> tuple[dict[Var, int], dict[Var, int]] | None:
    """Two iterations of `loop` in which the accesses meet, as isl finds them; an unknown index may be anything."""
    polyhedra = program.polyhedra.begin()
    depth = one.loops.index(loop)
    # The loops around stand still: they have one name, everything from the loop on has two.
    first = {item.var: f"i{k}" for k, item in enumerate(one.loops)}
    second = {item.var: f"i{k}" if k < depth else f"j{k}" for k, item in enumerate(other.loops)}
    constraints = polyhedra.domain(one.loops, one.guards, first) + polyhedra.domain(other.loops, other.guards, second)
    constraints += same_indices(program, one, first, other, second) + same_owner(program, one, first, other, second)
    here, there = first[loop.var], second[loop.var]
    if loop.kind is ForKind.VECTORIZED and not any([_begins_by_lane(access, depth) for access in (one, other)]):
        inside = 2 * depth + 2  # of a vector of time: what is within one iteration
        a_time, b_time = one.time_in(first)[inside:], other.time_in(second)[inside:]
        # Lanes store in their order: what one statement stores at one time comes as it would serially.
        orders = [f"({here} < {there} and {late})" for late in [before(b_time, a_time)] if late]
        orders += [f"({here} > {there} and {late})" for late in [before(a_time, b_time)] if late]
        if not orders:
            return None
        constraints.append(f"({' or '.join(orders)})")
    else:
        constraints.append(f"{here} != {there}" if one is not other else f"{here} < {there}")
    dims = list(dict.fromkeys([*first.values(), *second.values()]))
    point = polyhedra.smallest(dims, constraints, certain=certain)
    if point is None:
        return None
    return values_of(point, first, polyhedra), values_of(point, second, polyhedra)
