"""tune_tir and compile_tir: a program is searched, its records are in two files, its best schedule is right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import meta_schedule as ms
from tests.meta_schedule.programs import gemm

TARGET = "llvm -num-cores=1"


def usual_script_space() -> ms.SpaceGenerator:
    """Rules cloned and replaced in a list, as scripts do it."""
    rules = [
        ms.schedule_rule.ParallelizeVectorizeUnroll(-1, 64, [0, 16, 64, 512], True)
        if isinstance(rule, ms.schedule_rule.ParallelizeVectorizeUnroll)
        else rule.clone()
        for rule in ms.ScheduleRule.create("llvm")
    ]
    mutators = {
        ms.mutator.MutateParallel(-1) if isinstance(one, ms.mutator.MutateParallel) else one.clone(): share
        for one, share in ms.Mutator.create("llvm").items()
    }
    return ms.space_generator.PostOrderApply(sch_rules=rules, mutator_probs=mutators)


def test_a_script_of_the_usual_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mod = gemm(64, 48, 40)
    database = ms.tune_tir(
        mod, TARGET, str(tmp_path), max_trials_global=6, num_trials_per_iter=4, space=usual_script_space(), seed=1
    )
    sch = ms.tir_integration.compile_tir(database, mod, TARGET)
    assert sch is not None and sch.is_proved
    sch.trace.show()
    assert "split" in capsys.readouterr().out
    assert "T.parallel" not in sch.mod.script()
    a, b = np.random.rand(64, 40).astype("float32"), np.random.rand(40, 48).astype("float32")
    c = lw.nd.array(np.zeros((64, 48), "float32"))
    lw.build(sch.mod, target=TARGET)(lw.nd.array(a), lw.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4)


def test_records_are_read_again(tmp_path: Path) -> None:
    mod = gemm()
    database = ms.tune_tir(mod, TARGET, str(tmp_path), max_trials_global=3, seed=1)
    again = ms.database.JSONDatabase(work_dir=str(tmp_path))
    assert len(again) == len(database) >= 1
    assert ms.compile_tir(again, mod, TARGET) is not None
    assert ms.compile_tir(again, gemm(16, 16, 16), TARGET) is None


def test_a_database_of_tune_takes_the_records(tmp_path: Path) -> None:
    mod = gemm()
    database = ms.Database.create("tune", tmp_path / "tune.db", TARGET)
    ms.tune_tir(mod, TARGET, str(tmp_path), max_trials_global=3, seed=1, database=database)
    assert len(database.kept.records()) >= 1
    assert ms.compile_tir(database, mod, TARGET) is not None


def test_programs_built_inside_a_database_take_its_schedules(tmp_path: Path) -> None:
    mod = gemm()
    database = ms.Database.create("memory")
    sch = lw.Schedule(ms.tune_context._normalize_mod(mod))
    i, _, _ = sch.get_loops("C")
    sch.split(i, [None, 4])
    database.commit_tuning_record(ms.database.TuningRecord(sch.trace, database.commit_workload(_plain(mod)), [1.0]))
    from loopwright.autosched import apply

    with database:
        assert ms.Database.current() is database
        plan = apply(mod, lw.Target(TARGET))
    assert ms.Database.current() is None
    assert "known schedule" in str(plan.decisions)


def _plain(mod: object) -> lw.IRModule:
    return ms.tune_context._normalize_mod(mod)  # type: ignore[arg-type]


def test_special_space_skips_a_function(tmp_path: Path) -> None:
    with pytest.raises(ms.errors.NothingToTune, match="the list of tasks is empty"):
        ms.tune_tir(gemm(), TARGET, str(tmp_path), max_trials_global=1, special_space={"main": None})


def test_zero_trials_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a search needs a budget"):
        ms.tune_tir(gemm(), TARGET, str(tmp_path), max_trials_global=0)


def test_unknown_strategy(tmp_path: Path) -> None:
    with pytest.raises(ms.errors.UnknownKind, match="there is no search strategy 'oracle'"):
        ms.tune_tir(gemm(), TARGET, str(tmp_path), max_trials_global=4, strategy="oracle")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mod": None}, "mod is None, not a PrimFunc or an IRModule"),
        ({"mod": [1]}, r"mod is \[1\], not a PrimFunc or an IRModule"),
        ({"max_trials_global": "8"}, "max_trials_global is '8', not a whole number"),
        ({"num_trials_per_iter": 0}, "a search needs a budget: num_trials_per_iter is 0"),
        ({"max_trials_per_task": -1}, "a search needs a budget: max_trials_per_task is -1"),
        ({"cost_model": "oracle"}, "there is no cost model 'oracle'"),
        ({"task_scheduler": "oracle"}, "there is no task scheduler 'oracle'"),
        ({"num_tuning_cores": "all"}, "num_threads is 'all', not a number above 0"),
        ({"num_tuning_cores": 0}, "num_threads is 0, not a number above 0"),
        ({"seed": -5}, "rand_state is -5, not an integer that is not negative, or -1 for any"),
    ],
)
def test_arguments_that_a_search_cannot_take_are_named(options: dict[str, object], message: str) -> None:
    given = {"mod": gemm(), "target": TARGET, "work_dir": "unused", "max_trials_global": 2, "database": "memory"}
    with pytest.raises(ValueError, match=message) as caught:
        ms.tune_tir(**{**given, **options})  # type: ignore[arg-type]
    assert isinstance(caught.value, lw.LoopwrightError)


@pytest.mark.parametrize(
    ("task", "weight", "message"),
    [
        (5, 1.0, "a task is 5, not a TuneContext"),
        (ms.TuneContext(gemm()), 1.0, "the context of 'main' has no target"),
        (ms.TuneContext(target=TARGET), 1.0, "the context of 'main' has no program"),
        (ms.TuneContext(gemm(), target=TARGET), float("nan"), "a weight is nan, not a number above 0"),
    ],
)
def test_tasks_that_cannot_be_searched_are_named(task: object, weight: float, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        ms.tune_tasks(
            tasks=[task],  # type: ignore[list-item]
            task_weights=[weight],
            work_dir="unused",
            max_trials_global=2,
            database="memory",
        )
    assert isinstance(caught.value, lw.LoopwrightError)
