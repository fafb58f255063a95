"""Intrinsics of tensor copies (TMA): boxes of a tensor that go to shared memory and back asynchronously.

The host makes a tensor map outside the kernel; the kernel says which box:

    A_map = T.tensor_map(A.data, "float16", 128, 2, m, k, k, 1, 64, 64)      shape (m, k), strides (k, 1), box (64, 64)
    T.tensor_copy_async(T.address_of(S[0]), A_map, T.address_of(full[0]), i, j)            all 32 lanes of a warp
    T.tensor_store_async(B_map, T.address_of(S[0]), i, j)                                  one thread
    T.bulk_commit_group(); T.bulk_wait_group_read(0)                                       the same one, afterwards

Dimensions are in numpy's order, the outermost first; shape, strides and coordinates count elements. A box lies in
shared memory row by row. With a swizzle of 32, 64 or 128 bytes the 16 bytes at address `a` change places with others:

    128: a ^ (a >> 7 & 7) << 4        64: a ^ (a >> 7 & 3) << 4        32: a ^ (a >> 7 & 1) << 4

Coordinates may be negative, and a box may reach beyond the end: what is outside is zero, and is not stored.

`tensor_copy_async` announces the bytes of the whole box at the mbarrier, as `bulk_copy_async` does, and is no arrival.
`tensor_store_async` reads its source until a `bulk_wait_group_read` for its group, and what threads stored to it before
counts after their `fence_proxy_async`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from loopwright.ir.buffer import BufferLoad
from loopwright.ir.expr import Call, Expr, IntImm, StringImm, Var, as_exprs
from loopwright.ir.op import CallEffect, Op, register_op
from loopwright.ir.types import PointerType, PrimType, Type
from loopwright.runtime.dtype import HANDLE, INT32, INT64, VOID, DataType

TENSOR_MAP_SCOPE: Final = "tensor_map"  # of the pointer type of a variable that holds a tensor map
MOST_DIMENSIONS: Final = 5
_LONGEST_BOX: Final = 256  # elements along one dimension
_SWIZZLES: Final = (0, 32, 64, 128)
_SIZES: Final = (1, 2, 4, 8)  # bytes of an element
_LAYOUT: Final = 4  # arguments of tensor_map before the shape
_COPIES: Final = ("tensor_copy_async", "tensor_store_async")
_GROUPS: Final = ("bulk_commit_group", "bulk_wait_group", "bulk_wait_group_read")
TENSOR_COPY_INTRINSICS: Final = frozenset(f"tir.{name}" for name in (*_COPIES, *_GROUPS))

register_op("tir.tensor_map", CallEffect.PURE)
for _name in TENSOR_COPY_INTRINSICS:
    register_op(_name, CallEffect.OPAQUE)


class TensorMapFields(NamedTuple):
    """The arguments of `tensor_map`, by their meaning."""

    pointer: Expr
    dtype: DataType
    swizzle: int
    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    box: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.box)


def tensor_map(pointer: object, dtype: object, swizzle: object, rank: object, *sizes: object) -> Expr:
    """A map of the tensor behind `pointer`; `sizes` are its shape, its strides and the box that each copy moves."""
    name = dtype if isinstance(dtype, StringImm) else StringImm(str(dtype))
    data, *head = as_exprs([pointer, name, swizzle, rank])
    element, kind, many = DataType(name.value), _integer("swizzle", head[1]), _integer("rank", head[2])
    if data.dtype is not HANDLE:
        raise TypeError(f"tensor_map() takes a pointer, as A.data is one; got {data.dtype}")
    if element.lanes != 1 or element.bits != 8 * element.nbytes or element.nbytes not in _SIZES:
        raise TypeError(f"tensor_map() takes elements of 1, 2, 4 or 8 bytes; got {element}")
    if kind not in _SWIZZLES:
        raise TypeError(f"tensor_map() takes 0, 32, 64 or 128 as swizzle; got {kind}")
    if not 1 <= many <= MOST_DIMENSIONS:
        raise TypeError(f"tensor_map() takes 1 to {MOST_DIMENSIONS} as rank; got {many}")
    if len(sizes) != 3 * many:
        wanted = f"{many} extents, {many} strides and {many} extents of the box"
        raise TypeError(f"tensor_map() of rank {many} takes {wanted}; got {len(sizes)} numbers")
    given = as_exprs(sizes)
    for value in given:
        if value.dtype not in (INT32, INT64):
            raise TypeError(f"tensor_map() takes int32 or int64 as shape, strides and box; got {value.dtype}")
    box = [_integer("box", value) for value in given[2 * many :]]
    if any(not 1 <= extent <= _LONGEST_BOX for extent in box):
        raise TypeError(f"tensor_map() takes boxes of 1 to {_LONGEST_BOX} elements along each dimension; got {box}")
    if kind and box[-1] * element.nbytes != kind:
        have = f"{box[-1]} × {element.nbytes} bytes"
        raise TypeError(f"tensor_map() with swizzle {kind} takes boxes whose rows have {kind} bytes; got {have}")
    last = given[2 * many - 1]
    if not isinstance(last, IntImm) or last.value != 1:
        raise TypeError(f"tensor_map() takes tensors whose last stride is 1; got {last}")
    return Call(HANDLE, Op.get("tir.tensor_map"), (data, *head, *given))


def tensor_map_fields(call: Call) -> TensorMapFields:
    """What a call of `tensor_map` says."""
    pointer, dtype, swizzle, rank, *sizes = call.args
    assert isinstance(dtype, StringImm) and isinstance(swizzle, IntImm) and isinstance(rank, IntImm)
    many = rank.value
    box = tuple([size.value for size in sizes[2 * many :] if isinstance(size, IntImm)])
    shape, strides = tuple(sizes[:many]), tuple(sizes[many : 2 * many])
    return TensorMapFields(pointer, DataType(dtype.value), swizzle.value, shape, strides, box)


def is_tensor_map(value: object) -> bool:
    """Whether an expression is a call of `tensor_map`, or a variable that holds one."""
    if isinstance(value, Var):
        kind = value.type_annotation
        return isinstance(kind, PointerType) and kind.storage_scope == TENSOR_MAP_SCOPE
    return isinstance(value, Call) and value.op.name == "tir.tensor_map"


def type_of_value(value: Expr) -> Type:
    """The type of a variable that is bound to `value`."""
    if isinstance(value, Var):
        return value.type_annotation
    if isinstance(value, Call) and is_tensor_map(value):
        return PointerType(PrimType(tensor_map_fields(value).dtype), TENSOR_MAP_SCOPE)
    return PrimType(value.dtype)


def tensor_copy_async(target: object, map: object, barrier: object, *coordinates: object) -> Expr:
    """Begin to copy the box at `coordinates` to `target`; the phase of `barrier` waits. All lanes of a warp say it."""
    to, tensor, full, *at = as_exprs([target, map, barrier, *coordinates])
    _check_shared("tensor_copy_async", "target", to)
    _check_map("tensor_copy_async", tensor)
    load = _element(full)
    if load is None or load.dtype is not DataType("uint64") or not load.buffer.scope().startswith("shared"):
        wanted = "the address of one uint64 in shared memory, as T.address_of(full[0]) gives it,"
        raise TypeError(f"tensor_copy_async() takes {wanted} as barrier; got {_described(full)}")
    _check_coordinates("tensor_copy_async", at)
    return Call(VOID, Op.get("tir.tensor_copy_async"), (to, tensor, full, *at))


def tensor_store_async(map: object, source: object, *coordinates: object) -> Expr:
    """Begin to store the box at `source` to `coordinates` of the tensor, as a copy of this thread's next group."""
    tensor, of, *at = as_exprs([map, source, *coordinates])
    _check_map("tensor_store_async", tensor)
    _check_shared("tensor_store_async", "source", of)
    _check_coordinates("tensor_store_async", at)
    return Call(VOID, Op.get("tir.tensor_store_async"), (tensor, of, *at))


