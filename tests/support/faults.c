/* Count the calls that write, in every process of a command, and at one of them kill or fail: see faults.py.
 *
 * LD_PRELOAD puts it before libc. All processes share one page of memory, the file that FAULTS_STATE names, so that the
 * n-th call is the n-th of patchlock, git, uv and the app's Python together. Pipes, sockets and devices are not files.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct state {
    int armed;   /* 1 while a command runs */
    int action;  /* 0 count, 1 kill the group, 2 kill patchlock alone, 3 fail */
    long counter;
    long target; /* which call, from 1 */
    int error;   /* errno */
    int lasting; /* 1: every later call fails too */
    int fired;
    int patchlock; /* its process id */
    char what[480];
};

static struct state *shared;

__attribute__((constructor)) static void attach(void)
{
    const char *name = getenv("FAULTS_STATE");
    int (*really)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    int file = name ? really(name, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *memory = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory != MAP_FAILED)
        shared = memory;
}

/* Say whether the call that is to come must fail; a kill does not return. */
static int strikes(const char *call, const char *path)
{
    if (!shared || !shared->armed)
        return 0;
    if (path && (!strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6)))
        return 0;
    long now = __atomic_add_fetch(&shared->counter, 1, __ATOMIC_SEQ_CST);
    if (!shared->action || now < shared->target || (now > shared->target && !shared->lasting))
        return 0;
    if (!shared->fired) {
        shared->fired = 1;
        snprintf(shared->what, sizeof shared->what, "%s(%s) in %s", call, path ? path : "", program_invocation_short_name);
    }
    if (shared->action == 1)
        kill(0, SIGKILL);
    if (shared->action == 2)
        kill(shared->patchlock, SIGKILL);
    if (shared->action != 3)
        return 0;
    if (shared->error == ENOSPC && (!strncmp(call, "unlink", 6) || !strcmp(call, "rmdir")))
        return 0; /* a full disk lets one remove */
    errno = strcmp(call, "recv") ? shared->error : ECONNRESET;
    return 1;
}

static int strikes_file(const char *call, int file)
{
    struct stat about;
    if (!shared || !shared->armed || file <= 2 || fstat(file, &about) || !S_ISREG(about.st_mode))
        return 0;
    char link[64], path[400];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    return strikes(call, path[0] == '/' && strncmp(path, "/dev/", 5) ? path : "a file without a name");
}

#define WRITES(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))
#define REAL(name) __typeof__(name) *really = dlsym(RTLD_NEXT, #name)
#define MODE(last) va_list rest; va_start(rest, last); int mode = (last & O_CREAT) ? va_arg(rest, int) : 0; va_end(rest)

#define OPEN(name) \
    int name(const char *path, int flags, ...) \
    { \
        MODE(flags); REAL(name); \
        return WRITES(flags) && strikes("open", path) ? -1 : really(path, flags, mode); \
    }
#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) \
    { \
        MODE(flags); REAL(name); \
        return WRITES(flags) && strikes("open", path) ? -1 : really(folder, path, flags, mode); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

#define CALL(name, declared, given, path) \
    int name declared { REAL(name); return strikes(#name, path) ? -1 : really given; }
CALL(rename, (const char *from, const char *to), (from, to), to)
CALL(renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), to)
CALL(renameat2, (int a, const char *from, int b, const char *to, unsigned f), (a, from, b, to, f), to)
CALL(unlink, (const char *path), (path), path)
CALL(unlinkat, (int folder, const char *path, int flags), (folder, path, flags), path)
CALL(mkdir, (const char *path, mode_t mode), (path, mode), path)
CALL(mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), path)
CALL(rmdir, (const char *path), (path), path)
CALL(link, (const char *from, const char *to), (from, to), to)
CALL(linkat, (int a, const char *from, int b, const char *to, int f), (a, from, b, to, f), to)
CALL(symlink, (const char *from, const char *to), (from, to), to)
CALL(symlinkat, (const char *from, int folder, const char *to), (from, folder, to), to)
CALL(chmod, (const char *path, mode_t mode), (path, mode), path)
CALL(truncate, (const char *path, off_t size), (path, size), path)

#define FILE_CALL(type, name, declared, given, file) \
    type name declared { REAL(name); return strikes_file(#name, file) ? -1 : really given; }
FILE_CALL(ssize_t, write, (int file, const void *data, size_t size), (file, data, size), file)
FILE_CALL(ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at), file)
FILE_CALL(ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at), file)
FILE_CALL(ssize_t, writev, (int file, const struct iovec *parts, int count), (file, parts, count), file)
FILE_CALL(ssize_t, copy_file_range, (int in, off64_t *a, int out, off64_t *b, size_t size, unsigned f), (in, a, out, b, size, f), out)
FILE_CALL(int, ftruncate, (int file, off_t size), (file, size), file)
FILE_CALL(int, ftruncate64, (int file, off64_t size), (file, size), file)
FILE_CALL(int, fsync, (int file), (file), file)
FILE_CALL(int, fdatasync, (int file), (file), file)
FILE_CALL(int, fchmod, (int file, mode_t mode), (file, mode), file)

/* No call that writes, but a connection can be cut there. */
ssize_t recv(int socket, void *data, size_t size, int flags)
{
    REAL(recv);
    return strikes("recv", NULL) ? -1 : really(socket, data, size, flags);
}
