"""c_example: a C program that calls a compiled model, to begin from."""

from __future__ import annotations

from loopwright.runtime.c_header import element_type
from loopwright.runtime.description import Argument, ModuleDescription
from loopwright.runtime.dtype import DataType


def c_example(description: ModuleDescription, name: str, file: str = "main.c") -> str:
    """The text of a C program, to be called `file`, for the one function of `description`, whose header is `name`.h.

    Sizes that a call decides are 1 in it; inputs are zeros.
    """
    function = description.functions[0]
    sizes = [size.name for size in function.sizes]
    lines = [
        f"/* Runs {name} once: cc {file} {name}.so -Wl,-rpath,. -o {name} && ./{name} */",
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "",
        f'#include "{name}.h"',
        "",
        "int main(void) {",
    ]
    lines += [f"  int64_t {size} = 1;  /* open in the model: set it to what you have */" for size in sizes]
    given = []
    for number, argument in enumerate(function.arguments):
        kind = element_type(DataType(argument.dtype))
        count = " * ".join(f"(size_t)({extent})" for extent in argument.shape or ()) or "1"
        verb = "written" if argument.is_written else "read"
        lines.append(f"  {kind}* a{number} = calloc({count}, sizeof({kind})); /* {_comment(argument)}, {verb} */")
        given.append(f"a{number}")
    call = ", ".join([*given, *sizes])
    lines += [
        f"  int32_t status = {function.c_name}({call});",
        "  if (status != 0) {",
        '    fprintf(stderr, "%s\\n", loopwright_last_error());',
        "    return 1;",
        "  }",
    ]
    for number, argument in enumerate(function.arguments):
        if argument.is_written:
            lines.append(f'  printf("{_plain(argument.name)}[0] = %g\\n", (double)a{number}[0]);')
    lines += [f"  free({name});" for name in given]
    return "\n".join([*lines, "  return 0;", "}"]) + "\n"


def _comment(argument: Argument) -> str:
    shape = ", ".join(argument.shape or ())
    return _plain(f"{argument.name}: {argument.dtype}[{shape}]").replace("*/", "* /")


def _plain(text: str) -> str:
    """The text as it may stand in a format of printf and in a comment."""
    return "".join(x if x.isascii() and x.isprintable() and x not in '%"\\' else "_" for x in text)
