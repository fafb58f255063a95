"""add_unit_loop: a loop of one iteration around a block or loop, to give a nest the depth another step needs.

    with T.block("B"):         →         for u in range(1):
        …                                    with T.block("B"):
                                                 …

Nothing runs more often or in another order, so there is nothing to prove.
"""

from __future__ import annotations

from loopwright.ir import BlockRealize, For, ForKind, Var, const
from loopwright.schedule.errors import NotSupported
from loopwright.schedule.handles import block_key
from loopwright.schedule.step import LoopResult, Proof, Step
from loopwright.schedule.view import View


def add_unit_loop(view: View, block_or_loop: BlockRealize | For) -> Step:
    """A loop `u` of extent 1 right above the block or loop."""
    if isinstance(block_or_loop, For):
        path, dtype = view.loop_path(block_or_loop.loop_var), block_or_loop.loop_var.dtype
    else:
        if block_or_loop is view.function.body:
            problem = f"block {block_or_loop.block.name_hint!r} is the root: no loop can stand around it"
            raise NotSupported("add_unit_loop", problem, block_or_loop, "name a block or loop inside it")
        path, dtype = view.block_path(block_key(block_or_loop.block)), None
        if block_or_loop.iter_values:
            dtype = block_or_loop.iter_values[0].dtype
    unit = Var("u", dtype or "int32")
    new = For(unit, const(0, unit.dtype), const(1, unit.dtype), ForKind.SERIAL, block_or_loop)
    return Step(view.replaced(path, new), Proof.ORDER_KEPT, results=[LoopResult(unit)], at=block_or_loop)
