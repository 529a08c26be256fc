/* SPDX-License-Identifier: MIT */
#include "console.h"

#include <signal.h>
#include <stdio.h>

static bool wants_mouse;

/* Keys that produce no character, with the number or the letter in xterm's escape sequence for the key. */
static const struct named_key {
    WORD key;
    char number, letter;
} named_keys[] = {
    {VK_UP, 0, 'A'},  {VK_DOWN, 0, 'B'}, {VK_RIGHT, 0, 'C'}, {VK_LEFT, 0, 'D'}, {VK_HOME, 0, 'H'}, {VK_END, 0, 'F'},
    {VK_F1, 0, 'P'},  {VK_F2, 0, 'Q'},   {VK_F3, 0, 'R'},    {VK_F4, 0, 'S'},   {VK_INSERT, 2, 0}, {VK_DELETE, 3, 0},
    {VK_PRIOR, 5, 0}, {VK_NEXT, 6, 0},   {VK_F5, 15, 0},     {VK_F6, 17, 0},    {VK_F7, 18, 0},    {VK_F8, 19, 0},
    {VK_F9, 20, 0},   {VK_F10, 21, 0},   {VK_F11, 23, 0},    {VK_F12, 24, 0},
};

static size_t put_named(const struct named_key *named, int mods, char *bytes)
{
    int n;
    if (named->letter && mods)
        n = snprintf(bytes, WHIT_CONSOLE_KEY_BYTES, "\033[1;%d%c", 1 + mods, named->letter);
    else if (named->letter)
        n = snprintf(bytes, WHIT_CONSOLE_KEY_BYTES, "\033[%c", named->letter);
    else if (mods)
        n = snprintf(bytes, WHIT_CONSOLE_KEY_BYTES, "\033[%d;%d~", named->number, 1 + mods);
    else
        n = snprintf(bytes, WHIT_CONSOLE_KEY_BYTES, "\033[%d~", named->number);
    return (size_t)n;
}

static size_t put_letter(wchar_t letter, bool alt, char *bytes)
{
    static wchar_t high; /* pending high surrogate of a character above U+FFFF; static because only one thread reads
                          * the console */
    size_t n = 0;
    if (IS_HIGH_SURROGATE(letter)) {
        high = letter;
        return 0;
    }
    if (alt) bytes[n++] = '\033';
    const wchar_t units[2] = {high, letter};
    const int n_units = high && IS_LOW_SURROGATE(letter) ? 2 : 1;
    high = 0;
    return n + (size_t)WideCharToMultiByte(CP_UTF8, 0, units + 2 - n_units, n_units, bytes + n, 6, NULL, NULL);
}

static size_t put_key(const KEY_EVENT_RECORD *key, char *bytes)
{
    const DWORD state = key->dwControlKeyState;
    const bool ctrl = state & (LEFT_CTRL_PRESSED | RIGHT_CTRL_PRESSED), shift = state & SHIFT_PRESSED;
    /* AltGr, which selects characters and does not count as Alt */
    const bool alt_graph = state & RIGHT_ALT_PRESSED && ctrl;
    const bool alt = state & (LEFT_ALT_PRESSED | RIGHT_ALT_PRESSED) && !alt_graph;
    const wchar_t letter = key->uChar.UnicodeChar;
    /* A character that is typed as a number with Alt is in the record of Alt's release. */
    if (!key->bKeyDown) return key->wVirtualKeyCode == VK_MENU && letter ? put_letter(letter, false, bytes) : 0;
    for (size_t i = 0; i < sizeof named_keys / sizeof *named_keys; i++)
        if (named_keys[i].key == key->wVirtualKeyCode && !letter)
            return put_named(&named_keys[i], shift | alt << 1 | ctrl << 2, bytes);
    switch (key->wVirtualKeyCode) {
    case VK_BACK: return put_letter(ctrl ? 8 : 127, alt, bytes);
    case VK_TAB:
        if (!shift) break;
        memcpy(bytes, "\033[Z", 3);
        return 3;
    case VK_SPACE:
        if (!ctrl) break;
        if (alt) *bytes = '\033';
        bytes[alt] = 0;
        return 1u + alt;
    default: break;
    }
    return letter ? put_letter(letter, alt, bytes) : 0;
}

static size_t put_mouse(HANDLE output, const MOUSE_EVENT_RECORD *mouse, char *bytes)
{
    static DWORD held; /* state of the left button in the previous record */
    CONSOLE_SCREEN_BUFFER_INFO screen;
    const DWORD left = FROM_LEFT_1ST_BUTTON_PRESSED, now = mouse->dwButtonState & left, before = held;
    int button = 0;
    held = now;
    if (!wants_mouse || !GetConsoleScreenBufferInfo(output, &screen)) return 0;
    if (mouse->dwEventFlags == MOUSE_WHEELED)
        button = 64 | ((int32_t)mouse->dwButtonState < 0 ? 1 : 0);
    else if (mouse->dwEventFlags == MOUSE_MOVED && now && before)
        button = 32;
    else if (now == before)
        return 0;
    if (mouse->dwControlKeyState & SHIFT_PRESSED) button |= 4;
    if (mouse->dwControlKeyState & (LEFT_ALT_PRESSED | RIGHT_ALT_PRESSED)) button |= 8;
    if (mouse->dwControlKeyState & (LEFT_CTRL_PRESSED | RIGHT_CTRL_PRESSED)) button |= 16;
    return (size_t)snprintf(bytes, WHIT_CONSOLE_KEY_BYTES, "\033[<%d;%d;%d%c", button,
                            mouse->dwMousePosition.X - screen.srWindow.Left + 1,
                            mouse->dwMousePosition.Y - screen.srWindow.Top + 1, now || button & 64 ? 'M' : 'm');
}

size_t whit_console_key(HANDLE output, const INPUT_RECORD *record, char bytes[WHIT_CONSOLE_KEY_BYTES])
{
    switch (record->EventType) {
    case KEY_EVENT: return put_key(&record->Event.KeyEvent, bytes);
    case MOUSE_EVENT: return put_mouse(output, &record->Event.MouseEvent, bytes);
    case WINDOW_BUFFER_SIZE_EVENT: (void)kill((pid_t)GetCurrentProcessId(), SIGWINCH); return 0;
    default: return 0;
    }
}

/* Returns whether the bytes contain `sequence`, which switches a mode on or off. */
static bool has_mode(const char *bytes, size_t n_bytes, const char *sequence)
{
    return memmem(bytes, n_bytes, sequence, strlen(sequence)) != NULL;
}

void whit_console_ask_mouse(HANDLE input, const char *bytes, size_t n_bytes)
{
    const DWORD selects = ENABLE_QUICK_EDIT_MODE;
    DWORD mode;
    const bool begins = has_mode(bytes, n_bytes, "\033[?1002h"), ends = has_mode(bytes, n_bytes, "\033[?1002l");
    if (begins == ends || !GetConsoleMode(input, &mode)) return;
    wants_mouse = begins;
    if (begins)
        SetConsoleMode(input, ((mode | ENABLE_MOUSE_INPUT) & ~selects) | ENABLE_EXTENDED_FLAGS);
    else
        SetConsoleMode(input, mode | selects | ENABLE_EXTENDED_FLAGS);
}
