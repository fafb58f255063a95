"""Whole models: layers that torch has as modules, a residual network, an encoder, a decoder; interpreted and compiled.

What a compiled model gives in float32 is held against torch in float64. It may be as far off as torch's own float32 is,
several times over: both add up the same numbers in different orders.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from loopwright.frontends.pytorch import CompiledModule
from tests.frontends.pytorch.torch_models import check, imported, real, same


def seeded(model):
    """The model with weights of a seed, statistics that are not the default ones, ready to be used."""
    made = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                noise = torch.randn(tensor.shape, generator=made, dtype=torch.float64)
                if "running_var" in name:
                    tensor.copy_(1 + noise.abs())
                elif tensor.ndim > 1:
                    tensor.copy_(noise / np.sqrt(tensor[0].numel()))
                else:
                    tensor.copy_(noise / 4 + ("weight" in name))
    return model.eval()


def held_against_float64(model, *inputs):
    """Compile in float32, for these sizes; compare with float64."""
    compiled = CompiledModule(model, inputs)
    wide = in_float64(model)
    with torch.no_grad():
        narrow = model(*inputs)
        exact = wide(*[one.double() if one.is_floating_point() else one for one in inputs])
    found = compiled(*inputs)
    assert found.dtype == torch.float32
    allowed = 8 * (narrow.double() - exact).abs().max().item() + 8 * 2.0**-24 * exact.abs().max().item()
    assert (found.double() - exact).abs().max().item() <= allowed
    return compiled


def in_float64(model):
    return seeded(type(model)(*model.made_of)).double()


def at_any_size(model, inputs, dynamic_shapes, *others):
    """Import with open sizes, in float64; interpret at several sizes."""
    compiled = imported(model, *inputs, dynamic_shapes=dynamic_shapes)
    for given in (inputs, *others):
        same(compiled(*given), model(*given), terms=1024)


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.down = None
        if stride != 1 or inside != outside:
            self.down = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        short = x if self.down is None else self.down(x)
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + short)


class ResNet18(nn.Module):
    """The network of that name, `width` channels wide at its beginning; `repeats` are the blocks of a size."""

    def __init__(self, width, repeats=2):
        super().__init__()
        self.made_of = (width, repeats)
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        self.pool = nn.MaxPool2d(3, 2, 1)
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        blocks = []
        for k in range(4):
            blocks.append(Block(sizes[k], sizes[k + 1], 1 if k == 0 else 2))
            blocks += [Block(sizes[k + 1], sizes[k + 1], 1) for _ in range(repeats - 1)]
        self.layers = nn.Sequential(*blocks)
        self.head = nn.Linear(sizes[4], 10)

    def forward(self, x):
        x = self.layers(self.pool(self.stem(x)))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Encoder(nn.Module):
    """An encoder of sentences: embeddings, layers of torch's own, a mean over what is no padding."""

    def __init__(self, width, heads, layers):
        super().__init__()
        self.made_of = (width, heads, layers)
        self.words, self.places = nn.Embedding(100, width), nn.Embedding(64, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, ids, mask):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        x = self.encoder(x, src_key_padding_mask=mask == 0)
        weight = mask[..., None].to(x.dtype)
        return F.normalize((x * weight).sum(1) / weight.sum(1).clamp(min=1e-9), dim=-1)


