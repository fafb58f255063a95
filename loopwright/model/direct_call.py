"""direct_call: a call of a model with arrays that are just what it takes: nothing is converted or worked out anew.

    call = direct_call(program, function)
    outputs = call(x, y)            a fresh output, or a list of several; None: the arrays are something else

The compiled function checks its arguments itself, so this asks nothing of them first. Where it refuses, the answer is
None, and the caller goes the long way, which converts what can be converted and says what is wrong with the rest.

`native_call` is the same, and for numpy arrays there is no Python in between (`runtime/array_call.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from loopwright.ir import Var
from loopwright.model.program import Program
from loopwright.model.sizes import output_shapes
from loopwright.runtime import ffi
from loopwright.runtime.array_call import array_call
from loopwright.runtime.dtype import DataType
from loopwright.runtime.ffi import PackedFunction

Shape: TypeAlias = tuple[int, ...]
DirectCall: TypeAlias = Callable[..., Any]
Empty: TypeAlias = Callable[[Shape, Any], Any]  # np.empty, or another library's: a shape, its element type
ElementType: TypeAlias = Callable[[DataType], Any]  # what a type is called there
_MOST_KEPT: Final = 64  # shapes of outputs that are remembered for a model with open sizes


def direct_call(
    program: Program,
    function: PackedFunction,
    empty: Empty = np.empty,
    element_type: ElementType = DataType.numpy,
) -> DirectCall:
    """The call of `function`, which a program was compiled to.

    `empty` and `element_type` say how an output is made, and what its type is there; numpy's by default. A closure and
    not a class, and one output by itself: for a small model the call is a microsecond, and each step in it counts.
    """
    num_inputs = len(program.inputs)
    kinds = [element_type(value.dtype) for value in program.outputs]
    fixed = all(isinstance(size, int) for value in program.outputs for size in value.shape)
    shapes_for = _kept(program, output_shapes(program, ()) if fixed else None)

    def call(*arrays: Any) -> Any:
        if len(arrays) != num_inputs:
            return None
        try:
            outputs = [empty(shape, kind) for shape, kind in zip(shapes_for(arrays), kinds)]
            function(*arrays, *outputs)
        except Exception:  # whatever it is, the long way meets it again, and knows more to say about it
            return None
        return outputs[0] if len(outputs) == 1 else outputs

    if not fixed or len(kinds) != 1:
        return call
    (only_shape,), (only_kind,) = shapes_for(()), kinds

    def call_for_one(*arrays: Any) -> Any:
        if len(arrays) != num_inputs:
            return None
        try:
            output = empty(only_shape, only_kind)
            function(*arrays, output)
        except Exception:
            return None
        return output

    return call_for_one


def native_call(program: Program, address: int, owner: object) -> DirectCall:
    """The call of the packed function at `address`, which a program was compiled to, and which `owner` keeps there.

    Through Python as well where sizes of outputs are more than those of inputs, or the native runtime is not there.
    """
    otherwise = direct_call(program, ffi.function_from_address(address, owner))
    first: dict[Var, int] = {}  # where a size variable is the length of an input, counted over all inputs
    for index, size in enumerate([size for value in program.inputs for size in value.shape]):
        if isinstance(size, Var):
            first.setdefault(size, index)
    sizes: list[int] = []
    for size in [size for value in program.outputs for size in value.shape]:
        if isinstance(size, Var) and size in first:
            sizes.append(~first[size])
        elif isinstance(size, int):
            sizes.append(size)
        else:
            return otherwise
    inputs, outputs = (
        [(value.dtype, len(value.shape)) for value in values] for values in (program.inputs, program.outputs)
    )
    return array_call(address, inputs, outputs, sizes, otherwise, owner) or otherwise


def in_order(names: Sequence[str], args: Sequence[object], named: Mapping[str, object]) -> list[object] | None:
    """Inputs by position where each is given once, by position or by name; None: the long way says what is wrong."""
    rest = names[len(args) :]
    if len(rest) != len(named):
        return None
    try:
        return [*args, *[named[name] for name in rest]]
    except KeyError:
        return None


def no_direct_call(*arrays: Any) -> None:
    """For a model that takes no arrays as they are."""


def _kept(program: Program, fixed: list[Shape] | None) -> Callable[[Sequence[Any]], list[Shape]]:
    """The shapes of the outputs for these arrays; remembered by the shapes of those, where they are not fixed."""
    if fixed is not None:
        return lambda arrays: fixed
    known: dict[tuple[Shape, ...], list[Shape]] = {}

    def shapes(arrays: Sequence[Any]) -> list[Shape]:
        key = tuple([array.shape for array in arrays])
        result = known.get(key)
        if result is None:
            if len(known) >= _MOST_KEPT:
                known.clear()
            result = known[key] = output_shapes(program, arrays)
        return result

    return shapes
