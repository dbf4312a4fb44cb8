// Loaded into every process of a command (LD_PRELOAD): appends each file that is opened, for
// reading or writing and with success, to the file that OUTRIDER_OPENS names. One line: program,
// tab, path. Folders are not noted: CMake looks through all that are near $PATH. What a program
// opens by system calls of its own, or when linked statically, is not seen.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// By descriptor, so that links and relative paths are resolved by who knows them: the kernel.
static void note(int descriptor) {
  const char* log = getenv("OUTRIDER_OPENS");
  const int before = errno;
  struct stat about;
  if (log == NULL || descriptor < 0) return;
  if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
    errno = before;
    return;
  }
  char link[64], line[2 * PATH_MAX];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
  int n = snprintf(line, PATH_MAX, "%s\t", program_invocation_short_name);
  const ssize_t length = readlink(link, line + n, PATH_MAX);
  if (length > 0) {
    line[n + length] = '\n';
    const long out =
        syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (out >= 0) {
      if (write((int)out, line, (size_t)(n + length + 1)) < 0) abort();
      close((int)out);
    }
  }
  errno = before;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static mode_t mode_of(int flags, va_list rest) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? (mode_t)va_arg(rest, int) : 0;
}

#define OPEN(name)                                                \
  int name(const char* path, int flags, ...) {                    \
    va_list rest;                                                 \
    va_start(rest, flags);                                        \
    const int fd = REAL(name)(path, flags, mode_of(flags, rest)); \
    va_end(rest);                                                 \
    note(fd);                                                     \
    return fd;                                                    \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                  \
  int name(int at, const char* path, int flags, ...) {                \
    va_list rest;                                                     \
    va_start(rest, flags);                                            \
    const int fd = REAL(name)(at, path, flags, mode_of(flags, rest)); \
    va_end(rest);                                                     \
    note(fd);                                                         \
    return fd;                                                        \
  }
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(name)                                \
  FILE* name(const char* path, const char* mode) { \
    FILE* file = REAL(name)(path, mode);           \
    if (file != NULL) note(fileno(file));          \
    return file;                                   \
  }
FOPEN(fopen)
FOPEN(fopen64)
