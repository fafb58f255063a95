"""Modules with kernels in the compile cache: what comes back is what was built, and it launches."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright.codegen import compile_cache
from loopwright.codegen.source.cuda import images
from loopwright.codegen.source.cuda.kept import cuda_in, kept_cuda
from loopwright.runtime.artifact_file import Artifact
from loopwright.runtime.artifact_store import ArtifactStore
from loopwright.runtime.registry import remove_global_func
from tests.compile_caching import switch_on
from tests.cuda_programs import PROGRAMS, vector_add

sys.path.insert(0, str(Path(__file__).parents[3] / "runtime"))
from fake_gpu import FakeGpu, Launch, compiled_by_name, gpu, needs_compiler  # noqa: F401

pytestmark = needs_compiler
TARGET = "cuda -arch=sm_90"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ArtifactStore]:
    from loopwright.runtime.nvidia import driver

    driver.find_driver()  # our part in C is not built once more in the new folder
    monkeypatch.setattr(images, "compile_cuda", compiled_by_name)
    yield switch_on(monkeypatch, tmp_path / "cache")
    compile_cache.forget()


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_kept_is_whole(name: str):
    inputs, args, _, _ = PROGRAMS[name]()
    built = lw.build(inputs, args, target=TARGET)
    functions = built.compiled
    kept = kept_cuda(functions._compiled_host(), functions, built.description)
    again = cuda_in(Artifact(kept.header(), kept.parts()))
    assert again == kept
    linked = again.linked(functions.cpu)
    assert linked.get_source() == built.get_source() and linked.kernels == built.kernels
    assert linked.get_source("host") == built.get_source("host")


def add(launch: Launch) -> None:
    n = launch.argument(3, ctypes.c_int32)
    a, b, c = [(ctypes.c_float * n).from_address(launch.argument(k, ctypes.c_uint64)) for k in range(3)]
    c[:] = [x + y for x, y in zip(a, b)]


def built(target: str = TARGET) -> lw.runtime.Module:
    schedule, args = vector_add()
    return lw.build(schedule, args, target=target)


def is_compiled(module: lw.runtime.Module) -> bool:
    return "lower" in module.timings


def launch(module: lw.runtime.Module) -> None:
    a, b = [lw.nd.array(np.arange(1000, dtype="float32") + k, lw.cuda(0)) for k in range(2)]
    c = lw.nd.empty((1000,), device=lw.cuda(0))
    module(a, b, c)
    np.testing.assert_array_equal(c.numpy(), 2 * np.arange(1000) + 1)


def test_a_build_after_a_call_comes_from_the_cache(store: ArtifactStore, gpu: FakeGpu, tmp_path: Path):  # noqa: F811
    gpu.kernel("main_kernel", add)
    first = built()
    assert is_compiled(first) and is_compiled(built())  # nothing is kept before the host's code is compiled
    launch(first)
    for _ in range(2):
        again = built()
        assert not is_compiled(again)
        launch(again)
        compile_cache.forget()  # then from disk
    assert is_compiled(built("cuda -arch=sm_80")) and is_compiled(built("cuda -arch=sm_90 -model=emulated"))
    compiled_before = built()
    launch(lw.runtime.load_module(compiled_before.export_library(tmp_path / "add.so")))


def test_functions_that_are_native_have_no_python_on_the_way(store: ArtifactStore, gpu: FakeGpu):  # noqa: F811
    gpu.kernel("main_kernel", add)
    module = built()
    before = module["main"]
    launch(module)
    launch(before)
    assert type(module["main"]).__module__.startswith("tvm_ffi")


def test_what_the_user_registered_keeps_it_out(store: ArtifactStore, gpu: FakeGpu):  # noqa: F811
    seen = []

    @lw.register_func("tvm_callback_cuda_postproc", override=True)
    def changed(text: str, target: object) -> str:
        return "// mine\n" + text

    @lw.register_func("tvm_callback_cuda_compile", override=True)
    def compiled(text: str, target: object) -> bytes:
        seen.append(target.arch)
        assert text.startswith("// mine\n")
        return b"cubin main_kernel"

    gpu.kernel("main_kernel", add)
    try:
        for _ in range(2):
            module = built()
            assert is_compiled(module) and module.imported_modules[0].get_source().startswith("// mine\n")
            launch(module)
    finally:
        remove_global_func("tvm_callback_cuda_postproc")
        remove_global_func("tvm_callback_cuda_compile")
    assert seen == ["sm_90", "sm_90"]


def test_a_damaged_entry_is_made_again(store: ArtifactStore, gpu: FakeGpu):  # noqa: F811
    gpu.kernel("main_kernel", add)
    launch(built())
    (entry,) = [one for one in store.entries() if store.look(one).header["kind"] == compile_cache.CUDA_KIND]
    header, parts = store.look(entry)
    store.save(entry.key, {**header, "kernels": "[1]"}, parts)
    compile_cache.forget()
    again = built()
    assert is_compiled(again)
    launch(again)
