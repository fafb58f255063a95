"""Running a package: on arrays that are given, or made up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loopwright.cli.interface import Port
from loopwright.cli.run_model import FILL_MODES, made_up
from loopwright.compat.tvmc.model import TVMCException, TVMCModel, TVMCPackage, TVMCResult
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.timing import time_evaluator


def generate_tensor_data(shape: tuple[int, ...], dtype: str, fill_mode: str) -> np.ndarray:
    """An array for an input that nobody gave: zeros, ones, or random numbers."""
    if fill_mode not in FILL_MODES:
        raise TVMCException(f"unknown fill-mode: {fill_mode}; there are {', '.join(FILL_MODES)}")
    return made_up(Port("input", dtype, tuple(shape)), tuple(shape), fill_mode, np.random.default_rng())


def make_inputs_dict(
    package: TVMCPackage, inputs: Mapping[str, np.ndarray] | None, fill_mode: str = "random"
) -> dict[str, np.ndarray]:
    """Every input by name: the array given, or one that is made up; open sizes are those of the arrays given, or 1."""
    given = dict(inputs or {})
    names = [port.name for port in package.interface.inputs]
    for name in given:
        if name not in names:
            raise TVMCException(f"there is no input named {name!r}; the model has {', '.join(names) or 'none'}")
    sizes: dict[str, int] = {}
    for port in package.interface.inputs:
        if port.name in given:
            sizes |= {size: n for size, n in zip(port.shape, given[port.name].shape) if isinstance(size, str)}
    arrays = {}
    for port in package.interface.inputs:
        if port.name in given:
            arrays[port.name] = np.ascontiguousarray(np.asarray(given[port.name]).astype(port.numpy(), copy=False))
        else:
            shape = tuple(size if isinstance(size, int) else sizes.setdefault(size, 1) for size in port.shape)
            arrays[port.name] = generate_tensor_data(shape, port.dtype, fill_mode)
    return arrays


def run_module(
    tvmc_package: TVMCPackage,
    device: str = "cpu",
    hostname: str | None = None,
    port: int | str = 9090,
    rpc_key: str | None = None,
    inputs: Mapping[str, np.ndarray] | None = None,
    fill_mode: str = "random",
    benchmark: bool = False,
    repeat: int = 10,
    number: int = 10,
    profile: bool = False,
    end_to_end: bool = False,
    options: Any = None,
) -> TVMCResult:
    """Run the package once, and time it if asked; without `benchmark` the times are empty."""
    if not isinstance(tvmc_package, TVMCPackage):
        what = "This model doesn't seem to have been compiled yet. Try calling tvmc.compile on it before running it."
        raise TVMCException(what if isinstance(tvmc_package, TVMCModel) else "run takes a TVMCPackage")
    if device != "cpu":
        raise TVMCException(f"the device {device!r} is not built; there is cpu")
    if hostname is not None:
        raise TVMCException("remote devices are not built: leave out hostname")
    if profile:
        raise TVMCException("a package has no clock between its kernels: `loopwright run MODEL --profile` has")
    interface = tvmc_package.interface
    arrays = make_inputs_dict(tvmc_package, inputs, fill_mode)
    try:
        sizes = interface.check(arrays)
        given = [arrays[one.name] for one in interface.inputs]
        buffers = interface.buffers(sizes)
        tvmc_package.loaded(*given, *buffers)
    except LoopwrightError as error:
        raise TVMCException(str(error)) from error
    outputs = {f"output_{index}": array for index, array in enumerate(interface.results(buffers, sizes))}
    times: Any = []
    if benchmark:
        timer = time_evaluator(tvmc_package.loaded, number=number, repeat=repeat)
        times = timer(*given, *buffers)
    return TVMCResult(outputs, times)
