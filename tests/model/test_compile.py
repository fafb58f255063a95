from __future__ import annotations

import gc
from itertools import pairwise

import numpy as np
import pytest

from loopwright import te, tir
from loopwright.model import (
    BadProgram,
    Bind,
    Body,
    Branch,
    Carried,
    Copy,
    KernelMismatch,
    Launch,
    Program,
    Repeat,
    SizeNotKnown,
    Slice,
    Value,
    View,
    compile_program,
)
from loopwright.runtime.call_errors import ArgumentCountMismatch, OverlappingArguments, ShapeMismatch
from tests.model.steps import (
    add,
    double,
    element_wise,
    float_value,
    mlp,
    mlp_in_numpy,
    relu,
    small_integers,
)


@pytest.fixture(scope="module")
def model():
    return compile_program(mlp())


def test_three_layers_from_python(model):
    x, y = small_integers(3, 16), np.empty((3, 7), "float32")
    model(x, y)
    np.testing.assert_array_equal(y, mlp_in_numpy(model.program, x))
    np.testing.assert_array_equal(model.run(x)[0], y)


def test_equal_kernels_are_compiled_once(model):
    assert model.counts.launches == 3
    first, second, third = model.program.launches()
    assert len({model.launches[launch].symbol for launch in (first, second, third)}) == 3
    again = compile_program(mlp(sizes=(33, 33, 33, 33), name="same"))
    assert again.counts.launches == 3
    assert again.counts.distinct == 2  # the two layers with relu are one kernel


def test_wrong_arguments_are_named(model):
    x, y = small_integers(3, 16), np.empty((3, 7), "float32")
    with pytest.raises(ShapeMismatch, match=r"mlp: argument x has shape \(3, 15\), expected \(3, 16\)"):
        model(np.zeros((3, 15), "float32"), y)
    with pytest.raises(ArgumentCountMismatch, match=r"mlp: called with 1 argument\(s\), expected 2"):
        model(x)
    both = np.zeros((3, 16), "float32")
    with pytest.raises(OverlappingArguments, match="x and h2 overlap"):
        model(both, both.reshape(-1)[:21].reshape(3, 7))


def test_unaligned_inputs_and_outputs(model):
    room = np.zeros(3 * 16 + 1, "float32")
    x = room[1:].reshape(3, 16)
    x[:] = small_integers(3, 16)
    out = np.zeros(22, "float32")[1:].reshape(3, 7)
    model(x, out)
    np.testing.assert_array_equal(out, mlp_in_numpy(model.program, x))


def test_constants_outlive_their_arrays():
    program = mlp(name="kept")
    made = compile_program(program)
    x = small_integers(3, 16)
    expected = mlp_in_numpy(program, x)
    for array in program.constants.values():
        array[:] = 0  # the model has its own copy
    gc.collect()
    np.testing.assert_array_equal(made.run(x)[0], expected)


def test_the_function_outlives_the_model():
    program = mlp(name="gone")
    function = compile_program(program)["gone"]
    gc.collect()
    x, y = small_integers(3, 16), np.empty((3, 7), "float32")
    function(x, y)
    np.testing.assert_array_equal(y, mlp_in_numpy(program, x))


# --- views, copies, outputs ---------------------------------------------------------------------------------------


def test_an_input_or_constant_may_be_an_output_and_one_value_may_be_two():
    x, c, y = float_value("x", 6), float_value("c", 6), float_value("y", 6)
    flat, again = float_value("flat", 2, 3), float_value("again", 6)
    steps = [Launch(double((6,)), (x, y)), View(flat, y), View(again, flat)]
    made = compile_program(Program("f", [x], [y, flat, x, c, again], {c: np.arange(6)}, steps))
    given = small_integers(6)
    out = made.run(given)
    for value, expected in zip(out, [2 * given, (2 * given).reshape(2, 3), given, np.arange(6), 2 * given]):
        np.testing.assert_array_equal(value, expected)


def test_a_view_of_an_output_is_written_in_place():
    x, h, y = float_value("x", 6), float_value("h", 6), float_value("y", 2, 3)
    made = compile_program(Program("f", [x], [y], {}, [Launch(double((6,)), (x, h)), View(y, h)]))
    assert made.plan.peak == 0
    np.testing.assert_array_equal(made.run(small_integers(6))[0], 2 * small_integers(6).reshape(2, 3))


