"""What is raised where roles cannot be given to warps."""

from __future__ import annotations

from loopwright.ir import Node
from loopwright.transform.errors import LoweringError


class CannotSpecialize(LoweringError, ValueError):
    """The parts of a loop cannot be given to different warps.

    The loop holds nothing but parts with roles. Memory that one role writes and others read is shared memory, allocated
    in the loop, and the role that writes it comes first.

    For example:

        from loopwright.script import tir as T
        from loopwright.transform import launch_threads, specialize_warps

        @T.prim_func
        def f(A: T.Buffer((4, 32)), B: T.Buffer((4, 32))):
            for bx in T.thread_binding(1, thread="blockIdx.x"):
                S = T.decl_buffer((32,), scope="shared")
                for i in T.serial(4, annotations={"warp_role_stages": 2}):
                    with T.attr("load", "warp_role", 32):
                        for tx in T.thread_binding(32, thread="threadIdx.x"):
                            S[tx] = A[i, tx]
                    with T.attr("store", "warp_role", 32):
                        for tx in T.thread_binding(32, thread="threadIdx.x"):
                            B[i, tx] = S[31 - tx]

        specialize_warps(launch_threads(f))
    """

    code = "LW0725"

    def __init__(self, problem: str, at: Node, hint: str | None = None) -> None:
        super().__init__(f"specialize_warps: {problem}", at=at, hint=hint)
