/* SPDX-License-Identifier: MIT
 * Holds the state of vi's keys, which several files share: vi.c reads keys, vi_table.c defines them, vi_map.c maps
 * them, vi_line.c and vi_files.c run the line after ':'. */
#ifndef WHIT_EDITOR_VI_H
#define WHIT_EDITOR_VI_H

#include "editor/buffer.h"
#include "editor/keys.h"

#define ED_VI_MARKS     26
#define ED_VI_COUNT_MAX 999999u
/* maximum number of keys that one typed key may play through macros, '.' and counts */
#define ED_VI_KEYS_MAX  100000u
#define ED_VI_BYTES_MAX (64u << 20) /* maximum number of bytes that one command with a count may insert */
#define ED_VI_LITERAL   0x80        /* modifier of a pasted key, which must not trigger indentation */
/* number of registers "0 to "9: "0 has the last copied text, "1 the last deleted text that contains a line end, "2 the
 * one before it ... */
#define ED_VI_NUMBERED    10
#define ED_VI_LAST_COLUMN 0x3FFFFFFF /* goal column of a cursor that stays at the ends of lines */

typedef enum ed_vi_mode {
    ED_VI_NORMAL,
    ED_VI_INSERT,
    ED_VI_REPLACE,
    ED_VI_VISUAL,
    ED_VI_VISUAL_LINES,
    ED_VI_VISUAL_BLOCK,
} ed_vi_mode;

/* A sequence of keys. */
struct ed_vi_keys {
    whit_key *keys;
    size_t n, room;
};

struct ed_vi_register {
    char *text;
    size_t n_bytes;
    bool lines, block;
};

/* Target of a motion or a text object: from `begin` (for a motion: the cursor) to `end`. */
struct ed_vi_span {
    uint64_t begin, end;
    bool lines;     /* covers whole lines */
    bool inclusive; /* includes the character at `end` */
    bool jumps;     /* the command `` returns to the position before the motion */
    bool is_fixed;  /* an end at the beginning of a line is not moved to the end of the previous line */
};

/* Extent of a visual selection, so that '.' can select as much text elsewhere. */
struct ed_vi_extent {
    ed_vi_mode mode;
    uint64_t n_lines; /* number of lines minus one */
    /* distance in columns between the selection's ends, in one line or a block; of several lines, the column of the
     * last selected character */
    int n_columns;
    bool to_end; /* the selection extends to the ends of its lines (key $) */
};

#define ED_MAPPINGS_MAX   200u
#define ED_VI_LINE_BYTES  1024u /* maximum size of a line after ':'; equal to that of a prompt's text */
#define ED_MAP_TYPED_MAX  8u
#define ED_MAP_PLAYED_MAX 100u

struct ed_mapping {
    uint8_t modes, n_typed, n_played;
    whit_key typed[ED_MAP_TYPED_MAX], played[ED_MAP_PLAYED_MAX];
};

struct ed_vi {
    bool on;
    ed_vi_mode mode;
    uint32_t count, operator_count;
    uint32_t operator; /* pending operator: d c y < > = or, with ED_VI_G, gu gU g~ and others; 0: none */
    /* row of a prefix, or of a key that needs an argument, whose next key was not typed yet; or NULL */
    const struct ed_vi_row *pending;
    uint32_t wanted_register;
    uint32_t find, find_char;
    bool search_back, search_pending; /* search_pending: the open search prompt was opened by vi's / or ? */
    /* anchor: start of the visual selection; search_anchor: copy of it while a search prompt is open */
    uint64_t anchor, search_anchor;
    uint64_t last_begin, last_end; /* anchor and cursor of the last visual selection, for gv, '< and '> */
    ed_vi_mode last_mode;

    struct ed_vi_keys typed, repeat; /* typed: keys of the current command; repeat: keys of the last change, for '.' */
    struct ed_vi_extent repeat_extent;
    /* counts and registers of `typed` and `repeat`, whose keys do not include them */
    uint32_t typed_count, typed_register, repeat_count, repeat_register;
    /* index in `repeat` of the first key typed in insert mode */
    size_t repeat_from;
    bool repeat_is_visual, repeating, from_visual, failed, changed;
    uint32_t n_played; /* number of keys played since the last typed key */
    uint32_t depth;    /* nesting depth of macros */

