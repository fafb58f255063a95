"""shortfall: why a kernel is not as fast as the machine allows, in words.

    memory-bound: 24 of 26 GB/s
    tail tiles: 31 % of the multiply-adds fill up the last tiles · one thread: the work costs less than waking others

Facts come from the measurement and from what the rules noted when they scheduled the kernel (`autosched.Decision`), the
weightiest first. Where none of them explains what is missing, that is said too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.autosched.decision import ChoiceKind, Decision, RuleKind
from loopwright.autosched.rules.plain import RUNS_ONCE
from loopwright.model.kernel import Kernel
from loopwright.model.machine_limits import MachineLimits

_AT_THE_LIMIT: Final = 0.85  # of the roofline: nothing is left to explain
_LAUNCH: Final = 2e-6  # seconds: a call as short as this is not about its work
_FORKS: Final = 5  # a parallel kernel that takes fewer times what waking threads takes is too small for them
_TAIL: Final = 0.95  # of the tiles in use: from here on tails do not show
_OTHER_ARITHMETIC: Final = (RuleKind.WINOGRAD, RuleKind.LOW_PRECISION)


@dataclass(frozen=True)
class Limit:
    """The least seconds that the work of a kernel can take, and what sets them: "memory" or "arithmetic"."""

    seconds: float
    bound: str
    bandwidth: float  # bytes a second that data of this size can have


def main_decision(kernel: Kernel) -> Decision | None:
    """The decision about the blocks that take most of the time."""
    weighed = [decision for decision in kernel.decisions if decision.roofline is not None]
    return max(weighed, key=lambda decision: decision.roofline.expected if decision.roofline else 0.0, default=None)


def limit_of(
    kernel: Kernel, dtype: str, flops: float | None, read: int, written: int, limits: MachineLimits, per_cycle: float
) -> Limit:
    """What the roofline says; `per_cycle` are the float32 operations of one core that the rules reckon with.

    Arithmetic is what the program states. Of winograd, and of halves and bytes, it is what the rule says that its
    instructions need, in cycles: products that are never computed are no work, and bytes are multiplied faster.
    """
    moved = read + written
    bandwidth = limits.bandwidth("read" if 8 * written < read else "copy", moved)
    moving = moved / bandwidth
    decision = main_decision(kernel)
    computing = (flops or 0.0) / (limits.flops / 2 if dtype == "float64" else limits.flops)
    if decision is not None and decision.roofline is not None and decision.kind in _OTHER_ARITHMETIC:
        frequency = limits.flops / limits.threads / per_cycle
        computing = decision.roofline.arithmetic / frequency
    return Limit(max(moving, computing), "memory" if moving >= computing else "arithmetic", bandwidth)


def reasons(
    kernel: Kernel, seconds: float, limit: Limit, moved: int, limits: MachineLimits, weights: Sequence[str] = ()
) -> list[str]:
    """Why the kernel takes longer than its limit, the weightiest reason first; `weights` are constants by name."""
    share = limit.seconds / seconds if seconds else 1.0
    if share >= _AT_THE_LIMIT:
        return [_memory(seconds, limit, moved, limits) if limit.bound == "memory" else "at the limit of arithmetic"]
    result = [*_unscheduled(kernel.decisions), *_launching(kernel, seconds, limits)]
    decision = main_decision(kernel)
    if decision is not None:
        result += _of_rule(decision, limit, weights)
    if limit.bound == "memory" and (share > 0.4 or not result):
        result.insert(0 if share > 0.6 else len(result), _memory(seconds, limit, moved, limits))
    if not result and decision is not None and decision.roofline is not None:
        result.append(f"the rule {decision.rule!r} expects {decision.roofline.share:.0%}: what is missing is not known")
    if not result:
        rules = ", ".join(dict.fromkeys(repr(one.rule) for one in kernel.decisions))
        why = f"the rules ({rules}) say nothing of its speed" if rules else "it is scheduled by hand"
        result.append(f"not known: {why}")
    return result


def _memory(seconds: float, limit: Limit, moved: int, limits: MachineLimits) -> str:
    """How fast data moved; where that is less than caches give, whether main memory would explain it."""
    rate = moved / seconds if seconds else limit.bandwidth
    message = f"memory-bound: {rate / 1e9:.3g} of {limit.bandwidth / 1e9:.3g} GB/s"
    farthest = min(limits.bandwidth(stream, 1 << 40) for stream in limits.streams)
    if rate < 0.6 * limit.bandwidth and rate > 0.4 * farthest:
        message += f", as if its data were no longer in a cache (memory gives {farthest / 1e9:.3g})"
    return message


def _unscheduled(decisions: Sequence[Decision]) -> list[str]:
    """Blocks that no rule scheduled, and rules that could not do their work."""
    result = []
    for decision in decisions:
        refused = decision.whys(ChoiceKind.REFUSED_RULE)
        if decision.kind is RuleKind.AS_WRITTEN:
            because = decision.whys(ChoiceKind.NO_STEPS)
            if because == [RUNS_ONCE]:
                continue  # a number that others read takes no time
            result.append(f"{', '.join(decision.blocks)} is not scheduled: as written, because {'; '.join(because)}")
        result += [f"a better rule was refused: {why}" for why in refused]
    return result


def _launching(kernel: Kernel, seconds: float, limits: MachineLimits) -> list[str]:
    if "T.parallel(" in kernel.text and seconds < _FORKS * limits.fork_seconds:
        fork = f"{limits.fork_seconds * 1e6:.1f} of its {seconds * 1e6:.1f} µs"
        return [f"too small for threads: waking them takes {fork}"]
    if seconds < _LAUNCH:
        return [f"launch overhead: a call takes {seconds * 1e6:.1f} µs in all"]
    return []


def _of_rule(decision: Decision, limit: Limit, weights: Sequence[str]) -> list[str]:
    """What the rule knew when it chose."""
    result = []
    for choice in decision.choices:
        if choice.kind is ChoiceKind.ONE_THREAD:
            result.append(f"on one thread: {choice.why}")
        elif choice.kind is ChoiceKind.NO_VECTORS:
            result.append(f"strided access: {choice.why}")
        elif choice.kind is ChoiceKind.PACKED:
            result.append(f"{_called(choice.buffer, weights)} packed at each call")
        elif choice.kind is ChoiceKind.STRIDED:
            result.append(f"strided access: {choice.what}, since {choice.why}")
    if decision.tile_use < _TAIL:
        result.insert(0, f"tail tiles: {1 - decision.tile_use:.0%} of the multiply-adds fill up the last tiles")
    if decision.kind is RuleKind.ACROSS_MEMORY:
        result.append("strided access: it reads across the order of memory")
    roofline = decision.roofline
    assert roofline is not None
    if limit.bound == "memory" and roofline.bound == "arithmetic":
        result.append("arithmetic that is no multiply-add (functions, comparisons) takes longer than its data")
    elif limit.bound == "arithmetic" and roofline.share < _AT_THE_LIMIT:
        chosen = [choice for choice in decision.choices if choice.kind is ChoiceKind.TILES]
        tiles = [f": {choice.what} ({choice.why})" for choice in chosen]
        result.append(f"the rule expects {roofline.share:.0%}{tiles[0] if tiles else ''}")
    return result


def _called(buffer: str, weights: Sequence[str]) -> str:
    """A buffer of a kernel for people: rules may have staged it, under a longer name."""
    name = buffer.removesuffix("_global")
    return f"weights ({name})" if name in weights or name == "weights" else f"data ({name})"
