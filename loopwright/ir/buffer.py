"""Buffers: typed, shaped views of memory, and the expressions that read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, NoReturn

from loopwright.ir.expr import Call, Expr, IntImm, Ramp, Range, StringImm, Var, as_expr, as_exprs, const, pointer
from loopwright.ir.node import Node, base_node, derived, node, when_used
from loopwright.ir.op import CallEffect, register_op
from loopwright.ir.products import product
from loopwright.ir.types import PointerType
from loopwright.runtime.dtype import BOOL, DataType
from loopwright.runtime.errors import LoopwrightError

DEFAULT_ALIGNMENT = 64  # bytes: what our own allocations keep, and one cache line on every supported CPU
STORAGE_SCOPES: Final = ("global", "local", "shared", "warp", "wmma", "m16n8k8", "texture")  # what comes before a dot


class WrongIndexCount(LoopwrightError, ValueError):
    """A buffer or tensor was indexed with too few or too many indices.

    For example:

        from loopwright import te

        A = te.placeholder((4, 5), name="A")
        te.compute((4,), lambda i: A[i, 0, 0], name="B")
    """

    code = "LW0505"

    def __init__(self, name: str, rank: int, given: int) -> None:
        super().__init__(
            f"{name} has {rank} dimension{'s' * (rank != 1)}, but {given} ind{'ex' if given == 1 else 'ices'} "
            f"{'was' if given == 1 else 'were'} given",
            hint=f"write {name}[{', '.join('ijklmnpq'[k % 8] for k in range(rank)) or '()'}]",
            fields={"buffer": name, "rank": rank, "given": given},
        )


class BufferNotASequence(LoopwrightError, TypeError):
    """A buffer was iterated over; its elements have no values before the program runs, so a loop names them.

    For example:

        from loopwright import tir

        A = tir.decl_buffer((4,), name="A")
        list(A)
    """

    code = "LW0514"

    def __init__(self, buffer: Buffer) -> None:
        super().__init__(
            f"buffer {buffer.name} cannot be iterated over",
            why="its elements have no values before the program runs",
            hint=f"loop over its indices, as in for i in range(n), and use {buffer.name}[i]",
        )


class BadBufferShape(LoopwrightError, ValueError):
    """A buffer's shape is not made of sizes: integers that are not negative, or integer expressions.

    For example:

        from loopwright import tir

        tir.decl_buffer((4, -1), name="A")
    """

    code = "LW0515"

    def __init__(self, name: str, axis: int, dim: Expr) -> None:
        hint = "sizes are integers; use // to divide them"
        if isinstance(dim, IntImm):
            what, hint = str(dim.value), "sizes are not negative; 0 makes an empty buffer"
        elif isinstance(dim, StringImm):
            what = f"a text, {dim.value!r}"
            hint = f"for a size known at the call: {dim.value} = T.int32(), then T.match_buffer(handle, ({dim.value},))"
        else:
            what = f"of type {dim.dtype}"
        super().__init__(f"buffer {name}: dimension {axis} of the shape is {what}", hint=hint)


class BadBufferMemory(LoopwrightError, TypeError):
    """The memory of a buffer is no pointer variable.

    A buffer looks through a pointer that has a name: a parameter, memory that is allocated, or an address that a let
    names.

    For example:

        from loopwright import tir

        A = tir.decl_buffer((16,), "int32", name="A")
        tir.decl_buffer((4,), "int32", data=tir.address_of(A[4]))
    """

    code = "LW0517"

    def __init__(self, name: str, data: object) -> None:
        hint = 'name the address first: p: T.handle("int32") = T.address_of(A[4]), then data=p'
        super().__init__(f"buffer {name}: its data is {data}, which is no pointer variable", hint=hint)


@base_node
class Buffer(Node):
    """Memory at `data` seen as an array; two buffers are the same only when they are one object.

    `strides` is empty for the compact row-major layout. `elem_offset` counts elements from `data`.
    """

    READ: ClassVar[int] = 1  # bits of `access_ptr`
    WRITE: ClassVar[int] = 2

    __slots__ = (
        "axis_separators",
        "buffer_type",
        "data",
        "data_alignment",
        "dtype",
        "elem_offset",
        "name",
        "offset_factor",
        "shape",
        "strides",
    )

    def __init__(
        self,
        data: Var,
        dtype: str | DataType,
        shape: Sequence[object],
        strides: Sequence[object] = (),
        elem_offset: object = 0,
        name: str = "buffer",
        data_alignment: int = DEFAULT_ALIGNMENT,
        offset_factor: int = 1,
        buffer_type: str = "default",
        axis_separators: Sequence[int] = (),
        span: object = None,
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "data", data)
        set_field(self, "dtype", DataType(dtype))
        set_field(self, "shape", as_exprs(shape))
        set_field(self, "strides", as_exprs(strides))
        set_field(self, "elem_offset", as_expr(elem_offset))
        set_field(self, "name", name)
        set_field(self, "data_alignment", data_alignment)
        set_field(self, "offset_factor", offset_factor)
        set_field(self, "buffer_type", buffer_type)
        set_field(self, "axis_separators", tuple(int(k) for k in axis_separators))
        set_field(self, "span", span)

    data: Var
    dtype: DataType
    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    elem_offset: Expr
    name: str
    data_alignment: int
    offset_factor: int
    buffer_type: str
    axis_separators: tuple[int, ...]

    def with_(self, **changes: object) -> Buffer:
        """A new buffer with some fields changed; this one when no field really changes."""
        fields = {name: getattr(self, name) for name in Buffer.__slots__} | {"span": self.span}
        if all(fields[name] is value for name, value in changes.items()):
            return self
        return Buffer(**{**fields, **changes})

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def scope(self) -> str:
        """The memory the buffer lives in: "global", "shared", "local", …"""
        annotation = self.data.type_annotation
        scope = annotation.storage_scope if isinstance(annotation, PointerType) else "global"
        return scope or "global"

    def effective_strides(self) -> tuple[Expr, ...]:
        """The strides in elements; those of the compact row-major layout when none are given."""
        if self.strides or not self.shape:
            return self.strides
        strides: list[Expr] = [const(1, self.shape[-1].dtype)]
        for extent in reversed(self.shape[1:]):
            strides.append(product([strides[-1], extent], extent.dtype))
        return tuple(reversed(strides))

    def allocated_extents(self) -> tuple[Expr, ...]:
        """What an allocation reserves for the buffer: its shape, or as many elements as offset and strides reach."""
        if not self.strides:
            if isinstance(self.elem_offset, IntImm) and self.elem_offset.value > 0:
                return (self.elem_offset + product(self.shape),)
            return self.shape
        last = self.elem_offset
        for extent, stride in zip(self.shape, self.strides, strict=True):
            last = last + (extent - 1) * stride
        return (last + 1,)

    def offset_of(self, indices: Sequence[object]) -> list[Expr]:
        """Where the element at `indices` stands in the flattened buffer: one offset, or one a group of axes."""
        given = as_exprs(indices)
        if len(given) != self.ndim:
            raise WrongIndexCount(self.name, self.ndim, len(given))
        if not self.axis_separators:
            offset = self.elem_offset
            for index, stride in zip(given, self.effective_strides(), strict=True):
                offset = offset + index * stride
            return [_analyzer().simplify(offset)]
        result, begin = [], 0
        for end in (*self.axis_separators, self.ndim):
            offset = const(0, self.elem_offset.dtype)
            for index, extent in zip(given[begin:end], self.shape[begin:end], strict=True):
                offset = offset * extent + index
            result.append(_analyzer().simplify(offset))
            begin = end
        return result

    def __iter__(self) -> NoReturn:
        raise BufferNotASequence(self)  # without it, Python would try the indices 0, 1, 2, … and never stop

    def __getitem__(self, indices: object) -> BufferLoad | BufferRegion:
        """`A[i, j]` reads an element; `A[0:4, j]` is a region (or, with a step, a vector)."""
        if not isinstance(indices, tuple):
            indices = tuple(indices) if isinstance(indices, list) else (indices,)
        if len(indices) != self.ndim:
            raise WrongIndexCount(self.name, self.ndim, len(indices))
        if not any(isinstance(index, slice) for index in indices):
            return BufferLoad(self, indices)
        if any(isinstance(index, slice) and index.step is not None for index in indices):
            return BufferLoad(self, tuple([_ramp(self, k, index) for k, index in enumerate(indices)]))
        return BufferRegion(self, tuple([_range(self, k, index) for k, index in enumerate(indices)]))

    def vload(self, begin: object, dtype: str | DataType | None = None) -> BufferLoad:
        """A vector of `dtype` read from consecutive elements of the last dimension."""
        return BufferLoad(self, _vector_indices(self, begin, DataType(dtype or self.dtype)))

    def vstore(self, begin: object, value: object) -> Node:
        """A statement that stores a vector to consecutive elements of the last dimension."""
        stored = as_expr(value)
        return store_statement[0](self, stored, _vector_indices(self, begin, stored.dtype))

    def access_ptr(
        self,
        access_mask: int | str,
        ptr_type: str | DataType = "handle",
        content_lanes: int = 1,
        offset: object = 0,
        extent: object = None,
    ) -> Expr:
        """A pointer to the buffer's memory, `offset` elements in, to hand to a call.

        `access_mask` says what the call does with it: "r" reads, "w" writes, "rw" both (or the bits 1 and 2). With
        `content_lanes` it points to vectors, and offsets count them. `extent` is how many elements the call may touch.
        """
        mask = _access_mask(self.name, access_mask)
        start = self.elem_offset + as_expr(offset)
        size = _element_count(self) - as_expr(offset) if extent is None else as_expr(extent)
        if content_lanes > 1:
            start, size = start // content_lanes, size // content_lanes if extent is None else size
        element = self.dtype.with_lanes(self.dtype.lanes * content_lanes)
        kind = Call(element, _TYPE_ANNOTATION, ())
        return Call(DataType(ptr_type), _ACCESS_PTR, (kind, self.data, start, size, const(mask)))

    def get_flattened_buffer(self) -> Buffer:
        """The same memory as one dimension in row-major order; with axis separators, one for each group of axes."""
        if self.ndim == len(self.axis_separators) + 1 and not self.strides:
            return self
        if self.strides and self.shape and not self.axis_separators:
            return self.with_(shape=(self.strides[0] * self.shape[0],), strides=(), axis_separators=())
        ends = [*self.axis_separators, self.ndim]
        sizes: list[Expr] = []
        begin = 0
        for end in ends:
            sizes.append(product(self.shape[begin:end]))
            begin = end
        return self.with_(shape=tuple(sizes), strides=(), axis_separators=tuple(range(1, len(sizes))))


class BadAccessMask(LoopwrightError, ValueError):
    """`access_ptr` was told neither to read nor to write, or something else than that.

    For example:

        from loopwright import tir

        tir.decl_buffer((4,), name="A").access_ptr("x")
    """

    code = "LW0540"

    def __init__(self, name: str, mask: object) -> None:
        super().__init__(
            f"{name}.access_ptr: {mask!r} does not say what the pointer is for",
            hint='use "r", "w" or "rw", or the sum of 1 (reads) and 2 (writes)',
        )


def _access_mask(name: str, mask: int | str) -> int:
    if isinstance(mask, str) and mask and set(mask) <= {"r", "w"}:
        return ("r" in mask) + 2 * ("w" in mask)
    if isinstance(mask, int) and 0 < mask < 4:
        return mask
    raise BadAccessMask(name, mask)


def _element_count(buffer: Buffer) -> Expr:
    if buffer.strides and buffer.shape:
        return buffer.strides[0] * buffer.shape[0]
    return product(buffer.shape)


_ACCESS_PTR: Final = register_op("tir.tvm_access_ptr", CallEffect.READ_STATE)
_TYPE_ANNOTATION: Final = register_op("tir.type_annotation", CallEffect.PURE)
_analyzer: Final = when_used("loopwright.arith", "Analyzer")
store_statement: Final[list[Any]] = []  # how to make a store: statements come after buffers, and put it here


def _vector_indices(buffer: Buffer, begin: object, dtype: DataType) -> tuple[Expr, ...]:
    indices = list(as_exprs(begin if isinstance(begin, (tuple, list)) else (begin,)))
    if dtype.lanes > buffer.dtype.lanes:
        indices[-1] = Ramp(indices[-1], const(1, indices[-1].dtype), dtype.lanes // buffer.dtype.lanes)
    return tuple(indices)


def _range(buffer: Buffer, axis: int, index: object) -> Range:
    if not isinstance(index, slice):
        value = as_expr(index)
        return Range.from_min_extent(value, const(1, value.dtype))
    low = as_expr(0 if index.start is None else index.start)
    high = buffer.shape[axis] if index.stop is None else as_expr(index.stop)
    count = high - low
    return Range.from_min_extent(low, count if isinstance(count, IntImm) else _analyzer().simplify(count))


def _ramp(buffer: Buffer, axis: int, index: object) -> Expr:
    if not isinstance(index, slice):
        return as_expr(index)
    span = _range(buffer, axis, slice(index.start, index.stop))
    step = as_expr(1 if index.step is None else index.step)
    if not isinstance(span.extent, IntImm):
        raise LoopwrightError(f"{buffer.name}: a vector slice needs a constant length, got {span.extent!r}", at=span)
    if not isinstance(step, IntImm) or step.value == 0:
        raise LoopwrightError(f"{buffer.name}: the step of a vector slice is a constant other than 0, got {step!r}")
    lanes = -(-span.extent.value // step.value)
    return span.min if lanes == 1 else Ramp(span.min, const(step.value, span.min.dtype), lanes)


def loaded_dtype(buffer: Buffer, indices: tuple[Expr, ...]) -> DataType:
    """The type of the value at `indices`: lanes multiply when an index is a vector."""
    if len(indices) != len(buffer.shape):
        raise WrongIndexCount(buffer.name, len(buffer.shape), len(indices))
    lanes = 1
    for index in indices:
        lanes *= index.dtype.lanes
    return buffer.dtype if lanes == 1 else buffer.dtype.with_lanes(buffer.dtype.lanes * lanes)


@node
class BufferLoad(Expr):
    """The element (or vector of elements: only the last index may be a vector) of `buffer` at `indices`."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    dtype: DataType = derived("loaded_dtype(buffer, indices)")


