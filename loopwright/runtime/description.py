"""What a compiled module says about itself: its functions, their arguments, and the machine it was made for.

The description travels inside every object and library, as one line of JSON in a section of its own (`SECTION`), so a
library can be asked what it holds without running any of its code: `descriptions` of `library_file.py` reads it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Final

from loopwright.runtime.json_text import JsonObject, read_json

SECTION: Final = ".loopwright"  # of ELF objects; "__DATA,__loopwright" of Mach-O ones
UNPROVED: Final = "loopwright.unproved"  # the attribute of a function with a schedule step that was not proved
FORMAT: Final = 1  # of the description; grows when an older reader could not use a newer one


@dataclass(frozen=True)
class Argument:
    """One parameter. A tensor has a shape, its lengths as text (`"n"`, `"128"`); a scalar or pointer has none."""

    name: str
    dtype: str
    shape: tuple[str, ...] | None = None
    strides: tuple[str, ...] = ()  # empty: row-major without gaps
    is_written: bool = False

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor, also one without axes."""
        return self.shape is not None


@dataclass(frozen=True)
class FunctionDescription:
    """One function: how it is called from Python (`arguments`) and from C (`c_name`; `sizes` follow the arguments)."""

    name: str
    c_name: str
    arguments: tuple[Argument, ...]
    sizes: tuple[Argument, ...] = ()  # lengths and strides that the tensors carry, and a C caller passes
    result: str | None = None  # the type of the returned number


@dataclass(frozen=True)
class DeviceCode:
    """The kernels that a module launches."""

    target: str  # what they were made for
    images: str  # the symbol of the table of their images


@dataclass(frozen=True)
class ModuleDescription:
    """A compiled module."""

    functions: tuple[FunctionDescription, ...]
    entry: str | None = None
    target: str = ""
    triple: str = ""
    cpu: str = ""
    features: tuple[str, ...] = ()  # instructions that the code may use beyond the triple's common ground
    proved: bool = True  # whether every schedule step was proved to keep every value
    packed: tuple[str, ...] = ()  # functions that the code looks up in the registry
    version: str = ""  # of the Loopwright that made it
    is_model: bool = False  # whether its entry is a whole model: inputs, then outputs
    device: DeviceCode | None = None  # of a module whose functions launch kernels
    format: int = field(default=FORMAT)

    def to_json(self) -> str:
        """The description as one line."""
        return json.dumps(asdict(self), separators=(",", ":"), ensure_ascii=True)

    @staticmethod
    def from_json(text: str) -> ModuleDescription:
        """The description that a line of JSON holds; ValueError where it holds none."""
        data = read_json(text)
        if not isinstance(data, dict) or "functions" not in data:
            raise ValueError("no description of a module")
        try:
            return _module(data)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"a damaged description of a module: {error}") from error


def _module(data: JsonObject) -> ModuleDescription:
    functions = tuple(
        FunctionDescription(
            name=str(one["name"]),
            c_name=str(one["c_name"]),
            arguments=tuple(_argument(arg) for arg in one["arguments"]),
            sizes=tuple(_argument(arg) for arg in one.get("sizes", ())),
            result=one.get("result"),
        )
        for one in data["functions"]
    )
    return ModuleDescription(
        functions,
        data.get("entry"),
        str(data.get("target", "")),
        str(data.get("triple", "")),
        str(data.get("cpu", "")),
        tuple(data.get("features", ())),
        bool(data.get("proved", False)),
        tuple(data.get("packed", ())),
        str(data.get("version", "")),
        bool(data.get("is_model", False)),
        _device(data.get("device")),
        int(data.get("format", 0)),
    )


def _device(data: object) -> DeviceCode | None:
    return DeviceCode(str(data["target"]), str(data["images"])) if isinstance(data, dict) else None


def _argument(data: JsonObject) -> Argument:
    shape = data.get("shape")
    return Argument(
        str(data["name"]),
        str(data["dtype"]),
        None if shape is None else tuple(str(extent) for extent in shape),
        tuple(str(stride) for stride in data.get("strides", ())),
        bool(data.get("is_written", False)),
    )