def test_empty_and_scalar_values():
    x, y, s, t = float_value("x", 0, 3), float_value("y", 0, 3), float_value("s"), float_value("t")
    steps = [Launch(double((0, 3)), (x, y)), Launch(double(()), (s, t))]
    out = compile_program(Program("f", [x, s], [y, t], {}, steps)).run(np.zeros((0, 3), "float32"), np.float32(3))
    assert out[0].shape == (0, 3)
    assert out[1] == 6


def test_no_steps_at_all():
    x = float_value("x", 5)
    given = small_integers(5)
    np.testing.assert_array_equal(compile_program(Program("same", [x], [x], {}, [])).run(given)[0], given)


# --- in place -----------------------------------------------------------------------------------------------------


def chain(length, shape=(40, 50), may=((0, 0),)):
    values = [float_value(f"v{k}", *shape) for k in range(length + 1)]
    steps = [Launch(relu(shape), pair, may_overwrite=may) for pair in pairwise(values)]
    return Program("chain", [values[0]], [values[-1]], {}, steps)


def test_element_wise_kernels_write_over_what_dies():
    made = compile_program(chain(4))
    assert made.plan.peak == 0  # everything is in the output
    assert made.plan.in_place == 3
    given = small_integers(40, 50)
    np.testing.assert_array_equal(made.run(given)[0], np.maximum(given, 0))
    np.testing.assert_array_equal(given, small_integers(40, 50))  # an input is never written


def test_without_permission_nothing_is_overwritten():
    assert compile_program(chain(4, may=())).plan.peak == 2 * 8000


def test_what_is_read_later_is_not_overwritten():
    shape = (33,)
    x, a, b, y = (float_value(name, *shape) for name in "xaby")
    steps = [
        Launch(double(shape), (x, a)),
        Launch(relu(shape), (a, b), may_overwrite=((0, 0),)),
        Launch(add(shape), (a, b, y), may_overwrite=((0, 0), (1, 0))),
    ]
    given = small_integers(33)
    made = compile_program(Program("f", [x], [y], {}, steps))
    np.testing.assert_array_equal(made.run(given)[0], 2 * given + np.maximum(2 * given, 0))


def test_one_value_twice_among_the_inputs():
    shape = (33,)
    x, a, y = (float_value(name, *shape) for name in "xay")
    for may in (((0, 0),), ((0, 0), (1, 0))):
        steps = [Launch(double(shape), (x, a)), Launch(add(shape), (a, a, y), may_overwrite=may)]
        made = compile_program(Program("f", [x], [y], {}, steps))
        assert made.plan.in_place == len(may) - 1
        np.testing.assert_array_equal(made.run(small_integers(33))[0], 4 * small_integers(33))


# --- control flow -------------------------------------------------------------------------------------------------


def test_a_branch_runs_one_side():
    shape = (5,)
    c, x, y = Value("c", (), "bool"), float_value("x", *shape), float_value("y", *shape)
    a, b = float_value("a", *shape), float_value("b", *shape)
    branch = Branch(
        c,
        Body((Launch(double(shape), (x, a)),), (a,)),
        Body((Launch(double(shape), (x, b)),), (x,)),  # one side leaves what comes from outside
        (y,),
    )
    made = compile_program(Program("f", [c, x], [y], {}, [branch]))
    given = small_integers(5)
    np.testing.assert_array_equal(made.run(np.bool_(True), given)[0], 2 * given)
    np.testing.assert_array_equal(made.run(np.bool_(False), given)[0], given)


def test_a_loop_with_a_fixed_count_carries_and_collects():
    shape = (5,)
    x, inside, new, last, every = (float_value(n, *shape) for n in ("x", "inside", "new", "last", "every"))
    every = float_value("every", 4, 5)
    loop = Repeat(
        Body((Launch(double(shape), (inside, new), may_overwrite=((0, 0),)),)),
        count=4,
        carried=(Carried(x, inside, new, last),),
        collected=(Slice(every, new),),
    )
    made = compile_program(Program("f", [x], [last, every], {}, [loop]))
    given = small_integers(5)
    out = made.run(given)
    np.testing.assert_array_equal(out[0], 16 * given)
    np.testing.assert_array_equal(out[1], np.stack([2**k * given for k in (1, 2, 3, 4)]))
    np.testing.assert_array_equal(given, small_integers(5))


