"""The schedule of a product on dot-product instructions: pad, pack, tile, and mark the block that they compute."""

from __future__ import annotations

from dataclasses import dataclass

from loopwright.autosched.facts import Access, Axis
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.rules.contraction.product import Product
from loopwright.autosched.rules.low_precision.operands import needs_repacking
from loopwright.autosched.rules.low_precision.packing import depth_dimension, pack_panels
from loopwright.autosched.rules.low_precision.plain_product import PlainProduct
from loopwright.autosched.rules.low_precision.sizes import Sizes
from loopwright.autosched.small_steps import loops_below, vectors
from loopwright.ir import Var
from loopwright.schedule import BlockRV, LoopRV, Schedule


def schedule_product(
    sch: Schedule, plain: PlainProduct, sizes: Sizes, machine: Machine, is_prepacked: bool
) -> list[str]:
    """Schedule the product and what is done to its sums; the names of blocks that are left to other rules."""
    product = plain.product
    block = sch.get_block(product.facts.name)
    lanes = machine.lanes(product.facts.dtype)
    rows, columns = _positions(sch, block, product)
    out = _padded(sch, block, product, sizes)
    copy = _row_copy(sch, block, rows, product, plain.converted[0], sizes, machine)
    before = _writer(sch, block, columns, plain.converted[1])
    packed = sch.cache_read(block, columns, "global", [block])
    sch.transform_layout(packed, ("write", 0), _panels(product, sizes))
    # Tiles, and sums that wait between slabs, go where they belong if nothing is done to them.
    is_direct = not plain.epilogue and (sizes.unit.is_tile or sizes.slab < product.k)
    if out is None and not is_direct:
        out = sch.cache_write(block, 0, "global")
    nest = _tile(sch, block, product, sizes)
    if before is not None and is_prepacked:
        sch.compute_inline(before)
        before = None
    sums = sch.get(block).writes[0].buffer.name
    init = sch.decompose_reduction(block, nest.slab) if nest.slab is not None else None
    location: LoopRV | None = None
    if not is_prepacked and sizes.task_rows >= product.m:
        location = nest.task
        sch.compute_at(packed, location)
        sch.sink_alloc(packed, sch.get(packed).writes[0].buffer.name)
    if out is not None:
        _finish(sch, block, sums, out, nest, lanes, plain)
    if init is not None:
        vectors(sch, sch.get_loops(init)[-1], lanes)
    k = min(sizes.slab, sizes.padded(1, 1, product.k)[2])
    sch.tensorize(nest.inner, sizes.unit.intrinsic(sizes.mr, sizes.nr, k, from_zero=nest.slab is None))
    if not is_prepacked:
        outer = pack_panels(sch, packed, before, location, product, sizes)
        if location is None and sizes.threads > 1 and outer:
            sch.parallel(sch.fuse(*outer) if len(outer) > 1 else outer[0])
    if sizes.threads > 1:
        tasks = sch.fuse(*nest.tasks)
        sch.parallel(tasks)
        if sizes.tasks > sizes.threads:
            sch.annotate(tasks, "parallel_dynamic", 1)  # a core that is late leaves its tasks to the others
    return [] if copy is None else [sch.get(copy).name_hint]


def _positions(sch: Schedule, block: BlockRV, product: Product) -> tuple[int, int]:
    """Which of the buffers that the block reads are the row and the column operand."""
    buffers = [region.buffer for region in sch.get(block).reads]
    return buffers.index(product.row_operand.buffer), buffers.index(product.column_operand.buffer)


def _padded(sch: Schedule, block: BlockRV, product: Product, sizes: Sizes) -> BlockRV | None:
    """Round every size up to whole blocks; the block that copies the result back, if there is one."""
    rows, columns, k = sizes.padded(product.m, product.n, product.k)
    assert product.row is not None
    wanted = {product.row.var: rows, product.column.var: columns, product.reduce[0].var: k}
    padding = [wanted[axis.var] if _grows(axis, wanted) else 1 for axis in product.facts.axes]
    if all(size == 1 for size in padding):
        return None
    old = sch.get(block).writes[0].buffer
    sch.pad_einsum(block, padding)
    return sch.get_consumers(block)[0] if sch.get(block).writes[0].buffer is not old else None


def _grows(axis: Axis, wanted: dict[Var, int]) -> bool:
    return axis.var in wanted and wanted[axis.var] != axis.extent


def _writer(sch: Schedule, block: BlockRV, position: int, converted: BlockRV | None) -> BlockRV | None:
    """The block that makes an operand as it is read now, its conversion to another type inlined; or None."""
    buffer = sch.get(block).reads[position].buffer
    if converted is not None and sch.get(converted).writes[0].buffer is buffer:
        return converted
    built = next((result for result in sch.get_producers(block) if sch.get(result).writes[0].buffer is buffer), None)
    is_copy = built is not None and sch.get(built).name_hint == buffer.name and buffer.name.endswith(("_pad", "_pad_1"))
    if converted is not None:
        sch.compute_inline(converted)
    return built if is_copy else None


