"""Elements moved to other places: Transpose, Concat, Split, Slice, Pad, Tile, DepthToSpace, Trilu, ReverseSequence …"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx import dynamic_axes
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.frontends.onnx.values import Results
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import as_expr
from loopwright.ir.intrinsics import maximum, minimum, select
from loopwright.relay.expr import Expr
from loopwright.relay.op.sizes import divide_down, divide_up, plus, times
from loopwright.relay.types import Dim, as_dim, is_any

_FAR = 1 << 31  # ends beyond this mean "to the end"
_MOST_AXES = 30  # of an image
_LARGEST_MASK = 1 << 20  # elements of a triangle that is worth a constant


@converter("Transpose")
def transpose(node: Node, x: Expr) -> Expr:
    rank = node.rank(x)
    axes = node.attr("perm", None)
    if axes is None:
        axes = list(range(rank))[::-1]
    if sorted(node.axis(axis, rank) for axis in axes) != list(range(rank)):
        raise node.bad(f"perm is {list(axes)}, and not an order of {rank} axes")
    return x if list(axes) == list(range(rank)) else relay.transpose(x, axes=axes)


@converter("Concat")
def concat(node: Node, *inputs: Expr) -> Expr:
    if not inputs:
        raise node.bad("there is nothing to put together")
    axis = node.attr("axis", 1 if node.opset < 4 else None)
    if axis is None:
        axis = node.attr("axis")
    axis = node.axis(axis, node.rank(inputs[0]))
    if len(inputs) == 1:
        return inputs[0]
    # An empty part adds nothing.
    kept = [one for one in inputs if node.rank(one) != node.rank(inputs[0]) or not _is_zero(node.shape(one)[axis])]
    if len(kept) == 1:
        return kept[0]
    return relay.concatenate(kept or list(inputs), axis=axis)


def _is_zero(size: Dim) -> bool:
    return isinstance(size, int) and size == 0


@converter("Split")
def split(node: Node, x: Expr, parts: Expr | None = None) -> Results:
    axis = node.axis(node.attr("axis", 0), node.rank(x))
    if parts is not None and node.importer.dynamic and node.known(parts) is None:
        return split_dynamic(node, x, axis, parts)
    given = node.attr("split", None) if parts is None else node.ints(parts)
    size = node.shape(x)[axis]
    if given is None:
        if is_any(size) and node.importer.dynamic and node.output_count > 1:
            return split_dynamic(node, x, axis, _equal_parts_dynamic(node, x, axis))
        edges = _equal_parts(node, size)
        if len(edges) == 2:
            return [x]
        return [_between(x, axis, low, high) for low, high in pairwise(edges)]
    if any(one < 0 for one in given) or (isinstance(size, int) and sum(given) != size):
        raise node.bad(f"parts {list(given)} do not make up the size {size} of axis {axis}")
    if not isinstance(size, int):  # the same tensor, its size checked when the model is called
        if sum(given):
            x = relay.reshape(x, [sum(given) if k == axis else 0 for k in range(node.rank(x))])  # 0 keeps a size
        else:
            wanted = [0 if k == axis else own for k, own in enumerate(node.shape(x))]
            x = relay.reshape(x, wanted, allowzero=True)
    if len(given) == 1:
        return [x]
    cuts = np.cumsum(given)[:-1].tolist()
    if any(one == 0 for one in given):
        return [_between(x, axis, low, high) for low, high in pairwise([0, *cuts, sum(given)])]
    return relay.split(x, cuts, axis=axis)


def split_dynamic(node: Node, x: Expr, axis: int, parts: Expr) -> list[Expr]:
    """Parts whose sizes are found when the model runs; how many there are is known."""
    rank, (count,) = node.rank(x), node.static_shape(parts)
    ends = relay.cumsum(node.cast(parts, "int64"), axis=0)
    begins = relay.subtract(ends, node.cast(parts, "int64"))
    is_cut = node.const([k == axis for k in range(rank)], "bool")
    sizes, zeros, ones = relay.shape_of(x, dtype="int64"), node.const([0] * rank), node.const([1] * rank)
    results = []
    for k in range(count):
        begin, end = (relay.strided_slice(one, begin=[k], end=[k + 1]) for one in (begins, ends))
        cut = relay.where(is_cut, begin, zeros), relay.where(is_cut, end, sizes)
        results.append(relay.strided_slice(x, *cut, ones))
    return results


def _between(x: Expr, axis: int, low: Dim, high: Dim) -> Expr:
    return relay.strided_slice(x, begin=[low], end=[high], axes=[axis])


def _part_count(node: Node) -> int:
    count: int = node.attr("num_outputs", node.output_count)
    if count < 1 or count != node.output_count:
        raise node.bad(f"there are {count} parts for {node.output_count} outputs")
    return count


def _equal_parts_dynamic(node: Node, x: Expr, axis: int) -> Expr:
    """The sizes of equal parts of an axis whose size is found when the model runs."""
    count = _part_count(node)
    size = relay.take(relay.shape_of(x, dtype="int64"), node.const(axis), axis=0)
    one = relay.floor_divide(relay.add(size, node.const(count - 1)), node.const(count))
    left = relay.subtract(size, relay.multiply(node.const(np.arange(count)), one))
    return relay.maximum(relay.minimum(left, one), node.const(0))


def _equal_parts(node: Node, size: Dim) -> list[Dim]:
    """Where parts of the same size begin and end; the last ones are smaller, or empty, where they do not fit."""
    count = _part_count(node)
    if isinstance(size, int):
        return [min(-(-size // count) * k, size) for k in range(count + 1)]
    one = divide_up(size, count)
    ends = [as_dim(minimum(times(one, k), size)) for k in range(1, count)]
    return [0, *ends, size]


@converter("Slice", since=1)
def slice_attributes(node: Node, x: Expr) -> Expr:
    starts, ends = node.attr("starts"), node.attr("ends")
    return sliced(node, x, starts, ends, node.attr("axes", list(range(len(starts)))), [1] * len(starts))


@converter("Slice", since=10)
def slice_(node: Node, x: Expr, starts: Expr, ends: Expr, axes: Expr | None = None, steps: Expr | None = None) -> Expr:
    if node.importer.dynamic and axes is not None and any(
        [one is not None and node.known(one) is None for one in (axes, steps)]
    ):
        return dynamic_axes.sliced(node, x, starts, ends, axes, steps)
    if node.importer.dynamic and any(node.known(one) is None for one in (starts, ends)):
        return _sliced_dynamic(node, x, starts, ends, axes, steps)
    first, last = node.sizes(starts), node.sizes(ends)
    over = list(range(len(first))) if axes is None else node.ints(axes)
    by = [1] * len(first) if steps is None else node.ints(steps)
    return sliced(node, x, first, last, over, by)


def sliced(
    node: Node, x: Expr, starts: Sequence[Dim], ends: Sequence[Dim], axes: Sequence[int], steps: Sequence[int]
) -> Expr:
    """The part of `x` between starts and ends, counted as Python counts; but a start before the first element is the
    first also where the step is negative, as the text of Slice-13 says: clamped to [0, size - 1]."""
    shape = node.shape(x)
    rank = len(shape)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise node.bad(f"starts {starts}, ends {ends}, axes {axes} and steps {steps} are not equally many")
    begin: list[Dim] = []
    end: list[Dim] = []
    over: list[int] = []
    by: list[int] = []
    for first, last, given, step in zip(starts, ends, axes, steps):
        axis = node.axis(given, rank)
        if step == 0:
            raise node.bad("a step is 0")
        size = shape[axis]
        if isinstance(size, int) and isinstance(first, int) and isinstance(last, int):
            low, high, _ = slice(max(first, -size), last, step).indices(size)
            first, last = (low, high) if size else (0, 0)
            if step < 0 and last < 0:
                last = -size - 1  # below the first: -1 would be the last
        elif isinstance(last, int) and last >= _FAR - 1:
            last = size if not isinstance(size, int) else last
        if step < 0 and not (isinstance(size, int) and isinstance(first, int) and isinstance(last, int)):
            first = _not_before_the_first(first, size)
        if isinstance(first, int) and first == 0 and last is size and step == 1:
            continue
        begin.append(first)
        end.append(last)
        over.append(axis)
        by.append(int(step))
    if not over:
        return x
    return relay.strided_slice(x, begin=begin, end=end, strides=by, axes=over)


def _not_before_the_first(start: Dim, size: Dim) -> Dim:
    """A start that may lie before the first element of an axis, moved to it; -1 may do so in an empty axis only."""
    if isinstance(start, int) and start >= -1:
        return start
    if isinstance(start, int):
        return as_dim(maximum(plus(size, start), 0))
    location = select(as_expr(start) < 0, plus(size, start), start)
    return as_dim(maximum(location, 0))


def _sliced_dynamic(node: Node, x: Expr, starts: Expr, ends: Expr, axes: Expr | None, steps: Expr | None) -> Expr:
    """Bounds found when the model runs: those of every axis, those that are not sliced at their full size."""
    rank = node.rank(x)
    count = node.static_shape(starts)[0]
    over = list(range(count)) if axes is None else [node.axis(axis, rank) for axis in node.ints(axes)]
    shape = relay.shape_of(x, dtype="int64")
    begins: list[Expr] = []
    finishes: list[Expr] = []
    by = [1] * rank
    for axis, step in zip(over, [1] * count if steps is None else node.ints(steps)):
        by[axis] = step
    for axis in range(rank):
        if axis in over:
            at = over.index(axis)
            begin = relay.strided_slice(node.cast(starts, "int64"), begin=[at], end=[at + 1])
            if by[axis] < 0:  # as in `sliced`
                size = relay.strided_slice(shape, begin=[axis], end=[axis + 1])
                zero = node.const([0])
                begin = relay.maximum(relay.where(relay.less(begin, zero), relay.add(begin, size), begin), zero)
            begins.append(begin)
            finishes.append(relay.strided_slice(node.cast(ends, "int64"), begin=[at], end=[at + 1]))
        else:
            begins.append(node.const([0]))
            finishes.append(relay.strided_slice(shape, begin=[axis], end=[axis + 1]))
    begin = relay.concatenate(begins, axis=0) if rank > 1 else begins[0]
    end = relay.concatenate(finishes, axis=0) if rank > 1 else finishes[0]
    return relay.strided_slice(x, begin, end, node.const(by))


@converter("Pad", since=1)
def pad_attributes(node: Node, x: Expr) -> Expr:
    widths = node.attr("pads", None) or node.attr("paddings")
    return padded(node, x, widths, node.const(node.attr("value", 0.0), x), node.attr("mode", "constant"))


@converter("Pad", since=11)
def pad(node: Node, x: Expr, pads: Expr, value: Expr | None = None, axes: Expr | None = None) -> Expr:
    rank = node.rank(x)
    if node.importer.dynamic and any([one is not None and node.known(one) is None for one in (pads, axes)]):
        return _padded_dynamic(node, x, pads, value, axes)
    widths = node.ints(pads)
    if axes is not None:
        over = [node.axis(axis, rank) for axis in node.ints(axes)]
        if len(widths) != 2 * len(over):
            raise node.bad(f"{len(widths)} pads are given for {len(over)} axes")
        spread = [0] * (2 * rank)
        for index, axis in enumerate(over):
            spread[axis], spread[rank + axis] = widths[index], widths[len(over) + index]
        widths = spread
    if value is None or node.shape(value) == (0,):
        value = node.const(0, x)
    elif node.rank(value):
        value = relay.reshape(value, ())
    return padded(node, x, widths, value, node.attr("mode", "constant"))


def _padded_dynamic(node: Node, x: Expr, pads: Expr, value: Expr | None, axes: Expr | None) -> Expr:
    """Widths found when the model runs: those of every axis, 0 where an axis is not named."""
    rank, count = node.rank(x), node.static_shape(pads)[0] // 2
    both = relay.reshape(node.cast(pads, "int64"), (2, count))
    if axes is not None:
        sides = relay.split(both, 2, axis=0)
        both = relay.stack(
            [dynamic_axes.spread(node, axes, rank, relay.reshape(side, (count,))) for side in sides], axis=0
        )
    fill = node.const(0, x) if value is None or node.shape(value) == (0,) else relay.reshape(value, ())
    return relay.nn.pad(x, relay.transpose(both, axes=[1, 0]), fill, node.attr("mode", "constant"))


def padded(node: Node, x: Expr, widths: Sequence[int], value: Expr, mode: str) -> Expr:
    """Begins of all axes, then ends; what is negative is cut off."""
    rank = node.rank(x)
    if len(widths) != 2 * rank:
        raise node.bad(f"{len(widths)} pads are given for {rank} dimensions")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise node.invalid("mode", mode, "constant, reflect, edge or wrap")
    before, after = list(widths[:rank]), list(widths[rank:])
    cut = [axis for axis in range(rank) if before[axis] < 0 or after[axis] < 0]
    for axis in cut:
        begin = max(-before[axis], 0)
        end = -max(-after[axis], 0)
        size = node.shape(x)[axis]
        last: Dim = size if end == 0 else plus(size, end)
        x = relay.strided_slice(x, begin=[begin], end=[last], axes=[axis])
        before[axis], after[axis] = max(before[axis], 0), max(after[axis], 0)
    if not any(before) and not any(after):
        return x
    if mode == "wrap":
        return _wrapped(node, x, before, after)
    if mode == "constant":
        known = node.known(value)
        fill = value if known is None else known.reshape(()).item()
        return relay.nn.pad(x, list(zip(before, after)), pad_value=fill, pad_mode="constant")
    if mode == "reflect" and _reflects_far(node, x, before, after):
        return _taken(node, x, before, after, _reflected)
    return relay.nn.pad(x, list(zip(before, after)), pad_mode=mode)


def _reflects_far(node: Node, x: Expr, before: Sequence[int], after: Sequence[int]) -> bool:
    sizes = node.shape(x)
    return any(isinstance(size, int) and max(b, a) >= max(size, 1) for size, b, a in zip(sizes, before, after))


def _reflected(locations: np.ndarray, size: int) -> np.ndarray:
    period = max(2 * (size - 1), 1)
    inside = locations % period
    return np.where(inside < size, inside, period - inside)


def _wrapped(node: Node, x: Expr, before: Sequence[int], after: Sequence[int]) -> Expr:
    return _taken(node, x, before, after, lambda locations, size: locations % size)


def _taken(
    node: Node, x: Expr, before: Sequence[int], after: Sequence[int], place_of: Callable[[np.ndarray, int], np.ndarray]
) -> Expr:
    """Each padded axis as a choice of elements that are there."""
    for axis, size in enumerate(node.static_shape(x)):
        if before[axis] or after[axis]:
            if size == 0:
                raise node.bad(f"axis {axis} has no elements to pad with")
            locations = place_of(np.arange(-before[axis], size + after[axis]), size)
            x = relay.take(x, relay.const(locations, "int64"), axis=axis)
    return x


@converter("Tile", since=1)
def tile_old(node: Node, x: Expr, tiles: Expr, axis: Expr) -> Expr:
    reps = [1] * node.rank(x)
    reps[node.axis(int(node.scalar(axis)), node.rank(x))] = int(node.scalar(tiles))
    return relay.tile(x, reps)


@converter("Tile", since=6)
def tile(node: Node, x: Expr, repeats: Expr) -> Expr:
    reps = node.sizes_if_known(repeats)
    if reps is None:
        return relay.tile(x, repeats)
    if len(reps) != node.rank(x):
        raise node.bad(f"{len(reps)} repeats are given for {node.rank(x)} dimensions")
    if any(isinstance(one, PrimExpr) for one in reps):
        return _tiled_symbolic(node, x, reps)
    if any(one == 0 for one in reps):
        shape = [size * one for size, one in zip(node.static_shape(x), node.ints(repeats))]
        return relay.const(np.zeros(shape), str(node.dtype(x)))
    return x if all(one == 1 for one in reps) else relay.tile(x, reps)


def _tiled_symbolic(node: Node, x: Expr, reps: Sequence[Dim]) -> Expr:
    """Repeated by sizes that have names: a new axis beside each one, broadcast and merged."""
    shape = node.shape(x)
    apart = [size for one in shape for size in (1, one)]
    wide = [size for one, rep in zip(shape, reps) for size in (rep, one)]
    spread = relay.broadcast_to(relay.reshape(x, tuple(apart), allowzero=True), tuple(wide))
    return relay.reshape(spread, tuple(times(one, rep) for one, rep in zip(shape, reps)), allowzero=True)


@converter("DepthToSpace")
def depth_to_space(node: Node, x: Expr) -> Expr:
    mode = node.attr("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise node.invalid("mode", mode, "DCR or CRD")
    batch, channels, height, width = node.shape(x)
    block = node.attr("blocksize")
    if block < 1 or (isinstance(channels, int) and channels % (block * block)):
        raise node.bad(f"{channels} channels cannot be parted into blocks of {block} by {block}")
    less = divide_down(channels, block * block)
    if mode == "DCR":
        apart = relay.reshape(x, (batch, block, block, less, height, width), allowzero=True)
        moved = relay.transpose(apart, axes=[0, 3, 4, 1, 5, 2])
    else:
        apart = relay.reshape(x, (batch, less, block, block, height, width), allowzero=True)
        moved = relay.transpose(apart, axes=[0, 1, 4, 2, 5, 3])
    return relay.reshape(moved, (batch, less, times(height, block), times(width, block)), allowzero=True)


@converter("SpaceToDepth")
def space_to_depth(node: Node, x: Expr) -> Expr:
    batch, channels, height, width = node.shape(x)
    block = node.attr("blocksize")
    mode = node.attr("mode", "DCR")
    for size in (height, width):
        if block < 1 or (isinstance(size, int) and size % block):
            raise node.bad(f"a size of {size} cannot be parted into blocks of {block}")
    rows, columns = divide_down(height, block), divide_down(width, block)
    apart = relay.reshape(x, (batch, channels, rows, block, columns, block), allowzero=True)
    moved = relay.transpose(apart, axes=[0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4])
    return relay.reshape(moved, (batch, times(channels, block * block), rows, columns), allowzero=True)


@converter("Trilu", since=14)
def trilu(node: Node, x: Expr, k: Expr | None = None) -> Expr:
    """One triangle of the last two axes; zeros in the other."""
    upper = bool(node.attr("upper", 1))
    if any(_is_zero(size) for size in node.shape(x)):
        return x
    rows, columns = node.shape(x)[-2:]
    along = _along_diagonals(rows, columns)
    if k is not None and node.importer.dynamic and node.known(k) is None:
        one = relay.reshape(node.cast(k, "int64"), ())
        if along is None:
            return relay.trilu(x, relay.cast(one, "int32"), upper=upper)
        numbers = node.const(along)
        inside = relay.greater_equal(numbers, one) if upper else relay.less_equal(numbers, one)
        return relay.where(inside, x, node.const(0, x))
    offset = 0 if k is None else int(node.scalar(k))
    if along is not None:
        mask = along >= offset if upper else along <= offset
        return relay.where(relay.const(mask, "bool"), x, node.const(0, x))
    return relay.trilu(x, relay.const(max(1 - _FAR, min(offset, _FAR - 1)), "int32"), upper=upper)


def _along_diagonals(rows: Dim, columns: Dim) -> np.ndarray | None:
    """The number of the diagonal that each element of a small matrix is on."""
    if not isinstance(rows, int) or not isinstance(columns, int) or rows * columns > _LARGEST_MASK:
        return None
    result: np.ndarray = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    return result


@converter("ReverseSequence", since=10)
def reverse_sequence(node: Node, x: Expr, lengths: Expr) -> Expr:
    batch, time = node.attr("batch_axis", 1), node.attr("time_axis", 0)
    return relay.reverse_sequence(x, lengths, seq_axis=time, batch_axis=batch)


@converter("CenterCropPad", since=18)
def center_crop_pad(node: Node, x: Expr, shape: Expr) -> Expr:
    """Each axis to a size: what is too long is cut on both sides, what is too short padded with zeros."""
    rank = node.rank(x)
    axes = [node.axis(axis, rank) for axis in node.attr("axes", list(range(rank)))]
    if node.importer.dynamic and node.known(shape) is None:
        return _centred_dynamic(node, x, axes, shape)
    wanted = node.ints(shape)
    for axis, size in zip(axes, wanted, strict=True):
        given = node.static_shape(x)[axis]
        if given > size:
            begin = (given - size) // 2
            x = relay.strided_slice(x, begin=[begin], end=[begin + size], axes=[axis])
        elif given < size:
            before = (size - given) // 2
            widths = [(0, 0)] * rank
            widths[axis] = (before, size - given - before)
            x = relay.nn.pad(x, widths, pad_value=0)
    return x


def _centred_dynamic(node: Node, x: Expr, axes: Sequence[int], shape: Expr) -> Expr:
    """CenterCropPad to sizes that are found when the model runs: every axis is cut, then padded; most by nothing."""
    rank = node.rank(x)
    sizes, zeros, two = relay.shape_of(x, dtype="int64"), node.const([0] * rank), node.const(2)
    named = node.const(list(axes))
    is_named = relay.greater(dynamic_axes.named(node, named, rank), node.const(0))
    wanted = relay.where(is_named, dynamic_axes.spread(node, named, rank, shape), sizes)
    begin = relay.floor_divide(relay.maximum(relay.subtract(sizes, wanted), zeros), two)
    kept = relay.minimum(sizes, wanted)
    part = relay.strided_slice(x, begin, relay.add(begin, kept), node.const([1] * rank))
    room = relay.subtract(wanted, kept)
    before = relay.floor_divide(room, two)
    return relay.nn.pad(part, relay.stack([before, relay.subtract(room, before)], axis=1), node.const(0, x), "constant")


@converter("Col2Im", since=18)
def col2im(node: Node, x: Expr, image_shape: Expr, block_shape: Expr) -> Expr:
    """Blocks added up where they lie in the image: columns that an im2col made, back again."""
    if node.importer.dynamic and any(node.known(one) is None for one in (image_shape, block_shape)):
        return _blocks_dynamic(node, x, image_shape, block_shape)
    image, block = node.ints(image_shape), node.ints(block_shape)
    rank = len(image)
    strides = node.attr("strides", [1] * rank)
    dilations = node.attr("dilations", [1] * rank)
    pads = node.attr("pads", [0] * 2 * rank)
    batch, columns, _ = node.static_shape(x)
    channels = columns // int(np.prod(block))
    full = [size + pads[k] + pads[rank + k] for k, size in enumerate(image)]
    counts = [(full[k] - dilations[k] * (block[k] - 1) - 1) // strides[k] + 1 for k in range(rank)]
    # Where each element of each block lies in the padded image, as one number.
    inside = np.stack(np.meshgrid(*[np.arange(n) for n in block], indexing="ij"), -1).reshape(-1, rank)
    begins = np.stack(np.meshgrid(*[np.arange(n) for n in counts], indexing="ij"), -1).reshape(-1, rank)
    locations = inside[:, None] * np.array(dilations) + begins[None] * np.array(strides)
    flat = np.ravel_multi_index(tuple(np.moveaxis(locations, -1, 0)), full).reshape(-1)
    parts = relay.reshape(x, (batch * channels, flat.size), allowzero=True)
    empty = relay.const(np.zeros((batch * channels, int(np.prod(full)))), str(node.dtype(x)))
    indices = relay.const(np.broadcast_to(flat, (batch * channels, flat.size)), "int64")
    summed = relay.scatter_elements(empty, indices, parts, axis=1, reduction="add")
    whole = relay.reshape(summed, (batch, channels, *full), allowzero=True)
    if not any(pads):
        return whole
    begin = [pads[k] for k in range(rank)]
    end = [pads[k] + image[k] for k in range(rank)]
    return relay.strided_slice(whole, begin=begin, end=end, axes=list(range(2, 2 + rank)))


def _blocks_dynamic(node: Node, x: Expr, image_shape: Expr, block_shape: Expr) -> Expr:
    """Col2Im with shapes that are found when the model runs: where elements lie is computed there."""
    (rank,) = node.static_shape(image_shape)
    if not 1 <= rank <= _MOST_AXES:
        raise node.bad(f"an image of {rank} axes")
    strides, dilations = node.attr("strides", [1] * rank), node.attr("dilations", [1] * rank)
    pads = node.attr("pads", [0] * 2 * rank)
    one, zero = node.const(1), node.const(0)

    def numbers(vector: Expr) -> list[Expr]:
        return [relay.take(node.cast(vector, "int64"), node.const(k), axis=0) for k in range(rank)]

    image, block = numbers(image_shape), numbers(block_shape)
    full = [relay.add(size, node.const(pads[k] + pads[rank + k])) for k, size in enumerate(image)]
    # Where each element of each block lies in the padded image, as one number: axes of the block, then of the blocks.
    flat: Expr = zero
    for k in range(rank):
        reach = relay.multiply(node.const(dilations[k]), relay.subtract(block[k], one))
        room = relay.subtract(relay.subtract(full[k], reach), one)
        count = relay.add(relay.floor_divide(room, node.const(strides[k])), one)
        inside = relay.multiply(relay.arange(zero, block[k], one, dtype="int64"), node.const(dilations[k]))
        begins = relay.multiply(relay.arange(zero, count, one, dtype="int64"), node.const(strides[k]))
        spread = relay.add(
            relay.expand_dims(inside, axis=1, num_newaxis=2 * rank - 1 - k),
            relay.expand_dims(begins, axis=1, num_newaxis=rank - 1 - k),
        )
        flat = relay.add(relay.multiply(flat, full[k]), spread)
    flat = relay.reshape(flat, (-1,))
    batch = relay.take(relay.shape_of(x, dtype="int64"), zero, axis=0)
    columns = relay.take(relay.shape_of(x, dtype="int64"), one, axis=0)
    channels = relay.floor_divide(columns, relay.prod(node.cast(block_shape, "int64"), axis=[0]))
    rows, elements = relay.multiply(batch, channels), relay.ndarray_size(flat, dtype="int64")
    parts = relay.reshape(x, relay.stack([rows, elements], axis=0), allowzero=True)
    pixels = reduce(relay.multiply, full)
    empty = relay.full(node.const(0, x), relay.stack([rows, pixels], axis=0), dtype=str(node.dtype(x)))
    indices = relay.broadcast_to(flat, relay.stack([rows, elements], axis=0))
    summed = relay.scatter_elements(empty, indices, parts, axis=1, reduction="add")
    whole = relay.reshape(summed, relay.stack([batch, channels, *full], axis=0), allowzero=True)
    begin = [zero, zero, *(node.const(pads[k]) for k in range(rank))]
    end = [batch, channels, *(relay.add(node.const(pads[k]), image[k]) for k in range(rank))]
    steps = node.const([1] * (rank + 2))
    return relay.strided_slice(whole, relay.stack(begin, axis=0), relay.stack(end, axis=0), steps)
