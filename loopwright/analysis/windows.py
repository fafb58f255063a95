"""check_windows: a buffer that sees the memory of another, and a pointer with a range, stay inside that memory.

    B = T.decl_buffer((4, 16), data=A.data)        A.access_ptr("r", offset=i * 8, extent=8)

An access is held to the shape of the buffer that it goes by, so a declaration beyond the memory would make every access
right. It is refused unless it is proved to fit, for all sizes of the arguments and all iterations around it.
"""

from __future__ import annotations

from loopwright.analysis.accesses import Access, Program, Window
from loopwright.analysis.bounds import OutOfBounds, is_inside
from loopwright.ir import Buffer, Call, IntImm, deep
from loopwright.runtime.errors import LoopwrightError


class WindowTooLarge(LoopwrightError, ValueError):
    """A buffer is declared on the memory of another, and reaches beyond it, or is not proved to stay inside.

    Accesses are held to the declared shape, so the memory behind it must be there: offset and strides included, in
    bytes. Where sizes are known only at the call, say how they are related, with an `assert m <= n, "…"` around.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def view(A: T.Buffer(8), C: T.Buffer(1)):
            B = T.decl_buffer((1000,), data=A.data)
            C[0] = B[900]

        loopwright.build(view)
    """

    code = "LW0837"

    def __init__(self, window: Window, buffer: Buffer, wrong: OutOfBounds | None) -> None:
        owner = window.owner
        super().__init__(
            f"buffer {buffer.name} {_beyond(window, wrong)}",
            at=window.ends[0].instance.statement,
            why=_why(wrong),
            hint=f"declare no more than {owner} has; where sizes are symbolic, put an assert around that relates them",
            fields={"buffer": buffer.name, "memory": owner},
        )


class ParameterTooLarge(LoopwrightError, ValueError):
    """A function is called with a pointer to less memory than its parameter takes, or it is not proved to be enough.

    Functions of a module pass buffers by their pointers. The one that is called accesses what its own parameter
    declares, so that much must lie behind the pointer.

    For example:

        import loopwright
        from loopwright.script import ir as I, tir as T

        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((4,), "float32")):
                Module.clear(A.data)

            @T.prim_func(private=True)
            def clear(X: T.Buffer((100,), "float32")):
                for i in range(100):
                    X[i] = T.float32(0)

        loopwright.build(Module)
    """

    code = "LW0846"

    def __init__(self, window: Window, buffer: Buffer, callee: str, wrong: OutOfBounds | None) -> None:
        owner = window.owner
        super().__init__(
            f"{callee} is called with memory that its {buffer.name} does not fit into: {buffer.name} "
            f"{_beyond(window, wrong)}",
            at=window.ends[0].instance.statement,
            why=_why(wrong),
            hint=f"pass a pointer to as much memory as {callee} declares for {buffer.name}",
            fields={"buffer": buffer.name, "memory": owner, "function": callee},
        )


class PointerOutOfRange(LoopwrightError, ValueError):
    """A pointer is handed out with a range that leaves the memory it points into, or is not proved to stay inside.

    `access_ptr` says from where on, and how many elements, a call may touch. Both must be inside for every iteration.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def copy(A: T.Buffer(8), C: T.Buffer(8)):
            for i in range(4):
                T.evaluate(T.call_extern("int32", "look", A.access_ptr("r", offset=i * 2, extent=4)))

        loopwright.build(copy)
    """

    code = "LW0838"

    def __init__(self, window: Window, call: Call, wrong: OutOfBounds | None) -> None:
        owner = window.owner
        super().__init__(
            f"the pointer {call} {_beyond(window, wrong)}",
            at=window.ends[0].instance.statement,
            why=_why(wrong),
            hint=f"give an offset and an extent inside {owner}; where data decides, name it by a let under a condition",
            fields={"memory": owner},
        )


class RegionNotInside(LoopwrightError, ValueError):
    """A call gets a pointer to a matched buffer, whose region is not proved to lie inside the buffer it is matched to.

    Where the region certainly leaves it, that is OutOfBounds (LW0821). Here data decides where the region is, or its
    indices are too complex, and what the call touches cannot be checked when the program runs.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def gather(A: T.Buffer(8), I: T.Buffer(4, "int32")):
            for i in range(4):
                with T.block("row"):
                    v = T.axis.spatial(4, i)
                    T.reads(A[0:8], I[v])
                    T.writes()
                    X = T.match_buffer(A[I[v] : I[v] + 2], (2,), offset_factor=1)
                    T.evaluate(T.call_extern("int32", "look", X.access_ptr("r")))

        loopwright.build(gather)
    """

    code = "LW0839"

    def __init__(self, access: Access) -> None:
        pointer, buffer = access.buffer, access.cell[0]
        super().__init__(
            f"the region of {buffer.name} that {pointer.name} is matched to is not proved to lie inside",
            at=access.instance.statement,
            hint="match a region that only loops and sizes decide, or hand over the whole buffer",
            fields={"buffer": buffer.name, "matched": pointer.name},
        )


def _beyond(window: Window, wrong: OutOfBounds | None) -> str:
    if wrong is None:
        size = window.size.value if isinstance(window.size, IntImm) else window.size
        return f"is not proved to stay inside the memory of {window.owner}, which has {size} bytes"
    ((location,), (locations,)) = wrong.indices, wrong.shape
    assert location is not None and locations is not None
    what = f"begins {-location} bytes before" if location < 0 else f"reaches byte {location - 1} of"
    return f"{what} the memory of {window.owner}, which has {locations - 1}"


def _why(wrong: OutOfBounds | None) -> str | None:
    iteration = wrong.iteration if wrong is not None else {}
    return f"at {', '.join([f'{name} = {value}' for name, value in iteration.items()])}" if iteration else None


@deep
def check_windows_in(program: Program) -> None:
    """Raise WindowTooLarge or PointerOutOfRange unless all that is seen of other memory is there."""
    for window in program.windows:
        wrong: OutOfBounds | None = None
        try:
            if all([is_inside(program, end) for end in window.ends]):
                continue
        except OutOfBounds as error:
            wrong = error
        if isinstance(window.of, Buffer) and window.callee is not None:
            raise ParameterTooLarge(window, window.of, window.callee, wrong) from None
        if isinstance(window.of, Buffer):
            raise WindowTooLarge(window, window.of, wrong) from None
        raise PointerOutOfRange(window, window.of, wrong) from None
    for access in program.matched:
        if not is_inside(program, access):
            raise RegionNotInside(access)
