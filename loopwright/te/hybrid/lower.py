"""A hybrid function becomes blocks: one for each of its statements, inside the loops it wrote, of the kinds it wrote.

    for i in parallel(n):                     →    for i in T.parallel(n):
        s = 0.0                                        with T.block("scope"):                  memory of the loop
        for j in range(m):                                 v_i = T.axis.spatial(n, i)
            s += a[i, j]                                   s = T.alloc_buffer((1,))
        b[i] = s                                           with T.block("s"): s[0] = 0.0
                                                           for j in range(m):
                                                               with T.block("s_1"): s[0] = s[0] + a[v_i, v_j]
                                                           with T.block("b"): b[v_i] = s[0]

A condition without loops inside is one block. Memory that a loop makes belongs to a block around what uses it, so that
every iteration has its own, in parallel loops as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from loopwright.ir import (
    AssertStmt,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Expr,
    For,
    IfThenElse,
    IterType,
    IterVar,
    Node,
    ProducerRealize,
    ProducerStore,
    Range,
    SeqStmt,
    Stmt,
    Var,
    any_statement,
    const,
    decl_buffer,
    no_op,
    pre_order_visit,
    seq,
    structural_equal,
    uses_var,
)
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import SourceLine
from loopwright.script.parser.regions import infer_regions
from loopwright.te.free_variables import free_variables
from loopwright.te.function_in_making import FunctionInMaking, Names, identifier
from loopwright.te.hybrid.operation import HybridOp
from loopwright.te.lower_body import BodyLowering
from loopwright.te.operation import has_load
from loopwright.te.tensor import Tensor


class _Loop(NamedTuple):
    """A loop between the block around and the statement: its variable in the function, and the one it has now."""

    source: Var
    var: Var
    domain: Range


def lower_hybrid(making: FunctionInMaking, op: HybridOp) -> Stmt:
    """The statements of one hybrid function."""
    for k, output in enumerate(op.outputs):
        making.buffers[output] = making.buffer_of(op.output(k))
    lowering = _Lowering(making, op)
    body = lowering.statement(op.body)
    making.use_all([var for var in free_variables(body) if var.dtype.kind != "handle"], op.name)
    return body


class _Lowering:
    def __init__(self, making: FunctionInMaking, op: HybridOp) -> None:
        self.making = making
        self.op = op
        self.loops: list[_Loop] = []  # inside the innermost block
        self.variables: dict[Var, Expr] = {}  # loop variables of the source → what they are here
        self.loop_names = Names()
        self.in_loops = False

    # --- expressions ----------------------------------------------------------------------------------------------

    def expressions(self, axes: Sequence[IterVar] = ()) -> BodyLowering:
        """What rewrites the expressions of one statement."""
        result = BodyLowering(self.making.buffers, self.variables, self.making.index)
        result.bind(axes)
        return result

    # --- statements -----------------------------------------------------------------------------------------------

    def statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, SeqStmt):
            return self.sequence(stmt.seq)
        if isinstance(stmt, For):
            return self.loop(stmt)
        if isinstance(stmt, ProducerRealize):
            return self.memory(stmt)
        if isinstance(stmt, IfThenElse):
            return self.condition(stmt)
        if isinstance(stmt, AssertStmt):
            return self.sequence([stmt])
        if isinstance(stmt, ProducerStore):
            return self.block(stmt, stmt.producer.name)
        return stmt

    def sequence(self, statements: Sequence[Stmt]) -> Stmt:
        result: list[Stmt] = []
        for position, stmt in enumerate(statements):
            if isinstance(stmt, AssertStmt):
                if has_load(stmt.condition):
                    result.append(self.block(stmt, "check"))
                    continue
                # What holds for sizes and loop variables holds for all that follows, and helps to prove it right.
                rest = self.sequence(statements[position + 1 :])
                condition = self.expressions().value(stmt.condition)
                return seq([*result, AssertStmt(condition, stmt.message, rest)])
            result.append(self.statement(stmt))
        return seq(result)

    def loop(self, stmt: For) -> Stmt:
        lowering = self.expressions()
        low, extent = lowering.index(stmt.min), lowering.index(stmt.extent)
        var = Var(self.loop_names.fresh(identifier(stmt.loop_var.name)), self.making.index.of(stmt.loop_var))
        self.loop_names.taken.discard(var.name)  # loops one after the other may share a name
        used = self.loop_names.taken
        self.loop_names.taken = {*used, var.name}
        outer, was_in_loops = self.loops, self.in_loops
        self.loops = [*outer, _Loop(stmt.loop_var, var, Range.from_min_extent(low, extent))]
        self.variables[stmt.loop_var] = var
        self.making.loops.setdefault(self.op, {})[stmt.loop_var] = var
        self.in_loops = True
        body = self.statement(stmt.body)
        self.loops, self.in_loops, self.loop_names.taken = outer, was_in_loops, used
        thread = stmt.thread_binding
        if thread is not None:
            tag = thread.thread_tag
            thread = IterVar(Range.from_min_extent(low, extent), Var(tag, var.dtype), IterType.ThreadIndex, tag)
        return For(var, low, extent, stmt.kind, body, thread)

    def condition(self, stmt: IfThenElse) -> Stmt:
        if not _has_structure(stmt):
            return self.block(stmt, _first_stored(stmt) or self.op.name)
        if has_load(stmt.condition):
            # Loops that data decides about stand in a block of their own: memory is read in blocks only.
            return self.around(lambda: self._choice(stmt), (), f"{self.op.name}_if")
        return self._choice(stmt)

    def _choice(self, stmt: IfThenElse) -> Stmt:
        condition = self.expressions().value(stmt.condition)
        then = self.statement(stmt.then_case)
        return IfThenElse(condition, then, None if stmt.else_case is None else self.statement(stmt.else_case))

    def memory(self, stmt: ProducerRealize) -> Stmt:
        """Memory of the function lives at its root; memory of a loop in a block inside that loop."""
        buffers: list[Buffer] = []
        body: Stmt = stmt
        while isinstance(body, ProducerRealize):
            tensor = body.producer
            assert isinstance(tensor, Tensor)
            name = self.making.names.fresh(identifier(tensor.name))
            shape = [self.expressions().index(size) for size in tensor.shape]
            buffer = decl_buffer(shape, tensor.dtype, name, scope=body.storage_scope)
            self.making.buffers[tensor] = buffer
            buffers.append(buffer)
            body = body.body
        inner = body
        if not self.in_loops:
            self.making.allocated += buffers
            return self.statement(inner)
        return self.around(lambda: self.statement(inner), buffers, f"{self.op.name}_scope")

    # --- blocks ---------------------------------------------------------------------------------------------------

    def around(self, make_body: Callable[[], Stmt], buffers: Sequence[Buffer], name: str) -> Stmt:
        """A block around statements that are lowered inside it, with memory of its own."""
        label = self.making.block_names.fresh(name)
        outer, saved = self.loops, dict(self.variables)
        axes = self._axes()
        self.loops = []
        body = make_body()
        self.loops, self.variables = outer, saved
        kinds = dict.fromkeys([axis.var for axis in axes], IterType.Opaque)
        return self._realize(axes, kinds, label, body, buffers)

    def block(self, stmt: Stmt, name: str) -> Stmt:
        """One statement as a block."""
        saved = dict(self.variables)
        axes = self._axes()
        body = self._plain(stmt, self.expressions(axes))
        self.variables = saved
        label = self.making.block_name(self.op, identifier(name))
        return self._realize(axes, _axis_kinds([axis.var for axis in axes], body), label, body, ())

    def _axes(self) -> list[IterVar]:
        """An axis for every loop inside the innermost block; from here on they stand for the loop variables."""
        axes = []
        for loop in self.loops:
            var = Var(f"v_{loop.var.name}", loop.var.dtype)
            self.variables[loop.source] = var
            axes.append(IterVar(loop.domain, var, IterType.Opaque))
        return axes

    def _realize(
        self,
        axes: Sequence[IterVar],
        kinds: dict[Var, IterType],
        name: str,
        body: Stmt,
        buffers: Sequence[Buffer],
    ) -> Stmt:
        used = [
            (loop, axis) for loop, axis in zip(self.loops, axes, strict=True) if axis.var in _variables(body, buffers)
        ]
        iter_vars = [IterVar(axis.dom, axis.var, kinds[axis.var]) for _, axis in used]
        values: list[Expr] = [loop.var for loop, _ in used]
        if not iter_vars:
            unit = self.making.index.override or DataType("int32")
            once = Range.from_min_extent(const(0, unit), const(1, unit))
            iter_vars, values = [IterVar(once, Var("vi", unit), IterType.DataPar)], [const(0, unit)]
        block = Block(tuple(iter_vars), (), (), name, body, alloc_buffers=tuple(buffers))
        reads, writes = infer_regions(block, SourceLine(self.op.name, 0))
        block = block.with_(reads=tuple(reads), writes=tuple(writes))
        return BlockRealize(tuple(values), const(True), block)

    def _plain(self, stmt: Stmt, lowering: BodyLowering) -> Stmt:
        """A statement without loops, on buffers."""
        if isinstance(stmt, SeqStmt):
            return seq([self._plain(part, lowering) for part in stmt.seq])
        if isinstance(stmt, ProducerStore):
            assert isinstance(stmt.producer, Tensor)
            indices = tuple([lowering.index(index) for index in stmt.indices])
            return BufferStore(self.making.buffers[stmt.producer], lowering.value(stmt.value), indices)
        if isinstance(stmt, IfThenElse):
            otherwise = None if stmt.else_case is None else self._plain(stmt.else_case, lowering)
            return IfThenElse(lowering.value(stmt.condition), self._plain(stmt.then_case, lowering), otherwise)
        if isinstance(stmt, AssertStmt):
            return AssertStmt(lowering.value(stmt.condition), stmt.message, no_op())
        return stmt


def _variables(body: Stmt, buffers: Sequence[Buffer]) -> set[Var]:
    result = set(free_variables(body))
    for buffer in buffers:
        for size in buffer.shape:
            uses_var(size, lambda var: bool(result.add(var)))  # type: ignore[func-returns-value]
    return result


def _has_structure(stmt: Stmt) -> bool:
    """Whether there are loops or memory inside."""
    return any_statement(stmt, lambda node: isinstance(node, (For, ProducerRealize)))


def _first_stored(stmt: Stmt) -> str | None:
    result: list[str] = []
    pre_order_visit(stmt, lambda node: result.append(node.producer.name) if isinstance(node, ProducerStore) else None)
    return result[0] if result else None


def _axis_kinds(variables: Sequence[Var], body: Stmt) -> dict[Var, IterType]:
    """A variable that says which element is stored is spatial, if the block reads no other element of that buffer."""
    stores: list[BufferStore] = []
    loads: list[BufferLoad] = []

    def look(node: Node) -> None:
        if isinstance(node, BufferStore):
            stores.append(node)
        elif isinstance(node, BufferLoad):
            loads.append(node)

    pre_order_visit(body, look)
    kinds: dict[Var, IterType] = {}
    for var in variables:
        named = bool(stores) and all(any(index is var for index in store.indices) for store in stores)
        others = [load for load in loads for store in stores if load.buffer is store.buffer and not _same(load, store)]
        kinds[var] = IterType.Opaque if not named else IterType.Ordered if others else IterType.DataPar
    return kinds


def _same(load: BufferLoad, store: BufferStore) -> bool:
    return all([structural_equal(a, b) for a, b in zip(load.indices, store.indices, strict=True)])
