/* SPDX-License-Identifier: MIT
 * Implements consoles: UTF-8 input and output, their size, and waiting for input. */
#include "console.h"

#include <poll.h>
#include <stdarg.h>
#include <termios.h>

enum { WRITE_BYTES = 8192 }; /* limit of one write: a console refuses large blocks */

static bool is_console(HANDLE handle)
{
    DWORD mode;
    return handle != INVALID_HANDLE_VALUE && GetConsoleMode(handle, &mode);
}

int whit_posix_isatty(int fd)
{
    if (is_console((HANDLE)_get_osfhandle(fd))) return 1;
    errno = ENOTTY;
    return 0;
}

/* UTF-8 text that was read from the console but not yet returned by whit_posix_read: bytes [begin, end). Only one
 * thread reads the console. */
static struct {
    char text[4 * 512];
    size_t begin, end;
} typed;

static HANDLE open_output(void)
{
    return CreateFileW(L"CONOUT$", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
                       OPEN_EXISTING, 0, NULL);
}

/* Appends the keys that were typed so far to `typed`, in a console that is not in line mode. The result is false if the
 * console cannot be read. */
static bool take_typed(HANDLE console)
{
    INPUT_RECORD records[32];
    DWORD n;
    /* Peeking also makes wine begin to read its terminal. */
    while (PeekConsoleInputW(console, records, 1, &n) && n) {
        const size_t room = sizeof typed.text - (typed.end - typed.begin);
        if (room < 32 * WHIT_CONSOLE_KEY_BYTES) return true;
        memmove(typed.text, typed.text + typed.begin, typed.end - typed.begin);
        typed.end -= typed.begin;
        typed.begin = 0;
        if (!ReadConsoleInputW(console, records, 32, &n)) return false;
        HANDLE output = open_output();
        for (DWORD i = 0; i < n; i++) {
            const size_t length = whit_console_key(output, &records[i], typed.text + typed.end);
            const bool is_held = records[i].EventType == KEY_EVENT && records[i].Event.KeyEvent.wRepeatCount > 1;
            if (is_held) records[i--].Event.KeyEvent.wRepeatCount--;
            typed.end += length;
            if (sizeof typed.text - typed.end < 2 * WHIT_CONSOLE_KEY_BYTES)
                break; /* drops the remaining repeats of a held key, and the records after them */
        }
        CloseHandle(output);
    }
    return true;
}

static bool wants_lines(HANDLE console)
{
    DWORD mode;
    return !GetConsoleMode(console, &mode) || mode & ENABLE_LINE_INPUT;
}

/* Reads a line as UTF-16 into `typed` and converts it to UTF-8: reading bytes in code page 65001 loses letters outside
 * ASCII. After Ctrl-Z at the beginning of a line `typed` is empty, which means the end of the input. The result is
 * false on failure. */
static bool read_line(HANDLE console)
{
    wchar_t wide[512];
    DWORD n_wide = 0;
    SetLastError(0);
    if (!ReadConsoleW(console, wide, sizeof wide / sizeof *wide, &n_wide, NULL)) return false;
    if (!n_wide && GetLastError() == ERROR_OPERATION_ABORTED) return false; /* Ctrl-C ended the read */
    typed.begin = typed.end = 0;
    if (!n_wide || wide[0] == 0x1A) return true;
    int n = WideCharToMultiByte(CP_UTF8, 0, wide, (int)n_wide, typed.text, sizeof typed.text, NULL, NULL);
    for (int i = 0; i < n; i++)
        if (typed.text[i] != '\r') typed.text[typed.end++] = typed.text[i];
    return true;
}

static ssize_t read_console(HANDLE console, void *bytes, size_t n_bytes)
{
    if (typed.begin == typed.end && wants_lines(console) && !read_line(console)) return whit_wide_error();
    while (typed.begin == typed.end && !wants_lines(console))
        if (WaitForSingleObject(console, INFINITE) != WAIT_OBJECT_0 || !take_typed(console)) return whit_wide_error();
    size_t n = typed.end - typed.begin;
    if (n > n_bytes) n = n_bytes;
    memcpy(bytes, typed.text + typed.begin, n);
    typed.begin += n;
    return (ssize_t)n;
}

ssize_t whit_console_write(HANDLE console, const void *bytes, size_t n_bytes)
{
    HANDLE input = CreateFileW(L"CONIN$", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
                               OPEN_EXISTING, 0, NULL);
    DWORD n = 0;
    if (n_bytes > WRITE_BYTES) n_bytes = WRITE_BYTES;
    if (input != INVALID_HANDLE_VALUE) whit_console_ask_mouse(input, bytes, n_bytes);
    if (input != INVALID_HANDLE_VALUE) CloseHandle(input);
    if (whit_console_is_terminal())
        return WriteFile(console, bytes, (DWORD)n_bytes, &n, NULL) ? (ssize_t)n : whit_wide_error();
    return whit_console_paint(console, bytes, n_bytes) ? (ssize_t)n_bytes : whit_wide_error();
}

