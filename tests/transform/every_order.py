"""How kernels with roles are tested: run in several orders of threads, against the evaluator."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from loopwright.evaluator import evaluate
from loopwright.ir import Call, PrimFunc, collect
from loopwright.transform import launch_threads, lower_blocks, write_allocations
from loopwright.transform.on_request.specialize_warps import specialize_warps

EMULATED = "cuda -model=emulated -arch=sm_90a"
ORDERS = ("forwards", "backwards", "random", "random")

Argument = np.ndarray | int


def copied(arguments: tuple[Argument, ...]) -> list[Argument]:
    return [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]


def check_every_order(function: PrimFunc, *arguments: Argument) -> str:
    """What the evaluator computes, the kernel computes in every order of threads; its text."""
    wanted = copied(arguments)
    evaluate(function, *wanted)
    module = lw.build(function, target=EMULATED)
    for seed, order in enumerate(ORDERS):
        module.set_thread_order(order, seed=seed)
        got = copied(arguments)
        module(*got)
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=order)
    source: str = module.get_source("cuda")
    return source[source.index("__global__") :]


def some(*shape: int, dtype: str = "float16") -> np.ndarray:
    """Small integers."""
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


def specialized(function: PrimFunc) -> PrimFunc:
    result: PrimFunc = specialize_warps(launch_threads(write_allocations(lower_blocks(function))))
    return result


def calls(function: PrimFunc, name: str) -> list[Call]:
    return [call for call in collect(function.body, Call) if call.op.name == f"tir.{name}"]
