"""Random ONNX models with symbolic dimensions, calls of them, and what ONNX's reference makes of each call.

A model is grown at one *binding*: a number for every symbolic dimension. Operators and operands are chosen so that the
reference accepts them there; whether sizes agree since they have one name, since two names happen to be equal, or since
a size is declared `?`, is left to chance. The calls are that binding, others (0, 1, 2 and primes, a size changed, ...),
and calls that break a rule on purpose: one name with two sizes, an index that is out of range. The reference says what
is right: numbers, or a refusal.

Inputs hold small integers, and most operators keep results exact: those are compared to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.frontends.onnx.strict_reference import reference_of

OPSET: Final = 21
MOST_ELEMENTS: Final = 2_000
MOST_VALUE: Final = 2_000.0  # of an exact element: sums and matmuls of them stay exact in float32
SIZES: Final = (0, 1, 2, 3, 5, 7, 11)
BAD_INDICES: Final = (1_000_000, 2**31, 2**32, 2**32 + 1, -(2**31) - 1, -(2**40), 2**62)
_TYPES: Final = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}


class NoSuchNode(Exception):
    """The rule cannot make a node of the values there are."""


@dataclass
class Input:
    """An input: a size is a number or the name of a symbolic dimension; one like `?1` is declared without a name."""

    name: str
    sizes: tuple[int | str, ...]
    kind: str  # f or i
    span: int = 3  # of indices: the size at the first binding of the axis they index

    def shape(self, binding: dict[str, int]) -> tuple[int, ...]:
        return tuple(size if isinstance(size, int) else binding[size] for size in self.sizes)


@dataclass
class Value:
    """A tensor of the graph, with what it holds at the first binding."""

    name: str
    array: np.ndarray
    exact: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def rank(self) -> int:
        return self.array.ndim


@dataclass
class Call:
    """One call: the arrays, and why a refusal is right whatever the reference says (None where it decides)."""

    what: str
    arrays: dict[str, np.ndarray]
    may_refuse: str | None = None


class RandomModel:
    """A model of a few nodes, grown node by node."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.inputs: list[Input] = []
        self.binding: dict[str, int] = {}
        self.values: list[Value] = []
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self.exact: dict[str, bool] = {}
        distinct = [int(size) for size in self.random.permutation([2, 3, 5, 7])]
        apart = self.chance(0.5)
        for place in range(self.below(3) + 1):
            name = "nmk"[place]
            self.binding[name] = distinct[place] if apart else int(self.pick([1, 2, 2, 3, 3, 4, 5]))
        for _ in range(self.below(3) + 1):
            self._input()
        rules = [name for name in dir(self) if name.startswith("grow_")]
        wanted = 1 + self.below(5)
        tries = 0
        while (len(self.nodes) < wanted or not self._made()) and tries < 200:
            tries += 1
            try:
                getattr(self, str(self.pick(rules)))()
            except NoSuchNode:
                continue
        self.outputs = self._outputs()
        self.proto = self._proto()

    # Chances.

    def below(self, count: int) -> int:
        return int(self.random.integers(count))

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def pick(self, options: Sequence[Any]) -> Any:
        if not options:
            raise NoSuchNode
        return options[self.below(len(options))]

    def numbers(self, shape: Sequence[int]) -> np.ndarray:
        return self.random.integers(-3, 4, shape).astype("float32")

    # Inputs, values, nodes.

    def _input(self, rank: int | None = None) -> Value:
        rank = int(self.pick([1, 2, 2, 3, 3, 4, 4])) if rank is None else rank
        name = f"x{len(self.inputs)}"
        sizes: list[int | str] = []
        for axis in range(rank):
            draw = self.random.random()
            if draw < 0.5:
                sizes.append(str(self.pick([one for one in self.binding if not one.startswith("?")])))
            elif draw < 0.6:
                private = f"?{name}_{axis}"
                others = list(self.binding.values())
                self.binding[private] = int(self.pick([*others, 1, 2, 3, 4]))
                sizes.append(private)
            else:
                sizes.append(int(self.pick([1, 2, 3, 4, 4, 6, 8])))
        return self._enter(Input(name, tuple(sizes), "f"), self.numbers)

    def _index_input(self, shape: Sequence[int | str], span: int) -> Value:
        if span < 1:
            raise NoSuchNode
        made = Input(f"i{len(self.inputs)}", tuple(shape), "i", span)
        return self._enter(made, lambda sizes: self.random.integers(-span, span, sizes))

    def _enter(self, made: Input, fill: Callable[[Any], np.ndarray]) -> Value:
        self.inputs.append(made)
        value = Value(made.name, fill(made.shape(self.binding)), True)
        if made.kind == "f":
            self.values.append(value)
        return value

    def some(self, rank: int | None = None, least: int = 0, exact: bool = False, dtype: str = "f") -> Value:
        """A value of that rank, or of at least so many axes; the newest ones more often."""
        fitting = [
            one
            for one in self.values
            if one.array.dtype.kind == dtype
            and (rank is None or one.rank == rank)
            and one.rank >= least
            and (one.exact or not exact)
        ]
        if fitting and self.chance(0.5):
            return fitting[-1]
        return self.pick(fitting)

    def constant(self, array: Any, dtype: str = "int64") -> Value:
        data = np.asarray(array, dtype)
        name = f"c{len(self.constants)}"
        self.constants[name] = data
        return Value(name, data, True)

    def weights(self, *shape: int) -> Value:
        return self.constant(self.numbers(shape), "float32")

    def node(self, op: str, inputs: Sequence[Value | None], outputs: int = 1, exact: bool = True, **attrs: Any) -> Any:
        """Add a node, if the reference accepts it at the first binding; the values it makes."""
        names = [f"v{len(self.nodes)}_{place}" for place in range(outputs)]
        listed = ["" if one is None else one.name for one in inputs]
        made = helper.make_node(op, listed, names, **attrs)
        given = {one.name: one.array for one in inputs if one is not None}
        graph = helper.make_graph(
            [made],
            "g",
            [helper.make_tensor_value_info(name, _TYPES[_kind(array)], array.shape) for name, array in given.items()],
            [helper.make_empty_tensor_value_info(name) for name in names],
        )
        outcome = reference_of(_model(graph), given)
        if outcome.refusal is not None:
            raise NoSuchNode
        exact = exact and all(one is None or one.exact for one in inputs)
        results = []
        for name, array in zip(names, outcome.results, strict=True):
            if array.size > MOST_ELEMENTS or (array.size and np.abs(array.astype("d")).max() > MOST_VALUE):
                raise NoSuchNode
            if array.dtype.kind not in "fib" or array.dtype.itemsize not in (1, 4, 8):
                raise NoSuchNode
            results.append(Value(name, array, exact))
        self.nodes.append(made)
        self.values += results
        return results[0] if outputs == 1 else results

    def _made(self) -> list[Value]:
        return [one for one in self.values if one.name.startswith("v")]

    def _outputs(self) -> list[Value]:
        # What only a Shape looks at is a result too: a model need not compute it otherwise, nor refuse it.
        used = {name for node in self.nodes if node.op_type != "Shape" for name in node.input}
        ends = [one for one in self._made() if one.name not in used]
        others = [one for one in self._made() if one.name in used]
        if others and self.chance(0.2):
            ends.append(self.pick(others))
        return ends[-5:]

    def _proto(self) -> ModelProto:
        needed = {one.name for one in self.outputs}
        kept = []
        for node in reversed(self.nodes):
            if needed & set(node.output):
                kept.append(node)
                needed |= set(node.input)
        infos = [
            helper.make_tensor_value_info(
                one.name,
                _TYPES[one.kind],
                [None if isinstance(size, str) and size.startswith("?") else size for size in one.sizes],
            )
            for one in self.inputs
        ]
        results = [
            helper.make_tensor_value_info(
                one.name, _TYPES[_kind(one.array)], [f"r{k}_{axis}" for axis in range(one.rank)]
            )
            for k, one in enumerate(self.outputs)
        ]
        stored = [numpy_helper.from_array(array, name) for name, array in self.constants.items() if name in needed]
        return _model(helper.make_graph(kept[::-1], "g", infos, results, stored))

    # Calls.

    def calls(self, count: int) -> Iterator[Call]:
        """The call at the first binding, and others."""
        names = list(self.binding)
        yield self._call("first", self.binding)
        for number in range(count):
            changed = dict(self.binding)
            way = number % 4
            if way == 0 and names:
                name = str(self.pick(names))
                changed[name] = max(0, changed[name] + int(self.pick([-1, 1, 2])))
            elif way == 1 and names:
                changed[str(self.pick(names))] = int(self.pick([0, 1]))
            elif way == 2:
                factor = int(self.pick([2, 3]))
                changed = {name: size * factor for name, size in changed.items()}
            else:
                changed = {name: int(self.pick(SIZES)) for name in names}
            yield self._call("sizes", changed)
        yield from self._broken_names()
        yield from self._bad_indices()

    def _call(self, what: str, binding: dict[str, int]) -> Call:
        text = ", ".join(f"{name}={size}" for name, size in binding.items())
        arrays = {one.name: self._array(one, one.shape(binding), far=what == "first") for one in self.inputs}
        return Call(f"{what}: {text}", arrays)

    def _array(self, one: Input, shape: tuple[int, ...], far: bool) -> np.ndarray:
        if one.kind == "f":
            return self.numbers(shape)
        return self.random.integers(-one.span, one.span, shape) if far or self.chance(0.3) else self._near(shape)

    def _near(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.random.integers(-1, 1, shape)

    def _broken_names(self) -> Iterator[Call]:
        """One name with two sizes."""
        places = [(one, axis) for one in self.inputs for axis, size in enumerate(one.sizes) if isinstance(size, str)]
        shared = [
            (one, axis) for one, axis in places if sum(other.sizes.count(one.sizes[axis]) for other in self.inputs) > 1
        ]
        if not shared:
            return
        one, axis = shared[self.below(len(shared))]
        call = self._call("two sizes of one name", self.binding)
        shape = list(call.arrays[one.name].shape)
        shape[axis] = int(self.pick([size for size in (0, 1, 2, 3, 4, 500) if size != shape[axis]]))
        call.arrays[one.name] = self._array(one, tuple(shape), far=True)
        yield Call(f"{call.what}, axis {axis} of {one.name} is {shape[axis]}", call.arrays, "a name has two sizes")

    def _bad_indices(self) -> Iterator[Call]:
        """An index out of range."""
        for one in self.inputs:
            if one.kind == "i":
                call = self._call("bad index", self.binding)
                array = call.arrays[one.name] = self._array(one, call.arrays[one.name].shape, far=True)
                if array.size:
                    bad = int(self.pick([one.span, -one.span - 1, *BAD_INDICES]))
                    array.reshape(-1)[self.below(array.size)] = bad
                    yield Call(f"{call.what}: {bad} in {one.name}", call.arrays)

    # Element by element.

    def grow_unary(self) -> None:
        one = self.some()
        op = str(self.pick(["Relu", "Abs", "Neg", "Sign", "Sigmoid", "Tanh", "Identity", "Erf", "HardSwish"]))
        self.node(op, [one], exact=op in ("Relu", "Abs", "Neg", "Sign", "Identity"))

    def grow_binary(self) -> None:
        one = self.some()
        op = str(self.pick(["Add", "Sub", "Mul", "Max", "Min"]))
        if self.chance(0.25):
            sizes = [size if self.chance(0.5) else 1 for size in one.shape][self.below(one.rank + 1) :]
            other = self.weights(*sizes)
        else:
            other = self._fitting(one)
        pair = [one, other] if self.chance(0.5) else [other, one]
        self.node(op, pair)

    def _fitting(self, one: Value) -> Value:
        """Another value that broadcasts with this one at the first binding."""
        others = [other for other in self.values if other.array.dtype == one.array.dtype and _fits(one, other)]
        return self.pick([other for other in others if other is not one] or others)

    def grow_where(self) -> None:
        one = self.some(exact=True)
        other = self._fitting(one)
        if not other.exact:
            raise NoSuchNode
        condition = self.node(str(self.pick(["Greater", "Less", "Equal"])), [one, other])
        self.node("Where", [condition, one, other])

    def grow_expanding_sum(self) -> None:
        ones = [self.some(), self.some()]
        self.node(str(self.pick(["Sum", "Mean", "Max"])), ones, exact=False)

    # Products.

    def grow_matmul(self) -> None:
        one = self.some(least=1)
        if self.chance(0.4) and one.rank >= 1:
            self.node("MatMul", [one, self.weights(one.shape[-1], int(self.pick([1, 3, 4])))])
            return
        self.node("MatMul", [one, self._pairing(one)])

    def _pairing(self, one: Value) -> Value:
        others = [
            other
            for other in self.values
            if other.array.dtype.kind == "f" and other.rank and one.shape[-1] == other.shape[max(other.rank - 2, 0)]
        ]
        return self.pick(others)

    def grow_matmul_with_its_transpose(self) -> None:
        one = self.some(least=2)
        order = [*range(one.rank - 2), one.rank - 1, one.rank - 2]
        other = self.node("Transpose", [one], perm=order)
        self.node("MatMul", [one, other] if self.chance(0.5) else [other, one])

    def grow_gemm(self) -> None:
        one = self.some(rank=2)
        turned, other_turned = self.below(2), self.below(2)
        depth = one.shape[0] if turned else one.shape[1]
        if self.chance(0.5):
            columns = int(self.pick([1, 3, 4]))
            other = self.weights(*((columns, depth) if other_turned else (depth, columns)))
        else:
            other = self.pick([v for v in self.values if v.rank == 2 and v.shape[1 - (not other_turned)] == depth])
        columns = other.shape[0] if other_turned else other.shape[1]
        rows = one.shape[1] if turned else one.shape[0]
        bias = None
        if self.chance(0.6):
            fitting = [v for v in self.values if v.array.dtype.kind == "f" and _expands(v.shape, (rows, columns))]
            bias = self.pick([self.weights(columns), *fitting])
        self.node("Gemm", [one, other, bias], transA=turned, transB=other_turned)

    def grow_einsum(self) -> None:
        one, other = self.some(least=1), self.some(least=1)
        letters: dict[int, str] = {}
        free = iter("abcdefghij")

        def named(value: Value) -> str:
            return "".join(letters.setdefault(size, next(free)) for size in value.shape)

        left, right = named(one), named(other)
        if len(set(left)) != len(left) or len(set(right)) != len(right):
            raise NoSuchNode
        every = sorted(set(left + right))
        kept = [letter for letter in every if self.chance(0.6)]
        self.node("Einsum", [one, other], equation=f"{left},{right}->{''.join(kept)}")

    # Windows.

    def _window(self, one: Value) -> dict[str, Any]:
        spatial = one.rank - 2
        kernel = [int(self.pick([1, 2, 3])) for _ in range(spatial)]
        attrs: dict[str, Any] = {"kernel_shape": kernel}
        if self.chance(0.6):
            attrs["strides"] = [int(self.pick([1, 2])) for _ in range(spatial)]
        way = self.below(4)
        if way == 0:
            attrs["auto_pad"] = str(self.pick(["SAME_UPPER", "SAME_LOWER", "VALID"]))
        elif way > 1:
            attrs["pads"] = [self.below(size) for size in (*kernel, *kernel)]
        return attrs

    def _image(self) -> Value:
        fitting = [one for one in self.values if one.array.dtype.kind == "f" and one.rank in (3, 4) and one.array.size]
        return self.pick(fitting) if fitting else self._input(int(self.pick([3, 4])))

    def grow_conv(self) -> None:
        one = self._image()
        attrs = self._window(one)
        group = int(self.pick([1, 1, one.shape[1]]))
        if group > 1:
            attrs["group"] = group
        channels = int(self.pick([1, 2, 4])) * group
        weights = self.weights(channels, one.shape[1] // group, *attrs["kernel_shape"])
        if self.chance(0.3) and "auto_pad" not in attrs:
            attrs["dilations"] = [int(self.pick([1, 2])) for _ in attrs["kernel_shape"]]
        self.node("Conv", [one, weights, self.weights(channels) if self.chance(0.5) else None], **attrs)

    def grow_conv_transpose(self) -> None:
        one = self._image()
        attrs = self._window(one)
        attrs.pop("auto_pad", None)
        channels = int(self.pick([1, 2]))
        self.node("ConvTranspose", [one, self.weights(one.shape[1], channels, *attrs["kernel_shape"])], **attrs)

    def grow_pool(self) -> None:
        one = self._image()
        attrs = self._window(one)
        if self.chance(0.3):
            attrs["ceil_mode"] = 1
        if self.chance(0.5):
            self.node("MaxPool", [one], **attrs)
        else:
            if "pads" in attrs and self.chance(0.5):
                attrs["count_include_pad"] = 1
            self.node("AveragePool", [one], exact=False, **attrs)

    def grow_global_pool(self) -> None:
        op = str(self.pick(["GlobalAveragePool", "GlobalMaxPool"]))
        self.node(op, [self._image()], exact=op == "GlobalMaxPool")

    def grow_pyramid(self) -> None:
        """Down, up again, and the skip added."""
        one = self._image()
        spatial = one.rank - 2
        low = self.node("MaxPool", [one], kernel_shape=[2] * spatial, strides=[2] * spatial)
        scales = self.constant([1.0, 1.0, *[2.0] * spatial], "float32")
        up = self.node("Resize", [low, None, scales], mode="nearest", **_NEAREST)
        self.node("Add", [up, one])

    def grow_resize(self) -> None:
        one = self._image()
        spatial = one.rank - 2
        mode = str(self.pick(["nearest", "linear"]))
        attrs = dict(_NEAREST) if mode == "nearest" else {}
        if self.chance(0.6):
            scales = self.constant([1.0, 1.0, *[float(self.pick([2.0, 3.0])) for _ in range(spatial)]], "float32")
            self.node("Resize", [one, None, scales], exact=mode == "nearest", mode=mode, **attrs)
        else:
            wanted = [int(self.pick([2, 4, 6])) for _ in range(spatial)]
            sizes = self.constant([*one.shape[:2], *wanted])
            self.node("Resize", [one, None, None, sizes], exact=mode == "nearest", mode=mode, **attrs)

    # Movement.

    def grow_concat(self) -> None:
        one = self.some(least=1)
        axis = self.below(one.rank)
        others = [v for v in self.values if v.array.dtype == one.array.dtype and _joins(one.shape, v.shape, axis)]
        parts = [one, *(self.pick(others) for _ in range(1 + self.below(2)))]
        self.node("Concat", parts, axis=axis if self.chance(0.7) else axis - one.rank)

    def grow_split(self) -> None:
        one = self.some(least=1)
        axis = self.below(one.rank)
        size = one.shape[axis]
        if self.chance(0.5):
            count = int(self.pick([1, 2, 2, 3]))
            self.node("Split", [one], outputs=count, axis=axis, num_outputs=count)
        else:
            first = self.below(size + 1)
            self.node("Split", [one, self.constant([first, size - first])], outputs=2, axis=axis)

    def grow_slice(self) -> None:
        one = self.some(least=1)
        axes = [axis for axis in range(one.rank) if self.chance(0.6)] or [0]
        starts = [int(self.pick([0, 0, 1, -1, -2, 2, -100])) for _ in axes]
        ends = [int(self.pick([1, 2, 3, -1, -2, 2**63 - 1, 2**31 - 1, 100, 0])) for _ in axes]
        steps = [int(self.pick([1, 1, 2, -1, -2])) for _ in axes]
        for place, step in enumerate(steps):
            if step < 0 and self.chance(0.7):
                starts[place], ends[place] = -1, -(2**63) + 1
        given = [one, *map(self.constant, (starts, ends, axes, steps))]
        self.node("Slice", given)

    def grow_slice_to_a_size(self) -> None:
        """x[:, : the length of another]."""
        one, other = self.some(least=1), self.some(least=1)
        axis = self.below(one.rank)
        length = self._size_of(other, self.below(other.rank))
        self.node("Slice", [one, self.constant([0]), length, self.constant([axis])])

    def grow_gather(self) -> None:
        one = self.some(least=1)
        axis = self.below(one.rank)
        size = one.shape[axis]
        way = self.below(4)
        if way == 0:
            indices = self.constant(self.pick([0, -1]))
        elif way == 1:
            indices = self.constant(self.pick([[0], [-1], [0, -1], [[0, 0], [-1, 0]], [1, 0], [-2]]))
        else:
            shape: Any = self.pick([(2,), (1, 3), ("n",), ()])
            indices = self._index_input(shape, size)
        self.node("Gather", [one, indices], axis=axis if self.chance(0.6) else axis - one.rank)

    def grow_gather_elements(self) -> None:
        one = self.some(least=1)
        axis = self.below(one.rank)
        shape = [int(self.pick([size, max(size - 1, 0)])) if k != axis else 2 for k, size in enumerate(one.shape)]
        self.node("GatherElements", [one, self._index_input(shape, one.shape[axis])], axis=axis)

    def grow_gather_nd(self) -> None:
        one = self.some(least=1)
        batch = self.below(2) if one.rank > 1 else 0
        depth = 1 + self.below(one.rank - batch)
        span = min(one.shape[batch : batch + depth])
        rows: Any = self.pick([2, "n", 1])
        indices = self._index_input((*one.shape[:batch], rows, depth), span)
        self.node("GatherND", [one, indices], batch_dims=batch)

    def grow_scatter_elements(self) -> None:
        one = self.some(least=1)
        axis = self.below(one.rank)
        shape = [size if k != axis else min(size, 2) for k, size in enumerate(one.shape)]
        indices = self._index_input(shape, one.shape[axis])
        self.node("ScatterElements", [one, indices, self.weights(*shape)], axis=axis, reduction="add")

    def grow_scatter_nd(self) -> None:
        one = self.some(least=1)
        depth = 1 + self.below(one.rank)
        indices = self._index_input((2, depth), min(one.shape[:depth]))
        self.node("ScatterND", [one, indices, self.weights(2, *one.shape[depth:])], reduction="add")

    def grow_expand(self) -> None:
        one = self.some()
        target = [size if size > 1 or self.chance(0.4) else int(self.pick([1, 2, 3])) for size in one.shape]
        target = [1 if self.chance(0.3) else size for size in target]
        target = [2] * self.below(2) + target
        self.node("Expand", [one, self.constant(target)])

    def grow_expand_as_another(self) -> None:
        one = self.some()
        shape = self.node("Shape", [self._fitting(one)])
        self.node("Expand", [one, shape])

    def grow_reshape(self) -> None:
        one = self.some()
        count = one.array.size
        if count == 0:
            raise NoSuchNode
        way = self.below(5)
        if way == 0:
            target = [-1]
        elif way == 1:
            target = [int(self.pick([k for k in range(1, count + 1) if count % k == 0])), -1]
        elif way == 2:
            first = int(self.pick([k for k in range(1, count + 1) if count % k == 0]))
            target = [first, count // first]
        elif way == 3 and one.rank:
            target = [0, -1] if self.chance(0.5) else [*[0] * (one.rank - 1), -1, 1]
        else:
            target = [*one.shape[:1], 1, -1]
        self.node("Reshape", [one, self.constant(target)])

    def _size_of(self, one: Value, axis: int) -> Value:
        """The size of an axis as a vector of one element, found as exporters find it."""
        shape = self.node("Shape", [one])
        if self.chance(0.5):
            return self.node("Gather", [shape, self.constant([axis])], axis=0)
        scalar = self.node("Gather", [shape, self.constant(axis)], axis=0)
        return self.node("Unsqueeze", [scalar, self.constant([0])])

    def grow_reshape_by_shapes(self) -> None:
        """Shape, Gather, arithmetic, Concat, Reshape."""
        one = self.some(least=2)
        axis = self.below(one.rank)
        size = self._size_of(one, axis)
        if self.chance(0.4):
            other = self._size_of(one, (axis + 1) % one.rank)
            size = self.node("Mul", [size, other])
        elif self.chance(0.3) and one.shape[axis] % 2 == 0:
            size = self.node("Div", [size, self.constant([2])])
        parts = [size, self.constant([-1])]
        target = self.node("Concat", parts if self.chance(0.5) else parts[::-1], axis=0)
        self.node("Reshape", [one, target])

    def grow_shape_numbers(self) -> None:
        """Sizes as numbers to compute with."""
        one = self.some(least=1)
        size = self._size_of(one, self.below(one.rank))
        way = self.below(4)
        if way == 0:
            self.node("Mul", [one, self.node("Cast", [size], to=TensorProto.FLOAT)])
        elif way == 1:
            self.node("ConstantOfShape", [size], value=numpy_helper.from_array(np.array([2.0], "f")))
        elif way == 2:
            last = self.node("Squeeze", [size, self.constant([0])])
            run = self.node("Range", [self.constant(0), last, self.constant(1)])
            self.node("Cast", [run], to=TensorProto.FLOAT)
        else:
            self.node("Add", [size, self.constant([int(self.pick([0, 1, -1]))])])

    def grow_squeeze(self) -> None:
        one = self.some(least=1)
        ones = [axis for axis, size in enumerate(one.shape) if size == 1]
        if self.chance(0.4):
            self.node("Squeeze", [one])
        else:
            self.node("Squeeze", [one, self.constant([self.pick(ones)])])

    def grow_unsqueeze(self) -> None:
        one = self.some()
        self.node("Unsqueeze", [one, self.constant([self.below(one.rank + 1)])])

    def grow_flatten(self) -> None:
        one = self.some()
        self.node("Flatten", [one], axis=self.below(one.rank + 1))

    def grow_transpose(self) -> None:
        one = self.some(least=2)
        self.node("Transpose", [one], perm=[int(axis) for axis in self.random.permutation(one.rank)])

    def grow_tile(self) -> None:
        one = self.some(least=1)
        self.node("Tile", [one, self.constant([int(self.pick([1, 1, 2, 3])) for _ in one.shape])])

    def grow_pad(self) -> None:
        one = self.some(least=1)
        mode = str(self.pick(["constant", "constant", "edge", "reflect", "wrap"]))
        low = -1 if mode == "constant" and self.chance(0.3) else 0
        pads = [int(self.random.integers(low, 3)) for _ in range(2 * one.rank)]
        if mode != "constant":
            pads = [min(pad, max(one.shape[k % one.rank] - 1, 0)) for k, pad in enumerate(pads)]
        given = [one, self.constant(pads), *([self.constant(2.0, "float32")] if mode == "constant" else [])]
        self.node("Pad", given, mode=mode)

    def grow_trilu(self) -> None:
        one = self.some(least=2)
        self.node("Trilu", [one, self.constant(int(self.pick([0, 1, -1])))], upper=self.below(2))

    def grow_depth_to_space(self) -> None:
        one = self._image()
        if one.rank != 4:
            raise NoSuchNode
        self.node(str(self.pick(["DepthToSpace", "SpaceToDepth"])), [one], blocksize=2)

    # Reductions and what looks along an axis.

    def grow_reduction(self) -> None:
        one = self.some(least=1)
        op = str(self.pick(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL2", "ReduceProd"]))
        axes = [axis for axis in range(one.rank) if self.chance(0.5)]
        given = [one, self.constant(axes)] if axes else [one]
        exact = op not in ("ReduceMean", "ReduceL2", "ReduceProd")
        self.node(op, given, keepdims=self.below(2), exact=exact)

    def grow_arg(self) -> None:
        one = self.some(least=1, exact=True)
        axis = self.below(one.rank)
        op = str(self.pick(["ArgMax", "ArgMin"]))
        self.node(op, [one], axis=axis, keepdims=self.below(2), select_last_index=self.below(2))

    def grow_topk(self) -> None:
        one = self.some(least=1, exact=True)
        axis = self.below(one.rank)
        count = 1 + self.below(max(one.shape[axis], 1))
        self.node("TopK", [one, self.constant([count])], outputs=2, axis=axis, largest=self.below(2))

    def grow_softmax(self) -> None:
        one = self.some(least=1)
        op = str(self.pick(["Softmax", "Softmax", "LogSoftmax"]))
        self.node(op, [one], exact=False, axis=self.below(one.rank))

    def grow_layer_norm(self) -> None:
        one = self.some(least=1)
        axis = self.below(one.rank)
        scale = self.weights(*one.shape[axis:])
        bias = self.weights(*one.shape[axis:]) if self.chance(0.5) else None
        self.node("LayerNormalization", [one, scale, bias], exact=False, axis=axis)

    def grow_cumsum(self) -> None:
        one = self.some(least=1)
        self.node("CumSum", [one, self.constant(self.below(one.rank))], exclusive=self.below(2), reverse=self.below(2))

    def grow_attention(self) -> None:
        """softmax(q kᵀ / 2 + mask) v, as exporters write it; queries and keys may have sizes of their own."""
        query = self.some(least=2)
        keys = [v for v in self.values if v.rank == query.rank and _attends(query.shape, v.shape)]
        key = self.pick(keys)
        value = self.pick([v for v in keys if v.shape[:-1] == key.shape[:-1]])
        turned = self.node("Transpose", [key], perm=[*range(key.rank - 2), key.rank - 1, key.rank - 2])
        scores = self.node("MatMul", [query, turned])
        scores = self.node("Mul", [scores, self.constant(0.5, "float32")])
        rows, columns = scores.shape[-2:]
        way = self.below(3)
        if way == 1:
            mask = np.triu(np.full((rows, columns), -1e9, "f"), 1)
            scores = self.node("Add", [scores, self.constant(mask, "float32")], exact=False)
        elif way == 2:
            fitting = [v for v in self.values if v.array.dtype.kind == "f" and _expands(v.shape, scores.shape)]
            scores = self.node("Add", [scores, self.pick(fitting)])
        weights = self.node("Softmax", [scores], exact=False, axis=-1)
        self.node("MatMul", [weights, value])

    def grow_decoder_mask(self) -> None:
        """A causal mask of the length of the sequence, made of Shape, Range and Less."""
        one = self.some(least=2)
        length = self.node("Squeeze", [self._size_of(one, one.rank - 1), self.constant([0])])
        run = self.node("Range", [self.constant(0), length, self.constant(1)])
        column = self.node("Unsqueeze", [run, self.constant([1])])
        seen = self.node("LessOrEqual", [run, column])
        square = self.node("Where", [seen, self.constant(0.0, "float32"), self.constant(-100.0, "float32")])
        if one.shape[-2] == one.shape[-1]:
            masked = self.node("Add", [one, square])
            self.node("Softmax", [masked], exact=False, axis=-1)


_NEAREST: Final = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def _fits(one: Value, other: Value) -> bool:
    pairs = zip(reversed(one.shape), reversed(other.shape))
    return all(a == b or 1 in (a, b) for a, b in pairs)


def _expands(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to the target, in that direction only."""
    if len(shape) > len(target):
        return False
    return all(a in (b, 1) for a, b in zip(reversed(shape), reversed(target)))


def _joins(one: tuple[int, ...], other: tuple[int, ...], axis: int) -> bool:
    return len(one) == len(other) and all(a == b or k == axis for k, (a, b) in enumerate(zip(one, other)))


def _attends(query: tuple[int, ...], key: tuple[int, ...]) -> bool:
    return query[-1] == key[-1] and all(a == b or 1 in (a, b) for a, b in zip(query[:-2], key[:-2]))


def _kind(array: np.ndarray) -> str:
    return array.dtype.kind


def _model(graph: Any) -> ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
