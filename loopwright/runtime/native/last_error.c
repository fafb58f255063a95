/* The last error of a plain C program, for libraries that Loopwright exports.
 *
 * Compiled code reports errors to tvm-ffi where the program has it. Elsewhere they come here, and a caller that got a
 * status other than 0 asks for the text. It is kept per thread, and cut at LONGEST bytes. */
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define LONGEST 1024

static __thread char last_error[LONGEST];

EXPORT void loopwright_set_error(const char* kind, const char* message) {
  int start = snprintf(last_error, LONGEST, "%s: ", kind);
  if (start < 0 || start >= LONGEST) return;
  char* to = last_error + start;
  char* end = last_error + LONGEST - 1;
  for (int part = 0; *message != 0 && to < end; message++) {
    if (*message != 0x1f) { /* separates what is wrong from why and from what helps */
      *to++ = *message;
      continue;
    }
    const char* label = part++ == 0 ? "; " : "; hint: ";
    if (message[1] == 0x1f || message[1] == 0) continue; /* an empty part */
    for (; *label != 0 && to < end; label++) *to++ = *label;
  }
  *to = 0;
}

/* What the last call of this thread that failed had to say; empty before the first. */
EXPORT const char* loopwright_last_error(void) { return last_error; }
