"""Reports of runs, and what scripts use to look at the boundary between languages."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from loopwright import error, ir, relay, runtime
from loopwright.compat import ffi_testing
from loopwright.compat.profiler_vm import VirtualMachineProfiler
from loopwright.compat.profiling import Report


def test_a_report_prints_and_comes_back_from_json():
    x = relay.var("x", shape=(4, 8))
    module = ir.IRModule.from_expr(relay.Function([x], relay.exp(relay.add(x, x))))
    report = VirtualMachineProfiler(relay.vm.compile(module, "llvm")).profile(np.ones((4, 8), "float32"))
    # The memory that the run was given, then the kernels.
    assert [row["Name"] for row in report.calls] == ["AllocStorage", "AllocTensor", "fused_multiply_exp"]
    assert len(report.calls[-1]["Hash"]) > 8
    assert "Total" in str(report) and report.configuration["Executor"] == "VM"
    held = json.loads(report.json())
    assert held["calls"][-1]["Duration (us)"]["microseconds"] > 0 and "cpu0" in held["device_metrics"]
    again = Report.from_json(report.json())
    assert again.table(aggregate=False, col_sums=False) == report.table(aggregate=False, col_sums=False)
    assert report.csv().splitlines()[0].startswith("Name,Duration (us)")


def test_errors_by_the_word_they_begin_with():
    with pytest.raises(error.OpNotImplemented, match="myop"):
        ffi_testing.test_raise_error_callback("OpNotImplemented: myop")()
    check = ffi_testing.test_check_eq_callback("ValueError: unequal")
    check(1, 1)
    with pytest.raises(ValueError, match="unequal"):
        ffi_testing.test_wrap_callback(check)(0, 1)


def test_texts_and_shapes():
    text = runtime.String("xyz")
    assert isinstance("abc", runtime.String) and isinstance(pickle.loads(pickle.dumps(text)), runtime.String)
    assert text.__tvm_object__.same_as(ffi_testing.echo(text).__tvm_object__)
    shape = runtime.ShapeTuple([1, 2, 3])
    assert shape == [1, 2, 3] and shape == (1, 2, 3) and shape != [1, 2] and pickle.loads(pickle.dumps(shape)) == shape


def test_a_module_of_python_functions():
    module = ffi_testing.FrontendTestModule("main")
    module.add_function("main", lambda x: x + 1)
    module["twice"] = lambda x: 2 * x
    assert (module(1), module["twice"](3), module.implements_function("nothing")) == (2, 6, False)
