"""Errors of the meta_schedule door."""

from __future__ import annotations

from typing import Any

from loopwright.runtime.errors import LoopwrightError, NotBuilt


class MethodNotDefined(LoopwrightError, ValueError, NotImplementedError):
    """A class derived from a `Py…` class of meta_schedule lacks a method that the search calls.

    For example:

        from loopwright import meta_schedule as ms

        @ms.derived_object
        class Mine(ms.task_scheduler.PyTaskScheduler):
            pass

        Mine().next_task_id()
    """

    code = "LW1570"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="define the method in your class")


class NothingToTune(LoopwrightError, ValueError):
    """`tune_tasks` was given no tasks, or not one weight for each task, or a task has no design space.

    For example:

        from loopwright import meta_schedule as ms

        ms.tune_tasks(tasks=[], task_weights=[], work_dir="/tmp", max_trials_global=64)
    """

    code = "LW1571"

    def __init__(self, problem: str, hint: str = "give TuneContexts, and a weight for each") -> None:
        super().__init__(problem, hint=hint)


class UnknownKind(LoopwrightError, ValueError):
    """A part of a search is asked for by a name that does not exist.

    For example:

        from loopwright import meta_schedule as ms

        ms.SearchStrategy.create("oracle")
    """

    code = "LW1572"

    def __init__(self, what: str, kind: object, known: list[str]) -> None:
        super().__init__(f"there is no {what} {kind!r}", hint=f"choose one of {', '.join(known)}")


class NotInitialized(LoopwrightError, ValueError):
    """A search strategy is asked for candidates before `pre_tuning`, or a context lacks a part that it needs.

    For example:

        from loopwright import meta_schedule as ms

        ms.TuneContext().generate_design_space()
    """

    code = "LW1573"

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem, hint=hint)


class UnknownTargetRules(LoopwrightError, ValueError):
    """There are no schedule rules for a kind of target.

    For example:

        from loopwright import meta_schedule as ms

        ms.schedule_rule.ScheduleRule.create("abacus")
    """

    code = "LW1574"

    def __init__(self, kind: object) -> None:
        super().__init__(f"there are no schedule rules for {kind!r}", hint='choose "llvm" or "cuda", or give your own')


class MissingTrackerSettings(LoopwrightError, ValueError):
    """An RPC configuration says neither directly nor by environment variables where the tracker is.

    For example:

        from loopwright import meta_schedule as ms

        ms.runner.RPCConfig(tracker_host=None)._sanity_check()
    """

    code = "LW1575"

    def __init__(self, name: str) -> None:
        super().__init__(f"RPCConfig.{name} is not given", hint=f"give it, or set the variable TVM_{name.upper()}")


class BadTuningArgument(LoopwrightError, ValueError, TypeError):
    """An argument of a tuning function is of a type or has a value that it cannot have.

    For example:

        from loopwright import meta_schedule as ms

        ms.tune_tir(None, "llvm", "work", max_trials_global=64)
    """

    code = "LW1576"

    def __init__(self, name: str, given: object, wanted: str) -> None:
        super().__init__(f"meta_schedule: {name} is {_line(given)}, not {wanted}", hint=f"give {wanted}")


class WrongAnswer(LoopwrightError, ValueError, TypeError):
    """A part of the search that is the user's own returned what such a part cannot return.

    For example:

        from loopwright import meta_schedule as ms, te

        program = te.create_prim_func([te.compute((8,), lambda i: te.const(1.0, "float32"), name="B")])
        ms.TuneContext(program, target="llvm", space_generator=lambda sch: 5).generate_design_space()
    """

    code = "LW1577"

    def __init__(self, part: object, method: str, given: object, wanted: str) -> None:
        name = getattr(part, "__name__", None) or type(part).__name__
        super().__init__(f"{name}{method} returned {_line(given)}, not {wanted}", hint=f"return {wanted}")


class UnreadableData(LoopwrightError, ValueError):
    """A saved cost model, record, workload or argument cannot be read: it is damaged, or is something else.

    For example:

        from loopwright import meta_schedule as ms

        ms.cost_model.XGBModel().load("nowhere.tar")
    """

    code = "LW1578"

    def __init__(self, what: str, why: str, hint: str) -> None:
        super().__init__(f"{what} cannot be read: {why}", hint=hint)


class BadHook(LoopwrightError, ValueError):
    """A builder or runner names a function that nobody registered, or its initializer fails.

    For example:

        from loopwright import meta_schedule as ms

        ms.builder.LocalBuilder(f_build="nobody.registered.this")
    """

    code = "LW1579"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="register it in the initializer: `tvm.register_func(name, function)`")


def _line(given: object) -> str:
    """What was given, on one line that is not too long."""
    return " ".join(repr(given).split())[:80]


def as_many(part: object, method: str, given: object, count: int, what: str) -> list[Any]:
    """The list that a part of the user's returned, one item for each of `count` inputs."""
    try:
        found = list(given)  # type: ignore[call-overload]
    except TypeError:
        found = None
    if found is None or len(found) != count:
        raise WrongAnswer(part, method, given, f"a list of {count} {what}, one for each input")
    return found


def needs_rpc(what: str) -> NotBuilt:
    """The error for parts that measure on other machines."""
    return NotBuilt(f"meta_schedule.{what}", hint="it needs RPC, which is not there yet; measure here: LocalRunner()")
