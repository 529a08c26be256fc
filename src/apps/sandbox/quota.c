/* SPDX-License-Identifier: MIT
 * Counts memory first by each process's resident pages, which is cheap but counts shared pages once per process. Only
 * if that sum exceeds the limit, memory is counted by each process's share of its pages (smaps_rollup). A deleted file
 * that is still open has no name, but uses disk space or (memfd) memory: it is found through the open descriptors of
 * the processes.
 *
 * Folders are walked a few thousand names per call, round after round, so that a large tree causes no delay. Use that
 * this misses or finds too late is limited by the remaining free space of the disk and of memory. */
#include "sandbox/quota.h"
#include "base/items.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FOLDERS_DEEP    200
#define NAMES_A_LOOK    4096
#define FOLDERS_MAX     16
#define LOST_MAX        4096 /* maximum number of deleted files that one check remembers, to count each only once */
#define FREE_DISK_MAX   ((uint64_t)1 << 30)
#define FREE_MEMORY_MAX ((uint64_t)256 << 20)

struct process {
    pid_t pid, parent;
    bool is_own;
};
struct lost_file {
    dev_t device;
    ino_t inode;
};
struct whit_quota {
    const char *const *folders;
    const whit_sandbox_limits *limits;
    uint64_t disk_free[FOLDERS_MAX], disk_floor[FOLDERS_MAX], names_floor[FOLDERS_MAX], memory_floor;
    dev_t devices[FOLDERS_MAX];
    size_t n_folders;
    whit_buf processes; /* array of struct process */
    /* The walk through the folders: open folders, outermost first; index of the next folder; bytes counted in this
     * round, and in the last complete round. */
    DIR *open[FOLDERS_DEEP];
    size_t n_open, at_folder;
    uint64_t walked_bytes, disk_bytes;
    bool is_too_deep;
    /* The last check found too much memory in use. The command is ended only after two such checks in a row: until a
     * new process executes its program, it shares the memory of the process that forked it, which is whit's own. */
    bool was_over;
    struct lost_file lost[LOST_MAX];
    size_t n_lost;
};

/* ---- free memory of the machine ---------------------------------------------------------------- */

static uint64_t available_memory(void)
{
    char line[128];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1) break;
    if (file) fclose(file);
    return kib << 10;
}

uint64_t whit_quota_memory_default(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (uint64_t)pages / 4 * 3 * (uint64_t)page_bytes : (uint64_t)16 << 30;
}

bool whit_quota_is_counted(void)
{
    return access("/proc/self/status", R_OK) == 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

whit_quota *whit_quota_open(const whit_sandbox_rules *rules, const whit_sandbox_limits *limits)
{
    whit_quota *quota = calloc(1, sizeof *quota);
    struct statvfs disk;
    struct stat info;
    if (!quota) return NULL;
    quota->folders = rules->write;
    quota->limits = limits;
    quota->memory_floor = least(available_memory() / 16, FREE_MEMORY_MAX);
    for (size_t i = 0; i < FOLDERS_MAX && rules->write && rules->write[i]; i++) {
        quota->n_folders++;
        if (statvfs(rules->write[i], &disk) != 0 || stat(rules->write[i], &info) != 0) continue;
        quota->devices[i] = info.st_dev;
        quota->disk_free[i] = (uint64_t)disk.f_bavail * disk.f_frsize;
        quota->disk_floor[i] = least(quota->disk_free[i] / 8, FREE_DISK_MAX);
        quota->names_floor[i] = (uint64_t)disk.f_favail / 16;
    }
    return quota;
}

static void end_walk(whit_quota *quota)
{
    while (quota->n_open) closedir(quota->open[--quota->n_open]);
}

void whit_quota_close(whit_quota *quota)
{
    if (!quota) return;
    end_walk(quota);
    whit_buf_free(&quota->processes);
    free(quota);
}

/* ---- resources of the processes ---------------------------------------------------------------- */

static pid_t read_parent(const char *pid)
{
    char path[64], text[512];
    int parent = -1;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = 0;
    const char *rest = strrchr(text, ')'); /* the program's name, before the last ')', may contain any character */
    return rest && sscanf(rest, ") %*c %d", &parent) == 1 ? (pid_t)parent : -1;
}

static int compare_processes(const void *a, const void *b)
{
    const pid_t x = ((const struct process *)a)->pid, y = ((const struct process *)b)->pid;
    return x < y ? -1 : x > y;
}

/* Lists all processes of the machine and marks the descendants of `keeper`; returns the number of these. */
static size_t find_processes(whit_quota *quota, pid_t keeper)
{
    size_t n_own = 0;
    bool found = true;
    quota->processes.size_bytes = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *entry; all && (entry = readdir(all));) {
        char *end;
        struct process process = {(pid_t)strtol(entry->d_name, &end, 10), 0, false};
        if (*end || process.pid <= 0) continue;
        process.parent = read_parent(entry->d_name);
        whit_buf_append(&quota->processes, &process, sizeof process);
    }
    if (all) closedir(all);
    struct process *p = WHIT_ITEMS(struct process, &quota->processes);
    const size_t n = quota->processes.size_bytes / sizeof *p;
    if (n) qsort(p, n, sizeof *p, compare_processes);
    while (found) {
        found = false;
        for (size_t i = 0; i < n; i++) {
            const struct process wanted = {.pid = p[i].parent},
                                 *parent = bsearch(&wanted, p, n, sizeof *p, compare_processes);
            if (p[i].is_own || (p[i].parent != keeper && !(parent && parent->is_own))) continue;
            p[i].is_own = found = true;
            n_own++;
        }
    }
    return n_own;
}

