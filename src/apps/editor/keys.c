/* SPDX-License-Identifier: MIT */
#include "editor/keys.h"

#include "base/utf8.h"

#include <stdio.h>
#include <strings.h>

#define SEQUENCE_BYTES 64 /* maximum size of an escape sequence in bytes */
#define MOVED_BYTES    (64u << 10)

void whit_keys_free(whit_keys *keys)
{
    whit_buf_free(&keys->bytes);
    whit_buf_free(&keys->paste);
    *keys = (whit_keys){0};
}

bool whit_keys_feed(whit_keys *keys, const void *data, size_t size_bytes)
{
    /* Moves the unread bytes to the front only from time to time, since during a paste a few are left unread at each
     * call. */
    if (keys->begin == keys->bytes.size_bytes || keys->begin >= MOVED_BYTES) {
        size_t n = keys->bytes.size_bytes - keys->begin;
        if (n) memmove(keys->bytes.data, keys->bytes.data + keys->begin, n);
        keys->bytes.size_bytes = n;
        keys->begin = 0;
    }
    return whit_buf_append(&keys->bytes, data, size_bytes);
}

bool whit_keys_is_waiting(const whit_keys *keys)
{
    return keys->begin < keys->bytes.size_bytes;
}

/* Returns the key of a control byte. */
static whit_key control(uint8_t byte)
{
    switch (byte) {
    case '\r':
    case '\n': return (whit_key){.code = WHIT_KEY_ENTER};
    case '\t': return (whit_key){.code = WHIT_KEY_TAB};
    case 27: return (whit_key){.code = WHIT_KEY_ESCAPE};
    case 8:
    case 127: return (whit_key){.code = WHIT_KEY_BACKSPACE};
    case 0: return (whit_key){.code = ' ', .mods = WHIT_MOD_CTRL};
    default: return (whit_key){.code = (uint32_t)(byte < 27 ? byte + 'a' - 1 : byte + '@'), .mods = WHIT_MOD_CTRL};
    }
}

static whit_key mouse(const int *numbers, bool press)
{
    int button = numbers[0];
    whit_key key = {.x = numbers[1] - 1, .y = numbers[2] - 1};
    if (button & 4) key.mods |= WHIT_MOD_SHIFT;
    if (button & 8) key.mods |= WHIT_MOD_ALT;
    if (button & 16) key.mods |= WHIT_MOD_CTRL;
    if (button & 64)
        key.code = button & 1 ? WHIT_KEY_WHEEL_DOWN : WHIT_KEY_WHEEL_UP;
    else if (!press)
        key.code = WHIT_KEY_RELEASE;
    else {
        if (button & 3)
            key.code = WHIT_KEY_NONE;
        else if (button & 32)
            key.code = WHIT_KEY_DRAG;
        else
            key.code = WHIT_KEY_PRESS;
    }
    return key;
}

static uint32_t letter_key(uint8_t final)
{
    switch (final) {
    case 'A': return WHIT_KEY_UP;
    case 'B': return WHIT_KEY_DOWN;
    case 'C': return WHIT_KEY_RIGHT;
    case 'D': return WHIT_KEY_LEFT;
    case 'H': return WHIT_KEY_HOME;
    case 'F': return WHIT_KEY_END;
    case 'P': return WHIT_KEY_F1;
    case 'Q': return WHIT_KEY_F1 + 1;
    case 'R': return WHIT_KEY_F1 + 2;
    case 'S': return WHIT_KEY_F1 + 3;
    default: return WHIT_KEY_NONE;
    }
}

static uint32_t number_key(int number)
{
    static const uint32_t keys[] = {
        [1] = WHIT_KEY_HOME,    [2] = WHIT_KEY_INSERT,    [3] = WHIT_KEY_DELETE,   [4] = WHIT_KEY_END,
        [5] = WHIT_KEY_PAGE_UP, [6] = WHIT_KEY_PAGE_DOWN, [7] = WHIT_KEY_HOME,     [8] = WHIT_KEY_END,
        [11] = WHIT_KEY_F1,     [12] = WHIT_KEY_F1 + 1,   [13] = WHIT_KEY_F1 + 2,  [14] = WHIT_KEY_F1 + 3,
        [15] = WHIT_KEY_F1 + 4, [17] = WHIT_KEY_F1 + 5,   [18] = WHIT_KEY_F1 + 6,  [19] = WHIT_KEY_F1 + 7,
        [20] = WHIT_KEY_F1 + 8, [21] = WHIT_KEY_F1 + 9,   [23] = WHIT_KEY_F1 + 10, [24] = WHIT_KEY_F1 + 11,
    };
    bool known = number > 0 && (size_t)number < sizeof keys / sizeof *keys && keys[number];
    return known ? keys[number] : WHIT_KEY_NONE;
}

