"""`tvm.script.printer.doc`: a Python program as objects, which `script_doc_printer` writes as text.

    FunctionDoc(IdDoc("f"), [AssignDoc(IdDoc("x"), None, IdDoc("int"))], [], None, [ReturnDoc(IdDoc("x"))])

Our own printer writes text directly; these classes are for scripts that build programs in this form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.object_path import ObjectPath


class BadDoc(LoopwrightError, ValueError):
    """Parts that no Python statement has together.

    For example:

        from loopwright.compat.script_doc import AssignDoc, IdDoc

        AssignDoc(IdDoc("x"), None, None)
    """

    code = "LW0031"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")


class Doc:
    """A part of a program; `source_paths` says which parts of the IR it was written for."""

    __slots__ = ("__dict__", "_comment", "_paths")

    def __init__(self) -> None:
        self._paths: tuple[ObjectPath, ...] = ()

    @property
    def source_paths(self) -> tuple[ObjectPath, ...]:
        return self._paths

    @source_paths.setter
    def source_paths(self, paths: Sequence[ObjectPath]) -> None:
        self._paths = tuple(paths)


class ExprDoc(Doc):
    """An expression."""

    __slots__ = ()

    def attr(self, name: str) -> AttrAccessDoc:
        """`self.name`"""
        return AttrAccessDoc(self, name)

    def call(self, *args: ExprDoc, **kwargs: ExprDoc) -> CallDoc:
        """`self(*args, **kwargs)`"""
        return CallDoc(self, *args, **kwargs)

    def __getitem__(self, indices: Any) -> IndexDoc:
        return IndexDoc(self, indices if isinstance(indices, tuple) else (indices,))

    def __iter__(self) -> Any:
        raise TypeError(f"{type(self).__name__} cannot be iterated over")


class StmtDoc(Doc):
    """A statement; its comment stands behind it, above it, or in its docstring."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self._comment: str | None = None

    @property
    def comment(self) -> str | None:
        return self._comment

    @comment.setter
    def comment(self, text: str | None) -> None:
        self._comment = None if text is None else str(text)


class LiteralDoc(ExprDoc):
    """None, a text, a number or a truth value."""

    def __init__(self, value: str | float | bool | int | None, path: ObjectPath | None = None) -> None:
        super().__init__()
        self.value = value
        self.source_paths = () if path is None else (path,)


