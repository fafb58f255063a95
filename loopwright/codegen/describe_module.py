"""describe_module: what a lowered module says about itself, for the section that travels with its code."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from loopwright import ir
from loopwright.analysis.written_memory import written_arguments
from loopwright.ir.annotations import LAUNCH_PARAMS
from loopwright.runtime.description import UNPROVED, Argument, FunctionDescription, ModuleDescription
from loopwright.runtime.dtype import DataType
from loopwright.target import CpuDescription

_OF_EVERY_LIBRARY = ("loopwright_last_error", "loopwright_set_error")  # functions that each one has beside its own
C_PREFIX = "loopwright_"  # of the functions a C program calls, apart from `lw_`, which is the runtime's


def describe_module(module: ir.IRModule, cpu: CpuDescription, entry_name: str | None = None) -> ModuleDescription:
    """The description of a lowered module compiled for `cpu`."""
    functions = [function for _, function in module.functions_items() if LAUNCH_PARAMS not in function.attrs]
    kernels = kernels_of(module)
    if entry_name is None and len(functions) == 1:
        entry_name = functions[0].name
    return ModuleDescription(
        functions=tuple(describe_function(function, kernels) for function in functions),
        entry=entry_name,
        target=str(cpu),
        triple=cpu.triple,
        cpu=cpu.name,
        features=tuple(sorted(cpu.features)),
        proved=not any(function.attrs.get(UNPROVED, False) for function in functions),
        packed=tuple(packed_names(module)),
        version=str(sys.modules["loopwright"].__version__),  # the package itself; a layer imports no facade
    )


def kernels_of(module: ir.IRModule) -> dict[str, ir.PrimFunc]:
    """The kernels that functions of the module launch, by the names that they call."""
    return {name: function for name, function in module.functions_items() if LAUNCH_PARAMS in function.attrs}


_NO_KERNELS: Mapping[str, ir.PrimFunc] = {}


def describe_function(function: ir.PrimFunc, kernels: Mapping[str, ir.PrimFunc] = _NO_KERNELS) -> FunctionDescription:
    """One function: its parameters, the sizes its tensors carry, and what it returns; it may launch the kernels."""
    written = set(written_arguments(function, kernels))
    arguments = []
    for position, param in enumerate(function.params):
        buffer = function.buffer_map.get(param)
        if buffer is None:
            arguments.append(Argument(param.name, str(param.dtype)))
        else:
            shape, strides = tuple(map(size_text, buffer.shape)), tuple(map(size_text, buffer.strides))
            arguments.append(Argument(buffer.name, str(buffer.dtype), shape, strides, position in written))
    sizes = [Argument(var.name, str(var.dtype)) for var in size_variables(function)]
    result = result_dtype(function)
    return FunctionDescription(
        function.name, c_name(function.name), tuple(arguments), tuple(sizes), None if result is None else str(result)
    )


def c_name(name: str) -> str:
    """The name of the plain C entry of function `name`."""
    result = C_PREFIX + re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{result}_" if result in _OF_EVERY_LIBRARY else result


def implicit_variables(function: ir.PrimFunc) -> list[ir.Var]:
    """Shape, stride and offset variables that are no parameters: their values come from the tensors."""
    result: dict[ir.Var, None] = {}
    params = set(function.params)

    def look(node: ir.Node) -> None:
        if isinstance(node, ir.Var) and node not in params:
            result[node] = None

    for buffer in function.argument_buffers():
        for expr in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            ir.pre_order_visit(expr, look)
    return list(result)


def size_variables(function: ir.PrimFunc) -> list[ir.Var]:
    """The implicit variables that a C caller passes: not offsets, since a pointer points to the first element."""
    offsets = {buffer.elem_offset for buffer in function.argument_buffers()}
    used: set[ir.Node] = set()
    for buffer in function.argument_buffers():
        for expr in (*buffer.shape, *buffer.strides):
            ir.pre_order_visit(expr, used.add)
    return [var for var in implicit_variables(function) if var in used or var not in offsets]


def result_dtype(function: ir.PrimFunc) -> DataType | None:
    """The type of what the function returns, or None."""
    return next(iter(result_dtypes(function)), None)


def result_dtypes(function: ir.PrimFunc) -> list[DataType]:
    """The types of all that the function may return, each once."""
    result: dict[DataType, None] = {}

    def look(node: ir.Node) -> None:
        if isinstance(node, ir.Call) and isinstance(node.op, ir.Op) and node.op.name == "tir.ret":
            result[node.dtype] = None

    ir.pre_order_visit(function.body, look)
    return list(result)


def packed_names(module: ir.IRModule) -> list[str]:
    """The registered functions that the code of `module` calls, each once."""
    result: dict[str, None] = {}

    def look(node: ir.Node) -> None:
        if isinstance(node, ir.Call) and isinstance(node.op, ir.Op) and node.op.name.endswith("call_packed"):
            name = node.args[0] if node.args else None
            if isinstance(name, ir.StringImm):
                result[name.value] = None

    for _, function in module.functions_items():
        ir.pre_order_visit(function.body, look)
    return list(result)


def size_text(extent: ir.Expr) -> str:
    """A length, stride or offset of a buffer as a reader writes it."""
    return str(extent.value) if isinstance(extent, ir.IntImm) else str(extent)
