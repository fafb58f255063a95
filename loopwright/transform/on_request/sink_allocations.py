"""sink_allocations: memory of blocks and threads is allocated as far in as its values allow.

    S = T.alloc_buffer((64,), scope="shared")                    →    for bx in T.thread_binding(2, "blockIdx.x"):
    for bx in T.thread_binding(2, thread="blockIdx.x"):                   for k in range(4):
        for k in range(4):                                                    S = T.decl_buffer((64,), scope="shared")
            for tx in T.thread_binding(8, thread="threadIdx.x"):              for tx in T.thread_binding(8, …):
                S[k * 8 + tx] = A[bx, k * 8 + tx]                                 S[k * 8 + tx] = …
            …                                                                 …

`cache_read` and `cache_write` list their buffers at the root, in full size. A buffer that a block lists does not say
where its memory is: it moves into the innermost loop around all its uses across whose iterations no value of it flows.
That is proved loop by loop; into loops over the threads or blocks that have memory of that scope each, it moves by the
meaning of the scope. `compact_buffers` then makes it as small as one iteration needs. An `Allocate` says where memory
is, and stays; so does global memory, which outlives a kernel.

Needs: blocks, inits not yet written. For targets that have threads.
"""

from __future__ import annotations

from loopwright.analysis.private_memory import with_own_memory, with_private_memory
from loopwright.analysis.reduction_init import write_named_inits
from loopwright.analysis.thread_axes import has_threads, is_per, scope_of, tag_of
from loopwright.ir import Block, Buffer, BufferLoad, BufferStore, For, Node, PrimFunc, deep, pre_order_visit
from loopwright.ir.passes import function_pass
from loopwright.ir.verifier import NotWellFormed, verify


def _sunk(function: PrimFunc, buffer: Buffer, is_careful: bool) -> PrimFunc:
    """The function with the buffer allocated as far in as can be; `is_careful`: its start values, too."""
    loops = _loops_around(function, buffer)
    scope = scope_of(buffer.data)
    for depth in reversed(range(len(loops))):
        around = loops[: depth + 1]
        is_own = all([loop.thread_binding is not None and is_per(scope, tag_of(loop)) for loop in around])
        move = with_own_memory if is_own else with_private_memory
        after = move(function, loops[depth].loop_var, buffer)
        if after is not None and (not is_careful or _has_inits_inside(after)):
            return after
    return function


def _loops_around(function: PrimFunc, buffer: Buffer) -> list[For]:
    """The loops between the block that lists the buffer and all that uses it, outermost first."""
    path: list[For] = []
    shared: list[For] | None = None
    start = 0

    def look(node: Node) -> bool:
        nonlocal shared, start
        if isinstance(node, For):
            path.append(node)
            pre_order_visit(node.body, look)
            path.pop()
            return False
        if isinstance(node, Block) and any([item is buffer for item in node.alloc_buffers]):
            start = len(path)
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer.data is buffer.data:
            known = path if shared is None else shared
            same = [k for k, (one, other) in enumerate(zip(known, path)) if one is not other]
            shared = list(known[: same[0] if same else min(len(known), len(path))])
        return True

    pre_order_visit(function.body, look)
    return (shared or [])[start:]


def _has_inits_inside(function: PrimFunc) -> bool:
    """Whether the start values of reductions are written where the memory is."""
    try:
        verify(function.with_(body=write_named_inits(function.body).body))
    except NotWellFormed:
        return False
    return True


@function_pass
@deep
def sink_allocations(func: PrimFunc) -> PrimFunc:
    """Memory of blocks and threads is allocated as far in as its values allow."""
    if not has_threads(func.body):
        return func
    listed: list[Buffer] = []

    def look(node: Node) -> None:
        if isinstance(node, Block):
            listed.extend([buffer for buffer in node.alloc_buffers if scope_of(buffer.data) != "global"])

    pre_order_visit(func.body, look)
    result = func
    for is_careful in (False, True):  # start values are nearly always inside: one look at the end
        result = func
        for buffer in listed:
            result = _sunk(result, buffer, is_careful)
        if result is func or is_careful or _has_inits_inside(result):
            break
    return result
