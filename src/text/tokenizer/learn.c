/* SPDX-License-Identifier: MIT
 * Counts words. learn_merges.c learns pieces from them. */
#include "tokenizer/learn.h"

#include "base/items.h"
#include "base/utf8.h"
#include "tokenizer/learn_merges.h"
#include "tokenizer/vocabulary.h"

#include <stdio.h>

#define METASPACE      "\xE2\x96\x81"
#define MAX_WORD_BYTES 128 /* longer words are divided, since no piece needs to be that long */
#define N_BYTE_TOKENS  256

static const char *const own_specials[] = {"<unk>", "<s>", "</s>"};
#define N_OWN_SPECIALS (sizeof own_specials / sizeof own_specials[0])

struct whit_learner {
    whit_learn_options options;
    const whit_allocator *allocator;
    whit_text_table words;
    uint8_t word[MAX_WORD_BYTES + 8]; /* the word being read */
    size_t word_bytes;
};

/* Fails if a special token is empty or equals another one, since it could then never be found in a text. */
static whit_status check_specials(const whit_learn_options *options, whit_error *error)
{
    for (size_t i = 0; i < options->n_specials; i++) {
        const char *special = options->specials[i];
        if (!*special) return whit_fail(error, WHIT_ERROR_ARGUMENT, "special token %zu is empty; leave it out", i + 1);
        for (size_t k = 0; k < N_OWN_SPECIALS + i; k++) {
            bool own = k < N_OWN_SPECIALS;
            const char *known = own ? own_specials[k] : options->specials[k - N_OWN_SPECIALS];
            if (strcmp(special, known) == 0)
                return whit_fail(error, WHIT_ERROR_ARGUMENT, "the special token '%.80s' %s; leave it out", special,
                                 own ? "is in every vocabulary already" : "is given twice");
        }
    }
    return WHIT_OK;
}

whit_status whit_learner_open(const whit_learn_options *options, const whit_allocator *allocator, whit_learner **out,
                              whit_error *error)
{
    *out = NULL;
    size_t least = N_OWN_SPECIALS + options->n_specials + N_BYTE_TOKENS + 1;
    if (options->n_tokens < least || options->n_tokens > 1u << 20)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "a vocabulary of %u tokens is too small or too large; the minimum is %zu, the maximum 1048576",
                         options->n_tokens, least);
    WHIT_TRY(check_specials(options, error));
    whit_learner *learner = whit_zalloc(allocator, sizeof *learner);
    if (!learner) return whit_fail_memory(error, "a vocabulary", sizeof *learner);
    learner->options = *options;
    learner->allocator = allocator;
    learner->words = whit_text_table_init(allocator);
    *out = learner;
    return WHIT_OK;
}

void whit_learner_close(whit_learner *learner)
{
    if (!learner) return;
    whit_text_table_free(&learner->words);
    whit_free(learner->allocator, learner, sizeof *learner);
}

/* ---- words ---------------------------------------------------------------------------------- */

enum kind { LETTER, DIGIT, SPACE, BREAK, SIGN };

static enum kind kind_of(uint32_t c)
{
    if ((c | 32) >= 'a' && (c | 32) <= 'z') return LETTER;
    if (c >= '0' && c <= '9') return DIGIT;
    if (c == ' ') return SPACE;
    if (c < ' ') return BREAK;
    return c < 0x80 ? SIGN : LETTER;
}

static whit_status end_word(whit_learner *learner, whit_error *error)
{
    if (!learner->word_bytes) return WHIT_OK;
    whit_text_entry *entry = whit_text_table_add(&learner->words, learner->word, learner->word_bytes);
    learner->word_bytes = 0;
    if (!entry) return whit_fail_memory(error, "the words of the training text", 0);
    entry->count++;
    return WHIT_OK;
}

static whit_status push_text(whit_learner *learner, const void *text, size_t n_bytes, whit_error *error)
{
    if (learner->word_bytes + n_bytes > MAX_WORD_BYTES) WHIT_TRY(end_word(learner, error));
    memcpy(learner->word + learner->word_bytes, text, n_bytes);
    learner->word_bytes += n_bytes;
    return WHIT_OK;
}

/* Returns the length of the special token at the beginning of `text`; 0 if `text` does not begin with one. */
static size_t special_at(const whit_learner *learner, const char *text, size_t n_bytes)
{
    size_t n = N_OWN_SPECIALS + learner->options.n_specials;
    for (size_t i = 0; i < n; i++) {
        const char *special = i < N_OWN_SPECIALS ? own_specials[i] : learner->options.specials[i - N_OWN_SPECIALS];
        size_t length = strlen(special);
        if (length && length <= n_bytes && *special == *text && memcmp(special, text, length) == 0) return length;
    }
    return 0;
}

static bool is_letter_at(const char *text, size_t at, size_t n_bytes)
{
    return at < n_bytes && kind_of((uint8_t)text[at]) == LETTER;
}

