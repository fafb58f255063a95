"""What users do wrong on a real GPU, and what becomes of it: `python benchmarks/gpu/bad_input.py`.

Each case runs in a process of its own and prints the first line of its error, and whether the next correct call works.
The exit status is 1 where an error is not one of ours, none came, or the next call is wrong. `--pretend` uses the
driver of our tests, whose kernels compute nothing, to try this file without a GPU.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "runtime")]

import numpy as np

import loopwright as lw
from loopwright import nd, te
from loopwright.runtime.nvidia import driver as cuda_driver

DEV = lw.cuda(0)
PRETENDS = "LOOPWRIGHT_PRETEND" in os.environ
MANY = 1 << 16 if PRETENDS else 1 << 24
PATIENCE = 60  # seconds for a case
CASES: dict[str, tuple[Callable[[], object], str]] = {}

Function = Callable[..., None]


def case(expected: str) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """`expected` is the error's class; "" where there must be none; "lost" where the process loses the GPU."""

    def add(body: Callable[[], object]) -> Callable[[], object]:
        CASES[body.__name__] = (body, expected)
        return body

    return add


def add_function(target: str = "cuda") -> Function:
    n = te.var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    return lw.build([A, B, te.compute((n,), lambda i: A[i] + B[i], name="C")], target=target, autosched=True)


def correct_call() -> str:
    """Whether a correct call works, in a word."""
    a, b = (np.random.default_rng(k).random(100_003, "float32") for k in range(2))
    c = nd.empty(a.shape, device=DEV)
    add_function()(nd.array(a, DEV), nd.array(b, DEV), c)
    right = np.array_equal(c.numpy(), a + b)
    return "works" if right or PRETENDS else "IS WRONG"


class Skipped(Exception):
    """There is nothing to try this with."""


def torch_on_the_gpu() -> Any:
    import torch

    if PRETENDS or not torch.cuda.is_available():
        raise Skipped("torch sees no GPU")
    return torch


def ones(n: int) -> nd.NDArray:
    return nd.array(np.ones(n, "float32"), DEV)


@case("DeviceOutOfMemory")
def tensor_larger_than_the_memory() -> None:
    nd.empty((2 * cuda_driver.driver().memory(0)[1],), "uint8", DEV)


@case("DeviceOutOfMemory")
def temporary_larger_than_the_memory() -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    T = te.compute((n, 1 << 20), lambda i, j: A[i] + j.astype("float32"), name="T")
    k = te.reduce_axis((0, 1 << 20), "k")
    C = te.compute((n,), lambda i: te.sum(T[i, k], axis=k), name="C")
    schedule = te.create_schedule(C.op)
    for stage in (T, C):
        block, thread = schedule[stage].split(stage.op.axis[0], factor=32)
        schedule[stage].bind(block, te.thread_axis("blockIdx.x"))
        schedule[stage].bind(thread, te.thread_axis("threadIdx.x"))
    function = lw.build(schedule, [A, C], target="cuda")
    function(ones(1 << 17), nd.empty((1 << 17,), device=DEV))


@case("DeviceOutOfMemory")
def many_tensors_until_memory_is_out() -> None:
    size = cuda_driver.driver().memory(0)[1] // 10
    kept = []
    for _ in range(12):
        kept.append(nd.empty((size,), "uint8", DEV))


@case("DeviceMismatch")
def array_of_numpy() -> None:
    add_function()(np.ones(8, "float32"), ones(8), ones(8))


@case("DeviceMismatch")
def tensor_of_the_host() -> None:
    add_function()(ones(8), ones(8), nd.empty((8,)))


@case("DeviceMismatch")
def gpu_tensor_for_a_function_of_the_cpu() -> None:
    add_function("llvm")(ones(8), ones(8), ones(8))


@case("DeviceMismatch")
def tensor_of_torch_on_the_host() -> None:
    import torch

    add_function()(torch.ones(8), ones(8), ones(8))


@case("")
def a_target_that_is_older_than_the_gpu() -> None:
    """Its machine code does not run here; PTX of the same architecture does, which the driver compiles."""
    if PRETENDS:
        raise Skipped("the driver of our tests compiles no PTX")
    out = ones(8)
    add_function("cuda -arch=sm_75")(ones(8), ones(8), out)
    assert np.array_equal(out.numpy(), np.full(8, 2, "float32"))


