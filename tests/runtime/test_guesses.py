"""Names that people guess are met with what to write instead."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.runtime import Module, load_module
from loopwright.runtime.guesses import no_attribute
from loopwright.schedule import Schedule
from loopwright.schedule.diagnose.guessed_names import INSTEAD as OF_SCHEDULES
from loopwright.te.guessed_names import INSTEAD as OF_TE


def double() -> Schedule:
    A = te.placeholder((8, 8), name="A")
    return Schedule(te.create_prim_func([A, te.compute((8, 8), lambda i, j: A[i, j] * 2, name="B")]))


def told(owner: object, name: str) -> str:
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    assert not hasattr(owner, name)
    assert caught.value.name == name
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gelu", "write 0.5 * x * (1 + te.erf(x * 0.7071067811865476))"),
        ("mean", "te.sum(x / n, axis=k)"),
        ("pow", "write te.power(x, y)"),
        ("relu", "write te.max(x, 0.0)"),
        ("placeholdr", "did you mean placeholder"),
        ("reduce_axes", "did you mean reduce_axis"),
    ],
)
def test_te(name, words):
    assert f"module 'loopwright.te' has no attribute {name!r}; " in told(te, name)
    assert words in told(te, name)


def test_a_tile_with_the_users_own_names_and_numbers():
    mine = double()
    rows, cols = mine.get_loops("B")
    with pytest.raises(AttributeError) as caught:
        mine.tile(rows, cols, 4, y_factor=2)
    words = str(caught.value).partition("reorder: ")[2]
    assert words.startswith("rows_0, rows_1 = mine.split(rows, [None, 4]); cols_0, cols_1 = mine.split(cols, [None, 2]")
    exec(words)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tile", "sch.reorder(i_0, j_0, i_1, j_1)"),
        ("parallelize", "write sch.parallel(loop)"),
        ("loops", "write sch.get_loops(block)"),
        ("serial", "sch.undo() takes the last step back"),
        ("vectorise", "did you mean vectorize"),
    ],
)
def test_schedule(name, words):
    assert f"Schedule has no step or attribute {name!r}; " in told(double(), name)
    assert words in told(double(), name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("explain", "autosched.apply(function).explain()"),
        ("time", "module.time_evaluator()(*arguments).mean"),
        ("main", 'write module["main"]'),
        ("get_sources", "did you mean get_source"),
    ],
)
def test_module(name, words):
    assert words in told(Module({"main": print}), name)


def test_autosched():
    assert "write autosched.apply(function).explain()" in told(autosched, "explain")


def test_the_package():
    assert lw.Schedule is Schedule is lw.tir.Schedule
    assert lw.load_module is load_module
    assert "it is loopwright.te.compute" in told(lw, "compute")
    assert "did you mean build" in told(lw, "biuld")
    assert told(lw, "frobnicate") == "module 'loopwright' has no attribute 'frobnicate'"


@pytest.mark.parametrize(("owner", "table"), [(te, OF_TE), (double(), OF_SCHEDULES)], ids=["te", "schedule"])
def test_no_table_hides_a_name_that_is_there(owner, table):
    assert [name for name in table if hasattr(owner, name)] == []


def test_names_with_underscores_are_not_guessed_at():
    assert str(no_attribute("there is no", "_repr_htm_", ["_repr_html_", "repr"], {})) == "there is no '_repr_htm_'"
    module = Module({"main": print})
    assert copy.copy(module).function_names == ["main"]  # copying asks for names before there are any
    assert pickle.loads(pickle.dumps(Module({"main": len}))).function_names == ["main"]


def test_python_adds_no_second_guess():
    code = "from loopwright import te\nte.placeholdr"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stderr.lower().count("did you mean") == 1


def test_the_package_stays_light():
    code = "import sys, loopwright; print([name for name in sys.modules if name.startswith('loopwright.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_formulas_compute_what_they_stand_for():
    X = te.placeholder((3, 4), name="X")
    k = te.reduce_axis((0, 4), "k")
    mean = te.compute((3,), lambda i: te.sum(X[i, k] / 4, axis=k), name="mean")
    relu = te.compute((3, 4), lambda i, j: te.max(X[i, j], 0.0), name="relu")
    clip = te.compute((3, 4), lambda i, j: te.min(te.max(X[i, j], -1.0), 2.0), name="clip")
    x = np.arange(-6, 6, dtype="float32").reshape(3, 4)
    outs = np.empty(3, "float32"), np.empty((3, 4), "float32"), np.empty((3, 4), "float32")
    lw.build([X, mean, relu, clip])(x, *outs)
    for out, expected in zip(outs, (x.mean(1), x.clip(0), x.clip(-1, 2)), strict=True):
        assert (out == expected).all()
