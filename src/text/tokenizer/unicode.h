/* SPDX-License-Identifier: MIT
 * Classifies characters like common tokenizers, mostly with utf8proc's tables, and converts bytes to GPT-2's byte-level
 * alphabet and back. */
#ifndef WHIT_TOKENIZER_UNICODE_H
#define WHIT_TOKENIZER_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

bool whit_is_space(uint32_t code);  /* White_Space, which \s means; without U+180E */
bool whit_is_letter(uint32_t code); /* \p{L} */
bool whit_is_mark(uint32_t code);   /* \p{M} */
bool whit_is_number(uint32_t code); /* \p{N} */
/* Returns whether the character is \p{P} in Unicode 8, which the pre-tokenizer Punctuation of `tokenizers` was built
 * with. */
bool whit_is_punctuation_unicode8(uint32_t code);
/* Returns whether the character is \w in Rust's regex: Alphabetic, M, Nd, Pc, Join_Control. */
bool whit_is_word(uint32_t code);

/* Returns the symbol of a byte in GPT-2's byte-level alphabet, where every byte is written as one visible character.
 * Printable bytes of Latin-1 are their own symbol; the others are mapped to U+0100 and above. */
uint32_t whit_byte_symbol(uint8_t byte);
/* Returns the byte with this symbol; -1 if the character is not in the alphabet. */
int whit_byte_of_symbol(uint32_t code);

#endif
