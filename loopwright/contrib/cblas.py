"""`contrib.cblas`: matrix products by the BLAS that numpy brings, as functions that compiled code calls by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopwright.ir.intrinsics import call_packed
from loopwright.runtime.registry import get_global_func, register_func
from loopwright.te import Tensor, extern

__all__ = ["batch_matmul", "matmul"]

_NAMES = ("tvm.contrib.cblas.matmul", "tvm.contrib.cblas.batch_matmul", "tvm.contrib.cblas.batch_matmul_iterative")


def matmul(lhs: Tensor, rhs: Tensor, transa: bool = False, transb: bool = False, **kwargs: Any) -> Tensor:
    """The product of two matrices, each transposed first where that is said."""
    shape = (lhs.shape[1 if transa else 0], rhs.shape[0 if transb else 1])
    return _product(_NAMES[0], shape, lhs, rhs, transa, transb, kwargs)


def batch_matmul(
    lhs: Tensor, rhs: Tensor, transa: bool = False, transb: bool = False, iterative: bool = False, **kwargs: Any
) -> Tensor:
    """The products of two stacks of matrices, one by one; numpy's BLAS has one way, whatever `iterative` says."""
    shape = (lhs.shape[0], lhs.shape[2 if transa else 1], rhs.shape[1 if transb else 2])
    return _product(_NAMES[2 if iterative else 1], shape, lhs, rhs, transa, transb, kwargs)


def _product(
    function: str, shape: object, lhs: Tensor, rhs: Tensor, transa: bool, transb: bool, options: dict[str, Any]
) -> Tensor:
    def body(ins: Any, outs: Any) -> Any:
        return call_packed(function, ins[0], ins[1], outs[0], transa, transb)

    result: Tensor = extern(shape, [lhs, rhs], body, **{"name": "C", **options})
    return result


def _multiply(a: Any, b: Any, c: Any, transa: int, transb: int) -> None:
    left, right = a.numpy(), b.numpy()
    left = np.swapaxes(left, -1, -2) if transa else left
    right = np.swapaxes(right, -1, -2) if transb else right
    c.copyfrom(np.matmul(left, right))


for _name in _NAMES:
    if get_global_func(_name, allow_missing=True) is None:
        register_func(_name, _multiply)
