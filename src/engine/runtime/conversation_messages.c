/* SPDX-License-Identifier: MIT
 * Appends and removes messages of a conversation, reads them from files, and finds calls and their results. */
#include "base/file.h"
#include "base/items.h"
#include "base/json.h"
#include "base/path.h"
#include "base/phrase.h"
#include "runtime/conversation.h"
#include "runtime/message_values.h"

enum { FILE_BYTES_MAX = 64 << 20 };

static whit_message *items_of(const whit_conversation *c)
{
    return WHIT_ITEMS(whit_message, &c->messages);
}

const whit_message *whit_messages_of(const whit_conversation *c)
{
    return items_of(c);
}

size_t whit_conversation_count(const whit_conversation *c)
{
    return c->messages.size_bytes / sizeof(whit_message);
}

size_t whit_conversation_n_left_out(const whit_conversation *c)
{
    return c->n_left_out;
}

size_t whit_conversation_n_system(const whit_conversation *c)
{
    size_t n = 0;
    while (n < whit_conversation_count(c) && items_of(c)[n].role == WHIT_ROLE_SYSTEM) n++;
    return n;
}

const char *whit_conversation_message(const whit_conversation *c, size_t i, size_t *json_bytes)
{
    bool is_there = i < whit_conversation_count(c);
    *json_bytes = is_there ? items_of(c)[i].json_bytes : 0;
    return is_there ? items_of(c)[i].json : NULL;
}

static void free_message(const whit_conversation *c, whit_message *message)
{
    whit_free(c->allocator, message->json, message->json_bytes + 1);
}

/* Removes all messages after the first n. */
static void cut_messages(whit_conversation *c, size_t n)
{
    for (size_t i = n; i < whit_conversation_count(c); i++) free_message(c, &items_of(c)[i]);
    c->messages.size_bytes = n * sizeof(whit_message);
}

bool whit_conversation_leave_out(whit_conversation *c, size_t n)
{
    if (n > whit_conversation_count(c) - whit_conversation_n_system(c)) return false;
    c->n_left_out = n;
    return true;
}

void whit_conversation_keep(whit_conversation *c, size_t n)
{
    if (n >= whit_conversation_count(c)) return;
    const size_t n_before = items_of(c)[n].n_left_out;
    cut_messages(c, n);
    const size_t n_most = n - whit_conversation_n_system(c);
    if (c->n_left_out > n_before) c->n_left_out = n_before;
    if (c->n_left_out > n_most) c->n_left_out = n_most;
}

size_t whit_conversation_undo(whit_conversation *c)
{
    const size_t n = whit_conversation_count(c), n_system = whit_conversation_n_system(c);
    size_t at = n;
    while (at > n_system && items_of(c)[at - 1].role != WHIT_ROLE_USER) at--;
    if (at > n_system) at--;
    whit_conversation_keep(c, at);
    return n - at;
}

/* ---- appending ------------------------------------------------------------------------------ */

whit_status whit_conversation_add(whit_conversation *c, whit_role role, uint32_t n_calls, const char *json,
                                  size_t json_bytes, whit_error *error)
{
    whit_message message = {.role = role, .n_calls = n_calls, .json_bytes = json_bytes, .n_left_out = c->n_left_out};
    message.json = whit_strndup(c->allocator, json, json_bytes);
    if (message.json && whit_buf_append(&c->messages, &message, sizeof message)) return WHIT_OK;
    if (message.json) free_message(c, &message);
    c->messages.failed = false; /* the list is intact, and a later allocation may succeed */
    return whit_fail_memory(error, "a message", json_bytes);
}

static whit_role role_of(const char *name, size_t n)
{
    static const struct {
        const char *name;
        whit_role role;
    } roles[] = {{"system", WHIT_ROLE_SYSTEM},
                 {"developer", WHIT_ROLE_SYSTEM},
                 {"user", WHIT_ROLE_USER},
                 {"assistant", WHIT_ROLE_ASSISTANT},
                 {"tool", WHIT_ROLE_TOOL}};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (n == strlen(roles[i].name) && !memcmp(name, roles[i].name, n)) return roles[i].role;
    return WHIT_ROLE_OTHER;
}

