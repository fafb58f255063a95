/* A CUDA driver for tests: device memory is host memory, a launch calls a function of the test, streams run at once.
 *
 * The environment says what is found at start: FAKE_CUDA_VERSION (13000), FAKE_CUDA_DEVICES (2), FAKE_CUDA_ARCH (90),
 * FAKE_CUDA_POOLS (1), FAKE_CUDA_INIT (0: what cuInit gives). An image is text: "cubin add scale" has two kernels;
 * "ptx …" is PTX, "newer …" PTX that the driver does not know, and anything else is damaged; but an ELF file has every
 * kernel: one that no test defines does nothing. `fake_…` are for tests. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int Status;
typedef uint64_t Address;
typedef struct {
  const uint32_t* size; /* grid, block, cluster */
  uint32_t shared_bytes;
  void* stream;
  void** arguments;
} Launch;

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
       UNSUPPORTED_PTX = 222, INVALID_HANDLE = 400, NOT_FOUND = 500 };
enum { MOST = 512 };

static int64_t capacity = 1 << 26, used, reserved;
static struct { char* at; size_t bytes; } blocks[MOST];
typedef struct { char name[64]; void (*body)(const Launch*); } TestKernel;
static void do_nothing(const Launch* launch) { (void)launch; }
static TestKernel kernels[MOST], nothing = {"", do_nothing};
static struct { char symbol[64]; Status status; int after, times; } failure;
static char calls[1 << 16];
static _Thread_local void* context;
static int64_t next_handle = 0x1000;
static uint64_t stream_count, event_count;

static int setting(const char* name, int otherwise) {
  const char* given = getenv(name);
  return given == NULL ? otherwise : atoi(given);
}

static void note(const char* text) {
  if (strlen(calls) + strlen(text) + 2 < sizeof calls) strcat(strcat(calls, text), "\n");
}

static Status provoked(const char* symbol) {
  note(symbol);
  if (failure.times == 0 || strcmp(failure.symbol, symbol) != 0) return 0;
  if (failure.after > 0) return failure.after--, 0;
  return failure.times--, failure.status;
}
#define ENTRY(symbol)                        \
  Status provoked_ = provoked(symbol);       \
  if (provoked_ != 0) return provoked_
#define IN_CONTEXT(symbol) \
  ENTRY(symbol);           \
  if (context == NULL) return 201 /* CUDA_ERROR_INVALID_CONTEXT */

/* ---- For tests -------------------------------------------------------------------------------------------------- */

/* After `after` more calls of `symbol`, the next `times` give `status`. */
void fake_fail(const char* symbol, int status, int after, int times) {
  snprintf(failure.symbol, sizeof failure.symbol, "%s", symbol);
  failure.status = status, failure.after = after, failure.times = times;
}
void fake_kernel(const char* name, void (*body)(const Launch*)) {
  int k = 0;
  while (kernels[k].body != NULL && strcmp(kernels[k].name, name) != 0) k++;
  snprintf(kernels[k].name, sizeof kernels[k].name, "%s", name);
  kernels[k].body = body;
}
const char* fake_calls(void) { return calls; } /* the symbols that were called, a line each */
void fake_forget_calls(void) { calls[0] = 0; }
void fake_set_memory(int64_t bytes) { capacity = bytes; }
int64_t fake_used(void) { return used; }
int64_t fake_reserved(void) { return reserved; }
uint64_t fake_streams(void) { return stream_count; }
uint64_t fake_events(void) { return event_count; }

/* ---- The driver ------------------------------------------------------------------------------------------------- */

Status cuInit(unsigned flags) { (void)flags; ENTRY("cuInit"); return setting("FAKE_CUDA_INIT", 0); }
Status cuDriverGetVersion(int* version) { *version = setting("FAKE_CUDA_VERSION", 13000); return 0; }

