"""PostOrderApply: rules are applied to every block, the last ones first; alternatives multiply.

Every step is proved for the sizes that were drawn; a candidate is proved again for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from loopwright.ir import Block, BlockRealize, IRModule, Node, PrimFunc, post_order_visit
from loopwright.meta_schedule.errors import WrongAnswer
from loopwright.meta_schedule.space_generator.space_generator import FROM_TARGET, SpaceGenerator
from loopwright.runtime import get_global_func
from loopwright.schedule import BlockRV, Schedule


class PostOrderApply(SpaceGenerator):
    """`f_block_filter` says of a block whether rules see it: a function, or the name of a registered one."""

    def __init__(
        self,
        f_block_filter: Callable[[Block], bool] | str | None = None,
        sch_rules: Any = FROM_TARGET,
        postprocs: Any = FROM_TARGET,
        mutator_probs: Any = FROM_TARGET,
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        named = isinstance(f_block_filter, str)
        self.f_block_filter: Any = get_global_func(f_block_filter) if named else f_block_filter

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        seed = 1 if self._context is None else self._context.fork_seed()
        sch = Schedule(mod, seed=seed, error_render_level="none")
        blocks = self._blocks(sch, mod)
        result = [sch]
        for rule in self.sch_rules or ():
            pending = [(one, blocks) for one in result]
            result = []
            while pending:
                current, left = pending.pop()
                if not left:
                    result.append(current)
                    continue
                *others, block = left
                applied = _applied(rule, current, block) if self._is_seen(rule, current, block) else [current]
                pending += [(one, others) for one in applied]
        return result

    def _blocks(self, sch: Schedule, mod: IRModule) -> list[BlockRV]:
        """Every block after those inside it."""
        found: list[tuple[str, str]] = []
        for name, function in mod.functions_items():
            if isinstance(function, PrimFunc):
                body = sch.view(name).function.body
                found += [(block.name_hint, name) for block in _blocks_in(body) if self._is_wanted(block)]
        return [sch.get_block(block, name) for block, name in found]

    def _is_wanted(self, block: Block) -> bool:
        return self.f_block_filter is None or bool(self.f_block_filter(block))

    @staticmethod
    def _is_seen(rule: Any, sch: Schedule, block: BlockRV) -> bool:
        if not any(_has(view, block) for view in sch.views().values()):
            return False  # it was inlined
        return bool(getattr(rule, "is_for_custom_rules", False)) or "schedule_rule" not in sch.get(block).annotations


def _applied(rule: Any, sch: Schedule, block: BlockRV) -> list[Schedule]:
    made = rule.apply(sch, block)
    schedules = list(made) if isinstance(made, Iterable) else [made]
    if not isinstance(made, Iterable) or not all(isinstance(one, Schedule) for one in schedules):
        raise WrongAnswer(rule, ".apply", made, "a list of schedules")
    return schedules


def _has(view: Any, block: BlockRV) -> bool:
    return view.current(block.key) in view.index.blocks


def _blocks_in(body: Node) -> list[Block]:
    """The blocks, each after those inside it."""
    found: list[Block] = []

    def look(node: Node) -> None:
        if isinstance(node, BlockRealize):
            found.append(node.block)

    post_order_visit(body, look)
    return found


SpaceGenerator.kinds["post-order-apply"] = PostOrderApply
