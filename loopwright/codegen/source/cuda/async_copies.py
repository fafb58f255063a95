"""Asynchronous copies: mbarriers, bulk copies and barriers of some warps, as inline PTX of sm_90 and later.

A copy whose addresses and size are multiples of 16 bytes is one instruction of lane 0, which the copy engine carries
out. Other lanes need not have come, so nothing here waits for them. What is no such multiple goes by 4 bytes, or byte
by byte: each lane copies its share, and waits for it, before it arrives; a fence puts what it stored before what the
copy engine may store there next.

A wait that sees nothing for seconds ends the kernel with a trap, so that a mistake in a kernel is an error and no hang.
The emulation has functions of these names of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright.codegen.source.cuda.block_handoff import define_on_gpu
from loopwright.codegen.source.helpers import Helpers

ASYNC_ARCHITECTURE: Final = 90  # the first that has what stands here
_WAITS: Final = 1 << 24  # at least half a microsecond each
_SHARED: Final = "(uint32_t)__cvta_generic_to_shared"


def _mbarrier_init(helpers: Helpers) -> str:
    lines = [
        'asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"',
        f'             : : "r"({_SHARED}(barrier)), "r"(arrivals) : "memory");',
        'asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");',
    ]
    return define_on_gpu(helpers, "mbarrier_init", "void ", "void *barrier, int32_t arrivals", lines)


def _mbarrier_arrive(helpers: Helpers) -> str:
    line = f'asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"({_SHARED}(barrier)) : "memory");'
    return define_on_gpu(helpers, "mbarrier_arrive", "void ", "void *barrier", [line])


def _mbarrier_wait(helpers: Helpers) -> str:
    lines = [
        f"const uint32_t where = {_SHARED}(barrier);",
        "#pragma unroll 1",
        f"for (uint32_t poll = 0; poll < {_WAITS}u; ++poll) {{",
        "    uint32_t has_completed;",
        '    asm volatile("{.reg .pred p; "',
        '                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"',
        '                 : "=r"(has_completed) : "r"(where), "r"(parity) : "memory");',
        "    if (has_completed) { return; }",
        "}",
        "__trap();",
    ]
    return define_on_gpu(helpers, "mbarrier_wait", "void ", "void *barrier, int32_t parity", lines)


def _bulk_copy_async(helpers: Helpers) -> str:
    lines = [
        "__syncwarp();",  # the first lane begins when all have done what comes before: threads of a warp may diverge
        "if (bytes <= 0) { return; }",
        f"const uint32_t to = {_SHARED}(target), where = {_SHARED}(barrier);",
        "const uint32_t size = (uint32_t)bytes;",
        "const uint64_t from = (uint64_t)__cvta_generic_to_global(source);",
        "const uint32_t all = to | (uint32_t)from | size;",
        "uint32_t lane;",
        'asm("mov.u32 %0, %%laneid;" : "=r"(lane));',
        "if ((all & 15) == 0) {",
        "    if (lane == 0) {",
        '        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;"',
        '                     : : "r"(where), "r"(size) : "memory");',
        '        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "',
        '                     "[%0], [%1], %2, [%3];"',
        '                     : : "r"(to), "l"(from), "r"(size), "r"(where) : "memory");',
        "    }",
        "    return;",
        "}",
        "if ((all & 3) == 0) {",
        "    #pragma unroll 4",
        "    for (uint32_t k = lane * 4; k < size; k += 128) {",
        '        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(to + k), "l"(from + k) : "memory");',
        "    }",
        '    asm volatile("cp.async.wait_all;" : : : "memory");',
        "} else {",
        "    #pragma unroll 1",
        "    for (uint32_t k = lane; k < size; k += 32) {",
        "        ((volatile uint8_t *)target)[k] = ((const volatile uint8_t *)source)[k];",
        "    }",
        "}",
        'asm volatile("fence.proxy.async.shared::cta;" : : : "memory");',
        "__syncwarp();",  # lane 0 may arrive alone
    ]
    parameters = "void *target, const void *source, int64_t bytes, void *barrier"
    return define_on_gpu(helpers, "bulk_copy_async", "void ", parameters, lines)


def _role_barrier(helpers: Helpers) -> str:
    line = 'asm volatile("bar.sync %0, %1;" : : "r"(number), "r"(threads) : "memory");'
    return define_on_gpu(helpers, "role_barrier", "void ", "int32_t number, int32_t threads", [line])


# By intrinsic: writes the helper, and gives its name.
ASYNC_CALLS: Final[dict[str, Callable[[Helpers], str]]] = {
    "mbarrier_init": _mbarrier_init,
    "mbarrier_arrive": _mbarrier_arrive,
    "mbarrier_wait": _mbarrier_wait,
    "bulk_copy_async": _bulk_copy_async,
    "role_barrier": _role_barrier,
}
