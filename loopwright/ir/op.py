"""The operator registry: every intrinsic a Call may name, with the attributes layers attach to it.

An operator says how its calls behave (`effect`); later layers hang their own rules on it (`set_attr`): printing,
lowering, code generation. Adding an intrinsic adds one row to `intrinsics.py` or `machine_intrinsics.py`; users add
operators of their own by naming an attribute of them (`register_op_attr`), or with `register_op`. `intrinsic_rules.py`
says how calls of an operator become something else for a target.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from difflib import get_close_matches
from enum import IntEnum
from typing import Any, ClassVar, Final, TypeVar

from loopwright.ir.expr import Callee
from loopwright.ir.expr.calls import op_named
from loopwright.ir.node import node
from loopwright.runtime.errors import LoopwrightError


class UnknownOp(LoopwrightError, AttributeError, ValueError):
    """A call names an operator that is not registered.

    For example:

        from loopwright import ir

        ir.Op.get("tir.expp")
    """

    code = "LW0507"

    def __init__(self, name: str) -> None:
        near = get_close_matches(name, Op.registry, 3)
        super().__init__(
            f"no operator is called {name!r}",
            hint=f"did you mean {', '.join(near)}?" if near else "Op.list_op_names() lists them all",
            fields={"name": name},
        )


class CallEffect(IntEnum):
    """What a call may do besides returning a value; the numbers and the second spelling are those scripts know."""

    EXPR_ANNOTATION = 0
    PURE = 1
    READ_STATE = 2
    UPDATE_STATE = 3
    OPAQUE = 4
    SPECIAL_CALL_ARG = 5
    EMBED_INFO = 6
    CONTROL_JUMP = 7

    ExprAnnotation = 0
    Pure = 1
    ReadState = 2
    UpdateState = 3
    Opaque = 4
    SpecialCallArg = 5
    EmbedInfo = 6
    ControlJump = 7


T = TypeVar("T")
EFFECT_KEY: Final = "TCallEffectKind"  # the attribute under which scripts set the effect of an operator


@node
class Op(Callee):
    """A registered operator; one object a name."""

    name: str
    effect: CallEffect = CallEffect.OPAQUE

    registry: ClassVar[dict[str, Op]] = {}
    attribute_tables: ClassVar[dict[str, dict[str, tuple[int, Any]]]] = {}
    of_users: ClassVar[set[str]] = set()  # the names of operators that Loopwright itself gives no meaning

    @staticmethod
    def get(name: str) -> Op:
        """The operator called `name`, e.g. `tir.exp`."""
        result = Op.registry.get(name)
        if result is None:
            load_own_ops()
            result = Op.registry.get(name) or _elsewhere(name)
        if result is None:
            raise UnknownOp(name)
        return result

    @staticmethod
    def list_op_names() -> list[str]:
        load_own_ops()
        return sorted(Op.registry)

    def get_attr(self, key: str) -> Any:
        """What was registered under `key`, or None."""
        if key == EFFECT_KEY:
            return self.effect
        result = Op.attribute_tables.get(key, {}).get(self.name)
        return None if result is None else result[1]

    def has_attr(self, key: str) -> bool:
        return key == EFFECT_KEY or self.name in Op.attribute_tables.get(key, {})

    def set_attr(self, key: str, value: object, level: int = 10) -> None:
        """Register `value` under `key`; a higher level replaces a lower one, and the later one an equal one.

        The key `TCallEffectKind` sets the operator's effect.
        """
        table = Op.attribute_tables.setdefault(key, {})
        if self.name not in table or level >= table[self.name][0]:
            if key == EFFECT_KEY:
                # An operator is one object a name for the whole process, also while nodes are frozen.
                object.__setattr__(self, "effect", CallEffect(value))  # type: ignore[arg-type]
            table[self.name] = (level, value)

    def reset_attr(self, key: str) -> None:
        """Forget what was registered under `key`; of `TCallEffectKind`, so that calls may do anything again."""
        if Op.attribute_tables.get(key, {}).pop(self.name, None) is not None and key == EFFECT_KEY:
            object.__setattr__(self, "effect", CallEffect.OPAQUE)

    @property
    def is_pure(self) -> bool:
        """Whether calls neither change anything nor depend on anything but their arguments."""
        return self.effect <= CallEffect.PURE


op_named.append(Op.get)


def register_op(name: str, effect: CallEffect = CallEffect.OPAQUE) -> Op:
    """Make an operator known; the same name again gives the same object."""
    result = Op.registry.get(name)
    if result is None:
        result = Op.registry[name] = Op(name, effect)
    return result


def load_own_ops() -> None:
    """Have every operator of Loopwright registered, so that none of them is taken for a user's or for a mistake.

    The files that register them stand on this one, and load when a program first needs them.
    """
    importlib.import_module("loopwright.ir.machine_intrinsics")  # and `intrinsics`, with it
    importlib.import_module("loopwright.ir.async_intrinsics")
    importlib.import_module("loopwright.ir.warpgroup_intrinsics")
    importlib.import_module("loopwright.ir.tensor_copy_intrinsics")


# Other registries of operators, which answer for their own names: those of graphs, once loaded.
other_registries: Final[list[Callable[[str], Any]]] = []


def _elsewhere(name: str) -> Any:
    return next((result for look in other_registries if (result := look(name)) is not None), None)


def user_op(name: str, effect: CallEffect = CallEffect.OPAQUE) -> Op:
    """The operator of that name; a new one is the user's own, and means what its intrinsic rules say."""
    if name not in Op.registry:
        load_own_ops()
    if name not in Op.registry:
        Op.of_users.add(name)
    return register_op(name, effect)


def register_op_attr(op_name: str, attr_key: str, value: object = None, level: int = 10) -> Any:
    """Attach `value` to an operator, also as a decorator: `@register_op_attr("tir.exp", "my.rule")`.

    An operator that does not exist yet is made.
    """

    def attach(attached: T) -> T:
        (_elsewhere(op_name) or user_op(op_name)).set_attr(attr_key, attached, level)
        return attached

    return attach(value) if value is not None else attach
