"""simplify: indices and conditions in their simplest form, and nothing left that does nothing.

    for i in range(4):                               →    for i in range(4):
        if i < 8:                                             B[i * 8] = A[i]
            B[(i * 16 + 0) // 2] = A[i]
        if i > 9:
            B[0] = x

Loop bounds, lets and conditions around an expression are facts about it. Indices, extents and conditions of index
arithmetic are simplified; values that are computed for memory stay as they are written, for integers wrap around there
and floats round. What the program promises (`T.assume`) is a fact for the statements after it. Branches that never run,
loops without iterations or effect, and stores of a cell into itself go.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.arith import Analyzer
from loopwright.arith.data import holds_data
from loopwright.arith.linear import is_index
from loopwright.ir import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BinaryExpr,
    BufferLoad,
    BufferStore,
    Call,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    IterVar,
    Let,
    LetStmt,
    Node,
    PrimFunc,
    Ramp,
    Range,
    Rewriter,
    Select,
    SeqStmt,
    Stmt,
    Var,
    While,
    cast,
    const,
    deep,
    is_no_op,
    logical_not,
    no_op,
    pre_order_visit,
    seq,
)
from loopwright.ir.node import rewrite_tuple
from loopwright.ir.pass_context import PassContext
from loopwright.ir.passes import function_pass
from loopwright.transform.parts.folding import substitute_folding
from loopwright.transform.parts.known_ops import ASSUME, IF_THEN_ELSE
from loopwright.transform.parts.purity import has_data, is_pure
from loopwright.transform.parts.size_facts import size_facts
from loopwright.transform.parts.statements import flat_seq

SHORT_VALUE = 64  # nodes


class SimplifyStatements(Rewriter):
    """What `simplify` does, for rewriters that keep more of the program or know more of it."""

    def __init__(self, facts: Analyzer) -> None:
        self.facts = facts
        self.keep_unit_loops = PassContext.current().setting("tir.LoopPartition").no_unroll_loop_with_extent_one

    # -- expressions

    def index(self, expr: Expr) -> Expr:
        """Index arithmetic, simplified; where data takes part, only the indices of its loads are."""
        if type(expr) is IntImm or type(expr) is Var:
            return expr
        if isinstance(expr, Ramp):
            return expr.with_(base=self.index(expr.base), stride=self.index(expr.stride))
        if expr.dtype.lanes > 1 or has_data(expr):
            return self.visit(expr)
        return self.facts.simplify(expr)

    def condition(self, expr: Expr) -> Expr:
        """A condition, simplified under the facts."""
        if isinstance(expr, IntImm):
            return expr
        if expr.dtype.lanes > 1 or has_data(expr):
            return self.visit(expr)
        return self.facts.simplify(expr)

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        return load.with_(indices=rewrite_tuple(load.indices, self.index))

    def visit_BinaryExpr(self, expr: BinaryExpr) -> Expr:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if a is expr.a and b is expr.b:
            return expr
        new = expr.with_(a=a, b=b)
        return new if self._wraps_alike(expr, new, (new, a, b)) else expr

    def visit_Ramp(self, ramp: Ramp) -> Expr:
        return self.index(ramp)

    def visit_Call(self, call: Call) -> Expr:
        if call.op is not IF_THEN_ELSE:
            return self.rebuild(call)
        condition = self.condition(call.args[0])
        if isinstance(condition, IntImm):
            chosen, other = call.args[1:] if condition.value else (call.args[2], call.args[1])
            if self._counts_alike(chosen, other):
                return self.visit(chosen)
        with self.facts.constraint_scope(condition):
            chosen = self.visit(call.args[1])
        with self.facts.constraint_scope(logical_not(condition)):
            other = self.visit(call.args[2])
        if condition is call.args[0] and chosen is call.args[1] and other is call.args[2]:
            return call
        new = call.with_(args=(condition, chosen, other))
        return new if self._wraps_alike(call, new, (chosen, other)) else call

    def visit_Select(self, expr: Select) -> Expr:
        condition = self.condition(expr.condition)
        chosen, other = expr.true_value, expr.false_value
        if isinstance(condition, IntImm):
            kept, dropped = (chosen, other) if condition.value else (other, chosen)
            if self._counts_alike(kept, dropped):
                return self.visit(kept)
        chosen, other = self.visit(chosen), self.visit(other)
        new = expr.with_(condition=condition, true_value=chosen, false_value=other)
        return new if new is expr or self._wraps_alike(expr, new, (chosen, other)) else expr

    def _counts_alike(self, kept: Expr, dropped: Expr) -> bool:
        """Whether a choice is the number that it chooses, also in what is computed from it.

        With data on the other side, the choice is data: what is computed from it wraps around. An index that leaves its
        type would not.
        """
        return not is_index(kept.dtype) or not holds_data(dropped) or holds_data(kept) or self._fits(kept)

    def _wraps_alike(self, old: Expr, new: Expr, numbers: Sequence[Expr]) -> bool:
        """Whether these numbers of a new expression count as in the old one, whose data may be gone with a choice.

        Beside data a number counts by its low bits, without data exactly.
        """
        if not any([is_index(number.dtype) for number in numbers]) or holds_data(new) or not holds_data(old):
            return True
        return all([not is_index(number.dtype) or self._fits(number) for number in numbers])

    def _fits(self, number: Expr) -> bool:
        low, high = self.facts.interval(number)
        return number.dtype.lowest <= low and high <= number.dtype.highest

    def _let_value(self, value: Expr) -> Expr:
        """The value of a let. What the let is used for counts by whether it is data, so data it stays."""
        new: Expr = self.visit(value)
        is_lost = new is not value and is_index(value.dtype) and holds_data(value) and not holds_data(new)
        return value if is_lost else new

    def visit_Let(self, expr: Let) -> Expr:
        value = self._let_value(expr.value)
        if not _is_short(value):
            return expr.with_(value=value, body=self.visit(expr.body))
        with self.facts.bound(expr.var, value, inline=False):
            return expr.with_(value=value, body=self.visit(expr.body))

    # -- loops and branches

    def visit_For(self, loop: For) -> Stmt:
        low, extent = self.index(loop.min), self.index(loop.extent)
        if isinstance(extent, IntImm):
            if extent.value <= 0:
                return no_op()
            is_plain = not loop.annotations and loop.kind is not ForKind.THREAD_BINDING
            if extent.value == 1 and is_plain and not self.keep_unit_loops:
                if has_data(low):  # read once, before the body changes it
                    return self.visit(LetStmt(loop.loop_var, cast(low, loop.loop_var.dtype), loop.body))
                return self.visit(substitute_folding(loop.body, {loop.loop_var: low}))
        with self.facts.bound(loop.loop_var, Range.from_min_extent(low, extent)):
            body = self.visit(loop.body)
        if is_no_op(body):
            return no_op()
        return loop.with_(min=low, extent=extent, body=body)

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        condition = self.condition(node.condition)
        if isinstance(condition, IntImm):
            chosen = node.then_case if condition.value else node.else_case
            return no_op() if chosen is None else self.visit(chosen)
        with self.facts.constraint_scope(condition):
            then_case = self.visit(node.then_case)
        else_case = None
        if node.else_case is not None:
            with self.facts.constraint_scope(logical_not(condition)):
                else_case = self.visit(node.else_case)
            if is_no_op(else_case):
                else_case = None
        if is_no_op(then_case):
            if else_case is None:
                return no_op() if is_pure(condition) else Evaluate(condition)
            return IfThenElse._make(logical_not(condition), else_case, span=node.span)
        return node.with_(condition=condition, then_case=then_case, else_case=else_case)

    def visit_While(self, node: While) -> Stmt:
        # Nothing is learnt from the condition: the body changes what it reads.
        condition = self.condition(node.condition)
        if isinstance(condition, IntImm) and not condition.value:
            return no_op()
        return node.with_(condition=condition, body=self.visit(node.body))

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        value = self._let_value(node.value)
        if isinstance(value, (IntImm, Var)):
            return self.visit(substitute_folding(node.body, {node.var: value}))
        with self.facts.bound(node.var, value, inline=False):
            body = self.visit(node.body)
        return no_op() if is_no_op(body) and is_pure(value) else node.with_(value=value, body=body)

    def visit_AssertStmt(self, node: AssertStmt) -> Stmt:
        condition = self.condition(node.condition)
        if isinstance(condition, IntImm) and condition.value:
            return self.visit(node.body)
        with self.facts.constraint_scope(condition):
            return node.with_(condition=condition, body=self.visit(node.body))

    # -- statements that may do nothing

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        for index, part in enumerate(node.seq[:-1]):
            promised = _promise(part)
            if promised is not None:
                # What the program promises holds for all that follows.
                rest = node.seq[index + 1] if index + 2 == len(node.seq) else SeqStmt(node.seq[index + 1 :])
                parts = [self.visit(each) for each in node.seq[: index + 1]]
                with self.facts.constraint_scope(promised):
                    visited = self.visit(rest)
                after = visited.seq if isinstance(visited, SeqStmt) else (visited,)
                if len(after) == len(node.seq) - index - 1 and _all_same([*parts, *after], node.seq):
                    return node
                return seq([*parts, visited])
        return flat_seq(node, self.visit)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        indices = rewrite_tuple(store.indices, self.index)
        value = self.visit(store.value)
        if isinstance(value, BufferLoad) and value.buffer is store.buffer:
            for one, other in zip(indices, value.indices, strict=True):
                if one.dtype.lanes > 1 or has_data(one) or not self.facts.can_prove_equal(one, other):
                    break
            else:
                return no_op()
        return store.with_(value=value, indices=indices)

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        if is_no_op(node):
            return node
        value = self.visit(node.value)
        return no_op() if is_pure(value) else node.with_(value=value)

    def _with_body(self, node: Allocate | AllocateConst | DeclBuffer | AttrStmt) -> Stmt:
        new = self.rebuild(node)
        return no_op() if is_no_op(new.body) else new

    visit_Allocate = visit_AllocateConst = visit_DeclBuffer = _with_body

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key != "thread_extent" or not isinstance(node.node, IterVar):
            return self._with_body(node)
        var, extent = node.node.var, self.visit(node.value)
        with self.facts.bound(var, Range.from_min_extent(const(0, var.dtype), cast(extent, var.dtype))):
            return self._with_body(node)


def _promise(part: Stmt) -> Expr | None:
    """The condition of a `T.assume` that is index arithmetic: no store can change it."""
    if not isinstance(part, Evaluate) or not isinstance(part.value, Call) or part.value.op is not ASSUME:
        return None
    condition = part.value.args[0]
    return None if has_data(condition) else condition


def _all_same(new: Sequence[Stmt], old: Sequence[Stmt]) -> bool:
    return all(one is other for one, other in zip(new, old, strict=True))


def _is_short(value: Expr) -> bool:
    """Whether bounds of a let's value are worth asking for: of lets nested in lets, each level would ask all below."""
    nodes = 0

    def look(_: Node) -> bool:
        nonlocal nodes
        nodes += 1
        return nodes <= SHORT_VALUE

    pre_order_visit(value, look)
    return nodes <= SHORT_VALUE


@deep
def simplified(func: PrimFunc) -> PrimFunc:
    """`simplify` as a function."""
    return func.with_(body=SimplifyStatements(size_facts(func)).visit(func.body))


@function_pass
def simplify(func: PrimFunc) -> PrimFunc:
    """Indices and conditions in their simplest form, and nothing left that does nothing."""
    return simplified(func)
