"""Every kind of bad input is met with the whole anatomy: what is wrong with the real values, where, why, what helps.

Wrong arguments of calls are in tests/codegen/test_abi.py; here are the other doors: scripts, tensor expressions,
targets, types, and programs that a build refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, tir
from loopwright.ir import intrinsics
from loopwright.runtime import call_errors
from loopwright.script import from_source
from loopwright.script import tir as T

HEAD = "@T.prim_func\ndef f(A: T.Buffer((8,), 'float32'), B: T.Buffer((8,), 'float32')):\n"


def told(call: Callable[[], object], python_type: type[Exception] = lw.LoopwrightError) -> str:
    """The message of the error that `call` raises, which is one of ours with a code."""
    with pytest.raises(lw.LoopwrightError) as caught:
        call()
    assert isinstance(caught.value, python_type), type(caught.value)
    text = str(caught.value)
    assert re.match(r".+ \[LW\d{4}\]\n", text), text
    assert "InternalError" not in type(caught.value).__name__
    return text


def assert_anatomy(text: str, problem: str, *, asked: str = "", why: str = "", hint: str = "") -> None:
    """Problem first, the user's own line, then why and hint."""
    lines = text.splitlines()
    assert lines[0].startswith(problem + " [LW"), lines[0]
    if asked:
        assert re.search(rf"  call: .*{re.escape(asked)}.* at test_bad_input\.py:\d+", text), text
    if why:
        assert f"\n  why: {why}" in text, text
    if hint:
        assert f"\n  hint: {hint}" in text, text


# --- scripts: the caret stands under the culprit, which the cases mark «so» ---

SCRIPTS = {
    "undefined name": (
        "for i in range(8):\n    B[i] = A[i] * «scale»",
        NameError,
        "name 'scale' is not defined",
        "define it in the script, around it, or in extra_vars",
    ),
    "misspelled name": (
        "for i in range(8):\n    B[i] = «AA»[i]",
        NameError,
        "name 'AA' is not defined",
        "did you mean 'A'?",
    ),
    "misspelled intrinsic": (
        "for i in range(8):\n    B[i] = «T.expp»(A[i])",
        AttributeError,
        "T has no attribute 'expp'",
        "did you mean 'exp'?",
    ),
    "loop variable after its loop": (
        "for index in range(8):\n    B[index] = A[index]\nB[0] = A[«index»]",
        NameError,
        "name 'index' is not defined",
        "",
    ),
    "axis outside a block": (
        "for i in range(8):\n    vi = «T.axis.spatial(8, i)»\n    B[vi] = A[vi]",
        lw.LoopwrightError,
        "T.axis.spatial belongs directly inside a block, but stands inside a loop",
        'put it under with T.block("name"):',
    ),
    "init outside a block": (
        "for i in range(8):\n    «with T.init():»\n        B[i] = 0.0",
        lw.LoopwrightError,
        "T.init belongs directly inside a block, but stands inside a loop",
        'put it under with T.block("name"):',
    ),
    "where outside a block": (
        "for i in range(8):\n    «T.where(i < 3)»\n    B[i] = A[i]",
        lw.LoopwrightError,
        "T.where belongs directly inside a block, but stands inside a loop",
        'put it under with T.block("name"):',
    ),
    "function attributes in a loop": (
        "for i in range(8):\n    «T.func_attr({'x': 1})»\n    B[i] = A[i]",
        lw.LoopwrightError,
        "T.func_attr belongs directly inside the function, but stands inside a loop",
        "move it out, to the level of the function's own statements",
    ),
    "two writes": (
        "with T.block('b'):\n    vi = T.axis.spatial(8, 0)\n    T.writes(B[vi])\n    «T.writes(B[vi])»\n"
        "    B[vi] = A[vi]",
        lw.LoopwrightError,
        "block 'b' already has T.writes",
        "keep one of them",
    ),
    "two inits": (
        "with T.block('b'):\n    vi = T.axis.spatial(8, 0)\n    with T.init():\n        B[vi] = 0.0\n"
        "    «with T.init():»\n        B[vi] = 0.0\n    B[vi] = A[vi]",
        lw.LoopwrightError,
        "block 'b' already has T.init",
        "keep one of them",
    ),
    "unknown kind of axis": (
        "for i in range(8):\n    with T.block('b'):\n        vi = «T.axis.remap('X', [i])»\n        B[vi] = A[vi]",
        lw.LoopwrightError,
        "T.axis.remap: 'X' does not only hold S and R",
        'write e.g. "SSR"',
    ),
    "too many kinds of axes": (
        "for i in range(8):\n    with T.block('b'):\n        vi, vj = «T.axis.remap('SS', [i])»\n        B[vi] = A[vi]",
        lw.LoopwrightError,
        "T.axis.remap: 2 kinds for 1 loops",
        "give one letter, S or R, for each loop in the list",
    ),
    "too many indices": (
        "«B[0, 1]» = A[0]",
        lw.LoopwrightError,
        "B has 1 dimension, but 2 indices were given",
        "write B[i]",
    ),
    "return": (
        "«return»",
        lw.LoopwrightError,
        "return without a value, or in a macro, cannot be used in a script",
        "a function ends by itself, or with return value",
    ),
    "nested function": (
        "«def g():»\n    pass",
        lw.LoopwrightError,
        "a nested function cannot be used in a script",
        "define it outside, or use @T.macro there",
    ),
    "unknown type": (
        "B[0] = «T.Cast('float31', A[0])»",
        lw.LoopwrightError,
        "unknown data type 'float31'",
        "use one of bool, int8 to int64",
    ),
    "missing colon": (
        "for i in range(8)«»\n    B[i] = A[i]",
        lw.LoopwrightError,
        "the script is not valid Python: expected ':'",
        "",
    ),
}


