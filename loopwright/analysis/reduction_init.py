"""write_inits: every reduction's start value becomes a loop nest of its own, at its one definite place.

    for i, k in grid(4, 8):                      →    for i in range(4):
        with block("C"):                                  with block("C_init"):
            vi, vk = remap("SR", [i, k])                      vi = axis.spatial(4, i)
            with init():                                      C[vi] = 0
                C[vi] = 0                                 for k in range(8):
            C[vi] = C[vi] + A[vi, vk]                         with block("C"):
                                                                  vi, vk = remap("SR", [i, k])
                                                                  C[vi] = C[vi] + A[vi, vk]

The place is right before the outermost loop that *carries* the reduction: the outermost one that has two iterations,
loops around it standing still, which have one cell, whether they update it or not. Iterations of a loop around the
allocation of the buffer have cells of their own, so such a loop carries nothing. An `if` on loops of the reduction
alone is about its members, so the init is outside of it, also where such a loop has one iteration and carries nothing.
"When all reduction axes are at their start" is no such place: after fuse, split and reorder the first update of a cell
may come from any iteration.

The nest mirrors the loops from there inward, with their kinds, but those that only the reduction runs over: so it runs
although such a loop has no iterations.
"""

from __future__ import annotations

import operator
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from loopwright.analysis.effects import is_pure_call
from loopwright.analysis.loop_carried import Loop, carries
from loopwright.ir import (
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    Call,
    Expr,
    For,
    IfThenElse,
    IterType,
    IterVar,
    LetStmt,
    MatchBufferRegion,
    Node,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    While,
    any_node,
    any_statement,
    collect,
    conjuncts,
    const,
    deep,
    logical_and,
    logical_not,
    seq,
    substitute,
    uses_var,
)
from loopwright.runtime.errors import LoopwrightError


class InitUsesReduction(LoopwrightError, ValueError):
    """The start value of a reduction depends on what is not known where it is written.

    An `init` gives each cell its value before the first update, so it may use the data axes of its block and
    buffers from outside; not a reduction axis (which iteration would be meant?), nor a let inside the loops of the
    reduction, nor memory the block allocates.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4, 8)), B: T.Buffer(4)):
            for i, k in T.grid(4, 8):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = A[vi, vk]  # of which k?
                    B[vi] = B[vi] + A[vi, vk]

        loopwright.build(f)
    """

    code = "LW0801"

    def __init__(self, block: Block, what: str, hint: str = "let the init depend on data axes alone") -> None:
        super().__init__(
            f"block {block.name_hint!r}: its init uses {what}",
            at=block,
            why="the init runs once a cell, before any iteration of the reduction",
            hint=hint,
            fields={"block": block.name_hint, "uses": what},
        )


def write_inits(root: Stmt) -> Stmt:
    """`root` with each block's init written down as its own nest; `root` itself when there is none."""
    return write_named_inits(root).body


class NamedInits(NamedTuple):
    """A statement with its inits written down; of which block each init block is, and of which loop each loop there."""

    body: Stmt
    blocks: Mapping[Block, Block]
    loops: Mapping[Var, Var]


@lru_cache(maxsize=64)  # a version of a function that is scheduled is looked at in several ways
@deep
def write_named_inits(root: Stmt) -> NamedInits:
    """The same, and what the new blocks and loops stand for."""
    return _WriteInits().write(root)


class _Around(NamedTuple):
    """What lies between a block and the block around it: a loop, a condition or a let, outermost first."""

    loop: For | While | None = None
    condition: Expr | None = None
    let: LetStmt | None = None


class _Written(NamedTuple):
    """An init nest: it stands before the loop at `depth` (None: right before its block)."""

    depth: int | None
    nest: Stmt
    block: Block
    loops: Mapping[Var, Var]


# Most steps of a schedule leave most reductions where they are: by the block with its bindings, and the loops around.
_WRITTEN: Final[dict[Hashable, _Written]] = {}
_KEPT: Final = 1024


