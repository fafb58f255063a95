"""`tir.analysis`: questions about programs, under the names scripts know."""

from __future__ import annotations

from typing import Any, NoReturn

from loopwright.analysis import *  # noqa: F403
from loopwright.analysis import check_bounds
from loopwright.analysis.costs import *  # noqa: F403
from loopwright.analysis.queries import *  # noqa: F403
from loopwright.ir import Block
from loopwright.ir.pass_combinators import Apply
from loopwright.ir.passes import Pass
from loopwright.ir.verifier import verify_well_formed
from loopwright.runtime.errors import NotBuilt


def OOBChecker() -> Pass:
    """A pass that changes nothing and raises when an access is out of bounds."""

    def check(func: Any) -> Any:
        check_bounds(func)
        return func

    return Apply(check)


def verify_gpu_code(func: object, constraints: object) -> NoReturn:
    """Whether a kernel stays within limits of a GPU; not built yet."""
    raise NotBuilt("tir.analysis.verify_gpu_code", "GPU targets are not built yet")
