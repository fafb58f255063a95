// Warpgroups: a part of emulation.cpp, whose fibers it knows.
//
// A wgmma is the work of four warps, each of which computes 16 rows of D. Threads of a warp meet at each call; warps do
// not wait for each other, as nothing promises that they do. So a warp's rows are computed as soon as the warp has made
// the call (backwards), when a thread waits for the group (forwards), or at some time between; that is when the tiles are
// read (as `tensor_copies.cpp` says: threads that fill them make a fence). A wait is for the whole warpgroup: when it is over, all rows of what it waits for are there. Accumulators under
// way have all bits set from the call to the wait; what they hold in truth is kept here.

namespace {

struct Multiply {
    int line;
    lw_wgmma_form form;
    lw_matrix_descriptor a, b;
    bool adds;
    unsigned char *accumulators[128];
    const unsigned char *registers[128];  // of A, where it is not in shared memory
    unsigned lanes[4];  // of each warp, that have made the call
};

struct Accumulators {
    unsigned char *where;
    unsigned bytes, until;  // the wgmma that were begun when the last one that changes them was
    int line;
    std::vector<unsigned char> values;
};

struct WarpgroupThread {
    unsigned begun, groups, waited;  // wgmma, groups that were committed, wgmma that were waited for
    unsigned others;  // other calls of the whole warpgroup
    unsigned until;  // how many wgmma all warps have to have begun before it goes on
    int line;  // of the last wgmma
    bool has_fence;
    std::vector<Accumulators> under_way;
};

struct Meeting {
    int line, count;
};

struct Warpgroup {
    std::deque<Multiply> multiplies;  // all that some warp has not computed
    unsigned first;  // how many came before them
    unsigned begun[4], computed[4];  // by each warp
    std::vector<unsigned> groups;  // how many wgmma had been begun when each was committed
    std::vector<Meeting> others;
    int registers;  // of each thread, as set_max_registers says
};

const int ALL_REGISTERS = 65536;  // of a multiprocessor

std::vector<WarpgroupThread> warpgroup_threads;
std::vector<Warpgroup> warpgroups;

void begin_warpgroups() {
    warpgroup_threads.assign(fibers.size(), WarpgroupThread());
    warpgroups.assign((fibers.size() + 127) / 128, Warpgroup());
}

unsigned bytes_of(lw_operand_type type) { return type == lw_tf32 ? 4 : type == lw_f16 || type == lw_bf16 ? 2 : 1; }

// Where element (x, k) of an operand lies: x counts rows of A or columns of B.
const unsigned char *element_at(const lw_matrix_descriptor &matrix, bool is_transposed, unsigned x, unsigned k, unsigned bytes) {
    size_t at = (size_t)matrix.start;
    const unsigned swizzle = matrix.swizzle, along = k * bytes;
    if (is_transposed)
        at += size_t(x / 64) * matrix.leading + x % 64 * 2 + size_t(k / 8) * matrix.stride + k % 8 * 128;
    else if (swizzle != 0)
        at += size_t(x / 8) * matrix.stride + x % 8 * swizzle + along;
    else
        at += size_t(x / 8) * matrix.stride + x % 8 * 16 + size_t(along / 16) * matrix.leading + along % 16;
    const size_t bits = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;
    return (const unsigned char *)(at ^ (at >> 7 & bits) << 4);
}

// A float with so many bits of exponent and fraction; `has_infinity`: else the last exponent is that of numbers, too.
float small_float(unsigned bits, int exponent_bits, int fraction_bits, bool has_infinity) {
    const int exponent = int(bits >> fraction_bits) & ((1 << exponent_bits) - 1), bias = (1 << (exponent_bits - 1)) - 1;
    const int fraction = int(bits) & ((1 << fraction_bits) - 1), last = (1 << exponent_bits) - 1;
    float value = __builtin_nanf("");
    if (exponent == last && has_infinity)
        value = fraction ? value : __builtin_inff();
    else if (exponent != last || fraction != (1 << fraction_bits) - 1)
        value = __builtin_ldexpf(float(exponent ? fraction + (1 << fraction_bits) : fraction), (exponent ? exponent : 1) - bias - fraction_bits);
    return bits >> (exponent_bits + fraction_bits) & 1 ? -value : value;
}

double number(const unsigned char *from, lw_operand_type type) {
    unsigned bits = 0;
    memcpy(&bits, from, bytes_of(type));
    if (type == lw_f16) return small_float(bits, 5, 10, true);
    if (type == lw_e4m3) return small_float(bits, 4, 3, false);
    if (type == lw_e5m2) return small_float(bits, 5, 2, true);
    if (type == lw_s8) return (signed char)bits;
    if (type == lw_u8) return bits;
    const unsigned word = type == lw_bf16 ? bits << 16 : bits & ~0x1fffu;  // tf32 has the first 19 bits of a float
    float value;
    memcpy(&value, &word, 4);
    return value;
}

// What the accumulators of a thread hold: behind those that are under way, here; else in its memory.
unsigned char *values_of(unsigned which, unsigned char *where) {
    for (Accumulators &one : warpgroup_threads[which].under_way)
        if (one.where == where) return one.values.data();
    return where;
}

// Computes the 16 rows of D that a warp has, of the next wgmma that it has begun.
void compute(unsigned number_of_group, unsigned warp) {
    Warpgroup &group = warpgroups[number_of_group];
    const Multiply &one = group.multiplies[group.computed[warp] - group.first];
    const unsigned bytes = bytes_of(one.form.a), steps = 32 / bytes, n = unsigned(one.form.n);
    double a[16][32];
    std::vector<double> b(size_t(n) * steps);
    for (unsigned x = 0; x < 16; ++x) {
        for (unsigned k = 0; k < steps; ++k) {
            const unsigned at = k * bytes, lane = warp * 32 + x % 8 * 4 + at % 16 / 4;
            const unsigned char *const from = one.registers[lane] != nullptr
                ? one.registers[lane] + (at / 16 * 2 + x / 8) * 4 + at % 4
                : element_at(one.a, one.form.a_is_transposed, warp * 16 + x, k, bytes);
            a[x][k] = number(one.registers[lane] != nullptr ? from : in_view(from), one.form.a);
        }
    }
    for (unsigned x = 0; x < n; ++x)
        for (unsigned k = 0; k < steps; ++k)
            b[x * steps + k] = number(in_view(element_at(one.b, one.form.b_is_transposed, x, k, bytes)), one.form.b);
    for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned within = warp * 32 + lane;
        unsigned char *const values = values_of(number_of_group * 128 + within, one.accumulators[within]);
        for (unsigned element = 0; element < n / 2; ++element) {
            const unsigned row = element / 2 % 2 * 8 + lane / 4, column = element / 4 * 8 + lane % 4 * 2 + element % 2;
            double sum = 0;
            for (unsigned k = 0; k < steps; ++k) sum += a[row][k] * b[column * steps + k];
            if (one.form.a >= lw_s8) {
                unsigned total = unsigned((long long)sum), before;
                memcpy(&before, values + element * 4, 4);
                total += one.adds ? before : 0;
                memcpy(values + element * 4, &total, 4);
            } else {
                float before;
                memcpy(&before, values + element * 4, 4);
                const float total = float((one.adds ? before : 0) + sum);
                memcpy(values + element * 4, &total, 4);
            }
        }
    }
    ++group.computed[warp];
    unsigned by_all = group.computed[0];
    for (unsigned computed : group.computed) by_all = computed < by_all ? computed : by_all;
    for (; group.first < by_all; ++group.first) group.multiplies.pop_front();
}

