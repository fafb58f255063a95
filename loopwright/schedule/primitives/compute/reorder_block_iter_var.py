"""reorder_block_iter_var: the axes of a block in another order.

    with T.block("C"):                                  →    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])              vk, vi, vj = T.axis.remap("RSS", [k, i, j])

Here `reorder_block_iter_var("C", [2, 0, 1])`. Loops, body and order of execution stay as they are; what changes is how
a matcher (tensorize, an index map of the block's axes) counts the axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.analysis.dataflow import InitOf
from loopwright.ir import BlockRealize, Expr
from loopwright.schedule.errors import ScheduleError
from loopwright.schedule.handles import block_key
from loopwright.schedule.origins import Origins
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View


class NotAPermutation(ScheduleError, ValueError):
    """An order of axes must name each of them once, by its position.

    For example:

        from loopwright import te, tir
        A = te.placeholder((4, 8), name="A")
        B = te.compute((4, 8), lambda i, j: A[i, j] + 1.0, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.reorder_block_iter_var("B", [0, 0])
    """

    code = "LW0214"
    is_tried = False

    def __init__(self, realize: BlockRealize, order: Sequence[object]) -> None:
        count = len(realize.block.iter_vars)
        names = ", ".join([f"{position}: {axis.var.name}" for position, axis in enumerate(realize.block.iter_vars)])
        super().__init__(
            f"reorder_block_iter_var: {list(order)} is no order of the {count} axes of block "
            f"{realize.block.name_hint!r}",
            at=realize,
            hint=f"name each once: {names or 'it has none'}",
        )


def reorder_block_iter_var(view: View, block: BlockRealize, new_order: Sequence[int]) -> Step:
    """Put the axes of `block` into the order in which `new_order` names their positions."""
    order = list(new_order)
    axes = block.block.iter_vars
    numbers = [position for position in order if isinstance(position, int) and not isinstance(position, bool)]
    if len(numbers) < len(order) or sorted(numbers) != list(range(len(axes))):
        raise NotAPermutation(block, order)
    new = block.with_(
        iter_values=tuple([block.iter_values[position] for position in numbers]),
        block=block.block.with_(iter_vars=tuple([axes[position] for position in numbers])),
    )
    old_key, new_key = block_key(block.block), block_key(new.block)

    def old_values(given: Sequence[Expr]) -> Sequence[Expr]:
        by_position = dict(zip(numbers, given, strict=True))
        return [by_position[position] for position in range(len(numbers))]

    def old_data_values(given: Sequence[Expr]) -> Sequence[Expr]:
        """The same for the init, which has the data axes alone."""
        data = [position for position in numbers if axes[position].iter_type.name != "CommReduce"]
        by_position = dict(zip(data, given, strict=True))
        return [by_position[position] for position in sorted(data)]

    origins = Origins(renamed={new_key: (old_key, old_values), InitOf(new_key): (InitOf(old_key), old_data_values)})
    moved = {} if new_key is old_key else {old_key: new_key}
    return Step(view.replaced(view.block_path(old_key), new), Proof.ORDER_KEPT, origins, at=block, moved=moved)