@pytest.mark.parametrize("case", SCRIPTS)
def test_mistakes_in_a_script_are_marked(case):
    marked, python_type, problem, hint = SCRIPTS[case]
    body = "".join(f"    {line}\n" for line in marked.splitlines())
    source = HEAD + body.replace("«", "").replace("»", "")
    text = told(lambda: from_source(source), python_type)
    assert_anatomy(text, problem, hint=hint)
    # Where: file, line and column; the line itself; a caret under the very words.
    before = (HEAD + body).split("«")[0]
    line, column = before.count("\n") + 1, len(before.rsplit("\n", 1)[-1]) + 1
    culprit = marked.split("«")[1].split("»")[0]
    shown = source.splitlines()[line - 1]
    assert f"\n  at <script>:{line}:{column}\n  > {shown}\n    {' ' * (column - 1)}{'^' * max(len(culprit), 1)}" in text


def test_a_mistake_in_a_decorated_function_points_into_the_users_file():
    def make() -> object:
        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            for i in range(8):
                A[i] = A[i] * factor

        return f

    text = told(make, NameError)
    line = make.__code__.co_firstlineno + 4
    assert f"test_bad_input.py:{line}:31\n  >                 A[i] = A[i] * factor" in text


def test_a_block_that_uses_a_loop_from_outside_is_refused_at_build():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("b"):
                vi = T.axis.spatial(8, i)
                T.writes(A[vi])
                A[i] = T.float32(0)

    text = told(lambda: lw.build(f), ValueError)
    problem = "f is not well formed: a block uses the loop variable i of a loop outside it"
    assert_anatomy(text, problem, asked="lw.build(f)", hint="bind it to an iteration variable of the block")


# --- tensor expressions ---

A = te.placeholder((8, 4), name="A")
k = te.reduce_axis((0, 4), "k")
k2 = te.reduce_axis((0, 4), "k2")
argmax = te.comm_reducer(
    lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
    lambda t0, t1: (tir.const(-1, t0), tir.min_value(t1)),
    name="argmax",
)


def reducer(result: Callable, identity: Callable = lambda t0, t1: (tir.const(0, t0), tir.const(0, t1))) -> object:
    both = te.comm_reducer(lambda x, y: result(x, y), identity, name="both")
    return te.compute((8,), lambda i: both((A[i, k], A[i, k]), axis=k), name="C")


