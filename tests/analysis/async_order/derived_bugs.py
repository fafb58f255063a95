"""Changes of kernels that specialize_warps derived, each of which makes them wrong, and what the check says of them."""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.analysis.async_order.derived_kernels import GEMM, ROLES


class Bug(NamedTuple):
    """A change of a kernel: the text `old`, at its occurrence of that number, becomes `new`."""

    kernel: str
    old: str
    new: str
    error: str  # the class of what the check says
    message: str  # a part of that
    occurrence: int = 0
    is_emulated: bool = True  # whether the emulation shows it in one of three orders, too


def with_bug(bug: Bug) -> str:
    """The kernel with the change."""
    parts = (ROLES if bug.kernel == "roles" else GEMM).split(bug.old)
    assert len(parts) > bug.occurrence + 1, bug.old
    before, after = bug.old.join(parts[: bug.occurrence + 1]), bug.old.join(parts[bug.occurrence + 1 :])
    return before + bug.new + after


_FULL = "T.mbarrier_wait(T.address_of(barriers[i % 2]), i // 2 % 2)"
_EMPTY = "T.mbarrier_wait(T.address_of(barriers[i % 2 + 2]), 1 - i // 2 % 2)"
_LOADED = "T.mbarrier_arrive(T.address_of(barriers[i % 2]))"
_READ = "T.mbarrier_arrive(T.address_of(barriers[i % 2 + 2]))"
_SUM = "T.mbarrier_wait(T.address_of(barriers[i % 2 + 4]), i // 2 % 2)"
_NO_SUM = "T.mbarrier_wait(T.address_of(barriers[i % 2 + 6]), 1 - i // 2 % 2)"
_ADD = "if tx - 32 == 0:\n                M[i % 2, 0] = P[0] + P[1]"
_ADDED = "T.mbarrier_arrive(T.address_of(barriers[i % 2 + 4]))"
_NOTHING = "T.evaluate(0)"
_STORES = ROLES[ROLES.index("            for k in range(2):\n") :]
_COPY = ROLES[ROLES.index("T.bulk_copy_async(") : ROLES.index(f"\n            {_LOADED}")]
_TILE = "T.tensor_copy_async(T.address_of(BS[slot, 0, 0]), B_map, T.address_of(barriers[slot]), t * 32, k * 64)"
_WAIT_TILE = "T.mbarrier_wait(T.address_of(barriers[slot]), phase)"
_WAIT_FREE = "T.mbarrier_wait(T.address_of(barriers[slot + 3]), 1 - phase)"
_LAST_FREE = "T.mbarrier_arrive(T.address_of(barriers[T.if_then_else(turn[0] == 0, 2, turn[0] - 1) + 3]))"
_FREE = "T.mbarrier_arrive(T.address_of(barriers[T.if_then_else(slot == 0, 2, slot - 1) + 3]))"
_LATE = f"if k > 0:\n                    {_FREE}"
_ALL_DONE = "T.wgmma_wait(0, T.address_of(C[0]), 16)"
_STORED = "T.tensor_store_async(D_map, T.address_of(R[slot, 0, 0]), 0, t * 32 + half * 16)"

