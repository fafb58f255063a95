"""Task: a program that is to be tuned for a target."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loopwright.ir import IntImm, IRModule, PrimFunc
from loopwright.ir.annotations import CONSTANT_PARAMS
from loopwright.ir.bind_constants import bind_constants
from loopwright.target import Target, describe
from loopwright.tune.workload import family_of, key_of, sizes_of

_SEED = 7  # of the values that stand for constants


@dataclass(frozen=True)
class Task:
    """A module with one function, not scheduled yet; `weight` is how often a model runs it.

    Parameters that the function's attribute `constant_params` names have the same content in every call, as the
    weights of a model have: what follows from them alone is computed before the calls that are measured.
    """

    name: str
    mod: IRModule
    target: Target
    weight: float = 1.0
    winograd: int = 0  # the largest tile of Winograd convolutions that the rules may use; 0: none

    @property
    def function(self) -> PrimFunc:
        (function,) = [one for _, one in self.mod.functions_items()]
        return function

    @functools.cached_property
    def key(self) -> str:
        """What equal workloads share, whatever their variables, blocks and functions are called."""
        return key_of(self.function)

    @functools.cached_property
    def fingerprint(self) -> str:
        """The CPU that records are good for: two targets that compile the same code share it."""
        return fingerprint(self.target)

    @property
    def family(self) -> str:
        """What tasks share that differ in sizes alone."""
        return family_of(self.function)

    @property
    def sizes(self) -> tuple[int, ...]:
        return sizes_of(self.function)

    @functools.cached_property
    def as_called(self) -> Task:
        """The task with its constants bound: what runs when the program is called."""
        function = self.function
        if not function.attrs.get(CONSTANT_PARAMS, ()):
            return self
        return replace(self, mod=self.bound(self.mod))

    def bound(self, mod: IRModule) -> IRModule:
        """A version of the program with seeded random values for its constants."""
        ((name, function),) = mod.functions_items()
        positions: Any = function.attrs.get(CONSTANT_PARAMS, ())
        if not positions:
            return mod
        random = np.random.default_rng(_SEED)
        params = [function.params[int(position)] for position in positions]
        values: dict[object, object] = {param: _some_values(random, function, param) for param in params}
        attrs = {key: value for key, value in function.attrs.items() if key != CONSTANT_PARAMS}
        return IRModule({name: bind_constants(function.with_(attrs=attrs), values)})


def _some_values(random: np.random.Generator, function: PrimFunc, param: Any) -> Any:
    buffer = function.buffer_map.get(param)
    if buffer is None:
        return 1
    shape, dtype = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)], buffer.dtype.numpy()
    if np.issubdtype(dtype, np.integer) or dtype == np.bool_:
        return random.integers(0, 2, shape).astype(dtype)
    return (random.standard_normal(shape, np.float32) * np.float32(0.125)).astype(dtype)


def fingerprint(target: Target) -> str:
    """What of a target decides how fast a schedule is, as text: CPU, features, caches and cores."""
    cpu = describe(target)
    caches = ",".join(str(size) for size in (cpu.cache_sizes.l1d, cpu.cache_sizes.l2, cpu.cache_sizes.l3))
    features = ",".join(sorted(cpu.features))
    return f"{cpu.triple} {cpu.name or 'generic'} {features} caches={caches} cores={cpu.num_cores}"
