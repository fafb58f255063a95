"""exact: a model in float64, operator by operator, from the numpy reference of each operator.

Numbers of type float32 become float64 wherever they appear, casts included; integers stay what they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
SELDOM = 1e-3  # the share of numbers that rounding may change


def exact_results(model: Any, inputs: Mapping[str, Array]) -> list[Array]:
    """What the model means, for these inputs."""
    from loopwright import relay
    from loopwright.relay.expr import Call, Constant, Function, Tuple, TupleGetItem, Var
    from loopwright.relay.visitor import post_order

    mod, _ = relay.frontend.from_onnx(model)
    main = mod["main"]
    assert isinstance(main, Function)
    known: dict[int, Any] = {}
    for each in post_order(main.body):
        if isinstance(each, Var):
            known[id(each)] = widened(inputs[each.name_hint])
        elif isinstance(each, Constant):
            known[id(each)] = widened(np.asarray(each.data))
        elif isinstance(each, Tuple):
            known[id(each)] = [known[id(field)] for field in each.fields]
        elif isinstance(each, TupleGetItem):
            known[id(each)] = known[id(each.tuple_value)][each.index]
        elif isinstance(each, Call):
            known[id(each)] = widened(each.attrs.reference(*[known[id(arg)] for arg in each.args]))
        else:
            raise TypeError(f"a {type(each).__name__} has no reference")
    found = known[id(main.body)]
    return found if isinstance(found, list) else [found]


def widened(value: Any) -> Any:
    """float32 as float64, in tuples too."""
    if isinstance(value, (list, tuple)):
        return [widened(each) for each in value]
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def difference(found: Sequence[Array], exact: Sequence[Array], rounds: bool = False) -> float:
    """How far results are from these, at most, relative to the largest number of each.

    Infinite where they cannot be compared, or more than a few integers differ: of numbers halfway between two, and of
    scores that are equal but for rounding, either may come out. With `rounds`, a model rounds to bytes on its way, and
    a few numbers may be off by a level.
    """
    if len(found) != len(exact):
        return math.inf
    return max([_off(ours, right, rounds) for ours, right in zip(found, exact)], default=0.0)


def _off(ours: Array, right: Array, rounds: bool) -> float:
    if ours.shape != right.shape or (ours.dtype.kind == "f") != (right.dtype.kind == "f"):
        return math.inf
    if not ours.size:
        return 0.0
    seldom = int(SELDOM * ours.size)
    if right.dtype.kind != "f":
        return 0.0 if np.count_nonzero(ours != right) <= seldom else math.inf
    off = np.sort(np.abs(ours.astype(np.float64) - right.astype(np.float64)), axis=None)  # NaN comes last
    worst = float(off[-1 - seldom * rounds]) if not np.isnan(off[-1]) else math.inf
    return worst / max(float(np.abs(right).max()), 1e-30)
