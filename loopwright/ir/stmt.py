"""Statements: loops, stores, allocations, and the blocks that schedules move around."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from loopwright.ir.attributes import Attributes, as_attributes
from loopwright.ir.buffer import Buffer, BufferRegion, MatchBufferRegion, loaded_dtype, store_statement
from loopwright.ir.expr import (
    Call,
    Expr,
    IntImm,
    IterVar,
    OperandMismatch,
    Producer,
    Range,
    Var,
    as_expr,
    as_exprs,
    const,
)
from loopwright.ir.expr.arithmetic import bound_value
from loopwright.ir.node import CHECKED_BASES, Node, base_node, node
from loopwright.ir.wrong_part import WrongCount, WrongPart
from loopwright.runtime.dtype import DataType


@base_node
class Stmt(Node):
    """A step of the program."""

    __slots__ = ()


CHECKED_BASES.append(Stmt)


class ForKind(IntEnum):
    """Who runs the iterations of a loop; the numbers are those users' scripts know."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


@node(binds="loop_var")
class For(Stmt):
    """Run `body` `extent` times, `loop_var` counting up from `min`; `body` never assigns `loop_var`."""

    loop_var: Var
    min: Expr
    extent: Expr
    kind: ForKind  # who runs the iterations: one thread, many, or vector lanes
    body: Stmt
    thread_binding: IterVar | None = None
    annotations: Attributes = {}

    def __init__(
        self,
        loop_var: Var,
        min: object,
        extent: object,
        kind: int | ForKind,
        body: Stmt,
        thread_binding: IterVar | None = None,
        annotations: Attributes | None = None,
        span: object = None,
    ) -> None:
        if not isinstance(loop_var, Var):
            raise WrongPart("For", "loop_var", loop_var, "Var")
        if not isinstance(body, Stmt):
            raise WrongPart("For", "body", body, "Stmt")
        # Python numbers take the type of the loop variable; integers of another type are the verifier's to refuse.
        low = const(min, loop_var.dtype) if type(min) is int else as_expr(min)
        count = const(extent, loop_var.dtype) if type(extent) is int else as_expr(extent)
        for name, bound in (("min", low), ("extent", count)):
            if not (bound.dtype.is_int or bound.dtype.is_bool):
                raise WrongPart("For", name, bound, "integer")
        set_field = object.__setattr__
        set_field(self, "loop_var", loop_var)
        set_field(self, "min", low)
        set_field(self, "extent", count)
        set_field(self, "kind", ForKind(kind))
        set_field(self, "body", body)
        set_field(self, "thread_binding", thread_binding)
        set_field(self, "annotations", as_attributes(annotations) if annotations else {})
        set_field(self, "span", span)


@node
class While(Stmt):
    """Run `body` as long as `condition` holds."""

    condition: Expr
    body: Stmt


@node(binds="var")
class LetStmt(Stmt):
    """Run `body` with `var` standing for `value`."""

    var: Var
    value: Expr
    body: Stmt

    def __init__(self, var: Var, value: object, body: Stmt, span: object = None) -> None:
        if not isinstance(var, Var):
            raise WrongPart("LetStmt", "var", var, "Var")
        if not isinstance(body, Stmt):
            raise WrongPart("LetStmt", "body", body, "Stmt")
        set_field = object.__setattr__
        set_field(self, "var", var)
        set_field(self, "value", bound_value("LetStmt", var, value))
        set_field(self, "body", body)
        set_field(self, "span", span)


@node
class AttrStmt(Stmt):
    """Run `body` under the fact that attribute `attr_key` of `node` has `value`."""

    node: object
    attr_key: str
    value: Expr
    body: Stmt


@node
class AssertStmt(Stmt):
    """Stop with `message` unless `condition` holds; then run `body`."""

    condition: Expr
    message: Expr
    body: Stmt


@node
class BufferStore(Stmt):
    """buffer[indices] = value; the value has the buffer's type, with the lanes of the indices."""

    buffer: Buffer
    value: Expr
    indices: tuple[Expr, ...]

    def __init__(self, buffer: Buffer, value: object, indices: Sequence[object], span: object = None) -> None:
        if not isinstance(buffer, Buffer):
            raise WrongPart("BufferStore", "buffer", buffer, "Buffer")
        value, indices = as_expr(value), as_exprs(indices)
        for index in indices:
            if not (index.dtype.is_int or index.dtype.is_bool):
                raise WrongPart("BufferStore", "each of indices", index, "integer")
        expected = loaded_dtype(buffer, indices)
        if value.dtype is not expected:
            raise OperandMismatch(f"BufferStore to {buffer.name}", const(0, expected), value)
        set_field = object.__setattr__
        set_field(self, "buffer", buffer)
        set_field(self, "value", value)
        set_field(self, "indices", indices)
        set_field(self, "span", span)


store_statement.append(BufferStore)


