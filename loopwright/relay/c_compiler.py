"""c_compiler: the compiler "ccompiler": element-wise sums, differences and products as plain C.

    fn (%a, %b, Compiler="ccompiler", global_symbol="part_0") { multiply(add(%a, %b), %b) }

It is an example of a compiler of one's own (docs/byoc.md), and what scripts use to try partitioning. Shapes are fixed,
operands have the shape of the result or are broadcast to it; constants are written into the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from loopwright.relay.errors import CannotCompile
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple, Var
from loopwright.relay.types import TensorType
from loopwright.relay.visitor import post_order
from loopwright.runtime.c_source import CSourceModule, CSourceModuleCreate

_SYMBOLS = {"add": "+", "subtract": "-", "multiply": "*"}
_C_TYPES = {
    **{f"int{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    "float32": "float",
    "float64": "double",
}


def compile_function(function: Function) -> CSourceModule:
    """The C of a function, as a module that has it under its global_symbol."""
    symbol = str(function.attrs["global_symbol"])
    return CSourceModuleCreate(_Source(function, symbol).text(), "c", [symbol])


class _Source:
    def __init__(self, function: Function, symbol: str) -> None:
        self.function = function
        self.symbol = symbol
        self.data: list[str] = []
        self.lines: list[str] = []
        self.names: dict[Expr, str] = {}

    def text(self) -> str:
        body = self.function.body
        results = list(body.fields) if isinstance(body, Tuple) else [body]
        for k, param in enumerate(self.function.params):
            self.names[param] = f"in{k}"
            self.lines.append(self._argument(param, f"in{k}", k, "const "))
        for each in post_order(body):
            self._write(each, each in results)
        for k, result in enumerate(results):
            kind, size = _kind(result), prod(_shape(result))
            self.lines.append(self._argument(result, f"out{k}", len(self.function.params) + k))
            self.lines.append(f"  memcpy(out{k}, {self.names[result]}, {size} * sizeof({kind}));")
        head = "#include <stdint.h>\n#include <string.h>\n#include <tvm/runtime/c_runtime_api.h>\n\n"
        signature = "TVMValue* args, int* type_codes, int num_args, TVMValue* result, int* result_code"
        lines = "\n".join(self.lines)
        count = len(self.function.params) + len(results)
        return (
            f'{head}{"".join(self.data)}#ifdef __cplusplus\nextern "C"\n#endif\n'
            f"TVM_DLL int32_t {self.symbol}({signature}) {{\n  if (num_args != {count}) return -1;\n{lines}\n"
            "  return 0;\n}\n"
        )

    def _argument(self, of: Expr, name: str, position: int, const: str = "") -> str:
        kind = f"{const}{_kind(of)}*"
        tensor = f"((DLTensor*)args[{position}].v_handle)"
        return f"  {kind} {name} = ({kind})((char*){tensor}->data + {tensor}->byte_offset);"

    def _write(self, each: Expr, is_result: bool) -> None:
        if isinstance(each, Var) or (isinstance(each, Tuple) and each is self.function.body):
            return
        if isinstance(each, Constant):
            name = self.names[each] = f"{self.symbol}_const_{len(self.data)}"
            self.data.append(f"static const {_kind(each)} {name}[] = {{{_numbers(each.data)}}};\n")
            return
        operator = _SYMBOLS.get(getattr(each.op, "name", "")) if isinstance(each, Call) else None
        if operator is None or not isinstance(each, Call):
            if getattr(each, "name", None) in _SYMBOLS:
                return  # an operator itself, which a walk passes on its way
            what = getattr(getattr(each, "op", each), "name", type(each).__name__)
            raise CannotCompile(f"ccompiler computes {', '.join(_SYMBOLS)}, and not {what}")
        shape, name = _shape(each), f"t{len(self.names)}"
        self.names[each] = name
        left, right = (self._element(arg, shape) for arg in each.args)
        loops = "".join(f"for (int64_t i{k} = 0; i{k} < {size}; ++i{k}) " for k, size in enumerate(shape))
        self.lines.append(f"  static _Thread_local {_kind(each)} {name}[{max(1, prod(shape))}];")
        self.lines.append(f"  {loops}{name}{_index(shape, shape)} = {left} {operator} {right};")

    def _element(self, arg: Expr, shape: Sequence[int]) -> str:
        return f"{self.names[arg]}{_index(_shape(arg), shape)}"


def _index(own: Sequence[int], shape: Sequence[int]) -> str:
    """The place in an array of shape `own` for the element i0, i1, … of a result of `shape`."""
    terms, step = [], 1
    for k in range(len(own) - 1, -1, -1):
        if own[k] != 1:
            terms.append(f"i{len(shape) - len(own) + k} * {step}")
        step *= own[k]
    return f"[{' + '.join(reversed(terms)) or '0'}]"


def _shape(of: Expr) -> tuple[int, ...]:
    result = of.checked_type
    sizes = list(result.shape) if isinstance(result, TensorType) else [None]
    fixed = [size for size in sizes if isinstance(size, int)]
    if len(fixed) != len(sizes):
        raise CannotCompile(f"ccompiler takes tensors of fixed sizes, and not {result}")
    return tuple(fixed)


def _kind(of: Expr) -> str:
    dtype = str(getattr(of.checked_type, "dtype", ""))
    if dtype not in _C_TYPES:
        raise CannotCompile(f"ccompiler takes {', '.join(_C_TYPES)}, and not {of.checked_type}")
    return _C_TYPES[dtype]


def _numbers(array: np.ndarray) -> str:
    if array.dtype.kind == "f":
        return ", ".join(_real(float(value)) for value in array.reshape(-1))
    ending = "u" if array.dtype.kind == "u" else ""
    ending += "ll" if array.dtype.itemsize == 8 else ""
    return ", ".join(f"{int(value)}{ending}" for value in array.reshape(-1))


def _real(value: float) -> str:
    if value != value:
        return "__builtin_nan(\"\")"
    if value in (float("inf"), float("-inf")):
        return f"{'-' if value < 0 else ''}__builtin_inf()"
    return value.hex()
