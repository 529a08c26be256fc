/* SPDX-License-Identifier: MIT */
#include "runtime/messages.h"

#include "base/json.h"
#include "base/utf8.h"

const char *whit_role_name(whit_role role)
{
    static const char *const names[] = {"system", "user", "assistant"};
    return names[role];
}

static whit_message *items_of(const whit_messages *messages)
{
    return (whit_message *)(void *)messages->items.data;
}

static void free_text(const whit_messages *messages, whit_message *message)
{
    whit_free(messages->items.allocator, message->text, message->text_bytes + 1);
}

/* Keeps the first n. */
static void cut(whit_messages *messages, size_t n)
{
    whit_message *items = items_of(messages);
    for (size_t i = n; i < whit_messages_count(messages); i++) free_text(messages, &items[i]);
    messages->items.size_bytes = n * sizeof *items;
}

void whit_messages_free(whit_messages *messages)
{
    cut(messages, 0);
    whit_buf_free(&messages->items);
    messages->n_left_out = 0;
}

size_t whit_messages_count(const whit_messages *messages)
{
    return messages->items.size_bytes / sizeof(whit_message);
}

const whit_message *whit_messages_at(const whit_messages *messages, size_t i)
{
    return &items_of(messages)[i];
}

const whit_message *whit_messages_system(const whit_messages *messages)
{
    const whit_message *first = items_of(messages);
    return whit_messages_count(messages) && first->role == WHIT_ROLE_SYSTEM ? first : NULL;
}

/* ---- changing ------------------------------------------------------------------------------- */

static bool append_clean(whit_buf *out, const char *text, size_t n)
{
    const uint8_t *bytes = (const uint8_t *)text;
    while (n) {
        size_t valid = whit_utf8_valid_bytes(bytes, n), bad = 0;
        if (valid && !whit_buf_append(out, bytes, valid)) return false;
        bytes += valid;
        n -= valid;
        if (!n) break;
        whit_utf8_decode(bytes, n, &bad);
        if (!whit_buf_append_str(out, WHIT_UTF8_REPLACEMENT)) return false;
        bytes += bad;
        n -= bad;
    }
    return true;
}

static whit_status append(whit_messages *messages, whit_role role, const char *text, size_t n, whit_error *error)
{
    whit_buf clean = {.allocator = messages->items.allocator};
    whit_message message = {.role = role, .n_left_out = messages->n_left_out};
    if (append_clean(&clean, text, n)) {
        message.text_bytes = clean.size_bytes;
        message.text = whit_strndup(clean.allocator, clean.data ? (const char *)clean.data : "", clean.size_bytes);
    }
    whit_buf_free(&clean);
    if (message.text && whit_buf_append(&messages->items, &message, sizeof message)) return WHIT_OK;
    if (message.text) free_text(messages, &message);
    messages->items.failed = false; /* the list is whole, and memory may come back */
    return whit_fail_memory(error, "a message", n);
}

whit_status whit_messages_add(whit_messages *messages, whit_role role, const char *text, size_t text_bytes,
                              whit_error *error)
{
    return append(messages, role, text, text_bytes, error);
}

whit_status whit_messages_set_system(whit_messages *messages, const char *text, size_t text_bytes, whit_error *error)
{
    /* The new one is made first, at the end, so that a failure leaves everything as it was. */
    if (text_bytes) WHIT_TRY(append(messages, WHIT_ROLE_SYSTEM, text, text_bytes, error));
    whit_message *items = items_of(messages), made = {0};
    size_t n = whit_messages_count(messages);
    if (text_bytes) made = items[--n];
    if (n && items[0].role == WHIT_ROLE_SYSTEM) {
        free_text(messages, &items[0]);
        memmove(items, items + 1, --n * sizeof *items);
    }
    if (text_bytes) {
        memmove(items + 1, items, n++ * sizeof *items);
        items[0] = made;
    }
    messages->items.size_bytes = n * sizeof *items;
    return WHIT_OK;
}

