"""lw.tune on programs and on models, measured for real; builds and compiled models take what was found."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay, te, topi
from loopwright.frontends.errors import NoDatabase
from loopwright.frontends.tuning import tasks_of
from loopwright.ir import IRModule
from loopwright.target import Target
from loopwright.tune import Record, open_database
from loopwright.tune.candidate import RULES, Candidate
from loopwright.tune.database import DatabaseUnavailable
from loopwright.tune.errors import BadTuneArgument, NoTasks, NothingToSpend, UnknownName, WrongAnswer
from loopwright.tune.measure import UnmeasurableTask
from loopwright.tune.space import RuleSpace

TARGET = "llvm -num-cores=1"


def product(m: int = 20, n: int = 64, k: int = 24):
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="r")
    return [A, B, te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")]


def dense_model() -> IRModule:
    x = relay.var("x", shape=(8, 32))
    w = relay.const(np.random.default_rng(0).random((40, 32), "float32"))
    v = relay.const(np.random.default_rng(1).random((40, 40), "float32"))
    hidden = relay.nn.relu(relay.nn.dense(x, w))
    return IRModule.from_expr(relay.Function([x], relay.nn.softmax(relay.nn.dense(hidden, v))))


def test_a_program_is_tuned_and_built_with_what_was_found(tmp_path):
    result = lw.tune(product(), trials=4, target=TARGET, database=tmp_path / "d.db")
    (search,) = result.session.searches
    assert 1 < len(search.trials) <= 4
    assert result.speed_up >= 1.0
    assert all(trial.failure is None or trial.failure.kind == "duplicate" for trial in search.trials)
    assert all(trial.measured.checked for trial in search.trials if trial.measured is not None)
    assert result.schedule().is_proved
    assert "× the rule" in str(result)
    with open_database(tmp_path / "d.db"):
        run = lw.build(product(), target=TARGET, autosched=True)
    a, b = (np.random.default_rng(0).random(shape, "float32") for shape in ((20, 24), (24, 64)))
    c = np.empty((20, 64), "float32")
    run(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_the_kernels_of_a_model_are_its_tasks():
    tasks = tasks_of(dense_model(), Target(TARGET))
    assert len(tasks) >= 2
    constants = [task.function.attrs.get("constant_params") for task in tasks]
    assert sum(bool(one) for one in constants) == 2  # both weights
    for task, bound in zip(tasks, constants, strict=True):
        assert len(task.as_called.function.params) == len(task.function.params) - len(bound or ())


def test_a_compiled_model_takes_what_the_database_knows(tmp_path):
    database = open_database(tmp_path / "d.db")
    tasks = tasks_of(dense_model(), Target(TARGET))
    task = next(task for task in tasks if RuleSpace(task).size > 1)
    space = RuleSpace(task)
    row = space.first()
    row[0] = (row[0] + 1) % len(space.points[0].candidates)
    candidate = space.candidate(row)
    trace = space.schedule(candidate).trace.as_json()
    settings = {"threads": 1, "cache": "warm", "final": True, "winograd": 0}
    record = Record(task.key, task.fingerprint, trace, (1e-6,), "", RULES, candidate.choices, settings=settings)
    database.add(record)
    x = np.random.default_rng(2).random((8, 32), "float32")
    plain = lw.compile(dense_model(), target=TARGET)
    tuned = lw.compile(dense_model(), target=TARGET, database=database)
    texts = [model.get_source("ll") for model in (plain.compiled, tuned.compiled)]
    assert texts[0] != texts[1]
    np.testing.assert_allclose(_run(plain, x), _run(tuned, x), rtol=1e-5)
    assert Candidate(record.space, record.choices) == candidate


def _run(model, x):
    from loopwright.contrib.graph_executor import GraphModule

    module = GraphModule(model["default"](lw.cpu(0)))
    module.set_input("x", x)
    module.run()
    return module.get_output(0).numpy()


def test_bad_input():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    open_size = [A, te.compute((n,), lambda i: A[i] + 1.0, name="B")]
    with pytest.raises(NoTasks, match="sizes of the program are not known"):
        lw.tune(open_size, trials=2)
    with pytest.raises(NothingToSpend, match="0 is no number above 0"):
        lw.tune(product(), trials=0)
    with pytest.raises(NothingToSpend, match="'5' is no number above 0"):
        lw.tune(product(), trials="5")
    with pytest.raises(BadTuneArgument, match="database is 5, not a path, a URL or an open database"):
        lw.tune(product(), trials=1, database=5)
    with pytest.raises(BadTuneArgument, match="seed is 'a', not an integer that is not negative"):
        lw.tune(product(), trials=1, seed="a")
    with pytest.raises(NoTasks, match="the module has no program"):
        lw.tune(IRModule({}), trials=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 1.5}, "trials is 1.5, not a whole number"),
        ({"winograd": "yes"}, "winograd is 'yes', not True, False or the largest tile"),
        ({"model": None}, "model is None, not a name, or an object that has fit and predict"),
        ({"strategy": 5}, "strategy is 5, not a name, or an object that has propose"),
        ({"scheduler": []}, r"scheduler is \[\], not a name, or an object that has next"),
        ({"observers": None}, "observers is None, not a list of objects that have begin, trial and end"),
        ({"observers": [print]}, "observers is .*, not a list of objects that have begin, trial and end"),
        ({"trails": 5}, "trails is 5, not an option of a program"),
    ],
)
def test_arguments_that_a_search_cannot_take_are_named(options, message):
    with pytest.raises(BadTuneArgument, match=message):
        lw.tune(product(), **{"trials": 1, "target": TARGET, **options})


def test_options_of_a_model_have_names():
    with pytest.raises(BadTuneArgument, match="trails is 5, not an option of `tune` or `compile`"):
        lw.tune(dense_model(), trials=1, trails=5)


def test_a_model_is_compiled_with_a_database_that_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoDatabase, match="the database 5 is not a path"):
        lw.compile(dense_model(), database=5)
    with pytest.raises(DatabaseUnavailable, match="there is no such file"):
        lw.compile(dense_model(), database="tune.db")
    assert list(tmp_path.iterdir()) == []


def test_names_are_looked_up_before_a_model_is_compiled():
    with pytest.raises(UnknownName, match="there is no strategy 'oracle'"):
        lw.tune("there_is_no_such.onnx", trials=1, strategy="oracle")
    with pytest.raises(UnknownName, match="there is no task scheduler 'oracle'"):
        lw.tune("there_is_no_such.onnx", trials=1, scheduler="oracle")


def test_numbers_of_numpy_are_numbers():
    result = lw.tune(product(), trials=np.int64(1), seed=np.int64(3), threads=np.int32(1), target=TARGET)
    assert (result.session.trials, result.session.seed) == (1, 3)
    assert repr(result) == "<Tuned: 1.000 × the rules, 1 task, 1 trial, in MemoryDatabase()>"


def test_a_program_that_a_module_has_twice_is_one_task_of_twice_the_weight():
    function = te.create_prim_func(product())
    other = te.create_prim_func(product(8, 8, 8))
    tasks = tasks_of(IRModule({"f": function, "g": function, "h": other}), Target(TARGET))
    assert [(task.name, task.weight) for task in tasks] == [("f", 2.0), ("h", 1.0)]


def test_a_program_of_scalars_is_measured():
    S = te.placeholder((), name="S")
    result = lw.tune([S, te.compute((), lambda: S() * 2.0, name="R")], trials=3, target=TARGET)
    assert result.session.searches[0].trials[0].failure is None


def shifted(extent: int):
    A = te.placeholder((extent, extent), name="A")
    return te.create_prim_func([A, te.compute((extent, extent), lambda i, j: A[i, j] + 1.0, name="B")])


def test_arrays_that_no_memory_holds_are_refused_before_they_are_made():
    with pytest.raises(UnmeasurableTask, match=r"the arrays take 298\.02 GiB, and a process may take 4\.00 GiB"):
        lw.tune(shifted(200_000), trials=1, target=TARGET)


def test_a_program_that_cannot_be_measured_is_left_out():
    with pytest.warns(UserWarning, match="no argument can be made up for parameter .* of 'huge': .*; it is left out"):
        result = lw.tune(IRModule({"huge": shifted(200_000), "small": shifted(8)}), trials=1, target=TARGET)
    assert [search.task.name for search in result.session.searches] == ["small"]


class Own:
    """A part of a search that always gives the same answer."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def _given(self, *_: object) -> object:
        return self.answer

    fit = predict = propose = next = _given


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"strategy": Own(None)}, r"Own.propose returned None, not rows of \d+ positions"),
        ({"strategy": Own("abc")}, "Own.propose returned 'abc', not rows"),
        ({"strategy": Own(np.zeros((3, 77), int))}, r"Own.propose returned array\(.*, not rows"),
        ({"strategy": Own([[10**6] * 8])}, r"Own.propose returned \[\[1000000, .*, not rows"),
        ({"model": Own(None)}, r"Own.predict returned None, not \d+ numbers"),
        ({"model": Own([1.0])}, r"Own.predict returned \[1.0\], not \d+ numbers"),
        ({"scheduler": Own(5)}, "Own.next returned 5, not the number of a task, from 0 to 0, or None"),
        ({"scheduler": Own(-1)}, "Own.next returned -1, not the number of a task"),
        ({"scheduler": Own("x")}, "Own.next returned 'x', not the number of a task"),
    ],
)
def test_answers_that_a_search_cannot_use_are_named(parts, message):
    with pytest.raises(WrongAnswer, match=message):
        lw.tune(product(8, 16, 8), trials=20, target=TARGET, **{"model": "prior", **parts})


def test_parts_of_one_s_own():
    class Drawn:
        def propose(self, space, model, seen, count, random):
            return seen.new(space.sample(2 * count, random))[:count]

    class Same:
        def fit(self, experience): ...

        def predict(self, batch):
            return [0.0] * len(batch)

    result = lw.tune(product(8, 16, 8), trials=3, target=TARGET, model=Same(), strategy=Drawn())
    assert result.session.searches[0].rule_seconds > 0


def test_a_program_without_choices_is_searched():
    A, I = te.placeholder((50, 8), name="A"), te.placeholder((5,), name="I", dtype="int64")
    result = lw.tune([A, I, topi.take(A, I, axis=0)], trials=3, target=TARGET)
    assert result.session.searches[0].trials[0].failure is None
