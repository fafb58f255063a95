from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from loopwright.codegen.llvm.engine import compile_text
from loopwright.runtime.elf import LIBRARY, OBJECT, BadElf, Elf, machine_here
from loopwright.target import Target, describe

TEXT = """
@data = constant [3 x i8] c"abc", section ".loopwright"
declare extern_weak void @maybe()
declare void @needed()
define void @defined() { call void @needed()
  %there = icmp ne ptr @maybe, null
  br i1 %there, label %a, label %b
a: call void @maybe()
  ret void
b: ret void }
"""


def image(target: str) -> bytes:
    return compile_text(TEXT, describe(Target(target)), opt_level=0).object_bytes


@pytest.mark.parametrize(
    ("target", "machine", "is_64"),
    [
        ("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64", "x86-64", True),
        ("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1", "AArch64", True),
        ("llvm -mtriple=riscv64-unknown-linux-gnu", "RISC-V", True),
        ("llvm -mtriple=thumbv7em-none-eabihf -mcpu=cortex-m7", "ARM", False),
    ],
)
def test_objects_of_every_machine(target, machine, is_64):
    data = image(target)
    elf = Elf(data)
    assert (elf.machine_name, elf.is_64, elf.kind, elf.is_complete()) == (machine, is_64, OBJECT, True)
    assert elf.section(".loopwright") == b"abc"
    assert elf.section(".nothing") is None
    symbols = {symbol.name: symbol for symbol in elf.symbols() if symbol.binding}
    assert {name for name, symbol in symbols.items() if symbol.home} == {"data", "defined"}
    assert (symbols["maybe"].binding, symbols["needed"].binding) == (2, 1)
    assert symbols["defined"].size > 0
    for size in range(0, len(data), 7):
        try:
            cut = Elf(data[:size])
        except BadElf:
            continue
        assert not cut.is_complete()


def test_what_is_no_elf_file():
    for data in (b"", b"\x7fELF", b"text" * 100, b"\x7fELF\x07\x01" + bytes(100)):
        with pytest.raises(BadElf, match="does not begin like an ELF file"):
            Elf(data)


def test_tables_that_point_outside():
    data = bytearray(image("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64"))
    struct.pack_into("<H", data, 62, 999)  # e_shstrndx
    with pytest.raises(BadElf, match="section names are missing"):
        Elf(bytes(data)).sections()
    assert not Elf(bytes(data)).is_complete()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ELF is Linux's format")
def test_this_interpreter():
    elf = Elf(Path(sys.executable).resolve().read_bytes())
    assert elf.machine == machine_here()
    assert elf.kind in (2, LIBRARY)
