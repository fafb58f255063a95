"""matmul and tensordot: products of matrices, and of tensors over any of their axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright import te
from loopwright.ir import Expr
from loopwright.te.tags import default_tag
from loopwright.te.tensor import shape_text
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.rows import check_axis
from loopwright.topi.parts.sizes import check_same, known
from loopwright.topi.registry import operator
from loopwright.topi.testing import contraction as meaning
from loopwright.topi.types import Dim, Ints

MATMUL: Final = "matmul"  # the tag of both


@operator(reference=meaning.matmul, samples=meaning.matmul_samples)
def matmul(a: te.Tensor, b: te.Tensor, transp_a: bool = False, transp_b: bool = False) -> te.Tensor:
    """The product of two matrices, each transposed first if so wanted, added up in their own type."""
    for name, tensor in (("a", a), ("b", b)):
        if not isinstance(tensor, te.Tensor) or tensor.ndim != 2:
            shape = shape_text(tensor.shape) if isinstance(tensor, te.Tensor) else repr(tensor)
            raise InvalidShapeError("matmul", f"{name} is {shape}, no matrix", "give tensors of 2 dimensions")
    rows, inner = (a.shape[1], a.shape[0]) if transp_a else (a.shape[0], a.shape[1])
    other, columns = (b.shape[1], b.shape[0]) if transp_b else (b.shape[0], b.shape[1])
    check_same("matmul", "the inner size", ("a", inner), ("b", other))
    k = te.reduce_axis((0, inner), name="k")

    def body(i: Expr, j: Expr) -> Expr:
        left = a(k.var, i) if transp_a else a(i, k.var)
        right = b(j, k.var) if transp_b else b(k.var, j)
        return te.sum(left * right, axis=k)

    result: te.Tensor = te.compute((rows, columns), body, name="T_matmul", tag=default_tag(MATMUL))
    return result


@operator(reference=meaning.tensordot, samples=meaning.tensordot_samples)
def tensordot(a: te.Tensor, b: te.Tensor, axes: Dim | Sequence[Ints] = 2) -> te.Tensor:
    """The sum of products over pairs of axes; the other axes of `a` come first in the result, then those of `b`.

    `axes` is a number n (the last n axes of `a` with the first n of `b`), or a pair: the axes of `a`, those of `b`.
    """
    ours, theirs = _pairs(a, b, axes)
    for one, other in zip(ours, theirs, strict=True):
        check_same("tensordot", "the size of an axis", (f"a[{one}]", a.shape[one]), (f"b[{other}]", b.shape[other]))
    free_a = [axis for axis in range(a.ndim) if axis not in ours]
    free_b = [axis for axis in range(b.ndim) if axis not in theirs]
    reduced = [te.reduce_axis((0, a.shape[axis]), name=f"k{number}") for number, axis in enumerate(ours)]

    def body(*at: Expr) -> Expr:
        left: dict[int, Expr] = dict(zip(free_a, at, strict=False))
        right: dict[int, Expr] = dict(zip(free_b, at[len(free_a) :], strict=True))
        left.update({axis: k.var for axis, k in zip(ours, reduced, strict=True)})
        right.update({axis: k.var for axis, k in zip(theirs, reduced, strict=True)})
        term = a(*[left[axis] for axis in range(a.ndim)]) * b(*[right[axis] for axis in range(b.ndim)])
        return te.sum(term, axis=reduced) if reduced else term

    shape = [*[a.shape[axis] for axis in free_a], *[b.shape[axis] for axis in free_b]]
    result: te.Tensor = te.compute(shape, body, name="T_tensordot", tag=default_tag(MATMUL))
    return result


def _pairs(a: te.Tensor, b: te.Tensor, axes: Dim | Sequence[Ints]) -> tuple[list[int], list[int]]:
    """Which axes are multiplied with each other."""
    op = "tensordot"
    if isinstance(axes, Sequence) and len(axes) == 2:
        sides = [list(side) if isinstance(side, Sequence) else [side] for side in axes]
        ours = [check_axis(op, a, axis) for axis in sides[0]]
        theirs = [check_axis(op, b, axis) for axis in sides[1]]
    else:
        number = None if isinstance(axes, Sequence) else known(axes)
        if number is None or not 0 <= number <= min(a.ndim, b.ndim):
            raise InvalidShapeError(
                op, f"axes {axes!r} for tensors of {a.ndim} and {b.ndim} dimensions", "give a number or a pair of lists"
            )
        ours, theirs = list(range(a.ndim - number, a.ndim)), list(range(number))
    if len(ours) != len(theirs) or len(set(ours)) != len(ours) or len(set(theirs)) != len(theirs):
        raise InvalidShapeError(op, f"axes {axes!r} do not pair up", "name as many axes of one as of the other")
    return ours, theirs
