"""scalarize_vectors: vector statements become loops over their lanes, for targets without vectors.

    B[T.Ramp(0, 1, 4)] = A[T.Ramp(0, 2, 4)] + T.Broadcast(x, 4)     →     for lane in range(4):
                                                                              B[lane] = A[lane * 2] + x

All lanes of a statement load and compute before the first one stores: where a statement reads the memory it writes at
other places, its lanes are computed into memory of their own first. Buffers of vectors become buffers of their lanes.
On a GPU a copy that is one load and one store stays what it is (`widen_accesses`).

`scalarize_long_vectors` does the same to functions with a vector that is too long for LLVM, which cuts vectors into
registers one by one: 4,096 lanes of a division take it seconds, and 65,536 lanes of anything end the process.

Needs: `vectorize_loops` (no vectorized loops), flat buffers.  Leaves: no vector but in wide copies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from loopwright.analysis.wide_accesses import free_integers, wide_copy
from loopwright.codegen.llvm.types import LONGEST_VECTOR
from loopwright.ir import (
    Allocate,
    AllocateConst,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    IntImm,
    Let,
    LetStmt,
    PrimFunc,
    Ramp,
    Rewriter,
    SeqStmt,
    Shuffle,
    Stmt,
    Var,
    any_statement,
    cast,
    const,
    decl_buffer,
    deep,
    intrinsics,
    pre_order_visit,
    seq,
    structural_equal,
)
from loopwright.ir.passes import function_pass
from loopwright.ir.visitor import Visitor
from loopwright.runtime.dtype import INT32, DataType
from loopwright.runtime.errors import NotBuilt
from loopwright.transform.parts.cpu_of import is_gpu, target_of
from loopwright.transform.parts.flat_index import add_index, mul_index
from loopwright.transform.parts.known_ops import ADDRESS_OF, IF_THEN_ELSE, LANE_WISE, LIKELY
from loopwright.transform.parts.purity import is_pure, loads_from
from loopwright.transform.parts.statements import flat_seq

_UNROLL_LANES: Final = 64


class _Scalarize(Rewriter):
    """Rewrites statements and scalars; `lane` gives one lane of a vector as a scalar."""

    def __init__(self, is_gpu: bool = False, sizes: Collection[Var] = ()) -> None:
        self.is_gpu, self.sizes = is_gpu, sizes
        self.scope = "local" if is_gpu else "global"  # of the memory that lanes are kept in
        self.views: dict[Buffer, Buffer] = {}
        self.staged: dict[Var, Buffer] = {}  # vectors of LetStmt → the memory that holds their lanes
        self.lets: dict[Var, tuple[Expr, Expr, Var]] = {}  # vectors of Let → their value; one lane of it, and its name
        self.lane_of = _LaneOf(self)

    def lane(self, expr: Expr, at: Expr) -> Expr:
        """Lane number `at` of `expr`, as a scalar; a scalar is its own every lane."""
        result: Expr = self.visit(expr) if expr.dtype.lanes == 1 else self.lane_of.at(expr, at)
        return result

    def view(self, buffer: Buffer) -> Buffer:
        """The memory of a buffer of vectors, lane by lane."""
        lanes = buffer.dtype.lanes
        if lanes == 1:
            return buffer
        if buffer not in self.views:
            size = buffer.shape[0]
            shape = (mul_index(size, const(lanes, size.dtype)),)
            self.views[buffer] = buffer.with_(dtype=buffer.dtype.element, shape=shape, strides=())
        return self.views[buffer]

    # -- scalars that are made from vectors

    def visit_Shuffle(self, node: Shuffle) -> Expr:
        return self.lane_of.picked(node, const(0))

    def visit_Call(self, call: Call) -> Expr:
        if call.op is ADDRESS_OF:
            load = call.args[0]
            assert isinstance(load, BufferLoad)
            index = self.lane(load.indices[-1], const(0, load.indices[-1].dtype.element))
            location = mul_index(index, const(load.buffer.dtype.lanes, index.dtype))
            return call.with_(args=(BufferLoad(self.view(load.buffer), (*load.indices[:-1], location)),))
        if call.op.name == "tir.reinterpret" and call.args[0].dtype.lanes > 1:
            return self.lane_of.reinterpreted(call, const(0))
        if call.op.name == "tir.tvm_access_ptr":  # its first argument is a type, not a value
            return call.with_(args=(call.args[0], *[self.visit(arg) for arg in call.args[1:]]))
        if self.is_gpu and call.op.name in _EXTERN and call.dtype.lanes == 1:
            return call.with_(args=(call.args[0], *[self.word(arg) for arg in call.args[1:]]))
        if call.dtype.lanes > 1 or any([arg.dtype.lanes > 1 for arg in call.args]):
            raise NotBuilt(f"{call.op.name} on vectors, for a target without vectors", "call it lane by lane")
        return self.rebuild(call)

    def word(self, expr: Expr) -> Expr:
        """An argument of a device function: four bytes in a vector are passed as a word, as CUDA's functions want."""
        if expr.dtype.lanes == 1:
            return self.visit(expr)
        if expr.dtype.bits * expr.dtype.lanes != _WORD:
            raise NotBuilt(f"passing a {expr.dtype} to a device function", "pass four bytes, or call it lane by lane")
        kind = "uint32" if expr.dtype.element.kind == "uint" else "int32"
        packed = intrinsics.reinterpret(kind, expr)
        assert isinstance(packed, Call)
        return self.lane_of.reinterpreted(packed, const(0))

    # -- statements

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return flat_seq(node, self.visit)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        lanes, each = store.value.dtype.lanes, store.buffer.dtype.lanes
        index = store.indices[-1]
        if lanes == 1 and each == 1 and index.dtype.lanes == 1:
            return self.rebuild(store)
        if self.is_gpu and wide_copy(store, self.sizes) is not None:
            return store
        view, dtype = self.view(store.buffer), index.dtype.element

        def location(at: Expr) -> Expr:
            if each == 1:
                return self.lane(index, at)
            first = mul_index(self.lane(index, at // each), const(each, dtype))
            return add_index(first, cast(at % each, dtype))

        if not self._reads_elsewhere(store):
            return self._for_lanes(
                lanes, dtype, lambda at: BufferStore(view, self.lane(store.value, at), (location(at),))
            )
        kept = decl_buffer((lanes,), store.value.dtype.element, f"{store.buffer.name}_lanes", scope=self.scope)
        compute = self._for_lanes(lanes, dtype, lambda at: BufferStore(kept, self.lane(store.value, at), (at,)))
        if loads_from(index, store.buffer.data):
            locations = decl_buffer((lanes,), dtype, f"{store.buffer.name}_places", scope=self.scope)
            find = self._for_lanes(lanes, dtype, lambda at: BufferStore(locations, location(at), (at,)))
            write = self._for_lanes(
                lanes, dtype, lambda at: BufferStore(view, BufferLoad(kept, (at,)), (BufferLoad(locations, (at,)),))
            )
            return _allocate(kept, _allocate(locations, seq([compute, find, write])))
        write = self._for_lanes(lanes, dtype, lambda at: BufferStore(view, BufferLoad(kept, (at,)), (location(at),)))
        return _allocate(kept, seq([compute, write]))

    def _reads_elsewhere(self, store: BufferStore) -> bool:
        """Whether a lane may read what another lane of the same statement writes."""
        index, data = store.indices[-1], store.buffer.data
        if loads_from(index, data):
            return True
        if not loads_from(store.value, data):
            return False
        steps = isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value != 0
        own_place_only = steps and store.buffer.dtype.lanes == 1

        def look(node: object) -> None:
            nonlocal own_place_only
            if isinstance(node, BufferLoad) and node.buffer.data is data:
                own_place_only &= node.buffer is store.buffer and structural_equal(node.indices[-1], index)

        pre_order_visit(store.value, look)
        return not own_place_only

    def _for_lanes(self, lanes: int, dtype: DataType, body: Callable[[Expr], Stmt]) -> Stmt:
        """for lane in range(lanes): body(lane); unrolled where lanes are registers, which have no index."""
        lane = Var("lane", dtype)
        kind = ForKind.UNROLLED if self.is_gpu and lanes <= _UNROLL_LANES else ForKind.SERIAL
        return For(lane, const(0, dtype), const(lanes, dtype), kind, body(lane))

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        lanes = node.value.dtype.lanes
        if lanes == 1:
            return self.rebuild(node)
        kept = decl_buffer((lanes,), node.value.dtype.element, node.var.name, scope=self.scope)
        fill = self._for_lanes(lanes, INT32, lambda at: BufferStore(kept, self.lane(node.value, at), (at,)))
        self.staged[node.var] = kept
        return _allocate(kept, seq([fill, self.visit(node.body)]))

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        if node.value.dtype.lanes > 1 and is_pure(node.value):
            return Evaluate(const(0))
        return self.rebuild(node)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        lanes = node.dtype.lanes
        if lanes == 1:
            return self.rebuild(node)
        first, *others = node.extents
        extents = (mul_index(first, const(lanes, first.dtype)), *others)
        return node.with_(dtype=node.dtype.element, extents=extents, body=self.visit(node.body))

    visit_AllocateConst = visit_Allocate

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        return node.with_(buffer=self.view(node.buffer), body=self.visit(node.body))


class _LaneOf(Visitor):
    """One lane of a vector; `lane` is its number."""

    def __init__(self, owner: _Scalarize) -> None:
        self.owner = owner
        self.number: Expr = const(0)

    def at(self, expr: Expr, number: Expr) -> Expr:
        outer, self.number = self.number, number
        result: Expr = self.visit(expr)
        self.number = outer
        return result

    def _lane(self, expr: Expr) -> Expr:
        return self.owner.lane(expr, self.number)

    def visit_Expr(self, expr: Expr) -> Expr:
        raise NotBuilt(f"{type(expr).__name__} of {expr.dtype.lanes} lanes, for a target without vectors")

    def visit_Var(self, var: Var) -> Expr:
        staged = self.owner.staged.get(var)
        if staged is not None:
            return BufferLoad(staged, (self.number,))
        value, number, name = self.owner.lets[var]
        return name if number is self.number else self.owner.lane(value, self.number)

    def visit_Let(self, node: Let) -> Expr:
        if node.value.dtype.lanes == 1:
            return Let(node.var, self.owner.visit(node.value), self._lane(node.body))
        value = self._lane(node.value)
        name = Var(node.var.name, value.dtype)
        self.owner.lets[node.var] = node.value, self.number, name
        return Let(name, value, self._lane(node.body))

    def visit_Ramp(self, node: Ramp) -> Expr:
        base, stride = self.owner.visit(node.base), self.owner.visit(node.stride)
        return add_index(base, mul_index(cast(self.number, base.dtype), stride))

    def visit_Broadcast(self, node: Broadcast) -> Expr:
        each = node.value.dtype.lanes
        return self.owner.lane(node.value, self.number if each == 1 else self.number % each)

    def visit_Shuffle(self, node: Shuffle) -> Expr:
        return self.picked(node, self.number)

    def picked(self, node: Shuffle, number: Expr) -> Expr:
        """The element that lane `number` of a shuffle takes."""
        parts = [self._part(node, int(index)) for index in node.indices]  # type: ignore[call-overload]
        if isinstance(number, IntImm):
            return parts[number.value]
        result = parts[-1]
        for lane in reversed(range(len(parts) - 1)):
            result = Call(result.dtype, IF_THEN_ELSE, (number == lane, parts[lane], result))
        return result

    def _part(self, node: Shuffle, index: int) -> Expr:
        for vector in node.vectors:
            if index < vector.dtype.lanes:
                return self.owner.lane(vector, const(index))
            index -= vector.dtype.lanes
        raise NotBuilt("a shuffle of an element that none of its vectors has")

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        index, each = load.indices[-1], load.buffer.dtype.lanes
        if each == 1:
            return load.with_(indices=(*load.indices[:-1], self._lane(index)))
        dtype, number = index.dtype.element, cast(self.number, index.dtype.element)
        first = mul_index(self.owner.lane(index, number // each), const(each, dtype))
        return BufferLoad(self.owner.view(load.buffer), (*load.indices[:-1], add_index(first, number % each)))

    def visit_Cast(self, node: Cast) -> Expr:
        return Cast(node.dtype.element, self._lane(node.value))

    def _each(self, node: Expr) -> Expr:
        result: Expr = node.rebuild(self._lane)
        return result

    visit_BinaryExpr = visit_CompareExpr = visit_And = visit_Or = visit_Not = visit_Select = _each

    def visit_Call(self, call: Call) -> Expr:
        name, element = call.op.name, call.dtype.element
        if name == "tir.reinterpret" and call.args[0].dtype.lanes != call.dtype.lanes:
            return self.reinterpreted(call, self.number)
        if name in _HALVES:
            half = call.args[-1].dtype.lanes if name == "tir.vectorcombine" else call.dtype.lanes
            return _HALVES[name](self.owner, call, self.number, half)
        if call.op in LANE_WISE or call.op in (IF_THEN_ELSE, LIKELY) or name in ("tir.reinterpret", "tir.undef"):
            return Call(element, call.op, tuple([self._lane(arg) for arg in call.args]))
        raise NotBuilt(f"{name} on vectors, for a target without vectors", "call it lane by lane")

    def reinterpreted(self, call: Call, number: Expr) -> Expr:
        """The bits of a vector as one lane of another: lanes stand one after the other, the lowest bits first."""
        source, target = call.args[0], call.dtype.element
        from_bits, to_bits = source.dtype.bits, target.bits
        wide = DataType(f"uint{max(8, from_bits, to_bits)}")

        def bits(at: Expr) -> Expr:
            lane, element = self.owner.lane(source, at), source.dtype.element
            if element.is_float:
                lane = intrinsics.reinterpret(f"uint{from_bits}", lane)
            elif element.is_int:
                lane = cast(lane, DataType(f"uint{from_bits}"))
            return cast(lane, wide)

        if from_bits > to_bits:
            each = from_bits // to_bits
            shift = cast((number % each) * to_bits, wide)
            result = bits(number // each) >> shift
        else:
            each = to_bits // from_bits
            result = const(0, wide)
            for part in range(each):
                result = result | (bits(number * each + part) << const(part * from_bits, wide))
        low = cast(result, DataType(f"uint{to_bits}")) if to_bits > 1 else (result & 1) != 0
        return intrinsics.reinterpret(target, low) if low.dtype is not target else low


_EXTERN: Final = ("tir.call_extern", "tir.call_pure_extern")
_WORD: Final = 32  # bits
_HALVES: dict[str, Callable[[_Scalarize, Call, Expr, int], Expr]] = {
    "tir.vectorlow": lambda owner, call, number, half: owner.lane(call.args[-1], number),
    "tir.vectorhigh": lambda owner, call, number, half: owner.lane(call.args[-1], number + half),
    "tir.vectorcombine": lambda owner, call, number, half: intrinsics.if_then_else(
        number < half, owner.lane(call.args[-2], number), owner.lane(call.args[-1], number - half)
    ),
}


def _allocate(buffer: Buffer, body: Stmt) -> Stmt:
    return Allocate(buffer.data, buffer.dtype, buffer.shape, const(True, "bool"), body)


@function_pass
@deep
def scalarize_vectors(func: PrimFunc) -> PrimFunc:
    """Vector statements become loops over their lanes."""
    if not is_gpu(target_of(func)):
        return func.with_(body=_Scalarize().visit(func.body))
    return func.with_(body=_Scalarize(True, free_integers(func.body)).visit(func.body))


@function_pass
@deep
def scalarize_long_vectors(func: PrimFunc) -> PrimFunc:
    """The vector statements of a function become loops over their lanes if there is one of very many lanes."""
    return func.with_(body=_Scalarize().visit(func.body)) if _has_long_vectors(func.body) else func


def _has_long_vectors(body: Stmt) -> bool:
    def is_long(node: Stmt) -> bool:
        if isinstance(node, BufferStore):
            return max(node.value.dtype.lanes, node.buffer.dtype.lanes) > LONGEST_VECTOR
        if isinstance(node, (LetStmt, Evaluate)):
            return node.value.dtype.lanes > LONGEST_VECTOR
        return isinstance(node, (Allocate, AllocateConst)) and node.dtype.lanes > LONGEST_VECTOR

    return any_statement(body, is_long)