class IdDoc(ExprDoc):
    """A name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class AttrAccessDoc(ExprDoc):
    """`value.name`"""

    def __init__(self, value: ExprDoc, name: str) -> None:
        super().__init__()
        self.value, self.name = value, name


class IndexDoc(ExprDoc):
    """`value[indices]`"""

    def __init__(self, value: ExprDoc, indices: Sequence[ExprDoc | SliceDoc]) -> None:
        super().__init__()
        self.value, self.indices = value, list(indices)


class CallDoc(ExprDoc):
    """`callee(*args, **kwargs)`"""

    def __init__(self, callee: ExprDoc, *args: ExprDoc, **kwargs: ExprDoc) -> None:
        super().__init__()
        self.callee, self.args = callee, list(args)
        self.kwargs_keys, self.kwargs_values = list(kwargs), list(kwargs.values())


class OperationKind(IntEnum):
    """The operators; those between two marks take one operand, or two."""

    _UnaryStart = 0
    USub = 1
    Invert = 2
    Not = 3
    _UnaryEnd = 4
    _BinaryStart = 5
    Add = 6
    Sub = 7
    Mult = 8
    Div = 9
    FloorDiv = 10
    Mod = 11
    Pow = 12
    LShift = 13
    RShift = 14
    BitAnd = 15
    BitOr = 16
    BitXor = 17
    Lt = 18
    LtE = 19
    Eq = 20
    NotEq = 21
    Gt = 22
    GtE = 23
    And = 24
    Or = 25
    _BinaryEnd = 26
    _SpecialStart = 27
    IfThenElse = 28
    _SpecialEnd = 29


class OperationDoc(ExprDoc):
    """An operator and its operands; of IfThenElse, the condition comes first."""

    def __init__(self, kind: OperationKind, operands: Sequence[ExprDoc]) -> None:
        super().__init__()
        self.kind, self.operands = OperationKind(kind), list(operands)


class LambdaDoc(ExprDoc):
    """`lambda args: body`"""

    def __init__(self, args: Sequence[IdDoc], body: ExprDoc) -> None:
        super().__init__()
        self.args, self.body = list(args), body


class TupleDoc(ExprDoc):
    """`(a, b)`"""

    def __init__(self, elements: Sequence[ExprDoc]) -> None:
        super().__init__()
        self.elements = list(elements)


class ListDoc(ExprDoc):
    """`[a, b]`"""

    def __init__(self, elements: Sequence[ExprDoc]) -> None:
        super().__init__()
        self.elements = list(elements)


class DictDoc(ExprDoc):
    """`{key: value}`"""

    def __init__(self, content: Mapping[ExprDoc, ExprDoc]) -> None:
        super().__init__()
        self.keys, self.values = list(content), list(content.values())


class SliceDoc(Doc):
    """`start:stop:step`, an index."""

    def __init__(
        self, start: ExprDoc | None = None, stop: ExprDoc | None = None, step: ExprDoc | None = None
    ) -> None:
        super().__init__()
        self.start, self.stop, self.step = start, stop, step


class StmtBlockDoc(Doc):
    """Statements, one after the other."""

    def __init__(self, stmts: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.stmts = list(stmts)


class AssignDoc(StmtDoc):
    """`lhs: annotation = rhs`"""

    def __init__(self, lhs: ExprDoc, rhs: ExprDoc | None, annotation: ExprDoc | None = None) -> None:
        super().__init__()
        if rhs is None and annotation is None:
            raise BadDoc("AssignDoc", "give a value, an annotation, or both")
        if annotation is not None and not isinstance(lhs, IdDoc):
            raise BadDoc("AssignDoc", "only a name takes an annotation")
        self.lhs, self.rhs, self.annotation = lhs, rhs, annotation


class IfDoc(StmtDoc):
    """`if predicate:` with its branches, of which one may be empty."""

    def __init__(
        self, predicate: ExprDoc, then_branch: Sequence[StmtDoc], else_branch: Sequence[StmtDoc] = ()
    ) -> None:
        super().__init__()
        if not then_branch and not else_branch:
            raise BadDoc("IfDoc", "both branches are empty")
        self.predicate, self.then_branch, self.else_branch = predicate, list(then_branch), list(else_branch)


class WhileDoc(StmtDoc):
    """`while predicate:`"""

    def __init__(self, predicate: ExprDoc, body: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.predicate, self.body = predicate, list(body)


class ForDoc(StmtDoc):
    """`for lhs in rhs:`"""

    def __init__(self, lhs: ExprDoc, rhs: ExprDoc, body: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.lhs, self.rhs, self.body = lhs, rhs, list(body)


class ScopeDoc(StmtDoc):
    """`with rhs as lhs:`"""

    def __init__(self, lhs: ExprDoc | None, rhs: ExprDoc, body: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.lhs, self.rhs, self.body = lhs, rhs, list(body)


class ExprStmtDoc(StmtDoc):
    """An expression on a line of its own."""

    def __init__(self, expr: ExprDoc) -> None:
        super().__init__()
        self.expr = expr


class AssertDoc(StmtDoc):
    """`assert test, msg`"""

    def __init__(self, test: ExprDoc, msg: ExprDoc | None = None) -> None:
        super().__init__()
        self.test, self.msg = test, msg


class ReturnDoc(StmtDoc):
    """`return value`"""

    def __init__(self, value: ExprDoc) -> None:
        super().__init__()
        self.value = value


class FunctionDoc(StmtDoc):
    """`def name(args) -> return_type:`; arguments are assignments without values, or with defaults."""

    def __init__(
        self,
        name: IdDoc,
        args: Sequence[AssignDoc],
        decorators: Sequence[ExprDoc],
        return_type: ExprDoc | None,
        body: Sequence[StmtDoc],
    ) -> None:
        super().__init__()
        self.name, self.args, self.decorators = name, list(args), list(decorators)
        self.return_type, self.body = return_type, list(body)


class ClassDoc(StmtDoc):
    """`class name:`"""

    def __init__(self, name: IdDoc, decorators: Sequence[ExprDoc], body: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.name, self.decorators, self.body = name, list(decorators), list(body)


class CommentDoc(StmtDoc):
    """A comment on lines of its own."""

    def __init__(self, comment: str) -> None:
        super().__init__()
        self.comment = comment


class DocStringDoc(StmtDoc):
    """A text on lines of its own."""

    def __init__(self, docs: str) -> None:
        super().__init__()
        self.comment = docs
