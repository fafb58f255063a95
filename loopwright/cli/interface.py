"""interface: how a compiled model is called: its inputs and outputs with names, types and shapes, as plain data.

A package carries it as JSON (`package.py`), so that a model can be run without its source and without the compiler.
Sizes that a call decides are texts: `"batch"`, `"batch * 2"`. Some outputs have sizes that only the run finds (how many
elements are not zero, say): the native function gets room for the most, and writes the sizes it found into outputs of
their own, behind the others.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from loopwright.runtime.description import ModuleDescription
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.json_text import JsonObject

if TYPE_CHECKING:
    from loopwright.ir import Var
    from loopwright.model import Program

Shape = tuple[int | str, ...]


class BadModelArrays(LoopwrightError, ValueError):
    """The arrays that a model is to be run with are not those it takes: a name, a type or a shape is wrong.

    For example:

        import numpy as np
        from loopwright.cli.interface import Interface, Port

        Interface("net", (Port("x", "float32", (1, 3)),), ()).check({"x": np.zeros((1, 4), "float32")})
    """

    code = "LW0049"

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem, hint=hint)


class NoModelInside(LoopwrightError, ValueError):
    """A package or library holds no model that can be called: nothing in it, or several functions.

    For example:

        from loopwright.cli.interface import of_description
        from loopwright.runtime.description import ModuleDescription

        of_description(ModuleDescription(()), "kernels.so")
    """

    code = "LW0050"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{path} holds no model that can be run",
            why=why,
            hint="`loopwright compile MODEL -o model.tar` makes one",
            fields={"path": path},
        )


@dataclass(frozen=True)
class Port:
    """One input or output. `room`, where there is one, is the shape of the memory that an output is written into."""

    name: str
    dtype: str
    shape: Shape
    room: Shape | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"

    def numpy(self) -> np.dtype:
        return DataType(self.dtype).numpy()


@dataclass(frozen=True)
class Interface:
    """How one model is called: inputs, then outputs, then one number for each of `found`, sizes that the run finds."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    found: tuple[str, ...] = field(default=())

    @property
    def open_sizes(self) -> list[str]:
        """The sizes that the arrays of a call decide."""
        return list(dict.fromkeys(size for port in self.inputs for size in port.shape if isinstance(size, str)))

    def check(self, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
        """The sizes in a call with these arrays; an error where one is not what the model takes."""
        sizes: dict[str, int] = {}
        for port in self.inputs:
            if port.name not in arrays:
                raise BadModelArrays(f"the input {port.name!r} is not given")
            array = arrays[port.name]
            if array.dtype != port.numpy():
                raise BadModelArrays(
                    f"the input {port.name!r} has dtype {array.dtype}, expected {port.dtype}",
                    f"convert it: x.astype({str(port.numpy())!r})",
                )
            if array.ndim != len(port.shape):
                raise BadModelArrays(f"the input {port.name!r} has shape {array.shape}, expected {port}")
            for axis, (given, size) in enumerate(zip(array.shape, port.shape, strict=True)):
                wanted = sizes.setdefault(size, given) if isinstance(size, str) else size
                if given != wanted:
                    said = f"{size} = {wanted}" if isinstance(size, str) else str(size)
                    raise BadModelArrays(
                        f"the input {port.name!r} has shape {array.shape}, expected {port}: "
                        f"dimension {axis} is {given}, not {said}"
                    )
        return sizes

    def buffers(self, sizes: Mapping[str, int]) -> list[np.ndarray]:
        """Arrays for the outputs, and for the sizes that the run finds."""
        outputs = [np.empty(shape_in(port.room or port.shape, sizes), port.numpy()) for port in self.outputs]
        return [*outputs, *[np.zeros((), np.int64) for _ in self.found]]

    def results(self, buffers: Sequence[np.ndarray], sizes: Mapping[str, int]) -> list[np.ndarray]:
        """The outputs in what the native function wrote."""
        count = len(self.outputs)
        known = {**sizes, **{name: int(value) for name, value in zip(self.found, buffers[count:], strict=True)}}
        result = []
        for port, array in zip(self.outputs, buffers[:count], strict=True):
            shape = shape_in(port.shape, known)
            result.append(array if port.room is None else array.reshape(-1)[: prod(shape)].reshape(shape))
        return result

    def to_json(self) -> JsonObject:
        """As plain data."""
        return asdict(self)


def of_json(data: JsonObject) -> Interface:
    """What `to_json` wrote; KeyError, TypeError or ValueError where it is something else."""

    def port(one: JsonObject) -> Port:
        room = one.get("room")
        DataType(one["dtype"])
        return Port(str(one["name"]), str(one["dtype"]), _shape(one["shape"]), None if room is None else _shape(room))

    return Interface(
        str(data["name"]),
        tuple(port(one) for one in data["inputs"]),
        tuple(port(one) for one in data["outputs"]),
        tuple(str(name) for name in data.get("found", ())),
    )


def _shape(sizes: Sequence[object]) -> Shape:
    return tuple(size if isinstance(size, int) else str(size) for size in sizes)


def of_program(program: Program, output_names: Sequence[str] = ()) -> Interface:
    """That of a program as `relay.build` compiles it."""
    attrs: Mapping[str, Any] = program.attrs
    decided: Mapping[int, Sequence[object]] = attrs.get("shapes") or {}
    locations: Mapping[Var, int] = attrs.get("sizes") or {}
    count = len(program.outputs) - len(locations)
    names = [*output_names, *[f"output_{index}" for index in range(len(output_names), count)]]
    outputs = []
    for index, (name, value) in enumerate(zip(names, program.outputs[:count], strict=False)):
        room = _shape(value.shape)
        result = _shape(decided[index]) if index in decided else room
        outputs.append(Port(name, str(value.dtype), result, room if index in decided else None))
    found_sizes = [var.name for var, _ in sorted(locations.items(), key=lambda item: item[1])]
    inputs = [Port(value.name, str(value.dtype), _shape(value.shape)) for value in program.inputs]
    return Interface(program.name, tuple(inputs), tuple(outputs), tuple(found_sizes))


def of_description(description: ModuleDescription | None, path: str) -> Interface:
    """That of a library, as far as the description inside it tells: outputs are what the function writes."""
    if description is None or len(description.functions) != 1:
        count = 0 if description is None else len(description.functions)
        raise NoModelInside(path, f"it has {count} functions, and a model is one")
    function = description.functions[0]
    if not all(argument.is_tensor for argument in function.arguments):
        raise NoModelInside(path, f"its function {function.name} takes numbers and pointers, not only tensors")
    ports = [
        (
            Port(one.name, one.dtype, tuple(int(size) if size.isdigit() else size for size in one.shape or ())),
            one.is_written,
        )
        for one in function.arguments
    ]
    inputs = tuple(port for port, written in ports if not written)
    if [written for _, written in ports] != sorted(written for _, written in ports):
        raise NoModelInside(path, f"its function {function.name} does not take its inputs first")
    return Interface(function.name, inputs, tuple(port for port, written in ports if written))


_OPERATORS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def shape_in(shape: Shape, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape in a call where the sizes are these."""
    return tuple(size if isinstance(size, int) else size_in(size, sizes) for size in shape)


def size_in(text: str, sizes: Mapping[str, int]) -> int:
    """What a size such as "batch * 2" is where batch is a number."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name) and node.id in sizes:
            return sizes[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.Call) and not node.keywords:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("min", "max"):
                return (min if name == "min" else max)(*[value(one) for one in node.args])
            if name in ("int32", "int64", "Cast") and node.args:  # T.int64(n), T.Cast("int64", n)
                return value(node.args[-1])
        raise BadModelArrays(f"the size {text!r} cannot be computed from the sizes of the inputs: {sizes}")

    try:
        return value(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        raise BadModelArrays(f"the size {text!r} cannot be computed from the sizes of the inputs: {sizes}") from None