TENSORS = {
    "too few indices": (
        lambda: te.compute((8,), lambda i: A[i], name="C"),
        "A has 2 dimensions, but 1 index was given",
        "",
        "write A[i, j]",
    ),
    "too many arguments": (
        lambda: te.compute((8,), lambda i, j, l: A[i, j], name="C"),
        "te.compute C: the function takes 3 indices (i, j, l), but the shape (8,) has 1 dimension",
        "",
        "give the function one argument a dimension",
    ),
    "reduce axis without a reduction": (
        lambda: te.compute((8,), lambda i: A[i, k], name="C"),
        "te.compute C: the reduce axis k is used outside a reduction over it",
        "",
        "reduce over it, as in te.sum(…, axis=k), or use an axis of the compute",
    ),
    "reduction within an expression": (
        lambda: te.compute((8,), lambda i: te.sum(A[i, k], axis=k) + 1.0, name="C"),
        "te.compute C: the reduction over k stands inside a larger expression",
        "a reduction must be the outermost part of the body",
        "give the reduction a te.compute of its own, and use its elements in a second one",
    ),
    "data axis as reduce axis": (
        lambda: te.compute((8,), lambda i: te.sum(A[i, k], axis=i), name="C"),
        "te.sum: the axis variable i (a data axis of a compute, or a plain variable) is not a reduce axis",
        "",
        'make one with te.reduce_axis((0, n), name="k") and give axis=k',
    ),
    "number as reduce axis": (
        lambda: te.compute((8,), lambda i: te.sum(A[i, k], axis=1), name="C"),
        "te.sum: the axis int 1 is not a reduce axis",
        "",
        'make one with te.reduce_axis((0, n), name="k") and give axis=k',
    ),
    "axis given twice": (
        lambda: te.compute((8,), lambda i: te.sum(A[i, k], axis=[k, k]), name="C"),
        "te.sum: the axis k is given twice",
        "",
        "give each axis once",
    ),
    "no axis": (
        lambda: te.compute((8,), lambda i: te.sum(A[i, k]), name="C"),
        "te.sum: no axis is given",
        "",
        'make one with te.reduce_axis((0, n), name="k") and give axis=k',
    ),
    "outputs over different axes": (
        lambda: te.compute((8,), lambda i: (te.sum(A[i, k], axis=k), te.sum(A[i, k2], axis=k2)), name="C"),
        "te.compute C: its outputs differ in axis: output 1 reduces over k2, output 0 over k",
        "",
        "write one te.compute for each",
    ),
    "outputs with different combiners": (
        lambda: te.compute((8,), lambda i: (te.sum(A[i, k], axis=k), te.max(A[i, k], axis=k)), name="C"),
        "te.compute C: its outputs differ in combiner: output 1 combines by another reducer",
        "",
        "write one te.compute for each",
    ),
    "outputs under different conditions": (
        lambda: te.compute(
            (8,), lambda i: (te.sum(A[i, k], axis=k, where=k < 2), te.sum(A[i, k], axis=k, where=k < 3)), name="C"
        ),
        "te.compute C: its outputs differ in condition: the where= of output 1 is not that of output 0",
        "",
        "write one te.compute for each",
    ),
    "tuple reducer given a single value": (
        lambda: te.compute((8,), lambda i: argmax(A[i, k], axis=k), name="C"),
        "te.comm_reducer argmax: fcombine cannot combine single values: 'Var' object is not subscriptable",
        "",
        "a reducer of tuples takes a tuple of values: (a, b)",
    ),
    "tuple reducer given a longer tuple": (
        lambda: te.compute((8,), lambda i: argmax((k.var, A[i, k], A[i, k]), axis=k), name="C"),
        "te.comm_reducer argmax: fcombine gives 2 values, but 3 fields are reduced",
        "",
        "return the combined value of each field",
    ),
    "combiner that forgets a field": (
        lambda: reducer(lambda x, y: (x[0] + y[0],)),
        "te.comm_reducer both: fcombine gives 1 value, but 2 fields are reduced",
        "",
        "return the combined value of each field",
    ),
    "combiner whose field has another type": (
        lambda: reducer(lambda x, y: (x[0] + y[0], (x[1] + y[1]).astype("float64"))),
        "te.comm_reducer both: fcombine gives float64 for field 1, whose values are float32",
        "",
        "convert it with .astype('float32')",
    ),
    "identity whose field has another type": (
        lambda: reducer(
            lambda x, y: (x[0] + y[0], x[1] + y[1]), lambda t0, t1: (tir.const(0, "int32"), tir.const(0, t1))
        ),
        "te.comm_reducer both: fidentity gives int32 for field 0, whose values are float32",
        "",
        "convert it with .astype('float32'), or make it with tir.const(…, 'float32')",
    ),
}


@pytest.mark.parametrize("case", TENSORS)
def test_mistakes_in_tensor_expressions(case):
    call, problem, why, hint = TENSORS[case]
    text = told(call)
    assert_anatomy(text, problem, why=why, hint=hint)
    assert re.search(r"  call: .* at test_bad_input\.py:\d+\n", text)


# --- types, targets, devices ---


def row_sums() -> list[te.Tensor]:
    return [A, te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="C")]


@pytest.mark.parametrize("text", ["float31", "int7", "float32x0", "float32x-1", "x4", "FLOAT32", "float 32", "voidx2"])
def test_unknown_types(text):
    message = told(lambda: te.placeholder((8,), dtype=text), ValueError)
    assert_anatomy(
        message,
        f"unknown data type {text!r}",
        asked="te.placeholder((8,), dtype=text)",
        why="a data type is a kind and a width, such as int8, uint16, float32 or bfloat16",
        hint="use one of bool, int8 to int64, uint8 to uint64, float16, float32, float64, bfloat16",
    )


