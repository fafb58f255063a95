"""pad_einsum: a sum of products runs over padded axes, on padded copies of its operands.

    for i, j, k in T.grid(127, 127, 127):            →    A_pad[v0, v1] = if_then_else(v0 < 127 and …, A[v0, v1], 0)
        with T.block("C"):                                B_pad[v0, v1] = …
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj] for i, j, k in T.grid(128, 128, 128):
                                                              with T.block("C"): C_pad[vi, vj] = C_pad[vi, vj] + A_pad…
                                                          C[v0, v1] = C_pad[v0, v1]

Here `pad_einsum("C", [32, 32, 32])`: each axis grows to a multiple, also one whose size is known only when the program
runs: `n` becomes `(n + 31) // 32 * 32`. Reason: the copies hold the operands and zeros, are made right before the nest,
and are used by it alone; what it computes for padded data axes is not copied back; and each update for a padded
reduction axis adds a product of zeros, which changes no sum that starts at a constant other than -0.0. An axis that is
not padded may be part of an index: X[y + dy]. (That every factor of a floating-point product is zero there is required:
infinity times zero is no number.) What a copy reads must have been written; that is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.analysis.uninitialised import UninitialisedRead, check_initialised
from loopwright.ir import (
    Add,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    IterType,
    IterVar,
    Mul,
    PrimFunc,
    Range,
    Stmt,
    Var,
    cell_region,
    collect,
    const,
    logical_and,
    seq,
    structural_equal,
    substitute,
    uses_var,
)
from loopwright.ir.intrinsics import if_then_else
from loopwright.schedule.errors import BadStepArgument, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.proof.speculative_runs import FailsInExtraRuns, check_body
from loopwright.schedule.rewrite.bindings import TRUE
from loopwright.schedule.rewrite.blocks import is_leaf
from loopwright.schedule.rewrite.buffers import check_plain_use, fresh_buffer
from loopwright.schedule.rewrite.edits import Edits
from loopwright.schedule.rewrite.nests import axes_over, axis_from_zero, counters_over, nest_over
from loopwright.schedule.rewrite.plain_loops import own_nest
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


class NotEinsum(ScheduleError):
    """pad_einsum needs a block alone in a nest of one loop an axis, in which padded axes are indices by themselves.

    Where a reduction axis is padded, the block must also be a sum of products: only zeros added to a sum are known to
    change nothing.

    For example:

        from loopwright import te, tir
        A = te.placeholder((9,), name="A")
        B = te.compute((7,), lambda i: A[i + 2], name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.pad_einsum("B", [4])
    """

    code = "LW0224"

    def __init__(self, realize: BlockRealize, problem: str) -> None:
        super().__init__(f"pad_einsum: block {realize.block.name_hint!r} {problem}", at=realize)


@dataclass(frozen=True)
class _Padded:
    """A buffer of the block, the padded one that takes its place, and how much of each dimension it holds."""

    old: Buffer
    new: Buffer
    held: Sequence[Expr]


def pad_einsum(view: View, block: BlockRealize, padding: Sequence[int]) -> Step:
    """Run `block` over axes whose extents are multiples of `padding`."""
    # Check
    store = _the_store(view, block)
    axes = block.block.iter_vars
    wanted = list(padding)
    good = [isinstance(size, int) and not isinstance(size, bool) and size >= 1 for size in wanted]
    if len(wanted) != len(axes) or not all(good):
        problem = f"padding is {wanted}, and block {block.block.name_hint!r} has {len(axes)} axes"
        raise BadStepArgument("pad_einsum", problem, block, "give a number of at least 1 for each axis")
    sizes = {axis.var: _size(block, axis) for axis in axes}
    grown = {axis.var: _grown(sizes[axis.var], size) for axis, size in zip(axes, wanted, strict=True)}
    padded = {var for var, size in grown.items() if size is not sizes[var]}
    if not padded:
        return Step(view.function, Proof.ORDER_KEPT, at=block)
    _check_indices(block, padded)
    _check_store(block, store, sizes, padded)
    reduced = [axis.var for axis in axes if axis.iter_type == IterType.CommReduce and axis.var in padded]
    if reduced:
        _check_sum(block, store, reduced)
    else:
        check_body("pad_einsum", block.block, block)
    top = own_nest("pad_einsum", view, block, NotEinsum)

    # Build
    operands = _operands(view, block, store, sizes, grown)
    before = [_copy_in(item) for item in operands if item.old is not store.buffer]
    after = [_copy_out(item) for item in operands if item.old is store.buffer]
    swapped = substitute(block, {}, {item.old: item.new for item in operands})
    wider = tuple([_widened(axis, grown[axis.var]) for axis in axes])
    nest: Stmt = swapped.with_(block=swapped.block.with_(iter_vars=wider))
    loops = view.loops_of(block_key(block.block))
    for axis, loop in zip(reversed(axes), reversed(loops), strict=True):
        nest = loop.with_(extent=grown[axis.var], body=nest)
    edits = Edits()
    edits.replaced[top] = seq([*before, nest, *after])
    edits.allocated[view.scope_of(view.block_path(block_key(block.block)))] = [item.new for item in operands]
    after_step = edits.apply(view.function)
    _check_copied(view, after_step, before, operands, block)
    return Step(after_step, Proof.GIVEN, at=block)


def _check_copied(view: View, after: PrimFunc, copies: Sequence[Stmt], operands: Sequence[_Padded], at: Stmt) -> None:
    """A copy reads whole dimensions, also cells that the block itself never read: each must have been written."""
    arguments = set(view.function.argument_buffers())
    if copies and not arguments.issuperset([item.old for item in operands]):
        try:
            check_initialised(after)
        except UninitialisedRead as error:
            raise FailsInExtraRuns("pad_einsum", error, at) from None


def _the_store(view: View, realize: BlockRealize) -> BufferStore:
    block = realize.block
    store = block.body
    if not is_leaf(block) or not isinstance(store, BufferStore) or len(view.block_path(block_key(block))) == 1:
        raise NotEinsum(realize, "is not a single store")
    axes = {axis.var for axis in block.iter_vars}
    own = [store.buffer, *[load.buffer for load in _loads(block)]]
    for buffer in own:
        check_plain_use("pad_einsum", realize, buffer)
    for index in store.indices:
        if not isinstance(index, IntImm) and not (isinstance(index, Var) and index in axes):
            raise NotEinsum(realize, f"uses the index {index}, which is no single axis")
    for load in _loads(block):
        if load.buffer.data is store.buffer.data and not all(map(structural_equal, load.indices, store.indices)):
            raise NotEinsum(realize, f"reads {store.buffer.name} elsewhere than where it writes")
    return store


def _check_indices(realize: BlockRealize, padded: set[Var]) -> None:
    """A padded axis is an index by itself; others may be part of one, as the window of a convolution is."""
    for load in _loads(realize.block):
        for index in load.indices:
            if not isinstance(index, Var) and uses_var(index, padded.__contains__):
                raise NotEinsum(realize, f"uses the index {index}, which is no single axis")


def _check_store(realize: BlockRealize, store: BufferStore, sizes: dict[Var, Expr], padded: set[Var]) -> None:
    """The block writes all of its buffer, each cell for one value of its data axes, and reads it only to sum up."""
    name = store.buffer.name
    for index, extent in zip(store.indices, store.buffer.shape, strict=True):
        # A variable that is no axis of the block, but of one around it, has one value here.
        size = sizes[index] if isinstance(index, Var) and index in sizes else const(1, extent.dtype)
        if not _is_same(extent, size):
            raise NotEinsum(realize, f"does not write all of {name}")
    used = [index for index in store.indices if isinstance(index, Var) and index in sizes]
    data = [axis.var for axis in realize.block.iter_vars if axis.iter_type != IterType.CommReduce]
    single = {var for var in data if _is_same(sizes[var], const(1)) and var not in padded}  # may be written as 0
    if len(set(used)) < len(used) or set(used) | single != set(data):
        raise NotEinsum(realize, f"writes {name} at other indices than its data axes, each once")
    init = realize.block.init
    first = _loads(realize.block) if init is None else _loads_in(init)
    if any([load.buffer is store.buffer for load in first]):
        raise NotEinsum(realize, f"goes on from what {name} holds already")


def _loads(block: Block) -> list[BufferLoad]:
    return [load for part in (block.init, block.body) if part is not None for load in _loads_in(part)]


def _loads_in(part: Stmt) -> list[BufferLoad]:
    return collect(part, BufferLoad)


def _size(realize: BlockRealize, axis: IterVar) -> Expr:
    dom = axis.dom
    if dom is None or not isinstance(dom.min, IntImm) or dom.min.value:
        raise NotEinsum(realize, f"has an axis {axis.var.name} that does not start at 0")
    return dom.extent


def _grown(size: Expr, step: int) -> Expr:
    """The next multiple of `step`; `size` itself where it is one."""
    if isinstance(size, IntImm):
        whole = -(-size.value // step) * step
        return size if whole == size.value else const(whole, size.dtype)
    return size if step == 1 else (size + (step - 1)) // step * step


def _is_same(one: Expr, other: Expr) -> bool:
    if isinstance(one, IntImm) and isinstance(other, IntImm):
        return one.value == other.value
    return structural_equal(one, other)


def _check_sum(realize: BlockRealize, store: BufferStore, reduced: Sequence[Var]) -> None:
    """The block adds products, and what it adds for padded reduction axes is zero."""
    init = realize.block.init
    start = init.value if isinstance(init, BufferStore) else None
    negative = isinstance(start, FloatImm) and start.value == 0 and str(start.value).startswith("-")
    if not isinstance(start, (IntImm, FloatImm)) or negative:
        raise NotEinsum(realize, "reduces, but does not start at a constant other than -0.0")
    value = store.value
    added = None
    if isinstance(value, Add):
        sides = [value.a, value.b]
        own = [isinstance(side, BufferLoad) and side.buffer is store.buffer for side in sides]
        added = sides[1 - own.index(True)] if own.count(True) == 1 else None
    factors = None if added is None else _factors(added)
    if factors is None or any([load.buffer is store.buffer for load in factors]):
        raise NotEinsum(realize, f"stores {value}, which is no sum of products")
    for var in reduced:
        has = [any([index is var for index in load.indices]) for load in factors]
        if not (all(has) if store.value.dtype.is_float else any(has)):
            lacking = factors[has.index(False)].buffer.name
            raise NotEinsum(realize, f"multiplies with {lacking}, which has no axis {var.name}: it would not be zero")


def _factors(expr: Expr) -> list[BufferLoad] | None:
    if isinstance(expr, BufferLoad):
        return [expr]
    if isinstance(expr, Cast):
        return _factors(expr.value)
    if isinstance(expr, Mul):
        one, other = _factors(expr.a), _factors(expr.b)
        return None if one is None or other is None else one + other
    return None


def _operands(
    view: View, realize: BlockRealize, store: BufferStore, sizes: dict[Var, Expr], grown: dict[Var, Expr]
) -> list[_Padded]:
    """The buffers with a dimension that a padded axis indexes."""
    touched: dict[Buffer, list[Sequence[Expr]]] = {}
    for buffer, indices in [(store.buffer, store.indices), *[(x.buffer, x.indices) for x in _loads(realize.block)]]:
        touched.setdefault(buffer, []).append(indices)
    result = []
    for buffer, uses in touched.items():
        held, wider = list(buffer.shape), list(buffer.shape)
        for position, indices in enumerate(zip(*uses, strict=True)):
            padded = [var for var in indices if isinstance(var, Var) and var in sizes and grown[var] is not sizes[var]]
            if not padded:
                continue
            # A dimension may be larger than the axis: what lies past the axis is padding too, and so zero in the copy.
            held[position], wider[position] = sizes[padded[0]], grown[padded[0]]
            same = [_is_same(sizes[var], held[position]) and _is_same(grown[var], wider[position]) for var in padded]
            if len(padded) < len(indices) or not all(same):
                problem = f"indexes dimension {position} of {buffer.name} in several ways, not all padded to one size"
                raise NotEinsum(realize, problem)
            size, room = held[position], buffer.shape[position]
            if isinstance(size, IntImm) and isinstance(room, IntImm) and room.value < size.value:
                held[position] = room  # conditions keep the block from reading past the buffer
            if not _is_same(size, room) and not (isinstance(size, IntImm) and isinstance(room, IntImm)):
                problem = f"touches {buffer.name}, of size {room} where axis {padded[0].name} has {size}"
                raise NotEinsum(realize, problem)
        if any([one is not other for one, other in zip(held, wider, strict=True)]):
            name = view.fresh_block_name(f"{buffer.name}_pad")
            result.append(_Padded(buffer, fresh_buffer(name, wider, buffer, "global"), held))
    return result


def _copy_in(item: _Padded) -> Stmt:
    axes = axes_over(item.new.shape)
    inside = [
        var < extent
        for var, extent, whole in zip(axes, item.held, item.new.shape, strict=True)
        if not structural_equal(extent, whole)
    ]
    value = if_then_else(logical_and(*inside), BufferLoad(item.old, tuple(axes)), const(0, item.old.dtype))
    return _nest(item.new.name, axes, item.new.shape, BufferStore(item.new, value, axes), item.old)


def _copy_out(item: _Padded) -> Stmt:
    axes = axes_over(item.old.shape)
    store = BufferStore(item.old, BufferLoad(item.new, tuple(axes)), axes)
    return _nest(item.new.name, axes, item.old.shape, store, item.new)


def _nest(name: str, axes: Sequence[Var], shape: Sequence[Expr], store: BufferStore, source: Buffer) -> Stmt:
    iter_vars = [axis_from_zero(axis, extent) for axis, extent in zip(axes, shape, strict=True)]
    block = Block(tuple(iter_vars), (cell_region(source, axes),), (cell_region(store.buffer, axes),), name, store)
    loops = counters_over(axes)
    return nest_over(loops, shape, BlockRealize(tuple(loops), TRUE, block))


def _widened(axis: IterVar, size: Expr) -> IterVar:
    assert axis.dom is not None
    return axis.with_(dom=Range.from_min_extent(axis.dom.min, size))
