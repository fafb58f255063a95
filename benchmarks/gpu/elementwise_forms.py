"""Which form of an element-wise kernel moves the most bytes: `python benchmarks/gpu/elementwise_forms.py`.

    --json FILE     all figures
    --seconds 20    start no further group after these
    --trial         every kernel once on small arrays, compiled by g++, on a machine without a GPU

The kernels are texts of this file, not of the compiler: what wins here becomes a constant of `autosched/gpu/machine.py`
or an access of the code generator. All forms move 16 bytes with each load and store. They differ in threads a block,
in how many vectors a thread has under way, in which vectors those are, and in what caches are told:

    chunk       a block has neighbouring vectors, its threads' vectors are a block apart
    warp        a warp has neighbouring vectors
    strided     vectors of a thread are a whole grid apart
    one wave    as many blocks as run at once, each walking over chunks
    bulk        a copy through shared memory by the asynchronous copy engine, for the ceiling
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(HERE)]

# PTX of a load and of a store with hints; the empty ones are plain accesses.
LOADS = {
    "cs": "ld.global.cs.v4.u32",
    "no L1": "ld.global.nc.L1::no_allocate.v4.u32",
    "256B": "ld.global.nc.L2::256B.v4.u32",
    "no L1 256B": "ld.global.nc.L1::no_allocate.L2::256B.v4.u32",
}
STORES = {"cs": "st.global.cs.v4.u32", "no L1": "st.global.L1::no_allocate.v4.u32"}
WAVE = 2048  # threads of a multiprocessor


class Form(NamedTuple):
    """How one kernel walks: `several` vectors of each of `threads` threads."""

    walk: str
    threads: int
    several: int
    load: str = ""
    store: str = ""

    @property
    def name(self) -> str:
        hints = [f"ld {self.load}"] * (self.load != "") + [f"st {self.store}"] * (self.store != "")
        return ", ".join([f"{self.walk} {self.threads}×{self.several}", *hints])

    def symbol(self, op: str, bits: int) -> str:
        return f"{op}{bits}_" + "".join(c if c.isalnum() else "_" for c in self.name)


def _forms() -> Iterator[Form]:
    for threads in (128, 256, 512, 1024):
        for several in (1, 2, 4, 8):
            if threads * several <= 4096:
                yield Form("chunk", threads, several)
    yield from [Form("warp", 256, 4), Form("warp", 256, 2)]
    yield from [Form("strided", 256, 2), Form("strided", 256, 4)]
    yield from [Form("one wave", 256, 1), Form("one wave", 256, 4), Form("one wave", 512, 2), Form("one wave", 1024, 4)]
    for several in (1, 4):
        yield from [Form("chunk", 256, several, load, "") for load in LOADS if load]
        yield from [Form("chunk", 256, several, "", store) for store in STORES if store]
        yield from [Form("chunk", 256, several, "cs", "cs"), Form("chunk", 256, several, "no L1", "cs")]
    yield Form("one wave", 256, 4, "cs", "cs")
    yield from [Form("bulk", 32, kilobytes) for kilobytes in (8, 16, 32)]


FORMS = list(_forms())
OPS = ("copy", "relu", "add")
KINDS = [(op, bits) for op in OPS for bits in (32, 16)]
SIZES = (1 << 24, 1 << 28)

PRELUDE = r"""
struct __align__(16) V { unsigned x, y, z, w; };
#ifdef TRIAL
static unsigned encode(float v) { _Float16 h = v; unsigned short r; __builtin_memcpy(&r, &h, 2); return r; }
static float decode(unsigned v) { unsigned short s = v; _Float16 h; __builtin_memcpy(&h, &s, 2); return h; }
static unsigned bits(float v) { unsigned r; __builtin_memcpy(&r, &v, 4); return r; }
static float number(unsigned v) { float r; __builtin_memcpy(&r, &v, 4); return r; }
static float largest(float a, float b) { return a > b ? a : b; }
#else
__device__ unsigned encode(float v) {
    unsigned short r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v)); return r;
}
__device__ float decode(unsigned v) {
    float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((unsigned short)v)); return r;
}
__device__ unsigned bits(float v) { return __float_as_uint(v); }
__device__ float number(unsigned v) { return __uint_as_float(v); }
__device__ float largest(float a, float b) {
    float r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r;
}
#endif
__device__ float add(float a, float b) { return a + b; }
__device__ float relu(float a, float b) { return largest(a, 0.0f); }
#define EACH(name, one) \
    __device__ V name(V a, V b) { \
        V r; r.x = one(a.x, b.x); r.y = one(a.y, b.y); r.z = one(a.z, b.z); r.w = one(a.w, b.w); return r; }