@pytest.mark.parametrize("may", [(), ((0, 0),)])
def test_a_carried_value_is_written_in_its_place_where_it_may_be(may):
    shape = (40,)
    x, inside, new, last = (float_value(n, *shape) for n in ("x", "inside", "new", "last"))
    loop = Repeat(
        Body((Launch(double(shape), (inside, new), may_overwrite=may),)),
        count=3,
        carried=(Carried(x, inside, new, last),),
    )
    made = compile_program(Program("f", [x], [last], {}, [loop]))
    assert made.plan.peak == (0 if may else 192)
    np.testing.assert_array_equal(made.run(small_integers(40))[0], 8 * small_integers(40))


def test_carried_values_that_trade_places():
    a, b, sum_ = float_value("a"), float_value("b"), float_value("sum")
    ia, ib, ra, rb = float_value("ia"), float_value("ib"), float_value("ra"), float_value("rb")
    steps = (Launch(add(()), (ia, ib, sum_), may_overwrite=((0, 0), (1, 0))),)
    loop = Repeat(Body(steps), count=10, carried=(Carried(a, ia, ib, ra), Carried(b, ib, sum_, rb)))
    out = compile_program(Program("fibonacci", [a, b], [ra, rb], {}, [loop])).run(np.float32(0), np.float32(1))
    assert [float(value) for value in out] == [55, 89]
    swap = Repeat(Body(()), count=3, carried=(Carried(a, ia, ib, ra), Carried(b, ib, ia, rb)))
    out = compile_program(Program("swap", [a, b], [ra, rb], {}, [swap])).run(np.float32(5), np.float32(7))
    assert [float(value) for value in out] == [7, 5]


def test_a_loop_ends_by_its_condition_or_by_its_count():
    x, inside, new, last = (float_value(n) for n in ("x", "inside", "new", "last"))
    start, more = Value("start", (), "bool"), Value("more", (), "bool")
    count = Value("count", (), "int64")
    below = element_wise((), lambda v: v < tir.const(100, "float32"), out_dtype="bool")
    body = Body((Launch(double(()), (inside, new)), Launch(below, (new, more))))
    loop = Repeat(body, count=count, condition=start, next_condition=more, carried=(Carried(x, inside, new, last),))
    made = compile_program(Program("f", [x, start, count], [last], {}, [loop]))
    for limit, begin, expected in ((50, True, 128), (3, True, 8), (0, True, 1), (50, False, 1)):
        assert made.run(np.float32(1), np.bool_(begin), np.int64(limit))[0] == expected


def test_scan_reads_slices_also_backwards_and_knows_its_turn():
    xs, x, s, inside, new = (float_value("xs", 6, 3), *[float_value(n, 3) for n in ("x", "s", "inside", "new")])
    last, every, turn, turns = float_value("last", 3), float_value("every", 6, 3), Value("turn", (), "int64"), None
    turns = Value("turns", (6,), "int64")
    for backwards in (False, True):
        loop = Repeat(
            Body((Launch(add((3,)), (inside, x, new)),)),
            count=6,
            index=turn,
            carried=(Carried(s, inside, new, last),),
            scanned=(Slice(xs, x, backwards),),
            collected=(Slice(every, new, backwards), Slice(turns, turn)),
        )
        made = compile_program(Program("cumsum", [xs, s], [last, every, turns], {}, [loop]))
        given, start = small_integers(6, 3), small_integers(3, seed=1)
        out = made.run(given, start)
        order = given[::-1] if backwards else given
        sums = start + np.cumsum(order, axis=0)
        np.testing.assert_array_equal(out[0], sums[-1])
        np.testing.assert_array_equal(out[1], sums[::-1] if backwards else sums)
        np.testing.assert_array_equal(out[2], np.arange(6))


def test_a_loop_that_outruns_its_slices_says_so():
    xs, x, y, count = float_value("xs", 4, 3), float_value("x", 3), float_value("y", 3), Value("n", (), "int64")
    every = float_value("every", 4, 3)
    loop = Repeat(
        Body((Launch(double((3,)), (x, y)),)), count=count, scanned=(Slice(xs, x),), collected=(Slice(every, y),)
    )
    made = compile_program(Program("f", [xs, count], [every], {}, [loop]))
    with pytest.raises(Exception, match="the loop runs longer than xs, which has 4 slices"):
        made.run(small_integers(4, 3), np.int64(5))


