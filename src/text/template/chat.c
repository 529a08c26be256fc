/* SPDX-License-Identifier: MIT */
#include "template/chat.h"

#include "base/items.h"
#include "base/json.h"
#include "template/unicode.h"

static bool is_usual_role(const whit_text *role)
{
    static const char *const roles[] = {"system",  "user",  "assistant", "tool",      "developer",  "function",
                                        "ipython", "model", "tools",     "documents", "observation"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (whit_text_is(role, roles[i])) return true;
    return false;
}

/* Copies the messages. In the copy, usual roles are not marked as the user's text. */
static bool copy_messages(whit_datum_pool *pool, whit_datum messages, whit_datum *copy)
{
    *copy = messages;
    if (messages.kind != WHIT_DATUM_LIST) return true;
    if (!whit_datum_list(pool, messages.list->items, messages.list->n, copy)) return false;
    for (size_t i = 0; i < copy->list->n; i++) {
        whit_datum message = copy->list->items[i], role;
        const whit_datum *given = message.kind == WHIT_DATUM_DICT ? whit_dict_get_str(message.dict, "role") : NULL;
        if (!given || !whit_datum_is_str(*given) || !is_usual_role(given->text)) continue;
        if (!whit_datum_dict(pool, &copy->list->items[i]) ||
            !whit_datum_string(pool, given->text->bytes, given->text->n_bytes, false, &role))
            return false;
        for (size_t k = 0; k < message.dict->n; k++) {
            const struct whit_pair *pair = &message.dict->pairs[k];
            if (!whit_dict_set(pool, copy->list->items[i].dict, pair->key, &pair->value == given ? role : pair->value))
                return false;
        }
    }
    return true;
}

static bool set_token(whit_datum_pool *pool, whit_dict *dict, const char *name, const char *token)
{
    whit_datum value;
    return !token ||
        (whit_datum_string(pool, token, strlen(token), false, &value) && whit_dict_set_str(pool, dict, name, value));
}

static bool make_context(whit_datum_pool *pool, const whit_chat *chat, whit_datum *context)
{
    whit_datum messages, none = whit_datum_none();
    if (!whit_datum_dict(pool, context) || !copy_messages(pool, chat->messages, &messages)) return false;
    whit_dict *dict = context->dict;
    if (messages.kind != WHIT_DATUM_UNDEFINED && !whit_dict_set_str(pool, dict, "messages", messages)) return false;
    whit_datum tools = chat->tools.kind ? chat->tools : none;
    whit_datum documents = chat->documents.kind ? chat->documents : none;
    if (!whit_dict_set_str(pool, dict, "tools", tools) || !whit_dict_set_str(pool, dict, "documents", documents) ||
        !whit_dict_set_str(pool, dict, "add_generation_prompt", whit_datum_bool(chat->add_generation_prompt)) ||
        !set_token(pool, dict, "bos_token", chat->bos_token) || !set_token(pool, dict, "eos_token", chat->eos_token))
        return false;
    for (size_t i = 0; chat->extra.kind == WHIT_DATUM_DICT && i < chat->extra.dict->n; i++)
        if (!whit_dict_set(pool, dict, chat->extra.dict->pairs[i].key, chat->extra.dict->pairs[i].value)) return false;
    return true;
}

/* ---- continue_final_message ------------------------------------------------------------------ */

/* Returns the text of the last message: its content or, if that is a list of parts, the "text" of the last part that
 * has one. NULL if it has no text. */
static const whit_text *final_content(const whit_chat *chat)
{
    const whit_datum *list = &chat->messages;
    if (list->kind != WHIT_DATUM_LIST || !list->list->n || list->list->items[list->list->n - 1].kind != WHIT_DATUM_DICT)
        return NULL;
    const whit_datum *content = whit_dict_get_str(list->list->items[list->list->n - 1].dict, "content");
    if (content && content->kind == WHIT_DATUM_LIST) {
        list = content;
        content = NULL;
        for (size_t i = list->list->n; i-- > 0 && !content;)
            if (list->list->items[i].kind == WHIT_DATUM_DICT)
                content = whit_dict_get_str(list->list->items[i].dict, "text");
    }
    return content && whit_datum_is_str(*content) ? content->text : NULL;
}

/* Returns how many bytes of `rendered` remain if everything after the last occurrence of the content is removed;
 * SIZE_MAX if the content, without the white space around it, does not occur. */
static size_t cut_after(const whit_text *rendered, const whit_text *content)
{
    size_t begin = 0, end = content->n_bytes, next;
    while (begin < end && whit_point_is_space(whit_text_point(content, begin, &next))) begin = next;
    while (end > begin && whit_point_is_space(whit_text_point_before(content, end, &next))) end = next;
    whit_text stripped = {.bytes = content->bytes + begin, .n_bytes = end - begin};
    size_t at = whit_text_find_last(rendered, &stripped, 0, rendered->n_bytes);
    if (at == SIZE_MAX) return SIZE_MAX;
    /* `kept`: the content occurs with its white space. This is not possible if it begins with white space, because the
     * search was for the content without it. */
    bool kept = begin == 0 && whit_in_bounds(at, content->n_bytes, rendered->n_bytes) &&
        memcmp(rendered->bytes + at, content->bytes, content->n_bytes) == 0;
    return at + (kept ? content->n_bytes : stripped.n_bytes);
}

static void cut_segments(whit_buf *segments, size_t first_byte, size_t n_bytes)
{
    size_t at = first_byte;
    while (at < segments->size_bytes) {
        whit_template_segment segment;
        memcpy(&segment, segments->data + at, sizeof segment);
        if (segment.begin >= n_bytes) break;
        if (segment.end > n_bytes) segment.end = n_bytes;
        memcpy(segments->data + at, &segment, sizeof segment);
        at += sizeof segment;
    }
    segments->size_bytes = at;
}

whit_status whit_template_chat(const whit_template *template, const whit_chat *chat,
                               const whit_template_options *options, whit_buf *out, whit_buf *segments,
                               whit_template_error *error)
{
    whit_datum_pool pool = {.allocator = out->allocator};
    size_t out_before = out->size_bytes, segments_before = segments ? segments->size_bytes : 0;
    const whit_text *content = chat->continue_final_message ? final_content(chat) : NULL;
    whit_datum context;
    whit_status status;
    if (error) error->message.allocator = out->allocator;
    if (chat->continue_final_message && chat->add_generation_prompt)
        return whit_template_fail(error, WHIT_ERROR_ARGUMENT,
                                  "continue_final_message and add_generation_prompt exclude each other");
    if (chat->continue_final_message && !content)
        return whit_template_fail(error, WHIT_ERROR_ARGUMENT,
                                  "continue_final_message: the last message has no text to continue");
    if (make_context(&pool, chat, &context))
        status = whit_template_render(template, context, options, out, segments, error);
    else
        status = whit_template_fail(error, WHIT_ERROR_MEMORY, "not enough memory for the conversation");
    whit_datum_pool_clear(&pool);
    if (status != WHIT_OK || !content) return status;
    whit_text rendered = {.bytes = whit_chars(out) + out_before, .n_bytes = out->size_bytes - out_before};
    size_t n_bytes = cut_after(&rendered, content);
    if (n_bytes == SIZE_MAX) {
        out->size_bytes = out_before;
        if (segments) segments->size_bytes = segments_before;
        return whit_template_fail(error, WHIT_ERROR_ARGUMENT,
                                  "continue_final_message: the last message is not in the rendered text");
    }
    out->size_bytes = out_before + n_bytes;
    if (segments) cut_segments(segments, segments_before, n_bytes);
    return WHIT_OK;
}

/* ---- one line of JSON ------------------------------------------------------------------------ */

typedef struct line {
    const whit_template *template; /* NULL: the line must have a "source" */
    const whit_template_options *options;
    const whit_allocator *allocator;
    whit_dict *fields;
} line;

static whit_datum field_of(const line *l, const char *name)
{
    const whit_datum *value = whit_dict_get_str(l->fields, name);
    return value ? *value : whit_datum_undefined(NULL);
}

static whit_status render_source(const line *l, whit_text source, whit_datum_pool *pool, whit_buf *text,
                                 whit_template_error *error)
{
    whit_template *template;
    whit_datum context = field_of(l, "context");
    if (context.kind == WHIT_DATUM_UNDEFINED && !whit_datum_dict(pool, &context))
        return whit_template_fail(error, WHIT_ERROR_MEMORY, "not enough memory");
    whit_status status = whit_template_open(source.bytes, source.n_bytes, l->allocator, &template, error);
    if (status == WHIT_OK) status = whit_template_render(template, context, l->options, text, NULL, error);
    whit_template_close(template);
    return status;
}

static bool token_of(const line *l, const char *name, const char **token, whit_datum_pool *pool)
{
    whit_datum value = field_of(l, name);
    *token = NULL;
    if (!whit_datum_is_str(value)) return true;
    char *copy = whit_datum_pool_zalloc(pool, value.text->n_bytes + 1, 1);
    if (copy) memcpy(copy, value.text->bytes, value.text->n_bytes);
    *token = copy;
    return copy;
}

static whit_status render_chat(const line *l, whit_datum_pool *pool, whit_buf *text, whit_template_error *error)
{
    whit_chat chat = {.messages = field_of(l, "messages"),
                      .tools = field_of(l, "tools"),
                      .documents = field_of(l, "documents"),
                      .extra = field_of(l, "extra"),
                      .add_generation_prompt = whit_datum_is_true(field_of(l, "add_generation_prompt")),
                      .continue_final_message = whit_datum_is_true(field_of(l, "continue_final_message"))};
    if (!l->template)
        return whit_template_fail(error, WHIT_ERROR_ARGUMENT,
                                  "no template is given: give one, or \"source\" in the line");
    if (!token_of(l, "bos_token", &chat.bos_token, pool) || !token_of(l, "eos_token", &chat.eos_token, pool))
        return whit_template_fail(error, WHIT_ERROR_MEMORY, "not enough memory");
    return whit_template_chat(l->template, &chat, l->options, text, NULL, error);
}

static bool write_answer(whit_buf *out, whit_status status, const whit_buf *text, const whit_template_error *error)
{
    if (status == WHIT_OK)
        return whit_buf_append_str(out, "{\"text\": ") &&
            whit_json_write_string(out, whit_chars(text), text->size_bytes) && whit_buf_append_str(out, "}\n");
    const char *message = whit_chars(&error->message);
    size_t n_bytes = error->message.size_bytes;
    if (!n_bytes && !error->raised) {
        message = error->error.message;
        n_bytes = strlen(message);
    }
    return whit_buf_append_str(out, "{\"error\": ") && whit_json_write_string(out, message, n_bytes) &&
        whit_buf_printf(out, ", \"line\": %u, \"column\": %u}\n", error->line, error->column);
}

whit_status whit_template_jsonl_line(const whit_template *template, const whit_template_options *options,
                                     const char *text, size_t n_bytes, const whit_allocator *allocator, whit_buf *out,
                                     whit_error *error)
{
    whit_datum_pool pool = {.allocator = allocator};
    whit_template_error reason = {.message = {.allocator = allocator}};
    whit_buf rendered = {.allocator = allocator};
    line l = {.template = template, .options = options, .allocator = allocator};
    whit_datum object = {0}, source;
    whit_status read = whit_datum_from_json(&pool, text, n_bytes, true, &object, &reason.error), status = read;
    if (read == WHIT_OK && object.kind != WHIT_DATUM_DICT)
        status = read = whit_template_fail(&reason, WHIT_ERROR_FORMAT, "the line is not a JSON object");
    if (read == WHIT_OK) {
        l.fields = object.dict;
        source = field_of(&l, "source");
        status = whit_datum_is_str(source) ? render_source(&l, *source.text, &pool, &rendered, &reason)
                                           : render_chat(&l, &pool, &rendered, &reason);
    }
    if (!write_answer(out, status, &rendered, &reason))
        read = whit_fail_memory(error, "a line of output", rendered.size_bytes);
    else if (read != WHIT_OK)
        whit_fail(error, read, "%s", reason.error.message);
    whit_template_error_free(&reason);
    whit_buf_free(&rendered);
    whit_datum_pool_clear(&pool);
    return read;
}
