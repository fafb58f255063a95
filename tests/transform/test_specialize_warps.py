"""specialize_warps: parts of iterations become the work of different warps, which hand on memory by mbarriers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright.analysis.warp_roles import NotARole
from loopwright.evaluator import evaluate
from loopwright.ir import Call, collect
from loopwright.script import from_source
from loopwright.transform import insert_barriers, launch_threads, lower_blocks, write_allocations
from loopwright.transform.on_request.launch_threads import NotALaunch
from loopwright.transform.on_request.specialize_warps import specialize_warps
from loopwright.transform.warp_roles import CannotSpecialize

EMULATED = "cuda -model=emulated -arch=sm_90"
ORDERS = ("forwards", "backwards", "random")

LOAD = """
            with T.attr("load", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    for k in range(4):
                        S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx]
"""
ADD = """
            with T.attr("add", "warp_role", 64):
                P = T.decl_buffer((2,), scope="shared")
                for tx in T.thread_binding(64, thread="threadIdx.x"):
                    s = T.decl_buffer((1,), scope="local")
                    s[0] = S[tx] + S[64 + tx]
                    for k in T.unroll(5):
                        s[0] = s[0] + T.tvm_warp_shuffle_xor(T.uint32(4294967295), s[0], T.shift_left(1, k), 32, 32)
                    if tx % 32 == 0:
                        P[tx // 32] = s[0]
                for tx in T.thread_binding(64, thread="threadIdx.x"):
                    if tx == 0:
                        M[0] = P[0] + P[1]
"""
STORE = """
            with T.attr("store", "warp_role", 96):
                for tx in T.thread_binding(96, thread="threadIdx.x"):
                    for k in range(2):
                        if k * 96 + tx < 128:
                            B[i * 2 + bx, k * 96 + tx] = S[127 - (k * 96 + tx)] - M[0]
"""


def program(stages=2, turns=5, parts=(LOAD, ADD, STORE)):
    rows = 2 * turns
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, 128)), B: T.Buffer(({rows}, 128))):
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for i in T.serial({turns}, annotations={{"warp_role_stages": {stages}}}):
            S = T.decl_buffer((128,), scope="shared")
            M = T.decl_buffer((1,), scope="shared")
{"".join(parts)}
""")


def specialized(function):
    return specialize_warps(launch_threads(write_allocations(lower_blocks(function))))


def calls(function, name):
    return [call for call in collect(function.body, Call) if call.op.name == f"tir.{name}"]


def check(function, *arrays):
    """What the evaluator computes, the kernel computes in every order of threads."""
    wanted = [array.copy() for array in arrays]
    evaluate(function, *wanted)
    module = lw.build(function, target=EMULATED)
    for order in ORDERS:
        module.set_thread_order(order)
        got = [array.copy() for array in arrays]
        module(*got)
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def some(*shape):
    return np.random.default_rng(0).integers(-9, 9, shape).astype("float32")


@pytest.mark.parametrize("stages", [1, 2, 3, 7])
@pytest.mark.parametrize("turns", [1, 2, 5])
def test_every_order_of_threads_gives_what_the_text_says(stages, turns):
    function = program(stages, turns)
    a = np.random.default_rng(0).integers(-9, 9, (2 * turns, 128)).astype("float32")
    wanted = a[:, ::-1] - a.sum(1, keepdims=True)
    got = np.zeros_like(a)
    evaluate(function, a, got)
    np.testing.assert_array_equal(got, wanted)
    module = lw.build(function, target=EMULATED)
    for order in ORDERS:
        module.set_thread_order(order)
        got = np.zeros_like(a)
        module(a, got)
        np.testing.assert_array_equal(got, wanted)


def test_what_becomes_of_the_loop():
    result = specialized(program(stages=3))
    text = result.script()
    assert text.count("for i in range(5):") == 3
    assert "S = T.decl_buffer((3, 128), scope=\"shared\")" in text
    assert "P = T.decl_buffer((2,), scope=\"shared\")" in text, "what one role uses is its own"
    (copy,) = calls(result, "bulk_copy_async")
    assert copy.args[2].value == 512
    assert len(calls(result, "mbarrier_init")) == 4, "of S and of M, each full and empty"
    arrivals = [call.args[1].value for call in calls(result, "mbarrier_init")]
    assert arrivals == [32, 160, 64, 96], "threads that fill, and that read"
    assert len(calls(result, "mbarrier_wait")) == len(calls(result, "mbarrier_arrive")) == 5
    assert specialize_warps(result).body is result.body


