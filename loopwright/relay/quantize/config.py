"""config: what can be chosen about quantizing, as a context.

    with qconfig(calibrate_mode="percentile", skip_conv_layers=[]):
        quantize(mod, params, dataset)

Names and defaults are those that scripts know; `min_max` and `channel` are ours, and what `precision="int8"` uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, fields, replace
from types import TracebackType
from typing import Any, Final

from loopwright.runtime.errors import LoopwrightError

CALIBRATE_MODES: Final = ("global_scale", "min_max", "percentile", "kl_divergence")
WEIGHT_SCALES: Final = ("power2", "max", "channel")


class BadQuantization(LoopwrightError, ValueError):
    """`qconfig` was given a setting that it does not have, or a value that the setting cannot have.

    `calibrate_mode` is one of global_scale, min_max, percentile and kl_divergence; `weight_scale` one of power2, max
    and channel; integers of inputs and weights have 2 to 8 bits, and products are summed up in 32.

    For example:

        from loopwright import relay
        relay.quantize.qconfig(calibrate_mode="guess")
    """

    code = "LW1224"

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(f"qconfig: {problem}", hint=hint)


@dataclass(frozen=True)
class QConfig:
    """How a model is quantized; `qconfig` makes it the one in force."""

    nbit_input: int = 8
    nbit_weight: int = 8
    nbit_activation: int = 32  # of sums of products
    dtype_input: str = "int8"
    dtype_weight: str = "int8"
    dtype_activation: str = "int32"
    calibrate_mode: str = "global_scale"
    global_scale: float = 8.0  # the largest magnitude, where nothing is calibrated
    percentile: float = 99.99  # of magnitudes that a byte reaches
    weight_scale: str = "power2"
    skip_dense_layer: bool = True
    skip_conv_layers: Iterable[int] | None = field(default_factory=lambda: [0])  # counted from the input; -1 the last
    skip_dense_layers: Iterable[int] | None = None
    do_simulation: bool = False  # leave real numbers that are rounded as the integers would be
    round_for_shift: bool = True
    debug_enabled_ops: object = None
    rounding: str = "UPWARD"
    calibrate_chunk_by: int = -1
    partition_conversions: str = "disabled"
    _outer: list[Token[QConfig | None]] = field(default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, known in (("calibrate_mode", CALIBRATE_MODES), ("weight_scale", WEIGHT_SCALES)):
            if getattr(self, name) not in known:
                raise BadQuantization(f"{name} is {getattr(self, name)!r}", f"there are {', '.join(known)}")
        for name in ("nbit_input", "nbit_weight"):
            bits = getattr(self, name)
            if not isinstance(bits, int) or not 2 <= bits <= 8:
                raise BadQuantization(f"{name} is {bits!r}, and integers are bytes: 2 to 8 bits of them")
        fixed = {"nbit_activation": 32, "dtype_input": "int8", "dtype_weight": "int8", "dtype_activation": "int32"}
        for name, value in fixed.items():
            if getattr(self, name) != value:
                raise BadQuantization(f"{name} is {getattr(self, name)!r}, and only {value!r} is built")
        if self.partition_conversions != "disabled":
            raise BadQuantization(f"partition_conversions is {self.partition_conversions!r}, and only 'disabled' is")
        if not self.global_scale > 0:
            raise BadQuantization(f"global_scale is {self.global_scale!r}, and no magnitude")
        if not 0 < self.percentile <= 100:
            raise BadQuantization(f"percentile is {self.percentile!r}, and not between 0 and 100")

    def __enter__(self) -> QConfig:
        self._outer.append(_CURRENT.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _CURRENT.reset(self._outer.pop())

    @property
    def is_calibrated(self) -> bool:
        """Whether samples are needed."""
        return self.calibrate_mode != "global_scale"


_CURRENT: ContextVar[QConfig | None] = ContextVar("relay.quantize.qconfig", default=None)
_DEFAULT: Final = QConfig()
_SETTINGS: Final = tuple(one.name for one in fields(QConfig) if not one.name.startswith("_"))


def qconfig(**settings: Any) -> QConfig:
    """The settings in force, with these changed; a context in which they are."""
    for name in settings:
        if name not in _SETTINGS:
            raise BadQuantization(f"there is no setting {name!r}", f"there are {', '.join(_SETTINGS)}")
    return replace(current_qconfig(), **settings, _outer=[])


def current_qconfig() -> QConfig:
    """The settings in force."""
    return _CURRENT.get() or _DEFAULT
