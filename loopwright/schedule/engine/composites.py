"""Composite steps: a function of yours that does several steps becomes one step, with a name in traces.

    @composite
    def tile(sch, i, j, *, size=8):
        i_0, i_1 = sch.split(i, [None, size])
        j_0, j_1 = sch.split(j, [None, size])
        sch.reorder(i_0, j_0, i_1, j_1)
        return i_0, j_0, i_1, j_1

    sch.tile(i, j, size=16)              # or tile(sch, i, j, size=16)

What is given by position are handles, what comes after the `*` are settings: plain data. The steps inside are proved
one by one as ever; the trace has one entry, which replays by calling the function again, with the same decisions where
it samples. `register_step` adds a step of your own making, which the engine proves whatever it claims.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import overload

from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule.engine.schedule import Schedule
from loopwright.schedule.engine.user_steps import USERS, Composite
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.primitives import PRIMITIVES, Primitive
from loopwright.schedule.trace.calls import METHODS


class StepNameTaken(LoopwrightError, ValueError):
    """A step of that name exists already, of the library's or registered before.

    For example:

        from loopwright.schedule import composite

        @composite
        def split(sch, loop):
            return None
    """

    code = "LW0226"

    def __init__(self, name: str) -> None:
        hint = "choose another name, or say composite(override=True) to replace one of yours"
        super().__init__(f"there is a step {name!r} already", hint=hint)


def _is_handle(parameter: Parameter) -> bool:
    return parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@overload
def composite(function: Callable[..., object]) -> Composite: ...


@overload
def composite(*, override: bool = False) -> Callable[[Callable[..., object]], Composite]: ...


def composite(
    function: Callable[..., object] | None = None, *, override: bool = False
) -> Composite | Callable[[Callable[..., object]], Composite]:
    """Register a function of a schedule, handles and settings as one step, named after the function."""

    def register(result: Callable[..., object]) -> Composite:
        parameters = list(signature(result).parameters.values())
        if not parameters or any(item.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD) for item in parameters):
            problem = "takes the schedule first, then each handle by position and each setting by name"
            raise BadStepArgument("composite", f"{result.__name__} {problem}", hint="def tile(sch, i, j, *, size=8): …")
        rest = parameters[1:]
        inputs = [item.name for item in rest if _is_handle(item)]
        attrs = [item.name for item in rest if not _is_handle(item)]
        return _register(result, inputs, attrs, override, is_composite=True)

    return register if function is None else register(function)


def register_step(
    function: Callable[..., object], inputs: str = "", attrs: str = "", *, override: bool = False
) -> Composite:
    """Register a primitive of yours, a function `(view, nodes, settings) → Step`, named after the function.

    `inputs` and `attrs` name its handles and settings, separated by spaces. It is then a method of schedules, and its
    kind in traces is the name in capitals: my_step → MyStep. The engine proves the step for every buffer, also where it
    says that nothing is to be shown; it believes nothing about new blocks, and lets no block compute something else.
    """
    return _register(function, inputs.split(), attrs.split(), override)


def unregister(name: str) -> None:
    """Forget a step that was registered under that name."""
    row = PRIMITIVES.get(kind_of(name))
    if row is None or not row.is_users:
        raise BadStepArgument("unregister", f"no step of yours is called {name!r}")
    del PRIMITIVES[row.kind]
    USERS.pop(name, None)
    METHODS.pop(name, None)


def kind_of(name: str) -> str:
    """The kind of a step as traces name it: cache_read → CacheRead."""
    return "".join([word[:1].upper() + word[1:] for word in name.split("_")])


def _register(
    function: Callable[..., object],
    inputs: list[str],
    attrs: list[str],
    override: bool,
    is_composite: bool = False,
) -> Composite:
    name = function.__name__
    kind = kind_of(name)
    row = PRIMITIVES.get(kind)
    if hasattr(Schedule, name) or (row is not None and not (override and row.is_users)):
        raise StepNameTaken(name)
    PRIMITIVES[kind] = Primitive(
        kind, tuple(inputs), tuple(attrs), name=name, is_users=True, is_composite=is_composite, given=function
    )
    result = METHODS[name] = USERS[name] = Composite(function, kind, inputs)
    return result
