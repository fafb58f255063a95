/* Kernels that travel with compiled code, and the one runtime that all compiled code of a process calls.
 *
 * The table of images and a record for each kernel lie in the code; what the driver makes of them is filled in by the
 * first launch. So nothing happens when a library is loaded, and it loads where there is no driver.
 *
 * An exported library has a copy of this runtime. All copies in one process use the copy that was asked first, or that
 * of Python: memory is given back after the work of every stream, which only one of them can know. They find it through
 * one variable, as `thread_pool.c` explains. */
#include "cuda.h"

static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

static Kernel* embedded_kernel(EmbeddedKernel* embedded) {
  Driver* driver = the_driver();
  if (driver == NULL) return NULL;
  if (atomic_load_explicit(&embedded->driver, memory_order_acquire) == driver) return embedded->kernel;
  pthread_mutex_lock(&registering);
  EmbeddedImages* from = embedded->images;
  if (from->driver != driver) {
    from->module = module_of(driver, from->images, from->count);
    from->driver = driver;
  }
  embedded->kernel = lw_cuda_kernel(from->module, embedded->name, embedded->arguments);
  atomic_store_explicit(&embedded->driver, driver, memory_order_release);
  pthread_mutex_unlock(&registering);
  return embedded->kernel;
}

static int32_t launch_embedded(EmbeddedKernel* embedded, int32_t number, void* stream, const int64_t* size,
                               int64_t shared, void** arguments) {
  if (is_empty_launch(size)) return 0;
  Kernel* kernel = embedded_kernel(embedded);
  return kernel == NULL ? -1 : launch_kernel(kernel, number, stream, size, shared, arguments);
}

/* The code that holds the images is about to go. */
static void release_images(EmbeddedImages* images) {
  pthread_mutex_lock(&registering);
  Module* module = images->driver != NULL && images->driver == current ? images->module : NULL;
  images->driver = NULL;
  pthread_mutex_unlock(&registering);
  if (module != NULL) lw_cuda_module_release(module);
}

/* ---- One runtime in a process ------------------------------------------------------------------------------------ */

typedef struct {
  int64_t version; /* members are only ever added, at the end */
  int32_t (*launch)(EmbeddedKernel*, int32_t, void*, const int64_t*, int64_t, void**);
  int32_t (*alloc)(int32_t, int64_t, void*, void**);
  int32_t (*free)(int32_t, void*, void*);
  void* (*stream)(int32_t);
  int32_t (*device)(void);
  const char* (*error_kind)(void);
  const char* (*error_message)(void);
  int32_t (*tensor_map)(int32_t, void*, void*, const int64_t*, int32_t, int32_t, int32_t); /* from version 2 on */
} Runtime;

static const Runtime own_runtime = {2,           launch_embedded,    alloc_memory,   free_memory,    current_stream,
                                    current_device, last_error_kind, last_error_message, make_tensor_map};

#if defined(__GLIBC__) /* defined in assembly: C has no word for this kind of symbol */
__asm__(
    ".pushsection .data\n"
    ".balign 8\n"
    ".globl lw_process_cuda\n"
    ".type lw_process_cuda, %gnu_unique_object\n"
    "lw_process_cuda:\n"
    ".zero 8\n"
    ".size lw_process_cuda, 8\n"
    ".popsection\n");
extern EXPORT _Atomic(const Runtime*) lw_process_cuda;
#else
EXPORT _Atomic(const Runtime*) lw_process_cuda = NULL;
#endif

static const Runtime* runtime(void) {
  const Runtime* found = atomic_load_explicit(&lw_process_cuda, memory_order_acquire);
  if (found != NULL) return found;
  atomic_compare_exchange_strong(&lw_process_cuda, &found, &own_runtime);
  return found != NULL ? found : &own_runtime;
}

/* An error of another copy, for `loopwright_last_error` of this library. */
static int32_t told(const Runtime* from, int32_t status) {
  if (status != 0 && from != &own_runtime && TVMFFIErrorSetRaisedFromCStr == NULL && loopwright_set_error != NULL)
    loopwright_set_error(from->error_kind(), from->error_message());
  return status;
}

/* Launch a kernel of this code, as `lw_cuda_launch` does. */
EXPORT int32_t lw_cuda_launch_embedded(EmbeddedKernel* kernel, int32_t number, void* stream, const int64_t* size,
                                       int64_t shared, void** arguments) {
  const Runtime* from = runtime();
  return told(from, from->launch(kernel, number, stream, size, shared, arguments));
}

/* Memory in the order of `stream`; NULL for 0 bytes, or with an error. What the pool keeps unused is given up for it. */
EXPORT int32_t lw_cuda_alloc(int32_t number, int64_t bytes, void* stream, void** memory) {
  const Runtime* from = runtime();
  return told(from, from->alloc(number, bytes, stream, memory));
}

EXPORT int32_t lw_cuda_free(int32_t number, void* memory, void* stream) {
  const Runtime* from = runtime();
  return told(from, from->free(number, memory, stream));
}

/* Fill a tensor map for a kernel of device `number`: of the tensor at `data`, of `rank` dimensions; `sizes` are its shape,
 * its strides and the box of each copy, in elements. */
EXPORT int32_t lw_cuda_tensor_map(int32_t number, void* map, void* data, const int64_t* sizes, int32_t rank,
                                  int32_t element_bytes, int32_t swizzle) {
  const Runtime* from = runtime();
  if (from->version < 2) from = &own_runtime;
  return told(from, from->tensor_map(number, map, data, sizes, rank, element_bytes, swizzle));
}

/* The stream that this thread puts work into. */
EXPORT void* lw_cuda_stream(int32_t number) { return runtime()->stream(number); }

/* The device whose context is current in this thread, or 0: where functions work that get mere pointers. */
EXPORT int32_t lw_cuda_device(void) { return runtime()->device(); }

EXPORT void lw_cuda_images_release(EmbeddedImages* images) { release_images(images); }

/* From now on all compiled code of the process calls this copy. */
static void become_the_runtime(void) { atomic_store_explicit(&lw_process_cuda, &own_runtime, memory_order_release); }
