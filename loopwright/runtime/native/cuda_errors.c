/* The last error of a thread: a class of `nvidia/errors.py` and its text, as `call_errors.py` reads it. */
#include "cuda.h"

#define LONGEST 2048
static __thread char error_kind[48];
static __thread char error_message[LONGEST];
static int (*_Atomic raise_error)(const char* kind, const char* message); /* TVMFFIErrorSetRaisedFromCStr */
static void (*_Atomic tell_user)(const char* text);                       /* what is no error */

static void forget_error(void) { error_kind[0] = error_message[0] = 0; }

/* Sets the error, for the caller's language too, and gives -1. */
static int fail(const char* kind, const char* why, const char* hint, const char* problem, ...) {
  char text[LONGEST / 2]; /* what is given may lie in `error_message` */
  va_list values;
  va_start(values, problem);
  vsnprintf(text, sizeof text, problem, values);
  va_end(values);
  char whole[LONGEST];
  snprintf(whole, sizeof whole, "%s\x1f%s\x1f%s", text, why ? why : "", hint ? hint : "");
  memcpy(error_message, whole, sizeof whole);
  snprintf(error_kind, sizeof error_kind, "%s", kind);
  if (raise_error != NULL)
    (void)raise_error(error_kind, error_message);
  else if (TVMFFIErrorSetRaisedFromCStr != NULL)
    (void)TVMFFIErrorSetRaisedFromCStr(error_kind, error_message);
  else if (loopwright_set_error != NULL)
    loopwright_set_error(error_kind, error_message);
  return -1;
}

static int is_sticky(Status status) {
  return status == ILLEGAL_ADDRESS || status == LAUNCH_TIMEOUT || status == ASSERT || status == CONTEXT_IS_DESTROYED ||
         (status >= HARDWARE_STACK_ERROR && status <= LAUNCH_FAILED);
}

static void recent_kernels(Device* device, char* to, size_t bytes) {
  uint32_t count = device->num_recent, shown = count < NUM_RECENT ? count : NUM_RECENT;
  size_t length = (size_t)snprintf(to, bytes, "launched on cuda(%d) since it was last waited for: %s", device->number,
                                   shown == 0 ? "no kernel of ours" : shown < count ? "…, " : "");
  for (uint32_t k = count - shown; k != count && length < bytes; k++)
    length += (size_t)snprintf(to + length, bytes - length, "%s%s", k == count - shown ? "" : ", ",
                               device->recent[k % NUM_RECENT]);
}

/* The error of a call of the driver; `about` is what it was for, such as "kernel add", or NULL. */
static int failed(Device* device, Status status, const char* call, const char* about) {
  const char *name = NULL, *text = NULL;
  device->driver->api.error_name(status, &name);
  device->driver->api.error_text(status, &text);
  const char* kind = status == OUT_OF_MEMORY ? "DeviceOutOfMemory" : is_sticky(status) ? "KernelFailed" : "CudaError";
  char why[512] = "";
  const char* hint = NULL;
  if (is_sticky(status)) {
    recent_kernels(device, why, sizeof why);
    hint = "this process cannot use the device any more: start it again, with LOOPWRIGHT_CUDA_CHECK=1 to wait for every "
           "kernel and so learn which one failed";
  }
  return fail(kind, why, hint, "%s%s%s on cuda(%d): %s (%s)", about ? about : "", about ? ": " : "", call,
              device->number, name ? name : "error unknown to the driver", text ? text : "no description");
}

static const char* last_error_kind(void) { return error_kind; }
static const char* last_error_message(void) { return error_message; }

/* The class and the text of this thread's last error; empty before the first. */
EXPORT const char* lw_cuda_error_kind(void) { return last_error_kind(); }
EXPORT const char* lw_cuda_error_message(void) { return last_error_message(); }
