/* SPDX-License-Identifier: MIT
 * Makes the text that a rerank model scores, from a query and a document.
 *
 * Encoders read "[CLS] query [SEP] document [SEP]"; encoders without token types (XLM-RoBERTa) have a second separator
 * between query and document. Generative models read a filled-in template, in which the user's texts never become
 * special tokens. */
#include "runtime/session.h"

#include "base/items.h"
#include "base/options.h"

static const char judge_template[] =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    "provided. "
    "Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: "
    "{instruction}\n<Query>: "
    "{query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
static const char usual_instruction[] = "Given a web search query, retrieve relevant passages that answer the query";

bool whit_model_makes_text(const whit_model *model)
{
    return model->graph.output && !model->config.bidirectional;
}

static whit_status encode_text(const whit_model *model, const char *text, size_t n, bool special, bool parse,
                               whit_buf *ids, whit_error *error)
{
    const whit_encode_options options = {.add_special = special, .parse_special = parse};
    return whit_model_encode(model, text, n, &options, ids, error);
}

static size_t count_ids(const whit_buf *ids)
{
    return ids->size_bytes / sizeof(int32_t);
}

/* Drops last tokens of `ids` so that n_after more tokens fit into n_max (0: no limit), but keeps the first `first`
 * tokens. */
static void cut_ids(whit_buf *ids, size_t first, size_t n_after, size_t n_max)
{
    const size_t n = count_ids(ids);
    if (!n_max || n + n_after <= n_max) return;
    const size_t n_wanted = n_max > n_after ? n_max - n_after : 0;
    ids->size_bytes = (n_wanted > first ? n_wanted : first) * sizeof(int32_t);
}

/* ---- encoders ---------------------------------------------------------------------------------- */

static whit_status encode_pair(const whit_model *model, const whit_rerank_pair *pair, whit_buf *ids, size_t *n_first,
                               whit_error *error)
{
    whit_buf bare = {.allocator = model->allocator}, whole = bare;
    int32_t end = -1;
    WHIT_TRY(encode_text(model, pair->query, pair->query_bytes, true, false, ids, error));
    const size_t n_query = count_ids(ids);
    whit_status status = encode_text(model, pair->document, pair->document_bytes, false, false, &bare, error);
    if (status == WHIT_OK) status = encode_text(model, "", 0, true, false, &whole, error);
    /* The separator is the last special token that is added to an empty text. */
    if (status == WHIT_OK && count_ids(&whole) && n_query)
        memcpy(&end, whole.data + whole.size_bytes - sizeof end, sizeof end);
    if (status == WHIT_OK && end < 0)
        status = whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: the tokenizer has no token that separates two texts",
                           model->path);
    if (status == WHIT_OK && model->config.n_token_types < 2) whit_buf_append(ids, &end, sizeof end);
    *n_first = count_ids(ids);
    whit_buf_append(ids, bare.data, bare.size_bytes);
    cut_ids(ids, *n_first, 1, pair->n_ids_max);
    whit_buf_append(ids, &end, sizeof end);
    if (model->config.n_token_types < 2) *n_first = 0;
    whit_buf_free(&bare);
    whit_buf_free(&whole);
    if (status == WHIT_OK && ids->failed) return whit_fail_memory(error, "a text", ids->size_bytes);
    return status;
}

/* ---- models that judge by yes and no ----------------------------------------------------------- */

/* Appends [at, end) of a template; replaces {query} and {instruction} by the texts of the pair. */
static void fill_in(const whit_rerank_pair *pair, const char *at, const char *end, whit_buf *text)
{
    static const char *const places[] = {"{query}", "{instruction}"};
    while (at < end) {
        size_t i = 0;
        while (i < 2 && strncmp(at, places[i], strlen(places[i])) != 0) i++;
        if (i == 2)
            whit_buf_append(text, at++, 1);
        else {
            if (i == 0) whit_buf_append(text, pair->query, pair->query_bytes);
            if (i == 1) whit_buf_append_str(text, pair->instruction ? pair->instruction : usual_instruction);
            at += strlen(places[i]);
        }
    }
}

/* Returns the end of the last special token of a template before `limit`; a special token is recognised by its end
 * "|>". */
static const char *plain_begin(const char *template, const char *limit)
{
    const char *begin = template;
    for (const char *at = template; at + 1 < limit; at++)
        if (at[0] == '|' && at[1] == '>') begin = at + 2;
    return begin;
}

