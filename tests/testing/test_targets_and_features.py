from __future__ import annotations

import sys

import pytest

from loopwright import testing
from loopwright.runtime import cpu
from loopwright.runtime.errors import NotBuilt
from loopwright.testing import plugin
from loopwright.testing.marks import NoPytest
from loopwright.testing.targets import NoTestTarget


@pytest.fixture(autouse=True)
def no_wishes(monkeypatch, pytestconfig):
    plugin.pytest_configure(pytestconfig)  # so that the marks are known
    monkeypatch.delenv("LOOPWRIGHT_TEST_TARGETS", raising=False)
    monkeypatch.delenv("TVM_TEST_TARGETS", raising=False)


def test_the_targets_of_this_machine(monkeypatch):
    assert ("llvm", cpu(0)) in testing.enabled_targets()
    assert testing.device_enabled("llvm") and testing.device_enabled("llvm -mcpu=core-avx2")
    assert not testing.device_enabled("hexagon")
    monkeypatch.setenv("TVM_TEST_TARGETS", "llvm -num-cores=1; hexagon")
    assert testing.enabled_targets() == [("llvm -num-cores=1", cpu(0))]
    monkeypatch.setenv("LOOPWRIGHT_TEST_TARGETS", "hexagon")
    assert not testing.device_enabled("llvm")
    with pytest.raises(NoTestTarget, match="tests cannot run on any of hexagon") as caught:
        testing.enabled_targets()
    assert "LOOPWRIGHT_TEST_TARGETS" in caught.value.why


def skips(test):
    return [mark.kwargs["reason"] for mark in test.pytestmark if mark.name == "skipif" and mark.args[0]]


def test_what_a_test_needs():
    def test():
        pass

    assert skips(testing.requires_llvm(test)) == []
    assert testing.requires_llvm.available()

    def on_gpu():
        pass

    reasons = skips(testing.requires_hexagon(on_gpu))
    assert reasons and "target hexagon is not built" in reasons[0]
    assert not testing.requires_hexagon.available()

    def with_package():
        pass

    assert skips(testing.requires_package("numpy")(with_package)) == []
    assert skips(testing.requires_package("numpy", "no_such_package")(with_package)) == [
        "not installed: no_such_package"
    ]


def print_nothing():
    pass


def test_what_a_test_needs_it_for():
    assert testing.requires_llvm.available("compile-only")
    assert not testing.requires_hexagon.available("compile-only")
    assert testing.requires_hexagon.available("optional")

    def test():
        pass

    assert skips(testing.requires_hexagon(support_required="compile-only")(test)) == ["target hexagon is not built"]
    with pytest.raises(ValueError, match="support_required is compile-and-run, compile-only or optional, not 'run'"):
        testing.requires_llvm(test, support_required="run")


def test_marks_of_features():
    names = {mark.name for mark in testing.requires_cuda.marks()}
    assert names == {"gpu", "skipif"}
    assert [mark.name for mark in testing.uses_gpu.marks()] == ["gpu", "skipif"]
    assert testing.requires_llvm_minimum_version(14).available()
    assert not testing.requires_llvm_minimum_version(999).available()
    assert [mark.name for mark in testing.requires_cuda()(print_nothing).pytestmark] == ["gpu", "skipif"]  # with ()
    assert not testing.requires_rpc.available()
    assert isinstance(testing.is_ampere_or_newer(), bool)


def test_switches_of_the_environment(monkeypatch):
    monkeypatch.setenv("SKIP_SLOW_TESTS", "1")
    monkeypatch.setenv("WHEEL_TEST", "0")

    def test():
        pass

    assert skips(testing.slow(test)) == ["slow tests are skipped"]

    def other():
        pass

    assert skips(testing.skip_if_wheel_test(other)) == []
    assert skips(testing.skip_if_32bit(reason="small")(other)) == []


def test_remote_runs_are_to_come():
    with pytest.raises(NotBuilt, match=r"testing\.local_run is not built yet"):
        testing.local_run(None, "llvm")
    with pytest.raises(NotBuilt, match=r"testing\.rpc_run is not built yet"):
        testing.rpc_run(None)


def test_without_pytest(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytest", None)
    testing.assert_allclose(1.0, 1.0)
    with pytest.raises(NoPytest, match=r"this part of loopwright.testing needs pytest"):
        testing.parameter(1)


def test_names():
    assert "assert_allclose" in dir(testing)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        testing.nonsense
    assert all([getattr(testing, name) is not None for name in testing.__all__])
