"""The plugin, fixtures and CompareBeforeAfter, in pytest runs of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from loopwright import testing
from loopwright.testing.fixtures import BadParameters


def run(folder, text, *options, plugin=True):
    """Outcomes by test name, as `pytest -v` prints them, and all that was printed."""
    (folder / "test_it.py").write_text("from loopwright import testing\n" + text)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "test_it.py", *options]
    if plugin:
        command += ["-p", "loopwright.testing.plugin"]
    environment = {name: value for name, value in os.environ.items() if "TEST_TARGETS" not in name}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # quicker
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    return dict(re.findall(r"^test_it\.py::(\S+) ([A-Z]+)", done.stdout, re.MULTILINE)), done.stdout


def test_parameters_fixtures_and_targets(tmp_path):
    found, shown = run(
        tmp_path,
        """
import pytest

batch = testing.parameter(1, 8, ids=["one", "eight"])
kind = testing.parameter(by_dict={"small": 1, "large": [2]})
height, width = testing.parameters((8, 9), (1, 31))
calls = []

@testing.fixture(cache_return_value=True)
def area(height, width):
    calls.append((height, width))
    return [height * width]

@testing.fixture
def plain(batch):
    return batch + 1

def test_batch(plain, batch):
    assert plain == batch + 1

def test_kind(kind):
    if kind != 1:
        kind.append(3)
        assert kind == [2, 3]

def test_kind_again(kind):
    assert kind in (1, [2])

class TestArea:
    depth, = testing.parameters((2,), (3,))

    def test_area(self, area, height, width):
        assert area == [height * width]
        area.append(0)

    def test_area_again(self, area, width):
        assert len(area) == 1 and len(calls) == len(set(calls))

    def test_depth(self, depth, height):
        assert depth in (2, 3)

def test_target(target, dev):
    assert target == "llvm" and str(dev) == "cpu(0)"

@testing.parametrize_targets("llvm -num-cores=1", "hexagon")
def test_chosen(target):
    assert target == "llvm -num-cores=1"

@testing.exclude_targets("cuda", "nvptx", "opencl", "vulkan", "metal", "rocm", "hexagon")
def test_excluded(target):
    pass

@testing.known_failing_targets("llvm")
@testing.parametrize_targets("llvm")
def test_failing(target):
    assert False

@testing.xfail_parameterizations("eight", reason="it is too much")
def test_too_much(batch):
    assert batch == 1

@pytest.mark.parametrize("target", ["mine", "cuda"])
def test_own(target):
    assert target == "mine"
""",
    )
    expected = {
        "test_batch[one]": "PASSED",
        "test_batch[eight]": "PASSED",
        "test_kind[small]": "PASSED",
        "test_kind[large]": "PASSED",
        "test_kind_again[large]": "PASSED",
        "TestArea::test_area[8-9]": "PASSED",
        "TestArea::test_area[1-31]": "PASSED",
        "TestArea::test_area_again[1-31]": "PASSED",
        "test_target[llvm]": "PASSED",
        "test_target[cuda]": "SKIPPED",
        "test_excluded[llvm]": "PASSED",
        "test_failing[llvm]": "XFAIL",
        "test_too_much[one]": "PASSED",
        "test_too_much[eight]": "XFAIL",
        "test_own[mine]": "PASSED",
        "test_own[cuda]": "SKIPPED",
    }
    assert {name: found.get(name) for name in expected} == expected, shown
    assert "test_excluded[cuda]" not in found
    assert len([name for name in found if name.startswith("TestArea::test_depth")]) == 4
    assert "test_chosen[llvm -num-cores=1] PASSED" in shown
    assert "FAILED" not in found.values() and "ERROR" not in found.values(), shown


def test_parameters_say_when_the_plugin_is_missing(tmp_path):
    _, shown = run(tmp_path, "a, b = testing.parameters((1, 2))\ndef test_a(a):\n    pass\n", plugin=False)
    assert "testing.parameters needs the pytest plugin" in shown


def test_compare_before_after(tmp_path):
    found, shown = run(
        tmp_path,
        """
import pytest
from loopwright import transform as passes
from loopwright.script import ir as I, tir as T

class TestScript(testing.CompareBeforeAfter):
    transform = passes.simplify

    def before(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i * 1 + 0] = T.float32(0)

    def expected(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.float32(0)

class TestWrong(TestScript):
    def expected(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.float32(1)

class TestMethods(testing.CompareBeforeAfter):
    scale = testing.parameter(1, 2)

    def transform(self):
        return lambda func: func.with_attr("seen", True)

    def before(self, scale):
        @T.prim_func
        def func(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(scale)
        return func

    def expected(self, before):
        return before.with_attr("seen", True)

class TestRaises(testing.CompareBeforeAfter):
    expected = ValueError

    @T.prim_func
    def before(A: T.Buffer((4,), "float32")):
        A[0] = T.float32(0)

    def transform(self):
        def fail(program):
            raise ValueError("no")
        return fail

class TestModule(testing.CompareBeforeAfter):
    transform = passes.simplify

    @I.ir_module
    class before:
        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            A[1 + 1] = T.float32(0)

    expected = before

class TestParsedWhenRun(testing.CompareBeforeAfter):
    transform = passes.simplify

    def before(A: T.Buffer((4,), "float32")):
        unknown[0] = 0

    expected = before
""",
    )
    assert found["TestScript::test_compare"] == "PASSED", shown
    assert found["TestWrong::test_compare"] == "FAILED"
    assert found["TestMethods::test_compare[1]"] == found["TestMethods::test_compare[2]"] == "PASSED", shown
    assert found["TestRaises::test_compare"] == "PASSED", shown
    assert found["TestModule::test_compare"] == "PASSED", shown
    assert found["TestParsedWhenRun::test_compare"] == "ERROR"


def test_main_runs_the_file(tmp_path):
    script = tmp_path / "test_script.py"
    script.write_text(
        "import loopwright.testing as testing\n"
        "a, b = testing.parameters((1, 2), (3, 4), (5, 5))\n"
        "def test_b(a, b):\n    assert b == a + 1\n"
        "if __name__ == '__main__':\n    testing.main()\n"
    )
    done = subprocess.run([sys.executable, script, "-q"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and "1 failed, 2 passed" in done.stdout, done.stdout


def test_bad_parameters():
    with pytest.raises(BadParameters, match="the sets have different lengths: 2, 3"):
        testing.parameters((8, 8), (1, 31, 2))
    with pytest.raises(BadParameters, match="give values or by_dict, not both"):
        testing.parameter(1, by_dict={"a": 2})
    assert testing.parameters() == []

    def yields():
        yield 1

    with pytest.raises(BadParameters, match="fixture yields yields"):
        testing.fixture(yields, cache_return_value=True)
