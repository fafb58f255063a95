"""Memory of its own for each iteration that computes a reduction again.

    for i in range(8):                      →    for i in range(8):
        for j in range(4):                           for j in range(4):
            for k in range(9):                           B = T.decl_buffer((8,))
                with T.block("B"):                       for k in range(9):
                    … B[i] = B[i] + A[i, k]                  with T.block("B"):
            with T.block("C"): … B[i] …                          … B[i] = B[i] + A[i, k]
                                                         with T.block("C"): … B[i] …

A reduction adds to what its cells hold, and starts before the outermost loop that carries it: on the left that is j, so
four times as much would be added. On the right every j has a cell of its own, which starts anew.

So has every iteration of a loop on threads where two of them would compute one cell. Memory that the threads of a block
share is theirs together, and stays where it is.
"""

from __future__ import annotations

from loopwright.analysis.loop_carried import Loop, carries
from loopwright.analysis.thread_axes import is_of_block, is_per, is_thread_tag, tag_of
from loopwright.ir import Buffer, For, IterType, PrimFunc, Var, conjuncts
from loopwright.schedule.errors import NotSupported
from loopwright.schedule.handles import BlockKey
from loopwright.schedule.rewrite.allocations import NotOurMemory, allocated_in, common_use, home_of
from loopwright.schedule.view import View


def privatize(function: PrimFunc, key: BlockKey, var: Var) -> PrimFunc:
    """What the block writes is allocated in the loop of `var`, where iterations of it compute a cell more than once.

    The function itself where that is not so, or where the results are used outside of the loop.
    """
    view = View(function)
    realize = view.realize(key)
    pairs = zip(realize.block.iter_vars, realize.iter_values, strict=True)
    data = [value for axis, value in pairs if axis.iter_type != IterType.CommReduce]
    loops = view.loops_of(key)
    known = [Loop(item.loop_var, item.min, item.extent) for item in loops]
    outside = [item.loop_var for item in loops].index(var) + 1
    guards = conjuncts(realize.predicate)
    sums = realize.block.init is not None
    buffers = [region.buffer for region in realize.block.writes]
    again = [depth for depth in range(outside) if sums or any([_disturbs(loops[depth], item) for item in buffers])]
    if not any([carries(known, depth, data, guards) for depth in again]):
        return function
    for buffer in buffers:
        path, shared = view.loop_path(var), common_use(view, buffer)
        if len(shared) < len(path) or any([one is not other for one, other in zip(shared, path, strict=False)]):
            return function  # used outside of the loop as well
        try:
            home = home_of("compute_at", view, buffer, realize)
        except (NotOurMemory, NotSupported):
            return function
        if len(home.path) <= len(path):
            view = View(allocated_in(view, home, buffer, shared, len(path) - 1))
    return view.function


def _disturbs(loop: For, buffer: Buffer) -> bool:
    """Whether iterations of the loop run on threads, and have the buffer's memory in common by accident."""
    tag, scope = tag_of(loop), buffer.scope()
    return bool(tag) and not is_per(scope, tag) and not (is_thread_tag(tag) and (is_of_block(scope) or scope == "warp"))
