"""A GPU for tests: `fake_cuda.c`, compiled once, in the place of the CUDA driver."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from loopwright.runtime.nvidia import driver
from loopwright.runtime.nvidia.nvrtc import Compiled
from loopwright.target import gpu as gpu_target

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
_SOURCE = Path(__file__).with_name("fake_cuda.c")


class Launch(ctypes.Structure):
    """What a kernel of a test is called with; `size` is the grid, the block and the cluster, each x, y, z."""

    _fields_ = [
        ("size", ctypes.POINTER(ctypes.c_uint32)),
        ("shared_bytes", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("arguments", ctypes.POINTER(ctypes.c_void_p)),
    ]

    def argument(self, index: int, kind: type) -> object:
        """The value of an argument."""
        return kind.from_address(self.arguments[index]).value


_BODY = ctypes.CFUNCTYPE(None, ctypes.POINTER(Launch))


@cache
def fake_driver() -> str:
    """The compiled driver."""
    folder = tempfile.mkdtemp(prefix="loopwright-fake-cuda-")
    library = os.path.join(folder, "libcuda.so.1")
    subprocess.run(["cc", "-O1", "-std=gnu11", "-shared", "-fPIC", str(_SOURCE), "-o", library], check=True)
    return library


class FakeGpu:
    """What tests do with the driver."""

    def __init__(self, library: str) -> None:
        self.library = ctypes.CDLL(library)
        self.library.fake_calls.restype = ctypes.c_char_p
        self.library.fake_set_memory.argtypes = [ctypes.c_int64]
        for name in ("fake_used", "fake_reserved", "fake_streams", "fake_events"):
            getattr(self.library, name).restype = ctypes.c_int64
        self._bodies: list[object] = []

    def kernel(self, name: str, body: Callable[[Launch], None]) -> None:
        """The kernel `name` of any image calls `body`."""
        self._bodies.append(_BODY(lambda launch: body(launch.contents)))
        self.library.fake_kernel(name.encode(), self._bodies[-1])

    def fail(self, symbol: str, status: int, after: int = 0, times: int = 1) -> None:
        """After so many more calls of `symbol` the next ones give `status`."""
        self.library.fake_fail(symbol.encode(), status, after, times)

    def calls(self) -> list[str]:
        """What was called since this was last asked."""
        result = self.library.fake_calls().decode().split("\n")[:-1]
        self.library.fake_forget_calls()
        return result

    def used(self) -> int:
        """Bytes that are allocated."""
        return self.library.fake_used()


def compiled_by_name(text: str, arch: str, options: object, is_ptx: bool = False) -> Compiled:
    """In place of NVRTC: what is compiled is a list of the kernels' names, which is what this driver loads."""
    names = [part.split(")", 1)[1].split("(")[0].strip() for part in text.split("__launch_bounds__(")[1:]]
    return Compiled(" ".join(["ptx" if is_ptx else "cubin", *names]).encode(), "")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> object:
    """Two GPUs, of 64 MiB together and compute capability 9.0."""
    monkeypatch.setenv("LOOPWRIGHT_CUDA_DRIVER", fake_driver())
    _forget()
    result = FakeGpu(fake_driver())
    result.library.fake_set_memory(1 << 26)
    result.calls()
    yield result
    result.fail("", 0, 0, 0)
    _forget()


def _forget() -> None:
    """What was found on this machine before."""
    driver.find_driver.cache_clear()
    gpu_target._describe.cache_clear()
    gpu_target._gpu_of_this_machine.cache_clear()
