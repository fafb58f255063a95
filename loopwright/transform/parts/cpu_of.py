"""cpu_of, target_of: the machine a function is lowered for."""

from __future__ import annotations

from loopwright.ir import PrimFunc
from loopwright.target import CpuDescription, Target, describe, host_description


def cpu_of(func: PrimFunc) -> CpuDescription:
    """The CPU named by the function's own `target` attribute, else by the current target, else this machine."""
    target = func.attrs.get("target") or Target.current()
    return describe(target) if isinstance(target, (Target, str)) else host_description()


def target_of(func: PrimFunc) -> Target:
    """The same as a target: its kind says which rules and which code generator are meant."""
    target = func.attrs.get("target") or Target.current() or "llvm"
    return target if isinstance(target, Target) else Target(str(target))