def test_loops_in_loops_and_branches_in_loops():
    """for i in 3: for j in 2: v = v + w if i-is-even else v; w comes from outside both loops."""
    v, w = float_value("v", 4), float_value("w", 4)
    h = float_value("h", 4)
    i, even = Value("i", (), "int64"), Value("even", (), "bool")
    is_even = element_wise((), lambda k: k % tir.const(2, "int64") == tir.const(0, "int64"), dtype="int64")
    outer_in, outer_new, result = (float_value(n, 4) for n in ("outer_in", "outer_new", "result"))
    inner_in, chosen, sum_ = (float_value(n, 4) for n in ("inner_in", "chosen", "sum"))
    branch = Branch(even, Body((Launch(add((4,)), (inner_in, h, sum_)),), (sum_,)), Body((), (inner_in,)), (chosen,))
    inner = Repeat(Body((branch,)), count=2, carried=(Carried(outer_in, inner_in, chosen, outer_new),))
    outer = Repeat(
        Body((Launch(is_even, (i, even)), inner)), count=3, index=i, carried=(Carried(v, outer_in, outer_new, result),)
    )
    made = compile_program(Program("nest", [v, w], [result], {}, [Launch(double((4,)), (w, h)), outer]))
    a, b = small_integers(4), small_integers(4, seed=1)
    np.testing.assert_array_equal(made.run(a, b)[0], a + 4 * (2 * b))


# --- sizes --------------------------------------------------------------------------------------------------------


def quadruple_lengths(n):
    """A kernel whose buffers have lengths of 4 * n: n is a parameter of its own."""
    x = te.placeholder((n * 4,), name="X")
    y = te.compute((n * 4,), lambda i: x[i] * tir.const(2, "float32"), name="Y")
    return te.create_prim_func([x, y, n])


def solved_lengths():
    """The same where the kernel has to find out by itself what the variable in its lengths is."""
    from loopwright.script import tir as T

    @T.prim_func
    def kernel(a: T.handle, b: T.handle):
        k = T.int32()
        A = T.match_buffer(a, (k * 4,), "float32")
        B = T.match_buffer(b, (k * 4,), "float32")
        for i in range(k * 4):
            with T.block("B"):
                vi = T.axis.spatial(k * 4, i)
                B[vi] = A[vi] * T.float32(2)

    return kernel


def test_one_compilation_runs_at_any_size():
    n, m = te.var("n"), te.var("m")
    k = te.var("k")  # the kernels' own names for lengths
    x, w = Value("x", (n, 4), "float32"), Value("w", (m,), "float32")
    a, b, y = Value("a", (n, 4), "float32"), Value("b", (n, 4), "float32"), Value("y", (n * 4,), "float32")
    flat, h = Value("flat", (n * 4,), "float32"), Value("h", (n * 4,), "float32")
    steps = [
        Launch(double((k, 4)), (x, a)),
        Launch(double((k, 4)), (a, b)),
        View(flat, b),
        Launch(quadruple_lengths(n), (flat, h)),
        Launch(solved_lengths(), (h, y)),
    ]
    made = compile_program(Program("f", [x, w], [y], {}, steps))
    for size in (0, 1, 7, 1000):
        given = small_integers(size, 4)
        np.testing.assert_array_equal(made.run(given, small_integers(3))[0], 16 * given.reshape(-1))
    assert "of sizes that a call decides" in str(made.plan)
    with pytest.raises(ShapeMismatch, match=r"argument y has shape \(5,\), expected \(8,\) = \(n \* 4\)"):
        made(small_integers(2, 4), small_integers(3), np.empty(5, "float32"))


def test_slots_are_used_again():
    n = te.var("n")
    values = [Value(f"v{k}", (n, 8), "float32") for k in range(9)]
    steps = [Launch(double((n, 8)), pair) for pair in pairwise(values)]
    made = compile_program(Program("f", [values[0]], [values[-1]], {}, steps))
    assert len(made.plan.slots[None]) == 2
    np.testing.assert_array_equal(made.run(small_integers(5, 8))[0], 256 * small_integers(5, 8))


