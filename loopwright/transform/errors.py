"""What lowering refuses: one class a fact."""

from __future__ import annotations

from loopwright.ir import AttrStmt, Block, BufferLoad, BufferStore, For, IterVar, MatchBufferRegion
from loopwright.runtime.errors import LoopwrightError


class LoweringError(LoopwrightError):
    """A program that cannot be lowered for its target.

    The subclasses say what stands in the way. The example raises `ThreadLoopOnCpu`.

    For example:

        import loopwright
        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.bind(sch.get_loops("B")[0], "threadIdx.x")
        loopwright.lower(sch.mod, target="llvm")
    """

    code = "LW0700"


class ThreadLoopOnCpu(LoweringError):
    """A loop is bound to a GPU thread axis, but the program is compiled for a CPU.

    Threads of a block can meet at barriers and share memory; loops of a CPU cannot. Bind such loops only for GPU
    targets; on a CPU, `parallel` distributes iterations over cores and `vectorize` over vector lanes.

    For example:

        import loopwright
        from loopwright import te, tir

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        sch = tir.Schedule(te.create_prim_func([A, B]))
        sch.bind(sch.get_loops("B")[0], "threadIdx.x")
        loopwright.build(sch.mod, target="llvm")
    """

    code = "LW0701"

    def __init__(self, loop: For | AttrStmt) -> None:
        if isinstance(loop, For):
            name, extent, thread, what = loop.loop_var.name, loop.extent, loop.thread_binding, "loop"
        else:
            assert isinstance(loop.node, IterVar)
            name, extent, thread, what = loop.node.var.name, loop.value, loop.node, "launch"
        tag = thread.thread_tag if thread is not None else "a thread axis"
        super().__init__(
            lambda: f"{what} {name} of extent {extent} is bound to {tag}, which a CPU does not have",
            at=loop,
            hint="use parallel or vectorize in place of bind, or build for a GPU target",
            fields={"loop": name, "thread_tag": tag},
        )


class VectorExtentUnknown(LoweringError):
    """A vectorized loop has an extent that is known only when the program runs.

    The lanes of a vector are fixed when code is generated. Split the loop by a constant first and vectorize the inner
    part.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(a: T.handle, n: T.int32):
            A = T.match_buffer(a, (n,))
            for i in T.vectorized(n):
                A[i] = T.float32(1)

        loopwright.build(f)
    """

    code = "LW0702"

    def __init__(self, loop: For) -> None:
        super().__init__(
            lambda: f"vectorized loop {loop.loop_var.name} has extent {loop.extent}, which is not a constant",
            at=loop,
            hint="split the loop by a constant factor and vectorize the inner loop",
            fields={"loop": loop.loop_var.name},
        )


class UnrollExtentUnknown(LoweringError):
    """A loop marked unrolled has an extent that is known only when the program runs, so it cannot be written out.

    For example:

        from loopwright.script import tir as T
        from loopwright.transform import unroll_loops

        @T.prim_func
        def f(a: T.handle, n: T.int32):
            A = T.match_buffer(a, (n,))
            for i in T.unroll(n):
                A[i] = T.float32(1)

        unroll_loops(f)
    """

    code = "LW0703"

    def __init__(self, loop: For) -> None:
        super().__init__(
            lambda: f"unrolled loop {loop.loop_var.name} has extent {loop.extent}, which is not a constant",
            at=loop,
            hint="split the loop by a constant factor and unroll the inner loop",
            fields={"loop": loop.loop_var.name},
        )


class RegionDoesNotMatch(LoweringError):
    """A matched buffer promises a layout that the region it stands for does not have, or not provably.

    `match_buffer` gives a region a name and, if declared so, a shape, strides, an offset, a multiple that the offset is
    of, an alignment and a scope. Lowering compares each declared value with the region's own.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((8, 16), "float32")):
            for i in range(2):
                with T.block("tile"):
                    vi = T.axis.spatial(2, i)
                    tile = T.match_buffer(A[vi * 4 : vi * 4 + 4, 0:4], (4, 4), strides=[4, 1])
                    tile[0, 0] = T.float32(1)

        loopwright.lower(f, target="llvm")  # rows of A lie 16 elements apart, not 4
    """

    code = "LW0704"

    def __init__(self, match: MatchBufferRegion, what: str, declared: object, result: object) -> None:
        super().__init__(
            lambda: (
                f"match_buffer {match.buffer.name}: declared {what} {declared}, "
                f"but the region of {match.source.buffer.name} has {result}"
            ),
            at=match,
            hint="declare it with offset_factor=1, so that it may begin anywhere"
            if what == "elem_offset" and declared == 0
            else f"leave the {what} out, or match a region that has it"
            if what in ("scope", "offset_factor", "align")
            else f"declare the {what} as a variable to have it filled in, or match a region that has it",
            fields={"buffer": match.buffer.name, "source": match.source.buffer.name, "what": what},
        )