Status cuGetErrorName(Status status, const char** name) {
  static const struct { Status status; const char* name; } names[] = {
      {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"}, {100, "CUDA_ERROR_NO_DEVICE"},
      {200, "CUDA_ERROR_INVALID_IMAGE"}, {201, "CUDA_ERROR_INVALID_CONTEXT"},
      {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}, {400, "CUDA_ERROR_INVALID_HANDLE"}, {500, "CUDA_ERROR_NOT_FOUND"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
      {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (names[k].status == status) return *name = names[k].name, 0;
  *name = NULL;
  return INVALID_VALUE;
}
Status cuGetErrorString(Status status, const char** text) { (void)status; *text = "as the test wanted"; return 0; }

Status cuDeviceGetCount(int* count) {
  ENTRY("cuDeviceGetCount");
  *count = setting("FAKE_CUDA_DEVICES", 2);
  return 0;
}
Status cuDeviceGet(int* device, int ordinal) { ENTRY("cuDeviceGet"); *device = ordinal; return 0; }
Status cuDeviceGetName(char* name, int bytes, int device) { snprintf(name, (size_t)bytes, "Fake GPU %d", device); return 0; }
Status cuDeviceTotalMem_v2(size_t* bytes, int device) { (void)device; *bytes = (size_t)capacity; return 0; }
Status cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  ENTRY("cuDeviceGetAttribute");
  const int arch = setting("FAKE_CUDA_ARCH", 90);
  switch (attribute) {
    case 1: *value = 1024; break;
    case 2: case 3: *value = 1024; break;
    case 4: *value = 64; break;
    case 5: *value = 2147483647; break;
    case 6: case 7: *value = 65535; break;
    case 8: *value = 49152; break;
    case 10: *value = 32; break;
    case 12: case 82: *value = 65536; break;
    case 13: *value = 1980000; break;
    case 16: *value = 132; break;
    case 38: *value = 50 << 20; break;
    case 39: *value = 2048; break;
    case 75: *value = arch / 10; break;
    case 76: *value = arch % 10; break;
    case 81: *value = 233472; break;
    case 97: *value = 232448; break;
    case 106: *value = 32; break;
    case 115: *value = setting("FAKE_CUDA_POOLS", 1); break;
    default: *value = 0;
  }
  return 0;
}

static char contexts[8];
Status cuDevicePrimaryCtxRetain(void** result, int device) {
  ENTRY("cuDevicePrimaryCtxRetain");
  *result = &contexts[device];
  return 0;
}
static _Thread_local void* below[16];
static _Thread_local int depth;
Status cuCtxGetCurrent(void** result) { *result = context; return 0; }
Status cuCtxSetCurrent(void* given) { context = given; return 0; }
Status cuCtxPushCurrent_v2(void* given) { below[depth++] = context; context = given; return 0; }
Status cuCtxPopCurrent_v2(void** result) { *result = context; context = below[--depth]; return 0; }
Status cuCtxGetDevice(int* device) {
  if (context == NULL) return 201;
  *device = (int)((char*)context - contexts);
  return 0;
}
Status cuCtxSynchronize(void) { IN_CONTEXT("cuCtxSynchronize"); return 0; }

Status cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values) {
  IN_CONTEXT("cuModuleLoadDataEx");
  if (strncmp(image, "newer", 5) == 0) return UNSUPPORTED_PTX;
  if (strncmp(image, "\177ELF", 4) == 0) return *module = strdup("\177ELF"), 0;
  if (strncmp(image, "cubin", 5) != 0 && strncmp(image, "ptx", 3) != 0) {
    for (unsigned k = 0; k < count; k++)
      if (options[k] == 5) strcpy(values[k], "line 1: no image");
    return INVALID_IMAGE;
  }
  *module = strdup(image);
  return 0;
}
Status cuModuleUnload(void* module) { IN_CONTEXT("cuModuleUnload"); free(module); return 0; }
Status cuModuleGetFunction(void** function, void* module, const char* name) {
  IN_CONTEXT("cuModuleGetFunction");
  char padded[80], text[512];
  snprintf(padded, sizeof padded, " %s ", name);
  snprintf(text, sizeof text, "%s ", (char*)module);
  if (text[0] != 0x7f && strstr(text, padded) == NULL) return NOT_FOUND;
  for (int k = 0; k < MOST; k++)
    if (kernels[k].body == NULL || strcmp(kernels[k].name, name) == 0) {
      if (kernels[k].body == NULL && text[0] == 0x7f) return *function = &nothing, 0;
      if (kernels[k].body == NULL) break;
      return *function = &kernels[k], 0;
    }
  return NOT_FOUND;
}
Status cuFuncGetAttribute(int* value, int attribute, void* function) {
  (void)function;
  *value = attribute == 0 ? 1024 : attribute == 1 ? 256 : attribute == 4 ? 40 : 0;
  return 0;
}
Status cuFuncSetAttribute(void* function, int attribute, int value) {
  char text[64];
  (void)function;
  snprintf(text, sizeof text, "attribute %d = %d", attribute, value);
  note(text);
  return 0;
}

static Status launch(void* function, const uint32_t* size, uint32_t shared_bytes, void* stream, void** arguments) {
  Launch launch = {size, shared_bytes, stream, arguments};
  ((void (*)(const Launch*))((char**)function)[64 / sizeof(char*)])(&launch);
  return 0;
}
Status cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared_bytes, void* stream, void** arguments, void** extra) {
  (void)extra;
  IN_CONTEXT("cuLaunchKernel");
  uint32_t size[9] = {gx, gy, gz, bx, by, bz, 0, 0, 0};
  return launch(function, size, shared_bytes, stream, arguments);
}
typedef struct { int id, padding; uint32_t value[16]; } Attribute;
typedef struct { uint32_t grid[3], block[3], shared_bytes; void* stream; Attribute* attributes; uint32_t count; } Config;
Status cuLaunchKernelEx(const Config* config, void* function, void** arguments, void** extra) {
  (void)extra;
  IN_CONTEXT("cuLaunchKernelEx");
  if (config->count != 1 || config->attributes->id != 4) return INVALID_VALUE;
  const uint32_t *g = config->grid, *b = config->block, *c = config->attributes->value;
  uint32_t size[9] = {g[0], g[1], g[2], b[0], b[1], b[2], c[0], c[1], c[2]};
  return launch(function, size, config->shared_bytes, config->stream, arguments);
}

/* What a map is made of: type, rank, data, 5 of shape, 4 strides, 5 extents of the box (9 bits each), how it is copied. */
Status cuTensorMapEncodeTiled(uint64_t* map, int type, uint32_t rank, void* data, const uint64_t* shape,
                              const uint64_t* strides, const uint32_t* box, const uint32_t* every, int interleave,
                              int swizzle, int promotion, int outside) {
  IN_CONTEXT("cuTensorMapEncodeTiled");
  memset(map, 0, 128);
  map[0] = (uint64_t)type, map[1] = rank, map[2] = (uint64_t)(uintptr_t)data;
  for (uint32_t k = 0; k < rank; k++) {
    if (every[k] != 1 || interleave != 0 || outside != 0) return INVALID_VALUE;
    map[3 + k] = shape[k];
    if (k > 0) map[7 + k] = strides[k - 1];
    map[12] |= (uint64_t)box[k] << 9 * k;
  }
  map[13] = (uint64_t)swizzle, map[14] = (uint64_t)promotion;
  return 0;
}

static Status take(Address* address, size_t bytes) {
  if (bytes == 0) return INVALID_VALUE;
  int64_t idle = reserved - used >= (int64_t)bytes ? 0 : (int64_t)bytes;
  if (reserved + idle > capacity) return OUT_OF_MEMORY;
  for (int k = 0; k < MOST; k++)
    if (blocks[k].at == NULL) {
      blocks[k].at = malloc(bytes);
      blocks[k].bytes = bytes;
      used += (int64_t)bytes, reserved += idle;
      *address = (Address)(uintptr_t)blocks[k].at;
      return 0;
    }
  return OUT_OF_MEMORY;
}
static Status put_back(Address address) {
  for (int k = 0; k < MOST; k++)
    if (blocks[k].at != NULL && (Address)(uintptr_t)blocks[k].at == address) {
      free(blocks[k].at);
      blocks[k].at = NULL;
      used -= (int64_t)blocks[k].bytes;
      return 0;
    }
  return INVALID_VALUE;
}
Status cuMemAlloc_v2(Address* address, size_t bytes) { IN_CONTEXT("cuMemAlloc"); return take(address, bytes); }
Status cuMemFree_v2(Address address) {
  IN_CONTEXT("cuMemFree");
  Status status = put_back(address);
  reserved = used;
  return status;
}
Status cuMemPoolCreate(void** pool, const void* properties) {
  ENTRY("cuMemPoolCreate");
  if (((const int*)properties)[0] != 1 || ((const int*)properties)[2] != 1) return INVALID_VALUE;
  *pool = (void*)(uintptr_t)next_handle++;
  return 0;
}
Status cuMemPoolSetAttribute(void* pool, int attribute, void* value) { (void)pool; (void)attribute; (void)value; return 0; }
Status cuMemPoolGetAttribute(void* pool, int attribute, void* value) {
  (void)pool;
  *(uint64_t*)value = (uint64_t)(attribute == 5 ? reserved : used);
  return 0;
}
Status cuMemPoolTrimTo(void* pool, size_t keep) { (void)pool; (void)keep; ENTRY("cuMemPoolTrimTo"); reserved = used; return 0; }
Status cuMemAllocFromPoolAsync(Address* address, size_t bytes, void* pool, void* stream) {
  (void)pool;
  (void)stream;
  IN_CONTEXT("cuMemAllocFromPoolAsync");
  return take(address, bytes);
}
Status cuMemFreeAsync(Address address, void* stream) {
  (void)stream;
  IN_CONTEXT("cuMemFreeAsync");
  return put_back(address);
}
Status cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = (size_t)(capacity - reserved), *total = (size_t)capacity;
  return 0;
}
Status cuMemcpyAsync(Address to, Address from, size_t bytes, void* stream) {
  (void)stream;
  IN_CONTEXT("cuMemcpyAsync");
  memmove((void*)(uintptr_t)to, (const void*)(uintptr_t)from, bytes);
  return 0;
}
Status cuMemsetD8Async(Address to, unsigned char byte, size_t bytes, void* stream) {
  (void)stream;
  IN_CONTEXT("cuMemsetD8Async");
  memset((void*)(uintptr_t)to, byte, bytes);
  return 0;
}
Status cuPointerGetAttribute(void* value, int attribute, Address address) {
  if (attribute != 2) return INVALID_VALUE;
  for (int k = 0; k < MOST; k++) {
    Address begin = (Address)(uintptr_t)blocks[k].at;
    if (blocks[k].at != NULL && address >= begin && address < begin + blocks[k].bytes) return *(uint32_t*)value = 2, 0;
  }
  return INVALID_VALUE;
}

