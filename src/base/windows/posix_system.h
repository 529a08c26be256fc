/* SPDX-License-Identifier: MIT
 * Declares the part of posix.h for memory, processes, environment, time, signals and terminals. */
#ifndef WHIT_BASE_WINDOWS_POSIX_SYSTEM_H
#define WHIT_BASE_WINDOWS_POSIX_SYSTEM_H

#include "posix_head.h"

/* ---- mappings ------------------------------------------------------------------------------- */

enum { PROT_NONE = 0, PROT_READ = 1, PROT_WRITE = 2, PROT_EXEC = 4 };
enum { MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_ANONYMOUS = 32, MAP_NORESERVE = 0, MAP_POPULATE = 0 };
enum {
    MADV_NORMAL = 0,
    MADV_RANDOM = 1,
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

/* ---- signals: SIGINT for Ctrl-C, SIGTERM for the console's end, SIGWINCH for its new size --------- */

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
/* Waits for the condition until a time of the monotonic clock, which all conditions of this program use; winpthreads
 * interprets the time as calendar time even if the condition was created for the monotonic clock. */
int whit_posix_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until);
#undef pthread_cond_timedwait
#define pthread_cond_timedwait whit_posix_timedwait
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
/* Flags that a console does not have: setting or clearing them changes nothing. */
enum { ECHOE = 0, ECHOK = 0, ICRNL = 0, IGNCR = 0, INLCR = 0, OPOST = 0 };
struct winsize {
    unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};
enum { TIOCGWINSZ = 0x5413 };
int tcgetattr(int fd, struct termios *settings);
int tcsetattr(int fd, int when, const struct termios *settings);
int ioctl(int fd, unsigned long request, ...);
pid_t getsid(pid_t process);
pid_t tcgetsid(int fd);
int whit_posix_isatty(int fd);
#undef isatty
#define isatty whit_posix_isatty

#define pollfd whit_posix_pollfd /* winsock2.h defines another `struct pollfd` */
struct pollfd {
    int fd;
    short events, revents;
};
typedef unsigned long nfds_t;
enum { POLLIN = 1, POLLPRI = 2, POLLOUT = 4, POLLERR = 8, POLLHUP = 16, POLLNVAL = 32 };
/* Waits until a descriptor of a file, pipe or console (not a socket) is ready; files, and all descriptors for writing,
 * are always ready. */
int whit_posix_poll(struct pollfd *wanted, nfds_t n, int timeout_ms);
#define poll whit_posix_poll

#endif
