/* SPDX-License-Identifier: MIT
 * Tries one way out of the sandbox: escape WAY FOLDER PORT PARENT. Exit 0: it succeeded. 1: it failed. 2: there is
 * no such way. It runs in FOLDER/scratch and must not reach the rest of FOLDER. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *base;
static int port;
static pid_t parent;

static const char *at(const char *name)
{
    static char paths[8][4096];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", base, name);
    return path;
}

static bool can_read(const char *path)
{
    char text[8];
    int fd = open(path, O_RDONLY);
    bool ok = fd >= 0 && read(fd, text, sizeof text) > 0;
    if (fd >= 0) close(fd);
    return ok;
}

static bool can_open(const char *path, int flags)
{
    int fd = open(path, flags, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

/* ---- reading outside the folder -------------------------------------------------------------- */

static bool read_key(void)
{
    return can_read(at("home/.ssh/id"));
}
static bool read_key_up(void)
{
    return can_read("../home/.ssh/id");
}
static bool read_env(void)
{
    return can_read(at("project/.env"));
}
static bool read_project(void)
{
    return can_read(at("project/src.c"));
}
static bool read_link(void)
{
    (void)symlink(at("home/.ssh/id"), "way");
    return can_read("way");
}
static bool read_link_folder(void)
{
    (void)symlink(at("home"), "folder");
    return can_read("folder/.ssh/id");
}
static bool read_hard_link(void)
{
    return link(at("home/.ssh/id"), "hard") == 0 && can_read("hard");
}
static bool read_moved(void)
{
    return rename(at("home/.ssh/id"), "moved") == 0;
}
static bool read_exchanged(void)
{
    close(open("mine", O_CREAT | O_WRONLY, 0600));
    return syscall(SYS_renameat2, AT_FDCWD, "mine", AT_FDCWD, at("home/.ssh/id"), 2u) == 0;
}
static bool read_proc_root(void)
{
    char path[4200];
    snprintf(path, sizeof path, "/proc/self/root%s", at("home/.ssh/id"));
    return can_read(path);
}
static bool read_proc_cwd(void)
{
    return can_read("/proc/self/cwd/../home/.ssh/id");
}
static bool read_proc_parent(void)
{
    char path[4300];
    snprintf(path, sizeof path, "/proc/%d/root%s", (int)parent, at("home/.ssh/id"));
    if (can_read(path)) return true;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)parent);
    return can_read(path);
}
static bool read_proc_first(void)
{
    return can_read("/proc/1/environ") ||
        can_read("/proc/1/root"
                 "/etc/passwd");
}
static bool read_parent_memory(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)parent);
    return can_open(path, O_RDWR) || can_open("/proc/kcore", O_RDONLY);
}
static bool read_handle(void)
{
    struct {
        struct file_handle head;
        char room[128];
    } handle = {.head = {.handle_bytes = 128}};
    int mount_id, fd = -1;
    if (name_to_handle_at(AT_FDCWD, at("home/.ssh/id"), &handle.head, &mount_id, 0) == 0)
        fd = open_by_handle_at(AT_FDCWD, &handle.head, O_RDONLY);
    return fd >= 0;
}
static bool read_path_descriptor(void)
{
    char path[64];
    int fd = open(at("home/.ssh/id"), O_PATH);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return fd >= 0 && can_read(path);
}
static bool read_folder(void)
{
    DIR *folder = opendir(at("home"));
    return folder && readdir(folder);
}
static bool read_passwd(void)
{
    return can_read("/etc/passwd");
}
static bool read_shadow(void)
{
    return can_read("/etc/shadow");
}
static bool read_descriptor(void)
{
    char byte;
    for (int fd = 3; fd < 1024; fd++)
        if (pread(fd, &byte, 1, 0) == 1) return true;
    return false;
}
static bool read_variable(void)
{
    return getenv("WHIT_API_KEY") != NULL;
}
static bool read_disk(void)
{
    return can_open("/dev/mem", O_RDONLY) || can_open("/dev/vda", O_RDONLY) || can_open("/dev/sda", O_RDONLY);
}
/* Reads the command line of the user's program, which contains the task and the address. */
static bool read_first_line(void)
{
    char text[4096] = {0};
    int fd = open("/proc/1/cmdline", O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
    for (ssize_t i = 0; i < n; i++)
        if (text[i]) return true;
    return false;
}
static bool watch_path(const char *path, uint32_t flags)
{
    return inotify_add_watch(inotify_init1(IN_NONBLOCK), path, IN_ALL_EVENTS | flags) >= 0;
}
static bool watched(void)
{
    return watch_path(at("home/.ssh"), 0);
}
static bool watched_near(void)
{
    return watch_path("../home/.ssh", 0) || watch_path("..", IN_ONLYDIR);
}
static bool watched_link(void)
{
    (void)symlink(at("home"), "folder");
    return watch_path("folder/.ssh", 0) || watch_path("folder", 0);
}
static bool watched_process(void)
{
    char path[4200];
    snprintf(path, sizeof path, "/proc/self/root%s", at("home/.ssh"));
    return watch_path(path, 0) || watch_path("/proc/self/cwd/../home", 0);
}
static bool run_other(void)
{
    pid_t child = fork();
    if (child == 0) {
        execl(at("other/program"), "program", NULL);
        _exit(99);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
static bool run_other_copied_name(void)
{
    int fd = open(at("other/program"), O_PATH);
    char *const none[] = {NULL};
    pid_t child = fork();
    if (child == 0) {
        syscall(SYS_execveat, fd, "", none, none, AT_EMPTY_PATH);
        _exit(99);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- changing things outside the folder ------------------------------------------------------ */

static bool write_git(void)
{
    return can_open(at("project/.git/config"), O_WRONLY | O_APPEND);
}
static bool write_hook(void)
{
    return can_open(at("project/.git/hook"), O_WRONLY | O_CREAT);
}
static bool write_git_link(void)
{
    (void)symlink(at("project/.git"), "git");
    return can_open("git/config", O_WRONLY);
}
static bool write_source(void)
{
    return can_open(at("project/src.c"), O_WRONLY | O_TRUNC);
}
static bool write_cut(void)
{
    return truncate(at("project/src.c"), 0) == 0;
}
static bool write_remove(void)
{
    return unlink(at("project/src.c")) == 0;
}
static bool write_remove_folder(void)
{
    return rmdir(at("other/empty")) == 0;
}
static bool write_rename(void)
{
    return rename(at("project/src.c"), at("project/x.c")) == 0;
}
static bool write_folder(void)
{
    return mkdir(at("project/new"), 0700) == 0;
}
static bool write_link(void)
{
    return symlink("x", at("project/link")) == 0;
}
static bool write_hard_link(void)
{
    close(open("own", O_CREAT | O_WRONLY, 0600));
    return link("own", at("project/own")) == 0;
}
static bool write_pipe(void)
{
    return mkfifo(at("project/pipe"), 0600) == 0;
}
static bool write_unnamed(void)
{
    return can_open(at("project"), O_TMPFILE | O_RDWR);
}
static bool write_mode(void)
{
    return chmod(at("home/.ssh/id"), 0777) == 0;
}
static bool write_mode_at(void)
{
    return syscall(452, AT_FDCWD, at("home/.ssh/id"), 0777, 0) == 0;
}
static bool write_mode_system(void)
{
    int fd = open("/usr/bin/env", O_RDONLY);
    struct stat info;
    return fd >= 0 && fstat(fd, &info) == 0 && fchmod(fd, info.st_mode & 07777) == 0;
}
static bool has_mode(const char *path, mode_t mode)
{
    struct stat info;
    return stat(path, &info) == 0 && (info.st_mode & 07777) == mode;
}
static bool write_mode_link(void)
{
    unlink("way");
    return symlink(at("home/.ssh/id"), "way") == 0 && chmod("way", 0777) == 0;
}
static bool write_mode_near_link(void)
{
    unlink("way");
    return symlink("../home/.ssh/id", "way") == 0 && chmod("way", 0777) == 0;
}
static bool write_mode_above(void)
{
    return chmod("../home/.ssh/id", 0777) == 0 || chmod(at("scratch/../home/.ssh/id"), 0777) == 0;
}
static bool write_mode_process(void)
{
    char path[4200];
    snprintf(path, sizeof path, "/proc/self/root%s", at("home/.ssh/id"));
    return chmod(path, 0777) == 0 || chmod("/proc/self/cwd/../home/.ssh/id", 0777) == 0;
}
static bool write_mode_folder(void)
{
    int fd = open(at("home/.ssh"), O_PATH | O_DIRECTORY);
    return fd >= 0 && (fchmodat(fd, "id", 0777, 0) == 0 || fchmodat(fd, ".", 0777, 0) == 0);
}
static bool write_mode_descriptor(void)
{
    char path[64];
    int fd = open(at("home/.ssh/id"), O_PATH);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return fd >= 0 &&
        (chmod(path, 0777) == 0 || fchmod(fd, 0777) == 0 || syscall(452, fd, "", 0777, AT_EMPTY_PATH) == 0);
}
static bool write_mode_moved(void)
{
    unlink("own");
    return (link(at("home/.ssh/id"), "own") == 0 || rename(at("home/.ssh/id"), "own") == 0) && chmod("own", 0777) == 0;
}
static bool write_mode_scratch(void)
{
    return chmod(at("scratch/.."), 0700) == 0 || chmod("..", 0700) == 0 || chmod("", 0700) == 0;
}
/* Another process keeps exchanging an own folder, a link and another file at one path while this one sets modes. */
static bool write_mode_raced(void)
{
    bool out = false;
    mkdir("mine", 0700);
    close(open("mine/id", O_CREAT | O_WRONLY, 0600));
    symlink("../home/.ssh", "theirs");
    unlink("swap");
    symlink("mine", "swap");
    pid_t child = fork();
    if (child == 0)
        for (;;) {
            unlink("next");
            symlink("theirs", "next");
            rename("next", "swap");
            symlink("mine", "next");
            rename("next", "swap");
        }
    for (int i = 0; i < 3000 && !out; i++) {
        chmod("swap/id", 0777);
        out = has_mode(at("home/.ssh/id"), 0777);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    chmod(at("home/.ssh/id"), 0600); /* refused, so that there is an attempt to report */
    return out;
}
static bool write_time_link(void)
{
    static const struct timespec times[2] = {{1, 0}, {1, 0}};
    unlink("way");
    return symlink("../home/.ssh/id", "way") == 0 && utimensat(AT_FDCWD, "way", times, 0) == 0;
}
static bool write_time_descriptor(void)
{
    int fd = open("/usr/bin/env", O_RDONLY);
    return fd >= 0 && futimens(fd, NULL) == 0;
}
static bool write_owner(void)
{
    return chown(at("home/.ssh/id"), getuid(), getgid()) == 0;
}
static bool write_time(void)
{
    return utimes(at("home/.ssh/id"), NULL) == 0;
}
static bool write_attribute(void)
{
    return setxattr(at("home/.ssh/id"), "user.x", "x", 1, 0) == 0;
}
static bool write_temporary(void)
{
    return can_open("/tmp/whit-escape", O_CREAT | O_WRONLY) || can_open("/dev/shm/whit-escape", O_CREAT | O_WRONLY);
}
static bool write_system(void)
{
    return can_open("/usr/local/whit-escape", O_CREAT | O_WRONLY);
}
static bool write_etc(void)
{
    return can_open("/etc/ld.so.preload", O_CREAT | O_WRONLY);
}
static bool write_self(void)
{
    return can_open("/proc/self/exe", O_WRONLY) || can_open(at("other/program"), O_WRONLY);
}
static bool write_device(void)
{
    return mknod("disk", S_IFBLK | 0600, 254 << 8) == 0 || mknod("memory", S_IFCHR | 0600, (1 << 8) | 1) == 0;
}

/* Returns whether a request reaches the file system or its driver, whatever the answer. */
static bool requests(const char *path, unsigned long request)
{
    long argument[512] = {0};
    int fd = open(path, O_RDONLY);
    return fd >= 0 && (ioctl(fd, request, argument) == 0 || errno != EPERM);
}
static bool write_flags(void)
{
    int flags, fd = open("/usr/bin/env", O_RDONLY);
    return fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}
static bool requested_flags(void)
{
    return requests("/usr/bin/env", FS_IOC_SETFLAGS) || requests("/usr/bin/env", FS_IOC_FSSETXATTR);
}
static bool requested_verity(void)
{
    return requests("/usr/bin/env", 0x40806685); /* FS_IOC_ENABLE_VERITY on a file that is open for reading */
}
static bool requested_volumes(void) /* creates, snapshots and deletes btrfs volumes, in two versions of each request */
{
    static const unsigned long made[] = {0x5000940e, 0x50009418, 0x50009401, 0x50009417, 0x5000940f, 0x5000943f};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (requests(".", made[i]) || requests("/usr", made[i])) return true;
    return false;
}
static bool requested_wide(void) /* the kernel uses only the lower 32 bits of the request */
{
    return requests("/usr/bin/env", 0xffffffff00000000ul | FS_IOC_SETFLAGS);
}
static bool leased(void)
{
    int fd = open("/usr/bin/env", O_RDONLY);
    return fd >= 0 && fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
}

/* ---- mounts, roots, name spaces -------------------------------------------------------------- */

static bool root_changed(void)
{
    return chroot(base) == 0;
}
static bool mounted(void)
{
    (void)mkdir("mnt", 0700);
    return mount(at("home"), "mnt", NULL, MS_BIND, NULL) == 0 || mount("t", "mnt", "tmpfs", 0, NULL) == 0;
}
static bool unmounted(void)
{
    return umount2("/proc", MNT_DETACH) == 0 || umount2(at("scratch"), MNT_DETACH) == 0;
}
static bool remounted(void)
{
    return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL) == 0;
}
static bool mounted_anew(void)
{
    return syscall(428, AT_FDCWD, "/", 1u) >= 0 || syscall(430, "tmpfs", 0u) >= 0;
}
static bool unshared(void)
{
    return unshare(CLONE_NEWUSER) == 0 || unshare(CLONE_NEWNS) == 0;
}
static bool cloned(void)
{
    long child = syscall(SYS_clone, (unsigned long)CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    return child > 0;
}
static bool cloned_by_memory(void)
{
    uint64_t arguments[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
    long child = syscall(435, arguments, sizeof arguments);
    if (child == 0) _exit(0);
    return child > 0;
}
static bool entered(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)parent);
    int fd = open(path, O_RDONLY);
    return setns(fd, 0) == 0;
}
static bool is_capable(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {{0}}, all[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};
    syscall(SYS_capget, &head, sets);
    return sets[0].effective || sets[1].effective || syscall(SYS_capset, &head, all) == 0;
}

/* ---- other processes ------------------------------------------------------------------------- */

static bool owned(void)
{
    int fds[2];
    return pipe(fds) == 0 && fcntl(fds[0], F_SETOWN, parent) == 0;
}

static bool killed(void)
{
    return kill(parent, 0) == 0 || kill(getppid(), 0) == 0;
}
static bool traced(void)
{
    return ptrace(PTRACE_ATTACH, parent, 0, 0) == 0;
}
static bool traced_keeper(void)
{
    return ptrace(PTRACE_SEIZE, getppid(), 0, 0) == 0;
}
static bool peeked(void)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)&port, 1};
    return process_vm_readv(parent, &to, 1, &from, 1, 0) == 1;
}
static bool poked(void)
{
    char byte = 1;
    struct iovec from = {&byte, 1}, to = {(void *)&port, 1};
    return process_vm_writev(getppid(), &from, 1, &to, 1, 0) == 1;
}
static bool took_descriptor(void)
{
    int fd = (int)syscall(434, parent, 0u);
    if (fd < 0) fd = (int)syscall(434, getppid(), 0u);
    return syscall(438, fd, 0, 0u) >= 0;
}
/* The test has created a shared memory segment whose key is the port. */
static bool ipc_shm(void)
{
    int id = shmget(port, 1, 0);
    char *text = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
    return text != (char *)-1 && *text == 'S';
}
static bool ipc_queue(void)
{
    return msgget(port, 0) >= 0;
}
static bool prlimit_parent(void)
{
    struct rlimit limit;
    return prlimit(parent, RLIMIT_CORE, NULL, &limit) == 0;
}
/* A core dump goes to a program of the machine unless the limit is 1 byte. */
static bool cored(void)
{
    const struct rlimit none = {0, 0};
    struct rlimit now;
    return getrlimit(RLIMIT_CORE, &now) != 0 || now.rlim_max > 1 || prlimit(0, RLIMIT_CORE, &none, NULL) == 0;
}
static bool cored_by_other_call(void)
{
#ifdef SYS_setrlimit
    const struct rlimit none = {0, 0};
    return syscall(SYS_setrlimit, RLIMIT_CORE, &none) == 0;
#else
    return false;
#endif
}
static bool notified(void)
{
    int fd = open("/usr", O_RDONLY | O_DIRECTORY);
    return fd >= 0 && fcntl(fd, 1026 /* F_NOTIFY */, 1) == 0;
}
static bool hinted(void)
{
    uint64_t hint = 0; /* "not set", so that success changes nothing */
    int fd = open("/usr/bin/env", O_RDONLY);
    return fd >= 0 && fcntl(fd, 1036 /* F_SET_RW_HINT */, &hint) == 0;
}
/* The following ways set values that are already set, so that a success changes nothing. */
static bool slowed(void)
{
    return setpriority(PRIO_PROCESS, (id_t)parent, getpriority(PRIO_PROCESS, (id_t)parent)) == 0;
}
static bool slowed_group(void)
{
    return setpriority(PRIO_PGRP, (id_t)getpgid(parent), getpriority(PRIO_PROCESS, (id_t)parent)) == 0;
}
static bool slowed_user(void) /* all visible processes of the user */
{
    errno = 0;
    (void)getpriority(PRIO_PROCESS, (id_t)parent);
    return errno == 0 && setpriority(PRIO_USER, getuid(), 0) == 0;
}
static bool slowed_disk(void)
{
    return syscall(SYS_ioprio_set, 1, parent, 2 << 13 | 4) == 0 || syscall(SYS_ioprio_set, 2, getpgid(parent), 0) == 0;
}
static bool scheduled(void)
{
    struct sched_param none = {0};
    uint32_t attribute[14] = {sizeof attribute};
    return sched_setscheduler(parent, SCHED_OTHER, &none) == 0 || sched_setparam(parent, &none) == 0 ||
        syscall(SYS_sched_setattr, parent, attribute, 0u) == 0;
}
static bool pinned(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    return sched_getaffinity(parent, sizeof set, &set) == 0 && sched_setaffinity(parent, sizeof set, &set) == 0;
}
static bool survived(void)
{
    /* the test waits for the file that the detached process would write after the command's end */
    if (fork() == 0) {
        (void)setsid();
        if (fork() == 0) {
            close(1);
            close(2);
            usleep(400000);
            close(open("survived", O_CREAT | O_WRONLY, 0600));
            _exit(0);
        }
        _exit(0);
    }
    usleep(50000);
    return false;
}
static bool outlasted(void) /* the command's time limit is 1 s */
{
    signal(SIGTERM, SIG_IGN);
    sleep(20);
    return true;
}
static bool grew(void)
{
    struct rlimit limit = {1ull << 40, 1ull << 40};
    char *memory = setrlimit(RLIMIT_AS, &limit) ? MAP_FAILED : NULL;
    if (memory == MAP_FAILED)
        memory = mmap(NULL, 1ull << 34, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED;
}
static bool filled_disk(void)
{
    int fd = open("large", O_CREAT | O_WRONLY, 0600);
    signal(SIGXFSZ, SIG_IGN);
    return ftruncate(fd, 1ll << 33) == 0;
}

/* ---- sums that no limit of one process bounds: out after 20 s ---------------------------------- */

#define PIECE ((size_t)40 << 20)

static bool is_left_alone(void)
{
    sleep(20);
    return true;
}
static bool fill_file(int fd, size_t n)
{
    static char zeros[1 << 16];
    for (size_t done = 0; done < n; done += sizeof zeros)
        if (write(fd, zeros, sizeof zeros) != (ssize_t)sizeof zeros) return false;
    return fd >= 0;
}
static bool hoarded(void)
{
    for (int i = 0; i < 3; i++)
        if (fork() == 0) {
            volatile char *memory = malloc(PIECE);
            for (size_t at = 0; memory && at < PIECE; at += 4096) memory[at] = 1;
            sleep(20);
            _exit(0);
        }
    return is_left_alone();
}
static bool hoarded_unnamed(void)
{
    for (int i = 0; i < 3; i++)
        if (!fill_file((int)syscall(SYS_memfd_create, "hoard", 0u), PIECE)) return false;
    return is_left_alone();
}
static bool crowded(void)
{
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        if (child < 0) return false;
        if (child == 0) {
            sleep(20);
            _exit(0);
        }
    }
    return is_left_alone();
}
static bool filled_folder(void)
{
    char name[32];
    mkdir("many", 0700);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "many/%d", i);
        if (!fill_file(open(name, O_CREAT | O_WRONLY, 0600), PIECE)) return false;
    }
    return is_left_alone();
}
static bool filled_hole(void)
{
    int fd = open("hole", O_CREAT | O_WRONLY, 0600);
    return fallocate(fd, 0, 0, 3 * (off_t)PIECE) == 0 && is_left_alone();
}
static bool filled_deleted(void)
{
    for (int i = 0; i < 3; i++) {
        if (!fill_file(open("gone", O_CREAT | O_EXCL | O_WRONLY, 0600), PIECE)) return false;
        unlink("gone");
    }
    return is_left_alone();
}
/* ---- the network and what else the kernel offers --------------------------------------------- */

