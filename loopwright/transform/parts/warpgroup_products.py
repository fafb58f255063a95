"""Products of tiles that a warpgroup computes: whether the share of a thread in a nest is what `wgmma` leaves to it.

    for j, h, e, k in T.grid(n // 8, 2, 2, 16):                                       a 64 × n tile, 16 of K
        C[j, h, e] += A[w * 16 + h * 8 + u, k] * B[j * 8 + v * 2 + e, k]

Thread t of the warpgroup is warp w = t // 32 of it, u = t % 32 // 4 and v = t % 4. Its accumulators lie in this order
in local memory, all from one place on. Rows of A and columns of B are rows of shared memory of 32, 64 or 128 bytes that
run along K, or tiles of 64 of them that run along rows and columns (float16 and bfloat16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from loopwright.analysis.thread_axes import is_of_block, scope_of
from loopwright.analysis.warp_roles import core_of
from loopwright.arith import Analyzer, linear_coefficients
from loopwright.ir import (
    Add,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    Expr,
    FloatImm,
    For,
    ForKind,
    IntImm,
    Mul,
    Range,
    Stmt,
    Var,
    collect,
    collect_statements,
    const,
    structural_equal,
    substitute,
    uses_var,
)
from loopwright.ir.intrinsics import address_of
from loopwright.ir.warpgroup_intrinsics import OPERAND_KINDS, OperandKind, is_in_registers, wgmma, widths

# What such a loop is annotated with; the second one says that float32 operands may be rounded to tfloat32.
WGMMA: Final = "wgmma"
TF32: Final = "wgmma_tf32"
CORES: Final = (WGMMA, TF32)
# Marks statements that come when all groups of products but the last so many are done.
PENDING: Final = "pending_products"
# Marks what says that tiles are free: when the groups before it that are not waited for are done.
RELEASE: Final = "free_tiles"
WARPGROUP: Final = 128  # threads of a warpgroup
_TILE: Final = 64  # rows of D; elements of a row that runs along M or N
_STEP: Final = 8  # columns of D from one pair of a thread to the next


class Differs(Exception):
    """Why the nest is no such product."""


class Operand(NamedTuple):
    """A or B in shared memory, or A in registers."""

    kind: str
    start: Expr  # its address
    swizzle: int
    leading: int
    stride: int
    is_transposed: bool

    @property
    def arguments(self) -> tuple[object, ...]:
        return self.kind, self.start, self.swizzle, self.leading, self.stride, int(self.is_transposed)


class WarpgroupProduct(NamedTuple):
    """What one `wgmma` does."""

    accumulators: BufferLoad  # the first one
    n: int
    a: Operand
    b: Operand

    def call(self, adds: Expr) -> Expr:
        """The call; accumulators are stored to, and not added to, where `adds` is false."""
        arguments: list[Any] = [address_of(self.accumulators), self.n, *self.a.arguments, *self.b.arguments, adds]
        return wgmma(*arguments)

    def registers(self) -> list[Buffer]:
        """The operands in registers."""
        return [self.a.start.args[0].buffer] if is_in_registers(self.a.start) else []  # type: ignore[attr-defined]


class _Loops(NamedTuple):
    """The loops of a thread's share, by what they count; the variables of its number."""

    pairs: Var  # of the columns, 8 apart: `far` * 8 + `near`
    far: Var
    near: Var
    rows: Var  # 8 apart
    columns: Var
    k: Var
    warp: Var
    row: Var
    column: Var

    @property
    def counted(self) -> tuple[Var, ...]:
        return self.far, self.near, self.rows, self.columns, self.k, self.warp, self.row, self.column


def shared_operands(loop: For) -> list[Buffer]:
    """The shared memory that a nest reads."""
    store, _ = _innermost(loop)
    sides = None if store is None else _sides(store)
    return [side.buffer for side in sides or () if is_of_block(scope_of(side.buffer.data))]


def tiles_of_warpgroups(body: Stmt) -> dict[Var, Buffer]:
    """The tiles in shared memory that warpgroups multiply."""
    result: dict[Var, Buffer] = {}
    for loop in collect_statements(body, For):
        if core_of(loop) in CORES:
            result |= {buffer.data: buffer for buffer in shared_operands(loop)}
    return result


def uses_accumulators(body: Stmt) -> bool:
    """Whether a statement does anything with accumulators but to add products to them."""
    loops = [loop for loop in collect_statements(body, For) if core_of(loop) is not None]
    inside = {id(node) for loop in loops for node in [*collect(loop, BufferLoad), *collect(loop, BufferStore)]}
    added = {node.buffer.data for loop in loops for node in collect(loop, BufferStore)}
    accesses: list[BufferLoad | BufferStore] = [*collect(body, BufferLoad), *collect(body, BufferStore)]
    return any([access.buffer.data in added and id(access) not in inside for access in accesses])


