"""lower_packed_calls: packed calls, arrays and large allocations become what the C interface of the runtime takes.

    T.call_packed("f", n, A)    →    stack_tcode = T.tvm_stack_alloca("arg_tcode", 3)     a slot for the result, too
                                     stack_value = T.tvm_stack_alloca("arg_value", 3)
                                     stack_array = T.tvm_stack_alloca("array", 1)
                                     stack_shape = T.tvm_stack_alloca("shape", 2)
                                     T.tvm_struct_set(stack_value, 0, 12, T.Cast("int64", n))
                                     stack_tcode[0] = 0
                                     ... the shape and the fields of A, and slot 1 ...
                                     T.call_packed_lowered("f", stack_value, stack_tcode, 0, 2)

The stacks belong to the function, and to each parallel loop's body. Memory that does not fit the stack, or lies on
another device, comes from `TVMBackendAllocWorkspace`. Functions of devices stay. Our own builds need none of this:
code generation writes its calls and its workspace itself (`codegen/llvm/packed_calls.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

from loopwright.analysis.thread_axes import scope_of
from loopwright.compat.passes.device_passes import DeviceWorkLeft
from loopwright.compat.passes.named_pass import named_pass
from loopwright.compat.passes.packed_stacks import (
    ADDRESS,
    DEVICE_ID,
    DEVICE_TYPE,
    SIZE,
    VALUE,
    Code,
    Sizes,
    Stacks,
    array_fields,
    type_code,
)
from loopwright.ir import (
    NE,
    Allocate,
    And,
    AttrStmt,
    Block,
    BufferLoad,
    BufferStore,
    Call,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    Let,
    LetStmt,
    Node,
    Op,
    Or,
    PrimFunc,
    Rewriter,
    Select,
    Stmt,
    StringImm,
    Var,
    While,
    cast,
    const,
    seq,
)
from loopwright.ir.intrinsics import address_of
from loopwright.ir.machine_intrinsics import (
    TVMBackendAllocWorkspace,
    TVMBackendFreeWorkspace,
    isnullptr,
    tvm_struct_get,
    tvm_struct_set,
    tvm_throw_last_error,
)
from loopwright.runtime.dtype import FLOAT64, HANDLE, INT32, INT64
from loopwright.target import Target

_CPU: Final = 1
_STACK_BYTES: Final = 1024  # less than that stays on the stack
_ALIGNMENT: Final = 64
_IN_KERNEL: Final = "a kernel; run SplitHostDevice before"
_REFUSED: Final = {
    "tvm_call_cpacked": "a packed call of a C symbol",
    "call_cpacked": "a packed call of a C symbol",
    "tvm_call_trace_packed": "a traced value",
}


def _left(what: str, at: Node) -> DeviceWorkLeft:
    return DeviceWorkLeft("LowerTVMBuiltin", what, at, is_built=True)


@named_pass("LowerTVMBuiltin")
def lower_packed_calls(func: PrimFunc) -> PrimFunc:
    """The function calls the runtime through its C interface."""
    target = func.attrs.get("target")
    kind = target.kind.device_type if isinstance(target, Target) else _CPU
    if kind != _CPU:
        return func
    counted = _Lower([])
    counted.scoped(func.body)
    return func.with_(body=_Lower(counted.scopes).scoped(func.body))


class _Lower(Rewriter):
    """Rewrites statements; what prepares a call comes before the statement that it stands in.

    `sizes` are those of the scopes in the order in which they begin, from a first run without them.
    """

    def __init__(self, sizes: list[Sizes]) -> None:
        self.sizes = sizes
        self.scopes: list[Sizes] = []
        self.scope = Stacks(Sizes())
        self.before: list[Stmt] = []
        self.device_id: Expr | None = None
        self.device_type: Expr | None = None
        self.refused_in: str = ""  # where the preparation of a call would run too early, or the call does not belong

    def scoped(self, body: Stmt) -> Stmt:
        """`body` with stacks of its own."""
        outer, number = self.scope, len(self.scopes)
        self.scope = Stacks(self.sizes[number] if self.sizes else Sizes())
        self.scopes.append(self.scope.most)
        inner, result = self.scope, self.visit(body)
        self.scope = outer
        return inner.around(result)

    # --- statements -----------------------------------------------------------------------------------------------

    def visit_Stmt(self, stmt: Stmt) -> Stmt:
        return self._prepared(lambda: stmt.rebuild(self.visit))

    def _prepared(self, rewrite: Callable[[], Stmt]) -> Stmt:
        outer, now = self.before, self.scope.now
        self.before, self.scope.now = [], Sizes(shapes=0)
        result = rewrite()
        before, self.before, self.scope.now = self.before, outer, now
        return seq([*before, result]) if before else result

    def visit_SeqStmt(self, stmt: Any) -> Stmt:
        statements = [self.visit(part) for part in stmt.seq]
        same = all([new is old for new, old in zip(statements, stmt.seq, strict=True)])
        return stmt if same else seq(statements)

    def visit_For(self, loop: For) -> Stmt:
        if loop.kind is ForKind.THREAD_BINDING:
            result: Stmt = self._refusing(_IN_KERNEL, loop, rebuild=True)
            return result
        if loop.kind is not ForKind.PARALLEL:
            return self.visit_Stmt(loop)
        spans = {"min": loop.min, "extent": loop.extent}
        return self._prepared(
            lambda: loop.with_(**{k: self.visit(v) for k, v in spans.items()}, body=self.scoped(loop.body))
        )

    def visit_While(self, loop: While) -> Stmt:
        condition = self._refusing("the condition of a while loop", loop.condition)
        return loop.with_(condition=condition, body=self.visit(loop.body))

    def visit_Block(self, block: Block) -> Block:
        result: Block = self._refusing("a block; run LowerOpaqueBlock before", block, rebuild=True)
        return result

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key == "thread_extent":
            result: Stmt = self._refusing(_IN_KERNEL, attr, rebuild=True)
            return result
        if attr.attr_key not in ("device_id", "device_type"):
            return self.visit_Stmt(attr)
        saved = getattr(self, attr.attr_key)
        setattr(self, attr.attr_key, attr.value)
        body: Stmt = self.visit(attr.body)
        setattr(self, attr.attr_key, saved)
        return body

    def _refusing(self, where: str, node: Any, rebuild: bool = False) -> Any:
        saved, self.refused_in = self.refused_in, self.refused_in or where
        result = node.rebuild(self.visit) if rebuild else self.visit(node)
        self.refused_in = saved
        return result

    # --- memory ---------------------------------------------------------------------------------------------------

    def visit_Allocate(self, node: Allocate) -> Stmt:
        if self.refused_in or node.annotations.get("disable_lower_builtin") or self._fits(node):
            return self.visit_Stmt(node)
        if not (isinstance(node.condition, IntImm) and node.condition.value) or "." in scope_of(node.buffer_var):
            raise _left(f"memory of scope {scope_of(node.buffer_var)}", node)
        return self._prepared(lambda: self._workspace(node))

    def _fits(self, node: Allocate) -> bool:
        sizes = [extent.value for extent in node.extents if isinstance(extent, IntImm)]
        is_constant = len(sizes) == len(node.extents)
        return self._is_cpu() and is_constant and prod(sizes) * node.dtype.nbytes * node.dtype.lanes < _STACK_BYTES

    def _workspace(self, node: Allocate) -> Stmt:
        size: Expr = const(node.dtype.nbytes * node.dtype.lanes, SIZE)
        for extent in node.extents:
            size = size * cast(self.visit(extent), SIZE)
        kind, number = self._device(node)
        code, bits = const(type_code(node.dtype)), const(node.dtype.bits)
        failed = Evaluate(tvm_throw_last_error())
        freed = TVMBackendFreeWorkspace(kind, number, node.buffer_var)
        body = seq(
            [
                IfThenElse(isnullptr(node.buffer_var), failed),
                self.visit(node.body),
                IfThenElse(NE(freed, const(0)), failed),
            ]
        )
        aligned = AttrStmt(node.buffer_var, "storage_alignment", const(_ALIGNMENT), body)
        return LetStmt(node.buffer_var, TVMBackendAllocWorkspace(kind, number, size, code, bits), aligned)

    def _is_cpu(self) -> bool:
        return self.device_type is None or (isinstance(self.device_type, IntImm) and self.device_type.value == _CPU)

    def _device(self, at: Node) -> tuple[Expr, Expr]:
        """The device's type and number; there is one CPU, and other devices say which they are."""
        kind = const(_CPU) if self.device_type is None else self.device_type
        if self.device_id is None and not self._is_cpu():
            raise _left("memory on a device whose device_id no attribute gives", at)
        return cast(kind, INT32), const(0) if self.device_id is None else cast(self.device_id, INT32)

    # --- calls ----------------------------------------------------------------------------------------------------

    def visit_Call(self, call: Call) -> Expr:
        name = call.op.name.removeprefix("tir.") if isinstance(call.op, Op) else ""
        if name in _REFUSED:
            raise _left(_REFUSED[name], call)
        if name == "if_then_else":
            condition = self.visit(call.args[0])
            return call.with_(args=(condition, *[self._branch(arg) for arg in call.args[1:]]))
        lower = {
            "call_packed": self._packed,
            "tvm_call_packed": self._packed,
            "tvm_stack_make_array": self._array,
            "tvm_stack_make_shape": self._shape,
        }.get(name)
        if lower is None:
            return call.rebuild(self.visit)
        if self.refused_in:
            raise _left(f"{name} in {self.refused_in}", call)
        return lower(call)

    def _branch(self, expr: Expr) -> Expr:
        result: Expr = self._refusing("an expression that is not always computed", expr)
        return result

    def visit_Select(self, node: Select) -> Expr:
        values = {k: self._branch(getattr(node, k)) for k in ("true_value", "false_value")}
        return node.with_(condition=self.visit(node.condition), **values)

    def visit_And(self, node: And) -> Expr:
        return node.with_(a=self.visit(node.a), b=self._branch(node.b))

    def visit_Or(self, node: Or) -> Expr:
        return node.with_(a=self.visit(node.a), b=self._branch(node.b))

    def visit_Let(self, node: Let) -> Expr:
        body = self._refusing("a let inside an expression", node.body)
        return node.with_(value=self.visit(node.value), body=body)

    def _set(self, stack: Var, slot: int, field: int, value: object) -> None:
        self.before.append(Evaluate(tvm_struct_set(stack, slot, field, value)))

    def _packed(self, call: Call) -> Expr:
        scope, begin, args = self.scope, self.scope.now.args, call.args[1:]
        if not isinstance(call.args[0], StringImm):
            raise _left("a packed call without the name of a function", call)
        end = begin + len(args)
        scope.now.args = end
        for slot, arg in enumerate(args, begin):
            value, code = self._argument(arg, call)
            self._set(scope.value, slot, VALUE, value)
            self.before.append(BufferStore(scope.tcode, const(int(code)), (const(slot),)))
        scope.now.args = end + 1  # the result's slot: other calls of the statement are prepared before this one runs
        scope.note(args=end + 1)
        lowered = (call.args[0], scope.value, scope.tcode.data, const(begin), const(end))
        return Call(call.dtype, Op.get("tir.call_packed_lowered"), lowered)

    def _argument(self, arg: Expr, call: Call) -> tuple[Expr, int]:
        """An argument as wide as packed values are, and its type code."""
        if isinstance(arg, StringImm):
            return arg, Code.TEXT
        value: Expr = self.visit(arg)
        dtype = value.dtype
        if dtype.kind == "handle":
            is_array = isinstance(arg, Call) and isinstance(arg.op, Op) and arg.op.name == "tir.tvm_stack_make_array"
            return value, Code.ARRAY if is_array else Code.POINTER
        if dtype.lanes > 1 or dtype.kind == "void":
            raise _left(f"a {dtype} as an argument of a packed call", call)
        return (cast(value, FLOAT64), Code.FLOAT) if dtype.is_float else (cast(value, INT64), Code.INT)

    def _shape(self, call: Call) -> Expr:
        scope, begin = self.scope, self.scope.now.shapes
        scope.now.shapes += len(call.args)
        scope.note(shapes=scope.now.shapes)
        for slot, extent in enumerate(call.args, begin):
            self.before.append(BufferStore(scope.shape, cast(self.visit(extent), INT64), (const(slot),)))
        return address_of(BufferLoad(scope.shape, (const(begin),)))

    def _array(self, call: Call) -> Expr:
        scope, slot = self.scope, self.scope.now.arrays
        scope.now.arrays += 1
        scope.note(arrays=scope.now.arrays)
        data, shape, strides, rank, element, offset = [self.visit(arg) for arg in call.args]
        kind, number = self._device(call)
        for field, value in array_fields(data, shape, strides, rank, element.dtype, offset).items():
            self._set(scope.array, slot, field, value)
        self._set(scope.array, slot, DEVICE_ID, number)
        self._set(scope.array, slot, DEVICE_TYPE, kind)
        return tvm_struct_get(scope.array, slot, ADDRESS, HANDLE)
