/* SPDX-License-Identifier: MIT
 * Makes the vocabulary of a model for grammars: the bytes that each token adds to a text. */
#include "base/mem.h"
#include "runtime/grammar.h"
#include "runtime/model.h"
#include "tokenizer/decoder.h"
#include "tokenizer/unicode.h"

#include "base/utf8.h"

#include <math.h>

typedef struct spelling {
    const whit_tokenizer_view *view;
    const char *const *spelled; /* texts of special tokens that have their text as bytes; the list ends with NULL */
    bool symbols;               /* byte-level vocabulary: every character stands for a byte */
    bool byte_fallback;         /* a token spelled <0xNN> is a byte, also if its type is not WHIT_TOKEN_BYTE */
    const uint8_t *mark, *mark_by;
    size_t mark_bytes, mark_by_bytes;
} spelling;

static bool read_symbols(const uint8_t *text, size_t n, whit_buf *out)
{
    size_t begin = out->size_bytes;
    for (size_t at = 0, length; at < n; at += length) {
        uint32_t code = whit_utf8_decode(text + at, n - at, &length);
        int byte = code == WHIT_UTF8_INVALID ? -1 : whit_byte_of_symbol(code);
        uint8_t one = (uint8_t)byte;
        if (byte < 0) {
            out->size_bytes = begin;
            return false;
        }
        whit_buf_append(out, &one, 1);
    }
    return true;
}

static bool read_byte_token(const uint8_t *text, size_t n, whit_buf *out)
{
    int value = whit_tokenizer_spelt_byte(text, n);
    uint8_t byte = (uint8_t)value;
    return value >= 0 && whit_buf_append(out, &byte, 1);
}

static bool is_spelled(const spelling *s, const uint8_t *text, size_t n)
{
    for (const char *const *one = s->spelled; text && *one; one++)
        if (strlen(*one) == n && memcmp(*one, text, n) == 0) return true;
    return false;
}

/* Appends the bytes that a token adds to a text, and sets *is_end. Tokens have no bytes if they end a text or are
 * absent, unknown or unused; special and control tokens have bytes only if s->spelled lists their text. */
static whit_status bytes_of(void *user, uint32_t id, whit_buf *out, bool *is_end, whit_error *error)
{
    const spelling *s = user;
    (void)error;
    uint8_t flags = whit_tokenizer_token_flags(s->view, (int32_t)id);
    uint32_t type = flags & WHIT_TOKEN_TYPE;
    *is_end = whit_tokenizer_is_end(s->view, (int32_t)id);
    if (*is_end || !(flags & WHIT_TOKEN_PRESENT) || type == WHIT_TOKEN_UNKNOWN || type == WHIT_TOKEN_UNUSED)
        return WHIT_OK;
    size_t n;
    const uint8_t *text = whit_tokenizer_token_text(s->view, (int32_t)id, &n);
    if (flags & WHIT_TOKEN_SPECIAL || type == WHIT_TOKEN_CONTROL) {
        if (is_spelled(s, text, n)) whit_buf_append(out, text, n);
        return WHIT_OK;
    }
    /* Models from tokenizer.json have no token types; the decoder's step "byte fallback" shows that bytes are spelled
     * <0xNN>. */
    if (!text || ((type == WHIT_TOKEN_BYTE || s->byte_fallback) && read_byte_token(text, n, out))) return WHIT_OK;
    if (s->symbols && read_symbols(text, n, out)) return WHIT_OK;
    for (size_t at = 0; at < n;) {
        bool match = s->mark_bytes && n - at >= s->mark_bytes && memcmp(text + at, s->mark, s->mark_bytes) == 0;
        if (match)
            whit_buf_append(out, s->mark_by, s->mark_by_bytes);
        else
            whit_buf_append(out, text + at, 1);
        at += match ? s->mark_bytes : 1;
    }
    return WHIT_OK;
}

