/* Records what a program does to one file, as a trace for the checker (`h5live_checker::trace`).
 *
 *     cc -O2 -shared -fPIC -o record.so record.c -ldl
 *     H5TRACE_FILE=run.h5 H5TRACE_LOG=run.h5trace LD_PRELOAD=./record.so program
 *
 * H5TRACE_FILE is how the name of the file ends. It is recorded from when it is first opened to be written, until the
 * program ends. What the program writes to FILE.marks are remarks, one in each write: "d.issued 3".
 * With H5TRACE_KILL=N the program is killed as soon as it has done N operations, remarks included.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The format is that of checker/src/trace/file.rs. */
enum { BASE = 0, WRITE = 1, SET_LEN = 2, BARRIER = 3, MARK = 4, END = 5 };
enum { FILES = 4096 };
enum role { OTHER, TRACED, MARKS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char roles[FILES];
static FILE *trace;
static pid_t owner;
static uint64_t records;

static uint32_t crc32c(uint32_t crc, const unsigned char *bytes, size_t len)
{
    crc = ~crc;
    while (len--) {
        crc ^= *bytes++;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void little(unsigned char *into, uint64_t value, int bytes)
{
    for (int n = 0; n < bytes; n++)
        into[n] = (unsigned char)(value >> 8 * n);
}

static void fail(const char *what)
{
    fprintf(stderr, "record: %s\n", what);
    abort();
}

static void put(int kind, uint64_t number, const void *bytes, size_t len)
{
    unsigned char head[13], sum[4];
    if (trace == NULL || getpid() != owner)
        return;
    if (len > UINT32_MAX)
        fail("a write of more than 4 GiB");
    head[0] = (unsigned char)kind;
    little(head + 1, number, 8);
    little(head + 9, len, 4);
    little(sum, crc32c(crc32c(0, head, sizeof head), bytes, len), 4);
    if (fwrite(head, sizeof head, 1, trace) != 1 || fwrite(bytes, 1, len, trace) != len
        || fwrite(sum, sizeof sum, 1, trace) != 1 || fflush(trace) != 0)
        fail("the trace cannot be written");
    records++;
    const char *last = getenv("H5TRACE_KILL");
    if (last != NULL && kind != BASE && kind != END && records == strtoull(last, NULL, 10))
        kill(owner, SIGKILL);
}

/* Begins the trace with what the file holds. */
static void begin(int fd)
{
    struct stat status;
    const char *path = getenv("H5TRACE_LOG");
    unsigned char version[4];
    if (path == NULL || (trace = fopen(path, "wb")) == NULL || fstat(fd, &status) != 0)
        fail("there is no trace to write to (H5TRACE_LOG)");
    owner = getpid();
    little(version, 1, 4);
    fwrite("h5trace\n", 8, 1, trace);
    fwrite(version, 4, 1, trace);
    unsigned char *base = malloc((size_t)status.st_size + 1);
    /* The descriptor may be one that cannot be read. */
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int again = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY);
    ssize_t found = 0, more;
    while (again >= 0 && found < status.st_size
           && (more = pread(again, base + found, (size_t)(status.st_size - found), found)) > 0)
        found += more;
    if (found != status.st_size)
        fail("the file cannot be read");
    syscall(SYS_close, again);
    put(BASE, 0, base, (size_t)found);
    records = 0;
    free(base);
}

__attribute__((destructor)) static void end(void)
{
    put(END, records + 1, "", 0);
    trace = NULL;
}

void _exit(int code)
{
    end();
    syscall(SYS_exit_group, code);
    abort();
}

static int ends_with(const char *text, const char *end, const char *more)
{
    char all[4096];
    int len = snprintf(all, sizeof all, "%s%s", end, more);
    size_t have = strlen(text);
    return len > 0 && (size_t)len <= have && strcmp(text + have - len, all) == 0;
}

static int opened(int fd, const char *path, int flags)
{
    const char *file = getenv("H5TRACE_FILE");
    if (fd < 0 || fd >= FILES || file == NULL)
        return fd;
    pthread_mutex_lock(&lock);
    roles[fd] = OTHER;
    if ((flags & O_ACCMODE) != O_RDONLY && ends_with(path, file, "")) {
        roles[fd] = TRACED;
        if (trace == NULL)
            begin(fd);
        else if (flags & O_TRUNC)
            put(SET_LEN, 0, "", 0);
    } else if (ends_with(path, file, ".marks"))
        roles[fd] = MARKS;
    pthread_mutex_unlock(&lock);
    return fd;
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode_t mode = mode_of(flags, arguments);                                                                       \
        va_end(arguments);                                                                                             \
        return opened((int)syscall(SYS_openat, AT_FDCWD, path, flags, mode), path, flags);                             \
    }
#define OPENAT(name)                                                                                                   \
    int name(int folder, const char *path, int flags, ...)                                                             \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode_t mode = mode_of(flags, arguments);                                                                       \
        va_end(arguments);                                                                                             \
        return opened((int)syscall(SYS_openat, folder, path, flags, mode), path, flags);                               \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

static enum role role(int fd)
{
    return fd >= 0 && fd < FILES ? roles[fd] : OTHER;
}

int close(int fd)
{
    pthread_mutex_lock(&lock);
    if (role(fd) != OTHER)
        roles[fd] = OTHER;
    pthread_mutex_unlock(&lock);
    return (int)syscall(SYS_close, fd);
}

/* A descriptor that is a copy of another. */
static int copied(int from, int to)
{
    pthread_mutex_lock(&lock);
    if (to >= 0 && to < FILES)
        roles[to] = (unsigned char)role(from);
    pthread_mutex_unlock(&lock);
    return to;
}

int dup(int fd)
{
    return copied(fd, (int)syscall(SYS_dup, fd));
}

int dup2(int fd, int to)
{
    return fd == to ? fcntl(fd, F_GETFD) < 0 ? -1 : to : copied(fd, (int)syscall(SYS_dup3, fd, to, 0));
}

int dup3(int fd, int to, int flags)
{
    return copied(fd, (int)syscall(SYS_dup3, fd, to, flags));
}

static void remark(const char *text, size_t len)
{
    while (len > 0 && text[len - 1] == '\n')
        len--;
    put(MARK, 0, text, len);
}

/* The call and its record are one step: no other thread's comes between. */
#define RECORDED(call, record)                                                                                         \
    pthread_mutex_lock(&lock);                                                                                         \
    ssize_t done = (call);                                                                                             \
    if (done >= 0 && role(fd) == TRACED)                                                                               \
        record;                                                                                                        \
    pthread_mutex_unlock(&lock);                                                                                       \
    return done

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    RECORDED(syscall(SYS_pwrite64, fd, bytes, len, at), put(WRITE, (uint64_t)at, bytes, (size_t)done));
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t at)
{
    return pwrite(fd, bytes, len, at);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    if (role(fd) == MARKS) {
        pthread_mutex_lock(&lock);
        remark(bytes, len);
        pthread_mutex_unlock(&lock);
    }
    RECORDED(syscall(SYS_write, fd, bytes, len),
             put(WRITE, (uint64_t)(lseek(fd, 0, SEEK_CUR) - done), bytes, (size_t)done));
}

int ftruncate(int fd, off_t len)
{
    RECORDED(syscall(SYS_ftruncate, fd, len), put(SET_LEN, (uint64_t)len, "", 0));
}

int ftruncate64(int fd, off64_t len)
{
    return ftruncate(fd, len);
}

int fsync(int fd)
{
    RECORDED(syscall(SYS_fsync, fd), put(BARRIER, 0, "", 0));
}

int fdatasync(int fd)
{
    RECORDED(syscall(SYS_fdatasync, fd), put(BARRIER, 0, "", 0));
}

static ssize_t refused(int fd, ssize_t done)
{
    if (role(fd) == TRACED)
        fail("the file is written in a way that cannot be recorded");
    return done;
}

struct iovec;

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return refused(fd, syscall(SYS_writev, fd, parts, count));
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    return refused(fd, syscall(SYS_pwritev, fd, parts, count, at, 0));
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at)
{
    return refused(fd, syscall(SYS_pwritev, fd, parts, count, at, 0));
}
