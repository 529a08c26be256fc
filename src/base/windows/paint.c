/* SPDX-License-Identifier: MIT
 * Interprets the escape sequences that this program writes, for consoles that do not understand them, such as consoles
 * of Wine and of old Windows. Colours become the nearest of sixteen. */
#include "console.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef ENABLE_VIRTUAL_TERMINAL_PROCESSING
#define ENABLE_VIRTUAL_TERMINAL_PROCESSING 4
#endif

enum { N_NUMBERS = 16, TEXT_UNITS = 1024 };

/* State of the console; static because only one thread writes to the console. */
static struct {
    HANDLE first, other; /* first and alternate screen buffer while the alternate one is shown, else NULL */
    WORD plain;          /* attributes that the console had at the start */
    int ink, paper;      /* text and background colour, 0 to 15; -1: the console's own */
    bool bold, dim, underline, reverse;
    bool has_begun;
} painter = {.ink = -1, .paper = -1};

bool whit_console_is_terminal(void)
{
    static int known; /* 1: yes, -1: no, 0: not tested yet */
    if (known) return known > 0;
    CONSOLE_SCREEN_BUFFER_INFO info = {0};
    DWORD n;
    HANDLE screen = CreateConsoleScreenBuffer(GENERIC_READ | GENERIC_WRITE, 0, NULL, CONSOLE_TEXTMODE_BUFFER, NULL);
    bool is = screen != INVALID_HANDLE_VALUE &&
        SetConsoleMode(screen, ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING) &&
        WriteConsoleW(screen, L"\033[2;4H", 6, &n, NULL) && GetConsoleScreenBufferInfo(screen, &info) &&
        info.dwCursorPosition.X == 3 && info.dwCursorPosition.Y == 1;
    if (screen != INVALID_HANDLE_VALUE) CloseHandle(screen);
    known = is ? 1 : -1;
    return is;
}

/* ---- colours -------------------------------------------------------------------------------- */

/* Returns the nearest of a console's sixteen colours, as bits: 1 blue, 2 green, 4 red, 8 bright. The arguments are 0 to
 * 255. */
static int color_of(int red, int green, int blue)
{
    int top = red, low = red;
    if (green > top) top = green;
    if (blue > top) top = blue;
    if (green < low) low = green;
    if (blue < low) low = blue;
    if (top < 48) return 0;
    if (top - low < 48) { /* grey */
        if (top > 208) return 15;
        return top > 112 ? 7 : 8;
    }
    const int middle = (top + low) / 2;
    return (blue > middle) | (green > middle) << 1 | (red > middle) << 2 | (top > 176) << 3;
}

/* Returns the nearest of the console's sixteen colours for colour `number` of xterm's 256 colours. */
static int color_256(int number)
{
    static const int levels[] = {0, 0x5F, 0x87, 0xAF, 0xD7, 0xFF};
    static const uint8_t order[] = {0, 4, 2, 6, 1, 5, 3, 7};
    if (number < 0 || number > 255) return -1;
    if (number < 16) return order[number & 7] | (number & 8);
    if (number > 231) return color_of(8 + 10 * (number - 232), 8 + 10 * (number - 232), 8 + 10 * (number - 232));
    number -= 16;
    return color_of(levels[number / 36], levels[number / 6 % 6], levels[number % 6]);
}

static WORD attributes_now(void)
{
    int ink = painter.ink < 0 ? painter.plain & 15 : painter.ink, paper = painter.paper;
    if (paper < 0) paper = painter.plain >> 4 & 15;
    if (painter.bold) ink |= 8;
    if (painter.dim && painter.ink < 0) ink = 8;
    int colors = ink | paper << 4;
    if (painter.reverse) colors = paper | ink << 4;
    return (WORD)(colors | (painter.underline ? COMMON_LVB_UNDERSCORE : 0));
}

/* Parses the extended colour (38 or 48, then 5 and a number of xterm's 256 colours, or 2 and red, green, blue) that
 * begins at numbers[i]; returns how many numbers it has after numbers[i]. */
