"""What becomes of a random program that the rules schedule for a GPU: right, refused (and why), wrong or broken.

`check(seed)` builds the program with `autosched=True`, emulated for one of a few GPUs, and runs it with its threads
forwards, backwards and in a random order; small programs run thread by thread in the evaluator, too.
`check(seed, device=True)` runs it on a GPU. No program may be refused: what no rule knows gets threads all the same.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

import loopwright as lw
from loopwright import autosched
from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.runtime.errors import LoopwrightError
from tests.check_kernels import ORDERS, Verdict, reason
from tests.random_unscheduled import Unscheduled, random_unscheduled

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100a")
FEW_CELLS = 400  # of all tensors of a program that the evaluator runs as well


def check(seed: int, *, device: bool = False, evaluates: bool = True) -> Verdict:
    """Schedule, build and run the program of a seed; every error is a fault."""
    made = random_unscheduled(seed)
    arch = random.Random(seed).choice(ARCHITECTURES)
    target = "cuda" if device else f"cuda -model=emulated -arch={arch}"
    try:
        plan = autosched.apply(made.args, target)
        module = lw.build(plan.mod, target=target)
    except LoopwrightError as error:
        return Verdict(seed, "broken", f"{reason(error)}\n{error}\n{made}")
    rules = ", ".join([decision.rule for decision in plan.decisions])
    for who in ("on the GPU",) if device else ORDERS:
        if not device:
            module.set_thread_order(who, seed=seed)
        given = _arrays(made)
        try:
            if device:
                there = [lw.nd.array(one, lw.cuda(0)) for one in given]
                module(*there)
                given = [one.numpy() for one in there]
            else:
                module(*given)
        except LoopwrightError as error:
            return Verdict(seed, "broken", f"{who} ({rules}): {error}\n{made}")
        if (why := _differs(made, given)) is not None:
            return Verdict(seed, "wrong", f"{who} on {arch} ({rules}): {why}\n{made}")
    if evaluates and sum([value.value.size for value in made.outputs] + [one.size for one in made.inputs]) <= FEW_CELLS:
        given = _arrays(made)
        function = plan.mod["main"]
        assert isinstance(function, PrimFunc)
        evaluate(function, *given)
        if (why := _differs(made, given)) is not None:
            return Verdict(seed, "wrong", f"in the evaluator ({rules}): {why}\n{made}")
    return Verdict(seed, "right")


def describe(seed: int) -> str:
    """The program of a seed, in words, and what the rules made of it."""
    made = random_unscheduled(seed)
    plan = autosched.apply(made.args, "cuda -model=emulated -arch=sm_90")
    return f"{made}\n{plan.explain()}"


def _arrays(made: Unscheduled) -> list[np.ndarray]:
    """The inputs, and outputs that hold something."""
    filled = [np.full(value.shape, 1 if value.dtype == "bool" else 7, value.dtype) for value in made.outputs]
    return [np.array(one) for one in [*made.inputs, *filled]]


def _differs(made: Unscheduled, given: Sequence[np.ndarray]) -> str | None:
    for value, array in zip(made.outputs, given[len(made.inputs) :], strict=True):
        got = np.asarray(array, "float64")
        off = np.abs(got - value.value)
        wrong = ~(off <= value.error)  # NaN is wrong
        if wrong.any():
            cell = tuple(np.argwhere(wrong)[0].tolist())
            right = f"{value.value[cell]} within {value.error[cell]:.3g}"
            counted = f"({int(wrong.sum())} of {wrong.size} cells)"
            return f"{value.tensor.name}{list(cell)} is {got[cell]}, not {right} {counted}"
    return None
