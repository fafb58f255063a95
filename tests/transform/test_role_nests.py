"""Nests of roles: loops of roles in loops and conditions, several of them, and what roles do between them."""

from __future__ import annotations

import re
from textwrap import indent

import numpy as np
import pytest

from loopwright.ir import PrimFunc
from loopwright.script import from_source
from loopwright.transform.on_request.launch_threads import NotALaunch
from loopwright.transform.warp_roles import CannotSpecialize
from tests.transform.every_order import calls, check_every_order, some, specialized

ROWS = 64


def role(name: str, body: str, threads: int = 32) -> str:
    head = f'with T.attr("{name}", "warp_role", {threads}):\n'
    head += f'    for tx in T.thread_binding({threads}, thread="threadIdx.x"):\n'
    return head + indent(body, " " * 8) + "\n"


def loop(turns: str, *parts: str, stages: int = 2, memory: str = 'S = T.decl_buffer((32,), scope="shared")') -> str:
    head = f'for i in {turns}, annotations={{"warp_role_stages": {stages}}}):\n'
    return head + indent("\n".join([memory, *parts]), "    ") + "\n"


def program(body: str, blocks: int = 1) -> PrimFunc:
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({ROWS}, 32)), B: T.Buffer(({ROWS}, 32)), C: T.Buffer(({ROWS}, 32)), n: T.int32):
    for bx in T.thread_binding({blocks}, thread="blockIdx.x"):
{indent(body, " " * 8)}
""")


def check(body: str, n: int = 3, blocks: int = 1) -> str:
    a = some(ROWS, 32, dtype="float32")
    return check_every_order(program(body, blocks), a, np.zeros_like(a), np.zeros_like(a), n)


def reverse(row: str, turns: str, stages: int = 2) -> str:
    """Rows are loaded by one role, and stored in reverse by another."""
    return loop(turns, role("load", f"S[tx] = A[{row}, tx]"), role("use", f"B[{row}, tx] = S[31 - tx]"), stages=stages)


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize(
    "body",
    [
        "for t in range(3):\n{}".format(indent(reverse("t * 4 + i", "T.serial(4", 9), "    ")),
        "for t in T.unroll(3):\n{}".format(indent(reverse("t * 4 + i", "T.serial(4", 9), "    ")),
        "for t in range(3):\n{}".format(indent(reverse("t * 4 + i", "T.unroll(4", 9), "    ")),
        "for t in range(n):\n{}".format(indent(reverse("t * 4 + i", "T.serial(n - t", 9), "    ")),
        "for t in range(n):\n{}".format(indent(reverse("t * 4 + i", "T.serial(t % 2", 9), "    ")),
        "for t in range(3):\n{}".format(indent(reverse("t * 4 + i", "T.serial(t - 1", 9), "    ")),
        "for t in range(3):\n{}".format(indent(reverse("t * 4 + i", "T.serial(t, 4", 9), "    ")),
        "for t in range(2, n):\n    for u in range(t):\n{}".format(
            indent(reverse("(t * 2 + u) * 4 + i", "T.serial(3", 9), "        ")
        ),
        reverse("i", "T.serial(1", 9),
        reverse("i", "T.serial(0", 9),
        reverse("i", "T.serial(1, n", 9),
    ],
)
def test_loops_around_a_loop_of_roles(body, stages):
    body = body.replace('stages": 9', f'stages": {stages}')
    for n in (0, 3):
        check(body, n)


def test_extents_of_a_block():
    check("for t in range(bx):\n" + indent(reverse("bx * 16 + t * 4 + i", "T.serial(bx + t", 3), "    "), blocks=3)


def test_conditions_that_all_threads_ask_alike():
    check("for t in range(3):\n    if (t + bx) % 2 == 0:\n"
          + indent(reverse("bx * 16 + t * 4 + i", "T.serial(4"), " " * 8), blocks=2)  # fmt: skip
    other = role("third", "C[i, tx] = A[i, tx]")
    check("for t in range(4):\n    if t < n:\n" + indent(reverse("t * 4 + i", "T.serial(2"), " " * 8)
          + "    else:\n" + indent(loop("T.serial(3", other), " " * 8))  # fmt: skip


TWO = [
    # A role is absent from one of the loops.
    reverse("i", "T.serial(4")
    + loop("T.serial(5", role("use", "S[tx] = A[i, tx]"), role("x", "C[i, tx] = S[31 - tx]")),
    # Who loads in one loop reads in the other one.
    reverse("i", "T.serial(4")
    + loop("T.serial(5", role("use", "S[tx] = A[i, tx]"), role("load", "C[i, tx] = S[31 - tx]"), stages=3),
    reverse("i", "T.serial(0") + reverse("i + 8", "T.serial(n", 3),
]


@pytest.mark.parametrize("body", [*TWO, *["for t in range(3):\n" + indent(each, "    ") for each in TWO[:2]]])
def test_several_loops_of_roles(body):
    if body.startswith("for t"):
        body = body.replace("[i, tx]", "[t * 5 + i, tx]")
    check(body)


def test_what_one_role_keeps_between_loops():
    """Registers and shared memory of its own."""
    sums = loop("T.serial(t", role("load", "S[tx] = A[t * 4 + i, tx]"),
                role("use", "L[tx, 0] = L[tx, 0] + S[31 - tx % 32]", 64))  # fmt: skip
    body = (
        role("use", "L[tx, 0] = T.float32(0)", 64) + sums + role("use", "C[t * 2 + tx // 32, tx % 32] = L[tx, 0]", 64)
    )
    check('L = T.decl_buffer((64, 1), scope="local")\nfor t in range(n):\n' + indent(body, "    "), n=5)
    first = loop("T.serial(4", role("load", "S[tx] = A[t * 4 + i, tx]"), role("use", "Z[tx] = S[31 - tx]"))
    second = loop("T.serial(5", role("use", "C[t * 5 + i, tx] = Z[31 - tx]"), memory="")
    check('Z = T.decl_buffer((32,), scope="shared")\nfor t in range(3):\n' + indent(first + second, "    "))


def test_what_the_block_does_before_and_after():
    before = 'Z = T.decl_buffer((32,), scope="shared")\nfor q in range(32):\n    Z[q] = A[0, q]\n'
    check(before + loop("T.serial(4", role("load", "S[tx] = A[i, tx]"), role("use", "B[i, tx] = S[tx] + Z[31 - tx]")))
    after = "for q in range(32):\n    C[0, q] = Z[q]\n"
    check(before + loop("T.serial(4", role("load", "S[tx] = A[i, tx]"), role("use", "Z[tx] = S[31 - tx]")) + after)


def test_each_loop_has_barriers_of_its_own():
    (first, second) = TWO[0].split("for i in")[1:]
    result = specialized(program(f"for i in{first}for i in{second}"))
    assert len(calls(result, "mbarrier_init")) == 4
    text = result.script()
    assert 'turn = T.decl_buffer((2,), "int32", scope="local")' in text, "iterations are counted through both"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("for t in range(3):\n    if A[t, 0] > T.float32(0):\n" + indent(reverse("i", "T.serial(4"), " " * 8),
         "A[t, 0] > T.float32(0) around the loop of roles is not the same for all threads"),
        ("for t in T.vectorized(2):\n" + indent(reverse("i", "T.serial(4"), "    "),
         "roles stand in a For"),
        (reverse("i", "T.serial(4") + "C[0, 0] = T.float32(3)\n" + reverse("i", "T.serial(4"),
         "a statement stands beside the roles of the nest"),
        (loop("T.serial(4", reverse("i", "T.serial(2"), memory=""), "a loop of roles stands in another one"),
        (loop("T.serial(4", "for q in range(2):\n" + indent(role("load", "S[tx] = A[i, tx]"), "    ")),
         "a statement stands beside the roles of the loop"),
        # What roles hand on is shared memory of one iteration of one loop.
        ('Z = T.decl_buffer((32,), scope="shared")\n' + loop("T.serial(4", role("a", "Z[tx] = A[i, tx]"), memory="")
         + loop("T.serial(4", role("b", "B[i, tx] = Z[tx]"), memory=""),
         "role a writes Z, which other roles touch as well, and it is allocated around the loop of roles"),
        (role("a", "C[0, tx] = A[0, tx]") + loop("T.serial(4", role("b", "B[i, tx] = C[0, tx]"), memory=""),
         "role a writes C, which role b touches as well"),
        ('L = T.decl_buffer((32, 1), scope="local")\n'
         + loop("T.serial(4", role("a", "L[tx, 0] = A[i, tx]"), role("b", "B[i, tx] = L[tx, 0]"), memory=""),
         "role a writes L, which role b touches as well, and it is no shared memory of an iteration"),
        (role("a", "B[0, tx] = A[0, tx]"), "a role stands outside a loop of roles"),
    ],
)  # fmt: skip
def test_nests_that_roles_cannot_run_by_themselves(body, message):
    with pytest.raises(CannotSpecialize, match=re.escape(message)):
        specialized(program(body))


SQUARE = """
for ty in T.thread_binding({y}, thread="threadIdx.y"):
    for tx in T.thread_binding({x}, thread="threadIdx.x"):
        {to}[i, ty * {x} + tx] = A[i, ty * {x} + tx]
"""


def part(name: str, y: int, x: int, to: str) -> str:
    return f'with T.attr("{name}", "warp_role", 32):\n' + indent(SQUARE.format(y=y, x=x, to=to), "    ")


def test_roles_count_their_threads_in_their_own_way():
    check(loop("T.serial(4", part("a", 8, 4, "B"), part("b", 2, 16, "C"), memory=""))


def test_all_parts_of_a_role_count_them_alike():
    body = loop("T.serial(4", part("a", 8, 4, "B"), memory="") + loop("T.serial(4", part("a", 4, 8, "C"), memory="")
    with pytest.raises((NotALaunch, ValueError), match=r"threadIdx\.y"):
        check(body)


def test_roles_of_which_each_is_one_thread():
    """No loop over threads says that there are any."""
    copy = """
with T.attr("load", "warp_role", 32):
    for c in range(32):
        S[c] = A[i, c]
with T.attr("store", "warp_role", 32):
    for c in range(32):
        B[i, c] = S[c]
"""
    assert "lw_tensor_copy_2d" in check(loop("T.serial(4", copy))
