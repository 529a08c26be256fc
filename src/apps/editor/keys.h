/* SPDX-License-Identifier: MIT
 * Decodes the bytes of a terminal into keys: xterm's sequences, which every terminal in use sends, UTF-8, bracketed
 * paste, SGR mouse reports and kitty's CSI u. Any bytes are allowed. */
#ifndef WHIT_EDITOR_KEYS_H
#define WHIT_EDITOR_KEYS_H

#include "base/mem.h"

/* Key codes that are not Unicode characters. */
enum {
    WHIT_KEY_NONE = 0x110000,
    WHIT_KEY_ENTER,
    WHIT_KEY_TAB,
    WHIT_KEY_BACKSPACE,
    WHIT_KEY_ESCAPE,
    WHIT_KEY_UP,
    WHIT_KEY_DOWN,
    WHIT_KEY_LEFT,
    WHIT_KEY_RIGHT,
    WHIT_KEY_HOME,
    WHIT_KEY_END,
    WHIT_KEY_PAGE_UP,
    WHIT_KEY_PAGE_DOWN,
    WHIT_KEY_INSERT,
    WHIT_KEY_DELETE,
    WHIT_KEY_F1, /* F1 to F12 have consecutive codes */
    WHIT_KEY_F12 = WHIT_KEY_F1 + 11,
    WHIT_KEY_PASTE, /* pasted text, which is in the decoder's `paste` */
    WHIT_KEY_PRESS, /* a mouse button was pressed at x and y */
    WHIT_KEY_DRAG,
    WHIT_KEY_RELEASE,
    WHIT_KEY_WHEEL_UP,
    WHIT_KEY_WHEEL_DOWN,
};
enum { WHIT_MOD_SHIFT = 1, WHIT_MOD_ALT = 2, WHIT_MOD_CTRL = 4 };

typedef struct whit_key {
    uint32_t code;
    uint8_t mods;
    int x, y; /* position of the mouse in cells, counted from 0 */
} whit_key;

#define WHIT_PASTE_LIMIT_BYTES (256u << 20)

typedef struct whit_keys {
    whit_buf bytes; /* bytes received; those before `begin` are decoded */
    size_t begin;
    whit_buf paste; /* pasted text; failed: it was too long and is discarded as a whole */
    bool pasting;
} whit_keys;

void whit_keys_free(whit_keys *keys);
bool whit_keys_feed(whit_keys *keys, const void *data, size_t size_bytes);
/* Decodes the next key. Returns false if more bytes are needed. `final`: no bytes follow soon, so a lone ESC byte is
 * the Escape key. */
bool whit_keys_next(whit_keys *keys, bool final, whit_key *key);
bool whit_keys_is_waiting(const whit_keys *keys);
/* Ends a paste whose end mark did not come, with the bytes received so far. Returns false if no paste is in
 * progress. */
bool whit_keys_end_paste(whit_keys *keys, whit_key *key);

/* Parses the name of a key, such as "C-s", "M-Left", "F12" or "a". Returns false if there is no such key. */
bool whit_key_parse(const char *name, size_t n, whit_key *key);
void whit_key_name(whit_key key, char *name, size_t room_bytes);

#endif
