"""Blocks that a tensor intrinsic computes stay what the intrinsic describes, whatever later steps do around them."""

from __future__ import annotations

from loopwright.ir import BlockRealize
from loopwright.ir.annotations import TENSORIZED
from loopwright.schedule.view import View


def check_tensorized(step: str, before: View, after: View) -> None:
    """Every block that names an intrinsic and that a step has changed is matched again; raises IntrinsicMismatch."""
    for key, path in after.index.blocks.items():
        realize = path[-1]
        assert isinstance(realize, BlockRealize)
        name = realize.block.annotations.get(TENSORIZED)
        if name is None:
            continue
        old = before.index.blocks.get(key)
        if old is None or not isinstance(old[-1], BlockRealize) or old[-1].block is not realize.block:
            # The passes that intrinsics belong to load when a program uses one.
            from loopwright.schedule.primitives.compute.tensorize import check_is

            check_is(step, after, realize.block, str(name))
