"""tensorize: a block, or the nest below a loop, is computed by an instruction of the machine.

    for j_1, k in T.grid(16, 4):                   →    with T.block("C_o"):
        with T.block("C"):                                  …
            … C[vi, vj] + A[vi, vk] * B[vj, vk]             T.block_attr({"tensor_intrin": "dot_16x4_vnni"})
                                                            for j_1, k in T.grid(16, 4):
        tensorize(j_1, "dot_16x4_vnni")                         with T.block("C"): …

A loop is made a block first (see `blockize.py`). The block is matched with the description of the intrinsic
(`transform/tensor_intrinsics/match.py`), and is marked; lowering puts the implementation in its place. Until then the
program holds what it means, so later steps are proved, and the program is evaluated, as ever. A later step that
would turn the block into something else than the intrinsic describes is refused.

What is proved: the block computes what the description says. That the machine's implementation computes the same is the
word of whoever registered it; the trace says so (`Trace.relies_on`), and `check_intrinsic` tries it on numbers.
"""

from __future__ import annotations

from loopwright.ir import BlockRealize, For
from loopwright.ir.annotations import TENSORIZED
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.handles import block_key
from loopwright.schedule.primitives.compute.blockize import tile_of
from loopwright.schedule.proof.tensorized import check_is
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View
from loopwright.transform.tensor_intrinsics import TensorIntrin


def tensorize(
    view: View, block_or_loop: BlockRealize | For, tensor_intrin: str, preserve_unit_iters: bool = True
) -> Step:
    """Have an instruction compute a block, or what is below a loop."""
    if not isinstance(tensor_intrin, str):
        raise BadStepArgument("tensorize", f"expected the name of a tensor intrinsic, got {tensor_intrin!r}")
    intrin = TensorIntrin.get(tensor_intrin)
    assert intrin is not None
    if isinstance(block_or_loop, For):
        starts = bool(intrin.pattern.init)
        tile = tile_of("tensorize", view, block_or_loop, preserve_unit_iters, hoist=not starts)
        marked = _marked(view, tile.realize, intrin)
        return tile._replace(realize=marked).step(view, gives_block=False)
    realize = _marked(view, block_or_loop, intrin)
    path = view.block_path(block_key(block_or_loop.block))
    return Step(view.replaced(path, realize), Proof.ORDER_KEPT, at=block_or_loop)


def _marked(view: View, realize: BlockRealize, intrin: TensorIntrin) -> BlockRealize:
    block = realize.block
    check_is("tensorize", view, block, intrin.name)
    return realize.with_(block=block.with_(annotations={**block.annotations, TENSORIZED: intrin.name}))
