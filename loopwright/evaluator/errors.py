"""What can go wrong while a program is evaluated; each error names the place and the iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.ir import Buffer, Expr, Node, Var
from loopwright.runtime.errors import LoopwrightError


def element(buffer: Buffer, indices: Sequence[object]) -> str:
    """`A[7, 3]`."""
    return f"{buffer.name}[{', '.join([str(index) for index in indices]) or '()'}]"


def iteration(loops: Mapping[str, object]) -> str:
    """`i=7, j=3`, or nothing outside all loops."""
    return ", ".join([f"{name}={value}" for name, value in loops.items()])


def _at(loops: Mapping[str, object]) -> str:
    where = iteration(loops)
    return f" at {where}" if where else ""


class OutOfBounds(LoopwrightError, IndexError):
    """The program reads or writes an element that its buffer does not have.

    The evaluator checks every index against the shape of the buffer. Native code does not: there the access would
    reach other memory.

    For example:

        import numpy as np
        from loopwright.evaluator import evaluate
        from loopwright.script import tir as T

        @T.prim_func
        def shift(A: T.Buffer(8)):
            for i in range(8):
                A[i] = A[i + 1]

        evaluate(shift, np.zeros(8, "float32"))
    """

    code = "LW0802"

    def __init__(
        self,
        buffer: Buffer,
        indices: Sequence[int],
        shape: Sequence[int],
        loops: Mapping[str, object],
        writes: bool,
        at: Node,
    ) -> None:
        what = "writes" if writes else "reads"
        super().__init__(
            f"the program {what} {element(buffer, indices)} with shape {tuple(shape)}{_at(loops)}",
            at=at,
            why="the index lies outside the buffer",
            hint="guard the access with a condition, or make the buffer larger",
            fields={"buffer": buffer.name, "indices": tuple(indices), "shape": tuple(shape), "loops": dict(loops)},
        )


class UninitialisedRead(LoopwrightError, ValueError):
    """The program reads an element of its own memory that nothing has written yet.

    For example:

        import numpy as np
        from loopwright.evaluator import evaluate
        from loopwright.script import tir as T

        @T.prim_func
        def total(A: T.Buffer(8), B: T.Buffer(1)):
            S = T.alloc_buffer(1)
            for i in range(8):
                S[0] = S[0] + A[i]  # the sum has no start value
            B[0] = S[0]

        evaluate(total, np.zeros(8, "float32"), np.zeros(1, "float32"))
    """

    code = "LW0803"

    def __init__(self, buffer: Buffer, indices: Sequence[int], loops: Mapping[str, object], at: Node) -> None:
        super().__init__(
            f"the program reads {element(buffer, indices)} before anything has written it{_at(loops)}",
            at=at,
            why="allocated memory starts without values",
            hint="write the element first; a reduction needs an init",
            fields={"buffer": buffer.name, "indices": tuple(indices), "loops": dict(loops)},
        )


class IntegerDivisionByZero(LoopwrightError, ZeroDivisionError):
    """An integer was divided by zero, or the least integer of a signed type by -1.

    Neither has a result that fits. Native code goes on with a value that means nothing: guard the division with
    `if_then_else`.

    For example:

        import numpy as np
        from loopwright.evaluator import evaluate
        from loopwright.script import tir as T

        @T.prim_func
        def divide(A: T.Buffer(4, "int32"), B: T.Buffer(4, "int32")):
            for i in range(4):
                B[i] = 100 // A[i]

        evaluate(divide, np.array([5, 2, 0, 1], "int32"), np.zeros(4, "int32"))
    """

    code = "LW0804"

    def __init__(
        self, a: int, b: int, dtype: str, loops: Mapping[str, object] | None = None, at: Node | None = None
    ) -> None:
        super().__init__(
            f"{dtype} division of {a} by {b} has no result{_at(loops or {})}",
            at=at,
            hint="guard the division with if_then_else",
            fields={"dividend": a, "divisor": b, "dtype": dtype, "loops": dict(loops or {})},
        )


class IndexTooLarge(LoopwrightError, OverflowError):
    """Index arithmetic left 64 bits.

    Arithmetic on variables and literals is exact, whatever its type, as long as it fits 64 bits; beyond that it has no
    result. Native code does not check it.

    For example:

        import numpy as np
        from loopwright.evaluator import evaluate
        from loopwright.script import tir as T

        @T.prim_func
        def compare(n: T.int64, B: T.Buffer(1, "int32")):
            if n * n < n:
                B[0] = 1

        evaluate(compare, 1 << 40, np.zeros(1, "int32"))
    """

    code = "LW0819"

    def __init__(
        self, name: str, a: int, b: int, loops: Mapping[str, object] | None = None, at: Node | None = None
    ) -> None:
        super().__init__(
            f"index arithmetic leaves 64 bits: {name} of {a} and {b}{_at(loops or {})}",
            at=at,
            hint="arithmetic on variables is exact up to 64 bits; keep sizes and scalars smaller",
            fields={"a": a, "b": b, "loops": dict(loops or {})},
        )


class UnboundVariable(LoopwrightError, NameError):
    """The program uses a variable that no parameter, loop, let, block or buffer gives a value.

    For example:

        from loopwright import te, tir
        from loopwright.evaluator import evaluate

        n = te.var("n")
        evaluate(tir.PrimFunc([], tir.Evaluate(n + 1)))
    """

    code = "LW0805"

    def __init__(self, var: Var) -> None:
        super().__init__(
            f"variable {var.name} is used but nothing gives it a value",
            hint="make it a parameter, or bind it with a loop or a let",
            fields={"name": var.name},
        )


class AxisOutsideDomain(LoopwrightError, ValueError):
    """A block runs with an axis outside the domain that the block declares for it.

    For example:

        import numpy as np
        from loopwright.evaluator import evaluate
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(8)):
            for i in range(9):
                with T.block("A"):
                    vi = T.axis.spatial(8, i)
                    A[vi] = T.float32(1)

        evaluate(f, np.zeros(8, "float32"))
    """

    code = "LW0806"

    def __init__(self, block: str, axis: str, value: int, domain: range, loops: Mapping[str, object], at: Node) -> None:
        allowed = f"{domain.start} to {domain.stop - 1}" if domain else "of no values"
        super().__init__(
            f"block {block!r} runs with {axis}={value}, outside its domain {allowed}{_at(loops)}",
            at=at,
            hint="guard the block with where(...), or correct the binding of the axis",
            fields={"block": block, "axis": axis, "value": value, "loops": dict(loops)},
        )


class FailedCheck(LoopwrightError, AssertionError):
    """An assertion of the program, or a promise made with `assume`, does not hold.

    For example:

        from loopwright.evaluator import evaluate
        from loopwright.script import tir as T

        @T.prim_func
        def f(n: T.int32):
            assert n % 4 == 0, "n must be a multiple of 4"
            T.evaluate(n)

        evaluate(f, 6)
    """

    code = "LW0807"

    def __init__(self, message: str, loops: Mapping[str, object], at: Node) -> None:
        super().__init__(f"{message}{_at(loops)}", at=at, fields={"loops": dict(loops)})


class BadRegion(LoopwrightError, ValueError):
    """A `match_buffer` inside a block does not fit the region it names.

    For example:

        import numpy as np
        from loopwright.evaluator import evaluate
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((8, 16), "float32")):
            for i in range(2):
                with T.block("tile"):
                    vi = T.axis.spatial(2, i)
                    tile = T.match_buffer(A[vi * 4 : vi * 4 + 4, 0:4], (4, 4), strides=[4, 1])
                    tile[0, 0] = T.float32(1)

        evaluate(f, np.zeros((8, 16), "float32"))  # rows of A lie 16 elements apart, not 4
    """

    code = "LW0808"

    def __init__(self, buffer: Buffer, problem: str, loops: Mapping[str, object]) -> None:
        super().__init__(
            f"match_buffer {buffer.name}: {problem}{_at(loops)}",
            hint="declare the strides as variables to accept any layout",
            fields={"buffer": buffer.name, "loops": dict(loops)},
        )


class DataDependent(LoopwrightError, ValueError):
    """The evaluation on terms met a branch, a loop bound or an index that depends on the values of the inputs.

    Terms stand for all possible values at once, so only what does not depend on them can steer the program.

    For example:

        from loopwright.evaluator import evaluate_terms
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(8), B: T.Buffer(8)):
            for i in range(8):
                if A[i] > 0.0:
                    B[i] = A[i]

        evaluate_terms(f)
    """

    code = "LW0809"

    def __init__(self, value: object, at: Expr, loops: Mapping[str, object]) -> None:
        super().__init__(
            f"the program is steered by the value {value}{_at(loops)}",
            at=at,
            why="evaluation on terms knows the sizes and indices of a program but not its data",
            hint="evaluate the program on numbers instead",
            fields={"value": str(value), "loops": dict(loops)},
        )


class Race(LoopwrightError, ValueError):
    """Two iterations of a parallel loop touch one element, and at least one of them writes it.

    For example:

        from loopwright.evaluator import evaluate_terms
        from loopwright.script import tir as T

        @T.prim_func
        def shift(A: T.Buffer(9)):
            for i in T.parallel(8):
                A[i] = A[i + 1]

        evaluate_terms(shift, check_races=True)
    """

    code = "LW0810"

    def __init__(self, loop: str, first: int, second: int, what: str, cell: str, at: Node) -> None:
        super().__init__(
            f"parallel loop {loop}: iterations {loop}={first} and {loop}={second} both touch {cell}",
            at=at,
            why=what,
            hint="run the loop serially, or give each iteration elements of its own",
            fields={"loop": loop, "iterations": (first, second), "cell": cell},
        )


class ThreadRace(LoopwrightError, ValueError):
    """Two threads of a block touched one element between two barriers, and at least one of them wrote it.

    Threads run in any order between barriers, so the value depends on who comes first. The evaluator finds this
    whatever order it runs them in. Blocks of threads have no barrier between them at all.

    For example:

        import numpy as np
        from loopwright.evaluator import evaluate
        from loopwright.script import tir as T

        @T.prim_func
        def reverse(A: T.Buffer(8), B: T.Buffer(8)):
            S = T.alloc_buffer(8, scope="shared")
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                S[tx] = A[tx]
                B[tx] = S[7 - tx]

        evaluate(reverse, np.zeros(8, "float32"), np.zeros(8, "float32"))
    """

    code = "LW0814"

    def __init__(self, first: str, second: str, what: str, cell: str, are_blocks: bool, at: Node) -> None:
        kind = "block" if are_blocks else "thread"
        super().__init__(
            f"{kind} {first} and {kind} {second} both touch {cell} with no barrier between",
            at=at,
            why=what,
            hint="give each block elements of its own, or end the kernel in between"
            if are_blocks
            else 'put T.tvm_storage_sync("shared") between the two, or give each thread elements of its own',
            fields={"threads": (first, second), "cell": cell},
        )


class HandoffMismatch(LoopwrightError, ValueError):
    """A block awaits a status word that no earlier block has published, or one is published twice, or as 0.

    Blocks are evaluated one after the other, in the order of their numbers: what is not there when it is awaited would
    be published by a later block, or by nobody, and a GPU might wait for ever.

    For example:

        import numpy as np
        from loopwright.evaluator import evaluate
        from loopwright.script import tir as T

        @T.prim_func
        def f(status: T.Buffer(8, "uint64"), A: T.Buffer(8, "uint64")):
            for bx in T.thread_binding(8, thread="blockIdx.x"):
                T.evaluate(T.publish(T.address_of(status[bx]), T.uint64(1)))
                A[bx] = T.await_published(T.address_of(status[7 - bx]))

        evaluate(f, np.zeros(8, "uint64"), np.zeros(8, "uint64"))
    """

    code = "LW0816"

    def __init__(self, problem: str, cell: str, at: Node) -> None:
        super().__init__(
            f"{problem}: {cell}",
            at=at,
            hint="publish each status word once, in a block with an earlier ticket than all that await it",
            fields={"cell": cell},
        )


class BarrierDivergence(LoopwrightError, ValueError):
    """Some threads of a block reach a barrier, or leave a loop with one inside, and others do not.

    A barrier waits for all threads of the block: those that came would wait for ever. What counts as a barrier is
    `tvm_storage_sync`, `tvm_thread_allreduce` and a loop bound to a thread axis.

    For example:

        import numpy as np
        from loopwright.evaluator import evaluate
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer(8)):
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                if A[tx] > 0.0:
                    T.evaluate(T.tvm_storage_sync("shared"))

        evaluate(f, np.array([0, 0, 1, 0, 0, 0, 0, 0], "float32"))
    """

    code = "LW0815"

    def __init__(self, what: str, first: tuple[str, object], second: tuple[str, object], at: Node) -> None:
        (one, a), (other, b) = first, second
        super().__init__(
            f"threads part before a barrier: {what} is {a} in thread {one} and {b} in thread {other}",
            at=at,
            why="a barrier waits for all threads of the block",
            hint="move the barrier out of the condition or loop",
            fields={"threads": (one, other), "values": (a, b)},
        )
