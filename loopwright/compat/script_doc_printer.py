"""`tvm.script.printer.doc_printer`: the objects of `script_doc` as Python text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatchmethod
from typing import Final

from loopwright.compat import script_doc as d
from loopwright.compat.script_doc import BadDoc, Doc, OperationKind
from loopwright.runtime.object_path import ObjectPath
from loopwright.script.printer.literals import quote
from loopwright.script.printer.marks import excerpt

# Python's precedence, loosest first.
_LAMBDA, _CHOICE, _OR, _AND, _NOT, _COMPARE, _BIT_OR, _BIT_XOR, _BIT_AND = range(9)
_SHIFT, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(9, 15)
_UNARY: Final = {
    OperationKind.USub: ("-", _SIGN),
    OperationKind.Invert: ("~", _SIGN),
    OperationKind.Not: ("not ", _NOT),
}
_BINARY: Final = {
    OperationKind.Add: ("+", _SUM),
    OperationKind.Sub: ("-", _SUM),
    OperationKind.Mult: ("*", _PRODUCT),
    OperationKind.Div: ("/", _PRODUCT),
    OperationKind.FloorDiv: ("//", _PRODUCT),
    OperationKind.Mod: ("%", _PRODUCT),
    OperationKind.Pow: ("**", _POWER),
    OperationKind.LShift: ("<<", _SHIFT),
    OperationKind.RShift: (">>", _SHIFT),
    OperationKind.BitAnd: ("&", _BIT_AND),
    OperationKind.BitOr: ("|", _BIT_OR),
    OperationKind.BitXor: ("^", _BIT_XOR),
    OperationKind.Lt: ("<", _COMPARE),
    OperationKind.LtE: ("<=", _COMPARE),
    OperationKind.Eq: ("==", _COMPARE),
    OperationKind.NotEq: ("!=", _COMPARE),
    OperationKind.Gt: (">", _COMPARE),
    OperationKind.GtE: (">=", _COMPARE),
    OperationKind.And: ("and", _AND),
    OperationKind.Or: ("or", _OR),
}


def to_python_script(
    doc: Doc,
    indent_spaces: int = 4,
    print_line_numbers: bool = False,
    num_context_lines: int | None = None,
    path_to_underline: Sequence[ObjectPath] | None = None,
) -> str:
    """The text of `doc`; what stands for the paths is underlined, with so many lines around it."""
    printer = _Printer(indent_spaces)
    printer.statement(doc) if isinstance(doc, (d.StmtDoc, d.StmtBlockDoc)) else printer.expression(doc, _LAMBDA)
    text = "".join(printer.parts).rstrip("\n")
    lines, start = [], 0
    marked = _marked(printer.spans, path_to_underline or ())
    for line in text.split("\n"):
        below = "".join(["^" if start + k in marked and char != " " else " " for k, char in enumerate(line)])
        blank = len(line) - len(line.lstrip(" "))
        if below.strip():  # spaces inside what is marked are underlined too
            inside = [k for k in range(blank, len(line)) if start + k in marked]
            below = "".join(["^" if k in inside else " " for k in range(len(line))])
        lines.append((line, below.rstrip() or None))
        start += len(line) + 1
    return excerpt(lines, print_line_numbers, -1 if num_context_lines is None else num_context_lines)


_Spans = list[tuple[int, int, Doc]]


def _marked(spans: _Spans, paths: Sequence[ObjectPath]) -> set[int]:
    """The characters written for each path, or for the longest part of it that anything was written for."""
    result: set[int] = set()
    for wanted in paths:
        longest = 0
        found: list[tuple[int, int]] = []
        for begin, end, doc in spans:
            for path in doc.source_paths:
                if path.is_prefix_of(wanted) and path.length >= longest:
                    found = [*found, (begin, end)] if path.length == longest else [(begin, end)]
                    longest = path.length
        result.update([k for begin, end in found for k in range(begin, end)])
    return result


class _Printer:
    def __init__(self, indent_spaces: int) -> None:
        self.indent_spaces = indent_spaces
        self.indent = 0
        self.parts: list[str] = []
        self.length = 0
        self.spans: _Spans = []

    def put(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)

    def newline(self) -> None:
        self.put("\n" + " " * self.indent)

    # --- expressions ---

    def expression(self, doc: Doc | None, level: int = _LAMBDA) -> None:
        """`doc`, in parentheses where its operator binds less tightly than `level`."""
        assert doc is not None
        begin = self.length
        if _level(doc) < level:
            self.put("(")
            self.write(doc)
            self.put(")")
        else:
            self.write(doc)
        if doc.source_paths:
            self.spans.append((begin, self.length, doc))

    def joined(self, docs: Sequence[Doc]) -> None:
        for k, doc in enumerate(docs):
            self.put(", " if k else "")
            self.expression(doc)

    @singledispatchmethod
    def write(self, doc: Doc) -> None:
        raise BadDoc(type(doc).__name__, "it has no text")

    @write.register
    def _(self, doc: d.LiteralDoc) -> None:
        value = doc.value
        self.put(quote(value) if isinstance(value, str) else repr(value))

    @write.register
    def _(self, doc: d.IdDoc) -> None:
        self.put(doc.name)

    @write.register
    def _(self, doc: d.AttrAccessDoc) -> None:
        self.expression(doc.value, _ATOM)
        self.put(f".{doc.name}")

    @write.register
    def _(self, doc: d.IndexDoc) -> None:
        self.expression(doc.value, _ATOM)
        self.put("[")
        self.joined(doc.indices)
        self.put("]" if doc.indices else "()]")

    @write.register
    def _(self, doc: d.SliceDoc) -> None:
        if doc.start is not None:
            self.expression(doc.start)
        self.put(":")
        if doc.stop is not None:
            self.expression(doc.stop)
        if doc.step is not None:
            self.put(":")
            self.expression(doc.step)

    @write.register
    def _(self, doc: d.CallDoc) -> None:
        self.expression(doc.callee, _ATOM)
        self.put("(")
        self.joined(doc.args)
        for k, (name, value) in enumerate(zip(doc.kwargs_keys, doc.kwargs_values, strict=True)):
            self.put(f"{', ' if k or doc.args else ''}{name}=")
            self.expression(value)
        self.put(")")

    @write.register
    def _(self, doc: d.OperationDoc) -> None:
        operands, kind = doc.operands, doc.kind
        count = 1 if kind in _UNARY else 2 if kind in _BINARY else 3
        if len(operands) != count:
            raise BadDoc("OperationDoc", f"{kind.name} takes {count} operands, not {len(operands)}")
        if kind in _UNARY:
            sign, level = _UNARY[kind]
            self.put(sign)
            self.expression(operands[0], level)
        elif kind in _BINARY:
            sign, level = _BINARY[kind]
            # Operators group from the left; powers from the right; comparisons would chain.
            left = level + (kind is OperationKind.Pow or level == _COMPARE)
            right = _SIGN if kind is OperationKind.Pow else level + 1
            self.expression(operands[0], left)
            self.put(f" {sign} ")
            self.expression(operands[1], right)
        else:
            condition, chosen, other = operands
            self.expression(chosen, _OR)
            self.put(" if ")
            self.expression(condition, _OR)
            self.put(" else ")
            self.expression(other, _OR)

    @write.register
    def _(self, doc: d.LambdaDoc) -> None:
        self.put("lambda ")
        self.joined(doc.args)
        self.put(": ")
        self.expression(doc.body)

    @write.register
    def _(self, doc: d.TupleDoc) -> None:
        self.put("(")
        self.joined(doc.elements)
        self.put(",)" if len(doc.elements) == 1 else ")")

    @write.register
    def _(self, doc: d.ListDoc) -> None:
        self.put("[")
        self.joined(doc.elements)
        self.put("]")

    @write.register
    def _(self, doc: d.DictDoc) -> None:
        self.put("{")
        for k, (key, value) in enumerate(zip(doc.keys, doc.values, strict=True)):
            self.put(", " if k else "")
            self.expression(key)
            self.put(": ")
            self.expression(value)
        self.put("}")

    # --- statements ---

    def statement(self, doc: Doc) -> None:
        begin = self.length
        self.write(doc)
        if doc.source_paths:
            self.spans.append((begin, self.length, doc))

    def body(self, statements: Sequence[d.StmtDoc], comment: str | None = None) -> None:
        self.put(":")
        self.indent += self.indent_spaces
        if comment:
            self.newline()
            self.docstring(comment)
        for statement in statements:
            self.newline()
            self.statement(statement)
        if not statements:
            self.newline()
            self.put("pass")
        self.indent -= self.indent_spaces

    def comment_above(self, doc: d.StmtDoc) -> None:
        for line in (doc.comment or "").splitlines():
            self.put(f"# {line}")
            self.newline()

    def comment_behind(self, doc: d.StmtDoc) -> None:
        if doc.comment:
            if "\n" in doc.comment:
                raise BadDoc(type(doc).__name__, f"the comment of one line cannot have newline: {doc.comment!r}")
            self.put(f"  # {doc.comment}")

    def docstring(self, text: str) -> None:
        self.put('"""')
        for line in text.split("\n"):
            if line:
                self.newline()
                self.put(line)
            else:
                self.put("\n")
        self.newline()
        self.put('"""')

    def targets(self, doc: Doc) -> None:
        """What is assigned to: a tuple without its parentheses."""
        if isinstance(doc, d.TupleDoc) and doc.elements:
            self.joined(doc.elements)
            self.put("," if len(doc.elements) == 1 else "")
        else:
            self.expression(doc)

    @write.register
    def _(self, doc: d.StmtBlockDoc) -> None:
        for k, statement in enumerate(doc.stmts):
            if k:
                self.newline()
            self.statement(statement)

    @write.register
    def _(self, doc: d.AssignDoc) -> None:
        self.targets(doc.lhs)
        if doc.annotation is not None:
            self.put(": ")
            self.expression(doc.annotation)
        if doc.rhs is not None:
            self.put(" = ")
            several = isinstance(doc.rhs, d.TupleDoc) and len(doc.rhs.elements) > 1
            self.targets(doc.rhs) if several else self.expression(doc.rhs)
        self.comment_behind(doc)

    @write.register
    def _(self, doc: d.IfDoc) -> None:
        self.comment_above(doc)
        self.put("if ")
        self.expression(doc.predicate)
        self.body(doc.then_branch)
        if doc.else_branch:
            self.newline()
            self.put("else")
            self.body(doc.else_branch)

    @write.register
    def _(self, doc: d.WhileDoc) -> None:
        self.comment_above(doc)
        self.put("while ")
        self.expression(doc.predicate)
        self.body(doc.body)

    @write.register
    def _(self, doc: d.ForDoc) -> None:
        self.comment_above(doc)
        self.put("for ")
        self.targets(doc.lhs)
        self.put(" in ")
        self.expression(doc.rhs)
        self.body(doc.body)

    @write.register
    def _(self, doc: d.ScopeDoc) -> None:
        self.comment_above(doc)
        self.put("with ")
        self.expression(doc.rhs)
        if doc.lhs is not None:
            self.put(" as ")
            self.expression(doc.lhs)
        self.body(doc.body)

    @write.register
    def _(self, doc: d.ExprStmtDoc) -> None:
        self.expression(doc.expr)
        self.comment_behind(doc)

    @write.register
    def _(self, doc: d.AssertDoc) -> None:
        self.put("assert ")
        self.expression(doc.test)
        if doc.msg is not None:
            self.put(", ")
            self.expression(doc.msg)
        self.comment_behind(doc)

    @write.register
    def _(self, doc: d.ReturnDoc) -> None:
        self.put("return ")
        self.expression(doc.value)
        self.comment_behind(doc)

    def decorators(self, docs: Sequence[Doc]) -> None:
        for doc in docs:
            self.put("@")
            self.expression(doc)
            self.newline()

    @write.register
    def _(self, doc: d.FunctionDoc) -> None:
        self.decorators(doc.decorators)
        self.put("def ")
        self.expression(doc.name)
        self.put("(")
        for k, argument in enumerate(doc.args):
            self.put(", " if k else "")
            self.statement(argument)
        self.put(")")
        if doc.return_type is not None:
            self.put(" -> ")
            self.expression(doc.return_type)
        self.body(doc.body, doc.comment)
        self.put("\n")

    @write.register
    def _(self, doc: d.ClassDoc) -> None:
        self.decorators(doc.decorators)
        self.put("class ")
        self.expression(doc.name)
        self.body(doc.body, doc.comment)
        self.put("\n")

    @write.register
    def _(self, doc: d.CommentDoc) -> None:
        for k, line in enumerate((doc.comment or "").splitlines()):
            if k:
                self.newline()
            self.put(f"# {line}")

    @write.register
    def _(self, doc: d.DocStringDoc) -> None:
        if doc.comment:
            self.docstring(doc.comment)


def _level(doc: Doc) -> int:
    if isinstance(doc, d.LambdaDoc):
        return _LAMBDA
    if isinstance(doc, d.OperationDoc):
        if doc.kind in _UNARY:
            return _UNARY[doc.kind][1]
        return _BINARY[doc.kind][1] if doc.kind in _BINARY else _CHOICE
    return _ATOM
