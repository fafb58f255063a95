"""What a target shows: what was said, and what that means."""

from __future__ import annotations

import pytest

from loopwright.target import Target
from loopwright.target.target_sheet import size_text
from tests.html_check import check_html


def shown(target, capsys) -> list[str]:
    Target(target).show()
    return capsys.readouterr().out.splitlines()


def test_a_processor(capsys):
    lines = shown("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -num-cores=4", capsys)
    assert lines[0] == "Target llvm"
    assert "mcpu       haswell" in lines and "num-cores  4" in lines
    assert "cpu      haswell (x86_64-unknown-linux-gnu)" in lines
    assert "vectors  256 bits, 16 registers" in lines and "cores    4" in lines
    assert lines[-1].startswith("units    FMA")


def test_this_machine(capsys):
    assert any(line.endswith(", this machine") for line in shown("llvm", capsys))


def test_a_device_and_its_host(capsys):
    lines = shown({"kind": "cuda", "arch": "sm_90", "host": "llvm"}, capsys)
    assert lines[0] == "Target cuda"
    assert "shared memory    227 KiB a block at most, 48 KiB without asking" in lines
    assert next(line for line in lines if line.startswith("host")).endswith("llvm -keys=cpu")


def test_a_processor_that_is_not_known_shows_what_was_said(capsys):
    lines = shown("llvm -mtriple=x86_64-linux-gnu -mcpu=haswel", capsys)
    assert any(line.endswith("haswel") for line in lines) and "means" not in lines


@pytest.mark.parametrize("target", ["llvm", "c", "nvidia/nvidia-h100", "llvm -mattr=+avx2,-fma", "hexagon"])
def test_html(target):
    made = Target(target)
    told = check_html(made._repr_html_())
    assert str(made.tag or made.kind) in told


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (48 << 10, "48 KiB"), (3 << 29, "1.5 GiB")]
)
def test_sizes(size, text):
    assert size_text(size) == text