def test_threads_of_a_role_meet_by_themselves():
    result = insert_barriers(specialized(program()))
    assert len(calls(result, "tvm_storage_sync")) == 1, "after the mbarriers are set up"
    meetings = {(call.args[0].value, call.args[1].value) for call in calls(result, "role_barrier")}
    assert meetings == {(2, 64)}, "the two warps that add"


@pytest.mark.parametrize(
    ("statement", "size"),
    [
        ("for k in range(4):\n    S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx]", "512"),
        ("for k in range(4):\n    if k * 32 + tx < 100:\n        S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx]", "400"),
        ("for k in range(4):\n    if i < 3:\n        S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx]", "if_then_else"),
        ("for k in range(2):\n    S[k * 32 + tx + 7] = A[i * 2 + bx, k * 32 + tx + 64]", "256"),
        ("for k in range(4):\n    S[k * 32 + tx] = A[i * 2 + bx, 127 - (k * 32 + tx)]", None),  # the other way round
        ("for k in range(4):\n    S[tx * 4 + k] = A[i * 2 + bx, k * 32 + tx]", None),  # not in order
        ("for k in range(4):\n    S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx] * T.float32(2)", None),
        ("for k in range(4):\n    if tx < 16:\n        S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx]", None),
        ("for k in range(4):\n    S[k * 32 + tx] = A[k * 2, i + tx]", None),  # rows are no neighbours
        ("for k in range(1, 5):\n    S[k * 32 + tx - 32] = A[i * 2 + bx, k * 32 + tx - 32]", "512"),
        # The copy is there later: nothing else may touch its target until then.
        ("for k in range(4):\n    S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx]\nS[tx] = T.float32(3)", None),
        ("S[tx] = T.float32(7)\nfor k in range(4):\n    S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx]", None),
        # A condition asks memory only where one around it allows that.
        ("for k in range(4):\n    if k * 32 + tx < i:\n        if A[i - 1, 0] > T.float32(0):\n"
         "            S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx]", None),
        ("for k in range(4):\n    if i > 2:\n        if A[i - 3, 0] > T.float32(0):\n"
         "            S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx]", "i - 3"),
        ("for k in range(4):\n    if T.Cast('float32', k * 32 + tx) < A[0, 0]:\n"
         "        S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx]", None),
    ],
)
def test_copies_of_neighbours_are_bulk_copies(statement, size):
    indented = "\n".join("                    " + line for line in statement.splitlines())
    load = LOAD.split("                    for k")[0] + indented + "\n"
    result = specialized(program(parts=(load, STORE.replace(" - M[0]", ""))))
    copies = calls(result, "bulk_copy_async")
    assert len(copies) == (size is not None)
    assert size is None or size in repr(copies[0].args[2])


HALVES = """
            with T.attr("load", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    for k in range(2):
                        S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx]
                    for k in range(2):
                        S[k * 32 + tx + {at}] = A[i * 2 + bx, k * 32 + tx + 64]
"""


@pytest.mark.parametrize(("at", "copies"), [(64, 2), (63, 0), (0, 0)])
def test_copies_to_one_memory_lie_apart(at, copies):
    result = specialized(program(parts=(HALVES.format(at=at), STORE.replace(" - M[0]", ""))))
    assert len(calls(result, "bulk_copy_async")) == copies


OWN_READ = """
            with T.attr("load", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    for k in range(4):
                        S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx]
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    M[tx] = S[tx + 5]
"""
OVERWRITES = """
            with T.attr("load", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    for k in range(4):
                        S[k * 32 + tx] = T.float32(7)
                    for k in range(4):
                        if k * 32 + tx < 100:
                            S[k * 32 + tx] = A[i * 2 + bx, k * 32 + tx]
"""


