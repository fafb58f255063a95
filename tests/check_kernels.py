"""What becomes of a random program under a random schedule for GPUs: right, refused (and why), or wrong.

`check(seed)` builds the program for `cuda -model=emulated`, runs it with its threads forwards, backwards and in a
random order, and runs the scheduled program thread by thread in the evaluator; `check(seed, device=True)` runs it on a
GPU.
Three programs of four are made of te (`random_kernels.py`) and compared with numpy, every fourth one is a program of
`tests/schedule/harness` under steps of `tir.Schedule`, compared with the evaluator.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import loopwright as lw
from loopwright.analysis.thread_axes import has_threads
from loopwright.as_module import as_module
from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.runtime.errors import InternalError, LoopwrightError
from tests.random_kernels import Kernels, random_kernels
from tests.random_programs import random_arguments
from tests.schedule.harness.fuzz import GPU_WEIGHTS, REORDERED, grow, random_program
from tests.schedule.harness.legality import first_difference, numbers_of
from tests.schedule.harness.parametric import ParametricProgram

EMULATED = "cuda -model=emulated"
ORDERS = ("forwards", "backwards", "random")

Run = Callable[[Any, Sequence[np.ndarray]], list[np.ndarray]]  # a module and its arguments; them, after the call


@dataclass(frozen=True)
class Verdict:
    """`kind` says what became of a seed; `why` is the reason of a refusal, or what went wrong."""

    seed: int
    kind: Literal["right", "refused", "wrong", "broken"]
    why: str = ""


def check(seed: int, *, device: bool = False, evaluates: bool = True) -> Verdict:
    """Build and run the program of a seed in every way there is here; every error but a refusal is a fault."""
    try:
        return _check_steps(seed, device, evaluates) if seed % 4 == 3 else _check_kernels(seed, device, evaluates)
    except LoopwrightError as error:
        return Verdict(seed, "broken", f"{type(error).__name__}: {error}")


def describe(seed: int) -> str:
    """The program of a seed and its schedule, in words."""
    if seed % 4 != 3:
        return str(random_kernels(seed))
    rng = random.Random(seed)
    grown = grow(random_program(rng, seed), rng, weights_of=GPU_WEIGHTS)
    return f"{grown.program.function.script()}\n{[str(step) for step in grown.moves]}\n{grown.schedule.mod.script()}"


def _check_kernels(seed: int, device: bool, evaluates: bool) -> Verdict:
    made = random_kernels(seed)
    try:
        # Once: a proof that its budget of time cuts off need not be cut off the next time.
        program = as_module(made.schedule, made.args, "main", None)
        module = lw.build(program, target="cuda" if device else EMULATED)
    except InternalError:
        raise
    except LoopwrightError as error:
        return Verdict(seed, "refused", reason(error))
    outputs = [np.full(one.shape, 7, one.dtype) for one in made.wanted]
    for who, run in _ways(seed, device):
        got = run(module, [*made.inputs, *outputs])[len(made.inputs) :]
        if (why := _differs(made, got)) is not None:
            return Verdict(seed, "wrong", f"{who}: {why}\n{made}")
    if evaluates:
        function = program["main"]
        given = [np.array(one) for one in [*made.inputs, *outputs]]
        evaluate(function, *given)
        if (why := _differs(made, given[len(made.inputs) :])) is not None:
            return Verdict(seed, "wrong", f"in the evaluator: {why}\n{made}")
    return Verdict(seed, "right")


def _differs(made: Kernels, got: Sequence[np.ndarray]) -> str | None:
    for k, (one, wanted) in enumerate(zip(got, made.wanted, strict=True)):
        if not np.array_equal(one, wanted):
            cells = np.argwhere(np.asarray(one != wanted))
            where = tuple(cells[0].tolist())
            return f"output {k}{list(where)} is {one[where]}, not {wanted[where]} ({len(cells)} cells differ)"
    return None


def _check_steps(seed: int, device: bool, evaluates: bool) -> Verdict:
    rng = random.Random(seed)
    program = random_program(rng, seed)
    if isinstance(program, ParametricProgram):
        return Verdict(seed, "refused", "left out: its sizes are parameters")
    grown = grow(program, rng, weights_of=GPU_WEIGHTS)
    if grown.trouble is not None:
        return Verdict(seed, "broken", f"{grown.trouble.kind}: {grown.trouble.why}\n{describe(seed)}")
    before, after = program.function, grown.schedule.view().function
    arguments = random_arguments(before, 1)
    wanted = numbers_of(before, arguments)
    if isinstance(wanted, str):
        return Verdict(seed, "refused", "left out: the evaluator does not run it")
    try:
        module = lw.build(after, target="cuda" if device else EMULATED)
    except InternalError:
        raise
    except LoopwrightError as error:
        return Verdict(seed, "refused", reason(error))
    for who, run in _ways(seed, device):
        why = first_difference(before, run(module, arguments), wanted, 0.0, REORDERED)
        if why is not None:
            return Verdict(seed, "wrong", f"{who}: {why}\n{describe(seed)}")
    if evaluates and has_threads(after.body):
        why = _evaluated(before, after, arguments, wanted)
        if why is not None:
            return Verdict(seed, "wrong", f"in the evaluator: {why}\n{describe(seed)}")
    return Verdict(seed, "right")


def _evaluated(
    before: PrimFunc, after: PrimFunc, arguments: Sequence[np.ndarray], wanted: Sequence[np.ndarray]
) -> str | None:
    got = numbers_of(after, arguments)
    return got if isinstance(got, str) else first_difference(before, got, wanted, 0.0, REORDERED)


def _ways(seed: int, device: bool) -> list[tuple[str, Run]]:
    if device:
        return [("on the GPU", _on_device)]
    return [(f"emulated {order}", _emulated(order, seed)) for order in ORDERS]


def _emulated(order: str, seed: int) -> Run:
    def run(module: Any, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        module.set_thread_order(order, seed=seed)
        given = [np.array(one) for one in arguments]
        module(*given)
        return given

    return run


def _on_device(module: Any, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    there = [lw.nd.array(one, lw.cuda(0)) for one in arguments]
    module(*there)
    return [one.numpy() for one in there]


def reason(error: LoopwrightError) -> str:
    """A refusal in words that are the same for every program."""
    text = f"{error.problem}: {error.why}" if error.why else str(error.problem)
    text = re.sub(r"\"[^\"]*\"|'[^']*'", "…", text)
    text = re.sub(r"\b(?:loop|block|of|into|axis|buffer|loops) [\w.]+", lambda found: found[0].split()[0] + " …", text)
    return f"{type(error).__name__}: {re.sub(r'[0-9]+', '#', text)}"[:110]