class BlockNotLowered(LoweringError):
    """A pass that runs after blocks are gone met one. Run `lower_blocks` (and what stands before it) first.

    For example:

        from loopwright import te
        from loopwright.transform import flatten_buffers

        A = te.placeholder((8, 8), name="A")
        B = te.compute((8, 8), lambda i, j: A[i, j] + 1, name="B")
        flatten_buffers(te.create_prim_func([A, B]))
    """

    code = "LW0705"

    def __init__(self, name: str, block: Block) -> None:
        super().__init__(
            f"{name}: block {block.name_hint} is still there",
            at=block,
            hint="run lower(func, target), or the passes before this one in transform/pipeline.py",
        )


class BlockStateLeft(LoweringError):
    """`lower_blocks` met a block whose init or allocations have not been written down yet.

    For example:

        from loopwright import te
        from loopwright.transform import lower_blocks

        A = te.placeholder((8,), name="A")
        k = te.reduce_axis((0, 8), name="k")
        B = te.compute((1,), lambda i: te.sum(A[k], axis=k), name="B")
        lower_blocks(te.create_prim_func([A, B]))
    """

    code = "LW0706"

    def __init__(self, block: Block, what: str, first: str) -> None:
        super().__init__(
            f"lower_blocks: block {block.name_hint} still has {what}", at=block, hint=f"run {first} before lower_blocks"
        )


class UnknownStage(LoweringError, ValueError):
    """`stages` or `lower` was asked to stop after a pass that the pipeline does not have.

    For example:

        from loopwright import te
        from loopwright.transform import lower

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        lower(te.create_prim_func([A, B]), "llvm", stop_after="tensorize")
    """

    code = "LW0707"

    def __init__(self, name: str, names: list[str]) -> None:
        super().__init__(f"the lowering pipeline has no pass {name!r}", hint=f"its passes are {', '.join(names)}")


class NotForThisTarget(LoweringError):
    """The lowering pipeline has no list of passes for this kind of target yet.

    For example:

        from loopwright import te
        from loopwright.transform import lower

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        lower(te.create_prim_func([A, B]), "opencl")
    """

    code = "LW0708"

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"lowering for target kind {kind!r} is not built",
            why="there are pipelines for CPUs and for CUDA",
            hint='use Target("llvm") or Target("cuda")',
            fields={"kind": kind},
        )


class BadAnnotation(LoweringError, ValueError):
    """An annotation that lowering reads does not have the form that it reads.

    The message names the annotation, what it holds, and what it should hold.

    For example:

        import loopwright as lw
        from loopwright.script import from_source

        func = from_source('''
        @T.prim_func
        def main(A: T.Buffer((8,))):
            for i in T.serial(8, annotations={"software_pipeline_stage": 1}):
                A[i] = 1.0
        ''')
        lw.lower(func, target="llvm")
    """

    code = "LW0709"

    def __init__(self, key: str, value: object, wanted: str, at: object) -> None:
        super().__init__(
            lambda: f"the annotation {key} is {value!r}",
            at=at,
            hint=f"it is {wanted}",
            fields={"key": key},
        )


class PipelineMismatch(LoweringError, ValueError):
    """The annotations of a software pipeline do not fit the loop that carries them.

    `software_pipeline_stage` and `software_pipeline_order` each hold one number for every statement of the loop's
    body; the orders are the numbers from 0 on, each once.

    For example:

        import loopwright as lw
        from loopwright.script import from_source

        func = from_source('''
        @T.prim_func
        def main(A: T.Buffer((8,)), B: T.Buffer((8,))):
            for i in T.serial(8, annotations={"software_pipeline_stage": [0], "software_pipeline_order": [0]}):
                A[i] = 1.0
                B[i] = A[i]
        ''')
        lw.lower(func, target="llvm")
    """

    code = "LW0710"

    def __init__(self, loop: For, problem: str, hint: str) -> None:
        super().__init__(
            lambda: f"software pipeline of loop {loop.loop_var.name}: {problem}",
            at=loop,
            hint=hint,
            fields={"loop": loop.loop_var.name},
        )


