"""A module that can be called.

    model = CompiledModule(module, (x,))
    y = model(x)                    tensors of torch in, tensors of torch out; arrays in, arrays out

Arguments and results have the structure that the module has: tuples, dicts, keywords. Open sizes (`dynamic_shapes`) are
compiled once, for every number they may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from loopwright.frontends.common.runners import Runner, name_of, native
from loopwright.frontends.errors import NotOneLibrary
from loopwright.frontends.pytorch.convert import import_module
from loopwright.frontends.pytorch.direct_call import direct_call
from loopwright.frontends.pytorch.element_types import as_array, as_tensor
from loopwright.frontends.pytorch.errors import WrongInputs
from loopwright.frontends.pytorch.program import request_of
from loopwright.frontends.pytorch.values import Results
from loopwright.ir import IRModule
from loopwright.ir import Var as SizeVariable
from loopwright.relay.expr import Var
from loopwright.relay.types import TensorType
from loopwright.runtime.dtype import DataType

if TYPE_CHECKING:
    import torch

    from loopwright.model.profile import Profile
    from loopwright.relay.build_module import Targets
    from loopwright.relay.built import BuiltModule
    from loopwright.relay.quantize.calibrate import Sample


class CompiledModule:
    """A PyTorch model as a function of tensors.

    model, example_inputs, example_kwargs, dynamic_shapes, custom_convert_map: as `from_pytorch` has them. The weights
        are those the model has when it is compiled.
    name: of the native function.
    make_runner: what makes a module of relay callable; the native compiler by default.
    """

    def __init__(
        self,
        model: object,
        example_inputs: object = None,
        example_kwargs: Mapping[str, object] | None = None,
        *,
        target: Targets = None,
        dynamic_shapes: object = None,
        custom_convert_map: Mapping[str, Callable[..., Results]] | None = None,
        winograd: bool | int = True,
        precision: str = "float32",
        calibrate: Iterable[Sample] | None = None,
        name: str | None = None,
        make_runner: Callable[[IRModule], Runner] | None = None,
    ) -> None:
        called = name_of(None, name)
        request = request_of(example_inputs, None, example_kwargs, dynamic_shapes, "float32")
        self._imported = import_module(model, request, custom=custom_convert_map, freeze_params=True)
        self.mod = self._imported.mod
        make = make_runner or (lambda mod: native(mod, target, winograd, precision, calibrate, called))
        self._run = make(self.mod)
        self._spec = self._imported.program.call_spec  # which torch makes anew each time it is asked for
        self._direct = direct_call(getattr(self._run, "library", None), self._imported)
        self._one_output = self._spec.out_spec.is_leaf()
        self.input_names = [var.name_hint for var in self._imported.inputs if var is not None]

    def __call__(self, *args: object, **named: object) -> Any:
        """What the module returns, in its structure."""
        if self._direct is not None and not named:
            direct = self._direct(*args)
            if direct is not None:
                if self._one_output:
                    return direct
                return self._in_structure(direct if isinstance(direct, list) else [direct])
        leaves, arrays = self._arrays(args, named)
        theirs = any(hasattr(leaf, "requires_grad") for leaf in leaves)
        tensors = iter(self._run(arrays))
        results = [_outside(next(tensors), theirs) if of is None else of[0] for of in self._imported.outputs]
        return self._in_structure(results)

    def profile(self, *args: object, repeat: int = 5, **named: object) -> Profile:
        """What each layer takes for these inputs, how near the roofline it is, and why not nearer; printed, a table."""
        return self.library.profile(*self._arrays(args, named)[1], repeat=repeat)

    def _arrays(self, args: object, named: Mapping[str, object]) -> tuple[list[object], list[np.ndarray]]:
        """The tensors of a call in order, and those that the graph takes, as its parameters take them."""
        from torch.utils import _pytree

        spec = self._spec
        leaves, given = _pytree.tree_flatten((args, self._ordered(named)))
        if given != spec.in_spec:
            raise WrongInputs(
                f"the model takes {spec.in_spec.num_leaves} inputs ({', '.join(self.input_names)}), in the structure "
                f"it was exported with, and {len(leaves)} are given"
            )
        sizes: dict[SizeVariable, tuple[int, str]] = {}
        return leaves, [_array(leaf, var, sizes) for leaf, var in zip(leaves, self._imported.inputs) if var is not None]

    @property
    def library(self) -> BuiltModule:
        """What relay.build made of the model, where one native function holds all of it: to export, to profile."""
        result = getattr(self._run, "library", None)
        if result is None:
            raise NotOneLibrary([], getattr(self._run, "why_not", None))
        return result

    def export_library(self, path: str, **options: Any) -> str:
        """Write the model as a library, an archive or an object; one that is compiled call by call is none, and the
        error says why."""
        return self.library.export_library(path, **options)

    def _in_structure(self, results: Sequence[Any]) -> Any:
        from torch.utils import _pytree

        return _pytree.tree_unflatten(results, self._spec.out_spec)

    def _ordered(self, named: Mapping[str, object]) -> dict[str, object]:
        """Keywords in the order that the model was exported with."""
        wanted = self._spec.in_spec
        names = wanted.children()[1].context if hasattr(wanted, "children") else wanted.children_specs[1].context
        return {**{name: named[name] for name in names if name in named}, **named}


def _outside(array: np.ndarray, theirs: bool) -> np.ndarray | torch.Tensor:
    return as_tensor(array) if theirs else array


def _array(value: object, var: Var, sizes: dict[SizeVariable, tuple[int, str]]) -> np.ndarray:
    """An input as the parameter of `main` takes it."""
    of = var.type_annotation
    assert isinstance(of, TensorType)
    name = var.name_hint
    array = as_array(value, f"the input {name!r}") if hasattr(value, "requires_grad") else np.asarray(value)
    wanted = DataType(of.dtype).numpy()
    if array.dtype != wanted:
        if hasattr(value, "dtype"):
            raise WrongInputs(f"the input {name!r} has dtype {array.dtype}, expected {wanted}")
        array = array.astype(wanted)
    fits = array.ndim == len(of.shape)
    for axis, (size, declared) in enumerate(zip(array.shape, of.shape)):
        if isinstance(declared, int) and size != declared:
            fits = False
        if isinstance(declared, SizeVariable):
            known, where = sizes.setdefault(declared, (size, f"axis {axis} of {name!r}"))
            if known != size:
                raise WrongInputs(
                    f"the size {declared.name} is {known} by {where}, and {size} by axis {axis} of {name!r}"
                )
    if not fits:
        raise WrongInputs(f"the input {name!r} has shape {array.shape}, expected {of}")
    return array
