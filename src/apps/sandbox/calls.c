/* SPDX-License-Identifier: MIT
 * Defines the table of system calls that a sandbox refuses, checks or records. */
#include "sandbox/walls.h"

#define REFUSE(name)                                                                                                   \
    {                                                                                                                  \
        name, CALL_REFUSE, 0, 0, 0, 0, 0                                                                               \
    }
#define REFUSE_AT(name, at, value)                                                                                     \
    {                                                                                                                  \
        name, CALL_REFUSE, 0, at, 0xffffffffu, value, 0                                                                \
    }
#define UNSPACED(name, folder, path)                                                                                   \
    {                                                                                                                  \
        name, CALL_UNSPACED, folder, path, 0, 0, 0                                                                     \
    }
#define CHANGE(name, folder, path)                                                                                     \
    {                                                                                                                  \
        name, CALL_CHANGE, folder, path, 0, 0, 0                                                                       \
    }
#define PROCESS(name, at)                                                                                              \
    {                                                                                                                  \
        name, CALL_PROCESS, 0, at, 0, 0, 0                                                                             \
    }
#define GROUP(name, process)                                                                                           \
    {                                                                                                                  \
        name, CALL_GROUP, 0, 1, 0, process, 0                                                                          \
    }
#define PATH(kind, name, folder, path)                                                                                 \
    {                                                                                                                  \
        name, kind, folder, path, 0, 0, 0                                                                              \
    }