@node
class BufferRealize(Stmt):
    """Run `body` with the region `bounds` of `buffer` stored, if `condition` holds."""

    buffer: Buffer
    bounds: tuple[Range, ...]
    condition: Expr
    body: Stmt


@node
class ProducerStore(Stmt):
    """Store an element of a te tensor; absent once a function is made."""

    producer: Producer
    value: Expr
    indices: tuple[Expr, ...]


@node
class ProducerRealize(Stmt):
    """Run `body` with the region `bounds` of a te tensor stored; absent once a function is made."""

    producer: Producer
    bounds: tuple[Range, ...]
    condition: Expr
    body: Stmt
    storage_scope: str = ""


@node(binds="buffer_var")
class Allocate(Stmt):
    """Run `body` with fresh, uninitialised memory at `buffer_var`."""

    buffer_var: Var
    dtype: DataType
    extents: tuple[Expr, ...]
    condition: Expr
    body: Stmt
    annotations: Attributes = {}


@node(binds="buffer_var")
class AllocateConst(Stmt):
    """Run `body` with constant memory at `buffer_var`; `data` holds the values (a numpy array)."""

    buffer_var: Var
    dtype: DataType
    extents: tuple[Expr, ...]
    data: object
    body: Stmt
    annotations: Attributes = {}

    @property
    def irmod_storage_idx(self) -> None:
        """Where the module keeps the values: nowhere, the node holds them itself."""
        return None


@node
class DeclBuffer(Stmt):
    """Run `body` with `buffer` as a name for memory that exists already."""

    buffer: Buffer
    body: Stmt


@node
class SeqStmt(Stmt):
    """Two or more statements, one after the other."""

    seq: tuple[Stmt, ...]

    def __getitem__(self, index: int) -> Stmt:
        return self.seq[index]

    def __len__(self) -> int:
        return len(self.seq)


@node
class IfThenElse(Stmt):
    """Run `then_case` when `condition` holds, else `else_case` if there is one."""

    condition: Expr
    then_case: Stmt
    else_case: Stmt | None = None


@node
class Evaluate(Stmt):
    """Compute `value` for its effect."""

    value: Expr


@node
class Prefetch(Stmt):
    """Ask for the region `bounds` of `buffer` to be brought near."""

    buffer: Buffer
    bounds: tuple[Range, ...]


@node(binds="iter_vars")
class Block(Stmt):
    """A unit of computation that a schedule moves as a whole.

    `iter_vars` are its own iteration variables, bound by the BlockRealize around it; `reads` and `writes` bound what
    it touches. `init`, if any, gives the start value of a reduction: it runs once a cell, before the outermost loop
    that carries the reduction (see `analysis/reduction_init.py`). Each run of the block has its own `alloc_buffers`.
    """

    iter_vars: tuple[IterVar, ...]
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    name_hint: str
    body: Stmt
    init: Stmt | None = None
    alloc_buffers: tuple[Buffer, ...] = ()
    match_buffers: tuple[MatchBufferRegion, ...] = ()
    annotations: Attributes = {}


@node
class BlockRealize(Stmt):
    """Run `block` with its iteration variables at `iter_values`, if `predicate` holds."""

    iter_values: tuple[Expr, ...]
    predicate: Expr
    block: Block

    def __init__(self, iter_values: Sequence[object], predicate: object, block: Block, span: object = None) -> None:
        if not isinstance(block, Block):
            raise WrongPart("BlockRealize", "block", block, "Block")
        values = as_exprs(iter_values)
        if len(values) != len(block.iter_vars):
            raise WrongCount(block.name_hint, len(block.iter_vars), len(values))
        set_field = object.__setattr__
        set_field(self, "iter_values", values)
        set_field(self, "predicate", as_expr(predicate))
        set_field(self, "block", block)
        set_field(self, "span", span)


def seq(statements: Iterable[Stmt | None]) -> Stmt:
    """One statement that runs all: flat, without Nones and no-ops."""
    flat: list[Stmt] = []
    for statement in statements:
        if isinstance(statement, SeqStmt):
            flat += statement.seq
        elif statement is not None and not is_no_op(statement):
            flat.append(statement)
    if not flat:
        return no_op()
    return flat[0] if len(flat) == 1 else SeqStmt(tuple(flat))


def no_op() -> Stmt:
    """The statement that does nothing."""
    return Evaluate(const(0))


def is_no_op(statement: Stmt) -> bool:
    """Whether the statement is `no_op()`."""
    return isinstance(statement, Evaluate) and isinstance(statement.value, IntImm)


def is_return(statement: Node) -> bool:
    """Whether the statement is `T.ret`: the function ends here."""
    value = statement.value if isinstance(statement, Evaluate) else None
    return isinstance(value, Call) and value.op.name == "tir.ret"


def stmt_seq(*statements: Stmt) -> Stmt:
    """The statements in order, as one."""
    return seq(statements)


def stmt_list(statement: Stmt) -> list[Stmt]:
    """The statements that `statement` runs in order."""
    return list(statement.seq) if isinstance(statement, SeqStmt) else [statement]
