"""specialize: some nests are written twice, once for sizes that fulfil a condition and once for the others.

    for i in range(n):                          →     if n <= 8:
        with T.block("B"):                                for i in range(n):
            vi = T.axis.spatial(n, i)                         with T.block("B_1"): …
            B[vi] = A[vi] + 1                         else:
                                                          for i in range(n):
                                                              with T.block("B"): …

Here `specialize(i, condition=lambda n: n <= 8)`: each of the two can then be scheduled for the sizes it is for. The
nests stand next to each other and in no loop; the condition is about sizes of the function, which no statement changes.
Reason: of the two, which are the same program, one runs. What only these nests use of the memory around them, the new
ones have of their own, so that neither is in the way of the other's steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    For,
    IfThenElse,
    PrimFunc,
    Rewriter,
    SeqStmt,
    Stmt,
    Var,
    Visitor,
    deep,
    seq,
    substitute,
)
from loopwright.schedule.errors import BadStepArgument, NotSupported
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.buffers import fresh_buffer
from loopwright.schedule.rewrite.conditions import check_has_value, condition_of
from loopwright.schedule.rewrite.edits import Edits
from loopwright.schedule.rewrite.sizes import size_facts
from loopwright.schedule.step import BlockResult, Proof, Step
from loopwright.schedule.view import View
from loopwright.transform.parts.clone_definitions import clone_definitions


def specialize(view: View, loops: Sequence[For], condition: str) -> Step:
    """Copies of the nests for sizes that fulfil the condition; gives the blocks of the copies, in order."""
    # Check
    if not loops:
        raise BadStepArgument("specialize", "no loop is given", hint="name the outermost loops of the nests")
    path = view.loop_path(loops[0].loop_var)
    for loop in loops:
        around = view.loops_to(loop.loop_var)[:-1]
        if around:
            problem = f"loop {loop.loop_var.name} is inside loop {around[0].loop_var.name}"
            raise NotSupported("specialize", problem, loop, "name the outermost loop")
    asked = condition_of("specialize", condition, _sizes(view.function))
    check_has_value("specialize", asked, size_facts(view.function))
    parent = path[-2]
    nests: list[Stmt] = list(loops)
    if isinstance(parent, SeqStmt):
        start = next(k for k, item in enumerate(parent.seq) if item is loops[0])
        together = list(parent.seq[start : start + len(loops)])
    else:
        start, together = 0, [loops[0]]
    if len(together) != len(nests) or not all(a is b for a, b in zip(together, nests, strict=True)):
        names = ", ".join([loop.loop_var.name for loop in loops])
        raise NotSupported(
            "specialize", f"the nests of {names} do not stand next to each other in this order", loops[0]
        )

    # Build
    scope = view.scope_of(path)
    own = _own_memory(view, scope, nests)
    fresh = {buffer: fresh_buffer(f"{buffer.name}_1", buffer.shape, buffer, buffer.scope()) for buffer in own}
    copy = _renamed(view, substitute(clone_definitions(seq(nests)), {}, fresh))
    choice = IfThenElse(asked, copy, seq(nests))
    edits = Edits()
    if isinstance(parent, SeqStmt):
        edits.replaced[parent] = seq([*parent.seq[:start], choice, *parent.seq[start + len(nests) :]])
    else:
        edits.replaced[loops[0]] = choice
    edits.allocated[scope] = list(fresh.values())
    results = [BlockResult(block_key(realize.block)) for realize in view.blocks_below(copy)]
    return Step(edits.apply(view.function), Proof.GIVEN, results=results, several=True, at=loops[0])


def _sizes(function: PrimFunc) -> dict[str, Expr]:
    """The sizes that a caller's arguments have, by name."""
    result: dict[str, Expr] = {}
    for buffer in function.argument_buffers():
        result.update({extent.name: extent for extent in buffer.shape if isinstance(extent, Var)})
    result.update({param.name: param for param in function.params if param.dtype.is_int})
    return result


def _own_memory(view: View, scope: BlockRealize, nests: Sequence[Stmt]) -> list[Buffer]:
    """The buffers of the block around the nests that nobody else uses, in ordinary loads and stores."""
    inside, everywhere = _Uses(), _Uses()
    inside.visit(seq(nests))
    everywhere.visit(view.function.body)
    return [
        buffer
        for buffer in scope.block.alloc_buffers
        if inside.count[buffer.data] == everywhere.count[buffer.data] > 0 and buffer.data not in everywhere.named
    ]


class _Uses(Visitor):
    """How often memory is loaded from, stored to or declared, and what is named in other ways."""

    def __init__(self) -> None:
        self.count: Counter[Var] = Counter()
        self.named: set[Var] = set()

    def visit_BufferLoad(self, node: BufferLoad | BufferStore | BufferRegion) -> None:
        self.count[node.buffer.data] += 1
        self.visit_children(node)

    visit_BufferStore = visit_BufferRegion = visit_BufferLoad

    def visit_Buffer(self, buffer: Buffer) -> None:
        """What it is about was counted."""

    def visit_Var(self, var: Var) -> None:
        self.named.add(var)


@deep
def _renamed(view: View, statement: Stmt) -> Stmt:
    """The statement with names for its blocks that no block has yet."""
    result: Stmt = _Rename(set(view.block_names())).visit(statement)
    return result


class _Rename(Rewriter):
    def __init__(self, used: set[str]) -> None:
        self.taken = used

    def visit_Block(self, block: Block) -> Block:
        count = 1
        while f"{block.name_hint}_{count}" in self.taken:
            count += 1
        name = f"{block.name_hint}_{count}"
        self.taken.add(name)
        result: Block = self.rebuild(block).with_(name_hint=name)
        return result

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr
