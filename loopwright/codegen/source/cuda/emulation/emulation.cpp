// Blocks one after the other; the threads of a block are fibers that run from barrier to barrier, in an order that the
// caller chooses: what a missing barrier lets happen, happens in one order or another. Shuffles and barriers of a warp
// hold that warp alone: it goes on to the next barrier of the block before another warp runs, or, in the random order,
// some of the time. Before a block begins, all bits of shared memory are set: a float is NaN until something writes it.
//
// An asynchronous copy sets all bits of its target when the first lane of its warp begins it, and reads its source when
// it is done: as late as possible (forwards), at once (backwards), or at some time (random). A thread that waits for an
// mbarrier looks whenever its turn comes, and may miss a phase, as on a GPU. The copies of a thread's groups are done by
// the same rule: when the thread waits for the group (forwards), at once, or at some time between. Warpgroups have a file
// of their own.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "warpgroups.h"
#include "tensor_map.h"

struct lw_dim3 {
    unsigned x, y, z;
};
lw_dim3 threadIdx, blockIdx, blockDim, gridDim;

extern "C" {
extern char __start_lw_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_lw_shared[] __attribute__((weak, visibility("hidden")));
}

namespace {

enum State { READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, AT_ROLE_BARRIER, AT_MBARRIER, AT_WARPGROUP, DONE };

struct Mbarrier {
    int line;  // of its init
    int arrivals, pending;  // of each phase, and those that this one waits for
    long long bytes;  // that this one waits for
    unsigned phases;  // that have completed
};

struct Copy {
    int line;
    unsigned char *target;
    const unsigned char *source;
    long long bytes;
    unsigned char *barrier;
    const lw_tensor_map *map;  // of the tensor that a box is copied of, in place of the source
    int at[5];

    bool operator==(const Copy &other) const {
        return line == other.line && target == other.target && source == other.source && bytes == other.bytes &&
            barrier == other.barrier && map == other.map && memcmp(at, other.at, sizeof at) == 0;
    }
};
// tensor_copies.cpp
void load_box(const Copy &copy);
void show_to_copies(const unsigned char *from, size_t bytes);
void show_all_to_copies();
unsigned char *in_view(const unsigned char *from);
bool finish_all_stores();
void finish_some_stores();

struct GroupCopy {
    int line;
    unsigned char *target;
    const unsigned char *source;
    unsigned bytes, group;
    bool is_done;
};

struct BoxStore {
    int line;
    const lw_tensor_map *map;
    int at[5];
    unsigned char *source;
    unsigned group;
    std::vector<unsigned char> bytes;
    bool is_read, is_done, is_awaited;
};

struct Fiber {
    ucontext_t start;
    jmp_buf resume;
    bool has_begun;
    State state;
    int line;  // of the barrier where it waits
    unsigned mask;  // of the lanes that it waits for
    unsigned char *barrier;  // whose phase it waits for
    int parity;  // of that phase
    int number, threads;  // of the barrier of some warps
    unsigned copies;  // that it has begun
    unsigned groups;  // that it has committed
    std::vector<GroupCopy> waited_for;  // copies of groups, in their order: it has not waited for them yet
    unsigned store_groups;  // of boxes, that it has committed
    std::vector<BoxStore> stores;
    lw_dim3 index;
};

const size_t LARGEST_STACK = size_t(1) << 26, OWN_STACK = size_t(1) << 16;
const size_t DYNAMIC_ALIGNMENT = 1024;  // the most that a kernel asks for
const char *const WHY[] = {
    "", "waits at the barrier of line", "waits for lanes of its warp in line", "waits at the role_barrier of line",
    "waits for the mbarrier in line", "waits for other warps of its warpgroup to begin the wgmma that it waits for in line"};
const unsigned long long TOKEN = 0x726569727261626dull;  // lies in every mbarrier: who overwrites it is found out

std::mutex one_at_a_time;
std::vector<Fiber> fibers;
std::vector<unsigned long long> lanes;
std::vector<unsigned char> dynamic_memory;
size_t dynamic_bytes = 0;
char *stacks = nullptr;
size_t stacks_bytes = 0;
unsigned current = 0;
jmp_buf scheduler, failed;
char message[1600];
void (*kernel_body)(void *);
void *kernel_arguments;
int order_kind = 0;  // 0 forwards, 1 backwards, 2 random
unsigned long long random_state = 1;

std::map<unsigned char *, Mbarrier> mbarriers;  // of this block
std::map<std::pair<unsigned, unsigned>, Copy> begun;  // by warp, and by how many it has begun before
std::vector<Copy> under_way;
bool has_stores = false;  // of boxes, in this block
bool watches_fences = false;  // something reads shared memory by the asynchronous proxy
std::map<unsigned char *, std::pair<unsigned, int>> group_targets;  // → bytes and line of a copy not waited for

unsigned random_below(unsigned n) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return unsigned((random_state >> 33) % n);
}

