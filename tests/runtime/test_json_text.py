"""JSON that nests too deep: an error from the catalogue wherever a text is read, never the end of the process.

The parser of Python recurses in C, and `ir.deep` raises the limit of recursion, so each reader is tried inside it too.
"""

from __future__ import annotations

import json
import random

import pytest

from loopwright import ir, relay, tir
from loopwright.arith import Analyzer
from loopwright.cli.package import BadPackage, read_metadata, write_package
from loopwright.compat.node_graph import read_map
from loopwright.ir.deep import TooDeep, deep
from loopwright.ir.json_form import BadJson, NestedLists
from loopwright.relay.text.errors import BadMetadata
from loopwright.relay.vm import _MAGIC, Executable, NotAnExecutable
from loopwright.runtime.description import ModuleDescription
from loopwright.runtime.json_text import MOST_LEVELS, NestedTooDeep, _levels, read_json
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.rewrite.conditions import condition_of
from loopwright.schedule.rewrite.index_map import LayoutMap
from loopwright.schedule.trace.trace_json import UnreadableMap
from loopwright.script import from_source
from loopwright.script.parser.errors import InvalidSyntax
from loopwright.target import Target
from loopwright.target.errors import BadTargetText

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("read", "error", "message"),
    [
        (lambda: ir.load_json(DEEP), BadJson, "100,000 levels deep, and 500 are read"),
        (lambda: ir.load_json(f'{{"loopwright": 1, "root": {DEEP}, "nodes": []}}'), BadJson, "100,001 levels"),
        (lambda: tir.schedule.Trace.apply_json_to_schedule(DEEP, None), BadStepArgument, "100,000 levels"),
        (lambda: Target(f'{{"kind": "llvm", "keys": {DEEP}}}'), BadTargetText, "100,001 levels"),
        (lambda: relay.parse(f'def @main() {{ 1 }}\n#[metadata]\n{{"a": {DEEP}}}'), BadMetadata, "damaged: .*100,001"),
        (lambda: read_map(f'{{"nodes": {DEEP}}}'), UnreadableMap, "100,001 levels"),
        (lambda: ModuleDescription.from_json(DEEP), NestedTooDeep, "100,000 levels"),
        (lambda: read_json(DEEP.encode("utf-16")), NestedTooDeep, "100,000 levels"),
        (lambda: read_json('{"a":' * 100_000), NestedTooDeep, "100,000 levels"),
    ],
)
def test_deep_json_is_refused_by_every_reader(read, error, message):
    with pytest.raises(error, match=message):
        read()
    with pytest.raises(error, match=message):
        deep(read)()


def test_deep_json_in_the_head_of_a_model_is_refused():
    head = DEEP.encode()
    data = _MAGIC + len(head).to_bytes(4, "little") + (0).to_bytes(8, "little") + head
    with pytest.raises(NotAnExecutable, match="the head of the model is damaged"):
        Executable.load_exec(data)


def test_deep_json_in_a_package_is_refused(tmp_path):
    path = tmp_path / "model.tar"
    write_package(path, {"metadata.json": DEEP.encode()})
    with pytest.raises(BadPackage, match=r"in its metadata.json the JSON text nests 100,000 levels"):
        read_metadata(str(path))


def test_lists_that_load_json_would_refuse_are_not_saved():
    levels: list = []
    for _ in range(100_000):
        levels = [levels]
    with pytest.raises(NestedLists, match="nests more than 163 levels"):
        ir.save_json(tir.PrimFunc([], tir.Evaluate(0), attrs={"levels": levels}))


def test_the_deepest_lists_that_are_saved_load_again():
    levels: object = 1
    for _ in range(160):
        levels = {"a": levels}
    func = tir.PrimFunc([], tir.Evaluate(0), attrs={"levels": levels})
    assert ir.load_json(ir.save_json(func)).attrs["levels"] == levels


