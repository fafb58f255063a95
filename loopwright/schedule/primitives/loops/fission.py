"""fission: a loop over several statements becomes two loops, the first over the first statements.

    for i in range(8):                     →    for i in range(8):
        with T.block("B"):                          with T.block("B"):
            vi = T.axis.spatial(8, i)                   vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1                           B[vi] = A[vi] + 1
        with T.block("C"):                      for i_1 in range(8):
            vi = T.axis.spatial(8, i)               with T.block("C"):
            C[vi] = B[vi] * 2                           vi = T.axis.spatial(8, i_1)
                                                        C[vi] = B[vi] * 2

Loops that stand directly in the loop, down to the statements, are divided with it: the opposite of merge. Proved:
every read sees the value it saw before.
"""

from __future__ import annotations

from loopwright.ir import Expr, For, ForKind, SeqStmt, Var, seq, substitute
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.rewrite.footprint import moved_past_each_other
from loopwright.schedule.rewrite.nests import nest
from loopwright.schedule.rewrite.plain_loops import check_bounds_stay, kind_last
from loopwright.schedule.step import LoopResult, Proof, Step
from loopwright.schedule.view import View


def fission(view: View, loop: For, index: int = 1) -> Step:
    """Divide `loop` before its statement number `index`; handles of the old loop stay with the first part."""
    chain = [loop]
    while isinstance(chain[-1].body, For):
        chain.append(chain[-1].body)
    body = chain[-1].body
    if not isinstance(body, SeqStmt):
        problem = f"loop {loop.loop_var.name} runs one statement: there is nothing to divide"
        raise NotSupported("fission", problem, loop, "fission divides a loop over two or more statements")
    count = len(body.seq)
    if not (isinstance(index, int) and 1 <= index < count):
        problem = f"index is {index}, but loop {loop.loop_var.name} runs {count} statements"
        raise BadStepArgument("fission", problem, loop, f"give an index from 1 to {count - 1}")
    for part in chain:
        if part.kind is ForKind.THREAD_BINDING:
            problem = f"loop {part.loop_var.name} is bound to threads: a loop gets its kind last"
            raise NotSupported("fission", problem, part, kind_last("fission", part.kind))
    path = view.loop_path(loop.loop_var)
    check_bounds_stay("fission", chain, path[:-1])  # the second loop asks for them again

    fresh: dict[Var, Expr] = {}
    second: list[For] = []
    for part in chain:
        var = Var(f"{part.loop_var.name}_1", part.loop_var.dtype)
        low, extent = substitute(part.min, fresh), substitute(part.extent, fresh)
        second.append(part.with_(loop_var=var, min=low, extent=extent))
        fresh[part.loop_var] = var
    head, tail = seq(body.seq[:index]), seq(body.seq[index:])
    after = view.replaced(path, seq([nest(chain, head), nest(second, substitute(tail, fresh))]))
    # The order within each part stays; only what both parts share can change.
    buffers = moved_past_each_other("fission", [head, tail], [*path, *chain])
    return Step(
        after,
        Proof.VALUES if buffers else Proof.LEMMA,
        results=[LoopResult(loop.loop_var), LoopResult(second[0].loop_var)],
        several=True,
        at=loop,
        buffers=buffers,
    )
