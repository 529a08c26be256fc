/* SPDX-License-Identifier: MIT */
#include "runtime/prompter.h"
#include "base/items.h"

#include <time.h>

#include "runtime/model.h"
#include "template/chat.h"

struct whit_prompter {
    const whit_model *model;
    const whit_allocator *allocator;
    whit_template *template;
    char *place, *source;
    size_t source_bytes;
    char *bos_token, *eos_token; /* spellings of these special tokens; NULL: the model does not have the token */
    whit_template_time now;
    const char *thinking_open, *thinking_close;
    int32_t turn_end; /* id of the token that ends a turn; -1: none */
    char stop[64];    /* text that ends a turn; "": none */
};

size_t whit_prompt_n_ids(const whit_prompt *prompt)
{
    return prompt->ids.size_bytes / sizeof(int32_t);
}

const int32_t *whit_prompt_ids(const whit_prompt *prompt)
{
    return WHIT_ITEMS(const int32_t, &prompt->ids);
}

void whit_prompt_free(whit_prompt *prompt)
{
    whit_buf_free(&prompt->text);
    whit_buf_free(&prompt->ids);
}

/* ---- rendering ------------------------------------------------------------------------------ */

/* Sets both names of the variable: the templates of Qwen3 and SmolLM3 call it enable_thinking, the templates of Granite
 * and DeepSeek thinking. */
bool whit_prompter_set_thinking(whit_datum_pool *pool, whit_thinking thinking, whit_datum *extra)
{
    whit_datum value = whit_datum_bool(thinking == WHIT_THINKING_ON);
    return thinking == WHIT_THINKING_AUTO ||
        ((extra->kind == WHIT_DATUM_DICT || whit_datum_dict(pool, extra)) &&
         whit_dict_set_str(pool, extra->dict, "enable_thinking", value) &&
         whit_dict_set_str(pool, extra->dict, "thinking", value));
}

whit_status whit_prompter_render_chat(const whit_prompter *p, const whit_chat *given, whit_buf *text,
                                      whit_buf *segments, whit_error *error)
{
    whit_template_error reason = {.message = {.allocator = p->allocator}};
    whit_template_options options = {.now = &p->now};
    whit_chat chat = *given;
    chat.bos_token = p->bos_token;
    chat.eos_token = p->eos_token;
    whit_status status = whit_template_chat(p->template, &chat, &options, text, segments, &reason);
    if (status != WHIT_OK) whit_fail(error, status, "%s: %s", p->place, reason.error.message);
    whit_template_error_free(&reason);
    return status;
}

static whit_status encode_segments(const whit_prompter *p, const whit_buf *text, const whit_buf *segments,
                                   whit_buf *ids, whit_error *error)
{
    /* A template segment is used as a text range: both structs consist of a begin and an end. */
    _Static_assert(sizeof(whit_template_segment) == sizeof(whit_text_range), "one layout");
    whit_encode_options options = {.parse_special = true,
                                   .plain = WHIT_ITEMS(const whit_text_range, segments),
                                   .n_plain = segments->size_bytes / sizeof(whit_text_range)};
    return whit_model_encode(p->model, text->data ? whit_chars(text) : "", text->size_bytes, &options, ids, error);
}

static const char *find_word(const char *text, size_t n, const char *word)
{
    return n ? memmem(text, n, word, strlen(word)) : NULL;
}

/* Sets prompt->thinking and has_thought: searches the template's text after the last message for markers of a thinking
 * section. */
static void find_section(const whit_prompter *p, const whit_buf *segments, whit_prompt *prompt)
{
    whit_template_segment last = {0};
    const whit_buf *text = &prompt->text;
    if (segments->size_bytes) memcpy(&last, segments->data + segments->size_bytes - sizeof last, sizeof last);
    const char *tail = whit_chars(text) + last.end, *end = whit_chars(text) + text->size_bytes;
    const char *open = find_word(tail, (size_t)(end - tail), p->thinking_open);
    bool closed = open && find_word(open, (size_t)(end - open), p->thinking_close);
    prompt->thinking = open && !closed;
    prompt->has_thought = closed;
}

