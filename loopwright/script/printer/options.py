"""The choices a caller has when a program is written as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Final

from loopwright.ir import Node
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.script.printer.paths import node_at


@dataclass(frozen=True)
class Options:
    """What `script()` accepts; text that parses back to the same program needs the defaults of the dtypes."""

    name: str | None = None  # of the function or of the module's class
    show_meta: bool = False
    ir_prefix: str = "I"
    tir_prefix: str = "T"
    relax_prefix: str = "R"  # of graphs that are not built here: for scripts that set all prefixes
    module_alias: str = ""  # what functions call their module; the name of its class
    buffer_dtype: str = "float32"  # left out in declarations of buffers
    int_dtype: str = "int32"  # integer literals of this type are bare
    float_dtype: str = "void"  # float literals of this type are bare
    verbose_expr: bool = False  # also declare the free variables of an expression
    indent_spaces: int = 4
    print_line_numbers: bool = False
    num_context_lines: int = -1  # around what is underlined; negative: everything
    syntax_sugar: bool = True
    show_object_address: bool = False  # after each name, where the object is
    obj_to_underline: Sequence[Node] = ()
    obj_to_annotate: Mapping[Node, str] | None = None
    max_lines: int | None = None  # stop there: an excerpt for an error message

    def __post_init__(self) -> None:
        for name in ("buffer_dtype", "int_dtype", "float_dtype"):
            object.__setattr__(self, name, DataType(getattr(self, name)))


class UnknownOption(LoopwrightError, TypeError):
    """`script()` or `show()` was given an option it does not have.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(n: T.int32):\\n    T.evaluate(n)").script(indent=2)
    """

    code = "LW0327"

    def __init__(self, name: str) -> None:
        near = get_close_matches(name, OPTION_NAMES, 1)
        super().__init__(
            f"script() has no option {name!r}",
            hint=f"did you mean {near[0]!r}?" if near else f"its options are {', '.join(OPTION_NAMES)}",
            fields={"name": name, "candidates": near},
        )


OPTION_NAMES: Final = [
    *[field.name for field in fields(Options) if field.name != "max_lines"],
    "path_to_underline",
    "path_to_annotate",
]


def make_options(root: object, given: Mapping[str, Any]) -> Options:
    """Options from the keywords of `script()`; paths are resolved to parts of `root`."""
    chosen = {key: value for key, value in given.items() if value is not None}
    for name in chosen:
        if name not in OPTION_NAMES:
            raise UnknownOption(name)
    underlined = [node_at(root, path) for path in chosen.pop("path_to_underline", ())]
    comments = {node_at(root, path): text for path, text in chosen.pop("path_to_annotate", {}).items()}
    if underlined:
        chosen["obj_to_underline"] = [*chosen.get("obj_to_underline", ()), *underlined]
    if comments:
        chosen["obj_to_annotate"] = {**chosen.get("obj_to_annotate", {}), **comments}
    return Options(**chosen)
