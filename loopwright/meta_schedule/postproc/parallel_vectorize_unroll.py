"""RewriteParallelVectorizeUnroll: does what the notes on root blocks allow, now that sizes are known.

for i0, j0, i1: …       →      for i0_j0_fused in T.parallel(8192): for i1: …
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loopwright.arith import Analyzer
from loopwright.ir import BufferRegion, Expr, For, ForKind, IntImm, IterType, SeqStmt, Var, substitute, uses_var
from loopwright.ir import const as number
from loopwright.meta_schedule.block_questions import extent_of, is_spatial, loop_kinds, loops_above, realize_of
from loopwright.meta_schedule.postproc.postproc import Postproc
from loopwright.schedule import BlockRV, LoopRV, Schedule

_NOTES: Final = ("parallel", "vectorize", "unroll_explicit", "unroll_implicit")


@dataclass
class Wishes:
    """What the notes allow; -1 for what they do not."""

    parallel: int = -1
    vectorize: int = -1
    unroll_explicit: int = -1
    unroll_implicit: int = -1


class RewriteParallelVectorizeUnroll(Postproc):
    """Blocks below each root block that has notes."""

    def apply(self, sch: Schedule) -> bool:
        for name in list(sch.views()):
            root = sch.get_block("root", name) if _has_root(sch, name) else None
            if root is None:
                continue
            wishes = _taken(sch, root)
            if wishes is not None:
                for block in sch.get_child_blocks(root):
                    _rewrite(sch, block, wishes)
        return True


def _has_root(sch: Schedule, name: str) -> bool:
    return "root" in sch.views()[name].block_names()


def _taken(sch: Schedule, root: BlockRV) -> Wishes | None:
    """The notes of a root block, which are taken away."""
    held = sch.get(root).annotations
    given = {key: held[f"meta_schedule.{key}"] for key in _NOTES if f"meta_schedule.{key}" in held}
    for key in given:
        sch.unannotate(root, f"meta_schedule.{key}")
    values = {key: int(getattr(value, "value", value)) for key, value in given.items()}  # type: ignore[call-overload]
    return Wishes(**values) if values else None


def _rewrite(sch: Schedule, block: BlockRV, wishes: Wishes) -> None:
    loops = sch.get_loops(block)
    if not loops:
        return
    parallel, vector = _counts(sch, block, wishes)
    if parallel == vector == len(loops):
        fused = sch.fuse(*loops)
        outer, inner = sch.split(fused, [None, wishes.vectorize])
        sch.parallel(outer)
        sch.vectorize(inner)
        loops = [outer, inner]
    else:
        if parallel > 0:
            loops = _fused(sch, loops, 0, parallel, "parallel")
            vector = min(vector, len(loops) - 1) if vector > 0 else vector
        if vector > 0:
            loops = _fused(sch, loops, len(loops) - vector, len(loops), "vectorize")
    steps = max(wishes.unroll_explicit, wishes.unroll_implicit)
    if (
        steps > 0
        and "pragma_auto_unroll_max_step" not in sch.get(loops[0]).annotations
        and not is_spatial(sch.get(block))
    ):
        sch.annotate(loops[0], "pragma_auto_unroll_max_step", steps)
        sch.annotate(loops[0], "pragma_unroll_explicit", int(wishes.unroll_explicit != -1))


def _fused(sch: Schedule, loops: list[LoopRV], begin: int, end: int, step: str) -> list[LoopRV]:
    fused = sch.fuse(*loops[begin:end])
    getattr(sch, step)(fused)
    return [*loops[:begin], fused, *loops[end:]]


def _counts(sch: Schedule, block: BlockRV, wishes: Wishes) -> tuple[int, int]:
    """How many of the outer loops are parallelised, and how many of the inner ones vectorized."""
    if wishes.parallel == -1 and wishes.vectorize == -1:
        return -1, -1
    loops, kinds = loops_above(sch, block), loop_kinds(sch, block)
    in_row = _contiguous(sch, block, loops)
    is_data = [kind == IterType.DataPar for kind in kinds]
    is_data = [data and _is_plain(loop) for data, loop in zip(is_data, loops, strict=True)]
    if in_row == len(loops) and all(is_data) and wishes.parallel != -1 and wishes.vectorize != -1:
        total = 1
        for loop in loops:
            total *= extent_of(loop.extent) or 1
        if total > wishes.vectorize:
            return len(loops), len(loops)
    parallel = _outer(loops, is_data, wishes.parallel) if wishes.parallel != -1 else -1
    vector = _inner(loops, is_data, wishes.vectorize, in_row) if wishes.vectorize != -1 else -1
    if parallel > 0 and vector > 0 and parallel + vector > len(loops):
        parallel = len(loops) - vector
    return parallel, vector


def _is_plain(loop: For) -> bool:
    """Whether nothing is decided about the loop; a block beside this one may have come first."""
    return loop.kind is ForKind.SERIAL and not loop.annotations


def _outer(loops: list[For], is_data: list[bool], limit: int) -> int:
    count, total = 0, 1
    for loop, data in zip(loops, is_data, strict=True):
        extent = extent_of(loop.extent)
        if not data or extent is None:
            break
        count, total = count + 1, total * extent
        if total > limit or isinstance(loop.body, SeqStmt):
            break
    return -1 if total == 1 else count


def _inner(loops: list[For], is_data: list[bool], limit: int, in_row: int) -> int:
    count, total = 0, 1
    for loop, data in zip(reversed(loops), reversed(is_data), strict=True):
        extent = extent_of(loop.extent)
        if not data or extent is None or count >= in_row or isinstance(loop.body, SeqStmt):
            break
        total *= extent
        if total > limit:
            break
        count += 1
    return -1 if total == 1 else count


def _contiguous(sch: Schedule, block: BlockRV, loops: list[For]) -> int:
    """How many of the inner loops walk through memory without gaps, in every access."""
    realize = realize_of(sch, block)
    values = {axis.var: value for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)}
    extents = [extent_of(loop.extent) for loop in loops]
    counts = []
    for access in [*realize.block.reads, *realize.block.writes]:
        strides = [_stride(access, values, loop.loop_var, loops) for loop in loops]
        counts.append(_walked(strides, extents))
    return min(counts, default=len(loops))


def _walked(strides: list[int], extents: list[int | None]) -> int:
    count, last = 0, -1
    for position in range(len(strides) - 1, -1, -1):
        stride = strides[position]
        if stride != 0:
            if last == -1:
                if stride != 1 and count != 0:
                    break
            elif stride != strides[last] * (extents[last] or 0):
                break
            last = position
        count += 1
    return count


def _stride(access: BufferRegion, values: dict[Var, Expr], var: Var, loops: list[For]) -> int:
    """How many elements one step of a loop moves an access by; 0 where it does not."""
    size = 1
    facts = Analyzer()
    for part, extent in zip(reversed(access.region), reversed(access.buffer.shape), strict=True):
        index = substitute(part.min, values)
        if uses_var(index, {var}.__contains__):
            first, second = (_at(facts, index, loops, var, step) for step in (0, 1))
            if first is not None and second is not None and first != second:
                return (second - first) * size
        size *= extent_of(extent) or 1
    return 0


def _at(facts: Analyzer, index: Expr, loops: list[For], var: Var, step: int) -> int | None:
    here = {loop.loop_var: number(step if loop.loop_var is var else 0, loop.loop_var.dtype) for loop in loops}
    value = facts.simplify(substitute(index, here))
    return value.value if isinstance(value, IntImm) else None
