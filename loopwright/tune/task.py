"""Task: a program that is to be tuned for a target."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from loopwright.ir import IRModule, PrimFunc
from loopwright.ir.structural_hash import structural_hash
from loopwright.target import Target, describe


@dataclass(frozen=True)
class Task:
    """A module with one function, not scheduled yet; `weight` is how often a model runs it."""

    name: str
    mod: IRModule
    target: Target
    weight: float = 1.0

    @property
    def function(self) -> PrimFunc:
        (function,) = [one for _, one in self.mod.functions_items()]
        return function

    @functools.cached_property
    def key(self) -> str:
        """What equal workloads share, whatever their variables, blocks and functions are called."""
        return f"{structural_hash(self.function.without_attr('global_symbol')):016x}"

    @functools.cached_property
    def fingerprint(self) -> str:
        """The CPU that records are good for: two targets that compile the same code share it."""
        return fingerprint(self.target)


def fingerprint(target: Target) -> str:
    """What of a target decides how fast a schedule is, as text: CPU, features, caches and cores."""
    cpu = describe(target)
    caches = ",".join(str(size) for size in (cpu.cache_sizes.l1d, cpu.cache_sizes.l2, cpu.cache_sizes.l3))
    features = ",".join(sorted(cpu.features))
    return f"{cpu.triple} {cpu.name or 'generic'} {features} caches={caches} cores={cpu.num_cores}"