/* Reads a control sequence: ESC [, numbers separated by ';', a final byte. Returns its length, or 0 if more bytes are
 * needed. */
static size_t read_csi(const uint8_t *bytes, size_t n, whit_key *key)
{
    int numbers[4] = {0};
    size_t n_numbers = 0, at = 2;
    bool is_mouse = at < n && bytes[at] == '<';
    if (is_mouse) at++;
    for (; at < n && at < SEQUENCE_BYTES; at++) {
        uint8_t byte = bytes[at];
        if (byte >= '0' && byte <= '9') {
            if (n_numbers < 4 && numbers[n_numbers] < 100000000)
                numbers[n_numbers] = numbers[n_numbers] * 10 + byte - '0';
        } else if (byte == ';') {
            n_numbers++;
        } else if (byte >= 0x40 && byte <= 0x7E) {
            int mods = numbers[1] > 1 && numbers[1] <= 8 ? numbers[1] - 1 : 0;
            *key = (whit_key){.code = WHIT_KEY_NONE, .mods = (uint8_t)mods};
            if (is_mouse && (byte == 'M' || byte == 'm')) {
                *key = mouse(numbers, byte == 'M');
            } else if (byte == '~') {
                key->code = number_key(numbers[0]);
                if (numbers[0] == 200) key->code = WHIT_KEY_PASTE;
            } else if (byte == 'Z') {
                *key = (whit_key){.code = WHIT_KEY_TAB, .mods = WHIT_MOD_SHIFT};
            } else if (byte == 'u' && numbers[0] > 0 && numbers[0] < 0x110000) {
                *key = numbers[0] < 32 || numbers[0] == 127 ? control((uint8_t)numbers[0])
                                                            : (whit_key){.code = (uint32_t)numbers[0]};
                key->mods |= (uint8_t)mods;
            } else {
                key->code = letter_key(byte);
            }
            return at + 1;
        } else if (byte < 0x20 || byte > 0x7E) {
            break; /* not a valid sequence: drop the bytes read so far */
        }
    }
    *key = (whit_key){.code = WHIT_KEY_NONE};
    if (at < n) return at;
    return at >= SEQUENCE_BYTES ? at : 0;
}

/* Moves pasted bytes into `paste`. Returns true at the end mark ESC [ 201 ~. `final`: also moves bytes that could begin
 * an end mark. */
static bool read_paste(whit_keys *keys, bool final)
{
    static const char end[] = "\033[201~";
    const size_t n_end = sizeof end - 1;
    const uint8_t *from = keys->bytes.data + keys->begin;
    size_t n = keys->bytes.size_bytes - keys->begin;
    const uint8_t *found = n >= n_end ? memmem(from, n, end, n_end) : NULL;
    size_t take = 0;
    if (found)
        take = (size_t)(found - from);
    else if (n > n_end && !final)
        take = n - n_end;
    else if (final)
        take = n;
    keys->paste.limit_bytes = WHIT_PASTE_LIMIT_BYTES;
    whit_buf_append(&keys->paste, from, take);
    keys->begin += take + (found ? n_end : 0);
    if (found) keys->pasting = false;
    return found != NULL;
}

bool whit_keys_next(whit_keys *keys, bool final, whit_key *key)
{
    for (;;) {
        if (keys->pasting) {
            if (!whit_keys_is_waiting(keys)) return false;
            /* `final` is not passed on, since the next bytes of a paste may come after a pause */
            if (!read_paste(keys, false)) return false;
            *key = (whit_key){.code = WHIT_KEY_PASTE};
            return true;
        }
        const uint8_t *bytes = keys->bytes.data + keys->begin;
        size_t n = keys->bytes.size_bytes - keys->begin, length = 1;
        if (!n) return false;
        uint8_t first = bytes[0];
        if (first == 27 && n == 1 && !final) return false;
        if (first == 27 && n > 1) {
            if (bytes[1] == '[') {
                length = n > 2 ? read_csi(bytes, n, key) : 0;
                if (!length && !final) return false;
                if (!length) { /* no sequence follows: the keys were Alt and [ */
                    *key = (whit_key){.code = '[', .mods = WHIT_MOD_ALT};
                    length = 2;
                }
            } else if (bytes[1] == 'O') {
                if (n == 2 && !final) return false;
                *key = n > 2 ? (whit_key){.code = letter_key(bytes[2])} : (whit_key){.code = 'O', .mods = WHIT_MOD_ALT};
                length = n > 2 ? 3 : 2;
            } else if (bytes[1] == 27) {
                *key = (whit_key){.code = WHIT_KEY_ESCAPE};
            } else {
                size_t n_char;
                uint32_t code = whit_utf8_decode(bytes + 1, n - 1, &n_char);
                if (code < 32 || code == 127) {
                    *key = control((uint8_t)code);
                } else {
                    *key = (whit_key){.code = code == WHIT_UTF8_INVALID ? WHIT_KEY_NONE : code};
                }
                key->mods |= WHIT_MOD_ALT;
                length = 1 + n_char;
            }
        } else if (first < 32 || first == 127) {
            *key = control(first);
        } else {
            uint32_t code = whit_utf8_decode(bytes, n, &length);
            size_t wanted = 1; /* length of the character in bytes; 1 for a byte that cannot begin one */
            if (first >= 0xF0 && first < 0xF5)
                wanted = 4;
            else if (first >= 0xE0 && first < 0xF0)
                wanted = 3;
            else if (first >= 0xC2 && first < 0xE0)
                wanted = 2;
            if (code == WHIT_UTF8_INVALID && length == n && n < wanted && !final) return false;
            *key = (whit_key){.code = code == WHIT_UTF8_INVALID ? WHIT_KEY_NONE : code};
        }
        keys->begin += length;
        if (key->code == WHIT_KEY_PASTE) {
            keys->pasting = true;
            keys->paste.size_bytes = 0;
            keys->paste.failed = false;
            continue;
        }
        if (key->code != WHIT_KEY_NONE) return true;
    }
}

