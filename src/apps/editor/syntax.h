/* SPDX-License-Identifier: MIT
 * Finds colours by tables: a language is a few lines of text (languages/), and all languages share one lexer. The lexer
 * runs line by line with a number as its state between lines, so that it can stop and resume at any line. */
#ifndef WHIT_EDITOR_SYNTAX_H
#define WHIT_EDITOR_SYNTAX_H

#include "editor/layout.h"

typedef struct whit_syntax whit_syntax;

/* Finds a language by the name of a file, or by a first line that begins with "#!"; NULL means that there is no such
 * language. */
whit_syntax *whit_syntax_for(const char *path, const char *first_line);
void whit_syntax_close(whit_syntax *syntax);
const char *whit_syntax_name(const whit_syntax *syntax);
/* Gives the signs that open and close a comment; `close` is empty for a comment that ends with the line. */
void whit_syntax_comment(const whit_syntax *syntax, const char **open, const char **close);
/* Returns the i-th language's name; NULL after the last. */
const char *whit_syntax_language(size_t i, char *name, size_t room_bytes);

/* Colours a part of a line: `state` is the state before it (0 at the beginning of a text), `styles` gets a style per
 * byte (NULL: no styles are written). `ends` tells that the line ends there. Returns the state after the part. */
uint32_t whit_syntax_line(const whit_syntax *syntax, uint32_t state, const uint8_t *line, size_t n, bool ends,
                          uint8_t *styles);

/* Holds the states at the beginnings of a text's lines, as far as they are computed; zero-initialise it. */
typedef struct whit_syntax_states {
    struct {
        uint64_t offset;
        uint32_t state;
    } * marks; /* (n_marks) states at the beginnings of lines, in the order of their byte offsets */
    size_t n_marks, room;
} whit_syntax_states;
void whit_syntax_states_free(whit_syntax_states *states);
/* Drops the states after `offset`, from which on the text has changed. */
void whit_syntax_states_cut(whit_syntax_states *states, uint64_t offset);
/* This is the number of bytes of text that painting may scan for colours; the rest is scanned in idle time. */
#define WHIT_SYNTAX_PAINT_BYTES (64u << 10)
/* Gives the state at a beginning of a row. Reads at most budget_bytes. If that was too little, it returns false, and
 * *state is a guess: the caller must call it again. */
bool whit_syntax_states_at(whit_syntax_states *states, const whit_syntax *syntax, const whit_text *text,
                           uint64_t offset, uint64_t budget_bytes, uint32_t *state);

#endif
