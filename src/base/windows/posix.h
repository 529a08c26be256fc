/* SPDX-License-Identifier: MIT
 * POSIX for Windows: the part that whit uses and mingw-w64 lacks, or has for one code page only.
 *
 * The build includes this header before every file of a Windows build (cmake/Windows.cmake), and the folder
 * `include` beside it has the header names that mingw-w64 does not know. File names, environment and arguments are
 * UTF-8; "/" and "\" both separate folders. Files are opened as binary, shared, and not inherited. Functions set
 * errno as POSIX says; what Windows has no equivalent of fails with ENOSYS. */
#ifndef WHIT_BASE_WINDOWS_POSIX_H
#define WHIT_BASE_WINDOWS_POSIX_H

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <limits.h>
#include <process.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* ---- files ---------------------------------------------------------------------------------- */

#undef PATH_MAX
#define PATH_MAX 4096
#undef NAME_MAX
#define NAME_MAX 255

#define O_CLOEXEC   _O_NOINHERIT
#define O_NONBLOCK  0 /* opening a file never waits */
#define O_NOCTTY    0
#define O_NOFOLLOW  0x01000000
#define O_DIRECTORY 0x02000000
#define AT_FDCWD    (-100)

#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_SYMLINK_FOLLOW   0x400
#define AT_REMOVEDIR        0x200

#ifndef S_IFLNK
#define S_IFLNK  0xA000
#define S_IFSOCK 0xC000
#endif
#define S_ISLNK(mode)  (((mode)&0xF000) == S_IFLNK)
#define S_ISSOCK(mode) (((mode)&0xF000) == S_IFSOCK)

typedef unsigned uid_t, gid_t;

struct whit_posix_stat {
    uint64_t st_dev, st_ino;
    mode_t st_mode;
    unsigned st_nlink;
    uid_t st_uid;
    gid_t st_gid;
    off_t st_size;
    int64_t st_blocks;
    struct timespec st_atim, st_mtim, st_ctim;
};
#define st_atime st_atim.tv_sec
#define st_mtime st_mtim.tv_sec
#define st_ctime st_ctim.tv_sec

struct statvfs {
    uint64_t f_bsize, f_frsize, f_blocks, f_bfree, f_bavail;
    unsigned long f_flag;
};

struct dirent {
    unsigned char d_type; /* DT_ */
    char d_name[3 * NAME_MAX + 1];
};
typedef struct whit_posix_dir DIR;
enum { DT_UNKNOWN = 0, DT_DIR = 4, DT_REG = 8, DT_LNK = 10 };

enum { LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8 };

int whit_posix_open(const char *path, int flags, ...);
int whit_posix_openat(int folder, const char *path, int flags, ...);
FILE *whit_posix_fopen(const char *path, const char *mode);
ssize_t whit_posix_read(int fd, void *bytes, size_t n_bytes);
ssize_t whit_posix_write(int fd, const void *bytes, size_t n_bytes);
ssize_t whit_posix_pread(int fd, void *bytes, size_t n_bytes, off_t offset);
ssize_t whit_posix_pwrite(int fd, const void *bytes, size_t n_bytes, off_t offset);
int whit_posix_fsync(int fd);
int whit_posix_ftruncate(int fd, off_t size_bytes);
int whit_posix_fallocate(int fd, off_t offset, off_t size_bytes);
int whit_posix_flock(int fd, int operation);
int whit_posix_fstat(int fd, struct whit_posix_stat *info);
int whit_posix_stat(const char *path, struct whit_posix_stat *info);
int whit_posix_lstat(const char *path, struct whit_posix_stat *info);
int whit_posix_fstatat(int folder, const char *path, struct whit_posix_stat *info, int flags);
int whit_posix_statvfs(const char *path, struct statvfs *info);
int whit_posix_access(const char *path, int mode);
int whit_posix_unlink(const char *path);
int whit_posix_unlinkat(int folder, const char *path, int flags);
int whit_posix_rmdir(const char *path);
int whit_posix_rename(const char *from, const char *to);
int whit_posix_mkdir(const char *path, mode_t mode);
int whit_posix_chdir(const char *path);
char *whit_posix_getcwd(char *path, size_t path_bytes);
char *whit_posix_realpath(const char *path, char *resolved);
char *whit_posix_mkdtemp(char *pattern);
int whit_posix_memfd(const char *name, unsigned flags);
int link(const char *from, const char *to);
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags);
int symlink(const char *target, const char *path);
ssize_t readlink(const char *path, char *target, size_t target_bytes);
int fchmod(int fd, mode_t mode);
int whit_posix_chmod(const char *path, mode_t mode);
int whit_posix_scandir(const char *path, struct dirent ***entries, int (*wanted)(const struct dirent *),
                       int (*order)(const struct dirent **, const struct dirent **));
