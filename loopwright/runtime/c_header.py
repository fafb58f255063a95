"""The C header of a compiled module: what a C program needs to know to call it."""

from __future__ import annotations

import re
from typing import Final

from loopwright.runtime.description import Argument, FunctionDescription, ModuleDescription
from loopwright.runtime.dtype import DataType

_KEYWORDS: Final = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Bool bool "
    "result".split()
)


# Each line of the comment that is not its last one.
_ON_A_GPU: Final = """
 *
 * Arrays are memory of the CUDA device whose context is current in this thread (cuCtxSetCurrent, cudaSetDevice), or of
 * device 0 without one. Kernels are queued: they may still run when a function returns. */"""


def identifier(text: str) -> str:
    """The text as a name in C."""
    plain = re.sub(r"\W", "_", text, flags=re.ASCII)
    return plain if plain and not plain[0].isdigit() else f"_{plain}"


def c_header(description: ModuleDescription, name: str = "loopwright_module") -> str:
    """The text of the header; `name` makes its include guard."""
    guard = re.sub(r"\W", "_", name, flags=re.ASCII).upper() + "_H"
    parts = [
        f"/* Functions compiled by Loopwright {description.version} for {description.target or description.triple}.",
        " *",
        " * Each returns 0, or another number when it failed. Arrays are row-major without gaps unless strides are",
        " * given; one that is written must not overlap another. Pointers, element types and lengths are not checked;",
        " * a model checks that its dynamic dimensions fit together."
        + (_ON_A_GPU if description.device is not None else " */"),
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdbool.h>",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for function in description.functions:
        parts += [_comment(function), f"{_prototype(function)};", ""]
    if description.device is not None:
        parts += [
            "/* The stream that this thread launches kernels on; NULL, the default one, at first. */",
            "void loopwright_set_cuda_stream(void *stream);",
            "",
        ]
    parts += [
        "/* The text of the last error of this thread: in shared libraries, and in the C files of a .tar. */",
        "const char *loopwright_last_error(void);",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "#endif",
    ]
    return "\n".join(parts) + "\n"


def _comment(function: FunctionDescription) -> str:
    lines = []
    for argument in function.arguments:
        if argument.shape is None:
            continue
        shape = ", ".join(argument.shape) + "," * (len(argument.shape) == 1)
        strides = f", strides ({', '.join(argument.strides)})" if argument.strides else ""
        verb = "written" if argument.is_written else "read"
        lines.append(f"{argument.name}: {argument.dtype} ({shape}){strides}, {verb}")
    if function.result is not None:
        lines.append("*result: what the function returns; may be null")
    text = "".join(f"\n *   {line}" for line in lines)
    return _safe(f"/* {function.name}{text} */")


def _safe(comment: str) -> str:
    inner = comment[2:-2].replace("*/", "* /")
    return f"/*{inner}*/"


def _prototype(function: FunctionDescription) -> str:
    used: set[str] = set()
    parameters = []
    for argument in (*function.arguments, *function.sizes):
        name = _c_identifier(argument.name, used)
        parameters.append(_parameter(argument, name))
    if function.result is not None:
        kind = "double" if DataType(function.result).is_float else "int64_t"
        parameters.append(f"{kind} *result")
    return f"int32_t {function.c_name}({', '.join(parameters) or 'void'})"


def _parameter(argument: Argument, name: str) -> str:
    dtype = DataType(argument.dtype)
    if argument.is_tensor:
        return f"{'' if argument.is_written else 'const '}{element_type(dtype)} *{name}"
    if dtype.kind == "handle":
        return f"void *{name}"
    kind = "float" if dtype.is_float and dtype.bits < 32 else element_type(dtype)
    return f"{kind} {name}"


def element_type(dtype: DataType) -> str:
    """The C type of an element in memory; floats that C lacks are their bits."""
    if dtype.is_bool:
        return "bool"
    if dtype.is_float and dtype.bits in (32, 64) and dtype.kind == "float":
        return {32: "float", 64: "double"}[dtype.bits]
    unsigned = "u" if dtype.is_unsigned or dtype.is_float else ""
    return f"{unsigned}int{8 * dtype.nbytes}_t"


def _c_identifier(name: str, used: set[str]) -> str:
    text = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    if text[0].isdecimal() or text in _KEYWORDS:
        text = f"_{text}" if text[0].isdecimal() else f"{text}_"
    unique, count = text, 1
    while unique in used:
        unique, count = f"{text}_{count}", count + 1
    used.add(unique)
    return unique
