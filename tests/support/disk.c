/* A disk that runs full and loses unsynced writes, preloaded before the C library of one process.
 *
 * DISK_DIR     the directory of its files, as returned by `realpath`
 * DISK_FULL    while this file exists, there is no space: a write ends halfway
 * DISK_LIES    while this file exists, a sync reports success and does nothing
 * DISK_SYNCED  contains each file as of its last sync, and NAME.named once the directory was synced with
 *              it; .syncs grows by one byte per sync
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Less than this is not written into the rest of the last block. */
#define SECTOR 512

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

/* The name of the file within the directory: "" for the directory itself, NULL for any other file. */
static const char *name_of(int fd, char *path) {
    const char *dir = getenv("DISK_DIR");
    char link[64];
    if (!dir) return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return NULL;
    path[length] = 0;
    size_t prefix = strlen(dir);
    if (strncmp(path, dir, prefix) != 0) return NULL;
    if (path[prefix] == 0) return "";
    return path[prefix] == '/' && !strchr(path + prefix + 1, '/') ? path + prefix + 1 : NULL;
}

static int is_there(const char *variable) {
    const char *path = getenv(variable);
    return path && access(path, F_OK) == 0;
}

/* A write to a file of the disk, atomic with respect to syncs. `offset` below 0: the current position. */
static ssize_t put(int fd, const void *buffer, size_t count, off64_t offset) {
    char path[PATH_MAX];
    int ours = name_of(fd, path) != NULL;
    if (ours) pthread_mutex_lock(&one);
    size_t fits = count;
    if (ours && is_there("DISK_FULL")) fits = count > SECTOR ? count / 2 : 0;
    ssize_t done = -1;
    if (count && !fits)
        errno = ENOSPC;
    else if (offset < 0)
        done = syscall(SYS_write, fd, buffer, fits);
    else
        done = syscall(SYS_pwrite64, fd, buffer, fits, offset);
    int error = errno;
    if (ours) pthread_mutex_unlock(&one);
    errno = error;
    return done;
}

ssize_t write(int fd, const void *buffer, size_t count) {
    return put(fd, buffer, count, -1);
}

ssize_t pwrite64(int fd, const void *buffer, size_t count, off64_t offset) {
    return put(fd, buffer, count, offset);
}

ssize_t pwrite(int fd, const void *buffer, size_t count, off_t offset) {
    return put(fd, buffer, count, offset);
}

int ftruncate64(int fd, off64_t length) {
    char path[PATH_MAX];
    struct stat now;
    if (!name_of(fd, path)) return (int)syscall(SYS_ftruncate, fd, length);
    pthread_mutex_lock(&one);
    int done = -1, grows = fstat(fd, &now) == 0 && length > now.st_size;
    if (grows && is_there("DISK_FULL"))
        errno = ENOSPC;
    else
        done = (int)syscall(SYS_ftruncate, fd, length);
    int error = errno;
    pthread_mutex_unlock(&one);
    errno = error;
    return done;
}

int ftruncate(int fd, off_t length) {
    return ftruncate64(fd, length);
}

/* Makes the file's name durable. */
static void keep_name(const char *synced, const char *name) {
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s.named", synced, name);
    int made = open(path, O_WRONLY | O_CREAT, 0600);
    if (made >= 0) close(made);
}

/* Makes the file's contents durable. Uses its own descriptor: closing another one would release the
 * process's locks on the file. */
static void keep(int fd, const char *synced, const char *name) {
    char next[2 * PATH_MAX], path[2 * PATH_MAX], block[1 << 16];
    snprintf(next, sizeof next, "%s/.next", synced);
    snprintf(path, sizeof path, "%s/%s", synced, name);
    int made = open(next, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (made < 0) abort();
    off64_t at = 0;
    for (;;) {
        ssize_t got = pread64(fd, block, sizeof block, at);
        if (got < 0) abort();
        if (got == 0) break;
        if (syscall(SYS_write, made, block, got) != got) abort();
        at += got;
    }
    close(made);
    if (rename(next, path) != 0) abort();
}

static void count(const char *synced) {
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/.syncs", synced);
    int made = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (made < 0 || syscall(SYS_write, made, ".", 1) != 1) abort();
    close(made);
}

static int sync_of(int fd, long number) {
    char path[PATH_MAX];
    const char *name = name_of(fd, path), *synced = getenv("DISK_SYNCED");
    if (!name || !synced) return (int)syscall(number, fd);
    if (is_there("DISK_LIES")) return 0;
    pthread_mutex_lock(&one);
    count(synced);
    if (*name) {
        keep(fd, synced, name);
    } else {
        DIR *dir = opendir(path);
        struct dirent *entry;
        while (dir && (entry = readdir(dir)))
            if (entry->d_name[0] != '.') keep_name(synced, entry->d_name);
        if (dir) closedir(dir);
    }
    pthread_mutex_unlock(&one);
    return (int)syscall(number, fd);
}

int fsync(int fd) {
    return sync_of(fd, SYS_fsync);
}

int fdatasync(int fd) {
    return sync_of(fd, SYS_fdatasync);
}
