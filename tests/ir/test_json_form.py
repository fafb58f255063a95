"""save_json and load_json: every node comes back, shared parts stay shared; pickling and copying."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, tir
from loopwright.arith.index_map import IndexMap
from loopwright.ir.json_form import BadJson, NotSaved
from loopwright.ir.node import NODE_TYPES
from loopwright.ir.nodes_by_name import NoSuchNode
from loopwright.runtime import LoopwrightError, convert
from loopwright.script import tir as T

x, f = tir.Var("x"), tir.Var("f", "float32")
A = tir.decl_buffer((4, tir.SizeVar("n")), "float32", "A", strides=[tir.Var("s"), 1], elem_offset=tir.Var("o"))


@T.prim_func
def blocks(a: T.handle, B: T.Buffer((16,), "float32")):
    T.func_attr({"note": [1, 2.5, "x", {"k": True}], "nan": T.float32("nan")})
    n = T.int32()
    A = T.match_buffer(a, (n,), offset_factor=1)
    C = T.alloc_buffer((16,), scope="local")
    for i in T.parallel(16, annotations={"pragma_x": 3}):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, i])
            T.block_attr({"mine": "yes"})
            with T.init():
                C[vi] = T.float32("inf")
            C[vi] = T.min(C[vi], A[vk])
    for i in T.vectorized(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = T.Select(C[vi] > T.float32(0), T.exp(C[vi]), T.float32(-0.0))


EXPRESSIONS = [
    x + 1,
    tir.const(2**63, "uint64"),
    tir.const(float("-inf"), "float16"),
    tir.Ramp(x, 2, 4),
    tir.Broadcast(f, 8),
    tir.Shuffle([tir.Broadcast(f, 2)], [1, 0]),
    tir.Let(x, tir.const(1), x + x),
    tir.call_extern("int32", "g", "text", x),
    tir.Cast("bfloat16", f),
    tir.if_then_else(x > 0, f, 0.0),
    tir.all(x > 0, tir.any(x < 3, ~(x == 5))),
    A[x, x],
    ir.GlobalVar("g")(x),
    tir.Any(),
]


@pytest.mark.parametrize("e", EXPRESSIONS, ids=lambda e: type(e).__name__)
def test_expressions_come_back(e):
    new = ir.load_json(ir.save_json(e))
    ir.assert_structural_equal(new, e, map_free_vars=True, block_names=True)
    assert new.dtype is e.dtype


def test_functions_and_modules_come_back():
    for func in (blocks, lw.lower(blocks)["blocks"]):
        new = ir.load_json(ir.save_json(func))
        ir.assert_structural_equal(new, func, block_names=True)
        assert new.script() == func.script()
    mod = ir.IRModule({"one": blocks, "two": blocks}, attrs={"target": lw.Target("llvm -mcpu=generic"), "n": 3})
    new = ir.load_json(ir.save_json(mod))
    ir.assert_structural_equal(new, mod, block_names=True)
    assert new.attrs["target"] == mod.attrs["target"]
    assert new["one"] is new["two"]  # shared before, shared after


def test_constants_keep_every_bit():
    data = np.array([1.5, -0.0, np.inf], "float16")
    p = ir.pointer("p", "float16")
    stmt = tir.AllocateConst(p, "float16", [3], data, tir.Evaluate(p))
    new = ir.load_json(ir.save_json(stmt))
    assert new.data.dtype == data.dtype and new.data.tobytes() == data.tobytes()


def test_containers_and_other_layers():
    made = ir.load_json(ir.save_json([x, {"a": x, "b": [1, None]}]))
    assert made[0] is made[1]["a"] and made[1]["b"] == [1, None]
    index_map = IndexMap.from_func(lambda i, j: (j, i // 4, i % 4))
    ir.assert_structural_equal(ir.load_json(ir.save_json(index_map)), index_map, block_names=True)


def test_very_deep_and_very_shared_programs():
    value = x
    for k in range(20_000):
        value = tir.Add(value, tir.const(k))
    assert ir.structural_equal(ir.load_json(ir.save_json(value)), value, map_free_vars=True)


def test_pickling_goes_by_json_and_copies_are_the_object_itself():
    new = pickle.loads(pickle.dumps(blocks))
    ir.assert_structural_equal(new, blocks, block_names=True)
    assert copy.copy(blocks) is blocks and copy.deepcopy(x) is x
    mod = ir.IRModule({"f": blocks})
    other = copy.copy(mod)
    other["g"] = blocks
    assert len(mod) == 1 and pickle.loads(pickle.dumps(mod)).script() == mod.script()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the text is no JSON"),
        ("[1]", "the JSON is no program"),
        ("{}", "the JSON is no program"),
        ('{"loopwright": 99, "nodes": [], "root": 1}', "format 99, this version reads 1"),
        ('{"loopwright": 1, "nodes": [["Add", {}]], "root": {"@": 0}}', "damaged"),
        ('{"loopwright": 1, "nodes": [["Nope", {}]], "root": {"@": 0}}', "damaged"),
        ('{"loopwright": 1, "nodes": [], "root": {"@": 7}}', "damaged"),
    ],
)
def test_bad_text_is_refused(text, problem):
    with pytest.raises(BadJson, match=problem):
        ir.load_json(text)


def test_what_has_no_json_form_is_named():
    with pytest.raises(NotSaved, match="builtin_function_or_method"):
        ir.save_json(blocks.with_attr("hook", print))


def test_make_node():
    assert ir.make_node("IntImm", dtype="int32", value=5).value == 5
    made = ir.make_node("Range", min=2, extent=3)
    assert (made.min.value, made.extent.value) == (2, 3)
    assert isinstance(ir.make_node("tir.Add", a=x, b=x), tir.Add)
    with pytest.raises(NoSuchNode, match=r"no node is called 'tir.IntIm'(.|\n)*IntImm"):
        ir.make_node("tir.IntIm")
    assert "For" in NODE_TYPES


def test_containers_of_packed_functions():
    x = tir.Var("x")
    for again in (lambda value: ir.load_json(ir.save_json(value)), lambda value: pickle.loads(pickle.dumps(value))):
        items, mapping = again(convert([1, "a", [2]])), again(convert({"k": x + 1}))
        assert isinstance(items, type(convert([]))) and [items[0].value, items[1], items[2][0].value] == [1, "a", 2]
        assert isinstance(mapping, type(convert({}))) and repr(mapping["k"]) == "x + 1"


def test_tensors_and_registered_functions():
    tensor = ir.load_json(ir.save_json(lw.nd.array(np.arange(3, dtype="int8"))))
    assert isinstance(tensor, lw.nd.NDArray) and tensor.numpy().tolist() == [0, 1, 2]
    lw.register_func("tests.ir.plus_one", lambda x: x + 1, override=True)
    function = ir.load_json(ir.save_json(ir.EnvFunc.get("tests.ir.plus_one")))
    assert function(4) == 5 and ir.structural_equal(function, ir.EnvFunc("tests.ir.plus_one"))
    with pytest.raises(LoopwrightError, match=r"no function is registered as 'tests\.ir\.none'"):
        ir.EnvFunc.get("tests.ir.none")
