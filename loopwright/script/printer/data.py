"""Plain values as text: annotations, attributes, the subjects of `T.attr`.

A number is a literal of the program; one of another type than int32 and bool shows its type: `{"a": 1}` and
`{"a": T.int64(1)}`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import numpy as np

from loopwright.ir import IntImm, Node, StringImm
from loopwright.runtime.dtype import INT32, DataType
from loopwright.script.printer.expressions import ExpressionPrinter
from loopwright.script.printer.literals import number_text, quote
from loopwright.script.printer.options import Options
from loopwright.target import Target

METADATA_HINT: Final = "# Metadata omitted. Use show_meta=True in script() method to show it."


class DataPrinter(ExpressionPrinter):
    """Write plain values; those without a Python spelling go to the metadata."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.metadata: dict[str, list[object]] = {}

    def data_text(self, value: object) -> str:
        """`value` as Python text."""
        if isinstance(value, Node):
            if isinstance(value, IntImm):
                if value.dtype.is_bool:
                    return str(bool(value))
                return str(value.value) if value.dtype is INT32 else f"{self.prefix}.{value.dtype}({value.value})"
            if isinstance(value, StringImm):
                return f"{self.prefix}.StringImm({quote(value.value)})"
            return self.text(value)
        if value is None or isinstance(value, bool):
            return repr(value)
        if isinstance(value, str):
            return quote(value)
        if isinstance(value, Enum):
            return self.data_text(value.value)
        if isinstance(value, (int, np.integer)):
            return str(int(value))
        if isinstance(value, (float, np.floating)):
            return python_float(float(value))
        if isinstance(value, bytes):
            return repr(value)
        if isinstance(value, Mapping):
            return self.mapping_text(value)
        if isinstance(value, list):
            return f"[{', '.join([self.data_text(item) for item in value])}]"
        if isinstance(value, tuple):
            items = [self.data_text(item) for item in value]
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
        if isinstance(value, Target):
            return f"{self.prefix}.target({self.mapping_text(value.export())})"
        kind = type(value).__name__
        kept = self.metadata.setdefault(kind, [])
        kept.append(value)
        return f"metadata[{quote(kind)}][{len(kept) - 1}]"

    def mapping_text(self, values: Mapping[Any, object]) -> str:
        """A dict display, text keys in order."""
        keys = list(values)
        if all(isinstance(key, str) for key in keys):
            keys = sorted(keys)
        return "{" + ", ".join([f"{self.data_text(key)}: {self.data_text(values[key])}" for key in keys]) + "}"

    def array_text(self, values: np.ndarray) -> str:
        """The elements of a constant array as a list display, in row-major order."""
        flat = values.reshape(-1)
        if flat.dtype.kind in "biu":
            return f"[{', '.join(map(str, flat.tolist()))}]"
        dtype = DataType(flat.dtype)
        texts = [number_text(float(item), dtype) or python_float(float(item)) for item in flat]
        return f"[{', '.join(texts)}]"

    def metadata_lines(self) -> list[str]:
        """What to say about the values that have no spelling."""
        if not self.metadata:
            return []
        if not self.options.show_meta:
            return ["", METADATA_HINT]
        lines = ["", "# metadata:"]
        for kind, values in self.metadata.items():
            for k, value in enumerate(values):
                lines += [f"#   [{quote(kind)}][{k}] = {line}" for line in repr(value).splitlines()]
        return lines


def python_float(value: float) -> str:
    """A Python float, infinities and NaN included."""
    return repr(value) if math.isfinite(value) else f'float("{value!r}")'
