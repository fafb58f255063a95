"""Deferred: a chain of steps is proved once, what it ends with against what it began with.

A saved trace is replayed this way: twelve steps need one comparison instead of twelve. Names of instances make that
possible: a step that moves loops keeps them, one that makes copies or renames blocks says so, and both add up. Steps
that rest on a reason of their own, or that inline loads, end a stretch: it is proved, and the next begins after them.
A new layout with a cell of its own for every element, or another scope without threads, ends none: what the stretch
began with gets it, too.

What was known of the function before each step is kept: where a branch is given up, the next step goes on from there.

A doubt is no verdict: the trace is then replayed with a proof at each step, which finds the culprit, or accepts it all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final

from loopwright.analysis.dataflow import BlockKey, flow_budget
from loopwright.ir import (
    BlockRealize,
    BufferLoad,
    BufferStore,
    Expr,
    For,
    IfThenElse,
    Node,
    PrimFunc,
    Stmt,
    pre_order_visit,
)
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import OldValues, Origins
from loopwright.schedule.proof.buffer_scopes import check_scopes
from loopwright.schedule.proof.calls_in_bounds import check_calls_kept
from loopwright.schedule.proof.early_return import check_order_kept
from loopwright.schedule.proof.find_mismatch import find_mismatch, find_race
from loopwright.schedule.proof.loading_lets import check_lets_kept
from loopwright.schedule.proof.loop_kinds import check_thread_loops, concurrent_loops
from loopwright.schedule.proof.moved_inits import with_inits_proved
from loopwright.schedule.proof.thread_owners import with_owners_proved
from loopwright.schedule.proof.thread_reduction_order import with_turns_proved
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View

BUDGET: Final = 400_000  # isl operations for one flow: where more are needed, step by step is faster
COMPARISON_BUDGET: Final = 12_000_000  # and for a comparison: proofs one by one take eight seconds where one takes four


class Doubt(Exception):
    """The chain was not proved as a whole. Never leaves the replay."""


@dataclass(frozen=True)
class _Stretch:
    """The steps that made `end` of `start`, as one."""

    start: PrimFunc
    end: PrimFunc
    copies: frozenset[BlockKey] = frozenset()
    renamed: Mapping[BlockKey, tuple[BlockKey, OldValues]] = field(default_factory=dict)
    is_moved: bool = False  # something has to be proved

    def and_then(self, step: Step) -> _Stretch:
        """The stretch with one more step."""
        copies, renamed = {*self.copies, *step.origins.copies}, dict(self.renamed)
        for new, (old, values) in step.origins.renamed.items():
            if old in copies:
                copies.add(new)
            elif old in renamed:
                first, earlier = renamed[old]
                renamed[new] = first, _composed(earlier, values)
            else:
                renamed[new] = old, values
        is_moved = self.is_moved or step.proof is Proof.VALUES
        return _Stretch(self.start, step.after, frozenset(copies), renamed, is_moved)

    def prove(self) -> None:
        """That `end` computes what `start` does. Raises Doubt."""
        if not self.is_moved or self.end is self.start:
            return
        if not _are_copies(self.end, self.copies):
            raise Doubt
        origins = Origins(copies=self.copies, renamed=self.renamed)
        with flow_budget(BUDGET):
            if find_mismatch(self.start, self.end, origins, budget=COMPARISON_BUDGET) is not None:
                raise Doubt


def _composed(first: OldValues, then: OldValues) -> OldValues:
    def values(axes: Sequence[Expr]) -> Sequence[Expr]:
        return first(then(axes))  # type: ignore[arg-type]

    return values


def _are_copies(function: PrimFunc, keys: Set[BlockKey]) -> bool:
    """Whether the blocks of these keys still do nothing but copy a cell."""
    result = True

    def look(node: Node) -> bool:
        nonlocal result
        if isinstance(node, BlockRealize) and block_key(node.block) in keys:
            body: Stmt = node.block.body
            while isinstance(body, (For, IfThenElse)):
                body = body.body if isinstance(body, For) else body.then_case
            plain = isinstance(body, BufferStore) and isinstance(body.value, BufferLoad)
            result = result and plain and node.block.init is None
        return isinstance(node, Stmt)

    pre_order_visit(function.body, look)
    return result


class Deferred:
    """The proofs that a replay still owes, by function."""

    def __init__(self, views: Mapping[str, View]) -> None:
        self.first = {name: view.function for name, view in views.items()}
        self.stretches = {name: [_Stretch(view.function, view.function)] for name, view in views.items()}

    def _up_to(self, name: str, function: PrimFunc) -> _Stretch:
        """The last stretch that ends with `function`. Later ones are of branches that were given up. Raises Doubt."""
        for stretch in reversed(self.stretches[name]):
            if stretch.end is function:
                return stretch
        raise Doubt

    def add(self, name: str, view: View, step: Step) -> None:
        """A step to be proved later, or now with all before it. Raises Doubt."""
        stretch = self._up_to(name, view.function)
        try:
            check_order_kept("replay", view, step)
            after = View(step.after)
            check_calls_kept("replay", view, after, step)
            check_lets_kept("replay", view, after, step)
            step = with_inits_proved(view, after, with_turns_proved("replay", view, step))
            step = with_owners_proved(view, after, step)
            if step.again is not None and (start := step.again(stretch.start)) is not None:
                self.stretches[name].append(replace(stretch, start=start, end=step.after))
                return
        except ScheduleError:
            raise Doubt from None
        origins = step.origins
        if step.proof is not Proof.GIVEN and step.given is None and not origins.loads and not origins.buffers:
            self.stretches[name].append(stretch.and_then(step))
            return
        stretch.prove()
        if step.proof is Proof.VALUES:
            result = find_mismatch(step.given or view.function, step.after, origins, step.buffers)
            if result is not None:
                raise Doubt
        self.stretches[name].append(_Stretch(step.after, step.after))

    def finish(self, views: Mapping[str, View]) -> None:
        """Prove what is owed, and that loops whose iterations run at the same time may. Raises Doubt."""
        for name, first in self.first.items():
            view = views[name]
            if view.function is first:
                continue
            stretch = self._up_to(name, view.function)
            try:
                check_scopes("replay", Step(view.function))
                check_thread_loops("replay", view)
            except ScheduleError:
                raise Doubt from None
            stretch.prove()
            for loop in concurrent_loops(view):
                if find_race(view.function, loop.loop_var) is not None:
                    raise Doubt
