"""What a compiled module shows: functions, arguments, sources."""

from __future__ import annotations

import pytest

import loopwright as lw
from loopwright import te
from loopwright.display.colours import unpainted
from loopwright.runtime import Module
from loopwright.runtime.module import MissingSource
from tests.html_check import check_html


@pytest.fixture(scope="module")
def module():
    n = te.var("n")
    A = te.placeholder((n, 4), name="A")
    B = te.compute((n, 4), lambda i, j: A[i, j] * 2.0, name="B")
    return lw.build([A, B], name="twice")


def test_functions_arguments_and_sources(module, capsys):
    module.show()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Module (llvm)  ")
    assert lines[2] == "twice     A: float32[n, 4], B: float32[n, 4] (written)"
    assert lines[3] == "proved   every schedule step"
    assert lines[4] == f"sources  {', '.join(module.source_forms)}: show(form) shows one"
    assert lines[5].startswith("built    in ")


def test_the_source_in_a_form(module, capsys):
    module.show("ll")
    assert capsys.readouterr().out == module.get_source("ll").rstrip("\n") + "\n"
    module.show("asm", style="ansi")
    coloured = capsys.readouterr().out
    assert "\x1b[" in coloured and unpainted(coloured).rstrip() == module.get_source("asm").rstrip()


def test_a_form_that_is_not_there(module):
    with pytest.raises(MissingSource, match="cannot show its source as 'ptx'"):
        module.show("ptx")


def test_html(module):
    told = check_html(module._repr_html_())
    assert "twice" in told and "float32[n, 4]" in told


def test_a_module_of_plain_functions(capsys):
    made = Module({"main": print, "other": print})
    made.import_module(Module({"inner": print}))
    made.show()
    assert capsys.readouterr().out.splitlines() == [
        "Module (llvm)",
        "function",
        "main",
        "other",
        "imports  Module(llvm: inner)",
    ]
    check_html(made._repr_html_())
    Module({}).show()
    assert capsys.readouterr().out.splitlines() == ["Module (llvm)", "function"]


def test_c_source_is_shown_as_c(capsys):
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    made = lw.build([A, B], target="c")
    made.show("c")
    assert "int32_t" in capsys.readouterr().out
