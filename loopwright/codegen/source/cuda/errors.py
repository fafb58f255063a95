"""What can go wrong on the CUDA target, while a source is made or compiled, or without a GPU."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright import ir
from loopwright.runtime.errors import LoopwrightError


class KernelTooLarge(LoopwrightError, ValueError):
    """A kernel has more threads a block, more shared memory, a larger grid or more arguments than its target has.

    A block has at most 1,024 threads. Of scope "shared" it has 48 KiB on every GPU, of "shared.dyn" up to 227 KiB,
    depending on the architecture, which the target names: `cuda -arch=sm_90`. A grid has at most 65,535 blocks along y
    and z, and 2³¹ - 1 along x.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(4096)):
            for i in T.thread_binding(4096, thread="threadIdx.x"):
                A[i] = T.float32(1)

        loopwright.build(f, target="cuda")
    """

    code = "LW0660"

    def __init__(self, function: ir.PrimFunc, kernel: str, need: str, limit: str, hint: str) -> None:
        super().__init__(
            f"{kernel} {need}, and the target has {limit}",
            at=function.body,
            hint=hint,
            fields={"kernel": kernel, "need": need, "limit": limit},
        )


class NoCppCompiler(LoopwrightError, RuntimeError):
    """A function of a module for target "cuda -model=emulated" was called, and there is no C++ compiler.

    The compiler is `CXX` of the environment, or else the first of c++, g++ and clang++ on PATH.

    For example:

        # needs a process of its own
        import os
        import numpy
        import loopwright
        from loopwright import te

        os.environ["CXX"] = "no-such-compiler"
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
        module = loopwright.build([A, B], target="cuda -model=emulated")
        module(numpy.zeros(4, "float32"), numpy.zeros(4, "float32"))
    """

    code = "LW0663"

    def __init__(self, looked_for: Sequence[str]) -> None:
        super().__init__(
            f"there is no C++ compiler to emulate kernels with: looked for {', '.join(looked_for)}",
            hint="install g++ or clang++, or set the environment variable CXX to the command of a C++ compiler; "
            "get_source('cuda') shows the kernels without one",
            fields={"looked_for": list(looked_for)},
        )


class UnknownThreadOrder(LoopwrightError, ValueError):
    """Threads of an emulated kernel run "forwards", "backwards" or "random" between two barriers.

    For example:

        import loopwright
        from loopwright import te

        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
        loopwright.build([A, B], target="cuda -model=emulated").set_thread_order("sideways")
    """

    code = "LW0664"

    def __init__(self, order: object, known: Sequence[str]) -> None:
        super().__init__(
            f"there is no thread order {order!r}",
            hint=f"it is one of {', '.join(known)}",
            fields={"order": str(order), "known": list(known)},
        )


class NeedsNewerGpu(LoopwrightError, ValueError):
    """A kernel calls an intrinsic that GPUs of the target's architecture do not have.

    Mbarriers, bulk copies and barriers of some warps are those of sm_90, copies of groups those of sm_80; wgmma is that
    of sm_90a alone, and no later GPU has it. A target of several architectures has what the oldest of them has, and
    `cuda` alone, where there is no GPU, is an sm_80.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(64)):
            for i in T.thread_binding(64, thread="threadIdx.x"):
                T.evaluate(T.role_barrier(1, 64))
                A[i] = T.float32(1)

        loopwright.build(f, target="cuda -arch=sm_80")
    """

    code = "LW0665"

    def __init__(self, call: ir.Call, name: str, needed: str, arch: str) -> None:
        gpu = "the GPU with its letter, which it is for alone, as in" if needed.endswith("a") else "a newer GPU, as in"
        super().__init__(
            f"{name} needs {needed}, and the target is {arch}",
            at=call,
            hint=f"name {gpu} -arch={needed}, or write the kernel without {name}",
            fields={"intrinsic": name, "needs": needed, "arch": arch},
        )


class NoSuchInstruction(LoopwrightError, ValueError):
    """A call of an instruction has a shape, a type, a size or a number of arguments that no GPU has.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(64)):
            S = T.alloc_buffer(64, scope="shared")
            for i in T.thread_binding(64, thread="threadIdx.x"):
                T.evaluate(T.ptx_cp_async("float32", S.data, i, A.data, i, 5))

        loopwright.build(f, target="cuda -arch=sm_80")
    """

    code = "LW0666"

    def __init__(self, call: ir.Call, what: str) -> None:
        super().__init__(what, at=call, fields={"instruction": call.op.name.removeprefix("tir.")})