/* Returns the sum of the lines "NAME: n kB" of the process's file in /proc, in bytes; lines: their beginnings
 * "NAME:". */
static uint64_t sum_lines(pid_t pid, const char *name, const char *const *lines)
{
    char path[64], line[128];
    uint64_t sum_kib = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        for (const char *const *l = lines; *l; l++)
            if (strncmp(line, *l, strlen(*l)) == 0) sum_kib += strtoull(line + strlen(*l), NULL, 10);
    if (file) fclose(file);
    return sum_kib << 10;
}

static uint64_t sum_memory(const whit_quota *quota, const char *name, const char *const *lines)
{
    const struct process *p = WHIT_ITEMS(const struct process, &quota->processes);
    uint64_t sum = 0;
    for (size_t i = 0; i < quota->processes.size_bytes / sizeof *p; i++)
        if (p[i].is_own) sum += sum_lines(p[i].pid, name, lines);
    return sum;
}

static bool is_new(whit_quota *quota, const struct stat *info)
{
    for (size_t i = 0; i < quota->n_lost; i++)
        if (quota->lost[i].device == info->st_dev && quota->lost[i].inode == info->st_ino) return false;
    if (quota->n_lost < LOST_MAX) quota->lost[quota->n_lost++] = (struct lost_file){info->st_dev, info->st_ino};
    return true;
}

/* Adds the sizes of deleted files that a process has open: to *disk if they are on the disk of a writable folder,
 * otherwise to *memory. Files that this check has counted already are left out. */
static void add_lost_files(whit_quota *quota, pid_t pid, uint64_t *disk, uint64_t *memory)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *all = opendir(path);
    for (struct dirent *entry; all && (entry = readdir(all));) {
        struct stat info;
        bool is_on_disk = false;
        if (*entry->d_name == '.' || fstatat(dirfd(all), entry->d_name, &info, 0) != 0 || !S_ISREG(info.st_mode) ||
            info.st_nlink || !is_new(quota, &info))
            continue;
        for (size_t i = 0; i < quota->n_folders; i++) is_on_disk = is_on_disk || quota->devices[i] == info.st_dev;
        *(is_on_disk ? disk : memory) += (uint64_t)info.st_blocks * 512;
    }
    if (all) closedir(all);
}

/* ---- size of the writable folders -------------------------------------------------------------- */

static bool open_below(whit_quota *quota, int folder, const char *name)
{
    if (quota->n_open == FOLDERS_DEEP) {
        quota->is_too_deep = true;
        return false;
    }
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    DIR *opened = fd >= 0 ? fdopendir(fd) : NULL;
    if (!opened && fd >= 0) close(fd);
    if (opened) quota->open[quota->n_open++] = opened;
    return opened != NULL;
}

