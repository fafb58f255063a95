"""Lets in scheduled programs: integer arithmetic is written out; what stays keeps its scope."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright.analysis.effects import is_pure_call
from loopwright.analysis.reduction_init import InitUsesReduction, write_inits
from loopwright.evaluator import evaluate
from loopwright.ir import Call, LetStmt, any_statement, collect, structural_equal
from loopwright.schedule import Schedule
from loopwright.schedule.errors import NotProved, ScheduleError
from loopwright.script import from_source

HEAD = "from loopwright.script import tir as T\n\n@T.prim_func\n"


def program(text):
    return from_source(HEAD + text)


def has_lets(function):
    return any_statement(function.body, lambda node: isinstance(node, LetStmt))


INSIDE = program('''def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            x: T.int32 = v + 1
            B[x - 1] = A[x - 1]
''')
BETWEEN = program('''def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        x: T.int32 = i + 1
        with T.block("B"):
            v = T.axis.spatial(8, x - 1)
            B[v] = A[v]
''')
LOADED = program('''def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        x: T.int32 = A[i] % 8
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[x]
''')
LOADED_INSIDE = program('''def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            x: T.int32 = A[v] % 8
            B[v] = A[x]
''')

STEPS = {
    "cache_read": lambda s: s.cache_read("B", 0, "global"),
    "cache_write": lambda s: s.cache_write("B", 0, "global"),
    "read_at": lambda s: s.read_at(s.get_loops("B")[0], "B", 0, "global"),
    "write_at": lambda s: s.write_at(s.get_loops("B")[0], "B", 0, "global"),
    "prefetch": lambda s: s.prefetch("B", s.get_loops("B")[0], 0, 1),
    "transform_layout": lambda s: s.transform_layout("B", ("read", 0), lambda i: (i // 2, i % 2)),
    "split": lambda s: s.split(s.get_loops("B")[0], [None, 3]),
    "parallel": lambda s: s.parallel(s.get_loops("B")[0]),
    "reindex": lambda s: s.reindex("B", ("write", 0)),
    "blockize": lambda s: s.blockize(s.get_loops("B")[0]),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("function", [INSIDE, BETWEEN], ids=["inside", "between"])
def test_every_step_knows_what_a_let_of_arithmetic_means(function, step):
    schedule = Schedule(function)
    assert not has_lets(schedule.mod["main"])
    STEPS[step](schedule)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("function", [LOADED, LOADED_INSIDE], ids=["between", "inside"])
def test_a_let_that_loads_stays_and_is_never_left_behind(function, step):
    schedule = Schedule(function)
    assert has_lets(schedule.mod["main"])
    try:
        STEPS[step](schedule)
    except ScheduleError:
        return
    after = schedule.mod["main"]
    if step == "transform_layout":
        return  # the argument has another layout now
    data, expected, actual = np.arange(8, dtype="int32")[::-1].copy() * 3, np.zeros(8, "int32"), np.zeros(8, "int32")
    evaluate(function, data, expected)
    evaluate(after, data, actual)
    assert (expected == actual).all()


def test_a_let_that_blocks_use_although_it_names_loops_stays():
    function = program('''def main(B: T.Buffer((8,), "int32")):
    for i in range(8):
        x: T.int32 = i * 2
        with T.block("B"):
            v = T.axis.spatial(8, x // 2)
            B[v] = x
''')
    expected = program('''def main(B: T.Buffer((8,), "int32")):
    for i in range(8):
        x: T.int32 = i * 2
        with T.block("B"):
            v = T.axis.spatial(8, i * 2 // 2)
            B[v] = x
''')
    assert structural_equal(Schedule(function).mod["main"], expected, map_free_vars=True)


def test_lets_that_double_stay_small():
    lines = "".join([f"        x{k + 1}: T.int32 = x{k} + x{k}\n" for k in range(60)])
    function = program(f'''def main(B: T.Buffer((8,), "int32")):
    for i in range(8):
        x0: T.int32 = i
{lines}        for j in range(x60 % 2 + 1):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = 1
''')
    assert len(Schedule(function).mod["main"].script()) < 20_000


SPLIT_ROWS = '''def main(N: T.Buffer((2,), "int32"), B: T.Buffer((8,), "int32")):
    for u in range(2):
        x: T.int32 = {value}
        for j in range(x):
            with T.block("B"):
                v0 = T.axis.spatial(8, {axis})
                v1 = T.axis.reduce(8, j)
                with T.init():
                    B[v0] = 5
                B[v0] = B[v0] + v1
'''


@pytest.mark.parametrize("value", ["u - 2", "N[u]", "N[u] - 1"])
@pytest.mark.parametrize("axis", ["0", "u"])
def test_rows_without_members_start_after_a_split(value, axis):
    function = program(SPLIT_ROWS.format(value=value, axis=axis))
    schedule = Schedule(function)
    try:
        schedule.split(schedule.get_loops("B")[1], [None, 2])
    except ScheduleError:
        pass
    sizes, expected, actual = np.array([0, 3], "int32"), np.full(8, 7, "int32"), np.full(8, 7, "int32")
    evaluate(function, sizes, expected)
    evaluate(schedule.mod["main"], sizes, actual)
    assert (expected == actual).all()


INIT = '''def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 4):
        x: T.int32 = {value}
        with T.block("B"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                B[v] = x
            B[v] = B[v] + A[r]
'''


@pytest.mark.parametrize("value", ["k + 1", "A[k]", "A[0]", "i + 1"])
@pytest.mark.parametrize(
    "run",
    [evaluate, lambda f, *_: loopwright.build(f), lambda f, *_: Schedule(f)],
    ids=["evaluate", "build", "schedule"],
)
def test_a_start_does_not_depend_on_a_let_inside_the_loops(value, run):
    data, result = np.zeros(4, "int32"), np.zeros(4, "int32")
    with pytest.raises(InitUsesReduction, match="its init uses x, a let inside the loops of the reduction"):
        run(program(INIT.format(value=value)), data, result)


def test_a_start_may_depend_on_a_let_before_the_loops():
    function = program('''def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    x: T.int32 = B[0]
    for i, k in T.grid(4, 4):
        with T.block("B"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                B[v] = x
            B[v] = B[v] + A[r]
''')
    schedule = Schedule(function)
    schedule.reorder(*schedule.get_loops("B")[::-1])
    for version in (function, schedule.mod["main"]):
        for run in (evaluate, lambda f, *args: loopwright.build(f)(*args)):
            data, result = np.arange(4, dtype="int32"), np.full(4, 3, "int32")
            run(version, data, result)
            assert (result == 9).all()


def test_a_guard_means_the_same_with_a_name():
    """Of `i >= 1 and j > 5` one part says which cells there are, the other which updates: the start keeps one."""
    text = '''def main(A: T.Buffer((2, 1), "int32"), C: T.Buffer((2,), "int32")):
    for i, j in T.grid(2, 1):
        x: T.bool = i >= 1 and j > 5
        with T.block("C"):
            v, r = T.axis.remap("SR", [i, j])
            T.where(x)
            with T.init():
                C[v] = 5
            C[v] = C[v] + A[v, r]
'''
    named = program(text)
    for function in (named, Schedule(named).mod["main"]):
        data, result = np.ones((2, 1), "int32"), np.full(2, 7, "int32")
        evaluate(function, data, result)
        assert result.tolist() == [7, 5]


HORNER = '''def main(A: T.Buffer((4, 4), "int32"), C: T.Buffer((4,), "int32")):
    for i, j in T.grid(4, 4):
        x: T.int32 = {loaded}
        with T.block("C"):
            v, r = T.axis.remap("SR", [i, j])
            with T.init():
                C[v] = 0
            C[v] = C[v] * 2 + A[x % 4, r]
'''


def test_nests_whose_lets_load_what_they_write_stay_as_they_are():
    schedule = Schedule(program(HORNER.format(loaded="C[0]")))
    with pytest.raises(NotProved, match="x is loaded from C, which the loops around it write"):
        schedule.reorder(*schedule.get_loops("C")[::-1])
    schedule.split(schedule.get_loops("C")[0], [2, 2])  # the order is kept


def test_such_nests_stay_in_a_replay_too():
    plain = Schedule(program(HORNER.format(loaded="A[0, 0]")))
    plain.reorder(*plain.get_loops("C")[::-1])
    schedule = Schedule(program(HORNER.format(loaded="C[0]")))
    with pytest.raises(NotProved, match="x is loaded from C, which the loops around it write"):
        plain.trace.apply_to_schedule(schedule, remove_postproc=False)


def test_a_block_that_uses_a_let_of_a_loop_reads_what_it_read():
    """Named by what it does, the block would have another name, and nobody would ask what it reads."""
    function = program('''def main(A: T.Buffer((4, 1, 4), "int32"), C: T.Buffer((4,), "int32")):
    for i, j, k in T.grid(4, 1, 4):
        x: T.int32 = j + 2
        with T.block("C"):
            v, r, w = T.axis.remap("SRR", [i, j, k])
            with T.init():
                C[v] = 0
            C[v] = C[v] + A[x, r, w]
''')
    schedule = Schedule(function)
    with pytest.raises(ScheduleError, match="would change a value"):
        schedule.stage("C", schedule.get_loops("C")[1], 0, "global", lambda i, j, k: (i, j, 0))


AFTER_A_WRITE = '''def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for i in range(4):
        x: T.int32 = {value}
        with T.block("Z"):
            v = T.axis.spatial(4, i)
            A[v] = 0
        for k in range({length}):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(x > 0)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + 1
'''


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("run", [evaluate, lambda f, *args: loopwright.build(f)(*args)], ids=["evaluate", "build"])
def test_what_a_let_loaded_is_not_loaded_again_for_the_start(length, run):
    data, result = np.array([1, 1, 0, 1], "int32"), np.full(4, 50, "int32")
    run(program(AFTER_A_WRITE.format(value="A[i]", length=length)), data, result)
    assert result.tolist() == [length, length, 50, length]


@pytest.mark.parametrize("length", [1, 2])
def test_what_a_let_called_is_not_called_again_for_the_start(length):
    text = AFTER_A_WRITE.format(value='T.call_packed("tests.next")', length=length)
    written = write_inits(program(text).body)
    assert len([call for call in collect(written, Call) if not is_pure_call(call)]) == 1


@pytest.mark.parametrize("value", ["A[i]", "i * 2"])
def test_a_start_may_use_a_let_around_the_loops_of_the_reduction(value):
    function = program(f'''def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for i in range(4):
        x: T.int32 = {value}
        for k in range(3):
            with T.block("C"):
                v, r = T.axis.remap("SR", [i, k])
                with T.init():
                    C[v] = x
                C[v] = C[v] + 1
''')
    data = np.arange(4, dtype="int32") * 2
    for run in (evaluate, lambda f, *args: loopwright.build(f)(*args)):
        for version in (function, Schedule(function).mod["main"]):
            result = np.zeros(4, "int32")
            run(version, data, result)
            assert result.tolist() == [3, 5, 7, 9]


@pytest.mark.parametrize(
    "use",
    [
        "C = T.alloc_buffer((x,), 'int32'); C[0] = v; B[v] = C[0]",
        "T.block_attr({'note': x}); B[v] = v",
        "for j in T.serial(1, annotations={'note': x}):; ....B[v] = v",
    ],
)
def test_a_let_that_only_a_shape_or_an_annotation_names_stays(use):
    lines = use.replace("....", "    ").split("; ")
    function = program('''def main(B: T.Buffer((8,), "int32")):
    for i in range(8):
        x: T.int32 = i + 1
        with T.block("B"):
            v = T.axis.spatial(8, i)
''' + "".join([f"            {line}\n" for line in lines]))
    schedule = Schedule(function)
    assert has_lets(schedule.mod["main"])
    schedule.split(schedule.get_loops("B")[0], [2, 4])
    result = np.zeros(8, "int32")
    loopwright.build(schedule.mod["main"])(result)
    assert result.tolist() == list(range(8))


NEW_START = '''def main(
    A: T.Buffer((4,), "int32"), D: T.Buffer((12,), "int32"), C: T.Buffer((4,), "int32"), m: T.int32
):
    for i in range(T.min(m, 1)):
        B = T.decl_buffer((1,), "int32")
        with T.block("B"):
            r = T.axis.reduce(4, i)
            with T.init():
                {start}
            B[0] = B[0] + A[r]
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = B[0]
'''


@pytest.mark.parametrize(
    ("start", "why"),
    [
        ("B[0] = D[m]", r"D\[m\] is not known to be a cell of D"),
        ("B[0] = 7 // m", "it may divide by 0"),
        ("x: T.int32 = D[m]; B[0] = x + 1", r"D\[m\] is not known to be a cell of D"),
    ],
)
def test_a_new_start_loads_nothing_outside_and_divides_by_no_zero(start, why):
    schedule = Schedule(program(NEW_START.format(start=start.replace("; ", "\n" + " " * 16))))
    with pytest.raises(ScheduleError, match="would be started where it was not before, and there " + why):
        schedule.cache_write("B", 0, "global")


def test_a_new_start_that_cannot_fail_is_fine():
    schedule = Schedule(program(NEW_START.format(start="B[0] = D[3]")))
    schedule.cache_write("B", 0, "global")


@pytest.mark.parametrize("value", ["T.min(n, 12)", "N[0]"])
def test_a_new_buffer_is_as_large_as_a_let_says_where_that_is_known(value):
    function = program(f'''def main(A: T.Buffer((12,), "int32"), N: T.Buffer((1,), "int32"),
         B: T.Buffer((12,), "int32"), n: T.int32):
    x: T.int32 = {value}
    for i in range(x):
        with T.block("B"):
            v = T.axis.spatial(x, i)
            B[v] = A[v // 2]
''')
    schedule = Schedule(function)
    try:
        schedule.cache_index("B", "global", 0)
    except ScheduleError as error:
        assert "would move a use of x out of the scope where x lives" in str(error)
        assert value == "N[0]"
        return
    data, sizes = np.arange(12, dtype="int32"), np.array([5], "int32")
    expected, actual = np.full(12, 99, "int32"), np.full(12, 99, "int32")
    evaluate(function, data, sizes, expected, 5)
    evaluate(schedule.mod["main"], data, sizes, actual, 5)
    assert (expected == actual).all()
