"""Libraries with kernels: what they hold, how they are loaded, in Python and in C, with and without a driver."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright.codegen.source.cuda import images
from loopwright.codegen.source.cuda.images import exported_architectures
from loopwright.runtime import load_module
from loopwright.runtime.device_errors import NoCudaDriver
from loopwright.runtime.nvidia.driver import OtherImageLoaded
from loopwright.runtime.nvidia.errors import DeviceOutOfMemory, KernelImageRefused
from loopwright.runtime.nvidia.nvrtc import Compiled, NoNvrtc, find_library
from loopwright.target import Target, UnknownGpuArchitecture, describe_gpu
from tests.cuda_programs import PROGRAMS, vector_add

sys.path.insert(0, str(Path(__file__).parents[3] / "runtime"))
from fake_gpu import FakeGpu, Launch, compiled_by_name, fake_driver, gpu, needs_compiler  # noqa: F401

pytestmark = needs_compiler


def _has_nvrtc() -> bool:
    try:
        return bool(find_library())
    except NoNvrtc:
        return False


@pytest.fixture
def by_name(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Kernels are compiled to their names; the architectures that were asked for."""
    asked = []

    def compiled(text: str, arch: str, options: object, is_ptx: bool = False) -> Compiled:
        asked.append(f"{'ptx ' * is_ptx}{arch}")
        return compiled_by_name(text, arch, options, is_ptx)

    monkeypatch.setattr(images, "compile_cuda", compiled)
    yield asked


def add_module(target: str) -> lw.runtime.Module:
    schedule, args = vector_add()
    return lw.build(schedule, args, target=target)


def add(launch: Launch) -> None:
    n = launch.argument(3, ctypes.c_int32)
    a, b, c = [(ctypes.c_float * n).from_address(launch.argument(k, ctypes.c_uint64)) for k in range(3)]
    c[:] = [x + y for x, y in zip(a, b)]


@pytest.mark.parametrize(
    "arch, held",
    [
        ("sm_90", "sm_90 compute_90"),
        ("sm_90a", "sm_90a compute_90"),
        ("sm_86,sm_80", "sm_86 sm_80 compute_86"),
        ("sm_80,sm_90a", "sm_80 sm_90a compute_90 compute_80"),
        ("sm_80,compute_75", "sm_80 compute_75"),
    ],
)
def test_what_a_library_holds_for_a_target(arch: str, held: str):
    assert exported_architectures(Target(f"cuda -arch={arch}")) == held.split()
    assert exported_architectures(lw.target.cuda(arch=arch.split(","))) == held.split()
    assert exported_architectures(Target({"kind": "cuda", "arch": arch.split(",")})) == held.split()


def test_several_architectures_are_described_by_what_all_have():
    both = describe_gpu("cuda -arch=sm_90a,sm_86")
    assert (both.arch, both.max_shared_memory_per_block) == ("sm_86", 99 << 10)
    assert describe_gpu("cuda -arch=sm_90a,sm_100a").arch == "sm_90" and not both.has_wgmma
    with pytest.raises(UnknownGpuArchitecture, match="sm_85"):
        describe_gpu("cuda -arch=sm_80,sm_85")


@pytest.mark.parametrize("form", ["so", "o", "tar"])
def test_a_library_is_loaded_and_launches(form: str, tmp_path: Path, by_name: list[str], gpu: FakeGpu):  # noqa: F811
    module = add_module("cuda -arch=sm_80,sm_90a")
    path = module.export_library(tmp_path / f"add.{form}")
    # The first one looks whether the text for sm_90a is general.
    assert by_name == ["sm_90", "sm_80", "sm_90a", "ptx sm_90", "ptx sm_80"]
    gpu.kernel("main_kernel", add)
    loaded = load_module(path)
    assert "cuModuleLoadDataEx" not in gpu.calls()
    a, b = [lw.nd.array(np.arange(1000, dtype="float32") + k, lw.cuda(0)) for k in range(2)]
    c = lw.nd.empty((1000,), device=lw.cuda(0))
    for _ in range(2):
        loaded(a, b, c)
    np.testing.assert_array_equal(c.numpy(), 2 * np.arange(1000) + 1)
    assert gpu.calls().count("cuModuleLoadDataEx") <= 1  # 0: the same images are loaded already
    (kernels,) = loaded.imported_modules
    held = json.loads(kernels.get_source("json"))["images"]
    assert [one["architecture"] for one in held] == ["sm_80", "sm_90a", "compute_90", "compute_80"]
    assert kernels.type_key == "cuda" and kernels.get_source("ptx") == "ptx main_kernel"
    again = loaded.export_library(tmp_path / "again.so")
    load_module(again)(a, b, c)
    with pytest.raises(lw.LoopwrightError, match="argument B is in the memory of the host"):
        loaded(a, np.zeros(1000, "float32"), c)


