/* What the parts of the CUDA runtime share; `cuda.c` includes them, as one translation unit. */
#ifndef LW_CUDA_H
#define LW_CUDA_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_api.h"

#define EXPORT __attribute__((visibility("default")))
#define MAX_DEVICES 32
#define MAX_STREAMS 32
#define NUM_RECENT 8
#define OLDEST_DRIVER 11020 /* CUDA 11.2: stream-ordered memory */

typedef struct Driver Driver;
typedef struct Module Module;
typedef struct Kernel Kernel;

typedef struct {
  Driver* driver;
  int number, handle;
  _Atomic int is_ready; /* what follows is set */
  void* context;        /* the primary one, which other libraries of the process share */
  void* pool;           /* NULL: the driver has none for this device */
  int max_threads, max_block[3], max_grid[3];
  int max_shared, compute_capability; /* 90 for 9.0 */
  void* streams[MAX_STREAMS];         /* into which work was put, whose end a free has to await */
  _Atomic int num_streams;            /* MAX_STREAMS + 1: more than we keep */
  const char* recent[NUM_RECENT];     /* kernels launched since the device was last waited for */
  _Atomic uint32_t num_recent;
} Device;

struct Driver { /* never given back: tensors outlive a second `lw_cuda_open`, which only tests do */
  char path[512];
  Api api;
  int version, num_devices;
  pthread_mutex_t lock;
  Device devices[MAX_DEVICES];
  Module* modules;
};

/* What generated code holds, and lays out so. */
typedef struct {
  const void* data;
  int64_t bytes;
  int32_t arch;  /* 90 for sm_90 */
  int32_t flags; /* IMAGE_… */
} Image;
enum { IMAGE_IS_PTX = 1, IMAGE_IS_EXACT = 2 }; /* exact: sm_90a, which no other device runs */

typedef struct {
  const Image* images;
  int64_t count;
  Module* module; /* of `driver`, both filled in by the first launch */
  Driver* driver;
} EmbeddedImages;

typedef struct {
  EmbeddedImages* images;
  const char *name, *arguments;
  Kernel* kernel; /* of `driver`, as above */
  _Atomic(Driver*) driver;
} EmbeddedKernel;

/* tvm-ffi, and last_error.c: in the programs that have them. */
extern int TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) __attribute__((weak));
extern void* TVMFFIEnvGetStream(int32_t device_type, int32_t device) __attribute__((weak));
extern void loopwright_set_error(const char* kind, const char* message) __attribute__((weak));

/* cuda_errors.c */
static int fail(const char* kind, const char* why, const char* hint, const char* problem, ...)
    __attribute__((format(printf, 4, 5)));
static int failed(Device* device, Status status, const char* call, const char* about);
static void forget_error(void);

/* cuda_device.c */
typedef struct {
  Device* device;
  int pushed; /* our context lies above that of another device, which `leave` brings back */
} Entered;
static int enter(Entered* entered, int32_t number);
static int leave(Entered* entered, int status);
static void note_stream(Device* device, void* stream);

#endif
