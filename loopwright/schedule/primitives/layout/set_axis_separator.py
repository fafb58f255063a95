"""set_axis_separator: the dimensions of a buffer are grouped into those of physical memory.

    B = T.alloc_buffer((4, 8, 16))     →     B = T.alloc_buffer((4, 8, 16), axis_separators=[1])

Here `set_axis_separator(block, "B", [1])`: the first dimension is one of memory, the other two together are another.
Memory of one dimension ignores it. Cells, indices and order stay, so every read sees what it saw.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import BlockRealize
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.primitives.memory.reindex import side_of
from loopwright.schedule.rewrite.buffers import BufferName, check_no_pointer, exchange
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


def set_axis_separator(
    view: View, block: BlockRealize, buffer: BufferName | Sequence[object], axis_separators: Sequence[int]
) -> Step:
    """Cut the dimensions of a buffer that `block` touches before each of `axis_separators`."""
    old, _ = side_of("set_axis_separator", block, buffer)
    cuts = list(axis_separators)
    plain = all([isinstance(cut, int) and not isinstance(cut, bool) and 0 <= cut <= old.ndim for cut in cuts])
    if not plain or cuts != sorted(set(cuts)):
        problem = f"{cuts} are no places to cut the {old.ndim} dimensions of {old.name}"
        raise BadStepArgument("set_axis_separator", problem, block, f"give increasing numbers from 0 to {old.ndim}")
    check_no_pointer("set_axis_separator", view.function.body, old)
    new = old.with_(axis_separators=tuple(cuts))
    after = exchange(view.function, old, new)
    kept = {param: new if given is old else given for param, given in after.buffer_map.items()}
    return Step(after.with_(buffer_map=kept), Proof.GIVEN, at=block)
