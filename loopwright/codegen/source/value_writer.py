"""ValueWriter: what arithmetic and conversions need to write values. `expressions.py` has the class."""

from __future__ import annotations

from typing import Protocol

from loopwright.codegen.source.code import Code
from loopwright.codegen.source.helpers import Helpers
from loopwright.codegen.source.intervals import Intervals
from loopwright.runtime.dtype import DataType


class ValueWriter(Protocol):
    """Writes values of one function; the docstrings stand in the class."""

    helpers: Helpers
    intervals: Intervals
    in_index: bool
    body_of: str

    def call_body(self, name: str, source: DataType, target: DataType, *values: Code) -> Code: ...