whit_status whit_conversation_say(whit_conversation *c, const char *role, const char *text, size_t text_bytes,
                                  whit_error *error)
{
    WHIT_NEED(c);
    WHIT_NEED(role);
    WHIT_NEED_ARRAY(text, text_bytes);
    whit_buf json = {.allocator = c->allocator};
    bool ok = whit_buf_append_str(&json, "{\"role\": ") && whit_json_write_string(&json, role, strlen(role)) &&
        whit_buf_append_str(&json, ", \"content\": ") &&
        whit_json_write_string(&json, text_bytes ? text : "", text_bytes) && whit_buf_append_str(&json, "}");
    whit_status status = ok
        ? whit_conversation_add(c, role_of(role, strlen(role)), 0, whit_chars(&json), json.size_bytes, error)
        : whit_fail_memory(error, "a message", text_bytes);
    whit_buf_free(&json);
    return status;
}

/* Returns whether a result may be appended: it must follow calls, possibly with other results in between. */
static bool follows_calls(const whit_conversation *c)
{
    size_t n = whit_conversation_count(c);
    while (n && items_of(c)[n - 1].role == WHIT_ROLE_TOOL) n--;
    return n && items_of(c)[n - 1].n_calls;
}

static whit_status append_message(whit_conversation *c, const whit_json *json, uint32_t at, whit_error *error)
{
    size_t n;
    if (whit_json_type_of(json, at) != WHIT_JSON_OBJECT)
        return whit_json_fail(json, at, error, "a message must be an object with role and content");
    const char *name = whit_json_string(json, whit_json_get(json, at, "role"), &n);
    const uint32_t calls = whit_json_get(json, at, "tool_calls"), content = whit_json_get(json, at, "content");
    const whit_json_type type = whit_json_type_of(json, content), type_of_calls = whit_json_type_of(json, calls);
    if (!name)
        return whit_json_fail(json, at, error,
                              "a message must have a role: system, user, assistant, tool or developer");
    if (type_of_calls > WHIT_JSON_NULL && type_of_calls != WHIT_JSON_ARRAY)
        return whit_json_fail(json, calls, error, "tool_calls must be a list");
    const uint32_t n_calls = (uint32_t)whit_json_count(json, type_of_calls == WHIT_JSON_ARRAY ? calls : WHIT_JSON_NONE);
    if (type != WHIT_JSON_STRING && type != WHIT_JSON_ARRAY && !(type <= WHIT_JSON_NULL && n_calls))
        return whit_json_fail(json, at, error, "the content of a message must be a text or a list of parts");
    const whit_role role = role_of(name, n);
    if (role == WHIT_ROLE_TOOL && !follows_calls(c))
        return whit_json_fail(json, at, error, "the result of a tool must follow the message that calls the tool");
    whit_buf text = {.allocator = c->allocator};
    whit_status status;
    if (whit_message_write_json(json, at, false, &text))
        status = whit_conversation_add(c, role, role == WHIT_ROLE_ASSISTANT ? n_calls : 0, whit_chars(&text),
                                       text.size_bytes, error);
    else
        status = whit_fail_memory(error, "a message", text.size_bytes);
    whit_buf_free(&text);
    return status;
}

/* The documents that a reader accepts. */
typedef enum document_kind {
    DOCUMENT_ANY,   /* a list of messages, an object with such a list, or a single message */
    DOCUMENT_LIST,  /* an object with a list "messages" and maybe other members */
    DOCUMENT_SAVED, /* an object with a list "messages" only, as whit_conversation_save() writes it */
} document_kind;

/* Appends the messages of a document; on failure the list is unchanged. */
static whit_status append_document(whit_conversation *c, const char *name, const char *text, size_t n_bytes,
                                   document_kind kind, whit_error *error)
{
    whit_json json = {0};
    const size_t n_before = whit_conversation_count(c);
    WHIT_TRY(whit_json_parse(name, text, n_bytes, c->allocator, &json, error));
    uint32_t list = whit_json_get(&json, WHIT_JSON_ROOT, "messages");
    if (list == WHIT_JSON_NONE && kind == DOCUMENT_ANY) list = WHIT_JSON_ROOT;
    whit_status status = WHIT_OK;
    if (kind == DOCUMENT_SAVED && whit_json_count(&json, WHIT_JSON_ROOT) != 1) {
        status = whit_json_fail(&json, WHIT_JSON_ROOT, error, "expected no other members than \"messages\"");
    } else if (whit_json_type_of(&json, list) == WHIT_JSON_ARRAY) {
        for (uint32_t at = whit_json_first(&json, list); status == WHIT_OK && at != WHIT_JSON_NONE;
             at = whit_json_next(&json, list, at))
            status = append_message(c, &json, at, error);
    } else if (kind != DOCUMENT_ANY) {
        status = whit_json_fail(&json, WHIT_JSON_ROOT, error,
                                "this is not a conversation: expected an object with a list \"messages\"");
    } else {
        status = append_message(c, &json, list, error);
    }
    whit_json_close(&json);
    if (status != WHIT_OK) cut_messages(c, n_before);
    return status;
}

