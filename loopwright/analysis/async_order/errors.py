"""Errors of asynchronous kernels: what goes wrong, with the threads, the iteration, and the memory or the mbarrier."""

from __future__ import annotations

from loopwright.analysis.async_order.events import Where, where_text
from loopwright.ir import Call, Stmt
from loopwright.runtime.errors import LoopwrightError


class AsyncOrderError(LoopwrightError, ValueError):
    """What all errors of asynchronous kernels are: the order of what happens in the kernel is not what it needs."""


class NotOrdered(AsyncOrderError):
    """Two accesses of a kernel touch the same memory, one of them writes, and nothing says which comes first.

    What a thread does is ordered after what others did only by mbarriers that it waits for, by barriers, and by waits
    for what it began itself: copies, matmuls of a warpgroup and groups of stores go on by themselves. The message
    names both accesses and the element. Wait before the later one, or arrive only after the earlier one. What is read
    has been written before, too.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def early(A: T.Buffer(64), B: T.Buffer(64)):
            tx = T.launch_thread("threadIdx.x", 32)
            S = T.decl_buffer((64,), scope="shared")
            full = T.decl_buffer(1, "uint64", scope="shared")
            if tx == 0:
                T.mbarrier_init(T.address_of(full[0]), 32)
            T.tvm_storage_sync("shared")
            T.bulk_copy_async(T.address_of(S[0]), T.address_of(A[0]), 256, T.address_of(full[0]))
            T.mbarrier_arrive(T.address_of(full[0]))
            B[tx] = S[tx]
            T.mbarrier_wait(T.address_of(full[0]), 0)

        loopwright.build(early, target="cuda -arch=sm_90")
    """

    code = "LW0840"

    def __init__(self, statement: Stmt, element: str, earlier: str | None, later: str, hint: str) -> None:
        problem = f"nothing orders two accesses of {element}: {later}, and {earlier}"
        why = "either may come first, whatever the text says"
        if earlier is None:
            problem, why = f"{element} is read before anybody has written it: {later}", "what is there is not known"
        fields = {"element": element, "earlier": earlier or "", "later": later}
        super().__init__(problem, at=statement, why=why, hint=hint, fields=fields)


class PhaseMismatch(AsyncOrderError):
    """The arrivals of an mbarrier do not make the phases that its waits are for.

    A phase has as many arrivals as `mbarrier_init` says, and all bytes of copies that were announced in it. Who
    arrives or copies has to know that the phase before has completed, who waits that the one before that has, and the
    next one must not complete before the wait is over: parities tell two phases apart, no more. The same holds for
    named barriers and the number of their threads.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def twice(A: T.Buffer(64), B: T.Buffer(64)):
            tx = T.launch_thread("threadIdx.x", 64)
            full = T.decl_buffer(1, "uint64", scope="shared")
            if tx == 0:
                T.mbarrier_init(T.address_of(full[0]), 32)
            T.tvm_storage_sync("shared")
            T.mbarrier_arrive(T.address_of(full[0]))
            T.mbarrier_wait(T.address_of(full[0]), 0)

        loopwright.build(twice, target="cuda -arch=sm_90")
    """

    code = "LW0841"

    def __init__(self, statement: Stmt, barrier: str, problem: str, hint: str) -> None:
        super().__init__(
            f"{barrier}: {problem}", at=statement, hint=hint, fields={"barrier": barrier, "problem": problem}
        )


class WaitsForever(AsyncOrderError):
    """Threads wait for each other, or for what nobody does.

    The message says who waits where, and what is missing.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def nobody(A: T.Buffer(64), B: T.Buffer(64)):
            tx = T.launch_thread("threadIdx.x", 64)
            full = T.decl_buffer(1, "uint64", scope="shared")
            if tx == 0:
                T.mbarrier_init(T.address_of(full[0]), 32)
            T.tvm_storage_sync("shared")
            T.mbarrier_wait(T.address_of(full[0]), 0)

        loopwright.build(nobody, target="cuda -arch=sm_90")
    """

    code = "LW0842"

    def __init__(self, statement: Stmt, waits: list[str], missing: list[str]) -> None:
        super().__init__(
            f"{waits[0]} for ever",
            at=statement,
            why="; ".join([*waits[1:], *missing]) or "nothing else goes on",
            hint="let every wait be for something that comes before it in some order of the text",
            fields={"waits": tuple(waits), "missing": tuple(missing)},
        )


