/* SPDX-License-Identifier: MIT
 * Finds colours by tables: a language is a few lines of text (languages/), and all languages share one lexer. The lexer
 * runs line by line with a number as its state between lines, so that it can stop and resume at any line. */
#ifndef WHIT_EDITOR_SYNTAX_H
#define WHIT_EDITOR_SYNTAX_H

#include "editor/layout.h"

typedef struct whit_syntax whit_syntax;

/* Returns the language of a file, found by its name or by a first line that begins with "#!"; NULL if no language was
 * found, or if memory runs out. */
whit_syntax *whit_syntax_for(const char *path, const char *first_line);
void whit_syntax_close(whit_syntax *syntax);
const char *whit_syntax_name(const whit_syntax *syntax);
/* Returns the signs that open and close a comment; `close` is "" for a comment that ends with its line. Without a
 * language (NULL), or if it has no comments, the signs are "#" and "". */
void whit_syntax_comment(const whit_syntax *syntax, const char **open, const char **close);
/* Returns the name of language i, or NULL if i is too large. */
const char *whit_syntax_language(size_t i, char *name, size_t room_bytes);

/* Colours a part of a line. `state` is the state before the part (0 at the beginning of a text). `styles` gets one
 * style per byte (NULL: nothing is written). `ends`: the line ends after the part. Returns the state after the part. */
uint32_t whit_syntax_line(const whit_syntax *syntax, uint32_t state, const uint8_t *line, size_t n, bool ends,
                          uint8_t *styles);

/* Cached states at beginnings of lines of a text; zero-initialise it. */
typedef struct whit_syntax_states {
    struct {
        uint64_t offset;
        uint32_t state;
    } * marks; /* n_marks states, sorted by offset */
    size_t n_marks, room;
} whit_syntax_states;
void whit_syntax_states_free(whit_syntax_states *states);
/* Drops the cached states after `offset`; must be called when the text has changed there. */
void whit_syntax_states_cut(whit_syntax_states *states, uint64_t offset);
/* number of bytes that painting may scan for colours; the rest is scanned in idle time */
#define WHIT_SYNTAX_PAINT_BYTES (64u << 10)
/* Computes the state at the beginning of a row from the nearest cached state; scans about budget_bytes at most. If that
 * is not enough, returns false with a guess in *state; calling it again continues. */
bool whit_syntax_states_at(whit_syntax_states *states, const whit_syntax *syntax, const whit_text *text,
                           uint64_t offset, uint64_t budget_bytes, uint32_t *state);

#endif
