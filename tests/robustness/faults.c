/* Lets calls fail that change files of one folder: preload it, call faults_under, then faults_arm.
 *
 * Calls are counted from faults_arm on, in the order in which they come. From the call with the number `first` on,
 * `count` calls fail:
 *
 *     'w'  writes, truncations, new files, renames: with ENOSPC, as on a full disk
 *     'e'  the same with EIO, as on a broken disk
 *     's'  writes take half of what they are given (and tell so), as before a full disk
 *     'y'  fsync and fdatasync: with EIO
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[4096];
static size_t folder_length;
static atomic_long calls;
static atomic_long failed;
static long from = -1, until;
static char kind;

void faults_under(const char *path) {
  folder_length = strlen(path);
  memcpy(folder, path, folder_length + 1);
}

void faults_arm(char what, long first, long count) {
  atomic_store(&calls, 0);
  atomic_store(&failed, 0);
  kind = what;
  until = first + count;
  from = first;
}

long faults_calls(void) { return atomic_load(&calls); }
long faults_failed(void) { return atomic_load(&failed); }

static int is_ours(const char *path) {
  return folder_length && strncmp(path, folder, folder_length) == 0;
}

static int is_our_file(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return is_ours(path);
}

/* Whether this call, which is of one of the `kinds`, is to fail. */
static int fails(const char *kinds) {
  if (from < 0 || !strchr(kinds, kind)) return 0;
  long number = atomic_fetch_add(&calls, 1);
  if (number < from || number >= until) return 0;
  atomic_fetch_add(&failed, 1);
  errno = kind == 'w' ? ENOSPC : EIO;
  return 1;
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define SYNC(name) \
  int name(int file) { \
    REAL(name); \
    return is_our_file(file) && fails("y") ? -1 : real(file); \
  }
SYNC(fsync)
SYNC(fdatasync)

#define WRITE(name, parameters, arguments, half) \
  ssize_t name parameters { \
    REAL(name); \
    if (is_our_file(file) && fails("wes")) { \
      if (kind != 's') return -1; \
      half \
    } \
    return real arguments; \
  }
WRITE(write, (int file, const void *bytes, size_t size), (file, bytes, size), if (size > 1) size /= 2;)
WRITE(pwrite, (int file, const void *bytes, size_t size, off_t at), (file, bytes, size, at), if (size > 1) size /= 2;)
WRITE(pwrite64, (int file, const void *bytes, size_t size, off64_t at), (file, bytes, size, at), if (size > 1) size /= 2;)
WRITE(writev, (int file, const struct iovec *parts, int count), (file, parts, count), if (count > 1) count /= 2;)
WRITE(pwritev, (int file, const struct iovec *parts, int count, off_t at), (file, parts, count, at), if (count > 1) count /= 2;)
WRITE(pwritev64, (int file, const struct iovec *parts, int count, off64_t at), (file, parts, count, at), if (count > 1) count /= 2;)

#define CUT(name, type) \
  int name(int file, type size) { \
    REAL(name); \
    return is_our_file(file) && fails("we") ? -1 : real(file, size); \
  }
CUT(ftruncate, off_t)
CUT(ftruncate64, off64_t)

int rename(const char *before, const char *after) {
  REAL(rename);
  return is_ours(after) && fails("we") ? -1 : real(before, after);
}

#define OPEN(name) \
  int name(const char *path, int flags, ...) { \
    REAL(name); \
    va_list more; \
    va_start(more, flags); \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
    va_end(more); \
    if (flags & O_CREAT && is_ours(path) && access(path, F_OK) != 0 && fails("we")) return -1; \
    return real(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)
