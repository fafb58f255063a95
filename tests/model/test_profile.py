from __future__ import annotations

import numpy as np
import pytest

from loopwright import te
from loopwright.model import Body, Branch, Carried, Launch, Program, Repeat, Value, compile_program
from tests.model.steps import double, float_value, mlp, mlp_in_numpy, small_integers
from tests.model.test_bottleneck import LIMITS


@pytest.fixture(autouse=True)
def known_limits(monkeypatch):
    """Nothing is measured here."""
    monkeypatch.setattr("loopwright.model.profile.machine_limits", lambda compile_program: LIMITS)


def test_every_launch_is_timed_and_every_value_kept():
    made = compile_program(mlp())
    x = small_integers(3, 16)
    found = made.profile(x, repeat=3)
    assert [row.name for row in found.rows] == ["dense 0", "dense 1", "dense 2"]
    assert all(row.calls == 1 and row.seconds > 0 for row in found.rows)
    assert found.rows[0].flops == 3 * 33 * (2 * 16 + 2)
    assert found.rows[0].bytes_moved == 4 * (3 * 16 + 16 * 33 + 33 + 3 * 33)
    arrays = list(made.program.constants.values())
    np.testing.assert_array_equal(found.values["h0"], np.maximum(x @ arrays[0] + arrays[1], 0))
    np.testing.assert_array_equal(found.outputs[0], mlp_in_numpy(made.program, x))
    assert found.call_seconds > 0
    assert found.seconds == sum(row.seconds for row in found.rows)


def test_layers_have_their_share_of_the_roofline_and_reasons():
    found = compile_program(mlp()).profile(small_integers(3, 16), repeat=3)
    assert sum(layer.share for layer in found.layers) == pytest.approx(1)
    for layer, data in zip(found.layers, found.as_data(), strict=True):
        row = layer.row
        assert row.kernel.decisions and row.weights and layer.reasons
        least = max(row.flops / LIMITS.flops, row.bytes_moved / LIMITS.bandwidth("read", row.bytes_moved))
        assert layer.share_of_limit == min(1, least / row.seconds) == data["share_of_roofline"]
        assert data["bound"] == layer.bound and data["reasons"] == list(layer.reasons) and data["operators"] == []
    lines = str(found).splitlines()
    assert "why not faster" in lines[0] and lines[-1] == f"roofline: {LIMITS}"
    assert {line.split("  ")[0] for line in lines[1:4]} == {"dense 0", "dense 1", "dense 2"}
    assert lines[5].startswith("one call of the model: ")


def test_loops_count_their_turns_and_branches_not_taken_none():
    x, inside, new, last = (float_value(n, 5) for n in ("x", "inside", "new", "last"))
    body = Body((Launch(double((5,)), (inside, new), name="turn"),))
    loop = Repeat(body, count=4, carried=(Carried(x, inside, new, last),))
    c, y, a = Value("c", (), "bool"), float_value("y", 5), float_value("a", 5)
    branch = Branch(c, Body((Launch(double((5,)), (last, a), name="side"),), (a,)), Body((), (last,)), (y,))
    made = compile_program(Program("f", [x, c], [y], {}, [loop, branch]))
    found = made.profile(small_integers(5), False)
    assert {row.name: row.calls for row in found.rows} == {"turn": 4, "side": 0}
    assert found.layers[1].limit is None and found.layers[1].reasons == ("it did not run",)
    np.testing.assert_array_equal(found.outputs[0], 16 * small_integers(5))


def test_values_of_open_sizes_are_kept_too():
    n = te.var("n")
    x, h, y = (Value(name, (n, 4), "float32") for name in "xhy")
    steps = [Launch(double((n, 4)), (x, h)), Launch(double((n, 4)), (h, y))]
    made = compile_program(Program("f", [x], [y], {}, steps))
    for size in (3, 50):
        found = made.profile(small_integers(size, 4))
        np.testing.assert_array_equal(found.values["h"], 2 * small_integers(size, 4))
        assert [(row.flops, row.bytes_moved) for row in found.rows] == [(size * 4, size * 32)] * 2


def test_kernels_say_what_they_are():
    rows = compile_program(mlp(sizes=(33, 33, 33, 33), name="table")).kernels
    assert [(row.name, row.calls) for row in rows] == [("dense 0", 2), ("dense 2", 1)]
    assert rows[0].code_bytes > 100
    assert "T.prim_func" in rows[0].text
    assert rows[0].flops == 3 * 33 * (2 * 33 + 2)