static size_t take_color(const int *numbers, size_t n, size_t i, int *color)
{
    if (i + 4 < n && numbers[i + 1] == 2) {
        *color = color_of(numbers[i + 2], numbers[i + 3], numbers[i + 4]);
        return 4;
    }
    if (i + 2 < n && numbers[i + 1] == 5) *color = color_256(numbers[i + 2]);
    return 2;
}

static void take_look(const int *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int number = numbers[i];
        if (number == 0) {
            painter.ink = painter.paper = -1;
            painter.bold = painter.dim = painter.underline = painter.reverse = false;
        } else if (number == 1)
            painter.bold = true;
        else if (number == 2)
            painter.dim = true;
        else if (number == 4)
            painter.underline = true;
        else if (number == 7)
            painter.reverse = true;
        else if (number == 22)
            painter.bold = painter.dim = false;
        else if (number == 24)
            painter.underline = false;
        else if (number == 27)
            painter.reverse = false;
        else if (number == 38)
            i += take_color(numbers, n, i, &painter.ink);
        else if (number == 48)
            i += take_color(numbers, n, i, &painter.paper);
        else if (number == 39)
            painter.ink = -1;
        else if (number == 49)
            painter.paper = -1;
        else if ((number >= 30 && number <= 37) || (number >= 90 && number <= 97))
            painter.ink = color_256(number >= 90 ? number - 82 : number - 30);
        else if ((number >= 40 && number <= 47) || (number >= 100 && number <= 107))
            painter.paper = color_256(number >= 100 ? number - 92 : number - 40);
    }
}

/* ---- the screen ------------------------------------------------------------------------------ */

static void fill_cells(HANDLE screen, COORD from, DWORD n_cells)
{
    DWORD n;
    FillConsoleOutputCharacterW(screen, L' ', n_cells, from, &n);
    FillConsoleOutputAttribute(screen, attributes_now(), n_cells, from, &n);
}

/* Switches to the alternate screen, or back to the first one. */
static void show_other(HANDLE output, bool is_other)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (is_other == (painter.other != NULL) || !GetConsoleScreenBufferInfo(output, &info)) return;
    if (is_other) {
        HANDLE screen = CreateConsoleScreenBuffer(GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
                                                  NULL, CONSOLE_TEXTMODE_BUFFER, NULL);
        if (screen == INVALID_HANDLE_VALUE) return;
        HANDLE self = GetCurrentProcess();
        if (!DuplicateHandle(self, output, self, &painter.first, 0, FALSE, DUPLICATE_SAME_ACCESS)) {
            CloseHandle(screen);
            return;
        }
        SetConsoleMode(screen, ENABLE_PROCESSED_OUTPUT); /* without wrapping, so that writing the last cell does not
                                                          * scroll */
        SetConsoleScreenBufferSize(screen,
                                   (COORD){(SHORT)(info.srWindow.Right - info.srWindow.Left + 1),
                                           (SHORT)(info.srWindow.Bottom - info.srWindow.Top + 1)});
        SetConsoleActiveScreenBuffer(screen);
        painter.other = screen;
    } else {
        SetConsoleActiveScreenBuffer(painter.first);
        CloseHandle(painter.first);
        CloseHandle(painter.other);
        painter.first = painter.other = NULL;
    }
}

static void take_mode(HANDLE output, HANDLE screen, int number, bool is_on)
{
    CONSOLE_CURSOR_INFO cursor;
    if (number == 1049) show_other(output, is_on);
    if (number != 25 || !GetConsoleCursorInfo(screen, &cursor)) return;
    cursor.bVisible = is_on;
    SetConsoleCursorInfo(screen, &cursor);
}

