"""The body of a compute, rewritten to read buffers and to use the variables of its block.

Indices are simplified; values stay as written. `IndexTypes` says which integer type loops, shapes and indices have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loopwright.arith import Analyzer
from loopwright.ir import (
    BinaryExpr,
    Buffer,
    BufferLoad,
    Call,
    Cast,
    CompareExpr,
    Expr,
    IntImm,
    IterVar,
    Node,
    Op,
    ProducerLoad,
    Rewriter,
    Select,
    SizeVar,
    Var,
    cast,
    const,
)
from loopwright.ir.intrinsics import if_then_else
from loopwright.runtime.dtype import DataType
from loopwright.te.tensor import Tensor


class IndexTypes:
    """The integer type of loops and indices: that of the shapes, or `override` everywhere.

    With an override every symbolic size is replaced by a variable of that type; scalar parameters keep theirs.
    """

    def __init__(self, override: str | DataType | None, parameters: Sequence[object]) -> None:
        self.override = None if override is None else DataType(override)
        self.parameters = {parameter for parameter in parameters if isinstance(parameter, Var)}
        self.sizes: dict[Var, Var] = {}

    def of(self, var: Var) -> DataType:
        """The type of the loop over an axis."""
        return self.override or var.dtype

    def convert(self, size: Expr) -> Expr:
        """A dimension of a shape, in the type asked for."""
        return size if self.override is None else BodyLowering({}, {}, self).index(size)

    def size_var(self, var: Var) -> Var:
        """What stands for a symbolic size."""
        if self.override is None or var in self.parameters or not var.dtype.is_int or var.dtype is self.override:
            return var
        result = self.sizes.get(var)
        if result is None:
            kind = SizeVar if isinstance(var, SizeVar) else Var
            result = self.sizes[var] = kind(var.name, self.override)
        return result


class BodyLowering(Rewriter):
    """Rewrites expressions of one compute; an expression used many times is rewritten once."""

    def __init__(
        self,
        buffers: Mapping[Tensor, Buffer],
        variables: Mapping[Var, Expr],
        types: IndexTypes,
        location: Callable[[Tensor, Sequence[Expr]], tuple[Expr, ...]] | None = None,
    ) -> None:
        self.buffers = buffers
        self.place = location  # where an element of a tensor lies in its buffer, unless at its own indices
        self.variables: dict[Var, Expr] = dict(variables)
        self.types = types
        self.analyzer = Analyzer()
        self.done: dict[Node, Any] = {}
        self.wide: dict[Expr, Expr] = {}

    def bind(self, iter_vars: Sequence[IterVar]) -> None:
        """Let simplification know the ranges of the variables."""
        for iter_var in iter_vars:
            # An axis of one iteration is kept in the indices: schedules look for it there.
            dom = iter_var.dom
            if dom is not None and not (isinstance(dom.extent, IntImm) and dom.extent.value <= 1):
                self.analyzer.bind(iter_var.var, dom)

    def define(self, values: Mapping[Var, Expr]) -> None:
        """More variables to replace, by values that are rewritten already."""
        self.variables.update(values)

    def value(self, expr: Expr) -> Expr:
        """`expr` rewritten."""
        result: Expr = self.visit(expr)
        return result

    def index(self, expr: Expr) -> Expr:
        """`expr` rewritten as an index: simplified, and in the type of indices."""
        result = self.value(expr) if self.types.override is None else self.widen(expr, self.types.override)
        return result if isinstance(result, (Var, IntImm)) else self.analyzer.simplify(result)

    def visit(self, node: Any) -> Any:
        done = self.done.get(node)
        if done is None:
            done = self.done[node] = super().visit(node)
        return done

    def visit_Var(self, var: Var) -> Expr:
        new = self.variables.get(var)
        if new is None:
            new = self.types.size_var(var)
        return new if new.dtype is var.dtype else cast(new, var.dtype)

    def visit_ProducerLoad(self, load: ProducerLoad) -> Expr:
        assert isinstance(load.producer, Tensor)
        indices = tuple([self.index(index) for index in load.indices])
        if self.place is not None:
            indices = self.place(load.producer, indices)
        return BufferLoad(self.buffers[load.producer], indices)

    def visit_CompareExpr(self, compare: CompareExpr) -> Expr:
        override = self.types.override
        if override is not None and _is_index(compare.a) and _is_index(compare.b):
            build: Any = type(compare)
            result: Expr = build(self.widen(compare.a, override), self.widen(compare.b, override))
            return result
        rebuilt: Expr = self.rebuild(compare)
        return rebuilt

    def widen(self, expr: Expr, dtype: DataType) -> Expr:
        """An integer expression computed in `dtype` throughout, as far as it is index arithmetic."""
        result = self.wide.get(expr)
        if result is None:
            result = self.wide[expr] = self._widen(expr, dtype)
        return result

    def _widen(self, expr: Expr, dtype: DataType) -> Expr:
        if isinstance(expr, IntImm):
            return const(expr.value, dtype)
        if isinstance(expr, Var):
            new = self.variables.get(expr)
            return cast(self.types.size_var(expr) if new is None else new, dtype)
        if expr.dtype.is_int and isinstance(expr, BinaryExpr) and not isinstance(expr, CompareExpr):
            build: Any = type(expr)
            result: Expr = build(self.widen(expr.a, dtype), self.widen(expr.b, dtype))
            return result
        # Only a cast to a type at least as wide keeps every value, and may be left out.
        if isinstance(expr, Cast) and expr.dtype.is_int and expr.value.dtype.bits <= expr.dtype.bits:
            if _is_index(expr.value):
                return self.widen(expr.value, dtype)
        if isinstance(expr, Select):
            return Select(
                self.value(expr.condition), self.widen(expr.true_value, dtype), self.widen(expr.false_value, dtype)
            )
        if isinstance(expr, Call) and expr.op is Op.get("tir.if_then_else"):
            condition, chosen, other = expr.args
            return if_then_else(self.value(condition), self.widen(chosen, dtype), self.widen(other, dtype))
        return cast(self.value(expr), dtype)


def _is_index(expr: Expr) -> bool:
    """Whether this is arithmetic of integer variables and literals only, as indices mostly are."""
    stack, seen = [expr], set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if not node.dtype.is_int or node.dtype.lanes != 1:
            return False
        if isinstance(node, BinaryExpr):
            stack += [node.a, node.b]
        elif isinstance(node, Cast):
            stack.append(node.value)
        elif not isinstance(node, (Var, IntImm)):
            return False
    return True
