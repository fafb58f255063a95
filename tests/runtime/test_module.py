from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from native_call import native

from loopwright import nd
from loopwright.runtime.c_source import CSourceModuleCreate
from loopwright.runtime.call_errors import ReadOnlyArgument
from loopwright.runtime.module import MissingFunction, MissingSource, Module


def module(**options: object) -> Module:
    return Module(
        {"main": lambda *a: a, "other": lambda: "other"},
        "main",
        {"ll": lambda: "; ll", "asm": lambda: "ret"},
        **options,
    )


def locked(data: np.ndarray) -> np.ndarray:
    data.flags.writeable = False
    return data


def test_functions_by_name_and_the_entry():
    mod = module()
    assert mod["other"]() == "other"
    assert mod(1, 2) == (1, 2)
    assert mod.entry_name == "main"
    assert mod.entry_func is mod["main"] is mod["__tvm_main__"]
    assert mod.implements_function("other")
    assert not mod.implements_function("nothing")


def test_a_compiled_function_comes_without_a_wrapper():
    function = native(lambda values: 0)
    assert Module({"f": function})["f"] is function


def test_a_missing_function_lists_what_exists():
    with pytest.raises(AttributeError, match="the module has no function 'nothing'") as caught:
        module()["nothing"]
    assert isinstance(caught.value, MissingFunction)
    assert "it has main, other" in str(caught.value)


def test_imports_are_searched_on_request():
    mod, kernels = module(), Module({"kernel": lambda: 1})
    mod.import_module(kernels)
    assert mod.imported_modules == [kernels]
    assert mod.get_function("kernel", query_imports=True)() == 1
    with pytest.raises(AttributeError, match="query_imports=True would also look among kernel"):
        mod["kernel"]
    with pytest.raises(ValueError, match="cannot import itself"):
        kernels.import_module(mod)


def test_a_module_without_entry_says_so():
    with pytest.raises(AttributeError, match="no entry function: it has a, b"):
        Module({"a": len, "b": len})(1)
    with pytest.raises(AttributeError, match="no entry function: it has no functions"):
        _ = Module({}).entry_func


def test_sources_are_made_when_asked_for():
    made = []
    mod = Module({}, sources={"ll": lambda: made.append(1) or "text"})
    assert not made
    assert (mod.format, mod.get_source(), mod.get_source("ll")) == ("ll", "text", "text")
    with pytest.raises(MissingSource, match="cannot show its source as 'ptx'"):
        mod.get_source("ptx")


def test_arrays_that_numpy_does_not_export_pass_through_the_module():
    seen = []
    function = native(lambda values: seen.append([v.type_index for v in values]))
    mod = Module({"main": function}, writes={"main": [1]})
    mod(np.zeros(2, ml_dtypes.bfloat16), np.zeros(2))
    mod(locked(np.zeros(2)), nd.empty((2,)))
    assert seen == [[70, 70], [70, 70]]


def test_a_read_only_array_is_not_written():
    function = native(lambda values: 0)
    with pytest.raises(
        ReadOnlyArgument, match="main: argument number 2 is a read-only array, and the function writes it"
    ):
        Module({"main": function}, writes={"main": [1]})(np.zeros(2), locked(np.zeros(2)))
    with pytest.raises(ReadOnlyArgument, match="may write it"):
        Module({"main": function})(locked(np.zeros(2)))


def test_other_buffer_errors_pass_unchanged():
    def fail(*args: object) -> None:
        raise BufferError("mine")

    with pytest.raises(BufferError, match="mine"):
        Module({"main": fail})(np.zeros(2))


def test_properties():
    mod = module(type_key="llvm")
    assert (mod.type_key, mod.get_property_mask(), mod.is_runnable) == ("llvm", 2, True)
    assert repr(mod) == "Module(llvm: main, other)"


def test_a_module_of_c_text_says_what_it_has():
    module = CSourceModuleCreate("int f();", "c", ["f"], ["weights"])
    assert module["get_func_names"]() == ["f"] and module.get_function("get_const_vars")() == ["weights"]
    with pytest.raises(MissingFunction, match="no function 'get_func_names'"):
        Module({"main": print})["get_func_names"]
