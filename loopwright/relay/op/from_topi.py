"""Operators that topi knows: their kernel, their meaning and their type all come from there.

    @register("gather", Kind.INJECTIVE)
    class Gather(FromTopi):
        axis: int

        def infer(self, data, indices):
            return self.type_of_compute(data, indices)

        def arguments(self, data, indices):         # of topi.gather, for tensors and arrays alike
            return data, self.axis, indices

The type of a result is that of the stages that compute it. A size that nobody knows takes part as a variable; a size of
the result that depends on one is not known either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from loopwright import te, topi
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import Var as SizeVar
from loopwright.ir.types import TupleType, Type
from loopwright.ir.visitor import uses_var
from loopwright.relay.errors import CannotCompile, TypeMismatch
from loopwright.relay.expr import Constant, Expr
from loopwright.relay.nested import Nested
from loopwright.relay.op.registry import Operator
from loopwright.relay.types import AnyDim, Dim, DimLike, TensorType, is_any, is_dynamic, type_text
from loopwright.runtime.errors import LoopwrightError
from loopwright.topi.registry import OPERATORS

_known_types: dict[object, Type] = {}  # results of calls whose shapes are numbers: inference asks again and again
_MOST = 20_000  # of them; a model has fewer


class FromTopi(Operator):
    """An operator that calls one of topi."""

    topi_name: ClassVar[str] = ""  # where it is not the name of the operator

    def arguments(self, *inputs: Any) -> Sequence[object]:
        """The arguments of the function of topi: the inputs, then the attributes in order."""
        return (*inputs, *self.values())

    def compute(self, *inputs: Any) -> Any:
        function: Any = topi
        for part in self._name.split("."):
            function = getattr(function, part)
        return function(*self.arguments(*inputs))

    def reference(self, *inputs: Any) -> Any:
        return OPERATORS[self._name].reference(*self.arguments(*inputs))

    @property
    def _name(self) -> str:
        return self.topi_name or self.op_name

    def type_of_compute(self, *types: Type) -> Type:
        """The type of what `compute` gives for inputs of these types."""
        return type_of_compute(self, *types)


def type_of_compute(attrs: Operator, *types: Type) -> Type:
    """The type of what the operator's `compute` gives for inputs of these types."""
    # What is assumed of a size must be said each time: `compute` says it, a type that is known does not.
    fixed = not any(map(is_dynamic, types)) and not attrs.size_expressions()
    key = (attrs.key(), *map(type_text, types)) if fixed else None
    if key in _known_types:
        return _known_types[key]
    unknown: set[SizeVar] = set()
    try:
        result = attrs.compute(*[_stand_in(of, f"input{k}", unknown) for k, of in enumerate(types)])
    except TypeMismatch:
        raise
    except LoopwrightError as error:
        given = ", ".join(map(type_text, types))
        raise TypeMismatch(
            f"{attrs.op_name} is unable to show the following types match: {given}", why=error.problem, hint=error.hint
        ) from error
    answer = _type(result, unknown)
    if key is not None:
        if len(_known_types) >= _MOST:
            _known_types.clear()
        _known_types[key] = answer
    return answer


def _stand_in(of: Type, name: str, unknown: set[SizeVar]) -> Nested[te.Tensor]:
    """A tensor (or a list of them) of the type, its unknown sizes variables that are added to `unknown`."""
    if isinstance(of, TupleType):
        return [_stand_in(field, f"{name}_{k}", unknown) for k, field in enumerate(of.fields)]
    assert isinstance(of, TensorType)
    shape: list[Dim] = []
    for k, size in enumerate(of.shape):
        if is_any(size):
            size = te.size_var(f"{name}_{k}")
            unknown.add(size)
        shape.append(size)
    return te.placeholder(tuple(shape), of.dtype, name)


def _type(result: te.Tensor | list[te.Tensor] | tuple[te.Tensor, ...], unknown: set[SizeVar]) -> Type:
    if isinstance(result, (list, tuple)):
        return TupleType(tuple(_type(one, unknown) for one in result))

    def known(size: PrimExpr) -> DimLike:
        depends = unknown and isinstance(size, PrimExpr) and uses_var(size, lambda var: var in unknown)
        return AnyDim() if depends else size

    return TensorType([known(size) for size in result.shape], str(result.dtype))


def numbers_of(value: object) -> tuple[int, ...] | None:
    """A shape-like argument as numbers: an int, several, or a constant; None where it is an expression of the graph."""
    if isinstance(value, Constant):
        return tuple(int(number) for number in np.atleast_1d(value.data))
    if isinstance(value, Expr):
        return None
    if isinstance(value, (list, tuple, Sequence)):
        return tuple(_number(item) for item in value)
    return (_number(value),)


def _number(item: Any) -> Any:
    if isinstance(item, Constant):
        return int(item.data)
    return item if isinstance(item, PrimExpr) or is_any(item) else int(item)


def only_interpreted(name: str, needs: str) -> CannotCompile:
    """The error of an operator whose result has no largest size that is known."""
    return CannotCompile(
        f"{name}: {needs} is known only when the program runs, and so is the size of the result",
        hint="give it as numbers or as a constant, or run the graph with relay.create_executor('debug')",
    )
