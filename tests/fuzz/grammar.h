/* SPDX-License-Identifier: MIT
 * Shared by the fuzz targets of grammars: a vocabulary of single bytes and some words, and a random walk through a
 * grammar. */
#ifndef WHIT_TESTS_FUZZ_GRAMMAR_H
#define WHIT_TESTS_FUZZ_GRAMMAR_H

#include "grammar/grammar.h"

static inline whit_status fuzz_bytes(void *user, uint32_t id, whit_buf *out, bool *is_end, whit_error *error)
{
    static const char *const words[] = {"{\"", "\":", "true", "null", "abc", "\\u00", "\",\"", "]}"};
    (void)user, (void)error;
    uint8_t byte = (uint8_t)id;
    *is_end = id == 264;
    if (id < 256)
        whit_buf_append(out, &byte, 1);
    else if (id < 264)
        whit_buf_append_str(out, words[id - 256]);
    return WHIT_OK;
}

/* Walks through some tokens that the masks allow. Each of them must be accepted, and a token that a mask forbids must
 * be refused. */
static inline void fuzz_walk(whit_grammar *grammar, size_t seed)
{
    whit_grammar_state *state, *clone;
    whit_error error;
    const uint64_t *bits;
    if (whit_grammar_state_open(grammar, &state, &error) != WHIT_OK) return;
    for (int i = 0; i < 24 && whit_grammar_mask(state, &bits, &error) == WHIT_OK; i++) {
        uint64_t own[5];
        int32_t id = -1, banned = -1;
        memcpy(own, bits, sizeof own);
        for (uint32_t k = 0; k < 265; k++) {
            int32_t at = (int32_t)((k + seed) % 265);
            bool open = own[at / 64] >> at % 64 & 1;
            if (open && id < 0) id = at;
            if (!open && banned < 0) banned = at;
        }
        if (whit_grammar_state_clone(state, &clone, &error) != WHIT_OK) break;
        whit_status refused = banned < 0 ? WHIT_ERROR_ARGUMENT : whit_grammar_accept(clone, banned, &error);
        whit_status taken = whit_grammar_accept(clone, id, &error);
        if (refused == WHIT_OK || taken == WHIT_ERROR_ARGUMENT) __builtin_trap();
        whit_grammar_state_close(clone);
        if (taken != WHIT_OK || whit_grammar_accept(state, id, &error) != WHIT_OK || id == 264) break;
        if (i % 5 == 4) whit_ignore(whit_grammar_rollback(state, 2, &error));
        seed = seed * 31 + 7;
    }
    whit_grammar_state_close(state);
}

typedef whit_status fuzz_open_fn(const whit_grammar_vocabulary *vocabulary, const char *name, const char *text,
                                 size_t text_bytes, whit_grammar **grammar, whit_error *error);
static inline int fuzz_grammar(fuzz_open_fn *open, const uint8_t *data, size_t size)
{
    whit_grammar_vocabulary *vocabulary;
    whit_grammar *grammar;
    whit_error error;
    if (size > 20000 || whit_token_trie_build(265, fuzz_bytes, NULL, NULL, &vocabulary, &error) != WHIT_OK) return 0;
    if (open(vocabulary, "fuzz", (const char *)data, size, &grammar, &error) == WHIT_OK) {
        fuzz_walk(grammar, size);
        whit_grammar_close(grammar);
    }
    whit_token_trie_free(vocabulary);
    return 0;
}

#endif
