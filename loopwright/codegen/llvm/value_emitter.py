"""ValueEmitter: what arithmetic and conversions need to write instructions. `expressions.py` has the class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from loopwright.codegen.llvm.function_builder import FunctionBuilder
from loopwright.codegen.llvm.module_text import ModuleText
from loopwright.runtime.dtype import DataType
from loopwright.target import CpuDescription


class ValueEmitter(Protocol):
    """Writes into the function that `b` builds; the docstrings stand in the class."""

    module: ModuleText
    b: FunctionBuilder
    target: CpuDescription
    no_wrap: str
    body_of: str

    def is_soft_float(self, dtype: DataType) -> bool: ...

    def call_body(self, name: str, source: DataType, target: DataType, *values: str) -> str: ...

    def intrinsic(
        self, name: str, result: DataType, arguments: Sequence[tuple[DataType, str]], extra: str = ""
    ) -> str: ...