whit_status whit_token_trie_of_tokenizer(const whit_tokenizer_view *view, uint32_t n_vocab, const char *const *spelled,
                                         const char *name, const whit_allocator *allocator,
                                         whit_grammar_vocabulary **vocabulary, whit_error *error)
{
    *vocabulary = NULL;
    spelling s = {.view = view, .spelled = spelled};
    s.symbols = (view->header->flags & WHIT_TOKENIZER_BYTE_LEVEL) != 0;
    size_t n;
    const whit_tokenizer_step *steps = whit_tokenizer_section(view, WHIT_TOKENS_DECODE, sizeof *steps, &n);
    for (size_t i = 0; i < n && i < WHIT_TOKENIZER_MAX_STEPS; i++) {
        const whit_tokenizer_step *step = &steps[i];
        bool metaspace = step->kind == WHIT_STEP_METASPACE;
        if (step->kind == WHIT_STEP_BYTE_LEVEL) s.symbols = true;
        if (step->kind == WHIT_STEP_BYTE_FALLBACK) s.byte_fallback = true;
        if (step->kind == WHIT_STEP_WORDPIECE || step->kind == WHIT_STEP_JOIN_SPACE || step->kind == WHIT_STEP_SUFFIX)
            return whit_fail(
                error, WHIT_ERROR_UNSUPPORTED,
                "%s: the text of this tokenizer's tokens depends on their neighbours, so no grammar can be followed",
                name);
        if (s.mark_bytes || !(metaspace || (step->kind == WHIT_STEP_REPLACE && !(step->flags & WHIT_STEP_FLAG_REGEX))))
            continue;
        s.mark = whit_tokenizer_string(view, step->text_offset, step->text_bytes);
        s.mark_bytes = s.mark ? step->text_bytes : 0;
        s.mark_by =
            metaspace ? (const uint8_t *)" " : whit_tokenizer_string(view, step->content_offset, step->content_bytes);
        if (metaspace)
            s.mark_by_bytes = 1;
        else if (s.mark_by)
            s.mark_by_bytes = step->content_bytes;
        else
            s.mark_by_bytes = 0;
    }
    return whit_token_trie_build(n_vocab, bytes_of, &s, allocator, vocabulary, error);
}

whit_status whit_grammar_vocabulary_open(const whit_model *model, whit_grammar_vocabulary **vocabulary,
                                         whit_error *error)
{
    WHIT_NEED(vocabulary);
    *vocabulary = NULL;
    WHIT_NEED(model);
    static const char *const none[] = {NULL};
    if (!model->has_tokenizer)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: the model has no tokenizer, so that no grammar can be followed", model->path);
    return whit_token_trie_of_tokenizer(&model->tokenizer, model->config.n_vocab, none, model->path, model->allocator,
                                        vocabulary, error);
}

void whit_grammar_vocabulary_close(whit_grammar_vocabulary *vocabulary)
{
    whit_token_trie_free(vocabulary);
}

/* ---- grammars as stages of a generation ------------------------------------------------------- */

static whit_status mask_logits(void *user, float *logits, uint32_t n_vocab, whit_error *error)
{
    const uint64_t *bits;
    WHIT_TRY(whit_grammar_mask(user, &bits, error));
    for (uint32_t id = 0; id < n_vocab; id++)
        if (!(bits[id / 64] >> id % 64 & 1)) logits[id] = -INFINITY;
    return WHIT_OK;
}

static whit_status accept_token(void *user, int32_t id, bool *end, whit_error *error)
{
    WHIT_TRY(whit_grammar_accept(user, id, error));
    *end = whit_grammar_is_finished(user);
    return WHIT_OK;
}

whit_stage whit_grammar_stage(whit_grammar_state *state)
{
    whit_stage stage = whit_stage_default();
    stage.user = state;
    stage.apply = mask_logits;
    stage.accept = accept_token;
    return stage;
}