#define OPERATOR(f) \
    __device__ unsigned f##_1_32(unsigned a, unsigned b) { return bits(f(number(a), number(b))); } \
    __device__ unsigned f##_1_16(unsigned a, unsigned b) { \
        unsigned low = encode(f(decode(a & 65535u), decode(b & 65535u))); \
        return low | encode(f(decode(a >> 16), decode(b >> 16))) << 16; } \
    EACH(f##32, f##_1_32) EACH(f##16, f##_1_16)
OPERATOR(add)
OPERATOR(relu)
__device__ V copy32(V a, V b) { return a; }
__device__ V copy16(V a, V b) { return a; }
__device__ V load(const V *p) { return *p; }
__device__ void store(V *p, V v) { *p = v; }
"""

BULK = r"""
extern "C" __global__ void %(symbol)s(const V *x, const V *y, V *out, int n) {
    __shared__ __align__(128) V tile[%(tile)d];
    __shared__ __align__(8) unsigned long long ready;
    unsigned to = (unsigned)__cvta_generic_to_shared(tile), flag = (unsigned)__cvta_generic_to_shared(&ready);
    if (threadIdx.x == 0) {
        long long at = (long long)blockIdx.x * %(tile)d;
        asm volatile("mbarrier.init.shared::cta.b64 [%%0], 1;" : : "r"(flag) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%0], %%1;"
                     : : "r"(flag), "r"(%(bytes)d) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%0], [%%1], %%2, [%%3];"
                     : : "r"(to), "l"(x + at), "r"(%(bytes)d), "r"(flag) : "memory");
        asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%%0], 0; @!p bra W; }"
                     : : "r"(flag) : "memory");
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%%0], [%%1], %%2;"
                     : : "l"(out + at), "r"(to), "r"(%(bytes)d) : "memory");
        asm volatile("cp.async.bulk.commit_group;" : : : "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory");
    }
}
"""

def _accesses() -> str:
    """Functions that load and store with hints."""
    lines = []
    for name, instruction in LOADS.items():
        result = '"=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)'
        text = f'asm volatile("{instruction} {{%0,%1,%2,%3}}, [%4];" : {result} : "l"(p));'
        lines.append(f"__device__ V load{_word(name)}(const V *p) {{ V v; {text} return v; }}")
    for name, instruction in STORES.items():
        given = '"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)'
        text = f'asm volatile("{instruction} [%0], {{%1,%2,%3,%4}};" : : {given});'
        lines.append(f"__device__ void store{_word(name)}(V *p, V v) {{ {text} }}")
    plain = [f"#define load{_word(name)} load" for name in LOADS]
    plain += [f"#define store{_word(name)} store" for name in STORES]
    return "\n".join(["#ifdef TRIAL", *plain, "#else", *lines, "#endif"])


def _word(name: str) -> str:
    return "".join(["_", *[c if c.isalnum() else "_" for c in name]]) if name else ""


def kernel(form: Form, op: str, bits: int) -> str:
    """The text of one kernel; `n` counts vectors, and is a multiple of what a block does."""
    symbol = form.symbol(op, bits)
    if form.walk == "bulk":
        return BULK % {"symbol": symbol, "tile": form.several * 64, "bytes": form.several * 1024}
    several, threads = form.several, form.threads
    chunk = several * threads
    step, first = f"{threads}", f"block * {chunk} + t"
    if form.walk == "warp":
        step, first = "32", f"block * {chunk} + t / 32 * {32 * several} + t % 32"
    if form.walk == "strided":
        step, first = f"(int)gridDim.x * {threads}", f"block * {threads} + t"
    head = "const int block = blockIdx.x;"
    if form.walk == "one wave":
        head = f"for (int block = blockIdx.x; block * {chunk} < n; block += gridDim.x)"
    load, at = f"load{_word(form.load)}", f"i + u * ({step})"
    second = f"{load}(&y[{at}])" if op == "add" else "a[u]"
    loop = f"#pragma unroll\n        for (int u = 0; u < {several}; ++u)"
    return f"""