def bulk_commit_group() -> Expr:
    """The stores that this thread has begun since the last call are a group, which may be empty."""
    return Call(VOID, Op.get("tir.bulk_commit_group"), ())


def bulk_wait_group(groups: object) -> Expr:
    """Wait until the stores of this thread's groups, all but the last `groups`, are in global memory."""
    return _wait("bulk_wait_group", groups)


def bulk_wait_group_read(groups: object) -> Expr:
    """Wait until the stores of this thread's groups, all but the last `groups`, have read their sources."""
    return _wait("bulk_wait_group_read", groups)


def _wait(name: str, groups: object) -> Expr:
    (count,) = as_exprs([groups])
    if _integer("groups", count, name) < 0:
        raise TypeError(f"{name}() takes a number of groups that is not negative; got {count}")
    return Call(VOID, Op.get(f"tir.{name}"), (count,))


def _integer(what: str, number: Expr, name: str = "tensor_map") -> int:
    if not isinstance(number, IntImm):
        raise TypeError(f"{name}() takes a constant as {what}; got {number}")
    return number.value


def _element(value: Expr) -> BufferLoad | None:
    """What the address is of."""
    load = value.args[0] if isinstance(value, Call) and value.op.name == "tir.address_of" else None
    return load if isinstance(load, BufferLoad) else None


def _described(value: Expr) -> str:
    load = _element(value)
    return "no address" if load is None else f"that of {load.dtype} in {load.buffer.scope()} memory"


def _check_shared(name: str, argument: str, value: Expr) -> None:
    load = _element(value)
    if load is None or not load.buffer.scope().startswith("shared"):
        wanted = "an address in shared memory, as T.address_of(S[0]) gives it,"
        raise TypeError(f"{name}() takes {wanted} as {argument}; got {_described(value)}")


def _check_map(name: str, value: Expr) -> None:
    if not (isinstance(value, Var) and is_tensor_map(value)):
        wanted = "a variable that holds a tensor map, as A_map = T.tensor_map(…) makes it,"
        raise TypeError(f"{name}() takes {wanted} as map; got {value}")


def _check_coordinates(name: str, values: list[Expr]) -> None:
    if not 1 <= len(values) <= MOST_DIMENSIONS:
        raise TypeError(f"{name}() takes 1 to {MOST_DIMENSIONS} coordinates; got {len(values)}")
    for value in values:
        if value.dtype is not INT32:
            raise TypeError(f"{name}() takes int32 as coordinates; got {value.dtype}")


__all__ = [
    "bulk_commit_group",
    "bulk_wait_group",
    "bulk_wait_group_read",
    "tensor_copy_async",
    "tensor_map",
    "tensor_store_async",
]