class _WriteInits(Rewriter):
    def __init__(self) -> None:
        self.around: list[_Around] = []
        self.before: dict[For | While, list[Stmt]] = {}
        self.inits: dict[Block, Block] = {}
        self.loops: dict[Var, Var] = {}
        self.homes: dict[Var, int] = {}  # memory allocated inside the innermost block: how many loops are around it

    def write(self, root: Stmt) -> NamedInits:
        body: Stmt = self.visit(root)
        return NamedInits(body, self.inits, self.loops)

    def visit_Block(self, block: Block) -> Block:
        outside, self.around = self.around, []
        homes, self.homes = self.homes, {}
        block = block.rebuild(self.visit)
        self.around, self.homes = outside, homes
        return block

    def visit_Allocate(self, node: Allocate) -> Stmt:
        self.homes[node.buffer_var] = len([item for item in self.around if item.loop is not None])
        result: Stmt = node.with_(body=self.visit(node.body))
        return result

    def visit_SeqStmt(self, sequence: SeqStmt) -> Stmt:
        if self.around:
            parts = [self.visit(part) if _has_init(part) else part for part in sequence.seq]
            return sequence if all(map(operator.is_, parts, sequence.seq)) else seq(parts)
        parts = []
        for part in sequence.seq:
            written, inits, loops = _written_part(part)
            if self.inits.keys().isdisjoint(inits):
                self.inits.update(inits)
                self.loops.update(loops)
            else:
                written = self.visit(part)  # each definition of its variables is one of its own
            parts.append(written)
        return sequence if all(map(operator.is_, parts, sequence.seq)) else seq(parts)

    def visit_For(self, loop: For) -> Stmt:
        return self._loop(loop)

    def visit_While(self, loop: While) -> Stmt:
        return self._loop(loop)

    def _loop(self, loop: For | While) -> Stmt:
        body = self._inside(_Around(loop=loop), loop.body)
        return seq([*self.before.pop(loop, ()), loop.with_(body=body)])

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        return let.with_(body=self._inside(_Around(let=let), let.body))

    def visit_IfThenElse(self, choice: IfThenElse) -> Stmt:
        then_case = self._inside(_Around(condition=choice.condition), choice.then_case)
        else_case = choice.else_case
        if else_case is not None:
            else_case = self._inside(_Around(condition=logical_not(choice.condition)), else_case)
        return choice.with_(then_case=then_case, else_case=else_case)

    def _inside(self, around: _Around, body: Stmt) -> Stmt:
        self.around.append(around)
        body = self.visit(body)
        self.around.pop()
        return body

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        changed = self.visit(realize.block)
        if changed.init is None:
            return realize.with_(block=changed)
        block = changed.with_(init=None, reads=(*_missing(changed.writes, changed.reads), *changed.reads))
        home = min([self.homes.get(region.buffer.data, 0) for region in changed.writes], default=0)
        written = self._written(realize, changed, home)
        self.inits[written.block] = changed
        self.loops.update(written.loops)
        if written.depth is None:
            return seq([written.nest, realize.with_(block=block)])
        location = [item.loop for item in self.around if item.loop is not None][written.depth]
        self.before.setdefault(location, []).append(written.nest)
        return realize.with_(block=block)

    def _written(self, realize: BlockRealize, block: Block, home: int) -> _Written:
        key = _place_key(realize, self.around, home) if block is realize.block else None
        result = _WRITTEN.get(key) if key is not None else None
        if result is None or result.block in self.inits:  # each definition of its variables is one of its own
            start = _block_of_start(block)
            if start in self.inits:
                start = _block_of_start.__wrapped__(block)
            result = _Init(realize, block, start, self.around, home).write()
            if key is not None:
                if len(_WRITTEN) >= _KEPT:
                    _WRITTEN.clear()
                _WRITTEN[key] = result
        return result

    def visit_Expr(self, expr: Node) -> Node:
        """Expressions hold no blocks."""
        return expr

    visit_Buffer = visit_BufferRegion = visit_MatchBufferRegion = visit_IterVar = visit_Range = visit_Expr
    visit_BufferStore = visit_Evaluate = visit_Expr


@lru_cache(maxsize=2048)  # a step of a schedule changes one nest of a function: the others are the same objects
def _written_part(part: Stmt) -> NamedInits:
    """A statement that nothing is around, with the inits in it written down."""
    return _WriteInits().write(part)


@lru_cache(maxsize=2048)
def _has_init(part: Stmt) -> bool:
    return any_statement(part, lambda node: isinstance(node, BlockRealize) and node.block.init is not None)


def _place_key(realize: BlockRealize, around: Sequence[_Around], home: int) -> Hashable | None:
    """What an init nest depends on; None where there is more than plain loops."""
    loops = []
    for item in around:
        loop = item.loop
        if not isinstance(loop, For) or loop.annotations:
            return None
        loops.append((loop.loop_var, loop.min, loop.extent, loop.kind, loop.thread_binding))
    return realize, tuple(loops), home