extern "C" __global__ void __launch_bounds__({threads}) {symbol}(
    const V *__restrict__ x, const V *__restrict__ y, V *__restrict__ out, int n) {{
    const int t = threadIdx.x;
    {head} {{
        const int i = {first};
        V a[{several}], b[{several}];
        {loop} a[u] = {load}(&x[{at}]);
        {loop} b[u] = {second};
        {loop} store{_word(form.store)}(&out[{at}], {op}{bits}(a[u], b[u]));
    }}
}}
"""


class Group(NamedTuple):
    """What is measured together: an operation on arrays of `size` elements of `bits` bits."""

    op: str
    bits: int
    size: int

    @property
    def name(self) -> str:
        return f"{self.op} 2^{self.size.bit_length() - 1} float{self.bits}"

    @property
    def vectors(self) -> int:
        return self.size * self.bits // 128

    @property
    def bytes(self) -> int:
        return self.size * self.bits // 8 * (3 if self.op == "add" else 2)

    def forms(self) -> list[Form]:
        return [form for form in FORMS if form.walk != "bulk" or (self.op == "copy" and self.bits == 32)]

    def blocks(self, form: Form, multiprocessors: int) -> int:
        if form.walk == "bulk":
            return self.vectors // (form.several * 64)
        whole = self.vectors // (form.threads * form.several)
        return min(whole, multiprocessors * (WAVE // form.threads)) if form.walk == "one wave" else whole


def groups(is_trial: bool) -> list[Group]:
    return [Group(op, bits, size) for op, bits in KINDS for size in ((1 << 17,) if is_trial else SIZES)]


def text_of(ops: list[tuple[str, int]], is_trial: bool = False) -> str:
    """One file with all kernels."""
    kernels = []
    for op, bits in ops:
        for form in Group(op, bits, 0).forms():
            if not (is_trial and form.walk == "bulk"):
                kernels.append(kernel(form, op, bits))
    return "\n".join([PRELUDE, _accesses(), *kernels])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to write all figures")
    parser.add_argument("--seconds", type=float, default=20, help="start no further group after these")
    parser.add_argument("--trial", action="store_true", help="every kernel once, compiled by g++")
    options = parser.parse_args()
    import torch

    begin, failures, result = time.monotonic(), 0, []
    launch = _trial() if options.trial else _gpu()
    print(f"compiled by {time.monotonic() - begin:.1f} s", flush=True)
    for group in groups(options.trial):
        if time.monotonic() - begin > options.seconds and not options.trial:
            print(f"not measured: {group.name}")
            continue
        rows, wrong = measured(group, launch, options.trial)
        failures += len(wrong)
        result.append({"group": group.name, "bytes": group.bytes, "seconds": rows, "wrong": wrong})
        print(show(group, rows, wrong), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"torch": torch.__version__, "groups": result}, indent=1))
    print(f"done by {time.monotonic() - begin:.1f} s; {failures} kernels wrong")
    return int(failures > 0)


Launch = Callable[[Form, Group, "list[Any]"], Callable[[], None]]


def measured(group: Group, launch: Launch, is_trial: bool) -> tuple[dict[str, float], list[str]]:
    """Seconds of each form and of torch, and which forms computed something else than torch."""
    import torch
    from rounds import GpuClock, interleaved

    device = "cpu" if is_trial else "cuda"
    dtype = torch.float32 if group.bits == 32 else torch.float16
    x, y = [torch.randn(group.size, device=device).to(dtype) for _ in range(2)]
    out = torch.empty_like(x)
    eager: dict[str, Callable[[int], object]] = {
        "copy": lambda k: out.copy_(x),
        "relu": lambda k: torch.clamp_min(x, 0, out=out),
        "add": lambda k: torch.add(x, y, out=out),
    }
    calls, wrong = {"torch": eager[group.op]}, []
    eager[group.op](0)
    want = out.clone()
    for form in group.forms():
        if is_trial and form.walk == "bulk":
            continue
        out.fill_(float("nan"))
        run = launch(form, group, [x, y, out])
        run()
        if not torch.equal(out, want):
            wrong.append(form.name)
        calls[form.name] = lambda k, run=run: run()
    if is_trial:
        return dict.fromkeys(calls, 1.0), wrong
    return interleaved(calls, 1, True, GpuClock(), 5), wrong


def show(group: Group, rows: dict[str, float], wrong: list[str]) -> str:
    """A table, the fastest first; torch's time / ours."""
    lines = [f"{group.name}: {group.bytes / 1e6:.0f} MB"]
    for name, seconds in sorted(rows.items(), key=lambda row: row[1]):
        bad = "  WRONG" if name in wrong else ""
        rate = group.bytes / seconds / 1e12
        lines.append(f"  {seconds * 1e6:9.2f} µs  {rate:6.3f} TB/s  {rows['torch'] / seconds:6.3f}  {name}{bad}")
    return "\n".join(lines)