def _row_copy(
    sch: Schedule,
    block: BlockRV,
    position: int,
    product: Product,
    converted: BlockRV | None,
    sizes: Sizes,
    machine: Machine,
) -> BlockRV | None:
    """The block that copies A: padded, in another type, or along the reduction; None when A is read in place."""
    copy = _writer(sch, block, position, converted)
    if copy is None and (needs_repacking(product) or sizes.copies_a):
        copy = sch.cache_read(block, position, "global", [block])
    if copy is not None and needs_repacking(product):
        _lay_along(sch, copy, product)
    if copy is not None and sizes.unit.is_tile:
        # Rows are an odd number of cache lines apart: those of a tile would share a set of the cache otherwise.
        line = machine.line // bytes_of(sizes.unit.a)
        sch.storage_align(copy, 0, -2, 2 * line, line)
    return copy


def _lay_along(sch: Schedule, copy: BlockRV, product: Product) -> None:
    """Have a copy of A run along the reduction."""
    dimension = product.reduce_dimension
    assert dimension is not None
    indices = [f"d{k}" for k in range(len(product.row_operand.indices))]
    order = [*[index for k, index in enumerate(indices) if k != dimension], indices[dimension]]
    row = product.row_dimension
    if row is not None:  # rows next to the reduction: the instruction reads blocks of both
        order.remove(indices[row])
        order.insert(-1, indices[row])
    sch.transform_layout(copy, ("write", 0), f"lambda {', '.join(indices)}: ({', '.join(order)})")


def _panels(product: Product, sizes: Sizes) -> str:
    """The layout of packed panels: lambda k, j: (j // panel, k // group, j % panel, k % group)."""
    operand: Access = product.column_operand
    indices = [f"d{k}" for k in range(len(operand.indices))]
    column = indices[product.column_dimension or 0]
    depth = indices[depth_dimension(product)]
    others = [index for index in indices if index not in (column, depth)]
    panel, group = sizes.panel, sizes.unit.group
    inner = [f"{column} // {panel}", f"{depth} // {group}", f"{column} % {panel}", f"{depth} % {group}"]
    if group == 1:
        inner = [f"{column} // {panel}", depth, f"{column} % {panel}"]
    return f"lambda {', '.join(indices)}: ({', '.join([*others, *inner])})"


@dataclass(frozen=True)
class _Nest:
    """The loops of the tiled product, by what they do."""

    tasks: list[LoopRV]
    slab: LoopRV | None
    block: LoopRV  # of `mr` × `nr`: what comes after the sums runs in here, or in a task where that is one block
    inner: LoopRV  # the outermost loop of the intrinsic

    @property
    def task(self) -> LoopRV:
        return self.tasks[-1]


def _tile(sch: Schedule, block: BlockRV, product: Product, sizes: Sizes) -> _Nest:
    loops = dict(zip([axis.var for axis in product.facts.axes], sch.get_loops(block), strict=True))
    assert product.row is not None
    rows, row = sch.split(loops[product.row.var], [None, sizes.mr])
    columns, column = sch.split(loops[product.column.var], [None, sizes.nr])
    k = loops[product.reduce[0].var]
    outer = [loops[axis.var] for axis in product.outer]
    slabs: list[LoopRV] = []
    if sizes.slab < product.k:
        slab, k = sch.split(k, [None, sizes.slab])
        slabs.append(slab)
    if sizes.unit.is_tile:
        tasks = [*outer, columns, rows]
        sch.reorder(*tasks, *slabs, row, column, k)
        return _Nest(tasks, slabs[0] if slabs else None, rows, row)
    row_task, strip = sch.split(rows, [None, sizes.task_rows // sizes.mr])
    column_task, tile = sch.split(columns, [None, sizes.task_columns // sizes.nr])
    tasks = [*outer, column_task, row_task]
    sch.reorder(*tasks, *slabs, strip, tile, row, column, k)
    return _Nest(tasks, slabs[0] if slabs else None, tile, row)


def _finish(
    sch: Schedule, block: BlockRV, sums: str, out: BlockRV, nest: _Nest, lanes: int, plain: PlainProduct
) -> None:
    """Bring the sums to where they belong, and do the element-wise work on them."""
    after = list(plain.epilogue)
    if after and not plain.program.is_output(sch.get(out).writes[0].buffer):
        sch.compute_inline(out)
    else:
        after.insert(0, out)
    in_registers = nest.slab is None and nest.block is not nest.task
    where = nest.block if nest.slab is None else nest.task
    for copy in after:
        sch.reverse_compute_at(copy, where)
        loops = loops_below(sch, copy, where)
        if not loops:
            continue  # a single result
        if in_registers:
            for row in loops[:-1]:
                sch.unroll(row)
        vectors(sch, loops[-1], lanes, unrolled=in_registers)
    if in_registers:
        sch.set_scope(block, 0, "local")
    sch.sink_alloc(block, sums)
