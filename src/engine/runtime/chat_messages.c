/* SPDX-License-Identifier: MIT
 * Converts messages from the form of clients to the form of the template: first from JSON to JSON, then to values. */
#include "base/phrase.h"
#include "runtime/tool_style.h"

#include "base/items.h"
#include "base/json.h"

enum { SINGLE_CALLS_MAX = 128 };

struct rewrite {
    const whit_tool_style *style;
    const whit_json *json;
    whit_buf *out;
    uint32_t i_message; /* index of the message that is written, for errors */
    uint32_t only_call; /* call of the message to be written; WHIT_JSON_NONE: all calls are written */
    bool is_rest;       /* the message's content was already written */
};

/* Copies the JSON text of a value. */
static bool copy_value(const struct rewrite *r, uint32_t at)
{
    size_t n;
    const char *text = whit_json_string(r->json, at, &n);
    if (text) return whit_json_write_string(r->out, text, n);
    text = whit_json_raw(r->json, at, &n);
    return whit_buf_append(r->out, text, n);
}

static bool is_one_of(const whit_json *json, uint32_t key, const char *const *names)
{
    for (; *names; names++)
        if (whit_json_is(json, key, *names)) return true;
    return false;
}

/* Copies the members of an object whose names are not listed, each after a comma. */
static bool copy_others(const struct rewrite *r, uint32_t object, const char *const *names)
{
    for (uint32_t key = whit_json_first(r->json, object); key != WHIT_JSON_NONE;
         key = whit_json_next(r->json, object, key)) {
        if (is_one_of(r->json, key, names)) continue;
        if (!whit_buf_append_str(r->out, ", ") || !copy_value(r, key) || !whit_buf_append_str(r->out, ": ") ||
            !copy_value(r, key + 1))
            return false;
    }
    return true;
}

/* Writes an id of nine letters and digits: `id` itself if it is one, else one computed from its hash (FNV-1a). */
static bool write_short_id(whit_buf *out, const char *id, size_t n)
{
    char text[10];
    uint64_t hash = 0xcbf29ce484222325u;
    bool fits = n == 9;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ (uint8_t)id[i]) * 0x100000001b3u;
        fits &= (id[i] >= '0' && id[i] <= '9') || (id[i] >= 'a' && id[i] <= 'z') || (id[i] >= 'A' && id[i] <= 'Z');
    }
    if (fits) return whit_json_write_string(out, id, n);
    for (int i = 0; i < 9; i++, hash /= 36) text[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[hash % 36];
    return whit_json_write_string(out, text, 9);
}