whit_status whit_conversation_append(whit_conversation *c, const char *json, size_t json_bytes, whit_error *error)
{
    WHIT_NEED(c);
    WHIT_NEED(json);
    return append_document(c, "messages", json, json_bytes, DOCUMENT_ANY, error);
}

whit_status whit_conversation_set_system(whit_conversation *c, const char *text, size_t text_bytes, whit_error *error)
{
    WHIT_NEED(c);
    /* The new message is appended first, so that a failure leaves the conversation unchanged. */
    if (text_bytes) WHIT_TRY(whit_conversation_say(c, "system", text, text_bytes, error));
    size_t n = whit_conversation_count(c);
    whit_message *items = items_of(c), made = {.role = WHIT_ROLE_SYSTEM};
    if (text_bytes) made = items[--n];
    if (n && items[0].role == WHIT_ROLE_SYSTEM) {
        free_message(c, &items[0]);
        memmove(items, items + 1, --n * sizeof *items);
    }
    if (text_bytes) {
        memmove(items + 1, items, n++ * sizeof *items);
        items[0] = made;
    }
    c->messages.size_bytes = n * sizeof *items;
    return WHIT_OK;
}

/* ---- files ---------------------------------------------------------------------------------- */

bool whit_conversation_write(const whit_conversation *c, size_t n_system, size_t first, whit_buf *out)
{
    bool ok = whit_buf_append_str(out, "["), is_first = true;
    for (size_t i = 0; ok && i < whit_conversation_count(c); i++) {
        if (i >= n_system && i < first) continue;
        ok = (is_first || whit_buf_append_str(out, ", ")) &&
            whit_buf_append(out, items_of(c)[i].json, items_of(c)[i].json_bytes);
        is_first = false;
    }
    return ok && whit_buf_append_str(out, "]");
}

/* Appends a file's messages to `list`, a conversation without a session. */
static whit_status read_file(whit_conversation *list, const char *path, document_kind kind, whit_error *error)
{
    whit_buf text = {.allocator = list->allocator};
    whit_status status = whit_read_file(path, FILE_BYTES_MAX, &text, error);
    size_t at = 0;
    while (status == WHIT_OK && at < text.size_bytes && text.data[at] && strchr(" \t\r\n", text.data[at])) at++;
    if (status == WHIT_OK && at < text.size_bytes && text.data[at] != '{')
        status = whit_fail(error, WHIT_ERROR_FORMAT,
                           "%s: this is not a conversation: expected a JSON object with a list \"messages\"", path);
    if (status == WHIT_OK)
        status = append_document(list, path, text.data ? whit_chars(&text) : "", text.size_bytes, kind, error);
    whit_buf_free(&text);
    return status;
}

static void free_list(whit_conversation *list)
{
    cut_messages(list, 0);
    whit_buf_free(&list->messages);
}

whit_status whit_conversation_save(const whit_conversation *c, const char *path, whit_error *error)
{
    WHIT_NEED(c);
    WHIT_NEED(path);
    whit_error reason;
    whit_buf text = {.allocator = c->allocator};
    whit_conversation there = {.allocator = c->allocator, .messages = {.allocator = c->allocator}};
    whit_status status = read_file(&there, path, DOCUMENT_SAVED, &reason);
    free_list(&there);
    if (status == WHIT_ERROR_MEMORY) return whit_fail_memory(error, "the conversation", 0);
    if (status != WHIT_OK && whit_path_exists(path))
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: exists and is not a conversation alone, so it was not replaced: choose another name",
                         path);
    bool ok = whit_buf_append_str(&text, "{\"messages\": ") && whit_conversation_write(c, 0, 0, &text) &&
        whit_buf_append_str(&text, "}\n");
    status = ok ? whit_write_file(path, text.data, text.size_bytes, error)
                : whit_fail_memory(error, "the conversation", text.size_bytes);
    whit_buf_free(&text);
    return status;
}