// Called whenever a thread goes on, in the random order: often enough that some come early, and not all.
void compute_some() {
    for (unsigned k = 0; k < warpgroups.size(); ++k) {
        const unsigned warp = random_below(4);
        if (warpgroups[k].computed[warp] < warpgroups[k].begun[warp] && random_below(16) == 0) compute(k, warp);
    }
}

// All lanes of a warp, and all warps of the warpgroup, are there.
void check_whole(int line, const char *what) {
    char text[200];
    if ((current / 128 + 1) * 128 > fibers.size()) {
        snprintf(text, sizeof text, "%s is a call of a warpgroup, 128 threads, of which the block has a part", what);
        wrong(line, text);
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
        if (fibers[warp_of(current) * 32 + lane].state != DONE) continue;
        snprintf(text, sizeof text, "all 32 lanes of a warp call %s, and some have ended", what);
        wrong(line, text);
    }
}

void check_matrix(int line, const char *what, const lw_matrix_descriptor &matrix, bool is_transposed, unsigned rows, unsigned bytes) {
    const unsigned pattern = matrix.swizzle == 0 ? 16 : 8 * matrix.swizzle;
    const unsigned rest = unsigned((size_t)matrix.start % pattern);
    char text[200];
    // A row may begin later in its first line, as the second 32 bytes along K do.
    const bool is_aligned = rest % 16 == 0 && (rest == 0 || (!is_transposed && rest + 32 <= matrix.swizzle));
    if (!is_aligned) {
        snprintf(text, sizeof text, "%s of wgmma begins %u bytes after a multiple of %u", what, rest, pattern);
        wrong(line, text);
    }
    for (unsigned x = 0; x < rows; ++x) {
        for (unsigned k = 0; k < 32 / bytes; ++k) {
            if (is_shared(element_at(matrix, is_transposed, x, k, bytes), bytes)) continue;
            snprintf(text, sizeof text, "%s of wgmma is not all in shared memory", what);
            wrong(line, text);
        }
    }
}