def _gpu() -> Launch:
    import torch

    import loopwright as lw
    from loopwright.runtime.nvidia.kernels import Image, KernelModule
    from loopwright.runtime.nvidia.nvrtc import compile_cuda

    properties = torch.cuda.get_device_properties(0)
    arch = f"sm_{properties.major}{properties.minor}"

    def compiled(kind: tuple[str, int]) -> KernelModule:
        return KernelModule([Image.of(compile_cuda(text_of([kind]), arch).code, arch)])

    with ThreadPoolExecutor() as pool:
        modules = dict(zip(KINDS, pool.map(compiled, KINDS), strict=True))

    def launch(form: Form, group: Group, tensors: list[Any]) -> Callable[[], None]:
        given = [lw.nd.from_dlpack(one) for one in tensors]
        function = modules[group.op, group.bits].kernel(form.symbol(group.op, group.bits), "*x *y *out n")
        blocks = group.blocks(form, properties.multi_processor_count)
        return lambda: function(*given, group.vectors, grid=blocks, block=form.threads)

    return launch


def _trial() -> Launch:
    """Threads one after the other: there are no barriers."""
    lines = [
        "struct Axis { int x; };",
        "static Axis threadIdx, blockIdx, blockDim, gridDim;",
        "#define TRIAL",
        "#define __device__ static",
        "#define __global__",
        "#define __launch_bounds__(n)",
        "#define __align__(n) __attribute__((aligned(n)))",
        text_of(KINDS, is_trial=True),
        "typedef void Kernel(const V *, const V *, V *, int);",
        'extern "C" void launch(Kernel *f, const V *x, const V *y, V *out, int n, int g, int b) {',
        "    gridDim.x = g; blockDim.x = b;",
        "    for (blockIdx.x = 0; blockIdx.x < g; ++blockIdx.x)",
        "        for (threadIdx.x = 0; threadIdx.x < b; ++threadIdx.x) f(x, y, out, n);",
        "}",
    ]
    folder = Path(tempfile.mkdtemp(prefix="loopwright-forms-"))
    (folder / "forms.cpp").write_text("\n".join(lines))
    command = ["g++", "-O1", "-w", "-fPIC", "-shared", "-o", str(folder / "forms.so"), str(folder / "forms.cpp")]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(folder / "forms.so"))
    run = library.launch

    def launch(form: Form, group: Group, tensors: list[Any]) -> Callable[[], None]:
        function = ctypes.cast(getattr(library, form.symbol(group.op, group.bits)), ctypes.c_void_p)
        pointers = [ctypes.c_void_p(one.data_ptr()) for one in tensors]
        return lambda: run(function, *pointers, group.vectors, group.blocks(form, 2), form.threads)

    return launch


if __name__ == "__main__":
    sys.exit(main())
