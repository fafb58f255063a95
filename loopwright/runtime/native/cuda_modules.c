/* Kernels: images registered by content, loaded on a device when the first of their kernels is launched there. */
#include "cuda.h"

struct Module {
  Module* next;
  Driver* driver;
  Kernel* kernels;
  Image* images; /* copies */
  int32_t num_images, users;
  uint64_t hash;
  void* loaded[MAX_DEVICES];
  char* notes[MAX_DEVICES];        /* why another image than the best one was taken */
  char is_note_new[MAX_DEVICES];   /* and the user does not know yet */
};

typedef struct {
  void* _Atomic function; /* set when what follows is */
  int max_threads, static_shared, registers;
  _Atomic int max_dynamic; /* bytes of dynamic shared memory that were asked for so far */
} LoadedKernel;

struct Kernel {
  Kernel* next;
  Module* module;
  const char* name;      /* never freed: errors name kernels of modules that are gone */
  const char* arguments; /* "*A *B &C n": a pointer has a star, a tensor map an ampersand */
  LoadedKernel on[MAX_DEVICES];
};

static uint64_t hash_of(const Image* images, int32_t count) {
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (int32_t k = 0; k < count; k++)
    for (int64_t i = 0; i < images[k].bytes; i++) hash = (hash ^ ((const unsigned char*)images[k].data)[i]) * 1099511628211u;
  return hash;
}

static int same_images(const Module* module, const Image* images, int32_t count) {
  if (module->num_images != count) return 0;
  for (int32_t k = 0; k < count; k++) {
    const Image* mine = &module->images[k];
    if (mine->bytes != images[k].bytes || mine->arch != images[k].arch || mine->flags != images[k].flags ||
        memcmp(mine->data, images[k].data, (size_t)mine->bytes) != 0)
      return 0;
  }
  return 1;
}

static Module* module_of(Driver* driver, const Image* images, int64_t given) {
  const int32_t count = (int32_t)given;
  uint64_t hash = hash_of(images, count);
  pthread_mutex_lock(&driver->lock);
  Module* module = driver->modules;
  while (module != NULL && (module->hash != hash || !same_images(module, images, count))) module = module->next;
  if (module == NULL) {
    module = calloc(1, sizeof *module);
    *module = (Module){.next = driver->modules, .driver = driver, .num_images = count, .hash = hash};
    module->images = calloc((size_t)count, sizeof *images);
    for (int32_t k = 0; k < count; k++) {
      char* data = calloc(1, (size_t)images[k].bytes + 1); /* PTX is text, which ends with a 0 */
      memcpy(data, images[k].data, (size_t)images[k].bytes);
      module->images[k] = images[k];
      module->images[k].data = data;
    }
    driver->modules = module;
  }
  module->users++;
  pthread_mutex_unlock(&driver->lock);
  return module;
}

/* The module of these images, which are copied; nothing is loaded yet. NULL, and an error, where no driver is open. */
EXPORT Module* lw_cuda_module(const Image* images, int32_t count) {
  Driver* driver = the_driver();
  return driver == NULL ? NULL : module_of(driver, images, count);
}

/* Give up one use of a module; with the last one it is unloaded, and its kernels are gone. */
EXPORT void lw_cuda_module_release(Module* module) {
  Driver* driver = module->driver;
  pthread_mutex_lock(&driver->lock);
  int is_last = --module->users == 0;
  for (Module** link = &driver->modules; is_last && *link != NULL; link = &(*link)->next)
    if (*link == module) {
      *link = module->next;
      break;
    }
  pthread_mutex_unlock(&driver->lock);
  if (!is_last) return;
  for (int k = 0; k < driver->num_devices; k++) {
    Entered entered;
    if (module->loaded[k] != NULL && !is_forked && enter_device(&entered, &driver->devices[k]) == 0) {
      driver->api.context_synchronize(); /* a kernel of it may run */
      driver->api.module_unload(module->loaded[k]);
      leave(&entered, 0);
    }
    free(module->notes[k]);
  }
  for (Kernel *kernel = module->kernels, *next; kernel != NULL; kernel = next) {
    next = kernel->next;
    free((char*)kernel->arguments);
    free(kernel);
  }
  for (int32_t k = 0; k < module->num_images; k++) free((void*)module->images[k].data);
  free(module->images);
  free(module);
}

