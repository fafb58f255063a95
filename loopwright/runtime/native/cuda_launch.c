/* Launching: limits are checked here, with figures; the driver would only say "invalid argument". */
#include "cuda.h"
#include "tensor_map.h"

static int checks_launches(void) { /* LOOPWRIGHT_CUDA_CHECK: look at pointers before a launch, and wait after it */
  static _Atomic int known = -1;
  if (known < 0) {
    const char* given = getenv("LOOPWRIGHT_CUDA_CHECK");
    known = given != NULL && *given != 0 && strcmp(given, "0") != 0;
  }
  return known;
}

static const char* refuse_launch(Device* device, Kernel* kernel, const int64_t* size, int64_t shared) {
  static __thread char why[256];
  static const char axes[] = "xyz";
  const LoadedKernel* loaded = &kernel->on[device->number];
  int64_t threads = 1;
  for (int k = 0; k < 3; k++) {
    int64_t blocks = size[k], along = size[3 + k];
    if (blocks < 0 || along < 0) return snprintf(why, sizeof why, "a size is negative"), why;
    if (blocks > device->max_grid[k])
      return snprintf(why, sizeof why, "the grid has %lld blocks along %c, and cuda(%d) allows %d", (long long)blocks,
                      axes[k], device->number, device->max_grid[k]), why;
    if (along > device->max_block[k])
      return snprintf(why, sizeof why, "the block has %lld threads along %c, and cuda(%d) allows %d", (long long)along,
                      axes[k], device->number, device->max_block[k]), why;
    threads *= along;
  }
  if (threads > device->max_threads)
    return snprintf(why, sizeof why, "the block has %lld threads, and cuda(%d) allows %d", (long long)threads,
                    device->number, device->max_threads), why;
  if (threads > loaded->max_threads)
    return snprintf(why, sizeof why, "the block has %lld threads, and with %d registers a thread at most %d fit",
                    (long long)threads, loaded->registers, loaded->max_threads), why;
  if (shared < 0 || shared + loaded->static_shared > device->max_shared)
    return snprintf(why, sizeof why, "a block needs %lld bytes of shared memory (%d of them static), and cuda(%d) has %d",
                    (long long)(shared + loaded->static_shared), loaded->static_shared, device->number,
                    device->max_shared), why;
  return NULL;
}

/* "argument 1 (B) …" for the first pointer that the device cannot read; 0 where there is none. */
static int bad_pointer(Device* device, Kernel* kernel, void** arguments, char* text, size_t bytes) {
  const char* name = kernel->arguments;
  for (int index = 0; *name != 0; index++) {
    size_t length = strcspn(name, " ");
    uint64_t address = 0;
    if (*name == '*') memcpy(&address, arguments[index], sizeof address);
    if (*name == '&') address = (uint64_t)((const lw_tensor_map*)arguments[index])->data;
    uint32_t kind = 0;
    Status status = address == 0 ? SUCCESS : device->driver->api.pointer_attribute(&kind, POINTER_MEMORY_TYPE, address);
    if (status != SUCCESS) { /* the driver does not know the address */
      snprintf(text, bytes, "kernel %s: argument %d (%.*s) points to host memory, or to nothing", kernel->name, index,
               (int)length - 1, name + 1);
      return 1;
    }
    name += length + (name[length] != 0);
  }
  return 0;
}

static int launch_failed(Device* device, Kernel* kernel, Status status, const int64_t* size, int64_t shared) {
  char about[160];
  snprintf(about, sizeof about, "kernel %s", kernel->name);
  if (status != INVALID_VALUE && status != LAUNCH_OUT_OF_RESOURCES) return failed(device, status, "cuLaunchKernel", about);
  const char* name = NULL;
  device->driver->api.error_name(status, &name);
  char why[320];
  snprintf(why, sizeof why, "the driver says %s for %lld×%lld×%lld blocks of %lld×%lld×%lld threads with %d registers each and %lld bytes "
           "of dynamic shared memory", name ? name : "no", (long long)size[0], (long long)size[1], (long long)size[2],
           (long long)size[3], (long long)size[4], (long long)size[5], kernel->on[device->number].registers, (long long)shared);
  return fail("KernelLaunchRefused", why, "use fewer threads or registers", "kernel %s cannot be launched on cuda(%d)",
              kernel->name, device->number);
}

