"""SourceExpressions: expressions of lowered, scalar IR as expressions of a C-like source.

An expression becomes text where it stands. It becomes a variable first, in the line before, when the program uses it
twice, when it is long, or when its place in the order of evaluation matters; where only one side of a choice may run,
those lines stand in the branch of an `if`. Arithmetic is in `arithmetic.py`, conversions in `conversions.py`, calls in
`calls.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from loopwright import ir
from loopwright.codegen.expression_facts import FromMemory, Speculatable
from loopwright.codegen.source.arithmetic import decided, emit_binary, emit_compare
from loopwright.codegen.source.code import COMPARISON, LOOSE, PRIMARY, UNARY, Code, call, choice, nested
from loopwright.codegen.source.conversions import emit_cast
from loopwright.codegen.source.helpers import Helpers
from loopwright.codegen.source.intervals import Intervals
from loopwright.codegen.source.names import Names
from loopwright.codegen.source.types import literal, memory_type, value_type
from loopwright.ir.visitor import Visitor
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import InternalError

T = TypeVar("T")

_MOST_INDENT: Final = 20
Bodies = Callable[[str, DataType, DataType, int], str]


class SourceExpressions(Visitor):
    """Writes the values of one function; `values` maps variables (pointers included) to their names."""

    def __init__(self, helpers: Helpers, names: Names, bodies: Bodies) -> None:
        self.helpers, self.names, self.bodies = helpers, names, bodies
        self.body_of = ""  # the function of `codegen/math` that is written here: its own name means the C library's
        self.intervals = Intervals()
        self.lines: list[str] = []
        self.indent = 1
        self.values: dict[ir.Var, Code] = {}
        self.pointees: dict[ir.Var, str] = {}  # what a pointer points to; absent when it is used as several types
        self.declared: dict[ir.Var, str] = {}  # what it points to by its declaration; absent for a bare address
        self.in_index = False  # index arithmetic does not wrap around: see docs/semantics.md
        self._from_memory = FromMemory()
        self._is_speculatable = Speculatable().visit
        self._uses: dict[ir.Expr, int] = {}
        self._known: dict[ir.Expr, Code] = {}
        self._trail: list[ir.Expr] = []
        self._in_order = False  # every part gets a line, so that effects keep their order

    # --- lines ----------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        # No further in than this: choices nest thousands deep, and their text would grow with the square of that.
        self.lines.append("    " * min(self.indent, _MOST_INDENT) + text)

    def named(self, stem: str, dtype: DataType, value: str) -> Code:
        """A new variable with that value."""
        name = self.names.fresh(stem)
        self.line(f"const {value_type(dtype)} {name} = {value};")
        return Code(name)

    def captured(self, write: Callable[[], T]) -> tuple[T, list[str]]:
        """What `write` returns, and the lines it wrote, one level further in; what it computed is forgotten."""
        outer, self.lines = self.lines, []
        mark = len(self._trail)
        self.indent += 1
        result = write()
        self.indent -= 1
        written, self.lines = self.lines, outer
        for key in self._trail[mark:]:
            del self._known[key]
        del self._trail[mark:]
        return result, written

    # --- values ---------------------------------------------------------------------------------------------------

    def start_statement(self, *expressions: ir.Expr) -> None:
        """Begin a statement over `expressions`: what the last one computed is no longer known."""
        self._known, self._trail = {}, []
        self.intervals.forget()
        counter = _Uses()
        for expr in expressions:
            counter.visit(expr)
        self._uses, self._in_order = counter.uses, counter.has_effect

    def value(self, expr: ir.Expr) -> Code:
        """The text that has the value of `expr` here and for the rest of the statement."""
        known = self._known.get(expr)
        if known is not None:
            return known
        code: Code = self._table[type(expr)](self, expr)
        if isinstance(expr, (ir.Var, ir.IntImm, ir.FloatImm, ir.StringImm)):
            return code
        is_plain = code.level == PRIMARY and code.isidentifier()
        if not is_plain and expr.dtype.kind not in ("void", "handle"):
            if self._in_order or code.is_long or self._uses.get(expr, 0) > 1:
                code = self.named("t", expr.dtype, code)
        self._known[expr] = code
        self._trail.append(expr)
        return code

    def index(self, expr: ir.Expr) -> Code:
        """The value of an index: its sums and products do not wrap around, unless data takes part."""
        return self._as_index(expr, not self._from_memory.visit(expr))

    def data(self, expr: ir.Expr) -> Code:
        """The value of what an index does not add up itself: it may wrap around."""
        return self._as_index(expr, False)

    def _as_index(self, expr: ir.Expr, in_index: bool) -> Code:
        outer, self.in_index = self.in_index, in_index
        code = self.value(expr)
        self.in_index = outer
        return code

    def operands(self, *expressions: ir.Expr) -> list[Code]:
        """Values, left to right."""
        return [self.value(expr) for expr in expressions]

    def cast(self, value: Code, source: DataType, target: DataType) -> Code:
        return emit_cast(self, value, source, target)

    def call_body(self, name: str, source: DataType, target: DataType, *values: Code) -> Code:
        """Call the function of `codegen/math` called `name`, which is written once a type."""
        return call(self.bodies(name, source, target, len(values)), *values)

    def visit_children(self, node: ir.Node) -> Any:
        raise InternalError(f"{type(node).__name__} reached code generation: a lowering pass did not run", at=node)

    def visit_Var(self, var: ir.Var) -> Code:
        result = self.values.get(var)
        if result is None:
            raise InternalError(f"variable {var.name} is used where it has no value")
        return result

    def visit_IntImm(self, imm: ir.IntImm) -> Code:
        return literal(imm.dtype, imm.value)

    def visit_FloatImm(self, imm: ir.FloatImm) -> Code:
        if imm.value != imm.value or imm.value in (float("inf"), float("-inf")):
            self.helpers.headers.add("math.h")
        return literal(imm.dtype, imm.value)

    def visit_StringImm(self, imm: ir.StringImm) -> Code:
        return Code(string_literal(imm.value))

    def visit_BinaryExpr(self, node: ir.BinaryExpr) -> Code:
        if node.dtype.is_int and not self._in_order:
            low, high = self.intervals.of(node)
            if low == high:
                return literal(node.dtype, low)
        # Below a remainder or a quotient anything may stand: a hash wraps around, and is a good index all the same.
        in_index = self.in_index and not isinstance(node, (ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod))
        a = self._as_index(node.a, in_index)
        b = self._as_index(node.b, in_index)
        return emit_binary(self, node, a, b)

    def visit_CompareExpr(self, node: ir.CompareExpr) -> Code:
        answer = None if self._in_order else decided(self.intervals, node)
        if answer is not None:
            return Code("true" if answer else "false")
        a = self.data(node.a)
        b = self.data(node.b)
        return emit_compare(self, node, a, b)

    def visit_And(self, node: ir.And) -> Code:
        return self._logic(node, "&&")

    def visit_Or(self, node: ir.Or) -> Code:
        return self._logic(node, "||")

    def _logic(self, node: ir.And | ir.Or, operator: str) -> Code:
        a = self.data(node.a)
        b, lines = self.captured(lambda: self.data(node.b))
        if not lines:
            text = f"{a.within(COMPARISON)} {operator} {b.within(COMPARISON)}"
            return Code(text, LOOSE, nested(a, b))
        name = self.names.fresh("t")
        self.line(f"bool {name} = {a};")
        self.line(f"if ({name}) {{" if operator == "&&" else f"if (!{name}) {{")
        self.lines += lines
        self.line(f"    {name} = {b};")
        self.line("}")
        return Code(name)

    def visit_Not(self, node: ir.Not) -> Code:
        return Code(f"!{self.data(node.a).within(PRIMARY)}", UNARY)

    def visit_Select(self, node: ir.Select) -> Code:
        return self._selected(node.condition, node.true_value, node.false_value)

    def _selected(self, condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> Code:
        """The value of one side, where computing both does no harm."""
        return choice(self.data(condition), self.value(then), self.value(otherwise))

    def choose(self, condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> Code:
        """The value of one side; only that side runs."""
        if self._is_free(then) and self._is_free(otherwise):
            return self._selected(condition, then, otherwise)
        test = self.data(condition)
        a, lines_a = self.captured(lambda: self.value(then))
        b, lines_b = self.captured(lambda: self.value(otherwise))
        if not lines_a and not lines_b:
            return choice(test, a, b)
        name = self.names.fresh("t")
        self.line(f"{value_type(then.dtype)} {name};")
        self.line(f"if ({test}) {{")
        self.lines += lines_a
        self.line(f"    {name} = {a};")
        self.line("} else {")
        self.lines += lines_b
        self.line(f"    {name} = {b};")
        self.line("}")
        self.line(f"(void){name};")  # taken out again when something reads it
        return Code(name)

    def _is_free(self, expr: ir.Expr) -> bool:
        """Whether `expr` may be computed here though it may not be needed; what is computed already may."""
        return expr in self._known or self._is_speculatable(expr)

    def visit_Cast(self, node: ir.Cast) -> Code:
        return self.cast(self.data(node.value), node.value.dtype, node.dtype)

    def visit_Let(self, node: ir.Let) -> Code:
        # A loop, since chains of lets (polynomials) are long.
        current: ir.Expr = node
        while isinstance(current, ir.Let):
            self.bind(current.var, current.value)
            current = current.body
        return self.value(current)

    def bind(self, var: ir.Var, value: ir.Expr) -> None:
        """Give `var` its value from here on."""
        code = self.data(value)
        self._from_memory.bind(var, value)
        if value.dtype.is_int:
            self.intervals.bind(var, self.intervals.of(value))
        if var in self.values:
            # It had another value before: what was computed from that one must not be found now.
            self._known, self._trail = {}, []
        if var.dtype.kind == "handle" or isinstance(value, (ir.IntImm, ir.FloatImm)) or code.isidentifier():
            self.values[var] = code
        else:
            self.values[var] = self.named(var.name, var.dtype, code)

    # --- memory ---------------------------------------------------------------------------------------------------

    def element(self, buffer: ir.Buffer, index: Code) -> Code:
        """buffer[index], as something that can be read, written and have its address taken."""
        pointer, text = self.visit_Var(buffer.data), memory_type(buffer.dtype)
        base = pointer.within(PRIMARY) if self.declared.get(buffer.data) == text else f"(({text} *){pointer})"
        return Code(f"{base}[{index}]", PRIMARY, index.depth + 1)

    def is_typed(self, buffer: ir.Buffer) -> bool:
        """Whether the memory is used as one type only, so that C may see it as an array of that type."""
        return buffer.data in self.pointees

    def only_index(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> ir.Expr:
        if len(indices) != 1 or buffer.dtype.lanes > 1:
            raise InternalError(f"buffer {buffer.name} is not flat and scalar: a lowering pass did not run")
        return indices[0]

    def visit_BufferLoad(self, load: ir.BufferLoad) -> Code:
        index = self.index(self.only_index(load.buffer, load.indices))
        if self.is_typed(load.buffer):
            code = self.element(load.buffer, index)
        else:
            code = call(self.helpers.load(memory_type(load.dtype)), self.visit_Var(load.buffer.data), index)
        if load.dtype.is_bool:
            return Code(f"{code} != 0", COMPARISON, code.depth)
        if load.dtype.bits < 8:  # any byte may stand there; the low bits count
            return call(self.helpers.wrap(load.dtype), code)
        return code

    def visit_Call(self, node: ir.Call) -> Code:
        raise InternalError("calls are written by the dialect", at=node)


class _Uses(Visitor):
    """How often each expression object of a statement is used, and whether the statement calls what has effects."""

    def __init__(self) -> None:
        self.uses: dict[ir.Expr, int] = {}
        self.has_effect = False

    def visit(self, node: ir.Node) -> None:
        if isinstance(node, ir.Expr):
            seen = self.uses.get(node, 0)
            self.uses[node] = seen + 1
            if seen:
                return
        super().visit(node)

    def visit_Call(self, node: ir.Call) -> None:
        if not (isinstance(node.op, ir.Op) and (node.op.is_pure or node.op.name in _HARMLESS)):
            self.has_effect = True
        self.visit_children(node)


_HARMLESS = frozenset({"tir.address_of", "tir.isnullptr", "tir.prefetch", "tir.assume", "tir.ret"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "?": "\\?"}


def string_literal(text: str) -> str:
    """`text` as a C string; what is not plain ASCII is written in octal, which never runs into the next letter."""
    letters = []
    for byte in text.encode("utf-8", "replace"):
        letter = chr(byte)
        letters.append(_ESCAPES.get(letter) or (letter if 32 <= byte < 127 else f"\\{byte:03o}"))
    return f'"{"".join(letters)}"'
