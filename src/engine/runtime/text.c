/* SPDX-License-Identifier: MIT
 * Implements the public functions that convert between text and tokens of a model with its tokenizer. */
#include "runtime/text.h"

#include "runtime/model.h"

#include <pthread.h>

#define IDLE_TOKENIZERS 8
/* Maximum size of the buffers that an idle tokenizer keeps: for the first tokenizer enough for its table of words (1
 * MiB), for the others enough for ordinary texts. */
#define FIRST_KEEPS_BYTES ((size_t)2 << 20)
#define OTHERS_KEEP_BYTES ((size_t)64 << 10)

struct whit_tokenizers {
    pthread_mutex_t lock;
    whit_tokenizer *idle[IDLE_TOKENIZERS];
    uint32_t n_idle;
    uint8_t *breakers; /* bits of the tokens that end a repetition (DRY); NULL until they are requested */
    size_t breakers_bytes;
    const whit_allocator *allocator;
};

whit_status whit_tokenizers_open(const whit_allocator *allocator, whit_tokenizers **tokenizers, whit_error *error)
{
    *tokenizers = whit_zalloc(allocator, sizeof **tokenizers);
    if (!*tokenizers) return whit_fail_memory(error, "the tokenizers", sizeof **tokenizers);
    (*tokenizers)->allocator = allocator;
    pthread_mutex_init(&(*tokenizers)->lock, NULL);
    return WHIT_OK;
}

void whit_tokenizers_close(whit_tokenizers *tokenizers)
{
    if (!tokenizers) return;
    for (uint32_t i = 0; i < tokenizers->n_idle; i++) whit_tokenizer_close(tokenizers->idle[i]);
    pthread_mutex_destroy(&tokenizers->lock);
    whit_free(tokenizers->allocator, tokenizers->breakers, tokenizers->breakers_bytes);
    whit_free(tokenizers->allocator, tokenizers, sizeof *tokenizers);
}

static whit_status take_tokenizer(const whit_model *model, whit_tokenizer **tokenizer, whit_error *error)
{
    whit_tokenizers *tokenizers = model->tokenizers;
    pthread_mutex_lock(&tokenizers->lock);
    *tokenizer = tokenizers->n_idle ? tokenizers->idle[--tokenizers->n_idle] : NULL;
    pthread_mutex_unlock(&tokenizers->lock);
    return *tokenizer ? WHIT_OK : whit_tokenizer_open(&model->tokenizer, model->allocator, tokenizer, error);
}

static void put_back(const whit_model *model, whit_tokenizer *tokenizer)
{
    whit_tokenizers *tokenizers = model->tokenizers;
    pthread_mutex_lock(&tokenizers->lock);
    bool kept = tokenizers->n_idle < IDLE_TOKENIZERS;
    whit_tokenizer_trim(tokenizer, tokenizers->n_idle ? OTHERS_KEEP_BYTES : FIRST_KEEPS_BYTES);
    if (kept) tokenizers->idle[tokenizers->n_idle++] = tokenizer;
    pthread_mutex_unlock(&tokenizers->lock);
    if (!kept) whit_tokenizer_close(tokenizer);
}

static whit_status need_tokenizer(const whit_model *model, whit_error *error)
{
    if (model->has_tokenizer) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "%s: the model has no tokenizer: it works with token ids only (a "
                     "folder needs tokenizer.json or tokenizer.model)",
                     model->path);
}

bool whit_model_has_tokenizer(const whit_model *model)
{
    return model->has_tokenizer;
}

whit_status whit_model_encode(const whit_model *model, const char *text, size_t text_bytes,
                              const whit_encode_options *options, whit_buf *ids, whit_error *error)
{
    whit_tokenizer *tokenizer;
    WHIT_TRY(need_tokenizer(model, error));
    WHIT_TRY(take_tokenizer(model, &tokenizer, error));
    whit_status status = whit_tokenizer_encode(tokenizer, text, text_bytes, options, ids, error);
    put_back(model, tokenizer);
    return status;
}

whit_status whit_tokenize(const whit_model *model, const char *text, size_t text_bytes, bool add_special,
                          bool parse_special, int32_t *ids, size_t capacity, size_t *n_ids, whit_error *error)
{
    WHIT_NEED(n_ids);
    WHIT_NEED(model);
    WHIT_NEED_ARRAY(text, text_bytes);
    WHIT_NEED_ARRAY(ids, capacity);
    *n_ids = 0;
    whit_buf found = {.allocator = model->allocator};
    whit_encode_options options = {.add_special = add_special, .parse_special = parse_special};
    whit_status status = whit_model_encode(model, text, text_bytes, &options, &found, error);
    size_t n = found.size_bytes / sizeof *ids;
    if (status == WHIT_OK) {
        *n_ids = n;
        if (n > capacity)
            status = whit_fail(error, WHIT_ERROR_LIMIT,
                               "the text has %zu tokens, but the array given for them has room for %zu", n, capacity);
        else if (n)
            memcpy(ids, found.data, found.size_bytes);
    }
    whit_buf_free(&found);
    return status;
}

int32_t whit_model_bos(const whit_model *model)
{
    return model->has_tokenizer ? model->tokenizer.header->bos : -1;
}

bool whit_model_is_end(const whit_model *model, int32_t id)
{
    return model->has_tokenizer && whit_tokenizer_is_end(&model->tokenizer, id);
}

