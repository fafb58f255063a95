"""What cannot be measured at all, which is the caller's mistake; a candidate that fails is a `Failure` instead."""

from __future__ import annotations

from loopwright.runtime.errors import LoopwrightError


class UnmeasurableTask(LoopwrightError, ValueError):
    """Arguments for the function cannot be made up: a size is not known, or a parameter is no tensor and no number.

    For example:

        import loopwright
        from loopwright.script import tir as T
        from loopwright.tune import Task
        from loopwright.tune.measure import make_arguments

        @T.prim_func
        def f(a: T.handle):
            n = T.int32()
            A = T.match_buffer(a, (n,), "float32")
            for i in range(n):
                A[i] = T.float32(1)

        make_arguments(Task("f", loopwright.ir.IRModule({"main": f}), loopwright.target.Target("llvm")), seed=0)
    """

    code = "LW1530"

    def __init__(self, name: str, parameter: str, why: str, hint: str | None = None) -> None:
        super().__init__(
            f"tune: no argument can be made up for parameter {parameter!r} of {name!r}: {why}",
            hint=hint
            or "bind sizes to numbers first (`PrimFunc.specialize`), or give the arguments: `Measurer(arguments=…)`",
            fields={"function": name, "parameter": parameter},
        )


class WrongArguments(LoopwrightError, ValueError):
    """The arguments that were given for measuring are not those of the function.

    For example:

        import loopwright
        from loopwright.script import tir as T
        from loopwright.tune import Task
        from loopwright.tune.measure import given_arguments

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            for i in range(4):
                A[i] = T.float32(1)

        given_arguments(Task("f", loopwright.ir.IRModule({"main": f}), loopwright.target.Target("llvm")), [])
    """

    code = "LW1531"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            f"tune: the given arguments do not fit {name!r}: {why}",
            hint="give one array or number for each parameter, in order, outputs included",
            fields={"function": name},
        )


class BadMeasureOption(LoopwrightError, ValueError):
    """An option of the measurer that makes no sense, such as a cache that is neither warm nor cold.

    For example:

        from loopwright.target import Target
        from loopwright.tune.measure import Measurer

        Measurer(Target("llvm"), cache="tepid")
    """

    code = "LW1532"

    def __init__(self, option: str, given: object, hint: str) -> None:
        super().__init__(f"tune: {option} is {given!r}", hint=hint, fields={"option": option, "given": str(given)})


class CannotMeasureHere(LoopwrightError):
    """The task is for another machine than this one: its code cannot run here, so it cannot be measured.

    For example:

        import platform
        from loopwright.target import Target
        from loopwright.tune.measure import Measurer

        other = "riscv64-unknown-linux-gnu" if platform.machine() != "riscv64" else "aarch64-unknown-linux-gnu"
        Measurer(Target(f"llvm -mtriple={other}"))
    """

    code = "LW1533"

    def __init__(self, target: str, why: str) -> None:
        super().__init__(
            f"tune: code for {target} cannot be measured here: {why}",
            hint='tune on the machine the code is for, with Target("llvm")',
            fields={"target": target},
        )


class NothingToRace(LoopwrightError, ValueError):
    """A candidate that was not built was given to be timed: look at its `failure` first.

    For example:

        from loopwright.target import Target
        from loopwright.tune.measure import Built, Failure, Measurer

        Measurer(Target("llvm")).measure_alone(None, Built(failure=Failure("refused", "a step was refused")))
    """

    code = "LW1534"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"tune: a candidate without code cannot be timed: {why}",
            hint="time only what has no `failure`",
            fields={"why": why},
        )
