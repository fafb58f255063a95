"""Operators by family: what a graph of them gives, in float64, is what torch gives."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.frontends.pytorch.torch_models import all_of, check, real, whole

X, Y = real(3, 4, 5), real(3, 4, 5, seed=1)
POSITIVE = X.abs() + 0.1
INTS = whole(4, 6)
OTHER_INTS = whole(4, 6, low=1, seed=3)
SHORT = whole(4, 6, seed=2, dtype=torch.int32)
MASK = X > 0


def test_functions_of_real_numbers():
    small = X / 10
    names = "exp log1p expm1 sqrt rsqrt erf sin cos tan sinh cosh tanh atan asinh sigmoid reciprocal square neg sgn"
    check(all_of([getattr(torch, name) for name in names.split()]), POSITIVE)
    inside = "asin acos atanh expm1 log1p erf tan"
    check(all_of([getattr(torch, name) for name in inside.split()]), small)
    check(all_of([torch.log, torch.log2, torch.log10, torch.acosh, torch.exp2, torch.frac]), POSITIVE + 1)
    check(all_of([torch.exp, torch.sqrt, torch.sigmoid, torch.log1p, torch.abs, torch.neg]), INTS.abs())


def test_rounding_and_what_is_no_number():
    values = torch.tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.7, -3.2, 1e300, torch.inf, -torch.inf, torch.nan, 0.0])
    values = values.double()
    functions = [
        torch.floor,
        torch.ceil,
        torch.trunc,
        torch.round,
        torch.isnan,
        torch.isinf,
        torch.isfinite,
        torch.sign,
    ]
    check(all_of([*functions, lambda x: torch.nan_to_num(x), lambda x: torch.round(x[:8], decimals=1)]), values)


def test_arithmetic_promotes_element_types():
    functions = [
        lambda a, b, c, x: (a + b, a - c, a * x[0, 0, 0], a / b, c / 3, a + 1.5, c * 2),
        lambda a, b, c, x: (a // b, a % b, torch.fmod(a, b), torch.div(a, b, rounding_mode="trunc")),
        lambda a, b, c, x: (torch.add(a, b, alpha=3), torch.sub(x, x, alpha=2), 5 - a, 2.0 / (x * x + 1)),
        lambda a, b, c, x: (a**2, x**3, x.abs() ** 0.5, x.abs() ** 1.7, 2**x, (x.abs() + 1) ** -0.5, b**1),
        lambda a, b, c, x: (torch.maximum(a, b), torch.minimum(a, b), a.clamp(-3, 4), x.clamp(min=0.1), a > b),
        lambda a, b, c, x: (a == 3, a != c, x < 0.5, a <= 2.5, c >= a, (a > 0) + (b > 5), (a > 0) * (b > 5)),
    ]
    check(all_of(functions), INTS, OTHER_INTS, SHORT, X)


def test_quotients_of_real_numbers():
    def quotients(x, y):
        return x // y, x % y, torch.fmod(x, y), torch.div(x, y, rounding_mode="trunc"), torch.atan2(x, y)

    check(quotients, 10 * X, Y)
    corners = torch.tensor([0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf]).double()
    check(lambda x, y: torch.atan2(x, y), corners[:, None].expand(6, 6).clone(), corners.expand(6, 6).clone())


def test_logic_bits_and_choices():
    functions = [
        lambda a, b, m: (a & b, a | b, a ^ b, ~a, a << 2, a >> 1, ~m, m & m, m | ~m, m ^ m),
        lambda a, b, m: (
            torch.logical_and(a, b),
            torch.logical_or(a, b),
            torch.logical_xor(a, b),
            torch.logical_not(a),
        ),
        lambda a, b, m: (torch.where(a > b, a, 0), torch.where(m, 1.5, 2.5), a.masked_fill(a > 0, 7)),
        lambda a, b, m: (a.double(), a.to(torch.bool), m.to(torch.int32), a.float().half().double(), a.clone()),
    ]
    check(all_of(functions), INTS, OTHER_INTS, MASK)


def test_activations():
    names = (
        "relu relu6 silu gelu elu selu celu softplus softsign logsigmoid hardswish hardsigmoid hardtanh tanhshrink "
        "mish leaky_relu hardshrink softshrink"
    )
    functions = [getattr(F, name) for name in names.split()]
    more = [
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: F.softmax(x, 1),
        lambda x: F.log_softmax(x, -1),
        lambda x: F.glu(x[..., :4], -1),
        lambda x: F.prelu(x, torch.tensor([0.1, 0.2, 0.3, 0.4]).double()),
        lambda x: F.threshold(x, 0.1, 5.0),
        lambda x: F.softplus(x, beta=2.0, threshold=1.0),
        lambda x: F.elu(x, alpha=0.5),
        lambda x: F.dropout(x, training=False),
        lambda x: F.normalize(x, dim=-1),
        lambda x: F.cosine_similarity(x[0], x[1], dim=-1),
    ]
    check(all_of([*functions, *more]), 3 * X)


def test_reductions():
    functions = [
        lambda x, a, m: (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), a.sum(), m.sum(), m.sum(0)),
        lambda x, a, m: (x.mean(), x.mean(-1, keepdim=True), x.prod(), x.prod(1), a.prod(1)),
        lambda x, a, m: (
            x.max(),
            x.min(),
            x.amax((0, 1)),
            x.amin(2),
            a.max(),
            m.any(),
            m.all(1),
            m.any((0, 1)),
            a.any(),
        ),
        lambda x, a, m: (x.max(1), x.min(-1, keepdim=True), x.argmax(), x.argmin(1), x.argmax(2, keepdim=True)),
        lambda x, a, m: (x.var(), x.var(1), x.std((0, 1)), x.var(2, correction=0), torch.var_mean(x, 1)),
        lambda x, a, m: (torch.std_mean(x, (0, 2), keepdim=True), x.logsumexp((0, 1)), x.norm(), x.norm(dim=1)),
        lambda x, a, m: [torch.linalg.vector_norm(x, p, 1) for p in (0, 1, 2, 3, torch.inf, -torch.inf)],
        lambda x, a, m: (
            x.cumsum(1),
            a.cumsum(0),
            x.cumprod(2),
            m.cumsum(0),
            torch.count_nonzero(a, 1),
            x.aminmax(dim=0),
        ),
    ]
    check(all_of(functions), X, INTS, MASK)


def test_reductions_of_the_infinite_and_of_nothing():
    check(
        lambda x, e: (x.logsumexp(0), e.sum(), e.prod(), e.sum(0), x.softmax(0)),
        torch.tensor([1.0, -torch.inf]).double(),
        real(0, 3),
    )


def test_shapes():
    functions = [
        lambda x: (x.view(12, 5), x.reshape(-1), x.flatten(1), x.unflatten(1, (2, 2)), x.permute(2, 0, 1), x.mT),
        lambda x: (
            x.transpose(0, -1),
            x[None],
            x[:, None].squeeze(1),
            x[:1].squeeze(),
            x.unsqueeze(-1).expand(3, 4, 5, 2),
        ),
        lambda x: (torch.cat([x, x[:1]]), torch.stack([x, x], 1), x.split(2, 1), x.chunk(3, 2), x.unbind(0)),
        lambda x: (x.tensor_split(2, 2), x.split([1, 3], 1), x.repeat(2, 1, 1), x.repeat(2, 1, 1, 1), x.tile(2)),
        lambda x: (x.flip(0, 2), x.roll(2, 1), x.roll((1, 2), (0, 2)), x.rot90(1, (1, 2)), x.narrow(1, 1, 2)),
        lambda x: (x.repeat_interleave(2, 1), x.tril(), x.triu(1), x[0].tril(-1), (x > 0).tril(), x.diagonal(0, 1, 2)),
        lambda x: (x.unfold(2, 3, 2), x.movedim(0, 2), torch.broadcast_to(x[0], (2, 4, 5)), x.swapaxes(1, 2), x.T),
        lambda x: (torch.as_strided(x, (2, 3), (5, 1), 2), torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij")),
        lambda x: (torch.cat([x.new_zeros(0), x[0, 0]]), F.pixel_shuffle(x.view(1, 4, 3, 5), 2), x.contiguous() + 0),
        lambda x: (F.unfold(x[None, :, :, :], 2), F.fold(x.reshape(1, 4, 15)[:, :, :6], (3, 4), 2, stride=1)),
    ]
    check(all_of(functions), X)


def test_padding():
    functions = [
        lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, 0, 2, 3), value=1.5), F.pad(x, (-1, 2, 0, -1)), F.pad(x > 0, (1, 1))),
        lambda x: [F.pad(x, (1, 2), mode=mode) for mode in ("reflect", "replicate", "circular")],
        lambda x: [F.pad(x[None], (1, 2, 2, 1), mode=mode) for mode in ("reflect", "replicate", "circular")],
    ]
    check(all_of(functions), X)


def test_indexing():
    rows = torch.tensor([2, 0, -1])
    functions = [
        lambda x, i: (x[0], x[:, -1], x[1:, :2], x[..., ::2], x[:, 1:-1], x[0, 1, 2], x[:, :, -3:], x[2:2]),
        lambda x, i: (x[i], x[:, i], x[:, :, i], x[i, i], x[:, i, i], x[i, :, i], x[i[:, None], i], x[1, i]),
        lambda x, i: (x.index_select(1, i.abs()), x.gather(2, i.abs()[None, None].expand(3, 4, 3)), x.take(i)),
        lambda x, i: (F.embedding(i.abs(), x[0]), F.one_hot(i.abs(), 4), torch.take_along_dim(x[0], i.abs()[None], 1)),
        lambda x, i: (torch.select(x, 1, 2), torch.isin(i, torch.tensor([0, 2])), x.masked_fill(x > 0, 0.0)),
    ]
    check(all_of(functions), X, rows)


def test_what_a_mask_selects():
    check(lambda x: (x[x > 0] * 2, torch.nonzero(x > 0), x.masked_select(x < 0)), real(4, 5))


def test_scattering():
    places = torch.tensor([[0, 1, 2, 0, 1]])

    def assigned(x, i, s):
        y = x.clone()
        y[1] = 7.0
        y[:, 2:4] = s[:, 2:4]
        y[y > 1] = -1.0
        y[[0, 2], [1, 1]] = s[0, :2]
        y[:, ::2] += 1
        return y

    functions = [
        lambda x, i, s: (
            x.scatter(0, i, s),
            x.scatter(0, i, 2.5),
            x.scatter_add(0, i, s),
            x.scatter(1, i[:, :4].T % 2, s),
        ),
        lambda x, i, s: [x.scatter_reduce(0, i, s, r) for r in ("sum", "prod", "amax", "amin", "mean")],
        lambda x, i, s: [x.scatter_reduce(0, i, s, r, include_self=False) for r in ("sum", "prod", "amax", "mean")],
        lambda x, i, s: (x.index_add(1, i[0] % 3, s), x.index_copy(0, i[0, :2], s[:2]), x.index_fill(0, i[0, :2], 3.0)),
        lambda x, i, s: (x.index_put((i[0, :2],), s[:2]), x.index_put((i[0] % 2,), s[:1], accumulate=True)),
        lambda x, i, s: (x.masked_scatter(x > 0, s), torch.select_scatter(x, s[0], 0, -1)),
        lambda x, i, s: (torch.slice_scatter(x, s[:3], 0, 1), torch.slice_scatter(x, s[:, :3], 1, 0, 5, 2)),
        assigned,
    ]
    check(all_of(functions), real(4, 5), places, real(4, 5, seed=1))


def test_order():
    functions = [
        lambda x, a: (x.sort(), x.sort(0, descending=True), x.argsort(1), a.sort(stable=True), x.topk(2), x.topk(2, 0)),
        lambda x, a: (
            x.topk(3, 1, largest=False),
            torch.searchsorted(x.sort().values, x),
            torch.bucketize(a, a[0].sort().values),
        ),
        lambda x, a: (torch.bucketize(a, a[0].sort().values, right=True), x.msort()),
    ]
    check(all_of(functions), real(4, 5), INTS)


def test_the_different_elements():
    check(lambda a: torch.unique(a, return_inverse=True, return_counts=True), INTS)


def test_creation():
    def made(x):
        return [
            torch.zeros(2, 3),
            torch.ones(2, dtype=torch.int32),
            torch.full((2, 2), 1.5),
            torch.arange(5),
            torch.arange(1, 10, 3),
            torch.arange(0, 1, 0.25),
            torch.linspace(0, 1, 5),
            torch.eye(3),
            torch.zeros_like(x),
            torch.ones_like(x, dtype=torch.bool),
            torch.full_like(x, 2),
            x.new_zeros(3),
            x.new_full((2,), 4),
            torch.tensor([1, 2]) + 1,
            torch.scalar_tensor(3.0),
            torch.empty(0),
            torch.tril_indices(3, 3),
            torch.hann_window(6),
        ]

    check(made, X)


def test_products():
    a, b, c = real(3, 4), real(4, 5), real(2, 3, 4)
    functions = [
        lambda a, b, c: (a @ b, c @ b, a @ b[:, 0], a[0] @ b, a[0] @ b[:, 0], c @ c.mT, c[None] @ c.mT[:1], a.mm(b)),
        lambda a, b, c: (torch.bmm(c, c.mT), torch.addmm(b[0], a, b), torch.addmm(b[0], a, b, beta=0.5, alpha=2.0)),
        lambda a, b, c: (
            torch.baddbmm(c @ c.mT, c, c.mT),
            torch.addbmm(a @ a.T, c, c.mT),
            torch.outer(a[0], b[0]),
            a.mv(b[:, 0]),
        ),
        lambda a, b, c: (
            F.linear(c, b.T),
            F.linear(c, b.T, b[0]),
            F.linear(a[0], b.T),
            torch.einsum("bij,jk->bki", c, b),
        ),
        lambda a, b, c: (torch.einsum("ij,ij->i", a, a), torch.tensordot(c, b, 1), torch.linalg.multi_dot([a, b])),
        lambda a, b, c: (
            torch.cdist(a, a[1:]),
            torch.cdist(a, a[1:], p=1),
            F.pdist(a),
            torch.kron(a, b),
            torch.trace(a),
        ),
    ]
    check(all_of(functions), a, b, c)
    check(lambda a: (a @ a.mT, a[0] @ a[1]), whole(3, 4))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions(rank):
    conv = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    back = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    x, w, b = real(2, 4, *(7, 6, 5)[:rank]), real(6, 2, *(3, 2, 3)[:rank]), real(6)
    turned = real(4, 3, *(3, 2, 3)[:rank])
    functions = [
        lambda x, w, b, t: conv(x, w, b, stride=2, padding=1, groups=2),
        lambda x, w, b, t: conv(x, w, None, padding="same", dilation=2, groups=2),
        lambda x, w, b, t: conv(x[0], w, b, padding="valid", groups=2),
        lambda x, w, b, t: back(x, t, b, stride=2, padding=1, output_padding=1, groups=2),
        lambda x, w, b, t: back(x[0], t, dilation=2, groups=2),
    ]
    check(all_of(functions), x, w, b, turned, terms=256)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pooling(rank):
    name = f"{rank}d"
    greatest, mean = getattr(F, f"max_pool{name}"), getattr(F, f"avg_pool{name}")
    functions = [
        lambda x: (greatest(x, 2), greatest(x, 3, stride=1, padding=1), greatest(x, 2, dilation=2), greatest(x[0], 2)),
        lambda x: (greatest(x, 3, stride=2, padding=1, ceil_mode=True), greatest(x, 2, return_indices=True)),
        lambda x: (
            mean(x, 2),
            mean(x, 3, stride=2, padding=1),
            mean(x, 3, 2, 1, count_include_pad=False),
            mean(x[0], 2),
        ),
        lambda x: (mean(x, 3, 2, 1, ceil_mode=True), mean(x, 3, 2, 1, True, False)),
        lambda x: (getattr(F, f"adaptive_avg_pool{name}")(x, 3), getattr(F, f"adaptive_avg_pool{name}")(x, 1)),
        lambda x: (getattr(F, f"adaptive_max_pool{name}")(x, 2), F.lp_pool2d(x, 2, 2) if rank == 2 else x),
        lambda x: F.avg_pool2d(x, 2, divisor_override=3) if rank == 2 else x,
    ]
    check(all_of(functions), real(2, 3, *(8, 7, 6)[:rank]))


def test_normalizations():
    x, g, b = real(3, 4, 5, 6), real(4), real(4, seed=1)
    functions = [
        lambda x, g, b: F.batch_norm(x, b, g.abs(), g, b),
        lambda x, g, b: F.batch_norm(x, b, g.abs()),
        lambda x, g, b: F.batch_norm(x, None, None, g, b, training=True),
        lambda x, g, b: (
            F.layer_norm(x, (6,)),
            F.layer_norm(x, (5, 6)),
            F.layer_norm(x.mT, (5,), x[0, 0, :, 0], x[0, 0, :, 1]),
        ),
        lambda x, g, b: (
            F.group_norm(x, 2, g, b),
            F.group_norm(x[:, :, 0, 0], 2),
            F.instance_norm(x, weight=g, bias=b),
        ),
        lambda x, g, b: (F.rms_norm(x, (6,)), F.rms_norm(x, (6,), x[0, 0, 0], 1e-3), F.local_response_norm(x, 3)),
    ]
    check(all_of(functions), x, g, b)


def test_pictures():
    x = real(2, 3, 6, 5)

    def sized(x):
        return [
            F.interpolate(x, scale_factor=2),
            F.interpolate(x, size=(4, 7)),
            F.interpolate(x, scale_factor=1.3),
            F.interpolate(x, size=(4, 7), mode="nearest-exact"),
            F.interpolate(x, scale_factor=2, mode="bilinear"),
            F.interpolate(x, size=(4, 7), mode="bilinear"),
            F.interpolate(x, size=(4, 7), mode="bilinear", align_corners=True),
            F.interpolate(x, scale_factor=1.3, mode="bilinear"),
            F.interpolate(x, size=(9, 11), mode="bicubic"),
            F.interpolate(x[0], size=9, mode="linear"),
            F.interpolate(x[None], size=(3, 4, 9), mode="trilinear"),
            F.interpolate(x, scale_factor=1.3, mode="bicubic"),
            F.pixel_unshuffle(x[:, :, :, :4], 2),
            F.channel_shuffle(torch.cat([x, x], 1), 2),
        ]

    # Places between pixels are computed in float32.
    check(sized, x, terms=1 << 32)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grids(mode):
    grid = real(2, 4, 3, 2) / 2

    def sampled(x, g):
        return [
            F.grid_sample(x, g, mode, p, align_corners=a)
            for p in ("zeros", "border", "reflection")
            for a in (True, False)
        ]

    check(sampled, real(2, 3, 6, 5), grid, terms=1 << 32)


def test_bags():
    indices, offsets = torch.tensor([1, 2, 4, 5, 4, 3, 2]), torch.tensor([0, 3, 3, 5])
    bags = all_of([lambda t, i, o, m=mode: F.embedding_bag(i, t, o, mode=m) for mode in ("sum", "mean", "max")])
    check(bags, real(6, 3), indices, offsets)


def test_losses():
    def losses(x, y, t):
        return [
            F.mse_loss(x, y),
            F.l1_loss(x, y, reduction="sum"),
            F.smooth_l1_loss(x, y),
            F.huber_loss(x, y),
            F.cross_entropy(x, t),
            F.nll_loss(x, t, reduction="none"),
            F.binary_cross_entropy_with_logits(x, y.sigmoid()),
            F.kl_div(x, y.softmax(1), reduction="batchmean"),
            F.cross_entropy(x, t, label_smoothing=0.1, ignore_index=1),
        ]

    check(losses, real(4, 5), real(4, 5, seed=1), torch.tensor([0, 1, 4, 2]))


def test_attention():
    q, k, v = real(2, 4, 5, 8), real(2, 4, 6, 8, seed=1), real(2, 4, 6, 8, seed=2)
    mask = torch.ones(5, 6, dtype=torch.bool).tril(1)
    dead = mask.clone()
    dead[2] = False
    bias = real(2, 1, 5, 6)
    attend = F.scaled_dot_product_attention
    functions = [
        lambda q, k, v, m, d, b: attend(q, k, v),
        lambda q, k, v, m, d, b: attend(q, k, v, is_causal=True),
        lambda q, k, v, m, d, b: attend(q, k, v, attn_mask=m),
        lambda q, k, v, m, d, b: attend(q, k, v, attn_mask=d),
        lambda q, k, v, m, d, b: attend(q, k, v, attn_mask=b, scale=0.3),
        lambda q, k, v, m, d, b: attend(q[0], k[0], v[0]),
        lambda q, k, v, m, d, b: attend(q, k[:, :2], v[:, :2], enable_gqa=True),
    ]
    check(all_of(functions), q, k, v, mask, dead, bias)


def test_halves_are_computed_as_torch_does():
    functions = [
        lambda x: (x * 0.1, x + 1.7, x.exp(), F.gelu(x), F.softmax(x, -1), x.sum(-1), x.mean(), F.layer_norm(x, (8,))),
        lambda x: (x @ x.mT, F.linear(x, x, x[:, 0]), F.silu(x), x.sigmoid(), x.float() * 2, x / 3),
    ]
    for kind in (torch.float16, torch.bfloat16):
        check(all_of(functions), real(6, 8, dtype=kind), terms=2)
