/* Streams and events. NULL is the default stream, which waits for all that we make and is waited for by them. */
#include "cuda.h"

static void* (*_Atomic get_stream)(int32_t device_type, int32_t device); /* TVMFFIEnvGetStream */
static __thread void* stream_of_thread; /* in programs without tvm-ffi */
enum { DL_CUDA = 2 };

static void* current_stream(int32_t number) {
  if (get_stream != NULL) return get_stream(DL_CUDA, number);
  return TVMFFIEnvGetStream != NULL ? TVMFFIEnvGetStream(DL_CUDA, number) : stream_of_thread;
}

/* For programs in C: the stream that this thread puts the work of every device into. */
EXPORT void loopwright_set_cuda_stream(void* stream) { stream_of_thread = stream; }

/* Remember that work goes into `stream`, so that memory is not given away while that runs. */
static void note_stream(Device* device, void* stream) {
  int count = device->num_streams;
  for (int k = 0; k < count && k < MAX_STREAMS; k++)
    if (device->streams[k] == stream) return;
  pthread_mutex_lock(&device->driver->lock);
  count = device->num_streams;
  int known = count > MAX_STREAMS;
  for (int k = 0; k < count && k < MAX_STREAMS; k++) known |= device->streams[k] == stream;
  if (!known && count < MAX_STREAMS) device->streams[count] = stream;
  if (!known) device->num_streams = count + 1;
  pthread_mutex_unlock(&device->driver->lock);
}

static void forget_stream(Device* device, void* stream) { /* with the lock held */
  int count = device->num_streams;
  for (int k = 0; count <= MAX_STREAMS && k < count; k++)
    if (device->streams[k] == stream) {
      device->streams[k] = device->streams[count - 1];
      device->num_streams = count - 1;
      break;
    }
}

/* What comes into `stream` from now on waits for what is in `other` now. */
static Status wait_for(Device* device, void* stream, void* other) {
  Api* api = &device->driver->api;
  void* event = NULL;
  Status status = api->event_create(&event, EVENT_DISABLE_TIMING);
  if (status != SUCCESS) return status;
  status = api->event_record(event, other);
  if (status == SUCCESS) status = api->stream_wait_event(stream, event, 0);
  api->event_destroy(event); /* at once; the driver keeps it until the wait is over */
  return status;
}

#define ENTER_OR_FAIL(number)                   \
  Entered entered;                              \
  if (enter(&entered, number) != 0) return -1;  \
  Device* device = entered.device;              \
  Api* api = &device->driver->api;              \
  (void)api
#define LEAVE(status, call) return leave(&entered, (status) == SUCCESS ? 0 : failed(device, status, call, NULL))

EXPORT int32_t lw_cuda_stream_create(int32_t number, void** stream) {
  ENTER_OR_FAIL(number);
  Status status = api->stream_create(stream, STREAM_DEFAULT);
  LEAVE(status, "cuStreamCreate");
}

EXPORT int32_t lw_cuda_stream_destroy(int32_t number, void* stream) {
  ENTER_OR_FAIL(number);
  Status status = api->stream_synchronize(stream); /* memory may have been taken in it, and is freed elsewhere then */
  pthread_mutex_lock(&device->driver->lock); /* a free in another thread may be about to wait for it */
  forget_stream(device, stream);
  Status last = api->stream_destroy(stream);
  pthread_mutex_unlock(&device->driver->lock);
  LEAVE(status == SUCCESS ? last : status, "cuStreamDestroy");
}

EXPORT int32_t lw_cuda_stream_synchronize(int32_t number, void* stream) {
  ENTER_OR_FAIL(number);
  Status status = api->stream_synchronize(stream);
  LEAVE(status, "cuStreamSynchronize");
}

/* Wait for everything on the device. */
EXPORT int32_t lw_cuda_synchronize(int32_t number) {
  ENTER_OR_FAIL(number);
  Status status = api->context_synchronize();
  if (status == SUCCESS) device->num_recent = 0;
  LEAVE(status, "cuCtxSynchronize");
}

/* What comes into `stream` from now on waits for what is in `other` now; both count as streams that use our memory. */
EXPORT int32_t lw_cuda_stream_wait(int32_t number, void* stream, void* other) {
  ENTER_OR_FAIL(number);
  note_stream(device, stream);
  Status status = stream == other ? SUCCESS : wait_for(device, stream, other);
  LEAVE(status, "cuStreamWaitEvent");
}

EXPORT int32_t lw_cuda_event_create(int32_t number, void** event) {
  ENTER_OR_FAIL(number);
  Status status = api->event_create(event, EVENT_DEFAULT);
  LEAVE(status, "cuEventCreate");
}

EXPORT int32_t lw_cuda_event_destroy(int32_t number, void* event) {
  ENTER_OR_FAIL(number);
  Status status = api->event_destroy(event);
  LEAVE(status, "cuEventDestroy");
}

EXPORT int32_t lw_cuda_event_record(int32_t number, void* event, void* stream) {
  ENTER_OR_FAIL(number);
  Status status = api->event_record(event, stream);
  LEAVE(status, "cuEventRecord");
}

/* Wait for `end`; the milliseconds since `start`, to half a microsecond. */
EXPORT int32_t lw_cuda_event_elapsed(int32_t number, void* start, void* end, double* milliseconds) {
  ENTER_OR_FAIL(number);
  float elapsed = 0;
  Status status = api->event_synchronize(end);
  if (status == SUCCESS) status = api->event_elapsed(&elapsed, start, end);
  *milliseconds = elapsed;
  LEAVE(status, "cuEventElapsedTime");
}
