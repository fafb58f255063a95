"""How te schedules are tested: what they compute, against the same tensors unscheduled, and that it is proved."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.driver.build_module import schedule_to_module
from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc
from loopwright.ir.verifier import verify


def arrays_for(args, sizes=None, seed=0):
    """Small whole numbers: sums of them are exact in every order."""
    random = np.random.default_rng(seed)
    made = []
    for arg in args:
        if isinstance(arg, te.Tensor):
            shape = [_number(n, sizes) for n in arg.shape]
            made.append(random.integers(-4, 5, shape).astype(str(arg.dtype)))
        else:
            made.append(_number(arg, sizes))
    return made


def _number(size, sizes):
    return int(size.value) if hasattr(size, "value") else (sizes or {})[size.name]


def check(s, args, sizes=None, tensors=None) -> PrimFunc:
    """The schedule computes what `tensors` (its parameters, unless given) do, natively and evaluated; all is proved."""
    replayed = s.as_tir_schedule(args)
    assert replayed.is_proved
    program = schedule_to_module(s, args)["main"]
    verify(program)
    plain = te.create_prim_func(tensors or args)
    given = arrays_for(args, sizes)
    expected = [item.copy() if isinstance(item, np.ndarray) else item for item in given]
    evaluate(plain, *expected)
    for run in (lambda *a: evaluate(program, *a), lw.build(s, args)):
        found = [item.copy() if isinstance(item, np.ndarray) else item for item in given]
        run(*found)
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
    return program


def text(program: PrimFunc) -> str:
    """The program as script."""
    return program.script()