@pytest.mark.parametrize("load", [OWN_READ, OVERWRITES])
def test_who_touches_what_it_has_loaded_does_not_copy_in_bulk(load):
    text = program(stages=2, parts=(load, STORE.replace("M[0]", "M[tx % 32]" if load is OWN_READ else "S[0]"))).script()
    function = from_source(text.replace("M = T.decl_buffer((1,)", "M = T.decl_buffer((32,)"))
    check(function, some(10, 128), np.zeros((10, 128), "float32"))


def test_what_a_copy_reads_is_overwritten_after_it():
    function = from_source("""
@T.prim_func
def main(A: T.Buffer((6, 128)), B: T.Buffer((6, 128)), G: T.Buffer(128)):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.serial(6, annotations={"warp_role_stages": 2}):
            S = T.decl_buffer((128,), scope="shared")
            with T.attr("load", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    for k in range(4):
                        S[k * 32 + tx] = G[k * 32 + tx]
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    for k in range(4):
                        G[k * 32 + 31 - tx] = A[i, k * 32 + tx]
            with T.attr("store", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    for k in range(4):
                        B[i, k * 32 + tx] = S[k * 32 + tx]
""")
    check(function, some(6, 128), np.zeros((6, 128), "float32"), np.zeros(128, "float32"))


def test_a_condition_of_the_only_role_is_its_own():
    function = from_source("""
@T.prim_func
def main(A: T.Buffer((6, 32)), B: T.Buffer((6, 32))):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.serial(6, annotations={"warp_role_stages": 2}):
            with T.attr("all", "warp_role", 32):
                if i < 3:
                    for tx in T.thread_binding(32, thread="threadIdx.x"):
                        B[i, tx] = A[i, tx]
""")
    check(function, some(6, 32), np.zeros((6, 32), "float32"))


def test_a_loop_around_the_kernel_is_none_of_its_loops():
    text = program(parts=(LOAD, STORE.replace(" - M[0]", ""))).script()
    kernel = '    for bx in T.thread_binding(2, thread="blockIdx.x"):'
    assert kernel in text
    head, body = text.split(kernel)
    body = "\n".join("    " + line for line in (kernel + body).splitlines())
    function = from_source(f"{head}    for j in range(2):\n{body}")
    check(function, some(10, 128), np.zeros((10, 128), "float32"))


GLOBAL = """
            with T.attr("load", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    B[i, tx] = A[i, tx]
            with T.attr("store", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    S[tx] = B[i, tx]
"""
LATE = """
            with T.attr("read", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    B[i, tx] = S[tx]
"""
VIEW = """
            with T.attr("read", "warp_role", 32):
                V = T.decl_buffer((4, 8), data=S.data, scope="shared")
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    B[i, tx] = V[tx // 8, tx % 8]
"""
BOTH = """
            with T.attr("more", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    S[tx] = T.float32(0)
"""


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((GLOBAL,), "role load writes B, which role store touches as well, and it is no shared memory of an iteration"),
        ((LATE, LOAD), "role load writes S, which role read touches as well"),
        ((LOAD, BOTH, LATE), "role load writes S, which role more, read touches as well"),
        ((LOAD, LATE, "            B[0, 0] = T.float32(1)\n"), "a statement stands beside the roles"),
        ((LOAD.replace("32", "48"), LATE), "role load has 48 threads, no whole warps"),
        ((LOAD.replace("32", "0"), LATE), "role load has 0 threads, no whole warps"),
        ((LOAD, VIEW), "role load writes S, which role read touches as well, and it is seen as S, V"),
        ((LOAD, LATE.replace("B[i", 'T.evaluate(T.tvm_storage_sync("shared"))\n                    B[i')),
         "a barrier of the block stands in role read"),
        ([LATE.replace('"read"', f'"{k}"').replace("S[", "A[i, ") for k in range(16)], "the loop has 16 roles"),
    ],
)
def test_what_cannot_be_handed_on(parts, message):
    with pytest.raises(CannotSpecialize, match=re.escape(message)):
        specialized(program(parts=parts))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('annotations={"warp_role_stages": 2}', "annotations={}"), "a role stands outside a loop of roles"),
        (('"warp_role_stages": 2', '"warp_role_stages": 0'), "the loop has 0 stages"),
        (("T.serial(5", "T.parallel(5"), "the loop of roles is parallel"),
        (('"warp_role_stages": 2', '"warp_role_stages": "two"'), "warp_role_stages of loop i is two"),
        (('"load", "warp_role", 32', '"load", "warp_role", bx'), "the number of threads of role load is bx"),
        (('"load", "warp_role", 32', '0, "warp_role", 32'), "the name of a role is 0"),
        (("        for i in T", '        for ty in T.thread_binding(2, thread="threadIdx.y"):\n            B[0, ty] = '
          "T.float32(0)\n        for i in T"), "loop ty over threadIdx.y stands outside the roles"),
        (("        for i in T", '        for tx in T.thread_binding(32, thread="threadIdx.x"):\n            B[0, tx] = '
          "T.float32(0)\n        for i in T"), "loop tx over threadIdx.x stands outside the roles"),
    ],
)
def test_loops_that_are_none_of_roles(change, message):
    text = program(parts=(LOAD, LATE)).script()
    assert change[0] in text
    function = from_source(text.replace(*change))
    with pytest.raises((CannotSpecialize, NotALaunch, NotARole), match=message):
        specialized(function)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((LOAD, LOAD), "there are two parts of role load"),
        ((LOAD.replace("binding(32", "binding(16"), LATE), "loop tx over threadIdx.x of role load has 16 iterations"),
        ((LOAD, LATE.replace("binding(32, thread=\"threadIdx.x", "binding(8, thread=\"threadIdx.y")),
         "loop tx over threadIdx.y of role read has 8 iterations, and the role 32 threads"),
        ((LOAD, LATE.replace('with T.attr("read", "warp_role", 32)', "if i < 4")), "stands outside the roles"),
    ],
)
def test_threads_of_roles(parts, message):
    with pytest.raises((NotALaunch, CannotSpecialize), match=message):
        specialized(program(parts=parts))


