"""Operators of users: declared by name, with the relation between the types of inputs and result.

    declare("twice", "The sum of a tensor and itself.")
    op = relay.op.get("twice")
    op.set_num_inputs(1)
    op.add_argument("data", "Tensor", "The tensor.")
    op.add_type_rel("Identity")
    relay.Call(op, [x])

`relay.op.register(name, description)` calls `declare`. Such an operator has a type; that it can run, someone else must
see to: a pass that replaces it (`Legalize`), an external compiler, or `register_compute`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.op.registry import Kind, Op, Operator, get, known
from loopwright.relay.type_relations import relation
from loopwright.runtime.errors import LoopwrightError


class OperatorExists(LoopwrightError, ValueError):
    """An operator is declared under the name of another one.

    For example:

        from loopwright.relay.op.user_operators import declare

        declare("nn.conv2d")
    """

    code = "LW1256"

    def __init__(self, name: str) -> None:
        super().__init__(f"Operator {name} is registered before", hint="give it a name that no operator has")


class UserOperator(Operator):
    """The attributes of a call of an operator of a user: any, by name."""

    kind = Kind.OPAQUE
    fields = {}
    inputs = ()
    op: Any  # the operator itself

    def __init__(self, **attributes: object) -> None:
        self.fields = dict.fromkeys(attributes)  # type: ignore[misc]
        for name, value in attributes.items():
            setattr(self, name, value)

    def infer(self, *types: Type) -> Type:
        if self.op.relation is None:
            raise TypeMismatch(f"{self.op_name} has no type relation", hint='add_type_rel("Identity") gives it one')
        result = self.op.relation(list(types), self)
        if not isinstance(result, Type):
            raise TypeMismatch(f"the type relation of {self.op_name} gives {result!r}, which is no type")
        return result

    def compute(self, *inputs: Any) -> Any:
        rule = self.op.get_attr("FTVMCompute")
        if rule is None:
            return super().compute(*inputs)
        result = rule(self, list(inputs), None)
        return result[0] if isinstance(result, (list, tuple)) and len(result) == 1 else result


class UserOp(Op):
    """An operator of a user, who says bit by bit what it is."""

    __slots__ = ("arguments", "relation", "text")

    def __init__(self, name: str, text: str) -> None:
        kind = type(name, (UserOperator,), {"op_name": name, "op": self})
        super().__init__(name, kind)
        self.text = text
        self.arguments: list[tuple[str, str, str]] = []
        self.relation: Callable[..., Type] | None = None
        self.support_level = 10

    @property
    def description(self) -> str:
        return self.text

    def set_num_inputs(self, count: int) -> None:
        self.attributes.inputs = tuple(f"data_{k}" for k in range(count))

    def add_argument(self, name: str, type: str, description: str) -> None:
        self.arguments.append((name, type, description))

    def set_attrs_type_key(self, key: str) -> None:
        """The class of its attributes, which are kept by name whatever it is called."""

    def set_support_level(self, level: int) -> None:
        self.support_level = level

    def add_type_rel(self, rel_name: str, type_rel_func: Callable[..., Type] | None = None) -> None:
        """The type of the result: by a relation that is known by name, or by a function of the types and attributes."""
        self.relation = type_rel_func or relation(rel_name).rule

    def set_attr(self, name: str, value: object, plevel: int = 10) -> None:
        super().set_attr(name, value, plevel)
        if name == "TOpPattern":
            self.attributes.kind = Kind(int(value))  # type: ignore[call-overload]
        elif name == "TOpIsStateful":
            self.attributes.stateful = bool(value)

def declare(op_name: str, describe: str = "") -> Op:
    """Enter an operator of that name, of which nothing is known yet."""
    if known(op_name) is not None:
        raise OperatorExists(op_name)
    Op.registry[op_name] = UserOp(op_name, describe)
    return Op.registry[op_name]


def _registers(key: str) -> Callable[..., Any]:
    """The function that hangs something on an operator under `key`, also as a decorator."""

    def enter(op_name: str, value: Any = None, level: int = 10) -> Any:
        def attach(attached: Any) -> Any:
            get(op_name).set_attr(key, attached, level)
            return attached

        return attach if value is None else attach(value)

    enter.__doc__ = f"Hang something on an operator as {key}; without a value, a decorator."
    return enter


register_pattern = _registers("TOpPattern")
register_stateful = _registers("TOpIsStateful")
register_compute = _registers("FTVMCompute")
register_gradient = _registers("FPrimalGradient")
register_convert_op_layout = _registers("FTVMConvertOpLayout")
