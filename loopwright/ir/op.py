"""The operator registry: every intrinsic a Call may name, with the attributes layers attach to it.

An operator says how its calls behave (`effect`); later layers hang their own rules on it (`set_attr`): printing,
lowering, code generation. Adding an intrinsic adds one row to `intrinsics.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from enum import IntEnum
from typing import Any, ClassVar

from loopwright.ir.expr import Callee
from loopwright.ir.node import node
from loopwright.runtime.errors import LoopwrightError


class UnknownOp(LoopwrightError, AttributeError, ValueError):
    """A call names an operator that is not registered."""

    code = "LW0507"

    def __init__(self, name: str) -> None:
        near = get_close_matches(name, Op.registry, 3)
        super().__init__(
            f"no operator is called {name!r}",
            hint=f"did you mean {', '.join(near)}?" if near else "Op.list_op_names() lists them all",
            fields={"name": name},
        )


class CallEffect(IntEnum):
    """What a call may do besides returning a value; the numbers are those users' scripts know."""

    EXPR_ANNOTATION = 0
    PURE = 1
    READ_STATE = 2
    UPDATE_STATE = 3
    OPAQUE = 4
    SPECIAL_CALL_ARG = 5
    EMBED_INFO = 6
    CONTROL_JUMP = 7


@node
class Op(Callee):
    """A registered operator; one object a name."""

    name: str
    effect: CallEffect = CallEffect.OPAQUE

    registry: ClassVar[dict[str, Op]] = {}
    attributes: ClassVar[dict[str, dict[str, tuple[int, Any]]]] = {}

    @staticmethod
    def get(name: str) -> Op:
        """The operator called `name`, e.g. `tir.exp`."""
        found = Op.registry.get(name)
        if found is None:
            raise UnknownOp(name)
        return found

    @staticmethod
    def list_op_names() -> list[str]:
        return sorted(Op.registry)

    def get_attr(self, key: str) -> Any:
        """What was registered under `key`, or None."""
        found = Op.attributes.get(key, {}).get(self.name)
        return None if found is None else found[1]

    def has_attr(self, key: str) -> bool:
        return self.name in Op.attributes.get(key, {})

    def set_attr(self, key: str, value: object, level: int = 10) -> None:
        """Register `value` under `key`; a higher level replaces a lower one."""
        table = Op.attributes.setdefault(key, {})
        if self.name not in table or level >= table[self.name][0]:
            table[self.name] = (level, value)

    def reset_attr(self, key: str) -> None:
        Op.attributes.get(key, {}).pop(self.name, None)

    @property
    def is_pure(self) -> bool:
        """Whether calls neither change anything nor depend on anything but their arguments."""
        return self.effect <= CallEffect.PURE


def register_op(name: str, effect: CallEffect) -> Op:
    """Make an operator known; the same name again gives the same object."""
    found = Op.registry.get(name)
    if found is None:
        found = Op.registry[name] = Op(name, effect)
    return found


def register_op_attr(name: str, key: str, value: Any = None, level: int = 10) -> Any:
    """Attach `value` to an operator, also as a decorator: `@register_op_attr("tir.exp", "my.rule")`."""

    def attach(attached: Callable[..., Any]) -> Callable[..., Any]:
        register_op(name, CallEffect.OPAQUE).set_attr(key, attached, level)
        return attached

    return attach(value) if value is not None else attach
