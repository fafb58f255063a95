"""Errors under the names scripts use; the base class and its anatomy live in `runtime/errors.py`."""

from __future__ import annotations

from typing import Any

from loopwright.runtime.errors import DiagnosticError, InternalError, LoopwrightError

TVMError = LoopwrightError

__all__ = [
    "DiagnosticError",
    "InternalError",
    "LoopwrightError",
    "OpAttributeInvalid",
    "OpAttributeRequired",
    "OpAttributeUnImplemented",
    "OpError",
    "OpNotImplemented",
    "RPCError",
    "RPCSessionTimeoutError",
    "TVMError",
    "register_error",
]


class OpError(LoopwrightError):
    """An operator of a model cannot be taken as it is."""

    code = "LW0005"


class OpNotImplemented(OpError, NotImplementedError):
    """The model uses an operator that the frontend does not know."""

    code = "LW0006"


class OpAttributeRequired(OpError, AttributeError):
    """An operator of the model lacks an attribute that it must have."""

    code = "LW0007"


class OpAttributeInvalid(OpError, AttributeError):
    """An attribute of an operator has a value that it cannot have."""

    code = "LW0008"


class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An attribute of an operator has a value that the frontend does not support."""

    code = "LW0009"


class RPCError(LoopwrightError):
    """Something went wrong on a remote machine."""

    code = "LW0010"


class RPCSessionTimeoutError(RPCError, TimeoutError):
    """A session on a remote machine ran out of time."""

    code = "LW0011"


def register_error(name_or_class: Any, cls: type | None = None) -> Any:
    """Let native errors of that kind arrive as this class; also a decorator."""
    from loopwright.runtime.registry import register_error as register

    return register(name_or_class, cls)