void put_in_order(std::vector<unsigned> &order) {
    unsigned count = unsigned(order.size());
    for (unsigned k = 0; k < count; ++k) order[k] = order_kind == 1 ? count - 1 - k : k;
    if (order_kind == 2)
        for (unsigned k = count; k > 1; --k) std::swap(order[k - 1], order[random_below(k)]);
}

void run_fiber() {
    kernel_body(kernel_arguments);
    fibers[current].state = DONE;
    longjmp(scheduler, 1);
}

void resume(unsigned which) {
    Fiber &fiber = fibers[which];
    current = which;
    threadIdx = fiber.index;
    if (setjmp(scheduler) == 0) {
        if (fiber.has_begun) longjmp(fiber.resume, 1);
        fiber.has_begun = true;
        setcontext(&fiber.start);
    }
}

void wait(State state, int line, unsigned mask = 0) {
    Fiber &fiber = fibers[current];
    fiber.state = state;
    fiber.line = line;
    fiber.mask = mask;
    if (setjmp(fiber.resume) == 0) longjmp(scheduler, 1);
}

unsigned warp_of(unsigned which) { return which / 32; }

// Lets the lanes that one lane waits for go on when all of them wait for each other in one line. Lanes that have ended,
// or that the block does not have, are not waited for.
bool release_warp(unsigned which) {
    size_t first = size_t(warp_of(which)) * 32, last = first + 32 < fibers.size() ? first + 32 : fibers.size();
    const unsigned mask = fibers[which].mask;
    const int line = fibers[which].line;
    for (size_t k = first; k < last; ++k) {
        const Fiber &fiber = fibers[k];
        if (!(mask >> (k - first) & 1) || fiber.state == DONE) continue;
        if (fiber.state != AT_WARP_BARRIER || fiber.line != line || fiber.mask != mask) return false;
    }
    for (size_t k = first; k < last; ++k)
        if (mask >> (k - first) & 1 && fibers[k].state == AT_WARP_BARRIER) fibers[k].state = READY;
    return true;
}

// A lane that ends may be the last one that others waited for.
void release_warp_of_ended(unsigned which) {
    size_t first = size_t(warp_of(which)) * 32, last = first + 32 < fibers.size() ? first + 32 : fibers.size();
    for (size_t k = first; k < last; ++k)
        if (fibers[k].state == AT_WARP_BARRIER) release_warp(unsigned(k));
}

void show(char *to, size_t room, const Fiber &fiber) {
    if (fiber.state == DONE)
        snprintf(to, room, "thread (%u, %u, %u) has ended", fiber.index.x, fiber.index.y, fiber.index.z);
    else
        snprintf(
            to, room, "thread (%u, %u, %u) %s %d", fiber.index.x, fiber.index.y, fiber.index.z, WHY[fiber.state], fiber.line);
}

[[noreturn]] void wrong(int line, const char *what) {
    snprintf(
        message, sizeof message, "thread (%u, %u, %u) of block (%u, %u, %u), in line %d: %s", threadIdx.x, threadIdx.y,
        threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z, line, what);
    longjmp(failed, 1);
}

[[noreturn]] void wrong_about(int line, const char *what, int other) {
    char text[200];
    snprintf(text, sizeof text, what, other);
    wrong(line, text);
}

