"""Products of numbers of a few bits in graphs: see `topi/nn/conv/bitserial.py`."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir.types import Type
from loopwright.relay.errors import TypeMismatch
from loopwright.relay.op.from_topi import FromTopi
from loopwright.relay.op.nn.convolutions import windows
from loopwright.relay.op.registry import Kind, register
from loopwright.relay.types import TensorType


@register("nn.bitpack", Kind.INJECTIVE)
class Bitpack(FromTopi):
    """One bit of many numbers along `pack_axis` as words, for each of `bits` bits."""

    bits: int = 1
    pack_axis: int = 1
    bit_axis: int = 2
    pack_type: str = "uint32"
    name: str = "BitPack"

    def infer(self, data: TensorType) -> Type:
        return self.type_of_compute(data)

    def arguments(self, data: object) -> list[object]:
        return [data, self.bits, self.pack_axis, self.bit_axis, self.pack_type]


@register("nn.bitserial_dense", Kind.OUT_FUSABLE)
class BitserialDense(FromTopi):
    """nn.dense of numbers of a few bits."""

    units: int | None = None
    data_bits: int = 1
    weight_bits: int = 1
    pack_dtype: str = "uint32"
    out_dtype: str = "int16"
    unipolar: bool = True

    def infer(self, data: TensorType, weight: TensorType) -> Type:
        if self.units is not None:  # says how many columns there are, whatever the layout of the weight
            return TensorType((*data.shape[:-1], self.units), self.out_dtype)
        return self.type_of_compute(data, weight)

    def arguments(self, *inputs: object) -> list[object]:
        return [*inputs, *self.values()[1:]]


@register("nn.bitserial_conv2d", Kind.OUT_FUSABLE)
class BitserialConv2d(FromTopi):
    """nn.conv2d of numbers of a few bits."""

    normal = windows(2)

    strides: int | Sequence[int] = (1, 1)
    padding: int | Sequence[int] = (0, 0)
    channels: int | None = None
    kernel_size: int | Sequence[int] = (3, 3)
    activation_bits: int = 1
    weight_bits: int = 1
    data_layout: str = "NCHW"
    pack_dtype: str = "uint32"
    out_dtype: str = "int16"
    unipolar: bool = True

    def infer(self, data: TensorType, weight: TensorType) -> Type:
        if self.data_layout not in ("NCHW", "NHWC"):
            raise TypeMismatch(f"nn.bitserial_conv2d: data_layout is {self.data_layout}", hint="it is NCHW or NHWC")
        return self.type_of_compute(data, weight)

    @property
    def _name(self) -> str:
        return f"nn.bitserial_conv2d_{self.data_layout.lower()}"

    def arguments(self, *inputs: object) -> list[object]:
        bits = self.activation_bits, self.weight_bits, self.pack_dtype, self.out_dtype, self.unipolar
        return [*inputs, self.strides, self.padding, *bits]
