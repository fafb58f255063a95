"""Profilers and debuggers see compiled functions by name: the map for perf, and gdb itself where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loopwright.codegen.llvm.engine import compile_text
from loopwright.codegen.llvm.jit_frames import GDB, PERF, frames, perf_map, placed, readable, section_addresses
from loopwright.codegen.llvm.load_object import load
from loopwright.runtime.elf import Elf
from loopwright.target import host_description

TEXT = """
define internal i32 @"lw.body.inner"(i32 %x) noinline { %y = mul i32 %x, 7
  ret i32 %y }
define i32 @__tvm_ffi_outer(i32 %x) { %y = call i32 @"lw.body.inner"(i32 %x)
  ret i32 %y }
define i32 @loopwright_outer(i32 %x) { ret i32 %x }
"""

PROGRAM = """
import ctypes
from loopwright.codegen.llvm.engine import compile_text
from loopwright.codegen.llvm.load_object import load
from loopwright.target import host_description

loaded = load(compile_text("define i32 @seen_by_name(i32 %x) { ret i32 %x }", host_description(), opt_level=0))
ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(loaded.address("seen_by_name"))(3)
"""


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("lw.body.main", "loopwright: main"),
        ("__tvm_ffi_main", "loopwright: main (checks)"),
        ("lw.parallel.i.0", "loopwright: i.0 (loop)"),
        ("lw.math.exp.f32.f32", "loopwright: exp.f32.f32 (math)"),
        ("loopwright_main", "loopwright: loopwright_main"),
    ],
)
def test_readable_names(symbol, name):
    assert readable(symbol) == name


def test_frames_lie_where_the_linker_put_them():
    compiled = compile_text(TEXT, host_description(), opt_level=0)
    loaded = load(compiled)
    elf = Elf(compiled.object_bytes)
    places = section_addresses(elf, loaded.address)
    found = {frame.name: frame for frame in frames(elf, places)}
    assert set(found) == {"loopwright: inner", "loopwright: outer (checks)", "loopwright: loopwright_outer"}
    assert found["loopwright: outer (checks)"].address == loaded.address("__tvm_ffi_outer")
    assert found["loopwright: loopwright_outer"].address == loaded.address("loopwright_outer")
    assert all(frame.size > 0 for frame in found.values())


def test_the_image_for_gdb_knows_its_addresses():
    compiled = compile_text(TEXT, host_description(), opt_level=0)
    loaded = load(compiled)
    elf = Elf(compiled.object_bytes)
    places = section_addresses(elf, loaded.address)
    sections = Elf(placed(elf, places)).sections()
    assert {index: sections[index].address for index in places} == places


def test_the_map_for_perf_is_written_on_request(monkeypatch):
    perf_map().unlink(missing_ok=True)
    compiled = compile_text(TEXT, host_description(), opt_level=0)
    monkeypatch.delenv(PERF, raising=False)
    load(compiled)
    assert not perf_map().exists()
    monkeypatch.setenv(PERF, "1")
    try:
        loaded = load(compiled)
        rows = [line.split(" ", 2) for line in perf_map().read_text().splitlines()]
    finally:
        perf_map().unlink(missing_ok=True)
    assert {name for _, _, name in rows} >= {"loopwright: inner", "loopwright: outer (checks)"}
    assert loaded.address("__tvm_ffi_outer") in {int(address, 16) for address, _, _ in rows}


@pytest.mark.skipif(shutil.which("gdb") is None or shutil.which("cc") is None, reason="needs gdb and a C compiler")
def test_gdb_stops_in_a_compiled_function_and_names_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    commands = ["set breakpoint pending on", "break seen_by_name", "run", "backtrace 2", "kill"]
    command = ["gdb", "-q", "-batch", "--readnever", *[word for text in commands for word in ("-ex", text)]]
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, GDB: "1", "PYTHONPATH": str(root), "DEBUGINFOD_URLS": ""}
    command += ["--args", sys.executable, str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    if "ptrace" in done.stderr or "Could not trace" in done.stderr:
        pytest.skip("this machine does not let gdb trace a process")
    assert "in seen_by_name ()" in done.stdout, done.stdout[-2000:]