unsigned char *dynamic_begin() {
    return (unsigned char *)((size_t(dynamic_memory.data()) + DYNAMIC_ALIGNMENT - 1) / DYNAMIC_ALIGNMENT * DYNAMIC_ALIGNMENT);
}

bool is_shared(const unsigned char *from, long long bytes) {
    const unsigned char *const first = (const unsigned char *)__start_lw_shared;
    const unsigned char *const last = (const unsigned char *)__stop_lw_shared;
    if (first != nullptr && from >= first && from + bytes <= last) return true;
    return from >= dynamic_begin() && from + bytes <= dynamic_begin() + dynamic_bytes;
}

unsigned long long token_of(const unsigned char *barrier) { return TOKEN ^ (unsigned long long)(size_t)barrier; }

Mbarrier &mbarrier_at(int line, void *given) {
    unsigned char *const where = (unsigned char *)given;
    const auto found = mbarriers.find(where);
    if (found == mbarriers.end()) wrong(line, "the mbarrier has not been initialised");
    unsigned long long word;
    memcpy(&word, where, 8);
    if (word != token_of(where))
        wrong_about(line, "something has overwritten the mbarrier of line %d", found->second.line);
    return found->second;
}

bool has_completed(const Mbarrier &barrier, int parity) { return int(barrier.phases % 2) != parity; }

void complete_phase(Mbarrier &barrier) {
    if (barrier.pending != 0 || barrier.bytes != 0) return;
    barrier.pending = barrier.arrivals;
    ++barrier.phases;
}

// No copy that somebody still has to wait for has a part of the target.
void check_target(int line, const unsigned char *target, long long bytes) {
    const char *const what = "the target of the copy is that of the copy of line %d, which is under way";
    for (const Copy &other : under_way)
        if (target < other.target + other.bytes && other.target < target + bytes) wrong_about(line, what, other.line);
    const auto after = group_targets.lower_bound(const_cast<unsigned char *>(target + bytes));
    if (after == group_targets.begin()) return;
    const auto before = std::prev(after);
    if (target < before->first + before->second.first) wrong_about(line, what, before->second.second);
}

// Nothing else has written to a target between the beginning of a copy and its end.
void check_untouched(int line, const unsigned char *target, long long bytes) {
    for (long long k = 0; k < bytes; ++k) {
        if (target[k] == 0xff) continue;
        snprintf(
            message, sizeof message,
            "block (%u, %u, %u): something writes to the target of the copy of line %d while it is under way", blockIdx.x,
            blockIdx.y, blockIdx.z, line);
        longjmp(failed, 1);
    }
}

void finish_group_copy(GroupCopy &copy) {
    if (copy.is_done) return;
    check_untouched(copy.line, copy.target, copy.bytes);
    memcpy(copy.target, copy.source, copy.bytes);
    copy.is_done = true;
}

void finish_some_group_copies() {
    while (random_below(3)) {
        std::vector<GroupCopy> &some = fibers[random_below(unsigned(fibers.size()))].waited_for;
        if (!some.empty()) finish_group_copy(some[random_below(unsigned(some.size()))]);
    }
}

// The first lane of a warp calls for a copy: from now on the target is no longer what it was.
void begin(const Copy &copy) {
    mbarrier_at(copy.line, copy.barrier);
    if (copy.bytes <= 0) return;
    if (!is_shared(copy.target, copy.bytes)) wrong(copy.line, "the target of the copy is not all in shared memory");
    if (is_shared(copy.source, 1)) wrong(copy.line, "the source of the copy lies in shared memory");
    check_target(copy.line, copy.target, copy.bytes);
    memset(copy.target, 0xff, size_t(copy.bytes));
}

// The bytes arrive, and the phase knows.
void finish(size_t which) {
    const Copy copy = under_way[which];
    under_way.erase(under_way.begin() + long(which));
    check_untouched(copy.line, copy.target, copy.bytes);
    if (copy.map == nullptr)
        memcpy(copy.target, copy.source, size_t(copy.bytes));
    else
        load_box(copy);
    show_to_copies(copy.target, size_t(copy.bytes));
    Mbarrier &barrier = mbarrier_at(copy.line, copy.barrier);
    barrier.bytes -= copy.bytes;
    complete_phase(barrier);
}

