"""IRModule and Buffer: what scripts do with them."""

from __future__ import annotations

import copy

import pytest

from loopwright import ir, tir
from loopwright.ir.buffer import BadAccessMask
from loopwright.ir.function import FunctionExists, NotAFunction

x = tir.Var("x")


def function(value: int) -> tir.PrimFunc:
    return tir.PrimFunc([], tir.Evaluate(value))


def test_a_function_is_also_found_by_what_callers_know_it_by():
    one, two = (function(k).with_attr("global_symbol", "nv12") for k in range(2))
    module = ir.IRModule({"main": one})
    assert module["nv12"] is module["main"] is one
    with pytest.raises(ValueError, match="the module has no function 'nv13'; it has main"):
        module["nv13"]
    with pytest.raises(ValueError, match="the module has no function 'nv12'; it has main, other"):
        ir.IRModule({"main": one, "other": two})["nv12"]  # which of them?


def test_a_module_is_a_dictionary_of_functions():
    main, gv = function(1), ir.GlobalVar("other")
    mod = ir.IRModule({"main": main, gv: function(2)})
    assert mod["main"] is main and mod[gv] is mod["other"] and len(mod) == 2
    assert "main" in mod and gv in mod and "nope" not in mod
    assert [var.name for var in mod] == [var.name for var in mod.keys()] == ["main", "other"]
    assert mod.get("nope") is None and mod.get("main") is main
    assert dict(mod.items())[gv] is mod.values()[1]
    assert mod.functions[gv] is mod["other"]
    assert mod.get_global_var("other") is gv and gv in mod.get_global_vars()
    del mod["other"]
    assert len(mod) == 1
    with pytest.raises(ValueError, match=r"the module has no function 'mian'; it has main(.|\n)*did you mean 'main'"):
        mod["mian"]
    with pytest.raises(ValueError, match="no function 'other'"):
        del mod["other"]


def test_adding_and_updating():
    mod = ir.IRModule({"main": function(1)})
    with pytest.raises(FunctionExists, match="has a function 'main' already"):
        mod.add("main", function(2))
    mod.add("main", function(2), update=True)
    mod.update({"extra": function(3)})
    mod.update(ir.IRModule({"more": function(4)}))
    mod.update_func(mod.get_global_var("main"), function(5))
    assert [func.body.value.value for func in mod.values()] == [5, 3, 4]
    with pytest.raises(NotAFunction, match="a module holds functions, but 'f' is str"):
        mod["f"] = "text"


def test_attributes_and_copies():
    mod = ir.IRModule({"main": function(1)}, attrs={"a": 1})
    other = mod.with_attr("b", 2).with_attrs({"c": 3}).without_attr("a")
    assert other.attrs == {"b": 2, "c": 3} and mod.attrs == {"a": 1} and other.get_attr("b") == 2
    shallow = copy.copy(mod)
    shallow["new"] = function(2)
    assert "new" not in mod and shallow["main"] is mod["main"]
    assert mod == mod and mod != shallow and mod.same_as(mod)
    assert ir.structural_equal(mod, copy.copy(mod))
    assert "def main" in mod.script() and mod.astext() == mod.script()


def test_functions_change_by_copies():
    func = function(1).with_attrs({"global_symbol": "f", "k": 2})
    assert func.attrs == {"global_symbol": "f", "k": 2} and func.without_attr("k").attrs == {"global_symbol": "f"}
    assert func.with_body(tir.Evaluate(7)).body.value.value == 7
    assert func.astext() == func.script()


def test_pointers_to_buffers():
    A = tir.decl_buffer((4, 8), name="A")
    call = A.access_ptr("rw")
    assert repr(call) == 'T.tvm_access_ptr(T.type_annotation("float32"), A, 0, 32, 3)'
    assert [A.access_ptr(mask).args[4].value for mask in ("r", "w", "rw", "wr", 1, 2, 3)] == [1, 2, 3, 3, 1, 2, 3]
    part = A.access_ptr("r", offset=8, extent=4)
    assert (part.args[2].value, part.args[3].value) == (8, 4)
    assert A.access_ptr("r", offset=8).args[3].value == 24
    wide = A.access_ptr("r", content_lanes=4, offset=8)
    assert wide.args[0].dtype == "float32x4" and (wide.args[2].value, wide.args[3].value) == (2, 6)
    strided = tir.decl_buffer((4, 8), name="S", strides=[10, 1])
    assert strided.access_ptr("r").args[3].value == 40
    for wrong in ("", "x", 0, 4, None):
        with pytest.raises(BadAccessMask, match="does not say what the pointer is for"):
            A.access_ptr(wrong)


def test_vector_loads_and_stores():
    A = tir.decl_buffer((4, 8), name="A")
    load = A.vload((1, 4), "float32x4")
    assert load.dtype == "float32x4" and repr(load) == "A[1, 4:8]"
    store = A.vstore((1, 0), load)
    assert isinstance(store, tir.BufferStore) and repr(store) == "A[1, 0:4] = A[1, 4:8]"
    assert repr(A.vstore((1, 0), 2.0)) == "A[1, 0] = T.float32(2)"


def test_flattened_buffers_and_offsets():
    A = tir.decl_buffer((4, 8, 2), name="A")
    flat = A.get_flattened_buffer()
    assert [size.value for size in flat.shape] == [64] and flat.data is A.data
    grouped = tir.decl_buffer((4, 8, 2), name="A", axis_separators=[1]).get_flattened_buffer()
    assert [size.value for size in grouped.shape] == [4, 16] and grouped.axis_separators == (1,)
    assert ir.structural_equal(A.offset_of([1, 2, 1]), [21])
    assert tir.decl_buffer((), name="s").get_flattened_buffer().shape[0].value == 1


def test_the_parameters_of_decl_buffer():
    plain = tir.decl_buffer((4,))
    assert (plain.name, plain.data_alignment, plain.offset_factor, plain.scope()) == ("buffer", 64, 1, "global")
    offset = tir.decl_buffer((4,), name="A", offset_factor=8)
    assert offset.elem_offset.name == "A_elem_offset" and offset.offset_factor == 8
    local = tir.decl_buffer(4, "bool", "M", scope="local", data_alignment=16, buffer_type="auto_broadcast")
    assert (local.scope(), local.data_alignment, local.buffer_type) == ("local", 16, "auto_broadcast")
    assert local.data.type_annotation.element_type.dtype == "int8"


@pytest.mark.parametrize(
    "name", ["transform", "stmt_functor", "op", "expr", "stmt", "ir_builder", "analysis", "function"]
)
def test_the_modules_of_tir_load(name):
    assert getattr(tir, name).__name__ == f"loopwright.tir.{name}"


def test_names_users_look_for():
    assert tir.op.exp is tir.exp and tir.PrimExpr is ir.PrimExpr and tir.indexdiv is tir.floordiv
    assert repr(tir.div(x, 2)) == repr(tir.truncdiv(x, 2))
    with pytest.raises(AttributeError, match=r"module 'loopwright.tir' has no attribute 'nope'"):
        tir.nope
    assert repr(tir.Call("float32", "tir.exp", [tir.Var("f", "float32")])) == "T.exp(f)"
    with pytest.raises(ValueError, match="no operator is called 'expp'"):
        tir.Call("float32", "expp", [tir.Var("f", "float32")])
