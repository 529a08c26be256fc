/* SPDX-License-Identifier: MIT
 * Handles signals for the command line program; the library itself installs no handlers.
 *
 * Handlers run between any two instructions, so they use only the static variables below and write(2). */
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cli/cli.h"

static volatile bool cancelled, terminated, continued;
static const struct termios *volatile terminal_before; /* NULL: there are no settings to restore */

/* Lists the mapped files, which are registered before the program can fault in them. */
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

/* Restores the terminal's settings; tcsetattr and write are safe in handlers. */
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
    static volatile int told; /* an int: gcc calls a library for smaller types on RISC-V */
    (void)number;
    (void)context;
    const char *at = info->si_addr;
    while (__atomic_exchange_n(&told, 1, __ATOMIC_SEQ_CST)) pause(); /* another thread is reporting already */
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
    /* A shell starts background jobs with Ctrl-C ignored, because Ctrl-C is meant for the foreground job. */
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGINT, &action, NULL);
    action = (struct sigaction){.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    action = (struct sigaction){.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL); /* exceeding a file size limit becomes an error of the write */
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
