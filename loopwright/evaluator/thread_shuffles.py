"""Shuffles: the lanes of a warp show each other a value; a store takes what another lane showed.

All lanes show theirs first; then each takes one. A lane that is not there, or that the mask leaves out, gives no value:
a store of it leaves its element without one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright.analysis.thread_axes import is_shuffle_call, is_virtual_tag
from loopwright.evaluator.thread_memory import Group, Threads
from loopwright.evaluator.thread_reductions import ReductionCompiler
from loopwright.evaluator.values import Value
from loopwright.ir import BufferStore, Call, Expr, IntImm, Rewriter, Stmt, Var
from loopwright.ir.machine_intrinsics import undef
from loopwright.runtime.errors import NotBuilt

WARP: Final = 32


class _TakeOut(Rewriter):
    """Puts a variable in place of each shuffle."""

    def __init__(self) -> None:
        self.shuffles: dict[Var, Call] = {}

    def visit_Call(self, call: Call) -> Expr:
        if not is_shuffle_call(call):
            return self.rebuild(call)
        var = Var("shuffled", call.dtype)
        self.shuffles[var] = call
        return var


class ShuffleCompiler(ReductionCompiler):
    """Compiles stores of what lanes exchange."""

    def shuffled(self, stmt: Stmt) -> Group:
        """A store whose value takes part in shuffles: all threads show their values before one stores."""
        assert isinstance(stmt, BufferStore)
        found = _TakeOut()
        value = found.visit(stmt.value)
        exchanges = [self._exchange(call) for call in found.shuffles.values()]
        slots = [self.slot(var) for var in found.shuffles]
        store = self.visit(BufferStore(stmt.buffer, value, stmt.indices))
        leave = self.visit(BufferStore(stmt.buffer, undef(stmt.buffer.dtype), stmt.indices))
        frame, taken = self.frame, list[Value]()

        def put() -> None:
            if any([one is None for one in taken]):
                leave()
                return
            for slot, one in zip(slots, taken, strict=True):
                frame[slot] = one
            store()

        as_thread = self.as_thread(put)

        def run(threads: Threads) -> None:
            results = [exchange(threads) for exchange in exchanges]
            for k, thread in enumerate(threads):
                taken[:] = [result[k] for result in results]
                as_thread(thread)

        return run

    def _exchange(self, call: Call) -> Callable[[Threads], list[Value]]:
        """What each thread gets; None where a lane gives no value."""
        name = call.op.name.removeprefix("tir.tvm_warp_shuffle").strip("_")
        mask, value, lane, width, _ = call.args
        if not isinstance(width, IntImm):
            raise NotBuilt("evaluation of a shuffle whose width is no constant")
        steering = [self.steered(mask), self.as_thread(self.visit(value)), self.steered(lane)]
        segment, number_all = width.value, self._numbering()

        def exchange(threads: Threads) -> list[Value]:
            numbers = number_all(threads)
            shown = {number: [ask(thread) for ask in steering] for number, thread in zip(numbers, threads, strict=True)}
            result: list[Value] = []
            for group, number in numbers:
                bits, own, distance = shown[group, number]
                source = number // WARP * WARP + _source(name, number % WARP, int(distance), segment)
                is_there = (group, source) in shown and int(bits) >> source % WARP & 1
                result.append(own if source == number else shown[group, source][1] if is_there else None)
            return result

        return exchange

    def _numbering(self) -> Callable[[Threads], list[tuple[tuple[int, ...], int]]]:
        """The number of each thread in its block, beside its virtual threads: those along x are neighbours."""
        real = sorted([axis for axis in self.axes if not is_virtual_tag(axis.tag)], key=lambda axis: axis.tag)
        virtual = [axis for axis in self.axes if is_virtual_tag(axis.tag)]

        def numbers(threads: Threads) -> list[tuple[tuple[int, ...], int]]:
            ranges = []
            for axis in real:
                indices = [thread.index[axis] for thread in threads]
                ranges.append((min(indices, default=0), max(indices, default=0)))
            result = []
            for thread in threads:
                number = 0
                for axis, (first, last) in reversed(list(zip(real, ranges, strict=True))):
                    number = number * (last - first + 1) + thread.index[axis] - first
                result.append((tuple([thread.index[axis] for axis in virtual]), number))
            return result

        return numbers


def _source(name: str, lane: int, distance: int, segment: int) -> int:
    """The lane that a lane asks; its own where the other one is beyond its segment."""
    first = lane // segment * segment
    if name == "":
        return first + distance % segment
    if name == "up":
        return lane - distance if lane - distance >= first else lane
    other = lane ^ distance if name == "xor" else lane + distance
    return other if other < first + segment else lane