def swizzle_of(buffer: Buffer) -> int:
    """The swizzle of a tile whose rows lie in the last dimension; 0 where there is none for its rows."""
    last = buffer.shape[-1]
    bytes = last.value * buffer.dtype.nbytes if isinstance(last, IntImm) else 0
    return bytes if bytes in (32, 64, 128) and not buffer.strides else 0


def thread_axes(threads: Mapping[Var, int], facts: Analyzer) -> tuple[dict[Var, Expr], list[Var]]:
    """The number of a thread along each axis, in terms of its warpgroup, warp, quad and lane of that; and these."""
    group, warp, row, column = [Var(name, "int32") for name in ("group", "warp", "row", "column")]
    for var, extent in ((group, 16), (warp, 4), (row, 8), (column, 4)):
        facts.bind(var, Range(0, extent))
    axes = _axes_of(group * WARPGROUP + warp * 32 + row * 4 + column, threads)
    return {var: facts.simplify(value) for var, value in axes.items()}, [group, warp, row, column]


def clears_accumulators(statement: For, loop: For) -> Var | None:
    """The accumulators of a nest of one product, where a statement sets all of them to 0."""
    products = [inner for inner in collect_statements(loop, For) if core_of(inner) is not None]
    store, loops = _innermost(statement)
    added, _ = _innermost(products[0])
    if store is None or added is None or len(products) > 1 or store.buffer is not added.buffer:
        return None
    if not isinstance(store.value, (IntImm, FloatImm)) or store.value.value != 0:
        return None
    variables = [inner.loop_var for inner in loops]
    linear = linear_coefficients(Analyzer().simplify(flat_index(store.buffer, store.indices)), variables)
    if linear is None or not isinstance(linear[1], IntImm) or linear[1].value != 0:
        return None
    size = 1
    digits = [(step.value, _extent(inner)) for step, inner in zip(linear[0], loops) if isinstance(step, IntImm)]
    for step, extent in sorted([digit for digit in digits if digit[1] > 1]):
        if step != size:
            return None
        size *= extent
    whole = 1
    for dimension in store.buffer.shape:
        whole *= dimension.value if isinstance(dimension, IntImm) else 0
    pairs = products[0].extent
    is_all = isinstance(pairs, IntImm) and size == whole == 4 * pairs.value
    return store.buffer.data if is_all and len(digits) == len(loops) else None