    size_t insert_from; /* index in `typed` of the first key typed in insert mode */
    uint32_t insert_count, insert_key;
    uint64_t insert_begin, last_insert;
    bool block_appends;
    bool auto_indent; /* the cursor's line contains nothing but automatic indentation */
    bool once;        /* Ctrl-O was typed in insert mode: one command of normal mode follows */
    struct {
        uint32_t value;
        uint8_t base, n_digits, n_most; /* base 0: neither a digit nor a letter such as x was typed yet */
    } literal;                          /* code point being typed as a number after Ctrl-V in insert mode */
    bool asked;                         /* a prompt was open after the previous key */
    /* document shown after the previous key; showing another one ends a visual mode */
    const void *shown;
    whit_buffer *held; /* buffer whose edits are being merged into one step of undo, or NULL */
    /* characters that backspace restores in replace mode, each followed by a byte with its length */
    whit_buf replaced;

    struct ed_vi_register letters[26], numbered[ED_VI_NUMBERED], small;
    struct ed_vi_keys macros[26];
    uint32_t recording, last_macro; /* letters of the macro being recorded (0: none) and of the macro played last */
    struct ed_mapping *mappings;
    size_t n_mappings, n_begun;
    whit_key begun[ED_MAP_TYPED_MAX]; /* typed keys that begin a mapping */
    uint64_t begun_ns;                /* time at which the last key of `begun` was typed; 0: none */
    char line[ED_VI_LINE_BYTES];      /* the last line run after ':' */
    struct {
        uint64_t *begins; /* beginnings of the lines that :g matched; ED_NONE: the line was deleted */
        size_t n, at;
        struct ed_doc *doc;
    } lines;
    bool global;
    size_t n_substituted;
};
enum {
    ED_VI_G = 0x1000000,    /* added to a key's code if g precedes the key */
    ED_VI_CTRL = 0x2000000, /* added to a key's code if Ctrl was held */
};

typedef struct whit_editor ed;

/* These functions are in vi.c. */
/* returns false if the key is not one of vi's */
bool ed_vi_key(ed *e, whit_key key, const char *paste, size_t n_paste);
/* Called after every key: moves the cursor to a position that is valid in the current mode. */
void ed_vi_settle(ed *e, whit_key key);
void ed_vi_searched(ed *e, uint64_t origin, bool found); /* called when a search prompt has closed */
void ed_vi_draw_mode(const ed *e, char *mode, size_t room_bytes);
void ed_vi_changed(ed *e, const void *doc, uint64_t offset, uint64_t n_removed, uint64_t n_inserted);
void ed_vi_forget(ed *e, const void *doc);
void ed_vi_close(ed *e);
bool ed_vi_is_inserting(const ed *e);
bool ed_vi_is_visual(const ed *e);
uint32_t ed_vi_count(const ed *e); /* count of the current command, at least 1 */
void ed_vi_run(ed *e, const char *command);
/* reports an error and stops running macros */
void ed_vi_fail(ed *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ed_vi_play(ed *e, const whit_key *keys, size_t n);
bool ed_vi_keys_add(struct ed_vi_keys *keys, whit_key key);

/* vi_map.c. ed_vi_map runs a line such as "imap jj <Esc>"; it returns false if the line is another command, and sets
 * `why` if it is wrong. ed_vi_map_key handles a key; it returns false if the key is not part of a mapping.
 * ed_vi_map_flush plays keys that have begun a mapping without completing it. ed_vi_map_wait_ms returns after how many
 * milliseconds that must be done, or -1 if there are no such keys. */
bool ed_vi_map(ed *e, const char *line, char *why, size_t why_bytes);
bool ed_vi_map_key(ed *e, whit_key key);
void ed_vi_map_flush(ed *e);
int ed_vi_map_wait_ms(const ed *e);

/* vi_files.c. ed_vi_files and ed_vi_shell run a command of vi's line; they return false if it is not one of theirs.
 * ed_vi_takes advances *at past a word that is `name` or a prefix of it with at least the letters of `least`. */
void ed_vi_skip_blanks(const char **at);
bool ed_vi_takes(const char **at, const char *least, const char *name);
bool ed_vi_files(ed *e, const char *at);
void ed_vi_set(ed *e, const char *option);
bool ed_vi_shell(ed *e, whit_range lines, bool has_range, const char *at);
/* Replaces % by the current file's name, in quotes if it has signs of the shell, and \% by %. Reports an error and
 * returns false if the result does not fit, or if such a name would be within quotes of the command. */
bool ed_vi_expand(ed *e, const char *from, char *to, size_t room);
bool ed_vi_takes_rest(const char *at); /* returns true if bars in the line belong to this command */

/* These functions are in vi_line.c. */
void ed_vi_line(ed *e, const char *line);
/* Translates vi's \< and \> for PCRE2. Returns false if the result does not fit. */
bool ed_vi_pattern(const char *pattern, char *text, size_t room);

#endif
