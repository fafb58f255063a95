"""storage_align: the stride of a dimension becomes `offset` modulo `factor`, so that rows start where it suits.

    B = T.alloc_buffer((64, 64))       →     B = T.alloc_buffer((64, 64), strides=(65, 1))

Here `storage_align(block, 0, axis=0, factor=64, offset=1)`. The block keeps what was asked for in its annotation
`buffer_dim_align`, which goes where the buffer goes (`alignment.py`); the buffer's strides are what honours it. Strides
only grow, so no two elements meet in one place; indices and order stay, so every read sees what it saw.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import BlockRealize, Buffer, Expr, IntImm, const
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.alignment import ALIGN_KEY, requests_of
from loopwright.schedule.rewrite.allocations import home_of
from loopwright.schedule.rewrite.buffers import check_no_pointer, exchange, find_buffer
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


def storage_align(view: View, block: BlockRealize, buffer_index: int, axis: int, factor: int, offset: int) -> Step:
    """Pad the allocation of a buffer that `block` writes until the stride of `axis` is `offset` modulo `factor`."""
    buffer = find_buffer("storage_align", block, buffer_index, "writes")
    if not -buffer.ndim <= axis < buffer.ndim:
        problem = f"axis is {axis}, but {buffer.name} has {buffer.ndim} dimensions"
        raise BadStepArgument("storage_align", problem, block, f"use {-buffer.ndim} to {buffer.ndim - 1}")
    axis %= buffer.ndim
    if factor < 1:
        raise BadStepArgument("storage_align", f"factor is {factor}", block, "use a factor of at least 1")
    home_of("storage_align", view, buffer, block)
    check_no_pointer("storage_align", view.function.body, buffer)
    position = [region.buffer for region in block.block.writes].index(buffer)
    requests = [request for request in _requests(block) if request[:2] != [position, axis]]
    requests.append([position, axis, factor, offset])

    aligned = buffer.with_(strides=_strides(buffer, [request for request in requests if request[0] == position], block))
    noted = block.block.with_(annotations={**block.block.annotations, ALIGN_KEY: requests})
    path = view.block_path(block_key(block.block))
    after = view.replaced(path, block.with_(block=noted))
    return Step(exchange(after, buffer, aligned), Proof.GIVEN, at=block)


def _requests(realize: BlockRealize) -> list[list[int]]:
    """What was asked for so far: [buffer, axis, factor, offset] each."""
    result = requests_of(realize.block)
    if result is None:
        problem = f"the annotation {ALIGN_KEY} of block {realize.block.name_hint!r} is "
        problem += repr(realize.block.annotations[ALIGN_KEY])
        raise BadStepArgument("storage_align", problem, realize, "it is a list of (buffer, axis, factor, offset)")
    return result


def _strides(buffer: Buffer, requests: Sequence[Sequence[int]], at: BlockRealize) -> tuple[Expr, ...]:
    wanted = {axis: (factor, offset) for _, axis, factor, offset in requests}
    strides: list[Expr] = []
    stride: Expr = const(1, buffer.shape[-1].dtype)
    for axis in reversed(range(buffer.ndim)):
        if axis in wanted:
            if not isinstance(stride, IntImm):
                raise NotSupported("storage_align", f"the stride of axis {axis} is {stride}, which is no constant", at)
            factor, offset = wanted[axis]
            stride = const(stride.value + (offset - stride.value) % factor, stride.dtype)
        strides.append(stride)
        stride = stride * buffer.shape[axis]
    return tuple(reversed(strides))
