"""The microarchitectures that are known, by LLVM's CPU names.

Ports, widths and latencies are from the vendors' optimization guides (Intel's Optimization Reference Manual, AMD's
Software Optimization Guides for families 17h, 19h and 1Ah, Arm's Software Optimization Guides of each core) and agree
with the measurements of uops.info and Agner Fog's instruction tables; Apple publishes none, and its numbers are those
of public reverse engineering (Firestorm: four 128-bit FMA ports, three load ports). Sustained bandwidths of L2, L3 and
memory are rounded from public bandwidth tests of one core at its usual clock, those marked `measured` from our own
`doctor --measure`. They need not be exact: choices depend on ratios of two and more.
"""

from __future__ import annotations

from typing import Final

from loopwright.target.microarchitecture import NONE_AHEAD, Caches, Microarchitecture
from loopwright.target.moves import NEOVERSE_N1_MOVES

_KIB, _MIB = 1 << 10, 1 << 20

HASWELL: Final = Microarchitecture(
    "Haswell",
    fma_bits=256,
    fma_latency=5,
    load_bits=256,
    l2_bytes_per_cycle=25.0,
    l3_bytes_per_cycle=12.0,
    memory_bytes_per_cycle=4.0,
    memory_cores=4,
    gather_cycles=1.5,
    caches=Caches(32 * _KIB, 256 * _KIB, 8 * _MIB, 64),
    source="Intel Optimization Reference Manual; uops.info",
)
SKYLAKE: Final = Microarchitecture(
    "Skylake",
    fma_bits=256,
    load_bits=256,
    l2_bytes_per_cycle=28.0,
    l3_bytes_per_cycle=14.0,
    memory_bytes_per_cycle=5.0,
    memory_cores=3,
    gather_cycles=0.7,
    caches=Caches(32 * _KIB, 256 * _KIB, 8 * _MIB, 64),
    source="Intel Optimization Reference Manual; uops.info",
)
GOLDEN_COVE_CLIENT: Final = Microarchitecture(
    "Golden Cove, client",
    fma_bits=256,
    load_ports=3,
    load_bits=256,
    store_ports=2,
    l2_bytes_per_cycle=40.0,
    l3_bytes_per_cycle=14.0,
    memory_bytes_per_cycle=7.0,
    memory_cores=2,
    gather_cycles=0.7,
    caches=Caches(48 * _KIB, 1280 * _KIB, 24 * _MIB, 64),
    source="Intel Optimization Reference Manual; uops.info",
)
SKYLAKE_X: Final = Microarchitecture(
    "Skylake-X",
    gather_cycles=2.7,  # measured, with the microcode that mitigates gather data sampling
    slab_rows=32,  # measured
    lookahead=NONE_AHEAD,  # measured: with prefetches, copies and sums beyond L2 take a sixth to two fifths less
    caches=Caches(32 * _KIB, 1 * _MIB, 16 * _MIB, 64),
    source="Intel Optimization Reference Manual; uops.info; measured",
)
ICE_LAKE_CLIENT: Final = Microarchitecture(
    "Ice Lake, client",
    fma_bits=256,  # port 5 has no second 512-bit unit: two of 256 make one
    store_ports=2,
    l2_bytes_per_cycle=36.0,
    memory_bytes_per_cycle=6.0,
    memory_cores=3,
    caches=Caches(48 * _KIB, 512 * _KIB, 8 * _MIB, 64),
    source="Intel Optimization Reference Manual; uops.info",
)
ICE_LAKE: Final = Microarchitecture(
    "Ice Lake, server",
    store_ports=2,
    caches=Caches(48 * _KIB, 1280 * _KIB, 24 * _MIB, 64),
    source="Intel Optimization Reference Manual; uops.info",
)
SAPPHIRE_RAPIDS: Final = Microarchitecture(
    "Sapphire Rapids and Emerald Rapids",
    store_ports=2,
    caches=Caches(48 * _KIB, 2 * _MIB, 32 * _MIB, 64),
    source="Intel Optimization Reference Manual; uops.info; measured",
)
ZEN: Final = Microarchitecture(
    "Zen",
    fma_bits=128,
    fma_latency=5,
    load_bits=128,
    l2_bytes_per_cycle=20.0,
    l3_bytes_per_cycle=12.0,
    memory_bytes_per_cycle=6.0,
    memory_cores=2,
    gather_cycles=1.5,
    caches=Caches(32 * _KIB, 512 * _KIB, 8 * _MIB, 64),
    source="AMD Software Optimization Guide 17h; uops.info",
)
ZEN_2: Final = Microarchitecture(
    "Zen 2",
    fma_bits=256,
    fma_latency=5,
    load_bits=256,
    l2_bytes_per_cycle=26.0,
    l3_bytes_per_cycle=16.0,
    memory_bytes_per_cycle=6.0,
    memory_cores=2,
    gather_cycles=1.25,
    caches=Caches(32 * _KIB, 512 * _KIB, 16 * _MIB, 64),
    source="AMD Software Optimization Guide 17h; uops.info",
)
ZEN_3: Final = Microarchitecture(
    "Zen 3",
    fma_bits=256,
    load_bits=256,
    l2_bytes_per_cycle=28.0,
    l3_bytes_per_cycle=20.0,
    memory_bytes_per_cycle=7.0,
    memory_cores=2,
    gather_cycles=1.0,
    caches=Caches(32 * _KIB, 512 * _KIB, 32 * _MIB, 64),
    source="AMD Software Optimization Guide 19h; uops.info",
)
ZEN_4: Final = Microarchitecture(
    "Zen 4",
    fma_bits=256,  # a 512-bit instruction takes its port for two cycles
    load_bits=256,
    l2_bytes_per_cycle=28.0,
    l3_bytes_per_cycle=20.0,
    memory_bytes_per_cycle=8.0,
    memory_cores=2,
    gather_cycles=1.0,
    caches=Caches(32 * _KIB, 1 * _MIB, 32 * _MIB, 64),
    source="AMD Software Optimization Guide 19h; uops.info",
)
ZEN_5: Final = Microarchitecture(
    "Zen 5",
    l2_bytes_per_cycle=44.0,
    l3_bytes_per_cycle=22.0,
    memory_bytes_per_cycle=8.0,
    memory_cores=2,
    gather_cycles=1.0,
    caches=Caches(48 * _KIB, 1 * _MIB, 32 * _MIB, 64),
    source="AMD Software Optimization Guide 1Ah; uops.info",
)
CORTEX_A72: Final = Microarchitecture(
    "Cortex-A72",
    fma_bits=64,  # two 64-bit halves make one FMA of 128 bits
    fma_latency=7,
    load_ports=1,
    load_bits=128,
    l2_bytes_per_cycle=8.0,
    l3_bytes_per_cycle=3.0,
    memory_bytes_per_cycle=2.5,
    memory_cores=2,
    gather_cycles=1.0,
    caches=Caches(32 * _KIB, 1 * _MIB, 0, 64),
    source="Arm Cortex-A72 Software Optimization Guide",
)
CORTEX_A76: Final = Microarchitecture(
    "Cortex-A76",
    fma_bits=128,
    load_bits=128,
    l2_bytes_per_cycle=14.0,
    l3_bytes_per_cycle=7.0,
    memory_bytes_per_cycle=5.0,
    memory_cores=2,
    gather_cycles=1.0,
    caches=Caches(64 * _KIB, 512 * _KIB, 2 * _MIB, 64),
    source="Arm Cortex-A76 Software Optimization Guide",
)
NEOVERSE_N1: Final = Microarchitecture(
    "Neoverse N1",
    fma_bits=128,
    load_bits=128,
    l2_bytes_per_cycle=16.0,
    l3_bytes_per_cycle=7.0,
    memory_bytes_per_cycle=5.0,
    memory_cores=8,
    gather_cycles=1.0,
    caches=Caches(64 * _KIB, 1 * _MIB, 16 * _MIB, 64),
    streams=12,
    lookahead=64,  # measured: its prefetchers go on to the next page, and asking for lines ahead only costs slots
    moves=NEOVERSE_N1_MOVES,
    source="Arm Neoverse N1 Software Optimization Guide",
)
NEOVERSE_V1: Final = Microarchitecture(
    "Neoverse V1",
    fma_ports=4,
    fma_bits=128,
    load_ports=3,
    load_bits=128,
    store_ports=2,
    l2_bytes_per_cycle=24.0,
    l3_bytes_per_cycle=9.0,
    memory_bytes_per_cycle=7.0,
    memory_cores=10,
    gather_cycles=1.0,
    caches=Caches(64 * _KIB, 1 * _MIB, 16 * _MIB, 64),
    source="Arm Neoverse V1 Software Optimization Guide",
)
NEOVERSE_V2: Final = Microarchitecture(
    "Neoverse V2",
    fma_ports=4,
    fma_bits=128,
    load_ports=3,
    load_bits=128,
    store_ports=2,
    l2_bytes_per_cycle=28.0,
    l3_bytes_per_cycle=10.0,
    memory_bytes_per_cycle=9.0,
    memory_cores=12,
    gather_cycles=1.0,
    caches=Caches(64 * _KIB, 2 * _MIB, 32 * _MIB, 64),
    source="Arm Neoverse V2 Software Optimization Guide",
)
NEOVERSE_N2: Final = Microarchitecture(
    "Neoverse N2",
    fma_bits=128,
    load_ports=3,
    load_bits=128,
    store_ports=2,
    l2_bytes_per_cycle=20.0,
    l3_bytes_per_cycle=8.0,
    memory_bytes_per_cycle=6.0,
    memory_cores=10,
    gather_cycles=1.0,
    caches=Caches(64 * _KIB, 1 * _MIB, 16 * _MIB, 64),
    source="Arm Neoverse N2 Software Optimization Guide",
)
APPLE_M: Final = Microarchitecture(
    "Apple, performance cores of the M series",
    fma_ports=4,
    fma_bits=128,
    load_ports=3,
    load_bits=128,
    store_ports=2,
    l2_bytes_per_cycle=36.0,
    l3_bytes_per_cycle=20.0,
    memory_bytes_per_cycle=18.0,
    memory_cores=3,
    gather_cycles=1.0,
    latency_bytes=2048,  # as many lines as others have under way, twice as long
    caches=Caches(128 * _KIB, 12 * _MIB, 0, 128),
    source="public reverse engineering of Firestorm",
)
# A chip that nobody has described: most of today's have two ports for FMA and two for loads.
UNKNOWN: Final = Microarchitecture("")

