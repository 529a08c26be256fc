/* SPDX-License-Identifier: MIT
 * Holds the state of vi's keys, which several files share: vi.c reads keys, vi_table.c defines them, vi_map.c maps
 * them, vi_line.c and vi_files.c run the line after ':'. */
#ifndef WHIT_EDITOR_VI_H
#define WHIT_EDITOR_VI_H

#include "editor/buffer.h"
#include "editor/keys.h"

#define ED_VI_MARKS     26
#define ED_VI_COUNT_MAX 999999u
/* maximum number of keys that a macro, '.' or a count may play after one typed key */
#define ED_VI_KEYS_MAX    100000u
#define ED_VI_BYTES_MAX   (64u << 20) /* maximum number of bytes that a count may insert at once */
#define ED_VI_LITERAL     0x80        /* modifier of a pasted key, which is not indented */
#define ED_VI_NUMBERED    10          /* "0 contains the last copied text, "1 the last deleted text, and so on */
#define ED_VI_LAST_COLUMN 0x3FFFFFFF  /* column that a cursor keeps if it stays at the ends of lines */

typedef enum ed_vi_mode {
    ED_VI_NORMAL,
    ED_VI_INSERT,
    ED_VI_REPLACE,
    ED_VI_VISUAL,
    ED_VI_VISUAL_LINES,
    ED_VI_VISUAL_BLOCK,
} ed_vi_mode;

/* holds keys in their order */
struct ed_vi_keys {
    whit_key *keys;
    size_t n, room;
};

struct ed_vi_register {
    char *text;
    size_t n_bytes;
    bool lines, block;
};

/* describes the target of a motion or a text object: from `begin` (for a motion: from the cursor) to `end` */
struct ed_vi_span {
    uint64_t begin, end;
    bool lines;     /* acts on whole lines */
    bool inclusive; /* the character at `end` is part of the span */
    bool jumps;     /* `` returns to the place before the motion */
    bool is_fixed;  /* an operator does not move an end at the beginning of a line to the line before */
};

/* describes the extent of a visual selection, so that '.' can act on as much text */
struct ed_vi_extent {
    ed_vi_mode mode;
    uint64_t n_lines; /* number of lines beyond the first */
    int n_columns;    /* number of columns in the last line (or in every line of a block) */
    bool to_end;      /* $ extends the selection to the ends of lines */
};

#define ED_MAPPINGS_MAX   200u
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
    uint32_t operator;               /* code of d c y < > or, with ED_VI_G, of g~ gu gU */
    const struct ed_vi_row *pending; /* the key that the next key completes, as a prefix or an argument; or NULL */
    uint32_t wanted_register;
    uint32_t find, find_char;
    bool search_back, search_pending; /* search_pending: vi moves to the match of the open prompt */
    /* anchor: where a visual mode began; search_anchor: its copy while a search prompt is open */
    uint64_t anchor, search_anchor;
    uint64_t last_begin, last_end; /* range of the last visual mode, for gv, '< and '> */
    ed_vi_mode last_mode;

    struct ed_vi_keys typed, repeat; /* typed: the command that is being typed; repeat: the last change, for '.' */
    struct ed_vi_extent repeat_extent;
    /* counts and registers, which are not part of the recorded keys */
    uint32_t typed_count, typed_register, repeat_count, repeat_register;
    /* Index in `repeat` of the first inserted key */
    size_t repeat_from;
    bool repeat_is_visual, repeating, from_visual, failed, changed;
    uint32_t n_played; /* number of keys that were played */
    uint32_t depth;    /* nesting of macros */

    size_t insert_from; /* index in `typed` of the first key since inserting began */
    uint32_t insert_count, insert_key;
    uint64_t insert_begin, last_insert;
    bool block_appends;
    bool auto_indent; /* the line contains only automatic indentation */
    bool once;        /* Ctrl-O was typed: one command of normal mode follows */
    struct {
        uint32_t value;
        uint8_t base, n_digits, n_most; /* base 0: no digit was typed yet */
    } literal;                          /* code point that is typed as a number after Ctrl-V in insert mode */
    bool asked;                         /* the preceding key ended in a prompt */
    /* the text that was shown at the last key; a visual mode ends if another is shown */
    const void *shown;
    whit_buffer *held; /* the buffer whose steps of undo are merged */
    /* bytes that backspace restores in the mode of R; each character is followed by its length */
    whit_buf replaced;

    struct ed_vi_register letters[26], numbered[ED_VI_NUMBERED], small;
    struct ed_vi_keys macros[26];
    uint32_t recording, last_macro; /* letters of macros */
    struct ed_mapping *mappings;
    size_t n_mappings, n_begun;
    whit_key begun[ED_MAP_TYPED_MAX]; /* the typed beginning of a mapping */
    uint64_t begun_ns;                /* time of the last of these keys; 0: no mapping has begun */
    char line[256];                   /* the last command line */
    struct {
        uint64_t *begins; /* beginnings of the lines that :g matched */
        size_t n, at;
        struct ed_doc *doc;
    } lines;
    bool global;
    size_t n_substituted;
};
enum {
    ED_VI_G = 0x1000000,    /* added to the code of a key after g */
    ED_VI_CTRL = 0x2000000, /* added to the code of a key with Ctrl */
};

