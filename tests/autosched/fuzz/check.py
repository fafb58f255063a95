"""One random program through autosched: proved, replayed, compiled, and right to the bit for any number of threads."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field

import ml_dtypes  # noqa: F401  # gives numpy the name bfloat16
import numpy as np

import loopwright as lw
from loopwright import autosched, runtime
from loopwright.autosched.rules.plain import Plain
from loopwright.ir import structural_equal
from loopwright.schedule import Schedule, Trace
from loopwright.target import host_description
from tests.autosched.fuzz.contractions import contraction, reduction
from tests.autosched.fuzz.convolutions import convolution, pooling
from tests.autosched.fuzz.draft import Draft, RandomProgram

KINDS = {"contraction": contraction, "convolution": convolution, "pooling": pooling, "reduction": reduction}
# Half of all programs are convolutions: they have the most ways to be written.
_WEIGHTS = {"contraction": 6, "convolution": 10, "pooling": 3, "reduction": 1}
_OLDER = ("-mcpu=x86-64-v3", "-mcpu=x86-64") if "x86" in host_description().triple else ()


class Mistake(AssertionError):
    """What is wrong with a scheduled program."""


@dataclass
class Outcome:
    """What became of a program: the rule that took each block, and the blocks that no rule knew, with the reasons."""

    seed: int
    kind: str
    rules: list[str] = field(default_factory=list)
    plain: list[tuple[str, str]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # what a rule that was asked first was refused
    silent: list[str] = field(default_factory=list)  # rules that chose, and gave no reason
    problem: str = ""  # what is wrong; empty when all is right


def random_program(seed: int) -> RandomProgram:
    """The program of a seed."""
    rng = random.Random(seed)
    kind = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    draft = Draft(seed, rng, winograd=random.Random(seed + 0.5).choice([0, 0, 2, 4, 6]))
    return draft.finish(kind, KINDS[kind](draft))


def random_target(seed: int) -> str:
    """This machine with one to three cores, or an older one of its kind."""
    rng = random.Random(-seed - 1)
    older = rng.choice(_OLDER) if _OLDER and rng.random() < 0.25 else ""
    return f"llvm -num-cores={rng.randint(1, 3)} {older}".strip()


def check(seed: int) -> Outcome:
    """Schedule and run the program of a seed; raises Mistake."""
    program = random_program(seed)
    target = random_target(seed)
    plan = autosched.apply(program.func, target, winograd=program.winograd)
    if not plan.schedule.is_proved:
        raise Mistake("the schedule is not proved")
    again = Schedule(plan.start)  # which the rewriting before the rules has made of it; results are those of `func`
    Trace.apply_json_to_schedule(json.loads(json.dumps(plan.trace.as_json())), again)
    if not structural_equal(again.mod, plan.mod):
        raise Mistake("the trace replays to another program")
    outcome = _told(seed, program, plan)
    _compare(program, lw.build(plan.mod, target=target))
    return outcome


def _told(seed: int, program: RandomProgram, plan: autosched.Plan) -> Outcome:
    outcome = Outcome(seed, program.kind)
    for decision in plan.decisions:
        outcome.rules += [decision.rule] * len(decision.blocks)
        says_why = bool(decision.choices) and all(choice.why for choice in decision.choices)
        if decision.rule == Plain.name:
            if not says_why:
                raise Mistake(f"{', '.join(decision.blocks)} is left as written, and nothing says why")
            outcome.plain.append((", ".join(decision.blocks), decision.choices[0].why))
        elif not says_why:
            outcome.silent.append(decision.rule)
        outcome.refused += [choice.why for choice in decision.choices if "refused" in choice.what]
    return outcome


def _compare(program: RandomProgram, module: object) -> None:
    expected = program.expected
    dtype = np.dtype(expected.dtype)
    results = []
    for threads in (1, 2):
        arguments = [lw.nd.array(array) for array in program.inputs]
        # Every byte is written before: an element that the program leaves out shows.
        filled = np.full(expected.value.size * dtype.itemsize, 0xA5, "uint8").view(dtype)
        out = lw.nd.array(filled.reshape(expected.value.shape))
        with runtime.threads(threads):
            module(*arguments, out)  # type: ignore[operator]
        results.append(out.numpy())
    one, two = results
    if one.tobytes() != two.tobytes():
        raise Mistake("the bits on two threads are not those on one")
    got = one.astype("float64") if dtype.kind not in "iu" else one.astype("int64")
    off = np.abs(got - expected.value)
    wrong = ~(off <= expected.error)
    if wrong.any():
        at = tuple(int(i[0]) for i in np.nonzero(wrong))
        raise Mistake(
            f"element {list(at)} is {got[at]!r}, but should be {expected.value[at]!r} ± {expected.error[at]:.3g} "
            f"({int(wrong.sum())} of {wrong.size} are off)"
        )
