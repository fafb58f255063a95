"""Tensor copies (TMA): `cp.async.bulk.tensor` of sm_90 and later, and what stands for it where the driver makes no map.

A kernel gets a tensor map by value. It holds what the driver encoded, and the tensor's shape and strides beside it:
where the driver encodes nothing, because the tensor begins at no multiple of 16 bytes or its rows do, the 32 lanes copy
the box element by element. They announce no bytes then, and have copied before they arrive; a fence puts what they
stored before what the copy engine or tensor cores do there next. One thread stores a box in this way.

The maps themselves are made by the host (`host.py`, and native/cuda_tensor_map.c). The emulation has functions of these
names of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from loopwright import ir
from loopwright.codegen.source.code import Code, call
from loopwright.codegen.source.cuda.block_handoff import define_on_gpu
from loopwright.codegen.source.cuda.errors import NoSuchInstruction
from loopwright.codegen.source.cuda.kernels import TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES
from loopwright.codegen.source.cuda.places import MemoryWriter, pointed_memory
from loopwright.codegen.source.helpers import Helpers
from loopwright.ir.tensor_copy_intrinsics import TensorMapFields, tensor_map_fields

TENSOR_MAP: Final = "lw_tensor_map"  # the type of a kernel's parameter
_SHARED: Final = "(uint32_t)__cvta_generic_to_shared"
# Bytes after which a swizzle repeats, where a box has to begin for its rows to be swizzled as the program says.
_PERIODS: Final = {0: 128, 32: 256, 64: 512, 128: 1024}
_MEMORY_ARGUMENT: Final = {"tir.tensor_copy_async": (0, 1), "tir.tensor_store_async": (1, 0)}  # memory, and the map

Maps = Mapping[ir.Var, TensorMapFields]


# --- what is known of maps ----------------------------------------------------------------------------------------


def tensor_maps(module: ir.IRModule) -> dict[str, dict[ir.Var, TensorMapFields]]:
    """For each kernel of a split module, what is known of the tensor maps among its parameters."""
    functions = dict(module.functions_items())
    result: dict[str, dict[ir.Var, TensorMapFields]] = {}
    for function in functions.values():
        made = dict(_maps_made(function))
        if not made:
            continue
        for launch in ir.collect(function.body, ir.Call):
            kernel = functions.get(launch.op.name) if isinstance(launch.op, ir.GlobalVar) else None
            if kernel is None:
                continue
            for parameter, given in zip(kernel.params, launch.args, strict=False):
                if isinstance(given, ir.Var) and given in made:
                    result.setdefault(launch.op.name, {})[parameter] = made[given]
    return result


def _maps_made(function: ir.PrimFunc) -> Iterator[tuple[ir.Var, TensorMapFields]]:
    for let in ir.collect_statements(function.body, ir.LetStmt):
        if isinstance(let.value, ir.Call) and let.value.op.name == "tir.tensor_map":
            yield let.var, tensor_map_fields(let.value)


def box_alignments(body: ir.Stmt, maps: Maps) -> dict[ir.Var, int]:
    """The bytes at multiples of which memory has to begin that boxes are copied to and from."""
    result: dict[ir.Var, int] = {}
    for node in ir.collect(body, ir.Call):
        if node.op.name not in _MEMORY_ARGUMENT:
            continue
        memory, tensor = [node.args[k] for k in _MEMORY_ARGUMENT[node.op.name]]
        fields = maps.get(tensor) if isinstance(tensor, ir.Var) else None
        data = pointed_memory(memory)
        if fields is not None and data is not None:
            result[data] = max(_PERIODS[fields.swizzle], result.get(data, 1))
    return result


def _fields(writer: MemoryWriter, node: ir.Call, tensor: ir.Expr, coordinates: int) -> TensorMapFields:
    fields = writer.tensor_maps.get(tensor) if isinstance(tensor, ir.Var) else None
    name = node.op.name.removeprefix("tir.")
    if fields is None:
        raise NoSuchInstruction(node, f"{name} takes a map that T.tensor_map makes outside of the kernel; got {tensor}")
    if fields.rank != coordinates:
        what = f"{name} has {coordinates} coordinates, and {tensor} is the map of a tensor of {fields.rank} dimensions"
        raise NoSuchInstruction(node, what)
    return fields


# --- helpers ------------------------------------------------------------------------------------------------------


def _define_map(helpers: Helpers) -> None:
    """The structure, as native/tensor_map.h has it."""
    lines = [
        "#ifdef __CUDACC__",
        f"struct __align__({TENSOR_MAP_ALIGNMENT}) {TENSOR_MAP} {{",
        "    uint64_t words[16];",
        "    uint8_t *data;",
        "    int64_t shape[5], strides[5];",
        "    int32_t box[5], rank, element_bytes, box_bytes, swizzle, is_encoded;",
        "};",
        f'static_assert(sizeof({TENSOR_MAP}) == {TENSOR_MAP_BYTES}, "as the host lays it out");',
        "#endif",
    ]
    helpers.definitions.setdefault(TENSOR_MAP, "\n".join(lines))


def _define(helpers: Helpers, name: str, parameters: str, lines: list[str]) -> str:
    """Write a function for GPUs that is made for each type T of elements."""
    full = f"lw_{name}"
    if full not in helpers.definitions:
        _define_map(helpers)
        body = "\n".join([line if line.startswith("#") else f"    {line}" for line in lines])
        text = f"template <typename T>\n{helpers.qualifiers} void {full}({parameters}) {{\n{body}\n}}"
        helpers.definitions[full] = f"#ifdef __CUDACC__\n{text}\n#endif"
    return full


def _coordinates(rank: int) -> str:
    return ", ".join([f"int32_t i{k}" for k in range(rank)])


def _element(rank: int, k: str) -> list[str]:
    """Lines that say of element `k` of the box whether it is in the tensor, and how many bytes after its beginning."""
    lines = [f"uint32_t rest = {k};", "int64_t offset = 0;", "bool is_inside = true;"]
    for d in reversed(range(rank)):
        in_box = f"rest % (uint32_t)map->box[{d}]" if d else "rest"
        lines += [
            f"const int64_t at{d} = (int64_t)i{d} + {in_box};",
            f"is_inside = is_inside & (at{d} >= 0) & (at{d} < map->shape[{d}]);",
            f"offset += at{d} * map->strides[{d}];",
            *([f"rest /= (uint32_t)map->box[{d}];"] if d else []),
        ]
    return lines


def _swizzled(memory: str) -> list[str]:
    """Where element k of the box lies."""
    return [
        f"const uint32_t plain = {memory} + k * (uint32_t)sizeof(T);",
        "const uint32_t behind = (plain ^ (plain >> 7 & (uint32_t)map->swizzle) << 4) - " + f"{memory};",
    ]


def _copy_helper(helpers: Helpers, rank: int) -> str:
    at = ", ".join([f'"r"(i{k})' for k in reversed(range(rank))])
    numbers = ", ".join([f"%{3 + k}" for k in range(rank)])
    lines = [
        f"const uint32_t to = {_SHARED}(target), where = {_SHARED}(barrier);",
        "uint32_t lane;",
        'asm("mov.u32 %0, %%laneid;" : "=r"(lane));',
        "if (map->is_encoded) {",
        "    if (lane == 0) {",
        '        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;"',
        '                     : : "r"(where), "r"(map->box_bytes) : "memory");',
        f'        asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes "',
        f'                     "[%0], [%1, {{{numbers}}}], [%2];"',
        f'                     : : "r"(to), "l"((uint64_t)map), "r"(where), {at} : "memory");',
        "    }",
        "    return;",
        "}",
        "const uint32_t count = (uint32_t)map->box_bytes / (uint32_t)sizeof(T);",
        "#pragma unroll 1",
        "for (uint32_t k = lane; k < count; k += 32) {",
        *[f"    {line}" for line in (*_element(rank, "k"), *_swizzled("to"))],
        "    const T value = is_inside ? *(const volatile T *)(map->data + offset) : T(0);",
        "    *(volatile T *)((uint8_t *)target + behind) = value;",
        "}",
        'asm volatile("fence.proxy.async.shared::cta;" : : : "memory");',
        "__syncwarp();",
    ]
    parameters = f"void *target, const {TENSOR_MAP} *map, void *barrier, {_coordinates(rank)}"
    return _define(helpers, f"tensor_copy_{rank}d", parameters, lines)


def _store_helper(helpers: Helpers, rank: int) -> str:
    at = ", ".join([f'"r"(i{k})' for k in reversed(range(rank))])
    numbers = ", ".join([f"%{2 + k}" for k in range(rank)])
    lines = [
        f"const uint32_t from = {_SHARED}(source);",
        "if (map->is_encoded) {",
        f'    asm volatile("cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group [%0, {{{numbers}}}], [%1];"',
        f'                 : : "l"((uint64_t)map), "r"(from), {at} : "memory");',
        "    return;",
        "}",
        "const uint32_t count = (uint32_t)map->box_bytes / (uint32_t)sizeof(T);",
        "#pragma unroll 1",
        "for (uint32_t k = 0; k < count; ++k) {",
        *[f"    {line}" for line in (*_element(rank, "k"), *_swizzled("from"))],
        "    const T value = *(const volatile T *)((const uint8_t *)source + behind);",
        "    if (is_inside) { *(volatile T *)(map->data + offset) = value; }",
        "}",
    ]
    parameters = f"const {TENSOR_MAP} *map, const void *source, {_coordinates(rank)}"
    return _define(helpers, f"tensor_store_{rank}d", parameters, lines)


# --- calls --------------------------------------------------------------------------------------------------------


def _copy(writer: MemoryWriter, node: ir.Call) -> Code:
    fields = _fields(writer, node, node.args[1], len(node.args) - 3)
    return _called(writer, node, _copy_helper(writer.helpers, fields.rank), fields)


def _store(writer: MemoryWriter, node: ir.Call) -> Code:
    fields = _fields(writer, node, node.args[0], len(node.args) - 2)
    return _called(writer, node, _store_helper(writer.helpers, fields.rank), fields)


def _called(writer: MemoryWriter, node: ir.Call, helper: str, fields: TensorMapFields) -> Code:
    bits = 8 * fields.dtype.nbytes
    return writer.effect(node.dtype, call(f"{helper}<uint{bits}_t>", *writer.operands(*node.args)))


def _map(writer: MemoryWriter, node: ir.Call) -> Code:
    what = "tensor_map is a call of the host, which stands outside of the loops that are bound to blocks and threads"
    raise NoSuchInstruction(node, what)


def _commit(writer: MemoryWriter, node: ir.Call) -> Code:
    line = 'asm volatile("cp.async.bulk.commit_group;" : : : "memory");'
    return writer.effect(node.dtype, call(define_on_gpu(writer.helpers, "bulk_commit_group", "void ", "", [line])))


def _wait(suffix: str) -> Callable[[MemoryWriter, ir.Call], Code]:
    def write(writer: MemoryWriter, node: ir.Call) -> Code:
        name, count = f"lw_bulk_wait_group{suffix}", node.args[0]
        assert isinstance(count, ir.IntImm)
        if name not in writer.helpers.definitions:
            instruction = f"cp.async.bulk.wait_group{suffix.replace('_', '.')} %0;"
            lines = [
                "#ifdef __CUDACC__",
                "template <int32_t groups>",
                f"{writer.helpers.qualifiers} void {name}() {{",
                f'    asm volatile("{instruction}" : : "n"(groups) : "memory");',
                "}",
                "#endif",
            ]
            writer.helpers.definitions[name] = "\n".join(lines)
        return writer.effect(node.dtype, call(f"{name}<{count.value}>"))

    return write


# By intrinsic.
TENSOR_CALLS: Final[dict[str, Callable[[MemoryWriter, ir.Call], Code]]] = {
    "tensor_map": _map,
    "tensor_copy_async": _copy,
    "tensor_store_async": _store,
    "bulk_commit_group": _commit,
    "bulk_wait_group": _wait(""),
    "bulk_wait_group_read": _wait("_read"),
}
