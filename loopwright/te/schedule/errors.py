"""The errors of te schedules: each says what was asked, what stands in the way, and what would work."""

from __future__ import annotations

from loopwright.runtime.errors import LoopwrightError, SourceLine, with_article


class TeScheduleError(LoopwrightError, ValueError):
    """A step of a te schedule does not apply to the stage or axis it was asked for.

    The subclasses say why. The example raises `NotAReader`.

    For example:

        from loopwright import te
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        s = te.create_schedule(B.op)
        s.cache_read(A, "local", [])  # whose reads shall go to the copy?
    """

    code = "LW0464"


class NotAnOperation(TeScheduleError, TypeError):
    """`te.create_schedule` takes the operation of the tensor to compute, or a list of operations.

    For example:

        from loopwright import te
        te.create_schedule("B")
    """

    code = "LW0465"

    def __init__(self, given: object, hint: str) -> None:
        shown = with_article(type(given).__name__)
        super().__init__(f"te.create_schedule: {shown} is not an operation", hint=hint)


class UnknownStage(TeScheduleError):
    """`s[x]` was asked for a tensor that the schedule does not compute.

    A schedule has one stage for each operation that its outputs need, placeholders included.

    For example:

        from loopwright import te
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        C = te.compute((8,), lambda i: A[i] + 2, name="C")
        te.create_schedule(B.op)[C]
    """

    code = "LW0466"

    def __init__(self, problem: str, stages: list[str]) -> None:
        super().__init__(
            f"schedule: {problem}",
            hint=f"the stages are {', '.join(stages)}: give one of these tensors, or its operation",
            fields={"stages": stages},
        )


class AxisGone(TeScheduleError):
    """A step names an axis that an earlier step has split or fused, so that there is no such loop any more.

    After `xo, xi = s[B].split(x, factor=8)` the loops are `xo` and `xi`: name these.

    For example:

        from loopwright import te
        A = te.placeholder((8, 8), name="A")
        B = te.compute((8, 8), lambda i, j: A[i, j] + 1, name="B")
        s = te.create_schedule(B.op)
        i, j = s[B].op.axis
        s[B].split(i, factor=4)
        s[B].reorder(j, i)
    """

    code = "LW0467"

    def __init__(
        self, step: str, stage: str, axis: str, done: str, parts: list[str], line: SourceLine | None, leaves: list[str]
    ) -> None:
        """`done` says what became of the axis; `parts` are the loops that stand for it, `leaves` all of the stage."""
        choice = f"{', '.join(parts[:-1])} or {parts[-1]}" if len(parts) > 1 else parts[0]
        super().__init__(
            f"{step}: axis {axis} of {stage} is no loop any more: it was {done}",
            hint=f"use {choice}; the loops of {stage} are now {', '.join(leaves)}",
            fields={"stage": stage, "axis": axis, "parts": parts, "line": None if line is None else line.line},
        )


class ForeignAxis(TeScheduleError):
    """A step names an axis that its stage does not have.

    The axes of a stage are `s[B].op.axis` and `s[B].op.reduce_axis`, and what splitting and fusing these gave.

    For example:

        from loopwright import te
        A = te.placeholder((8, 8), name="A")
        B = te.compute((8, 8), lambda i, j: A[i, j] + 1, name="B")
        C = te.compute((8, 8), lambda i, j: B[i, j] * 2, name="C")
        s = te.create_schedule(C.op)
        s[C].unroll(B.op.axis[1])
    """

    code = "LW0468"

    def __init__(self, step: str, stage: str, axis: object, leaves: list[str], owner: str | None = None) -> None:
        name = getattr(getattr(axis, "var", None), "name", None)
        shown = f"axis {name}" if name else f"{type(axis).__name__} {axis!r}"
        belongs = f": it belongs to {owner}" if owner else ""
        super().__init__(
            f"{step}: {shown} is no axis of {stage}{belongs}",
            hint=f"the loops of {stage} are {', '.join(leaves) or 'none'}",
            fields={"stage": stage, "axis": name},
        )


class BadSplit(TeScheduleError, TypeError):
    """A split needs one of `factor` (how often the inner loop runs) and `nparts` (the outer one), at least 1.

    For example:

        from loopwright import te
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        s = te.create_schedule(B.op)
        s[B].split(B.op.axis[0])
    """

    code = "LW0469"


