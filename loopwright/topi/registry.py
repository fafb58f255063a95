"""The registry of operators: each function of topi beside its meaning in numpy and the samples it is tried on.

    @operator(reference=_softmax, samples=_softmax_samples)
    def softmax(x, axis=-1): ...

One test walks `OPERATORS` and holds every operator against its reference, so an operator is tested the day it appears.
A reference gets arrays where the operator gets tensors, floating ones widened to float64; it returns an array, or a
list of them. How far a result may be off is the sample's to say: not at all, unless it names a bound.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

import numpy as np

from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.types import Arguments

F = TypeVar("F", bound=Callable[..., Any])

# From the arguments of the reference and its result (float64): how far each element may be off, besides the rounding
# of the exact result to the type of the output, which is always granted.
Bound = Callable[[Arguments, np.ndarray], np.ndarray | float]

# An operator in numpy: each has its own arguments, and one array or several for a result.
Reference = Callable[..., Any]


@dataclass(frozen=True)
class Sample:
    """One call of an operator: arrays become placeholders (also inside lists), all else is passed as it is."""

    args: tuple[Any, ...]
    attributes: Mapping[str, object] = field(default_factory=dict)
    bound: Bound | None = None


@dataclass(frozen=True)
class Operator:
    """A function from tensors to tensors, what it means, and where it is tried."""

    name: str  # as users write it after `topi.`
    compute: Callable[..., Any]
    reference: Reference
    samples: Callable[[], Iterable[Sample]]


_OTHERWISE: Final = object()  # an argument that the call leaves out

OPERATORS: Final[dict[str, Operator]] = {}


def operator(
    *, reference: Reference, samples: Callable[[], Iterable[Sample]], name: str | None = None
) -> Callable[[F], F]:
    """Enter the decorated function as an operator; `name` where it is not reached as `topi.<function>`."""

    def enter(compute: F) -> F:
        called = name or compute.__name__
        checked = _with_tensors(called, compute)
        OPERATORS[called] = Operator(called, checked, reference, samples)
        return checked

    return enter


def reference_of(name: str, *arguments: object, **attributes: object) -> Any:
    """What the operator of that name means, for arrays."""
    return OPERATORS[name].reference(*arguments, **attributes)


def _with_tensors(name: str, compute: F) -> F:
    """The operator, refusing what is no tensor where it takes one: some read an attribute first, and fail on that."""
    parameters = inspect.signature(compute).parameters
    tensors = [
        (place, one) for place, (one, how) in enumerate(parameters.items()) if how.annotation in ("te.Tensor", "Tensor")
    ]

    @functools.wraps(compute)
    def checked(*args: Any, **named: Any) -> Any:
        for place, one in tensors:
            given = args[place] if place < len(args) else named.get(one, _OTHERWISE)
            if given is not _OTHERWISE and not hasattr(given, "shape"):
                problem = f"{one} is {type(given).__name__} {given!r:.80}, not a tensor"
                raise InvalidShapeError(name, problem, "give what te.placeholder or an operator returned")
        return compute(*args, **named)

    return cast(F, checked)


def ulps(count: float, dtype: str) -> Bound:
    """`count` units in the last place of the exact result, as `dtype` counts them."""
    spacing = float(np.finfo(dtype).eps) if dtype != "bfloat16" else 2.0**-7

    def bound(_: Arguments, exact: np.ndarray) -> np.ndarray | float:
        return count * spacing * np.abs(exact)

    return bound