whit_status whit_token_bytes(const whit_model *model, int32_t id, uint8_t *bytes, size_t capacity, size_t *n_bytes,
                             whit_error *error)
{
    WHIT_NEED(n_bytes);
    WHIT_NEED(model);
    WHIT_NEED_ARRAY(bytes, capacity);
    *n_bytes = 0;
    whit_token_decoder *decoder;
    whit_token_decoder_options options = {.is_inner = true};
    WHIT_TRY(need_tokenizer(model, error));
    WHIT_TRY(whit_token_decoder_open(&model->tokenizer, options, model->allocator, &decoder, error));
    whit_status status = WHIT_OK;
    for (int flush = 0; flush < 2 && status == WHIT_OK; flush++) {
        const char *text;
        size_t n = 0;
        status = flush ? whit_token_decoder_flush(decoder, &text, &n, error)
                       : whit_token_decoder_push(decoder, id, &text, &n, error);
        if (status == WHIT_OK && n && *n_bytes <= capacity && n <= capacity - *n_bytes)
            memcpy(bytes + *n_bytes, text, n);
        *n_bytes += n;
    }
    whit_token_decoder_close(decoder);
    if (status != WHIT_OK || *n_bytes <= capacity) return status;
    return whit_fail(error, WHIT_ERROR_LIMIT, "the token's text has %zu bytes, but the buffer given for it has %zu",
                     *n_bytes, capacity);
}

/* ---- ids to text ---------------------------------------------------------------------------- */

struct whit_detokenizer {
    whit_token_decoder *decoder;
    const whit_allocator *allocator;
};

whit_status whit_detokenizer_open(const whit_model *model, bool skip_special, whit_detokenizer **out, whit_error *error)
{
    WHIT_NEED(out);
    *out = NULL;
    WHIT_NEED(model);
    WHIT_TRY(need_tokenizer(model, error));
    whit_detokenizer *d = whit_zalloc(model->allocator, sizeof *d);
    if (!d) return whit_fail_memory(error, "the detokenizer", sizeof *d);
    d->allocator = model->allocator;
    whit_token_decoder_options options = {.skip_special = skip_special};
    whit_status status = whit_token_decoder_open(&model->tokenizer, options, d->allocator, &d->decoder, error);
    if (status != WHIT_OK) {
        whit_free(d->allocator, d, sizeof *d);
        return status;
    }
    *out = d;
    return WHIT_OK;
}

whit_status whit_detokenizer_push(whit_detokenizer *d, int32_t id, const char **text, size_t *text_bytes,
                                  whit_error *error)
{
    WHIT_NEED(d);
    WHIT_NEED(text);
    WHIT_NEED(text_bytes);
    return whit_token_decoder_push(d->decoder, id, text, text_bytes, error);
}

whit_status whit_detokenizer_flush(whit_detokenizer *d, const char **text, size_t *text_bytes, whit_error *error)
{
    WHIT_NEED(d);
    WHIT_NEED(text);
    WHIT_NEED(text_bytes);
    return whit_token_decoder_flush(d->decoder, text, text_bytes, error);
}

void whit_detokenizer_close(whit_detokenizer *d)
{
    if (!d) return;
    whit_token_decoder_close(d->decoder);
    whit_free(d->allocator, d, sizeof *d);
}

/* ---- tokens that end a repetition ---------------------------------------------------------------- */

/* Returns whether a text contains a default breaker of llama.cpp's DRY: line feed, colon, double quote or asterisk. */
static bool has_breaker(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] == '\n' || text[i] == ':' || text[i] == '"' || text[i] == '*') return true;
    return false;
}

static whit_status find_breakers(const whit_model *model, uint8_t *bits, whit_error *error)
{
    whit_detokenizer *detokenizer;
    WHIT_TRY(whit_detokenizer_open(model, false, &detokenizer, error));
    whit_status status = WHIT_OK;
    for (uint32_t id = 0; status == WHIT_OK && id < model->config.n_vocab; id++) {
        const char *text;
        size_t n;
        status = whit_detokenizer_push(detokenizer, (int32_t)id, &text, &n, error);
        if (status == WHIT_OK && has_breaker(text, n)) bits[id / 8] |= (uint8_t)(1u << id % 8);
    }
    whit_detokenizer_close(detokenizer);
    return status;
}

whit_status whit_model_breakers(const whit_model *model, const uint8_t **bits, whit_error *error)
{
    whit_tokenizers *tokenizers = model->tokenizers;
    size_t n_bytes = ((size_t)model->config.n_vocab + 7) / 8;
    *bits = NULL;
    if (!tokenizers) return WHIT_OK; /* a model without a tokenizer has no text and no breakers */
    pthread_mutex_lock(&tokenizers->lock);
    *bits = tokenizers->breakers;
    pthread_mutex_unlock(&tokenizers->lock);
    if (*bits) return WHIT_OK;
    uint8_t *found = whit_zalloc(tokenizers->allocator, n_bytes);
    if (!found) return whit_fail_memory(error, "the sampler", n_bytes);
    whit_status status = find_breakers(model, found, error);
    pthread_mutex_lock(&tokenizers->lock);
    if (status == WHIT_OK && !tokenizers->breakers) { /* if they are already set, another thread found the same bits
                                                       * earlier */
        tokenizers->breakers = found;
        tokenizers->breakers_bytes = n_bytes;
        found = NULL;
    }
    *bits = tokenizers->breakers;
    pthread_mutex_unlock(&tokenizers->lock);
    whit_free(tokenizers->allocator, found, n_bytes);
    return status;
}
