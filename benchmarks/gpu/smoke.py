"""What of the CUDA runtime only a real GPU can show, in less than two minutes: `python benchmarks/gpu/smoke.py`.

Each check prints a line; the exit status is 1 where one failed, 0 otherwise, also where there is no GPU. The last ones
end in processes of their own, because a kernel that fails takes its process's GPU with it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import numpy as np
from cuda_programs import PROGRAMS, vector_add

import loopwright as lw
from loopwright import nd, te
from loopwright.runtime import time_evaluator
from loopwright.runtime.call_errors import DeviceMismatch
from loopwright.runtime.nvidia import driver as cuda_driver
from loopwright.runtime.nvidia.errors import DeviceOutOfMemory, KernelImageRefused, KernelLaunchRefused
from loopwright.runtime.nvidia.kernels import Image, KernelModule
from loopwright.runtime.nvidia.nvrtc import compile_cuda, load_nvrtc
from loopwright.target import Target, describe_gpu

SOURCE = """
extern "C" __global__ void scale(const float* A, float* B, long long n, float factor) {
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step) B[i] = A[i] * factor;
}
extern "C" __global__ void reverse(const float* A, float* B, int n) {
  extern __shared__ float tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = A[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) B[i] = tile[n - 1 - i];
}
extern "C" __global__ void ranks(int* A) {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) A[blockIdx.x] = rank;
}
extern "C" __global__ void wild(float* A) { A[1ull << 40] = 1; }
extern "C" __global__ void slow(float* A, int n) {
  float x = A[threadIdx.x];
  for (int i = 0; i < n; i++) x = x * 1.0000001f + 1.0f;
  A[threadIdx.x] = x;
}
"""
DEV = lw.cuda(0)
CHECKS: list[Callable[[], str]] = []


def check(body: Callable[[], str]) -> Callable[[], str]:
    CHECKS.append(body)
    return body


def arch() -> str:
    return describe_gpu("cuda").arch


def kernels() -> KernelModule:
    return KernelModule([Image.of(compile_cuda(SOURCE, arch()).code, arch())])


def refused(kind: type[BaseException], body: Callable[[], object]) -> str:
    try:
        body()
    except kind as error:
        return str(getattr(error, "problem", error))
    raise AssertionError(f"{kind.__name__} was expected")


@check
def device() -> str:
    found = describe_gpu("cuda")
    assert Target.from_device(DEV).arch == f"sm_{str(DEV.compute_version).replace('.', '')}"
    names = "max_threads_per_block max_shared_memory_per_block warp_size multi_processor_count l2_cache_size_bytes"
    facts = ", ".join([f"{name} {getattr(DEV, name)}" for name in names.split()])
    return f"{found}, CUDA {DEV.api_version}, driver {DEV.driver_version}, {facts}"


@check
def copies() -> str:
    for dtype in ("bool", "int8", "float16", "bfloat16", "float32", "float64", "int64"):
        host = nd.empty((1000, 37), dtype).copyfrom(np.arange(37000).reshape(1000, 37) % 2)
        there = nd.array(host, DEV)
        assert np.array_equal(there.numpy(), host.numpy()), dtype
        assert np.array_equal(there.copyto(DEV).copyto(lw.cpu()).numpy(), host.numpy()), dtype
    assert nd.array(np.zeros((3, 0), "float32"), DEV).numpy().shape == (3, 0)
    data = np.random.default_rng(0).random(1 << 28, "float32")
    start = time.perf_counter()
    big = nd.array(data, DEV)
    half = time.perf_counter()
    back = big.numpy()
    end = time.perf_counter()
    assert np.array_equal(back, data)
    return f"1 GiB: {1.07 / (half - start):.1f} GB/s there, {1.07 / (end - half):.1f} GB/s back"


@check
def launches() -> str:
    module = kernels()
    scale, reverse = module.kernel("scale", "*A *B n factor"), module.kernel("reverse", "*A *B n")
    data = np.random.default_rng(1).random(1 << 20, "float32")
    a, b = nd.array(data, DEV), nd.empty(data.shape, device=DEV)
    scale(a, b, np.int64(data.size), 3.0, grid=256, block=256)
    assert np.array_equal(b.numpy(), data * np.float32(3))
    n = 50000  # 200,000 bytes of dynamic shared memory: above the 48 KiB that come without asking
    few = nd.array(data[:n].copy(), DEV)
    out = nd.empty((n,), device=DEV)
    words = f"figures of scale {scale.figures()}"
    if (DEV.max_dynamic_shared_memory_per_block or 0) >= 4 * n:
        reverse(few, out, n, grid=1, block=1024, shared=4 * n)
        assert np.array_equal(out.numpy(), data[:n][::-1])
        words += ", 200,000 bytes of shared memory"
    if str(DEV.compute_version) >= "9.0":
        ranks = nd.empty((8,), "int32", DEV)
        module.kernel("ranks", "*A")(ranks, grid=8, block=32, cluster=4)
        assert ranks.numpy().tolist() == [0, 1, 2, 3] * 2
        words += ", clusters"
    return words


@check
def launch_cost() -> str:
    """Through C alone, as compiled host code launches."""
    kernel = kernels().kernel("slow", "*A n")
    a = nd.array(np.zeros(1024, "float32"), DEV)
    kernel(a, 0, grid=1, block=32)
    given = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
    launch = ctypes.CFUNCTYPE(ctypes.c_int32, *given)(cuda_driver.symbols()["lw_cuda_launch"])
    sizes = (ctypes.c_int64 * 9)(1, 1, 1, 32, 1, 1)
    pointer, count = ctypes.c_void_p(a.data_ptr()), ctypes.c_int32(0)
    arguments = (ctypes.c_void_p * 2)(ctypes.addressof(pointer), ctypes.addressof(count))
    results = []
    for _ in range(5):
        DEV.sync()
        start = time.perf_counter()
        for _ in range(1000):
            launch(kernel.handle, 0, None, sizes, 0, arguments)
        results.append((time.perf_counter() - start) * 1e3)
        DEV.sync()
    start = time.perf_counter()
    for _ in range(1000):
        kernel(a, 0, grid=1, block=32)
    from_python = (time.perf_counter() - start) * 1e3
    return f"{min(results):.2f} µs a launch through ctypes and C, {from_python:.1f} from Kernel"


@check
def streams_and_events() -> str:
    kernel = kernels().kernel("slow", "*A n")
    a = nd.array(np.zeros(1024, "float32"), DEV)
    timed = time_evaluator(lambda a: kernel(a, 1_000_000, grid=1, block=32), DEV, number=3, repeat=3)(a)
    mine = DEV.create_raw_stream()
    DEV.set_raw_stream(mine)
    start = time.perf_counter()
    kernel(a, 10_000_000, grid=1, block=32)
    queued = time.perf_counter() - start
    DEV.sync(mine)
    done = time.perf_counter() - start
    DEV.set_raw_stream(None)
    DEV.free_raw_stream(mine)
    assert queued < done / 2, "a launch waits for its kernel"
    return f"{timed.mean * 1e3:.2f} ms by events; queued in {queued * 1e6:.0f} µs, done in {done * 1e3:.1f} ms"


@check
def bandwidth_and_cold_l2() -> str:
    kernel = kernels().kernel("scale", "*A *B n factor")
    words = []
    for elements in (1 << 20, 1 << 28):
        a, b = (nd.empty((elements,), device=DEV) for _ in range(2))
        run = lambda a, b: kernel(a, b, np.int64(elements), 2.0, grid=132 * 16, block=512)  # noqa: B023, E731
        warm = time_evaluator(run, DEV, number=20, repeat=5)(a, b).median
        cold = time_evaluator(run, DEV, number=1, repeat=9, f_preproc="l2_cache_flush_cuda")(a, b).median
        words.append(
            f"{8 * elements >> 20} MiB: {8e-12 * elements / warm:.2f} TB/s warm, {8e-12 * elements / cold:.2f} cold"
        )
    return "; ".join(words)


@check
def memory_pool() -> str:
    gc.collect()
    DEV.trim()  # what earlier checks left in the pool
    free, total, *_ = cuda_driver.driver().memory(0)
    half = nd.empty((int(free * 0.6),), "uint8", DEV)
    del half
    gc.collect()
    again = nd.empty((int(free * 0.7),), "uint8", DEV)  # only after the pool has given up what it kept
    message = refused(DeviceOutOfMemory, lambda: nd.empty((int(free * 0.5),), "uint8", DEV))
    del again
    gc.collect()
    start = time.perf_counter()
    for _ in range(1000):
        nd.empty((1 << 20,), "uint8", DEV)
    each = (time.perf_counter() - start) * 1e3
    DEV.trim()
    assert abs(cuda_driver.driver().memory(0)[0] - free) < 1 << 28
    return f"{total >> 20} MiB; {message}; {each:.1f} µs to make and drop a tensor"


@check
def torch_both_ways() -> str:
    try:
        import torch
    except ImportError:
        return "skipped: torch is not installed"
    if not torch.cuda.is_available():
        return "skipped: torch sees no GPU"
    ours = nd.array(np.arange(12, dtype="float32").reshape(3, 4), DEV)
    theirs = torch.from_dlpack(ours)
    assert theirs.data_ptr() == ours.data_ptr() and theirs.is_cuda
    theirs += 1
    assert ours.numpy()[0].tolist() == [1, 2, 3, 4]
    kernel = kernels().kernel("slow", "*A n")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        made = torch.zeros(1024, device="cuda")
        for _ in range(200):
            made = made * 1 + 1
        taken = nd.from_dlpack(made)  # behind torch's stream
        assert taken.data_ptr() == made.data_ptr()
        assert taken.numpy()[0] == 200
        kernel(taken, 5_000_000, grid=1, block=1024)
        shared = torch.from_dlpack(taken)  # torch's stream waits for ours
        first = float(shared.clone()[0])
    assert first > 5e6, first
    del ours
    gc.collect()
    assert theirs.sum().item() == sum(range(12)) + 12
    strided = nd.from_dlpack(torch.arange(12, device="cuda", dtype=torch.int32).reshape(3, 4).T)
    assert strided.numpy().tolist() == np.arange(12).reshape(3, 4).T.tolist()
    half = nd.from_dlpack(torch.ones(3, device="cuda", dtype=torch.bfloat16))
    assert half.dtype == "bfloat16"
    return f"torch {torch.__version__}"


@check
def threads() -> str:
    kernel = kernels().kernel("scale", "*A *B n factor")
    wrong: list[str] = []

    def work(seed: int) -> None:
        stream = DEV.create_raw_stream()
        DEV.set_raw_stream(stream)
        rng = np.random.default_rng(seed)
        for _ in range(50):
            data = rng.random(int(rng.integers(1, 1 << 18)), "float32")
            a, b = nd.array(data, DEV), nd.empty(data.shape, device=DEV)
            kernel(a, b, np.int64(data.size), 2.0, grid=64, block=128)
            if not np.array_equal(b.numpy(), data * np.float32(2)):
                wrong.append(f"thread {seed}: {data.size} elements")
        del a, b
        DEV.free_raw_stream(stream)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong, wrong
    return "8 threads, each with its stream"


@check
def refusals() -> str:
    code = compile_cuda(SOURCE.replace("cluster_ctarank", "ctaid.x"), "sm_80").code
    number = describe_gpu("cuda").number
    scale = kernels().kernel("scale", "*A *B n factor")
    a = nd.empty((4,), device=DEV)
    said = [
        refused(DeviceMismatch, lambda: scale(nd.empty((4,)), a, np.int64(4), 1.0, grid=1, block=32)),
        refused(KernelLaunchRefused, lambda: scale(a, a, np.int64(4), 1.0, grid=1, block=2048)),
        refused(KernelLaunchRefused, lambda: scale(a, a, np.int64(4), 1.0, grid=1, block=32, shared=1 << 20)),
        refused(
            KernelImageRefused, lambda: KernelModule([Image(b"no image", number)]).kernel("k", "")(grid=1, block=1)
        ),
    ]
    if not arch().startswith("sm_8"):
        other = KernelModule([Image.of(code, "sm_80")]).kernel("scale", "*A")
        said.append(refused(KernelImageRefused, lambda: other(a, grid=1, block=1)))
    mixed = KernelModule([Image(b"no image", number), ptx()])
    mixed.kernel("scale", "*A *B n factor")(a, a, np.int64(4), 1.0, grid=1, block=32)
    return " | ".join([*said, f"fallback: {mixed.note()}"])


def ptx() -> Image:
    old = SOURCE.replace("cluster_ctarank", "ctaid.x")
    return Image.of(compile_cuda(old, "sm_75", is_ptx=True).code, "sm_75", is_ptx=True)


@check
def failing_kernels() -> str:
    program = (
        "import runpy, sys, numpy\n"
        "smoke = runpy.run_path(sys.argv[1], run_name='smoke')\n"
        "a = smoke['nd'].array(numpy.zeros(4, 'float32'), smoke['DEV'])\n"
        "try:\n"
        "    smoke['kernels']().kernel('wild', '*A')(a, grid=1, block=1)\n"
        "    smoke['DEV'].sync()\n"
        "except smoke['lw'].LoopwrightError as error:\n"
        "    print(type(error).__name__, error.problem, '|', error.why, flush=True)\n"
    )
    said = []
    for checked in ("", "1"):
        environment = {**os.environ, "LOOPWRIGHT_CUDA_CHECK": checked}
        command = [sys.executable, "-c", program, __file__]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.stdout.startswith("KernelFailed") and "wild" in done.stdout, done.stdout + done.stderr[-2000:]
        said.append(done.stdout.strip())
    return " | ".join(said)


@check
def generated_programs() -> str:
    """Programs of tutorials, built for this GPU; each against numpy."""
    words, wrong = [], []
    for name, make in PROGRAMS.items():
        inputs, args, given, wanted = make()
        module = lw.build(inputs, args, target="cuda")
        tensors = [nd.array(array, DEV) if isinstance(array, np.ndarray) else array for array in given]
        outputs = [nd.array(np.full_like(one, -1), DEV) for one in wanted]
        try:
            start = time.perf_counter()
            module(*tensors, *outputs)
            first = time.perf_counter() - start
            for output, one in zip(outputs, wanted):
                rtol = 2e-3 if one.dtype == "float16" else 2e-5
                np.testing.assert_allclose(output.numpy(), one, rtol=rtol, atol=1e-5)
            words.append(f"{name:26} right     first call {first * 1e3:7.1f} ms")
        except Exception as error:
            wrong.append(f"{name:26} WRONG     {type(error).__name__}: {str(error).strip().splitlines()[0]}")
    table = "\n     ".join(["", *words, *wrong])
    assert not wrong, table
    return table


@check
def generated_speed() -> str:
    """Vector add and copy of 2^26 floats, a product 1024³ by the default binding, and a launch from Python."""
    words = []
    n = 1 << 26
    a, b, c = (nd.array(np.random.default_rng(k).random(n, "float32"), DEV) for k in range(3))
    schedule, args = vector_add()
    add = lw.build(schedule, args, target="cuda")
    add(a, b, c)
    assert np.array_equal(c.numpy(), a.numpy() + b.numpy())
    seconds = add.time_evaluator(add.entry_name, DEV, number=10, repeat=5)(a, b, c).median
    words.append(f"vector add, 2^26 floats     {12e-9 * n / seconds:9.1f} GB/s")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i], name="B")
    copy = lw.build([A, B], target="cuda")
    copy(a, c)
    assert np.array_equal(c.numpy(), a.numpy())
    seconds = copy.time_evaluator(copy.entry_name, DEV, number=10, repeat=5)(a, c).median
    words.append(f"copy, 2^26 floats           {8e-9 * n / seconds:9.1f} GB/s")
    m = 1024
    A, B = te.placeholder((m, m), name="A"), te.placeholder((m, m), name="B")
    k = te.reduce_axis((0, m), "k")
    C = te.compute((m, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    product = lw.build([A, B, C], target="cuda")
    x, y = (np.random.default_rng(k).random((m, m), "float32") for k in range(2))
    there = [nd.array(array, DEV) for array in (x, y, np.zeros_like(x))]
    product(*there)
    np.testing.assert_allclose(there[2].numpy(), x @ y, rtol=1e-4)
    seconds = product.time_evaluator(product.entry_name, DEV, number=5, repeat=3)(*there).median
    words.append(f"product 1024³, not scheduled {2e-9 * m**3 / seconds:8.1f} GFLOP/s")
    few = [nd.empty((256,), device=DEV) for _ in range(3)]
    f = add[add.entry_name]
    results = []
    for _ in range(5):
        DEV.sync()
        start = time.perf_counter()
        for _ in range(1000):
            f(*few)
        results.append((time.perf_counter() - start) * 1e3)
        DEV.sync()
    words.append(f"a call from Python, 3 tensors {min(results):7.2f} µs")
    return "\n     ".join(["", *words])


def main() -> int:
    if not DEV.exist:
        print(f"no GPU: {cuda_driver.why_unusable(0)}")
        return 0
    print(f"NVRTC {load_nvrtc().version}, {load_nvrtc().path}")
    failures = 0
    for body in CHECKS:
        start = time.perf_counter()
        try:
            result, word = body(), "ok  "
        except BaseException:
            result, word, failures = traceback.format_exc(), "FAIL", failures + 1
        print(f"{word} {body.__name__} ({time.perf_counter() - start:.1f} s): {result}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
