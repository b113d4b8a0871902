/* Loaded before the C library (LD_PRELOAD): counts the durable steps of a process, the calls that change or sync a file below a directory, and
 * lets one of them go wrong. A fault comes before its call, so that all earlier steps have happened and this one has not.
 *
 * SUPERKO_STEPS_DIR   the directory
 * SUPERKO_STEPS_LOG   one line a step is appended there: number, call, file
 * SUPERKO_STEPS_FAULT kill:N      the process dies as by kill -9 at step N
 *                     power:N     the file system of the directory is cut off as by a power failure (EXT4_IOC_SHUTDOWN), then the same
 *                     error:N:E   step N fails with errno E
 *                     errors:N:E  step N and all later ones fail with errno E
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXT4_IOC_SHUTDOWN 0x8004587DUL
#define NO_LOG_FLUSH 2

static const char *directory;
static int log_file = -1;
static enum { NONE, KILL, POWER, ONE_ERROR, ERRORS } fault;
static long fault_at, fault_errno;
static atomic_long steps;

__attribute__((constructor)) static void start(void) {
    directory = getenv("SUPERKO_STEPS_DIR");
    const char *log = getenv("SUPERKO_STEPS_LOG"), *text = getenv("SUPERKO_STEPS_FAULT");
    if (log)
        log_file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (!text)
        return;
    if (sscanf(text, "kill:%ld", &fault_at) == 1)
        fault = KILL;
    else if (sscanf(text, "power:%ld", &fault_at) == 1)
        fault = POWER;
    else if (sscanf(text, "error:%ld:%ld", &fault_at, &fault_errno) == 2)
        fault = ONE_ERROR;
    else if (sscanf(text, "errors:%ld:%ld", &fault_at, &fault_errno) == 2)
        fault = ERRORS;
}

/* Whether the call is to fail, with errno set. */
static int step(const char *call, const char *path) {
    if (!directory || !path || strncmp(path, directory, strlen(directory)))
        return 0;
    long number = atomic_fetch_add(&steps, 1) + 1;
    if (log_file >= 0) {
        char line[512];
        int length = snprintf(line, sizeof line, "%ld %s %s\n", number, call, path);
        syscall(SYS_write, log_file, line, length < (int)sizeof line ? length : (int)sizeof line);
    }
    if (fault == NONE || number < fault_at)
        return 0;
    if (fault == ONE_ERROR || fault == ERRORS) {
        if (fault == ONE_ERROR && number > fault_at)
            return 0;
        errno = fault_errno;
        return 1;
    }
    if (fault == POWER) {
        int opened = syscall(SYS_openat, AT_FDCWD, directory, O_RDONLY | O_CLOEXEC), flags = NO_LOG_FLUSH;
        if (opened < 0 || syscall(SYS_ioctl, opened, EXT4_IOC_SHUTDOWN, &flags))
            syscall(SYS_write, 2, "steps: no power cut\n", 20);
    }
    kill(getpid(), SIGKILL);
    pause();
    return 0;
}

static int step_of_file(const char *call, int file) {
    int saved = errno;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (length < 0)
        return 0;
    path[length] = 0;
    return step(call, path);
}

#define REAL(name) ((__typeof__(&name))real(&found, #name))
static void *real(void *_Atomic *found, const char *name) {
    void *function = atomic_load(found);
    if (!function)
        atomic_store(found, function = dlsym(RTLD_NEXT, name));
    return function;
}

#define ON_FILE(type, name, parameters, file, arguments)                                                                                              \
    type name parameters {                                                                                                                            \
        static void *_Atomic found;                                                                                                                   \
        return step_of_file(#name, file) ? -1 : REAL(name) arguments;                                                                                 \
    }
#define ON_PATH(name, parameters, path, arguments)                                                                                                    \
    int name parameters {                                                                                                                             \
        static void *_Atomic found;                                                                                                                   \
        return step(#name, path) ? -1 : REAL(name) arguments;                                                                                         \
    }

ON_FILE(ssize_t, write, (int file, const void *bytes, size_t length), file, (file, bytes, length))
ON_FILE(ssize_t, writev, (int file, const struct iovec *parts, int count), file, (file, parts, count))
ON_FILE(ssize_t, pwrite, (int file, const void *bytes, size_t length, off_t at), file, (file, bytes, length, at))
ON_FILE(ssize_t, pwrite64, (int file, const void *bytes, size_t length, off64_t at), file, (file, bytes, length, at))
ON_FILE(int, fsync, (int file), file, (file))
ON_FILE(int, fdatasync, (int file), file, (file))
ON_FILE(int, fallocate, (int file, int mode, off_t at, off_t length), file, (file, mode, at, length))
ON_FILE(int, ftruncate, (int file, off_t length), file, (file, length))
ON_FILE(int, ftruncate64, (int file, off64_t length), file, (file, length))
ON_PATH(rename, (const char *from, const char *to), to, (from, to))
ON_PATH(link, (const char *from, const char *to), to, (from, to))
ON_PATH(unlink, (const char *path), path, (path))
ON_PATH(mkdir, (const char *path, mode_t mode), path, (path, mode))

/* A mapping has no name here; only the table is synced so. */
int msync(void *start, size_t length, int flags) {
    static void *_Atomic found;
    return step("msync", directory) ? -1 : REAL(msync)(start, length, flags);
}