@case("KernelImageRefused")
def machine_code_of_another_architecture() -> None:
    from loopwright.runtime.nvidia.kernels import Image, KernelModule
    from loopwright.runtime.nvidia.nvrtc import compile_cuda
    from loopwright.target import describe_gpu

    arch = "sm_80" if describe_gpu("cuda").number // 10 != 8 else "sm_75"
    image = Image.of(compile_cuda('extern "C" __global__ void fill(float* A) { A[0] = 1; }', arch).code, arch)
    KernelModule([image]).kernel("fill", "*A")(ones(8), grid=1, block=1)


@case("KernelImageRefused")
def machine_code_of_a_newer_architecture() -> None:
    add_function("cuda -arch=sm_100")(ones(8), ones(8), ones(8))


@case("")
def no_elements() -> None:
    out = nd.empty((0,), device=DEV)
    add_function()(nd.empty((0,), device=DEV), nd.empty((0,), device=DEV), out)
    assert out.numpy().shape == (0,)


@case("KernelLaunchRefused")
def grid_beyond_the_limit_of_y() -> None:
    n = te.var("n")
    A = te.placeholder((n, 32), name="A")
    B = te.compute((n, 32), lambda i, j: A[i, j] + 1.0, name="B")
    schedule = te.create_schedule(B.op)
    schedule[B].bind(B.op.axis[0], te.thread_axis("blockIdx.y"))
    schedule[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))
    function = lw.build(schedule, [A, B], target="cuda")
    function(*[nd.empty((65535, 32), device=DEV) for _ in range(2)])
    function(*[nd.empty((65536, 32), device=DEV) for _ in range(2)])


