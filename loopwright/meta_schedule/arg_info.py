"""ArgInfo: what a function takes, as records write it: ["TENSOR", "float32", [128, 128]]."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from loopwright.ir import IntImm, IRModule, PrimFunc
from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import UnreadableData
from loopwright.runtime.dtype import DataType


class ArgInfo(Part):
    """One argument of a function."""

    def as_json(self) -> Any:
        raise NotImplementedError

    @staticmethod
    def from_json(data: Any) -> ArgInfo:
        """What `as_json` made."""
        if isinstance(data, str):
            data = json.loads(data)
        kind, *rest = data
        if str(kind) != "TENSOR" or len(rest) != 2:
            raise UnreadableData(f"the argument {data!r:.80}", "it is of another form", 'give ["TENSOR", dtype, shape]')
        return TensorInfo(*rest)

    @staticmethod
    def from_prim_func(func: PrimFunc) -> list[ArgInfo]:
        """The arguments of a function, in order."""
        buffers = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
        return [TensorInfo(buffer.dtype, list(buffer.shape)) for buffer in buffers]

    @staticmethod
    def from_entry_func(mod: IRModule, remove_preproc: bool = True) -> list[ArgInfo]:
        """The arguments of the function that a module is called by; `remove_preproc`: as it is called."""
        return ArgInfo.from_prim_func(entry_func(mod))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.as_json() == other.as_json()

    def __hash__(self) -> int:
        return hash(str(self.as_json()))


class TensorInfo(ArgInfo):
    """A tensor."""

    def __init__(self, dtype: str | DataType, shape: Sequence[object]) -> None:
        self.dtype = DataType(str(dtype))
        self.shape = [_size(size) for size in shape]

    def as_json(self) -> list[Any]:
        return ["TENSOR", str(self.dtype), list(self.shape)]

    def __str__(self) -> str:
        return f'TensorInfo("{self.dtype}", {self.shape})'


def entry_func(mod: IRModule) -> PrimFunc:
    """The function of a module that is called: the only one, the one marked as entry, or `main`."""
    functions = [(name, one) for name, one in mod.functions_items() if isinstance(one, PrimFunc)]
    if len(functions) == 1:
        return functions[0][1]
    marked = [one for _, one in functions if one.attrs.get("tir.is_entry_func")]
    named = [one for name, one in functions if name == "main"]
    if len(marked) == 1 or named:
        return (marked or named)[0]
    raise ValueError(f"it is not clear which function is called: there are {[name for name, _ in functions]}")


def _size(size: object) -> int | str:
    if isinstance(size, IntImm):
        return size.value
    return int(size) if isinstance(size, int) else str(size)