BUGS: Final = {
    "a reader does not wait": Bug(
        "roles",
        _FULL,
        _NOTHING,
        "NotOrdered",
        "S[0, 0]: threads 32 to 95 (role add) read it at i = 0, and warp 0 (role load) has a copy to it at i = 0",
    ),
    "a reader waits only for the sums": Bug(
        "roles",
        _SUM,
        _NOTHING,
        "NotOrdered",
        "M[0, 0]: threads 96 to 191 (role store) read it at i = 0, and threads 32 to 95 (role add) write it at i = 0",
    ),
    "the loading warp does not wait": Bug(
        "roles",
        _EMPTY,
        _NOTHING,
        "NotOrdered",
        "S[0, 0]: warp 0 (role load) has a copy to it at i = 2, and warp 0 (role load) has a copy to it at i = 0",
    ),
    "a writer of sums does not wait": Bug(
        "roles",
        _NO_SUM,
        _NOTHING,
        "PhaseMismatch",
        "mbarrier barriers[6]: threads 96 to 191 (role store) arrive at i = 2 in phase 1, and may be as "
        "early as in phase 0: nothing says before",
        is_emulated=False,
    ),
    "the other parity of a full wait": Bug(
        "roles",
        _FULL,
        _FULL.replace("i // 2 % 2", "1 - i // 2 % 2"),
        "NotOrdered",
        "S[0, 0]: threads 32 to 95 (role add) read it at i = 0, and warp 0 (role load) has a copy to it at i = 0",
    ),
    "the other parity of an empty wait": Bug(
        "roles",
        _EMPTY,
        _EMPTY.replace("1 - ", ""),
        "WaitsForever",
        "threads 0 to 31 (role load) wait at i = 0 for the phase of parity 0 of mbarrier barriers[2] for ever",
    ),
    "one parity for all rounds": Bug(
        "roles",
        _FULL,
        _FULL.replace("i // 2 % 2", "0"),
        "PhaseMismatch",
        "mbarrier barriers[0]: phase 1 may complete at i = 2 while threads 96 to 191 (role store) wait at i "
        "= 2 for phase 0: the parities do not",
        occurrence=1,
    ),
    "parities of iterations, not of rounds": Bug(
        "roles",
        _FULL,
        _FULL.replace("i // 2 % 2", "i % 2"),
        "WaitsForever",
        "threads 0 to 31 (role load) wait at i = 3 for the phase of parity 0 of mbarrier barriers[3] for ever",
    ),
    "a slot too few": Bug(
        "roles",
        "S[i % 2, 0])",
        "S[0, 0])",
        "NotOrdered",
        "S[0, 64]: warp 0 (role load) has a copy to it at i = 1, and warp 0 (role load) has a copy to it at i = 0",
    ),
    "readers of the slot before": Bug(
        "roles",
        "S[i % 2, tx - 32]",
        "S[(i + 1) % 2, tx - 32]",
        "NotOrdered",
        "S[1, 0]: threads 32 to 95 (role add) read it at i = 0, and warp 0 (role load) has a copy to it at i = 1",
    ),
    "a wait for the other slot's barrier": Bug(
        "roles",
        _FULL,
        _FULL.replace("i % 2]", "(i + 1) % 2]"),
        "PhaseMismatch",
        "mbarrier barriers[0]: phase 1 may complete at i = 2 while threads 96 to 191 (role store) wait at i "
        "= 1 for phase 0: the parities do not",
        occurrence=1,
    ),
    "a wait for another barrier": Bug(
        "roles",
        _FULL,
        _FULL.replace("i % 2]", "i % 2 + 6]"),
        "WaitsForever",
        "threads 0 to 31 (role load) wait at i = 2 for the phase of parity 0 of mbarrier barriers[2] for ever",
    ),
    "the copy is said to another barrier": Bug(
        "roles",
        "512, T.address_of(barriers[i % 2])",
        "512, T.address_of(barriers[i % 2 + 2])",
        "NotOrdered",
        "S[0, 0]: threads 32 to 95 (role add) read it at i = 0, and warp 0 (role load) has a copy to it at i = 0",
    ),
    "an arrival too many is counted": Bug(
        "roles",
        "barriers[slot + 2]), 160",
        "barriers[slot + 2]), 161",
        "WaitsForever",
        "threads 0 to 31 (role load) wait at i = 2 for the phase of parity 0 of mbarrier barriers[2] for ever",
    ),
    "an arrival too few is counted": Bug(
        "roles",
        "barriers[slot + 2]), 160",
        "barriers[slot + 2]), 159",
        "PhaseMismatch",
        "mbarrier barriers[2]: threads 96 to 191 (role store) arrive at i = 0, and with them phase 0 has "
        "more arrivals than the 159 that",
    ),
    "half of the arrivals are counted": Bug(
        "roles",
        "barriers[slot]), 32",
        "barriers[slot]), 16",
        "PhaseMismatch",
        "mbarrier barriers[0]: threads 0 to 31 (role load) arrive at i = 0, and with them phase 0 has more "
        "arrivals than the 16 that mbarrier_init",
    ),
    "an arrival before the last read": Bug(
        "roles",
        _STORES,
        f"            {_READ}\n" + _STORES.replace(f"            {_READ}\n", ""),
        "NotOrdered",
        "S[0, 0]: warp 0 (role load) has a copy to it at i = 2, and threads 96 to 191 (role store) read it at i = 0",
        is_emulated=False,
    ),
    "an arrival before the copy": Bug(
        "roles",
        f"{_COPY}\n            {_LOADED}",
        f"{_LOADED}\n            {_COPY}",
        "PhaseMismatch",
        "mbarrier barriers[0]: threads 0 to 31 (role load) copy at i = 0 in phase 1, and may be as early as "
        "in phase 0: nothing says before that",
    ),
    "nobody says that a slot is read": Bug(
        "roles",
        _READ,
        _NOTHING,
        "WaitsForever",
        "threads 0 to 31 (role load) wait at i = 2 for the phase of parity 0 of mbarrier barriers[2] for ever",
        occurrence=1,
    ),
    "nobody says that a slot is loaded": Bug(
        "roles",
        _LOADED,
        _NOTHING,
        "WaitsForever",
        "threads 0 to 31 (role load) wait at i = 2 for the phase of parity 0 of mbarrier barriers[2] for ever",
    ),
    "lane 5 arrives for all": Bug(
        "roles",
        f"{_COPY}\n            {_LOADED}",
        f"{_COPY}\n            for l in range(32):\n                if tx == 5:\n                    {_LOADED}",
        "PhaseMismatch",
        "mbarrier barriers[0]: phase 0 may complete at i = 0, l = 31 before lane 0 of warp 0 has said at i = "
        "0 how many bytes a copy brings",
    ),
    "a sum is told before it is written": Bug(
        "roles",
        f"{_ADD}\n            {_ADDED}",
        f"{_ADDED}\n            {_ADD}",
        "NotOrdered",
        "M[0, 0]: threads 96 to 191 (role store) read it at i = 0, and threads 32 to 95 (role add) write it at i = 0",
        is_emulated=False,
    ),
    "warps of a role do not meet before they read": Bug(
        "roles",
        "T.role_barrier(2, 64)",
        _NOTHING,
        "NotOrdered",
        "P[1]: threads 32 to 95 (role add) read it at i = 0, and threads 32 to 95 (role add) write it at i = 0",
        occurrence=1,
    ),
    "warps of a role do not meet before they write": Bug(
        "roles",
        "T.role_barrier(2, 64)",
        _NOTHING,
        "NotOrdered",
        "P[1]: threads 32 to 95 (role add) write it at i = 1, and threads 32 to 95 (role add) read it at i = 0",
    ),
    "a role barrier for a warp too many": Bug(
        "roles",
        "T.role_barrier(2, 64)",
        "T.role_barrier(2, 96)",
        "WaitsForever",
        "threads 0 to 31 (role load) wait at i = 2 for the phase of parity 0 of mbarrier barriers[2] for ever",
    ),
    "barriers are set up after the roles": Bug(
        "roles",
        '    T.tvm_storage_sync("shared")\n',
        "",
        "PhaseMismatch",
        "mbarrier barriers[2]: threads 0 to 31 (role load) use it at i = 0, and nothing orders that after an "
        "mbarrier_init",
    ),
    "a barrier is not set up": Bug(
        "roles",
        "            T.mbarrier_init(T.address_of(barriers[slot + 6]), 96)",
        "            T.evaluate(0)",
        "PhaseMismatch",
        "mbarrier barriers[6]: threads 32 to 95 (role add) use it at i = 0, and nothing orders that after an "
        "mbarrier_init",
    ),
    "a copy is too long": Bug(
        "roles",
        "512, T.address_of",
        "516, T.address_of",
        "NotOrdered",
        "S[1, 0]: warp 0 (role load) has a copy to it at i = 1, and warp 0 (role load) has a copy to it at i = 0",
    ),
    "one lane copies": Bug(
        "roles",
        _COPY,
        f"if tx == 0:\n                {_COPY}",
        "NotByWholeWarps",
        "1 of the 32 threads of warp 0 call bulk_copy_async alike at i = 0",
    ),
    "a role runs an iteration less": Bug(
        "roles",
        "for i in range(5)",
        "for i in range(4)",
        "PhaseMismatch",
        "mbarrier barriers[2]: the block ends with 64 of 160 arrivals of phase 2",
        occurrence=2,
    ),
    "two roles wait for each other": Bug(
        "roles",
        f"{_FULL}\n            s[0]",
        f"{_NO_SUM.replace('1 - ', '')}\n            {_FULL}\n            s[0]",
        "WaitsForever",
        "threads 0 to 31 (role load) wait at i = 2 for the phase of parity 0 of mbarrier barriers[2] for ever",
    ),
    "tensor cores do not wait for tiles": Bug(
        "gemm",
        _WAIT_TILE,
        _NOTHING,
        "NotOrdered",
        "AS[0, 0, 0]: warp 4 (role load) has a copy to it at t = 0, k = 0, and warpgroup 0 (role mma) "
        "multiplies it at t = 0, k = 0, s = 0",
    ),
    "tiles are overwritten": Bug(
        "gemm",
        _WAIT_FREE,
        _NOTHING,
        "NotOrdered",
        "AS[0, 0, 32]: warp 4 (role load) has a copy to it at t = 0, k = 3, and warp 4 (role load) has a "
        "copy to it at t = 0, k = 0",
    ),
    "a wait for a group too few": Bug(
        "gemm",
        "T.wgmma_wait(1)",
        "T.wgmma_wait(2)",
        "NotOrdered",
        "AS[0, 0, 32]: warp 4 (role load) has a copy to it at t = 0, k = 3, and warpgroup 0 (role mma) "
        "multiplies it at t = 0, k = 0, s = 2",
    ),
    "tiles are free a group too early": Bug(
        "gemm",
        _LATE,
        "T.mbarrier_arrive(T.address_of(barriers[slot + 3]))",
        "NotOrdered",
        "AS[0, 0, 32]: warp 4 (role load) has a copy to it at t = 0, k = 3, and warpgroup 0 (role mma) "
        "multiplies it at t = 0, k = 0, s = 2",
    ),
    "tiles are free before the wait": Bug(
        "gemm",
        f"T.wgmma_wait(1)\n                {_LATE}",
        f"{_LATE}\n                T.wgmma_wait(1)",
        "NotOrdered",
        "AS[0, 0, 32]: warp 4 (role load) has a copy to it at t = 0, k = 3, and warpgroup 0 (role mma) "
        "multiplies it at t = 0, k = 0, s = 2",
        is_emulated=False,
    ),
    "the last tile is never free": Bug(
        "gemm",
        _LAST_FREE,
        _NOTHING,
        "WaitsForever",
        "threads 0 to 127 (role mma) wait at t = 1, k = 2 for the phase of parity 0 of mbarrier barriers[2] for ever",
    ),
    "accumulators are read before the wait": Bug(
        "gemm",
        f"            {_ALL_DONE}\n",
        "",
        "AccumulatorsInUse",
        "C[0]: threads 0 to 127 (role mma) read it at t = 0, half = 0, before a wgmma_wait says that it is "
        "free: warpgroup 0 (role mma) adds up in",
    ),
    "a wait that leaves a group": Bug(
        "gemm",
        _ALL_DONE,
        _ALL_DONE.replace("(0", "(1"),
        "AccumulatorsInUse",
        "C[0]: threads 0 to 127 (role mma) read it at t = 0, half = 0, before a wgmma_wait says that it is "
        "free: warpgroup 0 (role mma) adds up in",
    ),
    "no fence of accumulators": Bug(
        "gemm",
        "                T.wgmma_fence()\n",
        "",
        "AccumulatorsInUse",
        "C: threads 0 to 127 (role mma) begin a wgmma at t = 0, k = 0, s = 0, and no wgmma_fence stands before it",
    ),
    "groups are not committed": Bug(
        "gemm",
        "                T.wgmma_commit()\n",
        "",
        "NotOrdered",
        "AS[0, 0, 32]: warp 4 (role load) has a copy to it at t = 0, k = 3, and warpgroup 0 (role mma) "
        "multiplies it at t = 0, k = 0, s = 2",
    ),
    "results without a fence": Bug(
        "gemm",
        "                T.fence_proxy_async()\n",
        "",
        "NoProxyFence",
        "no fence_proxy_async stands between two accesses of R[0, 0, 0]: threads 0 to 127 (role mma) write "
        "it at t = 0, half = 0, and then thread",
    ),
    "a fence behind the arrival": Bug(
        "gemm",
        "T.fence_proxy_async()\n                T.mbarrier_arrive(T.address_of(results[slot]))",
        "T.mbarrier_arrive(T.address_of(results[slot]))\n                T.fence_proxy_async()",
        "NoProxyFence",
        "no fence_proxy_async stands between two accesses of R[0, 0, 0]: threads 0 to 127 (role mma) write "
        "it at t = 0, half = 0, and then thread",
        is_emulated=False,
    ),
    "results are overwritten": Bug(
        "gemm",
        "T.mbarrier_wait(T.address_of(results[slot + 2]), 1 - phase)",
        _NOTHING,
        "NotOrdered",
        "R[0, 0, 0]: threads 0 to 127 (role mma) write it at t = 1, half = 0, and thread 160 (role store) "
        "has a store from it at t = 0, half = 0",
        is_emulated=False,
    ),
    "results are free before they are stored": Bug(
        "gemm",
        "                T.bulk_wait_group_read(0)\n",
        "                T.bulk_wait_group_read(1)\n",
        "NotOrdered",
        "R[0, 0, 0]: threads 0 to 127 (role mma) write it at t = 1, half = 0, and thread 160 (role store) "
        "has a store from it at t = 0, half = 0",
    ),
    "stores are in no group": Bug(
        "gemm",
        "                T.bulk_commit_group()\n",
        "",
        "NotOrdered",
        "R[0, 0, 0]: threads 0 to 127 (role mma) write it at t = 1, half = 0, and thread 160 (role store) "
        "has a store from it at t = 0, half = 0",
    ),
    "results are stored before they are there": Bug(
        "gemm",
        "T.mbarrier_wait(T.address_of(results[slot]), phase)",
        _NOTHING,
        "PhaseMismatch",
        "mbarrier results[2]: threads 160 to 191 (role store) arrive at t = 1, half = 0, and with them phase "
        "0 has more arrivals than the 32 that",
    ),
    "the other parity of results": Bug(
        "gemm",
        "T.mbarrier_wait(T.address_of(results[slot]), phase)",
        "T.mbarrier_wait(T.address_of(results[slot]), 1 - phase)",
        "WaitsForever",
        "threads 0 to 127 (role mma) wait at t = 0, half = 0 for the phase of parity 1 of mbarrier results[2] for ever",
    ),
    "slots that begin anew with each tile": Bug(
        "gemm",
        "        for t in range(2):\n            for j",
        "        for t in range(2):\n            turn[0] = 0\n            turn[1] = 1\n            for j",
        "NotOrdered",
        "AS[0, 0, 0]: warp 4 (role load) has a copy to it at t = 0, k = 0, and warpgroup 0 (role mma) "
        "multiplies it at t = 0, k = 0, s = 0",
    ),
    "a phase that does not turn": Bug(
        "gemm",
        "turn[1] = T.if_then_else(slot == 2, 1 - phase, phase)",
        "turn[1] = phase",
        "NotOrdered",
        "AS[0, 0, 32]: warp 4 (role load) has a copy to it at t = 0, k = 3, and warp 4 (role load) has a "
        "copy to it at t = 0, k = 0",
        occurrence=1,
    ),
    "slots of a ring of two": Bug(
        "gemm",
        "turn[0] = T.if_then_else(slot == 2, 0, slot + 1)",
        "turn[0] = T.if_then_else(slot == 1, 0, slot + 1)",
        "NotOrdered",
        "AS[0, 0, 32]: warp 4 (role load) has a copy to it at t = 0, k = 2, and warp 4 (role load) has a "
        "copy to it at t = 0, k = 0",
        occurrence=1,
    ),
    "one operand arrives elsewhere": Bug(
        "gemm",
        _TILE,
        _TILE.replace("barriers[slot]", "barriers[slot + 3]"),
        "NotOrdered",
        "BS[0, 0, 0]: warpgroup 0 (role mma) multiplies it at t = 0, k = 0, s = 0, and warp 4 (role load) "
        "has a copy to it at t = 0, k = 0",
        is_emulated=False,
    ),
    "both operands in one tile": Bug(
        "gemm",
        _TILE,
        _TILE.replace("BS[slot", "AS[slot"),
        "NotOrdered",
        "AS[0, 0, 32]: warp 4 (role load) has a copy to it at t = 0, k = 0, and warp 4 (role load) has a "
        "copy to it at t = 0, k = 0",
    ),
    "half of the warpgroup multiplies": Bug(
        "gemm",
        "                for s in T.unroll(4):\n                    T.wgmma",
        "                for s in T.unroll(4):\n                  if tx < 64:\n                    T.wgmma",
        "NotByWholeWarps",
        "64 of the 128 threads of warpgroup 0 call wgmma alike at t = 0, k = 0, s = 0",
    ),
}
