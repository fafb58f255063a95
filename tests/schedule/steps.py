"""How a step is tested: the program before, the program after, both run, and the trace replayed on a fresh schedule."""

from __future__ import annotations

import json

import numpy as np
import pytest

from loopwright import te
from loopwright.evaluator import difference, evaluate, evaluate_terms
from loopwright.ir import PrimFunc, assert_structural_equal, structural_digest
from loopwright.ir.verifier import verify
from loopwright.schedule import Schedule, ScheduleError, Trace


def check(sch: Schedule, before: PrimFunc, expected: PrimFunc | None = None) -> None:
    """The schedule holds the expected program, which computes what the first one did; its trace gives it again."""
    after = sch.mod["main"]
    verify(after)
    if expected is not None:
        same_program(after, expected)
    assert difference(evaluate_terms(before), evaluate_terms(after, check_races=True)) is None
    check_replay(sch, before)


def same_program(got: PrimFunc, wanted: PrimFunc) -> None:
    """Equal up to the names of variables and of the function."""
    assert_structural_equal(got.without_attr("global_symbol"), wanted.without_attr("global_symbol"))


def check_replay(sch: Schedule, before: PrimFunc) -> None:
    """The steps as objects, as JSON and as Python text each give the same program on a fresh schedule."""
    after = sch.mod["main"]
    again = Schedule(before)
    sch.trace.apply_to_schedule(again)
    assert_structural_equal(after, again.mod["main"])

    from_json = Schedule(before)
    Trace.apply_json_to_schedule(json.dumps(sch.trace.as_json()), from_json)
    assert_structural_equal(after, from_json.mod["main"])
    assert from_json.trace.as_python() == sch.trace.as_python()

    from_text = Schedule(before)
    exec("\n".join(sch.trace.as_python()), {"sch": from_text})
    assert_structural_equal(after, from_text.mod["main"])
    assert from_text.trace.as_python() == sch.trace.as_python()


def assert_same_numbers(after: PrimFunc, before: PrimFunc) -> None:
    """Both programs compute the same from the same small whole numbers."""
    random = np.random.default_rng(0)
    arrays = [random.integers(0, 9, [int(n) for n in b.shape]).astype(b.dtype) for b in before.argument_buffers()]
    first, second = [a.copy() for a in arrays], [a.copy() for a in arrays]
    evaluate(before, *first)
    evaluate(after, *second)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def refused(sch: Schedule, error: type[ScheduleError], match: str, step, *args, **options) -> ScheduleError:
    """The step is refused with that message, and the schedule is as it was, node for node."""
    functions = dict(sch.mod.functions_items())
    digests = {name: structural_digest(function) for name, function in functions.items()}
    insts, decisions = list(sch.trace.insts), dict(sch.trace.decisions)
    history = len(sch._history)
    with pytest.raises(error, match=match) as caught:
        getattr(sch, step)(*args, **options)
    for name, function in sch.mod.functions_items():
        assert function is functions[name]
        assert structural_digest(function) == digests[name]
    assert len(sch.trace.insts) == len(insts)
    assert all(new is old for new, old in zip(sch.trace.insts, insts, strict=True))
    assert sch.trace.decisions == decisions
    assert len(sch._history) == history
    return caught.value


def matmul(m: int = 6, n: int = 5, k: int = 4) -> PrimFunc:
    """C = A · B."""
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), "k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return te.create_prim_func([A, B, C])


def chain(m: int = 4, l: int = 5, k: int = 3, n: int = 2) -> PrimFunc:
    """D = A · B, E = exp(D), F = E · C."""
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, l), name="B")
    C = te.placeholder((l, n), name="C")
    rk, rl = te.reduce_axis((0, k), "k"), te.reduce_axis((0, l), "l")
    D = te.compute((m, l), lambda m, l: te.sum(A[m, rk] * B[rk, l], axis=rk), name="D")
    E = te.compute((m, l), lambda m, l: te.exp(D[m, l]), name="E")
    F = te.compute((m, n), lambda m, n: te.sum(E[m, rl] * C[rl, n], axis=rl), name="F")
    return te.create_prim_func([A, B, C, F])
