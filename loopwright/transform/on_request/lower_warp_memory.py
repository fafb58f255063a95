"""lower_warp_memory: what the lanes of a warp hold together becomes memory of each lane.

    tx = T.launch_thread("threadIdx.x", 32)                      →    tx = T.launch_thread("threadIdx.x", 32)
    C = T.decl_buffer((2 * 256,), scope="warp")                       C = T.decl_buffer((2 * 8,), scope="local")
    T.mma_fill("float32", 8, C.data, i * 256 + tx * 8)                T.mma_fill("float32", 8, C.data, i * 8)
    D[tx, k] = C[i * 256 + tx * 8 + k]                                D[tx, k] = C[i * 8 + k]

An index of such memory is `32 * m * row + m * lane + k`, with `m` elements of each lane in a row. A lane that wants an
element of another one is refused. So is every access, element by element, to an operand of `ptx_mma`: the instructions
`mma_ldmatrix_…` describe where an element goes by TVM's layouts, which are not those of the machine for all of them.

Needs: buffers of one dimension (`flatten_buffers`), threads launched by attributes.  Leaves: no memory of scope "warp".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loopwright.analysis.thread_axes import axis_of, scope_of, tag_of
from loopwright.arith import Analyzer, linear_coefficients
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    DeclBuffer,
    Expr,
    For,
    IntImm,
    LetStmt,
    Node,
    PointerType,
    PrimFunc,
    Range,
    Rewriter,
    Stmt,
    Var,
    any_statement,
    collect,
    const,
    deep,
    substitute,
    uses_var,
)
from loopwright.ir.matrix_intrinsics import LANE_OPERANDS
from loopwright.ir.passes import function_pass
from loopwright.transform.errors import LoweringError

_WARP: Final = 32
_LANES: Final = "threadIdx.x"
_OPERANDS: Final = (6, 8)  # A and B among the arguments of ptx_mma


class NotThisLane(LoweringError, ValueError):
    """Memory of scope "warp" is used in a way that gives a lane no part of its own.

    A lane has the elements at `32 * m * row + m * lane + k`, where `m` is the same for the whole buffer. It loads and
    stores no others; values of other lanes come by shuffles (`T.tvm_warp_shuffle`) or through shared memory. Operands
    of `ptx_mma` are touched by instructions alone.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(32), B: T.Buffer(32)):
            tx = T.launch_thread("threadIdx.x", 32)
            W = T.decl_buffer((32,), scope="warp")
            W[tx] = A[tx]
            T.tvm_storage_sync("shared")
            B[tx] = W[31 - tx]

        loopwright.build(f, target="cuda")
    """

    code = "LW0739"

    def __init__(self, problem: str, at: Node, hint: str | None = None) -> None:
        super().__init__(f"lower_warp_memory: {problem}", at=at, hint=hint)


class _Parts:
    """What one kernel does with memory of warps."""

    def __init__(self, body: Stmt) -> None:
        self.owned: dict[Var, int] = {}  # elements of a lane in a row, by memory
        self.operands = {
            node.args[k]
            for node in collect(body, Call)
            if node.op.name == "tir.ptx_mma"
            for k in _OPERANDS
            if k < len(node.args)
        }


def _is_warp(data: object) -> bool:
    return isinstance(data, Var) and data.dtype.kind == "handle" and scope_of(data) == "warp"


def _indices(node: Node) -> Iterator[tuple[Var, Expr]]:
    """The memory of warps that a node touches, and at which index."""
    if isinstance(node, (BufferLoad, BufferStore)) and _is_warp(node.buffer.data):
        yield node.buffer.data, node.indices[0]
    elif isinstance(node, Call) and node.op.name in LANE_OPERANDS:
        for position, offset in LANE_OPERANDS[node.op.name].items():
            data = node.args[position] if offset < len(node.args) else None
            if isinstance(data, Var) and _is_warp(data):
                yield data, node.args[offset]


class _Walk(Rewriter):
    """Knows the ranges of loops, and which variable tells the lanes apart."""

    def __init__(self, parts: _Parts) -> None:
        self.parts = parts
        self.facts = Analyzer()
        self.thread: Var | None = None  # along x
        self.lane, self.warp = Var("lane", "int32"), Var("warp", "int32")

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        tag = tag_of(node)
        if tag:
            var = axis_of(node).var
            self.facts.bind(var, Range.from_min_extent(const(0, var.dtype), node.value))
            if tag == _LANES:
                self.thread, self.lane, self.warp = var, Var("lane", var.dtype), Var("warp", var.dtype)
                if not isinstance(node.value, IntImm) or node.value.value % _WARP != 0:
                    problem = f"the kernel has {node.value} threads along x, and memory of warps has parts of 32 lanes"
                    raise NotThisLane(problem, node, "bind a loop of 32 iterations to threadIdx.x")
                for part, extent in ((self.lane, _WARP), (self.warp, node.value.value // _WARP)):
                    self.facts.bind(part, Range.from_min_extent(const(0, var.dtype), const(extent, var.dtype)))
        result: Stmt = self.rebuild(node)
        return result

    def visit_For(self, loop: For) -> Stmt:
        self.facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
        result: Stmt = self.rebuild(loop)
        return result

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        if let.var.dtype.is_int:
            self.facts.bind(let.var, let.value)
        result: Stmt = self.rebuild(let)
        return result

    def split(self, data: Var, index: Expr, at: Node) -> tuple[int, Expr]:
        """How many elements a lane has in a row, and what is left of the index without the lane."""
        if self.thread is None:
            raise NotThisLane(f"{data.name} is used where no threads run along x", at)
        thread = self.lane if self.facts.can_prove(self.warp <= 0) else self.warp * _WARP + self.lane
        parts = self.facts.simplify(substitute(index, {self.thread: thread}))
        linear = linear_coefficients(parts, [self.lane], self.facts)
        factor = linear[0][0] if linear is not None else None
        if linear is None or not isinstance(factor, IntImm) or uses_var(linear[1], self.warp.__eq__):
            raise NotThisLane(f"index {index} of {data.name} is not that of one lane", at, _HINT)
        return factor.value, linear[1]


_HINT: Final = "write it as 32 * m * row + m * lane + k; other lanes' values come by T.tvm_warp_shuffle"


class _FindParts(_Walk):
    """How many elements of each memory a lane has in a row."""

    def visit_Node(self, node: Node) -> Node:
        for data, index in _indices(node):
            if isinstance(node, (BufferLoad, BufferStore)) and data in self.parts.operands:
                problem = f"{data.name} is an operand of ptx_mma, and touched element by element"
                hint = "have mma_ldmatrix_… load it (sch.tensorize), or put it into local memory"
                raise NotThisLane(problem, node, hint)
            count, _ = self.split(data, index, node)
            if count == 0 and isinstance(node, Call):
                continue  # what all lanes say alike is meant for each of them
            known = self.parts.owned.setdefault(data, count)
            if count <= 0 or known != count:
                problem = f"a lane has {count} elements of {data.name} here, and {known} elsewhere"
                raise NotThisLane(problem if count > 0 else f"index {index} of {data.name} names no lane", node, _HINT)
        return self.rebuild(node)

    def visit_BufferLoad(self, node: BufferLoad) -> Expr:
        result = self.visit_Node(node)
        assert isinstance(result, Expr)
        return result

    def visit_Call(self, node: Call) -> Expr:
        result = self.visit_Node(node)
        assert isinstance(result, Expr)
        return result

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        result = self.visit_Node(node)
        assert isinstance(result, Stmt)
        return result


class _LowerWarpMemory(_Walk):
    def __init__(self, parts: _Parts) -> None:
        super().__init__(parts)
        self.memory: dict[Var, Var] = {}
        self.buffers: dict[Buffer, Buffer] = {}

    def own(self, data: Var, index: Expr, at: Node) -> Expr:
        """The index in the lane's own memory."""
        count = self.parts.owned.get(data)
        if count is None:
            raise NotThisLane(f"no index of {data.name} names a lane", at, _HINT)
        _, rest = self.split(data, index, at)
        size = const(count * _WARP, rest.dtype)
        row, k = self.facts.simplify(rest // size), self.facts.simplify(rest % size)
        if not (self.facts.can_prove(k >= 0) and self.facts.can_prove(k < count)):
            problem = f"index {index} of {data.name}, where a lane has {count} elements, may be one of another lane"
            raise NotThisLane(problem, at, _HINT)
        return self.facts.simplify(row * count + k)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        data = node.buffer_var
        if not _is_warp(data):
            return self.rebuild(node)
        size = node.extents[0] if len(node.extents) == 1 else None
        if not isinstance(size, IntImm) or size.value % _WARP != 0:
            raise NotThisLane(f"{data.name} has {size} elements, which 32 lanes cannot share", node)
        annotation = data.type_annotation
        assert isinstance(annotation, PointerType)
        own = self.memory[data] = Var(data.name, PointerType(annotation.element_type, "local"))
        extents = (const(size.value // _WARP, size.dtype),)
        return Allocate(own, node.dtype, extents, node.condition, self.visit(node.body))

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        if node.buffer.data not in self.memory:
            return self.rebuild(node)
        return DeclBuffer(self.buffer(node.buffer), self.visit(node.body))

    def buffer(self, buffer: Buffer) -> Buffer:
        """The same buffer in the lane's own memory."""
        result = self.buffers.get(buffer)
        if result is None:
            size = buffer.shape[0]
            assert isinstance(size, IntImm)
            shape = (const(size.value // _WARP, size.dtype),)
            result = self.buffers[buffer] = buffer.with_(data=self.memory[buffer.data], shape=shape)
        return result

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        if load.buffer.data not in self.memory:
            return self.rebuild(load)
        index = self.own(load.buffer.data, load.indices[0], load)
        return BufferLoad(self.buffer(load.buffer), (index,))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        if store.buffer.data not in self.memory:
            return self.rebuild(store)
        index = self.own(store.buffer.data, store.indices[0], store)
        return BufferStore(self.buffer(store.buffer), self.visit(store.value), (index,))

    def visit_Call(self, call: Call) -> Expr:
        args = list(call.args)
        for position, offset in LANE_OPERANDS.get(call.op.name, {}).items():
            data = args[position] if offset < len(args) else None
            if isinstance(data, Var) and data in self.memory:
                args[offset] = self.own(data, args[offset], call)
        if all([new is old for new, old in zip(args, call.args, strict=True)]):
            return self.rebuild(call)
        return self.rebuild(call.with_(args=tuple(args)))

    def visit_Var(self, var: Var) -> Expr:
        return self.memory.get(var, var)


@function_pass
@deep
def lower_warp_memory(func: PrimFunc) -> PrimFunc:
    """Memory of scope "warp" becomes memory of each lane."""
    if not any_statement(func.body, lambda node: isinstance(node, Allocate) and _is_warp(node.buffer_var)):
        return func
    parts = _Parts(func.body)
    _FindParts(parts).visit(func.body)
    return func.with_(body=_LowerWarpMemory(parts).visit(func.body))
