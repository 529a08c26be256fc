/* SPDX-License-Identifier: MIT */
#include "server/logprobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/json.h"
#include "base/utf8.h"

enum { PIECE_TOKENS = 32 };

/* ---- tokens -------------------------------------------------------------------------------------- */

/* Returns the bytes of a token's text, which the caller frees. */
static whit_buf api_token_bytes(const whit_api *api, int32_t id)
{
    uint8_t few[64];
    size_t n = 0;
    whit_buf own = {0};
    if (whit_token_bytes(api->model, id, few, sizeof few, &n, NULL) == WHIT_OK)
        whit_buf_append(&own, few, n);
    else if (n > sizeof few && whit_buf_reserve(&own, n) &&
             whit_token_bytes(api->model, id, own.data, n, &n, NULL) == WHIT_OK)
        own.size_bytes = n;
    return own;
}

/* Returns whether the bytes are complete UTF-8 characters and contain no zero byte. */
static bool is_text(const whit_buf *bytes)
{
    size_t n = bytes->size_bytes;
    return !n || (whit_utf8_valid_bytes(bytes->data, n) == n && !memchr(bytes->data, 0, n));
}

static void write_byte_list(const whit_buf *bytes, whit_buf *out)
{
    whit_buf_append_str(out, "[");
    for (size_t i = 0; i < bytes->size_bytes; i++) whit_buf_printf(out, "%s%u", i ? "," : "", bytes->data[i]);
    whit_buf_append_str(out, "]");
}

void whit_write_piece(const whit_api *api, int32_t id, whit_buf *out)
{
    whit_buf bytes = api_token_bytes(api, id);
    if (is_text(&bytes))
        whit_json_write_string(out, whit_chars(&bytes), bytes.size_bytes);
    else
        write_byte_list(&bytes, out);
    whit_buf_free(&bytes);
}

/* Writes a token's text as JSON. Parts of characters are written in OpenAI's form, "bytes:\xe2\x80": a replacement
 * character would make all of them equal. */
static void write_token(const whit_buf *bytes, whit_buf *out)
{
    if (is_text(bytes)) {
        whit_json_write_string(out, whit_chars(bytes), bytes->size_bytes);
        return;
    }
    whit_buf_append_str(out, "\"bytes:");
    for (size_t i = 0; i < bytes->size_bytes; i++) whit_buf_printf(out, "\\\\x%02x", bytes->data[i]);
    whit_buf_append_str(out, "\"");
}

/* ---- offsets of tokens --------------------------------------------------------------------------- */

size_t whit_count_chars(const void *text, size_t n_bytes)
{
    const uint8_t *bytes = text;
    size_t n_chars = 0;
    for (size_t i = 0; i < n_bytes; i++) n_chars += (bytes[i] & 0xC0) != 0x80;
    return n_chars;
}

const whit_buf *whit_ask_prompt_text(const whit_ask *ask, uint32_t i)
{
    return &ask->prompt_texts[i / ask->n_each];
}

/* Returns whether the bytes end with an incomplete UTF-8 character. */
static bool ends_within(const whit_buf *bytes)
{
    size_t n = bytes->size_bytes, n_back = 0;
    while (n_back < n && n_back < 3 && (bytes->data[n - 1 - n_back] & 0xC0) == 0x80) n_back++;
    if (n_back == n) return false;
    uint8_t lead = bytes->data[n - 1 - n_back];
    size_t n_wanted = 0;
    if (lead >= 0xF0 && lead <= 0xF4)
        n_wanted = 3;
    else if (lead >= 0xE0 && lead < 0xF0)
        n_wanted = 2;
    else if (lead >= 0xC2 && lead < 0xE0)
        n_wanted = 1;
    return n_back < n_wanted;
}

