"""BuildModule: the steps of `relay.build` one by one, as older scripts take them.

    builder = relay.build_module.BuildModule()
    graph, library, params = builder.build(mod, target="llvm", params=params)
"""

from __future__ import annotations

from typing import Any

from loopwright.ir.function import IRModule
from loopwright.relay.backend.options import Executor, Runtime
from loopwright.relay.build_module import Targets, build, optimize
from loopwright.relay.built import BuiltModule, Params
from loopwright.relay.expr import Function


class BuildModule:
    """Builds one model, and keeps it."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._built: BuiltModule | None = None

    def set_params(self, params: Params) -> None:
        """Parameters that become constants, by name."""
        self._params.update(params)

    def optimize(
        self, mod: IRModule, target: Targets = None, target_host: object = None, params: Params | None = None
    ) -> tuple[IRModule, dict[str, Any]]:
        """The module after the passes, and the parameters that are left."""
        return optimize(mod, target, {**self._params, **(params or {})})

    def build(
        self,
        mod: IRModule | Function,
        target: Targets = None,
        target_host: object = None,
        executor: Executor | str | None = None,
        runtime: Runtime | str | None = None,
        workspace_memory_pools: object = None,
        constant_memory_pools: object = None,
        params: Params | None = None,
        mod_name: str = "default",
    ) -> tuple[str, Any, dict[str, Any]]:
        """The graph in JSON, the library and the constants."""
        given = {**self._params, **(params or {})}
        self._built = build(mod, target, target_host, executor, runtime, params=given, mod_name=mod_name)
        return self._built.get_graph_json(), self._built.lib, self._built.get_params()

    def _model(self) -> BuiltModule:
        if self._built is None:
            raise RuntimeError("there is no model yet: build(mod, target) makes it")
        return self._built

    def get_graph_json(self) -> str:
        return self._model().get_graph_json()

    def get_module(self) -> Any:
        return self._model().lib

    def get_params(self) -> dict[str, Any]:
        return self._model().get_params()


__all__ = ["BuildModule"]
