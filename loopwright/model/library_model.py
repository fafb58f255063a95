"""LibraryModel: a model that was loaded from a library, as `graph_executor.GraphModule` wants it.

    lib = load_module("model.so")
    model = GraphModule(lib["default"](lw.cpu()))

All that is known of it is in the description inside the file: the names, shapes and types of inputs and outputs. Shapes
of outputs may be numbers, sizes of inputs, or sums and products of those.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from loopwright.model.errors import BadModelInput
from loopwright.model.given_arrays import TensorLike, array_of
from loopwright.runtime.description import Argument
from loopwright.runtime.dtype import DataType
from loopwright.runtime.module import Module

_OPERATORS: Final[dict[type, Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


class LibraryModel:
    """A model in a library: inputs by name, outputs in fresh arrays."""

    def __init__(self, library: Module) -> None:
        said = library.description
        wanted = said.entry if said is not None else None
        function = next((one for one in said.functions if one.name == wanted), None) if said is not None else None
        if function is None or not any(argument.is_written for argument in function.arguments):
            raise BadModelInput(f"{library!r} is no model: it does not say what its inputs and outputs are")
        self.compiled = library
        self._run = library.get_function(function.name)
        self.inputs = [argument for argument in function.arguments if not argument.is_written]
        self.outputs = [argument for argument in function.arguments if argument.is_written]
        self.input_names = [argument.name for argument in self.inputs]
        self.libmod_name = function.name

    def arguments(self, args: Sequence[TensorLike], named: Mapping[str, TensorLike]) -> list[TensorLike]:
        """The inputs in order."""
        given = {**dict(zip(self.input_names, args, strict=False)), **named}
        missing = [name for name in self.input_names if name not in given]
        if missing:
            raise BadModelInput(f"input {missing[0]!r} is not given", f"its inputs are {', '.join(self.input_names)}")
        return [given[name] for name in self.input_names]

    def __call__(self, *args: TensorLike, **named: TensorLike) -> Any:
        """The output for these inputs; a list where there are several."""
        sizes: dict[str, int] = {}
        arrays = []
        for value, wanted in zip(self.arguments(args, named), self.inputs, strict=True):
            given = array_of(value, f"input {wanted.name!r}")
            for text, size in zip(wanted.shape or (), np.shape(given), strict=False):
                if text.isidentifier():
                    sizes.setdefault(text, size)
            arrays.append(np.ascontiguousarray(given).reshape(given.shape))  # which makes a vector of a scalar
        results = [np.empty(_shape(one, sizes), DataType(one.dtype).numpy()) for one in self.outputs]
        self._run(*arrays, *results)
        return results[0] if len(results) == 1 else results


def _shape(of: Argument, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(_number(text, sizes, of.name) for text in of.shape or ())


def _number(text: str, sizes: Mapping[str, int], name: str) -> int:
    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name) and node.id in sizes:
            return sizes[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise BadModelInput(
            f"the output {name!r} has the size {text}, which follows from no size of an input",
            "call the function of the library itself, with an array for that output",
        )

    return value(ast.parse(text, mode="eval").body)