class PipelineBreaksDependence(LoweringError, ValueError):
    """The stages and orders of a software pipeline would run a statement before one whose result it needs.

    In a pipeline, statement `a` of stage s runs for iteration i at time i + s; statements of one time run in the given
    order. Wherever two statements touch one cell, with a write among them, the one that came first must still come
    first. Buffers that are allocated inside the loop get a copy for each iteration in flight; all others are shared.

    For example:

        import loopwright as lw
        from loopwright.script import from_source

        func = from_source('''
        @T.prim_func
        def main(A: T.Buffer((8,)), B: T.Buffer((8,))):
            for i in T.serial(8, annotations={"software_pipeline_stage": [1, 0], "software_pipeline_order": [0, 1]}):
                A[i] = 1.0
                B[i] = A[i]
        ''')
        lw.lower(func, target="llvm")
    """

    code = "LW0711"

    def __init__(
        self, loop: For, what: str, first: int, then: int, distance: int, times: tuple[int, int, int, int]
    ) -> None:
        stage, order, later_stage, later_order = times
        apart = "the same iteration" if distance == 0 else f"{distance} iteration{'s' * (distance > 1)} later"
        super().__init__(
            lambda: (
                f"software pipeline of loop {loop.loop_var.name}: statement {then} needs {what} as statement {first} "
                f"left it ({apart}), but would run first"
            ),
            at=loop,
            why=(
                f"statement {first} has stage {stage} and order {order}, statement {then} stage {later_stage} and "
                f"order {later_order}"
            ),
            hint=f"give statement {then} a later stage, or the same stage and a later order",
            fields={"loop": loop.loop_var.name, "statements": (first, then), "distance": distance},
        )


class NotAPipeline(LoweringError):
    """A loop that is asked to run as a software pipeline, or with a double buffer, cannot.

    Only a serial loop whose body is a sequence of statements has iterations that can overlap.

    For example:

        import loopwright as lw
        from loopwright.script import from_source

        func = from_source('''
        @T.prim_func
        def main(A: T.Buffer((8,)), B: T.Buffer((8,))):
            for i in T.parallel(
                8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}
            ):
                A[i] = 1.0
                B[i] = A[i]
        ''')
        lw.lower(func, target="llvm")
    """

    code = "LW0712"

    def __init__(self, loop: For, why: str, hint: str) -> None:
        super().__init__(
            lambda: f"loop {loop.loop_var.name} cannot run as a software pipeline",
            at=loop,
            why=why,
            hint=hint,
            fields={"loop": loop.loop_var.name},
        )


class UndefinedValueUsed(LoweringError, ValueError):
    """`T.undef()` stands where a value is needed.

    It, and what is computed from it, may only be stored: then the cell holds nothing of interest from then on.

    For example:

        from loopwright.script import from_source
        from loopwright.transform import remove_store_undef

        remove_store_undef(from_source('''
        @T.prim_func
        def main(A: T.Buffer((8,), "int32")):
            A[T.undef(dtype="int32")] = 1
        '''))
    """

    code = "LW0713"

    def __init__(self, call: object) -> None:
        super().__init__(
            "remove_store_undef: undef is used in a computation",
            at=call,
            hint="store it as it is, or write a number in its place",
        )


class BadIndexWidth(LoweringError, ValueError):
    """`narrow_data_type` computes indices in 8, 16, 32 or 64 bits.

    For example:

        from loopwright.transform import narrow_data_type

        narrow_data_type(31)
    """

    code = "LW0714"

    def __init__(self, bits: object) -> None:
        super().__init__(f"narrow_data_type: {bits!r} is no width of an integer", hint="use 32")


class IndexTooWide(LoweringError, ValueError):
    """A size or an index does not fit the 32 bits that `force_narrow_index_to_int32` gives it.

    For example:

        from loopwright.script import from_source
        from loopwright.transform import force_narrow_index_to_int32

        force_narrow_index_to_int32(from_source('''
        @T.prim_func
        def main(A: T.Buffer((T.int64(3000000000),), "int8")):
            A[T.int64(0)] = T.int8(1)
        '''))
    """

    code = "LW0715"

    def __init__(self, number: int) -> None:
        super().__init__(
            f"force_narrow_index_to_int32: {number} needs more than 32 bits",
            hint="keep 64-bit indices in this function: they are not slower where pointers have 64 bits",
            fields={"number": number},
        )


class IndexCallsFunction(LoweringError):
    """An index comes from a call that is not pure, and cannot be checked: that would call it twice.

    An index that is not proved to stay inside its buffer is computed once to be checked and once for the access. Bind
    the result of the call to a variable, and use that as the index.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def store(A: T.Buffer((8,), "int32")):
            A[T.call_extern("int32", "rand")] = 0

        loopwright.build(store)
    """

    code = "LW0716"

    def __init__(self, function: str, node: BufferLoad | BufferStore, axis: int) -> None:
        super().__init__(
            lambda: f"{function}: the index {node.indices[axis]!r} of {node.buffer.name} calls an impure function",
            at=node,
            why="it is not proved to stay inside, and checking it would call the function twice",
            hint="bind the result first: k: T.int32 = call; then index with k",
            fields={"buffer": node.buffer.name, "axis": axis},
        )
