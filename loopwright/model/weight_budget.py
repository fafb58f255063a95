"""weight_budget: how much more memory the weights of a model may take because kernels want them otherwise.

Winograd's weights are up to four times as large. Where those of all layers together would add more to a model than a
share of what it has, the layers that gain least for their memory are to be compiled without it: those with the least
arithmetic for each byte, where few pixels share large weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Final

from loopwright.autosched.decision import RuleKind
from loopwright.model.kernel import Kernel
from loopwright.model.kernel_table import flops_of
from loopwright.model.prepack_constants import weights_of
from loopwright.model.program import Launch, Program, Value

SHARE: Final = 0.1  # of all constants, that may come to them
ALWAYS: Final = 24 << 20  # bytes that may in any case


def over_budget(program: Program, kernels: Mapping[Launch, Kernel]) -> list[Launch]:
    """The launches to be compiled without winograd."""
    more = {launch: _more(launch, kernels[launch]) for launch in program.launches()}
    left = sum(size for size in more.values() if size > 0)
    budget = max(ALWAYS, SHARE * _bytes(program.constants))
    result: list[Launch] = []
    if left <= budget:
        return result
    chosen = [launch for launch, size in more.items() if size > 0 and _is_winograd(kernels[launch])]
    for launch in sorted(chosen, key=lambda launch: (flops_of(launch) or 0.0) / more[launch]):
        if left <= budget:
            break
        result.append(launch)
        left -= more[launch]
    return result


def _more(launch: Launch, kernel: Kernel) -> int:
    """The bytes that the prepared weights of a launch take beyond those that they are made from."""
    if kernel.early is None:
        return 0
    result = sum(prod(shape) * Value("", shape, dtype).item_bytes for shape, dtype in kernel.early.results)
    return result - _bytes(weights_of(launch, kernel.early))


def _bytes(constants: Iterable[Value]) -> int:
    sizes = [value.nbytes for value in constants]
    return sum(size for size in sizes if isinstance(size, int))


def _is_winograd(kernel: Kernel) -> bool:
    return any(decision.kind is RuleKind.WINOGRAD for decision in kernel.decisions)
