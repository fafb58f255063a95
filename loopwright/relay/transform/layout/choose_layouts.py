"""ChooseLayouts: where a graph of images keeps channels together (NHWC), and where it keeps planes (NCHW).

    relu(conv2d(%x, %w))  →  %0 = conv2d(%x, %w', out_layout="NHWC");        reads planes, writes pixels
                             %1 = layout_transform(relu(%0), "NHWC", "NCHW")  … which meets others, or is the end

Every tensor of the graph is one or the other. A convolution of one pixel, a pool or a depthwise convolution is faster
where channels are neighbours; what a model takes and returns is given; a tensor that is made in one order and read in
the other is moved, once. The cheapest choice for the whole graph is a smallest cut of a network (`min_cut.py`): it is
found exactly. A convolution of one group may read one order and write the other, so a cut there costs nothing but its
own price.

Costs are cycles of one core of the target, from the cost model of `autosched`: a move takes what its transpose takes,
and what a kernel loses by the order of its images is a share of a move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, prod
from typing import Final

from loopwright.autosched.cost import relayout
from loopwright.autosched.machine import Machine
from loopwright.ir.function import IRModule
from loopwright.ir.pass_context import PassContext, PassInfo
from loopwright.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem
from loopwright.relay.op.registry import Op
from loopwright.relay.transform.graph_pass import GraphPass
from loopwright.relay.transform.layout.layouts import brought, follows, laid, sink
from loopwright.relay.transform.layout.min_cut import Cut
from loopwright.relay.transform.typed_rewrite import TypedRewrite
from loopwright.relay.types import Dim, TensorType
from loopwright.relay.visitor import ExprMutator, post_order
from loopwright.target import Target, describe

PLANES: Final = "NCHW"
PIXELS: Final = "NHWC"

UNKNOWN: Final = 32  # a size that is known when the model runs


@dataclass(frozen=True)
class Costs:
    """What it costs, by the element, to read planes and to write planes, more than pixels: shares of a move.

    `work` is a share of the multiply-adds, if it were pixels.
    """

    read: float = 0.0
    write: float = 0.0
    work: float = 0.0  # where pixels are the slower ones


POINTWISE: Final = Costs(0.3, 0.25)  # planes: vectors of pixels, whose rows are parted by the plane
POINTWISE_STRIDED: Final = Costs(1.2, 0.25)  # every other pixel of a row
WINDOW: Final = Costs(0.05, 0.1)  # sums of several channels are turned into planes
GROUPED: Final = Costs(0.0, 0.0, 0.3)  # channels of a group fill no vectors, but its pixels do
DEPTHWISE: Final = Costs(0.2, 0.2)
POOL: Final = Costs(1.5, 0.0)  # overlapping windows along a row


def _number(size: Dim) -> float:
    return float(size) if isinstance(size, int) else UNKNOWN


def _size(of: TensorType) -> float:
    return prod(map(_number, of.shape))


def _is_convolution(call: Call) -> bool:
    return (
        isinstance(call, Call)
        and isinstance(call.op, Op)
        and call.op.name == "nn.conv2d"
        and call.attrs.data_layout == PLANES
        and call.attrs.out_layout in ("", PLANES)
        and call.attrs.kernel_layout == "OIHW"
    )


def _is_pool(call: Call) -> bool:
    return call.op.name in ("nn.max_pool2d", "nn.avg_pool2d") and call.attrs.layout == PLANES


class _Model(TypedRewrite):
    """The network of one function: a thing for every image, another for every convolution's way of reading."""

    def __init__(self, function: Function, mod: IRModule) -> None:
        super().__init__(mod)
        target = Target.current(allow_none=True) or Target("llvm")
        machine = Machine.of(describe(target))
        self.lanes, self.per_cycle = machine.lanes("float32"), machine.fma_per_cycle
        self.relayout = relayout(machine)  # an element from one order into the other
        self.cut = Cut()
        self.made: dict[Expr, int] = {}  # how an expression's value lies
        self.read: dict[Call, int] = {}  # how a call reads its images
        self.readers: dict[Expr, list[int]] = {}
        self.worth_it = False
        self.expressions = list(post_order(function.body))
        for expression in self.expressions:
            self._add(expression)
        result = function.body
        for part in result.fields if isinstance(result, Tuple) else (result,):
            if self._is_image(part):
                self._reads(part, self._planes())
        for expression in self.expressions:
            self._move(expression)

    def _is_image(self, expression: Expr) -> bool:
        of = self.tensor_type(expression)
        return of is not None and len(of.shape) == 4

    def _planes(self) -> int:
        item = self.cut.node()
        self.cut.costs(item, second=inf)
        return item

    def _add(self, expression: Expr) -> None:
        if isinstance(expression, Call) and isinstance(expression.op, Op):
            self._add_call(expression)
        elif isinstance(expression, TupleGetItem) and isinstance(expression.tuple_value, Call):
            if expression.tuple_value in self.made:
                self.made[expression] = self.made[expression.tuple_value]
        elif not isinstance(expression, (Tuple, Constant, Op)) and self._is_image(expression):
            self.made[expression] = self._planes()
            for argument in getattr(expression, "args", ()):
                if self._is_image(argument):
                    self._reads(argument, self._planes())

    def _add_call(self, call: Call) -> None:
        images = list(self._images(call))
        if _is_convolution(call):
            self.worth_it = True
            item = self.cut.node()
            # Where channels are summed a convolution may read one order and write the other.
            reading = self.cut.node() if call.attrs.groups == 1 else item
            self.made[call], self.read[call] = item, reading
            self._price_convolution(call, reading, item)
            self._reads(call.args[0], reading)
        elif follows(call) and images:
            item = self.cut.node()
            self.made[call] = self.read[call] = item
            if _is_pool(call):
                self.cut.costs(item, first=self._share(POOL.read, self.type_of_tensor(call.args[0])))
            for image in images:
                self._reads(image, item)
        else:
            self.made[call] = self._planes()
            for image in images:
                self._reads(image, self._planes())

    def _images(self, call: Call) -> Iterator[Expr]:
        for argument in call.args:
            for part in argument.fields if isinstance(argument, Tuple) else (argument,):
                if not isinstance(part, Constant) and self._is_image(part):
                    yield part

    def _price_convolution(self, call: Call, reading: int, making: int) -> None:
        data, weight, result = (self.type_of_tensor(one) for one in (*call.args[:2], call))
        prices = WINDOW
        if call.attrs.is_depthwise(data, weight):
            prices = DEPTHWISE
        elif call.attrs.groups > 1:
            prices = GROUPED
        elif all(size == 1 for size in weight.shape[2:]):
            strided = any(int(stride) > 1 for stride in call.attrs.strides)
            prices = POINTWISE_STRIDED if strided else POINTWISE
        self.cut.costs(reading, first=self._share(prices.read, data))
        channels = max(1.0, _number(result.shape[1]))
        work = _size(result) * prod(map(_number, weight.shape[1:])) / (self.per_cycle * self.lanes)
        empty = -channels % self.lanes / channels
        self.cut.costs(making, first=self._share(prices.write, result), second=work * max(empty, prices.work))

    def _share(self, share: float, of: TensorType) -> float:
        """Cycles: a share of what it takes to move a tensor."""
        return share * self.relayout * _size(of)

    def _reads(self, image: Expr, reading: int) -> None:
        self.readers.setdefault(image, []).append(reading)

    def _move(self, expression: Expr) -> None:
        """The price of moving a tensor: once for each order that it is read in and was not made in."""
        making, readers = self.made.get(expression), self.readers.get(expression, [])
        if making is None:
            return
        price = self._share(1.0, self.type_of_tensor(expression)) if self._is_image(expression) else 0.0
        if len(readers) == 1:
            self.cut.apart(making, readers[0], price)
        elif readers:
            pixels, planes = self.cut.node(), self.cut.node()
            self.cut.implies(making, pixels, price)
            self.cut.implies(planes, making, price)
            for reading in readers:
                self.cut.implies(pixels, reading)
                self.cut.implies(reading, planes)


