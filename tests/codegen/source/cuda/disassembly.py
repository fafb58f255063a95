"""The machine code of kernels, where NVRTC and nvdisasm are installed; no GPU is needed."""

from __future__ import annotations

import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import pytest

import loopwright as lw
from loopwright import ir
from loopwright.codegen.source.cuda.images import image
from loopwright.runtime.nvidia.nvrtc import NoNvrtc, find_library
from loopwright.target import Target


def _has_nvrtc() -> bool:
    try:
        find_library()
    except NoNvrtc:
        return False
    return True


HAS_NVRTC = _has_nvrtc()


def sass(program: ir.PrimFunc, arch: str) -> str:
    """The instructions of all kernels of a program."""
    target = Target(f"cuda -arch={arch}")
    module: Any = lw.build(program, target=target)
    code = image(module.kernels, arch, target).content
    assert code.startswith(b"\x7fELF")
    disassembler = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13" / "bin" / "nvdisasm"
    if not disassembler.exists():
        pytest.skip("nvdisasm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernels.cubin"
        cubin.write_bytes(code)
        command = [str(disassembler), "-c", str(cubin)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
