"""ir_builder: statements written as Python statements, for bodies that a Python program generates.

    ib = ir_builder.create()
    out = ib.buffer_ptr(B)
    with ib.for_range(0, n, "i") as i:
        with ib.if_scope(i % 2 == 0):
            out[i] = A[i] * 2.0
        with ib.else_scope():
            out[i] = 0.0
    func = PrimFunc([A, B], ib.get())

Every `with` of a builder opens a scope. What is emitted goes to the innermost one; allocations, lets and attributes
reach from where they stand to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from loopwright.ir.buffer import Buffer, BufferLoad, decl_buffer, loaded_dtype
from loopwright.ir.expr import Expr, Ramp, StringImm, Var, as_expr, as_exprs, const, pointer
from loopwright.ir.intrinsics import likely as likely_hint
from loopwright.ir.node import Node
from loopwright.ir.operators import cast, logical_and, match_types
from loopwright.ir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
    no_op,
    seq,
)
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError

_KINDS: Final = {
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorize": ForKind.VECTORIZED,
    "vectorized": ForKind.VECTORIZED,
    "unroll": ForKind.UNROLLED,
    "unrolled": ForKind.UNROLLED,
}


class ElseWithoutIf(LoopwrightError):
    """`else_scope` was opened where no `if_scope` has just ended.

    For example:

        from loopwright import tir

        ib = tir.ir_builder.create()
        with ib.else_scope():
            ib.emit(tir.Evaluate(0))
    """

    code = "LW0535"

    def __init__(self, last: object) -> None:
        result = f"the statement before it is {type(last).__name__}" if last is not None else "nothing stands before it"
        super().__init__("else_scope follows an if_scope", why=result, hint="open it right after the if_scope ends")


class ScopeOpen(LoopwrightError):
    """`get` was called on an ir_builder while a scope of it was open.

    For example:

        from loopwright import tir

        ib = tir.ir_builder.create()
        with ib.for_range(0, 4) as i:
            ib.emit(tir.Evaluate(i))
            ib.get()
    """

    code = "LW0536"

    def __init__(self, open_scopes: int) -> None:
        scopes = f"{open_scopes} scope{'s' * (open_scopes != 1)}"
        super().__init__(
            f"ir_builder: get() inside {scopes}", hint="call it after the last `with` of the builder has ended"
        )


class StoreMismatch(LoopwrightError, ValueError, TypeError):
    """A value of another type than the memory it is stored to.

    For example:

        from loopwright import tir

        ib = tir.ir_builder.create()
        out = ib.allocate("float32", 4, name="out")
        out[0] = tir.Var("k", "int32")
    """

    code = "LW0537"

    def __init__(self, name: str, wanted: DataType, value: Expr) -> None:
        super().__init__(
            f"{name} holds {wanted}, but a value of type {value.dtype} is stored to it",
            hint=f"convert the value with .astype({str(wanted)!r})",
            fields={"buffer": name, "wanted": wanted, "got": value.dtype},
        )


class UnknownLoopKind(LoopwrightError, ValueError):
    """`for_range` was given a kind of loop that does not exist.

    For example:

        from loopwright import tir

        with tir.ir_builder.create().for_range(0, 4, kind="simd"):
            pass
    """

    code = "LW0538"

    def __init__(self, kind: object) -> None:
        super().__init__(f"for_range: no loop is of kind {kind!r}", hint=f"the kinds are {', '.join(_KINDS)}")


class NotAStatement(LoopwrightError, TypeError):
    """Something was emitted that is no statement.

    For example:

        from loopwright import tir

        tir.ir_builder.create().emit("A[0] = 1")
    """

    code = "LW0539"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"emit takes a statement or an expression to evaluate, got {type(given).__name__} {given!r}",
            hint="write out[i] = value to store, or emit(tir.Evaluate(call))",
        )


class BufferVar:
    """Memory that a builder reads and writes by subscript: `x = A[i]`, `A[i] = x`.

    One index into several dimensions counts elements in row-major order. With a vector type, an index counts vectors.
    """

    def __init__(self, builder: IRBuilder, buffer: Buffer, content_type: DataType, is_pointer: bool = False) -> None:
        self._builder, self._buffer, self._content_type, self._is_pointer = builder, buffer, content_type, is_pointer

    @property
    def dtype(self) -> DataType:
        return self._content_type

    @property
    def name(self) -> str:
        return self._buffer.name

    def asobject(self) -> Buffer:
        """The buffer."""
        return self._buffer

    def as_expr(self) -> Var:
        """The pointer, to hand to a call."""
        return self._buffer.data

    def as_parameter(self) -> Var | Buffer:
        """What a function takes for it: the pointer alone where nothing is known of the memory's size."""
        return self._buffer.data if self._is_pointer else self._buffer

    def _indices(self, index: object) -> tuple[Expr, ...]:
        given = list(as_exprs(index if isinstance(index, (tuple, list)) else (index,)))
        buffer = self._buffer
        if len(given) == 1 and buffer.ndim > 1:
            flat = given[0]
            given = []
            for extent in reversed(buffer.shape[1:]):
                flat, extent = match_types(flat, extent)
                given.append(flat % extent)
                flat = flat // extent
            given = [flat, *reversed(given)]
        lanes = self._content_type.lanes // buffer.dtype.lanes
        if lanes > 1 and given[-1].dtype.lanes == 1:
            given[-1] = Ramp(given[-1] * lanes, const(1, given[-1].dtype), lanes)
        return tuple(given)

    def __getitem__(self, index: object) -> Expr:
        return BufferLoad(self._buffer, self._indices(index))

    def __setitem__(self, index: object, value: object) -> None:
        indices = self._indices(index)
        wanted = loaded_dtype(self._buffer, indices)
        stored = as_expr(value)
        # A Python number is whatever the memory holds; a value of the program has its own type.
        if isinstance(value, (int, float)) or stored.dtype is wanted.element:
            stored = cast(stored, wanted)
        if stored.dtype is not wanted:
            raise StoreMismatch(self.name, wanted, stored)
        self._builder.emit(BufferStore(self._buffer, stored, indices))


