"""A function of the IR written as hybrid script: for reading, for running in Python, for reading back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopwright import ir
from loopwright.ir import (
    Add,
    Allocate,
    AssertStmt,
    AttrStmt,
    BinaryExpr,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    DeclBuffer,
    Div,
    Evaluate,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    LetStmt,
    Mul,
    PrimFunc,
    Select,
    SeqStmt,
    Stmt,
    StringImm,
    Sub,
    Var,
)
from loopwright.runtime.errors import NotBuilt
from loopwright.te.function_in_making import Names, identifier
from loopwright.te.hybrid.emulation import MATH, WORDS
from loopwright.transform import lower as lower_module

_OPERATORS: Final = {
    Add: "+",
    Sub: "-",
    Mul: "*",
    Div: "/",
    FloorDiv: "//",
    FloorMod: "%",
    ir.LT: "<",
    ir.LE: "<=",
    ir.GT: ">",
    ir.GE: ">=",
    ir.EQ: "==",
    ir.NE: "!=",
    ir.And: "and",
    ir.Or: "or",
}
_LOOPS: Final = {
    ForKind.SERIAL: "range",
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorize",
    ForKind.UNROLLED: "unroll",
}
_BITWISE: Final = {
    "shift_left": "<<",
    "shift_right": ">>",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}


def dump(function: PrimFunc, outputs: Sequence[Buffer], name: str) -> str:
    """`function` as a hybrid function: it takes the other parameters, and returns `outputs`."""
    (stated,) = lower_module(function, stop_after="lower_blocks").functions.values()
    return _Dump(stated, outputs, name).text()


class _Dump:
    def __init__(self, function: PrimFunc, outputs: Sequence[Buffer], name: str) -> None:
        self.function, self.outputs, self.name = function, outputs, name
        self.names = Names([*WORDS, "min", "max", "abs", "len", "range", name])
        self.variables: dict[Var, str] = {}
        self.buffers: dict[Var, str] = {}
        self.shapes: dict[Var, tuple[Expr, ...]] = {}
        self.lines: list[str] = []

    def text(self) -> str:
        used = []
        sizes: list[tuple[Expr, str]] = []
        for param in self.function.params:
            buffer = self.function.buffer_map.get(param)
            if buffer is None:
                self.variables[param] = self.names.fresh(identifier(param.name))
                used.append(self.variables[param])
                continue
            called = self.buffers[buffer.data] = self.names.fresh(identifier(buffer.name))
            if buffer not in self.outputs:
                used.append(called)
                sizes += [(size, f"{called}.shape[{k}]") for k, size in enumerate(buffer.shape)]
        for size, text in sizes:
            if isinstance(size, Var):
                self.variables.setdefault(size, text)
        for buffer in self.outputs:
            shape = self._shape(buffer.shape)
            self.lines.append(f'    {self.buffers[buffer.data]} = output_tensor({shape}, "{buffer.dtype}")')
        self.statement(self.function.body, 1)
        returned = ", ".join([self.buffers[buffer.data] for buffer in self.outputs])
        return "\n".join([f"def {self.name}({', '.join(used)}):", *self.lines, f"    return {returned}", ""])

    # --- statements -----------------------------------------------------------------------------------------------

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statement(self, stmt: Stmt, depth: int) -> None:
        if isinstance(stmt, SeqStmt):
            for part in stmt.seq:
                self.statement(part, depth)
        elif isinstance(stmt, For):
            self._loop(stmt, depth)
        elif isinstance(stmt, BufferStore):
            self.line(depth, f"{self._element(stmt.buffer, stmt.indices)} = {self.value(stmt.value)}")
        elif isinstance(stmt, IfThenElse):
            self.line(depth, f"if {self.value(stmt.condition)}:")
            self._body(stmt.then_case, depth + 1)
            if stmt.else_case is not None:
                self.line(depth, "else:")
                self._body(stmt.else_case, depth + 1)
        elif isinstance(stmt, Allocate):
            called = self.buffers[stmt.buffer_var] = self.names.fresh(identifier(stmt.buffer_var.name))
            scope = getattr(stmt.buffer_var.type_annotation, "storage_scope", "") or "global"
            self.line(depth, f'{called} = allocate({self._shape(stmt.extents)}, "{stmt.dtype}", "{scope}")')
            self.statement(stmt.body, depth)
        elif isinstance(stmt, (DeclBuffer, AttrStmt)):
            self.statement(stmt.body, depth)
        elif isinstance(stmt, AssertStmt):
            message = stmt.message.value if isinstance(stmt.message, StringImm) else "an assertion failed"
            self.line(depth, f"assert {self.value(stmt.condition)}, {message!r}")
            self.statement(stmt.body, depth)
        elif isinstance(stmt, LetStmt):
            # A name for a value of the iteration: memory of one element, which keeps the value as it was.
            called = self.names.fresh(identifier(stmt.var.name))
            self.line(depth, f'{called} = allocate((1,), "{stmt.var.dtype}", "local")')
            self.line(depth, f"{called}[0] = {self.value(stmt.value)}")
            self.variables[stmt.var] = f"{called}[0]"
            self.statement(stmt.body, depth)
        elif not (isinstance(stmt, Evaluate) and isinstance(stmt.value, IntImm)):
            raise NotBuilt(f"writing {type(stmt).__name__} as hybrid script", "print it with .script() instead")

    def _body(self, stmt: Stmt, depth: int) -> None:
        before = len(self.lines)
        self.statement(stmt, depth)
        if len(self.lines) == before:
            self.line(depth, "pass")

    def _loop(self, loop: For, depth: int) -> None:
        called = self.variables[loop.loop_var] = self.names.fresh(identifier(loop.loop_var.name))
        if loop.kind is ForKind.THREAD_BINDING and loop.thread_binding is not None:
            head = f'bind("{loop.thread_binding.thread_tag}", {self.value(loop.extent)})'
        else:
            zero = isinstance(loop.min, IntImm) and loop.min.value == 0
            low = "" if zero else f"{self.value(loop.min)}, "
            head = f"{_LOOPS[loop.kind]}({low}{self.value(loop.min + loop.extent)})"
        self.line(depth, f"for {called} in {head}:")
        self._body(loop.body, depth + 1)

    # --- expressions ----------------------------------------------------------------------------------------------

    def _shape(self, shape: Sequence[Expr]) -> str:
        return f"({', '.join([self.value(size) for size in shape])}{',' * (len(shape) == 1)})"

    def _element(self, buffer: Buffer, indices: Sequence[Expr]) -> str:
        called = self.buffers.get(buffer.data)
        if called is None or buffer.strides:
            raise NotBuilt(f"writing buffer {buffer.name} as hybrid script", "it has strides, or memory without a name")
        return f"{called}[{', '.join([self.value(index) for index in indices]) or '()'}]"

    def value(self, expr: Expr) -> str:
        if isinstance(expr, Var):
            if expr not in self.variables:
                raise NotBuilt(f"writing the symbol {expr.name} as hybrid script", "make it a parameter")
            return self.variables[expr]
        if isinstance(expr, (IntImm, FloatImm)):
            return self._literal(expr)
        if isinstance(expr, BufferLoad):
            return self._element(expr.buffer, expr.indices)
        if isinstance(expr, (ir.Min, ir.Max)):
            return f"{type(expr).__name__.lower()}({self.value(expr.a)}, {self.value(expr.b)})"
        if isinstance(expr, BinaryExpr) and type(expr) in _OPERATORS:
            whole = isinstance(expr, Div) and not expr.dtype.is_float
            if not whole:
                return f"({self.value(expr.a)} {_OPERATORS[type(expr)]} {self.value(expr.b)})"
        if isinstance(expr, ir.Not):
            return f"(not {self.value(expr.a)})"
        if isinstance(expr, Cast) and str(expr.dtype) in WORDS:
            return f"{expr.dtype}({self.value(expr.value)})"
        if isinstance(expr, Select):
            return self._choice(expr.condition, expr.true_value, expr.false_value)
        if isinstance(expr, Call):
            return self._call(expr)
        raise NotBuilt(f"writing {type(expr).__name__} of {expr.dtype} as hybrid script", "print it with .script()")

    def _choice(self, condition: Expr, true: Expr, false: Expr) -> str:
        return f"({self.value(true)} if {self.value(condition)} else {self.value(false)})"

    def _call(self, call: Call) -> str:
        name = call.op.name.removeprefix("tir.")
        if name == "if_then_else":
            return self._choice(*call.args)
        if name in _BITWISE:
            return f"({self.value(call.args[0])} {_BITWISE[name]} {self.value(call.args[1])})"
        word = "power" if name == "pow" else name
        if word in MATH or word in ("likely", "abs"):
            return f"{word}({', '.join([self.value(arg) for arg in call.args])})"
        raise NotBuilt(f"writing a call of {call.op.name} as hybrid script", "print it with .script()")

    def _literal(self, literal: IntImm | FloatImm) -> str:
        if literal.dtype.is_bool:
            return str(bool(literal.value))
        plain = str(literal.dtype) in ("int32", "float32")
        if isinstance(literal, FloatImm) and literal.value in (float("inf"), float("-inf")):
            return f'{"" if literal.value > 0 else "n"}inf("{literal.dtype}")'
        return repr(literal.value) if plain else f"{literal.dtype}({literal.value!r})"