int whit_posix_alphasort(const struct dirent **a, const struct dirent **b);
DIR *whit_posix_opendir(const char *path);
struct dirent *whit_posix_readdir(DIR *folder);
int whit_posix_closedir(DIR *folder);
int whit_posix_dirfd(DIR *folder);

#undef stat
#undef fstat
#undef access
#undef ftruncate
#define open                                          whit_posix_open
#define openat                                        whit_posix_openat
#define fopen                                         whit_posix_fopen
#define read                                          whit_posix_read
#define write                                         whit_posix_write
#define pread                                         whit_posix_pread
#define pwrite                                        whit_posix_pwrite
#define fsync                                         whit_posix_fsync
#define fdatasync                                     whit_posix_fsync
#define ftruncate                                     whit_posix_ftruncate
#define posix_fallocate                               whit_posix_fallocate
#define flock                                         whit_posix_flock
#define stat                                          whit_posix_stat
#define fstat                                         whit_posix_fstat
#define lstat                                         whit_posix_lstat
#define fstatat                                       whit_posix_fstatat
#define statvfs_of                                    whit_posix_statvfs
#define access                                        whit_posix_access
#define unlink                                        whit_posix_unlink
#define unlinkat                                      whit_posix_unlinkat
#define rmdir                                         whit_posix_rmdir
#define rename                                        whit_posix_rename
#define mkdir                                         whit_posix_mkdir
#define chdir                                         whit_posix_chdir
#define getcwd                                        whit_posix_getcwd
#define realpath                                      whit_posix_realpath
#define mkdtemp                                       whit_posix_mkdtemp
#define memfd_create                                  whit_posix_memfd
#define chmod                                         whit_posix_chmod
#define opendir                                       whit_posix_opendir
#define readdir                                       whit_posix_readdir
#define scandir                                       whit_posix_scandir
#define alphasort                                     whit_posix_alphasort
#define closedir                                      whit_posix_closedir
#define dirfd                                         whit_posix_dirfd
#define fdopen                                        _fdopen
#define fileno                                        _fileno
#define MFD_CLOEXEC                                   1u
#define POSIX_FADV_DONTNEED                           4
#define posix_fadvise(fd, offset, size_bytes, advice) ((void)(fd), 0)

/* ---- mappings ------------------------------------------------------------------------------- */

enum { PROT_NONE = 0, PROT_READ = 1, PROT_WRITE = 2, PROT_EXEC = 4 };
enum { MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_ANONYMOUS = 32, MAP_NORESERVE = 0, MAP_POPULATE = 0 };
enum {
    MADV_NORMAL = 0,
    MADV_SEQUENTIAL = 2,
    MADV_WILLNEED = 3,
    MADV_DONTNEED = 4,
    MADV_HUGEPAGE = 14,
    MADV_NOHUGEPAGE = 15
};
#define MAP_FAILED ((void *)-1)
void *mmap(void *wanted, size_t size_bytes, int protection, int flags, int fd, off_t offset);
int munmap(void *begin, size_t size_bytes);
int mprotect(void *begin, size_t size_bytes, int protection);
int madvise(void *begin, size_t size_bytes, int advice);

/* ---- processes, environment, time ----------------------------------------------------------- */

enum { _SC_PAGESIZE = 1, _SC_NPROCESSORS_ONLN, _SC_CLK_TCK, _SC_PHYS_PAGES, _SC_AVPHYS_PAGES };
long sysconf(int name);
char *whit_posix_getenv(const char *name);
int setenv(const char *name, const char *value, int replace);
int unsetenv(const char *name);
uid_t getuid(void);
uid_t geteuid(void);
ssize_t getrandom(void *bytes, size_t n_bytes, unsigned flags);
int kill(pid_t process, int number);
int whit_posix_pipe(int ends[2], int flags);
struct tm *localtime_r(const time_t *when, struct tm *parts);
struct tm *gmtime_r(const time_t *when, struct tm *parts);
time_t timegm(struct tm *parts);
#define getenv     whit_posix_getenv
#define pipe2      whit_posix_pipe
#define pipe(ends) whit_posix_pipe(ends, 0)
#define popen      _popen
#define pclose     _pclose

struct rusage {
    struct timeval ru_utime, ru_stime;
    long ru_maxrss; /* KiB, as on Linux */
    long ru_minflt, ru_majflt;
};
enum { RUSAGE_SELF = 0 };
int getrusage(int who, struct rusage *usage);

/* ---- signals: Ctrl-C and the end of the console are SIGINT and SIGTERM; others never come --------- */