class _Apply(TypedRewrite):
    """Rewrite a graph as the labels say."""

    def __init__(self, model: _Model, mod: IRModule) -> None:
        super().__init__(mod)
        chosen = model.cut.solve()
        self.made = {key for key, item in model.made.items() if item in chosen}
        self.read = {key for key, item in model.read.items() if item in chosen}

    def visit_call(self, call: Call) -> Expr:
        changed = ExprMutator.visit_call(self, call)
        if not isinstance(changed, Call) or not isinstance(changed.op, Op):
            return changed
        result: Expr = changed
        if _is_convolution(call):
            result = self._convolution(changed, call in self.read, call in self.made)
        elif call in self.read:
            result = self._following(changed)
        if result is not changed and isinstance(result, Call) and result.span is None:
            result.span = call.span
        return result

    def _convolution(self, call: Call, reads_pixels: bool, makes_pixels: bool) -> Expr:
        if not reads_pixels and not makes_pixels:
            return call
        data, weight, *rest = call.args
        data_layout, out_layout = (PIXELS if pixels else PLANES for pixels in (reads_pixels, makes_pixels))
        depthwise = call.attrs.is_depthwise(self.type_of(data), self.type_of(weight))
        kernel_layout = "HWOI" if depthwise else "HWIO"
        args = [brought(data, PLANES, data_layout), brought(weight, "OIHW", kernel_layout), *rest]
        layouts = {"data_layout": data_layout, "kernel_layout": kernel_layout}
        attrs = call.attrs.with_(**layouts, out_layout="" if out_layout == data_layout else out_layout)
        return brought(Call(call.op, args, attrs, span=call.span), out_layout, PLANES)

    def _following(self, call: Call) -> Expr:
        """The call in pixels; images among its operands that lie in planes are moved."""
        args = [self._as_pixels(argument) for argument in call.args]
        result = sink(Call(call.op, args, call.attrs, span=call.span), self)
        return call if result is None else result

    def _as_pixels(self, argument: Expr) -> Expr:
        if isinstance(argument, Tuple):
            return Tuple([self._as_pixels(part) for part in argument.fields], argument.span)
        of = self.tensor_type(argument)
        if of is None or len(of.shape) != 4 or isinstance(argument, Constant) or laid(argument) is not None:
            return argument
        return brought(brought(argument, PLANES, PIXELS), PIXELS, PLANES)


def ChooseLayouts() -> GraphPass:
    """Keep channels together where that makes the whole graph cheaper."""

    def change(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        model = _Model(function, mod)
        return _Apply(model, mod).apply(function) if model.worth_it else function

    return GraphPass(change, PassInfo(3, "ChooseLayouts"))
