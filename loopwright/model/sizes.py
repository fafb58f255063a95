"""sizes: the numbers that size variables have in a call, and the shapes that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopwright.arith import simplified_size
from loopwright.arith.index_arithmetic import in_64_bits
from loopwright.ir import BufferStore, Cast, Expr, IntImm, PrimFunc, Rewriter, Var, const, decl_buffer, substitute
from loopwright.ir.assertion_errors import shown
from loopwright.ir.visitor import variables_in
from loopwright.model.errors import BadModelInput, SizeNotKnown
from loopwright.model.given_arrays import array_of
from loopwright.model.program import Program, Require, Value
from loopwright.runtime.call_errors import SizesDoNotFit


class _Widened(Rewriter):
    def visit_Var(self, var: Var) -> Expr:
        return var.astype("int64")

    def visit_IntImm(self, number: IntImm) -> Expr:
        return number if number.dtype.is_bool else const(number.value, "int64")

    def visit_Cast(self, cast: Cast) -> Expr:
        inner: Expr = self.visit(cast.value)
        return inner.astype("int64" if cast.dtype.is_int else cast.dtype)


def widened(size: Expr) -> Expr:
    """A size, or a condition of sizes, computed in 64 bits: products of sizes may not fit the type of one."""
    result: Expr = _Widened().visit(size)
    return result


def as_arrays(program: Program, given: Sequence[object]) -> list[np.ndarray]:
    """The inputs as the function takes them: numbers and lists become arrays of the declared type."""
    names = [value.name for value in program.inputs]
    dtypes = [value.dtype.numpy() for value in program.inputs]
    if len(given) != len(names):
        has = f"{len(names)}: {', '.join(names)}" if names else "none"
        raise BadModelInput(f"{len(given)} inputs are given, and the model has {has}")
    arrays: list[Any] = []
    for value, name, dtype in zip(given, names, dtypes, strict=True):
        if isinstance(value, np.generic):
            value = np.asarray(value)
        elif isinstance(value, (bool, int, float, list, tuple)):
            try:
                value = np.asarray(value, dtype=dtype)
            except (TypeError, ValueError, OverflowError) as error:
                raise BadModelInput(f"input {name!r} is no array of {dtype}: {error}") from error
        elif not hasattr(value, "shape"):
            value = array_of(value, f"input {name!r}")
        arrays.append(value)
    return arrays


def bound_sizes(program: Program, arrays: Sequence[Any]) -> dict[Var, int]:
    """The size variables that are lengths of inputs by themselves."""
    result: dict[Var, int] = {}
    for value, array in zip(program.inputs, arrays, strict=False):
        for extent, length in zip(value.shape, array.shape, strict=False):
            if isinstance(extent, Var):
                result.setdefault(extent, int(length))
    return result


def shape_of(value: Value, sizes: Mapping[Var, int]) -> tuple[int, ...]:
    """The shape of a value where the variables have these values."""
    return tuple(number(extent, sizes, f"the shape of {value.name}") for extent in value.shape)


def output_shapes(program: Program, arrays: Sequence[object]) -> list[tuple[int, ...]]:
    """The shapes of the outputs for these inputs; an error where sizes do not fit so badly that there are none."""
    sizes = bound_sizes(program, arrays)
    shapes = [shape_of(value, sizes) for value in program.outputs]
    if any(size < 0 for shape in shapes for size in shape):
        raise SizesDoNotFit(_first_refusal(program, sizes) or f"results would have shapes {shapes}")
    return shapes


def _first_refusal(program: Program, sizes: Mapping[Var, int]) -> str | None:
    """What the first check of the function that fails says: its arguments cannot be made for it to say so itself."""
    for step in program.body:
        if not isinstance(step, Require):
            break
        if not number(widened(step.condition), sizes, "a check of sizes"):
            return shown(step.message, [number(widened(value), sizes, "a size") for value in step.values])
    return None


def number(extent: int | Expr, sizes: Mapping[Var, int], what: str) -> int:
    """A length as a number."""
    if isinstance(extent, int):
        return extent
    known = simplified_size(substitute(extent, {var: const(size, var.dtype) for var, size in sizes.items()}))
    if isinstance(known, IntImm):
        return known.value
    if variables_in(known):
        raise SizeNotKnown(what, str(known))
    return _computed(known)


def _computed(size: Expr) -> int:
    """The value of an expression without variables that is more than arithmetic of integers: a fraction of a size."""
    from loopwright.evaluator import evaluate

    cell = decl_buffer((1,), "int64", "cell")
    handle = Var("cell_handle", "handle")
    store = BufferStore(cell, in_64_bits(size), (const(0),))
    result = np.zeros(1, "int64")
    evaluate(PrimFunc([handle], store, buffer_map={handle: cell}), result)
    return int(result[0])