/* The kernel of that name, whether or not the images have it: that shows when it is loaded. `arguments` are the names of
 * its arguments, as in "*A *B &C n", for errors; a star marks a pointer, an ampersand a tensor map. */
EXPORT Kernel* lw_cuda_kernel(Module* module, const char* name, const char* arguments) {
  pthread_mutex_lock(&module->driver->lock);
  Kernel* kernel = module->kernels;
  while (kernel != NULL && strcmp(kernel->name, name) != 0) kernel = kernel->next;
  if (kernel == NULL) {
    kernel = calloc(1, sizeof *kernel);
    kernel->module = module;
    kernel->name = strdup(name);
    kernel->arguments = strdup(arguments == NULL ? "" : arguments);
    kernel->next = module->kernels;
    module->kernels = kernel;
  }
  pthread_mutex_unlock(&module->driver->lock);
  return kernel;
}

/* ---- Loading ---------------------------------------------------------------------------------------------------- */

/* How well an image suits a device: 0 not at all; PTX, which the driver has to compile, behind every binary. */
static int suits(const Image* image, int capability) {
  if (image->flags & IMAGE_IS_EXACT) return image->arch == capability ? (image->flags & IMAGE_IS_PTX ? 3000 : 6000) : 0;
  if (image->arch > capability) return 0;
  if (image->flags & IMAGE_IS_PTX) return 1000 + image->arch;
  return image->arch / 10 == capability / 10 ? 4000 + image->arch : 0;
}

static void list_images(const Module* module, char* to, size_t bytes) {
  size_t length = 0;
  for (int32_t k = 0; k < module->num_images && length < bytes; k++) {
    const Image* image = &module->images[k];
    length += (size_t)snprintf(to + length, bytes - length, "%s%s%d%s", k ? ", " : "",
                               image->flags & IMAGE_IS_PTX ? "PTX for compute_" : "sm_", image->arch,
                               image->flags & IMAGE_IS_EXACT ? "a" : "");
  }
}

static const char* load_hint(Status status) {
  if (status == UNSUPPORTED_PTX_VERSION) return "install a newer NVIDIA driver, or build for the architecture of this GPU";
  if (status == NO_BINARY_FOR_GPU) return "build for the architecture of this GPU";
  return "build the kernel again";
}

/* Why the image that was loaded is not machine code for this device, where the module has such for others. */
static void note_choice(Device* device, Module* module, const Image* chosen, const char* refused) {
  char images[256] = "", text[1280];
  int num_binaries = 0;
  for (int32_t k = 0; k < module->num_images; k++) num_binaries += !(module->images[k].flags & IMAGE_IS_PTX);
  list_images(module, images, sizeof images);
  if (*refused != 0)
    snprintf(text, sizeof text, "%s", refused);
  else if ((chosen->flags & IMAGE_IS_PTX) && num_binaries > 0)
    snprintf(text, sizeof text, "the kernels were built for %s, and cuda(%d) is sm_%d: the driver compiled them from PTX",
             images, device->number, device->compute_capability);
  else
    return;
  module->notes[device->number] = strdup(text);
  module->is_note_new[device->number] = 1;
}

