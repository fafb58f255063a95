"""`I` of the builder: modules."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright.ir import GlobalVar, IRModule, PrimFunc, Stmt
from loopwright.script.ir_builder.builder import BuilderFrame, Engine, IRBuilder, Opened

__all__ = ["GlobalVar", "IRModuleFrame", "decl_function", "def_function", "ir_module", "module_attrs"]

IRModuleFrame = BuilderFrame


def ir_module() -> BuilderFrame:
    """A module: the functions built inside are its own."""

    def opening(engine: Engine) -> Opened:
        builder = IRBuilder.current()
        outer, builder.module = builder.module, IRModule()

        def close(body: Stmt) -> IRModule | None:
            result, builder.module = builder.module, outer
            return result

        return None, None, close

    return BuilderFrame(opening)


def _module() -> IRModule:
    module = IRBuilder.current().module
    if module is None:
        raise ValueError("this belongs inside `with I.ir_module():`")
    return module


def module_attrs(attrs: Mapping[str, object]) -> None:
    """Attributes of the module."""
    _module().attrs.update(attrs)


def decl_function(name: str, func: PrimFunc) -> GlobalVar:
    """The name under which functions of the module may call `func`, which stands there from now on."""
    module = _module()
    module[name] = func
    return module.get_global_var(name)


def def_function(name: str, func: PrimFunc) -> None:
    """Put `func` into the module under `name`."""
    _module()[name] = func
