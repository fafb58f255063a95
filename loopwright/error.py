"""Errors under the names scripts use; the base class and its anatomy live in `runtime/errors.py`."""

from __future__ import annotations

from typing import Any

from loopwright.frontends.op_errors import (
    OpAttributeInvalid,
    OpAttributeRequired,
    OpAttributeUnImplemented,
    OpError,
    OpNotImplemented,
)
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


class RPCError(LoopwrightError):
    """Something went wrong on a remote machine.

    There are no remote sessions yet; a script's own transport raises it. The example raises `RPCSessionTimeoutError`.

    For example:

        from loopwright.error import RPCSessionTimeoutError

        def ask(seconds):
            raise RPCSessionTimeoutError(f"the board did not answer for {seconds} s")

        ask(60)
    """

    code = "LW0010"


class RPCSessionTimeoutError(RPCError, TimeoutError):
    """A session on a remote machine ran out of time.

    There are no remote sessions yet; a script's own transport raises it.

    For example:

        from loopwright.error import RPCSessionTimeoutError

        def ask(seconds):
            raise RPCSessionTimeoutError(f"the board did not answer for {seconds} s")

        ask(60)
    """

    code = "LW0011"


def register_error(name_or_class: Any, cls: type | None = None) -> Any:
    """Let native errors of that kind arrive as this class; also a decorator."""
    from loopwright.runtime.registry import register_error as register

    return register(name_or_class, cls)
