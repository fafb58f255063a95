"""add_guard, remove_guard: a block runs only where a condition on its axes holds; or wherever its loops run.

    with T.block("B"):                     →     with T.block("B"):
        vi = T.axis.spatial(16, i)                   vi = T.axis.spatial(16, i)
        B[vi] = A[vi] + 1                            T.where(i < 10)
                                                     B[vi] = A[vi] + 1

Here `add_guard("B", lambda vi: vi < 10)`. Proved: what is left out (or done in addition) is seen by nobody. What runs
in addition must also stay within its buffers.
"""

from __future__ import annotations

from loopwright.ir import BlockRealize, conjuncts, logical_and
from loopwright.schedule.errors import BadStepArgument, ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.proof.speculative_runs import check_speculative_runs, with_wide_axes
from loopwright.schedule.rewrite.bindings import TRUE, is_true
from loopwright.schedule.rewrite.conditions import check_has_value, condition_on
from loopwright.schedule.rewrite.regions import facts_under
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


class NoGuard(ScheduleError):
    """A guard was to be taken away from a block that has none.

    For example:

        from loopwright import te, tir
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.remove_guard("B")
    """

    code = "LW0222"

    def __init__(self, realize: BlockRealize) -> None:
        super().__init__(f"remove_guard: block {realize.block.name_hint!r} has no guard", at=realize)


def add_guard(view: View, block: BlockRealize, condition: str) -> Step:
    """Run `block` only where the condition on its axes holds."""
    path = view.block_path(block_key(block.block))
    if len(path) == 1:
        raise BadStepArgument("add_guard", "the root block has no guard", block)
    facts = facts_under(view.all_loops_above(path))
    asked = facts.simplify(condition_on("add_guard", condition, block.iter_values))
    with facts.constraint_scope(block.predicate):
        check_has_value("add_guard", asked, facts)
    new = block.with_(predicate=logical_and(block.predicate, asked))
    touched = [region.buffer for region in (*block.block.reads, *block.block.writes)]
    return Step(view.replaced(path, new), Proof.VALUES, at=block, buffers=touched)


def remove_guard(view: View, block: BlockRealize, index: int | None = None) -> Step:
    """Run `block` wherever its loops run; or drop condition number `index` of its guard alone."""
    path = view.block_path(block_key(block.block))
    conditions = conjuncts(block.predicate)
    if is_true(block.predicate) or not conditions:
        raise NoGuard(block)
    if index is not None and (
        isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(conditions)
    ):
        shown = ", ".join([f"{position}: {condition}" for position, condition in enumerate(conditions)])
        raise BadStepArgument("remove_guard", f"there is no condition {index!r}", block, f"there are {shown}")
    kept = [condition for position, condition in enumerate(conditions) if index is not None and position != index]
    free = with_wide_axes("remove_guard", block.with_(predicate=logical_and(TRUE, *kept)), path[:-1])
    after = view.replaced(path, free)
    check_speculative_runs("remove_guard", after, [block_key(block.block)], block)
    touched = [region.buffer for region in (*block.block.reads, *block.block.writes)]
    return Step(after, Proof.VALUES, at=block, buffers=touched)