static whit_status encode_judged(const whit_model *model, const whit_rerank_pair *pair, whit_buf *ids,
                                 whit_error *error)
{
    const char *template = whit_model_metadata(model, "embedding.rerank_template");
    if (!template) template = judge_template;
    const char *document = strstr(template, "{document}"), *query = strstr(template, "{query}");
    if (!document || !query || query > document)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: its rerank template does not name {query}, then {document}",
                         model->path);
    const char *begin = plain_begin(template, query), *rest = document + strlen("{document}");
    whit_buf text = {.allocator = model->allocator}, tail = text;
    whit_status status = encode_text(model, template, (size_t)(begin - template), false, true, ids, error);
    if (status == WHIT_OK) status = encode_text(model, rest, strlen(rest), false, true, &tail, error);
    fill_in(pair, begin, document, &text);
    /* cut_ids keeps at least as many tokens as there are without the document. */
    whit_buf frame = {.allocator = model->allocator};
    if (status == WHIT_OK) status = encode_text(model, whit_chars(&text), text.size_bytes, false, false, &frame, error);
    const size_t first = count_ids(ids) + count_ids(&frame);
    whit_buf_append(&text, pair->document, pair->document_bytes);
    if (status == WHIT_OK && text.failed) status = whit_fail_memory(error, "a text", text.size_bytes);
    if (status == WHIT_OK) status = encode_text(model, whit_chars(&text), text.size_bytes, false, false, ids, error);
    cut_ids(ids, first, count_ids(&tail), pair->n_ids_max);
    whit_buf_append(ids, tail.data, tail.size_bytes);
    whit_buf_free(&text);
    whit_buf_free(&tail);
    whit_buf_free(&frame);
    if (status == WHIT_OK && ids->failed) return whit_fail_memory(error, "a text", ids->size_bytes);
    return status;
}

whit_status whit_rerank_tokens(const whit_model *model, const whit_rerank_pair *given, int32_t *ids, size_t capacity,
                               size_t *n_ids, size_t *n_first, whit_error *error)
{
    WHIT_NEED(model);
    WHIT_NEED(n_ids);
    WHIT_NEED(n_first);
    WHIT_NEED_ARRAY(ids, capacity);
    whit_rerank_pair pair = whit_rerank_pair_default();
    WHIT_TRY(whit_options_read(&pair, sizeof pair, given, "whit_rerank_pair", error));
    *n_ids = *n_first = 0;
    if ((pair.query_bytes && !pair.query) || (pair.document_bytes && !pair.document))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "a pair needs both a query and a document");
    whit_buf made = {.allocator = model->allocator};
    whit_status status = model->config.bidirectional ? encode_pair(model, &pair, &made, n_first, error)
                                                     : encode_judged(model, &pair, &made, error);
    if (status == WHIT_OK) {
        *n_ids = count_ids(&made);
        if (*n_ids > capacity)
            status =
                whit_fail(error, WHIT_ERROR_LIMIT,
                          "the pair has %zu tokens, but the array given for them has room for %zu", *n_ids, capacity);
        else if (*n_ids)
            memcpy(ids, made.data, made.size_bytes);
    }
    whit_buf_free(&made);
    return status;
}

whit_status whit_rerank_judges(const whit_model *model, whit_rerank_options *options, whit_error *error)
{
    WHIT_NEED(model);
    WHIT_NEED(options);
    if (model->config.n_labels) return WHIT_OK;
    if (!whit_model_makes_text(model))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: the model computes vectors, not scores: use whit embed",
                         model->path);
    int32_t *const places[] = {&options->yes, &options->no};
    static const char *const words[] = {"yes", "no"};
    for (int i = 0; i < 2; i++) {
        whit_buf ids = {.allocator = model->allocator};
        whit_status status = encode_text(model, words[i], strlen(words[i]), false, false, &ids, error);
        if (status == WHIT_OK && count_ids(&ids) != 1)
            status = whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                               "%s: '%s' must be a single token, because it names a judgement", model->path, words[i]);
        if (status == WHIT_OK) memcpy(places[i], ids.data, sizeof **places);
        whit_buf_free(&ids);
        WHIT_TRY(status);
    }
    return WHIT_OK;
}