def test_unknown_target_kinds_options_and_cpus():
    text = told(lambda: lw.build(row_sums(), target="llvmm"), ValueError)
    assert_anatomy(
        text,
        "unknown target kind 'llvmm'",
        asked='lw.build(row_sums(), target="llvmm")',
        why="a target starts with its kind, such as llvm, then options, such as -mcpu=core-avx2",
        hint="use one of llvm",
    )
    text = told(lambda: lw.build(row_sums(), target="llvm -mcpuu=x"), ValueError)
    assert_anatomy(text, "target kind llvm has no attribute 'mcpuu'", asked="-mcpuu=x", hint="use one of -mcpu")
    text = told(
        lambda: lw.build(row_sums(), target="llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylakee"), ValueError
    )
    assert_anatomy(text, "unknown CPU 'skylakee' for x86_64", asked="lw.build", hint="use one of skylake")
    text = told(lambda: lw.build(row_sums(), target="llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=zzz"), ValueError)
    assert len(text) < 600


def test_a_gpu_where_there_is_none():
    text = told(lambda: lw.build(row_sums(), target="rocm"))
    assert text.startswith("cannot build for target 'rocm' [LW0607]")
    assert "call: a build for 'rocm" in text and "test_bad_input.py" in text
    assert "why: looked for: libamdhip64.so" in text and "the ROCm backend (not built in this version)" in text
    assert 'hint: what works here: "llvm", "c" (this machine\'s CPU' in text


def test_tensors_on_a_gpu_where_there_is_none():
    if lw.cuda(0).exist:
        pytest.skip("there is one")
    text = told(lambda: lw.nd.array(np.zeros(3, "float32"), lw.cuda(0)))
    assert_anatomy(
        text,
        "making a tensor: the device cuda(0) cannot be used here",
        asked="lw.cuda(0)",
        why="the driver library libcuda.so.1",
        hint="install NVIDIA's driver, or start the container with the GPU; cpu(0) works",
    )


# --- programs that a build refuses, with a witness ---


def test_reads_outside_a_buffer():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i + 1]

    text = told(lambda: lw.build(f), IndexError)
    assert_anatomy(
        text,
        "A[8] is outside its shape (8,): the statement reads it at i = 7",
        asked="lw.build(f)",
        why="index i + 1 on axis 0 is 8, but the last one is 7",
        hint="shorten the loop, enlarge the buffer, or guard the load: if_then_else(condition, load, other)",
    )
    assert "\n  > B[i] = A[i + 1]\n" in text


def test_writes_outside_a_buffer_in_a_block():
    @T.prim_func
    def f(A: T.Buffer((8, 4), "float32")):
        for i, j in T.grid(8, 4):
            with T.block("shift"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj - 1] = T.float32(0)

    text = told(lambda: lw.build(f), IndexError)
    assert_anatomy(
        text,
        'A[0, -1] is outside its shape (8, 4): block "shift" writes it at i = 0, j = 0',
        why="index vj - 1 on axis 1 is -1, below 0",
        hint="shorten the loop, enlarge the buffer, or put the store under a condition (if, T.where)",
    )


def test_reads_outside_a_tensor():
    X = te.placeholder((8,), name="X")
    Y = te.compute((8,), lambda i: X[i] + X[i + 1], name="Y")
    text = told(lambda: lw.build([X, Y]), IndexError)
    assert_anatomy(text, 'X[8] is outside its shape (8,): block "Y" reads it at i = 7', asked="lw.build([X, Y])")


def test_symbolic_sizes_get_the_smallest_witness():
    n = te.size_var("n")
    X = te.placeholder((n,), name="X")
    Y = te.compute((n,), lambda i: X[i + 2], name="Y")
    text = told(lambda: lw.build([X, Y]), IndexError)
    assert_anatomy(text, 'X[2] is outside its shape (1,): block "Y" reads it at n = 1, i = 0')


def test_memory_that_nothing_wrote():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), "float32")
        for i in range(1, 8):
            C[i] = A[i]
        for i in range(8):
            B[i] = C[i]

    text = told(lambda: lw.build(f))
    assert_anatomy(
        text,
        "the statement reads C[0] before anything has written it at i = 0",
        asked="lw.build(f)",
        why="C is allocated without values, and nothing ever writes C[0]",
        hint="write every element of C that is read, before the statement that reads it",
    )
    assert "\n  > B[i] = C[i]\n" in text