static bool connected(void)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(0x7f000001)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
}
static bool connected_6(void)
{
    return socket(AF_INET6, SOCK_STREAM, 0) >= 0;
}
static bool sent_datagram(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(0x7f000001)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    return fd >= 0 && sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to) == 1;
}
static bool listened(void)
{
    struct sockaddr_in own = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && bind(fd, (struct sockaddr *)&own, sizeof own) == 0;
}
static bool connected_local(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", at("socket"));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
}
static bool connected_by_pair(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int pair[2];
    snprintf(to.sun_path, sizeof to.sun_path, "%s", at("datagrams"));
    return socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 &&
        (connect(pair[0], (struct sockaddr *)&to, sizeof to) == 0 ||
         sendto(pair[0], "x", 1, 0, (struct sockaddr *)&to, sizeof to) == 1);
}
static bool opened_netlink(void)
{
    return socket(AF_NETLINK, SOCK_RAW, 0) >= 0;
}
static bool opened_packet(void)
{
    return socket(AF_PACKET, SOCK_RAW, 0) >= 0 || socket(38, SOCK_SEQPACKET, 0) >= 0;
}
static bool opened_ring(void)
{
    char parameters[256] = {0};
    return syscall(425, 8u, parameters) >= 0;
}
static bool loaded_program(void)
{
    char attribute[128] = {0};
    return syscall(SYS_bpf, 0, attribute, sizeof attribute) >= 0;
}
static bool read_keys(void)
{
    return syscall(SYS_keyctl, 0, -3, 1) >= 0 || syscall(SYS_add_key, "user", "x", "y", 1, -3) >= 0;
}
static bool faulted(void)
{
    return syscall(SYS_userfaultfd, 0) >= 0;
}
static bool measured(void)
{
    char attribute[128] = {1};
    return syscall(SYS_perf_event_open, attribute, 0, -1, -1, 0) >= 0;
}
static bool typed(void)
{
    int fd = open("/dev/tty", O_RDWR);
    return fd >= 0 || ioctl(0, TIOCSTI, "x") == 0 || ioctl(2, TIOCSTI, "x") == 0;
}
static bool made_terminal(void)
{
    return can_open("/dev/ptmx", O_RDWR);
}
static bool set_time(void)
{
    struct timeval now;
    gettimeofday(&now, NULL);
    return settimeofday(&now, NULL) == 0;
}
static bool called_new(void)
{
    return syscall(467, AT_FDCWD, "/", 0, NULL, 0) >= 0;
}
#if defined __x86_64__
static bool called_x32(void)
{
    long fd;
    __asm__ volatile("syscall" : "=a"(fd) : "a"(0x40000000L + SYS_getpid) : "rcx", "r11", "memory");
    return fd > 0;
}
static bool called_32(void)
{
    int fd;
    __asm__ volatile("int $0x80" : "=a"(fd) : "a"(20) : "memory"); /* getpid in the 32-bit ABI */
    return fd > 0;
}
#endif

