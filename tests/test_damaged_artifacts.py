"""Damaged traces, programs, graphs, parameters, targets and packages: they are read, or refused by name.

`python -m benchmarks.fuzz_artifacts` is the campaign; a sample of it runs here, and what it found before.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from benchmarks import fuzz_artifacts
from benchmarks.fuzz_artifacts import CHAIN, MATMUL, function
from loopwright import ir, lower, tir
from loopwright.ir.json_form import BadJson
from loopwright.ir.verifier import NotWellFormed
from loopwright.schedule.errors import BadStepArgument, WrongType
from loopwright.script import from_source
from loopwright.script.parser.errors import ExpressionFailed

KINDS = ["trace", "trace_data,steps", "program", "script,map,target", "relay,relay_json", "params"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kinds", KINDS)
def test_what_is_damaged_is_read_or_refused(kinds):
    cases = [(seed, fuzz_artifacts.outcome(seed, kinds.split(","), 60)) for seed in range(40)]
    wrong = [f"seed {seed}, {kind}: {what}" for seed, (kind, what) in cases if what not in ("read", "refused")]
    assert not wrong
    assert {what for _, (_, what) in cases} == {"read", "refused"} or kinds == "params"


def replayed(steps, decisions=()):
    tir.schedule.Trace.apply_json_to_schedule([steps, list(decisions)], tir.Schedule(function(MATMUL)))


BLOCK = ["GetBlock", [], ["C", "main"], ["b0"]]
LOOPS = ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([[["GetBlock"], [], [], []]], "entry 0 is no step"),
        ([["GetBlock", [], ["C", "main"], 7]], "entry 0 is no step"),
        ([["GetBlock", [], ["C", "main"], [["b0"]]]], "entry 0 is no step"),
        (7, "the text is not"),
        ([["GetBlock", [], [{}, "main"], ["b0"]]], "get_block: name must be a text, got dict"),
        ([["GetBlock", [], ["C", [1]], ["b0"]]], "the name of a function must be a text, got list"),
        ([BLOCK, ["StorageAlign", ["b0"], [0, "x", 8, 1], []]], "storage_align: axis must be an integer, got str"),
        (
            [BLOCK, ["CacheRead", ["b0", None], [{}, "local"], ["b1"]]],
            "expected the position or name of a buffer, got {}",
        ),
        ([BLOCK, LOOPS, ["Bind", ["l1"], [None], []]], "bind: there is no thread axis None"),
        ([BLOCK, LOOPS, ["SamplePerfectTile", ["l1"], [10**30, 16], ["v1"]]], "there are at most 100 factors"),
        ([["SampleCategorical", [], [[1, 2], [math.nan, 1.0]], ["v0"]]], "are not those of a choice"),
        ([["SampleCategorical", [], [[1, 2], ["a", 1.0]], ["v0"]]], "probs must be a list of numbers, got list"),
    ],
)
def test_traces_that_hold_something_else(steps, message):
    with pytest.raises((BadStepArgument, WrongType), match=message):
        replayed(steps)


def test_a_decision_of_another_type():
    steps = [BLOCK, LOOPS, ["SamplePerfectTile", ["l1"], [2, 16], ["v1", "v2"]]]
    with pytest.raises(WrongType, match="sample_perfect_tile: decision must be a list of integers or None"):
        replayed(steps, [[2, "xy"]])


def test_an_annotation_without_end():
    value: list = []
    for _ in range(5000):
        value = [value]
    sch = tir.Schedule(function(MATMUL))
    with pytest.raises(
        BadStepArgument, match="annotate: an argument has lists in each other, more than 30 levels deep"
    ):
        sch.annotate(sch.get_loops("C")[0], "note", value)


def test_tiles_of_huge_loops_are_drawn_at_once():
    extent = (2**31 - 1) * 2**20
    loop = f"for i in T.serial(T.int64({extent})):\n        B[i % T.int64(8)] = T.float32(1)"
    sch = tir.Schedule(from_source(f'@T.prim_func\ndef f(B: T.Buffer((8,), "float32")):\n    {loop}\n'))
    (function,) = sch.mod.functions.values()
    factors = [int(factor) for factor in sch.sample_perfect_tile(tir.schedule.LoopRV(function.body.loop_var), 3)]
    assert math.prod(factors) == extent


@pytest.mark.parametrize("given", [7, None, 1.5])
def test_lists_that_are_none(given):
    sch = tir.Schedule(function(MATMUL))
    for step in (
        lambda: sch.cache_read("C", 0, "local", given if given is not None else 3),
        lambda: sch.reorder_block_iter_var("C", given),
        lambda: sch.pad_einsum("C", given),
        lambda: sch.sample_categorical(given, [1.0]),
    ):
        with pytest.raises(WrongType, match="must be a list, got"):
            step()


def rows_of(text):
    document = json.loads(ir.save_json(function(text)))
    return document, document["nodes"]


def test_fields_of_another_type_are_named():
    document, rows = rows_of(CHAIN)
    store = next(fields for name, fields in rows if name == "BufferStore")
    store["value"] = "text"
    with pytest.raises(BadJson, match="value of BufferStore is str, and should be Expr"):
        ir.load_json(json.dumps(document))


def test_a_call_without_its_arguments_is_not_well_formed():
    x = tir.Var("x", "int32")
    call = tir.Call("int32", ir.Op.get("tir.if_then_else"), [x > 0])
    with pytest.raises(NotWellFormed, match=r"a call of tir.if_then_else has 1 argument\b"):
        lower(tir.PrimFunc([x], tir.Evaluate(call)))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda rows: rows("BufferStore")["indices"]["tuple"].pop(), "has 2 dimensions, and 1 indices"),
        (lambda rows: rows("BufferRegion")["region"]["tuple"].pop(), "has 2 dimensions, and 1 ranges"),
        (lambda rows: rows("BlockRealize")["iter_values"]["tuple"].pop(), "has 2 iteration variables, but 1 values"),
    ],
)
def test_numbers_of_indices_are_checked_when_a_program_is_lowered(damage, message):
    document, nodes = rows_of(CHAIN)
    damage(lambda wanted: next(fields for name, fields in nodes if name == wanted))
    with pytest.raises(NotWellFormed, match=message):
        lower(ir.load_json(json.dumps(document)))


def test_strides_are_as_many_as_dimensions():
    document, nodes = rows_of(CHAIN)
    buffer = next(fields for name, fields in nodes if name == "Buffer")
    buffer["strides"] = {"tuple": [buffer["shape"]["tuple"][0]] * 3}
    with pytest.raises(NotWellFormed, match="has 2 dimensions, and 3 strides"):
        lower(ir.load_json(json.dumps(document)))


def test_fields_of_graphs_are_named():
    from loopwright import relay

    x = relay.var("x", shape=(2,))
    document = json.loads(ir.save_json(relay.Function([x], relay.Tuple([x, relay.const(np.ones(2))]))))
    row = next(fields for name, fields in document["nodes"] if name == "relay.Var")
    row["name_hint"] = [1]
    with pytest.raises(BadJson, match="name_hint of Var is list, and should be str"):
        ir.load_json(json.dumps(document))


def test_an_annotation_that_cannot_be_called():
    text = "@T.prim_func\ndef f(x: T.evaluate):\n    T.evaluate(0)\n"
    with pytest.raises(ExpressionFailed, match="missing 1 required positional argument"):
        from_source(text)
