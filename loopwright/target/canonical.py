"""Targets and hosts in the forms that scripts pass around: pairs, lists, and maps by device.

They are the bodies of `Target.canon_…`, which give the class; each gives targets that know their host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from loopwright.runtime.errors import LoopwrightError


class NoTarget(LoopwrightError, AssertionError, ValueError):
    """A host was given for no target, or no target at all where some must be.

    For example:

        from loopwright.target import Target

        Target.canon_target_and_host(None, "llvm")
    """

    code = "LW0616"


def target_and_host(cls: type[Any], target: Any, host: Any = None) -> tuple[Any, Any]:
    """The target, which knows its host, and the host."""
    if target is None:
        if host is not None:
            raise NoTarget("Target host is not empty when target is empty.", hint="give the target too")
        return None, None
    result = cls(target, host) if host is not None else target if isinstance(target, cls) else cls(target)
    return result, result.host


def several(cls: type[Any], targets: Any, host: Any = None) -> list[Any]:
    """The targets of a map by device, a list, or one alone; each knows the host."""
    if targets is None:
        raise NoTarget("no target is given", hint='give a target, such as "llvm"')
    if isinstance(targets, Mapping) and "kind" not in targets:
        listed: Iterable[Any] = targets.values()
    elif isinstance(targets, (str, cls, Mapping)):
        listed = [targets]
    else:
        listed = targets
    results = [target_and_host(cls, one, host)[0] for one in listed]
    return [result for result in results if result is not None]


def map_and_host(cls: type[Any], programs: Mapping[Any, Any], host: Any = None) -> tuple[dict[Any, Any], Any]:
    """What belongs to each target, by targets that know the host, and the host."""
    results: dict[Any, Any] = {}
    chosen = None if host is None else cls(host)
    for one, program in programs.items():
        result, chosen = target_and_host(cls, one, chosen)
        assert result is not None
        results[result] = program
    return results, chosen
