"""compile: a model, whatever it is written in, as something to call.

    model = lw.compile("model.onnx")
    y = model(x)
    model.library.export_library("model.so")

A path, bytes, an open file or a ModelProto is an ONNX model; a torch module comes with example inputs, or as an
exported program; a module of relay is a graph already. `library` is what `relay.build` returns, where one native
function holds the whole model.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loopwright.autosched.known import KnownSchedules, using
from loopwright.frontends.errors import NoDatabase, UnknownModel
from loopwright.ir.function import IRModule
from loopwright.ir.rare_collections import rare_collections

if TYPE_CHECKING:
    from loopwright.relay.build_module import Targets
    from loopwright.relay.built import Params
    from loopwright.relay.quantize.calibrate import Sample
    from loopwright.tune import Database


@rare_collections
def compile(
    model: object,
    example_inputs: Sequence[object] | None = None,
    *,
    target: Targets = None,
    shape: Mapping[str, object] | None = None,
    dynamic_shapes: object = None,
    params: Params | None = None,
    winograd: bool | int = True,
    precision: str = "float32",
    calibrate: Iterable[Sample] | None = None,
    name: str | None = None,
    database: Database | str | os.PathLike[str] | None = None,
) -> Any:
    """The model compiled for `target` (this machine, if none is given), to be called with arrays.

    `shape` gives the shapes of inputs by name where the model leaves them open; sizes that stay open may differ from
    call to call. `example_inputs` are those a torch module is exported with, and `dynamic_shapes` its sizes that stay
    open, as torch.export takes them; it is called as the module is, with tensors or arrays. `winograd=False` keeps
    convolutions from being done by winograd, which is faster and rounds otherwise (see "Winograd" in the
    documentation).

    `precision` is float32, float16, bfloat16 or int8: what the model computes in; inputs and results keep their types.
    int8 is calibrated with the samples of `calibrate` (each a dict of arrays by name, or the arrays in order), or with
    seeded random ones.

    `name` is what the native function is called in libraries and headers (`loopwright_` before it): by default as the
    file, without its ending, and "model" where there is none.

    `database` is one that `lw.tune` has filled, or its path: kernels take the schedules that it knows.
    """
    if database is not None:
        with using(_known_of(database)):
            return compile(
                model,
                example_inputs,
                target=target,
                shape=shape,
                dynamic_shapes=dynamic_shapes,
                params=params,
                winograd=winograd,
                precision=precision,
                calibrate=calibrate,
                name=name,
            )
    from loopwright.model.kernels import ready_to_compile

    samples = _samples(precision, calibrate)
    inputs = (example_inputs, shape, dynamic_shapes, params)
    with ready_to_compile():
        return _compiled(model, *inputs, target, winograd, precision, samples, name)


def _compiled(
    model: object,
    example_inputs: Sequence[object] | None,
    shape: Mapping[str, object] | None,
    dynamic_shapes: object,
    params: Params | None,
    target: Targets,
    winograd: bool | int,
    precision: str,
    samples: list[Sample] | None,
    name: str | None,
) -> Any:
    """The model compiled, by what it is written in."""
    if isinstance(model, IRModule):
        from loopwright.frontends.common.runners import name_of
        from loopwright.relay.build_module import build
        from loopwright.relay.quantize.precision import in_precision

        changed = in_precision(model, precision, params, samples)
        return build(changed, target, params=params, mod_name=name_of(None, name), winograd=winograd)
    if _is_onnx(model):
        from loopwright.frontends.onnx.compiled import CompiledModel

        return CompiledModel(
            model, target=target, shape=shape, winograd=winograd, precision=precision, calibrate=samples, name=name
        )
    if type(model).__module__.split(".")[0] == "torch" or _is_torch_module(model):
        from loopwright.frontends.pytorch import CompiledModule

        return CompiledModule(
            model,
            example_inputs,
            target=target,
            dynamic_shapes=dynamic_shapes,
            winograd=winograd,
            precision=precision,
            calibrate=samples,
            name=name,
        )
    raise UnknownModel(model)


def _samples(precision: str, calibrate: Iterable[Sample] | None) -> list[Sample] | None:
    """The samples as a list; a precision that is none is refused."""
    if precision == "float32" and calibrate is None:
        return None  # what quantizes need not be loaded
    from loopwright.relay.quantize.calibrate import BadSamples
    from loopwright.relay.quantize.precision import require_precision

    require_precision(precision)
    if not isinstance(calibrate, Iterable | None):
        raise BadSamples(f"{type(calibrate).__name__} {calibrate!r:.80} is no list of them", "give a list: [{'x': x}]")
    return None if calibrate is None else list(calibrate)


def _known_of(database: Database | str | os.PathLike[str]) -> KnownSchedules:
    """What a database knows, as what stands before the rules."""
    from loopwright.tune.database import open_database  # loaded where a database is given
    from loopwright.tune.database.tuned import TunedSchedules

    if isinstance(database, (str, os.PathLike)):
        return TunedSchedules(open_database(os.fspath(database), read_only=True))
    if not hasattr(database, "add_workload"):
        raise NoDatabase(database)
    return TunedSchedules(database)


def _is_onnx(model: object) -> bool:
    """Whether it is what `from_onnx` takes: a path, bytes, an open file or a ModelProto."""
    if isinstance(model, (str, bytes, bytearray, memoryview, os.PathLike)) or hasattr(model, "opset_import"):
        return True
    return hasattr(model, "read") and not _is_torch_module(model)


def _is_torch_module(model: object) -> bool:
    return any(cls.__module__.startswith("torch.nn") for cls in type(model).__mro__)
