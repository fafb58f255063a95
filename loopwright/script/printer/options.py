"""The choices a caller has when a program is written as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopwright.ir import Node
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import NotBuilt


@dataclass(frozen=True)
class Options:
    """What `script()` accepts; text that parses back to the same program needs the defaults of the dtypes."""

    name: str | None = None  # of the function or of the module's class
    show_meta: bool = False
    ir_prefix: str = "I"
    tir_prefix: str = "T"
    buffer_dtype: str = "float32"  # left out in declarations of buffers
    int_dtype: str = "int32"  # integer literals of this type are bare
    float_dtype: str = "void"  # float literals of this type are bare
    verbose_expr: bool = False  # also declare the free variables of an expression
    indent_spaces: int = 4
    print_line_numbers: bool = False
    num_context_lines: int = -1  # around what is underlined; negative: everything
    syntax_sugar: bool = True
    obj_to_underline: Sequence[Node] = ()
    obj_to_annotate: Mapping[Node, str] | None = None
    max_lines: int | None = None  # stop there: an excerpt for an error message

    def __post_init__(self) -> None:
        for name in ("buffer_dtype", "int_dtype", "float_dtype"):
            object.__setattr__(self, name, DataType(getattr(self, name)))


def make_options(given: Mapping[str, object]) -> Options:
    """Options from the keywords of `script()`."""
    chosen = {key: value for key, value in given.items() if value is not None}
    for key in ("path_to_underline", "path_to_annotate"):
        if chosen.pop(key, None):
            instead = key.replace("path_to", "obj_to")
            raise NotBuilt(f"script({key}=...)", hint=f"pass the node itself: {instead}=...")
    return Options(**chosen)  # type: ignore[arg-type]
