/* SPDX-License-Identifier: MIT
 * Orders documents by their scores for a query. Two forms are served: that of Jina and Cohere (member "documents"), and
 * that of Hugging Face's text embeddings inference (member "texts"). */
#include <stdlib.h>

#include "server/ask.h"
#include "base/sockets.h"
#include "server/embedder.h"
#include "server/embeddings.h"
#include "server/endpoints.h"
#include "server/fields.h"

enum { DOCUMENTS_MAX = 2048 };

static bool refuse_member(whit_web_reply *reply, const char *key, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", key, "%s: %s", key, what);
    return false;
}

struct ranking {
    whit_api *api;
    const json_t *query, *documents;
    const char *key; /* name of the member that has the documents: "documents" or "texts" */
    whit_rerank_options options;
    float *scores;
    size_t n, n_tokens;
};

/* Returns the text of a document, which is a string or {"text": TEXT}; NULL if it is neither. */
static const json_t *document_text(const json_t *document)
{
    const json_t *text = json_is_object(document) ? json_object_get(document, "text") : document;
    return json_is_string(text) ? text : NULL;
}

static bool read_pair(const struct ranking *r, size_t i, whit_embed_text *text, whit_web_reply *reply)
{
    const json_t *document = document_text(json_array_get(r->documents, i));
    whit_rerank_pair pair = whit_rerank_pair_default();
    whit_error error;
    pair.query = json_string_value(r->query);
    pair.query_bytes = json_string_length(r->query);
    pair.document = json_string_value(document);
    pair.document_bytes = json_string_length(document);
    pair.n_ids_max = whit_engine_context_size(r->api->engine);
    for (size_t capacity = 1024;; capacity = text->n_ids) {
        if (!whit_reply_claim(reply, capacity * sizeof(int32_t))) return false;
        int32_t *ids = malloc(capacity * sizeof *ids);
        if (!ids) return whit_api_fail_memory(reply);
        text->ids = ids;
        whit_status status =
            whit_rerank_tokens(r->api->model, &pair, ids, capacity, &text->n_ids, &text->n_first, &error);
        /* The query alone exceeds the context: the first document already shows this, and the others are not
         * tokenized. */
        if (status == WHIT_OK && text->n_ids > pair.n_ids_max)
            return refuse_member(reply, "query", "has more tokens than the context: shorten it");
        if (status == WHIT_OK)
            return text->n_ids > 0 || refuse_member(reply, r->key, "a document has no tokens: leave it out");
        free(ids);
        text->ids = NULL;
        if (status == WHIT_ERROR_LIMIT && text->n_ids > capacity) continue;
        whit_api_fail_error(reply, &error);
        return false;
    }
}

/* Computes the scores of the documents [first, first + n). */
static bool score_some(struct ranking *r, size_t first, size_t n, whit_web_reply *reply)
{
    whit_embed_text texts[WHIT_VECTOR_TEXTS] = {{0}};
    const whit_vector_work work = {.texts = texts, .n = n, .rerank = &r->options, .values = r->scores + first};
    whit_error error;
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        ok = read_pair(r, first + i, &texts[i], reply);
        r->n_tokens += texts[i].n_ids;
    }
    if (ok && whit_engine_vectors(r->api->engine, &work, &error) != WHIT_OK) {
        whit_api_fail_error(reply, &error);
        ok = false;
    }
    for (size_t i = 0; i < n; i++) free((int32_t *)(uintptr_t)texts[i].ids);
    return ok;
}

/* Returns the results, best first, at most n_top. with_texts: they include the documents' texts. */
static json_t *results_json(const struct ranking *r, size_t n_top, bool with_texts)
{
    const bool bare = r->key[0] == 't';
    whit_ranked *order = malloc(r->n * sizeof *order);
    json_t *results = order ? json_array() : NULL;
    if (results) whit_rank(r->scores, r->n, order);
    for (size_t i = 0; results && i < r->n && i < n_top; i++) {
        json_t *one = json_pack("{s:I, s:f}", "index", (json_int_t)order[i].index, bare ? "score" : "relevance_score",
                                (double)order[i].score);
        json_t *text = (json_t *)(uintptr_t)document_text(json_array_get(r->documents, order[i].index));
        if (with_texts && bare) json_object_set(one, "text", text);
        if (with_texts && !bare) json_object_set_new(one, "document", json_pack("{s:O}", "text", text));
        json_array_append_new(results, one);
    }
    free(order);
    return results;
}