class Decoder(nn.Module):
    """Blocks of a causal language model, the words predicted by the weights of their embedding."""

    def __init__(self, width, heads, layers):
        super().__init__()
        self.made_of = (width, heads, layers)
        self.heads = heads
        self.words, self.places = nn.Embedding(100, width), nn.Embedding(64, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "ln1": nn.LayerNorm(width),
                    "qkv": nn.Linear(width, 3 * width),
                    "out": nn.Linear(width, width),
                    "ln2": nn.LayerNorm(width),
                    "up": nn.Linear(width, 4 * width),
                    "down": nn.Linear(4 * width, width),
                }
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        batch, length = ids.shape
        x = self.words(ids) + self.places(torch.arange(length))
        for block in self.blocks:
            q, k, v = block["qkv"](block["ln1"](x)).chunk(3, -1)
            q, k, v = (one.view(batch, length, self.heads, -1).transpose(1, 2) for one in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + block["out"](y.transpose(1, 2).reshape(batch, length, -1))
            x = x + block["down"](F.gelu(block["up"](block["ln2"](x)), approximate="tanh"))
        return F.linear(self.norm(x), self.words.weight)


def words(*shape):
    return torch.randint(0, 100, shape, generator=torch.Generator().manual_seed(1))


BATCH = torch.export.Dim("batch", max=64)
LENGTH = torch.export.Dim("length", min=2, max=64)


def test_a_residual_network():
    held_against_float64(seeded(ResNet18(4)), real(2, 3, 32, 32, dtype=torch.float32))
    at_any_size(in_float64(ResNet18(4, 1)), (real(2, 3, 32, 32),), ({0: BATCH},), (real(3, 3, 32, 32),))


def test_an_encoder():
    mask = torch.ones(2, 7, dtype=torch.int64)
    mask[1, 4:] = 0
    held_against_float64(seeded(Encoder(24, 2, 2)), words(2, 7), mask)
    sizes = {0: BATCH, 1: LENGTH}
    other = torch.ones(3, 11, dtype=torch.int64)
    at_any_size(in_float64(Encoder(24, 2, 1)), (words(2, 7), mask), (sizes, sizes), (words(3, 11), other))


def test_a_decoder():
    compiled = held_against_float64(seeded(Decoder(24, 3, 2)), words(2, 7))
    sizes = {0: BATCH, 1: LENGTH}
    at_any_size(in_float64(Decoder(24, 3, 1)), (words(2, 7),), (sizes,), (words(1, 13),), (words(3, 2),))
    # The embedding is the weight of the last product too: it is there once.
    constants = {id(one.data) for one in _constants(compiled.mod["main"]) if one.data.shape == (100, 24)}
    assert len(constants) == 1


def _constants(function):
    from loopwright.relay.expr import Constant
    from loopwright.relay.visitor import post_order

    return [one for one in post_order(function.body) if isinstance(one, Constant)]


@pytest.mark.parametrize(
    ("layer", "sizes"),
    [
        (nn.LSTM(5, 6, 2, bidirectional=True), (4, 3, 5)),
        (nn.LSTM(5, 6, batch_first=True, proj_size=3, bias=False), (2, 4, 5)),
        (nn.GRU(5, 6, 2, batch_first=True, bidirectional=True), (2, 4, 5)),
        (nn.GRU(5, 6), (3, 5)),
        (nn.RNN(5, 6, 2), (4, 2, 5)),
        (nn.RNN(5, 6, nonlinearity="relu", bidirectional=True), (1, 2, 5)),
    ],
)
def test_recurrent_layers(layer, sizes):
    layer = seeded(layer.double())
    check(layer, real(*sizes), terms=256)


def test_a_long_sequence_is_a_loop():
    layer = seeded(nn.GRU(3, 4)).double()
    compiled = imported(layer, real(13, 2, 3), dynamic_shapes=({1: torch.export.Dim("batch", min=2, max=200)},))
    assert "loop" in str(compiled.mod["main"])
    for batch in (2, 5):
        x = real(13, batch, 3)
        same(compiled(x), layer(x), terms=256)


def test_layers_of_modules():
    layers = nn.ModuleList(
        [
            nn.Sequential(
                nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.PReLU(6), nn.AvgPool2d(2), nn.Upsample(scale_factor=2)
            ),
            nn.Sequential(
                nn.ConvTranspose2d(3, 4, 3, 2, 1, 1), nn.GroupNorm(2, 4), nn.Hardswish(), nn.InstanceNorm2d(4, True)
            ),
            nn.Sequential(
                nn.Conv2d(3, 3, 3, groups=3, padding=1), nn.Softplus(), nn.AdaptiveAvgPool2d((3, 2)), nn.Flatten()
            ),
            nn.Sequential(
                nn.ReflectionPad2d(1), nn.LPPool2d(2, 2), nn.Dropout(), nn.Softmax2d(), nn.ZeroPad2d((1, 0, 2, 0))
            ),
        ]
    )

    class All(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = layers

        def forward(self, x):
            return [layer(x) for layer in self.layers]

    check(seeded(All().double()), real(2, 3, 8, 7), terms=256)


def test_multihead_attention_and_a_whole_transformer():
    model = seeded(nn.Transformer(8, 2, 1, 1, 16, batch_first=True).double())
    check(model, real(2, 5, 8), real(2, 4, 8, seed=1), terms=256)


def test_quantized_weights():
    """What torch.ao exports: integers between quantize and dequantize."""

    class Quantized(nn.Module):
        def forward(self, x, w, s, z):
            ops = torch.ops.quantized_decomposed
            q = ops.quantize_per_tensor(x, 0.02, 3, -128, 127, torch.int8)
            x = ops.dequantize_per_tensor(q, 0.02, 3, -128, 127, torch.int8)
            c = ops.quantize_per_channel(w, s, z, 0, -127, 127, torch.int8)
            w = ops.dequantize_per_channel(c, s, z, 0, -127, 127, torch.int8)
            return q, c, F.linear(x, w)

    import torch.ao.quantization.fx._decomposed  # enters the operators

    scales, zeros = torch.tensor([0.01, 0.02, 0.03, 0.04]), torch.tensor([0, 1, -1, 0])
    args = (real(3, 5, dtype=torch.float32), real(4, 5, dtype=torch.float32), scales, zeros)
    check(Quantized(), *args, terms=16)
