/* SPDX-License-Identifier: MIT
 * Declares the binary form of a program: its tree as triples, in which every node is named by the hash of its own
 * triples.
 *
 *   head     "NDLP", u32 version (1), u32 number of triples, u32 0, root (32 bytes), 16 zeros
 *   triple   subject (16 bytes), u32 predicate, u32 0, object (16 bytes)
 *
 * The name of a node is the first 16 bytes of the hash H["whit.ndl"] over the predicates and objects of its triples,
 * which are adjacent. Objects are words, numbers, or names of earlier nodes. Equal subtrees are one node. The root, the
 * hash of the last node, names the program: texts that differ only in layout and comments have the same root. Lines and
 * columns of the text are not stored. */
#ifndef WHIT_LANG_CORE_BINARY_H
#define WHIT_LANG_CORE_BINARY_H

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"

#define WHIT_LANG_BINARY_MAGIC "NDLP"

/* Writes the binary form of a text to `out`, which must be empty. The error for a mistake in the text states its line
 * and column. Names and types of variables are not checked. */
whit_status whit_lang_encode(const char *name, const char *text, size_t n_bytes, whit_buf *out,
                             uint8_t root[WHIT_HASH_BYTES], whit_error *error);
/* Writes the text that a binary form describes, replacing the content of `text`. Refuses a node whose triples do not
 * match the hash in its name, a missing node (the error names these nodes), and trees that no text can produce. */
whit_status whit_lang_decode(const char *name, const void *data, size_t n_bytes, whit_buf *text,
                             uint8_t root[WHIT_HASH_BYTES], whit_error *error);

#endif