// All lanes of a warp call for a copy; what is in shared memory is no longer there when the first one has.
void together(const Copy &copy, const char *name) {
    char text[120];
    for (unsigned lane = 0; lane < 32; ++lane) {
        const size_t which = size_t(warp_of(current)) * 32 + lane;
        if (which < fibers.size() && fibers[which].state != DONE) continue;
        snprintf(text, sizeof text, "all 32 lanes of a warp call %s, and some are not there", name);
        wrong(copy.line, text);
    }
    const std::pair<unsigned, unsigned> key(warp_of(current), fibers[current].copies++);
    const auto found = begun.find(key);
    if (found == begun.end()) {
        begin(copy);
        begun[key] = copy;
    } else if (!(found->second == copy)) {
        snprintf(text, sizeof text, "the lanes of a warp call %s with different arguments", name);
        wrong(copy.line, text);
    }
    wait(AT_WARP_BARRIER, copy.line, ~0u);
    if (current % 32 == 0) begun.erase(key);
}

// Lane 0 announces the bytes: what other lanes do may come before.
void launch_copy(const Copy &copy) {
    mbarrier_at(copy.line, copy.barrier).bytes += copy.bytes;
    under_way.push_back(copy);
    if (order_kind == 1) finish(under_way.size() - 1);
}
}  // namespace

#include "warpgroups.cpp"

