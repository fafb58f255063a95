"""emit_module: a lowered IRModule as LLVM text: for each function its body and its checked entry."""

from __future__ import annotations

from loopwright import ir
from loopwright.codegen.llvm.abi import EntryEmitter, entry_signature
from loopwright.codegen.llvm.emitter import FunctionEmitter
from loopwright.codegen.llvm.expressions import body_types
from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.module_text import ModuleText
from loopwright.codegen.llvm.types import BODY_PREFIX, MATH_PREFIX, mangled, quoted, register_type, travels_as_bits
from loopwright.codegen.math import expand
from loopwright.ir.deep import deep
from loopwright.runtime.dtype import DataType
from loopwright.target import CpuDescription


@deep
def emit_module(module: ir.IRModule, cpu: CpuDescription) -> str:
    """The LLVM text of every function of a lowered module, for that CPU."""
    text = ModuleText(cpu.triple)
    writer = _ModuleEmitter(text, cpu)
    functions = with_symbols(module)
    text.functions = dict(functions.functions_items())
    for _, function in functions.functions_items():
        writer.emit_function(function)
    return text.text()


def with_symbols(module: ir.IRModule) -> ir.IRModule:
    """The module with every function under a symbol: its `global_symbol`, or its name in the module."""
    named = ir.IRModule(attrs=module.attrs)
    for name, function in module.functions_items():
        named[module.get_global_var(name)] = (
            function if "global_symbol" in function.attrs else function.with_attr("global_symbol", name)
        )
    return named


class _ModuleEmitter:
    def __init__(self, module: ModuleText, cpu: CpuDescription) -> None:
        self.module, self.cpu = module, cpu

    def emit_function(self, function: ir.PrimFunc) -> None:
        implicit = _implicit_variables(function)
        written = _written_pointers(function)
        self._emit_body(function, implicit)
        # Checks run once a call and are most of the text: optimizing them doubles the compile time and saves 15 ns.
        builder = FunctionBuilder(self.module, entry_signature(function.name), "nounwind noinline optnone ")
        EntryEmitter(self._emitter(builder), function, written).emit(implicit)
        self.module.define(builder.text())

    def _emitter(self, builder: FunctionBuilder) -> FunctionEmitter:
        return FunctionEmitter(self.module, builder, self.cpu, self._math_body)

    def _emit_body(self, function: ir.PrimFunc, implicit: list[ir.Var]) -> None:
        no_alias = " noalias" if function.attrs.get("tir.noalias", True) else ""
        values, parameters = {}, []
        for position, param in enumerate(function.params):
            buffer = function.buffer_map.get(param)
            var = param if buffer is None else buffer.data
            attributes = no_alias if buffer is not None else ""
            values[var] = f"%p{position}"
            parameters.append(f"{register_type(var.dtype)}{attributes} %p{position}")
        for position, var in enumerate(implicit):
            values[var] = f"%s{position}"
            parameters.append(f"{register_type(var.dtype)} %s{position}")
        signature = f"internal i32 @{quoted(BODY_PREFIX + function.name)}({', '.join([*parameters, 'ptr %result'])})"
        builder = FunctionBuilder(self.module, signature, "nounwind ")
        emitter = self._emitter(builder)
        emitter.values = values
        if no_alias:
            emitter.apart = {buffer.data for buffer in function.argument_buffers()}
        emitter.run(function.body)
        if builder.open:
            builder.ret("i32 0")
        self.module.define(builder.text())

    def _math_body(self, name: str, source: DataType, target: DataType, count: int) -> str:
        """The symbol of a mathematical function for these types; its body is written on first use."""
        symbol = f"{MATH_PREFIX}{name}.{_suffix(source)}.{_suffix(target)}"
        if self.module.is_defined(symbol):
            return symbol
        self.module.mark_defined(symbol)
        given, made = body_types(name, source, target)
        params = [ir.Var(f"x{position}", given) for position in range(count)]
        body = expand(name, params, source, target)
        types = ", ".join(f"{register_type(given)} %x{position}" for position in range(count))
        result = register_type(made)
        builder = FunctionBuilder(
            self.module, f"internal {result} @{symbol}({types})", "alwaysinline nounwind memory(none) "
        )
        emitter = self._emitter(builder)
        emitter.values = {param: f"%x{position}" for position, param in enumerate(params)}
        builder.ret(f"{result} {emitter.value(body)}")
        self.module.define(builder.text())
        return symbol


def written_arguments(function: ir.PrimFunc) -> list[int]:
    """The positions of the arguments that the function writes."""
    written = _written_pointers(function)
    return [
        position
        for position, param in enumerate(function.params)
        if param in function.buffer_map and function.buffer_map[param].data in written
    ]


def _suffix(dtype: DataType) -> str:
    return mangled(dtype) if not travels_as_bits(dtype) else str(dtype).replace("_", "")


def _implicit_variables(function: ir.PrimFunc) -> list[ir.Var]:
    """Shape, stride and offset variables that are no parameters: their values come from the tensors."""
    found: dict[ir.Var, None] = {}
    params = set(function.params)

    def look(node: ir.Node) -> None:
        if isinstance(node, ir.Var) and node not in params:
            found[node] = None

    for buffer in function.argument_buffers():
        for expr in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            ir.pre_order_visit(expr, look)
    return list(found)


def _written_pointers(function: ir.PrimFunc) -> set[ir.Var]:
    """The memory that the function stores to, or may store to through a call."""
    written: set[ir.Var] = set()

    def look(node: ir.Node) -> bool:
        if isinstance(node, ir.BufferStore):
            written.add(node.buffer.data)
        elif isinstance(node, ir.Call) and not (isinstance(node.op, ir.Op) and node.op.is_pure):
            if node.op.name == "tir.prefetch":
                return False  # takes an address, but writes nothing there
            for arg in node.args:
                ir.pre_order_visit(arg, escapes)
        return True

    def escapes(node: ir.Node) -> None:
        if isinstance(node, ir.Var) and node.dtype.kind == "handle":
            written.add(node)
        elif isinstance(node, ir.Buffer):
            written.add(node.data)

    ir.pre_order_visit(function.body, look)
    return written