size_t whit_text_place_take(const whit_api *api, whit_text_place *place, int32_t id)
{
    const char *text;
    size_t n, n_before = place->n_chars + place->is_within;
    if (!place->detokenizer || whit_detokenizer_push(place->detokenizer, id, &text, &n, NULL) != WHIT_OK)
        return n_before;
    whit_buf bytes = api_token_bytes(api, id);
    bool begins = ends_within(&bytes), was_within = place->is_within;
    place->is_within = n ? begins : was_within || begins;
    place->n_chars += whit_count_chars(text, n);
    /* The detokenizer had held back the bytes of an incomplete character. If they turned out to be invalid, each was
     * replaced by a character before this token's text. */
    size_t n_own = whit_count_chars(bytes.data, bytes.size_bytes);
    if (was_within && n && is_text(&bytes) && place->n_chars > n_before + n_own) n_before = place->n_chars - n_own;
    whit_buf_free(&bytes);
    return n_before;
}

/* Starts at the first token of the answer. The tokens of the prompt are decoded first, because the detokenizer's state
 * after them affects the answer's text, which is decoded in the same way by the generation. */
void whit_text_place_open(const whit_ask *ask, uint32_t i, whit_text_place *place)
{
    const whit_job *job = ask->jobs[i];
    const whit_buf *prompt = whit_ask_prompt_text(ask, i);
    *place = (whit_text_place){.detokenizer = NULL};
    if (whit_detokenizer_open(ask->api->model, !job->keep_special, &place->detokenizer, NULL) != WHIT_OK)
        place->detokenizer = NULL;
    for (size_t k = 0; k < job->n_ids; k++) whit_text_place_take(ask->api, place, job->ids[k]);
    place->n_chars = whit_count_chars(prompt->data, prompt->size_bytes);
}

void whit_text_place_close(whit_text_place *place)
{
    whit_detokenizer_close(place->detokenizer);
    place->detokenizer = NULL;
}

/* Returns whether the token is a BOS that was added before the prompt, so that the prompt's text does not contain
 * it. */
static bool is_put_before(const whit_ask *ask, int32_t id, const whit_buf *text)
{
    if (id != whit_model_bos(ask->api->model)) return false;
    whit_buf bytes = api_token_bytes(ask->api, id);
    bool begins =
        bytes.size_bytes && bytes.size_bytes <= text->size_bytes && !memcmp(text->data, bytes.data, bytes.size_bytes);
    whit_buf_free(&bytes);
    return !begins;
}

size_t *whit_ask_prompt_places(const whit_ask *ask, uint32_t i)
{
    const whit_job *job = ask->jobs[i];
    const whit_buf *text = whit_ask_prompt_text(ask, i);
    size_t most = whit_count_chars(text->data, text->size_bytes), *places = malloc(job->n_ids * sizeof *places);
    whit_text_place place = {.detokenizer = NULL};
    if (places && whit_detokenizer_open(ask->api->model, false, &place.detokenizer, NULL) != WHIT_OK)
        place.detokenizer = NULL;
    for (size_t k = 0; places && k < job->n_ids; k++) {
        bool counts = k || !is_put_before(ask, job->ids[0], text);
        size_t at = counts ? whit_text_place_take(ask->api, &place, job->ids[k]) : 0;
        places[k] = at < most ? at : most;
    }
    whit_text_place_close(&place);
    return places;
}

/* ---- lists of log-probabilities ------------------------------------------------------------------ */

static size_t count_tokens(const whit_logs *logs)
{
    return (logs->first_id >= 0) + logs->n_parts[0] + logs->n_parts[1];
}

/* Returns the 1 + n_top entries of a token; NULL for a prompt's first token, which has no entries. */
static const whit_logprob *entries_at(const whit_logs *logs, size_t i)
{
    if (logs->first_id >= 0 && i-- == 0) return NULL;
    bool is_answer = i >= logs->n_parts[0];
    return logs->parts[is_answer] + (is_answer ? i - logs->n_parts[0] : i) * (1 + logs->n_top);
}