whit_status whit_conversation_load(whit_conversation *c, const char *path, whit_error *error)
{
    WHIT_NEED(c);
    WHIT_NEED(path);
    whit_conversation incoming = {.allocator = c->allocator, .messages = {.allocator = c->allocator}};
    whit_status status = read_file(&incoming, path, DOCUMENT_LIST, error);
    if (status == WHIT_OK) {
        whit_buf old = c->messages;
        c->messages = incoming.messages;
        incoming.messages = old;
        c->n_left_out = 0;
    }
    free_list(&incoming);
    return status;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Appends a text and a zero byte; *at is its offset. */
static bool add_text(whit_buf *texts, const char *text, size_t n, size_t *at)
{
    *at = texts->size_bytes;
    return whit_buf_append(texts, whit_or_empty(text), text ? n : 0) && whit_buf_append(texts, "", 1);
}

/* Reads call i_call of a message into c->call; false on failure. */
static bool read_call(whit_conversation *c, const whit_message *message, size_t i_call)
{
    whit_json json = {0};
    whit_buf *texts = &c->call_texts;
    size_t n_id, n_name, n_arguments, id_at, name_at, arguments_at;
    if (whit_json_parse("a call", message->json, message->json_bytes, c->allocator, &json, NULL) != WHIT_OK)
        return false;
    const uint32_t list = whit_json_get(&json, WHIT_JSON_ROOT, "tool_calls");
    uint32_t at = whit_json_first(&json, list);
    while (i_call-- && at != WHIT_JSON_NONE) at = whit_json_next(&json, list, at);
    uint32_t function = whit_json_get(&json, at, "function"), given;
    if (function == WHIT_JSON_NONE) function = at;
    given = whit_json_get(&json, function, "arguments");
    const char *id = whit_json_string(&json, whit_json_get(&json, at, "id"), &n_id);
    const char *name = whit_json_string(&json, whit_json_get(&json, function, "name"), &n_name);
    const char *arguments = whit_json_string(&json, given, &n_arguments);
    if (!arguments) arguments = whit_json_raw(&json, given, &n_arguments);
    texts->size_bytes = 0;
    bool ok = add_text(texts, id, n_id, &id_at) && add_text(texts, name, n_name, &name_at) &&
        add_text(texts, arguments, n_arguments, &arguments_at);
    texts->failed = false;
    if (ok) {
        const char *base = whit_chars(texts);
        c->call =
            (whit_conversation_call){base + id_at, base + name_at, base + arguments_at, arguments ? n_arguments : 0};
    }
    whit_json_close(&json);
    return ok;
}

/* Returns the message whose calls do not all have results yet, or NULL; *i_call is the index of its first call without
 * a result. */
static const whit_message *find_call(const whit_conversation *c, size_t *i_call)
{
    size_t n = c ? whit_conversation_count(c) : 0;
    for (*i_call = 0; n && items_of(c)[n - 1].role == WHIT_ROLE_TOOL; ++*i_call) n--;
    return n && *i_call < items_of(c)[n - 1].n_calls ? &items_of(c)[n - 1] : NULL;
}

const whit_conversation_call *whit_conversation_next_call(whit_conversation *c)
{
    size_t i_call;
    const whit_message *message = find_call(c, &i_call);
    return message && read_call(c, message, i_call) ? &c->call : NULL;
}

bool whit_conversation_waits(const whit_conversation *c)
{
    size_t i_call;
    return find_call(c, &i_call) != NULL;
}

whit_status whit_conversation_return(whit_conversation *c, const char *text, size_t text_bytes, whit_error *error)
{
    WHIT_NEED(c);
    WHIT_NEED_ARRAY(text, text_bytes);
    if (!whit_conversation_waits(c))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "every call of the conversation has a result already");
    const whit_conversation_call *call = whit_conversation_next_call(c);
    if (!call) return whit_fail_memory(error, "a call", text_bytes);
    whit_buf json = {.allocator = c->allocator};
    bool ok = whit_buf_append_str(&json, "{\"role\": \"tool\", \"tool_call_id\": ") &&
        whit_json_write_string(&json, call->id, strlen(call->id)) && whit_buf_append_str(&json, ", \"name\": ") &&
        whit_json_write_string(&json, call->name, strlen(call->name)) &&
        whit_buf_append_str(&json, ", \"content\": ") &&
        whit_json_write_string(&json, text_bytes ? text : "", text_bytes) && whit_buf_append_str(&json, "}");
    whit_status status = ok ? whit_conversation_add(c, WHIT_ROLE_TOOL, 0, whit_chars(&json), json.size_bytes, error)
                            : whit_fail_memory(error, "a result", text_bytes);
    whit_buf_free(&json);
    return status;
}
