/* SPDX-License-Identifier: MIT
 * Declares the table of vi's keys: a row gives a key's modes, its argument, its effect and its line of help. vi.c and
 * vi_insert.c look typed keys up in it, and `:help` lists it. */
#ifndef WHIT_EDITOR_VI_TABLE_H
#define WHIT_EDITOR_VI_TABLE_H

#include "editor/vi.h"

/* Modes in which a row applies; ED_VI_IN_OPERATOR: an operator waits for its motion. */
enum {
    ED_VI_IN_NORMAL = 1,
    ED_VI_IN_VISUAL = 2,
    ED_VI_IN_OPERATOR = 4,
    ED_VI_IN_INSERT = 8,
};

/* Flags of a row. The first four set the members of a motion's span with the same names. */
enum {
    ED_VI_LINES = 1,
    ED_VI_INCLUSIVE = 2,
    ED_VI_JUMPS = 4,
    ED_VI_FIXED = 8,
    ED_VI_KEEPS_COLUMN = 16, /* the cursor's goal column is unchanged */
    ED_VI_TO_LINE_END = 32,  /* from now on the cursor stays at the ends of lines when moving up or down */
    ED_VI_UNFINISHED = 64,   /* the command is not ended after this row: its function ends it, or more keys follow */
};

typedef enum ed_vi_effect {
    ED_VI_NOTE,     /* not a key; only adds a line to the help */
    ED_VI_NOTHING,  /* the key does nothing; the editor's own command for it is not run either */
    ED_VI_PREFIX,   /* prefix: the next key completes the command */
    ED_VI_DIGIT,    /* digit of a count */
    ED_VI_OPERATOR, /* operator `how`; in visual mode it is applied at once */
    ED_VI_MOTION,
    ED_VI_OBJECT,
    ED_VI_ACTION,
    ED_VI_COMMAND, /* runs the editor's command named by `command` */
    ED_VI_LINE,    /* runs `command` as a line after ':' */
} ed_vi_effect;

/* Arguments of a row's function. */
struct ed_vi_call {
    uint32_t how;   /* the row's `how`, which distinguishes rows with the same function */
    uint32_t given; /* code of the key typed as the argument; 0: no argument */
};

/* Moves span->end, which is at first the cursor, to the target. Returns false if there is no such place. */
typedef bool ed_vi_motion_fn(ed *e, struct ed_vi_call call, struct ed_vi_span *span);
/* Sets *span to the object at span->end. `visual`: more than one character is selected, from span->begin to span->end
 * (inclusive), and the object extends this selection. */
typedef bool ed_vi_object_fn(ed *e, uint32_t how, bool inner, bool visual, struct ed_vi_span *span);
typedef void ed_vi_action_fn(ed *e, struct ed_vi_call call);

struct ed_vi_row {
    uint32_t prefix, key; /* key codes, with ED_VI_CTRL added for Ctrl; prefix 0: no prefix */
    uint8_t modes, flags;
    ed_vi_effect effect;
    uint32_t how;
    const char *argument; /* help's name for the argument, a further key; NULL: no argument */
    union {
        ed_vi_motion_fn *motion;
        ed_vi_object_fn *object;
        ed_vi_action_fn *action;
    } run;
    const char *command; /* name of the command, or line after ':'; for ED_VI_NOTE the keys as the help shows them */
    const char *help;    /* help text; NULL: the row's key is added to the help line of the rows before it */
};

/* Returns the row for a key in a mode (one of ED_VI_IN_*), or NULL. */
const struct ed_vi_row *ed_vi_row_find(uint32_t prefix, uint32_t key, uint8_t mode);
/* Runs a row whose effect is ED_VI_ACTION, ED_VI_COMMAND or ED_VI_LINE. */
void ed_vi_row_run(ed *e, const struct ed_vi_row *row, uint32_t given);
/* Writes the keys and the text of line `line` of the help, counted from 0. Returns false if there is no such line. */
bool ed_vi_help(size_t line, char *keys, size_t keys_bytes, const char **help);

/* These motions are in vi_motion.c. */
extern ed_vi_motion_fn ed_vi_to_left, ed_vi_to_right, ed_vi_by_chars, ed_vi_by_lines, ed_vi_by_rows, ed_vi_by_words,
    ed_vi_back_by_words, ed_vi_to_word_end, ed_vi_back_to_word_end, ed_vi_to_line_begin, ed_vi_to_column,
    ed_vi_to_line_end, ed_vi_to_first_sign, ed_vi_to_line, ed_vi_to_window_row, ed_vi_by_paragraphs, ed_vi_by_sentences,
    ed_vi_to_match, ed_vi_to_char, ed_vi_to_char_again, ed_vi_search_again, ed_vi_search_word, ed_vi_to_mark;

/* These objects are in vi_object.c. */
extern ed_vi_object_fn ed_vi_words, ed_vi_sentences, ed_vi_paragraphs, ed_vi_quotes, ed_vi_brackets, ed_vi_tags;

#endif
