/* Sets the clock of a process wrong: preload it, with CLOCK_FILE naming a file of eight bytes.
 *
 * The file holds by how many nanoseconds the time of day is ahead, as a signed number. It may be changed at any time.
 * Only the time of day is wrong: clocks that count from the start of the machine go on, as on a machine whose time is
 * set.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead;
static const int64_t nothing = 0;

__attribute__((constructor)) static void begin(void) {
  ahead = &nothing;
  const char *name = getenv("CLOCK_FILE");
  int file = name ? open(name, O_RDONLY) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) ahead = mapped;
  close(file);
}

static struct timespec shifted(struct timespec at) {
  int64_t nanoseconds = at.tv_sec * INT64_C(1000000000) + at.tv_nsec + (ahead ? *ahead : 0);
  at.tv_sec = nanoseconds / 1000000000;
  at.tv_nsec = nanoseconds % 1000000000;
  return at;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  static __typeof__(&clock_gettime) real;
  if (!real) real = (__typeof__(&clock_gettime))dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, at);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) *at = shifted(*at);
  return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  (void)zone;
  struct timespec now;
  int failed = clock_gettime(CLOCK_REALTIME, &now);
  if (!failed) *at = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
  return failed;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
