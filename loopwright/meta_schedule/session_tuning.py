"""session_tuning: the search of `loopwright.tune`, for contexts all of whose parts are the usual ones.

The rules of a context stand for those of a sketch space (`ScheduleRule.sketch_rules`); beside it are the decisions of
the rules of `autosched`, whose own choice is the first candidate: so what is found is never slower than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from loopwright.meta_schedule.arg_info import ArgInfo
from loopwright.meta_schedule.builder import LocalBuilder
from loopwright.meta_schedule.cost_model import RandomModel, XGBModel
from loopwright.meta_schedule.database import Database, TuneDatabase, TuningRecord
from loopwright.meta_schedule.database.record import NO_TIME
from loopwright.meta_schedule.runner import LocalRunner
from loopwright.meta_schedule.schedule_rule import ParallelizeVectorizeUnroll
from loopwright.meta_schedule.search_strategy import EvolutionarySearch
from loopwright.meta_schedule.space_generator import PostOrderApply
from loopwright.meta_schedule.tune_context import TuneContext
from loopwright.target import Target, describe
from loopwright.tune import Budget, Measurer, RuleSpace, Session, Space, Task, TaskSearch, Trial
from loopwright.tune.sketches import SketchSpace
from loopwright.tune.sketches.rules.rule import ScheduleRule as SketchRule

_LARGEST_ROUND: Final = 8  # of a session, whose model looks at measurements more often than the peer's


def is_usual(tasks: Sequence[TuneContext], builder: Any, runner: Any, names: Sequence[Any]) -> bool:
    """Whether no part is the user's own."""
    if not (builder == "local" or (type(builder) is LocalBuilder and builder.is_usual)):
        return False
    if not (runner == "local" or (type(runner) is LocalRunner and runner.is_usual)):
        return False
    model, callbacks, scheduler = names
    if callbacks != "default" or not isinstance(scheduler, str):
        return False
    if not (isinstance(model, str) or type(model) in (XGBModel, RandomModel)):
        return False
    # Candidates of one session are measured for one target.
    return all(_is_usual_task(task) for task in tasks) and len({str(task.target) for task in tasks}) == 1


def tune_in_session(
    tasks: Sequence[TuneContext],
    weights: Sequence[float],
    database: Database,
    limits: tuple[int, int, int],
    scheduler: str,
    cost_model: Any,
) -> Database:
    """Search; every trial becomes a record."""
    trials, per_task, per_round = limits
    searched = []
    for context, weight in zip(tasks, weights, strict=True):
        assert context.mod is not None
        assert context.target is not None
        target = _serial(context.target) if _forbids_parallel(context) else context.target
        searched.append(Task(context.task_name, context.mod, target, float(weight)))
    by_key = {task.key: context for task, context in zip(searched, tasks, strict=True)}
    cores = describe(searched[0].target).num_cores
    is_random = cost_model == "random" or isinstance(cost_model, RandomModel)
    session = Session(
        searched,
        Measurer(searched[0].target, threads=cores, seed=tasks[0].rand_state),
        database.kept if isinstance(database, TuneDatabase) else None,
        tasks[0].rand_state,
        "random" if is_random else "auto",
        scheduler="round-robin" if scheduler == "round-robin" else "gain",
        spaces=lambda task: _spaces(task, by_key[task.key]),
        round_size=max(1, min(per_round, _LARGEST_ROUND)),
        observers=[] if isinstance(database, TuneDatabase) else [_Keeper(database, by_key)],
    )
    session.run(Budget(trials=trials, trials_per_task=per_task))
    return database


def _spaces(task: Task, context: TuneContext) -> list[Space]:
    rules = _sketch_rules(context)
    # Sketches are made when it is their turn: for several contractions that takes seconds.
    return [RuleSpace(task), SketchSpace(task, rules)] if rules else [RuleSpace(task)]


def _sketch_rules(context: TuneContext) -> list[SketchRule]:
    generator = context.space_generator
    rules: list[SketchRule] = []
    for one in (generator.sch_rules if generator is not None else None) or ():
        rules += one.sketch_rules() or ()
    return rules


def _is_usual_task(context: TuneContext) -> bool:
    generator, strategy, target = context.space_generator, context.search_strategy, context.target
    if target is None or str(target.kind) != "llvm" or context.mod is None:
        return False
    if type(strategy) is not EvolutionarySearch or type(generator) is not PostOrderApply:
        return False
    if generator.f_block_filter is not None or not generator.sch_rules:
        return False
    if any(one.sketch_rules() is None for one in generator.sch_rules):
        return False
    return all(_is_own(one) for one in [*(generator.postprocs or ()), *(generator.mutator_probs or ())])


def _is_own(part: object) -> bool:
    return type(part).__module__.startswith("loopwright.meta_schedule.")


def _forbids_parallel(context: TuneContext) -> bool:
    generator = context.space_generator
    rules = (generator.sch_rules if generator is not None else None) or ()
    own = [one for one in rules if isinstance(one, ParallelizeVectorizeUnroll)]
    return bool(own) and all(one.max_jobs_per_core == -1 for one in own)


def _serial(target: Target) -> Target:
    """The target with one core."""
    return Target({**target.export(), "num-cores": 1})


class _Keeper:
    """Puts the trials of a session into a database of meta_schedule."""

    def __init__(self, database: Database, contexts: dict[str, TuneContext]) -> None:
        self.database, self.contexts = database, contexts
        self._fastest: dict[str, float] = {}

    def begin(self, session: Session) -> None:
        """Nothing to do: workloads come with their first record."""

    def trial(self, session: Session, search: TaskSearch, trial: Trial) -> None:
        failure = trial.failure
        if failure is not None and failure.kind == "duplicate":
            return
        # One that did not win is not faster than the incumbent, however its few samples look.
        seconds = trial.seconds if trial.is_best else max(trial.seconds, search.seconds * (1 + 1e-6))
        self._keep(search, trial.built.trace_json, seconds if failure is None else NO_TIME)

    def end(self, session: Session) -> None:
        """Who stands at the end comes first."""
        for search in session.searches:
            fastest = self._fastest.get(search.task.key)
            if search.incumbent is not None and fastest is not None and search.seconds > fastest:
                self._keep(search, search.incumbent.built.trace_json, fastest * (1 - 1e-9))

    def _keep(self, search: TaskSearch, trace: list[Any], seconds: float) -> None:
        if not seconds < NO_TIME:
            seconds = NO_TIME
        context = self.contexts[search.task.key]
        assert context.mod is not None
        workload = self.database.commit_workload(context.mod)
        infos = ArgInfo.from_entry_func(context.mod)
        self.database.commit_tuning_record(TuningRecord(trace, workload, [seconds], context.target, infos))
        key = search.task.key
        self._fastest[key] = min(seconds, self._fastest.get(key, NO_TIME))
