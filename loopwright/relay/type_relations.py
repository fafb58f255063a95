"""Relations between types, by name: what an operator of one's own returns for what it is given.

    relation("Broadcast")([Tensor[(10, 1)], Tensor[(1, 4)]], None)        Tensor[(10, 4)]

`add_type_rel` of an operator (`op/user_operators.py`) takes such a name, or a function of the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.op.sizes import broadcast
from loopwright.relay.types import TensorType, type_text

Rule = Callable[[Sequence[Type], Any], Type]


class Relation(NamedTuple):
    """`rule(inputs, attrs)` is the type of the result."""

    name: str
    rule: Rule

    def __call__(self, inputs: Sequence[Type], attrs: object) -> Type:
        return self.rule(inputs, attrs)


def _identity(inputs: Sequence[Type], attrs: object) -> Type:
    return inputs[0]


def _broadcast(inputs: Sequence[Type], attrs: object) -> TensorType:
    one, other = inputs
    if not isinstance(one, TensorType) or not isinstance(other, TensorType) or one.dtype != other.dtype:
        raise TypeMismatch(f"a broadcast is unable to show the following types match: {type_text(one)} and {other!r}")
    return TensorType(broadcast("a relation", one.shape, other.shape), str(one.dtype))


def _compare(inputs: Sequence[Type], attrs: object) -> TensorType:
    return TensorType(_broadcast(inputs, attrs).shape, "bool")


RELATIONS: Final[dict[str, Relation]] = {
    name: Relation(name, rule)
    for name, rule in {"Identity": _identity, "Broadcast": _broadcast, "BroadcastComp": _compare}.items()
}


def relation(name: str) -> Relation:
    """The relation of that name."""
    if name not in RELATIONS:
        raise ValueError(f"there is no type relation {name!r}; there are {', '.join(RELATIONS)}")
    return RELATIONS[name]
