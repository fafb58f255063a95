"""Hybrid script: each function runs as Python, in the evaluator at every stage of lowering, and natively, alike."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, te
from loopwright.analysis import check_program
from loopwright.evaluator import evaluate
from loopwright.evaluator.errors import FailedCheck
from loopwright.schedule import Schedule
from tests.agreement import assert_agreement

script = te.hybrid.script
SCALE = 3
OFFSETS = ((1, 0.5), (2, -0.25))


def _random(*shape, dtype="float32"):
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(dtype)


def _check(function, *arrays, native=False, build=True):
    """Run `function` in every way; what it gives, after all agreed to the last bit."""
    expected = function(*[np.array(array) for array in arrays])
    expected = expected if isinstance(expected, tuple) else (expected,)
    inputs = [te.placeholder(a.shape, str(a.dtype), f"in{k}") for k, a in enumerate(arrays)]
    outputs = function(*inputs)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    func = te.create_prim_func([*inputs, *outputs])
    check_program(func)
    results = [np.zeros(array.shape, array.dtype) for array in expected]
    assert_agreement(func, [*arrays, *results], native)
    evaluate(func, *[np.array(a) for a in arrays], *results)
    for got, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    if build:
        again = [np.zeros(array.shape, array.dtype) for array in expected]
        lw.build(func)(*arrays, *again)
        for got, wanted in zip(again, results, strict=True):
            np.testing.assert_array_equal(got, wanted)
    return results[0] if len(results) == 1 else results


@script
def outer_product(a, b):
    """Every product of two elements."""
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


@pytest.mark.parametrize("sizes", [(3, 4), (1, 1), (5, 0), (7, 2)])
def test_outer_product(sizes):
    a, b = _random(sizes[0]), _random(sizes[1])
    np.testing.assert_array_equal(_check(outer_product, a, b, native=sizes == (3, 4)), np.outer(a, b))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "float16", "float64"])
def test_types(dtype):
    _check(outer_product, np.arange(3).astype(dtype), np.arange(4).astype(dtype))


def test_symbolic_sizes_and_attributes():
    n, m = te.var("n"), te.var("m")
    A, B = te.placeholder((n,), name="A"), te.placeholder((m,), name="B")
    C = outer_product(A, B)
    op = C.op
    assert isinstance(op, te.HybridOp)
    assert (op.name, C.name, C.dtype, C.shape) == ("outer_product", "outer_product", "float32", (n, m))
    assert op.inputs == (A, B) and op.input_tensors == [A, B]
    assert [t.name for t in op.outputs] == ["c"]
    assert [axis.var.name for axis in op.axis] == ["i", "j"]
    assert [axis.iter_type for axis in op.axis] == [ir.IterType.DataPar] * 2
    assert isinstance(op.body, ir.For)
    func = te.create_prim_func([A, B, C])
    check_program(func)
    for sizes in ((2, 3), (0, 3), (1, 1)):
        a, b = _random(sizes[0]), _random(sizes[1])
        assert_agreement(func, [a, b, np.zeros(sizes, "float32")], native=False)
    with te.tag_scope("mine"):
        assert outer_product(A, B).op.tag == "mine"


def test_statements_are_blocks_that_schedules_know():
    A, B = te.placeholder((8,), name="A"), te.placeholder((16,), name="B")
    sch = Schedule(te.create_prim_func([A, B, outer_product(A, B)]))
    i, j = sch.get_loops("c")
    j_0, j_1 = sch.split(j, [None, 4])
    sch.reorder(j_0, i, j_1)
    sch.vectorize(j_1)
    sch.parallel(j_0)
    assert sch.is_proved
    a, b, c = _random(8), _random(16), np.zeros((8, 16), "float32")
    lw.build(sch.mod)(a, b, c)
    np.testing.assert_array_equal(c, np.outer(a, b))


def test_loop_kinds():
    @script
    def kinds(a):
        b = output_tensor(a.shape, a.dtype)
        for i in parallel(4):
            for j in unroll(3):
                for k in vectorize(8):
                    b[i, j, k] = a[i, j, k] + 1.0
        return b

    _check(kinds, _random(4, 3, 8), native=True)
    A = te.placeholder((4, 3, 8), name="A")
    B = kinds(A)
    loops = []
    func = te.create_prim_func([A, B])
    ir.pre_order_visit(func.body, lambda node: loops.append(node) if isinstance(node, ir.For) else None)
    assert [loop.kind for loop in loops] == [ir.ForKind.PARALLEL, ir.ForKind.UNROLLED, ir.ForKind.VECTORIZED]
    kinds_of_axes = [axis.iter_type for axis in B.op.axis]
    assert kinds_of_axes == [ir.IterType.Parallelized, ir.IterType.Unrolled, ir.IterType.Vectorized]


def test_loops_that_begin_elsewhere():
    @script
    def shifted(a):
        b = output_tensor((10,), "int32")
        for i in range(10):
            b[i] = 0
        for i in range(2, 7):
            b[i] = i * a[i - 2]
        for i in range(a[0] - 1, 9):
            b[i] = b[i] + 100
        return b

    got = _check(shifted, np.array([9, 2, 3, 4, 5], "int32"))
    assert got.tolist() == [0, 0, 18, 6, 12, 20, 30, 0, 100, 0]


def test_const_range_is_expanded():
    @script
    def weights(a):
        b = output_tensor((6,), "float32")
        for i in range(6):
            b[i] = 0.0
            for k in const_range(len(OFFSETS)):
                b[i] += a[i + OFFSETS[k][0]] * OFFSETS[k][1]
            for _ in const_range(1, 1):
                b[i] = 99.0
        return b

    a = _random(8)
    _check(weights, a)
    A = te.placeholder((8,), name="A")
    op = weights(A).op
    assert [axis.var.name for axis in op.axis] == ["i"]
    stores = []
    ir.post_order_visit(op.body, lambda node: stores.append(node) if isinstance(node, ir.ProducerStore) else None)
    assert len(stores) == 3


def test_threads_run_in_the_evaluator():
    @script
    def threads(a):
        b = output_tensor((4, 8), "float32")
        for x in bind("blockIdx.x", 4):
            c = allocate((8,), "float32", "shared")
            for y in bind("threadIdx.x", 8):
                c[y] = a[x, y] * 2.0
            for z in bind("threadIdx.x", 8):
                t = allocate((1,), "float32", "local")
                t[0] = c[z] + 1.0
                b[x, z] = t[0]
        return b

    a = _random(4, 8)
    A = te.placeholder((4, 8), name="A")
    func = te.create_prim_func([A, threads(A)])
    tags = []
    ir.pre_order_visit(
        func.body, lambda node: tags.append(node.thread_binding.thread_tag) if isinstance(node, ir.For) else None
    )
    assert tags == ["blockIdx.x", "threadIdx.x", "threadIdx.x"]
    out = np.zeros((4, 8), "float32")
    evaluate(func, a, out)
    np.testing.assert_array_equal(out, threads(a))
    scopes = []
    ir.pre_order_visit(
        func.body,
        lambda node: scopes.extend(b.scope() for b in node.alloc_buffers) if isinstance(node, ir.Block) else None,
    )
    assert scopes == ["shared", "local"]


def test_scalars_and_memory_of_loops():
    @script
    def row_norms(a):
        b = output_tensor((a.shape[0],), "float32")
        for i in parallel(a.shape[0]):
            s = 0.0
            squares = allocate((a.shape[1],), "float32", "local")
            for j in range(a.shape[1]):
                squares[j] = a[i, j] * a[i, j]
            for j in range(a.shape[1]):
                s += squares[j]
            b[i] = sqrt(s)
        return b

    _check(row_norms, _random(5, 7), native=False)


def test_memory_of_the_function():
    @script
    def smooth(a):
        n = 9
        padded = allocate((n + 2,), a.dtype)
        total = 0.0
        b = output_tensor((n,), a.dtype)
        for i in range(n + 2):
            padded[i] = a[i - 1] if i >= 1 and i - 1 < n else 0.0
        for i in range(n):
            b[i] = (padded[i] + padded[i + 1]) + padded[i + 2]
            total += b[i]
        for i in range(n):
            b[i] -= total
        return b

    _check(smooth, _random(9))


def test_conditions():
    @script
    def pieces(a):
        b = output_tensor((8,), "float32")
        for i in range(8):
            if a[i] < -0.5:
                b[i] = -1.0
            elif -0.5 <= a[i] < 0.5 and not (i == 3 or i == 5):
                b[i] = a[i]
            else:
                if i % 2 == 0:
                    b[i] = 1.0
                else:
                    b[i] = 2.0
            if a[i] > 0.0:
                for _ in range(i):
                    b[i] += 1.0
            if i < 100:
                b[i] += 0.5
            if i > 100:
                b[i + 200] = 7.0
        return b

    _check(pieces, _random(8) * 2)


def test_conditions_with_loops_that_loop_variables_decide():
    @script
    def triangle(a):
        b = output_tensor((5, 5), "int32")
        for i in range(5):
            for j in range(5):
                b[i, j] = 0
            if i != 2:
                for j in range(i + 1):
                    b[i, j] = a[j] + i
        return b

    _check(triangle, np.arange(5, dtype="int32"))


def test_choices_are_lazy():
    @script
    def previous(a):
        b = output_tensor((4,), "float32")
        for i in range(4):
            b[i] = a[i - 1] if i > 0 else 0.25
            b[i] = b[i] + (1.0 if i > 2 else -1.0)
        return b

    _check(previous, _random(4))


def test_functions():
    @script
    def many(a, k):
        b = output_tensor((14,), "float32")
        b[0] = sqrt(abs(a[0]))
        b[1] = max(a[0], a[1])
        b[2] = min(a[0], 0.5)
        b[3] = round(a[1] * 10.0)
        b[4] = float32(popcount(k[0]))
        b[5] = float32(ceil_div(k[0], 4))
        b[6] = float32(int32(a[2] * 100.0)) + float32(len(a))
        b[7] = power(2.0, 3.0)
        b[8] = floor(a[1]) + ceil(a[2]) + trunc(a[3] * 9.0)
        b[9] = min(inf("float32"), 3.0) + max(ninf("float32"), 4.0)
        b[10] = float32(k[0] << 2) + float32(k[0] >> 1) + float32((k[0] & 6) | (k[0] ^ 1))
        b[11] = -a[0] + +a[1]
        b[12] = float32(k[0] // 4 + k[0] % 4)
        if likely(k[0] > 3):
            b[13] = float32(max_num_threads()) * 0.0
        else:
            b[13] = 1.0
        return b

    _check(many, _random(4), np.array([13], "int32"))


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "rsqrt", "sin", "cos"])
def test_mathematical_functions(name):
    """Python and the evaluator use one reference; native code keeps its stated bound."""
    function = {
        "exp": script(_exp),
        "log": script(_log),
        "tanh": script(_tanh),
        "sigmoid": script(_sigmoid),
        "rsqrt": script(_rsqrt),
        "sin": script(_sin),
        "cos": script(_cos),
    }[name]
    _check(function, np.abs(_random(6)) + 0.5, build=False)


def _exp(a):
    b = output_tensor((6,), "float32")
    for i in range(6):
        b[i] = exp(a[i])
    return b


def _log(a):
    b = output_tensor((6,), "float32")
    for i in range(6):
        b[i] = log(a[i])
    return b


def _tanh(a):
    b = output_tensor((6,), "float32")
    for i in range(6):
        b[i] = tanh(a[i])
    return b


def _sigmoid(a):
    b = output_tensor((6,), "float32")
    for i in range(6):
        b[i] = sigmoid(a[i])
    return b


def _rsqrt(a):
    b = output_tensor((6,), "float32")
    for i in range(6):
        b[i] = rsqrt(a[i])
    return b


def _sin(a):
    b = output_tensor((6,), "float32")
    for i in range(6):
        b[i] = sin(a[i])
    return b


def _cos(a):
    b = output_tensor((6,), "float32")
    for i in range(6):
        b[i] = cos(a[i])
    return b


def test_literals_have_the_type_of_their_cast():
    @script
    def tenth(a):
        b = output_tensor((1,), "float64")
        b[0] = a[0] + float64(0.1)
        return b

    assert _check(tenth, np.array([1.0])).tolist() == [1.1]


def test_captured_constants():
    factor = 2.5
    table = [[1, 2], [3, 4]]

    @script
    def captured(a):
        b = output_tensor((2, 2), "float32")
        for i in const_range(2):
            for j in const_range(2):
                b[i, j] = a[i][j] * factor + SCALE * table[i][j] + OFFSETS[1][1]
        return b

    _check(captured, _random(2, 2))


def test_several_outputs():
    @script
    def both(a):
        low = output_tensor((4,), "float32")
        high = output_tensor((4,), "int32")
        for i in range(4):
            low[i] = a[i] * 0.5
            high[i] = int32(a[i] * 10.0)
        return low, high

    _check(both, _random(4))
    outputs = both(te.placeholder((4,), name="A"))
    assert [(t.name, t.dtype) for t in outputs] == [("both.v0", "float32"), ("both.v1", "int32")]


def test_calls_of_other_hybrid_functions():
    @script
    def twice(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] + x[i]
        return y

    @script
    def fill(x, value):
        for i in range(x.shape[0]):
            x[i] = value

    @script
    def halves(x, k):
        y = output_tensor((3,), x.dtype)
        z = output_tensor((3,), x.dtype)
        for i in range(3):
            y[i] = x[i] * k
            z[i] = x[i + 3] * k
        return y, z

    @script
    def main(a):
        four = twice(twice(a))
        t = allocate((3,), "float32")
        fill(t, a[0])
        left, right = halves(four, 0.5)
        d = output_tensor((3, 3), "float32")
        product = outer_product(left, right)
        for i in range(3):
            for j in range(3):
                d[i, j] = product[i, j] + t[j]
        return d

    _check(main, _random(6), native=True)


def test_inputs_keep_their_values():
    @script
    def changes(a):
        b = output_tensor((4,), "float32")
        for i in range(4):
            a[i] = a[i] + 1.0
        for i in range(4):
            b[i] = a[i] * a[3 - i]
        return b

    A = te.placeholder((4,), name="A")
    B = changes(A)
    C = te.compute((4,), lambda i: A[i] + B[i], name="C")
    a = _random(4)
    kept = a.copy()
    out = np.zeros(4, "float32")
    lw.build([A, C])(a, out)
    np.testing.assert_array_equal(a, kept)
    np.testing.assert_array_equal(out, kept + (kept + 1) * (kept + 1)[::-1])


def test_between_computes_and_after_itself():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] * 2, name="B")
    C = outer_product(B, B)
    D = te.compute((4, 4), lambda i, j: C[i, j] + C[j, i], name="D")
    E = outer_product(A, te.compute((4,), lambda i: D[i, i], name="diagonal"))
    func = te.create_prim_func([A, E])
    a = _random(4)
    out = np.zeros((4, 4), "float32")
    assert_agreement(func, [a, out], native=False)
    lw.build(func)(a, out)
    doubled = a * 2
    diagonal = np.diag(np.outer(doubled, doubled) + np.outer(doubled, doubled).T)
    np.testing.assert_array_equal(out, np.outer(a, diagonal))


def test_variables_numbers_and_lists_as_arguments():
    @script
    def weighted(arrays, n, scale):
        c = output_tensor((8,), "float32")
        for i in range(8):
            c[i] = 0.0
        for k in const_range(len(arrays)):
            for i in range(n):
                c[i] += arrays[k][i] * scale
        return c

    A, B, n = te.placeholder((8,), name="A"), te.placeholder((8,), name="B"), te.var("n")
    C = weighted([A, B], n, 0.5)
    assert C.op.inputs == (A, B)
    a, b = _random(8), _random(8)[::-1].copy()
    out = np.zeros(8, "float32")
    # How many are added is known only at the call: what is certain is that sizes are in bounds for some n.
    evaluate(te.create_prim_func([A, B, n, C]), a, b, 5, out)
    expected = weighted([a, b], 5, np.float32(0.5))
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(te.UndefinedVariable, match=r"weighted uses the variable n"):
        te.create_prim_func([A, B, C])


def test_keywords_and_defaults():
    @script
    def scaled(a, factor=2.0):
        b = output_tensor((3,), "float32")
        for i in range(3):
            b[i] = a[i] * factor
        return b

    A = te.placeholder((3,), name="A")
    a, out = _random(3), np.zeros(3, "float32")
    for call, expected in ((scaled(A), a * 2), (scaled(A, factor=4.0), a * 4), (scaled(a=A, factor=3), a * 3)):
        evaluate(te.create_prim_func([A, call]), a, out)
        np.testing.assert_array_equal(out, expected)


def test_rank_0_and_truth_values():
    @script
    def any_negative(a, limit):
        found = output_tensor((1,), "bool")
        found[0] = False
        for i in range(a.shape[0]):
            below = a[i] < limit[()]
            found[0] = found[0] or below
        return found

    assert _check(any_negative, np.array([1, -2, 3], "float32"), np.array(0, "float32")).tolist() == [True]


def test_assertions():
    @script
    def checked(a, n):
        b = output_tensor((4,), "float32")
        assert n <= 4, "too many elements"
        for i in range(n):
            assert a[i] >= 0.0, "negative"
            b[i] = sqrt(a[i])
        return b

    A, n = te.placeholder((4,), name="A"), te.var("n")
    func = te.create_prim_func([A, n, checked(A, n)])
    check_program(func)  # the assertion proves that a[i] is there
    module = lw.build(func)
    a, out = np.array([1, 4, 9, -16], "float32"), np.zeros(4, "float32")
    for run in (lambda *args: evaluate(func, *args), module):
        out[:] = 0
        run(a, 3, out)
        assert out.tolist() == [1, 2, 3, 0]
        with pytest.raises(lw.LoopwrightError, match="negative"):
            run(a, 4, out)
        with pytest.raises(lw.LoopwrightError, match="too many elements"):
            run(a, 5, out)
    with pytest.raises(AssertionError, match="negative"):
        checked(a, 4)
    with pytest.raises(FailedCheck):
        evaluate(func, a, 4, out)


def test_wide_indices():
    A, B = te.placeholder((3,), name="A"), te.placeholder((4,), name="B")
    func = te.create_prim_func([A, B, outer_product(A, B)], index_dtype_override="int64")
    loops = []
    ir.pre_order_visit(func.body, lambda node: loops.append(node.loop_var) if isinstance(node, ir.For) else None)
    assert {str(var.dtype) for var in loops} == {"int64"}
    a, b = _random(3), _random(4)
    assert_agreement(func, [a, b, np.zeros((3, 4), "float32")], native=False)


def test_integers_stored_in_float_tensors_and_back():
    @script
    def convert(a):
        b = output_tensor((4,), "int32")
        c = output_tensor((4,), "float32")
        for i in range(4):
            b[i] = a[i] * 10.0
            c[i] = i
        return b, c

    _check(convert, _random(4))


def test_running_as_python_needs_no_source():
    function = eval(
        compile("lambda a: output_tensor(a.shape, a.dtype) + sqrt(a[0])", "<no file>", "eval"), {}
    )  # a lambda is a function too
    assert script(function)(np.array([4.0, 9.0])).tolist() == [2.0, 2.0]


def test_scripts_of_scripts():
    assert script(outer_product) is outer_product
    assert outer_product.__doc__ == "Every product of two elements."


# --- modules ------------------------------------------------------------------------------------------------------


def test_modules_are_saved_loaded_and_called(tmp_path):
    A, B = te.placeholder((3,), name="A"), te.placeholder((4,), name="B")
    module = te.hybrid.build(None, [A, B], [outer_product(A, B)], name="outer")
    assert module.get_source() == (
        "def outer(A, B):\n"
        '    outer_product = output_tensor((3, 4), "float32")\n'
        "    for i in range(3):\n"
        "        for j in range(4):\n"
        "            outer_product[i, j] = (A[i] * B[j])\n"
        "    return outer_product\n"
    )
    module.save(str(tmp_path / "outer"))
    again = te.hybrid.HybridModule()
    again.load(str(tmp_path / "outer.py"))
    a, b = _random(3), _random(4)
    np.testing.assert_array_equal(again(a, b), np.outer(a, b))
    C = again(A, B)
    out = np.zeros((3, 4), "float32")
    evaluate(te.create_prim_func([A, B, C]), a, b, out)
    np.testing.assert_array_equal(out, np.outer(a, b))


def test_modules_of_scheduled_functions_and_of_computes():
    A = te.placeholder((6, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((6,), lambda i: te.sum(te.if_then_else(A[i, k] > 0, A[i, k], 0.0), axis=k), name="B")
    C = te.compute((6,), lambda i: te.sqrt(B[i]) * 2 + te.max(B[i], B[(i + 1) % 6]), name="C")
    sch = Schedule(te.create_prim_func([A, C]))
    i, _ = sch.get_loops("B")
    i_0, i_1 = sch.split(i, [2, 3])
    sch.parallel(i_0)
    sch.unroll(i_1)
    module = te.hybrid.build(sch, [A], [C])
    shown = module.get_source()
    for part in ("in parallel(2):", "in unroll(3):", "allocate((6,)", " if (A[", "sqrt("):
        assert part in shown
    a = _random(6, 8)
    out = np.zeros(6, "float32")
    evaluate(sch.mod, a, out)
    np.testing.assert_array_equal(module(a), out)
    evaluate(te.create_prim_func([A, module(A)]), a, out)
    np.testing.assert_array_equal(module(a), out)


def test_modules_refuse_what_is_no_function(tmp_path):
    with pytest.raises(te.hybrid.HybridError, match=r"the text is no Python: .*line 1"):
        te.hybrid.HybridModule("def f(:")
    with pytest.raises(te.hybrid.HybridError, match=r"the text defines no function"):
        te.hybrid.HybridModule("x = 1")
    with pytest.raises(te.hybrid.HybridError, match=r"defines no function g"):
        te.hybrid.HybridModule("def f(a): return a", "g")
    with pytest.raises(te.hybrid.HybridError, match=r"holds no function yet"):
        te.hybrid.HybridModule()(1)
    with pytest.raises(te.hybrid.HybridError, match=r"object is no schedule"):
        A = te.placeholder((3,), name="A")
        te.hybrid.build(object(), [A], [outer_product(A, A)])


def test_a_te_schedule_shows_its_loops_and_lists_may_be_arrays():
    @te.hybrid.script
    def weighted(a, table):
        c = output_tensor(a.shape, a.dtype)
        for i in const_range(2):
            for j in range(4):
                c[i, j] = a[i, j] * table[i, 1]
        return c

    A = te.placeholder((2, 4), name="A")
    out = weighted(A, lw.runtime.convert([[1, 2], [3, 4]]))
    module = te.hybrid.build(te.create_schedule(out.op), [A], [out])
    given = np.ones((2, 4), "float32")
    assert np.array_equal(module(given), [[2] * 4, [4] * 4])

    B = te.compute((8,), lambda i: A[i // 4, i % 4] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], 4)
    assert "for i_inner in range(4)" in te.hybrid.build(s, [A], [B]).get_source()
