/* What we use of the CUDA driver's interface, declared here so that nothing of CUDA is needed to build.
 *
 * Names and numbers are those of the driver's ABI (libcuda.so.1), which does not change; a `_v2` belongs to the symbol. */
#ifndef LW_CUDA_API_H
#define LW_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int Status;       /* CUresult */
typedef uint64_t Address; /* CUdeviceptr */

enum { /* CUresult */
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NO_DEVICE = 100,
  INVALID_IMAGE = 200,
  NO_BINARY_FOR_GPU = 209,
  INVALID_PTX = 218,
  UNSUPPORTED_PTX_VERSION = 222,
  NOT_FOUND = 500,
  ILLEGAL_ADDRESS = 700,
  LAUNCH_OUT_OF_RESOURCES = 701,
  LAUNCH_TIMEOUT = 702,
  CONTEXT_IS_DESTROYED = 709,
  ASSERT = 710,
  HARDWARE_STACK_ERROR = 714,
  LAUNCH_FAILED = 719,
};

enum { /* CUdevice_attribute */
  MAX_THREADS_PER_BLOCK = 1,
  MAX_BLOCK_DIM_X = 2,
  MAX_GRID_DIM_X = 5,
  MAX_SHARED_MEMORY_PER_BLOCK = 8,
  MAX_REGISTERS_PER_BLOCK = 12,
  COMPUTE_CAPABILITY_MAJOR = 75,
  COMPUTE_CAPABILITY_MINOR = 76,
  MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  MEMORY_POOLS_SUPPORTED = 115,
};

enum { /* CUfunction_attribute */
  FUNCTION_MAX_THREADS = 0,
  FUNCTION_SHARED_BYTES = 1,
  FUNCTION_REGISTERS = 4,
  FUNCTION_MAX_DYNAMIC_SHARED = 8,
};

enum { JIT_ERROR_LOG = 5, JIT_ERROR_LOG_BYTES = 6 };            /* CUjit_option */
enum { POOL_RELEASE_THRESHOLD = 4, POOL_RESERVED = 5, POOL_USED = 7 }; /* CUmemPool_attribute */
enum { POINTER_MEMORY_TYPE = 2, MEMORY_HOST = 1, MEMORY_DEVICE = 2 }; /* CUpointer_attribute, CUmemorytype */
enum { STREAM_DEFAULT = 0, EVENT_DEFAULT = 0, EVENT_DISABLE_TIMING = 2, CLUSTER_DIMENSION = 4 };

typedef struct { /* CUmemPoolProps; the driver wants what is not named to be zero */
  int allocation_type, handle_types;
  int location_type, location;
  char rest[240];
} PoolProperties;
enum { ALLOCATION_PINNED = 1, LOCATION_DEVICE = 1 };

typedef struct { /* CUlaunchAttribute */
  int id, padding;
  uint32_t value[16];
} LaunchAttribute;

typedef struct { /* CUlaunchConfig */
  uint32_t grid[3], block[3], shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  uint32_t num_attributes;
} LaunchConfig;