static bool write_id(const struct rewrite *r, uint32_t at)
{
    size_t n;
    const char *id = whit_json_string(r->json, at, &n);
    if (!r->style->short_ids) return id ? copy_value(r, at) : whit_buf_append_str(r->out, "\"\"");
    return write_short_id(r->out, whit_or_empty(id), n);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static whit_status write_arguments(const struct rewrite *r, uint32_t at, bool *ok, whit_error *error)
{
    size_t n;
    const char *text = whit_json_string(r->json, at, &n);
    whit_json inner = {0};
    if (r->style->arguments_text) {
        if (!text) text = whit_json_raw(r->json, at, &n);
        *ok = text ? whit_json_write_string(r->out, text, n) : whit_buf_append_str(r->out, "\"{}\"");
        return WHIT_OK;
    }
    if (!text) {
        *ok = at == WHIT_JSON_NONE ? whit_buf_append_str(r->out, "{}") : copy_value(r, at);
        return WHIT_OK;
    }
    whit_error reason;
    whit_status status = whit_json_parse("arguments", text, n, r->out->allocator, &inner, &reason);
    if (status == WHIT_ERROR_MEMORY) {
        if (error) *error = reason;
        return status;
    }
    *ok = status == WHIT_OK && whit_json_type_of(&inner, WHIT_JSON_ROOT) == WHIT_JSON_OBJECT
        ? whit_buf_append(r->out, text, n)
        : copy_value(r, at);
    if (status == WHIT_OK) whit_json_close(&inner);
    return WHIT_OK;
}

static whit_status write_call(const struct rewrite *r, uint32_t at, bool *ok, whit_error *error)
{
    static const char *const names[] = {"id", "type", "function", "name", "arguments", "index", NULL};
    uint32_t function = whit_json_get(r->json, at, "function");
    if (function == WHIT_JSON_NONE) function = at;
    uint32_t name = whit_json_get(r->json, function, "name"), type = whit_json_get(r->json, at, "type");
    if (whit_json_type_of(r->json, name) != WHIT_JSON_STRING)
        return whit_json_fail(r->json, at, error, "a tool call must have a function with a name");
    *ok = whit_buf_append_str(r->out, "{\"id\": ") && write_id(r, whit_json_get(r->json, at, "id")) &&
        whit_buf_append_str(r->out, ", \"type\": ") &&
        (whit_json_type_of(r->json, type) == WHIT_JSON_STRING ? copy_value(r, type)
                                                              : whit_buf_append_str(r->out, "\"function\"")) &&
        whit_buf_append_str(r->out, ", \"function\": {\"name\": ") && copy_value(r, name) &&
        whit_buf_append_str(r->out, ", \"arguments\": ");
    if (!*ok) return WHIT_OK;
    WHIT_TRY(write_arguments(r, whit_json_get(r->json, function, "arguments"), ok, error));
    *ok = *ok && whit_buf_append_str(r->out, "}") && copy_others(r, at, names) && whit_buf_append_str(r->out, "}");
    return WHIT_OK;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Error messages for types of parts that have no text. */
static const struct {
    const char *type, *why;
} unreadable[] = {
    {"image_url", "an image, but only text is supported: leave the part out"},
    {"image", "an image, but only text is supported: leave the part out"},
    {"input_audio", "a sound, but only text is supported: leave the part out"},
    {"audio_url", "a sound, but only text is supported: leave the part out"},
    {"video_url", "a film, but only text is supported: leave the part out"},
    {"file", "a file, but only text is supported: send its text"},
};

static whit_status refuse_part(const struct rewrite *r, uint32_t part, uint32_t i, whit_error *error)
{
    const char *why = "this part has no text: images, sounds and files are not supported";
    uint32_t type = whit_json_get(r->json, part, "type");
    for (size_t k = 0; k < sizeof unreadable / sizeof *unreadable; k++)
        if (whit_json_is(r->json, type, unreadable[k].type)) why = unreadable[k].why;
    return whit_json_fail(r->json, part, error, "messages[%u].content[%u]: %s", r->i_message, i, why);
}

/* Writes the texts of a content that is a list of parts as one string, joined by line feeds. A part is a string, or an
 * object with the text in "text" or "refusal". */
static whit_status write_parts(const struct rewrite *r, uint32_t content, bool *ok, whit_error *error)
{
    whit_buf joined = {.allocator = r->out->allocator};
    whit_status status = WHIT_OK;
    uint32_t i = 0;
    for (uint32_t at = whit_json_first(r->json, content); status == WHIT_OK && at != WHIT_JSON_NONE;
         at = whit_json_next(r->json, content, at), i++) {
        size_t n;
        const char *text = whit_json_string(r->json, whit_json_get(r->json, at, "text"), &n);
        if (!text) text = whit_json_string(r->json, whit_json_get(r->json, at, "refusal"), &n);
        if (!text) text = whit_json_string(r->json, at, &n);
        if (!text)
            status = refuse_part(r, at, i, error);
        else if ((i && !whit_buf_append_str(&joined, "\n")) || !whit_buf_append(&joined, text, n))
            status = whit_fail_memory(error, "a message", n);
    }
    *ok =
        status == WHIT_OK && whit_json_write_string(r->out, joined.data ? whit_chars(&joined) : "", joined.size_bytes);
    whit_buf_free(&joined);
    return status;
}

static whit_status write_content(const struct rewrite *r, uint32_t content, bool calls, bool *ok, whit_error *error)
{
    size_t n = 0;
    whit_json_type type = whit_json_type_of(r->json, content);
    (void)whit_json_string(r->json, content, &n);
    *ok = whit_buf_append_str(r->out, ", \"content\": ");
    if (!*ok) return WHIT_OK;
    if (type == WHIT_JSON_ARRAY) return write_parts(r, content, ok, error);
    if (type > WHIT_JSON_NULL && type != WHIT_JSON_STRING)
        return whit_json_fail(r->json, content, error, "messages[%u].content: expected a text or a list of parts",
                              r->i_message);
    bool empty = type <= WHIT_JSON_NULL || n == 0;
    if (empty)
        *ok = whit_buf_append_str(r->out, calls && r->style->content_null ? "null" : "\"\"");
    else
        *ok = copy_value(r, content);
    return WHIT_OK;
}

/* Returns whether the template writes messages of a role: a common role, a role that its source contains in quotes, or
 * any role if the style says so. */
static bool role_is_written(const struct rewrite *r, uint32_t role)
{
    static const char *const usual[] = {"system", "user", "assistant", "tool", "developer", NULL};
    const whit_tool_style *style = r->style;
    size_t n;
    const char *name = whit_json_string(r->json, role, &n), *end = style->source + style->source_bytes;
    if (style->any_role || is_one_of(r->json, role, usual)) return true;
    for (const char *at = style->source; n && (at = memmem(at, (size_t)(end - at), name, n)) != NULL; at++)
        if (at > style->source && at + n < end && (at[-1] == '\'' || at[-1] == '"') && at[n] == at[-1]) return true;
    return false;
}

static whit_status write_message(const struct rewrite *r, uint32_t at, bool *ok, whit_error *error)
{
    static const char *const names[] = {"role", "content", "tool_calls", "tool_call_id", NULL};
    if (whit_json_type_of(r->json, at) != WHIT_JSON_OBJECT)
        return whit_json_fail(r->json, at, error, "a message must be an object with role and content");
    uint32_t role = whit_json_get(r->json, at, "role"), calls = whit_json_get(r->json, at, "tool_calls");
    uint32_t call_id = whit_json_get(r->json, at, "tool_call_id");
    if (whit_json_type_of(r->json, role) != WHIT_JSON_STRING)
        return whit_json_fail(r->json, at, error,
                              "a message must have a role: system, user, assistant, tool or developer");
    if (!role_is_written(r, role))
        return whit_json_fail(r->json, role, error,
                              "the model's template writes no messages of this role: use system, user, assistant, "
                              "tool or developer");
    if (whit_json_type_of(r->json, calls) > WHIT_JSON_NULL && whit_json_type_of(r->json, calls) != WHIT_JSON_ARRAY)
        return whit_json_fail(r->json, calls, error, "tool_calls must be a list");
    bool has_calls = whit_json_count(r->json, calls) > 0;
    *ok = whit_buf_append_str(r->out, "{\"role\": ") &&
        (!r->style->developer && whit_json_is(r->json, role, "developer") ? whit_buf_append_str(r->out, "\"system\"")
                                                                          : copy_value(r, role));
    uint32_t content = r->is_rest ? WHIT_JSON_NONE : whit_json_get(r->json, at, "content");
    if (*ok) WHIT_TRY(write_content(r, content, has_calls, ok, error));
    if (has_calls) *ok = *ok && whit_buf_append_str(r->out, ", \"tool_calls\": [");
    bool first = true;
    for (uint32_t call = has_calls ? whit_json_first(r->json, calls) : WHIT_JSON_NONE; *ok && call != WHIT_JSON_NONE;
         call = whit_json_next(r->json, calls, call)) {
        if (r->only_call != WHIT_JSON_NONE && r->only_call != call) continue;
        *ok = first || whit_buf_append_str(r->out, ", ");
        if (*ok) WHIT_TRY(write_call(r, call, ok, error));
        first = false;
    }
    if (has_calls) *ok = *ok && whit_buf_append_str(r->out, "]");
    if (call_id != WHIT_JSON_NONE)
        *ok = *ok && whit_buf_append_str(r->out, ", \"tool_call_id\": ") && write_id(r, call_id);
    *ok = *ok && (r->is_rest || copy_others(r, at, names)) && whit_buf_append_str(r->out, "}");
    return WHIT_OK;
}

/* ---- several calls of a message, for templates that take one ---------------------------------- */

static bool is_same_text(const whit_json *json, uint32_t a, uint32_t b)
{
    size_t n_a, n_b;
    const char *text_a = whit_json_string(json, a, &n_a), *text_b = whit_json_string(json, b, &n_b);
    return text_a && text_b && n_a == n_b && memcmp(text_a, text_b, n_a) == 0;
}

/* Returns the call to which a result belongs: the first call with the result's id, else the call with the index
 * `place`, or the last one if there are fewer. */
static uint32_t call_of_result(const struct rewrite *r, uint32_t calls, uint32_t result, uint32_t place)
{
    uint32_t id = whit_json_get(r->json, result, "tool_call_id"), found = WHIT_JSON_NONE, i = 0;
    for (uint32_t call = whit_json_first(r->json, calls); call != WHIT_JSON_NONE;
         call = whit_json_next(r->json, calls, call), i++) {
        if (is_same_text(r->json, whit_json_get(r->json, call, "id"), id)) return call;
        if (i <= place) found = call;
    }
    return found;
}

static bool is_result(const struct rewrite *r, uint32_t at)
{
    return at != WHIT_JSON_NONE && whit_json_is(r->json, whit_json_get(r->json, at, "role"), "tool");
}

/* Returns whether a message has several calls that must be written as one message each. More than SINGLE_CALLS_MAX
 * calls or results, which agents do not make, are left to the template, because each result is searched for among all
 * calls. */
static bool has_several_calls(const struct rewrite *r, uint32_t message)
{
    size_t n_calls = whit_json_count(r->json, whit_json_get(r->json, message, "tool_calls")), n_results = 0;
    if (!r->style->single_calls || n_calls < 2 || n_calls > SINGLE_CALLS_MAX) return false;
    uint32_t at = whit_json_next(r->json, WHIT_JSON_ROOT, message);
    for (; is_result(r, at) && n_results <= SINGLE_CALLS_MAX; at = whit_json_next(r->json, WHIT_JSON_ROOT, at))
        n_results++;
    return n_results <= SINGLE_CALLS_MAX;
}

/* Writes a message for each call of a message with several calls, followed by the results of that call. *at is the
 * message on entry, and the last of the results that follow it afterwards. */
static whit_status write_single_calls(struct rewrite *r, uint32_t *at, bool *ok, whit_error *error)
{
    const uint32_t message = *at, calls = whit_json_get(r->json, message, "tool_calls");
    for (uint32_t call = whit_json_first(r->json, calls); *ok && call != WHIT_JSON_NONE;
         call = whit_json_next(r->json, calls, call)) {
        r->only_call = call;
        *ok = !r->is_rest || whit_buf_append_str(r->out, ", ");
        if (*ok) WHIT_TRY(write_message(r, message, ok, error));
        r->is_rest = true;
        uint32_t place = 0, result = whit_json_next(r->json, WHIT_JSON_ROOT, message);
        struct rewrite plain = *r;
        plain.only_call = WHIT_JSON_NONE;
        plain.is_rest = false;
        for (; *ok && is_result(r, result); result = whit_json_next(r->json, WHIT_JSON_ROOT, result), place++) {
            plain.i_message = r->i_message + place + 1;
            *at = result;
            if (call_of_result(r, calls, result, place) != call) continue;
            *ok = whit_buf_append_str(r->out, ", ");
            if (*ok) WHIT_TRY(write_message(&plain, result, ok, error));
        }
        if (whit_json_next(r->json, calls, call) == WHIT_JSON_NONE) r->i_message += place;
    }
    r->only_call = WHIT_JSON_NONE;
    r->is_rest = false;
    return WHIT_OK;
}

/* ---- calls that the template does not write -------------------------------------------------- */

static const whit_text *text_of(const whit_datum *dict, const char *key)
{
    const whit_datum *value = dict && dict->kind == WHIT_DATUM_DICT ? whit_dict_get_str(dict->dict, key) : NULL;
    return value && whit_datum_is_str(*value) ? value->text : NULL;
}

static void add_marker(whit_builder *b, const char *text, bool is_data)
{
    whit_builder_bytes(b, text, strlen(text), is_data);
}

/* Appends calls to a message's content. The markers belong to the template and the rest is data; in the plain form
 * everything is data. */
static bool append_calls(whit_datum_pool *pool, const whit_tool_style *style, whit_datum *message,
                         const whit_datum *calls)
{
    whit_builder b = whit_builder_begin(pool, 1u << 30);
    whit_buf name = {.allocator = pool->allocator};
    const whit_text *content = text_of(message, "content");
    bool list = style->syntax == WHIT_CALLS_GRANITE, ok = true, is_data = style->is_plain;
    if (content) whit_builder_text(&b, content);
    if (list) add_marker(&b, "<|tool_call|>[", is_data);
    for (size_t i = 0; ok && i < calls->list->n; i++) {
        const whit_datum *function = whit_dict_get_str(calls->list->items[i].dict, "function");
        const whit_text *called = text_of(function, "name"), *arguments = text_of(function, "arguments");
        name.size_bytes = 0;
        ok = called && arguments && whit_json_write_string(&name, called->bytes, called->n_bytes);
        if (!ok) break;
        bool first = !i && !(content && content->n_bytes);
        if (!list && !first) add_marker(&b, "\n", is_data);
        if (!list) add_marker(&b, "<tool_call>\n", is_data);
        if (list && i) add_marker(&b, ", ", is_data);
        add_marker(&b, "{\"name\": ", is_data);
        whit_builder_bytes(&b, whit_chars(&name), name.size_bytes, true);
        add_marker(&b, ", \"arguments\": ", is_data);
        whit_builder_text(&b, arguments);
        add_marker(&b, list ? "}" : "}\n</tool_call>", is_data);
    }
    if (list) add_marker(&b, "]", is_data);
    whit_buf_free(&name);
    const whit_text *text = ok ? whit_builder_end(&b) : NULL;
    return text && whit_dict_set_str(pool, message->dict, "content", whit_datum_text(text)) &&
        whit_dict_set_str(pool, message->dict, "tool_calls", whit_datum_none());
}

static bool write_into_contents(whit_datum_pool *pool, const whit_tool_style *style, whit_datum *messages)
{
    for (size_t i = 0; i < messages->list->n; i++) {
        whit_datum *message = &messages->list->items[i];
        const whit_datum *calls = whit_dict_get_str(message->dict, "tool_calls");
        if (calls && calls->kind == WHIT_DATUM_LIST && !append_calls(pool, style, message, calls)) return false;
    }
    return true;
}

whit_status whit_tool_style_messages(const whit_tool_style *style, const char *text, size_t n_bytes,
                                     whit_datum_pool *pool, whit_datum *messages, whit_error *error)
{
    whit_json json = {0};
    whit_buf out = {.allocator = pool->allocator};
    if (!text) return whit_fail(error, WHIT_ERROR_ARGUMENT, "messages: expected a list of at least one message");
    WHIT_TRY(whit_json_parse("messages", text, n_bytes, pool->allocator, &json, error));
    struct rewrite r = {.style = style, .json = &json, .out = &out, .only_call = WHIT_JSON_NONE};
    whit_status status = WHIT_OK;
    bool ok = whit_buf_append_str(&out, "["), first = true;
    if (whit_json_type_of(&json, WHIT_JSON_ROOT) != WHIT_JSON_ARRAY)
        status = whit_json_fail(&json, WHIT_JSON_ROOT, error, "messages must be a list");
    else if (!whit_json_count(&json, WHIT_JSON_ROOT))
        status = whit_fail(error, WHIT_ERROR_ARGUMENT, "messages: expected a list of at least one message");
    for (uint32_t at = whit_json_first(&json, WHIT_JSON_ROOT); status == WHIT_OK && ok && at != WHIT_JSON_NONE;
         at = whit_json_next(&json, WHIT_JSON_ROOT, at)) {
        ok = first || whit_buf_append_str(&out, ", ");
        if (ok && has_several_calls(&r, at))
            status = write_single_calls(&r, &at, &ok, error);
        else if (ok)
            status = write_message(&r, at, &ok, error);
        r.i_message++;
        first = false;
    }
    whit_json_close(&json);
    ok = ok && whit_buf_append_str(&out, "]");
    if (status == WHIT_OK && !ok) status = whit_fail_memory(error, "the messages", n_bytes);
    if (status == WHIT_OK) status = whit_datum_from_json(pool, whit_chars(&out), out.size_bytes, true, messages, error);
    whit_buf_free(&out);
    if (status == WHIT_OK && !style->renders_calls && !write_into_contents(pool, style, messages))
        status = whit_fail_memory(error, "the messages", n_bytes);
    return status;
}