Status cuStreamCreate(void** stream, unsigned flags) {
  (void)flags;
  IN_CONTEXT("cuStreamCreate");
  *stream = (void*)(uintptr_t)next_handle++;
  return stream_count++, 0;
}
Status cuStreamDestroy_v2(void* stream) { IN_CONTEXT("cuStreamDestroy"); return stream == NULL ? INVALID_HANDLE : (stream_count--, 0); }
Status cuStreamSynchronize(void* stream) { (void)stream; IN_CONTEXT("cuStreamSynchronize"); return 0; }
Status cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  (void)stream, (void)event, (void)flags;
  IN_CONTEXT("cuStreamWaitEvent");
  return 0;
}
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}
Status cuEventCreate(void** event, unsigned flags) {
  (void)flags;
  IN_CONTEXT("cuEventCreate");
  *event = calloc(1, sizeof(double));
  return event_count++, 0;
}
Status cuEventDestroy_v2(void* event) { ENTRY("cuEventDestroy"); free(event); return event_count--, 0; }
Status cuEventRecord(void* event, void* stream) { (void)stream; IN_CONTEXT("cuEventRecord"); *(double*)event = now(); return 0; }
Status cuEventSynchronize(void* event) { (void)event; IN_CONTEXT("cuEventSynchronize"); return 0; }
Status cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  *milliseconds = (float)(*(double*)end - *(double*)start);
  return 0;
}
