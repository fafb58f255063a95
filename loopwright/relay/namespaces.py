"""Namespaces of operators: `relay.nn.dense` is the function of the operator `nn.dense`; TVM's name of `AnyDim`."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from loopwright.relay.expr import Expr
from loopwright.relay.op.registry import FUNCTIONS, load_all
from loopwright.relay.types import AnyDim


class Namespace(ModuleType):
    """Those operators whose names begin with `prefix`, by the rest of their names."""

    def __init__(self, prefix: str) -> None:
        super().__init__(f"loopwright.relay.{prefix}", f"The operators {prefix}.*")
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Expr]:
        if name.startswith("__"):
            raise AttributeError(name)
        load_all()
        function = FUNCTIONS.get(f"{self._prefix}.{name}")
        if function is None:
            from loopwright.runtime.guesses import no_attribute

            raise no_attribute(f"relay.{self._prefix} has no operator", name, self.__dir__(), {})
        return function

    def __dir__(self) -> list[str]:
        load_all()
        start = f"{self._prefix}."
        return sorted(name.removeprefix(start) for name in FUNCTIONS if name.startswith(start))


nn = Namespace("nn")
image = Namespace("image")
vision = Namespace("vision")
random = Namespace("random")
annotation = Namespace("annotation")
dyn = Namespace("dyn")
memory = Namespace("memory")

Any = AnyDim  # what scripts for TVM write: `relay.Any()`
