"""What tests of tensor programs need: comparing numbers and expressions, gradients, targets, parameters, features.

`numbers.py` compares arrays and checks gradients; `expressions.py` compares and tests index expressions; `targets.py`
says which targets tests run on; `features.py` holds the marks (`requires_llvm` …), `fixtures.py` the parameters,
`plugin.py` the pytest plugin they work with (`pytest_plugins = ["loopwright.testing.plugin"]`), `compare.py`
`CompareBeforeAfter`. pytest is only needed by what makes tests: `assert_allclose` works without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "compare": "CompareBeforeAfter",
    "expressions": "assert_prim_expr_equal check_bool_expr_is_true check_int_constraints_trans_consistency",
    "features": "Feature is_ampere_or_newer requires_aprofile requires_arm_dot requires_cblas requires_cmsisnn "
    "requires_corstone300 requires_cublas requires_cuda requires_cuda_compute_version requires_cudagraph "
    "requires_cudnn requires_ethosn requires_ethosu requires_gpu requires_hexagon requires_libtorch "
    "requires_llvm requires_llvm_minimum_version requires_mac requires_metal requires_micro "
    "requires_nvcc_version requires_nvptx requires_opencl requires_package requires_rocm requires_rpc "
    "requires_tensorcore requires_vitis_ai requires_vulkan requires_x86 requires_x86_amx "
    "requires_x86_avx512 requires_x86_vnni skip_if_32bit skip_if_wheel_test slow uses_gpu",
    "numbers": "assert_allclose check_numerical_grads strtobool",
    "fixtures": "fixture parameter parameters xfail_parameterizations",
    "spans": "disable_span_filling enable_span_filling",
    "running": "local_run main rpc_run",
    "targets": "device_enabled enabled_targets exclude_targets known_failing_targets parametrize_targets",
}
_WHERE = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