bool is_same(const lw_matrix_descriptor &a, const lw_matrix_descriptor &b) {
    return a.start == b.start && a.leading == b.leading && a.stride == b.stride && a.swizzle == b.swizzle;
}

// Nobody may touch the accumulators of a thread from now on, until it has waited.
void hold(unsigned which, unsigned char *where, unsigned bytes, unsigned until, int line) {
    std::vector<Accumulators> &under_way = warpgroup_threads[which].under_way;
    for (Accumulators &one : under_way) {
        if (one.where == where && one.bytes == bytes) {
            one.until = until;
            one.line = line;
            return;
        }
        if (where < one.where + one.bytes && one.where < where + bytes)
            wrong_about(line, "accumulators of wgmma are a part of those of the wgmma of line %d, which is under way", one.line);
    }
    under_way.push_back(Accumulators{where, bytes, until, line, std::vector<unsigned char>(where, where + bytes)});
    memset(where, 0xff, bytes);
}

// The thread has waited for so many wgmma: what they have computed is in its accumulators.
void give_back(unsigned until) {
    std::vector<Accumulators> &under_way = warpgroup_threads[current].under_way;
    size_t kept = 0;
    for (Accumulators &one : under_way) {
        if (one.until > until) {
            if (&under_way[kept] != &one) under_way[kept] = one;
            ++kept;
            continue;
        }
        for (unsigned k = 0; k < one.bytes; ++k)
            if (one.where[k] != 0xff)
                wrong(one.line, "something writes to the accumulators of this wgmma while it is under way");
        memcpy(one.where, one.values.data(), one.bytes);
    }
    under_way.resize(kept);
}

bool have_all_begun(unsigned which) {
    for (unsigned begun : warpgroups[which / 128].begun)
        if (begun < warpgroup_threads[which].until) return false;
    return true;
}

// A block ends: what is wrong with a thread of it, or nothing.
const char *unfinished(unsigned which) {
    const WarpgroupThread &one = warpgroup_threads[which];
    const Warpgroup &group = warpgroups[which / 128];
    if (one.begun > (one.groups == 0 ? 0 : group.groups[one.groups - 1])) return "ends without wgmma_commit after its wgmma";
    return one.waited < one.begun ? "ends without waiting for its wgmma" : nullptr;
}

}  // namespace

