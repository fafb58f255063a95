"""Steps of users: those that are registered, called like methods of a schedule, and what they may not change.

`composites.py` registers them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from inspect import signature
from typing import Any, Final

from loopwright.ir import PrimFunc, structural_equal
from loopwright.schedule.errors import BadStepArgument, NotProved, WrongType
from loopwright.schedule.handles import block_key
from loopwright.schedule.rewrite.blocks import blocks_in, is_leaf

USERS: Final[dict[str, Composite]] = {}  # by the name of the function


class Composite:
    """A registered function: called with a schedule it is one step, `inputs` being its handles."""

    def __init__(self, function: Callable[..., object], kind: str, inputs: Sequence[str]) -> None:
        update_wrapper(self, function)
        self.function, self.kind, self.inputs = function, kind, tuple(inputs)
        self.name = function.__name__
        self.parameters = dict(list(signature(function).parameters.items())[1:])

    def __call__(self, sch: object, *handles: object, decision: object = None, **settings: object) -> Any:
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
