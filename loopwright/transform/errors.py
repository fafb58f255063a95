"""What lowering refuses: one class a fact."""

from __future__ import annotations

from loopwright.ir import Block, For, MatchBufferRegion
from loopwright.runtime.errors import LoopwrightError


class LoweringError(LoopwrightError):
    """A program that cannot be lowered for its target."""

    code = "LW0700"


class ThreadLoopOnCpu(LoweringError):
    """A loop is bound to a GPU thread axis, but the program is compiled for a CPU.

    Threads of a block can meet at barriers and share memory; loops of a CPU cannot. Bind such loops only for GPU
    targets; on a CPU, `parallel` distributes iterations over cores and `vectorize` over vector lanes.
    """

    code = "LW0701"

    def __init__(self, loop: For) -> None:
        tag = loop.thread_binding.thread_tag if loop.thread_binding is not None else "a thread axis"
        super().__init__(
            lambda: f"loop {loop.loop_var.name} of extent {loop.extent} is bound to {tag}, which a CPU does not have",
            at=loop,
            hint="use parallel or vectorize in place of bind, or build for a GPU target",
            fields={"loop": loop.loop_var.name, "thread_tag": tag},
        )


class VectorExtentUnknown(LoweringError):
    """A vectorized loop has an extent that is known only when the program runs.

    The lanes of a vector are fixed when code is generated. Split the loop by a constant first and vectorize the inner
    part.
    """

    code = "LW0702"

    def __init__(self, loop: For) -> None:
        super().__init__(
            lambda: f"vectorized loop {loop.loop_var.name} has extent {loop.extent}, which is not a constant",
            at=loop,
            hint="split the loop by a constant factor and vectorize the inner loop",
            fields={"loop": loop.loop_var.name},
        )


class UnrollExtentUnknown(LoweringError):
    """A loop marked unrolled has an extent that is known only when the program runs, so it cannot be written out."""

    code = "LW0703"

    def __init__(self, loop: For) -> None:
        super().__init__(
            lambda: f"unrolled loop {loop.loop_var.name} has extent {loop.extent}, which is not a constant",
            at=loop,
            hint="split the loop by a constant factor and unroll the inner loop",
            fields={"loop": loop.loop_var.name},
        )


class RegionDoesNotMatch(LoweringError):
    """A matched buffer promises a layout that the region it stands for does not have, or not provably.

    `match_buffer` gives a region a name and, if declared so, a shape, strides and an offset. Lowering compares each
    declared value with the region's own.
    """

    code = "LW0704"

    def __init__(self, match: MatchBufferRegion, what: str, declared: object, found: object) -> None:
        super().__init__(
            lambda: (
                f"match_buffer {match.buffer.name}: declared {what} {declared}, "
                f"but the region of {match.source.buffer.name} has {found}"
            ),
            at=match,
            hint=f"declare the {what} as a variable to have it filled in, or match a region that has it",
            fields={"buffer": match.buffer.name, "source": match.source.buffer.name, "what": what},
        )


class BlockNotLowered(LoweringError):
    """A pass that runs after blocks are gone met one. Run `lower_blocks` (and what stands before it) first."""

    code = "LW0705"

    def __init__(self, name: str, block: Block) -> None:
        super().__init__(
            f"{name}: block {block.name_hint} is still there",
            at=block,
            hint="run lower(func, target), or the passes before this one in transform/pipeline.py",
        )


class BlockStateLeft(LoweringError):
    """`lower_blocks` met a block whose init or allocations have not been written down yet."""

    code = "LW0706"

    def __init__(self, block: Block, what: str, first: str) -> None:
        super().__init__(
            f"lower_blocks: block {block.name_hint} still has {what}", at=block, hint=f"run {first} before lower_blocks"
        )


class UnknownStage(LoweringError, ValueError):
    """`stages` or `lower` was asked to stop after a pass that the pipeline does not have."""

    code = "LW0707"

    def __init__(self, name: str, names: list[str]) -> None:
        super().__init__(f"the lowering pipeline has no pass {name!r}", hint=f"its passes are {', '.join(names)}")


class NotForThisTarget(LoweringError):
    """The lowering pipeline has no list of passes for this kind of target yet."""

    code = "LW0708"

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"lowering for target kind {kind!r} is not built",
            why="the pipeline writes programs for CPUs",
            hint='use Target("llvm")',
            fields={"kind": kind},
        )