const whit_call whit_calls[] = {
    /* Network calls are refused here, because Landlock restricts only TCP. */
    {"socket", CALL_SOCKET, 0, 0, 0, 0, 0},
    {"connect", CALL_SOCKET, 0, 0, 0, 0, 0},
    {"bind", CALL_SOCKET, 0, 0, 0, 0, 0},
    /* Pairs of datagram sockets are refused: through such a socket (SOCK_DGRAM, SOCK_RAW) a process can send to any
     * path. */
    {"socketpair", CALL_REFUSE, 0, 1, 15, 2, 0},
    {"socketpair", CALL_REFUSE, 0, 1, 15, 3, 0},
    /* These calls bypass the filter of system calls, access other processes, or use parts of the kernel that a command
     * does not need. */
    REFUSE("io_uring_setup"),
    REFUSE("io_uring_enter"),
    REFUSE("io_uring_register"),
    REFUSE("ptrace"),
    REFUSE("process_vm_readv"),
    REFUSE("process_vm_writev"),
    REFUSE("process_madvise"),
    REFUSE("kcmp"),
    REFUSE("pidfd_getfd"),
    REFUSE("bpf"),
    REFUSE("perf_event_open"),
    REFUSE("userfaultfd"),
    REFUSE("keyctl"),
    REFUSE("add_key"),
    REFUSE("request_key"),
    REFUSE("memfd_secret"),
    /* These calls reach files without a path, change the root, or mount. */
    REFUSE("open_by_handle_at"),
    REFUSE("name_to_handle_at"),
    REFUSE("fanotify_init"),
    REFUSE("chroot"),
    REFUSE("pivot_root"),
    REFUSE("mount"),
    REFUSE("umount"),
    REFUSE("umount2"),
    REFUSE("move_mount"),
    REFUSE("open_tree"),
    REFUSE("fsopen"),
    REFUSE("fsconfig"),
    REFUSE("fsmount"),
    REFUSE("fspick"),
    REFUSE("mount_setattr"),
    REFUSE("quotactl"),
    REFUSE("quotactl_fd"),
    REFUSE("swapon"),
    REFUSE("swapoff"),
    /* Namespaces would give capabilities back. filter.c handles clone and clone3. */
    REFUSE("unshare"),
    REFUSE("setns"),
    /* These calls affect the machine itself. */
    REFUSE("kexec_load"),
    REFUSE("kexec_file_load"),
    REFUSE("init_module"),
    REFUSE("finit_module"),
    REFUSE("delete_module"),
    REFUSE("reboot"),
    REFUSE("acct"),
    REFUSE("settimeofday"),
    REFUSE("clock_settime"),
    REFUSE("clock_adjtime"),
    REFUSE("adjtimex"),
    REFUSE("sethostname"),
    REFUSE("setdomainname"),
    REFUSE("iopl"),
    REFUSE("ioperm"),
    REFUSE("syslog"),
    REFUSE("vhangup"),
    REFUSE("modify_ldt"),
    REFUSE("lookup_dcookie"),
    REFUSE("nfsservctl"),
    REFUSE("uselib"),
    REFUSE("vm86"),
    REFUSE("_sysctl"),
    /* These calls list the mounts of the whole machine. */
    {"statmount", CALL_REFUSE, 0, 0, 0, 0, 457},
    {"listmount", CALL_REFUSE, 0, 0, 0, 0, 458},
    /* Landlock has no hook for ioctl requests on plain files and folders, so only the requests in whit_requests are
     * allowed. */
    {"ioctl", CALL_REQUEST, 0, 1, 0, 0, 0},
    /* F_SETLEASE: a lease delays the next program that opens the file for writing, even if the command may only read
     * the file. */
    REFUSE_AT("fcntl", 1, 1024),
    /* F_NOTIFY, the watches from before inotify; F_SET_RW_HINT and F_SET_FILE_RW_HINT, whose hints stay with a file
     * even if the command may only read it. */
    REFUSE_AT("fcntl", 1, 1026),
    REFUSE_AT("fcntl", 1, 1036),
    REFUSE_AT("fcntl", 1, 1038),
    /* Landlock has no hook for watches, which reveal names and use of files in folders that the command cannot open. */
    {"inotify_add_watch", CALL_WATCH, -1, 1, 0, 0, 0},
    /* With these calls a process could leave the process group that is killed at the command's end. */
    UNSPACED("setsid", -1, -1),
    UNSPACED("setpgid", -1, -1),
    /* Shared memory, queues and semaphores of System V and POSIX: the user's other programs access them by number or
     * name. */
    UNSPACED("shmget", -1, -1),
    UNSPACED("shmat", -1, -1),
    UNSPACED("shmctl", -1, -1),
    UNSPACED("msgget", -1, -1),
    UNSPACED("msgsnd", -1, -1),
    UNSPACED("msgrcv", -1, -1),
    UNSPACED("msgctl", -1, -1),
    UNSPACED("semget", -1, -1),
    UNSPACED("semop", -1, -1),
    UNSPACED("semtimedop", -1, -1),
    UNSPACED("semctl", -1, -1),
    UNSPACED("mq_open", -1, -1),
    UNSPACED("mq_unlink", -1, -1),
    /* Signals to the user's other programs, which Landlock restricts only from ABI 6 on. The last two calls are
     * F_SETOWN and F_SETOWN_EX: the kernel sends signals to the owner of a descriptor, too. The ioctl requests
     * FIOSETOWN and SIOCSPGRP, which also set an owner, are refused because whit_requests does not contain them. */
    PROCESS("kill", 0),
    PROCESS("tkill", 0),
    PROCESS("tgkill", 0),
    PROCESS("rt_sigqueueinfo", 0),
    PROCESS("rt_tgsigqueueinfo", 0),
    UNSPACED("pidfd_send_signal", -1, -1),
    REFUSE_AT("fcntl", 1, 8),
    REFUSE_AT("fcntl", 1, 15),
    /* Limits, priorities, processors and memory nodes of the user's other programs. The limit for core files must stay
     * at 1 byte: for any other value, including 0, Linux passes the core of a crash to a program of the machine, which
     * may store it. */
    {"prlimit64", CALL_LIMIT, 0, 1, 0xffffffffu, 4 /* RLIMIT_CORE */, 0},
    PROCESS("prlimit64", 0),
    REFUSE_AT("setrlimit", 0, 4),
    PROCESS("sched_setscheduler", 0),
    PROCESS("sched_setparam", 0),
    PROCESS("sched_setattr", 0),
    PROCESS("sched_setaffinity", 0),
    PROCESS("migrate_pages", 0),
    PROCESS("move_pages", 0),
    GROUP("setpriority", 0),
    GROUP("ioprio_set", 1),
    /* Owners, modes, times and attributes of files. Landlock does not restrict changes of these; in namespaces the
     * read-only mounts prevent them. */
    CHANGE("chmod", -1, 0),
    CHANGE("fchmod", 0, -1),
    CHANGE("fchmodat", 0, 1),
    {"fchmodat2", CALL_CHANGE, 0, 1, 0, 0, 452},
    UNSPACED("chown", -1, 0),
    UNSPACED("lchown", -1, 0),
    UNSPACED("fchown", -1, -1),
    UNSPACED("fchownat", 0, 1),
    UNSPACED("utime", -1, 0),
    UNSPACED("utimes", -1, 0),
    UNSPACED("futimesat", 0, 1),
    CHANGE("utimensat", 0, 1),
    UNSPACED("setxattr", -1, 0),
    UNSPACED("lsetxattr", -1, 0),
    UNSPACED("fsetxattr", -1, -1),
    UNSPACED("removexattr", -1, 0),
    UNSPACED("lremovexattr", -1, 0),
    UNSPACED("fremovexattr", -1, -1),
    /* These calls are only reported to the watcher, which lists refused accesses. whit_sandbox_enter without may_start
     * also refuses execve and execveat. */
    PATH(CALL_OPEN, "open", -1, 0),
    PATH(CALL_OPEN, "openat", 0, 1),
    PATH(CALL_READ, "openat2", 0, 1),
    PATH(CALL_WRITE, "creat", -1, 0),
    PATH(CALL_WRITE, "truncate", -1, 0),
    PATH(CALL_WRITE, "unlink", -1, 0),
    PATH(CALL_WRITE, "unlinkat", 0, 1),
    PATH(CALL_WRITE, "rmdir", -1, 0),
    PATH(CALL_WRITE, "mkdir", -1, 0),
    PATH(CALL_WRITE, "mkdirat", 0, 1),
    PATH(CALL_WRITE, "mknod", -1, 0),
    PATH(CALL_WRITE, "mknodat", 0, 1),
    PATH(CALL_WRITE, "symlink", -1, 1),
    PATH(CALL_WRITE, "symlinkat", 1, 2),
    PATH(CALL_WRITE, "link", -1, 0),
    PATH(CALL_WRITE, "link", -1, 1),
    PATH(CALL_WRITE, "linkat", 0, 1),
    PATH(CALL_WRITE, "linkat", 2, 3),
    PATH(CALL_WRITE, "rename", -1, 0),
    PATH(CALL_WRITE, "rename", -1, 1),
    PATH(CALL_WRITE, "renameat", 0, 1),
    PATH(CALL_WRITE, "renameat", 2, 3),
    PATH(CALL_WRITE, "renameat2", 0, 1),
    PATH(CALL_WRITE, "renameat2", 2, 3),
    {"execve", CALL_START, -1, 0, 0, 0, 0},
    {"execveat", CALL_START, 0, 1, 0, 0, 0},
    {0},
};

