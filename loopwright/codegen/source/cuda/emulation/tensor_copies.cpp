// Tensor copies: emulation.cpp includes this file.
//
// A box of a tensor is copied as bytes are (`Copy`): its target is poisoned when the first lane calls, and the box is read
// and arrives late, at once or at some time. Where the map is not encoded the lanes copy their shares at once, each when
// its turn comes. A store reads its source, and writes the tensor, by the same rule as copies of groups: when the thread
// waits for it (forwards), at once (backwards), or at some time between; what only the end of the kernel waits for is
// written when the block ends.
//
// Stores and wgmma read another view of shared memory, in which asynchronous copies are, and what threads have written
// once one of them has made a fence: a kernel that lacks the fence stores, or multiplies, what was there before.

namespace {

// Element `number` of a box: where it lies in shared memory, and in the tensor, or nullptr where it is outside.
struct BoxElement {
    unsigned char *shared, *global;

    BoxElement(const lw_tensor_map *map, const int *at, unsigned char *box, int number) {
        const size_t plain = size_t(box) + size_t(number) * size_t(map->element_bytes);
        shared = (unsigned char *)(plain ^ (plain >> 7 & size_t(map->swizzle)) << 4);
        long long offset = 0;
        bool is_inside = true;
        for (int k = map->rank - 1; k >= 0; --k) {
            const long long index = (long long)at[k] + number % map->box[k];
            number /= map->box[k];
            is_inside = is_inside && index >= 0 && index < map->shape[k];
            offset += index * map->strides[k];
        }
        global = is_inside ? map->data + offset : nullptr;
    }
};

std::vector<unsigned char> static_view, dynamic_view;

unsigned char *in_view(const unsigned char *from) {
    const bool is_dynamic = from >= dynamic_begin() && from < dynamic_begin() + dynamic_bytes;
    if (is_dynamic) return dynamic_view.data() + (from - dynamic_begin());
    return static_view.data() + (from - (const unsigned char *)__start_lw_shared);
}

void show_to_copies(const unsigned char *from, size_t bytes) {
    if (watches_fences) memcpy(in_view(from), from, bytes);
}

void show_all_to_copies() {
    if (__start_lw_shared != nullptr) static_view.assign(__start_lw_shared, __stop_lw_shared);
    dynamic_view.assign(dynamic_begin(), dynamic_begin() + dynamic_bytes);
}

int elements_of_box(const lw_tensor_map *map) { return map->box_bytes / map->element_bytes; }

void load_element(const lw_tensor_map *map, const int *at, unsigned char *target, int number) {
    const BoxElement element(map, at, target, number);
    const size_t bytes = size_t(map->element_bytes);
    if (element.global == nullptr)
        memset(element.shared, 0, bytes);
    else
        memcpy(element.shared, element.global, bytes);
}

void load_box(const Copy &copy) {
    for (int k = 0; k < elements_of_box(copy.map); ++k) load_element(copy.map, copy.at, copy.target, k);
}

void check_box(int line, const lw_tensor_map *map, const void *memory, const char *what) {
    const int multiple = map->swizzle == 7 ? 1024 : 128;
    char text[120];
    if (!is_shared((const unsigned char *)memory, map->box_bytes)) {
        snprintf(text, sizeof text, "the %s of the copy is not all in shared memory", what);
        wrong(line, text);
    }
    if (size_t(memory) % size_t(multiple) == 0) return;
    snprintf(text, sizeof text, "the %s of the copy is no multiple of %d bytes", what, multiple);
    wrong(line, text);
}

void read_store(BoxStore &store) {
    if (store.is_read) return;
    store.is_read = true;
    const size_t bytes = size_t(store.map->element_bytes);
    for (int k = 0; k < elements_of_box(store.map); ++k) {
        const BoxElement element(store.map, store.at, store.source, k);
        const unsigned char *const from = store.map->is_encoded ? in_view(element.shared) : element.shared;
        store.bytes.insert(store.bytes.end(), from, from + bytes);
    }
}

void finish_store(BoxStore &store) {
    read_store(store);
    if (store.is_done) return;
    store.is_done = true;
    const size_t bytes = size_t(store.map->element_bytes);
    for (int k = 0; k < elements_of_box(store.map); ++k) {
        const BoxElement element(store.map, store.at, store.source, k);
        if (element.global != nullptr) memcpy(element.global, store.bytes.data() + size_t(k) * bytes, bytes);
    }
}

void finish_some_stores() {
    while (random_below(3)) {
        std::vector<BoxStore> &some = fibers[random_below(unsigned(fibers.size()))].stores;
        if (some.empty()) continue;
        BoxStore &one = some[random_below(unsigned(some.size()))];
        if (random_below(2))
            read_store(one);
        else
            finish_store(one);
    }
}

// Whether every store of the block has read its source; writes what is not yet in the tensor.
bool finish_all_stores() {
    for (Fiber &fiber : fibers) {
        for (BoxStore &store : fiber.stores) {
            if (!store.is_awaited) {
                snprintf(
                    message, sizeof message,
                    "block (%u, %u, %u): thread (%u, %u, %u) ends without waiting until its store of line %d has read its "
                    "source",
                    blockIdx.x, blockIdx.y, blockIdx.z, fiber.index.x, fiber.index.y, fiber.index.z, store.line);
                return false;
            }
            finish_store(store);
        }
        fiber.stores.clear();
    }
    return true;
}

}  // namespace

extern "C" {

// What the host of emulated kernels calls. No driver is asked: what the hardware can take is encoded.
void lw_emulated_tensor_map(
    void *map, void *data, const long long *sizes, int rank, int element_bytes, int swizzle) {
    lw_tensor_map *const result = (lw_tensor_map *)map;
    result->is_encoded = lw_describe_tensor(result, data, sizes, rank, element_bytes, swizzle);
}

void lw_tensor_copy(int line, void *target, const lw_tensor_map *map, void *barrier, const int *coordinates) {
    Copy copy = {line, (unsigned char *)target, nullptr, map->box_bytes, (unsigned char *)barrier, map, {}};
    memcpy(copy.at, coordinates, sizeof copy.at);
    check_box(line, map, target, "target");
    together(copy, "tensor_copy_async");
    if (map->is_encoded) {
        if (current % 32 == 0) launch_copy(copy);
        return;
    }
    for (int k = int(current % 32); k < elements_of_box(map); k += 32) load_element(map, copy.at, copy.target, k);
    wait(AT_WARP_BARRIER, line, ~0u);
    show_to_copies(copy.target, size_t(copy.bytes));
}

void lw_tensor_store(int line, const lw_tensor_map *map, const void *source, const int *coordinates) {
    check_box(line, map, source, "source");
    Fiber &mine = fibers[current];
    BoxStore store = {line, map, {}, (unsigned char *)source, mine.store_groups, {}, false, false, false};
    memcpy(store.at, coordinates, sizeof store.at);
    if (!map->is_encoded) {
        store.is_awaited = true;
        finish_store(store);
        return;
    }
    mine.stores.push_back(store);
    has_stores = true;
    if (order_kind == 1) finish_store(mine.stores.back());
}

void lw_bulk_commit_group(void) { ++fibers[current].store_groups; }

void lw_wait_for_stores(int groups, int only_reads) {
    Fiber &mine = fibers[current];
    for (BoxStore &store : mine.stores) {
        if (store.group + unsigned(groups) >= mine.store_groups) continue;
        store.is_awaited = true;
        if (only_reads)
            read_store(store);
        else
            finish_store(store);
    }
}

void lw_fence_proxy_async(void) {
    if (watches_fences) show_all_to_copies();
}

}  // extern "C"
