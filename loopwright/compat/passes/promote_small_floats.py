"""promote_small_floats: values of a small float type are computed in a wide one, and stored as integers.

    C[i] = A[i] + B[i]     →    C[i] = wide(A[i]) + wide(B[i])      compute: C, allocated here, becomes float32
    D[i] = T.exp(C[i])          D[i] = small(T.exp(C[i]))

`promote_computation` is that; `store_as_integers` then gives the memory that is left the type of its bits. Unlike
`legalize_low_precision` nothing is rounded between two operations: a chain of them is computed in the wide type.
A type that is the first bits of the wide one is widened and rounded (to nearest, ties to even; of NaNs the common one
stays) on its bits, the others by casts, which are right for zeros and subnormal numbers too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import (
    Allocate,
    BinaryExpr,
    Block,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferRewriter,
    BufferStore,
    Call,
    Cast,
    Evaluate,
    Expr,
    FloatImm,
    Let,
    LetStmt,
    PointerType,
    PrimFunc,
    PrimType,
    Select,
    Stmt,
    Var,
    Visitor,
    cast,
    const,
    deep,
)
from loopwright.ir.intrinsics import BINARY_FLOAT, PREDICATES, ROUNDING, UNARY_FLOAT, reinterpret
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.passes import Pass
from loopwright.runtime.dtype import DataType
from loopwright.transform.parts.known_ops import IF_THEN_ELSE

_COMPUTED: Final = frozenset(
    f"tir.{name}"
    for name in (*UNARY_FLOAT, *ROUNDING, *BINARY_FLOAT, *PREDICATES, "abs", "fma", "ldexp", "likely")
    if name != "nextafter"
)


class _Kind(NamedTuple):
    """A family of small types."""

    name: str
    is_small: Callable[[DataType], bool]


_BF16: Final = _Kind("BF16", lambda dtype: str(dtype.element) == "bfloat16")
_FP8: Final = _Kind("FP8", lambda dtype: "float8" in str(dtype.element))


# Small types that are the first bits of a wide one: how many bits more the wide one has.
_DROPPED: Final = {("bfloat16", "float32"): 16, ("e5m2_float8", "float16"): 8}


def _integer(dtype: DataType) -> DataType:
    """The integers that hold the bits of a type."""
    return DataType(f"uint{dtype.bits}").with_lanes(dtype.lanes)


class _Handed(Visitor):
    """The memory whose pointer goes elsewhere: it keeps its type."""

    def __init__(self) -> None:
        self.pointers: set[Var] = set()

    def visit_Var(self, var: Var) -> None:
        self.pointers.add(var)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        for index in load.indices:
            self.visit(index)

    def visit_BufferStore(self, store: BufferStore) -> None:
        for part in (store.value, *store.indices):
            self.visit(part)

    def visit_Call(self, call: Call) -> None:
        if call.op.name == "tir.address_of" and isinstance(call.args[0], BufferLoad):
            self.pointers.add(call.args[0].buffer.data)
        self.visit_children(call)


class _Promote(BufferRewriter):
    def __init__(self, kind: _Kind, wide: DataType, handed: set[Var]) -> None:
        super().__init__()
        self.kind, self.wide, self.handed = kind, wide, handed
        self.vars: dict[Var, Var] = {}

    # -- between the types

    def _widened(self, e: Expr) -> Expr:
        if not self.kind.is_small(e.dtype):
            return e
        lanes = e.dtype.lanes
        dropped = _DROPPED.get((str(e.dtype.element), str(self.wide)))
        if dropped is None:
            return Cast(self.wide.with_lanes(lanes), e)
        bits = cast(reinterpret(_integer(e.dtype), e), _integer(self.wide.with_lanes(lanes)))
        return reinterpret(self.wide.with_lanes(lanes), bits << _filled(dropped, bits))

    def _narrowed(self, e: Expr, dtype: DataType) -> Expr:
        if e.dtype is dtype:
            return e
        dropped = _DROPPED.get((str(dtype.element), str(e.dtype.element)))
        if dropped is None:
            return Cast(dtype, e)
        bits = reinterpret(_integer(e.dtype), e)
        bias = ((bits >> _filled(dropped, bits)) & _filled(1, bits)) + _filled((1 << (dropped - 1)) - 1, bits)
        return reinterpret(dtype, cast((bits + bias) >> _filled(dropped, bits), _integer(dtype)))

    # -- memory

    def _promoted(self, var: Var) -> Var:
        new = self.vars.get(var)
        if new is None:
            annotation = var.type_annotation
            scope = annotation.storage_scope if isinstance(annotation, PointerType) else ""
            new = self.vars[var] = Var(var.name, PointerType(PrimType(self.wide), scope))
        return new

    def visit_Var(self, var: Var) -> Expr:
        return self.vars.get(var, var)

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self.buffers and buffer.data in self.vars and self.kind.is_small(buffer.dtype):
            wide = self.wide.with_lanes(buffer.dtype.lanes)
            self.buffers[buffer] = buffer.with_(data=self.vars[buffer.data], dtype=wide)
        return super().visit_Buffer(buffer)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        if not self.kind.is_small(node.dtype) or node.buffer_var in self.handed:
            return self.rebuild(node)
        var = self._promoted(node.buffer_var)
        return node.with_(buffer_var=var, dtype=self.wide.with_lanes(node.dtype.lanes), body=self.visit(node.body))

    def visit_Block(self, block: Block) -> Block:
        for buffer in block.alloc_buffers:
            if self.kind.is_small(buffer.dtype) and buffer.data not in self.handed:
                self._promoted(buffer.data)
        rebuilt = self.rebuild(block)
        return rebuilt.with_(alloc_buffers=rewrite_tuple(block.alloc_buffers, self.visit_Buffer))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        buffer = self.visit_Buffer(store.buffer)
        value = self.visit(store.value)
        wanted = buffer.dtype.element.with_lanes(value.dtype.lanes)
        if self.kind.is_small(wanted):
            value = self._narrowed(value, wanted)
        elif value.dtype is not wanted:
            value = self._widened(value)
        return BufferStore(buffer, value, rewrite_tuple(store.indices, self.visit), span=store.span)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        value = self._let(node)
        return node.with_(var=self.vars.get(node.var, node.var), value=value, body=self.visit(node.body))

    def visit_Let(self, node: Let) -> Expr:
        value = self._let(node)
        return Let(self.vars.get(node.var, node.var), value, self.visit(node.body))

    def _let(self, node: LetStmt | Let) -> Expr:
        value: Expr = self.visit(node.value)
        if self.kind.is_small(node.var.dtype):
            self.vars[node.var] = Var(node.var.name, self.wide.with_lanes(node.var.dtype.lanes))
            return self._widened(value)
        return value

    # -- values

    def visit_FloatImm(self, e: FloatImm) -> Expr:
        return const(e.value, self.wide) if self.kind.is_small(e.dtype) else e

    def visit_BinaryExpr(self, e: BinaryExpr) -> Expr:
        if not self.kind.is_small(e.a.dtype):
            return self.rebuild(e)
        return type(e)._make(self._widened(self.visit(e.a)), self._widened(self.visit(e.b)), span=e.span)

    visit_CompareExpr = visit_BinaryExpr

    def visit_Select(self, e: Select) -> Expr:
        if not self.kind.is_small(e.dtype):
            return self.rebuild(e)
        sides = [self._widened(self.visit(side)) for side in (e.true_value, e.false_value)]
        return Select(self.visit(e.condition), *sides)

    def visit_Broadcast(self, e: Broadcast) -> Expr:
        value = self.visit(e.value)
        return e if value is e.value else Broadcast(self._widened(value), e.lanes)

    def visit_Cast(self, e: Cast) -> Expr:
        value: Expr = self.visit(e.value)
        if self.kind.is_small(e.value.dtype):
            value = self._widened(value)
        target = self.wide.with_lanes(e.dtype.lanes) if self.kind.is_small(e.dtype) else e.dtype
        return cast(value, target) if value is not e.value or target is not e.dtype else e

    def visit_Call(self, call: Call) -> Expr:
        if call.op.name in _COMPUTED or call.op is IF_THEN_ELSE:
            args = tuple([self._widened(self.visit(argument)) for argument in call.args])
            dtype = self.wide.with_lanes(call.dtype.lanes) if self.kind.is_small(call.dtype) else call.dtype
            return Call._make(dtype, call.op, args, span=call.span)
        kept = []
        for argument in call.args:
            new = self.visit(argument)
            kept.append(self._narrowed(new, argument.dtype) if self.kind.is_small(argument.dtype) else new)
        return call.with_(args=tuple(kept))

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        return node.with_(value=self.visit(node.value))


def _filled(value: int, like: Expr) -> Expr:
    return const(value, like.dtype)


class _Store(BufferRewriter):
    """Memory of a small type becomes memory of integers."""

    def __init__(self, kind: _Kind) -> None:
        super().__init__()
        self.kind = kind
        self.vars: dict[Var, Var] = {}

    def variable(self, var: Var) -> Var:
        """The variable with the type of its bits."""
        if var in self.vars:
            return self.vars[var]
        annotation = var.type_annotation
        new = var
        if isinstance(annotation, PointerType) and isinstance(annotation.element_type, PrimType):
            if self.kind.is_small(annotation.element_type.dtype):
                integer = _integer(annotation.element_type.dtype)
                new = Var(var.name, PointerType(PrimType(integer), annotation.storage_scope))
        elif self.kind.is_small(var.dtype):
            new = Var(var.name, _integer(var.dtype))
        self.vars[var] = new
        return new

    def visit_Var(self, var: Var) -> Expr:
        new = self.variable(var)
        return new if new.dtype is var.dtype else reinterpret(var.dtype, new)

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self.buffers and self.kind.is_small(buffer.dtype):
            self.buffers[buffer] = buffer.with_(data=self.variable(buffer.data), dtype=_integer(buffer.dtype))
        return super().visit_Buffer(buffer)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        if not self.kind.is_small(node.dtype):
            return self.rebuild(node)
        var = self.variable(node.buffer_var)
        return node.with_(buffer_var=var, dtype=_integer(node.dtype), body=self.visit(node.body))

    def visit_Block(self, block: Block) -> Block:
        return self.rebuild(block).with_(alloc_buffers=rewrite_tuple(block.alloc_buffers, self.visit_Buffer))

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        new = load.with_(buffer=self.visit_Buffer(load.buffer), indices=rewrite_tuple(load.indices, self.visit))
        return new if new.dtype is load.dtype else reinterpret(load.dtype, new)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        buffer, value = self.visit_Buffer(store.buffer), self.visit(store.value)
        if buffer.dtype is not store.buffer.dtype:
            value = _bits_of(value, _integer(value.dtype))
        return BufferStore(buffer, value, rewrite_tuple(store.indices, self.visit), span=store.span)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        value, var = self.visit(node.value), self.variable(node.var)
        if var.dtype is not node.var.dtype:
            value = _bits_of(value, var.dtype)
        return node.with_(var=var, value=value, body=self.visit(node.body))

    def visit_Call(self, call: Call) -> Expr:
        new = self.rebuild(call)
        if new.op.name == "tir.reinterpret" and isinstance(new, Call):
            return _bits_of(new.args[0], new.dtype)
        return new


def _bits_of(value: Expr, dtype: DataType) -> Expr:
    """The value seen as `dtype`; what was seen as another type before is seen through."""
    if isinstance(value, Call) and value.op.name == "tir.reinterpret":
        value = value.args[0]
    return value if value.dtype is dtype else reinterpret(dtype, value)


def _promotion(kind: _Kind, wide: str) -> Pass:
    @named_pass(f"{kind.name}ComputeLegalize")
    @deep
    def run(func: PrimFunc) -> PrimFunc:
        handed = _Handed()
        handed.visit(func.body)
        return func.with_(body=_Promote(kind, DataType(wide), handed.pointers).visit(func.body))

    return run


def _storage(kind: _Kind) -> Pass:
    @named_pass(f"{kind.name}StorageLegalize")
    @deep
    def run(func: PrimFunc) -> PrimFunc:
        walk = _Store(kind)
        for buffer in func.argument_buffers():  # what the caller hands in has the type that he knows
            walk.buffers[buffer] = buffer
            walk.vars[buffer.data] = buffer.data
        params = tuple([walk.variable(param) for param in func.params])
        return func.with_(params=params, body=walk.visit(func.body))

    return run


def promote_bfloat16() -> Pass:
    """bfloat16 is computed in float32."""
    return _promotion(_BF16, "float32")


def store_bfloat16_as_integers() -> Pass:
    """Memory of bfloat16 becomes memory of uint16."""
    return _storage(_BF16)


def promote_float8(promote_dtype_str: str = "float32") -> Pass:
    """float8 is computed in that type."""
    return _promotion(_FP8, promote_dtype_str)


def store_float8_as_integers() -> Pass:
    """Memory of float8 becomes memory of uint8."""
    return _storage(_FP8)
