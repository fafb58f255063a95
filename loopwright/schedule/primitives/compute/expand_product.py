"""expand_product: a sum of products of shifted integers becomes a plain one, sums of each side, and their combination.

    for i, j, k in T.grid(M, N, K):                     →    A_sum[i] += A[i, k];  B_sum[j] += B[k, j]
        C[i, j] += (A[i, k] - p) * (B[k, j] - q[j])          C_dot[i, j] += x[i, k] * y[k, j]
                                                             C[i, j] = C_dot[i, j] - (q[j] + t) * A_sum[i]
        expand_product(C, ["uint8", ""])                               - (p + s) * B_sum[j] + K * (p * q[j] - s * t)

where x = A + s is a copy of A in another type (int8 becomes uint8 here, so s is 128), and y = B + t one of B. Operands
whose type is "" stay as they are: their shift is 0. A sum that is multiplied by zero is left out. Instructions multiply
plain bytes, some of them only unsigned by signed ones: so a product with zero points becomes one for them. Floats have
no zero points here (zero times the sum of an infinite operand would not be zero), and may become a wider type.

Reason: with x = A + s and y = B + t, the sum over k of (A - p)(B - q) = (x - (p + s))(y - (q + t)) is the one above, by
expanding it. Integers wrap, so this holds for every value. p and q must not change along the reduction. The block stays
the product, and the new block that combines is what writes C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from loopwright.ir import (
    Add,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Cast,
    Expr,
    FloatImm,
    For,
    ForKind,
    IntImm,
    IterType,
    IterVar,
    Mul,
    Node,
    Stmt,
    Sub,
    Var,
    cast,
    cell_region,
    const,
    decl_buffer,
    pre_order_visit,
    seq,
    structural_equal,
    substitute,
    uses_var,
)
from loopwright.runtime.dtype import DataType
from loopwright.schedule.errors import BadStepArgument, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.bindings import TRUE
from loopwright.schedule.rewrite.blocks import is_leaf
from loopwright.schedule.rewrite.buffers import check_plain_use
from loopwright.schedule.rewrite.edits import Edits
from loopwright.schedule.rewrite.nests import axes_over, axis_from_zero
from loopwright.schedule.rewrite.plain_loops import own_nest
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


class NotShiftedProduct(ScheduleError):
    """expand_product needs a block that sums products of two elements, those of integers perhaps less a zero point.

    It stands alone in a nest of one loop an axis, writes each cell for one value of its data axes, and its zero points
    do not change along the reduction.

    For example:

        from loopwright import te, tir
        A = te.placeholder((4, 8), "int8", name="A")
        Z = te.placeholder((8,), "int32", name="Z")
        k = te.reduce_axis((0, 8), name="k")
        value = lambda i: te.sum((A[i, k].astype("int32") - Z[k]) * A[i, k].astype("int32"), axis=k)
        sch = tir.Schedule(te.create_prim_func([A, Z, te.compute((4,), value, name="C")]))
        sch.expand_product("C", ["", ""])
    """

    code = "LW0293"

    def __init__(self, realize: BlockRealize, problem: str) -> None:
        super().__init__(f"expand_product: block {realize.block.name_hint!r} {problem}", at=realize)


class Factor(NamedTuple):
    """A factor: an element, and what is taken from it."""

    load: BufferLoad
    zero: Expr | None

    @property
    def dtype(self) -> DataType:
        return self.load.dtype


def factors_of(value: Expr) -> tuple[Factor, Factor] | None:
    """The two factors of a product of shifted integers; None for anything else."""
    if not isinstance(value, Mul):
        return None
    one, other = _factor(value.a), _factor(value.b)
    if one is None or other is None or (value.dtype.is_float and (one.zero is not None or other.zero is not None)):
        return None
    return one, other


def _factor(side: Expr) -> Factor | None:
    if isinstance(side, (Add, Sub)):
        load = _element(side.a)
        if load is not None:
            return Factor(load, side.b if isinstance(side, Sub) else side.b * const(-1, side.dtype))
        load = _element(side.b) if isinstance(side, Add) else None  # what is added stands first
        return None if load is None else Factor(load, side.a * const(-1, side.dtype))
    load = _element(side)
    return None if load is None else Factor(load, None)


def _element(side: Expr) -> BufferLoad | None:
    """The load that an expression is, perhaps widened."""
    while isinstance(side, Cast) and _holds(side.dtype, side.value.dtype):
        side = side.value
    return side if isinstance(side, BufferLoad) else None


def _holds(wide: DataType, narrow: DataType) -> bool:
    """Whether every number of one type is one of the other."""
    if wide.is_float or narrow.is_float:
        return wide is narrow or (str(wide), str(narrow)) in _WIDER
    return wide.min_value() <= narrow.min_value() and wide.max_value() >= narrow.max_value()


_WIDER: Final = {(wide, small) for wide in ("float32", "float64") for small in ("bfloat16", "float16")}


def expand_product(view: View, block: BlockRealize, types: Sequence[str]) -> Step:
    """Make `block` a plain product of operands of these types ("" for the one it has)."""
    # Check
    store, added = _sum(view, block)
    factors = factors_of(added)
    if factors is None:
        raise NotShiftedProduct(block, f"adds {added}, which is no product of two elements less their zero points")
    shifts = _shifts(block, factors, types)
    axes = block.block.iter_vars
    reduced = {axis.var for axis in axes if axis.iter_type == IterType.CommReduce}
    for factor in factors:
        if factor.zero is not None and uses_var(factor.zero, reduced.__contains__):
            raise NotShiftedProduct(block, f"takes {factor.zero} away, which changes along the reduction")
    _check_store(block, store)
    top = own_nest("expand_product", view, block, NotShiftedProduct)

    # Build
    maker = _Maker(view, block, store)
    operands, before = [], []
    for factor, shift, dtype in zip(factors, shifts, types, strict=True):
        operands.append(factor.load)
        if dtype and factor.dtype != dtype:
            copied = maker.copy(factor.load.buffer, shift, dtype)
            before.append(copied)
            operands[-1] = BufferLoad(maker.allocated[-1], factor.load.indices)
    first, second = factors
    s, t = shifts
    p, q = (maker.zero_point(factor) for factor in factors)
    terms: list[Expr] = []
    for factor, by in ((first, _plus(q, t)), (second, _plus(p, s))):
        if not _is_zero(by):
            before.append(maker.sum_of(factor))
            terms.append(BufferLoad(maker.allocated[-1], tuple(maker.kept(factor))) * by)
    depth: Expr = const(1, store.value.dtype)
    for axis in axes:
        if axis.var in reduced:
            assert axis.dom is not None
            depth = depth * cast(axis.dom.extent, store.value.dtype)
    constant = depth * _plus(p * q, -s * t) if terms else const(0, store.value.dtype)
    dot = maker.product(operands)
    after = maker.combination(terms, constant)
    nest: Stmt = dot
    for loop in reversed(view.loops_of(block_key(block.block))):
        nest = loop.with_(body=nest)
    edits = Edits()
    edits.replaced[top] = seq([*before, nest, after])
    edits.allocated[view.scope_of(view.block_path(block_key(block.block)))] = maker.allocated
    return Step(edits.apply(view.function), Proof.GIVEN, at=block)


def _sum(view: View, realize: BlockRealize) -> tuple[BufferStore, Expr]:
    """The store of the block, and what it adds to the cell."""
    block = realize.block
    store = block.body
    if not is_leaf(block) or not isinstance(store, BufferStore) or len(view.block_path(block_key(block))) == 1:
        raise NotShiftedProduct(realize, "is not a single store")
    init = block.init
    starts = isinstance(init, BufferStore) and isinstance(init.value, (IntImm, FloatImm))
    if isinstance(store.value, Add) and starts:
        for own, other in ((store.value.a, store.value.b), (store.value.b, store.value.a)):
            if (
                isinstance(own, BufferLoad)
                and own.buffer is store.buffer
                and structural_equal(own.indices, store.indices)
            ):
                loads = _loads(other)
                if all(load.buffer.data is not store.buffer.data for load in loads):
                    for buffer in [store.buffer, *[load.buffer for load in loads]]:
                        check_plain_use("expand_product", realize, buffer)
                    return store, other
    raise NotShiftedProduct(realize, "is no sum that starts at a constant")


def _shifts(realize: BlockRealize, factors: Sequence[Factor], types: Sequence[str]) -> list[int]:
    """What is added to each operand so that its new type holds it."""
    if len(types) != 2 or not all(isinstance(dtype, str) for dtype in types):
        raise BadStepArgument("expand_product", f"types are {types!r}", realize, 'give two, such as ["uint8", ""]')
    shifts = []
    for factor, name in zip(factors, types, strict=True):
        old, new = factor.dtype, DataType(name) if name else factor.dtype
        holds = _holds(new, old)
        integers = not (old.is_float or new.is_float)
        shift = int(new.min_value() - old.min_value()) if integers and not holds else 0
        if not holds and (not integers or old.max_value() + shift > new.max_value()):
            problem = f"{factor.load.buffer.name} is {old}, and {new} does not hold all of its values"
            raise BadStepArgument("expand_product", problem, realize)
        shifts.append(shift)
    return shifts


def _check_store(realize: BlockRealize, store: BufferStore) -> None:
    data = [axis.var for axis in realize.block.iter_vars if axis.iter_type != IterType.CommReduce]
    used = [index for index in store.indices if isinstance(index, Var)]
    if len(used) != len(store.indices) or len(set(used)) < len(used) or set(used) != set(data):
        raise NotShiftedProduct(realize, f"writes {store.buffer.name} at other indices than its data axes, each once")


class _Maker:
    """Makes the new blocks, and keeps their buffers."""

    def __init__(self, view: View, realize: BlockRealize, store: BufferStore) -> None:
        self.view, self.realize, self.store = view, realize, store
        self.name = realize.block.name_hint
        self.dtype = store.value.dtype
        self.axes = realize.block.iter_vars
        self.data = [axis for axis in self.axes if axis.iter_type != IterType.CommReduce]
        self.allocated: list[Buffer] = []

    def zero_point(self, factor: Factor) -> Expr:
        return const(0, self.dtype) if factor.zero is None else cast(factor.zero, self.dtype)

    def _new(self, name: str, shape: Sequence[Expr], like: Buffer, dtype: DataType) -> Buffer:
        names = {buffer.name for buffer in self.allocated}
        fresh = self.view.fresh_block_name(name)
        while fresh in names:
            fresh = self.view.fresh_block_name(f"{fresh}_1")
        result = decl_buffer(tuple(shape), dtype, fresh, scope="global", data_alignment=like.data_alignment)
        self.allocated.append(result)
        return result

    def copy(self, source: Buffer, shift: int, dtype: str) -> Stmt:
        """All of a buffer in another type; the shift wraps in unsigned bytes, so it costs one instruction."""
        result = self._new(f"{source.name}_{dtype}", source.shape, source, DataType(dtype))
        axes = [axis_from_zero(var, extent) for var, extent in zip(axes_over(source.shape), source.shape, strict=True)]
        indices = tuple([axis.var for axis in axes])
        value: Expr = BufferLoad(source, indices)
        if shift and source.dtype.bits == result.dtype.bits:
            unsigned = DataType(f"uint{source.dtype.bits}")
            half = const(1 << (source.dtype.bits - 1), unsigned)
            value = cast(cast(value, unsigned) + half, result.dtype)
        else:
            value = cast(value, result.dtype) + const(shift, result.dtype) if shift else cast(value, result.dtype)
        return _nest(result.name, axes, BufferStore(result, value, indices))

    def kept(self, factor: Factor) -> list[Var]:
        """The data axes that move an operand."""
        return [
            axis.var
            for axis in self.data
            if any(uses_var(index, lambda var, own=axis.var: var is own) for index in factor.load.indices)  # type: ignore[misc]
        ]

    def sum_of(self, factor: Factor) -> Stmt:
        """The sum of an operand along the reduction."""
        kept = self.kept(factor)
        own = [axis for axis in self.axes if axis.iter_type == IterType.CommReduce or axis.var in kept]
        new = {axis.var: Var(axis.var.name, axis.var.dtype) for axis in own}
        axes = [axis.with_(var=new[axis.var]) for axis in own]
        shape = [axis.dom.extent for axis in own if axis.var in kept and axis.dom is not None]
        result = self._new(f"{factor.load.buffer.name}_sum", shape, factor.load.buffer, self.dtype)
        cell = tuple([new[var] for var in kept])
        value = BufferLoad(result, cell) + cast(substitute(factor.load, new), self.dtype)
        init = BufferStore(result, const(0, self.dtype), cell)
        return _nest(result.name, axes, BufferStore(result, value, cell), init)

    def product(self, operands: Sequence[Expr]) -> BlockRealize:
        """The block itself, on plain operands and into a buffer of its own."""
        result = self._new(f"{self.name}_dot", self.store.buffer.shape, self.store.buffer, self.dtype)
        cell = BufferLoad(result, self.store.indices)
        value = cell + cast(operands[0], self.dtype) * cast(operands[1], self.dtype)
        old = self.realize.block.init
        assert isinstance(old, BufferStore)
        body = BufferStore(result, value, self.store.indices)
        init = BufferStore(result, old.value, self.store.indices)
        new = self.realize.block.with_(
            body=body,
            init=init,
            reads=_read(body),
            writes=(cell_region(result, body.indices),),
        )
        return self.realize.with_(block=new)

    def combination(self, terms: Sequence[Expr], constant: Expr) -> Stmt:
        """What writes the result: the product, less the terms of zero points."""
        result = self.allocated[-1]
        value: Expr = BufferLoad(result, self.store.indices)
        for term in terms:
            value = value - term
        value = value if _is_zero(constant) else value + constant
        new = {axis.var: Var(axis.var.name, axis.var.dtype) for axis in self.data}
        axes = [axis.with_(var=new[axis.var]) for axis in self.data]
        store = substitute(BufferStore(self.store.buffer, value, self.store.indices), new)
        return _nest(self.view.fresh_block_name(f"{self.name}_combine"), axes, store)


def _nest(name: str, axes: Sequence[IterVar], store: BufferStore, init: BufferStore | None = None) -> Stmt:
    """Loops over one store; a block without axes stands alone."""
    reads = _read(store)
    block = Block(tuple(axes), reads, (cell_region(store.buffer, store.indices),), name, store, init)
    loops = [Var(f"ax{k}", axis.var.dtype) for k, axis in enumerate(axes)]
    nest: Stmt = BlockRealize(tuple(loops), TRUE, block)
    for var, axis in zip(reversed(loops), reversed(axes), strict=True):
        assert axis.dom is not None
        nest = For(var, axis.dom.min, axis.dom.extent, ForKind.SERIAL, nest)
    return nest


def _read(store: BufferStore) -> tuple[BufferRegion, ...]:
    """What a store reads beside its own cell, each place once."""
    locations: list[BufferLoad] = []
    for load in _loads(store.value):
        if load.buffer is not store.buffer and not any(
            load.buffer is offset.buffer and structural_equal(load.indices, offset.indices) for offset in locations
        ):
            locations.append(load)
    return tuple([cell_region(load.buffer, load.indices) for load in locations])


def _loads(root: Node) -> list[BufferLoad]:
    result: list[BufferLoad] = []
    pre_order_visit(root, lambda node: result.append(node) if isinstance(node, BufferLoad) else None)
    return result


def _plus(value: Expr, number: int) -> Expr:
    return value + const(number, value.dtype) if number else value


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, (IntImm, FloatImm)) and expr.value == 0