ssize_t whit_posix_read(int fd, void *bytes, size_t n_bytes)
{
    HANDLE handle = (HANDLE)_get_osfhandle(fd);
    DWORD n;
    if (handle == INVALID_HANDLE_VALUE) {
        errno = EBADF;
        return -1;
    }
    if (is_console(handle)) return read_console(handle, bytes, n_bytes);
    if (ReadFile(handle, bytes, n_bytes < 1u << 30 ? (DWORD)n_bytes : 1u << 30, &n, NULL)) return (ssize_t)n;
    if (GetLastError() == ERROR_BROKEN_PIPE || GetLastError() == ERROR_HANDLE_EOF) return 0;
    if (GetLastError() == ERROR_NO_DATA) { /* an empty pipe in non-blocking mode */
        errno = EAGAIN;
        return -1;
    }
    return whit_wide_error();
}

static bool is_ready(HANDLE handle, short events)
{
    DWORD n, kind = GetFileType(handle);
    if (events & POLLOUT) return true;
    if (kind == FILE_TYPE_PIPE) return !PeekNamedPipe(handle, NULL, 0, NULL, &n, NULL) || n > 0;
    if (!is_console(handle)) return true;
    if (!wants_lines(handle) && typed.begin == typed.end && !take_typed(handle)) return true;
    return typed.begin < typed.end || (wants_lines(handle) && WaitForSingleObject(handle, 0) == WAIT_OBJECT_0);
}

int whit_posix_poll(struct pollfd *wanted, nfds_t n, int timeout_ms)
{
    /* Windows cannot wait for pipes, so they are polled every few milliseconds. */
    enum { LOOK_MS = 5 };
    unsigned n_signals = whit_signal_count();
    ULONGLONG until_ms = GetTickCount64() + (timeout_ms > 0 ? (ULONGLONG)timeout_ms : 0);
    for (;;) {
        int n_ready = 0;
        for (nfds_t i = 0; i < n; i++) {
            wanted[i].revents = 0;
            if (wanted[i].fd < 0) continue;
            if (is_ready((HANDLE)_get_osfhandle(wanted[i].fd), wanted[i].events))
                wanted[i].revents = wanted[i].events & (POLLIN | POLLOUT);
            n_ready += wanted[i].revents != 0;
        }
        if (n_ready || (timeout_ms >= 0 && GetTickCount64() >= until_ms)) return n_ready;
        Sleep(LOOK_MS);
        if (whit_signal_count() != n_signals) {
            errno = EINTR;
            return -1;
        }
    }
}

int ppoll(struct pollfd *wanted, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    (void)mask;
    return poll(wanted, n, timeout ? (int)(timeout->tv_sec * 1000 + timeout->tv_nsec / 1000000) : -1);
}

int tcflush(int fd, int queue)
{
    (void)queue;
    typed.begin = typed.end = 0;
    return FlushConsoleInputBuffer((HANDLE)_get_osfhandle(fd)) ? 0 : whit_wide_error();
}

int ioctl(int fd, unsigned long request, ...)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    DWORD n_typed;
    bool is_input = GetNumberOfConsoleInputEvents((HANDLE)_get_osfhandle(fd), &n_typed);
    HANDLE output = is_input ? open_output() : (HANDLE)_get_osfhandle(fd);
    bool is_known = request == TIOCGWINSZ && GetConsoleScreenBufferInfo(output, &info);
    if (is_input) CloseHandle(output);
    if (!is_known) {
        errno = ENOTTY;
        return -1;
    }
    va_list arguments;
    va_start(arguments, request);
    struct winsize *size = va_arg(arguments, struct winsize *);
    va_end(arguments);
    *size = (struct winsize){.ws_row = (unsigned short)(info.srWindow.Bottom - info.srWindow.Top + 1),
                             .ws_col = (unsigned short)(info.srWindow.Right - info.srWindow.Left + 1)};
    return 0;
}

pid_t getsid(pid_t process)
{
    (void)process;
    return 1; /* a process has at most one console */
}

pid_t tcgetsid(int fd)
{
    return isatty(fd) ? getsid(0) : -1;
}

int tcgetattr(int fd, struct termios *settings)
{
    DWORD mode;
    if (!GetConsoleMode((HANDLE)_get_osfhandle(fd), &mode)) {
        errno = ENOTTY;
        return -1;
    }
    *settings = (struct termios){.c_iflag = mode, .c_lflag = ECHO | ICANON | ISIG};
    if (!(mode & ENABLE_ECHO_INPUT)) settings->c_lflag &= ~(tcflag_t)ECHO;
    if (!(mode & ENABLE_LINE_INPUT)) settings->c_lflag &= ~(tcflag_t)ICANON;
    return 0;
}

void cfmakeraw(struct termios *settings)
{
    settings->c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG | IEXTEN);
}

int tcsetattr(int fd, int when, const struct termios *settings)
{
    DWORD mode = settings->c_iflag & ~(DWORD)(ENABLE_ECHO_INPUT | ENABLE_LINE_INPUT | ENABLE_PROCESSED_INPUT);
    (void)when;
    if (settings->c_lflag & ECHO) mode |= ENABLE_ECHO_INPUT;
    if (settings->c_lflag & ICANON) mode |= ENABLE_LINE_INPUT;
    if (settings->c_lflag & ISIG) mode |= ENABLE_PROCESSED_INPUT;
    if (!(settings->c_lflag & ICANON)) mode |= ENABLE_WINDOW_INPUT;
    if (SetConsoleMode((HANDLE)_get_osfhandle(fd), mode)) return 0;
    errno = ENOTTY;
    return -1;
}
