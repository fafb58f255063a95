"""What a test needs of the machine: `@requires_llvm`, `@requires_cuda`, `@requires_package("torch")` …

Each is a decorator that skips the test where the thing is missing, with the reason. `requires_cuda.marks()` gives the
pytest marks, for `pytest.param(…, marks=…)`; `requires_cuda.available()` is the question itself.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from loopwright.runtime import cuda
from loopwright.target import detect_host
from loopwright.testing.marks import Test, add_mark, load_pytest
from loopwright.testing.numbers import strtobool
from loopwright.testing.targets import device_enabled, is_buildable

if TYPE_CHECKING:
    pass

COMPILE_AND_RUN = "compile-and-run"


class Feature:
    """Something a test may need; use it as a decorator."""

    def __init__(
        self,
        name: str,
        long_name: str | None = None,
        *,
        check: Callable[[], bool] | None = None,
        target_kind: str | None = None,
        parents: Sequence[Feature] = (),
        marks: Sequence[str] = (),
    ) -> None:
        self.name, self.long_name = name, long_name or name
        self._check, self._target_kind = check, target_kind
        self._parents, self._marks = tuple(parents), tuple(marks)

    def available(self, support_required: str = COMPILE_AND_RUN) -> bool:
        """Whether it is here, with everything it needs itself."""
        return self.why_not(support_required) is None

    def why_not(self, support_required: str = COMPILE_AND_RUN) -> str | None:
        """What is missing, in words; None where nothing is."""
        if support_required not in (COMPILE_AND_RUN, "compile-only", "optional"):
            raise ValueError(
                f"support_required is {COMPILE_AND_RUN}, compile-only or optional, not {support_required!r}"
            )
        if support_required == "optional":
            return None
        for parent in self._parents:
            reason = parent.why_not(support_required)
            if reason is not None:
                return reason
        if self._target_kind is not None:
            if support_required == "compile-only":
                return None if is_buildable(self._target_kind) else f"target {self._target_kind} is not built"
            if not device_enabled(self._target_kind):
                return f"target {self._target_kind} is not built, its device is missing, or it was not asked for"
        if self._check is not None and not self._check():
            return f"{self.long_name} is not here"
        return None

    def marks(self, support_required: str = COMPILE_AND_RUN) -> list[Callable[[Test], Test]]:
        """The pytest marks: one that skips the test where this is missing, and those that name it."""
        pytest = load_pytest()
        reason = self.why_not(support_required)
        skip = pytest.mark.skipif(reason is not None, reason=reason or "")
        return [*(getattr(pytest.mark, name) for name in self._all_marks()), skip]

    def __call__(self, test: Test | None = None, *, support_required: str = COMPILE_AND_RUN) -> Any:
        """`test`, which is skipped where this is missing; without a test, the decorator.

        A test that only compiles says `support_required="compile-only"`; one that asks itself, `"optional"`.
        """
        if test is None:
            return functools.partial(self, support_required=support_required)
        for mark in self.marks(support_required):
            test = mark(test)
        return test

    def _all_marks(self) -> list[str]:
        return list(dict.fromkeys([*self._marks, *(m for parent in self._parents for m in parent._all_marks())]))

    def __repr__(self) -> str:
        return f"Feature({self.name!r})"


def _has_package(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def requires_package(*packages: str) -> Callable[[Test], Test]:
    """A decorator that skips a test unless all these Python packages can be imported."""
    missing = [package for package in packages if not _has_package(package)]

    def decorate(test: Test) -> Test:
        reason = f"not installed: {', '.join(missing)}"
        marked: Test = load_pytest().mark.skipif(bool(missing), reason=reason)(test)
        return marked

    return decorate


def requires_llvm_minimum_version(major_version: int) -> Feature:
    """LLVM of at least this version."""

    def new_enough() -> bool:
        from llvmlite import binding

        return bool(binding.llvm_version_info[0] >= major_version)

    return Feature("llvm_min_version", f"LLVM {major_version}", check=new_enough, parents=[requires_llvm])


def requires_cuda_compute_version(major_version: int, minor_version: int = 0) -> Feature:
    """A GPU of at least this compute version."""
    return Feature(
        "cuda_compute_version",
        f"compute version {major_version}.{minor_version}",
        check=lambda: _compute_version() >= (major_version, minor_version),
        parents=[requires_cuda],
    )


def requires_nvcc_version(major_version: int, minor_version: int = 0, release_version: int = 0) -> Feature:
    """A CUDA toolkit of at least this version."""

    def new_enough() -> bool:
        from loopwright.contrib import nvcc

        try:
            return nvcc.get_cuda_version() >= float(f"{major_version}.{minor_version}")
        except FileNotFoundError:
            return False

    return Feature("nvcc_version", f"nvcc {major_version}.{minor_version}", check=new_enough, parents=[requires_cuda])


def _compute_version() -> tuple[int, ...]:
    return tuple(int(part) for part in str(cuda(0).compute_version).split(".")) if cuda(0).exist else (0, 0)


def is_ampere_or_newer() -> bool:
    """Whether the first GPU is of compute version 8.0 or more."""
    return _compute_version() >= (8, 0)


def _has_feature(*names: str) -> bool:
    return all([name in detect_host().features for name in names])


uses_gpu = Feature("uses_gpu", "tests that use a GPU where there is one", marks=["gpu"])
requires_llvm = Feature("llvm", "LLVM", target_kind="llvm")
requires_cuda = Feature("cuda", "CUDA", target_kind="cuda", parents=[uses_gpu])
requires_nvptx = Feature("nvptx", "NVPTX", target_kind="nvptx", parents=[uses_gpu])
requires_opencl = Feature("opencl", "OpenCL", target_kind="opencl", parents=[uses_gpu])
requires_vulkan = Feature("vulkan", "Vulkan", target_kind="vulkan", parents=[uses_gpu])
requires_metal = Feature("metal", "Metal", target_kind="metal", parents=[uses_gpu])
requires_rocm = Feature("rocm", "ROCm", target_kind="rocm", parents=[uses_gpu])
requires_hexagon = Feature("hexagon", "Hexagon", target_kind="hexagon")
requires_gpu = Feature(
    "gpu",
    "a GPU",
    check=lambda: any([f.available() for f in (requires_cuda, requires_opencl, requires_vulkan, requires_rocm)]),
    parents=[uses_gpu],
)
requires_tensorcore = Feature(
    "tensorcore", "tensor cores", check=lambda: _compute_version() >= (7, 0), parents=[requires_cuda]
)
requires_cudagraph = Feature("cudagraph", "CUDA graphs", parents=[requires_cuda])
requires_cudnn = Feature("cudnn", "cuDNN", check=lambda: False, parents=[requires_cuda])
requires_cblas = Feature("cblas", "calls into a BLAS library", check=lambda: False)
requires_rpc = Feature("rpc", "remote machines", check=lambda: False)
requires_micro = Feature("micro", "microcontrollers", check=lambda: False)
requires_corstone300 = Feature("corstone300", "the Corstone-300 model", check=lambda: False)
requires_aprofile = Feature("aprofile", "the A-profile model", check=lambda: False)
requires_arm_dot = Feature("arm_dot", "ARM's dot product", check=lambda: _has_feature("dotprod"))
requires_x86 = Feature("x86", "an x86 processor", check=lambda: platform.machine() in ("x86_64", "AMD64"))
requires_x86_avx512 = Feature("x86_avx512", "AVX-512", check=lambda: _has_feature("avx512f"), parents=[requires_x86])
requires_x86_vnni = Feature("x86_vnni", "VNNI", check=lambda: _has_feature("avx512vnni"), parents=[requires_x86])
requires_x86_amx = Feature("x86_amx", "AMX", check=lambda: _has_feature("amx-int8"), parents=[requires_x86])
# Accelerators and libraries that nothing is compiled for.
requires_cmsisnn = Feature("cmsisnn", "CMSIS-NN", check=lambda: False)
requires_cublas = Feature("cublas", "cuBLAS", check=lambda: False, parents=[requires_cuda])
requires_ethosn = Feature("ethosn", "Ethos-N", check=lambda: False)
requires_ethosu = Feature("ethosu", "Ethos-U", check=lambda: False)
requires_libtorch = Feature("libtorch", "libtorch", check=lambda: False)
requires_vitis_ai = Feature("vitis_ai", "Vitis AI", check=lambda: False)
requires_mac = Feature("mac", "macOS", check=lambda: sys.platform == "darwin")


def skip_if_32bit(test: Test | None = None, *, reason: str = "the test needs 64 bits") -> Any:
    """Skip the test under a Python of 32 bits."""
    decorate = load_pytest().mark.skipif(sys.maxsize <= 2**32, reason=reason)
    return decorate if test is None else decorate(test)


def skip_if_wheel_test(test: Test) -> Test:
    """Skip the test while an installed package is tested (`WHEEL_TEST=1`)."""
    chosen = strtobool(os.environ.get("WHEEL_TEST", "0"))
    marked: Test = load_pytest().mark.skipif(chosen, reason="an installed package is tested")(test)
    return marked


def slow(test: Test) -> Test:
    """Mark a test that takes long; `SKIP_SLOW_TESTS=1` skips it."""
    chosen = strtobool(os.environ.get("SKIP_SLOW_TESTS", "0"))
    marked = add_mark(test, "slow")
    skipped: Test = load_pytest().mark.skipif(chosen, reason="slow tests are skipped")(marked)
    return skipped
