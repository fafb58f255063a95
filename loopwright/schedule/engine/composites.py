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

from collections.abc import Callable, Sequence
from functools import update_wrapper
from inspect import Parameter, signature
from typing import Any, Final, overload

from loopwright.ir import PrimFunc, structural_equal
from loopwright.runtime.errors import LoopwrightError
from loopwright.schedule.errors import BadStepArgument, NotProved, WrongType
from loopwright.schedule.handles import block_key
from loopwright.schedule.primitives import PRIMITIVES, Primitive
from loopwright.schedule.rewrite.blocks import blocks_in, is_leaf


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


USERS: Final[dict[str, Composite]] = {}  # by the name of the function


class Composite:
    """A registered function: called with a schedule it is one step, `inputs` being its handles."""

    def __init__(self, function: Callable[..., Any], kind: str, inputs: Sequence[str]) -> None:
        update_wrapper(self, function)
        self.function, self.kind, self.inputs = function, kind, tuple(inputs)
        self.name = function.__name__
        self.parameters = dict(list(signature(function).parameters.items())[1:])

    def __call__(self, sch: Any, *handles: Any, decision: Any = None, **settings: Any) -> Any:
        if not hasattr(sch, "run_composite"):
            raise WrongType(self.name, "sch", "a Schedule", sch)
        try:
            bound = signature(self.function).bind(sch, *handles, **settings)
        except TypeError as error:
            raise BadStepArgument(self.name, str(error)) from None
        bound.apply_defaults()
        inputs = {name: bound.arguments[name] for name in self.inputs}
        attrs = {name: bound.arguments[name] for name in self.parameters if name not in self.inputs}
        return sch.run_composite(self.kind, inputs, attrs, decision)


def _is_handle(parameter: Parameter) -> bool:
    return parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@overload
def composite(function: Callable[..., Any]) -> Composite: ...


@overload
def composite(*, override: bool = False) -> Callable[[Callable[..., Any]], Composite]: ...


def composite(function: Callable[..., Any] | None = None, *, override: bool = False) -> Any:
    """Register a function of a schedule, handles and settings as one step, named after the function."""

    def register(result: Callable[..., Any]) -> Composite:
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
    function: Callable[..., Any], inputs: str = "", attrs: str = "", *, override: bool = False
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


def check_bodies(step: str, before: PrimFunc, after: PrimFunc) -> None:
    """A user's step may move blocks, and add some, but not change what one computes: nobody could prove that."""
    known = {block_key(block): block for block in blocks_in(before.body)}
    for block in blocks_in(after.body):
        old = known.get(block_key(block))
        if old is None or (block.body is old.body and block.init is old.init):
            continue
        same_init = block.init is old.init or (
            block.init is not None and old.init is not None and structural_equal(block.init, old.init)
        )
        if is_leaf(block) and not (same_init and structural_equal(block.body, old.body)):
            raise NotProved(step, f"it changes what block {block.name_hint!r} computes", block)


def kind_of(name: str) -> str:
    """The kind of a step as traces name it: cache_read → CacheRead."""
    return "".join([word[:1].upper() + word[1:] for word in name.split("_")])


def _register(
    function: Callable[..., Any],
    inputs: list[str],
    attrs: list[str],
    override: bool,
    is_composite: bool = False,
) -> Composite:
    from loopwright.schedule.engine.schedule import Schedule

    name = function.__name__
    kind = kind_of(name)
    row = PRIMITIVES.get(kind)
    if hasattr(Schedule, name) or (row is not None and not (override and row.is_users)):
        raise StepNameTaken(name)
    PRIMITIVES[kind] = Primitive(
        kind, tuple(inputs), tuple(attrs), name=name, is_users=True, is_composite=is_composite, given=function
    )
    result = USERS[name] = Composite(function, kind, inputs)
    return result
