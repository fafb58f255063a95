"""The mistakes one can make with operators: shapes, paddings, windows and layouts that do not fit."""

from __future__ import annotations

from loopwright.runtime.errors import LoopwrightError


class InvalidShapeError(LoopwrightError, ValueError, AssertionError):
    """The shapes given to an operator do not fit together.

    A tensor has the wrong number of dimensions for its layout, or two of them disagree about a size that they share:
    the input channels of the data and of the weight, for one.

    For example:

        from loopwright import te, topi

        data = te.placeholder((1, 3, 8, 8), name="data")
        weight = te.placeholder((16, 4, 3, 3), name="weight")
        topi.nn.conv2d_nchw(data, weight, 1, 1, 1)
    """

    code = "LW1101"

    def __init__(self, op: str, problem: str, hint: str | None = None, **fields: object) -> None:
        super().__init__(f"{op}: {problem}", hint=hint, fields={"op": op, **fields})


class BadPadding(LoopwrightError, ValueError):
    """A padding is not one of the forms that operators take.

    It is one number for all sides, one a dimension, all the beginnings followed by all the ends (top, left, bottom,
    right), or `"VALID"` (none) or `"SAME"` (as much as makes a window of stride 1 keep the size).

    For example:

        from loopwright import te, topi

        data = te.placeholder((1, 3, 8, 8), name="data")
        weight = te.placeholder((16, 3, 3, 3), name="weight")
        topi.nn.conv2d_nchw(data, weight, 1, (1, 1, 1), 1)
    """

    code = "LW1102"

    def __init__(self, op: str, problem: str, hint: str) -> None:
        super().__init__(f"{op}: {problem}", hint=hint, fields={"op": op})


class BadWindow(LoopwrightError, ValueError, AssertionError):
    """The window of an operator cannot be moved over its data: its size, stride, dilation or groups make no sense.

    For example:

        from loopwright import te, topi

        data = te.placeholder((1, 3, 8, 8), name="data")
        topi.nn.pool2d(data, (3, 3), (0, 1), (1, 1), (0, 0, 0, 0), "max")
    """

    code = "LW1103"

    def __init__(self, op: str, problem: str, hint: str | None = None, **fields: object) -> None:
        super().__init__(f"{op}: {problem}", hint=hint, fields={"op": op, **fields})


class UnsupportedLayout(LoopwrightError, ValueError):
    """An operator was asked for a layout that it does not know.

    For example:

        from loopwright import te, topi

        data = te.placeholder((1, 8, 8, 8, 4, 4), name="data")
        topi.nn.pool2d(data, (3, 3), (1, 1), (1, 1), (0, 0, 0, 0), "max", layout="NCHW4h4w")
    """

    code = "LW1104"

    def __init__(self, op: str, layout: object, hint: str) -> None:
        super().__init__(f"{op}: Unsupported layout {layout}", hint=hint, fields={"op": op, "layout": layout})
