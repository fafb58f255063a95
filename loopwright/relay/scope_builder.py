"""ScopeBuilder: graphs with names and choices, written in the order they run.

sb = ScopeBuilder()
y = sb.let("y", x + x)
with sb.if_scope(is_large):
    sb.ret(y)
with sb.else_scope():
    sb.ret(x)
body = sb.get()                # let %y = …; if (…) { %y } else { %x }
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from loopwright.ir.types import Type
from loopwright.relay.expr import Expr, If, Let, TupleWrapper, Var, require_expr
from loopwright.relay.infer_type import infer
from loopwright.relay.types import IncompleteType


class _Block:
    """The lets of a block so far, and its value once it has one."""

    def __init__(self) -> None:
        self.bindings: list[tuple[Var, Expr]] = []
        self.value: Expr | None = None

    def expression(self) -> Expr:
        if self.value is None:
            raise RuntimeError("a block has no value: end it with ret(value)")
        result = self.value
        for var, value in reversed(self.bindings):
            result = Let(var, value, result)
        return result


class ScopeBuilder:
    """Builds nested lets and ifs; see the module docstring."""

    def __init__(self) -> None:
        self._blocks = [_Block()]
        self._waiting: list[tuple[Expr, Expr] | None] = [None]  # in each block, an if without its else

    def let(self, var: Var | str | tuple[str, Type], value: Expr) -> Var:
        """Give a value a name (or a variable, or a name and a type); the variable comes back."""
        if isinstance(value, TupleWrapper):
            value = value.tuple_value
        if isinstance(var, (tuple, list)):
            if len(var) > 2:
                raise ValueError(f"let: a name and a type are given as two, not {len(var)}")
            name, annotation = var[0], var[1] if len(var) == 2 else None
            var = Var(name, annotation)
        elif isinstance(var, str):
            var = Var(var)
        self._blocks[-1].bindings.append((var, require_expr(value, "the value of a let")))
        return var

    def ret(self, value: Expr) -> None:
        """End the block with its value."""
        block = self._blocks[-1]
        if block.value is not None:
            raise RuntimeError("ret was called before in this block: a block has one value")
        block.value = require_expr(value, "the value of a block")

    @contextmanager
    def if_scope(self, cond: Expr) -> Iterator[None]:
        """The first branch of an if, which ends the block it stands in."""
        if self._blocks[-1].value is not None or self._waiting[-1] is not None:
            raise RuntimeError("an if ends its block, and this block has a value already")
        result = yield from self._branch()
        self._waiting[-1] = (require_expr(cond, "a condition"), result)

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """The second branch; it follows an `if_scope`."""
        begun = self._waiting[-1]
        if begun is None:
            raise RuntimeError("else_scope must follow an if_scope")
        result = yield from self._branch()
        self._waiting[-1] = None
        self.ret(If(begun[0], begun[1], result))

    def _branch(self) -> Generator[None, None, Expr]:
        self._blocks.append(_Block())
        self._waiting.append(None)
        try:
            yield
        finally:
            block, waiting = self._blocks.pop(), self._waiting.pop()
        if waiting is not None:
            raise RuntimeError("an if_scope has no else_scope: every if has two branches")
        return block.expression()

    def type_of(self, expr: Expr) -> Type | None:
        """The type of a variable, as it was declared, or of an expression, as it is inferred."""
        if isinstance(expr, Var):
            return expr.type_annotation
        result = infer(expr)
        return None if isinstance(result, IncompleteType) else result

    def get(self) -> Expr:
        """The whole expression."""
        if self._waiting[-1] is not None:
            raise RuntimeError("an if_scope has no else_scope: every if has two branches")
        return self._blocks[-1].expression()
