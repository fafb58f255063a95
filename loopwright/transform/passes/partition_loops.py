"""partition_loops: cut a loop where its guard changes, so that the hot part carries no branch.

    for i in range(11):         →    for i in range(10):
        if i < 10:                       B[i] = A[i]
            B[i] = A[i]

    for i in range(3):                      →    for i in range(2):
        for j in T.vectorized(4):                    for j in T.vectorized(4):
            if i * 4 + j < 10:                           B[i * 4 + j] = 0
                B[i * 4 + j] = 0                 for j in T.vectorized(2):
                                                     B[8 + j] = 0

A parallel loop is not cut, for each part would start and end all threads: its body branches once an iteration instead.
A vectorized loop has a constant length. Where its guard ends is known only when the program runs, it becomes a serial
loop over vectors of the machine's own length, then of 128 bits, and what is left runs one iteration after the other:

    for j in T.vectorized(16):        →    for j_vector in range(min(n, 16) // 4):
        if j < n:                              for j in T.vectorized(4):
            B[j] = A[j]                            B[j_vector * 4 + j] = A[j_vector * 4 + j]
                                           for j in range(min(n, 16) % 4):
                                               B[min(n, 16) // 4 * 4 + j] = A[min(n, 16) // 4 * 4 + j]

Copies cost code: nested cuts stop at a limit, and what is left keeps its guard. Where a loop would be cut at too many
points, as under a stencil of 5 × 5 with a border, it is cut around the longest stretch in which nothing is asked.
Needs: loops from 0, no blocks.  Leaves: no guard that a loop's bounds decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from loopwright.analysis.thread_work import has_barrier
from loopwright.arith import Analyzer
from loopwright.ir import (
    BufferLoad,
    BufferStore,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    Max,
    Min,
    Node,
    PrimFunc,
    Range,
    Stmt,
    Var,
    any_node,
    collect,
    const,
    deep,
    is_no_op,
    logical_and,
    logical_not,
    no_op,
    post_order_visit,
    seq,
    uses_var,
    variables_in,
)
from loopwright.ir.annotations import WRITTEN_OUT_FIRST
from loopwright.ir.pass_config import LoopPartitionConfig
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import function_pass
from loopwright.target import CpuDescription
from loopwright.transform.parts.clone_definitions import clone_definitions
from loopwright.transform.parts.cpu_of import cpu_of
from loopwright.transform.parts.decide_conditions import decide_conditions
from loopwright.transform.parts.flat_index import add_index
from loopwright.transform.parts.folding import substitute_folding
from loopwright.transform.parts.guards import Conditions, Guard, find_guards, reaches
from loopwright.transform.parts.inner_partition_points import decided_cheaply_inside, decided_inside
from loopwright.transform.parts.purity import has_data
from loopwright.transform.parts.size_facts import size_facts
from loopwright.transform.parts.specialize_tail_tiles import specialize_tail_tiles
from loopwright.transform.parts.statements import StmtRewriter
from loopwright.transform.passes.vectorize_loops import lanes_are_independent

MAX_COPIES: Final = 9  # of one statement, over all loops around it: both borders and the middle of two loops
MAX_SMALL_COPIES: Final = 36  # of a statement that is next to nothing: the edge of a tile, under all loops around it
MAX_VECTOR_COPIES: Final = 27  # of a vector, where the choice is between one stretch of vectors and none
SMALL_NODES: Final = 150
MAX_POINTS: Final = 4  # at which one loop is cut
MAX_NODES: Final = 5_000  # of a body that is copied
MAX_CHOICES: Final = 500  # points at which a loop is cut whose parts each do a small share of its body
MAX_CHOSEN_NODES: Final = 30_000  # of all these parts
_AROUND: Final = 3  # parts of a loop that is cut around one stretch
SOME_SIZE: Final = 10_007
HINT: Final = "pragma_loop_partition_hint"  # a loop to be cut, also one of constant length


class _PartitionLoops(StmtRewriter):
    def __init__(self, facts: Analyzer, cpu: CpuDescription) -> None:
        self.facts, self.cpu = facts, cpu
        self.conditions = Conditions()
        context = PassContext.current()
        settings: LoopPartitionConfig = context.setting("tir.LoopPartition")
        self.keep_unit_loops = settings.no_unroll_loop_with_extent_one
        self.unroll_hinted = settings.unroll_loop_with_partition_hint_no_interval
        # Loops of constant length are cut as well, unless the user says otherwise.
        self.cut_constant = "tir.LoopPartition" not in context.config or settings.partition_const_loop
        self.copies = 1  # of the statement at hand that exist by now
        self.lanes: set[Var] = set()  # variables whose value differs between the lanes of a vectorized loop

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        if self.lanes and uses_var(let.value, self.lanes.__contains__):
            self.lanes.add(let.var)
        with self.facts.bound(let.var, let.value, inline=False):
            return let.with_(body=self.visit(let.body))

    def visit_For(self, loop: For) -> Stmt:
        if HINT in loop.annotations:
            return self._hinted(loop)
        is_kept = not self.cut_constant and isinstance(loop.extent, IntImm)
        return self._inside(loop) if is_kept else self._partitioned(loop)

    def _hinted(self, loop: For) -> Stmt:
        """The loop cut because the user says so; unrolled, if that is set, where there is nothing to cut."""
        loop = loop.with_(annotations={key: value for key, value in loop.annotations.items() if key != HINT})
        result = self._partitioned(loop)
        is_whole = isinstance(result, For) and result.loop_var is loop.loop_var and result.extent is loop.extent
        if is_whole and isinstance(loop.extent, IntImm) and self.unroll_hinted:
            assert isinstance(result, For)
            return result.with_(kind=ForKind.UNROLLED)
        return result

    def _partitioned(self, loop: For) -> Stmt:
        if not self.conditions.are_in(loop.body):
            return self._inside(loop) if self.unroll_hinted else loop
        if has_data(loop.extent) or loop.kind is ForKind.THREAD_BINDING:
            return self._inside(loop)  # read once: what its first part does may change it; threads run all together
        if WRITTEN_OUT_FIRST in loop.annotations and loop.kind is ForKind.UNROLLED and isinstance(loop.extent, IntImm):
            steps = [const(step, loop.loop_var.dtype) for step in range(loop.extent.value + 1)]
            return seq([self._part(loop, *pair, renew=number > 0) for number, pair in enumerate(pairwise(steps))])
        answer = find_guards(loop, self.facts, self.conditions)
        points, guards = self._points(loop, answer)
        parts = self._affordable(loop, points, guards)
        if len(parts) > 1 and has_barrier(loop.body):
            return self._inside(loop)  # its threads wait for each other in one loop, at whichever point each is cut
        if len(parts) == 1:
            return self._inside(loop.with_(body=parts[0].body))
        is_shared_out = len(parts) > MAX_POINTS + 1  # what was one body is in many parts, each a share of it
        is_one_copy = is_shared_out or _is_row_of_vectors(loop)
        outer, self.copies = self.copies, self.copies * (1 if is_one_copy else max(1, _copies(parts)))
        result = self._branches(loop, parts) if loop.kind is ForKind.PARALLEL else self._cut(loop, parts)
        self.copies = outer
        return result

    def _affordable(self, loop: For, points: Sequence[Expr], guards: Sequence[Guard]) -> list[_Part]:
        """The loop in parts, at all points; or around its longest stretch where these are too many; or whole."""
        zero = const(0, loop.loop_var.dtype)
        choices = self._choices(loop, points, guards)
        if choices:
            return choices
        longest = _longest_stretch(points, loop)
        few = list(points[:MAX_POINTS]) if len(points) <= MAX_POINTS or not longest else longest
        parts = _parts([zero, *few, loop.extent], loop.body, guards)
        copies = _copies(parts)
        if len(parts) == 1 or copies <= 1 or _is_row_of_vectors(loop):
            return parts
        nodes = _count(loop.body)
        if nodes <= MAX_NODES:
            if self.copies * copies <= self._most_copies(loop, nodes, copies, bool(longest)):
                return parts
            most = MAX_VECTOR_COPIES if loop.kind is ForKind.VECTORIZED else MAX_COPIES
            parts = _parts([zero, *longest, loop.extent], loop.body, guards)
            if longest and self.copies * _copies(parts) <= most:
                return parts
        return _parts([zero, loop.extent], loop.body, guards)

    def _choices(self, loop: For, points: Sequence[Expr], guards: Sequence[Guard]) -> list[_Part]:
        """The loop at all of its many points, if the parts load little more in all than its body does; else none.

        A concatenation is a long chain of conditions, of which one holds in each part. The taps of a stencil are not.
        """
        is_known = isinstance(loop.extent, IntImm) and all(isinstance(point, IntImm) for point in points)
        if not MAX_POINTS < len(points) <= MAX_CHOICES or self.copies > MAX_SMALL_COPIES or not is_known:
            return []
        loads, nodes = 2 * len(collect(loop.body, BufferLoad)), MAX_CHOSEN_NODES
        parts: list[_Part] = []
        for low, high in pairwise([const(0, loop.loop_var.dtype), *points, loop.extent]):
            parts += _parts([low, high], loop.body, guards)
            loads -= len(collect(parts[-1].body, BufferLoad))
            nodes -= _count(parts[-1].body)
            if loads < 0 or nodes < 0:
                return []
        return parts

    def _most_copies(self, loop: For, nodes: int, copies: int, can_be_fewer: bool) -> int:
        """How many copies of a body there may be; a loop that can do with fewer leaves room for those inside it."""
        if nodes < SMALL_NODES:
            return MAX_SMALL_COPIES
        is_greedy = can_be_fewer and copies > _AROUND and self.copies * copies * _AROUND > MAX_COPIES
        return _AROUND * self.copies if is_greedy and self._cuts_inside(loop) else MAX_COPIES

    def _cuts_inside(self, loop: For) -> bool:
        """Whether a loop inside has guards of its own, known to be somewhere in the middle of it."""

        def is_cut(node: Node) -> bool:
            if not isinstance(node, For) or not isinstance(node.extent, IntImm) or node.extent.value <= MAX_POINTS:
                return False
            return bool(find_guards(node, self.facts, self.conditions))

        return any_node(loop.body, is_cut)

    def _inside(self, loop: For) -> Stmt:
        """The loop with the loops in its body partitioned."""
        if is_no_op(loop.body):
            return no_op()
        if loop.kind is ForKind.VECTORIZED:
            self.lanes.add(loop.loop_var)
        with self.facts.bound(loop.loop_var, Range.from_min_extent(loop.min, loop.extent)):
            return loop.with_(body=self._body(loop.body))

    def _body(self, body: Stmt) -> Stmt:
        """What one iteration does, with its loops partitioned."""
        if self.cut_constant:
            body = specialize_tail_tiles(body, self.facts, self.conditions)
        result: Stmt = self.visit(body)
        return result

    def _points(self, loop: For, result: Sequence[Guard]) -> tuple[list[Expr], list[Guard]]:
        """Where to cut (literal points in order and inside the loop), and the guards with equal points made one."""
        facts, zero = self.facts, const(0, loop.loop_var.dtype)
        known: list[Expr] = []
        chosen: list[Expr] = []
        upper: set[Expr] = set()

        def one(point: Expr | None) -> Expr | None:
            if point is None or isinstance(point, IntImm):
                return point
            for other in known:
                if facts.can_prove_equal(point, other):
                    return other
            known.append(point)
            return point

        guards = [
            guard._replace(
                low=one(guard.low),
                high=one(guard.high),
                fails_below=one(guard.fails_below),
                fails_from=one(guard.fails_from),
            )
            for guard in result
        ]
        symbolic = [guard.node for guard in guards if _is_symbolic(guard.low) or _is_symbolic(guard.high)]
        inside = decided_inside(loop, symbolic) if symbolic else set()
        values = [guard.node for guard in guards if not guard.is_statement and guard.is_inside]
        inside |= decided_cheaply_inside(loop, values) if values else set()
        for guard in guards:
            if loop.kind is ForKind.PARALLEL and not guard.is_inside:
                continue  # it is asked once an iteration already
            if guard.node in inside:
                continue
            points = [guard.low, guard.high]
            if guard.is_statement:
                # Iterations that do nothing at all: worth a cut where the one between is then alone, and constant.
                points += [point for point in (guard.fails_below, guard.fails_from) if isinstance(point, IntImm)]
            for point in points:
                if point is None or any(reaches(point, other) and reaches(other, point) for other in chosen):
                    continue
                if self.lanes and uses_var(point, self.lanes.__contains__):
                    continue  # lanes go through a loop in lockstep: all of them, one iteration after the other
                if facts.can_prove(point <= zero) or facts.can_prove(point >= loop.extent):
                    continue
                if not isinstance(point, IntImm) and loop.kind is ForKind.VECTORIZED and not guard.is_statement:
                    continue  # a vector can choose between values itself
                chosen.append(point)
                if point is guard.high:
                    upper.add(point)
        if all(isinstance(point, IntImm) for point in chosen):
            chosen.sort(key=int)  # type: ignore[arg-type]
        else:
            # There is no knowing their order, and a part that is empty does no harm: lower ends first is a good guess,
            # and then the order that they have for some sizes.
            chosen.sort(key=lambda point: (point in upper, _for_some_sizes(point)))
        return chosen, guards

    def _cut(self, loop: For, parts: Sequence[_Part]) -> Stmt:
        """One loop a part."""
        result: list[Stmt] = []
        extent = parts[-1].high
        start = parts[0].low
        for part in parts:
            end = extent if part is parts[-1] else self._clamped(part.high, start, extent)
            if not is_no_op(part.body):
                cut = loop.with_(body=part.body)
                is_vector = loop.kind is ForKind.VECTORIZED
                if is_vector and not isinstance(self.facts.simplify(end - start), IntImm):
                    widths = _widths(loop, self.cpu) if lanes_are_independent(loop.body) else []
                    result.append(self._vectors(cut, start, end, widths, renew=bool(result)))
                else:
                    result.append(self._part(cut, start, end, renew=bool(result)))
            start = end
        return seq(result)

    def _vectors(self, loop: For, start: Expr, end: Expr, widths: Sequence[int], renew: bool) -> Stmt:
        """Iterations start to end, how many is known when the program runs: vectors, as many as fit, then the rest."""
        count, old = self.facts.simplify(end - start), loop.loop_var
        fitting = [width for width in widths if not self.facts.can_prove(count < const(width, old.dtype))]
        if not fitting or self.copies > MAX_COPIES:
            return self._part(loop.with_(kind=ForKind.SERIAL), start, end, renew)
        width = const(fitting[0], old.dtype)
        chunk = Var(f"{old.name}_vector", old.dtype)
        body = clone_definitions(loop.body) if renew else loop.body
        var = Var(old.name, old.dtype) if renew else old
        index = add_index(chunk * width + var, start)
        vector = loop.with_(loop_var=var, extent=width, body=substitute_folding(body, {old: index}))
        whole = self.facts.simplify(count // width)
        main = For(chunk, const(0, old.dtype), whole, ForKind.SERIAL, vector)
        after = self.facts.simplify(start + whole * width)
        return seq([self._inside(main), self._vectors(loop, after, end, fitting[1:], renew=True)])

    def _clamped(self, point: Expr, start: Expr, extent: Expr) -> Expr:
        """`point`, but not before `start` and not after the end of the loop."""
        return self.facts.simplify(Min(Max(point, start), extent))

    def _part(self, loop: For, start: Expr, end: Expr, renew: bool) -> Stmt:
        """Iterations start to end of the loop, counted from 0."""
        body = clone_definitions(loop.body) if renew else loop.body
        count = self.facts.simplify(end - start)
        old = loop.loop_var
        if isinstance(count, IntImm) and count.value <= 0:
            return no_op()
        if isinstance(count, IntImm) and count.value == 1 and not self.keep_unit_loops:
            return self._body(substitute_folding(body, {old: start}))
        var = Var(old.name, old.dtype) if renew else old
        index = add_index(var, start)
        if index is not old:
            body = substitute_folding(body, {old: index})
        return self._inside(loop.with_(loop_var=var, extent=count, body=body))

    def _branches(self, loop: For, parts: Sequence[_Part]) -> Stmt:
        """One loop whose body asks which part it is in."""
        var = loop.loop_var
        choices: list[tuple[Expr, Stmt]] = []
        with self.facts.bound(var, Range.from_min_extent(loop.min, loop.extent)):
            for low, high, body in parts:
                if choices:
                    body = clone_definitions(body)
                if isinstance(low, IntImm) and isinstance(high, IntImm) and high.value == low.value + 1:
                    body = substitute_folding(body, {var: low})
                with self.facts.constraint_scope(logical_and(var >= low, var < high)):
                    choices.append((high, self._body(body)))
        chain: Stmt = choices[-1][1]
        for high, body in reversed(choices[:-1]):
            chain = _choose(var < high, body, chain)
        return no_op() if is_no_op(chain) else loop.with_(body=chain)


def _widths(loop: For, cpu: CpuDescription) -> list[int]:
    """How many lanes vectors have when fewer are wanted than `loop` has: the machine's own, then 128 bits of them."""
    widest = max([8, *[access.buffer.dtype.bits for access in collect(loop.body, BufferLoad, BufferStore)]])
    lanes = {cpu.native_vector_lanes(f"int{min(widest, 64)}"), 128 // min(widest, 64)}
    extent = int(loop.extent)  # type: ignore[call-overload]
    return sorted([width for width in lanes if 1 < width <= extent], reverse=True)


class _Part(NamedTuple):
    """Iterations low <= i < high of a loop, and its body where its guards are decided for them."""

    low: Expr
    high: Expr
    body: Stmt


def _is_row_of_vectors(loop: For) -> bool:
    """Whether a loop does vectors that will be written out one after the other: to cut it makes no more of them."""
    is_unrolled = loop.kind is ForKind.UNROLLED and isinstance(loop.extent, IntImm)
    return is_unrolled and isinstance(loop.body, For) and loop.body.kind is ForKind.VECTORIZED


def _copies(parts: Sequence[_Part]) -> int:
    """How many of the parts do anything."""
    return sum(not is_no_op(part.body) for part in parts)


def _longest_stretch(points: Sequence[Expr], loop: For) -> list[Expr]:
    """The ends of the longest stretch between points that lie inside the loop; none where they are not all known."""
    if not points or not isinstance(loop.extent, IntImm) or not all(isinstance(point, IntImm) for point in points):
        return []
    bounds = [const(0, loop.loop_var.dtype), *points, loop.extent]
    low, high = max(pairwise(bounds), key=lambda ends: int(ends[1]) - int(ends[0]))  # type: ignore[call-overload]
    return [end for end in (low, high) if end is not bounds[0] and end is not bounds[-1]]


def _parts(bounds: Sequence[Expr], body: Stmt, guards: Sequence[Guard]) -> list[_Part]:
    return [_Part(low, high, decide_conditions(body, _truths(guards, low, high))) for low, high in pairwise(bounds)]


def _choose(condition: Expr, chosen: Stmt, other: Stmt) -> Stmt:
    if is_no_op(other):
        return no_op() if is_no_op(chosen) else IfThenElse(condition, chosen)
    return IfThenElse(logical_not(condition), other) if is_no_op(chosen) else IfThenElse(condition, chosen, other)


def _truths(guards: Sequence[Guard], start: Expr, end: Expr) -> dict[Expr, bool]:
    """The comparisons that are decided in iterations start to end."""
    truths: dict[Expr, bool] = {}
    for guard in guards:
        truth = guard.truth(start, end)
        if truth is not None:
            truths[guard.node] = truth
    return truths


def _is_symbolic(point: Expr | None) -> bool:
    return point is not None and not isinstance(point, IntImm)


def _for_some_sizes(point: Expr) -> int:
    """Its value when every variable is a large prime; 0 when that is no number."""
    values: dict[Var, Expr] = {var: const(SOME_SIZE, var.dtype) for var in variables_in(point)}
    value = Analyzer().simplify(substitute_folding(point, values))
    return value.value if isinstance(value, IntImm) else 0


def _count(body: Stmt) -> int:
    """How many nodes a copy of it would make."""
    count = 0

    def look(node: object) -> None:
        nonlocal count
        count += 1

    post_order_visit(body, look)
    return count


def is_small_enough(body: Stmt) -> bool:
    """Whether a loop around `body` would be cut at all: large bodies are not copied."""
    return _count(body) <= MAX_NODES


@function_pass
@deep
def partition_loops(func: PrimFunc) -> PrimFunc:
    """Cut a loop where its guard changes, so that the hot part carries no branch."""
    return func.with_(body=_PartitionLoops(size_facts(func), cpu_of(func)).visit(func.body))
