"""Random tensor programs under random schedules for GPUs, each with arrays and what numpy computes from them.

`random_kernels(seed)` makes a program of te, of one to four stages (element-wise, broadcasts, stencils, reductions,
matmuls, gathers, transposes, scans), and schedules it as people do for GPUs: loops bound to blocks, threads and virtual
threads, reads and results staged in shared and local memory, reductions over threads by binding or `rfactor`, and
`unroll`, `vectorize`, `storage_align` and `double_buffer` on top. Steps that are refused are counted and left out.

Values are small integers, also of floats: every sum is exact whatever its order, so results are compared bit for bit.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopwright import te, tir
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 64)
CELLS = 2048  # of a tensor, and iterations of a reduction, which the evaluator runs one by one
# The largest integer up to which every one is a value of the type.
EXACT = {"float32": 1 << 24, "float64": 1 << 53, "float16": 1 << 11, "bfloat16": 1 << 8}
DTYPES = ("float32",) * 6 + ("float16", "bfloat16", "float64", "int32", "int32", "int8", "uint8", "int64", "int16")
FACTORS = (1, 2, 3, 4, 7, 8, 16, 32)

Array = np.ndarray
Size = tuple[Any, int]  # a size as the program has it, a number or a variable, and the number that arrays have


@dataclass
class Value:
    """A tensor of the program, how numpy computes it from the inputs, and the largest magnitude in it."""

    tensor: te.Tensor
    shape: tuple[Size, ...]
    compute: Callable[[dict[str, Array]], Array]
    bound: int
    is_index: bool = False


@dataclass
class Kernels:
    """A scheduled program; `steps` says what was done to it, `refused` what was not allowed."""

    seed: int
    schedule: te.Schedule
    args: list[te.Tensor]
    inputs: list[Array]
    wanted: list[Array]
    steps: list[str]
    refused: Counter[str]

    def __str__(self) -> str:
        return f"seed {self.seed}:\n  " + "\n  ".join(self.steps)


def random_kernels(seed: int) -> Kernels:
    """A program under a schedule; the same one for the same seed."""
    return _Maker(random.Random(seed), seed).make()


@dataclass
class _Threads:
    """The thread axes of one kernel and how long they are."""

    axes: dict[str, tuple[te.IterVar, int]] = field(default_factory=dict)
    block: te.IterVar | None = None  # the innermost loop that is bound to blocks
    thread: te.IterVar | None = None  # the innermost loop that is bound to threads


class _Maker:
    def __init__(self, rng: random.Random, seed: int) -> None:
        self.rng, self.seed = rng, seed
        self.dtype = rng.choice(DTYPES)
        self.limit = EXACT.get(self.dtype, 1 << 62)
        self.inputs: dict[str, Array] = {}
        self.placeholders: list[te.Tensor] = []
        self.values: list[Value] = []
        self.stages: list[Value] = []
        self.sizes: list[Size] = []
        self.steps: list[str] = []
        self.refused: Counter[str] = Counter()
        self.copied: set[te.Tensor] = set()  # read through a copy in shared memory
        self.factored: set[te.Tensor] = set()

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # --- the program ---

    def size(self, most: int = 64) -> Size:
        if self.sizes and self.chance(0.3):
            fitting = [size for size in self.sizes if size[1] <= most]
            if fitting:
                return self.rng.choice(fitting)
        extent = self.rng.choice([extent for extent in EXTENTS if extent <= most])
        result: Size = (te.var(f"n{len(self.sizes)}"), extent) if self.chance(0.2) else (extent, extent)
        self.sizes.append(result)
        return result

    def placeholder(self, shape: tuple[Size, ...]) -> Value:
        name = f"A{len(self.placeholders)}"
        tensor = te.placeholder([size for size, _ in shape], self.dtype, name=name)
        generator = np.random.default_rng(self.seed * 31 + len(self.placeholders))
        low = 0 if self.dtype == "uint8" else -2
        data = generator.integers(low, 3, [extent for _, extent in shape]).astype(DataType(self.dtype).numpy())
        return self._input(name, tensor, data, shape, 2)

    def index(self, length: Size, most: int) -> Value:
        name = f"I{len(self.placeholders)}"
        tensor = te.placeholder([length[0]], "int32", name=name)
        data = np.random.default_rng(self.seed * 37 + len(self.placeholders)).integers(0, most, length[1], "int32")
        return self._input(name, tensor, data, (length,), most)

    def _input(self, name: str, tensor: te.Tensor, data: Array, shape: tuple[Size, ...], bound: int) -> Value:
        self.inputs[name] = data
        self.placeholders.append(tensor)
        return Value(tensor, shape, lambda given: given[name], bound, is_index=tensor.dtype != self.dtype)

    def operand(self, shape: tuple[Size, ...] | None = None) -> Value:
        """A tensor of this shape, computed before or given; of any shape where none is said."""
        fitting = [value for value in self.values if shape is None or _same(value.shape, shape)]
        if fitting and self.chance(0.75):
            return self.rng.choice(fitting[-3:])
        if shape is None:
            first = self.size()
            shape = (first,) if self.chance(0.25) else (first, self.size(CELLS // max(first[1], 1)))
            if self.chance(0.1) and shape[-1][1] * first[1] <= 256:
                shape = (*shape, self.size(4))
        made = self.placeholder(shape)
        self.values.append(made)
        return made

    def stage(self, shape: tuple[Size, ...], body: Callable[..., Any], compute: Any, bound: int) -> Value:
        name = f"T{len(self.stages)}"
        tensor = te.compute([size for size, _ in shape], body, name=name)
        made = Value(tensor, shape, compute, bound)
        self.values.append(made)
        self.stages.append(made)
        return made

    def elementwise(self) -> None:
        x = self.operand()
        y = self.operand(x.shape)
        kinds = ["max", "min", "chosen"]
        if x.bound + y.bound <= self.limit:
            kinds += ["add", "add", "subtract"]
        if x.bound * y.bound <= self.limit:
            kinds += ["multiply"]
        self._pair(self.rng.choice(kinds), x, y, lambda *i: x.tensor(*i), lambda *i: y.tensor(*i), lambda a: a)

    def broadcast(self) -> None:
        x = self.operand()
        axis = self.rng.randrange(len(x.shape))
        y = self.operand((x.shape[axis],))
        kind = self.rng.choice(["max", "min"] if x.bound + y.bound > self.limit else ["add", "max", "chosen"])
        spread = [1] * len(x.shape)
        spread[axis] = -1
        self._pair(kind, x, y, lambda *i: x.tensor(*i), lambda *i: y.tensor(i[axis]), lambda a: a.reshape(spread))

    def _pair(self, kind: str, x: Value, y: Value, read_x: Any, read_y: Any, place: Any) -> None:
        bodies: dict[str, tuple[Any, Any, int]] = {
            "add": (lambda a, b: a + b, np.add, x.bound + y.bound),
            "subtract": (lambda a, b: a - b, np.subtract, x.bound + y.bound),
            "multiply": (lambda a, b: a * b, np.multiply, x.bound * y.bound),
            "max": (te.max, np.maximum, max(x.bound, y.bound)),
            "min": (te.min, np.minimum, max(x.bound, y.bound)),
            "chosen": (
                lambda a, b: tir.if_then_else(a > b, a, b + b),
                lambda a, b: np.where(a > b, a, b + b),
                2 * max(x.bound, y.bound),
            ),
        }
        combine, in_numpy, bound = bodies[kind]
        if bound > self.limit:
            combine, in_numpy, bound = bodies["max"]
        self.stage(
            x.shape,
            lambda *i: combine(read_x(*i), read_y(*i)),
            lambda given: in_numpy(x.compute(given), place(y.compute(given))).astype(DataType(self.dtype).numpy()),
            bound,
        )

    def stencil(self) -> None:
        x = self.operand()
        axis = self.rng.randrange(len(x.shape))
        extent, number = x.shape[axis]
        if 3 * x.bound > self.limit:
            return

        def at(index: tuple[Any, ...], shift: int) -> Any:
            moved = list(index)
            moved[axis] = moved[axis] + shift
            inside = tir.all(moved[axis] >= 0, moved[axis] < extent)
            return tir.if_then_else(inside, x.tensor(*moved), tir.const(0, self.dtype))

        def in_numpy(given: dict[str, Array]) -> Array:
            data = x.compute(given)
            padded = np.pad(data, [(1, 1) if k == axis else (0, 0) for k in range(data.ndim)])
            parts = [padded.take(range(shift, shift + number), axis) for shift in range(3)]
            return parts[0] + parts[1] + parts[2]

        self.stage(x.shape, lambda *i: at(i, -1) + at(i, 0) + at(i, 1), in_numpy, 3 * x.bound)

    def permuted(self) -> None:
        x = self.operand()
        if len(x.shape) == 1:
            extent = x.shape[0][0]
            self.stage(x.shape, lambda i: x.tensor(extent - 1 - i), lambda given: x.compute(given)[::-1], x.bound)
            return
        order = list(range(len(x.shape)))
        self.rng.shuffle(order)
        back = np.argsort(order)
        self.stage(
            tuple([x.shape[k] for k in order]),
            lambda *i: x.tensor(*[i[k] for k in back]),
            lambda given: x.compute(given).transpose(order),
            x.bound,
        )

    def gather(self) -> None:
        x = self.operand()
        length = self.size(max(1, CELLS // max(1, int(np.prod([e for _, e in x.shape[1:]])))))
        if x.is_index:
            return
        picked = self.index(length, x.shape[0][1])
        self.stage(
            (length, *x.shape[1:]),
            lambda i, *rest: x.tensor(picked.tensor(i), *rest),
            lambda given: x.compute(given)[picked.compute(given)],
            x.bound,
        )

    def reduction(self) -> None:
        x = self.operand()
        rank = len(x.shape)
        reduced = sorted(self.rng.sample(range(rank), self.rng.choice((1, 1, rank))))
        kept = [k for k in range(rank) if k not in reduced]
        iterations = int(np.prod([x.shape[k][1] for k in reduced]))
        kinds = ["max", "min"] + ["sum"] * 4 * (x.bound * iterations <= self.limit)
        kind = self.rng.choice(kinds)
        axes = [te.reduce_axis((0, x.shape[k][0]), f"k{k}") for k in reduced]
        combine = {"sum": te.sum, "max": te.max, "min": te.min}[kind]
        in_numpy = {"sum": np.sum, "max": np.max, "min": np.min}[kind]

        def body(*index: Any) -> Any:
            where: list[Any] = [None] * rank
            for k, var in zip(kept, index if kept else ()):
                where[k] = var
            for k, axis in zip(reduced, axes):
                where[k] = axis
            return combine(x.tensor(*where), axis=axes)

        dtype = DataType(self.dtype).numpy()

        def compute(given: dict[str, Array]) -> Array:
            data = x.compute(given)
            if data.dtype.kind not in "iu":
                data = data.astype("float64")
            options = {"dtype": data.dtype} if kind == "sum" else {}
            result = in_numpy(data, axis=tuple(reduced), **options).astype(dtype)
            return result if kept else result.reshape(1)

        bound = x.bound * (iterations if kind == "sum" else 1)
        self.stage(tuple([x.shape[k] for k in kept]) or ((1, 1),), body, compute, bound)

    def matmul(self) -> None:
        x = self.operand()
        if len(x.shape) != 2 or x.is_index:
            return
        (m, k) = x.shape
        n = self.size(max(1, 8192 // max(1, m[1] * k[1])))
        y = self.placeholder((n, k) if (is_transposed := self.chance(0.3)) else (k, n))
        if x.bound * y.bound * k[1] > self.limit:
            return
        axis = te.reduce_axis((0, k[0]), "k")
        dtype = DataType(self.dtype).numpy()

        def compute(given: dict[str, Array]) -> Array:
            a, b = x.compute(given), y.compute(given)
            if a.dtype.kind not in "iu":
                a, b = a.astype("float64"), b.astype("float64")
            return (a @ (b.T if is_transposed else b)).astype(dtype)

        def body(i: Any, j: Any) -> Any:
            return te.sum(x.tensor(i, axis) * (y.tensor(j, axis) if is_transposed else y.tensor(axis, j)), axis=axis)

        self.stage((m, n), body, compute, x.bound * y.bound * k[1])

    def running_sum(self) -> None:
        x = self.operand()
        if len(x.shape) != 2 or x.bound * x.shape[0][1] > self.limit or self.stages:
            return
        (m, n) = (x.shape[0][0], x.shape[1][0])
        state = te.placeholder((m, n), self.dtype)
        start = te.compute((1, n), lambda _, i: x.tensor[0, i], name="start")
        update = te.compute((m, n), lambda t, i: state[t - 1, i] + x.tensor[t, i], name="update")
        result = te.scan(start, update, state, inputs=[x.tensor])
        self.scan = (start, update)
        dtype = DataType(self.dtype).numpy()
        made = Value(
            result, x.shape, lambda given: np.cumsum(x.compute(given), axis=0, dtype=dtype), x.bound * x.shape[0][1]
        )
        self.stages.append(made)

    def make(self) -> Kernels:
        self.scan: tuple[te.Tensor, te.Tensor] | None = None
        kinds = [self.elementwise, self.broadcast, self.stencil, self.permuted, self.gather]
        kinds += [self.reduction] * 3 + [self.matmul] * 2
        if self.chance(0.04):
            self.running_sum()
        wanted = self.rng.choice((1, 1, 2, 2, 3, 4))
        while len(self.stages) < wanted and self.scan is None:
            self.rng.choice(kinds)()
        used = set()
        for value in self.stages:
            used |= set(value.tensor.op.input_tensors)
        outputs = [value for value in self.stages if value.tensor not in used]
        schedule = te.create_schedule([value.tensor.op for value in outputs])
        self.bind_all(schedule, {value.tensor for value in outputs})
        args = [tensor for tensor in self.placeholders if tensor in used or self.scan]
        inputs = [self.inputs[tensor.op.name] for tensor in args]
        expected = [np.asarray(value.compute(self.inputs)) for value in outputs]
        for value in self.stages:
            shape = ", ".join([str(size) if size is extent else f"{size}={extent}" for size, extent in value.shape])
            self.steps.insert(0, f"{value.tensor.op.name}({shape}): {self.dtype} = {value.tensor.op.body}")
        args += [value.tensor for value in outputs]
        return Kernels(self.seed, schedule, args, inputs, expected, self.steps, self.refused)

    # --- the schedule ---

    def do(self, words: str, step: Callable[[], Any]) -> Any:
        """What the step gives, or True; None where it is refused."""
        try:
            result = step()
        except LoopwrightError as error:
            self.refused[f"{words.split('(')[0].split('.')[-1]}: {type(error).__name__}"] += 1
            return None
        self.steps.append(words)
        return True if result is None else result

    def bind_all(self, s: te.Schedule, outputs: set[te.Tensor]) -> None:
        if self.scan is not None:
            for tensor in self.scan:
                self.plain(s, tensor, _Threads(), [tensor.op.axis[1]])
            return
        readers: dict[te.Tensor, list[te.Tensor]] = {}
        for value in self.stages:
            for tensor in value.tensor.op.input_tensors:
                readers.setdefault(tensor, []).append(value.tensor)
        kernels: dict[te.Tensor, _Threads] = {}
        for value in reversed(self.stages):
            tensor = value.tensor
            of = readers.get(tensor, [])
            is_read_as_it_is = not self.copied & {tensor}
            if tensor not in outputs and is_read_as_it_is and not tensor.op.reduce_axis and self.chance(0.4):
                self.do(f"{tensor.op.name}.compute_inline()", s[tensor].compute_inline)
                continue
            alone = tensor not in outputs and is_read_as_it_is and len(of) == 1 and of[0] in kernels
            if alone and of[0] not in self.factored and self.chance(0.6):
                if self.attached(s, tensor, of[0], kernels[of[0]]):
                    continue
            kernels[tensor] = self.kernel(s, tensor)

    def attached(self, s: te.Schedule, tensor: te.Tensor, reader: te.Tensor, threads: _Threads) -> bool:
        """The tensor is computed inside its reader's kernel: by all threads together, or by each for itself."""
        name = tensor.op.name
        if threads.block is not None and self.chance(0.6):
            self.do(f"{name}.set_scope('shared')", lambda: s[tensor].set_scope("shared"))
            words = f"{name}.compute_at({reader.op.name}, the block)"
            if self.do(words, lambda: s[tensor].compute_at(s[reader], threads.block)) is None:
                self.do(f"{name}.set_scope('')", lambda: s[tensor].set_scope(""))
                return False
            self.cooperate(s, tensor, threads)
            return True
        if threads.thread is not None:
            self.do(f"{name}.set_scope('local')", lambda: s[tensor].set_scope("local"))
            words = f"{name}.compute_at({reader.op.name}, the thread)"
            if self.do(words, lambda: s[tensor].compute_at(s[reader], threads.thread)) is not None:
                return True
            self.do(f"{name}.set_scope('')", lambda: s[tensor].set_scope(""))
        return False

    def kernel(self, s: te.Schedule, tensor: te.Tensor) -> _Threads:
        """Bind the loops of a stage that is a kernel of its own."""
        threads = _Threads()
        reduces = list(tensor.op.reduce_axis)
        roll = self.rng.random()
        if reduces and roll < 0.2:
            self.across(s, tensor, threads)
        elif reduces and roll < 0.45:
            self.rfactored(s, tensor, threads)
        elif reduces and roll < 0.8:
            self.staged(s, tensor, threads)
        elif not reduces and roll < 0.4:
            self.staged(s, tensor, threads)
        else:
            self.plain(s, tensor, threads, list(s[tensor].op.axis))
        return threads

    def thread(self, threads: _Threads, tag: str, extent: int) -> te.IterVar:
        if tag == "vthread":
            return te.thread_axis((0, extent), "vthread", name=f"v{self.rng.randrange(1000)}")
        axis = te.thread_axis(tag) if self.chance(0.5) else te.thread_axis((0, extent), tag)
        threads.axes[tag] = (axis, extent)
        return axis

    def plain(self, s: te.Schedule, tensor: te.Tensor, threads: _Threads, axes: list[te.IterVar]) -> None:
        """Spatial loops become blocks and threads, along one axis or two."""
        stage, name = s[tensor], tensor.op.name
        if len(axes) >= 2 and self.chance(0.4):
            outers, inners = [], []
            for axis, letter in zip(axes[-2:], "yx"):
                factor = self.rng.choice(FACTORS[:6])
                parts = self.do(f"{name}.split({axis.var.name}, {factor})", lambda: stage.split(axis, factor=factor))  # noqa: B023
                if parts is None:
                    return
                outers.append((parts[0], f"blockIdx.{letter}"))
                inners.append((parts[1], f"threadIdx.{letter}", factor))
            order = [*axes[:-2], *[loop for loop, _ in outers], *[loop for loop, _, _ in inners]]
            self.do(f"{name}.reorder(tiles)", lambda: stage.reorder(*order))
            for loop, tag in outers:
                block = te.thread_axis(tag)
                self.do(f"{name}.bind({tag})", lambda: stage.bind(loop, block))  # noqa: B023
                threads.block = loop
            for loop, tag, extent in inners:
                axis = self.thread(threads, tag, extent)
                self.do(f"{name}.bind({tag}, {extent})", lambda: stage.bind(loop, axis))  # noqa: B023
                threads.thread = loop
            if len(axes) > 2:
                self.do(f"{name}.bind(blockIdx.z)", lambda: stage.bind(axes[0], te.thread_axis("blockIdx.z")))
            return
        fused = axes[0] if len(axes) == 1 else self.do(f"{name}.fuse(all)", lambda: stage.fuse(*axes))
        if fused is None:
            return
        inner = None
        if self.chance(0.3):
            factor = self.rng.choice((2, 3, 4))
            fused, inner = stage.split(fused, factor=factor)
            self.steps.append(f"{name}.split({factor}) for each thread")
        extent = self.rng.choice(FACTORS)
        outer, thread = stage.split(fused, factor=extent)
        self.steps.append(f"{name}.split({extent})")
        if self.chance(0.2):
            parts = self.rng.choice((2, 3))
            virtual, thread = stage.split(thread, nparts=parts)
            extent = -(-extent // parts)
            axis = self.thread(threads, "vthread", parts)
            self.do(f"{name}.bind(vthread, {parts})", lambda: stage.bind(virtual, axis))
        self.do(f"{name}.bind(blockIdx.x)", lambda: stage.bind(outer, te.thread_axis("blockIdx.x")))
        axis = self.thread(threads, "threadIdx.x", extent)
        self.do(f"{name}.bind(threadIdx.x, {extent})", lambda: stage.bind(thread, axis))
        threads.block, threads.thread = outer, thread
        if inner is not None and self.chance(0.7):
            kind = self.rng.choice(("unroll", "vectorize"))
            self.do(f"{name}.{kind}(inner)", lambda: getattr(stage, kind)(inner))

    def up_to(self, axis: te.IterVar, choices: tuple[int, ...]) -> int:
        """One of these factors, not above the length of the axis, where that is a number."""
        length = axis.dom.extent
        most = int(length) if isinstance(length, (int, tir.IntImm)) else max(choices)
        return self.rng.choice([choice for choice in choices if choice <= most] or [max(most, 1)])

    def across(self, s: te.Schedule, tensor: te.Tensor, threads: _Threads) -> None:
        """Threads share a reduction."""
        stage, name = s[tensor], tensor.op.name
        extent = self.rng.choice((2, 4, 8, 16, 32, 5, 64))
        axes = list(stage.op.axis)
        reduced = stage.op.reduce_axis[-1]
        _, inner = stage.split(reduced, factor=extent)
        self.steps.append(f"{name}.split(reduction, {extent})")
        spatial = axes[0] if len(axes) == 1 else stage.fuse(*axes)
        rows = self.rng.choice((1, 1, 2, 4))
        if rows > 1:
            outer, row = stage.split(spatial, factor=rows)
            self.steps.append(f"{name}.split(rows, {rows})")
            axis = self.thread(threads, "threadIdx.y", rows)
            self.do(f"{name}.bind(blockIdx.x)", lambda: stage.bind(outer, te.thread_axis("blockIdx.x")))
            self.do(f"{name}.bind(threadIdx.y, {rows})", lambda: stage.bind(row, axis))
        else:
            self.do(f"{name}.bind(blockIdx.x)", lambda: stage.bind(spatial, te.thread_axis("blockIdx.x")))
        thread = self.thread(threads, "threadIdx.x", extent)
        self.do(f"{name}.bind(reduction, threadIdx.x, {extent})", lambda: stage.bind(inner, thread))

    def rfactored(self, s: te.Schedule, tensor: te.Tensor, threads: _Threads) -> None:
        """Partial results, joined by the threads, or one after the other."""
        name = tensor.op.name
        extent = self.up_to(s[tensor].op.reduce_axis[-1], (2, 4, 8, 16, 5))
        _, inner = s[tensor].split(s[tensor].op.reduce_axis[-1], factor=extent)
        self.factored.add(tensor)
        parts = self.do(f"{name}.rfactor(inner of {extent})", lambda: s.rfactor(tensor, inner))
        stage = s[tensor]
        if parts is None:
            self.plain(s, tensor, threads, list(stage.op.axis))
            return
        if self.chance(0.3):
            self.plain(s, parts, _Threads(), list(s[parts].op.axis))
            self.plain(s, tensor, threads, list(stage.op.axis))
            return
        axes = list(stage.op.axis)
        spatial = axes[0] if len(axes) == 1 else stage.fuse(*axes)
        self.do(f"{name}.bind(blockIdx.x)", lambda: stage.bind(spatial, te.thread_axis("blockIdx.x")))
        thread = self.thread(threads, "threadIdx.x", extent)
        joined = stage.op.reduce_axis[-1]
        self.do(f"{name}.bind(reduction, threadIdx.x, {extent})", lambda: stage.bind(joined, thread))
        self.do(f"{name}: parts.compute_at(reduction)", lambda: s[parts].compute_at(stage, joined))
        if self.chance(0.7):
            self.do(f"{name}.set_store_predicate", lambda: stage.set_store_predicate(thread.var.equal(0)))

    def staged(self, s: te.Schedule, tensor: te.Tensor, threads: _Threads) -> None:
        """What is read goes through shared memory, perhaps through registers too; the result through registers."""
        name = tensor.op.name
        reads = self.rng.sample(list(tensor.op.input_tensors), min(len(tensor.op.input_tensors), 1 + self.chance(0.6)))
        result = None
        if self.chance(0.6 if tensor.op.reduce_axis else 0.3):
            result = self.do(f"{name}.cache_write(local)", lambda: s.cache_write(tensor, "local"))
        reader = result if result is not None else tensor
        copies = []
        for read in reads:
            scope = "shared.dyn" if self.chance(0.15) else "shared"
            words = f"{read.op.name}.cache_read({scope}, {reader.op.name})"
            copy = self.do(words, lambda: s.cache_read(read, scope, [reader]))  # noqa: B023
            if copy is None:
                continue
            self.copied.add(read)
            local = None
            if self.chance(0.25):
                words = f"{read.op.name}.cache_read(local)"
                local = self.do(words, lambda: s.cache_read(copy, "local", [reader]))  # noqa: B023
            copies.append((copy, local))
        self.plain(s, tensor, threads, list(s[tensor].op.axis))
        where: te.IterVar | None = threads.block
        inner, of = threads.thread, tensor
        if result is not None and threads.thread is not None:
            self.do(f"{name}.local.compute_at(thread)", lambda: s[result].compute_at(s[tensor], threads.thread))
            of = result
        if tensor.op.reduce_axis:
            stage = s[of]
            factor = self.rng.choice((1, 2, 3, 4, 8))
            reduced = stage.op.reduce_axis[-1]
            outer, inside = stage.split(reduced, factor=factor)
            self.steps.append(f"{of.op.name}.split(reduction, {factor})")
            if result is not None:
                others = list(stage.op.reduce_axis[:-1])
                order = [*others, outer, inside, *stage.op.axis]
                self.do(f"{of.op.name}.reorder(reduction first)", lambda: stage.reorder(*order))
            where, inner = outer, inside
            if self.chance(0.2):
                self.do(f"{of.op.name}.unroll(reduction)", lambda: stage.unroll(inside))
        elif result is not None:
            of = tensor
        for copy, local in copies:
            if where is None:
                continue
            self.do(f"{copy.op.name}.compute_at({of.op.name})", lambda: s[copy].compute_at(s[of], where))  # noqa: B023
            if local is not None:
                self.do(f"{local.op.name}.compute_at({of.op.name})", lambda: s[local].compute_at(s[of], inner))  # noqa: B023
            self.cooperate(s, copy, threads)
            if self.chance(0.2):
                self.do(f"{copy.op.name}.double_buffer()", lambda: s[copy].double_buffer())  # noqa: B023

    def cooperate(self, s: te.Schedule, tensor: te.Tensor, threads: _Threads) -> None:
        """All threads of the kernel compute a tensor in shared memory together."""
        stage, name = s[tensor], tensor.op.name
        axes = list(stage.op.axis)
        if self.chance(0.15):
            by = self.rng.choice((4, 8, 16))
            first = axes[0]
            self.do(f"{name}.storage_align({by})", lambda: stage.storage_align(first, by, 1))
        fused = axes[0] if len(axes) == 1 else stage.fuse(*axes)
        lanes = self.rng.choice((2, 4)) if self.chance(0.25) else 1
        if lanes > 1:
            fused, inner = stage.split(fused, factor=lanes)
            self.do(f"{name}.vectorize({lanes})", lambda: stage.vectorize(inner))
        for tag in ("threadIdx.y", "threadIdx.x"):
            if tag not in threads.axes or self.chance(0.05):
                continue
            axis, extent = threads.axes[tag]
            if self.chance(0.6) and not any("nparts" in step for step in self.steps[-1:]):
                fused, thread = stage.split(fused, factor=extent)
            else:
                thread, fused = stage.split(fused, nparts=extent)
            self.do(f"{name}.bind({tag}, {extent})", lambda: stage.bind(thread, axis))  # noqa: B023


def _same(one: tuple[Size, ...], other: tuple[Size, ...]) -> bool:
    return len(one) == len(other) and all([a is b or (a[0] is b[0]) or _equal(a, b) for a, b in zip(one, other)])


def _equal(one: Size, other: Size) -> bool:
    return isinstance(one[0], int) and isinstance(other[0], int) and one[0] == other[0]
