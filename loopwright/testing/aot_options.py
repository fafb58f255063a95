"""How scripts try models that are compiled ahead of time: runners, and one test for each interface.

A C program calls our models by their one C function whatever the interface is called, so the runners differ in nothing
but their name. Boards and their simulators are not here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from loopwright import relay
from loopwright.ir.function import IRModule
from loopwright.testing.aot import AOTTestRunner

AOT_DEFAULT_RUNNER: Final = AOTTestRunner()
AOT_USMP_RUNNER: Final = AOTTestRunner(pass_config={"tir.usmp.enable": True})
AOT_CORSTONE300_RUNNER: Final = AOTTestRunner(makefile="corstone300")
AOT_USMP_CORSTONE300_RUNNER: Final = AOTTestRunner(makefile="corstone300", pass_config={"tir.usmp.enable": True})
AOT_APROFILE_AEM_RUNNER: Final = AOTTestRunner(makefile="aprofile_aem")


def parametrize_aot_options(test: Callable[..., Any]) -> Any:
    """Run a test for each interface, on this machine."""
    import pytest

    cases = [("packed", False), ("packed", True), ("c", True)]
    return pytest.mark.parametrize(
        ("interface_api", "use_unpacked_api", "test_runner"), [(*case, AOT_DEFAULT_RUNNER) for case in cases]
    )(test)


def get_conv2d_relay_module() -> IRModule:
    """A convolution of int8, small."""
    x, w = relay.var("data", shape=(1, 3, 64, 64), dtype="int8"), relay.var("weight", shape=(3, 3, 5, 5), dtype="int8")
    out = relay.nn.conv2d(x, w, padding=(2, 2), kernel_size=(5, 5), out_dtype="int32")
    module: IRModule = relay.transform.InferType()(IRModule.from_expr(relay.Function([x, w], out)))
    return module


def generate_data(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers of a type, drawn at random."""
    if dtype.startswith("float"):
        return np.random.default_rng(0).random(shape).astype(dtype)
    info = np.iinfo(dtype)
    return np.random.default_rng(0).integers(info.min, info.max, shape, dtype=dtype)
