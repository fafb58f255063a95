"""Tickets and status words in the evaluator: what they mean, and what stops it."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright import tir
from loopwright.evaluator import evaluate
from loopwright.evaluator.errors import HandoffMismatch, ThreadRace
from loopwright.script import from_source


def program(body: str):
    head = """
@T.prim_func
def main(status: T.Buffer(8, "uint64"), counter: T.Buffer(1, "int32"), B: T.Buffer(8, "uint64")):
    for b in T.thread_binding(8, thread="blockIdx.x"):
"""
    return from_source(head + "".join([f"        {line}\n" for line in body.splitlines()]))


def run(body: str, counter: int = 0):
    arrays = np.zeros(8, "uint64"), np.full(1, counter, "int32"), np.zeros(8, "uint64")
    evaluate(program(body), *arrays)
    return arrays


PUBLISH = "T.evaluate(T.publish(T.address_of(status[b]), T.uint64(5) + T.Cast('uint64', b)))"


def test_a_block_has_what_the_one_before_published():
    status, _, result = run(f"{PUBLISH}\nif b > 0:\n    B[b] = T.await_published(T.address_of(status[b - 1]))")
    assert status.tolist() == [*range(5, 13)]
    assert result.tolist() == [0, *range(5, 12)]


def test_tickets_are_numbers_in_the_order_of_blocks():
    _, counter, result = run("B[b] = T.Cast('uint64', T.take_ticket(T.address_of(counter[0])))", counter=3)
    assert result.tolist() == [*range(3, 11)]
    assert counter[0] == 11


def test_the_ticket_after_the_greatest_integer_is_the_least():
    _, counter, _ = run("B[b] = T.Cast('uint64', T.take_ticket(T.address_of(counter[0])))", counter=2**31 - 1)
    assert counter[0] == -(2**31) + 7


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("B[b] = T.await_published(T.address_of(status[b]))", r"waits for what no earlier .*: status\[0\]"),
        (PUBLISH.replace("b]", "b // 2]"), r"publishes what has been published already: status\[0\]"),
        (PUBLISH.replace("5", "0"), r"0 is published, which means that nothing is there: status\[0\]"),
    ],
)
def test_what_would_wait_for_ever_stops(body, message):
    with pytest.raises(HandoffMismatch, match=message):
        run(body)


def test_plain_accesses_of_other_blocks_are_races():
    for access in ("B[b] = status[(b + 7) % 8]", "status[(b + 7) % 8] = T.uint64(0)"):
        with pytest.raises(ThreadRace, match=r"block .* both touch status\["):
            run(f"{PUBLISH}\n{access}")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda a, n: tir.take_ticket(tir.address_of(a[0])), "take_ticket.*address of one int32.*got that of uint64"),
        (lambda a, n: tir.await_published(a.data), "await_published.* the address of one uint64.*got no address"),
        (lambda a, n: tir.publish(tir.address_of(a[0]), n), "publish.* a word of type uint64; got int32"),
        (lambda a, n: tir.take_ticket(), r"take_ticket\(\) takes 1 argument, but 0 were given"),
    ],
)
def test_what_is_no_hand_off_is_refused(build, message):
    with pytest.raises(TypeError, match=message):
        build(tir.decl_buffer((8,), "uint64", name="A"), tir.Var("n", "int32"))
