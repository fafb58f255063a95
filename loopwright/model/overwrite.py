"""overwrite: whether a kernel, as scheduled, may write an output over an input.

    for i0, i1 in T.grid(8, 64):
        with T.block("B"):
            vi = T.axis.spatial(512, i0 * 64 + i1)
            B[vi] = T.max(A[vi], T.float32(0))          yes: A[vi] is read to write B[vi], and never again

It may when one statement writes the output, each element once, and whatever is read of the input is the element that
the statement writes. A schedule can spoil that: a sum gathered in the output itself, an element computed twice, a tile
of the input copied first. Then the answer is no, and the output gets memory of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loopwright.arith import Analyzer, detect_iter_map
from loopwright.arith.index_arithmetic import in_64_bits
from loopwright.ir import (
    LT,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    For,
    IterType,
    Node,
    PrimFunc,
    Range,
    Stmt,
    Var,
    const,
    structural_equal,
)
from loopwright.ir.conditions import is_true
from loopwright.ir.deep import deep
from loopwright.ir.visitor import Visitor


@deep
def may_overwrite(function: PrimFunc, read: int, written: int) -> bool:
    """Whether the parameter at position `written` may be the same memory as the one at `read`."""
    source, target = (function.buffer_map.get(function.params[k]) for k in (read, written))
    if source is None or target is None or source.strides or target.strides or source.dtype is not target.dtype:
        return False
    if len(source.shape) != len(target.shape):
        return False
    if not all(structural_equal(a, b) for a, b in zip(source.shape, target.shape, strict=True)):
        return False
    result = _Accesses(source, target)
    result.visit(function.body)
    return result.are_element_wise()


class _Accesses(Visitor):
    """Every access of the two buffers, and the loops and the block around it."""

    def __init__(self, source: Buffer, target: Buffer) -> None:
        self.source, self.target = source, target
        self.loops: dict[Var, Range] = {}
        self.block: BlockRealize | None = None
        self.inner_loops = 0  # within the innermost block
        self.stores: list[tuple[BufferStore, BlockRealize | None, dict[Var, Range]]] = []
        self.loads: list[tuple[BufferLoad, BlockRealize | None]] = []
        self.is_clear = True

    def are_element_wise(self) -> bool:
        if not self.is_clear or len(self.stores) != 1:
            return False
        store, realize, loops = self.stores[0]
        if realize is None or any([block is not realize for _, block in self.loads]):
            return False
        for load, _ in self.loads:
            if not all(structural_equal(a, b) for a, b in zip(load.indices, store.indices, strict=True)):
                return False
        return self._writes_once(realize, loops)

    def _writes_once(self, realize: BlockRealize, loops: dict[Var, Range]) -> bool:
        """Whether each element is written by one iteration. All are written: that is what a kernel is for.

        So it is a matter of counting: as many iterations as elements. Under a guard, iterations are counted by the
        number that the guard limits, if that tells them apart; else each value of the block's axes must come from one
        iteration, and there must be as many values as elements.
        """
        analyzer = Analyzer()
        elements, guard = _product(self.target.shape), realize.predicate
        axes = realize.block.iter_vars
        if not all([axis.iter_type is IterType.DataPar and axis.dom is not None for axis in axes]):
            return False

        def told_apart_by(values: Sequence[Expr]) -> bool:
            return bool(detect_iter_map(values, loops, guard, "bijective").indices)

        if is_true(guard):
            iterations = _product([loop.extent for loop in loops.values()])
            if analyzer.can_prove_equal(iterations, elements):
                return True
        elif isinstance(guard, LT) and analyzer.can_prove_equal(in_64_bits(guard.b), elements):
            if told_apart_by([analyzer.simplify(guard.a)]):
                return True
        values = _product([axis.dom.extent for axis in axes if axis.dom is not None])
        return analyzer.can_prove_equal(values, elements) and told_apart_by(realize.iter_values)

    def visit_For(self, loop: For) -> None:
        self.loops[loop.loop_var] = Range(loop.min, loop.extent)
        self.inner_loops += 1
        self.visit_children(loop)
        self.inner_loops -= 1
        del self.loops[loop.loop_var]

    def visit_While(self, loop: Stmt) -> None:
        self.is_clear = False

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        outer, outer_loops = self.block, self.inner_loops
        if outer is not None and outer.block.iter_vars:
            self.is_clear = self.is_clear and not self._touches(realize)  # blocks in blocks: not looked into
        self.block, self.inner_loops = realize, 0
        self.visit_children(realize)
        self.block, self.inner_loops = outer, outer_loops

    def visit_Block(self, block: Block) -> None:
        if block.init is not None and self._touches(block.init):
            self.is_clear = False
        if any([region.source.buffer in (self.source, self.target) for region in block.match_buffers]):
            self.is_clear = False
        self.visit(block.body)

    def visit_BufferStore(self, store: BufferStore) -> None:
        if store.buffer.data is self.target.data:
            if store.buffer is not self.target or self.inner_loops or self.block is None:
                self.is_clear = False
            self.stores.append((store, self.block, dict(self.loops)))
        elif store.buffer.data is self.source.data:
            self.is_clear = False
        self.visit_children(store)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        if load.buffer.data is self.target.data:
            self.is_clear = False
        elif load.buffer.data is self.source.data:
            if load.buffer is not self.source:
                self.is_clear = False
            self.loads.append((load, self.block))
        self.visit_children(load)

    def visit_Var(self, var: Var) -> None:
        if var in (self.source.data, self.target.data):
            self.is_clear = False  # its address goes somewhere

    def _touches(self, root: Node) -> bool:
        inner = _Accesses(self.source, self.target)
        inner.visit(root)
        return bool(inner.stores or inner.loads or not inner.is_clear)


def _product(extents: Iterable[Expr]) -> Expr:
    total: Expr = const(1, "int64")
    for extent in extents:
        total = total * in_64_bits(extent)
    return total
