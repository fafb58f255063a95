"""ONNX's own interface to run models: `onnx.backend.base.Backend`, so that ONNX's tests run on us.

from loopwright.frontends.onnx.backend import LoopwrightBackend
LoopwrightBackend.prepare(model).run([x])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loopwright.frontends.onnx.compiled import CompiledModel, Runner
from loopwright.frontends.onnx.convert import Imported
from loopwright.frontends.onnx.load import require_onnx

require_onnx()

from onnx import ModelProto, NodeProto, helper  # noqa: E402 (after the message that says how to have it)
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict  # noqa: E402

Inputs: TypeAlias = list[npt.ArrayLike] | tuple[npt.ArrayLike, ...] | Mapping[str, npt.ArrayLike]


class LoopwrightRep(BackendRep):
    """A model that was prepared: `run` takes its inputs in order, and returns its outputs."""

    def __init__(self, model: CompiledModel) -> None:
        self.model = model

    def run(self, inputs: Inputs | np.ndarray, **kwargs: object) -> tuple[object, ...]:
        given = inputs if isinstance(inputs, (list, tuple, dict)) else [inputs]
        outputs = self.model.run(given)
        return namedtupledict("Outputs", self.model.output_names)(*outputs)


class LoopwrightBackend(Backend):
    """Loopwright as a back end of ONNX, on the CPU."""

    make_runner: Callable[[Imported], Runner] | None = None

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: object) -> bool:
        """Whether every operator of the model is supported."""
        from loopwright.frontends.onnx.importer import Importer
        from loopwright.frontends.onnx.load import load
        from loopwright.frontends.op_errors import OpNotImplemented

        try:
            Importer(load(model)).refuse_unsupported()
        except OpNotImplemented:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: object) -> LoopwrightRep:
        make = cls.make_runner
        return LoopwrightRep(CompiledModel(model, make_runner=make))

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Inputs, device: str = "CPU", **kwargs: object) -> tuple[object, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Inputs,
        device: str = "CPU",
        outputs_info: Sequence[object] | None = None,
        **kwargs: object,
    ) -> tuple[object, ...]:
        """Run one node on arrays; an element type and a shape for each output, if they are known."""
        given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs[name] for name in node.input if name]
        names = [name for name in node.input if name]
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(one).dtype), np.shape(one))
            for name, one in zip(names, given)
        ]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], "run_node", infos, outputs)
        version = kwargs.get("opset_version")
        imports = [helper.make_opsetid(node.domain, version)] if version else None
        model = helper.make_model(graph, opset_imports=imports) if imports else helper.make_model(graph)
        return cls.run_model(model, given, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return bool(Device(device).type == DeviceType.CPU)


prepare = LoopwrightBackend.prepare
run_model = LoopwrightBackend.run_model
run_node = LoopwrightBackend.run_node
supports_device = LoopwrightBackend.supports_device
