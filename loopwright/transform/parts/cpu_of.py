"""cpu_of, target_of: the machine a function is lowered for."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from loopwright.ir import PrimFunc
from loopwright.target import CpuDescription, Target, describe, host_description
from loopwright.target.target import as_target


def cpu_of(func: PrimFunc) -> CpuDescription:
    """The CPU named by the function's own `target` attribute, else by the current target, else this machine.

    For a GPU it is what one of its threads can do.
    """
    target = func.attrs.get("target") or Target.current()
    if not isinstance(target, (Target, str)):
        return host_description()
    return _thread() if is_gpu(as_target(target)) else describe(target)


def is_gpu(target: Target) -> bool:
    """Whether functions for that target are launched as threads."""
    return str(target.kind) == "cuda"


@lru_cache(maxsize=1)
def _thread() -> CpuDescription:
    """A thread of a GPU: scalar code with multiply-add; small floats are computed as float32, as in portable C."""
    thread = describe(Target("c -mtriple=x86_64-linux-gnu"))
    return replace(thread, units=replace(thread.units, has_fma=True))


def target_of(func: PrimFunc) -> Target:
    """The same as a target: its kind says which rules and which code generator are meant."""
    target = func.attrs.get("target") or Target.current() or "llvm"
    return target if isinstance(target, Target) else Target(str(target))