MICROARCHITECTURES: Final[dict[str, Microarchitecture]] = {
    **dict.fromkeys(("x86-64-v3", "haswell", "core-avx2", "broadwell"), HASWELL),
    "skylake": SKYLAKE,
    **dict.fromkeys(("alderlake", "raptorlake", "meteorlake", "arrowlake", "arrowlake-s"), GOLDEN_COVE_CLIENT),
    **dict.fromkeys(("x86-64-v4", "skylake-avx512", "skx", "cascadelake", "cooperlake"), SKYLAKE_X),
    **dict.fromkeys(("cannonlake", "icelake-client", "tigerlake", "rocketlake"), ICE_LAKE_CLIENT),
    "icelake-server": ICE_LAKE,
    **dict.fromkeys(("sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d"), SAPPHIRE_RAPIDS),
    "znver1": ZEN,
    "znver2": ZEN_2,
    "znver3": ZEN_3,
    "znver4": ZEN_4,
    "znver5": ZEN_5,
    **dict.fromkeys(("cortex-a57", "cortex-a72"), CORTEX_A72),
    **dict.fromkeys(("cortex-a76", "cortex-a77", "cortex-a78", "cortex-a78c"), CORTEX_A76),
    **dict.fromkeys(("neoverse-n1", "ampere1", "ampere1a", "ampere1b"), NEOVERSE_N1),
    **dict.fromkeys(("neoverse-n2", "neoverse-n3", "cobalt-100"), NEOVERSE_N2),
    **dict.fromkeys(("cortex-x1", "cortex-x1c", "neoverse-v1", "neoverse-512tvb"), NEOVERSE_V1),
    **dict.fromkeys(("neoverse-v2", "neoverse-v3", "grace"), NEOVERSE_V2),
    **dict.fromkeys(("apple-m1", "apple-m2", "apple-m3", "apple-m4", "apple-a14", "apple-a15", "apple-a16"), APPLE_M),
}
