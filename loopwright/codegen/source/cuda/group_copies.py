"""Copies of groups: `cp.async` of sm_80 and later, 4, 8 or 16 bytes of one thread from global to shared memory.

A thread begins copies, makes a group of those that it has begun (`ptx_commit_group`), and waits until all of its groups
but the last few are there (`ptx_wait_group`). Other threads see them after a barrier that follows the wait.

An address that is a multiple of the bytes, as the instruction wants it, is proved to be one, or asked of whoever
launches. Where neither can be, a helper looks when it runs, and copies 4 bytes at a time, or byte by byte. The
emulation has functions of these names of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright import ir
from loopwright.codegen.source.code import Code, call
from loopwright.codegen.source.cuda.block_handoff import define_on_gpu
from loopwright.codegen.source.cuda.errors import NoSuchInstruction
from loopwright.codegen.source.cuda.places import MemoryWriter, is_aligned, place
from loopwright.codegen.source.helpers import Helpers
from loopwright.runtime.dtype import VOID

COPY_ARCHITECTURE: Final = 80
_SIZES: Final = (4, 8, 16)
_SHARED: Final = "(uint32_t)__cvta_generic_to_shared"


def _copy(writer: MemoryWriter, node: ir.Call) -> Code:
    if len(node.args) != 5:
        wanted = "a shared pointer, an offset, a global pointer, an offset and bytes"
        raise NoSuchInstruction(node, f"ptx_cp_async takes {wanted} after the type; got {len(node.args)} arguments")
    target, target_offset, source, source_offset, size = node.args
    if not isinstance(size, ir.IntImm) or size.value not in _SIZES:
        raise NoSuchInstruction(node, f"ptx_cp_async copies 4, 8 or 16 bytes, a constant; got {size}")
    to, out_of = place(target, target_offset, node.dtype), place(source, source_offset, node.dtype)
    for role, where, scopes in (("target", to, ("shared", "shared.dyn", "")), ("source", out_of, ("global", ""))):
        if where.scope not in scopes:
            wanted = "from global to shared memory"
            raise NoSuchInstruction(node, f"ptx_cp_async copies {wanted}; its {role} lies in {where.scope} memory")
    is_proved = is_aligned(writer, to, size.value) and is_aligned(writer, out_of, size.value)
    name = _copy_helper(writer.helpers, size.value, is_proved)
    writer.start_statement(to.at, out_of.at)
    return writer.effect(VOID, call(name, to.code(writer), out_of.code(writer)))


def _copy_helper(helpers: Helpers, size: int, is_proved: bool) -> str:
    addresses = [
        f"const uint32_t to = {_SHARED}(target);",
        "const uint64_t from = (uint64_t)__cvta_generic_to_global(source);",
    ]
    parameters = "void *target, const void *source"
    if is_proved:
        lines = [*addresses, _instruction("to", "from", size)]
        return define_on_gpu(helpers, f"cp_async_{size}", "void ", parameters, lines)
    lines = [*addresses, "const uint32_t all = to | (uint32_t)from;"]
    lines += [f"if ((all & {size - 1}) == 0) {{", f"    {_instruction('to', 'from', size)}"]
    if size > 4:
        ends = [f" + {k}" if k else "" for k in range(0, size, 4)]
        pieces = [_instruction(f"to{end}", f"from{end}", 4) for end in ends]
        lines += ["} else if ((all & 3) == 0) {", *[f"    {piece}" for piece in pieces]]
    lines += [
        "} else {",
        "    #pragma unroll 1",
        f"    for (uint32_t k = 0; k < {size}; ++k) {{",
        "        ((volatile uint8_t *)target)[k] = ((const volatile uint8_t *)source)[k];",
        "    }",
        "}",
    ]
    return define_on_gpu(helpers, f"cp_async_{size}_anywhere", "void ", parameters, lines)


def _instruction(to: str, out_of: str, size: int) -> str:
    """What is 16 bytes long need not be in L1."""
    cache = "cg" if size == 16 else "ca"
    given = f'"r"({to}), "l"({out_of})'
    return f'asm volatile("cp.async.{cache}.shared.global [%0], [%1], {size};" : : {given} : "memory");'


def _commit(writer: MemoryWriter, node: ir.Call) -> Code:
    line = 'asm volatile("cp.async.commit_group;" : : : "memory");'
    return writer.effect(node.dtype, call(define_on_gpu(writer.helpers, "commit_group", "void ", "", [line])))


def _wait(writer: MemoryWriter, node: ir.Call) -> Code:
    count = node.args[0]
    if not isinstance(count, ir.IntImm) or count.value < 0:
        raise NoSuchInstruction(node, f"ptx_wait_group takes a constant that is not negative; got {count}")
    definitions = writer.helpers.definitions
    if "lw_wait_group" not in definitions:
        lines = [
            "#ifdef __CUDACC__",
            "template <int32_t groups>",
            f"{writer.helpers.qualifiers} void lw_wait_group() {{",
            '    asm volatile("cp.async.wait_group %0;" : : "n"(groups) : "memory");',
            "}",
            "#endif",
        ]
        definitions["lw_wait_group"] = "\n".join(lines)
    return writer.effect(node.dtype, call(f"lw_wait_group<{count.value}>"))


# By intrinsic.
GROUP_CALLS: Final[dict[str, Callable[[MemoryWriter, ir.Call], Code]]] = {
    "ptx_cp_async": _copy,
    "ptx_commit_group": _commit,
    "ptx_wait_group": _wait,
}
