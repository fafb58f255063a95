"""hoist_guards: what no thread and no loop changes is asked once, around the loops with roles."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.evaluator import evaluate
from loopwright.ir import PrimFunc, Var
from loopwright.script import from_source
from loopwright.transform.parts.hoist_guards import hoist_guards
from tests.transform.before_after import same_program

HEAD = "@T.prim_func\ndef main(A: T.Buffer((8, 64)), B: T.Buffer((8, 64)), n: T.int32, tx: T.int32, bx: T.int32):\n"


def program(body: str) -> PrimFunc:
    return from_source(HEAD + body)


def hoisted(body: str) -> PrimFunc:
    function = program(body)
    thread = next(var for var in function.params if var.name == "tx")
    assert isinstance(thread, Var)
    return function.with_(body=hoist_guards(function.body, thread))


def loop(guards: tuple[str, str], around: str = "") -> str:
    """Two roles, each under a guard; `around` is one around the loop."""
    indent = "    " if around else ""
    one, other = [f"if {guard}:\n                    {indent}" if guard else "" for guard in guards]
    return (
        (f"    {around}\n" if around else "")
        + f"""
    {indent}for k in T.serial(4, annotations={{"warp_role_stages": 2}}):
        {indent}with T.attr("a", "warp_role", 32):
            {indent}if tx < 32:
                {indent}{one}A[k, tx] = T.float32(1)
        {indent}with T.attr("b", "warp_role", 32):
            {indent}if tx >= 32:
                {indent}{other}B[k, tx] = T.float32(2)
"""
    )


@pytest.mark.parametrize("guard", ["bx < n", "bx * 4 + 3 < n"])
def test_what_all_roles_ask_goes_around_the_loop(guard):
    same_program(hoisted(loop((guard, guard))), program(loop(("", ""), f"if {guard}:")))


@pytest.mark.parametrize(
    "guards",
    [
        ("bx < n", "bx < n + 1"),  # another one
        ("bx < n", ""),
        ("k < n", "k < n"),  # of the loop of roles: each part keeps its own
        ("tx < n", "tx < n"),  # of threads
        ("A[0, 0] > T.float32(0)", "A[0, 0] > T.float32(0)"),  # of data
    ],
)
def test_what_stays(guards):
    same_program(hoisted(loop(guards)), program(loop(guards)))


def test_allocations_are_no_obstacle_and_loops_inside_parts_neither():
    body = """
    for t in range(2):
        for k in T.serial(4, annotations={"warp_role_stages": 2}):
            S = T.decl_buffer((64,), scope="shared")
            with T.attr("a", "warp_role", 32):
                if tx < 32:
                    for q in range(2):
                        if t * 3 + bx < n:
                            A[k, q] = T.float32(1)
"""
    after = """
    for t in range(2):
        if t * 3 + bx < n:
            for k in T.serial(4, annotations={"warp_role_stages": 2}):
                S = T.decl_buffer((64,), scope="shared")
                with T.attr("a", "warp_role", 32):
                    if tx < 32:
                        for q in range(2):
                            A[k, q] = T.float32(1)
"""
    same_program(hoisted(body), program(after))


def test_a_case_for_the_rest_stays_where_it_is():
    body = """
    for k in range(4):
        if bx < n:
            A[k, 0] = T.float32(1)
        else:
            B[k, 0] = T.float32(1)
"""
    same_program(hoisted(body), program(body))


@pytest.mark.parametrize("guard", ["i < n", "bx < n", "i < n and bx < 1", "i % 2 == 0"])
@pytest.mark.parametrize("n", [0, 1, 3, 9])
def test_guarded_roles_compute_the_same(guard, n):
    part = """
                if {guard}:
                    for tx in T.thread_binding(32, thread="threadIdx.x"):
                        {what}
"""
    function = from_source(f"""
@T.prim_func
def main(A: T.Buffer((12, 32)), B: T.Buffer((12, 32)), n: T.int32):
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for i in T.serial(6, annotations={{"warp_role_stages": 2}}):
            S = T.decl_buffer((32,), scope="shared")
            with T.attr("load", "warp_role", 32):
{part.format(guard=guard, what="S[tx] = A[bx * 6 + i, tx]")}
            with T.attr("use", "warp_role", 32):
{part.format(guard=guard, what="B[bx * 6 + i, tx] = S[31 - tx]")}
""")
    a, wanted = np.arange(384, dtype="float32").reshape(12, 32), np.zeros((12, 32), "float32")
    evaluate(function, a, wanted, n)
    module = lw.build(function, target="cuda -model=emulated -arch=sm_90")
    for order in ("forwards", "backwards", "random"):
        module.set_thread_order(order)
        got = np.zeros_like(wanted)
        module(a, got, n)
        np.testing.assert_array_equal(got, wanted)