TWO_LOOPS = """
@T.prim_func
def main(A: T.Buffer((24, 32)), B: T.Buffer((24, 32)), C: T.Buffer((4, 32))):
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for turn in range(2):
            total = T.decl_buffer((1,), scope="local")
            with T.attr("add", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    total[0] = T.float32(0)
            for i in T.serial(3, annotations={"warp_role_stages": 2}):
                S = T.decl_buffer((32,), scope="shared")
                with T.attr("load", "warp_role", 32):
                    for tx in T.thread_binding(32, thread="threadIdx.x"):
                        S[tx] = A[(bx * 2 + turn) * 6 + i, tx]
                with T.attr("add", "warp_role", 32):
                    for tx in T.thread_binding(32, thread="threadIdx.x"):
                        total[0] = total[0] + S[31 - tx]
            for i in T.serial(3, annotations={"warp_role_stages": 1}):
                R = T.decl_buffer((32,), scope="shared")
                with T.attr("add", "warp_role", 32):
                    for tx in T.thread_binding(32, thread="threadIdx.x"):
                        R[tx] = total[0] * T.Cast("float32", i)
                with T.attr("store", "warp_role", 64):
                    for tx in T.thread_binding(64, thread="threadIdx.x"):
                        if tx < 32:
                            B[(bx * 2 + turn) * 6 + i, tx] = R[31 - tx]
            with T.attr("add", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    C[bx * 2 + turn, tx] = total[0]
"""


def test_a_nest_may_have_several_loops_of_roles():
    check(from_source(TWO_LOOPS), some(24, 32), np.zeros((24, 32), "float32"), np.zeros((4, 32), "float32"))


def test_each_role_runs_the_nest_by_itself():
    text = specialized(from_source(TWO_LOOPS)).script()
    assert text.count("for turn") == 3, "one for each role"
    assert 'S = T.decl_buffer((2, 32), scope="shared")' in text and 'R = T.decl_buffer((1, 32), scope="shared")' in text
    assert text.count("phase: T.int32 = turn_1[1]") + text.count("phase: T.int32 = turn[1]") >= 2


def test_no_role_changes_how_many_iterations_there_are():
    with pytest.raises(CannotSpecialize, match="role change writes N, of which the loop of roles has its iterations"):
        specialized(from_source("""
@T.prim_func
def main(N: T.Buffer(1, "int32"), B: T.Buffer((9, 32))):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.serial(N[0], annotations={"warp_role_stages": 2}):
            with T.attr("change", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    if tx == 0:
                        N[0] = 9
            with T.attr("go on", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    B[i, tx] = T.float32(1)
"""))


