"""Functions and modules: parameters, attributes, names, and errors about missing functions."""

from __future__ import annotations

import pytest

from loopwright import ir
from loopwright.ir.function import NoSuchFunction


def function(**options: object) -> ir.PrimFunc:
    A, n = ir.decl_buffer((4,), "float32", "A"), ir.Var("n")
    return ir.PrimFunc([A, n], ir.BufferStore(A, 1.0, [0]), **options)  # type: ignore[arg-type]


def test_buffers_among_the_parameters_get_handles():
    func = function()
    handle, n = func.params
    assert handle.name == "A_handle" and handle.dtype == "handle" and n.name == "n"
    assert func.buffer_map[handle].name == "A"
    assert [buffer.name for buffer in func.argument_buffers()] == ["A"]
    assert isinstance(func.ret_type, ir.TupleType) and func.attrs == {} and func.name == "main"


def test_argument_buffers_come_in_the_order_of_the_parameters():
    A, B = ir.decl_buffer((4,), name="A"), ir.decl_buffer((4,), name="B")
    a, b = ir.Var("a", "handle"), ir.Var("b", "handle")
    func = ir.PrimFunc([b, a], ir.no_op(), buffer_map={a: A, b: B})
    assert func.argument_buffers() == [B, A]


def test_attributes():
    func = function(attrs={"global_symbol": "f"})
    assert func.name == "f"
    more = func.with_attr("tir.noalias", True)
    assert more.attrs == {"global_symbol": "f", "tir.noalias": True} and func.attrs == {"global_symbol": "f"}
    assert func.with_attr({"a": 1, "b": 2}).attrs["b"] == 2
    assert more.without_attr("tir.noalias").attrs == {"global_symbol": "f"}
    assert more.without_attr("absent").attrs == more.attrs
    body = ir.no_op()
    assert func.with_body(body).body is body and func.with_body(body).params is func.params
    assert func.with_body(func.body) is func


def test_modules_hold_functions_by_name():
    f, g = function(), function()
    module = ir.IRModule({"f": f, ir.GlobalVar("g"): g})
    assert module["f"] is f and module[ir.GlobalVar("g")] is g
    assert "f" in module and ir.GlobalVar("g") in module and "h" not in module and len(module) == 2
    assert [name for name, _ in module.functions_items()] == ["f", "g"]
    assert [var.name for var in module.get_global_vars()] == ["f", "g"]
    assert module.functions[module.get_global_var("f")] is f
    assert module.get_global_var("f").name_hint == "f"


def test_modules_may_be_changed_and_copied():
    f, g = function(), function()
    module = ir.IRModule({"f": f})
    copy = module.copy()
    module["f"] = g
    module.update({"h": f})
    assert (module["f"], copy["f"], len(copy)) == (g, f, 1)
    module.update_func(module.get_global_var("h"), g)
    assert module["h"] is g
    module.update(copy)
    assert module["f"] is f
    marked = module.with_attr("key", 3)
    assert marked.get_attr("key") == 3 and module.get_attr("key") is None


def test_mapping_over_functions_keeps_the_module_when_nothing_changes():
    module = ir.IRModule({"f": function(), "g": function()}, attrs={"a": 1})
    assert module.map_functions(lambda func: func) is module
    changed = module.map_functions(lambda func: func.with_attr("x", 1))
    assert changed is not module and changed.attrs == {"a": 1}
    assert changed.get_global_var("f") is module.get_global_var("f")


@pytest.mark.parametrize("get", [lambda module: module["matmull"], lambda module: module.get_global_var("matmull")])
def test_a_missing_function_is_named_with_a_guess(get):
    module = ir.IRModule({"matmul": function(), "add": function()})
    with pytest.raises(
        NoSuchFunction, match=r"the module has no function 'matmull'; it has add, matmul \[LW0506\]"
    ) as caught:
        get(module)
    assert "hint: did you mean 'matmul'?" in str(caught.value)
    with pytest.raises(ValueError, match="it has none"):
        ir.IRModule()["f"]


def test_from_expr_uses_the_symbol():
    assert "f" in ir.IRModule.from_expr(function(attrs={"global_symbol": "f"}))
    assert "main" in ir.IRModule.from_expr(function())


def test_functions_and_modules_print():
    module = ir.IRModule({"f": function(attrs={"global_symbol": "f"})})
    assert 'def f(A: T.Buffer((4,), "float32"), n: T.int32):' in module.script()
    assert repr(module) == module.script()
