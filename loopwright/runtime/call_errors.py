"""What can be wrong with a call of a compiled function: one error class per check the function makes on entry.

Compiled code cannot build Python objects. It names a class and sends one text: the problem, the reason and the
hint, joined by the unit separator (`"\\x1f"`); a missing part is empty or left out:

    TVMFFIErrorSetRaisedFromCStr("ShapeMismatch", "main: argument B has …\\x1fit was built for …\\x1ftranspose it")

`register` tells tvm_ffi the names, so that the text arrives in Python as one of these classes.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from loopwright.runtime.errors import LoopwrightError

SEPARATOR: Final = "\x1f"


class CallError(LoopwrightError):
    """A call of a compiled function was refused before the function touched any argument.

    Every check is made on entry, so a refused call has changed nothing. The subclasses say which check it was.
    """

    code = "LW0109"

    def __init__(self, message: str = "") -> None:
        problem, why, hint = (message.split(SEPARATOR) + ["", ""])[:3]
        super().__init__(problem, why=why or None, hint=hint or None)

    def __reduce__(self) -> tuple[type[CallError], tuple[str]]:
        return type(self), (SEPARATOR.join((self.problem, self.why or "", self.hint or "")),)


class ArgumentCountMismatch(CallError, TypeError):
    """The call has more or fewer arguments than the function takes.

    Outputs are arguments too: a function built from `[A, B, C]` is called with three tensors and writes the last.
    """

    code = "LW0110"


class ArgumentKindMismatch(CallError, TypeError):
    """An argument is not of the kind the function takes: a tensor, an integer, a float or a pointer.

    A tensor is anything that speaks DLPack: `nd.array`, a numpy array, a torch tensor. Lists are not tensors.
    """

    code = "LW0111"


class RankMismatch(CallError, ValueError):
    """A tensor has another number of axes than the function was built for."""

    code = "LW0112"


class ShapeMismatch(CallError, ValueError):
    """An axis of a tensor has another length than the function was built for.

    Where a length is symbolic, its value comes from the first argument that has it, and the others must agree.
    """

    code = "LW0113"


class DtypeMismatch(CallError, TypeError):
    """A tensor has another element type than the function was built for; nothing is converted at a call."""

    code = "LW0114"


class StrideMismatch(CallError, ValueError):
    """A tensor's elements do not lie in memory the way the function was built for, usually row-major without gaps."""

    code = "LW0115"


class DeviceMismatch(CallError, ValueError):
    """A tensor lies on another device than the one the function runs on."""

    code = "LW0116"


class OverlappingArguments(CallError, ValueError):
    """An argument that the function writes shares memory with another argument.

    Compiled code assumes that what it writes is reached through one argument only; with shared memory the result
    would depend on the order of loads and stores.
    """

    code = "LW0117"


class MisalignedArgument(CallError, ValueError):
    """A tensor's first element lies at an address that is no multiple of the alignment the function was built for."""

    code = "LW0118"


class NullArgument(CallError, ValueError):
    """A tensor that has elements points to no memory, or an argument is None where a tensor is needed."""

    code = "LW0119"


class AssertionFailed(CallError, AssertionError):
    """An assertion written in the program did not hold at run time."""

    code = "LW0120"


class WorkspaceExhausted(CallError, MemoryError):
    """There was no memory for a temporary buffer of the function."""

    code = "LW0121"


class ReadOnlyArgument(CallError, ValueError):
    """An array that must not be written was given for an argument that the function writes, or may write."""

    code = "LW0122"


class ResultOutOfRange(CallError, OverflowError):
    """A function returned a number that the result of a call cannot hold: integers there have 64 bits and a sign."""

    code = "LW0128"


KINDS: Final[dict[str, type[CallError]]] = {
    kind.__name__: kind
    for kind in (
        ArgumentCountMismatch,
        ArgumentKindMismatch,
        RankMismatch,
        ShapeMismatch,
        DtypeMismatch,
        StrideMismatch,
        DeviceMismatch,
        OverlappingArguments,
        MisalignedArgument,
        NullArgument,
        AssertionFailed,
        WorkspaceExhausted,
        ReadOnlyArgument,
        ResultOutOfRange,
    )
}


def register(tvm_ffi: ModuleType) -> None:
    """Tell tvm_ffi which class each name stands for."""
    for name, kind in KINDS.items():
        tvm_ffi.register_error(name, kind)
    tvm_ffi.register_error("LoopwrightError", LoopwrightError)
