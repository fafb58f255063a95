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

from loopwright.runtime.errors import LoopwrightError


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
    """Which loops are cut where a guard changes."""

    partition_const_loop: bool = False
    no_unroll_loop_with_extent_one: bool = False
    unroll_loop_with_partition_hint_no_interval: bool = False


@dataclasses.dataclass(frozen=True)
class InjectDoubleBufferConfig:
    """How a double-buffered loop is written."""

    split_loop: int = 1


@dataclasses.dataclass(frozen=True)
class SimplifyConfig:
    """How hard the simplifier tries. Ours always uses what conditions say; the rest is here for scripts that ask."""

    transitively_prove_inequalities: bool = False
    propagate_knowns_to_prove_conditional: bool = False
    propagate_knowns_to_simplify_expressions: bool = False
    convert_boolean_to_and_of_ors: bool = False
    apply_constraints_to_boolean_branches: bool = False


@dataclasses.dataclass(frozen=True)
class RemoveNoOpConfig:
    """How dead statements are found."""

    use_dataflow_analysis: bool = False
    max_simplification_steps: int = 0


@dataclasses.dataclass(frozen=True)
class HoistIfThenElseConfig:
    """Which branches are moved out of loops."""

    support_block_scope_hosting: bool = False


@dataclasses.dataclass(frozen=True)
class HoistExpressionConfig:
    """Which conditions and lets are moved out of loops: sums of 1 if-statements, 2 if-expressions, 4 booleans …"""

    hoisted_conditionals: int = 15
    hoisted_let_bindings: int = 7
    conditional_types: int = 15


_OFF: Final = "scripts may switch it; no pass of ours reads it yet"

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
    "tir.Simplify": ConfigKey(SimplifyConfig, SimplifyConfig(), _OFF),
    "tir.RemoveNoOp": ConfigKey(RemoveNoOpConfig, RemoveNoOpConfig(), _OFF),
    "tir.HoistIfThenElse": ConfigKey(HoistIfThenElseConfig, HoistIfThenElseConfig(), _OFF),
    "tir.HoistExpression": ConfigKey(HoistExpressionConfig, HoistExpressionConfig(), "what hoist_expressions moves"),
    "tir.disable_storage_rewrite": ConfigKey(bool, False, "give every buffer memory of its own"),
    "tir.disable_cse_tir": ConfigKey(bool, False, "leave repeated expressions as they are"),
    "tir.vtcm_capacity": ConfigKey(int, 0, _OFF),
    "te.keep_schedule_record": ConfigKey(bool, False, _OFF),
    "cuda.kernels_output_dir": ConfigKey(str, "", _OFF),
    "relay.FuseOps.max_depth": ConfigKey(int, 256, "the most expressions in one kernel"),
    "relay.FuseOps.max_args": ConfigKey(int, 0, "the most parameters and results of one kernel; 0 for any number"),
    "relay.FuseOps.link_params": ConfigKey(bool, False, "keep constants inside kernels"),
    "relay.ToMixedPrecision.keep_orig_output_dtype": ConfigKey(bool, False, "results keep the types they had"),
    "relay.backend.use_auto_scheduler": ConfigKey(bool, False, _OFF),
    "relay.backend.use_meta_schedule": ConfigKey(bool, False, _OFF),
    "relay.backend.use_meta_schedule_dispatch": ConfigKey(int, 0, _OFF),
    "relay.backend.tir_converter": ConfigKey(str, "default", _OFF),
    "relay.fallback_device_type": ConfigKey(int, 1, _OFF),
    "relay.remove_standalone_reshapes.enable": ConfigKey(bool, True, _OFF),
    **{
        f"tir.{name}": ConfigKey(bool, False, _OFF)
        for name in (
            "enable_equiv_terms_in_cse_tir detect_global_barrier enable_debug "
            "use_async_copy ptx_ldg32 is_entry_func instrument_lwp merge_static_smem"
        ).split()
    },
}


def register_config(key: str, type_: type, default: object = None, meaning: str = "") -> None:
    """Make a setting known, so that a PassContext accepts it."""
    CONFIG_KEYS[key] = ConfigKey(type_, default, meaning)


def checked_config(config: Mapping[str, object] | None) -> dict[str, Any]:
    """The given settings, each checked against its type; dicts become option structs."""
    return {key: _checked(key, value) for key, value in (config or {}).items()}


def _checked(key: str, value: object) -> object:
    known = CONFIG_KEYS.get(key)
    if known is None:
        raise UnknownConfig(key, CONFIG_KEYS)
    if dataclasses.is_dataclass(known.type) and isinstance(value, Mapping):
        return _options(key, known.type, value)
    if known.type is list and isinstance(value, tuple):
        return list(value)
    # bool is a subclass of int: 1 is no truth value here, nor True a count.
    if not isinstance(value, known.type) or (known.type is int and isinstance(value, bool)):
        raise BadConfigValue(key, value, known.type.__name__)
    return value


def _options(key: str, struct: type, values: Mapping[str, object]) -> object:
    fields = {field.name: type(field.default) for field in dataclasses.fields(struct)}
    for name, value in values.items():
        if name not in fields:
            raise UnknownConfig(f"{key}.{name}", {f"{key}.{field}": None for field in fields})
        if type(value) is not fields[name]:
            raise BadConfigValue(f"{key}.{name}", value, fields[name].__name__)
    return struct(**values)
