"""Block hand-off: tickets, and status words that blocks of one kernel publish for later ones, as inline PTX.

Relaxed accesses of the whole GPU's scope are enough: a word has all that is handed on, and comes whole. Before sm_70
there are volatile ones. An await that sees nothing for seconds ends the kernel with a trap, so that a mistake in a
kernel is an error and no hang. The emulation has functions of these names of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright.codegen.source.helpers import Helpers

_POLLS: Final = 1 << 24  # at least half a microsecond each
_SLEEP: Final = 1  # nanoseconds between two polls: with 8 to 256, scans on an H200 took 2 % longer


def _access(modern: str, old: str) -> list[str]:
    """One line for sm_70 and later, and one for what came before."""
    return ["#if __CUDA_ARCH__ >= 700", modern, "#else", old, "#endif"]


def define_on_gpu(helpers: Helpers, name: str, result: str, parameters: str, lines: list[str]) -> str:
    """Write the function `name` for GPUs alone, unless it is there, and give its full name."""
    full = f"lw_{name}"
    if full not in helpers.definitions:
        body = "\n".join([line if line.startswith("#") else f"    {line}" for line in lines])
        text = f"{helpers.qualifiers} {result}{full}({parameters}) {{\n{body}\n}}"
        helpers.definitions[full] = f"#ifdef __CUDACC__\n{text}\n#endif"
    return full


def _take_ticket(helpers: Helpers) -> str:
    lines = [
        "int32_t ticket;",
        'asm volatile("atom.add.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(counter) : "memory");',
        "return ticket;",
    ]
    return define_on_gpu(helpers, "take_ticket", "int32_t ", "void *counter", lines)


def _publish(helpers: Helpers) -> str:
    given = ': : "l"(status), "l"(word) : "memory");'
    lines = _access(
        f'asm volatile("st.relaxed.gpu.u64 [%0], %1;" {given}',
        f'asm volatile("st.volatile.u64 [%0], %1;" {given}',
    )
    return define_on_gpu(helpers, "publish", "void ", "void *status, uint64_t word", lines)


def _await_published(helpers: Helpers) -> str:
    result = ': "=l"(word) : "l"(status) : "memory");'
    lines = [
        "#pragma unroll 1",
        f"for (uint32_t poll = 0; poll < {_POLLS}u; ++poll) {{",
        "    uint64_t word;",
        *_access(
            f'asm volatile("ld.relaxed.gpu.u64 %0, [%1];" {result}',
            f'asm volatile("ld.volatile.u64 %0, [%1];" {result}',
        ),
        "    if (word != 0) { return word; }",
        "#if __CUDA_ARCH__ >= 700",
        f'    asm volatile("nanosleep.u32 {_SLEEP};");',
        "#endif",
        "}",
        "__trap();",
        "return 0;",
    ]
    return define_on_gpu(helpers, "await_published", "uint64_t ", "const void *status", lines)


# By intrinsic: writes the helper, and gives its name.
HANDOFF_CALLS: Final[dict[str, Callable[[Helpers], str]]] = {
    "take_ticket": _take_ticket,
    "publish": _publish,
    "await_published": _await_published,
}
