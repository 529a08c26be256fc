/* SPDX-License-Identifier: MIT
 * Installs the signal handlers of the command line program; the library itself installs no handlers.
 *
 * A handler may run between any two instructions, so handlers use only the static variables below and functions that
 * POSIX allows in handlers, such as write(2). */
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cli/cli.h"

static volatile bool cancelled, terminated, continued;
static const struct termios *volatile terminal_before; /* settings to restore; NULL: they were not changed */

/* Mapped files that on_bus_error can name; when the list is full, further files are left out. */
static struct guard {
    const char *start;
    size_t size_bytes;
    char path[512];
} guards[64];
static size_t n_guards;
static const char *likely_path = "a mapped file";

static void say(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

/* Restores the terminal's settings and switches bracketed paste off. POSIX allows tcsetattr and write in handlers. */
static void give_terminal_back(void)
{
    static const char paste_off[] = "\x1b[?2004l\n";
    if (!terminal_before) return;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, (const struct termios *)terminal_before);
    ssize_t ignored = write(STDOUT_FILENO, paste_off, sizeof paste_off - 1);
    (void)ignored;
}

static void on_interrupt(int number)
{
    if (cancelled) {
        give_terminal_back();
        _exit(CLI_INTERRUPTED);
    }
    if (number == SIGTERM) terminated = true;
    cancelled = true;
}

static void on_continue(int number)
{
    (void)number;
    continued = true;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    static volatile int told; /* an int, because on RISC-V gcc calls a library function for smaller atomic types */
    (void)number;
    (void)context;
    const char *at = info->si_addr;
    /* While another thread reports, this one waits for it to end the program. */
    while (__atomic_exchange_n(&told, 1, __ATOMIC_SEQ_CST)) pause();
    say("whit: ");
    const char *path = likely_path;
    for (size_t i = 0; i < n_guards; i++)
        if (at >= guards[i].start && (size_t)(at - guards[i].start) < guards[i].size_bytes) path = guards[i].path;
    say(path);
    say(": the file was truncated, or its disk failed, while it was in use\n");
    give_terminal_back();
    _exit(CLI_MAPPING);
}

void cli_signals_install(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART}, before;
    sigaction(SIGTERM, &action, NULL);
    /* If a shell has started the program in the background, Ctrl-C is ignored and stays ignored, because it is meant
     * for the job in the foreground. */
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGINT, &action, NULL);
    action = (struct sigaction){.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    action = (struct sigaction){.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL); /* a write beyond the file size limit then fails and does not end the program */
}

const volatile bool *cli_cancelled(void)
{
    return &cancelled;
}

bool cli_take_interrupt(void)
{
    if (!cancelled || terminated) return false;
    cancelled = false;
    return true;
}

bool cli_was_continued(void)
{
    struct sigaction action = {.sa_handler = on_continue, .sa_flags = SA_RESTART};
    sigaction(SIGCONT, &action, NULL);
    bool was = continued;
    continued = false;
    return was;
}

void cli_signals_restore(const struct termios *settings)
{
    terminal_before = settings;
}

void cli_guard_likely(const char *path)
{
    likely_path = path;
}

void cli_guard_file(const void *address, size_t size_bytes, const char *path)
{
    if (n_guards == sizeof guards / sizeof *guards) return;
    struct guard *guard = &guards[n_guards];
    size_t n_path = strnlen(path, sizeof guard->path - 1);
    memcpy(guard->path, path, n_path);
    guard->start = address;
    guard->size_bytes = size_bytes;
    n_guards++;
}