def test_memory_and_several_kernels(tmp_path: Path, by_name: list[str], gpu: FakeGpu):  # noqa: F811
    inputs, args, given, wanted = PROGRAMS["two_kernels"]()
    library = load_module(lw.build(inputs, args, target="cuda -arch=sm_90").export_library(tmp_path / "two.so"))
    seen = []
    for name in ("main_kernel", "main_kernel_1"):
        gpu.kernel(name, lambda launch, name=name: seen.append(name))
    tensors = [lw.nd.array(array, lw.cuda(0)) for array in (*given, *wanted)]
    library(*tensors)
    assert seen == ["main_kernel", "main_kernel_1"]
    gpu.library.fake_set_memory(gpu.used())
    with pytest.raises(DeviceOutOfMemory, match=r"cuda\(0\) has no"):
        library(*tensors)
    gpu.library.fake_set_memory(1 << 26)
    library(*tensors)


def test_a_library_with_host_code_beside_kernels(tmp_path: Path, by_name: list[str], gpu: FakeGpu):  # noqa: F811
    A = lw.te.placeholder((64,), name="A")
    B = lw.te.compute((64,), lambda i: A[i] + 1.0, name="B")
    schedule = lw.te.create_schedule(B.op)
    schedule[B].parallel(B.op.axis[0])
    module = lw.build(schedule, [A, B], target="llvm", name="on_the_host")
    module.import_module(add_module("cuda -arch=sm_90"))
    loaded = load_module(module.export_library(tmp_path / "both.so"))
    gpu.kernel("main_kernel", add)
    a, b = np.ones(64, "float32"), np.zeros(64, "float32")
    loaded["on_the_host"](a, b)
    x, y, z = [lw.nd.array(b, lw.cuda(0)) for _ in range(3)]
    loaded.get_function("main", query_imports=True)(x, y, z)
    np.testing.assert_array_equal(z.numpy(), 2 * b)


def test_the_best_image_is_loaded_and_ptx_with_a_word(
    tmp_path: Path, by_name: list[str], monkeypatch: pytest.MonkeyPatch, gpu: FakeGpu  # noqa: F811
):
    gpu.kernel("main_kernel", add)
    a, b, c = [lw.nd.array(np.ones(1000, "float32"), lw.cuda(0)) for _ in range(3)]
    older = load_module(add_module("cuda -arch=sm_80").export_library(tmp_path / "older.so"))
    with pytest.warns(OtherImageLoaded, match=r"sm_80, PTX for compute_80, and cuda\(0\) is sm_90: the driver"):
        older(a, b, c)
    np.testing.assert_array_equal(c.numpy(), np.full(1000, 2))
    newer = load_module(add_module("cuda -arch=sm_100").export_library(tmp_path / "newer.so"))
    with pytest.raises(KernelImageRefused, match=r"built for sm_100, PTX for compute_100, and cuda\(0\) is sm_90"):
        newer(a, b, c)
    older(a, b, c)  # and it goes on


def test_here_only_what_is_needed_is_compiled(by_name: list[str], gpu: FakeGpu):  # noqa: F811
    gpu.kernel("main_kernel", add)
    tensors = [lw.nd.array(np.ones(1000, "float32"), lw.cuda(0)) for _ in range(3)]
    for arch, compiled in [("sm_80,sm_90a", "sm_90a"), ("sm_80", "ptx sm_80"), ("sm_90,compute_80", "sm_90")]:
        by_name.clear()
        add_module(f"cuda -arch={arch}")(*tensors)
        assert by_name == [compiled]


def run_python(program: str, *args: object, **settings: str) -> str:
    command = [sys.executable, "-c", program, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **settings})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_loads_without_driver_and_nvrtc(tmp_path: Path, by_name: list[str]):
    path = add_module("cuda -arch=sm_90").export_library(tmp_path / "add.so")
    program = (
        "import sys; from loopwright.runtime import load_module\n"
        "add = load_module(sys.argv[1]); print(add)\n"
        "try: add['main'](*[__import__('numpy').zeros(0, 'float32')] * 3)\n"
        "except Exception as error: print(type(error).__name__)\n"
        "print(add.imported_modules[0].get_source('ptx'))\n"
        "late = [name for name in sys.modules if name.split('.')[0] == 'loopwright' and 'runtime' not in name]\n"
        "print(late)\n"
    )
    missing = {"LOOPWRIGHT_CUDA_DRIVER": "libcuda-nowhere.so", "LOOPWRIGHT_NVRTC": "nowhere.so"}
    said = run_python(program, path, **missing).splitlines()
    assert said[:3] == ["Module(library: main)", "DeviceMismatch", "ptx main_kernel"]
    assert set(json.loads(said[3].replace("'", '"'))) <= {"loopwright", "loopwright.error"}


