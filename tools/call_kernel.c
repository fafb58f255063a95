/* Calls one compiled function on arguments from a file, and writes them back: for running kernels under an emulator.
 *
 * The file holds the number of tensors, and for each: rank, DLPack code and bits, size in bytes, shape, contents.
 * The runtime's symbols are the simplest that are right; a parallel loop runs as two chunks. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} Tensor;

typedef struct {
    int32_t kind, padding;
    void *payload;
} Value;

int __tvm_ffi_main(void *handle, const Value *args, int32_t count, Value *result);

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) { fprintf(stderr, "%s: %s\n", kind, message); }

int32_t lw_parallel_for(int32_t (*body)(int64_t, int64_t, void *), int64_t begin, int64_t end, void *closure) {
    int64_t middle = (begin + end) / 2;
    int32_t status = begin < middle ? body(begin, middle, closure) : 0;
    return status || middle >= end ? status : body(middle, end, closure);
}

static void *aligned(int64_t bytes) { return aligned_alloc(64, (bytes / 64 + 1) * 64); }
void *lw_workspace_alloc(int64_t bytes) { return aligned(bytes); }
void lw_workspace_free(void *memory) { free(memory); }

static void read_all(FILE *file, void *to, size_t bytes) {
    if (bytes && fread(to, bytes, 1, file) != 1) exit(3);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    FILE *file = fopen(argv[1], "rb");
    int64_t count, head[4];
    read_all(file, &count, sizeof count);
    Value *values = calloc(count + 1, sizeof *values), result;
    Tensor *tensors = calloc(count + 1, sizeof *tensors);
    int64_t *sizes = calloc(count + 1, sizeof *sizes);
    for (int64_t k = 0; k < count; k++) {
        read_all(file, head, sizeof head);
        Tensor *tensor = &tensors[k];
        tensor->device_type = 1, tensor->ndim = head[0], tensor->code = head[1], tensor->bits = head[2];
        tensor->lanes = 1, tensor->shape = calloc(head[0] + 1, sizeof(int64_t)), sizes[k] = head[3];
        read_all(file, tensor->shape, head[0] * sizeof(int64_t));
        read_all(file, tensor->data = aligned(head[3]), head[3]);
        values[k].kind = 7, values[k].payload = tensor;
    }
    fclose(file);
    int status = __tvm_ffi_main(0, values, count, &result);
    file = fopen(argv[2], "wb");
    for (int64_t k = 0; k < count; k++) fwrite(tensors[k].data, 1, sizes[k], file);
    fclose(file);
    return status ? 1 : 0;
}
