/* SPDX-License-Identifier: MIT
 * Divides a template's source into tokens, with Jinja's rules for white space (trim_blocks, lstrip_blocks).
 *
 * The source must be valid UTF-8 with "\n" line ends, and must outlive the tokens. */
#ifndef WHIT_TEMPLATE_LEXER_H
#define WHIT_TEMPLATE_LEXER_H

#include "template/template.h"
#include "template/value.h"

typedef enum whit_lexeme_type {
    WHIT_LEXEME_END = 0,
    WHIT_LEXEME_DATA,
    WHIT_LEXEME_PRINT_BEGIN,
    WHIT_LEXEME_PRINT_END,
    WHIT_LEXEME_BLOCK_BEGIN,
    WHIT_LEXEME_BLOCK_END,
    WHIT_LEXEME_NAME,
    WHIT_LEXEME_CONSTANT, /* `value` is the string, integer or float */
    WHIT_LEXEME_ADD,
    WHIT_LEXEME_SUB,
    WHIT_LEXEME_MUL,
    WHIT_LEXEME_DIV,
    WHIT_LEXEME_FLOORDIV,
    WHIT_LEXEME_MOD,
    WHIT_LEXEME_POW,
    WHIT_LEXEME_TILDE,
    WHIT_LEXEME_EQ,
    WHIT_LEXEME_NE,
    WHIT_LEXEME_LT,
    WHIT_LEXEME_LE,
    WHIT_LEXEME_GT,
    WHIT_LEXEME_GE,
    WHIT_LEXEME_ASSIGN,
    WHIT_LEXEME_DOT,
    WHIT_LEXEME_COLON,
    WHIT_LEXEME_COMMA,
    WHIT_LEXEME_PIPE,
    WHIT_LEXEME_SEMICOLON,
    WHIT_LEXEME_LPAREN,
    WHIT_LEXEME_RPAREN,
    WHIT_LEXEME_LBRACKET,
    WHIT_LEXEME_RBRACKET,
    WHIT_LEXEME_LBRACE,
    WHIT_LEXEME_RBRACE,
} whit_lexeme_type;

typedef struct whit_lexeme {
    uint8_t type;
    uint32_t offset;  /* position in the source */
    whit_datum value; /* DATA, NAME: the text; CONSTANT: the constant */
} whit_lexeme;

typedef struct whit_lexemes {
    whit_lexeme *items; /* the last one is WHIT_LEXEME_END */
    size_t n;
} whit_lexemes;

/* Divides the source into tokens, whose memory is from the pool. On failure *error_offset is the position in the
 * source. */
whit_status whit_lexer_read(whit_datum_pool *pool, const char *source, size_t n_bytes, whit_lexemes *tokens,
                            size_t *error_offset, whit_error *error);

/* Returns the name of a type of token for messages, such as "end of print statement" or "','". */
const char *whit_lexeme_name(whit_lexeme_type type);

#endif
