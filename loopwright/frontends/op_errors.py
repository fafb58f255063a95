"""Errors of front ends, under the names that scripts catch: an operator of a model, or an attribute of it, is wrong."""

from __future__ import annotations

from loopwright.runtime.errors import LoopwrightError


class OpError(LoopwrightError):
    """An operator of a model cannot be taken as it is.

    The front ends raise it, and so may a script's own converter. The example raises `OpAttributeInvalid`.

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

    The front ends raise it, and so may a script's own converter.

    For example:

        from loopwright.error import OpNotImplemented

        def convert(op):
            raise OpNotImplemented(f"the operator {op} has no conversion")

        convert("Einsum")
    """

    code = "LW0006"


class OpAttributeRequired(OpError, AttributeError):
    """An operator of the model lacks an attribute that it must have.

    The front ends raise it, and so may a script's own converter.

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

    The front ends raise it, and so may a script's own converter.

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

    The front ends raise it, and so may a script's own converter.

    For example:

        from loopwright.error import OpAttributeUnImplemented

        def convert_pool(attributes):
            if attributes["layout"] != "NCHW":
                raise OpAttributeUnImplemented(f"pool: layout {attributes['layout']} is not supported")

        convert_pool({"layout": "NHWC"})
    """

    code = "LW0009"
