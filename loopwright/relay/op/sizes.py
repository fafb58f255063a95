"""The arithmetic of shapes in `infer`: sizes are numbers, expressions of size variables, or `AnyDim()`.

broadcast("add", a.shape, b.shape)      the shape numpy would give, or TypeMismatch
plus(size, 2), times(size, 2), divide_up(size, 2)      AnyDim() stays AnyDim()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.ir import Expr as PrimExpr
from loopwright.ir import as_expr
from loopwright.ir.intrinsics import maximum
from loopwright.ir.operators import floordiv
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.expr import Expr
from loopwright.relay.types import AnyDim, Dim, DimLike, TensorType, as_dim, dims_differ, is_any, same_dim
from loopwright.te.assumed_sizes import assume, assume_broadcast, assume_equal, assume_repeated, broadcast_size


def tensor_type_of(value: Expr) -> TensorType:
    """The type of a value that is a tensor."""
    of = value.checked_type
    assert isinstance(of, TensorType)
    return of


def apply(function: Callable[..., DimLike], *sizes: Dim) -> Dim:
    """`function` of sizes; not known where one of them is not."""
    return AnyDim() if any(is_any(size) for size in sizes) else as_dim(function(*sizes))


def plus(*sizes: Dim) -> Dim:
    return apply(lambda *known: sum(known[1:], known[0]), *sizes)


def minus(one: Dim, other: Dim) -> Dim:
    return apply(lambda a, b: a - b, one, other)


def times(*sizes: Dim) -> Dim:
    """The product; 1 of nothing. A size of 0 makes it 0, whatever the others are."""
    if any(not is_any(size) and isinstance(size, int) and size == 0 for size in sizes):
        return 0

    def product(*known: int | PrimExpr) -> int | PrimExpr:
        total: int | PrimExpr = 1
        for size in known:
            total = total * size
        return total

    return apply(product, *sizes)


def divide_down(one: Dim, other: Dim) -> Dim:
    return apply(_floor, one, other)


def divide_exactly(one: Dim, other: Dim) -> Dim:
    """The quotient of sizes that one divides the other; where that is not known it is assumed, and checked in calls."""
    if is_any(one) or is_any(other) or (isinstance(one, int) and isinstance(other, int)):
        return divide_down(one, other)
    quotient = divide_down(one, other)
    if not isinstance(other, int):
        assume(as_expr(other) >= 1, [other], "it at least 1, for it divides another size")
    whole = as_expr(quotient) * as_expr(other)
    assume(as_expr(one).equal(whole), [one, other], "the first to be a multiple of the second")
    return quotient


def divide_up(one: Dim, other: Dim) -> Dim:
    return apply(lambda a, b: _floor(a + b - 1, b), one, other)


def _floor(one: int | PrimExpr, other: int | PrimExpr) -> int | PrimExpr:
    if isinstance(other, PrimExpr):
        # What is a size may be 0, and its quotient is computed before anybody can object.
        other = maximum(other, 1)
    if isinstance(one, PrimExpr) or isinstance(other, PrimExpr):
        return floordiv(one, other)
    return one // other


def normal_axis(op: str, axis: int, rank: int, *, extra: int = 0) -> int:
    """`axis` counted from the front; `extra` more places where a new axis is meant."""
    if not -(rank + extra) <= axis < rank + extra:
        raise TypeMismatch(f"{op}: axis {axis} is not one of a tensor of {rank} dimensions")
    return axis + rank + extra if axis < 0 else axis


def normal_axes(op: str, axes: int | Sequence[int] | None, rank: int) -> list[int]:
    """Axes counted from the front, in order, each once; None means all of them."""
    if axes is None:
        return list(range(rank))
    listed = [axes] if isinstance(axes, int) else list(axes)
    return sorted({normal_axis(op, int(axis), rank) for axis in listed})


def broadcast_dim(op: str, one: Dim, other: Dim) -> Dim:
    """The size two sizes are broadcast to: one of them is 1, or they are the same.

    Of sizes that are known only in the call that is assumed, and checked there (`relay/size_checks.py`).
    """
    if not is_any(one) and isinstance(one, int) and one == 1:
        return other
    if not is_any(other) and isinstance(other, int) and other == 1:
        return one
    if same_dim(one, other):
        return one
    if is_any(one) or is_any(other):
        return next((size for size in (one, other) if isinstance(size, int)), AnyDim())
    if dims_differ(one, other) and isinstance(one, int) and isinstance(other, int):
        raise TypeMismatch(
            f"{op} is unable to show the following types match: sizes {one} and {other} cannot be broadcast",
            hint="two sizes fit when they are the same, or one of them is 1",
        )
    assume_broadcast(one, other)
    if isinstance(one, int):
        return one
    if isinstance(other, int):
        return other
    return as_dim(broadcast_size(as_expr(one), as_expr(other)))


def broadcast(op: str, one: Sequence[Dim], other: Sequence[Dim]) -> tuple[Dim, ...]:
    """The shape two shapes are broadcast to, matched from the right."""
    rank = max(len(one), len(other))
    left: list[Dim] = [1] * (rank - len(one)) + list(one)
    right: list[Dim] = [1] * (rank - len(other)) + list(other)
    try:
        return tuple(broadcast_dim(op, a, b) for a, b in zip(left, right, strict=True))
    except TypeMismatch as error:
        raise TypeMismatch(
            f"{op} is unable to show the following types match: shapes {text(one)} and {text(other)}",
            why=str(error).split(": ", 1)[-1].splitlines()[0],
            hint="shapes are matched from the right; two sizes fit when they are the same, or one of them is 1",
        ) from None


def equal_dim(one: Dim, other: Dim) -> bool:
    """Whether two sizes may be one: False where they are known to differ; what is not known is assumed, and checked."""
    if is_any(one) or is_any(other):
        return True
    if dims_differ(one, other):
        return False
    assume_equal(one, other)
    return True


def repeats_to(size: Dim, wanted: Dim) -> bool:
    """Whether a size may be repeated to `wanted`: False where it is known to be neither that nor 1; else assumed."""
    if is_any(size) or is_any(wanted):
        return True
    if dims_differ(size, 1) and dims_differ(size, wanted):
        return False
    assume_repeated(size, wanted)
    return True


def at_most(size: Dim, limit: Dim) -> bool:
    """Whether a size may be no larger than another: False where it is known to be larger; else assumed."""
    if is_any(size) or is_any(limit) or same_dim(size, limit):
        return True
    room = minus(limit, size)
    if isinstance(room, int):
        return room >= 0
    assume(as_expr(size) <= limit, [size, limit], "the first to be no larger than the second")
    return True


def text(shape: Sequence[Dim]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def same_dtype(op: str, one: TensorType, other: TensorType) -> None:
    """Refuse operands of different element types."""
    if one.dtype != other.dtype:
        raise TypeMismatch(
            f"{op}: data types {one.dtype} and {other.dtype} do not match in BroadcastRel",
            hint=f'convert one of them: relay.cast(x, "{one.dtype}")',
        )


def require_rank(op: str, what: str, given: TensorType, rank: int) -> None:
    if len(given.shape) != rank:
        raise TypeMismatch(f"{op}: {what} has {len(given.shape)} dimensions, and needs {rank}: {given}")
