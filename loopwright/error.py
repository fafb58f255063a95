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
    """An operator of a model cannot be taken as it is.

    There are no frontends for models yet; a script's own converter raises it. The example raises `OpAttributeInvalid`.

    For example:

        from loopwright.error import OpAttributeInvalid

        def convert_pool(attributes):
            if attributes["strides"] < 1:
                raise OpAttributeInvalid(f"pool: strides is {attributes['strides']}")

        convert_pool({"strides": 0})
    """

    code = "LW0005"


class OpNotImplemented(OpError, NotImplementedError):
    """The model uses an operator that the frontend does not know.

    There are no frontends for models yet; a script's own converter raises it.

    For example:

        from loopwright.error import OpNotImplemented

        def convert(op):
            raise OpNotImplemented(f"the operator {op} has no conversion")

        convert("Einsum")
    """

    code = "LW0006"


class OpAttributeRequired(OpError, AttributeError):
    """An operator of the model lacks an attribute that it must have.

    There are no frontends for models yet; a script's own converter raises it.

    For example:

        from loopwright.error import OpAttributeRequired

        def convert_pool(attributes):
            if "strides" not in attributes:
                raise OpAttributeRequired("pool: the attribute strides is missing")

        convert_pool({"pads": 1})
    """

    code = "LW0007"


class OpAttributeInvalid(OpError, AttributeError):
    """An attribute of an operator has a value that it cannot have.

    There are no frontends for models yet; a script's own converter raises it.

    For example:

        from loopwright.error import OpAttributeInvalid

        def convert_pool(attributes):
            if attributes["strides"] < 1:
                raise OpAttributeInvalid(f"pool: strides is {attributes['strides']}")

        convert_pool({"strides": 0})
    """

    code = "LW0008"


class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An attribute of an operator has a value that the frontend does not support.

    There are no frontends for models yet; a script's own converter raises it.

    For example:

        from loopwright.error import OpAttributeUnImplemented

        def convert_pool(attributes):
            if attributes["layout"] != "NCHW":
                raise OpAttributeUnImplemented(f"pool: layout {attributes['layout']} is not supported")

        convert_pool({"layout": "NHWC"})
    """

    code = "LW0009"


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