/* Requests of ioctl that only read, or that affect only the caller's own descriptor. FICLONE and FICLONERANGE need a
 * file that is open for writing. The numbers are part of the kernel's interface and the same on x86-64 and AArch64. */
const uint32_t whit_requests[] = {
    0x5401,     /* TCGETS */
    0x802c542a, /* TCGETS2 */
    0x540f,     /* TIOCGPGRP */
    0x5411,     /* TIOCOUTQ */
    0x5413,     /* TIOCGWINSZ */
    0x5429,     /* TIOCGSID */
    0x541b,     /* FIONREAD */
    0x5421,     /* FIONBIO */
    0x5450,     /* FIONCLEX */
    0x5451,     /* FIOCLEX */
    0x5452,     /* FIOASYNC */
    0x5460,     /* FIOQSIZE */
    0x2,        /* FIGETBSZ */
    0x40049409, /* FICLONE */
    0x4020940d, /* FICLONERANGE */
    0x80086601, /* FS_IOC_GETFLAGS */
    0x80087601, /* FS_IOC_GETVERSION */
    0x801c581f, /* FS_IOC_FSGETXATTR */
    0xc020660b, /* FS_IOC_FIEMAP */
};
const size_t whit_n_requests = sizeof whit_requests / sizeof *whit_requests;