/* Walks up to NAMES_A_LOOK names further. At the end of a round stores its sum in disk_bytes; the next call begins a
 * new round. */
static void walk_on(whit_quota *quota)
{
    for (size_t n_names = 0; n_names < NAMES_A_LOOK && quota->n_folders;) {
        if (!quota->n_open) {
            if (quota->at_folder == quota->n_folders) {
                quota->disk_bytes = quota->walked_bytes;
                quota->walked_bytes = quota->at_folder = 0;
                return;
            }
            n_names++;
            (void)open_below(quota, AT_FDCWD, quota->folders[quota->at_folder++]);
            continue;
        }
        DIR *folder = quota->open[quota->n_open - 1];
        struct dirent *entry = readdir(folder);
        struct stat info;
        if (!entry) {
            closedir(folder);
            quota->n_open--;
            continue;
        }
        n_names++;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        /* A file with several names counts for each name with an equal part of its size. */
        quota->walked_bytes +=
            (uint64_t)info.st_blocks * 512 / (info.st_nlink && !S_ISDIR(info.st_mode) ? info.st_nlink : 1);
        if (S_ISDIR(info.st_mode)) (void)open_below(quota, dirfd(folder), entry->d_name);
    }
}

/* ---- a check of all limits --------------------------------------------------------------------- */

static bool has_room(const whit_quota *quota, char *over, size_t over_bytes)
{
    struct statvfs disk;
    uint64_t memory = available_memory();
    for (size_t i = 0; i < quota->n_folders; i++) {
        if (statvfs(quota->folders[i], &disk) != 0) continue;
        const uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
        /* Folders nested too deeply are not counted. Then the decrease of the disk's free space counts, whatever its
         * cause. */
        if (quota->is_too_deep && room < quota->disk_free[i] &&
            quota->disk_free[i] - room > quota->limits->disk_bytes) {
            snprintf(over, over_bytes,
                     "the free space of the disk has shrunk by over %" PRIu64
                     " MiB, and its folders are too deep to count",
                     quota->limits->disk_bytes >> 20);
            return false;
        }
        if (room < quota->disk_floor[i] || (uint64_t)disk.f_favail < quota->names_floor[i]) {
            snprintf(over, over_bytes, "the disk is nearly full");
            return false;
        }
    }
    if (memory && memory < quota->memory_floor) snprintf(over, over_bytes, "the machine's memory is nearly used up");
    return !memory || memory >= quota->memory_floor;
}

bool whit_quota_holds(whit_quota *quota, pid_t keeper, char *over, size_t over_bytes)
{
    static const char *const cheap[] = {"RssAnon:", "RssShmem:", "VmSwap:", NULL},
                             *const exact[] = {"Pss_Anon:", "Pss_Shmem:", "SwapPss:", NULL};
    const whit_sandbox_limits *limits = quota->limits;
    const size_t n = find_processes(quota, keeper);
    const struct process *p = WHIT_ITEMS(const struct process, &quota->processes);
    uint64_t disk = 0, memory = 0;
    *over = 0;
    quota->n_lost = 0;
    for (size_t i = 0; i < quota->processes.size_bytes / sizeof *p; i++)
        if (p[i].is_own) add_lost_files(quota, p[i].pid, &disk, &memory);
    walk_on(quota);
    disk += quota->walked_bytes > quota->disk_bytes ? quota->walked_bytes : quota->disk_bytes;
    const bool is_over = memory + sum_memory(quota, "status", cheap) > limits->total_memory_bytes &&
        memory + sum_memory(quota, "smaps_rollup", exact) > limits->total_memory_bytes;
    const bool stays_over = is_over && quota->was_over;
    quota->was_over = is_over;
    if (n > limits->n_processes)
        snprintf(over, over_bytes, "it runs more than %u processes", limits->n_processes);
    else if (stays_over)
        snprintf(over, over_bytes, "its processes use over %" PRIu64 " MiB of memory together",
                 limits->total_memory_bytes >> 20);
    else if (disk > limits->disk_bytes)
        snprintf(over, over_bytes, "its folders contain over %" PRIu64 " MiB", limits->disk_bytes >> 20);
    return !*over && has_room(quota, over, over_bytes);
}