class NotAdjacent(TeScheduleError):
    """Axes that shall become one loop do not stand next to each other.

    For example:

        from loopwright import te
        A = te.placeholder((4, 4, 4), name="A")
        B = te.compute((4, 4, 4), lambda i, j, k: A[i, j, k] + 1, name="B")
        s = te.create_schedule(B.op)
        s[B].fuse(B.op.axis[0], B.op.axis[2])
    """

    code = "LW0470"

    def __init__(self, stage: str, first: str, second: str, leaves: list[str]) -> None:
        super().__init__(
            f"fuse: {first} and {second} of {stage} do not stand next to each other; the loops are {', '.join(leaves)}",
            hint=f"reorder first, so that {second} comes right after {first}",
            fields={"stage": stage, "axes": [first, second]},
        )


class BadReorder(TeScheduleError):
    """An order of loops names a loop twice, or moves a loop whose iterations must run one after the other.

    For example:

        from loopwright import te
        A = te.placeholder((4, 4), name="A")
        B = te.compute((4, 4), lambda i, j: A[i, j] + 1, name="B")
        s = te.create_schedule(B.op)
        s[B].reorder(B.op.axis[0], B.op.axis[0])
    """

    code = "LW0471"


class CannotAttach(TeScheduleError):
    """A stage cannot be computed at the place asked for.

    `s[A].compute_at(s[B], axis)` computes inside the loop `axis` of stage B what one iteration of it needs of A. So B
    must be computed from A, and the axis must be a loop of B.

    For example:

        from loopwright import te
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        C = te.compute((8,), lambda i: B[i] * 2, name="C")
        s = te.create_schedule(C.op)
        s[C].compute_at(s[B], B.op.axis[0])
    """

    code = "LW0472"


class CannotInline(TeScheduleError):
    """A stage cannot be computed where it is read: only a compute with one output that is no reduction and no result.

    For example:

        from loopwright import te
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        s = te.create_schedule(B.op)
        s[B].compute_inline()
    """

    code = "LW0473"

    def __init__(self, stage: str, problem: str, hint: str) -> None:
        super().__init__(f"compute_inline: {stage} {problem}", hint=hint, fields={"stage": stage})


class CannotBind(TeScheduleError):
    """A loop cannot run on the threads asked for.

    `s[B].bind(axis, te.thread_axis("threadIdx.x"))` runs the iterations of a loop on threads. Every loop that runs on
    the same threads has as many iterations.

    For example:

        from loopwright import te
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        s = te.create_schedule(B.op)
        s[B].bind(B.op.axis[0], B.op.axis[0])
    """

    code = "LW0474"


class NotAReader(TeScheduleError):
    """`cache_read(tensor, scope, readers)` names a reader that does not read the tensor.

    For example:

        from loopwright import te
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        C = te.compute((8,), lambda i: B[i] * 2, name="C")
        s = te.create_schedule(C.op)
        s.cache_read(A, "local", [C])
    """

    code = "LW0475"

    def __init__(self, tensor: str, reader: str | None, reads: list[str], readers: list[str]) -> None:
        problem = f"{reader} does not read {tensor}; it reads {', '.join(reads) or 'nothing'}"
        super().__init__(
            f"cache_read: {problem if reader else f'no reader of {tensor} is given'}",
            hint=f"{tensor} is read by {', '.join(readers) or 'no stage'}",
            fields={"tensor": tensor, "reader": reader, "readers": readers},
        )


class CannotCacheWrite(TeScheduleError):
    """`cache_write` cannot move the computation of these tensors into a stage of its own.

    It needs a te.compute, and all its outputs at once; loops that are bound to threads or marked come afterwards.

    For example:

        from loopwright import te
        A = te.placeholder((8,), name="A")
        s = te.create_schedule(te.compute((8,), lambda i: A[i] + 1, name="B").op)
        s.cache_write(A, "local")
    """

    code = "LW0476"


class CannotFactor(TeScheduleError):
    """`rfactor` cannot turn this axis of a reduction into a data axis of a new stage.

    The axis must be a loop of the reduction that comes from its reduce axes alone, all of which count from 0. The
    reducer must be commutative and associative, and its identity change nothing.

    For example:

        from loopwright import te
        A = te.placeholder((8, 8), name="A")
        k = te.reduce_axis((0, 8), name="k")
        B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
        s = te.create_schedule(B.op)
        s.rfactor(B, B.op.axis[0])
    """

    code = "LW0477"