def test_a_size_that_the_program_computes():
    n = te.var("n", "int64")
    count, x, y = Value("count", (), "int64"), float_value("x", 10), float_value("y", 10)
    head, doubled = Value("head", (n,), "float32"), Value("doubled", (n,), "float32")
    A = te.placeholder((10,), name="A")
    B = te.compute((n,), lambda i: A[tir.min(i, tir.const(9, "int64"))], name="B")
    D = te.placeholder((n,), name="D")
    zero = tir.const(0, "float32")
    E = te.compute((10,), lambda i: tir.if_then_else(i < n, D[i], zero), name="E")
    steps = [
        Bind(n, count, at_most=10),
        Launch(te.create_prim_func([A, B]), (x, head)),
        Launch(double((n,)), (head, doubled)),
        Launch(te.create_prim_func([D, E]), (doubled, y)),
    ]
    made = compile_program(Program("f", [x, count], [y], {}, steps))
    given = small_integers(10)
    for size in (0, 1, 7, 10):
        expected = np.where(np.arange(10) < size, 2 * given, 0)
        np.testing.assert_array_equal(made.run(given, np.int64(size))[0], expected)
    for size in (-1, 11):
        with pytest.raises(Exception, match="the size n is below 0 or above 10"):
            made.run(given, np.int64(size))


# --- refusals -----------------------------------------------------------------------------------------------------


def test_programs_that_do_not_fit_together_are_refused():
    x, y, z = float_value("x", 4), float_value("y", 4), float_value("z", 4)
    with pytest.raises(BadProgram, match="the kernel main reads y before anything makes it"):
        compile_program(Program("f", [x], [z], {}, [Launch(double((4,)), (y, z))]))
    twice = [Launch(double((4,)), (x, y), name="one"), Launch(double((4,)), (x, y), name="two")]
    with pytest.raises(BadProgram, match="y is made twice: by the kernel one and by the kernel two"):
        compile_program(Program("f", [x], [y], {}, twice))
    c = Value("c", (), "bool")
    hidden = Branch(c, Body((Copy(y, x),)), Body(()))
    with pytest.raises(BadProgram, match="the program reads y, which is known only inside a copy"):
        compile_program(Program("f", [x, c], [y], {}, [hidden]))
    with pytest.raises(BadProgram, match="they differ in size"):
        compile_program(Program("f", [x], [z], {}, [View(z, x), View(float_value("v", 5), x)]))
    with pytest.raises(BadProgram, match="a loop has neither a count nor a condition"):
        compile_program(Program("f", [x], [x], {}, [Repeat(Body(()))]))
    with pytest.raises(KernelMismatch, match=r"buffer 1, X0, is float32\[5\], and is given Value\(x: float32\[4\]\)"):
        compile_program(Program("f", [x], [y], {}, [Launch(double((5,)), (x, y))]))
    with pytest.raises(KernelMismatch, match="it takes 2 buffers, and is called with 1"):
        compile_program(Program("f", [x], [x], {}, [Launch(double((4,)), (x,))]))


def test_a_size_that_nothing_gives_is_refused():
    n, m = te.var("n"), te.var("m")
    x, h, y = Value("x", (n,), "float32"), Value("h", (m,), "float32"), Value("y", (n,), "float32")
    with pytest.raises(SizeNotKnown, match="the size of h depends on the size m, and nothing gives its value"):
        compile_program(Program("f", [x], [y], {}, [Copy(h, x), Copy(y, h)]))
    with pytest.raises(SizeNotKnown, match="the shape of the output h depends on the size m"):
        compile_program(Program("f", [x], [h], {}, [Copy(h, x)]))


def test_views_and_copies_of_another_size_are_refused_by_the_call():
    n, m = te.var("n"), te.var("m")
    x, w = Value("x", (n, 2), "float32"), Value("w", (m,), "float32")
    for step in (View, Copy):
        h, y = Value("h", (m,), "float32"), Value("y", (m,), "float32")
        made = compile_program(Program("f", [x, w], [y], {}, [step(h, x), Copy(y, h)]))
        np.testing.assert_array_equal(made.run(small_integers(3, 2), small_integers(6))[0], small_integers(6))
        with pytest.raises(Exception, match="h is taken for x, which has another number of elements"):
            made.run(small_integers(3, 2), small_integers(7))


def test_an_error_of_a_kernel_names_it():
    A = te.placeholder((4,), name="A")
    B = te.extern((4,), [A], lambda ins, outs: tir.call_packed("no.such.function", ins[0], outs[0]), name="B")
    x, y = float_value("x", 4), float_value("y", 4)
    made = compile_program(Program("f", [x], [y], {}, [Launch(te.create_prim_func([A, B]), (x, y))]))
    with pytest.raises(Exception, match=r"no\.such\.function"):
        made.run(small_integers(4))
