"""Errors that come from a difference by design name their section of docs/coming_from_tvm.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopwright import tir
from loopwright.cli import explain
from loopwright.compat import differences
from loopwright.runtime.errors import pages
from loopwright.schedule.errors import WouldRace
from loopwright.script import tir as T

PAGE = Path(__file__).resolve().parents[2] / "docs/coming_from_tvm.md"


@pytest.fixture
def named_pages():
    differences.name_pages()
    yield
    differences.forget_pages()


def _race() -> WouldRace:
    @T.prim_func
    def total(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for i in range(8):
            with T.block("sum"):
                k = T.axis.reduce(8, i)
                with T.init():
                    B[0] = T.float32(0)
                B[0] += A[k]

    sch = tir.Schedule(total)
    with pytest.raises(WouldRace) as raised:
        sch.parallel(sch.get_loops("sum")[0])
    return raised.value


def test_a_refused_step_names_its_section(named_pages):
    assert str(_race()).endswith('see: "Coming from TVM" in the documentation, section "Steps that are refused"')


def test_without_the_import_hook_an_error_names_no_page():
    assert "see:" not in str(_race())


def test_every_section_is_a_heading_and_every_code_an_error(named_pages):
    headings = [line.removeprefix("## ") for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    codes = {entry.code for entry in explain.definitions()}
    for code, text in pages.items():
        assert text.split('"')[3] in headings
        assert code in codes