@node
class BufferRegion(Node):
    """A box of a buffer: one range a dimension."""

    buffer: Buffer
    region: tuple[Range, ...]


@node
class MatchBufferRegion(Node):
    """`buffer` names the region `source` inside a block; its leading unit dimensions may be dropped."""

    buffer: Buffer
    source: BufferRegion


def cell_region(buffer: Buffer, indices: Sequence[Expr]) -> BufferRegion:
    """The one cell of a buffer at `indices`, as a region."""
    return BufferRegion(buffer, tuple([Range.from_min_extent(index, const(1, index.dtype)) for index in indices]))


def whole_region(buffer: Buffer) -> BufferRegion:
    """All of a buffer, as a region."""
    return BufferRegion(buffer, tuple([Range.from_min_extent(const(0, size.dtype), size) for size in buffer.shape]))


def stored_dtype(dtype: DataType) -> DataType:
    """What a pointer to memory of that type points to: truth values take a byte each."""
    return DataType("int8") if dtype is BOOL else dtype


def decl_buffer(
    shape: object,
    dtype: str | DataType | None = None,
    name: str = "buffer",
    data: Var | None = None,
    strides: Sequence[object] | None = None,
    elem_offset: object = None,
    scope: str = "",
    data_alignment: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
    span: object = None,
) -> Buffer:
    """A new buffer; a bare shape means one dimension, and memory of its own is assumed unless `data` is given."""
    sizes = as_exprs(shape if isinstance(shape, (tuple, list, Sequence)) else (shape,))
    for axis, size in enumerate(sizes):
        if not size.dtype.is_int or (isinstance(size, IntImm) and size.value < 0):
            raise BadBufferShape(name, axis, size)
    if data is not None and not isinstance(data, Var):
        raise BadBufferMemory(name, data)
    element = DataType(dtype or "float32")
    index_dtype = sizes[0].dtype if sizes else DataType("int32")
    if elem_offset is None and offset_factor:
        elem_offset = Var(f"{name}_elem_offset", index_dtype)
    if buffer_type == "auto_broadcast" and not strides:  # where an axis has one element, the call makes its stride 0
        strides = [Var(f"{name}_stride{axis}", size.dtype) for axis, size in enumerate(sizes)]
    return Buffer(
        data=data if data is not None else pointer(name, stored_dtype(element), scope or "global"),
        dtype=element,
        shape=sizes,
        strides=strides or (),
        elem_offset=const(0, index_dtype) if elem_offset is None else elem_offset,
        name=name,
        data_alignment=DEFAULT_ALIGNMENT if data_alignment <= 0 else data_alignment,
        offset_factor=offset_factor or 1,
        buffer_type="auto_broadcast" if buffer_type == "auto_broadcast" else "default",
        axis_separators=axis_separators or (),
        span=span,
    )
