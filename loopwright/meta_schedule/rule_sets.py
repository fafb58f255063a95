"""rule_sets: which set of rules, postprocs and mutators is for a target."""

from __future__ import annotations

from loopwright.meta_schedule.errors import UnknownTargetRules
from loopwright.target import Target, describe


def kind_of_target(target: Target) -> str:
    """The name of the set: "llvm", "vnni", "avx512", "asimd", "dotprod", "cuda", …"""
    kind = str(target.kind)
    if kind == "llvm":
        features = describe(target).features
        asked = bool(target.attrs.get("mcpu"))
        if asked and "avx512vnni" in features:
            return "vnni"
        if asked and "avx512f" in features:
            return "avx512"
        if "dotprod" in features:
            return "dotprod"
        return "asimd" if "neon" in features and "aarch64" in str(describe(target).triple) else "llvm"
    if kind == "cuda":
        arch = str(target.attrs.get("arch", ""))
        return "cuda-tensorcore" if arch[3:].isdigit() and int(arch[3:]) >= 75 else "cuda"
    if kind in ("rocm", "vulkan", "metal", "opencl"):
        return "cuda"
    if kind in ("hexagon", "c"):
        return "llvm"
    raise UnknownTargetRules(kind)
