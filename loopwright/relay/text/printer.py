"""Graphs as text.

    astext(module)           with the header, and the constants at the end
    plain_text(expression)   without either: what `str` and `print` show

A value that is used is a line of its own (`%0 = add(%x, %y);`), written once however often it is used, so the text of a
graph is as long as the graph. Parsing the text gives the same graph, shared values shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from loopwright.ir.deep import deep
from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.relay.adt import Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from loopwright.relay.analysis.variables import free_vars
from loopwright.relay.blocks import Block, Layout, is_leaf
from loopwright.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from loopwright.relay.op.registry import Op
from loopwright.relay.spans import SequentialSpan, Span
from loopwright.relay.text.metadata import CONSTANT, PRIM_FUNC, VIRTUAL_DEVICE, Metadata
from loopwright.relay.text.sizes import SizeNames, type_data_text
from loopwright.relay.text.values import NoText, key_text, name_text, scalar_text, value_text
from loopwright.relay.types import FuncType, IncompleteType
from loopwright.target import VirtualDevice

VERSION = "0.0.5"
HEADER = f'#[version = "{VERSION}"]'

Annotate = Callable[[Expr], str]


class _Printer:
    """One text: functions of a module, or an expression."""

    def __init__(self, annotate: Annotate | None, marked: Iterable[object] = ()) -> None:
        self.annotate = annotate
        self.metadata = Metadata()
        self.marked = set(marked)
        self.names: dict[Var, str] = {}
        self.begin()

    def begin(self) -> None:
        """A new function: numbers and names begin anew."""
        self.names = {}
        self.taken: dict[str, int] = {}  # name → how many more were wanted
        self.inner: list[str] = []  # the names in the order they were taken
        self.sizes = SizeNames()
        self.numbers: dict[Expr, int] = {}
        self.count = 0
        self.layout: Layout

    # -- names --------------------------------------------------------------------------------------------------------

    def variable(self, var: Var) -> str:
        name = self.names.get(var)
        if name is None:
            base = var.name_hint or "v"
            unique = base
            while unique in self.taken:
                self.taken[base] += 1
                unique = f"{base}_{self.taken[base]}"
            self.taken[unique] = 0
            self.inner.append(unique)
            name = self.names[var] = f"%{name_text(unique)}"
        return name

    def declared(self, var: Var) -> str:
        """A variable where it is bound: with the type it was given."""
        name = self.variable(var)
        if var.virtual_device_ is not None:
            name += f" {{{self.attribute('virtual_device', var.virtual_device_)}}}"
        if var.type_annotation is not None and not isinstance(var.type_annotation, IncompleteType):
            return f"{name}: {self.sizes.type(var.type_annotation)}"
        return name + self.comment(var)

    def reference(self, expression: Expr) -> str:
        """A value where it is used."""
        if isinstance(expression, Var):
            return self.variable(expression)
        if isinstance(expression, GlobalVar):
            return f"@{name_text(expression.name)}"
        if isinstance(expression, Constructor):
            return expression.name_hint
        if isinstance(expression, Constant):
            scalar = scalar_text(expression.data)
            if scalar is not None:
                return scalar
            return self.metadata.reference(CONSTANT, expression) + self.comment(expression)
        return f"%{self.numbers[expression]}"

    def comment(self, expression: Expr) -> str:
        """What is said of a value behind it: its type, or what `annotate` says."""
        if self.annotate is not None:
            said = self.annotate(expression)
            return f" /* {said} */" if said else ""
        result = expression.checked_type_
        known = result is not None and not isinstance(result, IncompleteType)
        parts = [f"ty={self.sizes.type(result)}"] if known else []
        if isinstance(expression.span, (Span, SequentialSpan)):
            parts.append(f"span={expression.span}")
        return f" /* {' '.join(parts)} */" if parts else ""

    # -- lines --------------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> list[str]:
        """The lines of a block, not indented."""
        lines: list[str] = []
        while True:
            after = block.next
            let = block.tail
            value = let.value if after is not None and isinstance(let, Let) else None
            in_let = value is not None and not is_leaf(value) and self.layout.used_once(value)
            for expression in block.nodes:
                if not (in_let and expression is value):
                    self.bind(expression, lines)
            if after is None:
                self.write("", block.tail, "", lines)
                return lines
            assert isinstance(let, Let)
            self.write(f"let {self.declared(let.var)} = ", let.value, ";", lines)
            block = after

    def bind(self, expression: Expr, lines: list[str]) -> None:
        """The line that gives a value its number."""
        written = self.lines(expression)
        number = self.numbers[expression] = self.count
        self.count += 1
        self.add(f"%{number} = ", written, ";", expression, lines)

    def write(self, before: str, expression: Expr, after: str, lines: list[str]) -> None:
        """A value that ends a line: its name if it has one, else what it is."""
        named = is_leaf(expression) or expression in self.numbers
        self.add(before, [self.reference(expression)] if named else self.lines(expression), after, expression, lines)

    def add(self, before: str, written: list[str], after: str, expression: Expr, lines: list[str]) -> None:
        written[0] = before + written[0]
        written[-1] += after
        lines += written
        if expression in self.marked:
            lines.append("^" * len(written[-1].removesuffix(";")))

    def lines(self, expression: Expr) -> list[str]:
        """What a value is."""
        if isinstance(expression, Function):
            return self.function("fn ", expression)
        if isinstance(expression, If):
            yes, no = self.layout.inside[expression]
            condition = self.reference(expression.cond)
            then, otherwise = _indented(self.block(yes)), _indented(self.block(no))
            return [f"if ({condition}) {{", *then, "} else {", *otherwise, "}" + self.comment(expression)]
        if isinstance(expression, Match):
            return self.match(expression)
        if isinstance(expression, Let):
            return ["{", *_indented(self.block(self.layout.inside[expression][0])), "}"]
        return [self.line(expression) + self.comment(expression)]

    def match(self, match: Match) -> list[str]:
        lines = [f"match{'' if match.complete else '?'} ({self.reference(match.data)}) {{"]
        for clause, block in zip(match.clauses, self.layout.inside[match], strict=True):
            head = f"  {self.pattern(clause.lhs)} => "
            written = self.block(block)
            if len(written) == 1:
                lines.append(f"{head}{written[0]},")
            else:
                lines += [f"{head}{{", *_indented(_indented(written)), "  },"]
        return [*lines, "}" + self.comment(match)]

    def pattern(self, pattern: Pattern) -> str:
        if isinstance(pattern, PatternVar):
            return self.declared(pattern.var)
        if isinstance(pattern, PatternConstructor):
            inner = ", ".join([self.pattern(one) for one in pattern.patterns])
            return pattern.constructor.name_hint + (f"({inner})" if inner else "")
        if isinstance(pattern, PatternTuple):
            inner = ", ".join([self.pattern(one) for one in pattern.patterns])
            return f"({inner}{',' if len(pattern.patterns) == 1 else ''})"
        return "_"

    def line(self, expression: Expr) -> str:
        if isinstance(expression, Call):
            return self.call(expression)
        if isinstance(expression, Tuple):
            fields = [self.reference(field) for field in expression.fields]
            return f"({', '.join(fields)}{',' if len(fields) == 1 else ''})"
        if isinstance(expression, TupleGetItem):
            return f"{self.reference(expression.tuple_value)}.{expression.index}"
        if isinstance(expression, RefCreate):
            return f"ref({self.reference(expression.value)})"
        if isinstance(expression, RefRead):
            return f"ref_read({self.reference(expression.ref)})"
        if isinstance(expression, RefWrite):
            return f"ref_write({self.reference(expression.ref)}, {self.reference(expression.value)})"
        return f"<{type(expression).__name__}>"

    def call(self, call: Call) -> str:
        inner = [self.reference(arg) for arg in call.args]
        if not isinstance(call.op, Op):
            return f"{self.reference(call.op)}({', '.join(inner)})"
        given = call.attrs
        for name, default in given.fields.items():
            value = getattr(given, name)
            if not _is_default(value, default):
                inner.append(self.attribute(name, value))
        return f"{call.op.name}({', '.join(inner)})"

    def attribute(self, name: str, value: object) -> str:
        try:
            return f"{key_text(name)}={value_text(value, self.sizes)}"
        except NoText:
            if hasattr(value, "dtype") and hasattr(value, "tobytes"):
                return f"{key_text(name)}={self.metadata.reference(CONSTANT, value)}"
            if isinstance(value, VirtualDevice):
                return f"{key_text(name)}={self.metadata.reference(VIRTUAL_DEVICE, value)}"
            return f"/* {name}={_in_comment(value)} */"

    def function(self, head: str, function: Function) -> list[str]:
        """The lines of a function; `head` is `fn ` or `def @name`."""
        depth = len(self.inner)
        types = ", ".join([self.sizes.type(param) for param in function.type_params])
        types = f"[{types}]" if types else ""
        inner = [self.declared(param) for param in function.params]
        if function.virtual_device_ is not None:
            inner.append(self.attribute("virtual_device", function.virtual_device_))
        inner += [self.attribute(name, value) for name, value in function.attrs.items()]
        result = ""
        if function.declared_ret_type is not None and not isinstance(function.declared_ret_type, IncompleteType):
            result = f" -> {self.sizes.type(function.declared_ret_type)}"
        elif isinstance(function.checked_type_, FuncType) and self.annotate is None:
            result = f" /* -> {self.sizes.type(function.checked_type_.ret_type)} */"
        body = self.block(self.layout.inside[function][0])
        for name in self.inner[depth:]:  # which mean nothing after it
            del self.taken[name]
        del self.inner[depth:]
        return [f"{head}{types}({', '.join(inner)}){result} {{", *_indented(body), "}"]

    # -- whole texts --------------------------------------------------------------------------------------------------

    def expression(self, root: Expr) -> list[str]:
        self.begin()
        lines = [f"free_var {self.declared(var)};" for var in free_vars(root)]
        self.layout = Layout(root)
        return [*lines, *self.block(self.layout.top)]

    def definition(self, var: GlobalVar, function: object) -> list[str]:
        self.begin()
        name = f"@{name_text(var.name)}"
        if isinstance(function, PrimFunc):
            script = [f"// {line}".rstrip() for line in function.script().splitlines()]
            return [*script, f"primfn {name} = {self.metadata.reference(PRIM_FUNC, function)};"]
        assert isinstance(function, Function)
        self.layout = Layout(function)
        lines = [f"free_var {self.declared(free)};" for free in free_vars(function)]
        return [*lines, *self.function(f"def {name}", function)]

    def module(self, module: IRModule) -> list[str]:
        lines: list[str] = []
        if module.attrs:
            self.begin()
            attributes = [f"  {self.attribute(key, value)}," for key, value in module.attrs.items()]
            lines += ["attributes {", *attributes, "}", ""]
        for data in module.type_definitions.values():
            lines += [*type_data_text(data), ""]
        for var, function in module.functions.items():
            lines += [*self.definition(var, function), ""]
        return lines[:-1]


def _indented(lines: list[str]) -> list[str]:
    return ["  " + line for line in lines]


def _is_default(value: object, default: object) -> bool:
    return type(value) is type(default) and (value is default or bool(value == default))


def _in_comment(value: object) -> str:
    return repr(value).replace("*/", "* /").replace("\n", " ")[:80]


@deep
def astext(root: Expr | IRModule, show_meta_data: bool = True, annotate: Annotate | None = None) -> str:
    """An expression or a module as text, after a header; with what the text refers to at the end, unless told not to.

    `annotate(expression)` says what stands in the comment behind each value, in place of its type.
    """
    printer = _Printer(annotate)
    lines = printer.module(root) if isinstance(root, IRModule) else printer.expression(root)
    return "\n".join([HEADER, *lines, ""]) + (printer.metadata.text() if show_meta_data else "")


@deep
def plain_text(
    root: Expr | IRModule, obj_to_underline: Iterable[object] = (), num_context_lines: int = -1, **options: object
) -> str:
    """An expression or a module as text, without header and metadata: for readers.

    `obj_to_underline` names expressions to mark, `num_context_lines` how many lines around them are shown.
    """
    if isinstance(root, Var):  # alone it says what it is
        return _Printer(None).declared(root)
    printer = _Printer(None, obj_to_underline)
    lines = printer.module(root) if isinstance(root, IRModule) else printer.expression(root)
    return "\n".join(_near_marks(lines, num_context_lines))


def _near_marks(lines: list[str], context: int) -> list[str]:
    marks = [k for k, line in enumerate(lines) if line.strip() and not line.strip().strip("^")]
    if context < 0 or not marks:
        return lines
    first, last = max(0, marks[0] - 1 - context), marks[-1] + 1 + context
    return [*(["…"] if first else []), *lines[first:last], *(["…"] if last < len(lines) else [])]


def module_text(
    module: IRModule,
    header: bool = False,
    show_meta_data: bool = False,
    annotate: Annotate | None = None,
    **options: Any,
) -> str:
    """A module that holds graph functions, as text: what `IRModule.astext`, `script` and `str` call."""
    return astext(module, show_meta_data, annotate) if header else plain_text(module, **options)
