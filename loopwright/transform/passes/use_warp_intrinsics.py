"""use_warp_intrinsics: what a tensor intrinsic of a warp describes becomes the instructions of its lanes.

    with T.attr("wmma_sync_16x16x16_f16f16f32", "tensor_intrin", 1):      →    T.tvm_mma_sync(C.data, i, A.data, k, …)
        for i, j, k in T.grid(16, 16, 16):
            C[i, j] = C[i, j] + A[i, k] * B[k, j]

`use_tensor_intrinsics` leaves the loops under an attribute, so that the passes between see what memory they touch:
which part of a buffer a block needs, how many versions of a tile a pipeline has. The loops are matched once more, and
the parameters of the intrinsic bound to the parts of buffers that they are now. Another attribute tells
`insert_barriers` what the instructions touch.

Needs: threads launched by attributes; no blocks.  Leaves: no such attribute, and no blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.analysis.thread_axes import axis_of, is_of_warp, tag_of
from loopwright.arith import Analyzer
from loopwright.ir import (
    AttrStmt,
    Block,
    BlockRealize,
    Buffer,
    BufferStore,
    Call,
    Expr,
    For,
    IntImm,
    IterType,
    IterVar,
    PrimFunc,
    Range,
    Rewriter,
    Stmt,
    StringImm,
    Var,
    any_statement,
    collect,
    const,
    deep,
    substitute,
    uses_var,
)
from loopwright.ir.annotations import TENSORIZED
from loopwright.ir.matrix_intrinsics import MATRIX_OPERANDS, READS, WRITES, with_regions
from loopwright.ir.operators import cast
from loopwright.ir.passes import function_pass
from loopwright.transform.passes.lower_blocks import lower_blocks
from loopwright.transform.passes.use_tensor_intrinsics import implemented, matched
from loopwright.transform.passes.write_allocations import write_allocations
from loopwright.transform.tensor_intrinsics import TensorIntrin

_LANES = "threadIdx.x"
_WARP = 32


class _UseWarpIntrinsics(Rewriter):
    def __init__(self, arguments: Sequence[Buffer]) -> None:
        self.arguments = arguments
        self.launched: AttrStmt | None = None  # the launch along which the lanes lie

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == TENSORIZED and isinstance(node.node, StringImm):
            return self._instructions(node, node.node.value)
        outer = self.launched
        if tag_of(node) == _LANES:
            self.launched = node
        result: Stmt = self.rebuild(node)
        self.launched = outer
        return result

    def _instructions(self, node: AttrStmt, name: str) -> Stmt:
        intrin = TensorIntrin.get(name)
        assert intrin is not None
        block = Block((), (), (), name, _as_block(node.body))
        match = matched(block, intrin, self.arguments)
        stored = {store.buffer for store in intrin.pattern.stores}
        touched = [
            (region, WRITES if parameter in stored else READS)
            for parameter, region in zip(intrin.parameters, match.regions, strict=True)
            if not is_of_warp(region.buffer.scope())
        ]
        result: Stmt = BlockRealize((), const(True), implemented(block, intrin, match))
        result = with_regions(result, touched)
        return result if self.launched is None else _Lanes(self.launched).visit(result)


class _Lanes(Rewriter):
    """The lanes that an implementation launches are threads that run already."""

    def __init__(self, launched: AttrStmt) -> None:
        self.lane = axis_of(launched).var
        self.is_one_warp = isinstance(launched.value, IntImm) and launched.value.value == _WARP

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if tag_of(node) != _LANES:
            return self.rebuild(node)
        own = axis_of(node).var
        lane = self.lane if self.is_one_warp else self.lane % _WARP
        return self.visit(substitute(node.body, {own: cast(lane, own.dtype)}))


class _SimplerArguments(Rewriter):
    """Which fragment it is, `(i * 1024 + j * 256) // 256`, is `i * 4 + j`."""

    def __init__(self) -> None:
        self.facts = Analyzer()

    def visit_For(self, loop: For) -> Stmt:
        self.facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
        result: Stmt = self.rebuild(loop)
        return result

    def visit_Call(self, call: Call) -> Expr:
        if call.op.name not in MATRIX_OPERANDS:
            return self.rebuild(call)
        numbers = [arg.dtype.is_int and not isinstance(arg, IntImm) for arg in call.args]
        args = [self.facts.simplify(arg) if is_int else arg for arg, is_int in zip(call.args, numbers, strict=True)]
        return call.with_(args=tuple(args))


def _as_block(nest: Stmt) -> Stmt:
    """The nest around a block, which says of each loop whether it reduces: no index of what is stored has it then."""
    loops: list[For] = []
    while isinstance(nest, For):
        loops.append(nest)
        nest = nest.body
    stores = collect(nest, BufferStore)
    values: dict[Var, Var] = {}
    axes = []
    for loop in loops:
        var = values[loop.loop_var] = Var(f"v_{loop.loop_var.name}", loop.loop_var.dtype)
        moves = any([uses_var(index, loop.loop_var.__eq__) for store in stores for index in store.indices])
        kind = IterType.DataPar if moves else IterType.CommReduce
        axes.append(IterVar(Range.from_min_extent(loop.min, loop.extent), var, kind))
    block = Block(tuple(axes), (), (), "update", substitute(nest, values))
    result: Stmt = BlockRealize(tuple([loop.loop_var for loop in loops]), const(True), block)
    for loop in reversed(loops):
        result = loop.with_(body=result)
    return result


def _is_marked(node: Stmt) -> bool:
    return isinstance(node, AttrStmt) and node.attr_key == TENSORIZED


@function_pass
@deep
def use_warp_intrinsics(func: PrimFunc) -> PrimFunc:
    """What a tensor intrinsic of a warp describes becomes the instructions of its lanes."""
    if not any_statement(func.body, _is_marked):
        return func
    body = _UseWarpIntrinsics(func.argument_buffers()).visit(func.body)
    result: PrimFunc = lower_blocks(write_allocations(func.with_(body=body)))
    return result.with_(body=_SimplerArguments().visit(result.body))