/* Load the image that suits best; where the driver refuses that one, the next, with a note. */
static int load_module(Device* device, Module* module) {
  Api* api = &device->driver->api;
  const int capability = device->compute_capability;
  int32_t tried = 0, worst = 1 << 30;
  char refused[768] = "", log[512];
  Status status = NO_BINARY_FOR_GPU;
  for (;; tried++) {
    const Image* best = NULL;
    int score = 0;
    for (int32_t k = 0; k < module->num_images; k++) {
      int its = suits(&module->images[k], capability);
      if (its > score && its < worst) best = &module->images[k], score = its;
    }
    if (best == NULL) break;
    log[0] = 0;
    int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
    void* values[] = {log, (void*)sizeof log};
    status = api->module_load(&module->loaded[device->number], best->data, 2, options, values);
    if (status == SUCCESS) {
      note_choice(device, module, best, refused);
      return 0;
    }
    if (is_sticky(status) || status == OUT_OF_MEMORY) return failed(device, status, "cuModuleLoadDataEx", NULL);
    const char* name = NULL;
    api->error_name(status, &name);
    size_t length = strlen(refused);
    snprintf(refused + length, sizeof refused - length, "%s%s%d%s: %s%s%s", length ? "; " : "",
             best->flags & IMAGE_IS_PTX ? "PTX for compute_" : "sm_", best->arch,
             best->flags & IMAGE_IS_EXACT ? "a" : "", name ? name : "refused", log[0] ? " " : "", log);
    worst = score;
  }
  char images[256] = "";
  list_images(module, images, sizeof images);
  if (tried == 0)
    return fail("KernelImageRefused", "", load_hint(NO_BINARY_FOR_GPU), "the kernels were built for %s, and cuda(%d) is sm_%d",
                images, device->number, capability);
  return fail("KernelImageRefused", refused, load_hint(status), "the driver (CUDA %d.%d) loads no image of the kernels on cuda(%d), sm_%d",
              device->driver->version / 1000, device->driver->version % 1000 / 10, device->number, capability);
}

static int load_kernel(Device* device, Kernel* kernel) {
  Api* api = &device->driver->api;
  Module* module = kernel->module;
  LoadedKernel* loaded = &kernel->on[device->number];
  if (loaded->function != NULL) return 0; /* by another thread, meanwhile */
  if (module->loaded[device->number] == NULL && load_module(device, module) != 0) return -1;
  void* function = NULL;
  Status status = api->module_function(&function, module->loaded[device->number], kernel->name);
  if (status == NOT_FOUND)
    return fail("KernelImageRefused", "", "a kernel needs extern \"C\" for its name to be found", "the image has no kernel %s",
                kernel->name);
  if (status == SUCCESS) status = api->function_get(&loaded->max_threads, FUNCTION_MAX_THREADS, function);
  if (status == SUCCESS) status = api->function_get(&loaded->static_shared, FUNCTION_SHARED_BYTES, function);
  if (status == SUCCESS) status = api->function_get(&loaded->registers, FUNCTION_REGISTERS, function);
  if (status != SUCCESS) return failed(device, status, "cuModuleGetFunction", kernel->name);
  loaded->function = function;
  return 0;
}

static LoadedKernel* loaded_kernel(Device* device, Kernel* kernel) {
  LoadedKernel* loaded = &kernel->on[device->number];
  if (loaded->function != NULL) return loaded;
  Module* module = kernel->module;
  pthread_mutex_lock(&device->driver->lock);
  int status = load_kernel(device, kernel), is_new = module->is_note_new[device->number];
  module->is_note_new[device->number] = 0;
  pthread_mutex_unlock(&device->driver->lock);
  /* Not before: whoever is told may wait for a thread that waits for this lock. */
  if (is_new && tell_user != NULL) tell_user(module->notes[device->number]);
  return status == 0 ? loaded : NULL;
}

/* Load the kernel now. Then, if wanted: its most threads a block, static shared bytes, registers of a thread. */
EXPORT int32_t lw_cuda_kernel_load(Kernel* kernel, int32_t number, int32_t* figures) {
  ENTER_OR_FAIL(number);
  LoadedKernel* loaded = loaded_kernel(device, kernel);
  if (loaded != NULL && figures != NULL)
    figures[0] = loaded->max_threads, figures[1] = loaded->static_shared, figures[2] = loaded->registers;
  return leave(&entered, loaded == NULL ? -1 : 0);
}

/* Why the module that is loaded on the device is not the best of its images; NULL where it is, or none is loaded. */
EXPORT const char* lw_cuda_module_note(const Module* module, int32_t number) { return module->notes[number]; }
