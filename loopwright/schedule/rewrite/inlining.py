"""inlining: a block's value is computed where it is used, and every load keeps knowing which load it was before.

Loads are what the proof compares: a load of the inlined value must see, at its new place and time, what the load it
came from saw. So the rewriters here make a load node of its own for every load they meet, in the order of evaluation
(the order in which the analysis numbers loads), and remember where it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from loopwright.analysis.dataflow import BlockKey
from loopwright.arith import Analyzer, detect_iter_map, inverse_affine_iter_map, linear_coefficients
from loopwright.arith.index_map import padded_domain
from loopwright.arith.iter_map import NotInvertible
from loopwright.ir import (
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Call,
    Expr,
    IntImm,
    Let,
    LetStmt,
    Range,
    Rewriter,
    Stmt,
    Var,
    Visitor,
    any_node,
    deep,
    substitute,
    uses_var,
)
from loopwright.ir.operators import cast
from loopwright.runtime.errors import SourceLine
from loopwright.schedule.rewrite.regions import Span
from loopwright.schedule.rewrite.windows import region_in
from loopwright.script.parser.errors import OpaqueAccess
from loopwright.script.parser.regions import infer_regions

Origin = tuple[BlockKey, int, Sequence[Expr]]  # a load of the old version: block, number, values of the block's axes


Inverse = Callable[[Sequence[Expr]], dict[Var, Expr]]  # a cell → the values of the axes


class Attribution:
    """Where the loads of a new body come from."""

    def __init__(self) -> None:
        self._origins: dict[BufferLoad, Origin] = {}

    def load(self, buffer: Buffer, indices: Sequence[Expr], origin: Origin, span: object = None) -> BufferLoad:
        """A new load that stands for `origin`."""
        result = BufferLoad._make(buffer, tuple(indices), span=span)
        self._origins[result] = origin
        return result

    def numbered(self, key: BlockKey, body: Stmt) -> dict[tuple[BlockKey, int], Origin]:
        """The loads of the block `key` by their number, with what they stand for."""
        result: dict[tuple[BlockKey, int], Origin] = {}
        for number, load in enumerate(loads_in_order(body)):
            origin = self._origins.get(load)
            if origin is not None:
                result[key, number] = origin
        return result


class _InOrder(Visitor):
    def __init__(self) -> None:
        self.loads: list[BufferLoad] = []

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        for index in load.indices:
            self.visit(index)
        self.loads.append(load)

    def visit_Call(self, call: Call) -> None:
        if is_address(call):
            for index in call.args[0].indices:  # type: ignore[attr-defined]
                self.visit(index)
        else:
            self.visit_children(call)

    def visit_Block(self, block: Block) -> None:
        """Another block's loads are its own."""


@deep
def loads_in_order(body: Stmt | Expr) -> list[BufferLoad]:
    """The loads of a block's body, as the analysis numbers them; those of blocks inside are not its own."""
    walk = _InOrder()
    walk.visit(body)
    return walk.loads


def is_address(call: Call) -> bool:
    """Whether the call takes the address of an element instead of its value."""
    return call.op.name == "tir.address_of" and isinstance(call.args[0], BufferLoad)


class SubstituteLoads(Rewriter):
    """An expression of block `key` with its axes replaced by `values`; its loads stand for themselves as they were."""

    def __init__(self, result: Attribution, key: BlockKey, values: Mapping[Var, Expr], axes: Sequence[Expr]) -> None:
        self.made, self.key, self.axes = result, key, axes
        self.values = dict(values)
        self.count = 0

    def visit_Var(self, var: Var) -> Expr:
        return self.values.get(var, var)

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        indices = [self.visit(index) for index in load.indices]
        number = self.count
        self.count += 1
        return self.replace(load, indices, number)

    def replace(self, load: BufferLoad, indices: Sequence[Expr], number: int) -> Expr:
        """What stands for load `number`; overridden by who inlines something there."""
        return self.made.load(load.buffer, indices, (self.key, number, self.axes), load.span)

    def visit_Call(self, call: Call) -> Expr:
        if is_address(call):
            load = call.args[0]
            assert isinstance(load, BufferLoad)
            return call.with_(args=(load.with_(indices=tuple([self.visit(index) for index in load.indices])),))
        rewritten: Expr = call.rebuild(self.visit)
        return rewritten

    def visit_Let(self, let: Let) -> Expr:
        value = self.visit(let.value)
        fresh = self.values[let.var] = Var(let.var.name, let.var.dtype)  # the expression may be written several times
        return let.with_(var=fresh, value=value, body=self.visit(let.body))

    def visit_Block(self, block: Block) -> Block:
        return block