class _Init:
    """The init nest of one block."""

    def __init__(
        self, realize: BlockRealize, block: Block, start: Block, around: Sequence[_Around], home: int
    ) -> None:
        self.block, self.start, self.home = block, start, home
        self.around = around
        self.realize = realize
        self.lets: dict[Var, Expr] = {}
        for item in around:
            if item.let is not None:
                self.lets[item.let.var] = self._full(item.let.value)
        self.written = self.lets  # those whose values the nest has in the place of their names
        pairs = list(zip(block.iter_vars, realize.iter_values, strict=True))
        self.axes = [(axis, self._full(value)) for axis, value in pairs if axis.iter_type != IterType.CommReduce]
        self.reduced = [self._full(value) for axis, value in pairs if axis.iter_type == IterType.CommReduce]
        self.loops = [item.loop for item in around if item.loop is not None]
        running = {loop.loop_var: loop for loop in self.loops if isinstance(loop, For)}
        data = {var for _, value in self.axes for var in used_variables(value, running)}
        self.reducing = {var for value in self.reduced for var in used_variables(value, running)} - data
        self.others = set(running) - self.reducing

    def _full(self, expr: Expr) -> Expr:
        """An expression with the values of all lets: it names the loops that it depends on."""
        return substitute(expr, self.lets) if self.lets else expr

    def _in_nest(self, expr: Expr) -> Expr:
        """An expression as it stands in the nest."""
        return substitute(expr, self.written) if self.written else expr

    def write(self) -> _Written:
        """The nest, and where it stands."""
        depths = [depth for depth in (self._carrying_depth(), self._depth_of_conditions()) if depth is not None]
        depth = min(depths, default=None)
        crossed = self._cross_lets(depth) if self.lets else set()
        if depth is None:
            bounds = self._bounds([loop for loop in self.loops if isinstance(loop, For)])
            guards = dict(self._parts(self.realize.predicate))
            _, kept = loops_of_start(self.others, bounds, (), list(guards))
            here = self._realize(self.axes, logical_and(const(True), *[guards[guard] for guard in kept]))
            return _Written(None, here, here.block, {})
        location = self.loops[depth]
        inner = {loop.loop_var: loop for loop in self.loops[depth:] if isinstance(loop, For)}
        data, conditions = self._mirrored(inner, location)
        renamed = {var: Var(var.name, var.dtype) for var in inner if var in data}
        axes = [(axis, substitute(value, renamed)) for axis, value in self.axes]
        predicate = logical_and(const(True), *[substitute(condition, renamed) for condition in conditions])
        result = self._realize(axes, predicate)
        nest: Stmt = result
        for var in reversed(list(renamed)):
            loop = inner[var]
            nest = loop.with_(
                loop_var=renamed[var],
                min=substitute(self._in_nest(loop.min), renamed),
                extent=substitute(self._in_nest(loop.extent), renamed),
                body=nest,
            )
        if crossed and uses_var(nest, crossed.__contains__):
            named = next(var for var in collect(nest, Var) if var in crossed)
            what = f"{named.name}, a let inside the loops of the reduction"
            hint = f"write the value of {named.name} there, in terms of the block's axes, or bind it before these loops"
            raise InitUsesReduction(self.block, what, hint)
        return _Written(depth, nest, result.block, {new: old for old, new in renamed.items()})

    def _cross_lets(self, depth: int | None) -> set[Var]:
        """Which lets the nest stands before; these have their values there, and so has arithmetic.

        What was loaded or called where the nest sees the name keeps the name: it is not loaded or called again.
        """
        self.written, crossed, loops = {}, set(), 0
        for item in self.around:
            loops += item.loop is not None
            if item.let is None:
                continue
            is_crossed = depth is not None and loops > depth
            value = self._in_nest(item.let.value)
            if not any_node(value, _has_effect if is_crossed else _loads_or_calls):
                self.written[item.let.var] = value
            if is_crossed:
                crossed.add(item.let.var)
        pairs = zip(self.block.iter_vars, self.realize.iter_values, strict=True)
        self.axes = [(axis, self._in_nest(value)) for axis, value in pairs if axis.iter_type != IterType.CommReduce]
        return crossed

    def _parts(self, condition: Expr) -> Iterator[tuple[Expr, Expr]]:
        """The conjuncts of a condition: with the values of all lets, and as they stand in the nest."""
        for part in conjuncts(self._in_nest(condition)):
            yield self._full(part), part

    def _carrying_depth(self) -> int | None:
        """The index in `loops` of the outermost loop that carries the reduction."""
        loops: list[Loop | None] = []
        for item in self.loops:
            if isinstance(item, For):
                low, extent = self._full(item.min), self._full(item.extent)
                loops.append(Loop(item.loop_var, low, extent))
            else:
                loops.append(None)
        values = [value for _, value in self.axes]
        conditions = [condition for condition, _, _ in self._conditions() if not self._is_about_updates(condition)]
        of_cells = self._of_cells(loops, [*values, *conditions])
        for depth in range(self.home, len(loops)):
            inner = [loop for loop, is_kept in zip(loops[depth + 1 :], of_cells[depth + 1 :], strict=True) if is_kept]
            if carries([*loops[: depth + 1], *inner], depth, values, conditions):
                return depth
        return None

    def _depth_of_conditions(self) -> int | None:
        """The index of the outermost loop that an `if` about updates, inside it, names last: the init is before it.

        Where such a loop has one iteration it carries nothing, and the start of a sum depends on its members no more.
        """
        depth_of = {loop.loop_var: depth for depth, loop in enumerate(self.loops) if isinstance(loop, For)}
        conditions = [self._full(item.condition) for item in self.around if item.condition is not None]
        named = [
            max([depth_of[var] for var in used_variables(condition, self.reducing)])
            for whole in conditions
            for condition in conjuncts(whole)
            if self._is_about_updates(condition)
        ]
        return min([depth for depth in named if depth >= self.home], default=None)

    def _of_cells(self, loops: Sequence[Loop | None], named: Sequence[Expr]) -> list[bool]:
        """Which loops say what cells are reached, by themselves or in bounds of others: not those of updates alone.

        The init runs although a loop that only the reduction runs over has no iterations.
        """
        result: list[bool] = []
        used = {var for part in named for var in variables_of(part)}
        for loop in reversed(loops):
            is_kept = loop is None or loop.var not in self.reducing or loop.var in used
            if is_kept and loop is not None:
                used |= variables_of(loop.min) | variables_of(loop.extent)
            result.append(is_kept)
        return result[::-1]

    def _is_about_updates(self, condition: Expr) -> bool:
        """Whether a condition names loops of the reduction alone: which updates happen, not which cells exist."""
        return bool(used_variables(condition, self.reducing)) and not used_variables(condition, self.others)

    def _conditions(self) -> Iterator[tuple[Expr, Expr, int]]:
        """Every conjunct that guards the block, in full and as it stands in the nest, and how many loops are around."""
        loops = 0
        for item in self.around:
            loops += item.loop is not None
            if item.condition is not None:
                for full, part in self._parts(item.condition):
                    yield full, part, loops
        for full, part in self._parts(self.realize.predicate):
            yield full, part, loops

    def _mirrored(self, inner: Mapping[Var, For], location: For | While) -> tuple[set[Var], list[Expr]]:
        """The loops that the nest runs over, and the conditions it keeps.

        All loops are mirrored but those of the reduction.
        """
        reducing = {var for value in self.reduced for var in used_variables(value, inner)}
        data = {var for _, value in self.axes for var in used_variables(value, inner)} | (set(inner) - reducing)
        outside = self.loops.index(location)
        outer = {loop.loop_var for loop in self.loops[:outside] if isinstance(loop, For)} - self.reducing
        inside = {
            guard: part
            for guard, part, loops in self._conditions()
            if loops > outside and (used_variables(guard, inner) or not self._is_about_updates(guard))
        }
        data, kept = loops_of_start(data, self._bounds(inner.values()), outer, list(inside))
        return data, [inside[guard] for guard in kept]

    def _bounds(self, loops: Iterable[For]) -> dict[Var, list[Expr]]:
        return {loop.loop_var: [self._full(end) for end in (loop.min, loop.extent)] for loop in loops}

    def _realize(self, axes: Sequence[tuple[IterVar, Expr]], predicate: Expr) -> BlockRealize:
        return BlockRealize._make(
            tuple([value for _, value in axes]), predicate, self.start, span=self.realize.span
        )


