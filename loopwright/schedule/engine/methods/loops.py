"""Loops: the methods of a schedule that make loops of loops, or say who runs their iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.ir import Expr
from loopwright.schedule.engine.arguments import size_text
from loopwright.schedule.engine.methods.base import Base, written
from loopwright.schedule.errors import WrongType
from loopwright.schedule.handles import BlockRV, ExprRV, LoopRV
from loopwright.schedule.rewrite.conditions import condition_text


class LoopMethods(Base):
    """Nests of another shape or order, and kinds of loops."""

    @written("sch.split(loop, [None, 8]): one factor for each new loop, outermost first, None for what is left")
    def split(
        self,
        loop: LoopRV,
        factors: Sequence[int | ExprRV | Expr | str | None],
        preserve_unit_iters: bool = True,
        tail: str = "guard",
    ) -> list[LoopRV]:
        """One loop becomes a nest, outermost first; one factor may be None.

        `tail` says what becomes of a last tile that is not full: "guard" or "peel" what there is of it, "pad" it (and
        the function's own buffers), or "shift" it inward, so that some iterations run twice.
        A factor may be a size of the function, such as `n // 4 + 1`. With `preserve_unit_iters=False`, loops of one
        iteration go from the bindings of the blocks.
        """
        if isinstance(factors, str) or not isinstance(factors, Sequence):
            raise WrongType("split", "factors", "a list", factors, "give one factor for each new loop: [None, 8]")
        inputs = {"loop": loop, "factors": [size_text(factor) for factor in factors]}
        return self._do("Split", inputs, preserve_unit_iters=preserve_unit_iters, tail=tail)

    def fuse(self, *loops: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """A nest becomes one loop; the iterations run in the same order."""
        return self._do("Fuse", {"loops": list(loops)}, preserve_unit_iters=preserve_unit_iters)

    def reorder(self, *ordered_loops: LoopRV) -> None:
        """The loops of a nest in another order; loops not named stay where they are."""
        return self._do("Reorder", {"ordered_loops": list(ordered_loops)})

    def merge(self, *loops: LoopRV) -> LoopRV:
        """Sibling nests become one, their bodies one after the other in each iteration."""
        return self._do("Merge", {"loops": list(loops)})

    def fission(self, loop: LoopRV, index: int = 1) -> list[LoopRV]:
        """A loop over several statements becomes two: one over the first `index`, one over the rest."""
        return self._do("Fission", {"loop": loop}, index=index)

    def add_unit_loop(self, block_or_loop: BlockRV | LoopRV) -> LoopRV:
        """A loop of one iteration around a block or loop."""
        return self._do("AddUnitLoop", {"block_or_loop": block_or_loop})

    def unroll_and_jam(self, loop: LoopRV, factor: int) -> list[LoopRV]:
        """`factor` iterations of an outer loop are done together around each block below; the outer and inner loops."""
        return self._do("UnrollAndJam", {"loop": loop}, factor=factor)

    def skew(self, loop: LoopRV, outer: LoopRV, factor: int, modulus: int | None = None) -> LoopRV:
        """Iteration j of `loop` moves to `j + outer * factor`, or to `j + outer * factor % modulus`."""
        return self._do("Skew", {"loop": loop, "outer": outer}, factor=factor, modulus=modulus)

    def specialize(self, *loops: LoopRV, condition: Callable[..., object] | str) -> list[BlockRV]:
        """Nests are written twice: copies run for sizes that fulfil the condition. Gives the blocks of the copies."""
        text = condition_text("specialize", condition)
        result: list[BlockRV] = self._do("Specialize", {"loops": list(loops)}, condition=text)
        return result

    def parallel(self, loop: LoopRV) -> None:
        """The iterations run on threads; proved that no two touch one cell with a write among them."""
        return self._do("Parallel", {"loop": loop})

    def vectorize(self, loop: LoopRV) -> None:
        """The iterations run as lanes in lockstep; proved that this keeps every value."""
        return self._do("Vectorize", {"loop": loop})

    def unroll(self, loop: LoopRV) -> None:
        """The iterations are written out one after the other."""
        return self._do("Unroll", {"loop": loop})

    def bind(self, loop: LoopRV, thread_axis: str) -> None:
        """The iterations run on the threads of an axis such as "threadIdx.x"."""
        return self._do("Bind", {"loop": loop}, thread_axis=thread_axis)

    def add_thread_loop(self, loop: LoopRV, thread_axis: str, extent: int) -> LoopRV:
        """A loop over threads around `loop`: those that run parts of it run all of it together."""
        return self._do("AddThreadLoop", {"loop": loop}, thread_axis=thread_axis, extent=extent)
