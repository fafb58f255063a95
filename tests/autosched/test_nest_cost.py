"""nest_cost.py: one cost model for all streaming rules: instructions, bytes, and how many pieces work is worth."""

from __future__ import annotations

from loopwright import te, tir
from loopwright.autosched import Machine
from loopwright.autosched.nest_cost import instructions, nest_cost
from loopwright.autosched.program import Program
from loopwright.schedule import Schedule
from tests.autosched.test_row_group import softmax

MACHINE = Machine.of("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=4")
MANY = Machine.of("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=64")


def facts_of(func):
    found = [entry.facts for entry in Program(Schedule(func), "main").entries]
    assert all(facts is not None for facts in found)
    return found


def of(body, n=4096, dtype="float32", reads=2):
    given = [te.placeholder((n,), dtype, name=name) for name in "AB"[:reads]]
    result = te.compute((n,), lambda i: body(*[x[i] for x in given]), name="C")
    return facts_of(te.create_prim_func([*given, result]))


def test_instructions_of_one_vector():
    assert instructions(of(lambda a, b: a + b)[0]) == 1
    assert instructions(of(lambda a, b: te.exp(a) * b)[0]) == 15
    assert instructions(of(lambda a, b: tir.max(a, b))[0]) == 4
    assert instructions(of(lambda a, b: tir.max(a, b), dtype="int32")[0]) == 1
    assert instructions(of(lambda a, b: tir.max(a + b, tir.const(0.0, "float32")))[0]) == 2


def test_bytes_are_counted_once_a_buffer():
    assert nest_cost(of(lambda a: a * a + a, reads=1), MACHINE).bytes == 2 * 4096 * 4
    blocks = facts_of(softmax(128, 1000))
    e = next(facts.write.buffer for facts in blocks if facts.name == "e")
    whole, kept = nest_cost(blocks, MACHINE), nest_cost(blocks, MACHINE, [e])
    assert whole.bytes - kept.bytes == 128 * 1000 * 4
    assert whole.elements == 4 * 128 * 1000 and whole.instructions == 15


def test_a_reduction_does_not_store_each_member():
    A = te.placeholder((64, 512), name="A")
    k = te.reduce_axis((0, 512), name="k")
    rows = te.create_prim_func([A, te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="C")])
    assert nest_cost(facts_of(rows), MACHINE).arithmetic == 64 * 512 / 16 / 2


def test_unknown_sizes_are_guessed_and_said_to_be():
    cost = nest_cost(of(lambda a, b: a + b, n=te.var("n")), MACHINE)
    assert not cost.is_known and cost.elements > 1
    assert nest_cost(of(lambda a, b: a + b), MACHINE).is_known


def test_pieces_do_not_depend_on_the_number_of_cores():
    large = of(lambda a, b: a + b, n=1 << 22)
    assert nest_cost(large, MACHINE).pieces(MACHINE) == nest_cost(large, MANY).pieces(MANY) == 16
    assert nest_cost(of(lambda a, b: a + b, n=64), MACHINE).pieces(MACHINE) == 1
