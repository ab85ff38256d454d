/*
 * Records what a process and its children write to a database and its write-ahead log, and what they flush to disk, so
 * that a test can build the files that a power failure would have left at any moment (see images.ts). Preloaded with
 * LD_PRELOAD, with two variables of the environment:
 *
 *   WRITE_RECORD_FILE      the record, to which every process and the test append
 *   WRITE_RECORD_DATABASE  the database; its log is the same path with "-wal"
 *
 * An operation is appended when it has succeeded and before the call returns. A flush has a record before and one after
 * it: what was recorded before the first one is on disk once there is the second one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, TRUNCATE = 2, FLUSH_BEGIN = 3, FLUSH_END = 4 };
enum { NOT_RECORDED = -1, DATABASE = 0, LOG = 1 };

struct header {
  uint32_t kind;
  uint32_t file;
  /* Of a write: where. Of a truncation: the new size. Of a flush: its number. */
  uint64_t value;
  uint64_t length;
};

static int record = -1;
static char database[4096];
static uint64_t flushes = 0;

__attribute__((constructor)) static void start(void) {
  const char *file = getenv("WRITE_RECORD_FILE");
  const char *path = getenv("WRITE_RECORD_DATABASE");
  if (file == NULL || path == NULL || strlen(path) >= sizeof database) return;
  strcpy(database, path);
  record = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (record < 0) abort();
}

static int file_of(int fd) {
  if (record < 0 || fd <= 2) return NOT_RECORDED;
  char link[64], path[4096];
  char *end = stpcpy(link, "/proc/self/fd/");
  char digits[16];
  int n = 0;
  for (int rest = fd; rest > 0; rest /= 10) digits[n++] = '0' + rest % 10;
  while (n > 0) *end++ = digits[--n];
  *end = 0;
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return NOT_RECORDED;
  path[length] = 0;
  size_t name = strlen(database);
  if (strncmp(path, database, name) != 0) return NOT_RECORDED;
  if (path[name] == 0) return DATABASE;
  return strcmp(path + name, "-wal") == 0 ? LOG : NOT_RECORDED;
}

/* One call, so that records of several threads and processes are not mixed. A record that fails would falsify the test. */
static void append(uint32_t kind, int file, uint64_t value, const void *data, uint64_t length) {
  struct header header = {kind, (uint32_t)file, value, length};
  struct iovec parts[2] = {{&header, sizeof header}, {(void *)data, length}};
  ssize_t all = (ssize_t)(sizeof header + length);
  if (syscall(SYS_writev, record, parts, length > 0 ? 2 : 1) != all) abort();
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t at) {
  static __typeof__(&pwrite64) next;
  if (next == NULL) next = NEXT(pwrite64);
  ssize_t written = next(fd, data, length, at);
  int file = written > 0 ? file_of(fd) : NOT_RECORDED;
  if (file != NOT_RECORDED) append(WRITE, file, (uint64_t)at, data, (uint64_t)written);
  return written;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t at) { return pwrite64(fd, data, length, at); }

ssize_t write(int fd, const void *data, size_t length) {
  static __typeof__(&write) next;
  if (next == NULL) next = NEXT(write);
  ssize_t written = next(fd, data, length);
  int file = written > 0 ? file_of(fd) : NOT_RECORDED;
  if (file != NOT_RECORDED) append(WRITE, file, (uint64_t)(lseek64(fd, 0, SEEK_CUR) - written), data, (uint64_t)written);
  return written;
}

int ftruncate64(int fd, off64_t size) {
  static __typeof__(&ftruncate64) next;
  if (next == NULL) next = NEXT(ftruncate64);
  int result = next(fd, size);
  int file = result == 0 ? file_of(fd) : NOT_RECORDED;
  if (file != NOT_RECORDED) append(TRUNCATE, file, (uint64_t)size, NULL, 0);
  return result;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static int flush(int fd, int (*next)(int)) {
  int file = file_of(fd);
  if (file == NOT_RECORDED) return next(fd);
  uint64_t number = ((uint64_t)getpid() << 32) | __atomic_add_fetch(&flushes, 1, __ATOMIC_SEQ_CST);
  append(FLUSH_BEGIN, file, number, NULL, 0);
  int result = next(fd);
  if (result == 0) append(FLUSH_END, file, number, NULL, 0);
  return result;
}

int fsync(int fd) {
  static __typeof__(&fsync) next;
  if (next == NULL) next = NEXT(fsync);
  return flush(fd, next);
}

int fdatasync(int fd) {
  static __typeof__(&fdatasync) next;
  if (next == NULL) next = NEXT(fdatasync);
  return flush(fd, next);
}
