"""What can be wrong with a hybrid function; each error shows the line of the user's source."""

from __future__ import annotations

from loopwright.runtime.errors import LoopwrightError, SourceLine


class HybridError(LoopwrightError, ValueError):
    """A hybrid function cannot be made into loops; the message shows the line.

    Hybrid script is a small part of Python: loops over `range` and its kin, conditions, assignments to elements and to
    scalars, arithmetic, the functions listed in the documentation, and one `return` at the end. This class is the base
    of the more precise errors, and is raised for anything else that has no meaning there.

    For example:

        from loopwright import te

        @te.hybrid.script
        def f(a):
            b = output_tensor((4,), "float32")
            while True:
                b[0] = a[0]
            return b

        f(te.placeholder((4,), name="a"))
    """

    code = "LW0444"

    def __init__(
        self, problem: str, at: SourceLine | None = None, hint: str | None = None, why: str | None = None
    ) -> None:
        super().__init__(problem, at=at, hint=hint, why=why)


class HybridNameError(HybridError):
    """A hybrid function uses a name that has no value there, or gives one that has.

    A variable lives in the loop that first assigns it. Its first assignment is a plain one; the variable of a loop is
    never assigned; and names from outside the function are constants, tuples of constants, or other hybrid functions.

    For example:

        from loopwright import te

        @te.hybrid.script
        def f(a):
            b = output_tensor((4,), "float32")
            for i in range(4):
                s = a[i] * 2
            b[0] = s
            return b

        f(te.placeholder((4,), name="a"))
    """

    code = "LW0445"


class HybridReturnError(HybridError):
    """A hybrid function does not return its outputs as it should.

    The last statement, outside all loops and conditions, returns one tensor made by `output_tensor`, or several
    different ones.

    For example:

        from loopwright import te

        @te.hybrid.script
        def f(a):
            b = output_tensor((4,), "float32")
            for i in range(4):
                b[i] = a[i]

        f(te.placeholder((4,), name="a"))
    """

    code = "LW0446"


class HybridCallError(HybridError):
    """A call in a hybrid function, or of one, has the wrong arguments, or calls what is not known there.

    For example:

        from loopwright import te

        @te.hybrid.script
        def f(a):
            b = output_tensor((4,), "float32")
            for i in range(4):
                b[i] = max(a[i], 0.0, 1.0)
            return b

        f(te.placeholder((4,), name="a"))
    """

    code = "LW0447"


class HybridLoopError(HybridError):
    """A loop of a hybrid function is not one of those that exist, or its bounds are not what they must be.

    `range`, `unroll`, `parallel`, `vectorize` and `const_range` take an end, or a beginning and an end; `const_range`
    and `vectorize` need constants; `bind("threadIdx.x", n)` a tag, and equal extents wherever it is used again.

    For example:

        from loopwright import te

        @te.hybrid.script
        def f(a):
            b = output_tensor((4,), "float32")
            for i in range(0, 4, 2):
                b[i] = a[i]
            return b

        f(te.placeholder((4,), name="a"))
    """

    code = "LW0448"


class HybridTypeError(HybridError, TypeError):
    """A hybrid function stores a value in a scalar whose type cannot hold it, or asks for a type that does not exist.

    The first value of a scalar says its type: `0` is int32, `0.0` is float32. Elements of tensors take any number,
    converted to their type, as in numpy.

    For example:

        from loopwright import te

        @te.hybrid.script
        def f(a):
            b = output_tensor((1,), "float32")
            s = 0
            for i in range(4):
                s += a[i]
            b[0] = s
            return b

        f(te.placeholder((4,), name="a"))
    """

    code = "LW0449"


class MixedArguments(HybridError, TypeError):
    """A hybrid function was called on te tensors and on arrays at once.

    On tensors (and variables) it gives tensors; on numpy arrays and numbers it runs as Python.

    For example:

        import numpy as np
        from loopwright import te

        @te.hybrid.script
        def f(a, b):
            c = output_tensor((4,), "float32")
            for i in range(4):
                c[i] = a[i] + b[i]
            return c

        f(te.placeholder((4,), name="a"), np.zeros(4, "float32"))
    """

    code = "LW0450"