extern "C" {

void lw_begin_wgmma(
    int line, lw_wgmma_form form, void *accumulators, const void *registers, lw_matrix_descriptor a, lw_matrix_descriptor b,
    int adds) {
    check_whole(line, "wgmma");
    WarpgroupThread &mine = warpgroup_threads[current];
    Warpgroup &group = warpgroups[current / 128];
    const unsigned index = mine.begun++, within = current % 128, warp = within / 32, bytes = bytes_of(form.a);
    mine.line = line;
    if (!mine.has_fence) wrong(line, "wgmma comes before the first wgmma_fence");
    if (index == group.first + group.multiplies.size()) {
        if (registers == nullptr) check_matrix(line, "A", a, form.a_is_transposed, 64, bytes);
        check_matrix(line, "B", b, form.b_is_transposed, unsigned(form.n), bytes);
        group.multiplies.push_back(Multiply{line, form, a, b, adds != 0, {}, {}, {}});
    }
    Multiply &one = group.multiplies[index - group.first];
    if (one.line != line) wrong_about(line, "other threads of the warpgroup call the wgmma of line %d", one.line);
    if (!is_same(one.a, a) || !is_same(one.b, b) || one.adds != (adds != 0))
        wrong(line, "the threads of a warpgroup call wgmma with different arguments");
    one.accumulators[within] = (unsigned char *)accumulators;
    one.registers[within] = (const unsigned char *)registers;
    if (++one.lanes[warp] == 32) {
        const unsigned first = current / 32 * 32;
        for (unsigned lane = 0; order_kind != 1 && lane < 32; ++lane)
            hold(first + lane, one.accumulators[warp * 32 + lane], unsigned(form.n) * 2, index + 1, line);
        ++group.begun[warp];
        if (order_kind == 1) compute(current / 128, warp);
    }
    wait(AT_WARP_BARRIER, line, ~0u);
}

// `what` is a call that the threads of a warpgroup make alike, with the same number.
void lw_meet_warpgroup(int line, const char *what, int count) {
    check_whole(line, what);
    WarpgroupThread &mine = warpgroup_threads[current];
    Warpgroup &group = warpgroups[current / 128];
    const unsigned index = mine.others++;
    if (index == group.others.size()) group.others.push_back(Meeting{line, count});
    if (group.others[index].line != line)
        wrong_about(line, "threads of a warpgroup call this and what is in line %d at the same time", group.others[index].line);
    if (group.others[index].count != count) wrong(line, "the threads of a warpgroup make this call differently");
    if (strcmp(what, "wgmma_fence") == 0) mine.has_fence = true;
    if (strcmp(what, "set_max_registers") == 0) {
        group.registers = count;
        int total = 0;
        for (const Warpgroup &one : warpgroups) total = one.registers == 0 || total < 0 ? -1 : total + one.registers * 128;
        if (total > ALL_REGISTERS)
            wrong_about(line, "the warpgroups ask for %d registers together, and there are 65536: one waits for ever", total);
    }
    if (strcmp(what, "wgmma_commit") == 0) {
        if (mine.groups == group.groups.size()) group.groups.push_back(mine.begun);
        if (group.groups[mine.groups++] != mine.begun)
            wrong(line, "the threads of a warpgroup commit different wgmma");
    }
    wait(AT_WARP_BARRIER, line, ~0u);
}

void lw_wgmma_wait_but(int line, int count) {
    lw_meet_warpgroup(line, "wgmma_wait", count);
    WarpgroupThread &mine = warpgroup_threads[current];
    if (mine.groups > unsigned(count)) mine.until = warpgroups[current / 128].groups[mine.groups - unsigned(count) - 1];
    if (!have_all_begun(current)) wait(AT_WARPGROUP, line);
    Warpgroup &group = warpgroups[current / 128];
    for (unsigned warp = 0; warp < 4; ++warp)
        while (group.computed[warp] < mine.until) compute(current / 128, warp);
    give_back(mine.until);
    mine.waited = mine.until;
}

}  // extern "C"
