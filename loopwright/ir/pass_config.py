"""The settings a PassContext may carry: each key with its type, default and meaning.

    PassContext(config={"tir.disable_vectorize": True, "tir.UnrollLoop": {"auto_max_step": 16}})

A key is checked when the context is made, so that a misspelt one is an error and not a setting nobody reads. Keys of
groups of options take a dict (or the dataclass itself).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from loopwright.ir.expr.literals import IntImm
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.upper_layers import from_upper_layer


class UnknownConfig(LoopwrightError, AttributeError):
    """A PassContext was given a setting that no pass reads.

    For example:

        from loopwright import PassContext

        PassContext(config={"tir.disable_vectorise": True})
    """

    code = "LW0520"

    def __init__(self, key: str, known: Mapping[str, object]) -> None:
        near = get_close_matches(key, known, 3, 0.5)
        # Those of the layer that was meant; all of them where none has that name.
        layer = [name for name in sorted(known) if name.split(".")[0] == key.split(".")[0]] or sorted(known)
        super().__init__(
            f"PassContext: no setting is called {key!r}",
            why=f"the settings are {', '.join(layer)}",
            hint=f"did you mean {', '.join(near)}?" if near else "PassContext.list_configs() describes them all",
            fields={"key": key, "candidates": sorted(known)},
        )


class BadConfigValue(LoopwrightError, AttributeError):
    """A setting of a PassContext has a value of the wrong type.

    For example:

        from loopwright import PassContext

        PassContext(config={"tir.disable_vectorize": "yes"})
    """

    code = "LW0521"

    def __init__(self, key: str, value: object, wanted: str) -> None:
        super().__init__(
            f"PassContext: setting {key!r} takes {wanted}, got {type(value).__name__} {value!r}",
            fields={"key": key, "value": value, "wanted": wanted},
        )


class ConfigKey(NamedTuple):
    """One setting."""

    type: type
    default: object
    meaning: str


@dataclasses.dataclass(frozen=True)
class UnrollLoopConfig:
    """Which loops `unroll_loops` writes out, beside those marked unrolled."""

    auto_max_step: int = 0  # unroll a serial loop when its body, written out, has at most this many statements
    auto_max_depth: int = 8  # how many loops deep an automatically unrolled nest may be
    auto_max_extent: int = 0  # unroll a serial loop of at most this extent
    explicit_unroll: bool = True  # write marked loops out; else leave them to the code generator
    unroll_local_access: bool = False


@dataclasses.dataclass(frozen=True)
class LoopPartitionConfig:
    """Which loops are cut where a guard changes. Where nothing is set, all are."""

    partition_const_loop: bool = False  # loops of constant length, too; else only those with a hint
    no_unroll_loop_with_extent_one: bool = False  # parts of one iteration stay loops
    unroll_loop_with_partition_hint_no_interval: bool = False  # a loop with a hint, and no guard to cut it at


@dataclasses.dataclass(frozen=True)
class InjectDoubleBufferConfig:
    """How a double-buffered loop is written."""

    split_loop: int = 1


@dataclasses.dataclass(frozen=True)
class HoistExpressionConfig:
    """Which conditions and lets are moved out of loops: sums of 1 if-statements, 2 if-expressions, 4 booleans …"""

    hoisted_conditionals: int = 15
    hoisted_let_bindings: int = 7
    conditional_types: int = 15


CONFIG_KEYS: Final[dict[str, ConfigKey]] = {
    "tir.noalias": ConfigKey(bool, True, "argument buffers do not overlap"),
    "tir.disable_vectorize": ConfigKey(bool, False, "run vectorized loops one iteration at a time"),
    "tir.disable_assert": ConfigKey(bool, False, "leave out the program's own assertions"),
    "tir.instrument_bound_checkers": ConfigKey(bool, False, "check indices when the program runs"),
    "tir.debug_keep_trivial_loop": ConfigKey(bool, False, "keep loops of one iteration"),
    "tir.add_lower_pass": ConfigKey(list, [], "(phase, pass) pairs to run between the phases of lowering"),
    "tir.UnrollLoop": ConfigKey(UnrollLoopConfig, UnrollLoopConfig(), "which loops the explicit unroller writes out"),
    "tir.LoopPartition": ConfigKey(LoopPartitionConfig, LoopPartitionConfig(), "how loops are cut at their guards"),
    "tir.InjectDoubleBuffer": ConfigKey(InjectDoubleBufferConfig, InjectDoubleBufferConfig(), "how double buffers run"),
    "tir.HoistExpression": ConfigKey(HoistExpressionConfig, HoistExpressionConfig(), "what hoist_expressions moves"),
    "tir.disable_storage_rewrite": ConfigKey(bool, False, "give every buffer memory of its own"),
    "tir.disable_cse_tir": ConfigKey(bool, False, "leave repeated expressions as they are"),
    "te.keep_schedule_record": ConfigKey(bool, False, "remember every step of a te schedule"),
    "relay.FuseOps.max_depth": ConfigKey(int, 256, "the most expressions in one kernel"),
    "relay.FuseOps.max_args": ConfigKey(int, 0, "the most parameters and results of one kernel; 0 for any number"),
    "relay.FuseOps.max_function_args": ConfigKey(int, 0, "the same as relay.FuseOps.max_args, which is read first"),
    "relay.FuseOps.link_params": ConfigKey(bool, False, "keep constants inside kernels"),
    "relay.frontend.fill_span": ConfigKey(bool, True, "calls of an imported model carry the names of their nodes"),
    "relay.ToMixedPrecision.keep_orig_output_dtype": ConfigKey(bool, False, "results keep the types they had"),
}


def register_config(key: str, type_: type, default: object = None, meaning: str = "") -> None:
    """Make a setting known, so that a PassContext accepts it."""
    CONFIG_KEYS[key] = ConfigKey(type_, default, meaning)


def all_keys() -> dict[str, ConfigKey]:
    """Every setting by name, those included that only scripts know (`compat/settings.py`)."""
    return {**from_upper_layer("ignored settings"), **CONFIG_KEYS}


def find_key(name: str) -> ConfigKey | None:
    """The setting of that name."""
    return CONFIG_KEYS.get(name) or all_keys().get(name)


def checked_config(config: Mapping[str, object] | None) -> dict[str, Any]:
    """The given settings, each checked against its type; dicts become option structs."""
    return {key: _checked(key, value) for key, value in (config or {}).items()}


def _checked(key: str, value: object) -> object:
    known = find_key(key)
    if known is None:
        raise UnknownConfig(key, all_keys())
    if dataclasses.is_dataclass(known.type) and isinstance(value, Mapping):
        return _options(key, known.type, value)
    if known.type is list and isinstance(value, tuple):
        return list(value)
    value = _literal(value, known.type)
    # bool is a subclass of int, but True is no count.
    if not isinstance(value, known.type) or (known.type is int and isinstance(value, bool)):
        raise BadConfigValue(key, value, known.type.__name__)
    return value


def _literal(value: object, wanted: type) -> object:
    """A value as Python's: literals of programs are numbers, and where a truth value is wanted 1 and 0 are two."""
    if isinstance(value, IntImm):
        value = bool(value.value) if value.dtype.is_bool else value.value
    return bool(value) if wanted is bool and isinstance(value, int) and value in (0, 1) else value


def _options(key: str, struct: type, values: Mapping[str, object]) -> object:
    fields = {field.name: type(field.default) for field in dataclasses.fields(struct)}
    given: dict[str, object] = {}
    for name, value in values.items():
        if name not in fields:
            raise UnknownConfig(f"{key}.{name}", {f"{key}.{field}": None for field in fields})
        given[name] = _literal(value, fields[name])
        if type(given[name]) is not fields[name]:
            raise BadConfigValue(f"{key}.{name}", value, fields[name].__name__)
    return struct(**given)
