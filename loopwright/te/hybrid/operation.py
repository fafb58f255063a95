"""HybridOp: what a hybrid function is in the graph of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.ir import Expr, IterVar, Stmt
from loopwright.runtime.dtype import DataType
from loopwright.te.tensor import Operation, Tensor


class HybridOp(Operation):
    """Tensors computed by the loops of a hybrid function.

    `body` reads `inputs` and its own memory (ProducerLoad, ProducerRealize) and stores to `outputs`, which stand there
    for the tensors that the operation gives. `axis` has one entry a loop, in the order of the source.
    """

    __slots__ = ("axis", "body", "inputs", "outputs")

    def __init__(
        self,
        name: str,
        tag: str,
        attrs: Mapping[str, object] | None,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        axis: Sequence[IterVar],
        body: Stmt,
    ) -> None:
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.axis = tuple(axis)
        self.body = body
        super().__init__(name, tag, attrs)

    @property
    def num_outputs(self) -> int:
        return len(self.outputs)

    @property
    def input_tensors(self) -> list[Tensor]:
        return list(self.inputs)

    def output_shape(self, index: int) -> tuple[Expr, ...]:
        return self.outputs[index].shape

    def output_dtype(self, index: int) -> DataType:
        return self.outputs[index].dtype
