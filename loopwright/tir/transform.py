"""`tir.transform`: passes under the names scripts know, as functions that return a pass.

    mod = tir.transform.Sequential([tir.transform.LoopPartition(), tir.transform.Simplify()])(mod)

The table of names is `compat/pass_names.py`; a pass that is not built raises an error that says so. Everything of
`loopwright.transform` (our own names, contexts, decorators) is here as well.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag
from importlib import import_module
from typing import TYPE_CHECKING, Any

from loopwright import transform as _own
from loopwright.compat.pass_names import DEVICE_PASSES, PEER_FORMS, PEER_PASSES
from loopwright.ir.clone import renew_defs
from loopwright.ir.pass_combinators import Apply
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.ir.passes import ModulePass, Pass, PrimFuncPass, Sequential
from loopwright.runtime.errors import NotBuilt
from loopwright.transform import *  # noqa: F403

if TYPE_CHECKING:
    from loopwright.target import Target


def VectorizeLoop(enable_vectorize: bool = True) -> Pass:
    """Vectorized loops become vector statements; without `enable_vectorize`, serial loops."""
    if enable_vectorize:
        return _own.vectorize_loops

    def change(mod: Any, context: PassContext) -> Any:
        settings = {**context.config, "tir.disable_vectorize": True}
        with PassContext(context.opt_level, instruments=context.instruments, config=settings):
            return _own.vectorize_loops(mod)

    return ModulePass(change, PassInfo(0, "VectorizeLoop"))


def NarrowDataType(target_bits: int) -> Pass:
    """Index arithmetic in `target_bits` bits where that changes no value."""
    return _own.narrow_data_type(target_bits)


def BindTarget(target: Target | str) -> Pass:
    """Every function without a target gets this one."""
    return _own.bind_target(target)




def ThreadSync(storage_scope: str = "shared") -> Pass:
    """Barriers between threads that touch one cell; ours look at all memory, whatever `storage_scope` says."""
    return _own.insert_barriers


def StorageFlatten(cache_line_size: int = 64, create_bound_attribute: bool = False) -> Pass:
    """Blocks and realized buffers become statements and allocations, and every buffer gets one dimension."""
    passes = [_own.write_inits, _own.write_allocations, _own.lower_blocks, _own.compact_buffers, _own.flatten_buffers]
    return Sequential(passes, name="StorageFlatten")


def RenewDefs() -> Pass:
    """Every function gets variables and buffers of its own."""
    return Apply(renew_defs)


class HoistedConditionals(IntFlag):
    """Which conditions HoistExpression moves; the numbers are those scripts know."""

    Never = 0
    IfElseStmt = 1
    IfElseExpr = 2
    BooleanExpression = 4
    UsingBlockVar = 8
    All = 15


class HoistedLetBindings(IntFlag):
    """Which lets HoistExpression moves; the numbers are those scripts know."""

    Never = 0
    RequiredByConditional = 1
    LetStmt = 2
    LetExpr = 4
    All = 7


def _factory(name: str) -> Callable[[], Pass]:
    def make() -> Pass:
        result: Pass = getattr(_own, PEER_PASSES[name])
        return result

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The pass {PEER_PASSES[name]}."
    return make


def _form(name: str) -> Callable[..., Pass]:
    file, _, own = PEER_FORMS[name].partition(":")

    def make(*args: Any, **kwargs: Any) -> Pass:
        found = getattr(import_module(f"loopwright.compat.passes.{file}"), own or file)
        result: Pass = found if isinstance(found, Pass) and not args and not kwargs else found(*args, **kwargs)
        return result

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The pass {own or file}."
    return make


def _device_pass(name: str) -> Callable[..., Pass]:
    def make(*args: object, **_: object) -> Pass:
        result: Pass = import_module("loopwright.compat.passes.device_passes").device_pass(name, *args)
        return result

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{name}: changes nothing, and refuses a program with work for it."
    return make


def _missing(name: str) -> Callable[..., Pass]:
    def make(*_: object, **__: object) -> Pass:
        raise NotBuilt(f"the pass tir.transform.{name}", "loopwright.lower runs the passes there are, in their order")

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{name}, which is not built yet."
    return make


for _name, _ours in PEER_PASSES.items():
    if _name in PEER_FORMS:
        globals()[_name] = _form(_name)
    elif _name in DEVICE_PASSES:
        globals()[_name] = _device_pass(_name)
    elif _name not in globals():
        globals()[_name] = _factory(_name) if _ours and hasattr(_own, _ours) else _missing(_name)


def __getattr__(name: str) -> Any:
    return getattr(_own, name)
