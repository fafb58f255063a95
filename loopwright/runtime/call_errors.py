"""What can be wrong with a call of a compiled function: one error class per check the function makes on entry.

Compiled code cannot build Python objects. It names a class and sends one text: the problem, the reason and the
hint, joined by the unit separator (`"\\x1f"`); a missing part is empty or left out:

    TVMFFIErrorSetRaisedFromCStr("ShapeMismatch", "main: argument B has …\\x1fit was built for …\\x1ftranspose it")

`register` tells tvm_ffi the names, so that the text arrives in Python as one of these classes.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from loopwright.runtime.errors import LoopwrightError

SEPARATOR: Final = "\x1f"


class CallError(LoopwrightError):
    """A call of a compiled function was refused before the function touched any argument.

    Every check is made on entry, so a refused call has changed nothing. The subclasses say which check it was.
    The example raises `ShapeMismatch`.

    For example:

        import numpy as np
        import loopwright
        from loopwright import te

        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + 1, name="B")
        loopwright.build([A, B])(np.zeros(5, "float32"), np.zeros(5, "float32"))
    """

    code = "LW0109"

    def __init__(self, message: str = "") -> None:
        problem, why, hint = (message.split(SEPARATOR) + ["", ""])[:3]
        super().__init__(problem, why=why or None, hint=hint or None)

    def __reduce__(self) -> tuple[type[CallError], tuple[str]]:
        return type(self), (SEPARATOR.join((self.problem, self.why or "", self.hint or "")),)


class ArgumentCountMismatch(CallError, TypeError):
    """The call has more or fewer arguments than the function takes.

    Outputs are arguments too: a function built from `[A, B, C]` is called with three tensors and writes the last.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4, 8), "float32")):
            A[0, 0] = T.float32(1)

        loopwright.build(f)()
    """

    code = "LW0110"


class ArgumentKindMismatch(CallError, TypeError):
    """An argument is not of the kind the function takes: a tensor, an integer, a float or a pointer.

    A tensor is anything that speaks DLPack: `nd.array`, a numpy array, a torch tensor. Lists are not tensors.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4, 8), "float32")):
            A[0, 0] = T.float32(1)

        loopwright.build(f)("a text")
    """

    code = "LW0111"


class RankMismatch(CallError, ValueError):
    """A tensor has another number of axes than the function was built for.

    For example:

        import numpy as np
        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4, 8), "float32")):
            A[0, 0] = T.float32(1)

        loopwright.build(f)(np.zeros(32, "float32"))
    """

    code = "LW0112"


class ShapeMismatch(CallError, ValueError):
    """An axis of a tensor has another length than the function was built for.

    Where a length is symbolic, its value comes from the first argument that has it, and the others must agree.

    For example:

        import numpy as np
        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4, 8), "float32")):
            A[0, 0] = T.float32(1)

        loopwright.build(f)(np.zeros((8, 4), "float32"))
    """

    code = "LW0113"


class DtypeMismatch(CallError, TypeError):
    """A tensor has another element type than the function was built for; nothing is converted at a call.

    For example:

        import numpy as np
        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4, 8), "float32")):
            A[0, 0] = T.float32(1)

        loopwright.build(f)(np.zeros((4, 8), "float64"))
    """

    code = "LW0114"


class StrideMismatch(CallError, ValueError):
    """A tensor's elements do not lie in memory the way the function was built for, usually row-major without gaps.

    For example:

        import numpy as np
        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4, 8), "float32")):
            A[0, 0] = T.float32(1)

        loopwright.build(f)(np.zeros((8, 4), "float32").T)
    """

    code = "LW0115"


class DeviceMismatch(CallError, ValueError):
    """A tensor lies on another device than the one the function runs on.

    For example:

        import ctypes
        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4, 8), "float32")):
            A[0, 0] = T.float32(1)

        tensor = loopwright.nd.empty((4, 8))
        device = ctypes.c_int32.from_address(tensor.__chandle__() + 24 + 8)  # of its DLTensor
        device.value = 2  # as a tensor of a GPU has it
        loopwright.build(f)(tensor)
    """

    code = "LW0116"


class OverlappingArguments(CallError, ValueError):
    """An argument that the function writes shares memory with another argument, or two of its own elements do.

    Compiled code assumes that what it writes is reached through one argument and one index only; with shared memory
    the result would depend on the order of loads and stores. A view with a stride of 0, or with windows that overlap,
    can be read but not written.

    For example:

        import numpy as np
        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            B[0] = A[1]

        a = np.zeros(6, "float32")
        loopwright.build(f)(a[:4], a[2:])
    """

    code = "LW0117"


class MisalignedArgument(CallError, ValueError):
    """A tensor's first element lies at an address that is no multiple of the alignment the function was built for.

    For example:

        import numpy as np
        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4, 8), "float32")):
            A[0, 0] = T.float32(1)

        loopwright.build(f)(np.zeros(129, "uint8")[1:].view("float32").reshape(4, 8))
    """

    code = "LW0118"


class NullArgument(CallError, ValueError):
    """A tensor that has elements points to no memory, or an argument is None where a tensor or a pointer is needed.

    For example:

        import ctypes
        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4, 8), "float32")):
            A[0, 0] = T.float32(1)

        tensor = loopwright.nd.empty((4, 8))
        ctypes.c_void_p.from_address(tensor.__chandle__() + 24).value = None  # the data of its DLTensor
        loopwright.build(f)(tensor)
    """

    code = "LW0119"


class AssertionFailed(CallError, AssertionError):
    """An assertion written in the program did not hold at run time.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(n: T.int32):
            assert n > 0, "n is positive"
            T.evaluate(0)

        loopwright.build(f)(-1)
    """

    code = "LW0120"


class RecursionTooDeep(CallError, RecursionError):
    """A function of a module called itself, directly or by way of others, deeper than its stack goes.

    Some 4,000 calls may stand in one another, fewer where the functions are long or keep arrays on the stack. A stack
    that overflows would end the process.

    For example:

        import loopwright
        from loopwright.script import ir as I, tir as T

        @I.ir_module
        class Module:
            @T.prim_func
            def sum(n: T.int32) -> T.int32:
                if n <= 0:
                    T.ret(0)
                T.ret(n + Module.sum(n - 1))

        loopwright.build(Module)["sum"](1_000_000)
    """

    code = "LW0157"


class SizesDoNotFit(CallError, ValueError):
    """The sizes of the inputs of a model or a function are open, and those of this call do not fit together.

    A model with open sizes is compiled once for all of them, and so is a function of tensors. What operators need of
    sizes (two of them equal, one a multiple of another) is checked in the call, before anything runs; of sizes that
    values decide, as soon as they are known. The message names the inputs, or the node whose result it is, and the
    node that needs it.

    For example:

        import numpy as np
        from loopwright import relay, te

        a = relay.var("a", shape=(te.size_var("n"), 4))
        b = relay.var("b", shape=(te.size_var("m"), 4))
        model = relay.build(relay.IRModule.from_expr(relay.Function([a, b], a + b)))
        model(np.zeros((2, 4), "float32"), np.zeros((3, 4), "float32"))
    """

    code = "LW0150"


class IndexOutOfRange(CallError, IndexError):
    """The program reads or writes an element that a buffer does not have.

    Accesses whose indices follow from loops and sizes are proved when a program is built (LW0821). An index that comes
    from data or from a scalar argument, and any that could not be proved, is checked when the program runs, before the
    access. Outputs may have been written in part by then.

    In models, operators that find elements by indices (gather, scatter, embeddings) have all of them looked at before
    anything is touched; the message names the operator, the tensors, the index and the size.

    For example:

        import numpy as np
        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def pick(A: T.Buffer((8,), "float32"), at: T.Buffer((2,), "int32"), B: T.Buffer((2,), "float32")):
            for i in range(2):
                B[i] = A[at[i]]

        loopwright.build(pick)(np.zeros(8, "float32"), np.array([3, 8], "int32"), np.zeros(2, "float32"))
    """

    code = "LW0151"


class WorkspaceExhausted(CallError, MemoryError):
    """There was no memory for a temporary buffer of the function.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def hash_backwards(A: T.Buffer((1,), "int64"), n: T.int64):
            tmp = T.alloc_buffer((n,), "int64")
            for i in range(n):
                tmp[i] = A[0] + i
            for i in range(n):
                A[0] = A[0] * T.int64(3) + tmp[n - 1 - i]

        loopwright.build(hash_backwards)(loopwright.nd.empty((1,), "int64"), 1 << 58)
    """

    code = "LW0121"


class KernelStopped(CallError, RuntimeError):
    """A kernel did not run to its end: a condition that it checks does not hold, or its threads wait for ever.

    What it was to write may have been written in part. Emulated kernels (`cuda -model=emulated`) say which thread it
    was; barriers that not all threads of a block reach, and launches beyond the limits of a GPU, are found there too.

    For example:

        import numpy
        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(32), n: T.int32):
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                assert tx < n, "n is too small"
                A[tx] = T.float32(1)

        loopwright.build(f, target="cuda -model=emulated")(numpy.zeros(32, "float32"), 4)
    """

    code = "LW0172"


class ReadOnlyArgument(CallError, ValueError):
    """An array that must not be written was given for an argument that the function writes, or may write.

    A program that stores into its own constants (`T.allocate_const`) is refused the same way when it is built.

    For example:

        import numpy as np
        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4, 8), "float32")):
            A[0, 0] = T.float32(1)

        a = np.zeros((4, 8), "float32")
        a.flags.writeable = False
        loopwright.build(f)(a)
    """

    code = "LW0122"


class ResultOutOfRange(CallError, OverflowError):
    """A function returned a number that the result of a call cannot hold: integers there have 64 bits and a sign.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(n: T.int64) -> T.uint64:
            T.evaluate(T.ret(T.cast(n, "uint64")))

        loopwright.build(f)(-1)
    """

    code = "LW0128"


class UnregisteredFunction(CallError, ValueError):
    """Compiled code called a packed function that nobody has registered under that name.

    The name is looked up when the call first runs, not when the program is built: register the function before that.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            T.evaluate(T.call_packed("nobody.registered.this", A))

        loopwright.build(f)(loopwright.nd.empty((4,)))
    """

    code = "LW0130"


class PackedResultMismatch(CallError, TypeError):
    """A packed function returned something that the compiled code calling it cannot use as it does.

    A call whose result is used must give a number (an integer where the call's type is one) or a pointer. A function
    without a result counts as 0. Where the result is not used, anything may come back.

    For example:

        import loopwright
        from loopwright.script import tir as T

        loopwright.runtime.register_func("give.text", lambda: "three")

        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            A[0] = T.call_packed("give.text")

        loopwright.build(f)(loopwright.nd.empty((4,), "int32"))
    """

    code = "LW0131"


KINDS: Final[dict[str, type[CallError]]] = {
    kind.__name__: kind
    for kind in (
        ArgumentCountMismatch,
        ArgumentKindMismatch,
        RankMismatch,
        ShapeMismatch,
        DtypeMismatch,
        StrideMismatch,
        DeviceMismatch,
        OverlappingArguments,
        MisalignedArgument,
        NullArgument,
        AssertionFailed,
        RecursionTooDeep,
        SizesDoNotFit,
        IndexOutOfRange,
        WorkspaceExhausted,
        KernelStopped,
        ReadOnlyArgument,
        ResultOutOfRange,
        UnregisteredFunction,
        PackedResultMismatch,
    )
}


def register(tvm_ffi: ModuleType) -> None:
    """Tell tvm_ffi which class each name stands for."""
    for name, kind in KINDS.items():
        tvm_ffi.register_error(name, kind)
    tvm_ffi.register_error("LoopwrightError", LoopwrightError)