Pending = Stmt | Callable[[Stmt], Stmt]


class IRBuilder:
    """Collects statements; `get` gives them as one."""

    def __init__(self) -> None:
        self._scopes: list[list[Pending]] = [[]]

    # --- statements ------------------------------------------------------------------------------------------------

    def emit(self, stmt: object) -> None:
        """Add a statement, an expression to evaluate, or a function that wraps the rest of the scope."""
        if isinstance(stmt, Expr):
            stmt = Evaluate(stmt)
        if not isinstance(stmt, Stmt) and (isinstance(stmt, Node) or not callable(stmt)):
            raise NotAStatement(stmt)
        self._scopes[-1].append(stmt)

    def scope_attr(self, node: object, attr_key: str, value: object) -> None:
        """The rest of the scope runs under this attribute."""
        if isinstance(node, str):
            node = StringImm(node)
        shown = as_expr(value)
        self.emit(lambda body: AttrStmt(node, attr_key, shown, body))

    def let(self, var_name: str | Var, value: object) -> Var:
        """A name for a value, in the rest of the scope."""
        given = as_expr(value)
        var = var_name if isinstance(var_name, Var) else Var(var_name, given.dtype)
        self.emit(lambda body: LetStmt(var, given, body))
        return var

    def assert_(self, condition: object, message: str = "assertion failed") -> None:
        """Stop with the message unless the condition holds."""
        checked = logical_and(condition)
        self.emit(lambda body: AssertStmt(checked, StringImm(message), body))

    def allocate(
        self,
        dtype: str | DataType,
        shape: object,
        name: str = "buf",
        axis_separators: Sequence[int] | None = None,
        scope: str = "",
    ) -> BufferVar:
        """Fresh memory for the rest of the scope."""
        element = DataType(dtype)
        extents = as_exprs(shape if isinstance(shape, (tuple, list, Sequence)) else (shape,))
        data = pointer(name, element, scope or "global")
        buffer = decl_buffer(extents, element, name, data=data, axis_separators=axis_separators)
        self.emit(lambda body: Allocate(data, element, extents, const(True), DeclBuffer(buffer, body)))
        return BufferVar(self, buffer, element)

    def pointer(self, content_type: str | DataType, name: str = "ptr", scope: str = "") -> BufferVar:
        """A pointer that the function takes as a parameter, `PrimFunc([pointer, …], …)`: memory of unknown size."""
        element = DataType(content_type)
        data = pointer(name, element, scope or "global")
        return BufferVar(self, decl_buffer((1,), element, name, data=data), element, is_pointer=True)

    def buffer_ptr(self, buf: Buffer) -> BufferVar:
        """A buffer to read and write by subscript."""
        return BufferVar(self, buf, buf.dtype)

    def likely(self, expr: object) -> Expr:
        """The condition, with the hint that it nearly always holds."""
        return likely_hint(expr)

    # --- scopes ----------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        self._scopes.append([])

    def _close(self) -> Stmt:
        body: Stmt | None = None
        for item in reversed(self._scopes.pop()):
            if isinstance(item, Stmt):
                body = item if body is None else seq([item, body])
            else:
                body = item(no_op() if body is None else body)
        return no_op() if body is None else body

    @contextmanager
    def _scope(self, finish: Callable[[Stmt], Pending], value: object = None) -> Iterator[Any]:
        self._open()
        depth = len(self._scopes)
        try:
            yield value
        except BaseException:
            del self._scopes[depth - 1 :]  # the error matters, not what was built so far
            raise
        result = finish(self._close())
        self._scopes[-1].append(result)

    @contextmanager
    def for_range(
        self, begin: object, end: object, name: str = "i", dtype: str | DataType | None = None, kind: str = "serial"
    ) -> Iterator[Var]:
        """A loop from `begin` to `end`, which is left out; gives the loop variable."""
        if kind not in _KINDS:
            raise UnknownLoopKind(kind)
        low, high = match_types(begin, end)
        if dtype is not None:
            low, high = cast(low, DataType(dtype)), cast(high, DataType(dtype))
        extent = high if isinstance(begin, int) and begin == 0 else high - low
        var = Var(name, extent.dtype)
        with self._scope(lambda body: For(var, low, extent, _KINDS[kind], body), var) as loop_var:
            yield loop_var

    @contextmanager
    def while_loop(self, condition: object) -> Iterator[None]:
        """A loop that runs as long as the condition holds."""
        checked = logical_and(condition)
        with self._scope(lambda body: While(checked, body)):
            yield

    @contextmanager
    def if_scope(self, cond: object) -> Iterator[None]:
        """Statements that run when the condition holds."""
        checked = logical_and(cond)
        with self._scope(lambda body: IfThenElse(checked, body)):
            yield

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """Statements that run when the condition of the if_scope just ended does not hold."""
        before = self._scopes[-1]
        last = before[-1] if before else None
        if not isinstance(last, IfThenElse) or last.else_case is not None:
            raise ElseWithoutIf(last)
        before.pop()
        with self._scope(lambda body: last.with_(else_case=body)):
            yield

    @contextmanager
    def new_scope(self) -> Iterator[None]:
        """A scope of its own, at whose end allocations, lets and attributes made in it end."""
        with self._scope(lambda body: body):
            yield

    def get(self) -> Stmt:
        """Everything emitted, as one statement; the builder is empty afterwards."""
        if len(self._scopes) != 1:
            raise ScopeOpen(len(self._scopes) - 1)
        body = self._close()
        self._open()
        return body


def create() -> IRBuilder:
    """A new builder."""
    return IRBuilder()


__all__ = ["BufferVar", "IRBuilder", "create"]