def _loads_or_calls(node: Node) -> bool:
    return isinstance(node, BufferLoad) or _has_effect(node)


def _has_effect(node: Node) -> bool:
    return isinstance(node, Call) and not is_pure_call(node)


@lru_cache(maxsize=1024)  # most steps change the loops around a block, not the block
def _block_of_start(block: Block) -> Block:
    """The block that gives cells their start value, with axes of its own for the data axes of the reduction."""
    assert block.init is not None
    for buffer in block.alloc_buffers:
        if buffer in _buffers_in(block.init):
            raise InitUsesReduction(block, f"buffer {buffer.name}, which the block allocates")
    init, matched = _own_matches(block.init, block.match_buffers) if block.match_buffers else (block.init, [])
    axes = [axis for axis in block.iter_vars if axis.iter_type != IterType.CommReduce]
    fresh = {axis.var: Var(axis.var.name, axis.var.dtype) for axis in axes}
    result = Block._make(
        tuple([IterVar(axis.dom, fresh[axis.var], axis.iter_type, axis.thread_tag) for axis in axes]),
        (),
        tuple([substitute(region, fresh) for region in block.writes]),
        f"{block.name_hint}_init",
        substitute(init, fresh),
        None,
        (),
        tuple([substitute(match, fresh) for match in matched]),
        {},
        span=block.span,
    )
    reduction = {axis.var for axis in block.iter_vars} - set(fresh)
    if uses_var(result, reduction.__contains__):
        named = next(var for var in collect(result, Var) if var in reduction)
        raise InitUsesReduction(block, f"reduction axis {named.name}")
    return result


