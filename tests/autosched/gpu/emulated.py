"""emulated: programs scheduled by rule and run on the emulated GPU.

Each program is a function of its own, scheduled once, and all are in one library: one call of the C++ compiler, and no
proof about a function of them all, which takes more than twice as long as proofs about each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched import Plan
from loopwright.codegen.source.cuda.emulate import ORDERS
from loopwright.ir import IRModule

EMULATED = "cuda -model=emulated"


class Program(NamedTuple):
    """Tensors, arrays for the first of them, and what the others should become."""

    tensors: Sequence[te.Tensor]
    given: Sequence[np.ndarray]
    wanted: Sequence[np.ndarray]


class Emulated:
    """Programs by rule, and the library that has them; `main` is a program that is the only one."""

    def __init__(self, *programs: Sequence[te.Tensor]) -> None:
        self.plans: list[Plan] = [autosched.apply(program, EMULATED) for program in programs]
        names = [f"main_{k}" for k in range(len(programs))] if len(programs) > 1 else ["main"]
        parts = zip(names, self.plans, strict=True)
        self.library = lw.build(
            IRModule({name: plan.mod["main"].with_attr("global_symbol", name) for name, plan in parts}), target=EMULATED
        )
        self.functions: list[Callable[..., object]] = [self.library[name] for name in names]

    @property
    def source(self) -> str:
        """The text of all kernels."""
        return self.library.get_source()

    def in_all_orders(self) -> Iterator[list[Callable[..., object]]]:
        """The functions, once for each order in which threads may run."""
        for order in ORDERS:
            self.library.set_thread_order(order)
            yield self.functions


def check(*programs: Program, rtol: float = 0, orders: bool = False) -> Emulated:
    """Programs compute what they should, to the bit unless a bound is given; in all orders of threads if so asked."""
    made = Emulated(*[program.tensors for program in programs])
    for functions in made.in_all_orders() if orders else [made.functions]:
        for function, (_, given, wanted) in zip(functions, programs, strict=True):
            results = [np.full(want.shape, 1, want.dtype) for want in wanted]
            function(*given, *results)
            for result, want in zip(results, wanted, strict=True):
                np.testing.assert_allclose(result, want, rtol=rtol)
    return made
