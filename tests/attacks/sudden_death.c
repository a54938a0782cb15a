/* A process that is killed at a chosen moment of its writing: preloaded, so that whatever writes meets it.

   DYING_DISK  the folder whose writes are counted: writes, flushes, renames and removals
   DYING_AT    the one that it does not survive; a write is half done then */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int counted;

int disk_events(void) { return counted; }

static int in_folder(const char *path) {
    const char *folder = getenv("DYING_DISK");
    return folder && !strncmp(path, folder, strlen(folder));
}

static int is_open_in_folder(int handle) {
    char name[64], path[4096];
    if (!getenv("DYING_DISK")) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(name, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return in_folder(path);
}

static int is_at(int folder, const char *path) { return path[0] == '/' ? in_folder(path) : is_open_in_folder(folder); }

static int is_last(int concerned) {
    const char *at = getenv("DYING_AT");
    return concerned && ++counted == (at ? atoi(at) : 0);
}

#define EVENT(type, name, parameters, arguments, concerned, half)      \
    type name parameters {                                             \
        static type(*real) parameters;                                 \
        if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name); \
        if (is_last(concerned)) {                                      \
            half;                                                      \
            kill(getpid(), SIGKILL);                                   \
        }                                                              \
        return real arguments;                                         \
    }

EVENT(ssize_t, write, (int handle, const void *from, size_t count), (handle, from, count), is_open_in_folder(handle),
      real(handle, from, count / 2))
EVENT(ssize_t, pwrite, (int handle, const void *from, size_t count, off_t at), (handle, from, count, at),
      is_open_in_folder(handle), real(handle, from, count / 2, at))
EVENT(ssize_t, pwrite64, (int handle, const void *from, size_t count, off64_t at), (handle, from, count, at),
      is_open_in_folder(handle), real(handle, from, count / 2, at))
EVENT(int, fsync, (int handle), (handle), is_open_in_folder(handle), )
EVENT(int, fdatasync, (int handle), (handle), is_open_in_folder(handle), )
EVENT(int, rename, (const char *from, const char *to), (from, to), in_folder(from), )
EVENT(int, renameat2, (int a, const char *from, int b, const char *to, unsigned how), (a, from, b, to, how), is_at(a, from), )
EVENT(int, unlink, (const char *path), (path), in_folder(path), )
EVENT(int, unlinkat, (int folder, const char *path, int how), (folder, path, how), is_at(folder, path), )
EVENT(int, rmdir, (const char *path), (path), in_folder(path), )
