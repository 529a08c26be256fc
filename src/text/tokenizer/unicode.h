/* SPDX-License-Identifier: MIT
 * Classifies characters as common tokenizers do, mostly by utf8proc's tables, and converts bytes to the byte-level
 * alphabet of GPT-2 and back. */
#ifndef WHIT_TOKENIZER_UNICODE_H
#define WHIT_TOKENIZER_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

bool whit_is_space(uint32_t code);  /* White_Space, the meaning of \s; not U+180E */
bool whit_is_letter(uint32_t code); /* \p{L} */
bool whit_is_mark(uint32_t code);   /* \p{M} */
bool whit_is_number(uint32_t code); /* \p{N} */
/* Returns whether the character is \p{P} of Unicode 8, with which the field's Punctuation pre-tokenizer was built. */
bool whit_is_punctuation_unicode8(uint32_t code);
/* Returns whether the character is \w in Rust's regex: Alphabetic, M, Nd, Pc, Join_Control. */
bool whit_is_word(uint32_t code);

/* Returns the symbol of a byte in the byte-level alphabet of GPT-2: every byte is spelt with one visible character;
 * printable Latin-1 stands for itself, the rest moves to U+0100 and up. */
uint32_t whit_byte_symbol(uint8_t byte);
/* Returns the byte that a character spells; -1 if the character is not in the alphabet. */
int whit_byte_of_symbol(uint32_t code);

#endif
