"""Who is measured on a case: Loopwright, torch eager and torch.compile, all on the same tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from case import Case, bound_of, error_of, make_inputs, truth_of

import loopwright as lw

Call = Callable[[int], object]  # takes which of the copies of the inputs


class Place(NamedTuple):
    """Where a run is: the target that we build for, and torch's device."""

    target: str
    device: str

    @property
    def is_gpu(self) -> bool:
        return self.device == "cuda"


GPU = Place("cuda", "cuda")
EMULATED = Place("cuda -model=emulated", "cpu")


class WrongResult(Exception):
    """A result is further from the truth than rounding explains."""


def build(case: Case, place: Place) -> Any:
    """Our module, scheduled by rule."""
    return lw.build(list(case.program()), target=place.target, autosched=True)


def compiled(case: Case) -> Callable[..., torch.Tensor]:
    """torch.compile's function, which compiles when it is first called."""
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result: Callable[..., torch.Tensor] = torch.compile(case.reference, dynamic=False)
        return result


class Prepared(NamedTuple):
    """A case whose contenders can be called, and what each of them computed for the first copy."""

    calls: dict[str, Call]
    errors: dict[str, float]
    out_bytes: int
    failures: dict[str, str]  # of torch.compile, which may be missing


def prepare(case: Case, place: Place, copies: int, compiles: bool) -> Prepared:
    """Build, run each contender once and compare with float64; WrongResult where ours is wrong."""
    inputs = [make_inputs(case, place.device, seed) for seed in range(copies)]
    calls, out = {"ours": ours(case, place, inputs)}, None
    first = calls["ours"](0)
    eager: Call = lambda k: case.reference(*inputs[k])  # noqa: E731
    calls["eager"], out = eager, eager(0)
    assert isinstance(first, torch.Tensor) and isinstance(out, torch.Tensor)
    if first.shape != out.shape or first.dtype != out.dtype:
        raise WrongResult(f"ours is {first.dtype} {tuple(first.shape)}, torch's {out.dtype} {tuple(out.shape)}")
    truth = truth_of(case, inputs[0])
    errors, failures = {"ours": error_of(first, truth), "eager": error_of(out, truth)}, {}
    bound = max(bound_of(str(first.dtype).removeprefix("torch.")), 4 * errors["eager"])
    if not errors["ours"] <= bound:
        raise WrongResult(f"error {errors['ours']:.2e}, allowed {bound:.2e}, torch's {errors['eager']:.2e}")
    if compiles:
        try:
            function = compiled(case)
            errors["compile"] = error_of(function(*inputs[0]), truth)
            calls["compile"] = lambda k: function(*inputs[k])
        except Exception as error:  # what torch cannot compile is no fault of ours
            failures["compile"] = f"{type(error).__name__}: {error}".splitlines()[0]
    return Prepared(calls, errors, first.nbytes, failures)


def ours(case: Case, place: Place, inputs: Sequence[Sequence[torch.Tensor]]) -> Call:
    """Our function on torch's memory; each copy of the inputs has its output, which starts out as NaN."""
    module = build(case, place)
    dtype = getattr(torch, str(case.program()[-1].dtype))
    fill = float("nan") if dtype.is_floating_point else -1
    outputs = [torch.full(case.out, fill, dtype=dtype, device=place.device) for _ in inputs]
    given = [[lw.nd.from_dlpack(one) for one in [*some, output]] for some, output in zip(inputs, outputs)]
    function = module[module.entry_name]

    def call(k: int) -> torch.Tensor:
        function(*given[k])
        return outputs[k]

    return call
