"""settings: keys of a PassContext that scripts set, and that no pass of ours reads: accepted, checked, and ignored."""

from __future__ import annotations

import dataclasses
from typing import Final

from loopwright.ir.pass_config import ConfigKey


@dataclasses.dataclass(frozen=True)
class SimplifyConfig:
    """How hard the simplifier tries; ours always uses what conditions say."""

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
class OvercomputeConfig:
    """How much is tried to do without a branch."""

    use_dataflow_analysis: bool = False


_IGNORED: Final = "scripts may switch it; no pass of ours reads it"

IGNORED_SETTINGS: Final[dict[str, ConfigKey]] = {
    "tir.Simplify": ConfigKey(SimplifyConfig, SimplifyConfig(), "what tir.transform.Simplify tries; ours does not"),
    "tir.RemoveNoOp": ConfigKey(RemoveNoOpConfig, RemoveNoOpConfig(), _IGNORED),
    "tir.HoistIfThenElse": ConfigKey(HoistIfThenElseConfig, HoistIfThenElseConfig(), "what HoistIfThenElse moves"),
    "tir.ReduceBranchingThroughOvercompute": ConfigKey(OvercomputeConfig, OvercomputeConfig(), _IGNORED),
    "tir.lwp_disable_func_prof": ConfigKey(bool, False, "InstrumentProfileIntrinsics: leave the whole function out"),
    "tir.instr_siblings": ConfigKey(bool, True, "InstrumentProfileIntrinsics: only loops beside other loops"),
    "tir.lwp_max_depth": ConfigKey(int, 0, "InstrumentProfileIntrinsics: loops down to this depth; 0 is no limit"),
    "tir.lwp_min_height": ConfigKey(int, 1, "InstrumentProfileIntrinsics: loops with so many loops inside"),
    "tir.reset_start_id": ConfigKey(bool, False, _IGNORED),
    "tir.vtcm_capacity": ConfigKey(int, 0, "VerifyVTCMLimit: the bytes there are; 0 is no limit"),
    "cuda.kernels_output_dir": ConfigKey(str, "", _IGNORED),
    "relay.backend.use_auto_scheduler": ConfigKey(bool, False, _IGNORED),
    "relay.backend.use_meta_schedule": ConfigKey(bool, False, _IGNORED),
    "relay.backend.use_meta_schedule_dispatch": ConfigKey(int, 0, _IGNORED),
    "relay.backend.tir_converter": ConfigKey(str, "default", _IGNORED),
    "tir.usmp.enable": ConfigKey(bool, False, _IGNORED),
    "tir.usmp.use_workspace_io": ConfigKey(bool, False, _IGNORED),
    "tir.usmp.algorithm": ConfigKey(str, "greedy_by_size", _IGNORED),
    "tir.usmp.custom_algorithm": ConfigKey(str, "", _IGNORED),
    "relay.fallback_device_type": ConfigKey(int, 1, "make_compilation_config: the device of kernels"),
    "relay.remove_standalone_reshapes.enable": ConfigKey(bool, True, _IGNORED),
    **{
        f"tir.{name}": ConfigKey(bool, False, _IGNORED)
        for name in (
            "enable_equiv_terms_in_cse_tir detect_global_barrier enable_debug "
            "use_async_copy ptx_ldg32 is_entry_func instrument_lwp merge_static_smem"
        ).split()
    },
}