static void write_value(float logprob, whit_buf *out)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", (double)(logprob < -9999 ? -9999 : logprob));
    whit_buf_append_str(out, text);
    if (!text[strcspn(text, ".e")]) whit_buf_append_str(out, ".0");
}

/* Writes the members of an entry without braces: "token": ..., "logprob" or "prob": ..., "bytes": [...], "id": ... */
static void write_entry(const whit_logs *logs, whit_logprob entry, whit_buf *out)
{
    bool is_prob = logs->form == WHIT_LOGS_PROBS;
    whit_buf bytes = api_token_bytes(logs->api, entry.id);
    whit_buf_append_str(out, "\"token\":");
    write_token(&bytes, out);
    whit_buf_append_str(out, is_prob ? ",\"prob\":" : ",\"logprob\":");
    write_value(is_prob ? (float)exp((double)entry.logprob) : entry.logprob, out);
    whit_buf_append_str(out, ",\"bytes\":");
    write_byte_list(&bytes, out);
    whit_buf_printf(out, ",\"id\":%d", (int)entry.id);
    whit_buf_free(&bytes);
}

static void write_chat_token(const whit_logs *logs, const whit_logprob *entries, whit_buf *out)
{
    whit_buf_append_str(out, "{");
    write_entry(logs, entries[0], out);
    whit_buf_append_str(out, logs->form == WHIT_LOGS_PROBS ? ",\"top_probs\":[" : ",\"top_logprobs\":[");
    for (uint32_t k = 1; k <= logs->n_top && entries[k].id >= 0; k++) {
        whit_buf_append_str(out, k > 1 ? ",{" : "{");
        write_entry(logs, entries[k], out);
        whit_buf_append_str(out, "}");
    }
    whit_buf_append_str(out, "]}");
}

/* Returns whether an earlier, likelier one of the top entries (those from 1 on; entry 0 is the picked token) has the
 * same text. In "top_logprobs" of text completions the text is the key, so only the first entry is written. */
static bool is_repeated(const whit_logs *logs, const whit_logprob *entries, uint32_t k)
{
    bool found = false;
    whit_buf one = api_token_bytes(logs->api, entries[k].id);
    for (uint32_t j = 1; j < k && !found; j++) {
        whit_buf other = api_token_bytes(logs->api, entries[j].id);
        found =
            one.size_bytes == other.size_bytes && (!one.size_bytes || !memcmp(one.data, other.data, one.size_bytes));
        whit_buf_free(&other);
    }
    whit_buf_free(&one);
    return found;
}

static void write_tops(const whit_logs *logs, const whit_logprob *entries, whit_buf *out)
{
    whit_buf_append_str(out, "{");
    for (uint32_t k = 1; k <= logs->n_top; k++) {
        if (entries[k].id < 0 || is_repeated(logs, entries, k)) continue;
        whit_buf bytes = api_token_bytes(logs->api, entries[k].id);
        if (k > 1) whit_buf_append_str(out, ",");
        write_token(&bytes, out);
        whit_buf_append_str(out, ":");
        write_value(entries[k].logprob, out);
        whit_buf_free(&bytes);
    }
    whit_buf_append_str(out, "}");
}

enum { LIST_TOKENS, LIST_VALUES, LIST_TOPS, LIST_OFFSETS, N_LISTS };

static void write_at(const whit_logs *logs, size_t i, whit_buf *out)
{
    const whit_logprob *entries = entries_at(logs, i);
    if (logs->form != WHIT_LOGS_COMPLETION) {
        write_chat_token(logs, entries, out);
    } else if (logs->i_list == LIST_TOKENS) {
        whit_buf bytes = api_token_bytes(logs->api, entries ? entries->id : logs->first_id);
        write_token(&bytes, out);
        whit_buf_free(&bytes);
    } else if (logs->i_list == LIST_OFFSETS) {
        whit_buf_printf(out, "%zu", logs->offsets ? logs->offsets[i] : 0);
    } else if (!entries) {
        whit_buf_append_str(out, "null");
    } else if (logs->i_list == LIST_VALUES) {
        write_value(entries->logprob, out);
    } else {
        write_tops(logs, entries, out);
    }
}

