"""Blocks that a tensor intrinsic computes stay what the intrinsic describes, whatever later steps do around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopwright.ir import Block, BlockRealize
from loopwright.ir.annotations import TENSORIZED
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.view import View

if TYPE_CHECKING:
    from loopwright.transform.tensor_intrinsics import Differs


class IntrinsicMismatch(ScheduleError):
    """A block is not what the tensor intrinsic describes; the message says which access, extent, type or expression
    differs, and what the description has there.

    Loops may be in another order, and be split or fused; operands of + and * may be swapped. Extents, element types and
    expressions must be those of the description. Casts count: int8 products are summed as `T.Cast("int32", a) *
    T.Cast("int32", b)`.

    For example:

        from loopwright import te
        from loopwright.schedule import Schedule
        A = te.placeholder((8, 4), "uint8", name="A")
        B = te.placeholder((16, 4), "int8", name="B")
        k = te.reduce_axis((0, 4), name="k")
        product = lambda i, j: te.sum(A[i, k].astype("int32") * B[j, k].astype("int32"), axis=k)
        C = te.compute((8, 16), product, name="C")
        sch = Schedule(te.create_prim_func([A, B, C]))
        i, j, k = sch.get_loops("C")
        j_0, j_1 = sch.split(j, [None, 8])
        sch.tensorize(j_1, "dot_16x4_vnni")
    """

    code = "LW0290"

    def __init__(self, name: str, block: Block, result: Differs, step: str = "tensorize") -> None:
        super().__init__(
            f"{step}: block {block.name_hint!r} is not what {name!r} describes: {result}",
            at=block,
            hint=result.hint,
            fields={"intrinsic": name, "block": block.name_hint, "differs": result.what, **result.facts},
        )


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
            check_is(step, after, realize.block, str(name))


def check_is(step: str, view: View, block: Block, name: str) -> None:
    """The block computes what the intrinsic of that name describes; raises IntrinsicMismatch."""
    # The passes that intrinsics belong to load when a program uses one.
    from loopwright.transform.tensor_intrinsics import Differs, TensorIntrin, match_intrinsic

    intrin = TensorIntrin.get(name)
    assert intrin is not None
    try:
        match_intrinsic(block, intrin, view.function.argument_buffers())
    except Differs as result:
        raise IntrinsicMismatch(name, block, result, step) from None
