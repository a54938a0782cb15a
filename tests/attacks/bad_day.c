/* A disk that is slow and a clock that jumps, for one process and its children: preloaded, so that whatever writes
   (Python, Arrow, SQLite) meets it.

   SLOW_DISK   the folder that is slow
   SLOW_WRITE  milliseconds for each write to a file in it
   SLOW_READ   milliseconds for each read from it
   SLOW_SYNC   milliseconds until what was written is on disk
   CLOCK_JUMP  seconds by which the wall clock jumps, forth and back, about every twentieth time it is read */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int waits(int handle, const char *how_long) {
    const char *folder = getenv("SLOW_DISK"), *wait = getenv(how_long);
    char name[64], path[4096];
    if (!folder || !wait) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0 || strncmp(path, folder, strlen(folder))) return 0;
    return atoi(wait);
}

static void sleep_all(int milliseconds) { /* a disk does not hurry because someone presses Ctrl-C */
    int kept = errno;
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    while (nanosleep(&left, &left) && errno == EINTR) {}
    errno = kept;
}

#define SLOW(type, name, how_long, parameters, arguments)                  \
    type name parameters {                                                 \
        static type(*real) parameters;                                     \
        if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name);     \
        sleep_all(waits(handle, how_long));                                \
        return real arguments;                                             \
    }

SLOW(ssize_t, write, "SLOW_WRITE", (int handle, const void *from, size_t count), (handle, from, count))
SLOW(ssize_t, pwrite, "SLOW_WRITE", (int handle, const void *from, size_t count, off_t at), (handle, from, count, at))
SLOW(ssize_t, pwrite64, "SLOW_WRITE", (int handle, const void *from, size_t count, off64_t at), (handle, from, count, at))
SLOW(ssize_t, read, "SLOW_READ", (int handle, void *to, size_t count), (handle, to, count))
SLOW(int, fsync, "SLOW_SYNC", (int handle), (handle))
SLOW(int, fdatasync, "SLOW_SYNC", (int handle), (handle))

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    static int asked;
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(clock, time);
    const char *jump = getenv("CLOCK_JUMP");
    if (jump && clock == CLOCK_REALTIME) time->tv_sec += (++asked / 20 % 3 - 1) * atol(jump);
    return done;
}
