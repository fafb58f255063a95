"""relay.analysis: questions about graphs; none of them changes anything.

`variables.py` what is bound and free · `well_formed.py` whether names are used where they mean something ·
`operators.py` which operators and element types · `macs.py` how much work · `features.py` which parts of the language ·
`call_graph.py` who calls whom · `fused.py` the kernels of a fused graph · `single_values.py` one value out of a graph ·
`kinds.py` whether types make sense · `calibration.py` what goes into and out of its parts · `devices.py` where values
are.
"""

from loopwright.relay.adt import Match, Pattern, patterns_missing
from loopwright.relay.analysis.calibration import get_calibration_data
from loopwright.relay.analysis.call_graph import CallGraph
from loopwright.relay.analysis.devices import virtual_devices
from loopwright.relay.analysis.features import Feature, detect_feature
from loopwright.relay.analysis.fused import extract_fused_functions
from loopwright.relay.analysis.kinds import check_kind
from loopwright.relay.analysis.macs import get_total_mac_number
from loopwright.relay.analysis.operators import (
    all_dtypes,
    count_layers,
    list_fake_quantized_op_freqs,
    list_op_freqs,
)
from loopwright.relay.analysis.single_values import (
    check_constant,
    extract_intermdeiate_expr,
    extract_intermediate_expr,
    search_fc_transpose,
)
from loopwright.relay.analysis.variables import (
    all_type_vars,
    all_vars,
    bound_type_vars,
    bound_vars,
    free_type_vars,
    free_vars,
)
from loopwright.relay.analysis.well_formed import check_basic_block_normal_form, well_formed
from loopwright.relay.visitor import post_order_visit


def unmatched_cases(match: Match, mod: object = None) -> list[Pattern]:
    """Patterns of the values that no clause of a match takes."""
    return patterns_missing(match)


__all__ = [
    "CallGraph",
    "Feature",
    "all_dtypes",
    "all_type_vars",
    "all_vars",
    "bound_type_vars",
    "bound_vars",
    "check_basic_block_normal_form",
    "check_constant",
    "check_kind",
    "count_layers",
    "detect_feature",
    "extract_fused_functions",
    "extract_intermdeiate_expr",
    "extract_intermediate_expr",
    "free_type_vars",
    "free_vars",
    "get_calibration_data",
    "get_total_mac_number",
    "list_fake_quantized_op_freqs",
    "list_op_freqs",
    "post_order_visit",
    "search_fc_transpose",
    "unmatched_cases",
    "virtual_devices",
    "well_formed",
]
