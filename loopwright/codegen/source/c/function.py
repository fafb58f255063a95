"""CFunction: what a function in plain C does beside computing: report errors, hold memory, call others.

A function returns 0, or a code whose text the source's message function gives. Memory too large for the stack is
malloc's, and is freed on every way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from loopwright import ir
from loopwright.codegen.describe_module import result_dtypes, size_variables
from loopwright.codegen.source.c.errors import ErrorTable, ResultsDiffer
from loopwright.codegen.source.calls import emit_intrinsic
from loopwright.codegen.source.cells import cell, rows
from loopwright.codegen.source.code import PRIMARY, UNARY, Code, call, converted
from loopwright.codegen.source.expressions import Bodies
from loopwright.codegen.source.helpers import Helpers
from loopwright.codegen.source.names import LIBRARY, Names
from loopwright.codegen.source.statements import SourceStatements
from loopwright.codegen.source.types import literal, memory_type, value_type
from loopwright.ir.assertion_errors import error_of, shown
from loopwright.ir.tensor_copy_intrinsics import tensor_map_fields
from loopwright.runtime.dtype import INT64, DataType
from loopwright.runtime.errors import InternalError, NotBuilt

# Microcontrollers and threads have small stacks, and a stack overflow tells nobody.
STACK_LIMIT_BYTES = 4096
STACK_TOTAL_BYTES = 1 << 15  # of all buffers of one function together
_TENSOR_MAP_BYTES: Final = 256  # of `lw_tensor_map` in native/tensor_map.h
_TENSOR_MAP_ALIGNMENT: Final = 64


class Launch(NamedTuple):
    """A function outside the source that launches a kernel; it returns 0 if all went well."""

    symbol: str
    prototype: str


class CSymbols:
    """What the functions of one source share: prototypes of functions outside, constants, and each other."""

    def __init__(self, functions: Mapping[str, tuple[ir.PrimFunc, str]], names: Names) -> None:
        self.names = names  # of the file
        self.functions = functions  # by the name that calls use: the function and its name in C
        self.prototypes: dict[str, str] = {}
        self.launches: dict[str, Launch] = {}  # kernels that someone else launches, by the name that calls use
        self.errors = ErrorTable()
        self.has_local_arrays = False


class CFunction(SourceStatements):
    """Writes one function in C99."""

    def __init__(self, helpers: Helpers, names: Names, bodies: Bodies, symbols: CSymbols) -> None:
        super().__init__(helpers, names, bodies)
        self.symbols = symbols
        self.constants: list[str] = []
        self.writable: set[ir.Var] = set()  # constants whose address functions outside the program get
        self.result: DataType | None = None  # of `T.ret`, written through the pointer `result`
        self._held: list[str] = []  # live memory of malloc
        self._stack_bytes = 0

    def visit_Call(self, node: ir.Call) -> Code:
        outer, self.in_index = self.in_index, False
        code = self._call(node)
        self.in_index = outer
        return code

    def _call(self, node: ir.Call) -> Code:
        if isinstance(node.op, ir.GlobalVar):
            return self._call_function(node)
        name = node.op.name.removeprefix("tir.")
        if name == "tensor_map" and self.symbols.launches:
            return self._tensor_map(node)
        if name in ("call_extern", "call_pure_extern"):
            return self._call_extern(node)
        if name == "ret":
            return self._return(node)
        return emit_intrinsic(self, node, "c")

    # --- leaving --------------------------------------------------------------------------------------------------

    def leave(self, status: str) -> None:
        """Return `status`, freeing what is still held."""
        for name in reversed(self._held):
            self.line(f"free({name});")
        self.line(f"return {status};")

    def fail_if(self, condition: str, kind: str, message: str) -> None:
        """Leave with an error where `condition` holds."""
        code = self.symbols.errors.code(kind, message)
        self.line(f"if ({condition}) {{")
        self.indent += 1
        self.leave(f"{code}")
        self.indent -= 1
        self.line("}")

    def visit_AssertStmt(self, statement: ir.AssertStmt) -> None:
        kind, text, values = error_of(statement)
        self.start_statement(statement.condition)
        holds = self.value(statement.condition)
        # A code says which check failed; the numbers are known to the caller.
        self.fail_if(f"!{holds.within(PRIMARY)}", kind, shown(text, values))
        self.run(statement.body)

    def _return(self, node: ir.Call) -> Code:
        if self.result is not node.dtype:
            raise InternalError(f"a function that returns {self.result} returns {node.dtype}", at=node)
        self.line(f"*result = {self.value(node.args[0])};")
        self.leave("0")
        return Code("0")

    # --- memory ---------------------------------------------------------------------------------------------------

    def visit_Allocate(self, statement: ir.Allocate) -> None:
        var, text = statement.buffer_var, memory_type(statement.dtype)
        self.values[var] = Code(self.names.fresh(var.name))
        self.declared[var] = text
        count: int | None = 1
        for extent in statement.extents:
            count = count * max(extent.value, 0) if isinstance(extent, ir.IntImm) and count is not None else None
        if count is not None:
            known = count * statement.dtype.nbytes
            if known <= min(STACK_LIMIT_BYTES, STACK_TOTAL_BYTES - self._stack_bytes):
                self._stack_bytes += known
                self.symbols.has_local_arrays = True
                self.line(f"{text} {self.values[var]}[{max(count, 1)}];")
                self.line(f"(void)&{self.values[var]};")  # taken out again when something reads it
                self.run(statement.body)
                return
        self._on_the_heap(statement, text)

    def _on_the_heap(self, statement: ir.Allocate, text: str) -> None:
        var = statement.buffer_var
        name = self.values[var]
        self.start_statement(*statement.extents)
        count = self._count(statement.extents)
        self.line(f"{text} *const {name} = ({text} *){self.helpers.allocate()}({count}, sizeof *{name});")
        message = f"no memory for the intermediate buffer {var.name}"
        self.fail_if(f"{name} == NULL", "WorkspaceExhausted", message)
        self._held.append(name)
        self.run(statement.body)
        self._held.pop()
        self.line(f"free({name});")

    def _count(self, extents: tuple[ir.Expr, ...]) -> Code:
        """The number of elements; the product never wraps around."""
        factors, total, product = list(extents), 1, None
        while factors:
            factor = factors.pop()
            if isinstance(factor, ir.Mul):  # flat buffers have one extent, the product of what it was
                factors += [factor.a, factor.b]
            elif isinstance(factor, ir.IntImm):
                total *= max(factor.value, 0)
            else:
                value = self.index(factor)
                product = value if product is None else call(self.helpers.times(), product, value)
        if product is None:
            return literal(INT64, min(total, INT64.highest))
        return product if total == 1 else call(self.helpers.times(), product, literal(INT64, min(total, INT64.highest)))

    def visit_AllocateConst(self, statement: ir.AllocateConst) -> None:
        var, dtype = statement.buffer_var, statement.dtype.element
        text = memory_type(dtype)
        name = self.names.fresh(var.name)
        self.symbols.names.reserve(name)  # the constant stands before all functions
        values = np.ravel(np.asarray(statement.data, dtype=dtype.numpy()))
        cells = [cell(dtype, value) for value in values] or ["0"]
        if any(word in text for word in ("NAN", "INFINITY") for text in cells):
            self.helpers.headers.add("math.h")
        kind = "static" if var in self.writable else "static const"
        self.constants.append(f"{kind} {text} {name}[{len(cells)}] = {{\n{rows(cells)}\n}};")
        self.values[var], self.declared[var] = Code(name), text
        self.run(statement.body)

    # --- other functions ------------------------------------------------------------------------------------------

    def _call_extern(self, node: ir.Call) -> Code:
        symbol = node.args[0]
        if not isinstance(symbol, ir.StringImm):
            raise InternalError(f"{node.op.name}: the first argument is the name of the function", at=node)
        types, given = [], []
        for arg in node.args[1:]:
            is_text = isinstance(arg, ir.StringImm)
            types.append("const char *" if is_text else value_type(arg.dtype))
            value = self.value(arg)
            given.append(converted("void *", value) if arg.dtype.kind == "handle" and not is_text else value)
        if symbol.value not in LIBRARY:
            result = value_type(node.dtype)
            prototype = f"{result}{'' if result.endswith('*') else ' '}{symbol.value}({', '.join(types) or 'void'});"
            self.symbols.prototypes.setdefault(symbol.value, prototype)
        else:
            self.helpers.headers |= {"math.h", "stdio.h", "stdlib.h", "string.h"}
        code = call(symbol.value, *given)
        if node.op.name == "tir.call_pure_extern":
            return code
        return self.effect(node.dtype, code)

    def _tensor_map(self, node: ir.Call) -> Code:
        """The map of a tensor, which kernels that are launched here get: a structure that the emulation fills."""
        fields = tensor_map_fields(node)
        maps, sizes = self.names.fresh("tensor_map"), self.names.fresh("sizes")
        void = "void lw_emulated_tensor_map(void *, void *, const long long *, int, int, int);"
        self.symbols.prototypes.setdefault("lw_emulated_tensor_map", void)
        given = [*self.operands(*fields.shape, *fields.strides), *map(str, fields.box)]
        (data,) = self.operands(fields.pointer)
        self.line(f"unsigned char {maps}[{_TENSOR_MAP_BYTES}] __attribute__((aligned({_TENSOR_MAP_ALIGNMENT})));")
        self.line(f"const long long {sizes}[{3 * fields.rank}] = {{{', '.join(given)}}};")
        numbers = f"{fields.rank}, {fields.dtype.nbytes}, {fields.swizzle}"
        self.line(f"lw_emulated_tensor_map({maps}, (void *){data.within(UNARY)}, {sizes}, {numbers});")
        return Code(maps)

    def _launch(self, node: ir.Call, launch: Launch) -> Code:
        self.symbols.prototypes.setdefault(launch.symbol, launch.prototype)
        status = call(launch.symbol, *self.operands(*node.args))
        self.fail_if(f"{status} != 0", "KernelStopped", f"{node.op.name} failed")
        return Code("0")

    def _call_function(self, node: ir.Call) -> Code:
        launch = self.symbols.launches.get(node.op.name)
        if launch is not None:
            return self._launch(node, launch)
        found = self.symbols.functions.get(node.op.name)
        if found is None:
            raise InternalError(f"the call of {node.op.name} names no function of the module", at=node)
        function, symbol = found
        if size_variables(function):
            raise NotBuilt(
                f"calling {node.op.name}, whose buffers have symbolic shapes", "give its buffers constant shapes"
            )
        given = self.operands(*node.args)
        result = result_type(function)
        answer = None
        if result is not None:
            answer = self.names.fresh("answer")
            self.line(f"{value_type(result)} {answer} = 0;")
            given.append(Code(f"&{answer}", UNARY))
        status = self.names.fresh("status")
        self.line(f"const int32_t {status} = {call(symbol, *given)};")
        self.line(f"if ({status} != 0) {{")
        self.indent += 1
        self.leave(status)
        self.indent -= 1
        self.line("}")
        if answer is None or result is None or node.dtype.kind in ("void", "handle"):
            return Code("0")
        return self.cast(Code(answer), result, node.dtype)


def result_type(function: ir.PrimFunc) -> DataType | None:
    """What `T.ret` returns; None for a function that returns nothing."""
    result = result_dtypes(function)
    if len(result) > 1:
        raise ResultsDiffer(function.name, result)
    return result[0] if result else None