@pytest.mark.parametrize(
    "shift",
    [
        "j: T.int32 = tx // 16",
        'L = T.decl_buffer((1,), "int32", scope="local")\n{0}L[0] = tx // 16\n{0}j: T.int32 = L[0]',
    ],
)
def test_what_differs_between_lanes_is_no_bulk_copy(shift):
    indent = " " * 20
    load = LOAD.replace("                    for k", f"{indent}{shift.format(indent)}\n{indent}for k")
    load = load.replace("range(4)", "range(3)").replace("k * 32 + tx]\n", "k * 32 + tx + j]\n")
    function = program(parts=(load, STORE.replace(" - M[0]", "").replace("< 128", "< 96").replace("127 -", "95 -")))
    assert not calls(specialized(function), "bulk_copy_async")
    check(function, some(10, 128), np.zeros((10, 128), "float32"))


def test_a_role_may_be_the_work_of_one_thread():
    one = """
            with T.attr("one", "warp_role", 32):
                M[0] = S[0] + S[1]
"""
    check(program(parts=(LOAD, one, STORE)), some(10, 128), np.zeros((10, 128), "float32"))


def test_tickets_are_taken_in_one_role():
    take = """
            with T.attr("{name}", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    if tx == 0:
                        {to}[i] = T.take_ticket(T.address_of(N[0]))
"""
    with pytest.raises(CannotSpecialize, match="role a and another one take tickets of N"):
        specialized(from_source(f"""
@T.prim_func
def main(N: T.Buffer(1, "int32"), A: T.Buffer(5, "int32"), B: T.Buffer(5, "int32")):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.serial(5, annotations={{"warp_role_stages": 2}}):
{take.format(name="a", to="A")}{take.format(name="b", to="B")}
"""))


@pytest.mark.parametrize("n", [430, 512, 0])
def test_lanes_that_meet_run_one_copy_of_the_code(n):
    """Two copies for full and for other tiles would each have a barrier, which a part of a warp does not reach."""
    function = from_source("""
@T.prim_func
def main(A: T.Buffer((3, 512)), B: T.Buffer((3, 512)), n: T.int32):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.serial(3, annotations={"warp_role_stages": 2}):
            S = T.decl_buffer((512,), scope="shared")
            with T.attr("load", "warp_role", 32):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    for k in range(16):
                        S[k * 32 + tx] = A[i, k * 32 + tx]
            with T.attr("store", "warp_role", 64):
                P = T.decl_buffer((256,), scope="shared")
                for j in T.unroll(2):
                    for tx in T.thread_binding(64, thread="threadIdx.x"):
                        for v in T.vectorized(4):
                            P[tx * 4 + v] = S[j * 256 + tx * 4 + v]
                    for tx in T.thread_binding(64, thread="threadIdx.x"):
                        for v in T.vectorized(4):
                            if j * 256 + tx * 4 + v < n:
                                B[i, j * 256 + tx * 4 + v] = P[255 - (tx * 4 + v)]
""")
    a, wanted = some(3, 512), np.zeros((3, 512), "float32")
    evaluate(function, a, wanted, n)
    module = lw.build(function, target=EMULATED)
    for order in ORDERS:
        module.set_thread_order(order)
        got = np.zeros_like(a)
        module(a, got, n)
        np.testing.assert_array_equal(got, wanted)


def test_a_condition_that_is_not_of_threads_is_none_of_roles():
    function = from_source("""
@T.prim_func
def main(A: T.Buffer((40, 64)), B: T.Buffer((40, 64))):
    bx = T.launch_thread("blockIdx.x", 40)
    tx = T.launch_thread("threadIdx.x", 64)
    for i in T.serial(2, annotations={"warp_role_stages": 2}):
        with T.attr("a", "warp_role", 32):
            if bx < 32:
                A[bx, tx] = T.float32(1)
        with T.attr("b", "warp_role", 32):
            if bx >= 32:
                B[bx, tx] = T.float32(2)
""")
    with pytest.raises(CannotSpecialize, match="role a is not under the condition that a thread is one of 0 to 31"):
        specialize_warps(function)