_C_PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "add.h"

typedef struct { const unsigned *size; unsigned shared; void *stream; void **arguments; } Launch;
static void body(const Launch *launch) {
    float **at[3] = {launch->arguments[0], launch->arguments[1], launch->arguments[2]};
    for (int k = 0; k < *(int *)launch->arguments[3]; k++) (*at[2])[k] = (*at[0])[k] + (*at[1])[k];
    printf("%u blocks of %u on %ld\n", launch->size[0], launch->size[3], (long)launch->stream);
}

int main(int argc, char **argv) {
    float a[300], b[300], c[300];
    for (int k = 0; k < 300; k++) a[k] = k, b[k] = 1, c[k] = 0;
    void *driver = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (driver != NULL) {
        void (*define)(const char *, void (*)(const Launch *)) = dlsym(driver, "fake_kernel");
        define("main_kernel", body);
    }
    loopwright_set_cuda_stream((void *)7);
    int status = loopwright_main(a, b, c, 300);
    if (status != 0) printf("%s\n", loopwright_last_error());
    else printf("%g %g\n", c[0], c[299]);
    return 0;
}
"""


@pytest.mark.parametrize("is_linked_in", [False, True])
def test_a_c_program_calls_it(is_linked_in: bool, tmp_path: Path, by_name: list[str]):
    module = add_module("cuda -arch=sm_90")
    (tmp_path / "main.c").write_text(_C_PROGRAM)
    if is_linked_in:
        subprocess.run(["tar", "xf", module.export_library(tmp_path / "add.tar"), "-C", str(tmp_path)], check=True)
        parts = [str(file) for file in tmp_path.iterdir() if file.suffix in (".o", ".c") and file.name != "main.c"]
    else:
        module.export_library(tmp_path / "add.h")
        parts = [module.export_library(tmp_path / "add.so"), f"-Wl,-rpath,{tmp_path}"]
    program = str(tmp_path / "program")
    flags = ["-I", str(tmp_path), "-std=gnu11", "-O1", "-pthread"]
    subprocess.run(["cc", str(tmp_path / "main.c"), *parts, *flags, "-o", program, "-ldl", "-lm"], check=True)

    def run(*args: str, driver: str) -> str:
        environment = {**os.environ, "LOOPWRIGHT_CUDA_DRIVER": driver}
        return subprocess.run([program, *args], capture_output=True, text=True, env=environment, check=True).stdout

    assert run(fake_driver(), driver=fake_driver()) == "2 blocks of 256 on 7\n1 300\n"
    said = run(driver="libcuda-nowhere.so")
    assert said.startswith(f"{NoCudaDriver.__name__}: libcuda-nowhere.so was not found"), said


@pytest.mark.skipif(not _has_nvrtc(), reason="NVRTC is not installed")
def test_what_nvrtc_made_is_in_the_library(tmp_path: Path):
    path = add_module("cuda -arch=sm_90a,sm_80").export_library(tmp_path / "add.so")
    (kernels,) = load_module(path).imported_modules
    held = {one["architecture"]: one["bytes"] for one in json.loads(kernels.get_source("json"))["images"]}
    assert list(held) == ["sm_90a", "sm_80", "compute_90", "compute_80"] and min(held.values()) > 500
    assert ".target sm_90\n" in kernels.get_source("ptx")


def test_code_of_one_architecture_alone_gets_no_ptx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def compiled(text: str, arch: str, options: object, is_ptx: bool = False) -> Compiled:
        if arch == "sm_90":
            raise images.KernelDoesNotCompile(text, "wgmma not supported on sm_90")
        return compiled_by_name(text, arch, options, is_ptx)

    monkeypatch.setattr(images, "compile_cuda", compiled)
    with pytest.warns(RuntimeWarning, match="only sm_90a has"):
        path = add_module("cuda -arch=sm_90a,sm_80").export_library(tmp_path / "add.so")
    (kernels,) = load_module(path).imported_modules
    held = [one["architecture"] for one in json.loads(kernels.get_source("json"))["images"]]
    assert held == ["sm_90a", "sm_80", "compute_80"]


def test_an_emulated_module_is_not_exported(tmp_path: Path):
    with pytest.raises(lw.LoopwrightError, match="emulated") as caught:
        add_module("cuda -model=emulated").export_library(tmp_path / "add.so")
    assert 'target="cuda -arch=' in str(caught.value)