@deep
def retell(expr: Expr, built: Attribution, key: BlockKey, values: Mapping[Var, Expr], axes: Sequence[Expr]) -> Expr:
    """`expr` of block `key` at the axis values `axes`; `values` says the same, by variable."""
    result: Expr = SubstituteLoads(built, key, values, axes).visit(expr)
    return result


# --- inverting indices ----------------------------------------------------------------------------------------------


def inverse_of(indices: Sequence[Expr], domain: Mapping[Var, Span]) -> Inverse | None:
    """For a cell, the axis values whose `indices` are that cell; None when a cell may belong to several."""
    facts = Analyzer()
    for axis, span in domain.items():
        facts.bind(axis, Range.from_min_extent(span.low, facts.simplify(span.high - span.low + 1)))
    one_by_one = _solve_one_by_one(indices, domain, facts)
    if one_by_one is not None:
        return one_by_one
    ranges = {axis: Range.from_min_extent(s.low, facts.simplify(s.high - s.low + 1)) for axis, s in domain.items()}
    simple = [facts.simplify(index) for index in indices]
    result = detect_iter_map(simple, ranges, True, "bijective").indices
    if not result:
        # One to one on whole blocks is one to one on a part of them; what is outside the domain is for the caller.
        ranges = {axis: padded_domain(axis, domain, simple) for axis, domain in ranges.items()}
        result = detect_iter_map([Analyzer().simplify(index) for index in indices], ranges, True, "bijective").indices
    if not result:
        return None

    def inverse(cell: Sequence[Expr]) -> dict[Var, Expr]:
        values = inverse_affine_iter_map(result, list(cell))
        return {axis: cast(values.get(axis, span.low), axis.dtype) for axis, span in domain.items()}

    try:
        inverse(indices)
    except NotInvertible:
        return None
    return inverse


class _Digits(NamedTuple):
    """Index `place` is `base + Σ factor · axis`, where each factor exceeds all that the smaller ones add up to."""

    place: int
    base: Expr
    axes: Sequence[tuple[Var, int]]  # largest factor first


