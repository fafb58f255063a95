/* The driver and its devices: found when they are first needed, each with its primary context. */
#include "cuda.h"

static _Atomic(Driver*) current;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int is_forked; /* a child of fork() must not call the driver: its parent's contexts do not work there */

static void note_fork(void) { is_forked = 1; }

static Status no_function(const char* symbol) {
  return fail("CudaDriverTooOld", "the library lacks a function that every driver since CUDA 11.2 has",
              "install a newer NVIDIA driver", "the CUDA driver has no %s", symbol);
}

static int load_functions(void* library, Api* api) {
#define LOAD(name, symbol, arguments) api->name = (Status(*) arguments)dlsym(library, symbol);
#define CHECK(name, symbol, arguments) \
  if (api->name == NULL) return no_function(symbol);
  NEEDED(LOAD) OPTIONAL(LOAD) NEEDED(CHECK)
#undef LOAD
#undef CHECK
  return 0;
}

static int start_driver(Driver* driver) {
  void* library = dlopen(driver->path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fail("NoCudaDriver", dlerror(), "", "%s was not found", driver->path);
  if (load_functions(library, &driver->api) != 0) return -1;
  Status status = driver->api.driver_version(&driver->version);
  if (status == SUCCESS && driver->version < OLDEST_DRIVER)
    return fail("CudaDriverTooOld", "", "install a newer NVIDIA driver", "the driver is for CUDA %d.%d, and CUDA %d.%d is needed",
                driver->version / 1000, driver->version % 1000 / 10, OLDEST_DRIVER / 1000, OLDEST_DRIVER % 1000 / 10);
  const char* call = "cuDriverGetVersion";
  if (status == SUCCESS) call = "cuInit", status = driver->api.init(0);
  if (status == SUCCESS) call = "cuDeviceGetCount", status = driver->api.device_count(&driver->num_devices);
  if (status == NO_DEVICE || (status == SUCCESS && driver->num_devices == 0))
    return fail("NoSuchGpu", "", "", "the driver (CUDA %d.%d) finds no device", driver->version / 1000,
                driver->version % 1000 / 10);
  if (status != SUCCESS) {
    const char *name = NULL, *text = NULL;
    driver->api.error_name(status, &name);
    driver->api.error_text(status, &text);
    return fail("NoCudaDriver", text, "", "the driver does not start: %s gives %s", call, name ? name : "an error");
  }
  if (driver->num_devices > MAX_DEVICES) driver->num_devices = MAX_DEVICES;
  pthread_mutex_init(&driver->lock, NULL);
  for (int k = 0; k < driver->num_devices; k++) driver->devices[k].driver = driver, driver->devices[k].number = k;
  return 0;
}

/* Load the driver at `path` and start it; one that was opened before is not opened again. NULL: the usual one, or what
 * LOOPWRIGHT_CUDA_DRIVER names, which is for tests. */
EXPORT int32_t lw_cuda_open(const char* path) {
  static int has_fork_handler;
  if (path == NULL) path = getenv("LOOPWRIGHT_CUDA_DRIVER");
  if (path == NULL || *path == 0) path = "libcuda.so.1";
  forget_error();
  pthread_mutex_lock(&opening);
  int status = 0;
  if (current == NULL || strcmp(current->path, path) != 0) {
    Driver* driver = calloc(1, sizeof *driver);
    snprintf(driver->path, sizeof driver->path, "%s", path);
    status = start_driver(driver);
    if (status == 0)
      current = driver;
    else
      free(driver);
    if (!has_fork_handler) has_fork_handler = 1, pthread_atfork(NULL, NULL, note_fork);
  }
  pthread_mutex_unlock(&opening);
  return status;
}

static Status start_device(Device* device) {
  Api* api = &device->driver->api;
  Status status = api->device_get(&device->handle, device->number);
  int major = 0, minor = 0, has_pools = 0;
#define READ(to, attribute) \
  if (status == SUCCESS) status = api->device_attribute(&(to), attribute, device->handle)
  READ(device->max_threads, MAX_THREADS_PER_BLOCK);
  READ(device->max_shared, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  for (int k = 0; k < 3; k++) {
    READ(device->max_block[k], MAX_BLOCK_DIM_X + k);
    READ(device->max_grid[k], MAX_GRID_DIM_X + k);
  }
  READ(major, COMPUTE_CAPABILITY_MAJOR);
  READ(minor, COMPUTE_CAPABILITY_MINOR);
#undef READ
  device->compute_capability = 10 * major + minor;
  if (status == SUCCESS) status = api->context_retain(&device->context, device->handle);
  if (status != SUCCESS) return status;
  if (api->pool_create == NULL || api->pool_alloc == NULL || api->pool_free == NULL || api->pool_set == NULL ||
      api->device_attribute(&has_pools, MEMORY_POOLS_SUPPORTED, device->handle) != SUCCESS || !has_pools)
    return SUCCESS;
  /* A pool of our own: what other libraries do with the default one is theirs to decide. */
  PoolProperties properties = {ALLOCATION_PINNED, 0, LOCATION_DEVICE, device->handle, {0}};
  if (api->pool_create(&device->pool, &properties) != SUCCESS) device->pool = NULL;
  uint64_t keep_all = UINT64_MAX; /* else every wait for the device would give its memory back */
  if (device->pool != NULL) api->pool_set(device->pool, POOL_RELEASE_THRESHOLD, &keep_all);
  return SUCCESS;
}

static Driver* the_driver(void) { return current != NULL || lw_cuda_open(NULL) == 0 ? current : NULL; }

static Device* find_device(int32_t number) {
  Driver* driver = the_driver();
  if (driver == NULL) return NULL;
  if (is_forked) {
    fail("CudaError", "the driver was started before fork(), and the child cannot use its parent's GPU",
         "start worker processes with the method 'spawn'", "cuda(%d) in a forked process", number);
    return NULL;
  }
  if (number < 0 || number >= driver->num_devices) {
    fail("NoSuchGpu", "", "", "there is no cuda(%d): the driver has %d device%s", number, driver->num_devices,
         driver->num_devices == 1 ? "" : "s");
    return NULL;
  }
  Device* device = &driver->devices[number];
  if (device->is_ready) return device;
  pthread_mutex_lock(&driver->lock);
  Status status = device->is_ready ? SUCCESS : start_device(device);
  if (status == SUCCESS)
    device->is_ready = 1;
  else
    failed(device, status, "starting the device", NULL);
  pthread_mutex_unlock(&driver->lock);
  return status == SUCCESS ? device : NULL;
}

/* Make the device's context current. A thread without any keeps it; another one's comes back in `leave`. */
static int enter_device(Entered* entered, Device* device) {
  void* now = NULL;
  Api* api = &device->driver->api;
  *entered = (Entered){device, 0};
  Status status = api->context_get(&now);
  if (status != SUCCESS || now == device->context) return status == SUCCESS ? 0 : failed(device, status, "cuCtxGetCurrent", NULL);
  entered->pushed = now != NULL;
  status = now == NULL ? api->context_set(device->context) : api->context_push(device->context);
  return status == SUCCESS ? 0 : failed(device, status, "cuCtxSetCurrent", NULL);
}

static int enter(Entered* entered, int32_t number) {
  Device* device = find_device(number);
  return device == NULL ? -1 : enter_device(entered, device);
}

static int leave(Entered* entered, int status) {
  void* ours;
  if (entered->pushed) entered->device->driver->api.context_pop(&ours);
  return status;
}

/* The device whose context is current in this thread; 0 without one. */
static int32_t current_device(void) {
  Driver* driver = the_driver();
  int handle = 0;
  if (driver == NULL || driver->api.context_device == NULL || driver->api.context_device(&handle) != SUCCESS) return 0;
  for (int k = 0; k < driver->num_devices; k++) {
    int its = -1;
    if (driver->api.device_get(&its, k) == SUCCESS && its == handle) return k;
  }
  return 0;
}

EXPORT int32_t lw_cuda_driver_version(void) { return current == NULL ? 0 : current->version; }

EXPORT int32_t lw_cuda_device_count(void) { return current == NULL ? 0 : current->num_devices; }

/* A CUdevice_attribute by its number. */
EXPORT int32_t lw_cuda_device_attribute(int32_t number, int32_t attribute, int32_t* value) {
  Device* device = find_device(number);
  if (device == NULL) return -1;
  Status status = device->driver->api.device_attribute(value, attribute, device->handle);
  return status == SUCCESS ? 0 : failed(device, status, "cuDeviceGetAttribute", NULL);
}

EXPORT int32_t lw_cuda_device_name(int32_t number, char* name, int32_t bytes) {
  Device* device = find_device(number);
  if (device == NULL) return -1;
  Status status = device->driver->api.device_name(name, bytes, device->handle);
  return status == SUCCESS ? 0 : failed(device, status, "cuDeviceGetName", NULL);
}

/* Bytes: free, of the whole device, taken from it by our pool, and of those in use. */
EXPORT int32_t lw_cuda_memory(int32_t number, int64_t* bytes) {
  Entered entered;
  if (enter(&entered, number) != 0) return -1;
  Device* device = entered.device;
  Api* api = &device->driver->api;
  size_t free = 0, total = 0;
  uint64_t reserved = 0, used = 0;
  Status status = api->memory_info(&free, &total);
  if (device->pool != NULL && api->pool_get != NULL) {
    api->pool_get(device->pool, POOL_RESERVED, &reserved);
    api->pool_get(device->pool, POOL_USED, &used);
  }
  bytes[0] = (int64_t)free, bytes[1] = (int64_t)total, bytes[2] = (int64_t)reserved, bytes[3] = (int64_t)used;
  return leave(&entered, status == SUCCESS ? 0 : failed(device, status, "cuMemGetInfo", NULL));
}