typedef struct whit_editor ed;

/* These functions are in vi.c. */
bool ed_vi_key(ed *e, whit_key key, const char *paste, size_t n_paste); /* returns false if vi does not use the key */
/* Moves the cursor to a valid place of the mode; it is called after every key. */
void ed_vi_settle(ed *e, whit_key key);
void ed_vi_searched(ed *e, uint64_t origin, bool found); /* called when the prompt's search has ended */
void ed_vi_draw_mode(const ed *e, char *mode, size_t room_bytes);
void ed_vi_changed(ed *e, const void *doc, uint64_t offset, uint64_t n_removed, uint64_t n_inserted);
void ed_vi_forget(ed *e, const void *doc);
void ed_vi_close(ed *e);
bool ed_vi_is_inserting(const ed *e);
bool ed_vi_is_visual(const ed *e);
uint32_t ed_vi_count(const ed *e); /* returns at least 1 */
void ed_vi_run(ed *e, const char *command);
void ed_vi_fail(ed *e, const char *format, ...) __attribute__((format(printf, 2, 3))); /* also ends a macro */
void ed_vi_play(ed *e, const whit_key *keys, size_t n);
bool ed_vi_keys_add(struct ed_vi_keys *keys, whit_key key);

/* These functions are in vi_map.c. The first takes a line such as "imap jj <Esc>"; it returns false if the line is
 * another command, and *why gets the reason if the line is wrong. The second takes a key, and returns false if the key
 * is not part of a mapping. The last returns the milliseconds after which the beginning of a mapping counts as typed
 * (-1: there is no beginning), which the third then carries out. */
bool ed_vi_map(ed *e, const char *line, char *why, size_t why_bytes);
bool ed_vi_map_key(ed *e, whit_key key);
void ed_vi_map_flush(ed *e);
int ed_vi_map_wait_ms(const ed *e);

/* The functions of vi_files.c run commands of the line; they return false if it is another command. `at` is advanced
 * past a word that begins with `least` and with which `name` begins. */
void ed_vi_skip_blanks(const char **at);
bool ed_vi_takes(const char **at, const char *least, const char *name);
bool ed_vi_files(ed *e, const char *at);
void ed_vi_set(ed *e, const char *option);
bool ed_vi_shell(ed *e, whit_range lines, bool has_range, const char *at);
/* Replaces % by the file's name; reports it and returns false if the result does not fit. */
bool ed_vi_expand(ed *e, const char *from, char *to, size_t room);
bool ed_vi_takes_rest(const char *at); /* true: a bar in the line belongs to the command */

/* These functions are in vi_line.c. */
void ed_vi_line(ed *e, const char *line);
/* Translates \< and \> for PCRE2; returns false if the result does not fit. */
bool ed_vi_pattern(const char *pattern, char *text, size_t room);

#endif
