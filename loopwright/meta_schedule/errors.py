"""Errors of the meta_schedule door."""

from __future__ import annotations

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
    """`tune_tasks` was given no tasks, or not one weight for each task.

    For example:

        from loopwright import meta_schedule as ms

        ms.tune_tasks(tasks=[], task_weights=[], work_dir="/tmp", max_trials_global=64)
    """

    code = "LW1571"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="give TuneContexts, and a weight for each")


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


def needs_rpc(what: str) -> NotBuilt:
    """The error for parts that measure on other machines."""
    return NotBuilt(f"meta_schedule.{what}", hint="it needs RPC, which is not there yet; measure here: LocalRunner()")