/* Needed of every driver: name in our table, symbol, arguments. */
#define NEEDED(F)                                                                                                   \
  F(init, "cuInit", (unsigned flags))                                                                               \
  F(driver_version, "cuDriverGetVersion", (int*))                                                                   \
  F(error_name, "cuGetErrorName", (Status, const char**))                                                           \
  F(error_text, "cuGetErrorString", (Status, const char**))                                                         \
  F(device_count, "cuDeviceGetCount", (int*))                                                                       \
  F(device_get, "cuDeviceGet", (int* device, int ordinal))                                                          \
  F(device_name, "cuDeviceGetName", (char* name, int bytes, int device))                                            \
  F(device_attribute, "cuDeviceGetAttribute", (int* value, int attribute, int device))                              \
  F(device_memory, "cuDeviceTotalMem_v2", (size_t*, int device))                                                    \
  F(context_retain, "cuDevicePrimaryCtxRetain", (void** context, int device))                                       \
  F(context_get, "cuCtxGetCurrent", (void** context))                                                               \
  F(context_set, "cuCtxSetCurrent", (void* context))                                                                \
  F(context_push, "cuCtxPushCurrent_v2", (void* context))                                                           \
  F(context_pop, "cuCtxPopCurrent_v2", (void** context))                                                            \
  F(context_synchronize, "cuCtxSynchronize", (void))                                                                \
  F(module_load, "cuModuleLoadDataEx",                                                                              \
    (void** module, const void* image, unsigned num_options, int* options, void** values))                          \
  F(module_unload, "cuModuleUnload", (void* module))                                                                \
  F(module_function, "cuModuleGetFunction", (void** function, void* module, const char* name))                      \
  F(function_get, "cuFuncGetAttribute", (int* value, int attribute, void* function))                                \
  F(function_set, "cuFuncSetAttribute", (void* function, int attribute, int value))                                 \
  F(launch, "cuLaunchKernel",                                                                                       \
    (void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,         \
     unsigned block_z, unsigned shared_bytes, void* stream, void** arguments, void** extra))                        \
  F(alloc, "cuMemAlloc_v2", (Address*, size_t bytes))                                                               \
  F(free, "cuMemFree_v2", (Address))                                                                                \
  F(memory_info, "cuMemGetInfo_v2", (size_t* free, size_t* total))                                                  \
  F(copy, "cuMemcpyAsync", (Address to, Address from, size_t bytes, void* stream))                                  \
  F(fill, "cuMemsetD8Async", (Address to, unsigned char byte, size_t bytes, void* stream))                          \
  F(pointer_attribute, "cuPointerGetAttribute", (void* value, int attribute, Address))                              \
  F(stream_create, "cuStreamCreate", (void** stream, unsigned flags))                                               \
  F(stream_destroy, "cuStreamDestroy_v2", (void* stream))                                                           \
  F(stream_synchronize, "cuStreamSynchronize", (void* stream))                                                      \
  F(stream_wait_event, "cuStreamWaitEvent", (void* stream, void* event, unsigned flags))                            \
  F(event_create, "cuEventCreate", (void** event, unsigned flags))                                                  \
  F(event_destroy, "cuEventDestroy_v2", (void* event))                                                              \
  F(event_record, "cuEventRecord", (void* event, void* stream))                                                     \
  F(event_synchronize, "cuEventSynchronize", (void* event))                                                         \
  F(event_elapsed, "cuEventElapsedTime", (float* milliseconds, void* start, void* end))

/* Used where the driver has them. */
#define OPTIONAL(F)                                                                                                 \
  F(tensor_map_encode, "cuTensorMapEncodeTiled",                                                                    \
    (void* map, int type, uint32_t rank, void* data, const uint64_t* shape, const uint64_t* strides,                \
     const uint32_t* box, const uint32_t* every, int interleave, int swizzle, int promotion, int outside))          \
  F(context_device, "cuCtxGetDevice", (int* device))                                                                \
  F(launch_with, "cuLaunchKernelEx", (const LaunchConfig*, void* function, void** arguments, void** extra))         \
  F(pool_create, "cuMemPoolCreate", (void** pool, const PoolProperties*))                                           \
  F(pool_set, "cuMemPoolSetAttribute", (void* pool, int attribute, void* value))                                    \
  F(pool_get, "cuMemPoolGetAttribute", (void* pool, int attribute, void* value))                                    \
  F(pool_trim, "cuMemPoolTrimTo", (void* pool, size_t keep))                                                        \
  F(pool_alloc, "cuMemAllocFromPoolAsync", (Address*, size_t bytes, void* pool, void* stream))                      \
  F(pool_free, "cuMemFreeAsync", (Address, void* stream))

typedef struct {
#define FIELD(name, symbol, arguments) Status(*name) arguments;
  NEEDED(FIELD) OPTIONAL(FIELD)
#undef FIELD
} Api;

#endif
