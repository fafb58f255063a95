"""The types in the signatures of operators and of their references in numpy; `Dim` is one size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from loopwright.ir import Dim, Expr
from loopwright.runtime.dtype import DataType
from loopwright.te import Tensor

Shape: TypeAlias = Sequence[Dim]
Scalar: TypeAlias = Tensor | Expr | float  # one number, where a tensor of rank 0 is one
Operand: TypeAlias = Tensor | Expr | float  # of an element-wise operator: a tensor, or a number for all its elements

DType: TypeAlias = str | DataType
Axes: TypeAlias = int | Sequence[int] | None  # None: all of them
Ints: TypeAlias = int | Sequence[int]  # one for every dimension, or one each
Dims: TypeAlias = Dim | Sequence[Dim]  # likewise
IntPadding: TypeAlias = str | int | Sequence[int]  # "VALID", "SAME", or how many cells: `pad_amounts.py` reads them
Padding: TypeAlias = str | Dim | Sequence[Dim]

# What an operator and its reference are called with: arrays, lists of arrays, numbers, words; `Sample` says which.
Arguments: TypeAlias = Sequence[Any]

__all__ = ["Arguments", "Axes", "DType", "Dim", "Dims", "IntPadding", "Ints", "Operand", "Padding", "Scalar", "Shape"]