#define WAY(name)                                                                                                      \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
static const struct {
    const char *name;
    bool (*run)(void);
} ways[] = {
    WAY(read_key),
    WAY(read_key_up),
    WAY(read_env),
    WAY(read_project),
    WAY(read_link),
    WAY(read_link_folder),
    WAY(read_hard_link),
    WAY(read_moved),
    WAY(read_exchanged),
    WAY(read_proc_root),
    WAY(read_proc_cwd),
    WAY(read_proc_parent),
    WAY(read_proc_first),
    WAY(read_parent_memory),
    WAY(read_handle),
    WAY(read_path_descriptor),
    WAY(read_folder),
    WAY(read_passwd),
    WAY(read_shadow),
    WAY(read_descriptor),
    WAY(read_variable),
    WAY(read_disk),
    WAY(read_first_line),
    WAY(watched),
    WAY(watched_near),
    WAY(watched_link),
    WAY(watched_process),
    WAY(run_other),
    WAY(run_other_copied_name),
    WAY(write_git),
    WAY(write_hook),
    WAY(write_git_link),
    WAY(write_source),
    WAY(write_cut),
    WAY(write_remove),
    WAY(write_remove_folder),
    WAY(write_rename),
    WAY(write_folder),
    WAY(write_link),
    WAY(write_hard_link),
    WAY(write_pipe),
    WAY(write_unnamed),
    WAY(write_mode),
    WAY(write_mode_at),
    WAY(write_mode_system),
    WAY(write_mode_link),
    WAY(write_mode_near_link),
    WAY(write_mode_above),
    WAY(write_mode_process),
    WAY(write_mode_folder),
    WAY(write_mode_descriptor),
    WAY(write_mode_moved),
    WAY(write_mode_scratch),
    WAY(write_mode_raced),
    WAY(write_time_link),
    WAY(write_time_descriptor),
    WAY(write_owner),
    WAY(write_time),
    WAY(write_attribute),
    WAY(write_temporary),
    WAY(write_system),
    WAY(write_etc),
    WAY(write_self),
    WAY(write_device),
    WAY(write_flags),
    WAY(requested_flags),
    WAY(requested_verity),
    WAY(requested_volumes),
    WAY(requested_wide),
    WAY(leased),
    WAY(root_changed),
    WAY(mounted),
    WAY(unmounted),
    WAY(remounted),
    WAY(mounted_anew),
    WAY(unshared),
    WAY(cloned),
    WAY(cloned_by_memory),
    WAY(entered),
    WAY(is_capable),
    WAY(killed),
    WAY(owned),
    WAY(traced),
    WAY(traced_keeper),
    WAY(peeked),
    WAY(poked),
    WAY(took_descriptor),
    WAY(ipc_shm),
    WAY(ipc_queue),
    WAY(prlimit_parent),
    WAY(notified),
    WAY(hinted),
    WAY(cored),
    WAY(cored_by_other_call),
    WAY(slowed),
    WAY(slowed_group),
    WAY(slowed_user),
    WAY(slowed_disk),
    WAY(scheduled),
    WAY(pinned),
    WAY(survived),
    WAY(outlasted),
    WAY(grew),
    WAY(filled_disk),
    WAY(hoarded),
    WAY(hoarded_unnamed),
    WAY(crowded),
    WAY(filled_folder),
    WAY(filled_hole),
    WAY(filled_deleted),
    WAY(connected),
    WAY(connected_6),
    WAY(sent_datagram),
    WAY(listened),
    WAY(connected_local),
    WAY(connected_by_pair),
    WAY(opened_netlink),
    WAY(opened_packet),
    WAY(opened_ring),
    WAY(loaded_program),
    WAY(read_keys),
    WAY(faulted),
    WAY(measured),
    WAY(typed),
    WAY(made_terminal),
    WAY(set_time),
    WAY(called_new),
#if defined __x86_64__
    WAY(called_x32),
    WAY(called_32),
#endif
};

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) puts(ways[i].name);
        return 0;
    }
    if (argc < 5) return 2;
    base = argv[2];
    port = atoi(argv[3]);
    parent = atoi(argv[4]);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, argv[1]) == 0) {
            bool out = ways[i].run();
            printf("%s: %s (%s)\n", argv[1], out ? "out" : "held", strerror(errno));
            return out ? 0 : 1;
        }
    return 2;
}
