from __future__ import annotations

import numpy as np

from loopwright import te
from loopwright.relay.native import Body, Branch, Carried, Launch, Program, Repeat, Value, compile_program
from tests.relay.native.steps import double, float_value, mlp, mlp_in_numpy, small_integers


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
    assert "dense 1" in str(found)
    assert found.seconds == sum(row.seconds for row in found.rows)


def test_loops_count_their_turns_and_branches_not_taken_none():
    x, inside, new, last = (float_value(n, 5) for n in ("x", "inside", "new", "last"))
    body = Body((Launch(double((5,)), (inside, new), name="turn"),))
    loop = Repeat(body, count=4, carried=(Carried(x, inside, new, last),))
    c, y, a = Value("c", (), "bool"), float_value("y", 5), float_value("a", 5)
    branch = Branch(c, Body((Launch(double((5,)), (last, a), name="side"),), (a,)), Body((), (last,)), (y,))
    made = compile_program(Program("f", [x, c], [y], {}, [loop, branch]))
    found = made.profile(small_integers(5), False)
    assert {row.name: row.calls for row in found.rows} == {"turn": 4, "side": 0}
    np.testing.assert_array_equal(found.outputs[0], 16 * small_integers(5))


def test_values_of_open_sizes_are_kept_too():
    n = te.var("n")
    x, h, y = (Value(name, (n, 4), "float32") for name in "xhy")
    steps = [Launch(double((n, 4)), (x, h)), Launch(double((n, 4)), (h, y))]
    made = compile_program(Program("f", [x], [y], {}, steps))
    for size in (3, 50):
        found = made.profile(small_integers(size, 4))
        np.testing.assert_array_equal(found.values["h"], 2 * small_integers(size, 4))


def test_kernels_say_what_they_are():
    rows = compile_program(mlp(sizes=(33, 33, 33, 33), name="table")).kernels
    assert [(row.name, row.calls) for row in rows] == [("dense 0", 2), ("dense 2", 1)]
    assert rows[0].code_bytes > 100
    assert "T.prim_func" in rows[0].text
    assert rows[0].flops == 3 * 33 * (2 * 33 + 2)