static bool read_request(struct ranking *r, const json_t *body, double *n_top, bool *with_texts, whit_web_reply *reply)
{
    r->key = json_object_get(body, "documents") ? "documents" : "texts";
    if (!whit_field_text(body, "query", &r->query, reply) || !whit_field_list(body, r->key, &r->documents, reply) ||
        !whit_field_count(body, "top_n", 1, 1 << 30, n_top, reply) ||
        !whit_field_switch(body, r->key[0] == 't' ? "return_text" : "return_documents", with_texts, reply))
        return false;
    if (!r->query) return refuse_member(reply, "query", "expected a text");
    if (!json_array_size(r->documents)) return refuse_member(reply, "documents", "expected a list of texts");
    r->n = json_array_size(r->documents);
    if (r->n > DOCUMENTS_MAX) return refuse_member(reply, r->key, "expected at most 2048 documents");
    for (size_t i = 0; i < r->n; i++)
        if (!document_text(json_array_get(r->documents, i)))
            return refuse_member(reply, r->key, "a document is a text or {\"text\": TEXT}");
    return whit_api_has_no_adapters(r->api, body, reply) && whit_reply_claim(reply, r->n * sizeof *r->scores);
}

/* Returns the estimated bytes for tokenizing the longest pair of query and document: copies of its text, and up to one
 * token per byte in three lists that grow by doubling. */
static size_t tokenizing_bytes(const struct ranking *r)
{
    enum { BYTES_EACH = 2 + 3 * 2 * sizeof(int32_t) };
    size_t longest = 0;
    for (size_t i = 0; i < r->n; i++) {
        const size_t n = json_string_length(document_text(json_array_get(r->documents, i)));
        longest = n > longest ? n : longest;
    }
    return (json_string_length(r->query) + longest) * BYTES_EACH;
}

void whit_rerank_post(whit_call *call)
{
    struct ranking r = {.api = call->api, .options = whit_rerank_options_default()};
    whit_web_reply *reply = call->reply;
    whit_error error;
    double n_top = DOCUMENTS_MAX;
    bool with_texts = false, ok = read_request(&r, call->body, &n_top, &with_texts, reply);
    if (ok && whit_rerank_judges(r.api->model, &r.options, &error) != WHIT_OK) {
        whit_api_fail_error(reply, &error);
        ok = false;
    }
    if (ok) ok = whit_reply_claim(reply, tokenizing_bytes(&r));
    if (ok && !(r.scores = calloc(r.n, sizeof *r.scores))) ok = whit_api_fail_memory(reply);
    for (size_t i = 0; ok && i < r.n; i += WHIT_VECTOR_TEXTS) {
        if (whit_socket_peer_left(call->request->fd))
            ok = refuse_member(reply, r.key, "the client closed the connection");
        if (ok) ok = score_some(&r, i, r.n - i < WHIT_VECTOR_TEXTS ? r.n - i : WHIT_VECTOR_TEXTS, reply);
    }
    json_t *results = ok ? results_json(&r, (size_t)n_top, with_texts) : NULL;
    if (ok && r.key[0] == 't')
        whit_api_reply(reply, results);
    else if (ok)
        whit_api_reply(reply,
                       json_pack("{s:s, s:s, s:{s:I, s:I}, s:o}", "model", r.api->name, "object", "list", "usage",
                                 "prompt_tokens", (json_int_t)r.n_tokens, "total_tokens", (json_int_t)r.n_tokens,
                                 "results", results));
    free(r.scores);
}
