"""A model that can be called.

    model = CompiledModel("model.onnx")
    y = model(x)                    arrays in, arrays out; by position or by name

The model is imported and compiled once, for every size that its named dimensions may have. Where the graph cannot be
made without the *values* of inputs (a shape, a count: see the error ValueNeeded), or without the lengths of sequences,
it is compiled at the first call for those given there, and again for others; each variant is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from loopwright.frontends.common import runners
from loopwright.frontends.common.runners import Runner, name_of
from loopwright.frontends.errors import NotOneLibrary, ValueNeeded
from loopwright.frontends.onnx.convert import Absent, Imported, ModelInput, Structure, import_model, shapes_by_name
from loopwright.frontends.onnx.element_types import ElementType
from loopwright.frontends.onnx.errors import InputMismatch, ShapeNeeded
from loopwright.frontends.onnx.load import ModelSource, loaded
from loopwright.ir import Var as SizeVariable
from loopwright.ir.types import Type
from loopwright.model.direct_call import DirectCall, in_order, no_direct_call
from loopwright.relay.types import TensorType

if TYPE_CHECKING:
    from loopwright.model.profile import Profile
    from loopwright.relay.build_module import Targets
    from loopwright.relay.built import BuiltModule
    from loopwright.relay.quantize.calibrate import Sample

# A result: a tensor, a list for a sequence, None for an optional that is absent.
Output: TypeAlias = np.ndarray | list["Output"] | None
# The shape of an input that was given: of a tensor, those of a sequence, or none.
Shape: TypeAlias = tuple[int, ...] | list["Shape"] | type[Absent]


def interpreted(imported: Imported) -> Runner:
    """Run by the reference interpreter."""
    return runners.interpreted(imported.mod)


def native(
    imported: Imported,
    target: Targets = None,
    winograd: bool | int = False,
    precision: str = "float32",
    calibrate: Iterable[Sample] | None = None,
    name: str = "model",
) -> Runner:
    """Compiled to native code; a graph that cannot be is compiled for the shapes of each call, as far as it can be."""
    return runners.native(imported.mod, target, winograd, precision, calibrate, name, imported.tensor_names)


class Variant:
    """The model for certain values of certain inputs: a module and what runs it."""

    def __init__(self, imported: Imported, runner: Runner) -> None:
        self.imported = imported
        self.runner = runner

    def arrays(self, given: Mapping[str, object]) -> list[np.ndarray]:
        """The inputs as the parameters of `main` take them."""
        arrays: list[np.ndarray] = []
        sizes: dict[SizeVariable, tuple[int, str]] = {}
        for one in self.imported.inputs:
            arrays += _arrays(one, given.get(one.name), sizes)
        return arrays

    def __call__(self, given: Mapping[str, object]) -> list[Output]:
        tensors = iter(self.runner(self.arrays(given)))
        return [_outside(tensors, of) for of in self.imported.outputs]

    @property
    def direct_call(self) -> DirectCall:
        """The call that converts nothing, where inputs and outputs are plain tensors whose types the graph has."""
        library = getattr(self.runner, "library", None)
        kinds = [*(one.structure for one in self.imported.inputs), *self.imported.outputs]
        plain = all(isinstance(kind, ElementType) and not kind.carried for kind in kinds)
        return library.direct_call if library is not None and plain else no_direct_call


class CompiledModel:
    """An ONNX model as a function of arrays.

    model: a path, bytes, an open file or an onnx.ModelProto.
    shape, values: as `from_onnx` has them.
    name: of the native function; by default, the stem of the file.
    make_runner: what makes a module callable; the native compiler by default.
    """

    def __init__(
        self,
        model: ModelSource,
        *,
        target: Targets = None,
        shape: Mapping[str, object] | None = None,
        values: Mapping[str, object] | None = None,
        winograd: bool | int = True,
        precision: str = "float32",
        calibrate: Iterable[Sample] | None = None,
        name: str | None = None,
        make_runner: Callable[[Imported], Runner] | None = None,
    ) -> None:
        called = name_of(model, name)
        self._shape = shapes_by_name(shape)
        self._values = dict(values or {})
        self._make_runner = make_runner or (
            lambda imported: native(imported, target, winograd, precision, calibrate, called)
        )
        self._value_names: list[str] = []  # inputs whose values the graph is made for
        self._shape_names: list[str] = []  # inputs whose shapes it is made for
        self._variants: dict[Hashable, Variant] = {}
        self._direct: DirectCall = no_direct_call
        with loaded(model, stacklevel=2) as self._model:
            self._name_ports()
            try:
                self._variants[self._key({})] = only = self._variant({})
                self._direct = only.direct_call
            except (ValueNeeded, ShapeNeeded) as error:
                if isinstance(error, ValueNeeded) and not error.sources:
                    raise
                self._learn(error)

    def _name_ports(self) -> None:
        graph = self._model.proto.graph
        stored = {tensor.name for tensor in graph.initializer} | {one.values.name for one in graph.sparse_initializer}
        self._inputs = {value.name: value.type for value in graph.input if value.name not in stored}
        self.input_names = [name for name in self._inputs if name not in self._values]
        self.output_names = [value.name for value in graph.output]

    def __repr__(self) -> str:
        return f"<a compiled model: {', '.join(self.input_names)} → {', '.join(self.output_names)}>"

    def __call__(self, *args: object, **named: object) -> Any:
        """The output of the model; a list of them where there are several."""
        ordered = in_order(self.input_names, args, named) if named else args
        if ordered is not None:
            direct = self._direct(*ordered)
            if direct is not None:
                return direct
        outputs = self.run(args, named)
        return outputs[0] if len(outputs) == 1 else outputs

    def run(
        self, args: Sequence[object] | Mapping[str, object] = (), named: Mapping[str, object] | None = None
    ) -> list[Any]:
        """All outputs of the model, in its order."""
        given = self._named(args, named or {})
        while True:
            key = self._key(given)
            variant = self._variants.get(key)
            if variant is not None:
                return variant(given)
            try:
                self._variants[key] = self._variant(given)
            except (ValueNeeded, ShapeNeeded) as error:
                self._learn(error)

    @property
    def library(self) -> BuiltModule:
        """What relay.build made of the model, where it was compiled once for all calls: to export, profile, look at."""
        variants = list(self._variants.values())
        result = getattr(variants[0].runner, "library", None) if len(variants) == 1 else None
        if result is None or self._value_names or self._shape_names:
            why_not = getattr(variants[0].runner, "why_not", None) if len(variants) == 1 else None
            raise NotOneLibrary(self._value_names + self._shape_names, why_not)
        return result

    def export_library(self, path: str, **options: Any) -> str:
        """Write the model as a library, an archive or an object, by the ending of the name.

        A model that is compiled call by call is none: the error says why, and nothing is written.
        """
        return self.library.export_library(path, **options)

    def profile(self, *args: object, repeat: int = 5, **named: object) -> Profile:
        """What each layer takes for these inputs, how near the roofline it is, and why not nearer; printed, a table."""
        library = self.library
        (variant,) = self._variants.values()
        return library.profile(*variant.arrays(self._named(args, named)), repeat=repeat)

    # Variants.

    def _learn(self, error: ValueNeeded | ShapeNeeded) -> None:
        """Note what the graph depends on; an error where that was noted before."""
        if isinstance(error, ShapeNeeded):
            name = str(error.fields["input"])
            if name in self._shape_names:
                raise error
            self._shape_names.append(name)
        else:
            new = [name for name in error.sources if name not in self._value_names]
            if not new:
                raise error
            self._value_names += new
        self._variants.clear()
        self._direct = no_direct_call

    def _key(self, given: Mapping[str, object]) -> Hashable:
        values = tuple(_fingerprint(given.get(name)) for name in self._value_names)
        absent = tuple(name for name, value in given.items() if value is None)
        return values, tuple(_shape_key(given.get(name)) for name in self._shape_names), absent

    def _variant(self, given: Mapping[str, object]) -> Variant:
        values = {**self._values, **{name: given[name] for name in self._value_names if name in given}}
        shape = dict(self._shape)
        for name in self._shape_names:
            if name in given and name not in values:
                shape[name] = _shape_of(given[name])
        shape.update((name, Absent) for name, value in given.items() if value is None and name not in values)
        imported = import_model(self._model, shape=shape, values=values, dynamic=False)
        return Variant(imported, self._make_runner(imported))

    def _named(self, args: Sequence[object] | Mapping[str, object], named: Mapping[str, object]) -> dict[str, object]:
        """Inputs by name, each once, in the element types of the model."""
        if not isinstance(args, (Mapping, Sequence, np.ndarray)) or isinstance(args, str):
            raise InputMismatch(f"the inputs are a list, or a dict by name, not {type(args).__name__}")
        given = dict(args) if isinstance(args, Mapping) else dict(zip(self.input_names, args))
        if not isinstance(args, Mapping) and len(args) > len(self.input_names):
            raise InputMismatch(f"{len(args)} inputs are given, and the model has {len(self.input_names)}")
        for name, value in named.items():
            if name in given:
                raise InputMismatch(f"the input {name!r} is given twice")
            given[name] = value
        for name in given:
            if name not in self.input_names:
                raise InputMismatch(f"the model has no input {name!r}", hint=f"it has {', '.join(self.input_names)}")
        missing = [name for name in self.input_names if name not in given]
        nothing = [name for name in self.input_names if given.get(name) is None]
        required = [name for name in nothing if not self._inputs[name].HasField("optional_type")]
        if required:
            raise InputMismatch(
                f"the input{'s' if len(required) > 1 else ''} {', '.join(map(repr, required))} "
                f"{'are' if len(required) > 1 else 'is'} not given"
            )
        return {**given, **dict.fromkeys(missing)}


def _shape_of(value: object) -> Shape:
    if value is None:
        return Absent
    if isinstance(value, (list, tuple)):
        return [_shape_of(item) for item in value]
    return tuple(np.asarray(value).shape)


def _shape_key(value: object) -> Hashable:
    if isinstance(value, (list, tuple)):
        return tuple(map(_shape_key, value))
    return Absent if value is None else np.asarray(value).shape


def _fingerprint(value: object) -> Hashable:
    if value is None:
        return None
    if isinstance(value, (list, tuple)) and any(hasattr(item, "shape") for item in value):
        return tuple(map(_fingerprint, value))
    array = np.asarray(value)
    return array.shape, array.dtype.str, array.tobytes()


def _arrays(one: ModelInput, value: object, sizes: dict[SizeVariable, tuple[int, str]]) -> list[np.ndarray]:
    """An input as the parameters of `main` take it."""
    if isinstance(one.structure, list):
        if not isinstance(value, (list, tuple)) or len(value) != len(one.structure):
            raise InputMismatch(f"the input {one.name!r} is a sequence of {len(one.structure)}, and not {value!r:.60}")
        return [
            _array(f"{one.name}[{k}]", item, kind, param.type_annotation, sizes)
            for k, (item, kind, param) in enumerate(zip(value, one.structure, one.params))
        ]
    if one.structure is None:
        return []
    if value is None:
        raise InputMismatch(f"the input {one.name!r} is not given")
    return [_array(one.name, value, one.structure, one.params[0].type_annotation, sizes)]


def _array(
    name: str, value: object, kind: ElementType, of: Type | None, sizes: dict[SizeVariable, tuple[int, str]]
) -> np.ndarray:
    wanted = kind.numpy()
    if hasattr(value, "dtype") or hasattr(value, "numpy"):
        array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
        if array.dtype != wanted:
            raise InputMismatch(
                f"the input {name!r} has dtype {array.dtype}, expected {wanted}",
                hint=f'convert it: x.astype("{wanted}")',
            )
    else:
        try:
            array = np.asarray(value, wanted)
        except (TypeError, ValueError) as error:
            raise InputMismatch(f"the input {name!r} is no tensor of {wanted}: {error}") from error
    assert isinstance(of, TensorType)
    if array.ndim != len(of.shape):
        raise InputMismatch(f"the input {name!r} has {array.ndim} dimension(s), expected {len(of.shape)}: {of}")
    for axis, (size, declared) in enumerate(zip(array.shape, of.shape)):
        if isinstance(declared, int) and size != declared:
            raise InputMismatch(f"the input {name!r} has shape {array.shape}, expected {of}")
        if isinstance(declared, SizeVariable):
            known, where = sizes.setdefault(declared, (size, f"axis {axis} of {name!r}"))
            if known != size:
                raise InputMismatch(
                    f"the size {declared.name} is {known} by {where}, and {size} by axis {axis} of {name!r}"
                )
    return kind.to_graph(array)


def _outside(tensors: Iterator[np.ndarray], of: Structure) -> Output:
    """A result as the model says it is: a tensor, a list for a sequence, None for an optional that is absent."""
    if of is None:
        return None
    if isinstance(of, list):
        return [_outside(tensors, kind) for kind in of]
    return of.from_graph(next(tensors))
