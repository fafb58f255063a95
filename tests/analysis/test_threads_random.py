"""Random programs of threads and barriers: proofs and checks against the evaluator, and the barriers that are put in.

A program that is proved free of races has none when it runs; a race that the check finds is there when it runs; and
with `insert_barriers` every program computes what it does with a barrier after each statement.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from loopwright.analysis import ThreadRace as CertainRace
from loopwright.analysis import accesses_of, check_thread_races
from loopwright.analysis.races import prove_no_race
from loopwright.analysis.thread_axes import axis_of, tag_of
from loopwright.analysis.thread_races import find_crossing
from loopwright.evaluator import evaluate
from loopwright.evaluator.errors import ThreadRace
from loopwright.ir import AttrStmt, For, Node, Var, pre_order_visit
from loopwright.script import from_source
from loopwright.transform import insert_barriers, launch_threads, lower_blocks, write_allocations, write_inits
from loopwright.transform.on_request.insert_barriers import NeedsBarrier

N = 4
BARRIER = 'T.evaluate(T.tvm_storage_sync("shared"))'
INDICES = ("tx", f"{N - 1} - tx", f"(tx + 1) % {N}", "tx // 2", "tx // 2 * 2", "0", f"tx + {N}", f"{2 * N - 1} - tx")


def _index(choose: random.Random, around: list[str]) -> str:
    index = choose.choice(INDICES)
    return f"({index} + {choose.choice(around)}) % {2 * N}" if around and choose.random() < 0.3 else index


def _statement(choose: random.Random, around: list[str]) -> str:
    kind = choose.randrange(4)
    if kind == 0:
        return f"S[{_index(choose, around)}] = A[tx]"
    if kind == 1:
        return f"L[0] = L[0] + S[{_index(choose, around)}]"
    if kind == 2:
        return f"S[{_index(choose, around)}] = L[0]"
    return f"B[tx] = B[tx] + S[{_index(choose, around)}]"


def _body(choose: random.Random, depth: int, around: list[str], every: bool) -> list[str]:
    lines: list[str] = []
    for _ in range(choose.randint(1, 3)):
        kind = choose.random()
        if depth and kind < 0.25:
            name = f"k{len(around)}"
            lines.append(f"for {name} in range({choose.choice((0, 1, 2))}):")
            lines += ["    " + line for line in _body(choose, depth - 1, [*around, name], every)]
        elif depth and kind < 0.35:
            condition = f"{choose.choice(around)} < 1" if around else "n < 2"
            lines.append(f"if {condition}:")
            lines += ["    " + line for line in _body(choose, depth - 1, around, every)]
        elif kind < 0.45:
            lines += [f"if tx < {choose.randint(1, N)}:", "    " + _statement(choose, around)]
        else:
            lines.append(_statement(choose, around))
        is_barrier = choose.random() < 0.35
        if every or is_barrier:
            lines.append(BARRIER)
    return lines


def program(seed: int, launched: bool, every: bool = False):
    """The program of a number; `every`: with a barrier after each statement."""
    head = [
        'tx = T.launch_thread("threadIdx.x", 4)' if launched else 'for tx in T.thread_binding(4, thread="threadIdx.x"):'
    ]
    indent = "" if launched else "    "
    start = ["L[0] = 0.0", "S[tx] = 1.0", f"S[tx + {N}] = 2.0", BARRIER]
    lines = [*start, *_body(random.Random(seed), 2, [], every)]
    text = "\n    ".join([*head, *[indent + line for line in lines]])
    return from_source(
        "@T.prim_func\ndef main(A: T.Buffer(4), B: T.Buffer(4), n: T.int32):\n"
        f'    S = T.alloc_buffer({2 * N}, scope="shared")\n    L = T.alloc_buffer(1, scope="local")\n    {text}\n'
    )


def run(func, n: int) -> np.ndarray:
    b = np.zeros(N, "float32")
    evaluate(func, np.arange(N, dtype="float32") + 3, b, n)
    return b


def races(func) -> bool:
    for n in (1, 5):
        try:
            run(func, n)
        except ThreadRace:
            return True
    return False


def thread_variable(func) -> Var:
    found: list[Var] = []

    def look(node: Node) -> None:
        if isinstance(node, (For, AttrStmt)) and tag_of(node):
            found.append(axis_of(node).var)

    pre_order_visit(func.body, look)
    return found[0]


FOUND = [1035, 1110, 1361, 1444]  # races between stretches of launched threads, once overlooked


@pytest.mark.one_in(3)
@pytest.mark.parametrize("launched", [True, False], ids=["launched", "bound"])
@pytest.mark.parametrize("seed", [*range(60), *FOUND])
def test_proofs_and_checks_agree_with_runs(seed, launched):
    func = program(seed, launched)
    walked = accesses_of(func)
    found = prove_no_race(walked, thread_variable(func)) or find_crossing(walked, certain=False)
    is_wrong = races(func)
    if found is None:
        assert not is_wrong
    try:
        check_thread_races(func)
    except CertainRace:
        assert is_wrong
    if not launched and not is_wrong:
        flat = func
        for step in (write_inits, write_allocations, lower_blocks, launch_threads, insert_barriers):
            flat = step(flat)
        for n in (1, 5):
            np.testing.assert_array_equal(run(flat, n), run(func, n))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(60))
def test_inserted_barriers_are_enough(seed):
    func, reference = program(seed, launched=True), program(seed, launched=True, every=True)
    try:
        synced = insert_barriers(func)
    except NeedsBarrier:
        assert races(reference)  # one statement races with itself
        return
    if races(reference):
        return
    for n in (1, 5):
        np.testing.assert_array_equal(run(synced, n), run(reference, n))
    assert insert_barriers(synced) is synced


def program_in_a_loop(seed: int, every: bool = False):
    """The same statements, three times, in shared memory that each time allocates anew."""
    start = ["S[tx] = 1.0", f"S[tx + {N}] = 2.0", BARRIER]
    lines = [*start, *_body(random.Random(seed), 1, ["r"], every)]
    return from_source(
        "@T.prim_func\ndef main(A: T.Buffer(4), B: T.Buffer(4), n: T.int32):\n"
        '    tx = T.launch_thread("threadIdx.x", 4)\n    L = T.decl_buffer(1, scope="local")\n    L[0] = 0.0\n'
        f'    for r in range(3):\n        S = T.decl_buffer({2 * N}, scope="shared")\n        '
        + "\n        ".join(lines)
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(40))
def test_memory_allocated_in_a_loop_is_used_again(seed):
    func, reference = (lower_blocks(write_allocations(program_in_a_loop(seed, every))) for every in (False, True))
    try:
        synced = insert_barriers(func)
    except NeedsBarrier:
        assert races(reference)
        return
    if races(reference):
        return
    for n in (1, 5):  # runs on one memory for all iterations, and finds every race in it
        np.testing.assert_array_equal(run(synced, n), run(reference, n))
