"""lower_init_blocks: the init of a block becomes a branch at the start of its body.

    with T.block("C"):                                 →    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])                     vi, vk = T.axis.remap("SR", [i, k])
        with T.init():                                          if vk == 0:
            C[vi] = 0                                               C[vi] = 0
        C[vi] = C[vi] + A[vi, vk]                               C[vi] = C[vi] + A[vi, vk]

That is right where the first iteration that updates a cell has every reduction axis at its start, which holds when each
loop around the block runs over data axes or over reduction axes, not over both or neither. Elsewhere the inits become
nests of their own, as `write_inits` has them.
Needs: nothing.  Leaves: no block with an init.
"""

from __future__ import annotations

from loopwright.analysis.reduction_init import write_inits
from loopwright.arith import Analyzer
from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import (
    Block,
    BlockRealize,
    Expr,
    For,
    IfThenElse,
    IterType,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    Visitor,
    While,
    deep,
    is_one,
    logical_and,
    reads_memory,
    substitute,
    variables_in,
)
from loopwright.transform.parts.statements import StmtRewriter


class _LowerInitBlocks(StmtRewriter):
    def visit_Block(self, block: Block) -> Block:
        block = self.rebuild(block)
        if block.init is None:
            return block
        condition: Expr | None = None
        for axis in block.iter_vars:
            if axis.iter_type == IterType.CommReduce and axis.dom is not None:
                at_start = axis.var.equal(axis.dom.min)
                condition = at_start if condition is None else logical_and(condition, at_start)
        init = block.init if condition is None else IfThenElse(condition, block.init)
        body = list(block.body.seq) if isinstance(block.body, SeqStmt) else [block.body]
        return block.with_(init=None, body=SeqStmt((init, *body)))


class _StartsAtFirst(Visitor):
    """Whether the branch stands for every init: see the module."""

    def __init__(self) -> None:
        self.loops: list[For | While] = []
        self.values: dict[Var, Expr] = {}  # what the axes of the blocks around stand for, in terms of loops
        self.holds = True

    def visit_Expr(self, expr: Expr) -> None:
        pass

    def visit_For(self, loop: For | While) -> None:
        self.loops.append(loop)
        self.visit(loop.body)
        self.loops.pop()

    visit_While = visit_For

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        block = realize.block
        bound = [substitute(value, self.values) for value in realize.iter_values]
        if block.init is not None:
            self.holds = self.holds and self._is_first(block, bound)
        for axis, value in zip(block.iter_vars, bound, strict=True):
            self.values[axis.var] = value
        self.visit(block.body)

    def _is_first(self, block: Block, bound: list[Expr]) -> bool:
        data: set[Var] = set()
        reduced: set[Var] = set()
        starts = {loop.loop_var: loop.min for loop in self.loops if isinstance(loop, For)}
        facts = Analyzer()
        for axis, value in zip(block.iter_vars, bound, strict=True):
            is_reduced = axis.iter_type == IterType.CommReduce
            (reduced if is_reduced else data).update(variables_in(value))
            if is_reduced and axis.dom is not None:
                first = substitute(value, starts)
                if reads_memory(value) or not facts.can_prove_equal(first, axis.dom.min):
                    return False
        for loop in self.loops:
            if isinstance(loop, While):
                return False
            if not is_one(loop.extent) and (loop.loop_var in data) == (loop.loop_var in reduced):
                return False
        return True


@named_pass("LowerInitBlock")
@deep
def lower_init_blocks(func: PrimFunc) -> PrimFunc:
    """The init of a block becomes a branch at the start of its body."""
    check = _StartsAtFirst()
    check.visit(func.body)
    body: Stmt = _LowerInitBlocks().visit(func.body) if check.holds else write_inits(func.body)
    return func.with_(body=body)
