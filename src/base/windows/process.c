/* SPDX-License-Identifier: MIT
 * Implements functions of the process: environment, users, random numbers, Ctrl-C, libraries and calendar time. */
#include "wide.h"

#include <bcrypt.h>

#include "base/clock.h"
#include "base/system.h"

/* ---- environment ---------------------------------------------------------------------------- */

/* Copy of an environment variable's value, which is not freed before the process ends, because callers of getenv keep
 * pointers to it. */
typedef struct variable {
    struct variable *next;
    char *value;
    char name[];
} variable;
static variable *variables;
static pthread_mutex_t variables_lock = PTHREAD_MUTEX_INITIALIZER;

/* POSIX names of environment variables for folders, and the Windows variables whose values are used if the POSIX ones
 * are not set. */
static const struct {
    const char *name, *windows;
    bool is_path;
} places[] = {
    {"HOME", "USERPROFILE", true},           {"XDG_CACHE_HOME", "LOCALAPPDATA", true},
    {"XDG_DATA_HOME", "LOCALAPPDATA", true}, {"XDG_STATE_HOME", "LOCALAPPDATA", true},
    {"XDG_CONFIG_HOME", "APPDATA", true},    {"TMPDIR", "TEMP", true},
};

/* Returns the value of an environment variable in UTF-8, which the caller frees; NULL if the variable is not set. */
static char *read_variable(const char *name)
{
    wchar_t wide_name[256];
    if (MultiByteToWideChar(CP_UTF8, 0, name, -1, wide_name, 256) <= 0) return NULL;
    DWORD n = GetEnvironmentVariableW(wide_name, NULL, 0);
    if (!n) return NULL;
    wchar_t *wide = malloc(n * sizeof *wide);
    char *text = malloc((size_t)n * 3);
    bool ok = wide && text && GetEnvironmentVariableW(wide_name, wide, n) < n &&
        WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, (int)n * 3, NULL, NULL) > 0;
    free(wide);
    if (ok) return text;
    free(text);
    return NULL;
}

static char *find_value(const char *name)
{
    char *value = read_variable(name);
    for (size_t i = 0; !value && i < sizeof places / sizeof *places; i++)
        if (!strcmp(places[i].name, name)) value = read_variable(places[i].windows);
    for (size_t i = 0; value && i < sizeof places / sizeof *places; i++)
        if (!strcmp(places[i].name, name))
            for (char *at = value; *at; at++)
                if (*at == '\\') *at = '/';
    return value;
}

char *whit_posix_getenv(const char *name)
{
    char *value = find_value(name);
    if (!value) return NULL;
    pthread_mutex_lock(&variables_lock);
    variable *known = variables;
    while (known && (strcmp(known->name, name) != 0 || strcmp(known->value, value) != 0)) known = known->next;
    size_t n = strlen(name) + 1;
    if (!known && (known = malloc(sizeof *known + n))) {
        memcpy(known->name, name, n);
        known->value = value;
        known->next = variables;
        variables = known;
        value = NULL;
    }
    pthread_mutex_unlock(&variables_lock);
    free(value);
    return known ? known->value : NULL;
}

int setenv(const char *name, const char *value, int replace)
{
    wchar_t wide_name[256], *wide = NULL;
    char *before = replace ? NULL : read_variable(name);
    free(before);
    if (before) return 0;
    int n = value ? MultiByteToWideChar(CP_UTF8, 0, value, -1, NULL, 0) : 0;
    if (value &&
        (!(wide = malloc((size_t)n * sizeof *wide)) || MultiByteToWideChar(CP_UTF8, 0, value, -1, wide, n) <= 0)) {
        free(wide);
        errno = ENOMEM;
        return -1;
    }
    bool ok = MultiByteToWideChar(CP_UTF8, 0, name, -1, wide_name, 256) > 0 && SetEnvironmentVariableW(wide_name, wide);
    free(wide);
    return ok ? 0 : whit_wide_error();
}

int unsetenv(const char *name)
{
    return setenv(name, NULL, 1);
}

uid_t getuid(void)
{
    return 1000; /* any number but 0 (root), because Windows has no user numbers */
}

uid_t geteuid(void)
{
    return getuid();
}