static Status launch(Device* device, LoadedKernel* loaded, const int64_t* size, int64_t shared, void* stream,
                     void** arguments) {
  Api* api = &device->driver->api;
#define U(k) ((uint32_t)size[k])
  if (U(6) * U(7) * U(8) <= 1)
    return api->launch(loaded->function, U(0), U(1), U(2), U(3), U(4), U(5), (uint32_t)shared, stream, arguments, NULL);
  LaunchAttribute cluster = {CLUSTER_DIMENSION, 0, {U(6), U(7), U(8)}};
  LaunchConfig config = {{U(0), U(1), U(2)}, {U(3), U(4), U(5)}, (uint32_t)shared, stream, &cluster, 1};
#undef U
  return api->launch_with(&config, loaded->function, arguments, NULL);
}

static int is_empty_launch(const int64_t* size) {
  return size[0] == 0 || size[1] == 0 || size[2] == 0 || size[3] == 0 || size[4] == 0 || size[5] == 0;
}

static int32_t launch_kernel(Kernel* kernel, int32_t number, void* stream, const int64_t* size, int64_t shared,
                             void** arguments) {
  ENTER_OR_FAIL(number);
  LoadedKernel* loaded = loaded_kernel(device, kernel);
  if (loaded == NULL) return leave(&entered, -1);
  const char* why = refuse_launch(device, kernel, size, shared);
  if (why != NULL)
    return leave(&entered, fail("KernelLaunchRefused", why, "use smaller blocks or more axes of the grid",
                                "kernel %s cannot be launched on cuda(%d)", kernel->name, number));
  if (size[6] * size[7] * size[8] > 1 && api->launch_with == NULL)
    return leave(&entered, fail("CudaDriverTooOld", "", "install a newer NVIDIA driver",
                                "kernel %s: the driver knows no clusters", kernel->name));
  char problem[256];
  if (checks_launches() && bad_pointer(device, kernel, arguments, problem, sizeof problem))
    return leave(&entered, fail("DeviceMismatch", "", "copy the tensor to the device first", "%s", problem));
  note_stream(device, stream);
  Status status = SUCCESS;
  if (shared > loaded->max_dynamic) {
    status = api->function_set(loaded->function, FUNCTION_MAX_DYNAMIC_SHARED, (int)shared);
    if (status == SUCCESS) loaded->max_dynamic = (int)shared;
  }
  if (status == SUCCESS) status = launch(device, loaded, size, shared, stream, arguments);
  if (status != SUCCESS) return leave(&entered, launch_failed(device, kernel, status, size, shared));
  device->recent[device->num_recent++ % NUM_RECENT] = kernel->name;
  if (!checks_launches()) return leave(&entered, 0);
  status = api->stream_synchronize(stream);
  if (status != SUCCESS) {
    char about[160];
    snprintf(about, sizeof about, "kernel %s", kernel->name);
    return leave(&entered, failed(device, status, "waiting for it", about));
  }
  return leave(&entered, 0);
}

/* Launch a kernel: `size` has blocks of the grid, threads of a block and blocks of a cluster, each x, y, z (a cluster of
 * 0 or 1 is none); `arguments` point to the values of the arguments. It returns when the kernel is queued. Nothing is
 * launched where the grid or the block has no elements. */
EXPORT int32_t lw_cuda_launch(Kernel* kernel, int32_t number, void* stream, const int64_t* size, int64_t shared,
                              void** arguments) {
  return is_empty_launch(size) ? 0 : launch_kernel(kernel, number, stream, size, shared, arguments);
}
