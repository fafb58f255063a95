"""Which targets tests run on.

By default all that this version builds for and whose device is here. The environment variable `LOOPWRIGHT_TEST_TARGETS`
(or `TVM_TEST_TARGETS`), targets separated by `;`, names others; those that cannot run here are left out.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from loopwright.runtime import Device, device
from loopwright.runtime.errors import LoopwrightError
from loopwright.target import Target, TargetNotBuildable, UnknownTargetKind, require_buildable
from loopwright.testing.marks import Test, add_mark

DEFAULT_TARGETS = ("llvm", "cuda", "nvptx", "opencl", "vulkan", "metal", "rocm", "hexagon")
_VARIABLES = ("LOOPWRIGHT_TEST_TARGETS", "TVM_TEST_TARGETS")

T = TypeVar("T")


class NoTestTarget(LoopwrightError):
    """None of the targets that tests were asked to run on can run here.

    For example:

        # needs a process of its own
        import os
        from loopwright import testing

        os.environ["LOOPWRIGHT_TEST_TARGETS"] = "hexagon"
        testing.enabled_targets()
    """

    code = "LW0041"

    def __init__(self, variable: str, asked: Sequence[str]) -> None:
        super().__init__(
            f"tests cannot run on any of {', '.join(asked)}",
            why=f"the environment variable {variable} names them",
            hint=f'set it to what works here, such as "llvm", or unset {variable}',
        )


def wanted_targets() -> list[str]:
    """The targets that tests are meant for, whether they can run here or not."""
    for variable in _VARIABLES:
        if os.environ.get(variable):
            return [target.strip() for target in os.environ[variable].split(";") if target.strip()]
    return list(DEFAULT_TARGETS)


def enabled_targets() -> list[tuple[str, Device]]:
    """The targets that tests are meant for and that can run here, each with its device."""
    result = [(target, device(str(Target(target).kind))) for target in wanted_targets() if is_runnable(target)]
    if not result:
        variable = next(name for name in _VARIABLES if os.environ.get(name))
        raise NoTestTarget(variable, wanted_targets())
    return result


def is_runnable(target: str | Mapping[str, object] | Target) -> bool:
    """Whether this version builds for the target, and its device is here."""
    return is_buildable(target) and bool(device(str(Target(target).kind)).exist)


def is_buildable(target: str | Mapping[str, object] | Target) -> bool:
    """Whether this version builds for the target."""
    try:
        require_buildable(Target(target))
    except TargetNotBuildable:
        return False
    return True


def device_enabled(target: str | Mapping[str, object] | Target) -> bool:
    """Whether tests should run on the target: tests are meant for its kind, and it can run here."""
    kinds = {str(Target(wanted).kind) for wanted in wanted_targets()}
    try:
        return str(Target(target).kind) in kinds and is_runnable(target)
    except UnknownTargetKind:  # a word for a device, as "cpu", or a target of somebody else
        return False


def parametrize_targets(*args: object) -> Any:
    """Run a test, which takes `target` (and `dev`), on these targets; as a bare decorator on all enabled ones."""
    if len(args) == 1 and callable(args[0]):
        warnings.warn(
            "parametrize_targets without targets does nothing that the argument `target` does not do itself",
            DeprecationWarning,
            stacklevel=2,
        )
        return args[0]
    if not args:
        return lambda test: test
    return _marking("loopwright_targets", args)


def exclude_targets(*args: str) -> Callable[[Test], Test]:
    """Leave these targets out of a test that takes `target`."""
    return _marking("loopwright_excluded_targets", args)


def known_failing_targets(*args: str) -> Callable[[Test], Test]:
    """Expect a test that takes `target` to fail on these targets."""
    return _marking("loopwright_failing_targets", args)


def _marking(name: str, targets: Sequence[object]) -> Callable[[Test], Test]:
    return lambda test: add_mark(test, name, targets)
