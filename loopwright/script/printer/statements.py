"""Statements as text. `last` says that nothing follows in the Python block: a scope may then be written flat."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopwright.ir import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Buffer,
    BufferRealize,
    BufferRegion,
    BufferStore,
    Call,
    DeclBuffer,
    Evaluate,
    Expr,
    IfThenElse,
    IntImm,
    IterType,
    IterVar,
    LetStmt,
    PointerType,
    Prefetch,
    PrimType,
    SeqStmt,
    Stmt,
    StringImm,
    Var,
    While,
    is_true,
)
from loopwright.ir.buffer import stored_dtype
from loopwright.runtime.dtype import INT32, DataType
from loopwright.script.printer.blocks import BlockPrinter
from loopwright.script.printer.literals import quote, type_text


class StatementPrinter(BlockPrinter):
    """Write statements."""

    def statement(self, stmt: Stmt, last: bool = True) -> None:
        self._table[type(stmt)](self, stmt, last)

    def body(self, stmt: Stmt) -> None:
        """The body of a compound statement, one level deeper."""
        with self.scope():
            self._table[type(stmt)](self, stmt, True)

    def visit_SeqStmt(self, stmt: SeqStmt, last: bool = True) -> None:
        table = self._table
        final = len(stmt.seq) - 1
        for k, part in enumerate(stmt.seq):
            table[type(part)](self, part, last and k == final)
        if not stmt.seq:
            self.line("pass")

    def visit_Evaluate(self, stmt: Evaluate, last: bool = True) -> None:
        value = self.text(stmt.value)
        bare = isinstance(stmt.value, Call) and self.options.syntax_sugar
        self.line(value if bare else f"{self.prefix}.evaluate({value})")

    def visit_BufferStore(self, stmt: BufferStore, last: bool = True) -> None:
        self.out = []
        self._table[type(stmt.buffer)](self, stmt.buffer, 0)
        self.indices(stmt.indices)
        self.out.append(" = ")
        self._table[type(stmt.value)](self, stmt.value, 0)
        self.line("".join(self.out))

    def visit_IfThenElse(self, stmt: IfThenElse, last: bool = True) -> None:
        word = "if"
        while True:
            self.line(f"{word} {self.text(stmt.condition)}:")
            self.body(stmt.then_case)
            other = stmt.else_case
            if not isinstance(other, IfThenElse) or not self.options.syntax_sugar:
                break
            stmt, word = other, "elif"
        if other is not None:
            self.line("else:")
            self.body(other)

    def visit_While(self, stmt: While, last: bool = True) -> None:
        self.line(f"while {self.text(stmt.condition)}:")
        self.body(stmt.body)

    # --- statements that open a scope ---

    def rest(self, header: str, body: Stmt, last: bool, flat: str | None = None) -> None:
        """The scope of `header`: flat when nothing else follows, else as a with-block."""
        if last and self.options.syntax_sugar:
            self.line(header if flat is None else flat)
            self._table[type(body)](self, body, True)
        else:
            self.line(f"with {header}:")
            self.body(body)

    def rest_with_var(self, var: Var, call: str, body: Stmt, last: bool, annotation: str = "") -> None:
        """Like `rest`, for a scope that gives `var` its value."""
        if last and self.options.syntax_sugar:
            self.line(f"{self.define_var(var)}{annotation} = {call}")
            self.declare_aliases(var)
            self._table[type(body)](self, body, True)
            return
        with self.scope(indent=False):
            self.line(f"with {call} as {self.define_var(var)}:")
            with self.scope():
                self.declare_aliases(var)
                self._table[type(body)](self, body, True)

    def visit_LetStmt(self, stmt: LetStmt, last: bool = True) -> None:
        var, value = stmt.var, self.text(stmt.value)
        annotation = var.type_annotation
        is_plain = type(var) is Var and var not in self.texts
        if is_plain and last and self.options.syntax_sugar:
            self.rest_with_var(var, value, stmt.body, last, f": {type_text(annotation, self.prefix)}")
        elif is_plain and isinstance(annotation, PrimType) and annotation.dtype is stmt.value.dtype:
            self.rest_with_var(var, f"{self.prefix}.LetStmt({value})", stmt.body, False)
        else:
            if var not in self.texts:
                self.declare_vars([var])
            self.line(f"with {self.prefix}.LetStmt({value}, var={self.texts[var]}):")
            with self.scope():
                self.declare_aliases(var)
                self._table[type(stmt.body)](self, stmt.body, True)

    def visit_AssertStmt(self, stmt: AssertStmt, last: bool = True) -> None:
        condition, message = self.text(stmt.condition), self.text(stmt.message)
        self.rest(f"{self.prefix}.Assert({condition}, {message})", stmt.body, last, f"assert {condition}, {message}")

    def visit_AttrStmt(self, stmt: AttrStmt, last: bool = True) -> None:
        thread = stmt.node
        if isinstance(thread, IterVar) and _is_launch(thread, stmt):
            self._launch(thread, stmt, last)
            return
        if self._is_scoped_realize(stmt):
            assert isinstance(stmt.body, BufferRealize) and isinstance(stmt.value, StringImm)
            self._realize(stmt.body, stmt.value.value, last)
            return
        text = f"{self.data_text(thread)}, {quote(stmt.attr_key)}, {self.text(stmt.value)}"
        self.rest(f"{self.prefix}.attr({text})", stmt.body, last)

    def _launch(self, thread: IterVar, stmt: AttrStmt, last: bool) -> None:
        var, tag, extent = thread.var, quote(thread.thread_tag), self.text(stmt.value)
        roaming = self.learned.roaming
        if var in self.texts or var in self.launched:
            roaming.add(var)
        self.launched.add(var)
        # T.env_thread makes an int32 variable.
        if var not in roaming or var.dtype is not INT32:
            self.rest_with_var(var, f"{self.prefix}.launch_thread({tag}, {extent})", stmt.body, last)
            return
        if var not in self.texts:
            self.texts[var] = self.names.fresh_everywhere(self.hint(var))
            self.top.append(f"{self.texts[var]} = {self.prefix}.env_thread({tag})")
        self.rest(f"{self.prefix}.launch_thread({self.texts[var]}, {extent})", stmt.body, last)

    # --- memory ---

    def visit_Allocate(self, stmt: Allocate, last: bool = True) -> None:
        var = stmt.buffer_var
        if isinstance(stmt.body, DeclBuffer) and self.options.syntax_sugar and self._is_pair(stmt, stmt.body.buffer):
            self._decl_buffer(stmt.body, last)
            return
        arguments = self._allocation(stmt)
        if not is_true(stmt.condition):
            arguments.append(f"condition={self.text(stmt.condition)}")
        self._allocated(stmt, f"{self.prefix}.allocate({', '.join(arguments)}", var, last)

    def visit_AllocateConst(self, stmt: AllocateConst, last: bool = True) -> None:
        values = self.array_text(np.asarray(stmt.data))
        extents = f"[{self.texts_of(stmt.extents)}]"
        call = f"{self.prefix}.allocate_const({values}, {quote(stmt.dtype)}, {extents}"
        self._allocated(stmt, call, stmt.buffer_var, last)

    def _allocation(self, stmt: Allocate) -> list[str]:
        annotation = stmt.buffer_var.type_annotation
        scope = annotation.storage_scope if isinstance(annotation, PointerType) else "global"
        return [f"[{self.texts_of(stmt.extents)}]", quote(stmt.dtype), quote(scope)]

    def _allocated(self, stmt: Allocate | AllocateConst, call: str, var: Var, last: bool) -> None:
        if stmt.annotations:
            call += f", annotations={self.mapping_text(stmt.annotations)}"
        annotation = "" if _is_pointer_to(var, stmt.dtype) else f": {type_text(var.type_annotation, self.prefix)}"
        self.rest_with_var(var, f"{call})", stmt.body, last, annotation)

    def _is_pair(self, stmt: Allocate, buffer: Buffer) -> bool:
        """Whether `T.decl_buffer` without `data=` makes this allocation and this buffer."""
        return (
            buffer.data is stmt.buffer_var
            and buffer.dtype is stmt.dtype
            and not stmt.annotations
            and not buffer.strides
            and buffer.offset_factor == 1
            and isinstance(buffer.elem_offset, IntImm)
            and buffer.elem_offset.value == 0
            and is_true(stmt.condition)
            and _is_pointer_to(stmt.buffer_var, stmt.dtype)
            and stmt.buffer_var not in self.texts
            and _same_exprs(stmt.extents, buffer.shape)
        )

    def visit_DeclBuffer(self, stmt: DeclBuffer, last: bool = True) -> None:
        if stmt.buffer.data not in self.texts:
            # Without `data=` the line would also allocate: the pointer must be visible first.
            self.undefined(stmt.buffer.data)
        self._decl_buffer(stmt, last)

    def _decl_buffer(self, stmt: DeclBuffer, last: bool) -> None:
        buffer, body = stmt.buffer, stmt.body
        if last and self.options.syntax_sugar:
            self.declare_buffer(buffer, "decl_buffer")
            self._table[type(body)](self, body, True)
            return
        with self.scope(indent=False):
            name = self.names.fresh(self.hint(buffer), "buffer")
            arguments = self.buffer_arguments(buffer, name)
            self.define(buffer, name)
            self.line(f"with {self.prefix}.decl_buffer({arguments}) as {name}:")
            with self.scope():
                self.declare_aliases(buffer.data)
                self._table[type(body)](self, body, True)

    def _is_scoped_realize(self, stmt: AttrStmt) -> bool:
        """Whether `T.realize(region, scope)` makes this attribute and the statement below it."""
        below, scope = stmt.body, stmt.value
        return (
            stmt.attr_key == "realize_scope"
            and self.options.syntax_sugar
            and isinstance(below, BufferRealize)
            and below.buffer is stmt.node
            and below not in self.marked
            and isinstance(scope, StringImm)
            and scope.value not in ("", below.buffer.scope())
        )

    def visit_BufferRealize(self, stmt: BufferRealize, last: bool = True) -> None:
        self._realize(stmt, stmt.buffer.scope(), last)

    def _realize(self, stmt: BufferRealize, scope: str, last: bool) -> None:
        region = self.text(BufferRegion(stmt.buffer, stmt.bounds))
        condition = "" if is_true(stmt.condition) else f", {self.text(stmt.condition)}"
        self.rest(f"{self.prefix}.realize({region}, {quote(scope)}{condition})", stmt.body, last)

    def visit_Prefetch(self, stmt: Prefetch, last: bool = True) -> None:
        self.line(f"{self.prefix}.prefetch({self.text(stmt.buffer)}, [{self.texts_of(stmt.bounds)}])")

    def visit_Stmt(self, stmt: Any, last: bool = True) -> None:
        """Statements without syntax of their own: shown, not read back."""
        self.line(f"# {type(stmt).__name__}")
        for part in stmt.children():
            if isinstance(part, Stmt):
                self._table[type(part)](self, part, last)


def _is_pointer_to(var: Var, dtype: DataType) -> bool:
    """Whether `T.allocate` of that dtype makes a pointer of this type."""
    annotation = var.type_annotation
    return (
        isinstance(annotation, PointerType)
        and isinstance(annotation.element_type, PrimType)
        and annotation.element_type.dtype is stored_dtype(dtype)
    )


def _is_launch(thread: IterVar, stmt: AttrStmt) -> bool:
    """Whether `T.launch_thread(tag, extent)` makes this attribute."""
    tag = thread.thread_tag
    key = "virtual_thread" if tag.startswith("vthread") else "thread_extent"
    dom = thread.dom
    return (
        bool(tag)
        and stmt.attr_key == key
        and thread.iter_type is IterType.ThreadIndex
        and thread.var.dtype is stmt.value.dtype
        and dom is not None
        and _same_exprs((dom.extent,), (stmt.value,))
        and isinstance(dom.min, IntImm)
        and dom.min.value == 0
        and dom.min.dtype is stmt.value.dtype
    )


def _same_exprs(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
    """Whether both lists are the same objects or equal integer literals."""
    if len(a) != len(b):
        return False
    for left, right in zip(a, b):
        if left is right:
            continue
        if not (isinstance(left, IntImm) and isinstance(right, IntImm)):
            return False
        if left.value != right.value or left.dtype is not right.dtype:
            return False
    return True
