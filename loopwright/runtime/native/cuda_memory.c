/* Device memory: taken and given back in the order of a stream, from a pool that keeps what it got.
 *
 * A block is given back in the stream it was taken in, after everything that was put into other streams so far. */
#include "cuda.h"

static Status allocate(Device* device, Address* address, size_t bytes, void* stream) {
  Api* api = &device->driver->api;
  if (device->pool == NULL) return api->alloc(address, bytes);
  return api->pool_alloc(address, bytes, device->pool, stream);
}

static int out_of_memory(Device* device, int64_t bytes) {
  int64_t figures[4] = {0};
  if (lw_cuda_memory(device->number, figures) != 0) return -1;
  char why[256];
  const double mib = 1 << 20;
  snprintf(why, sizeof why, "%.1f of %.1f MiB are free, and tensors of this process hold %.1f", (double)figures[0] / mib,
           (double)figures[1] / mib, (double)figures[3] / mib);
  return fail("DeviceOutOfMemory", why, "drop tensors that are not needed, or use smaller ones; other processes may hold the rest",
              "cuda(%d) has no %.1f MiB", device->number, (double)bytes / mib);
}

static int32_t alloc_memory(int32_t number, int64_t bytes, void* stream, void** memory) {
  *memory = NULL;
  ENTER_OR_FAIL(number);
  if (bytes == 0) return leave(&entered, 0);
  note_stream(device, stream);
  Address address = 0;
  Status status = allocate(device, &address, (size_t)bytes, stream);
  if (status == OUT_OF_MEMORY && device->pool != NULL) {
    api->context_synchronize(); /* what was freed is only given up when the work before it is done */
    if (api->pool_trim != NULL) api->pool_trim(device->pool, 0);
    status = allocate(device, &address, (size_t)bytes, stream);
  }
  *memory = (void*)(uintptr_t)address;
  if (status == OUT_OF_MEMORY) return leave(&entered, out_of_memory(device, bytes));
  LEAVE(status, "cuMemAllocAsync");
}

static int release(Device* device, void* memory, void* stream) {
  if (memory == NULL || is_forked) return 0; /* the parent's */
  Entered entered;
  if (enter_device(&entered, device) != 0) return -1;
  Api* api = &device->driver->api;
  Address address = (Address)(uintptr_t)memory;
  pthread_mutex_lock(&device->driver->lock); /* no stream is destroyed meanwhile */
  int is_known = 0;
  for (int k = 0; k < device->num_streams && k < MAX_STREAMS; k++) is_known |= device->streams[k] == stream;
  if (!is_known) stream = NULL; /* destroyed, when all its work was done */
  if (device->num_streams > MAX_STREAMS) api->context_synchronize();
  for (int k = device->num_streams - 1; k >= 0 && device->num_streams <= MAX_STREAMS; k--)
    if (device->streams[k] != stream && wait_for(device, stream, device->streams[k]) != SUCCESS)
      forget_stream(device, device->streams[k]); /* another library destroyed it, which ends when its work does */
  Status status = device->pool == NULL ? api->free(address) : api->pool_free(address, stream);
  pthread_mutex_unlock(&device->driver->lock);
  LEAVE(status, "cuMemFreeAsync");
}

static int32_t free_memory(int32_t number, void* memory, void* stream) {
  Device* device = find_device(number);
  return device == NULL ? -1 : release(device, memory, stream);
}

/* Give the memory that the pool holds and nobody uses back to the device. */
EXPORT int32_t lw_cuda_trim(int32_t number) {
  ENTER_OR_FAIL(number);
  Status status = api->context_synchronize();
  if (status == SUCCESS && device->pool != NULL && api->pool_trim != NULL) status = api->pool_trim(device->pool, 0);
  LEAVE(status, "cuMemPoolTrimTo");
}

/* Copy between device and host or within a device, whichever the addresses say; with `wait` it is done on return. */
EXPORT int32_t lw_cuda_copy(int32_t number, void* to, const void* from, int64_t bytes, void* stream, int32_t wait) {
  if (bytes == 0) return 0;
  ENTER_OR_FAIL(number);
  note_stream(device, stream);
  Status status = api->copy((Address)(uintptr_t)to, (Address)(uintptr_t)from, (size_t)bytes, stream);
  if (status != SUCCESS) LEAVE(status, "cuMemcpyAsync");
  if (wait) status = api->stream_synchronize(stream);
  LEAVE(status, "cuStreamSynchronize after a copy");
}

EXPORT int32_t lw_cuda_fill(int32_t number, void* to, int32_t byte, int64_t bytes, void* stream) {
  if (bytes == 0) return 0;
  ENTER_OR_FAIL(number);
  note_stream(device, stream);
  Status status = api->fill((Address)(uintptr_t)to, (unsigned char)byte, (size_t)bytes, stream);
  LEAVE(status, "cuMemsetD8Async");
}

/* ---- Tensors ---------------------------------------------------------------------------------------------------- */

typedef struct DLManagedTensor { /* dlpack.h */
  void* data;
  int32_t device_type, device_id, ndim;
  uint32_t dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
  void* context;
  void (*deleter)(struct DLManagedTensor*);
} ManagedTensor;

typedef struct {
  ManagedTensor managed;
  ManagedTensor* source; /* whose memory it is; NULL: its own, of this device and stream */
  Device* device;
  void* stream;
  int64_t sizes[];
} OwnTensor;

static void drop_tensor(ManagedTensor* managed) {
  OwnTensor* tensor = managed->context;
  if (tensor->source == NULL)
    release(tensor->device, managed->data, tensor->stream);
  else if (tensor->source->deleter != NULL)
    tensor->source->deleter(tensor->source);
  free(tensor);
}

static OwnTensor* row_major(int32_t number, void* memory, uint64_t offset, int32_t ndim, const int64_t* shape,
                            uint32_t dtype) {
  OwnTensor* tensor = calloc(1, sizeof *tensor + 2 * (size_t)ndim * sizeof(int64_t));
  int64_t *strides = tensor->sizes + ndim, step = 1;
  for (int32_t k = ndim - 1; k >= 0; k--) tensor->sizes[k] = shape[k], strides[k] = step, step *= shape[k];
  tensor->managed =
      (ManagedTensor){memory, DL_CUDA, number, ndim, dtype, tensor->sizes, strides, offset, tensor, drop_tensor};
  return tensor;
}

/* A DLManagedTensor with memory of its own, row-major; `dtype` is DLPack's code, bits and lanes in four bytes. */
EXPORT int32_t lw_cuda_tensor(int32_t number, int32_t ndim, const int64_t* shape, uint32_t dtype, int64_t bytes,
                              void* stream, void** result) {
  void* memory;
  if (alloc_memory(number, bytes, stream, &memory) != 0) return -1;
  OwnTensor* tensor = row_major(number, memory, 0, ndim, shape, dtype);
  tensor->device = find_device(number);
  tensor->stream = stream;
  *result = &tensor->managed;
  return 0;
}

/* The memory of `source`, which it takes over, under another row-major shape. */
EXPORT void* lw_cuda_view(ManagedTensor* source, int32_t ndim, const int64_t* shape) {
  OwnTensor* tensor = row_major(source->device_id, source->data, source->byte_offset, ndim, shape, source->dtype);
  tensor->source = source;
  return &tensor->managed;
}
