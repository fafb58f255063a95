"""What can go wrong on the C target, while a source is made, compiled or run."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError


class NoCCompiler(LoopwrightError, RuntimeError):
    """A function of a module for target "c" was called, and there is no C compiler to compile it with.

    The source can be read all the same (`get_source("c")`, `get_source("h")`) and compiled elsewhere. The compiler is
    `CC` of the environment, or else the first of cc, gcc and clang on PATH.

    For example:

        # needs a process of its own
        import os
        import numpy
        import loopwright
        from loopwright import te

        os.environ["CC"] = "no-such-compiler"
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
        module = loopwright.build([A, B], target="c")
        module(numpy.zeros(4, "float32"), numpy.zeros(4, "float32"))
    """

    code = "LW0650"

    def __init__(self, looked_for: Sequence[str]) -> None:
        super().__init__(
            f"there is no C compiler to compile this function with: looked for {', '.join(looked_for)}",
            hint="install gcc or clang (apt-get install gcc), or set CC; get_source('c') shows the source",
            fields={"looked_for": list(looked_for)},
        )


class CompilerFailed(LoopwrightError, RuntimeError):
    """The C compiler refused the generated source, or could not be run.

    If the message is about the source, that is a bug of ours. It may also be about the compiler: a flag in `CC` that it
    does not know, a system without headers, no space left.

    For example:

        # needs a process of its own
        import os
        import numpy
        import loopwright
        from loopwright import te

        os.environ["CC"] = "false"
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + 2.0, name="B")
        module = loopwright.build([A, B], target="c")
        module(numpy.zeros(4, "float32"), numpy.zeros(4, "float32"))
    """

    code = "LW0651"

    def __init__(self, command: str, message: str) -> None:
        super().__init__(
            f"{command} failed: {message.strip()[-2000:] or 'it said nothing'}",
            hint="check CC and that the compiler works; get_source('c') shows the source",
            fields={"command": command, "message": message},
        )


class ResultsDiffer(LoopwrightError, TypeError):
    """A function for target "c" returns values of different types.

    In C the result is written through a pointer, which has one type.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(n: T.int32):
            if n > 0:
                T.evaluate(T.ret(n))
            T.evaluate(T.ret(T.float32(0.5)))

        loopwright.build(f, target="c")
    """

    code = "LW0652"

    def __init__(self, function: str, dtypes: Sequence[DataType]) -> None:
        names = " and ".join(str(dtype) for dtype in dtypes)
        super().__init__(
            f"{function} returns values of types {names}, and in C a result has one type",
            hint="convert what is returned to one type with .astype",
            fields={"function": function, "dtypes": [str(dtype) for dtype in dtypes]},
        )


class ErrorTable:
    """The codes that the functions of a source return: each an error class of ours and a text."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], int] = {}

    def code(self, kind: str, message: str) -> int:
        """The code of that error; 0 is success."""
        return self.entries.setdefault((kind, message), len(self.entries) + 1)