#undef SIGHUP
#define SIGHUP 1
#undef SIGQUIT
#define SIGQUIT 3
#undef SIGTRAP
#define SIGTRAP 5
#undef SIGBUS
#define SIGBUS 7
#undef SIGKILL
#define SIGKILL 9
#undef SIGUSR1
#define SIGUSR1 10
#undef SIGUSR2
#define SIGUSR2 12
#undef SIGPIPE
#define SIGPIPE 13
#undef SIGALRM
#define SIGALRM 14
#undef SIGCHLD
#define SIGCHLD 17
#undef SIGCONT
#define SIGCONT 18
#undef SIGSTOP
#define SIGSTOP 19
#undef SIGTSTP
#define SIGTSTP 20
#undef SIGXCPU
#define SIGXCPU 24
#undef SIGXFSZ
#define SIGXFSZ 25
#undef SIGWINCH
#define SIGWINCH 28
#undef SIGSYS
#define SIGSYS 31
enum { SA_RESTART = 1, SA_SIGINFO = 2, SA_NODEFER = 4, SA_RESETHAND = 8 };
typedef struct siginfo_t {
    int si_signo, si_code;
    void *si_addr;
} siginfo_t;
#ifndef SIG_BLOCK
enum { SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK };
#endif
typedef uint64_t whit_posix_signals;
#define sigset_t whit_posix_signals
struct sigaction {
    void (*sa_handler)(int);
    void (*sa_sigaction)(int, siginfo_t *, void *);
    sigset_t sa_mask;
    int sa_flags;
};
int sigaction(int number, const struct sigaction *action, struct sigaction *before);
int sigemptyset(sigset_t *signals);
int sigfillset(sigset_t *signals);
int sigaddset(sigset_t *signals, int number);
int sigdelset(sigset_t *signals, int number);
int whit_posix_sigmask(int how, const sigset_t *signals, sigset_t *before);
int pause(void);
#undef pthread_sigmask
#define pthread_sigmask whit_posix_sigmask
#define sigprocmask     whit_posix_sigmask

/* ---- terminals ------------------------------------------------------------------------------ */

typedef unsigned tcflag_t;
enum { VMIN = 6, VTIME = 5, NCCS = 32 };
struct termios {
    tcflag_t c_iflag, c_oflag, c_cflag, c_lflag;
    unsigned char c_cc[NCCS];
};
enum { ECHO = 8, ICANON = 2, ISIG = 1, IEXTEN = 0x8000, TCSANOW = 0, TCSADRAIN = 1, TCSAFLUSH = 2 };
struct winsize {
    unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};
enum { TIOCGWINSZ = 0x5413 };
int tcgetattr(int fd, struct termios *settings);
int tcsetattr(int fd, int when, const struct termios *settings);
int ioctl(int fd, unsigned long request, ...);
int whit_posix_isatty(int fd);
#undef isatty
#define isatty whit_posix_isatty

#define pollfd whit_posix_pollfd /* winsock2.h has another */
struct pollfd {
    int fd;
    short events, revents;
};
typedef unsigned long nfds_t;
enum { POLLIN = 1, POLLPRI = 2, POLLOUT = 4, POLLERR = 8, POLLHUP = 16, POLLNVAL = 32 };
/* Waits for descriptors of files, pipes and consoles (not sockets); files are always ready. */
int whit_posix_poll(struct pollfd *wanted, nfds_t n, int timeout_ms);
#define poll whit_posix_poll

/* ---- locales: numbers are always read and written as in C, since nobody calls setlocale for them ------ */

typedef int locale_t;
enum { LC_ALL_MASK = 1, LC_NUMERIC_MASK = 2, LC_CTYPE_MASK = 4 };
#define newlocale(parts, name, base) ((locale_t)1)
#define freelocale(locale)           ((void)(locale))
#define strtod_l(text, end, locale)  ((void)(locale), strtod(text, end))

/* ---- strings, sorting, names ---------------------------------------------------------------- */

void *memmem(const void *text, size_t n_text, const void *part, size_t n_part);
void *memrchr(const void *text, int byte, size_t n);
char *stpcpy(char *to, const char *from);
char *strndup(const char *text, size_t n);
char *strchrnul(const char *text, int byte);
char *strcasestr(const char *text, const char *part);
int dprintf(int fd, const char *format, ...);
typedef int whit_posix_order(const void *a, const void *b, void *context);
/* Stable, as glibc's are, so that ties come out in the same order everywhere. */
void qsort_r(void *items, size_t n, size_t item_bytes, whit_posix_order *order, void *context);
void whit_posix_qsort(void *items, size_t n, size_t item_bytes, int (*order)(const void *, const void *));
#define qsort whit_posix_qsort

enum { FNM_PATHNAME = 1, FNM_PERIOD = 4, FNM_CASEFOLD = 16, FNM_NOMATCH = 1 };
int fnmatch(const char *pattern, const char *name, int flags);

void *dlopen(const char *name, int flags);
void *dlsym(void *library, const char *name);
int dlclose(void *library);
char *dlerror(void);
enum { RTLD_LAZY = 1, RTLD_NOW = 2, RTLD_LOCAL = 0, RTLD_GLOBAL = 256 };

#endif
