"""FunctionEmitter: expressions and statements of lowered IR as LLVM instructions.

What comes in is the pipeline's last stage: loops from 0, one-dimensional buffers, pointer-wide indices, no blocks.
Each class of node has one method; calls of intrinsics go through the table in `calls.py`, arithmetic through
`arithmetic.py`, casts through `conversions.py`, parallel loops through `parallel.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from loopwright import ir
from loopwright.codegen.llvm.arithmetic import emit_binary, emit_compare
from loopwright.codegen.llvm.calls import emit_call
from loopwright.codegen.llvm.conversions import emit_cast
from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.module_text import ModuleText
from loopwright.codegen.llvm.parallel import emit_parallel
from loopwright.codegen.llvm.types import (
    float_literal,
    int_literal,
    memory_type,
    register_type,
    splat,
    travels_as_bits,
)
from loopwright.ir.visitor import Visitor
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import InternalError

# Larger allocations come from the workspace: threads have small stacks, and a stack overflow kills the process.
STACK_LIMIT_BYTES = 16384
ALIGNMENT = 64


class FunctionEmitter(Visitor):
    """Writes one function; `values` maps variables (pointers included) to registers."""

    def __init__(self, module: ModuleText, builder: FunctionBuilder, target: Any, bodies: Callable[..., str]) -> None:
        self.module = module
        self.b = builder
        self.target = target
        self.values: dict[ir.Var, str] = {}
        self.apart: set[ir.Var] = set()  # pointers to memory that no other pointer reaches
        self.no_wrap = ""  # " nsw" within index arithmetic, which never overflows
        self.workspaces: list[str] = []  # live heap memory, to be freed on the way out
        self.in_parallel = False
        self._bodies = bodies
        # Values of sub-expressions already computed in this statement, by identity: programs share nodes. The node is
        # kept beside its value, so that its identity is not given to another one.
        self._known: dict[int, tuple[str, ir.Expr]] = {}

    # --- expressions ----------------------------------------------------------------------------------------------

    def value(self, expr: ir.Expr) -> str:
        """The register or literal that holds `expr`."""
        known = self._known.get(id(expr))
        if known is not None:
            return known[0]
        value: str = self._table[type(expr)](self, expr)
        self._known[id(expr)] = value, expr
        return value

    def index(self, expr: ir.Expr) -> str:
        """The value of an index: its sums and products do not wrap."""
        return self._with_promise(expr, " nsw")

    def _with_promise(self, expr: ir.Expr, promise: str) -> str:
        outer, self.no_wrap = self.no_wrap, promise
        result = self.value(expr)
        self.no_wrap = outer
        return result

    def is_soft_float(self, dtype: DataType) -> bool:
        """Whether the type is handled through its bits, for lack of instructions."""
        return travels_as_bits(dtype) or (
            dtype.kind == "float" and dtype.bits == 16 and not self.target.has_f16_convert
        )

    def call_body(self, name: str, source: DataType, target: DataType, *values: str) -> str:
        """Call the function of `codegen/math` called `name`; its body is emitted once a type.

        The small float types are the bits that `decode` takes and `encode` gives.
        """
        given, made = body_types(name, source, target)
        symbol = self._bodies(name, source, target, len(values))
        arguments = ", ".join(f"{register_type(given)} {value}" for value in values)
        return self.b.value(f"call {register_type(made)} @{symbol}({arguments})")

    def intrinsic(self, name: str, result: DataType, arguments: Sequence[tuple[DataType, str]], extra: str = "") -> str:
        """Call an LLVM intrinsic; `extra` is the text of trailing immediate arguments with their types."""
        types = [register_type(dtype) for dtype, _ in arguments]
        more_types = [part.split()[0] for part in extra.split(", ")] if extra else []
        self.module.declare(name, f"{register_type(result)} @{name}({', '.join([*types, *more_types])})")
        given = [f"{text} {value}" for text, (_, value) in zip(types, arguments, strict=True)]
        return self.b.value(f"call {register_type(result)} @{name}({', '.join([*given, *([extra] if extra else [])])})")

    def cast(self, value: str, source: DataType, target: DataType) -> str:
        return emit_cast(self, value, source, target)

    def visit_children(self, node: ir.Node) -> Any:
        raise InternalError(f"{type(node).__name__} reached LLVM code generation: a lowering pass did not run", at=node)

    def visit_Var(self, var: ir.Var) -> str:
        found = self.values.get(var)
        if found is None:
            raise InternalError(f"variable {var.name} is used where it has no value")
        return found

    def visit_IntImm(self, imm: ir.IntImm) -> str:
        return int_literal(imm.dtype, imm.value)

    def visit_FloatImm(self, imm: ir.FloatImm) -> str:
        return float_literal(imm.dtype, imm.value)

    def visit_StringImm(self, imm: ir.StringImm) -> str:
        return self.module.string(imm.value)

    def visit_BinaryExpr(self, node: ir.BinaryExpr) -> str:
        # Below a remainder or a quotient anything may stand: a hash wraps around, and is a good index all the same.
        promise = "" if isinstance(node, (ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod)) else self.no_wrap
        a = self._with_promise(node.a, promise)
        b = self._with_promise(node.b, promise)
        return emit_binary(self, node, a, b)

    def visit_CompareExpr(self, node: ir.CompareExpr) -> str:
        a = self.value(node.a)
        b = self.value(node.b)
        return emit_compare(self, node, a, b)

    def visit_And(self, node: ir.And) -> str:
        return self._lazy_logic(node, "and", "false")

    def visit_Or(self, node: ir.Or) -> str:
        return self._lazy_logic(node, "or", "true")

    def _lazy_logic(self, node: ir.And | ir.Or, operation: str, decided: str) -> str:
        a = self.value(node.a)
        if node.dtype.lanes > 1 or is_speculatable(node.b):
            return self.b.value(f"{operation} {register_type(node.dtype)} {a}, {self.value(node.b)}")
        rest, end, start = self.b.label("rest"), self.b.label("decided"), self.b.block
        self.b.branch(a, *((rest, end) if operation == "and" else (end, rest)))
        self.b.start(rest)
        b, last = self._in_branch(node.b)
        self.b.jump(end)
        self.b.start(end)
        return self.b.value(f"phi i1 [ {decided}, %{start} ], [ {b}, %{last} ]")

    def _in_branch(self, expr: ir.Expr) -> tuple[str, str]:
        """The value of `expr` and the block it ends in; what is computed there is unknown outside."""
        outer, self._known = self._known, dict(self._known)
        value = self.value(expr)
        self._known = outer
        return value, self.b.block

    def visit_Not(self, node: ir.Not) -> str:
        return self.b.value(f"xor {register_type(node.dtype)} {self.value(node.a)}, {splat(node.dtype, 'true')}")

    def visit_Select(self, node: ir.Select) -> str:
        condition = self.value(node.condition)
        a = self.value(node.true_value)
        b = self.value(node.false_value)
        return self.select(node.condition.dtype, condition, node.dtype, a, b)

    def select(self, condition_dtype: DataType, condition: str, dtype: DataType, a: str, b: str) -> str:
        text = register_type(dtype)
        return self.b.value(f"select {register_type(condition_dtype)} {condition}, {text} {a}, {text} {b}")

    def choose(self, condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> str:
        """if_then_else: only the chosen side runs, unless running both is free of effects and faults.

        A `likely` condition asks for a branch: the other side is there to be skipped.
        """
        test = self.value(condition)
        is_likely = isinstance(condition, ir.Call) and condition.op.name == "tir.likely"
        free = not is_likely and is_speculatable(then) and is_speculatable(otherwise)
        if condition.dtype.lanes > 1 or free:
            return self.select(condition.dtype, test, then.dtype, self.value(then), self.value(otherwise))
        yes, no, end = self.b.label("then"), self.b.label("else"), self.b.label("chosen")
        self.b.branch(test, yes, no)
        self.b.start(yes)
        a, from_a = self._in_branch(then)
        self.b.jump(end)
        self.b.start(no)
        b, from_b = self._in_branch(otherwise)
        self.b.jump(end)
        self.b.start(end)
        return self.b.value(f"phi {register_type(then.dtype)} [ {a}, %{from_a} ], [ {b}, %{from_b} ]")

    def visit_Cast(self, node: ir.Cast) -> str:
        return emit_cast(self, self.value(node.value), node.value.dtype, node.dtype)

    def visit_Let(self, node: ir.Let) -> str:
        # A loop, since chains of lets (polynomials) are long.
        current: ir.Expr = node
        while isinstance(current, ir.Let):
            self.values[current.var] = self.value(current.value)
            current = current.body
        return self.value(current)

    def visit_Call(self, call: ir.Call) -> str:
        outer, self.no_wrap = self.no_wrap, ""
        result = emit_call(self, call)
        self.no_wrap = outer
        return result

    # --- vectors --------------------------------------------------------------------------------------------------

    def visit_Broadcast(self, node: ir.Broadcast) -> str:
        if isinstance(node.value, (ir.IntImm, ir.FloatImm)):
            return splat(node.dtype, self.value(node.value))
        return self.splat(self.value(node.value), node.value.dtype, node.lanes)

    def splat(self, value: str, dtype: DataType, lanes: int) -> str:
        """A vector of `lanes` copies of a scalar."""
        text, element = register_type(dtype.with_lanes(lanes)), register_type(dtype)
        first = self.b.value(f"insertelement {text} poison, {element} {value}, i64 0")
        return self.b.value(f"shufflevector {text} {first}, {text} poison, <{lanes} x i32> zeroinitializer")

    def visit_Ramp(self, node: ir.Ramp) -> str:
        element = register_type(node.base.dtype)
        base = self.splat(self.value(node.base), node.base.dtype, node.lanes)
        text = register_type(node.dtype)
        if isinstance(node.stride, ir.IntImm):
            steps = ", ".join(f"{element} {node.stride.value * lane}" for lane in range(node.lanes))
            return self.b.value(f"add{self.no_wrap} {text} {base}, <{steps}>")
        counts = ", ".join(f"{element} {lane}" for lane in range(node.lanes))
        stride = self.splat(self.value(node.stride), node.base.dtype, node.lanes)
        scaled = self.b.value(f"mul{self.no_wrap} {text} {stride}, <{counts}>")
        return self.b.value(f"add{self.no_wrap} {text} {base}, {scaled}")

    def visit_Shuffle(self, node: ir.Shuffle) -> str:
        lanes: list[tuple[str, DataType, int]] = []
        for vector in node.vectors:
            value = self.value(vector)
            lanes += [(value, vector.dtype, lane) for lane in range(vector.dtype.lanes)]
        picked = [self.lane(*lanes[int(index)]) for index in node.indices]  # type: ignore[call-overload]
        return picked[0] if len(picked) == 1 else self.vector(picked, node.dtype)

    def lane(self, value: str, dtype: DataType, lane: int) -> str:
        """One lane of a vector; a scalar is its own only lane."""
        if dtype.lanes == 1:
            return value
        return self.b.value(f"extractelement {register_type(dtype)} {value}, i64 {lane}")

    def vector(self, lanes: Sequence[str], dtype: DataType) -> str:
        """A vector from its lanes."""
        text, element, result = register_type(dtype), register_type(dtype.element), "poison"
        for position, value in enumerate(lanes):
            result = self.b.value(f"insertelement {text} {result}, {element} {value}, i64 {position}")
        return result

    # --- memory ---------------------------------------------------------------------------------------------------

    def address(self, buffer: ir.Buffer, index: str) -> str:
        """The address of the element at a scalar index."""
        pointer = self.visit_Var(buffer.data)
        return self.b.value(f"getelementptr inbounds {memory_type(buffer.dtype)}, ptr {pointer}, i64 {index}")

    def visit_BufferLoad(self, load: ir.BufferLoad) -> str:
        index = self._only_index(load.buffer, load.indices)
        if index.dtype.lanes == 1:
            return self._load(self.address(load.buffer, self.index(index)), load.dtype, load.buffer.dtype)
        if isinstance(index, ir.Ramp) and isinstance(index.stride, ir.IntImm) and index.stride.value == 1:
            return self._load(self.address(load.buffer, self.index(index.base)), load.dtype, load.buffer.dtype)
        if isinstance(index, ir.Broadcast):
            one = self._load(self.address(load.buffer, self.index(index.value)), load.buffer.dtype, load.buffer.dtype)
            return self.splat(one, load.buffer.dtype, index.lanes)
        lanes = [
            self._load(self.address(load.buffer, lane), load.buffer.dtype, load.buffer.dtype)
            for lane in self._index_lanes(index)
        ]
        return self.vector(lanes, load.dtype)

    def _only_index(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> ir.Expr:
        if len(indices) != 1:
            raise InternalError(
                f"buffer {buffer.name} still has {len(indices)} dimensions: flatten_buffers did not run"
            )
        return indices[0]

    def _index_lanes(self, index: ir.Expr) -> list[str]:
        if isinstance(index, ir.Ramp):
            base, stride = self.index(index.base), self.index(index.stride)
            lanes = []
            for lane in range(index.lanes):
                step = self.b.value(f"mul nsw i64 {stride}, {lane}")
                lanes.append(self.b.value(f"add nsw i64 {base}, {step}"))
            return lanes
        whole = self.index(index)
        return [self.lane(whole, index.dtype, lane) for lane in range(index.dtype.lanes)]

    def _load(self, address: str, dtype: DataType, element: DataType) -> str:
        value = self.b.value(f"load {memory_type(dtype)}, ptr {address}, align {element.nbytes}")
        if dtype.is_bool:
            nought = "0" if dtype.lanes == 1 else "zeroinitializer"
            return self.b.value(f"icmp ne {memory_type(dtype)} {value}, {nought}")
        return value

    def _store(self, address: str, value: str, dtype: DataType, element: DataType) -> None:
        if dtype.is_bool:
            value = self.b.value(f"zext {register_type(dtype)} {value} to {memory_type(dtype)}")
        self.b.do(f"store {memory_type(dtype)} {value}, ptr {address}, align {element.nbytes}")

    def visit_BufferStore(self, store: ir.BufferStore) -> None:
        buffer, index = store.buffer, self._only_index(store.buffer, store.indices)
        value = self.value(store.value)
        if index.dtype.lanes == 1:
            self._store(self.address(buffer, self.index(index)), value, store.value.dtype, buffer.dtype)
        elif isinstance(index, ir.Ramp) and isinstance(index.stride, ir.IntImm) and index.stride.value == 1:
            self._store(self.address(buffer, self.index(index.base)), value, store.value.dtype, buffer.dtype)
        else:
            for lane, where in enumerate(self._index_lanes(index)):
                one = self.lane(value, store.value.dtype, lane)
                self._store(self.address(buffer, where), one, buffer.dtype, buffer.dtype)

    # --- statements -----------------------------------------------------------------------------------------------

    def run(self, statement: ir.Stmt) -> None:
        """Emit a statement. What its expressions computed is forgotten after it: stores change what loads see."""
        outer, self._known = self._known, {}
        if self.b.open:
            self._table[type(statement)](self, statement)
        self._known = outer

    def visit_SeqStmt(self, statement: ir.SeqStmt) -> None:
        for part in statement.seq:
            self.run(part)

    def visit_For(self, loop: ir.For) -> None:
        if loop.kind is ir.ForKind.PARALLEL and not self.in_parallel:
            emit_parallel(self, loop)
            return
        low = self.index(loop.min)
        high = self.index(loop.min + loop.extent)
        metadata = None
        if loop.kind is ir.ForKind.UNROLLED:
            metadata = self.module.loop_metadata("llvm.loop.unroll.full")
        self.counted_loop(loop.loop_var, low, high, lambda: self.run(loop.body), metadata)

    def counted_loop(
        self, var: ir.Var, low: str, high: str, body: Callable[[], None], metadata: str | None = None
    ) -> None:
        """for var in [low, high): body()"""
        text = register_type(var.dtype)
        head, inside, after = self.b.label("loop"), self.b.label("body"), self.b.label("after")
        latch, before = self.b.label("next"), self.b.block
        counter, following = f"%{head}.i", f"%{head}.next"
        self.b.jump(head)
        self.b.start(head)
        self.b.do(f"{counter} = phi {text} [ {low}, %{before} ], [ {following}, %{latch} ]")
        more = self.b.value(f"icmp slt {text} {counter}, {high}")
        self.b.branch(more, inside, after)
        self.b.start(inside)
        self.values[var] = counter
        body()
        if self.b.open:
            self.b.jump(latch)
        self.b.start(latch)
        self.b.do(f"{following} = add nsw {text} {counter}, 1")
        self.b.jump(head, loop=metadata)
        self.b.start(after)

    def visit_While(self, loop: ir.While) -> None:
        head, inside, after = self.b.label("while"), self.b.label("body"), self.b.label("after")
        self.b.jump(head)
        self.b.start(head)
        self._known = {}
        self.b.branch(self.value(loop.condition), inside, after)
        self.b.start(inside)
        self.run(loop.body)
        if self.b.open:
            self.b.jump(head)
        self.b.start(after)

    def visit_LetStmt(self, statement: ir.LetStmt) -> None:
        self.values[statement.var] = self.value(statement.value)
        self.run(statement.body)

    def visit_AttrStmt(self, statement: ir.AttrStmt) -> None:
        self.run(statement.body)

    def visit_DeclBuffer(self, statement: ir.DeclBuffer) -> None:
        self.run(statement.body)

    def visit_Evaluate(self, statement: ir.Evaluate) -> None:
        if not isinstance(statement.value, ir.IntImm):
            self.value(statement.value)

    def visit_IfThenElse(self, statement: ir.IfThenElse) -> None:
        then, end = self.b.label("then"), self.b.label("end")
        otherwise = end if statement.else_case is None else self.b.label("else")
        self.b.branch(self.value(statement.condition), then, otherwise)
        self.b.start(then)
        self.run(statement.then_case)
        if self.b.open:
            self.b.jump(end)
        if statement.else_case is not None:
            self.b.start(otherwise)
            self.run(statement.else_case)
            if self.b.open:
                self.b.jump(end)
        self.b.start(end)

    def visit_AssertStmt(self, statement: ir.AssertStmt) -> None:
        message = statement.message.value if isinstance(statement.message, ir.StringImm) else "an assertion failed"
        holds = self.value(statement.condition)
        self.fail_unless(holds, "AssertionFailed", f"assertion failed: {message}")
        self.run(statement.body)

    def fail_unless(self, condition: str, kind: str, message: str) -> None:
        """Leave the function with an error unless `condition` holds."""
        bad, good = self.b.label("bad"), self.b.label("good")
        self.b.branch(condition, good, bad)
        self.b.start(bad)
        self.module.declare("TVMFFIErrorSetRaisedFromCStr", "void @TVMFFIErrorSetRaisedFromCStr(ptr, ptr)")
        kind_text, text = self.module.string(kind), self.module.string(message)
        self.b.do(f"call void @TVMFFIErrorSetRaisedFromCStr(ptr {kind_text}, ptr {text})")
        self.leave("-1")
        self.b.start(good)

    def leave(self, status: str) -> None:
        """Return `status`, freeing what is still held."""
        for pointer in reversed(self.workspaces):
            self.b.do(f"call void @lw_workspace_free(ptr {pointer})")
        self.b.ret(f"i32 {status}")

    def visit_Allocate(self, statement: ir.Allocate) -> None:
        element, size = memory_type(statement.dtype), 1
        for extent in statement.extents:
            size = size * extent.value if isinstance(extent, ir.IntImm) and size >= 0 else -1
        bytes_each = statement.dtype.nbytes * statement.dtype.lanes
        if 0 <= size * bytes_each <= STACK_LIMIT_BYTES and size >= 0:
            self.values[statement.buffer_var] = self.b.alloca(element, max(size, 1), ALIGNMENT)
            self.apart.add(statement.buffer_var)
            self.run(statement.body)
            return
        count = self.index(self._product(statement.extents))
        needed = self.b.value(f"mul nsw i64 {count}, {bytes_each}")
        self.module.declare("lw_workspace_alloc", "noalias ptr @lw_workspace_alloc(i64)")
        self.module.declare("lw_workspace_free", "void @lw_workspace_free(ptr)")
        pointer = self.b.value(f"call noalias align {ALIGNMENT} ptr @lw_workspace_alloc(i64 {needed})")
        present = self.b.value(f"icmp ne ptr {pointer}, null")
        text = (
            f"no memory for the intermediate buffer {statement.buffer_var.name}\x1f\x1ffree memory, or tile the program"
        )
        self.fail_unless(present, "WorkspaceExhausted", text)
        self.values[statement.buffer_var] = pointer
        self.apart.add(statement.buffer_var)
        self.workspaces.append(pointer)
        self.run(statement.body)
        self.workspaces.pop()
        if self.b.open:
            self.b.do(f"call void @lw_workspace_free(ptr {pointer})")

    def _product(self, extents: Sequence[ir.Expr]) -> ir.Expr:
        total: ir.Expr = ir.const(1, "int64")
        for extent in extents:
            total = total * extent.astype("int64")
        return total

    def visit_AllocateConst(self, statement: ir.AllocateConst) -> None:
        data = np.ascontiguousarray(np.asarray(statement.data, dtype=statement.dtype.numpy())).tobytes()
        body = "".join(f"\\{byte:02X}" for byte in data)
        symbol = self.module.constant("const", f'[{len(data)} x i8] c"{body}"', ALIGNMENT)
        self.values[statement.buffer_var] = symbol
        self.apart.add(statement.buffer_var)
        self.run(statement.body)


def body_types(name: str, source: DataType, target: DataType) -> tuple[DataType, DataType]:
    """The types of the arguments and of the result of a body of `codegen/math`."""
    if name == "decode":
        return DataType(f"uint{source.bits}").with_lanes(source.lanes), target
    if name == "encode":
        return source, DataType(f"uint{target.bits}").with_lanes(target.lanes)
    return source, target


def is_speculatable(expr: ir.Expr) -> bool:
    """Whether computing `expr` where it is not needed does no harm: no loads, no faults, no effects."""
    harmless = True

    def look(node: ir.Node) -> bool:
        nonlocal harmless
        if isinstance(node, ir.BufferLoad):
            harmless = False
        elif isinstance(node, (ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod)) and not node.dtype.is_float:
            divisor = node.b.value if isinstance(node.b, ir.Broadcast) else node.b
            harmless = harmless and isinstance(divisor, ir.IntImm) and divisor.value not in (0, -1)
        elif isinstance(node, ir.Call):
            harmless = harmless and isinstance(node.op, ir.Op) and node.op.is_pure and "extern" not in node.op.name
        return harmless

    ir.pre_order_visit(expr, look)
    return harmless
