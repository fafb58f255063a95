"""What every schedule by rule must do: be proved, replay, and compute the bits of the program as written."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.autosched import Plan, apply
from loopwright.ir import For, ForKind, IntImm, Node, PrimFunc, post_order_visit, structural_equal
from loopwright.schedule import Schedule, Trace


def planned(func: PrimFunc, target: str = "llvm", may_refuse: bool = False) -> Plan:
    """The plan for a function, proved and replayable, by the first rule that took it (unless it `may_refuse`)."""
    plan = apply(func, target)
    assert plan.schedule.is_proved
    again = Schedule(plan.start)
    Trace.apply_json_to_schedule(json.loads(json.dumps(plan.trace.as_json())), again)
    assert structural_equal(again.mod["main"], plan.mod["main"])
    assert may_refuse or "refused" not in plan.explain()
    return plan


def check_same_bits(
    func: PrimFunc, arrays: Sequence[np.ndarray], target: str = "llvm", may_refuse: bool = False
) -> Plan:
    """Run the function as written and as planned on the same arguments: no bit of any of them may differ."""
    plan = planned(func, target, may_refuse)
    as_written = [array.copy() for array in arrays]
    by_rule = [array.copy() for array in arrays]
    lw.build(func, target=target)(*as_written)
    lw.build(plan.mod, target=target)(*by_rule)
    for mine, wanted in zip(by_rule, as_written, strict=True):
        assert mine.tobytes() == wanted.tobytes()
    return plan


def parallel_extents(plan: Plan) -> list[int]:
    """How many pieces each parallel loop of a plan has."""
    found: list[int] = []

    def look(node: Node) -> None:
        if isinstance(node, For) and node.kind is ForKind.PARALLEL:
            assert isinstance(node.extent, IntImm)
            found.append(node.extent.value)

    post_order_visit(plan.mod["main"].body, look)
    return found


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Some numbers of every type: small enough for an int8."""
    made = np.random.default_rng(seed).standard_normal(shape) * 20
    return (np.abs(made) if dtype.startswith("u") or dtype == "bool" else made).astype(dtype)


def function(*tensors: te.Tensor) -> PrimFunc:
    """A function of tensors, inputs first."""
    return te.create_prim_func(list(tensors))
