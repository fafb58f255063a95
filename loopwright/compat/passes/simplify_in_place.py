"""simplify_in_place: expressions and conditions in their simplest form; statements stay.

    for i in range(16):                    →    for i in range(16):
        if i < 20:                                  T.evaluate(A[i])
            T.evaluate(A[i + 0])

As `simplify`, but what does nothing is left to other passes: loops of one iteration, values that nobody uses, empty
branches. Values that are stored are simplified, too. The settings of `tir.Simplify` say how much is tried.
"""

from __future__ import annotations

from contextlib import ExitStack

from loopwright.arith.linear import is_index
from loopwright.compat.passes.and_of_ors import and_of_ors
from loopwright.compat.passes.known_contents import KnownContents, is_assume
from loopwright.compat.passes.known_inequalities import KnownInequalities
from loopwright.compat.passes.named_pass import named_pass
from loopwright.compat.settings import SimplifyConfig
from loopwright.ir import (
    Add,
    Allocate,
    AllocateConst,
    And,
    AttrStmt,
    BinaryExpr,
    Block,
    BufferStore,
    Call,
    CompareExpr,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    LetStmt,
    Mul,
    Node,
    Not,
    Or,
    PrimFunc,
    Range,
    Stmt,
    Sub,
    Var,
    While,
    any_node,
    const,
    deep,
    logical_and,
    logical_not,
    logical_or,
    no_op,
    substitute,
    uses_var,
    variables_in,
)
from loopwright.ir.buffer import Buffer, BufferLoad
from loopwright.ir.pass_context import PassContext
from loopwright.runtime.dtype import BOOL
from loopwright.transform.parts.flat_index import is_literal
from loopwright.transform.parts.folding import substitute_folding
from loopwright.transform.parts.known_ops import IF_THEN_ELSE
from loopwright.transform.parts.purity import has_data, is_pure
from loopwright.transform.parts.size_facts import size_facts
from loopwright.transform.passes.simplify import SimplifyStatements