namespace {

// Lets the threads of whole warps go on when as many wait at the barrier as it counts.
void release_role(unsigned which) {
    const int number = fibers[which].number, threads = fibers[which].threads, line = fibers[which].line;
    int count = 0;
    for (const Fiber &fiber : fibers) count += fiber.state == AT_ROLE_BARRIER && fiber.number == number;
    if (count < threads) return;
    for (size_t first = 0; first < fibers.size(); first += 32) {
        unsigned lanes_there = 0;
        for (size_t k = first; k < first + 32 && k < fibers.size(); ++k)
            lanes_there += fibers[k].state == AT_ROLE_BARRIER && fibers[k].number == number;
        if (lanes_there != 0 && lanes_there != 32) wrong(line, "role_barrier is reached by a part of a warp");
    }
    for (Fiber &fiber : fibers)
        if (fiber.state == AT_ROLE_BARRIER && fiber.number == number) fiber.state = READY;
}

// No thread can go on, and no copy is under way. Says of one thread for each way to wait what it waits for, where some
// wait for mbarriers or for barriers of some warps, which nobody will let go on.
bool waits_for_ever() {
    const Fiber *waiting[DONE] = {};
    for (const Fiber &fiber : fibers)
        if (fiber.state != DONE && waiting[fiber.state] == nullptr) waiting[fiber.state] = &fiber;
    if (waiting[AT_MBARRIER] == nullptr && waiting[AT_ROLE_BARRIER] == nullptr && waiting[AT_WARPGROUP] == nullptr)
        return false;
    size_t end = size_t(snprintf(message, sizeof message, "block (%u, %u, %u)", blockIdx.x, blockIdx.y, blockIdx.z));
    const char *separator = ": ";
    for (const Fiber *fiber : waiting) {
        if (fiber == nullptr) continue;
        char one[400];
        const lw_dim3 at = fiber->index;
        if (fiber->state == AT_MBARRIER) {
            const Mbarrier &barrier = mbarriers[fiber->barrier];
            snprintf(
                one, sizeof one,
                "thread (%u, %u, %u) waits in line %d for a phase of the mbarrier of line %d that never completes: phase %u "
                "is under way, and lacks %d of %d arrivals and %lld bytes; the parity waited for is %d",
                at.x, at.y, at.z, fiber->line, barrier.line, barrier.phases, barrier.pending, barrier.arrivals,
                barrier.bytes, fiber->parity);
        } else if (fiber->state == AT_ROLE_BARRIER) {
            int count = 0;
            for (const Fiber &other : fibers) count += other.state == AT_ROLE_BARRIER && other.number == fiber->number;
            snprintf(
                one, sizeof one, "thread (%u, %u, %u) waits in line %d for role_barrier %d, where %d of %d threads wait",
                at.x, at.y, at.z, fiber->line, fiber->number, count, fiber->threads);
        } else {
            show(one, sizeof one, *fiber);
        }
        end += size_t(snprintf(message + end, sizeof message - end, "%s%s", separator, one));
        separator = "; ";
    }
    return true;
}

// What a block may not leave behind.
bool ends_well() {
    if (!finish_all_stores()) return false;
    if (!under_way.empty()) {
        snprintf(
            message, sizeof message, "block (%u, %u, %u) ends while the copy of line %d is under way", blockIdx.x,
            blockIdx.y, blockIdx.z, under_way[0].line);
        return false;
    }
    for (const Fiber &fiber : fibers) {
        if (fiber.waited_for.empty()) continue;
        snprintf(
            message, sizeof message, "block (%u, %u, %u): thread (%u, %u, %u) ends without waiting for its copy of line %d",
            blockIdx.x, blockIdx.y, blockIdx.z, fiber.index.x, fiber.index.y, fiber.index.z, fiber.waited_for[0].line);
        return false;
    }
    for (unsigned k = 0; k < fibers.size(); ++k) {
        const char *const what = unfinished(k);
        if (what == nullptr) continue;
        const lw_dim3 at = fibers[k].index;
        snprintf(
            message, sizeof message, "block (%u, %u, %u): thread (%u, %u, %u) %s of line %d", blockIdx.x, blockIdx.y,
            blockIdx.z, at.x, at.y, at.z, what, warpgroup_threads[k].line);
        return false;
    }
    for (const auto &item : mbarriers) {
        const Mbarrier &barrier = item.second;
        if (barrier.pending == barrier.arrivals) continue;
        snprintf(
            message, sizeof message, "block (%u, %u, %u) ends with %d of %d arrivals of a phase of the mbarrier of line %d",
            blockIdx.x, blockIdx.y, blockIdx.z, barrier.arrivals - barrier.pending, barrier.arrivals, barrier.line);
        return false;
    }
    return true;
}

// No thread can go on. Lets all pass a barrier that all have reached; says what is wrong where they have not.
bool release_block() {
    for (const Fiber &fiber : fibers) {
        if (fiber.state == fibers[0].state && fiber.line == fibers[0].line && fiber.state == AT_BLOCK_BARRIER) continue;
        char one[120], other[120];
        show(one, sizeof one, fibers[0]);
        show(other, sizeof other, fiber);
        const bool is_in_warp = fibers[0].state == AT_WARP_BARRIER || fiber.state == AT_WARP_BARRIER;
        if (fiber.state == fibers[0].state && fiber.line == fibers[0].line && fiber.mask == fibers[0].mask) continue;
        snprintf(
            message, sizeof message, "block (%u, %u, %u): not all threads reach a %s: %s, %s", blockIdx.x, blockIdx.y,
            blockIdx.z, is_in_warp ? "shuffle" : "barrier", one, other);
        return false;
    }
    if (fibers[0].state != AT_BLOCK_BARRIER) {
        snprintf(message, sizeof message, "line %d: threads wait for lanes that never come", fibers[0].line);
        return false;
    }
    for (Fiber &fiber : fibers) fiber.state = READY;
    return true;
}

// Runs the threads of a part of the block that can go on, each to its next barrier; whether there were any.
bool run_ready(std::vector<unsigned> &order, unsigned first) {
    put_in_order(order);
    bool has_run = false;
    for (unsigned number : order) {
        const unsigned which = first + number;
        while (order_kind == 2 && !under_way.empty() && random_below(8) == 0)
            finish(random_below(unsigned(under_way.size())));
        if (fibers[which].state == AT_MBARRIER) {
            const Mbarrier &barrier = mbarriers[fibers[which].barrier];
            if (has_completed(barrier, fibers[which].parity)) fibers[which].state = READY;
        }
        if (fibers[which].state == AT_WARPGROUP && have_all_begun(which)) fibers[which].state = READY;
        if (fibers[which].state != READY) continue;
        if (order_kind == 2) compute_some();
        if (order_kind == 2 && !group_targets.empty()) finish_some_group_copies();
        if (order_kind == 2 && has_stores) finish_some_stores();
        has_run = true;
        resume(which);
        if (fibers[which].state == AT_ROLE_BARRIER) release_role(which);
        if (fibers[which].state == AT_WARP_BARRIER) release_warp(which);
        if (fibers[which].state == DONE) release_warp_of_ended(which);
    }
    return has_run;
}

bool run_block(size_t stack_bytes, std::vector<unsigned> &order) {
    for (unsigned k = 0; k < fibers.size(); ++k) {
        Fiber &fiber = fibers[k];
        fiber.has_begun = false;
        fiber.state = READY;
        fiber.line = 0;
        fiber.mask = 0;
        fiber.copies = 0;
        fiber.groups = 0;
        fiber.waited_for.clear();
        fiber.store_groups = 0;
        fiber.stores.clear();
        getcontext(&fiber.start);
        fiber.start.uc_stack.ss_sp = stacks + k * stack_bytes;
        fiber.start.uc_stack.ss_size = stack_bytes;
        fiber.start.uc_link = nullptr;
        makecontext(&fiber.start, run_fiber, 0);
    }
    mbarriers.clear();
    begun.clear();
    under_way.clear();
    group_targets.clear();
    begin_warpgroups();
    has_stores = false;
    std::vector<unsigned> warps((fibers.size() + 31) / 32), own;
    for (;;) {
        bool has_run = false, is_done = true;
        if (order_kind == 2 && random_below(2)) {
            has_run = run_ready(order, 0);
        } else {
            put_in_order(warps);
            for (unsigned warp : warps) {
                own.resize(fibers.size() - size_t(warp) * 32 < 32 ? fibers.size() - size_t(warp) * 32 : 32);
                while (run_ready(own, warp * 32)) {
                    has_run = true;
                    if (order_kind == 2 && random_below(2)) break;
                }
            }
        }
        for (const Fiber &fiber : fibers) is_done = is_done && fiber.state == DONE;
        if (is_done) return ends_well();
        if (has_run) continue;
        if (!under_way.empty())
            finish(order_kind == 2 ? random_below(unsigned(under_way.size())) : under_way.size() - 1);
        else if (waits_for_ever() || !release_block())
            return false;
    }
}

void run_without_barriers(std::vector<unsigned> &order) {
    put_in_order(order);
    for (unsigned which : order) {
        current = which;
        threadIdx = fibers[which].index;
        kernel_body(kernel_arguments);
    }
}

int fail() {
    if (message[0] == 0) snprintf(message, sizeof message, "the kernel failed");
    return 1;
}

bool has_stacks(size_t bytes) {
    if (bytes <= stacks_bytes) return true;
    if (stacks != nullptr) munmap(stacks, stacks_bytes);
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    stacks = memory == MAP_FAILED ? nullptr : static_cast<char *>(memory);
    stacks_bytes = stacks == nullptr ? 0 : bytes;
    return stacks != nullptr;
}

}  // namespace