/* Executes the control sequence ESC [ numbers final. */
static void take_sequence(HANDLE output, HANDLE screen, bool is_private, const int *numbers, size_t n, char final)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (!GetConsoleScreenBufferInfo(screen, &info)) return;
    const COORD at = info.dwCursorPosition, corner = {info.srWindow.Left, info.srWindow.Top};
    const DWORD n_columns = (DWORD)info.dwSize.X;
    if (is_private) {
        if (final == 'h' || final == 'l') take_mode(output, screen, numbers[0], final == 'h');
    } else if (final == 'm') {
        take_look(numbers, n);
        SetConsoleTextAttribute(screen, attributes_now());
    } else if (final == 'H') {
        /* Row and column are counted from 1; 0 and a missing number mean 1. */
        const int row = numbers[0] - (numbers[0] > 0), column = numbers[1] - (numbers[1] > 0);
        SetConsoleCursorPosition(screen, (COORD){(SHORT)(corner.X + column), (SHORT)(corner.Y + row)});
    } else if (final == 'J' && numbers[0] == 2) {
        fill_cells(screen, (COORD){0, corner.Y}, n_columns * (DWORD)(info.srWindow.Bottom - info.srWindow.Top + 1));
    } else if (final == 'J' && numbers[0] == 0) {
        fill_cells(screen, at, n_columns * (DWORD)(info.srWindow.Bottom - at.Y + 1) - (DWORD)at.X);
    } else if (final == 'K') {
        fill_cells(screen, at, n_columns - (DWORD)at.X);
    }
}

static bool show_text(HANDLE screen, const char *bytes, size_t n_bytes)
{
    wchar_t text[TEXT_UNITS];
    DWORD n_shown;
    while (n_bytes) {
        size_t n = n_bytes < TEXT_UNITS ? n_bytes : TEXT_UNITS;
        while (n < n_bytes && n > TEXT_UNITS - 4 && ((uint8_t)bytes[n] & 0xC0) == 0x80) n--;
        const int n_units = MultiByteToWideChar(CP_UTF8, 0, bytes, (int)n, text, TEXT_UNITS);
        if (!WriteConsoleW(screen, text, (DWORD)n_units, &n_shown, NULL)) return false;
        bytes += n;
        n_bytes -= n;
    }
    return true;
}

/* Executes the escape sequence at the beginning of `bytes` and returns its length, which is n_bytes if its end is
 * missing. */
static size_t take_escape(HANDLE output, const char *bytes, size_t n_bytes)
{
    HANDLE screen = painter.other ? painter.other : output;
    int numbers[N_NUMBERS] = {0};
    size_t n = 0, at = 2;
    if (n_bytes > 1 && bytes[1] == ']') { /* an operating system command (OSC) is skipped up to its final BEL */
        while (at < n_bytes && bytes[at] != '\a') at++;
        return at < n_bytes ? at + 1 : n_bytes;
    }
    if (n_bytes < 2 || bytes[1] != '[') return n_bytes < 2 ? n_bytes : 2;
    const bool is_private = at < n_bytes && (bytes[at] == '?' || bytes[at] == '>' || bytes[at] == '<');
    for (at += is_private; at < n_bytes; at++) {
        if (isdigit((uint8_t)bytes[at])) {
            if (n < N_NUMBERS && numbers[n] < 100000) numbers[n] = numbers[n] * 10 + bytes[at] - '0';
        } else if (bytes[at] == ';') {
            n++;
        } else {
            take_sequence(output, screen, is_private, numbers, n + 1 < N_NUMBERS ? n + 1 : N_NUMBERS, bytes[at]);
            return at + 1;
        }
    }
    return n_bytes;
}

bool whit_console_paint(HANDLE output, const char *bytes, size_t n_bytes)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (!painter.has_begun && GetConsoleScreenBufferInfo(output, &info)) painter.plain = info.wAttributes;
    painter.has_begun = true;
    for (size_t at = 0; at < n_bytes;) {
        if (bytes[at] == '\033') {
            at += take_escape(output, bytes + at, n_bytes - at);
            continue;
        }
        const char *escape = memchr(bytes + at, '\033', n_bytes - at);
        const size_t n = escape ? (size_t)(escape - bytes) - at : n_bytes - at;
        if (!show_text(painter.other ? painter.other : output, bytes + at, n)) return false;
        at += n;
    }
    return true;
}
