/* SPDX-License-Identifier: MIT
 * Implements the core of byte-pair encoding: makes from words with counts the characters and merged pieces, in the
 * order in which they were found. This header is private to its folder. */
#ifndef WHIT_TOKENIZER_LEARN_MERGES_H
#define WHIT_TOKENIZER_LEARN_MERGES_H

#include "base/mem.h"

typedef struct whit_text_entry {
    uint64_t count;           /* zero at first; the caller sets the count */
    uint32_t offset, n_bytes; /* in texts */
} whit_text_entry;

/* Holds distinct texts, numbered in the order of their first occurrence. */
typedef struct whit_text_table {
    const whit_allocator *allocator;
    whit_buf texts, entries;
    uint32_t *slots; /* number + 1, by hash; 0: free */
    size_t n, n_slots;
} whit_text_table;

whit_text_table whit_text_table_init(const whit_allocator *allocator);
void whit_text_table_free(whit_text_table *table);
/* Finds or adds the entry of a text; valid until the next call. The result is NULL if memory is short. */
whit_text_entry *whit_text_table_add(whit_text_table *table, const void *text, size_t n_bytes);
static inline whit_text_entry *whit_text_table_at(const whit_text_table *table, size_t i)
{
    return (whit_text_entry *)(void *)table->entries.data + i;
}

typedef struct whit_merges {
    whit_text_table pieces; /* characters, then merges in order */
    size_t n_characters;
} whit_merges;

/* Learns merges that give at most n_pieces pieces. `merges` must be freed on failure, too. */
whit_status whit_merges_learn(whit_merges *merges, const whit_text_table *words, size_t n_pieces,
                              const whit_allocator *allocator, whit_error *error);
void whit_merges_free(whit_merges *merges);

#endif