#include "tensor_copies.cpp"

extern "C" {

void lw_block_barrier(int line) { wait(AT_BLOCK_BARRIER, line); }

void lw_warp_barrier(int line, unsigned mask) {
    if (!(mask >> current % 32 & 1)) {
        snprintf(
            message, sizeof message, "thread (%u, %u, %u) of block (%u, %u, %u): the mask in line %d lacks its own lane",
            threadIdx.x, threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z, line);
        longjmp(failed, 1);
    }
    wait(AT_WARP_BARRIER, line, mask);
}

void *lw_lane(unsigned lane) { return &lanes[size_t(warp_of(current)) * 32 + lane]; }
unsigned lw_own_lane(void) { return current % 32; }
int lw_is_running(unsigned lane) {
    size_t which = size_t(warp_of(current)) * 32 + lane;
    return which < fibers.size() && fibers[which].state != DONE;
}
unsigned lw_running_lanes(void) {
    unsigned result = 0;
    for (unsigned lane = 0; lane < 32; ++lane) result |= unsigned(lw_is_running(lane)) << lane;
    return result;
}
unsigned char *lw_dynamic_shared(void) { return dynamic_begin(); }
int lw_is_shared(const void *from, long long bytes) { return is_shared((const unsigned char *)from, bytes); }

void lw_trap(int line) {
    snprintf(
        message, sizeof message, "thread (%u, %u, %u) of block (%u, %u, %u): what line %d of the kernel checks does not hold",
        threadIdx.x, threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z, line);
    longjmp(failed, 1);
}

void lw_wrong_status(int line, const char *what) {
    snprintf(
        message, sizeof message, "thread (%u, %u, %u) of block (%u, %u, %u) %s, in line %d", threadIdx.x, threadIdx.y,
        threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z, what, line);
    longjmp(failed, 1);
}

void lw_mbarrier_init(int line, void *barrier, int arrivals) {
    unsigned char *const where = (unsigned char *)barrier;
    if (!is_shared(where, 8)) wrong(line, "the mbarrier does not lie in shared memory");
    if ((size_t)where % 8 != 0) wrong(line, "the address of the mbarrier is no multiple of 8");
    if (arrivals < 1) wrong(line, "an mbarrier counts at least one arrival");
    const auto found = mbarriers.find(where);
    if (found != mbarriers.end())
        wrong_about(line, "the mbarrier has been initialised already, in line %d", found->second.line);
    mbarriers[where] = Mbarrier{line, arrivals, arrivals, 0, 0};
    const unsigned long long word = token_of(where);
    memcpy(where, &word, 8);
}

void lw_mbarrier_arrive(int line, void *barrier) {
    Mbarrier &mine = mbarrier_at(line, barrier);
    if (mine.pending == 0) wrong_about(line, "more arrivals than the mbarrier of line %d counts", mine.line);
    --mine.pending;
    complete_phase(mine);
}

void lw_mbarrier_wait(int line, void *barrier, int parity) {
    const Mbarrier &mine = mbarrier_at(line, barrier);
    if (parity != 0 && parity != 1) wrong(line, "the parity of a phase is 0 or 1");
    if (has_completed(mine, parity)) return;
    fibers[current].barrier = (unsigned char *)barrier;
    fibers[current].parity = parity;
    wait(AT_MBARRIER, line);
}

void lw_bulk_copy_async(int line, void *target, const void *source, long long bytes, void *barrier) {
    const Copy copy = {line, (unsigned char *)target, (const unsigned char *)source, bytes, (unsigned char *)barrier};
    together(copy, "bulk_copy_async");
    if (current % 32 == 0 && bytes > 0) launch_copy(copy);
}

void lw_cp_async(int line, void *given, const void *source, unsigned bytes, unsigned alignment) {
    unsigned char *const target = (unsigned char *)given;
    Fiber &mine = fibers[current];
    if (!is_shared(target, bytes)) wrong(line, "the target of the copy is not all in shared memory");
    if (is_shared((const unsigned char *)source, 1)) wrong(line, "the source of the copy lies in shared memory");
    if ((size_t)target % alignment != 0) wrong_about(line, "the target of the copy is no multiple of %d bytes", int(alignment));
    if ((size_t)source % alignment != 0) wrong_about(line, "the source of the copy is no multiple of %d bytes", int(alignment));
    check_target(line, target, bytes);
    memset(target, 0xff, bytes);
    group_targets[target] = std::make_pair(bytes, line);
    mine.waited_for.push_back(GroupCopy{line, target, (const unsigned char *)source, bytes, mine.groups, false});
    if (order_kind == 1) finish_group_copy(mine.waited_for.back());
}

void lw_commit_group(void) { ++fibers[current].groups; }

void lw_wait_group_but(int count) {
    Fiber &mine = fibers[current];
    size_t done = 0;
    while (done < mine.waited_for.size() && mine.waited_for[done].group + unsigned(count) < mine.groups) {
        finish_group_copy(mine.waited_for[done]);
        group_targets.erase(mine.waited_for[done].target);
        ++done;
    }
    mine.waited_for.erase(mine.waited_for.begin(), mine.waited_for.begin() + long(done));
}

void lw_role_barrier(int line, int number, int threads) {
    if (number < 1 || number > 15) wrong(line, "role_barrier has the numbers 1 to 15");
    if (threads <= 0 || threads % 32 != 0) wrong(line, "role_barrier waits for a multiple of 32 threads");
    for (const Fiber &fiber : fibers) {
        if (fiber.state != AT_ROLE_BARRIER || fiber.number != number) continue;
        if (fiber.threads != threads)
            wrong_about(line, "role_barrier waits for another number of threads than in line %d", fiber.line);
        if (fiber.line != line)
            wrong_about(line, "threads wait at the role_barrier of the same number in line %d", fiber.line);
    }
    fibers[current].number = number;
    fibers[current].threads = threads;
    wait(AT_ROLE_BARRIER, line);
}

const char *lw_emulation_message(void) { return message; }

void lw_emulation_order(int kind, unsigned long long seed) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    order_kind = kind;
    random_state = seed * 2 + 1;
}

