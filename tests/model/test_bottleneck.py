from __future__ import annotations

import pytest

from loopwright.autosched import Choice, Decision, Roofline
from loopwright.autosched.decision import ChoiceKind, RuleKind
from loopwright.autosched.rules.plain import RUNS_ONCE
from loopwright.model.bottleneck import Limit, limit_of, reasons
from loopwright.model.kernel import Kernel
from loopwright.model.machine_limits import FOOTPRINTS, MachineLimits, bandwidth_at

RATES = [100e9, 80e9, 40e9, 20e9]
CURVE = list(zip(FOOTPRINTS, RATES, strict=True))
LIMITS = MachineLimits(2, 200e9, {"read": CURVE, "copy": CURVE}, 2e-6)
ARITHMETIC = Limit(1e-3, "arithmetic", 100e9)


def kernel(*decisions: Decision, text: str = "") -> Kernel:
    return Kernel("k", b"", b"", (), (), False, True, (), text, {}, decisions=decisions)


def product(*choices: Choice, expected: float = 1000.0, tile_use: float = 1.0, kind: RuleKind = RuleKind.OTHER):
    return Decision(("C",), "packed GEMM", list(choices), Roofline(1000.0, 10.0, expected), tile_use, kind)


def test_bandwidth_lies_between_the_measured_sizes():
    assert LIMITS.bandwidth("read", 1) == LIMITS.bandwidth("copy", FOOTPRINTS[0]) == 100e9
    assert LIMITS.bandwidth("read", 1 << 40) == 20e9
    between = LIMITS.bandwidth("read", (FOOTPRINTS[0] * FOOTPRINTS[1]) ** 0.5)
    assert between == pytest.approx(90e9)


def test_the_limit_is_memory_or_arithmetic():
    made = limit_of(kernel(product()), "float32", 200e9, 4000, 4000, LIMITS, 32)
    assert (made.bound, made.seconds) == ("arithmetic", 1.0)
    made = limit_of(kernel(), "float32", None, 1 << 40, 0, LIMITS, 32)
    assert (made.bound, made.seconds, made.bandwidth) == ("memory", 2**40 / 20e9, 20e9)
    # 1000 cycles, of a core that does 100e9 operations a second, 32 in a cycle: whatever the direct form would need.
    made = limit_of(kernel(product(kind=RuleKind.WINOGRAD)), "float32", 200e9, 4, 4, LIMITS, 32)
    assert made.seconds == pytest.approx(1000 * 32 / 100e9)
    narrow = kernel(product(kind=RuleKind.LOW_PRECISION))
    assert limit_of(narrow, "int32", None, 4, 4, LIMITS, 32).seconds == made.seconds
    assert limit_of(kernel(product()), "float64", 200e9, 4, 4, LIMITS, 32).seconds == 2.0


def test_blocks_that_run_once_are_no_reason():
    written = [Choice("no steps", RUNS_ONCE, ChoiceKind.NO_STEPS)]
    once = Decision(("constant",), "left as written", written, kind=RuleKind.AS_WRITTEN)
    expected = ["tail tiles: 30% of the multiply-adds fill up the last tiles"]
    assert reasons(kernel(once, product(tile_use=0.7)), 2e-3, ARITHMETIC, 8, LIMITS) == expected


def test_near_the_limit_nothing_is_missing():
    assert reasons(kernel(), 1.1e-3, ARITHMETIC, 8, LIMITS) == ["at the limit of arithmetic"]
    moved = Limit(1e-3, "memory", 100e9)
    assert reasons(kernel(), 1.1e-3, moved, 10**8, LIMITS) == ["memory-bound: 90.9 of 100 GB/s"]
    (told,) = reasons(kernel(), 5e-3, moved, 10**8, LIMITS)
    assert told == "memory-bound: 20 of 100 GB/s, as if its data were no longer in a cache (memory gives 20)"


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (product(tile_use=0.7), "tail tiles: 30% of the multiply-adds fill up the last tiles"),
        (
            product(Choice("W_global packed", "each is read 4 times", ChoiceKind.PACKED, "W_global")),
            "weights (W) packed at each call",
        ),
        (product(Choice("strips packed", "4 rows at a time", ChoiceKind.PACKED, "X")), "data (X) packed at each call"),
        (product(Choice("one thread", "little work", ChoiceKind.ONE_THREAD)), "on one thread: little work"),
        (product(Choice("none", "no neighbours", ChoiceKind.NO_VECTORS)), "strided access: no neighbours"),
        (
            product(Choice("sums transposed", "pixels are neighbours", ChoiceKind.STRIDED)),
            "strided access: sums transposed, since pixels are neighbours",
        ),
        (product(kind=RuleKind.ACROSS_MEMORY), "strided access: it reads across the order of memory"),
        (
            product(Choice("tiles of 6 × 16", "12 registers are accumulators", ChoiceKind.TILES), expected=2000.0),
            "the rule expects 50%: tiles of 6 × 16 (12 registers are accumulators)",
        ),
        (product(), "the rule 'packed GEMM' expects 100%: what is missing is not known"),
        (
            Decision(
                ("S",),
                "left as written",
                [Choice("no steps", "no rule matches what it computes", ChoiceKind.NO_STEPS)],
                kind=RuleKind.AS_WRITTEN,
            ),
            "S is not scheduled: as written, because no rule matches what it computes",
        ),
        (
            Decision(("S",), "reduction", [Choice("refused", "row group: two loops", ChoiceKind.REFUSED_RULE)]),
            "a better rule was refused: row group: two loops",
        ),
    ],
)
def test_what_the_rules_know(decision, expected):
    assert reasons(kernel(decision), 2e-3, ARITHMETIC, 8, LIMITS, ["W"]) == [expected]


def test_weights_that_are_prepacked_are_no_reason():
    given = product(Choice("W prepacked in panels of 8 columns", "it is constant: packed at compile time"))
    assert "packed at each call" not in reasons(kernel(given), 2e-3, ARITHMETIC, 8, LIMITS)[0]


def test_calls_that_are_too_short():
    limit = Limit(1e-7, "arithmetic", 100e9)
    parallel = kernel(product(), text="for t in T.parallel(2):")
    assert reasons(parallel, 4e-6, limit, 8, LIMITS) == ["too small for threads: waking them takes 2.0 of its 4.0 µs"]
    assert reasons(kernel(product()), 1e-6, limit, 8, LIMITS) == ["launch overhead: a call takes 1.0 µs in all"]
    assert reasons(kernel(), 1e-3, limit, 8, LIMITS) == ["not known: it is scheduled by hand"]


def test_a_decision_is_plain_data_and_back():
    tiles = Choice("tiles", "why", ChoiceKind.TILES, "A")
    decision = product(tiles, expected=4.0, tile_use=0.5, kind=RuleKind.WINOGRAD)
    assert Decision.from_json(decision.to_json()) == decision
    plain = Decision(("A", "B"), "left as written")
    assert Decision.from_json(plain.to_json()) == plain


def test_bandwidth_between_the_measured_sizes():
    curve = [[100, 10.0], [10000, 30.0]]
    assert bandwidth_at(curve, 1000) == pytest.approx(20.0)
    assert bandwidth_at(curve, 1) == 10.0 and bandwidth_at(curve, 10**6) == 30.0