class InPlaceSimplifier(SimplifyStatements):
    """What `simplify_in_place` does, for passes that ask it about parts of a function."""

    def __init__(self, func: PrimFunc, settings: SimplifyConfig) -> None:
        super().__init__(size_facts(func))
        self.settings = settings
        self.known = KnownInequalities(self.facts, settings.transitively_prove_inequalities)
        self.contents = KnownContents(self.facts)
        self.follows_contents = (
            settings.propagate_knowns_to_prove_conditional or settings.propagate_knowns_to_simplify_expressions
        )
        self.lets: dict[Var, Expr] = {}  # conditions that have names
        self.is_inside = False  # a condition: its parts are not turned into clauses again

    # -- expressions

    def simplest(self, expr: Expr) -> Expr:
        """The form that scripts expect."""
        return self.facts.rewrite_simplify(self.facts.simplify(expr))

    def index(self, expr: Expr) -> Expr:
        """Index arithmetic, simplified."""
        simple = super().index(expr)
        if isinstance(simple, (IntImm, Var)) or simple.dtype.lanes > 1 or has_data(simple):
            return simple
        return self.facts.rewrite_simplify(simple)

    def visit_BinaryExpr(self, expr: BinaryExpr) -> Expr:
        if is_index(expr.dtype) and expr.dtype.lanes == 1 and not has_data(expr):
            return self.simplest(expr)
        simple = super().visit_BinaryExpr(expr)
        if isinstance(simple, (Add, Sub, Mul)) and is_index(simple.dtype):
            neutral = 1 if isinstance(simple, Mul) else 0
            if is_literal(simple.b, neutral):
                return simple.a
            if is_literal(simple.a, neutral) and not isinstance(simple, Sub):
                return simple.b
        return simple

    def visit_CompareExpr(self, expr: CompareExpr) -> Expr:
        if expr.dtype.lanes > 1 or has_data(expr) or not is_index(expr.a.dtype):
            return super().visit_BinaryExpr(expr)
        return self.simplest(self.known.decided(self.simplest(expr)))

    def visit_And(self, expr: And | Or) -> Expr:
        if self.settings.convert_boolean_to_and_of_ors and not self.is_inside:
            self.is_inside = True
            result = self.visit(and_of_ors(expr, self.facts)) if expr.dtype.lanes == 1 else self.rebuild(expr)
            self.is_inside = False
            return result
        if expr.dtype.lanes > 1:
            return self.rebuild(expr)
        join = logical_and if isinstance(expr, And) else logical_or
        a, b = expr.a, expr.b
        if self.settings.apply_constraints_to_boolean_branches and not has_data(expr):
            a = self._under(a, b, isinstance(expr, And))
            b = self._under(b, a, isinstance(expr, And))
        else:
            a, b = self.visit(a), self.visit(b)
        if a is expr.a and b is expr.b:
            return expr if has_data(expr) else self.simplest(expr)
        joined = join(a, b)
        return joined if has_data(joined) else self.simplest(joined)

    visit_Or = visit_And

    def _under(self, part: Expr, other: Expr, holds: bool) -> Expr:
        """One side, where its value matters: the other side of an and holds, that of an or does not."""
        condition = other if holds else logical_not(other)
        with self.facts.constraint_scope(condition), self.known.scope(condition):
            result: Expr = self.visit(part)
        return result

    def visit_Not(self, expr: Not) -> Expr:
        return expr if expr.dtype.lanes > 1 else logical_not(self.visit(expr.a))

    def condition(self, expr: Expr) -> Expr:
        """A condition, simplified under the facts."""
        simplified: Expr = self.visit(expr)
        if self.lets and uses_var(simplified, self.lets.__contains__):
            # A name for a condition stays where it is used, unless what it stands for decides.
            decided = self.visit(substitute(simplified, self.lets))
            if isinstance(decided, IntImm):
                return decided
        if isinstance(simplified, IntImm) or simplified.dtype.lanes > 1 or has_data(simplified):
            return simplified
        return self.simplest(self.known.decided(self.simplest(simplified)))

    def visit_Call(self, call: Call) -> Expr:
        if call.op is not IF_THEN_ELSE:
            return super().visit_Call(call)
        condition = self.condition(call.args[0])
        if isinstance(condition, IntImm):
            return super().visit_Call(call.with_(args=(condition, *call.args[1:])))
        branches = []
        for holds, branch in ((condition, call.args[1]), (logical_not(condition), call.args[2])):
            with self.facts.constraint_scope(holds), self.known.scope(holds):
                branches.append(self.visit(branch))
        new = call.with_(args=(condition, *branches))
        return new if self._wraps_alike(call, new, branches) else call

    def visit_Var(self, var: Var) -> Expr:
        if var.dtype is BOOL:
            return self.known.truths.get(var, var)
        return var

    # -- statements

    def visit_For(self, loop: For) -> Stmt:
        low, extent = self.index(loop.min), self.index(loop.extent)
        self.contents.leave(loop)
        with self.facts.bound(loop.loop_var, Range.from_min_extent(low, extent)):
            new = loop.with_(min=low, extent=extent, body=self.visit(loop.body))
        self.contents.leave(loop)
        return new

    def _with_body(self, node: Allocate | AllocateConst | DeclBuffer | AttrStmt) -> Stmt:
        if not isinstance(node, AttrStmt):
            return self.rebuild(node)
        axis = node.node
        value = self.visit(node.value)
        is_launch = node.attr_key in ("thread_extent", "virtual_thread") and isinstance(axis, IterVar)
        if not is_launch or self.facts.const_int_bound_is_bound(axis.var):  # type: ignore[attr-defined]
            return node.with_(value=value, body=self.visit(node.body))
        assert isinstance(axis, IterVar)
        with self.facts.bound(axis.var, Range.from_min_extent(const(0, value.dtype), value)):
            return node.with_(value=value, body=self.visit(node.body))

    def visit_Block(self, block: Block) -> Block:
        self.contents.leave(block)
        with self.facts.constraint_scope(True):
            for axis in block.iter_vars:
                if axis.dom is not None:
                    self.facts.bind(axis.var, axis.dom, allow_override=True)
            return self.rebuild(block)

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        condition = self.condition(node.condition)
        if not isinstance(condition, IntImm) and self.settings.propagate_knowns_to_prove_conditional:
            proved = self.condition(self.contents.resolved(node.condition))
            condition = proved if isinstance(proved, IntImm) else condition
        if isinstance(condition, IntImm):
            chosen = node.then_case if condition.value else node.else_case
            return no_op() if chosen is None else self.visit(chosen)
        with self.facts.constraint_scope(condition), self.known.scope(condition), self.contents.branch(condition):
            then_case = self.visit(node.then_case)
        else_case = None
        if node.else_case is not None:
            negated = logical_not(condition)
            with self.facts.constraint_scope(negated), self.known.scope(negated), self.contents.branch(None):
                else_case = self.visit(node.else_case)
        self.contents.leave(node)
        return node.with_(condition=condition, then_case=then_case, else_case=else_case)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        simple = super().visit_BufferStore(store)
        if not self.follows_contents or not isinstance(simple, BufferStore):
            return simple
        if self.settings.propagate_knowns_to_simplify_expressions:
            simple = super().visit_BufferStore(simple.with_(value=self.contents.resolved(simple.value)))
        if isinstance(simple, BufferStore):
            self.contents.store(simple)
        return simple

    def visit_While(self, node: While) -> Stmt:
        self.contents.leave(node)
        result = super().visit_While(node)
        self.contents.leave(node)
        return result

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        value = self._let_value(node.value)
        if isinstance(value, (IntImm, Var)) and not _describes_a_buffer(node.body, node.var):
            return self.visit(substitute_folding(node.body, {node.var: value}))
        if node.var.dtype is BOOL and not has_data(value):
            self.lets[node.var] = value
        with self.facts.bound(node.var, value, inline=False):
            body = self.visit(node.body)
        is_unused = is_pure(value) and not uses_var(body, lambda var: var is node.var)
        if is_unused and not _describes_a_buffer(body, node.var):
            return body
        return node.with_(value=value, body=body)

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        self.contents.leave(node)
        if self.follows_contents and is_assume(node) and isinstance(node.value, Call):
            self.contents.assume(node.value.args[0])
        return node.with_(value=self.visit(node.value))

    visit_Allocate = visit_AllocateConst = visit_DeclBuffer = visit_AttrStmt = _with_body


def _describes_a_buffer(body: Stmt, var: Var) -> bool:
    """Whether a buffer is declared in terms of the variable."""
    buffers: set[Buffer] = set()

    def look(node: Node) -> bool:
        if isinstance(node, (DeclBuffer, BufferLoad, BufferStore)):
            buffers.add(node.buffer)
        elif isinstance(node, Block):
            buffers.update(node.alloc_buffers)
        return False

    any_node(body, look)
    for buffer in buffers:
        for part in (buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset):
            if var in variables_in(part):
                return True
    return False


@named_pass("Simplify")
@deep
def simplify_in_place(func: PrimFunc) -> PrimFunc:
    """Expressions and conditions in their simplest form; statements stay."""
    settings = PassContext.current().setting("tir.Simplify")
    walk = InPlaceSimplifier(func, settings)
    with ExitStack() as sizes:
        for buffer in func.argument_buffers():
            for extent in buffer.shape:
                if not isinstance(extent, (IntImm, Var)) and not has_data(extent):
                    sizes.enter_context(walk.facts.constraint_scope(extent >= 0))
        return func.with_(body=walk.visit(func.body))