class ArgumentsMissing(TeScheduleError):
    """`lower` and `build` of a schedule need the parameters of the function: every input, and the outputs, in order.

    An output that is no parameter is computed and dropped, with a warning.

    For example:

        import loopwright as lw
        from loopwright import te
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        lw.lower(te.create_schedule(B.op), [B])
    """

    code = "LW0478"

    def __init__(self, missing: list[str], given: list[str], wanted: list[str]) -> None:
        problem = "args is missing" if not given else f"args [{', '.join(given)}] lacks {', '.join(missing)}"
        super().__init__(
            f"schedule: {problem}",
            why="args gives the parameters of the function: inputs and outputs, in the order of the call",
            hint=f"give args=[{', '.join(wanted)}]",
            fields={"missing": missing, "given": given},
        )


class BadBinding(TeScheduleError, TypeError):
    """An entry of `args` or `binds` does not fit: args are tensors, buffers and variables; a buffer fits its tensor.

    For example:

        import loopwright as lw
        from loopwright import te, tir
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        lw.lower(te.create_schedule(B.op), [A, B], binds={A: tir.decl_buffer((9,), "float32", "A")})
    """

    code = "LW0479"


class CannotMark(TeScheduleError):
    """A loop cannot be vectorized, unrolled, prefetched for or aligned as asked.

    For example:

        from loopwright import te
        A = te.placeholder((8, 8), name="A")
        k = te.reduce_axis((0, 8), name="k")
        B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
        s = te.create_schedule(B.op)
        s[B].vectorize(k)
    """

    code = "LW0480"


class NotForThisStage(TeScheduleError):
    """The step makes no sense for a stage of this kind, or was done already.

    For example:

        from loopwright import te
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        s = te.create_schedule(B.op)
        s[B].double_buffer()
    """

    code = "LW0481"


class BadGroup(TeScheduleError):
    """The stages between the outputs and the inputs of a group cannot be made one.

    For example:

        from loopwright import te
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        C = te.compute((8,), lambda i: B[i] * 2, name="C")
        D = te.compute((8,), lambda i: C[i] * 2, name="D")
        E = te.compute((8,), lambda i: D[i] * 2, name="E")
        s = te.create_schedule(E.op)
        s.create_group(outputs=D, inputs=B)
        s.create_group(outputs=C, inputs=A)
    """

    code = "LW0482"


class CannotTransformLayout(TeScheduleError):
    """A tensor cannot be stored as the map of indices says: the map must use each cell of the new shape exactly once.

    For example:

        from loopwright import te
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        s = te.create_schedule(B.op)
        s[B].transform_layout(lambda i: [i // 3, i % 3])
    """

    code = "LW0483"


class NotALoop(TeScheduleError):
    """An axis stands for a whole dimension, or for threads, so it cannot be split or fused.

    The data axes of a scan's result and the tile of a tensor intrinsic are such axes: the loops are those of the stages
    inside the scan, and those over tiles.

    For example:

        from loopwright import te
        S = te.placeholder((4, 3), name="S")
        first = te.compute((1, 3), lambda _, i: te.const(0.0, "float32"), name="first")
        R = te.scan(first, te.compute((4, 3), lambda t, i: S[t - 1, i] + 1), S)
        s = te.create_schedule(R.op)
        s[R].split(R.op.spatial_axis_[0], factor=2)
    """

    code = "LW0488"

    def __init__(self, step: str, stage: str, axis: str, is_thread: bool = False) -> None:
        stands = "threads" if is_thread else "a whole dimension, not for a loop"
        super().__init__(
            f"{step}: {axis} of {stage} stands for {stands}",
            hint=f"{step} loops: the axes of a te.compute, and what they were split into",
            fields={"stage": stage, "axis": axis},
        )


class BadScope(TeScheduleError):
    """A storage scope is a kind of memory: "global", "shared", "local" and others, perhaps with a rank.

    For example:

        from loopwright import te
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        C = te.compute((8,), lambda i: B[i] * 2, name="C")
        te.create_schedule(C.op)[B].set_scope("fast")
    """

    code = "LW0484"
