"""program: a model as plain data: values in memory, and the steps that fill them, in the order they run.

    x, h, y = Value("x", (1, 4), "float32"), Value("h", (1, 8), "float32"), Value("y", (1, 8), "float32")
    w = Value("w", (4, 8), "float32")
    Program("mlp", [x], [y], {w: array}, [Launch(matmul, (x, w, h)), Launch(relu, (h, y), may_overwrite=((0, 0),))])

This is all that the back end knows of a model. A kernel is a PrimFunc of blocks whose parameters are buffers, inputs
first. Lengths may be expressions over size variables; those come from the shapes of the inputs, or from a `Bind`.
Values are told apart by identity: two may have the same name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np

from loopwright.arith.index_arithmetic import in_64_bits
from loopwright.ir import Buffer, Expr, IntImm, PrimFunc, Var, const
from loopwright.runtime.dtype import DataType
from loopwright.runtime.module import Module


class Value:
    """A tensor in memory, row-major without gaps. A scalar has the shape `()`."""

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, name: str, shape: Sequence[int | Expr], dtype: str | DataType) -> None:
        self.name = name
        self.shape: tuple[int | Expr, ...] = tuple(d.value if isinstance(d, IntImm) else d for d in shape)
        self.dtype = DataType(dtype)

    def __repr__(self) -> str:
        return f"Value({self.name}: {self.dtype}[{', '.join(map(str, self.shape))}])"

    @property
    def item_bytes(self) -> int:
        """The bytes of one element."""
        return self.dtype.nbytes * self.dtype.lanes

    @property
    def nbytes(self) -> int | Expr:
        """The bytes of all elements: a number, or an int64 expression where a length is not known yet."""
        known, rest = self.item_bytes, None
        for extent in self.shape:
            if isinstance(extent, int):
                known *= extent
            else:
                wide = in_64_bits(extent)
                rest = wide if rest is None else rest * wide
        if rest is None or known == 0:
            return known
        return rest * const(known, "int64")

    @property
    def is_static(self) -> bool:
        """Whether every length is a number."""
        return all(isinstance(extent, int) for extent in self.shape)


class Part(NamedTuple):
    """`size` places of a value along `axis`, from `start` on, and all of its other axes."""

    axis: int
    start: int
    size: int

    def of(self, array: np.ndarray) -> np.ndarray:
        """The part of an array."""
        return array[(slice(None),) * self.axis + (slice(self.start, self.start + self.size),)]

    def offset(self, value: Value) -> int:
        """How many bytes after the value the part begins. Axes after that of the part have known lengths."""
        lengths = [size for size in value.shape[self.axis + 1 :] if isinstance(size, int)]
        return self.start * value.item_bytes * prod(lengths)


@dataclass(frozen=True, eq=False)
class Launch:
    """Run a kernel. `arguments` are its inputs, then the `outputs` values that it writes, as `func` takes them.

    A parameter of `func` that is a number, not a buffer, is a size variable of the program and gets its value.

    `may_overwrite` are pairs (input, output), both counted from 0 among inputs and outputs: the output may take the
    memory of that input if nobody reads the input later. It is a permission: the back end looks whether the kernel, as
    scheduled, reads each element of the input only to write the same element of the output.

    `parts` says of arguments of which the kernel sees a part only, which: its buffer has the shape of the whole value,
    begins where the part does, and is used as far as the part goes. A launch that writes a part adds to `keeps`, whose
    memory its result takes over; without `keeps` it is the first to write into that memory.
    """

    func: PrimFunc
    arguments: tuple[Value, ...]
    outputs: int = 1
    may_overwrite: tuple[tuple[int, int], ...] = ()
    name: str = ""  # what it computes, for people: "conv2d + relu"
    parts: tuple[Part | None, ...] = ()
    keeps: Value | None = None

    @property
    def buffers(self) -> list[Buffer]:
        """The buffers that the arguments are in the kernel."""
        return [self.func.buffer_map[param] for param in self.func.params if param in self.func.buffer_map]

    @property
    def places(self) -> list[int]:
        """The parameters of the kernel that the arguments are, by position: not those that are sizes."""
        return [index for index, param in enumerate(self.func.params) if param in self.func.buffer_map]

    def part(self, index: int) -> Part | None:
        """The part of an argument that the kernel sees; None: all of it."""
        return self.parts[index] if self.parts else None

    @property
    def inputs(self) -> tuple[Value, ...]:
        return self.arguments[: len(self.arguments) - self.outputs]

    @property
    def written(self) -> tuple[Value, ...]:
        return self.arguments[len(self.arguments) - self.outputs :]


@dataclass(frozen=True, eq=False)
class View:
    """`value` is the memory of `of` under another shape (or another type of the same bytes); no code.

    With `first`, it is only the first elements of that memory: as many as a `Bind` says, which are not more.
    """

    value: Value
    of: Value
    first: bool = False


@dataclass(frozen=True, eq=False)
class Copy:
    """`value` is a copy of `of`. With `first`, its first elements are, and what follows is whatever was there."""

    value: Value
    of: Value
    first: bool = False


@dataclass(frozen=True, eq=False)
class Bind:
    """From here to the end of this body, the size variable `var` is the integer in the scalar `value`.

    `at_most`, if given, says what it never exceeds; an integer below 0 or above it ends the call with an error.
    """

    var: Var
    value: Value
    at_most: int | Expr | None = None


@dataclass(frozen=True, eq=False)
class Require:
    """Go on only where `condition` holds; else the call ends with the error `kind` of `runtime/call_errors.py`.

    The condition is about sizes, and about integers that earlier steps have computed: each of `reads` is a variable,
    the value it is read from and the element. `message` is a format: each `%lld` in it is one of `values`, `%%` a
    percent sign.
    """

    condition: Expr
    message: str
    values: tuple[Expr, ...] = ()
    reads: tuple[tuple[Var, Value, int], ...] = ()
    kind: str = "SizesDoNotFit"


@dataclass(frozen=True, eq=False)
class Body:
    """Steps under a condition or in a loop, and the values that they leave behind."""

    steps: tuple[Step, ...]
    results: tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False)
class Branch:
    """If the bool scalar `condition` holds run `then`, else `otherwise`; `results` are what the one that ran left."""

    condition: Value
    then: Body
    otherwise: Body
    results: tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False)
class Carried:
    """A value that a loop hands from one turn to the next: `inside` is `initial` at first, then what `next` was.

    After the loop `result` is the last of them. All four have one shape and type.
    """

    initial: Value
    inside: Value
    next: Value
    result: Value


@dataclass(frozen=True, eq=False)
class Slice:
    """`part` is one slice of `whole` along its first axis: that of this turn, counted from the end if `backwards`."""

    whole: Value
    part: Value
    backwards: bool = False


@dataclass(frozen=True, eq=False)
class Repeat:
    """Run `body` up to `count` times (None: no limit), as long as `condition` holds (None: always).

    `index` is the turn (an integer scalar), `condition` a bool scalar before the first turn, `inside_condition` the
    same as the body sees it, and `next_condition` what the body computes for the next turn. `scanned` are slices that
    the body reads, `collected` are slices that it writes: turn i writes slice i. A slice of `collected` that no turn
    writes holds whatever was there.
    """

    body: Body
    count: Value | int | Expr | None = None
    condition: Value | None = None
    next_condition: Value | None = None
    inside_condition: Value | None = None
    index: Value | None = None
    carried: tuple[Carried, ...] = ()
    scanned: tuple[Slice, ...] = ()
    collected: tuple[Slice, ...] = ()


Step = Launch | View | Copy | Bind | Require | Branch | Repeat


@dataclass(eq=False)
class Program:
    """A model: what it takes, what it gives, its constants, and the steps in between."""

    name: str
    inputs: Sequence[Value]
    outputs: Sequence[Value]
    constants: Mapping[Value, Any]  # numpy arrays, or what numpy makes one of
    body: Sequence[Step]
    attrs: Mapping[str, object] = field(default_factory=dict)
    operators: Mapping[Launch, tuple[str, ...]] = field(default_factory=dict)  # of the graph it was made from
    modules: Sequence[Module] = ()  # made by other compilers: what kernels call by its symbol

    def launches(self) -> list[Launch]:
        """Every kernel call as it stands in the program, those of branches and loops too."""
        return [step for step in walk(self.body) if isinstance(step, Launch)]

    def array(self, value: Value) -> np.ndarray:
        """The content of a constant, row-major."""
        return np.asarray(self.constants[value], dtype=value.dtype.numpy(), order="C")


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """Every step, each before those inside it."""
    for step in steps:
        yield step
        if isinstance(step, Branch):
            yield from walk(step.then.steps)
            yield from walk(step.otherwise.steps)
        elif isinstance(step, Repeat):
            yield from walk(step.body.steps)
