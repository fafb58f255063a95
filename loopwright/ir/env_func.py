"""EnvFunc: a function of the process by its registered name, as attributes and programs that are saved keep it."""

from __future__ import annotations

from typing import Any, Final

from loopwright.ir.node import Node, node, when_used

get_global_func: Final = when_used("loopwright.runtime", "get_global_func")


@node
class EnvFunc(Node):
    """The function that is registered as `name`, looked up when it is called."""

    name: str

    @staticmethod
    def get(name: str) -> EnvFunc:
        """The function of that name, which must be registered."""
        get_global_func(name)
        return EnvFunc(name)

    def __call__(self, *args: object) -> Any:
        return get_global_func(self.name)(*args)

    def __repr__(self) -> str:
        return f"EnvFunc({self.name!r})"