whit_status whit_prompter_encode(const whit_prompter *p, const whit_buf *segments, whit_prompt *prompt,
                                 whit_error *error)
{
    prompt->ids.size_bytes = 0;
    WHIT_TRY(encode_segments(p, &prompt->text, segments, &prompt->ids, error));
    find_section(p, segments, prompt);
    if (prompt->ids.size_bytes) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "%s: the chat template turns the conversation into an empty text: choose another template",
                     p->place);
}

/* ---- how a template delimits answers -------------------------------------------------------- */

static void find_thinking(whit_prompter *p, const char *source, size_t n)
{
    static const char *const marks[][2] = {
        {"<think>", "</think>"},     {"<thinking>", "</thinking>"}, {"<reasoning>", "</reasoning>"},
        {"<thought>", "</thought>"}, {"[THINK]", "[/THINK]"},       {"<seed:think>", "</seed:think>"},
    };
    /* the marker with its line feed; in the template's source the line feed is an escape sequence */
    static const char gemma[] = "<|channel>thought\n";
    p->thinking_open = marks[0][0];
    p->thinking_close = marks[0][1];
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (find_word(source, n, marks[i][0]) && find_word(source, n, marks[i][1])) {
            p->thinking_open = marks[i][0];
            p->thinking_close = marks[i][1];
            return;
        }
    if (find_word(source, n, "<|channel>thought") && find_word(source, n, "<channel|>")) {
        p->thinking_open = gemma;
        p->thinking_close = "<channel|>";
    }
}

/* Renders a short conversation to find the text between an answer and the next question. The first special token in
 * that text becomes turn_end; if it has no special token and is not blank, the text becomes `stop`, without blanks at
 * its end and only if it fits. If the template refuses the conversation or drops one of its messages, both stay
 * unset. */
static whit_status find_turn_end(whit_prompter *p, whit_error *error)
{
    static const char answer[] = "zbzbzb", next[] = "kdkdkd",
                      probe[] =
                          "[{\"role\": \"user\", \"content\": \"qaqaqa\"}, {\"role\": \"assistant\", \"content\": "
                          "\"zbzbzb\"}, {\"role\": \"user\", \"content\": \"kdkdkd\"}]";
    whit_datum_pool pool = {.allocator = p->allocator};
    whit_chat chat = {.add_generation_prompt = false};
    whit_buf text = {.allocator = p->allocator}, ids = text, none = text;
    whit_error refused;
    whit_status status = whit_datum_from_json(&pool, probe, sizeof probe - 1, true, &chat.messages, &refused);
    if (status == WHIT_OK) status = whit_prompter_render_chat(p, &chat, &text, &none, &refused);
    whit_datum_pool_clear(&pool);
    const char *begin = NULL, *end = NULL;
    if (status == WHIT_OK) begin = find_word(whit_chars(&text), text.size_bytes, answer);
    if (begin) {
        begin += sizeof answer - 1;
        end = find_word(begin, text.size_bytes - (size_t)(begin - whit_chars(&text)), next);
    }
    if (end) {
        size_t n = (size_t)(end - begin);
        memmove(text.data, begin, n);
        text.size_bytes = n;
        none.size_bytes = 0;
        status = encode_segments(p, &text, &none, &ids, error);
        const int32_t *id = WHIT_ITEMS(const int32_t, &ids);
        for (size_t i = 0; i < ids.size_bytes / sizeof *id && p->turn_end < 0; i++)
            if (whit_tokenizer_token_flags(&p->model->tokenizer, id[i]) & WHIT_TOKEN_SPECIAL) p->turn_end = id[i];
        while (n && (text.data[n - 1] == ' ' || text.data[n - 1] == '\n')) n--;
        size_t blank = 0;
        while (blank < n && (text.data[blank] == ' ' || text.data[blank] == '\n')) blank++;
        if (p->turn_end < 0 && blank < n && n < sizeof p->stop) memcpy(p->stop, text.data, n);
    } else if (status != WHIT_ERROR_MEMORY) {
        status = WHIT_OK;
    } else {
        *error = refused;
    }
    whit_buf_free(&text);
    whit_buf_free(&ids);
    whit_buf_free(&none);
    return status;
}

const char *whit_prompter_stop(const whit_prompter *p)
{
    return p->stop[0] ? p->stop : NULL;
}

