/* SPDX-License-Identifier: MIT
 * Declares the table of vi's keys: a row gives a key's modes, its argument, its effect and its line of help. vi.c and
 * vi_insert.c look typed keys up in it, and `:help` lists it. */
#ifndef WHIT_EDITOR_VI_TABLE_H
#define WHIT_EDITOR_VI_TABLE_H

#include "editor/vi.h"

/* These are the modes in which a row applies. An operator that waits for its motion is a separate mode. */
enum {
    ED_VI_IN_NORMAL = 1,
    ED_VI_IN_VISUAL = 2,
    ED_VI_IN_OPERATOR = 4,
    ED_VI_IN_INSERT = 8,
};

/* These are the flags of a row. The first four become those of the span that a motion sets. */
enum {
    ED_VI_LINES = 1,
    ED_VI_INCLUSIVE = 2,
    ED_VI_JUMPS = 4,
    ED_VI_FIXED = 8,
    ED_VI_KEEPS_COLUMN = 16, /* the cursor keeps its target column */
    ED_VI_TO_LINE_END = 32,  /* the cursor keeps to the ends of lines afterwards */
    ED_VI_UNFINISHED = 64,   /* the function ends the command itself, or more keys belong to the command */
};

typedef enum ed_vi_effect {
    ED_VI_NOTE,     /* row that only adds a line to the help */
    ED_VI_NOTHING,  /* key without an effect; the editor's own command is not run either */
    ED_VI_PREFIX,   /* the next key is looked up after this one */
    ED_VI_DIGIT,    /* digit of a count */
    ED_VI_OPERATOR, /* `how` is the operator; in visual mode it is applied at once */
    ED_VI_MOTION,
    ED_VI_OBJECT,
    ED_VI_ACTION,
    ED_VI_COMMAND, /* `command` is the name of an editor command */
    ED_VI_LINE,    /* `command` is a line as typed after ':' */
} ed_vi_effect;

/* holds the arguments of a row's function */
struct ed_vi_call {
    uint32_t how;   /* argument that distinguishes rows with the same function */
    uint32_t given; /* code of the key that was typed as the argument; 0: the row takes no argument */
};

/* Moves span->end from the cursor to the target; returns false if there is no such place. */
typedef bool ed_vi_motion_fn(ed *e, struct ed_vi_call call, struct ed_vi_span *span);
/* Finds the object at span->end. `visual` means that more than one character is selected, [begin, end] of the span. */
typedef bool ed_vi_object_fn(ed *e, uint32_t how, bool inner, bool visual, struct ed_vi_span *span);
typedef void ed_vi_action_fn(ed *e, struct ed_vi_call call);

struct ed_vi_row {
    uint32_t prefix, key; /* codes, with ED_VI_CTRL added for keys with Ctrl; prefix 0: the key has no prefix */
    uint8_t modes, flags;
    ed_vi_effect effect;
    uint32_t how;
    const char *argument; /* name in the help of the key that must follow; NULL: no key must follow */
    union {
        ed_vi_motion_fn *motion;
        ed_vi_object_fn *object;
        ed_vi_action_fn *action;
    } run;
    const char *command; /* name of the command; for a note, the keys as the help shows them */
    const char *help;    /* NULL: the row belongs to the help's line of the rows before it */
};

/* Finds a key's row in a mode (one of ED_VI_IN_*); returns NULL if the mode has no such key. */
const struct ed_vi_row *ed_vi_row_find(uint32_t prefix, uint32_t key, uint8_t mode);
/* Runs a row that is an action, a command or a line. */
void ed_vi_row_run(ed *e, const struct ed_vi_row *row, uint32_t given);
/* Gives line `line` of the help, counted from 0: its keys and their effect; returns false after the last. */
bool ed_vi_help(size_t line, char *keys, size_t keys_bytes, const char **help);

/* These motions are in vi_motion.c. */
extern ed_vi_motion_fn ed_vi_to_left, ed_vi_to_right, ed_vi_by_chars, ed_vi_by_lines, ed_vi_by_rows, ed_vi_by_words,
    ed_vi_back_by_words, ed_vi_to_word_end, ed_vi_back_to_word_end, ed_vi_to_line_begin, ed_vi_to_column,
    ed_vi_to_line_end, ed_vi_to_first_sign, ed_vi_to_line, ed_vi_to_window_row, ed_vi_by_paragraphs, ed_vi_by_sentences,
    ed_vi_to_match, ed_vi_to_char, ed_vi_to_char_again, ed_vi_search_again, ed_vi_search_word, ed_vi_to_mark;

/* These objects are in vi_object.c. */
extern ed_vi_object_fn ed_vi_words, ed_vi_sentences, ed_vi_paragraphs, ed_vi_quotes, ed_vi_brackets, ed_vi_tags;

#endif