bool whit_keys_end_paste(whit_keys *keys, whit_key *key)
{
    if (!keys->pasting) return false;
    read_paste(keys, true);
    keys->pasting = false;
    *key = (whit_key){.code = WHIT_KEY_PASTE};
    return true;
}

/* ---- names --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t code;
} names[] = {
    {"Enter", WHIT_KEY_ENTER},   {"Tab", WHIT_KEY_TAB},        {"Backspace", WHIT_KEY_BACKSPACE},
    {"Esc", WHIT_KEY_ESCAPE},    {"Up", WHIT_KEY_UP},          {"Down", WHIT_KEY_DOWN},
    {"Left", WHIT_KEY_LEFT},     {"Right", WHIT_KEY_RIGHT},    {"Home", WHIT_KEY_HOME},
    {"End", WHIT_KEY_END},       {"PageUp", WHIT_KEY_PAGE_UP}, {"PageDown", WHIT_KEY_PAGE_DOWN},
    {"Insert", WHIT_KEY_INSERT}, {"Delete", WHIT_KEY_DELETE},  {"Space", ' '},
};

bool whit_key_parse(const char *name, size_t n, whit_key *key)
{
    *key = (whit_key){.code = WHIT_KEY_NONE};
    while (n > 2 && name[1] == '-') {
        uint8_t mod = 0;
        if (name[0] == 'C')
            mod = WHIT_MOD_CTRL;
        else if (name[0] == 'M')
            mod = WHIT_MOD_ALT;
        else if (name[0] == 'S')
            mod = WHIT_MOD_SHIFT;
        if (!mod || (key->mods & mod)) return false;
        key->mods |= mod;
        name += 2;
        n -= 2;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].name) == n && !strncasecmp(names[i].name, name, n)) key->code = names[i].code;
    if (n >= 2 && n <= 3 && (name[0] == 'F' || name[0] == 'f')) {
        int number = 0;
        for (size_t i = 1; i < n; i++) number = name[i] >= '0' && name[i] <= '9' ? number * 10 + name[i] - '0' : 100;
        if (number >= 1 && number <= 12) key->code = WHIT_KEY_F1 + (uint32_t)number - 1;
    }
    if (n && key->code == WHIT_KEY_NONE) {
        size_t length;
        uint32_t code = whit_utf8_decode((const uint8_t *)name, n, &length);
        if (length == n && code != WHIT_UTF8_INVALID && code > 32) key->code = code;
    }
    return key->code != WHIT_KEY_NONE;
}

void whit_key_name(whit_key key, char *name, size_t room_bytes)
{
    char word[16] = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == key.code) snprintf(word, sizeof word, "%s", names[i].name);
    if (key.code >= WHIT_KEY_F1 && key.code <= WHIT_KEY_F12)
        snprintf(word, sizeof word, "F%u", key.code - WHIT_KEY_F1 + 1);
    if (!*word && key.code < WHIT_KEY_NONE) word[whit_utf8_encode(key.code, (uint8_t *)word)] = 0;
    const char *control = key.mods & WHIT_MOD_CTRL ? "C-" : "";
    const char *alt = key.mods & WHIT_MOD_ALT ? "M-" : "";
    snprintf(name, room_bytes, "%s%s%s%s", control, alt, key.mods & WHIT_MOD_SHIFT ? "S-" : "", word);
}