class NoProxyFence(AsyncOrderError):
    """Tensor cores or the copy engine may not see what threads have stored to shared memory.

    They come to shared memory by another way (the asynchronous proxy) than loads and stores of threads. A thread that
    has stored says `T.fence_proxy_async()` before the barrier behind which `wgmma` or a copy begins.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def store(A: T.Buffer((64,), "float32"), B: T.Buffer(64)):
            B_map = T.tensor_map(B.data, "float32", 0, 1, 64, 1, 64)
            tx = T.launch_thread("threadIdx.x", 64)
            S = T.decl_buffer((64,), scope="shared")
            S[tx] = A[tx]
            T.tvm_storage_sync("shared")
            if tx == 0:
                T.tensor_store_async(B_map, T.address_of(S[0]), 0)
                T.bulk_commit_group()
                T.bulk_wait_group_read(0)

        loopwright.build(store, target="cuda -arch=sm_90")
    """

    code = "LW0843"

    def __init__(self, statement: Stmt, element: str, earlier: str, later: str) -> None:
        super().__init__(
            f"no fence_proxy_async stands between two accesses of {element}: {earlier}, and then {later}",
            at=statement,
            why="what threads store is seen by the asynchronous proxy only behind a fence of theirs",
            hint="put T.fence_proxy_async() behind the stores, before the barrier that wgmma or the copy follows",
            fields={"element": element, "earlier": earlier, "later": later},
        )


class AccumulatorsInUse(AsyncOrderError):
    """A thread touches registers that a matmul of its warpgroup is still working on, or that it has not been told of.

    Between `wgmma` and the `wgmma_wait` that covers its group accumulators and A in registers are not touched;
    what is stored to them before is seen by `wgmma` behind a `wgmma_fence`; and what was begun is committed to a group.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def early(C: T.Buffer((128, 4), "float32")):
            tx = T.launch_thread("threadIdx.x", 128)
            S = T.decl_buffer((64, 64), "float16", scope="shared")
            acc = T.decl_buffer(4, "float32", scope="local")
            for i in range(32):
                S[i * 2 + tx // 64, tx % 64] = T.float16(0)
            T.fence_proxy_async()
            T.tvm_storage_sync("shared")
            T.wgmma_fence()
            T.wgmma(T.address_of(acc[0]), 8, "float16", T.address_of(S[0, 0]), 128, 0, 1024, 0,
                    "float16", T.address_of(S[0, 0]), 128, 0, 1024, 0, 0)
            T.wgmma_commit()
            for j in range(4):
                C[tx, j] = acc[j]
            T.wgmma_wait(0, T.address_of(acc[0]), 4)

        loopwright.build(early, target="cuda -arch=sm_90a")
    """

    code = "LW0844"

    def __init__(self, statement: Stmt, element: str, problem: str, hint: str) -> None:
        super().__init__(f"{element}: {problem}", at=statement, hint=hint, fields={"element": element})


class NotByWholeWarps(AsyncOrderError):
    """Only a part of a warp, or of a warpgroup, has a call that all its threads make together, with the same arguments.

    Copies by the copy engine are calls of whole warps, `wgmma` and what belongs to it of whole warpgroups: four warps
    whose first thread is a multiple of 128.

    For example:

        import loopwright
        from loopwright.script import tir as T

        @T.prim_func
        def one(A: T.Buffer(64), B: T.Buffer(64)):
            tx = T.launch_thread("threadIdx.x", 32)
            S = T.decl_buffer((64,), scope="shared")
            full = T.decl_buffer(1, "uint64", scope="shared")
            if tx == 0:
                T.mbarrier_init(T.address_of(full[0]), 1)
                T.bulk_copy_async(T.address_of(S[0]), T.address_of(A[0]), 256, T.address_of(full[0]))
                T.mbarrier_arrive(T.address_of(full[0]))
            T.mbarrier_wait(T.address_of(full[0]), 0)

        loopwright.build(one, target="cuda -arch=sm_90")
    """

    code = "LW0845"

    def __init__(self, statement: Stmt, call: Call, number: int, count: int, size: int, where: Where) -> None:
        name, unit = call.op.name.removeprefix("tir."), "warp" if size == 32 else "warpgroup"
        super().__init__(
            f"{count} of the {size} threads of {unit} {number} call {name} alike{where_text(where)}",
            at=statement,
            why=f"all threads of a {unit} call it together, with the same arguments",
            hint=f"move the call out of conditions that split a {unit}",
            fields={"call": name, unit: number, "threads": count},
        )
