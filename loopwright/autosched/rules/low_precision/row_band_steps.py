"""The schedule of a convolution on bands: rows of the image, four channels interleaved, windows in tile registers.

parallel for n, f0, y0:               a task: some filters of some lines
    rows = the lines it reads         padding and all that feeds the product
    for x0:                           pixels whose windows lie in one cache line of the band
        band = rows, interleaved
        sums = the convolution        one intrinsic: sums in tile registers over the whole window
    result = element-wise work on sums

Where pixels are one long line, a task is some of them, and its filters are done a few at a time, sums and result.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from loopwright.autosched.facts import Axis, const
from loopwright.autosched.machine import Machine, bytes_of
from loopwright.autosched.program import Program
from loopwright.autosched.rules.low_precision.im2col import folded
from loopwright.autosched.rules.low_precision.row_band import Band
from loopwright.autosched.rules.low_precision.row_band_sizes import BandSizes, interleaved_at_once
from loopwright.autosched.small_steps import loops_below, vectors
from loopwright.ir import Buffer, Expr
from loopwright.schedule import BlockRV, LoopRV, Schedule
from loopwright.transform.tensor_intrinsics.x86_amx import ROW_BYTES
from loopwright.transform.tensor_intrinsics.x86_amx_window import amx_window


def schedule_band(
    sch: Schedule,
    band: Band,
    feeding: Sequence[str],
    epilogue: Sequence[BlockRV],
    sizes: BandSizes,
    machine: Machine,
    program: Program,
) -> str:
    """Schedule everything; the name of the block that packs the weights."""
    block = sch.get_block(band.matrices.facts.name)
    image, weights = band.image.buffer, band.weights.buffer
    before = [sch.get_block(name) for name in feeding]
    out, batch = _padded(sch, block, band, sizes)
    packing = _pack_weights(sch, block, batch.get(weights, weights), weights, band, sizes)
    rows = _rows(sch, block, batch.get(image, image), image, before, band)
    after = _after(sch, block, out, epilogue, band, program)
    nest = _tile(sch, block, band, sizes)
    # Memory of their own for the sums and the band of a task: tiles see it as it lies, so it is small from here on.
    last = sch.stage(block, nest.after, sch.get(block).writes[0].buffer.name, "global")
    for step in after:
        sch.reverse_compute_inline(step)
    pixels = _joined(sch, last, nest.after, 1 if band.is_flat else 2)
    if pixels is not None:
        vectors(sch, pixels, machine.lanes("float32"))
    _fill(sch, block, rows, nest, band, sizes)
    sch.tensorize(nest.inner, amx_window(sizes.shape(band), sizes.unit.kind, from_zero=True))
    if sizes.threads > 1:
        tasks = sch.fuse(*nest.tasks) if len(nest.tasks) > 1 else nest.tasks[0]
        sch.parallel(tasks)
        if sizes.tasks > sizes.threads:
            sch.annotate(tasks, "parallel_dynamic", 1)  # a core that is late leaves its tasks to the others
    return sch.get(packing).name_hint


def _position(sch: Schedule, block: BlockRV, buffer: Buffer) -> int:
    return [region.buffer for region in sch.get(block).reads].index(buffer)


def _padded(sch: Schedule, block: BlockRV, band: Band, sizes: BandSizes) -> tuple[BlockRV | None, dict[Buffer, Buffer]]:
    """Round filters and channels up to whole tiles; what copies the result back, and what operands became."""
    wanted = {band.filter.var: sizes.all_filters, band.channel.var: sizes.channels}
    facts = band.matrices.facts
    padding = [wanted[axis.var] if wanted.get(axis.var, axis.extent) != axis.extent else 1 for axis in facts.axes]
    if all(size == 1 for size in padding):
        return None, {}
    old = [region.buffer for region in sch.get(block).reads]
    result = sch.get(block).writes[0].buffer
    sch.pad_einsum(block, padding)
    new = [region.buffer for region in sch.get(block).reads]
    out = sch.get_consumers(block)[0] if sch.get(block).writes[0].buffer is not result else None
    return out, {a: b for a, b in zip(old, new, strict=True) if a is not b}


def _layout(band: Band, results: Sequence[str]) -> str:
    """A layout over the axes of the block, which are called v0, v1, …"""
    return f"lambda {', '.join(_names(band).values())}: ({', '.join(results)},)"


def _names(band: Band) -> dict[Expr, str]:
    return {axis.var: f"v{k}" for k, axis in enumerate(band.matrices.facts.axes)}


def _maker(sch: Schedule, block: BlockRV, buffer: Buffer) -> BlockRV:
    return next(result for result in sch.get_producers(block) if sch.get(result).writes[0].buffer is buffer)


def _pack_weights(sch: Schedule, block: BlockRV, now: Buffer, before: Buffer, band: Band, sizes: BandSizes) -> BlockRV:
    """Weights in tiles of 16 filters: W[f // 16, ky, kx, c // 64, f % 16, c % 64]."""
    names = _names(band)
    filter_, channel = names[band.filter.var], names[band.channel.var]
    named = [] if band.is_flat else [axis for axis in band.window if axis is not None]
    single = [names[axis.var] for axis in band.matrices.reduce if axis not in (band.channel, *named)]
    window = ["0" if axis is None else names[axis.var] for axis in ([None] if band.is_flat else band.window)]
    window[0] = " + ".join([window[0], *single])  # axes of a single place count nothing
    outer, inner = (
        (f"{filter_} // 16", f"{channel} // {sizes.k}"),
        (f"{filter_} % 16", f"{channel} % {sizes.k}"),
    )
    order = [outer[0], *window, outer[1], *inner]
    packing = sch.reindex_cache_read(block, _position(sch, block, now), "global", _layout(band, order))
    if now is not before:
        sch.compute_inline(_maker(sch, packing, now))
    return packing


def _rows(sch: Schedule, block: BlockRV, now: Buffer, image: Buffer, before: Sequence[BlockRV], band: Band) -> BlockRV:
    """The block that makes rows of channels, pixels along them, with padding and whatever else feeds the product."""
    names = _names(band)
    makers = [*before, *([] if now is image else [_maker(sch, block, now)])]
    if band.is_flat:
        pixels = folded(band.pixels, names)
        used = [axis for axis in band.matrices.facts.axes if band.image.uses(axis.var)]
        left = [names[axis.var] for axis in used if axis.is_reduce and axis is not band.channel]
        order = [*[names[axis.var] for axis in band.around], names[band.channel.var], " + ".join([pixels, *left])]
        rows = sch.reindex_cache_read(block, _position(sch, block, now), "global", _layout(band, order))
        for maker in makers:
            sch.compute_inline(maker)
        sch.transform_block_layout(rows, _over(used, order, names))
        return rows
    if makers:
        rows = makers[-1]
        for maker in makers[:-1]:
            sch.compute_inline(maker)
    else:
        rows = sch.cache_read(block, _position(sch, block, now), "global", [block])
    step = band.strides[-1]
    head = [f"d{k}" for k in range(len(band.image.indices))]
    channel, (line, pixel) = head[band.image.own_dimension(band.channel.var) or 0], head[-2:]
    others = [name for name in head[:-2] if name != channel]
    parted = [pixel] if step == 1 else [f"{pixel} // {step}"]
    remainder = [] if step == 1 else [f"{pixel} % {step}"]
    layout = f"lambda {', '.join(head)}: ({', '.join([*others, line, *remainder, channel, *parted])})"
    sch.transform_layout(rows, ("write", 0), layout)
    sch.transform_block_layout(rows, layout)
    return rows


def _over(used: Sequence[Axis], order: Sequence[str], names: dict[Expr, str]) -> str:
    return f"lambda {', '.join([names[axis.var] for axis in used])}: ({', '.join(order)},)"


def _interleaved(buffer: Buffer, band: Band, group: int) -> str:
    """Rows [n, line, remainder, c, x] as [n, c // 4, line, remainder, x, c % 4]."""
    head = [f"d{k}" for k in range(buffer.ndim)]
    channel, others = head[-2], head[: len(band.around)]
    order = [*others, f"{channel} // {group}", *head[len(others) : -2], head[-1], f"{channel} % {group}"]
    return f"lambda {', '.join(head)}: ({', '.join(order)})"


def _after(
    sch: Schedule, block: BlockRV, out: BlockRV | None, epilogue: Sequence[BlockRV], band: Band, program: Program
) -> list[BlockRV]:
    """The blocks that work on the sums; pixels that are one long line are so from here on."""
    facts, names = band.matrices.facts, _names(band)
    if not band.is_flat:
        if out is None:
            out = sch.cache_write(block, 0, "global")
        if epilogue and not program.is_output(sch.get(out).writes[0].buffer):
            sch.compute_inline(out)
            return [*epilogue]
        return [out, *epilogue]
    pixels, around = folded(band.pixels, names), [names[axis.var] for axis in band.around]
    line = [*around, names[band.filter.var], pixels]
    sums = sch.reindex_cache_write(block, 0, "global", _layout(band, line))
    after = [sums, *([] if out is None else [out]), *epilogue]
    for step in after[:-1]:
        sch.compute_inline(step)
    result: dict[Expr, str] = {index: f"v{k}" for k, index in enumerate(facts.write.indices)}
    order = [*[result[axis.var] for axis in band.around], result[band.filter.var], folded(band.pixels, result)]
    sch.transform_block_layout(after[-1], f"lambda {', '.join(result.values())}: ({', '.join(order)},)")
    reduce = [band.channel, *[axis for axis in band.matrices.reduce if axis is not band.channel]]
    sch.transform_block_layout(block, _layout(band, [*line, folded(reduce, names)]))
    return [after[-1]]


class _Nest:
    """The loops of the convolution, by what they do."""

    def __init__(self, tasks: list[LoopRV], location: LoopRV, after: LoopRV, inner: LoopRV) -> None:
        self.tasks = tasks
        self.place = location  # where the band is made
        self.after = after  # where sums are done
        self.inner = inner  # the outermost loop of the intrinsic

    @property
    def task(self) -> LoopRV:
        return self.tasks[-1]


def _tile(sch: Schedule, block: BlockRV, band: Band, sizes: BandSizes) -> _Nest:
    if band.is_flat:
        *around, filters, pixels, channels = sch.get_loops(block)
        filters, some, filter_ = sch.split(filters, [None, sizes.task_filters // sizes.filters, sizes.filters])
        blocks, channel = sch.split(channels, [None, sizes.k])
        tile, pixel = sch.split(pixels, [None, sizes.pixels])
        tasks = [*around, filters, tile]
        sch.reorder(*tasks, some, filter_, pixel, blocks, channel)
        return _Nest(tasks, tile, some, filter_)
    loops = dict(zip([axis.var for axis in band.matrices.facts.axes], sch.get_loops(block), strict=True))
    filters, filter_ = sch.split(loops[band.filter.var], [None, sizes.filters])
    blocks, channel = sch.split(loops[band.channel.var], [None, sizes.k])
    lines, line = sch.split(loops[band.pixels[0].var], [None, sizes.lines])
    tiles, pixel = sch.split(loops[band.pixels[1].var], [None, sizes.pixels])
    reduce = [loops[axis.var] for axis in band.matrices.reduce if axis is not band.channel]
    tasks = [*[loops[axis.var] for axis in band.around], filters, lines]
    sch.reorder(*tasks, tiles, filter_, line, pixel, *reduce, blocks, channel)
    return _Nest(tasks, tiles, lines, filter_)


def _joined(sch: Schedule, block: BlockRV, location: LoopRV, pixels: int) -> LoopRV | None:
    """The loop over the pixels of a block at a place, lines as one; None for a single result."""
    loops = loops_below(sch, block, location)
    count = min(pixels, len(loops))
    if not count:
        return None
    return sch.fuse(*loops[-count:]) if count > 1 else loops[-1]


def _fill(sch: Schedule, block: BlockRV, rows: BlockRV, nest: _Nest, band: Band, sizes: BandSizes) -> None:
    """Make the band where it is used: a few rows, then those interleaved."""
    group, buffer = sizes.unit.group, sch.get(rows).writes[0].buffer
    panel = sch.stage(block, nest.place, buffer.name, "global", layout=_interleaved(buffer, band, group))
    line = ROW_BYTES // bytes_of(str(buffer.dtype))
    if band.is_flat and sizes.pixels * group % line:
        sch.storage_align(panel, 0, -3, line, 0)  # tiles begin with a cache line
    *others, channels, pixel = loops_below(sch, panel, nest.place)
    groups, channel = sch.split(channels, [None, group])
    sch.reorder(*others, groups, channel, pixel)
    # Whole lines are padded at once: then what is copied of a line is the same for all of them.
    location = groups if band.is_flat else nest.task
    sch.compute_at(rows, location)
    sch.sink_alloc(rows, buffer.name)
    wide = const(sch.get(pixel).extent) or 1
    once = interleaved_at_once(wide)
    if once < wide:
        parts, pixel = sch.split(pixel, [None, once])
        sch.reorder(parts, channel, pixel)
    sch.tensorize(channel, f"interleave_{group}x{once}_{buffer.dtype}")
    pixel = loops_below(sch, rows, location)[-1]
    part = gcd(const(sch.get(pixel).extent) or 1, band.pixels[-1].extent or 1)
    if band.is_flat and max(band.strides) > 1 and part > 1:
        _, pixel = sch.split(pixel, [None, part])  # pixels of one line, which are equally far apart
    sch.vectorize(pixel)
