"""auto_inline: element-wise blocks go into the expressions that read them.

    B[i] = A[i] * 2; C[i] = B[i] + 1        →        C[i] = A[i] * 2 + 1

What chooses by conditions (padding) or calls a costly function is computed once, at a location that is sampled.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.autosched.facts import BlockFacts
from loopwright.ir import Call, Node, Select, any_node
from loopwright.schedule import BlockRV, Schedule, ScheduleError
from loopwright.tune.sketches.blocks import is_output, own_facts
from loopwright.tune.sketches.rules.rule import ScheduleRule


class AutoInline(ScheduleRule):
    """The arguments are those of other meta-schedules: what may be inlined, and what disallows it."""

    name = "auto_inline"

    def __init__(
        self,
        into_producer: bool = False,
        into_consumer: bool = True,
        inline_const_tensor: bool = True,
        disallow_if_then_else: bool = True,
        require_injective: bool = True,
        require_ordered: bool = True,
        disallow_op: Sequence[str] | None = ("tir.exp",),
    ) -> None:
        self.into_producer, self.into_consumer = into_producer, into_consumer
        self.inline_const_tensor, self.disallow_if_then_else = inline_const_tensor, disallow_if_then_else
        self.require_injective, self.require_ordered = require_injective, require_ordered
        self.disallow_op = tuple([name.removeprefix("tir.") for name in disallow_op or ()])

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        facts = own_facts(sch, block)
        if facts is None or facts.is_reduction or len(facts.stores) != 1:
            return [sch]
        is_const = not facts.reads
        allowed = self.inline_const_tensor if is_const else self._may_inline(facts)
        if self.into_consumer and allowed and not is_output(sch, block) and sch.get_consumers(block):
            done = sch.copy()
            try:
                done.compute_inline(block)
                return [done]
            except ScheduleError:
                pass  # what cannot be inlined stays
        if self.into_producer and len(sch.get_producers(block)) == 1:
            done = sch.copy()
            try:
                done.reverse_compute_inline(block)
                return [done]
            except ScheduleError:
                pass
        return [sch]

    def _may_inline(self, facts: BlockFacts) -> bool:
        value = facts.store.value
        if self.disallow_if_then_else and any_node(value, _is_choice):
            return False
        if self.require_injective and not facts.is_injective:
            return False
        if self.require_ordered and not facts.writes_in_order:
            return False
        return not any_node(value, self._is_disallowed)

    def _is_disallowed(self, node: Node) -> bool:
        return isinstance(node, Call) and node.op.name.removeprefix("tir.") in self.disallow_op


def _is_choice(node: Node) -> bool:
    return isinstance(node, Select) or (isinstance(node, Call) and node.op.name.removeprefix("tir.") == "if_then_else")