bool whit_logs_write(whit_logs *logs, whit_buf *out)
{
    static const char *const begins[] = {"{\"tokens\":[", "],\"token_logprobs\":[", "],\"top_logprobs\":[",
                                         "],\"text_offset\":["};
    bool lists = logs->form == WHIT_LOGS_COMPLETION, chat = logs->form == WHIT_LOGS_CHAT;
    size_t n = count_tokens(logs);
    if (!logs->i_token) {
        const char *begin = "[";
        if (lists)
            begin = begins[logs->i_list];
        else if (chat)
            begin = "{\"content\":[";
        whit_buf_append_str(out, begin);
    }
    for (size_t k = 0; k < PIECE_TOKENS && logs->i_token < n; k++, logs->i_token++) {
        if (logs->i_token) whit_buf_append_str(out, ",");
        write_at(logs, logs->i_token, out);
    }
    if (logs->i_token < n) return true;
    logs->i_token = 0;
    if (lists && ++logs->i_list < N_LISTS) return true;
    const char *end = "]";
    if (lists)
        end = "]}";
    else if (chat)
        end = "],\"refusal\":null}";
    whit_buf_append_str(out, end);
    return false;
}

/* ---- log-probabilities of an answer -------------------------------------------------------------- */

/* Returns the offsets of all tokens in the reply's text; NULL if memory runs out. Tokens of a stop string that was
 * removed would be after the end of the text: their offset is the text's length. */
static size_t *find_places(const whit_ask *ask, uint32_t i, const whit_logs *logs)
{
    const whit_job *job = ask->jobs[i];
    const whit_buf *prompt = whit_ask_prompt_text(ask, i);
    size_t n = count_tokens(logs), n_prompt = n - logs->n_parts[1], *places = malloc((n + 1) * sizeof *places);
    size_t *before = places && n_prompt ? whit_ask_prompt_places(ask, i) : NULL;
    size_t most =
        whit_count_chars(prompt->data, prompt->size_bytes) + whit_count_chars(job->text.data, job->text.size_bytes);
    if (!places || (n_prompt && !before)) {
        free(places);
        return NULL;
    }
    whit_text_place place;
    if (n_prompt) memcpy(places, before, n_prompt * sizeof *places);
    free(before);
    whit_text_place_open(ask, i, &place);
    for (size_t k = n_prompt; k < n; k++) {
        size_t at = whit_text_place_take(ask->api, &place, entries_at(logs, k)->id);
        places[k] = at < most ? at : most;
    }
    whit_text_place_close(&place);
    return places;
}

void whit_ask_logs(const whit_ask *ask, uint32_t i, whit_logs_form form, whit_logs *logs, size_t **offsets)
{
    const whit_job *job = ask->jobs[i];
    size_t token_bytes = (1 + job->n_top) * sizeof(whit_logprob);
    *logs = (whit_logs){
        .api = ask->api,
        .form = form == WHIT_LOGS_LIST && ask->dialect && job->logs_drawn ? WHIT_LOGS_PROBS : form,
        .n_top = job->n_top,
        .first_id = job->prompt_logprobs ? job->ids[0] : -1,
        .parts = {WHIT_ITEMS(const whit_logprob, &job->prompt_logprobs_of),
                  WHIT_ITEMS(const whit_logprob, &job->logprobs_of)},
        .n_parts = {job->prompt_logprobs_of.size_bytes / token_bytes, job->logprobs_of.size_bytes / token_bytes}};
    *offsets = form == WHIT_LOGS_COMPLETION ? find_places(ask, i, logs) : NULL;
    logs->offsets = *offsets;
}