ssize_t getrandom(void *bytes, size_t n_bytes, unsigned flags)
{
    (void)flags;
    if (BCryptGenRandom(NULL, bytes, (ULONG)n_bytes, BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0) return (ssize_t)n_bytes;
    errno = EIO;
    return -1;
}

uint64_t whit_system_draw(void)
{
    uint64_t drawn;
    return getrandom(&drawn, sizeof drawn, 0) == (ssize_t)sizeof drawn ? drawn : whit_now_ns();
}

/* ---- signals -------------------------------------------------------------------------------- */

static struct sigaction actions[32];
static _Atomic unsigned n_signals;

unsigned whit_signal_count(void)
{
    return n_signals;
}

static BOOL WINAPI on_console_event(DWORD event)
{
    int number = event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT ? SIGINT : SIGTERM;
    void (*handler)(int) = actions[number].sa_handler;
    if (handler == SIG_DFL) return FALSE;
    if (handler != SIG_IGN) handler(number);
    n_signals++;
    /* If the console was closed, Windows ends the process when this function returns; the delay lets the main thread
     * finish. */
    if (number == SIGTERM) Sleep(4000);
    return TRUE;
}

int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    static bool is_installed;
    if (number < 1 || number >= 32) {
        errno = EINVAL;
        return -1;
    }
    if (before) *before = actions[number];
    if (action) actions[number] = *action;
    if ((number == SIGINT || number == SIGTERM) && !is_installed) {
        is_installed = true;
        SetConsoleCtrlHandler(on_console_event, TRUE);
    }
    return 0;
}

int sigemptyset(sigset_t *signals)
{
    *signals = 0;
    return 0;
}

int sigfillset(sigset_t *signals)
{
    *signals = ~UINT64_C(0);
    return 0;
}

int sigaddset(sigset_t *signals, int number)
{
    *signals |= UINT64_C(1) << number;
    return 0;
}

int sigdelset(sigset_t *signals, int number)
{
    *signals &= ~(UINT64_C(1) << number);
    return 0;
}

int whit_posix_sigmask(int how, const sigset_t *signals, sigset_t *before)
{
    /* Does nothing, because on Windows handlers run in a separate thread, so signals need not be blocked. */
    (void)how, (void)signals;
    if (before) *before = 0;
    return 0;
}

int pause(void)
{
    Sleep(INFINITE);
    return -1;
}

int kill(pid_t process, int number)
{
    if (process == (pid_t)GetCurrentProcessId() && number > 0 && number < 32) {
        void (*handler)(int) = actions[number].sa_handler;
        if (handler == SIG_DFL) ExitProcess(128u + (unsigned)number);
        if (handler != SIG_IGN) handler(number);
        n_signals++;
        return 0;
    }
    HANDLE other = OpenProcess(number ? PROCESS_TERMINATE : PROCESS_QUERY_LIMITED_INFORMATION, FALSE, (DWORD)process);
    if (!other) {
        errno = ESRCH;
        return -1;
    }
    bool ok = number == 0 || TerminateProcess(other, 128u + (unsigned)number);
    CloseHandle(other);
    return ok ? 0 : whit_wide_error();
}

/* ---- waits ---------------------------------------------------------------------------------- */

#undef pthread_cond_timedwait
int whit_posix_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until)
{
    struct timespec now, date;
    clock_gettime(CLOCK_MONOTONIC, &now);
    clock_gettime(CLOCK_REALTIME, &date);
    int64_t left_ns = (int64_t)(until->tv_sec - now.tv_sec) * 1000000000 + (until->tv_nsec - now.tv_nsec);
    if (left_ns < 0) left_ns = 0;
    const int64_t end_ns = date.tv_nsec + left_ns;
    date.tv_sec += (time_t)(end_ns / 1000000000);
    date.tv_nsec = (long)(end_ns % 1000000000);
    return pthread_cond_timedwait(condition, lock, &date);
}

/* ---- libraries ------------------------------------------------------------------------------ */

void *dlopen(const char *name, int flags)
{
    wchar_t wide[WHIT_WIDE_MAX];
    (void)flags;
    if (!name) return GetModuleHandleW(NULL);
    if (!whit_wide_path(name, wide)) return NULL;
    void *library = LoadLibraryW(wide);
    if (!library) whit_wide_error();
    return library;
}

void *dlsym(void *library, const char *name)
{
    return (void *)(uintptr_t)GetProcAddress(library, name);
}

int dlclose(void *library)
{
    return FreeLibrary(library) ? 0 : whit_wide_error();
}

char *dlerror(void)
{
    return strerror(errno);
}

/* ---- the calendar --------------------------------------------------------------------------- */

struct tm *localtime_r(const time_t *when, struct tm *parts)
{
    return _localtime64_s(parts, when) == 0 ? parts : NULL;
}

struct tm *gmtime_r(const time_t *when, struct tm *parts)
{
    return _gmtime64_s(parts, when) == 0 ? parts : NULL;
}

time_t timegm(struct tm *parts)
{
    return _mkgmtime64(parts);
}