@case("LoopwrightError")
def too_many_threads() -> None:
    A = te.placeholder((4096,), name="A")
    B = te.compute((4096,), lambda i: A[i] + 1.0, name="B")
    schedule = te.create_schedule(B.op)
    schedule[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    lw.build(schedule, [A, B], target="cuda")(ones(4096), ones(4096))


@case("LoopwrightError")
def too_much_shared_memory() -> None:
    A = te.placeholder((1 << 16,), name="A")
    B = te.compute((1 << 16,), lambda i: A[i] + 1.0, name="B")
    schedule = te.create_schedule(B.op)
    block, thread = schedule[B].split(B.op.axis[0], factor=1 << 16)
    thread, _ = schedule[B].split(thread, nparts=256)
    schedule[B].bind(block, te.thread_axis("blockIdx.x"))
    schedule[B].bind(thread, te.thread_axis("threadIdx.x"))
    staged = schedule.cache_read(A, "shared", [B])
    schedule[staged].compute_at(schedule[B], block)
    lw.build(schedule, [A, B], target="cuda")(ones(1 << 16), ones(1 << 16))


@case("LoopwrightError")
def wrong_type() -> None:
    add_function()(nd.array(np.ones(8), DEV), ones(8), ones(8))


@case("LoopwrightError")
def wrong_length() -> None:
    add_function()(ones(8), ones(9), ones(8))


@case("LoopwrightError")
def too_few_arguments() -> None:
    add_function()(ones(8), ones(8))


@case("LoopwrightError")
def transposed_tensor() -> None:
    torch = torch_on_the_gpu()
    A = te.placeholder((32, 16), name="A")
    function = lw.build([A, te.compute((32, 16), lambda i, j: A[i, j], name="B")], target="cuda", autosched=True)
    out = torch.zeros(32, 16, device="cuda")
    function(torch.ones(16, 32, device="cuda").T, out)


@case("")
def tensors_that_begin_anywhere() -> None:
    torch = torch_on_the_gpu()
    data = torch.arange(4099, device="cuda", dtype=torch.float32)
    out = torch.zeros(4099, device="cuda")
    function = add_function()
    for start in range(5):
        function(data[start:4000], data[start:4000], out[start:4000])
        assert torch.equal(out[start:4000], 2 * data[start:4000]), start


@case("")
def inputs_dropped_right_after_the_call() -> None:
    function, n = add_function(), MANY
    wanted = np.full(n, 2, "float32")
    for _ in range(5):
        a, b, c = ones(n), ones(n), nd.empty((n,), device=DEV)
        for _ in range(20):
            function(a, b, c)
        del a, b
        gc.collect()
        wild = [nd.array(np.full(n, 7, "float32"), DEV) for _ in range(2)]  # likely the same memory
        assert PRETENDS or np.array_equal(c.numpy(), wanted)
        del wild


@case("")
def tensors_of_torch_dropped_right_after_the_call() -> None:
    torch = torch_on_the_gpu()
    function, n = add_function(), MANY
    for _ in range(5):
        a, b = (torch.ones(n, device="cuda") for _ in range(2))
        c = nd.empty((n,), device=DEV)
        for _ in range(20):
            function(a, b, c)
        del a, b
        wild = [torch.full((n,), 7.0, device="cuda") for _ in range(2)]
        assert torch.equal(torch.from_dlpack(c), torch.full((n,), 2.0, device="cuda"))
        del wild


@case("")
def a_function_dropped_right_after_the_call() -> None:
    c = nd.empty((MANY,), device=DEV)
    add_function()(ones(MANY), ones(MANY), c)
    gc.collect()
    assert PRETENDS or c.numpy()[-1] == 2


@case("")
def a_process_that_ends_with_work_under_way() -> None:
    function = add_function()
    a, c = ones(4 * MANY), nd.empty((4 * MANY,), device=DEV)
    for _ in range(50):
        function(a, a, c)


@case("lost")
def a_kernel_that_writes_anywhere() -> None:
    """The error, then what a correct call says after it."""
    from loopwright.runtime.nvidia.kernels import Image, KernelModule
    from loopwright.runtime.nvidia.nvrtc import compile_cuda
    from loopwright.target import describe_gpu

    arch = describe_gpu("cuda").arch
    image = Image.of(compile_cuda('extern "C" __global__ void wild(float* A) { A[1ull << 40] = 1; }', arch).code, arch)
    KernelModule([image]).kernel("wild", "*A")(ones(8), grid=1, block=1)
    DEV.sync()


@case("")
def a_child_of_fork() -> None:
    correct_call()
    child = os.fork()
    if child == 0:
        try:
            print("in the child:", correct_call(), flush=True)
        except Exception as error:
            print(f"in the child: {_line(error)}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"[:230]


def _one(name: str) -> int:
    body, expected = CASES[name]
    try:
        body()
        said, is_right = "no error", expected == "" or (PRETENDS and expected == "lost")
    except Skipped as error:
        print(f"skipped: {error}")
        return 0
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        said = _line(error)
        is_right = (expected or "none") in kinds or (expected == "lost" and isinstance(error, lw.LoopwrightError))
        del error
    gc.collect()
    print(said, flush=True)
    try:
        after = correct_call()
    except Exception as error:
        after = f"{'says' if expected == 'lost' else 'FAILS'} {_line(error)}"
        is_right = is_right and expected == "lost"
    print(f"the next correct call {after}", flush=True)
    return 0 if is_right and "WRONG" not in after else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--pretend", action="store_true", help="with the driver of our tests")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        return _one(options.case)
    environment = dict(os.environ)
    if options.pretend:
        from fake_gpu import fake_driver

        environment |= {"LOOPWRIGHT_CUDA_DRIVER": fake_driver(), "LOOPWRIGHT_PRETEND": "1"}
    elif not DEV.exist:
        print(f"no GPU: {cuda_driver.why_unusable(0)}")
        return 0
    names = [name for name in CASES if options.only in name]
    alone = [name for name in names if "memory" in name]  # they take what others need
    failures = sum(_show(name, environment) for name in alone)
    with ThreadPoolExecutor(min(6, os.cpu_count() or 1)) as pool:
        failures += sum(pool.map(lambda name: _show(name, environment), [name for name in names if name not in alone]))
    print(f"{failures} of the cases are bad")
    return int(failures > 0)


def _show(name: str, environment: dict[str, str]) -> bool:
    """Run a case and print what came of it; whether it is bad."""
    start = time.perf_counter()
    command = [sys.executable, __file__, "--case", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
        said, code = done.stdout.strip(), done.returncode
        if code not in (0, 1) or not said:
            said += f"\nexit status {code}: {done.stderr.strip()[-300:]}"
    except subprocess.TimeoutExpired:
        said, code = f"not done after {PATIENCE} seconds", 1
    lines = said.replace("\n", "\n      ")
    print(f"{'BAD ' if code else 'good'}  {name} ({time.perf_counter() - start:.1f} s)\n      {lines}", flush=True)
    return code != 0


if __name__ == "__main__":
    sys.exit(main())