def test_a_deep_program_is_saved_whose_nodes_hold_lists():
    expr: ir.Expr = tir.Var("x", "float32")
    for _ in range(3000):  # each call holds a tuple of arguments, in which the next call is
        expr = tir.exp(expr)
    assert ir.structural_equal(ir.load_json(ir.save_json(expr)), expr, map_free_vars=True)


@pytest.mark.parametrize("seed", range(20))
def test_levels_are_those_of_the_value(seed):
    rng = random.Random(seed)

    def value(depth: int) -> object:
        if depth == 0:
            return rng.choice(["]]]]", '"[[', "\\", "\\\\[", 'a\\"]', 1, None, "é[", "\ud800{"])
        inner = [value(depth - 1) for _ in range(rng.randint(1, 2))]
        return inner if rng.random() < 0.5 else {rng.choice(["}", "{", "k", '"']): one for one in inner}

    depth = rng.randint(1, 8)
    made = [value(depth), *[[1]] * MOST_LEVELS]  # enough brackets to be looked at
    for ascii_only in (True, False):
        text = json.dumps(made, ensure_ascii=ascii_only)
        assert _levels(text) == max(depth, 1) + 1
        assert read_json(text) == made


def test_what_is_no_json_is_a_value_error():
    for text in ["", "[", '"', "1" * 5000, "[1,]", b"\xff\xfe\x00", b"\xff"]:
        with pytest.raises(ValueError):
            read_json(text)


def test_an_index_map_of_shared_rows_takes_time_by_rows():
    rows = [
        {"type_key": ""},
        {"type_key": "tir.IndexMap", "attrs": {"initial_indices": "2", "final_indices": "3"}},
        {"type_key": "Array", "data": [4]},
        {"type_key": "Array", "data": [5]},
        {"type_key": "tir.Var", "attrs": {"name": "i"}},
        *[{"type_key": "tir.Add", "attrs": {"a": str(row + 6), "b": str(row + 6)}} for row in range(24)],
        {"type_key": "tir.Add", "attrs": {"a": "4", "b": "4"}},
    ]
    (found,) = read_map(json.dumps({"root": 1, "nodes": rows})).at([ir.const(3)])
    assert Analyzer().simplify(found).value == 3 * 2**25


def test_text_deeper_than_any_walk_has_an_error():
    with pytest.raises(TooDeep, match="parse_expr: what it was given nests too deeply"):
        relay.parse_expr("(" * 60_000 + "1" + ")" * 60_000)


def test_a_function_that_calls_itself_without_end_inside_a_walk_has_an_error():
    @deep
    def walk(level: int) -> int:
        return walk(level + 1)

    with pytest.raises(TooDeep, match="walk: "):
        walk(0)


@pytest.mark.parametrize("index", ["i" + "+1" * 100_000, "(" * 300 + "i" + ")" * 300, "-" * 15_000 + "i", "i\0"])
def test_texts_of_maps_and_conditions_that_python_cannot_read_are_refused(index):
    for read in (
        lambda: LayoutMap.of(f"lambda i: {index}"),
        lambda: condition_of("step", f"lambda i: {index} < 2", {}),
    ):
        with pytest.raises(BadStepArgument, match=r"is no (map of indices|condition)"):
            read()
        with pytest.raises(BadStepArgument, match=r"is no (map of indices|condition)"):
            deep(read)()


@pytest.mark.parametrize("annotation", ["T.int32(", "(" * 300 + "T.int32" + ")" * 300, "-" * 100_000 + "T.int32"])
def test_annotations_that_python_cannot_read_are_refused(annotation):
    text = f"from loopwright.script import tir as T\n@T.prim_func\ndef f(i: '{annotation}'):\n  T.evaluate(i)"
    with pytest.raises(InvalidSyntax, match="the annotation of i is none"):
        from_source(text)


def test_long_scripts_are_read_inside_deep_walks():
    chain = "i" + "+1" * 30_000
    text = f"from loopwright.script import tir as T\n@T.prim_func\ndef f(i: T.int32):\n  T.evaluate({chain})"
    assert deep(from_source)(text) is not None