def _solve_one_by_one(indices: Sequence[Expr], domain: Mapping[Var, Span], facts: Analyzer) -> Inverse | None:
    """Each index tells some axes, the others in it being known by then: `vi * 4 + (3 - vj)` tells vi and vj."""
    fixed = {axis: span.low for axis, span in domain.items() if facts.can_prove_equal(span.low, span.high)}
    plan: list[_Digits] = []
    left = [axis for axis in domain if axis not in fixed]
    while left:
        step = next(
            (result for k, index in enumerate(indices) if (result := _digits(index, k, left, domain, facts))), None
        )
        if step is None:
            return None
        plan.append(step)
        left = [axis for axis in left if axis not in [known for known, _ in step.axes]]

    def inverse(cell: Sequence[Expr]) -> dict[Var, Expr]:
        values: dict[Var, Expr] = {axis: cast(value, axis.dtype) for axis, value in fixed.items()}
        for index, there in zip(indices, cell, strict=True):
            if isinstance(index, Var) and index in fixed:
                values[index] = cast(there, index.dtype)  # the one value that it has, by the name it has there
        for step in plan:
            base = substitute(step.base, values)
            rest = facts.simplify(cast(cell[step.place], base.dtype) - base)
            for axis, factor in step.axes:
                values[axis] = cast(rest, axis.dtype)
                if len(step.axes) == 1 and abs(factor) == 1:
                    values[axis] = facts.simplify(values[axis] * factor)
                    break
                # Counted from the end of the axis where the rest is least, the digits are quotients and remainders.
                low, high = (int(end) for end in domain[axis])  # type: ignore[call-overload]
                start, size = (low, factor) if factor > 0 else (high, -factor)
                rest = facts.simplify(rest - start * factor - _least(step.axes, axis, domain))
                digit = facts.simplify(rest // size)
                values[axis] = cast(facts.simplify(start + digit if factor > 0 else start - digit), axis.dtype)
                rest = facts.simplify(rest % size + _least(step.axes, axis, domain))
        return {axis: values[axis] for axis in domain}

    return inverse


def _least(axes: Sequence[tuple[Var, int]], after: Var, domain: Mapping[Var, Span]) -> int:
    """The least that the axes with smaller factors than `after` add up to."""
    total, seen = 0, False
    for axis, factor in axes:
        if seen:
            total += min([factor * int(end) for end in domain[axis]])  # type: ignore[call-overload]
        seen = seen or axis is after
    return total


def _digits(
    index: Expr, position: int, left: Sequence[Var], domain: Mapping[Var, Span], facts: Analyzer
) -> _Digits | None:
    mine = [axis for axis in left if uses_var(index, {axis}.__contains__)]
    result = linear_coefficients(index, mine, facts) if mine else None
    if result is None:
        return None
    factors = [factor.value if isinstance(factor, IntImm) else 0 for factor in result[0]]
    if 0 in factors:
        return None
    axes = sorted(zip(mine, factors, strict=True), key=lambda pair: -abs(pair[1]))
    if len(axes) == 1 and abs(factors[0]) == 1:
        return _Digits(position, result[1], axes)
    reach = 0
    for axis, factor in reversed(axes):
        low, high = domain[axis]
        if not (isinstance(low, IntImm) and isinstance(high, IntImm)) or reach >= abs(factor):
            return None
        reach += abs(factor) * (high.value - low.value)
    return _Digits(position, result[1], axes)


# --- what blocks read afterwards --------------------------------------------------------------------------------------


def with_fresh_regions(block: Block, gone: Buffer, added: Sequence[Buffer], writes: bool = False) -> Block:
    """The block with its reads (and `writes`) told anew from its body, which no longer uses `gone`."""
    span = block.span if isinstance(block.span, SourceLine) else SourceLine("", 0)
    try:
        reads, written = infer_regions(block, span)
    except OpaqueAccess:
        # Pointers hide what is touched: keep what the author said, and add what is loaded of the new buffers.
        kept = [region for region in block.reads if region.buffer is not gone]
        known = {region.buffer for region in kept}
        new = [_loaded(block, buffer) or _whole(buffer) for buffer in added if buffer not in known]
        return block.with_(reads=(*kept, *new))
    if writes:
        return block.with_(reads=tuple(reads), writes=tuple(written))
    return block.with_(reads=tuple(reads))


def _loaded(block: Block, buffer: Buffer) -> BufferRegion | None:
    """What a block loads of a buffer; None where a call has its pointer as well."""
    calls = any_node(block.body, lambda node: isinstance(node, Call) and any([arg is buffer.data for arg in node.args]))
    return None if calls else region_in(block, buffer, writes=False)


def _whole(buffer: Buffer) -> BufferRegion:
    return BufferRegion(buffer, tuple([Range.from_min_extent(extent * 0, extent) for extent in buffer.shape]))


def uses_outside(root: Stmt, buffer: Buffer, block: Block) -> list[str]:
    """Why the uses of `buffer` outside `block` are not all plain loads of single elements: one reason each."""
    walk = _Uses(buffer, block)
    walk.visit(root)
    return walk.reasons


class _Uses(Visitor):
    def __init__(self, buffer: Buffer, block: Block) -> None:
        self.buffer, self.block = buffer, block
        self.where = ""
        self.reasons: list[str] = []

    def visit_Block(self, block: Block) -> None:
        if block is self.block:
            return
        outside, self.where = self.where, block.name_hint
        for match in block.match_buffers:
            if match.source.buffer.data is self.buffer.data:
                self.reasons.append(f"block {block.name_hint!r} names a part of it {match.buffer.name}")
        if block.init is not None:
            if any(load.buffer.data is self.buffer.data for load in loads_in_order(block.init)):
                self.reasons.append(f"the init of block {block.name_hint!r} reads it")
            self.visit(block.init)
        self.visit(block.body)
        self.where = outside

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        if load.buffer.data is self.buffer.data:
            if load.buffer is not self.buffer:
                self.reasons.append(f"block {self.where!r} reads it under another name")
            elif any(index.dtype.lanes != 1 for index in load.indices):
                self.reasons.append(f"block {self.where!r} reads several elements of it at once")
        self.visit_children(load)

    def visit_BufferStore(self, store: BufferStore) -> None:
        if store.buffer.data is self.buffer.data:
            self.reasons.append(f"block {self.where!r} writes it as well")
        self.visit_children(store)

    def visit_Call(self, call: Call) -> None:
        if is_address(call) and call.args[0].buffer.data is self.buffer.data:  # type: ignore[attr-defined]
            self.reasons.append(f"block {self.where!r} takes its address")
        self.visit_children(call)

    def visit_LetStmt(self, let: LetStmt) -> None:
        self.visit_children(let)

    def visit_Var(self, var: Var) -> None:
        if var is self.buffer.data:
            self.reasons.append(f"block {self.where!r} uses its address")