bool whit_messages_take_back(whit_messages *messages, whit_role role)
{
    size_t n = whit_messages_count(messages);
    if (!n || items_of(messages)[n - 1].role != role) return false;
    const size_t n_before = items_of(messages)[n - 1].n_left_out;
    cut(messages, n - 1);
    if (messages->n_left_out > n_before) messages->n_left_out = n_before;
    size_t n_behind = n - 1 - (whit_messages_system(messages) != NULL);
    if (messages->n_left_out > n_behind) messages->n_left_out = n_behind;
    return true;
}

void whit_messages_clear(whit_messages *messages)
{
    cut(messages, whit_messages_system(messages) != NULL);
    messages->n_left_out = 0;
}

/* ---- files ---------------------------------------------------------------------------------- */

whit_status whit_messages_write(const whit_messages *messages, whit_buf *out, whit_error *error)
{
    size_t before = out->size_bytes;
    bool ok = whit_buf_append_str(out, "{\"messages\": [");
    for (size_t i = 0; ok && i < whit_messages_count(messages); i++) {
        const whit_message *message = whit_messages_at(messages, i);
        ok = whit_buf_printf(out, "%s{\"role\": \"%s\", \"content\": ", i ? ", " : "", whit_role_name(message->role)) &&
            whit_json_write_string(out, message->text, message->text_bytes) && whit_buf_append_str(out, "}");
    }
    if (ok && whit_buf_append_str(out, "]}\n")) return WHIT_OK;
    out->size_bytes = before;
    return whit_fail_memory(error, "the conversation's text", before);
}

static whit_status read_message(whit_messages *incoming, const whit_json *json, uint32_t at, whit_error *error)
{
    if (whit_json_type_of(json, at) != WHIT_JSON_OBJECT)
        return whit_json_fail(json, at, error, "a message is an object, with role and content");
    for (uint32_t key = whit_json_first(json, at); key != WHIT_JSON_NONE; key = whit_json_next(json, at, key))
        if (!whit_json_is(json, key, "role") && !whit_json_is(json, key, "content"))
            return whit_json_fail(json, key, error, "a message here has only role and content");
    uint32_t role = whit_json_get(json, at, "role"), content = whit_json_get(json, at, "content");
    size_t n;
    const char *text = whit_json_string(json, content, &n);
    if (!text) return whit_json_fail(json, at, error, "the content of a message is a text");
    for (int r = WHIT_ROLE_SYSTEM; r <= WHIT_ROLE_ASSISTANT; r++) {
        if (!whit_json_is(json, role, whit_role_name((whit_role)r))) continue;
        if (r != WHIT_ROLE_SYSTEM) return append(incoming, (whit_role)r, text, n, error);
        if (!whit_messages_count(incoming)) return whit_messages_set_system(incoming, text, n, error);
        return whit_json_fail(json, at, error, "the system's message comes first, once");
    }
    return whit_json_fail(json, at, error, "a role is system, user or assistant");
}

whit_status whit_messages_read(whit_messages *messages, const char *name, const char *text, size_t text_bytes,
                               whit_error *error)
{
    whit_messages incoming = {.items = {.allocator = messages->items.allocator}};
    whit_json json = {0};
    WHIT_TRY(whit_json_parse(name, text, text_bytes, incoming.items.allocator, &json, error));
    uint32_t list = whit_json_get(&json, WHIT_JSON_ROOT, "messages");
    whit_status status = WHIT_OK;
    if (whit_json_type_of(&json, list) != WHIT_JSON_ARRAY)
        status = whit_json_fail(&json, WHIT_JSON_ROOT, error,
                                "no conversation: an object with a list \"messages\" is wanted");
    for (uint32_t at = whit_json_first(&json, list); status == WHIT_OK && at != WHIT_JSON_NONE;
         at = whit_json_next(&json, list, at))
        status = read_message(&incoming, &json, at, error);
    whit_json_close(&json);
    if (status == WHIT_OK) {
        whit_messages old = *messages;
        *messages = incoming;
        incoming = old;
    }
    whit_messages_free(&incoming);
    return status;
}
