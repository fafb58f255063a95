"""Nests: a computation as loops over stores, in terms of loop variables alone. What is compared when matching.

for i, k in T.grid(16, 4):                              loops  i 16, k 4
    with T.block("update"):                     →       store  C[i] = C[i] + A[k] * B[i, k]
        vi, vk = T.axis.remap("SR", [i, k])
        C[vi] = C[vi] + A[vk] * B[vi, vk]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopwright.arith import Analyzer, detect_iter_map
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    For,
    IntImm,
    IterType,
    LetStmt,
    Node,
    Range,
    SeqStmt,
    Stmt,
    Var,
    conjuncts,
    is_no_op,
    pre_order_visit,
    structural_equal,
    substitute,
    uses_var,
)


class NotANest(Exception):
    """A statement is no nest of loops over stores; the message completes "it …"."""

    def __init__(self, problem: str, at: Stmt | None = None) -> None:
        super().__init__(problem)
        self.at = at


class Nest(NamedTuple):
    """Loops, outermost first, around stores; `init` are those of the block's init, in data loops alone."""

    loops: Sequence[For]
    stores: Sequence[BufferStore]
    init: Sequence[BufferStore]
    reduced: frozenset[Var]  # loops that run over reduction axes only
    leaf: Block | None  # the innermost block

    def extent(self, var: Var) -> int:
        """How many iterations a loop has."""
        loop = next(loop for loop in self.loops if loop.loop_var is var)
        assert isinstance(loop.extent, IntImm)
        return loop.extent.value

    def facts(self) -> Analyzer:
        """What is known inside the loops."""
        facts = Analyzer()
        for loop in self.loops:
            facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
        return facts


def nest_of(statement: Stmt) -> Nest:
    """The statement as a nest; raises NotANest."""
    reader = _Reader()
    reader.read(statement)
    return reader.nest()


class _Reader:
    def __init__(self) -> None:
        self.loops: list[For] = []
        self.values: dict[Var, Expr] = {}
        self.lets: dict[Var, Expr] = {}
        self.stores: list[BufferStore] = []
        self.init: list[BufferStore] = []
        self.leaf: Block | None = None
        self.axes: list[tuple[IterType, Expr]] = []

    def read(self, statement: Stmt) -> None:
        if isinstance(statement, For):
            if not isinstance(statement.extent, IntImm):
                raise NotANest(f"has a loop {statement.loop_var.name} of extent {statement.extent}", statement)
            self.loops.append(statement)
            self.read(statement.body)
        elif isinstance(statement, BlockRealize):
            self._block(statement)
        elif isinstance(statement, LetStmt):
            self.lets[statement.var] = self._here(statement.value)
            self.read(statement.body)
        else:
            self.stores = self._stores(statement)

    def _block(self, realize: BlockRealize) -> None:
        block = realize.block
        if block.match_buffers or block.alloc_buffers:
            raise NotANest(f"has a block {block.name_hint!r} with buffers of its own", realize)
        guards = conjuncts(realize.predicate)
        if guards:
            raise NotANest(f"runs its block {block.name_hint!r} only where {guards[0]}", realize)
        self.axes = []  # those of the innermost block
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self.values[axis.var] = self._here(value)
            self.axes.append((axis.iter_type, self.values[axis.var]))
        self.leaf = block
        if block.init is not None:
            self.init = self._stores(block.init)
        self.read(block.body)

    def _here(self, expr: Expr) -> Expr:
        return substitute(expr, {**self.values, **self.lets})

    def _stores(self, statement: Stmt) -> list[BufferStore]:
        result = []
        for item in statement.seq if isinstance(statement, SeqStmt) else [statement]:
            if not isinstance(item, BufferStore):
                if is_no_op(item):
                    continue
                raise NotANest(f"has a {type(item).__name__} among its stores", item)
            result.append(substitute(item, {**self.values, **self.lets}))
        return result

    def nest(self) -> Nest:
        if not self.stores:
            raise NotANest("stores nothing")
        data = [value for kind, value in self.axes if kind != IterType.CommReduce]
        reduced = [value for kind, value in self.axes if kind == IterType.CommReduce]
        only = [
            loop.loop_var for loop in self.loops if _uses(reduced, loop.loop_var) and not _uses(data, loop.loop_var)
        ]
        return Nest(self.loops, self.stores, self.init, frozenset(only), self.leaf)


def _uses(exprs: Sequence[Expr], var: Var) -> bool:
    return any(uses_var(expr, lambda used: used is var) for expr in exprs)


def loads_of(root: Node) -> list[BufferLoad]:
    """Every load below, in order."""
    result: list[BufferLoad] = []
    pre_order_visit(root, lambda node: result.append(node) if isinstance(node, BufferLoad) else None)
    return result


def check_pattern(nest: Nest, parameters: Sequence[Buffer]) -> None:
    """A description means the same in whatever order its iterations run; raises NotANest where it does not."""
    stored = {store.buffer for store in nest.stores}
    if len(stored) < len(nest.stores):
        raise NotANest("stores a buffer more than once", nest.stores[0])
    for store in nest.stores:
        mine = [load for load in loads_of(store.value) if load.buffer in stored]
        cells = [load for load in mine if structural_equal(load.indices, store.indices)]
        if len(cells) < len(mine):
            raise NotANest(f"loads {mine[0].buffer.name} at another cell than it stores", store)
        alone = {index for index in store.indices if isinstance(index, Var)}
        missing = [
            loop.loop_var.name
            for loop in nest.loops
            if loop.loop_var not in alone and not _is_unit(loop) and loop.loop_var not in nest.reduced
        ]
        if missing and _counts_once(nest, store):
            missing = []
        if missing or (not mine and nest.reduced - _units(nest)):
            names = ", ".join(missing or [var.name for var in nest.reduced])
            raise NotANest(f"stores one cell of {store.buffer.name} in several iterations of {names}", store)
    facts = nest.facts()
    touched: list[BufferLoad | BufferStore] = [load for store in nest.stores for load in loads_of(store)]
    touched += nest.stores
    for buffer in parameters:
        uses = [use for use in touched if use.buffer is buffer]
        if not uses:
            raise NotANest(f"does not use its parameter {buffer.name}")
        for dim, size in enumerate(buffer.shape):
            bounds = [facts.const_int_bound(use.indices[dim]) for use in uses]
            low, high = min(bound.min_value for bound in bounds), max(bound.max_value for bound in bounds)
            if not isinstance(size, IntImm) or (low, high) != (0, size.value - 1):
                message = f"uses {buffer.name} from {low} to {high} in dimension {dim}, whose extent is {size}"
                raise NotANest(message)
    for use in touched:
        if use.buffer not in parameters:
            raise NotANest(f"uses {use.buffer.name}, which is no parameter")


def _counts_once(nest: Nest, store: BufferStore) -> bool:
    """Whether the indices of a store count the iterations of its data loops, each once."""
    loops = [loop for loop in nest.loops if loop.loop_var not in nest.reduced and not _is_unit(loop)]
    domains = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
    return bool(detect_iter_map(list(store.indices), domains, check_level="bijective").indices)


def _is_unit(loop: For) -> bool:
    return isinstance(loop.extent, IntImm) and loop.extent.value == 1


def _units(nest: Nest) -> set[Var]:
    return {loop.loop_var for loop in nest.loops if _is_unit(loop)}