whit_status whit_learner_add(whit_learner *learner, const char *text, size_t text_bytes, whit_error *error)
{
    enum kind last = BREAK;
    for (size_t at = 0, length; at < text_bytes; at += length) {
        length = special_at(learner, text + at, text_bytes - at);
        uint32_t code =
            length ? WHIT_UTF8_INVALID : whit_utf8_decode((const uint8_t *)text + at, text_bytes - at, &length);
        if (code == WHIT_UTF8_INVALID) { /* special tokens and invalid bytes end a word and belong to none */
            WHIT_TRY(end_word(learner, error));
            last = BREAK;
            continue;
        }
        enum kind kind = kind_of(code);
        if (code == '\'' && last == LETTER && is_letter_at(text, at + 1, text_bytes)) kind = LETTER;
        bool joins = kind == last && (kind == LETTER || kind == SIGN);
        if (!joins && !(last == SPACE && kind != SPACE && kind != BREAK)) WHIT_TRY(end_word(learner, error));
        if (kind == SPACE)
            WHIT_TRY(push_text(learner, METASPACE, strlen(METASPACE), error));
        else
            WHIT_TRY(push_text(learner, text + at, length, error));
        last = kind;
    }
    return end_word(learner, error);
}

/* ---- the vocabulary ------------------------------------------------------------------------- */

struct tokens {
    whit_text *texts;
    float *scores;
    int32_t *types;
    char (*bytes)[8]; /* "<0x00>", "<0x01>" and so on */
    size_t n, room;
    const whit_allocator *allocator;
};

static bool open_tokens(struct tokens *t, size_t room, const whit_allocator *allocator)
{
    *t = (struct tokens){.room = room, .allocator = allocator};
    t->texts = whit_zalloc_array(allocator, room, sizeof *t->texts);
    t->scores = whit_zalloc_array(allocator, room, sizeof *t->scores);
    t->types = whit_zalloc_array(allocator, room, sizeof *t->types);
    t->bytes = whit_zalloc_array(allocator, N_BYTE_TOKENS, sizeof *t->bytes);
    return t->texts && t->scores && t->types && t->bytes;
}

static void close_tokens(struct tokens *t)
{
    whit_free(t->allocator, t->texts, t->room * sizeof *t->texts);
    whit_free(t->allocator, t->scores, t->room * sizeof *t->scores);
    whit_free(t->allocator, t->types, t->room * sizeof *t->types);
    whit_free(t->allocator, t->bytes, N_BYTE_TOKENS * sizeof *t->bytes);
}

static void add_token(struct tokens *t, whit_text text, float score, int32_t type)
{
    t->texts[t->n] = text;
    t->scores[t->n] = score;
    t->types[t->n++] = type;
}

static void add_pieces(struct tokens *t, const whit_merges *merges, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        const whit_text_entry *piece = whit_text_table_at(&merges->pieces, i);
        /* The score of a merge is its negative rank. Characters, which are not the result of a merge, have lower
         * scores. */
        size_t rank = i < merges->n_characters ? merges->pieces.n + i : i - merges->n_characters;
        whit_text text = {whit_chars(&merges->pieces.texts) + piece->offset, piece->n_bytes};
        add_token(t, text, -(float)rank, WHIT_TOKEN_NORMAL);
    }
}

static void fill_tokens(struct tokens *t, const whit_learn_options *options, const whit_merges *merges)
{
    for (size_t i = 0; i < N_OWN_SPECIALS; i++)
        add_token(t, (whit_text){own_specials[i], strlen(own_specials[i])}, 0,
                  i ? WHIT_TOKEN_CONTROL : WHIT_TOKEN_UNKNOWN);
    for (size_t i = 0; i < options->n_specials; i++)
        add_token(t, (whit_text){options->specials[i], strlen(options->specials[i])}, 0, WHIT_TOKEN_CONTROL);
    for (unsigned i = 0; i < N_BYTE_TOKENS; i++) {
        snprintf(t->bytes[i], sizeof t->bytes[i], "<0x%02X>", i);
        add_token(t, (whit_text){t->bytes[i], strlen(t->bytes[i])}, 0, WHIT_TOKEN_BYTE);
    }
    add_pieces(t, merges, merges->n_characters, merges->pieces.n);
    add_pieces(t, merges, 0, merges->n_characters);
}

whit_status whit_learner_finish(whit_learner *learner, whit_buf *image, whit_error *error)
{
    const whit_learn_options *options = &learner->options;
    size_t fixed = N_OWN_SPECIALS + options->n_specials + N_BYTE_TOKENS;
    if (!learner->words.n) return whit_fail(error, WHIT_ERROR_ARGUMENT, "the text to learn a vocabulary from is empty");
    whit_merges merges;
    struct tokens tokens = {.allocator = learner->allocator};
    whit_status status =
        whit_merges_learn(&merges, &learner->words, options->n_tokens - fixed, learner->allocator, error);
    if (status == WHIT_OK && !open_tokens(&tokens, fixed + merges.pieces.n, learner->allocator))
        status = whit_fail_memory(error, "a vocabulary", 0);
    if (status == WHIT_OK) {
        fill_tokens(&tokens, options, &merges);
        whit_vocabulary vocabulary = whit_vocabulary_init("the new vocabulary", WHIT_VOCABULARY_SPM);
        vocabulary.tokens = tokens.texts;
        vocabulary.scores = tokens.scores;
        vocabulary.types = tokens.types;
        vocabulary.n_tokens = tokens.n;
        vocabulary.unk = 0;
        vocabulary.bos = 1;
        vocabulary.eos = 2;
        vocabulary.add_bos = 1;
        vocabulary.add_eos = vocabulary.add_space_prefix = 0;
        status = whit_tokenizer_from_vocabulary(&vocabulary, image, error);
    }
    close_tokens(&tokens);
    whit_merges_free(&merges);
    return status;
}
