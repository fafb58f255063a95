"""CUDA C++ to machine code; where the library is not installed, only that this is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from loopwright.runtime.artifact_store import open_store
from loopwright.runtime.nvidia import nvrtc
from loopwright.runtime.nvidia.nvrtc import (
    ArchitectureNotCompiled,
    KernelDoesNotCompile,
    NoNvrtc,
    compile_cuda,
    find_library,
    load_nvrtc,
)

SCALE = """
extern "C" __global__ void scale(const float* A, float* B, int n, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) B[i] = A[i] * factor;
}
"""


def is_there() -> bool:
    try:
        find_library()
    except NoNvrtc:
        return False
    return True


needs_nvrtc = pytest.mark.skipif(not is_there(), reason="NVRTC is not installed")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("LOOPWRIGHT_CACHE", "1")


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_kernel_becomes_a_cubin(empty_cache: None, arch: str):
    compiled = compile_cuda(SCALE, arch, ["--ptxas-options=-v"])
    assert compiled.code.startswith(b"\x7fELF") and b"scale" in compiled.code
    assert "registers" in compiled.log


@needs_nvrtc
def test_a_kernel_becomes_ptx(empty_cache: None):
    text = compile_cuda(SCALE, "sm_90a", is_ptx=True).code.decode()
    assert ".target sm_90a" in text and ".entry scale" in text


@needs_nvrtc
def test_an_instruction_of_one_architecture_alone(empty_cache: None):
    fence = 'extern "C" __global__ void f() { asm volatile("wgmma.fence.sync.aligned;"); }'
    assert compile_cuda(fence, "sm_90a").code.startswith(b"\x7fELF")
    with pytest.raises(KernelDoesNotCompile, match="wgmma"):
        compile_cuda(fence, "sm_90")


@needs_nvrtc
def test_what_was_compiled_is_kept(empty_cache: None, monkeypatch: pytest.MonkeyPatch):
    first = compile_cuda(SCALE, "sm_80", ["--ptxas-options=-v"])
    assert len(open_store().entries()) == 1
    monkeypatch.setattr(nvrtc, "load_nvrtc", lambda: pytest.fail("it was compiled again"))
    assert compile_cuda(SCALE, "sm_80", ["--ptxas-options=-v"]) == first


@needs_nvrtc
def test_an_error_shows_its_line(empty_cache: None):
    wrong = SCALE.replace("A[i] *", "oops *")
    with pytest.raises(KernelDoesNotCompile, match='does not compile: identifier "oops" is undefined') as caught:
        compile_cuda(wrong, "sm_80", name="scale.cu")
    assert "  at scale.cu:4\n  >   if (i < n) B[i] = oops * factor;" in str(caught.value)
    assert "scale.cu(4)" in caught.value.fields["log"]


@needs_nvrtc
def test_an_architecture_that_it_does_not_know(empty_cache: None):
    with pytest.raises(ArchitectureNotCompiled, match=r"NVRTC 1\d\.\d+ does not compile for sm_30") as caught:
        compile_cuda(SCALE, "sm_30")
    assert "sm_90" in caught.value.why
    assert "nvidia-cuda-nvrtc-cu12" in caught.value.hint
    with pytest.raises(ArchitectureNotCompiled, match="does not compile for sm_999"):
        compile_cuda(SCALE, "sm_999")


@needs_nvrtc
def test_the_version_is_known():
    assert load_nvrtc().version >= (12, 0)
    assert "sm_90" in load_nvrtc().architectures()


def test_a_missing_library_says_what_to_install():
    program = (
        "import sys, os; os.environ['LOOPWRIGHT_NVRTC'] = 'libnowhere.so'\n"
        "from loopwright.runtime.nvidia.nvrtc import compile_cuda\n"
        "try: compile_cuda('', 'sm_80')\n"
        "except ImportError as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    assert "NVRTC, which compiles CUDA kernels, cannot be loaded [LW0168]" in said
    assert 'hint: pip install "loopwright[cuda]"' in said


def test_the_folders_of_other_wheels_are_looked_into(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for place in ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12", "cu13/lib/libnvrtc-builtins.so.13.0"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    monkeypatch.setattr(nvrtc, "find_spec", lambda _: SimpleNamespace(submodule_search_locations=[str(tmp_path)]))
    found = [str(tmp_path / place) for place in ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12")]
    assert list(nvrtc._beside_others()) == found


def test_where_nothing_is_found_all_places_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(nvrtc, "_DISTRIBUTIONS", ("not-a-package", "nor-this", "nor-that"))
    monkeypatch.setattr(nvrtc, "_SYSTEM", ("libnowhere.so.13", "libnowhere.so.12"))
    monkeypatch.setattr(nvrtc, "_TOOLKITS", ())
    monkeypatch.setattr(nvrtc, "find_spec", lambda _: None)
    monkeypatch.delenv("LOOPWRIGHT_NVRTC", raising=False)
    with pytest.raises(NoNvrtc) as caught:
        find_library.__wrapped__()
    assert "libnowhere.so.13" in caught.value.why and "not-a-package and nor-that" in caught.value.why
