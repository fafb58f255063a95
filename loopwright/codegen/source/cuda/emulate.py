"""emulate: kernels run on the CPU: their CUDA text, compiled by a C++ compiler, with threads as fibers.

What an emulated kernel computes is what a GPU computes, as far as the text says; how threads interleave is up to the
emulation, which runs them from barrier to barrier: forwards, backwards, or in a random order. `emulation/` has the
C++ files, `kernel_unit` what is put around the text.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from loopwright.codegen.source.c.compile_c import cached_library, host_flags, run_command
from loopwright.codegen.source.c.function import Launch
from loopwright.codegen.source.cuda.errors import NoCppCompiler
from loopwright.codegen.source.cuda.kernel_writer import DYNAMIC_SHARED, dynamic_declaration
from loopwright.codegen.source.cuda.kernels import CudaKernel, CudaKernels
from loopwright.codegen.source.cuda.matrix_calls import uses_matrices
from loopwright.codegen.source.cuda.tensor_copies import TENSOR_MAP
from loopwright.codegen.source.cuda.warpgroups import emulated_shapes
from loopwright.codegen.source.types import memory_type, value_type
from loopwright.ir import PrimFunc
from loopwright.runtime.dtype import DataType
from loopwright.target import CpuDescription

_COMPILERS: Final = ("c++", "g++", "clang++")
_FLAGS: Final = ("-O1", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing", "-w")
_AXES: Final = [f"{kind}.{axis}" for kind in ("blockIdx", "threadIdx") for axis in "xyz"]
_TYPES: Final = "typedef int int32_t;\ntypedef long long int64_t;"
ORDERS: Final = {"forwards": 0, "backwards": 1, "random": 2}


def launch_symbol(kernel: CudaKernel) -> str:
    """The function that launches a kernel."""
    return f"lw_launch_{kernel.name}"


def launches(kernels: CudaKernels, functions: Mapping[str, PrimFunc]) -> dict[str, Launch]:
    """What functions of the host call to launch each kernel; `functions` are the kernels before they were text."""
    return {
        name: Launch(launch_symbol(kernel), f"int32_t {launch_symbol(kernel)}({_parameters(kernel, functions[name])});")
        for name, kernel in kernels.kernels.items()
    }


def _parameters(kernel: CudaKernel, function: PrimFunc) -> str:
    return ", ".join([*_declarations(kernel), *[f"int64_t extent_{k}" for k in range(len(kernel.launch))]]) or "void"


def _declarations(kernel: CudaKernel) -> list[str]:
    result = []
    for parameter in kernel.parameters:
        dtype = DataType(parameter.dtype)
        if parameter.is_tensor_map:
            result.append(f"const void *{parameter.name}")
        elif not parameter.is_pointer:
            result.append(f"{value_type(dtype)} {parameter.name}")
        else:
            result.append(f"{'' if parameter.is_written else 'const '}{memory_type(dtype)} *{parameter.name}")
    return result


def kernel_unit(kernels: CudaKernels, functions: Mapping[str, PrimFunc]) -> str:
    """The C++ file of the kernels: the text, with a function for each that launches it."""
    dynamic = re.escape(dynamic_declaration(0)).replace("0", r"\d+")
    text = re.sub(dynamic, f"unsigned char *const {DYNAMIC_SHARED} = lw_dynamic_shared();", kernels.text)
    # All threads see one map, which is there while copies are under way.
    text = text.replace(f"const __grid_constant__ {TENSOR_MAP} ", f"const {TENSOR_MAP} &")
    shapes = emulated_shapes(text)
    parts = [
        '#include "emulation.h"',
        *['#include "matrices.h"'] * uses_matrices(kernels.text),
        *shapes,
        '#line 1 "kernels.cu"',
        text,
        "typedef int int32_t;",
        "typedef long long int64_t;",
    ]
    parts += [_launcher(kernel, functions[name], bool(shapes)) for name, kernel in kernels.kernels.items()]
    return "\n".join(parts)


def _launcher(kernel: CudaKernel, function: PrimFunc, has_wgmma: bool) -> str:
    fields = _declarations(kernel)
    names = [parameter.name for parameter in kernel.parameters]
    own = {tag: f"extent_{k}" for k, tag in enumerate(kernel.launch)}
    extents = ", ".join(own.get(tag, "1") for tag in _AXES)
    given = _arguments(kernel)
    # Whether something reads shared memory past what threads see of it: they have to make fences.
    uses_proxy = has_wgmma or any(parameter.is_tensor_map and parameter.is_written for parameter in kernel.parameters)
    call = f'lw_emulate("{kernel.name}", body, &arguments, extents, {kernel.dynamic_shared}, {kernel.stack}, '
    return "\n".join(
        [
            f'extern "C" int32_t {launch_symbol(kernel)}({_parameters(kernel, function)}) {{',
            f"    struct Arguments {{ {' '.join(f'{field};' for field in fields)} }};",
            f"    Arguments arguments = {{{', '.join(names)}}};",
            f"    const long long extents[6] = {{{extents}}};",
            "    auto body = [](void *given) {",
            "        const Arguments *from = (const Arguments *)given;",
            "        (void)from;",
            *_aligned(kernel),
            f"        {kernel.name}({given});",
            "    };",
            f"    return {call}{int(kernel.has_barriers)}, {int(uses_proxy)});",
            "}",
        ]
    )


def _arguments(kernel: CudaKernel) -> str:
    """What a launch gives the kernel."""
    return ", ".join(
        f"*(const {TENSOR_MAP} *)from->{parameter.name}" if parameter.is_tensor_map else f"from->{parameter.name}"
        for parameter in kernel.parameters
    )


def _aligned(kernel: CudaKernel) -> list[str]:
    """Lines that call the kernel without wide accesses where what is given is not aligned for them."""
    if not kernel.alignments:
        return []
    tests = [
        f"(unsigned long long)from->{kernel.parameters[position].name} % {multiple} != 0"
        for position, multiple in kernel.alignments
    ]
    given = _arguments(kernel)
    return [
        f"        if ({' || '.join(tests)}) {{",
        f"            {kernel.unaligned}({given});",
        "            return;",
        "        }",
    ]


def find_cpp_compiler() -> list[str]:
    """The command that compiles C++: `CXX` of the environment, or the first of c++, g++ and clang++."""
    asked = os.environ.get("CXX", "").split()
    if asked:
        if shutil.which(asked[0]) is None:
            raise NoCppCompiler([f"{asked[0]} (CXX of the environment)"])
        return asked
    for name in _COMPILERS:
        if shutil.which(name) is not None:
            return [name]
    raise NoCppCompiler([*_COMPILERS, "CXX of the environment"])


def compile_emulated(unit: str, host: str, cpu: CpuDescription) -> Path:
    """The library of the kernels in `unit` and of the C functions in `host`, which launch them."""
    compiler = find_cpp_compiler()
    folder = files("loopwright.codegen.source.cuda") / "emulation"
    native = files("loopwright.runtime") / "native"
    parts = sorted(folder.iterdir(), key=lambda one: one.name)
    sources = {one.name: one.read_text(encoding="utf-8") for one in parts if one.name.endswith((".h", ".cpp"))}
    sources["tensor_map.h"] = (native / "tensor_map.h").read_text(encoding="utf-8")
    runtime = [text for name, text in sources.items() if name != "emulation.h"]
    flags = [*_FLAGS, *host_flags(cpu)]
    common = [*compiler, *flags, cpu.triple, cpu.name, cpu.llvm_features]

    def write(work: Path, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            (work / name).write_text(text, encoding="utf-8")

    def make_runtime(work: Path, result: Path) -> None:
        write(work, sources)
        run_command([*compiler, *flags, "-c", str(work / "emulation.cpp"), "-o", str(result)])

    def make(work: Path, result: Path) -> None:
        write(work, {**sources, "kernels.cpp": unit, "host.c": host})
        object_file = cached_library("emulation", [*runtime, *common], compiler[0], make_runtime, ".o")
        given = ["-x", "c++", str(work / "kernels.cpp"), "-x", "c", str(work / "host.c"), "-x", "none"]
        run_command([*compiler, *flags, "-shared", *given, str(object_file), "-o", str(result), "-lm"])

    return cached_library("cuda", [unit, host, *sources.values(), *common], compiler[0], make)