const char *whit_prompter_source(const whit_prompter *p, size_t *n_bytes)
{
    *n_bytes = p->source_bytes;
    return p->source;
}

const whit_allocator *whit_prompter_allocator(const whit_prompter *p)
{
    return p->allocator;
}

int32_t whit_prompter_turn_end(const whit_prompter *p)
{
    return p->turn_end;
}

const char *whit_prompter_thinking_open(const whit_prompter *p)
{
    return p->thinking_open;
}

const char *whit_prompter_thinking_close(const whit_prompter *p)
{
    return p->thinking_close;
}

/* ---- open and close ------------------------------------------------------------------------- */

/* Copies the spelling of a special token; leaves *token unchanged if the model does not have the token or its spelling
 * contains a zero byte. */
static whit_status copy_token(const whit_prompter *p, int32_t id, char **token, whit_error *error)
{
    size_t n;
    const uint8_t *text = id < 0 ? NULL : whit_tokenizer_token_text(&p->model->tokenizer, id, &n);
    if (!text || memchr(text, 0, n)) return WHIT_OK;
    *token = whit_strndup(p->allocator, (const char *)text, n);
    return *token ? WHIT_OK : whit_fail_memory(error, "a token's text", n);
}

static void stop_clock(whit_template_time *now)
{
    time_t seconds = time(NULL);
    struct tm local;
    localtime_r(&seconds, &local);
    *now = (whit_template_time){local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                                local.tm_hour,        local.tm_min,     local.tm_sec};
}

static whit_status open_template(whit_prompter *p, const char *source, size_t n, whit_error *error)
{
    whit_template_error reason = {.message = {.allocator = p->allocator}};
    whit_status status = whit_template_open(source, n, p->allocator, &p->template, &reason);
    if (status != WHIT_OK) whit_fail(error, status, "%s: %s", p->place, reason.error.message);
    whit_template_error_free(&reason);
    return status;
}

whit_status whit_prompter_open(const whit_model *model, const char *source, size_t source_bytes, const char *place,
                               whit_prompter **out, whit_error *error)
{
    *out = NULL;
    if (!model->has_tokenizer)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: the model has no tokenizer: it cannot chat", model->path);
    if (!source) {
        source = whit_table_get_string(whit_ndf_templates(model->file), "default");
        place = model->path;
        if (!source)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "%s: the model has no chat template: it was not made for chats; give one, or continue a "
                             "text instead",
                             model->path);
        source_bytes = strlen(source);
    }
    whit_prompter *p = whit_zalloc(model->allocator, sizeof *p);
    if (!p) return whit_fail_memory(error, "the chat template", sizeof *p);
    p->model = model;
    p->allocator = model->allocator;
    p->turn_end = -1;
    stop_clock(&p->now);
    find_thinking(p, source, source_bytes);
    p->place = whit_strndup(p->allocator, place, strlen(place));
    p->source = whit_strndup(p->allocator, source, source_bytes);
    p->source_bytes = source_bytes;
    whit_status status = p->place && p->source ? WHIT_OK : whit_fail_memory(error, "the chat template", source_bytes);
    const whit_tokenizer_header *header = model->tokenizer.header;
    if (status == WHIT_OK) status = copy_token(p, header->bos, &p->bos_token, error);
    if (status == WHIT_OK) status = copy_token(p, header->eos, &p->eos_token, error);
    if (status == WHIT_OK) status = open_template(p, source, source_bytes, error);
    if (status == WHIT_OK) status = find_turn_end(p, error);
    if (status != WHIT_OK) {
        whit_prompter_close(p);
        return status;
    }
    *out = p;
    return WHIT_OK;
}

static void free_text(const whit_prompter *p, char *text)
{
    if (text) whit_free(p->allocator, text, strlen(text) + 1);
}

void whit_prompter_close(whit_prompter *p)
{
    if (!p) return;
    whit_template_close(p->template);
    free_text(p, p->place);
    if (p->source) whit_free(p->allocator, p->source, p->source_bytes + 1);
    free_text(p, p->bos_token);
    free_text(p, p->eos_token);
    whit_free(p->allocator, p, sizeof *p);
}