// Extents: blocks along x, y, z, then threads along x, y, z.
int lw_emulate(
    const char *kernel, void (*body)(void *), void *arguments, const long long *extents, unsigned long long wanted_bytes,
    unsigned long long stack_bytes, int has_barriers, int uses_proxy) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    message[0] = 0;
    for (int k = 0; k < 6; ++k)
        if (extents[k] <= 0) return 0;  // nothing to run
    const long long most[3] = {2147483647, 65535, 65535};
    for (int k = 0; k < 3; ++k) {
        if (extents[k] > most[k]) {
            snprintf(
                message, sizeof message, "%s is launched with %lld blocks along %c, and a GPU has at most %lld", kernel,
                extents[k], "xyz"[k], most[k]);
            return 1;
        }
    }
    gridDim = lw_dim3{unsigned(extents[0]), unsigned(extents[1]), unsigned(extents[2])};
    blockDim = lw_dim3{unsigned(extents[3]), unsigned(extents[4]), unsigned(extents[5])};
    size_t threads = size_t(blockDim.x) * blockDim.y * blockDim.z;
    size_t stack = (size_t(stack_bytes) + OWN_STACK + 4095) / 4096 * 4096;
    fibers.resize(threads);
    lanes.assign((threads + 31) / 32 * 32, ~0ull);
    dynamic_bytes = size_t(wanted_bytes);
    dynamic_memory.resize(dynamic_bytes == 0 ? 0 : dynamic_bytes + DYNAMIC_ALIGNMENT);
    if (has_barriers && (stack > LARGEST_STACK || !has_stacks(stack * threads))) {
        snprintf(message, sizeof message, "%s: there is no memory for the stacks of %zu threads", kernel, threads);
        return 1;
    }
    for (size_t k = 0; k < threads; ++k)
        fibers[k].index = lw_dim3{
            unsigned(k % blockDim.x), unsigned(k / blockDim.x % blockDim.y), unsigned(k / blockDim.x / blockDim.y)};
    kernel_body = body;
    kernel_arguments = arguments;
    std::vector<unsigned> order(threads);
    watches_fences = uses_proxy != 0;
    if (setjmp(failed) != 0) return fail();
    unsigned long long blocks = (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    for (unsigned long long k = 0; k < blocks; ++k) {
        unsigned long long block = order_kind == 0 ? k : blocks - 1 - k;
        blockIdx = lw_dim3{
            unsigned(block % gridDim.x), unsigned(block / gridDim.x % gridDim.y), unsigned(block / gridDim.x / gridDim.y)};
        if (__start_lw_shared != nullptr) memset(__start_lw_shared, 0xff, size_t(__stop_lw_shared - __start_lw_shared));
        if (!dynamic_memory.empty()) memset(dynamic_memory.data(), 0xff, dynamic_memory.size());
        if (watches_fences) show_all_to_copies();
        if (!has_barriers)
            run_without_barriers(order);
        else if (!run_block(stack, order))
            return fail();
    }
    return 0;
}

}  // extern "C"
