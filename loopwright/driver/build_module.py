"""`driver.build_module`: `lower`, `build`, and how tensors become the parameters of a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.build import build, lower
from loopwright.ir import Buffer, Expr, IRModule, Var, decl_buffer
from loopwright.runtime.errors import LoopwrightError, with_article
from loopwright.te import Schedule, Tensor

__all__ = ["BadParameter", "build", "get_binds", "lower", "schedule_to_module"]


class BadParameter(LoopwrightError, ValueError):
    """What is to become a parameter of a function is no tensor, buffer or variable.

    For example:

        from loopwright.driver import build_module

        build_module.get_binds(["A"])
    """

    code = "LW0040"

    def __init__(self, position: int, given: object) -> None:
        super().__init__(
            f"argument number {position} is {with_article(type(given).__name__)}, which cannot be a parameter",
            hint="give te tensors, buffers and variables",
        )


def get_binds(
    args: Sequence[object], compact: bool = False, binds: Mapping[Tensor, Buffer] | None = None
) -> tuple[dict[Tensor, Buffer], list[Buffer | Expr]]:
    """The buffer of each tensor among `args` (its own in `binds`, else a new one), and the parameters in order.

    A new buffer is compact with or without `compact`: tensors have no strides of their own.
    """
    bound = dict(binds or {})
    parameters: list[Buffer | Expr] = []
    for position, arg in enumerate(args, 1):
        if isinstance(arg, Tensor):
            if arg not in bound:
                bound[arg] = decl_buffer(arg.shape, arg.dtype, arg.name)
            parameters.append(bound[arg])
        elif isinstance(arg, (Buffer, Var)):
            parameters.append(arg)
        else:
            raise BadParameter(position, arg)
    return bound, parameters


def schedule_to_module(
    sch: Schedule,
    args: Sequence[object] | None = None,
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
) -> IRModule:
    """The program of a te schedule with every step done, before any pass."""
    from loopwright.te.schedule.to_module import schedule_to_module as to_module  # runs the schedule engine

    return to_module(sch, args, name, binds)
