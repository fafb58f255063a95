"""decompose_padding: a block that copies with padding becomes a block that fills, and one that copies what there is.

    for i in range(10):                              →    for i_pad in range(10):
        with T.block("B"):                                    with T.block("B_pad_const"): B[vi] = 0
            B[vi] = T.if_then_else(1 <= vi and vi < 9,    for i in range(8):
                                   A[vi - 1], 0)              with T.block("B"): B[vi + 1] = A[vi]

The fill stands before `loop`; the copy has no condition left where its loops can be shortened instead, and its axes
count what it copies. Reason for the
first half: of an axis value, exactly one of "copy where the condition holds" and "fill where it does not" runs, and
gives what the block gave. Proved for the second, from there on: with the fill done everywhere and first, every read
still sees a copy where there is one, and the fill elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.analysis.reduction_init import reducing_variables
from loopwright.arith import Analyzer, linear_coefficients
from loopwright.ir import (
    GE,
    GT,
    LE,
    LT,
    Block,
    BlockRealize,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    Expr,
    FloatImm,
    For,
    IntImm,
    IterVar,
    Range,
    Rewriter,
    Select,
    SeqStmt,
    Stmt,
    Var,
    cell_region,
    conjuncts,
    const,
    logical_and,
    logical_not,
    seq,
    substitute,
)
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import Origins
from loopwright.schedule.primitives.compute.decompose_reduction import LoopNotAround, mirrored_loops
from loopwright.schedule.rewrite.bindings import TRUE, is_true
from loopwright.schedule.rewrite.regions import facts_inside
from loopwright.schedule.rewrite.windows import accesses, region_in
from loopwright.schedule.step import BlockResult, Proof, Step
from loopwright.schedule.view import View
from loopwright.transform.parts.known_ops import IF_THEN_ELSE
from loopwright.transform.parts.purity import has_data, is_pure


class NoPadding(ScheduleError):
    """decompose_padding needs a block that is one store of `if_then_else(condition, value, constant)`.

    For example:

        from loopwright import te, tir
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.decompose_padding("B", sch.get_loops("B")[0])
    """

    code = "LW0223"

    def __init__(self, realize: BlockRealize, problem: str) -> None:
        super().__init__(f"decompose_padding: block {realize.block.name_hint!r} {problem}", at=realize)


def decompose_padding(view: View, block: BlockRealize, loop: For) -> Step:
    """Write the padding of `block` in a nest of its own before `loop`; the block keeps what is not padding."""
    # Check
    key = block_key(block.block)
    path = view.block_path(key)
    loops = view.loops_of(key)
    store, condition, value, padding = _parts(block)
    if not any(other is loop for other in loops):
        raise LoopNotAround("decompose_padding", block, loop, loops)
    start = next(k for k, statement in enumerate(path) if statement is loop)
    for statement in path[start:-1]:
        if not isinstance(statement, (For, SeqStmt)):
            raise NoPadding(block, f"stands in a {type(statement).__name__} inside loop {loop.loop_var.name}")
    inner = [statement for statement in path[start:-1] if isinstance(statement, For)]
    facts = facts_inside(block.block)
    if facts.can_prove(condition) or facts.can_prove(logical_not(condition)):
        raise NoPadding(block, f"is never padded, or always: {condition} does not change")

    # Build: the block in two, then the fill in front
    values = dict(zip([axis.var for axis in block.block.iter_vars], block.iter_values, strict=True))
    copy = _with_body(block.block, BufferStore(store.buffer, value, store.indices, span=store.span))
    fill = _fill(view, block.block, BufferStore(store.buffer, padding, store.indices))
    holds = substitute(condition, values)
    both = seq(
        [
            BlockRealize(block.iter_values, logical_and(block.predicate, holds), copy),
            BlockRealize(block.iter_values, logical_and(block.predicate, logical_not(holds)), fill),
        ]
    )
    given = view.replaced(path, both)

    nest = _fill_nest(view, block, fill, inner)
    shortened, rest = _shortened(block, condition, inner, path[start:])
    cut = _cut(block.block, condition)
    around = _facts_outside(view, block, inner)
    bound = [substitute(item, shortened.shift) for item in block.iter_values]
    body: Stmt = block.with_(
        block=_with_reads(_counting(copy, cut)),
        iter_values=tuple([around.simplify(item - low) for item, (low, _) in zip(bound, cut, strict=True)]),
        predicate=substitute(
            logical_and(TRUE, *conjuncts(substitute(rest, values)), *conjuncts(block.predicate)), shortened.shift
        ),
    )
    origins = Origins(renamed={key: (key, lambda axes: [axis + low for axis, (low, _) in zip(axes, cut, strict=True)])})
    after = shortened.rebuilt(path[start:], body)
    result = view.replaced(path[: start + 1], seq([nest, after]))
    return Step(
        result,
        Proof.VALUES,
        origins,
        results=[BlockResult(block_key(fill))],
        at=block,
        buffers=[region.buffer for region in (*block.block.reads, *block.block.writes)],
        given=given,
    )


def _parts(realize: BlockRealize) -> tuple[BufferStore, Expr, Expr, Expr]:
    """The store, the condition, what is stored where it holds, and the constant elsewhere."""
    store = realize.block.body
    if realize.block.init is not None or not isinstance(store, BufferStore):
        raise NoPadding(realize, "is not a single store")
    value = store.value
    if isinstance(value, Call) and value.op is IF_THEN_ELSE:
        condition, then, other = value.args
    elif isinstance(value, Select):
        condition, then, other = value.condition, value.true_value, value.false_value
    else:
        raise NoPadding(realize, f"stores {value}, which is no choice between a value and padding")
    assert isinstance(condition, Expr) and isinstance(then, Expr) and isinstance(other, Expr)
    if not _is_literal(other):
        raise NoPadding(realize, f"is padded with {other}, which is no constant")
    if has_data(condition):
        raise NoPadding(realize, f"is padded where {condition}, which depends on data")
    if not is_pure(then):
        raise NoPadding(realize, "calls something that does more than give a value")
    if not realize.block.iter_vars:
        raise NoPadding(realize, "has no axes")
    return store, condition, then, other


def _is_literal(expr: Expr) -> bool:
    return isinstance(expr, (IntImm, FloatImm)) or (isinstance(expr, Cast) and _is_literal(expr.value))


def _with_body(block: Block, body: BufferStore) -> Block:
    return _with_reads(block.with_(body=body))


def _with_reads(block: Block) -> Block:
    """The block with the regions that its loads read: cells where each buffer is loaded once."""
    reads = []
    for region in block.reads:
        loads = accesses(block.body, region.buffer)
        cells = [load.indices for load in loads if not load.writes and not load.loops]
        is_cell = len(cells) == 1 == len([load for load in loads if not load.writes])
        reads.append(cell_region(region.buffer, cells[0]) if is_cell else region_in(block, region.buffer, writes=False))
    return block.with_(reads=tuple([region for region in reads if region is not None]))


def _cut(block: Block, condition: Expr) -> list[tuple[Expr, Expr]]:
    """Of each axis, the first value for which the condition may hold, and how many there are."""
    facts = Analyzer()
    result = []
    for axis in block.iter_vars:
        assert axis.dom is not None
        dtype, (first, count) = axis.var.dtype, (axis.dom.min, axis.dom.extent)
        low, high = 0, count.value if isinstance(count, IntImm) else 0
        for part in conjuncts(condition):
            limit = _limit(part, axis.var, facts)
            if limit is not None:
                low, high = max(low, limit[0]), min(high, limit[1])
        is_plain = isinstance(first, IntImm) and first.value == 0 and high > low
        result.append((const(low, dtype), const(high - low, dtype)) if is_plain else (const(0, dtype), count))
    return result


class _SimpleIndices(Rewriter):
    def __init__(self, facts: Analyzer) -> None:
        self.facts = facts

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        return load.with_(indices=tuple([self.facts.simplify(self.visit(index)) for index in load.indices]))

    def visit_BufferStore(self, store: BufferStore) -> BufferStore:
        indices = tuple([self.facts.simplify(self.visit(index)) for index in store.indices])
        return store.with_(value=self.visit(store.value), indices=indices)


def _counting(block: Block, cut: Sequence[tuple[Expr, Expr]]) -> Block:
    """The block with axes that count from where the copy begins."""
    pairs = list(zip(block.iter_vars, cut, strict=True))
    values = {axis.var: axis.var + low for axis, (low, _) in pairs if not (isinstance(low, IntImm) and low.value == 0)}
    axes = []
    for axis, (_, count) in pairs:
        assert axis.dom is not None
        axes.append(axis.with_(dom=Range.from_min_extent(axis.dom.min, count)))
    store = block.body
    assert isinstance(store, BufferStore)
    moved = _SimpleIndices(Analyzer()).visit(substitute(store, values))
    return block.with_(
        iter_vars=tuple(axes),
        writes=(cell_region(store.buffer, moved.indices),),
        body=moved,
    )


def _fill(view: View, block: Block, body: BufferStore) -> Block:
    """The block that stores the constant, with axes of its own."""
    fresh = {axis.var: Var(axis.var.name, axis.var.dtype) for axis in block.iter_vars}
    return Block(
        tuple([IterVar(axis.dom, fresh[axis.var], axis.iter_type) for axis in block.iter_vars]),
        (),
        tuple([substitute(region, fresh) for region in block.writes]),
        view.fresh_block_name(f"{block.name_hint}_pad_const"),
        substitute(body, fresh),
    )


def _fill_nest(view: View, realize: BlockRealize, fill: Block, loops: Sequence[For]) -> Stmt:
    """The fill over everything that the block runs over inside the loop."""
    mirrored, guards = list(loops), conjuncts(realize.predicate)
    if reducing_variables(realize):
        mirrored, guards = mirrored_loops(view, realize, realize.iter_values, loops)
    facts = _facts_outside(view, realize, loops)
    counters = {loop.loop_var: Var(f"{loop.loop_var.name}_pad", loop.loop_var.dtype) for loop in mirrored}
    values = tuple([substitute(facts.simplify(value), counters) for value in realize.iter_values])
    nest: Stmt = BlockRealize(values, logical_and(TRUE, *[substitute(guard, counters) for guard in guards]), fill)
    for loop in reversed(mirrored):
        nest = loop.with_(
            loop_var=counters[loop.loop_var],
            min=substitute(loop.min, counters),
            extent=substitute(loop.extent, counters),
            body=nest,
        )
    return nest


def _facts_outside(view: View, realize: BlockRealize, inner: Sequence[For]) -> Analyzer:
    """What is known of the loops that stay around both blocks."""
    facts = Analyzer()
    for loop in view.loops_of(block_key(realize.block)):
        if not any([loop is other for other in inner]):
            facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    return facts


class _Shortened:
    """Loops that run over fewer values: how far each is shifted, and its new length."""

    def __init__(self) -> None:
        self.shift: dict[Var, Expr] = {}
        self.extents: dict[Var, Expr] = {}

    def rebuilt(self, path: Sequence[Stmt], body: Stmt) -> Stmt:
        """The statement at the start of `path`, with `body` in place of its end."""
        if len(path) == 1:
            return body
        child, below = path[1], self.rebuilt(path[1:], body)
        result = path[0].rebuild(lambda item: below if item is child else item)
        if isinstance(result, For) and result.loop_var in self.extents:
            return result.with_(extent=self.extents[result.loop_var])
        return result


def _shortened(
    realize: BlockRealize, condition: Expr, loops: Sequence[For], path: Sequence[Stmt]
) -> tuple[_Shortened, Expr]:
    """Which of the loops can be shortened to where the condition holds, and what is left of the condition.

    A loop over this block alone, that is an axis as it is, runs from the greatest lower limit to the least upper one.
    """
    result = _Shortened()
    alone = {loop.loop_var: loop for loop in loops} if not any(isinstance(item, SeqStmt) for item in path) else {}
    axes = {
        value: axis.var
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if isinstance(value, Var) and value in alone
    }
    if not is_true(realize.predicate):
        axes = {}
    facts = Analyzer()
    left = conjuncts(condition)
    for var, axis in axes.items():
        loop = alone[var]
        if not (isinstance(loop.min, IntImm) and loop.min.value == 0 and isinstance(loop.extent, IntImm)):
            continue
        low, high = 0, loop.extent.value  # high is left out
        kept = []
        for part in left:
            limit = _limit(part, axis, facts)
            if limit is None:
                kept.append(part)
            else:
                low, high = max(low, limit[0]), min(high, limit[1])
        if high <= low:
            continue  # nothing would be left: the condition stays
        left = kept
        result.shift[var] = facts.simplify(var + const(low, var.dtype))
        result.extents[var] = const(high - low, loop.extent.dtype)
    return result, logical_and(TRUE, *left)


def _limit(condition: Expr, axis: Var, facts: Analyzer) -> tuple[int, int] | None:
    """The values of an axis, from the first to before the last, that a condition on it alone allows."""
    if not isinstance(condition, (LT, LE, GT, GE)) or not condition.a.dtype.is_int:
        return None
    linear = linear_coefficients(condition.a - condition.b, [axis], facts)
    if linear is None or not isinstance(linear[0][0], IntImm):
        return None
    factor, base = linear[0][0].value, facts.simplify(linear[1])
    if abs(factor) != 1 or not isinstance(base, IntImm):
        return None
    far = 1 << 40
    less = isinstance(condition, (LT, LE))
    strict = isinstance(condition, (LT, GT))
    # factor * axis + base < 0 (or ≤, >, ≥)
    if (factor == 1) == less:
        end = -base.value if factor == 1 else base.value
        return -far, end if strict else end + 1
    first = -base.value if factor == 1 else base.value
    return first + 1 if strict else first, far
