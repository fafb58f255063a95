from __future__ import annotations

import numpy as np
import pytest

from loopwright import te
from loopwright.model import Body, Branch, Carried, Launch, Program, Repeat, Slice, Value, View, c_module
from loopwright.model.errors import OpenLengths
from loopwright.runtime.link import get_cc
from tests.model.steps import add, double, float_value, mlp, mlp_in_numpy, small_integers

pytestmark = pytest.mark.skipif(get_cc() is None, reason="needs a C compiler")


def test_three_layers_as_c():
    program = mlp(sizes=(5, 6, 6, 3))
    made = c_module(program)
    x, y = small_integers(3, 5), np.empty((3, 3), "float32")
    made(x, y)
    np.testing.assert_array_equal(y, mlp_in_numpy(program, x))
    text = made.get_source("c")
    assert "mlp_kernel_2" in text
    assert "int32_t mlp(" in made.get_source("h")


def test_loops_branches_and_views_as_c():
    x, inside, new, last, every = (
        *[float_value(n, 5) for n in ("x", "inside", "new", "last")],
        float_value("every", 4, 5),
    )
    loop = Repeat(
        Body((Launch(double((5,)), (inside, new)),)),
        count=4,
        carried=(Carried(x, inside, new, last),),
        collected=(Slice(every, new),),
    )
    flat, sums, c, y = float_value("flat", 20), float_value("sums", 20), Value("c", (), "bool"), float_value("y", 20)
    branch = Branch(c, Body((Launch(add((20,)), (flat, flat, sums)),), (sums,)), Body((), (flat,)), (y,))
    made = c_module(Program("f", [x, c], [last, y], {}, [loop, View(flat, every), branch]))
    given = small_integers(5)
    expected = np.concatenate([2**k * given for k in (1, 2, 3, 4)])
    for taken in (True, False):
        out = np.empty(5, "float32"), np.empty(20, "float32")
        made(given, np.asarray(taken), *out)
        np.testing.assert_array_equal(out[0], 16 * given)
        np.testing.assert_array_equal(out[1], expected * (2 if taken else 1))


def test_open_lengths_are_refused():
    n = te.var("n")
    x, y = Value("x", (n,), "float32"), Value("y", (n,), "float32")
    with pytest.raises(OpenLengths, match=r"C source of a model with dynamic dimensions \(n\)") as caught:
        c_module(Program("f", [x], [y], {}, [Launch(double((n,)), (x, y))]))
    assert '--input-shapes "x:[1]"' in str(caught.value.hint)
