"""The benchmark of networks: the layers they have, what each row computes, and peers in processes of their own."""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bench import cli, networks, verify
from benchmarks.bench.apart import Gone, Helper
from benchmarks.bench.bars import judge
from benchmarks.bench.case import Bounded, Case, Numpy, Onnx, OursToo, Problem, Torch, aligned, uniform
from benchmarks.bench.cases import GROUPS, LOW_PRECISION, NETWORKS, cases_of
from benchmarks.bench.cases import networks as layers_of
from benchmarks.bench.cases.convolution import _ODD, activated, convolution, sum_of_products, weights
from benchmarks.bench.cases.low_precision import half_product, int8_product
from benchmarks.bench.cases.networks import Layer, distinct, square
from benchmarks.bench.cases.resnet50_int8 import quantized_convolution
from benchmarks.bench.measure import Effort
from benchmarks.bench.peers import Missing, Peers
from benchmarks.bench.row import run_row
from benchmarks.bench.table import _networks
from loopwright import te

pytestmark = pytest.mark.usefixtures("no_collection")  # a time is of no matter here

SMALL = Effort(budget=0.01, sample=1e-5, least=5, most=7)


# The networks.


@pytest.mark.parametrize(
    ("network", "layers", "kinds", "giga_flops"),
    [("resnet50", 53, 23, 8.2), ("vgg19", 16, 9, 39.0), ("mobilenetv2", 52, 30, 0.6), ("resnet3d", 20, 11, 40.7)],
)
def test_networks_have_the_layers_they_are_known_for(network, layers, kinds, giga_flops):
    """The operations are those in the literature: 4.1 billion multiply-adds of ResNet-50 on an image, for example."""
    found = distinct(getattr(layers_of, network)())
    assert (sum(found.values()), len(found)) == (layers, kinds)
    cases = [case for case in cases_of(network) if case.group == "batch 1"]
    total = sum(
        2 * case.count * np.prod([layer.filters, layer.channels // layer.groups, *layer.kernel, *layer.output_size])
        for case in cases
        for layer in [case.shape[0]]
    )
    assert total / 1e9 == pytest.approx(giga_flops, rel=0.02)
    assert {case.group for case in cases_of(network)} == {"batch 1", "batch 4"}


def test_layers_are_named_by_what_they_are():
    assert str(square(3, 64, 224, 7, 2)) == "224² 3→64, 7×7 s2"
    assert str(square(32, 32, 112, 3, 1, 32)) == "112² 32 depthwise, 3×3"
    assert str(Layer(6, 4, (7, 9), (5, 3), (2, 1), (2, 0), 2, dilation=2)) == "7×9 6→4 g2, 5×3 s2 d2"
    assert square(3, 64, 224, 7, 2).output_size == (112, 112)
    assert Layer(1, 1, (7,), (3,), (1,), (0,), dilation=2).output_size == (3,)


def test_mobilenet_ends_its_blocks_without_an_activation():
    found = distinct(layers_of.mobilenetv2())
    assert {layer.activation for layer in found} == {"relu6", "none"}
    assert all(layer.activation == "relu6" for layer in found if layer.is_depthwise or layer.kernel == (3, 3))


# What a row computes.


def by_loops(x: np.ndarray, w: np.ndarray, layer: Layer) -> np.ndarray:
    """A convolution, as one would write it down first."""
    out = np.zeros((x.shape[0], layer.filters, *layer.output_size))
    depth, width = layer.channels // layer.groups, layer.filters // layer.groups
    for n, f, *at in product(*map(range, out.shape)):
        for c, *tap in product(*map(range, w.shape[1:])):
            where = [
                i * s + k * layer.dilation - p for i, s, k, p in zip(at, layer.stride, tap, layer.padding, strict=True)
            ]
            if all(0 <= i < size for i, size in zip(where, layer.size, strict=True)):
                out[n, f, *at] += x[n, f // width * depth + c, *where] * w[f, c, *tap]
    return out


@pytest.mark.one_in(3)
@pytest.mark.parametrize("layer", [*_ODD[1:], Layer(2, 4, (6,), (3,), (2,), (2,), 2, dilation=2)], ids=str)
def test_the_reference_is_the_convolution(layer):
    x = uniform((2, layer.channels, *layer.size), seed=5).astype("float64")
    w = weights(layer)[0].astype("float64")
    assert np.allclose(sum_of_products(x, w, layer), by_loops(x, w, layer), rtol=1e-12, atol=1e-12)


def test_activations():
    x = np.array([-1.0, 3.0, 9.0])
    assert [activated(x, kind).tolist() for kind in ("none", "relu", "relu6")] == [[-1, 3, 9], [0, 3, 9], [0, 3, 6]]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("layer", [_ODD[0], _ODD[3], _ODD[6]], ids=str)
def test_a_row_is_checked_and_timed(layer):
    made = run_row(
        Case("a row", convolution, (layer, 1), [(layer, 2)], count=3, group="batch 1"), alone(), SMALL, [1], 1, set()
    )
    assert made["status"] == "ok", made
    assert (made["count"], made["group"]) == (3, "batch 1")
    assert made["flops"] == 2 * np.prod([layer.filters, *layer.output_size, *weights(layer)[0].shape[1:]])
    assert set(made["skipped"]) - {"ours winograd"} == {"onnxruntime", "openvino", "torch"}


def alone() -> Peers:
    return Peers(1, use_torch=False, without=frozenset({"onnxruntime", "openvino"}))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (quantized_convolution, (_ODD[0], 1)),
        (int8_product, (17, 31, 33)),
        (half_product, (17, 31, 33, "bfloat16")),
        (half_product, (8, 9, 17, "float16")),
    ],
)
def test_rows_in_low_precision_run_beside_float32(make, shape):
    made = run_row(Case("a row", make, shape), alone(), SMALL, [1, 2], 0, set())
    assert made["status"] == "ok", made
    assert "ours float32" in made["ratios"]
    assert made["contenders"]["ours float32"]["error_share"] is None  # it is asked for another result


def test_bytes_are_multiplied_exactly():
    problem = int8_product(3, 5, 4)
    a = problem.inputs[0].astype("int64")
    (bounded,) = problem.reference()
    assert bounded.allowed == 0.0 and bounded.exact.dtype == "int64"
    assert np.abs(bounded.exact).max() > 128 and a.max() > 127


@pytest.mark.skipif(importlib.util.find_spec("onnx") is None, reason="onnx is not installed")
@pytest.mark.parametrize("family", [*NETWORKS, *LOW_PRECISION])
def test_onnx_models_compute_the_same(family):
    case = cases_of(family)[0]
    problem = case.make(*case.boundary[0])
    for name, peer in problem.peers.items():
        if isinstance(peer, Onnx) and importlib.util.find_spec(peer.library):
            contender = Peers(1).contender(peer, problem)
            contender.run()
            assert verify.peer_share(contender, problem.reference()) <= 4, name


# Peers in processes of their own. What they make is found by name, so it stands here.


def twice(n: int, how: str = "well") -> Problem:
    x = uniform(n, seed=1)

    def run(inputs, outputs):
        def call():
            if how == "dies":
                os.kill(os.getpid(), signal.SIGSEGV)
            if how == "hangs":
                signal.pause()
            np.add(inputs[0], inputs[0], out=outputs[0])

        return call

    def program():
        X = te.placeholder((n,), name="X")
        return [X, te.compute((n,), lambda i: X[i] + X[i], name="Y")]

    peers = {"peer": Numpy(run, needs="numpy" if how != "is missing" else "a_package_that_nobody_has")}
    return Problem(program, [x], [aligned(n)], lambda: [Bounded(2.0 * x.astype("float64"), 0.0)], peers)


@pytest.fixture
def helper():
    made = Helper("peer", Peers(1))
    yield made
    made.close()


def test_a_helper_computes_and_times(helper):
    helper.make(Case("twice", twice, (100,)))
    assert 0 < helper.sample(3, True) < 60
    (result,) = helper.results()
    assert np.array_equal(result, 2 * uniform(100, seed=1))
    helper.make(Case("twice", twice, (7,)))  # the next row, in the same process
    helper()
    assert helper.results()[0].shape == (7,)


def test_a_helper_is_stopped_between_its_samples(helper):
    helper.make(Case("twice", twice, (100,)))
    stat = f"/proc/{helper._process.pid}/stat"
    if not os.path.exists(stat):
        pytest.skip("no /proc")
    until = time.monotonic() + 10  # it is told at once, and stops as soon as it is given a core
    while (state := Path(stat).read_text().split(") ")[1][0]) != "T" and time.monotonic() < until:
        time.sleep(0.01)
    assert state == "T"


def test_what_a_helper_lacks_is_said(helper):
    with pytest.raises(Missing, match="a_package_that_nobody_has is not installed"):
        helper.make(Case("twice", twice, (100, "is missing")))
    with pytest.raises(Missing, match="failed: KeyError: 'peer'"):
        helper.make(Case("twice", convolution, (_ODD[5], 1)))


def test_a_helper_that_dies_or_hangs_is_gone(helper):
    with pytest.raises(Gone, match=f"its process ended with signal {signal.SIGSEGV.value}"):
        helper.make(Case("twice", twice, (100, "dies")))
    hanging = Helper("peer", Peers(1), patience=1.0)
    with pytest.raises(Gone, match="its process gave no answer for 1 s"):
        hanging.make(Case("twice", twice, (100, "hangs")))


def test_a_peer_that_dies_on_the_way_costs_itself_alone(monkeypatch):
    peers = alone()
    calls = iter(range(100))

    class Dying:
        def __call__(self):
            pass

        def sample(self, calls_, warm):
            if next(calls) > 3:
                raise Gone("torch", "ended with signal 11")
            return 1e-3

        results = staticmethod(lambda: [np.zeros((1, 1, 1, 1), "float32")])
        close = staticmethod(lambda: None)

    def with_dying(name):
        peers.helpers[name] = Dying()
        return apart_contender(Dying())

    def apart_contender(made):
        from benchmarks.bench.peers import Contender

        return Contender(made, made.results)

    monkeypatch.setattr(peers, "apart", lambda name, peer, case: with_dying(name) if name == "torch" else gone(name))

    def gone(name):
        raise Missing("left out")

    row = run_row(Case("one", convolution, (_ODD[5], 1)), peers, SMALL, [1], 0, set())
    assert row["status"] == "ok" and "torch" not in row["ratios"]
    assert row["skipped"]["torch"] == "failed: its process ended with signal 11"
    assert peers.helpers == {}  # the next row starts it anew


# Sums over a network.


def row(name: str, count: int, seconds: dict[str, float], family: str = "resnet50", **changes) -> dict:
    contenders = {peer: {"seconds": value} for peer, value in seconds.items()}
    ratios = {
        peer: {"median": value / seconds["ours"], "low": 0, "high": 9}
        for peer, value in seconds.items()
        if peer != "ours"
    }
    shown = {
        "family": family,
        "name": name,
        "group": "batch 1",
        "count": count,
        "threads": 1,
        "status": "ok",
        "flops": 8,
    }
    return {**shown, "tags": ["bar"], "contenders": contenders, "ratios": ratios, **changes}


ROWS = [
    row("a", 1, {"ours": 1.0, "ours again": 1.0, "onnxruntime": 2.0, "torch": 4.0}),
    row("b", 3, {"ours": 1.0, "ours again": 1.0, "onnxruntime": 2.0, "torch": 1.0}),
    {
        "family": "resnet50",
        "name": "c",
        "group": "batch 1",
        "count": 1,
        "threads": 1,
        "status": "wrong",
        "tags": ["bar"],
    },
]


def test_a_network_is_the_sum_of_its_layers():
    (entry,) = networks.sum_up(ROWS)
    assert (entry["rows"], entry["all_rows"], entry["seconds"], entry["flops"]) == (2, 3, 4.0, 32)
    assert entry["totals"] == {"onnxruntime": 2.0, "torch": 7.0 / 4.0, "best": 5.0 / 4.0}
    assert entry["ratios"] == pytest.approx({"onnxruntime": 2.0, "torch": 2.0, "best": 2.0**0.5})
    assert _networks([entry]).row_count == 1
    assert networks.sum_up([]) == [] and networks.best(ROWS[2]) is None


def test_a_doubtful_peer_is_not_the_best():
    doubted = {**ROWS[1], "doubtful": {"torch": "3 times as long on 2 threads as on 1"}}
    assert networks.best(doubted) == "onnxruntime" and networks.ratio_to(doubted, "torch") is None


def test_where_winograd_is_allowed_it_is_ours():
    faster = row("a", 2, {"ours": 4.0, "ours winograd": 2.0, "onnxruntime": 3.0})
    direct, by_winograd = networks.sum_up([faster, ROWS[1]])
    assert (direct["family"], by_winograd["family"]) == ("resnet50", "resnet50 winograd")
    assert (direct["seconds"], by_winograd["seconds"]) == (11.0, 7.0)
    assert direct["totals"]["onnxruntime"] == 12 / 11 and by_winograd["totals"]["onnxruntime"] == 12 / 7
    assert by_winograd["ratios"]["onnxruntime"] == pytest.approx((1.5 * 2.0) ** 0.5)
    assert "ours winograd" not in direct["ratios"] and networks.best(faster) == "onnxruntime"


def test_winograd_is_held_to_its_own_bound():
    layer = square(32, 32, 14, 3)
    problem = convolution(layer, 2)
    peer = problem.peers["ours winograd"]
    assert isinstance(peer, OursToo) and peer.reference is not None
    (direct,), (wider,) = problem.reference(), peer.reference()
    assert (wider.allowed > direct.allowed).all()
    assert wider.allowed[0].max() < wider.allowed[1].max() < 0.05 * np.abs(wider.exact).max()
    assert "ours winograd" not in convolution(square(32, 32, 14, 1), 1).peers
    assert "ours winograd" not in convolution(square(32, 32, 14, 3, 2), 1).peers


def test_our_own_float32_is_no_rival():
    both = row("a", 1, {"ours": 1.0, "ours float32": 0.5, "openvino": 3.0}, family="resnet50_int8", tags=["int8"])
    assert networks.best(both) == "openvino"
    judged = {bar["what"]: bar["value"] for bar in judge(record([both]))}
    assert judged["int8: geometric mean against our float32"] == 0.5


def record(rows: list[dict]) -> dict:
    return {"rows": rows, "machine": {"arch": "x86_64"}, "roofline": {}, "compile": []}


def test_bars_on_convolutions():
    judged = {(bar["what"], bar["kind"]): bar for bar in judge(record(ROWS))}
    assert judged["convolutions: geometric mean against ONNX Runtime", "must"]["passed"] is True
    best = judged["convolutions: geometric mean against the best of three", "aim"]
    assert best["value"] == pytest.approx(2.0**0.5) and best["passed"] is True


def test_groups_of_families_have_names(monkeypatch):
    seen = []
    monkeypatch.setattr(cli, "run", lambda options, progress: seen.append(options) or (_ for _ in ()).throw(SystemExit))
    with pytest.raises(SystemExit):
        cli.main(["--families", "networks,scans", "--no-openvino"])
    assert seen[0].families == [*GROUPS["networks"], "scans"] and seen[0].without == ["openvino"]


def test_peers_are_declared_for_a_process_of_their_own():
    for family in [*NETWORKS, "resnet50_int8"]:
        peers = cases_of(family)[-1].make(_ODD[5], 1).peers
        assert all(
            isinstance(peer, Onnx | OursToo) or (isinstance(peer, Torch) and peer.apart) for peer in peers.values()
        )
