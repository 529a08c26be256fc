/* SPDX-License-Identifier: MIT */
#include "base/typed.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define FREE_MS 50 /* how long a terminal has no input before a question is asked */

/* Sets the terminal to line input with echo: a program that crashed may have left it in raw mode, in which the first
 * typed letter would be taken for the whole answer. `before` receives the old settings. Returns whether the settings
 * were changed. */
static bool begin_lines(int terminal, struct termios *before)
{
    const tcflag_t lines = ICANON | ECHO | ECHOE | ECHOK | ISIG;
    if (tcgetattr(terminal, before) != 0) return false;
    struct termios usual = *before;
    usual.c_lflag |= lines;
    usual.c_iflag = (usual.c_iflag | ICRNL) & ~(tcflag_t)(IGNCR | INLCR);
    usual.c_oflag |= OPOST;
    const bool is_usual =
        usual.c_lflag == before->c_lflag && usual.c_iflag == before->c_iflag && usual.c_oflag == before->c_oflag;
    return !is_usual && tcsetattr(terminal, TCSANOW, &usual) == 0;
}

/* Discards input until none has come for FREE_MS: a paste may be larger than the terminal's queue, and its later lines
 * must not answer a question. Meanwhile the terminal has no lines, so that each byte counts. Returns false after a
 * signal's handler has run. */
static bool discard_input(int terminal, const sigset_t *waiting)
{
    struct pollfd input = {.fd = terminal, .events = POLLIN};
    const struct timespec free_time = {.tv_nsec = FREE_MS * 1000000L};
    struct termios before, bytes;
    const bool is_terminal = tcgetattr(terminal, &before) == 0;
    int got = 1;
    if (is_terminal) {
        bytes = before;
        bytes.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        bytes.c_cc[VMIN] = 1;
        bytes.c_cc[VTIME] = 0;
        (void)tcsetattr(terminal, TCSANOW, &bytes);
    }
    do {
        (void)tcflush(terminal, TCIFLUSH);
        got = ppoll(&input, 1, &free_time, waiting);
    } while (got > 0 && !(input.revents & (POLLHUP | POLLERR | POLLNVAL)));
    const int failure = errno;
    if (is_terminal) (void)tcsetattr(terminal, TCSAFLUSH, &before);
    errno = failure;
    return got >= 0;
}

/* Sets colours, letters and the wrapping of lines, ends insertion, and makes the region that scrolls the whole screen,
 * with the cursor where it was. Then gives the cursor's line its usual width, and erases the lines below it, which may
 * have letters of double width. */
#define USUAL "\033[0m\033(B\017\033[?7h\033[4l\0337\033[r\0338\033#5\033[J"

const char *whit_typed_plain(void)
{
    const char *kind = getenv("TERM");
    if (!kind || !*kind || strcmp(kind, "dumb") == 0) return "";
    /* the console of Linux would print the end of the last sequence, which sets the direction of a line */
    return strncmp(kind, "linux", 5) == 0 ? USUAL : USUAL "\x1b[?2501l\x1b[1 k";
}

unsigned whit_typed_columns(int terminal)
{
    struct winsize size;
    return ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

size_t whit_typed_overflow(int terminal, const char *text, size_t n)
{
    struct winsize size;
    const size_t n_screen = ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : 24;
    size_t n_rows = 1;
    for (size_t i = 0; i < n; i++) n_rows += text[i] == '\n';
    return n_rows < n_screen ? 0 : n_rows;
}

bool whit_typed_waits(int terminal)
{
    struct pollfd earlier = {.fd = terminal, .events = POLLIN};
    return poll(&earlier, 1, 0) != 0;
}

/* Blocks the signals that end a wait until ppoll(2) waits, so that none is missed: ppoll is never restarted after a
 * signal handler, while read would be. SIGCONT, which resumes after Ctrl-Z, stays blocked during the wait and does not
 * end it. `before` receives the old mask, `waiting` the one for ppoll. */
static void hold_signals(sigset_t *before, sigset_t *waiting)
{
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigprocmask(SIG_BLOCK, &held, before);
    *waiting = *before;
    sigaddset(waiting, SIGCONT);
}

bool whit_typed_discard(int terminal)
{
    sigset_t before, waiting;
    hold_signals(&before, &waiting);
    const bool is_free = discard_input(terminal, &waiting);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return is_free;
}

ssize_t whit_typed_ask(int terminal, const char *question, size_t n_question, const char *mark, char *line, size_t room)
{
    sigset_t before, waiting;
    struct pollfd wait = {.fd = terminal, .events = POLLIN};
    struct termios settings;
    hold_signals(&before, &waiting);
    const bool is_changed = begin_lines(terminal, &settings);
    ssize_t got = discard_input(terminal, &waiting) ? 0 : -1;
    dprintf(terminal, "%s%.*s%s", whit_typed_plain(), (int)n_question, question, mark);
    if (got == 0) got = ppoll(&wait, 1, NULL, &waiting) < 0 ? -1 : read(terminal, line, room);
    if (got < 0) dprintf(terminal, "\n");
    if (is_changed) (void)tcsetattr(terminal, TCSANOW, &settings);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return got;
}