def test_memory_that_is_written_too_late():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,), "float32")
        for i in range(8):
            B[i] = C[i]
            C[i] = A[i]

    text = told(lambda: lw.build(f))
    assert_anatomy(
        text,
        "the statement reads C[0] before anything has written it at i = 0",
        why="C is allocated without values, and the statement writes C[0] only later, at i = 0",
    )


def test_iterations_that_race():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for i in T.parallel(8):
            B[0] = B[0] + A[i]

    text = told(lambda: lw.build(f), ValueError)
    assert_anatomy(
        text,
        "iterations i = 0 and i = 1 of the parallel loop i both touch B[0]",
        asked="lw.build(f)",
        hint="make the loop i serial, or give each of its iterations elements of its own",
    )
    assert "a parallel loop runs them in any order" in text


def test_what_cannot_be_built_is_named():
    assert_anatomy(
        told(lambda: lw.build(3), ValueError),
        "cannot build an int",
        asked="lw.build(3)",
        hint="give a PrimFunc, an IRModule, or a list of te tensors (inputs, then outputs)",
    )
    assert_anatomy(
        told(lambda: lw.build(row_sums()[1:])),
        "create_prim_func: placeholder A (read by C) is not in the list [C]",
        hint="the list gives the parameters of the function: add A",
    )


# --- calls: what test_abi.py does not have ---


@pytest.fixture(scope="module")
def sums():
    return lw.build(row_sums())


@pytest.mark.parametrize(
    ("make", "kind", "problem", "hint"),
    [
        (
            lambda a, b: ([1, 2], b),
            "ArgumentKindMismatch",
            "main: argument A (number 1) is not a tensor",
            "pass a numpy array",
        ),
        (
            lambda a, b: ("text", b),
            "ArgumentKindMismatch",
            "main: argument A (number 1) is not a tensor",
            "pass a numpy array",
        ),
        (
            lambda a, b: (a.astype("complex64"), b),
            "DtypeMismatch",
            "main: argument A has element type complex64",
            "convert it first",
        ),
        (
            lambda a, b: (a.astype("uint8"), b),
            "DtypeMismatch",
            "main: argument A has element type uint8",
            "convert it first",
        ),
        (lambda a, b: (a, b.reshape(8, 1)), "RankMismatch", "main: argument C has 2 dimension(s), expected 1", ""),
        (lambda a, b: (a[::-1], b), "StrideMismatch", "main: argument A has strides (-4, 1)", "pass a compact copy"),
        (
            lambda a, b: (np.broadcast_to(a[0], (8, 4)).copy()[:, :3], b),
            "ShapeMismatch",
            "main: argument A has shape (8, 3)",
            "",
        ),
    ],
)
def test_wrong_arguments_of_calls(sums, make, kind, problem, hint):
    arguments = make(np.ones((8, 4), "float32"), np.zeros(8, "float32"))
    with pytest.raises(getattr(call_errors, kind)) as caught:
        sums(*arguments)
    text = str(caught.value)
    assert text.startswith(problem)
    assert "call: sums(*arguments) at test_bad_input.py" in text
    assert not hint or f"hint: {hint}" in text


def test_outputs_that_overlap_each_other():
    X = te.placeholder((8,), name="X")
    Y, Z = te.compute((8,), lambda i: (X[i] + 1.0, X[i] + 2.0), name="YZ")
    run = lw.build([X, Y, Z])
    memory = np.zeros(12, "float32")
    with pytest.raises(call_errors.OverlappingArguments, match="overlap in memory") as caught:
        run(np.ones(8, "float32"), memory[:8], memory[4:])
    assert "hint: pass a copy of" in str(caught.value)
    assert not memory.any()


def test_literals_that_do_not_fit():
    text = told(lambda: tir.const(300, "uint8"), ValueError)
    assert_anatomy(
        text,
        "literal 300 does not fit uint8, which holds 0 to 255",
        asked='tir.const(300, "uint8")',
        hint="use a wider type",
    )


def test_operators_on_the_wrong_types():
    text = told(lambda: tir.Var("x") / 2, TypeError)
    assert_anatomy(
        text,
        "operator / is not defined for int32 and int32",
        asked='tir.Var("x") / 2',
        why="dividing integers rounds, and / does not say which way",
        hint="use a // b to round down",
    )
    text = told(lambda: intrinsics.call_intrin("float32", "tir.expp", 1.0), ValueError)
    assert_anatomy(text, "no operator is called 'tir.expp'", asked="call_intrin", hint="did you mean tir.exp")