def loops_of_start(
    data: set[Var], bounds: Mapping[Var, Sequence[Expr]], outer: Container[Var], guards: Sequence[Expr]
) -> tuple[set[Var], list[Expr]]:
    """The loops that the start of a reduction runs over, and the conditions it keeps.

    `data` are loops that it does run over, of those whose `bounds` are given. A condition that ties loops to others
    outside (`outer`, none of the reduction) says for which of these there is a cell at all: the start runs over what
    it names, too, and over what other conditions and bounds name beside loops that it runs over.

    A condition on loops of the reduction alone says which updates happen, not which cells there are: it is dropped,
    unless the start runs over those loops.
    """
    data = set(data)
    used = [(guard, used_variables(guard, bounds)) for guard in guards]
    for guard, loops in used:
        if loops and used_variables(guard, outer):
            data |= loops
    grown = True
    while grown:
        before = len(data)
        for _, loops in used:
            if loops & data:
                data |= loops
        for var in list(data):
            data = data.union(*[used_variables(end, bounds) for end in bounds[var]])
        grown = len(data) > before
    return data, [guard for guard, loops in used if not loops or loops & data]


def reducing_variables(realize: BlockRealize) -> set[Var]:
    """The variables that reduction axes of a block are bound to, and no data axis is."""
    axes = list(zip(realize.block.iter_vars, realize.iter_values, strict=True))
    data = {var for axis, value in axes if axis.iter_type != IterType.CommReduce for var in variables_of(value)}
    return {
        var for axis, value in axes if axis.iter_type == IterType.CommReduce for var in variables_of(value)
    } - data


def used_variables(root: Node, variables: Container[Var]) -> set[Var]:
    """Those of `variables` that `root` uses."""
    return {node for node in variables_of(root) if node in variables}


@lru_cache(maxsize=8192)  # bindings and conditions are asked about in every step, and change in few
def variables_of(root: Node) -> frozenset[Var]:
    """The variables in an expression."""
    return frozenset([root]) if isinstance(root, Var) else frozenset(collect(root, Var))


def _buffers_in(root: Node) -> set[Buffer]:
    return set(collect(root, Buffer))


def _own_matches(init: Stmt, matches: Sequence[MatchBufferRegion]) -> tuple[Stmt, list[MatchBufferRegion]]:
    """The init with names of its own for the sub-buffers it uses, and their declarations."""
    used = _buffers_in(init)
    kept = []
    for match in matches:
        old = match.buffer
        if old not in used:
            continue
        # Whatever variables the declaration binds are bound a second time in the init block: rename them all.
        bound = [old.data, *[e for e in (*old.shape, *old.strides, old.elem_offset) if isinstance(e, Var)]]
        renamed = {var: Var(var.name, var.type_annotation) for var in bound}
        own = substitute(old, renamed)
        init = substitute(init, renamed, {old: own})
        kept.append(MatchBufferRegion(own, match.source))
    return init, kept


def _missing(writes: Sequence[BufferRegion], reads: Sequence[BufferRegion]) -> list[BufferRegion]:
    """The written regions that are not among the reads."""
    return [write for write in writes if not any(_same(write, read) for read in reads)]


def _same(a: object, b: object) -> bool:
    """Whether two regions are written alike (over the same variables and buffers)."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Node):
        if isinstance(a, (Var, Buffer)):
            return False
        return _same(_field_values(a), _field_values(b))
    if isinstance(a, tuple) and isinstance(b, tuple):
        for x, y in zip(a, b, strict=False):
            if not _same(x, y):
                return False
        return len(a) == len(b)
    return a == b


def _field_values(node: object) -> tuple[object, ...]:
    return tuple([getattr(node, field.name) for field in type(node).node_fields])  # type: ignore[attr-defined]