def warpgroup_product(
    loop: For,
    threads: Mapping[Var, int],
    around: Sequence[For] = (),
    registers: Mapping[Var, Buffer] | None = None,
) -> WarpgroupProduct:
    """The `wgmma` that the nest is for the warpgroup of a thread; raises Differs where it is none.

    It stands in the loops `around` it. `registers` are those of operands that are not in shared memory, by the memory
    that they are in the program. `threads` are the axes of the block's threads, the fastest first, and how many there
    are along each.
    """
    store, loops = _innermost(loop)
    if store is None:
        raise Differs("it is no nest of serial loops over one store")
    sides = _sides(store)
    if sides is None:
        raise Differs("it does not add a product of two loads to what it stores")
    registers = registers or {}
    facts = Analyzer()
    for inner in (*around, *loops):
        facts.bind(inner.loop_var, Range.from_min_extent(inner.min, inner.extent))
    axes, (group, warp, row, column) = thread_axes(threads, facts)
    counted = _counted(store, loops, axes, (warp, row, column), facts)
    pairs = next(inner for inner in loops if inner.loop_var is counted.pairs)
    n = _extent(pairs) * _STEP
    facts.bind(counted.far, Range(0, max(1, n // _TILE)))
    facts.bind(counted.near, Range(0, min(_STEP, n // _STEP)))
    near: Expr = counted.far * _STEP + counted.near
    named: dict[Var, Expr] = {**axes, counted.pairs: near.astype(counted.pairs.dtype)}
    counted = counted._replace(warp=warp, row=row, column=column)
    first: dict[Var, Expr] = {inner.loop_var: inner.min for inner in loops}
    first |= _axes_of(_number_of(threads) // WARPGROUP * WARPGROUP, threads)
    a, b = sides
    if _moves(a, named, counted, facts)[counted.rows] == 0:
        a, b = b, a
    kinds = [_kind_of(side) for side in (a, b)]
    kind = OPERAND_KINDS[kinds[0]]
    if "tfloat32" in kinds and core_of(loop) != TF32:
        raise Differs(f'tensor cores round float32 to 10 bits after the point (tfloat32); annotate it with "{TF32}"')
    if OPERAND_KINDS[kinds[1]].family != kind.family:
        raise Differs(f"tensor cores do not multiply {a.dtype} by {b.dtype}")
    if n not in widths(kind) or _extent(_loop_of(loops, counted.k)) != kind.k:
        columns = "8, 16, 24 or a multiple of 16" if 40 not in widths(kind) else "a multiple of 8"
        wanted = f"{columns} columns up to 256 and {kind.k} of K"
        raise Differs(f"it has {n} columns and {_extent(_loop_of(loops, counted.k))} of K, not {wanted}")
    if store.buffer.dtype is not kind.accumulator:
        raise Differs(f"it adds up {store.buffer.dtype}, and of {kinds[0]} tensor cores add up {kind.accumulator}")
    outer_a = {counted.rows: 8, counted.warp: 16, counted.row: 1}
    outer_b = {counted.far: _TILE, counted.near: 8, counted.column: 2, counted.columns: 1}
    if b.buffer.data in registers:
        raise Differs(f"{b.buffer.name}, which multiplies from the right, is stored by threads")
    operands = [
        _in_registers(side, name, registers[side.buffer.data], named, counted, group, facts)
        if side.buffer.data in registers
        else _operand(side, name, kind, outer, named, first, counted, facts)
        for side, name, outer in ((a, kinds[0], outer_a), (b, kinds[1], outer_b))
    ]
    start = [Analyzer().simplify(substitute(index, first)) for index in store.indices]
    return WarpgroupProduct(BufferLoad(store.buffer, tuple(start)), n, operands[0], operands[1])


def _number_of(threads: Mapping[Var, int]) -> Expr:
    """The number of a thread in its block."""
    result: Expr = const(0)
    each = 1
    for var, extent in threads.items():
        result = result + var.astype("int32") * each
        each *= extent
    return result


def _axes_of(number: Expr, threads: Mapping[Var, int]) -> dict[Var, Expr]:
    """The number of a thread along each axis, of its number in the block."""
    result: dict[Var, Expr] = {}
    each = 1
    for at, (var, extent) in enumerate(threads.items(), 1):
        rest = number if each == 1 else number // each
        result[var] = (rest if at == len(threads) else rest % extent).astype(var.dtype)
        each *= extent
    return result


def _innermost(loop: For) -> tuple[BufferStore | None, list[For]]:
    loops: list[For] = []
    statement: Stmt = loop
    while isinstance(statement, For) and statement.kind in (ForKind.SERIAL, ForKind.UNROLLED):
        loops.append(statement)
        statement = statement.body
    return (statement if isinstance(statement, BufferStore) else None), loops


def _sides(store: BufferStore) -> tuple[BufferLoad, BufferLoad] | None:
    """What is multiplied."""
    value = store.value
    if not isinstance(value, Add):
        return None
    for old, product in ((value.a, value.b), (value.b, value.a)):
        is_old = isinstance(old, BufferLoad) and old.buffer is store.buffer
        if not is_old or not isinstance(product, Mul):
            continue
        assert isinstance(old, BufferLoad)
        if not all([structural_equal(x, y) for x, y in zip(old.indices, store.indices, strict=True)]):
            continue
        sides = [side.value if isinstance(side, Cast) else side for side in (product.a, product.b)]
        if isinstance(sides[0], BufferLoad) and isinstance(sides[1], BufferLoad):
            return sides[0], sides[1]
    return None


def _counted(
    store: BufferStore, loops: Sequence[For], named: dict[Var, Expr], lanes: tuple[Var, ...], facts: Analyzer
) -> _Loops:
    """What each loop counts, as its accumulators lie: from the same place on in all threads of a warpgroup."""
    flat = facts.simplify(substitute(flat_index(store.buffer, store.indices), named))
    variables = [loop.loop_var for loop in loops]
    linear = linear_coefficients(flat, variables, facts)
    steps = [step.value if isinstance(step, IntImm) else None for step in linear[0]] if linear is not None else []
    if steps and _extent(loops[0]) == 1:
        steps[0] = 4  # of one pair of columns nothing tells how far the next one is
    if sorted([-1 if step is None else step for step in steps]) != [0, 1, 2, 4]:
        raise Differs("its accumulators do not lie in the order j * 4 + h * 2 + e of pairs of columns, rows, columns")
    if linear is not None and uses_var(linear[1], lambda var: var in lanes):
        raise Differs("its accumulators begin at another place in each thread")
    by_step = dict(zip(steps, variables, strict=True))
    for step, extent in ((2, 2), (1, 2)):
        if _extent(_loop_of(loops, by_step[step])) != extent:
            raise Differs(f"loop {by_step[step].name} has {_extent(_loop_of(loops, by_step[step]))} iterations, not 2")
    rest = [Var(name, "int32") for name in ("far", "near", "warp", "row", "column")]
    return _Loops(by_step[4], rest[0], rest[1], by_step[2], by_step[1], by_step[0], rest[2], rest[3], rest[4])


def _operand(
    side: BufferLoad,
    name: str,
    kind: OperandKind,
    outer: dict[Var, int],
    named: dict[Var, Expr],
    first: dict[Var, Expr],
    counted: _Loops,
    facts: Analyzer,
) -> Operand:
    """An operand whose row or column is the sum of the variables of `outer`, each times its number."""
    buffer = side.buffer
    if not is_of_block(scope_of(buffer.data)):
        raise Differs(f"{buffer.name} is not in shared memory")
    swizzle = swizzle_of(buffer)
    moved = _moves(side, named, counted, facts)
    pitch = buffer.shape[-1].value if isinstance(buffer.shape[-1], IntImm) else 0
    bytes = buffer.dtype.nbytes

    def fits(k: int, each: int, far: int | None = None) -> bool:
        """Whether elements lie `k` apart along K, and `each` along rows or columns."""
        for var in counted.counted:
            wanted = k if var is counted.k else outer.get(var, 0) * each
            if var is counted.far and far is not None:
                wanted = far
            if moved[var] != wanted and not facts.can_prove_equal(var, 0):
                return False
        return True

    indices = tuple([Analyzer().simplify(substitute(index, first)) for index in side.indices])
    start = address_of(BufferLoad(buffer, indices))
    if swizzle and fits(1, pitch):
        return Operand(name, start, swizzle, 0, 8 * swizzle, False)
    if swizzle == 128 and bytes == 2 and fits(_TILE, 1, moved[counted.far]):
        leading = moved[counted.far] * bytes
        return Operand(name, start, swizzle, leading, 8 * swizzle, True)
    rows = "rows of 32, 64 or 128 bytes along K, or of 64 elements of 2 bytes across"
    raise Differs(f"{buffer.name} does not lie in shared memory as tensor cores read it: in {rows}")


def _in_registers(
    side: BufferLoad,
    name: str,
    registers: Buffer,
    named: dict[Var, Expr],
    counted: _Loops,
    group: Var,
    facts: Analyzer,
) -> Operand:
    """A where every thread has its share of it: 8 elements of each 16 columns."""
    moved = _moves(side, named, counted, facts)
    pitch = side.buffer.shape[-1].value if isinstance(side.buffer.shape[-1], IntImm) else 0
    wanted = {counted.rows: 8 * pitch, counted.warp: 16 * pitch, counted.row: pitch, counted.k: 1}
    first = {var: const(0, var.dtype) for var in counted.counted}
    indices = tuple([substitute(index, {**named}) for index in side.indices])
    flat = facts.simplify(substitute(flat_index(side.buffer, indices), first))
    linear = linear_coefficients(flat, [group], facts)
    is_first_row = linear is not None and facts.can_prove(linear[1] < pitch) and facts.can_prove(linear[1] >= 0)
    is_whole = linear is not None and facts.can_prove_equal(linear[1] % 16, 0)
    steps = linear[0][0].value if linear is not None and isinstance(linear[0][0], IntImm) else 0
    if not all([moved[var] == wanted.get(var, 0) for var in counted.counted]) or side.buffer.dtype.nbytes != 2:
        raise Differs(f"{side.buffer.name} is not multiplied as threads have stored it")
    if linear is None or steps != _TILE * pitch or not (is_first_row and is_whole):
        raise Differs(f"{side.buffer.name} is not multiplied by the rows of a warpgroup and 16 columns each")
    start = facts.simplify(linear[1] // 2)
    return Operand(name, address_of(BufferLoad(registers, (start,))), 0, 0, 0, False)


def _moves(side: BufferLoad, named: dict[Var, Expr], counted: _Loops, facts: Analyzer) -> dict[Var, int]:
    """How far an operand moves in memory with each of the variables, in elements."""
    indices = [facts.simplify(substitute(index, named)) for index in side.indices]
    flat = facts.simplify(flat_index(side.buffer, tuple(indices)))
    variables = list(counted.counted)
    linear = linear_coefficients(flat, variables, facts)
    steps = [step.value for step in linear[0] if isinstance(step, IntImm)] if linear is not None else []
    if len(steps) != len(variables):
        raise Differs(f"the index of {side.buffer.name} is no sum of rows and columns")
    return dict(zip(variables, steps, strict=True))


def _kind_of(side: BufferLoad) -> str:
    name = next((name for name, kind in OPERAND_KINDS.items() if kind.dtype is side.dtype), None)
    if name is None:
        raise Differs(f"tensor cores do not multiply {side.dtype}")
    return name


def flat_index(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """The element of the memory behind a buffer."""
    result: Expr = const(0)
    for index, stride in zip(indices, buffer.effective_strides(), strict=True):
        result = result + index * stride
    return result


def _loop_of(loops: Sequence[For], var: Var) -> For:
    return next(loop for loop in loops if loop.loop_var is var)


def _extent(loop: For) -> int:
    return loop.extent.value if isinstance(loop.extent, IntImm) else 0
