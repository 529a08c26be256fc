/* SPDX-License-Identifier: MIT */
#include "cli/chat_items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/flags.h"
#include "grammar/schema.h"

/* ---- reading -------------------------------------------------------------------------------- */

/* Fills an item from item->object, a parsed line. If the line is not a valid item, returns false and sets *reason. */
static bool read_item(cli_chat_item *item, const char **reason)
{
    const char *prompt = json_string_value(json_object_get(item->object, "prompt"));
    const json_t *messages = json_object_get(item->object, "messages"), *tools = json_object_get(item->object, "tools"),
                 *wanted = json_object_get(item->object, "answer");
    *reason = "has neither a list \"messages\" nor a text \"prompt\"";
    if (prompt) {
        json_t *list = json_pack("[{s:s, s:s}]", "role", "user", "content", prompt);
        item->messages = list ? json_dumps(list, JSON_COMPACT) : NULL;
        json_decref(list);
    } else {
        item->messages = json_array_size(messages) ? json_dumps(messages, JSON_COMPACT) : NULL;
    }
    if (!item->messages) return false;
    *reason = "has \"tools\" that are not a list, or an empty list";
    if (tools && !(item->tools = json_array_size(tools) ? json_dumps(tools, JSON_COMPACT) : NULL)) return false;
    *reason = "has an \"answer\" that is not a text";
    if (wanted && !json_is_string(wanted)) return false;
    item->wanted = json_string_value(wanted);
    item->must_call = json_is_true(json_object_get(item->object, "calls"));
    *reason = "asks for calls without \"tools\"";
    return !item->must_call || item->tools;
}

static void free_item(cli_chat_item *item)
{
    json_decref(item->object);
    free(item->messages);
    free(item->tools);
}

static int add_item(cli_call *call, const char *path, size_t line, const char *text, size_t n_bytes,
                    cli_chat_items *items)
{
    json_error_t at;
    const char *reason;
    cli_chat_item item = {.line = line, .object = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &at)};
    if (!item.object) return cli_fail(call, CLI_REFUSED, "%s: line %zu: %s", path, line, at.text);
    if (!read_item(&item, &reason)) {
        free_item(&item);
        return cli_fail(call, CLI_REFUSED, "%s: line %zu %s", path, line, reason);
    }
    cli_chat_item *larger = realloc(items->items, (items->n + 1) * sizeof *larger);
    if (!larger) {
        free_item(&item);
        return cli_fail(call, CLI_LIMIT, "not enough memory for %zu chats", items->n + 1);
    }
    items->items = larger;
    items->items[items->n++] = item;
    items->has_tools |= item.tools != NULL;
    items->has_wanted |= item.wanted != NULL;
    return CLI_OK;
}

int cli_chat_items_read(cli_call *call, const char *path, cli_chat_items *items)
{
    cli_text text = {0};
    *items = (cli_chat_items){0};
    int status = cli_read_text(call, path, &text);
    const char *line = text.data, *end = line + text.size_bytes;
    for (size_t number = 1; status == CLI_OK && line < end; number++) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        const size_t n_bytes = (size_t)((next ? next : end) - line);
        if (n_bytes && strspn(line, " \t\r") < n_bytes) status = add_item(call, path, number, line, n_bytes, items);
        line = next ? next + 1 : end;
    }
    free(text.data);
    if (status == CLI_OK && !items->n)
        status = cli_fail(call, CLI_REFUSED,
                          "%s: has no chats: write one a line, as JSON with \"messages\" or \"prompt\"", path);
    return status;
}

void cli_chat_items_free(cli_chat_items *items)
{
    for (size_t i = 0; i < items->n; i++) free_item(&items->items[i]);
    free(items->items);
    *items = (cli_chat_items){0};
}

int cli_chat_items_template(cli_call *call, const whit_model *model, whit_chat_template **chat)
{
    whit_error error;
    whit_chat_template_options options = whit_chat_template_options_default();
    options.tool_fallback = true;
    return whit_chat_template_open(model, &options, chat, &error) == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

/* ---- answers -------------------------------------------------------------------------------- */

void cli_chat_answer_free(cli_chat_answer *answer)
{
    whit_buf_free(&answer->text);
    whit_buf_free(&answer->ids);
    *answer = (cli_chat_answer){0};
}

void cli_chat_tally_add(cli_chat_tally *tally, const cli_chat_item *item, const cli_chat_answer *answer)
{
    tally->n++;
    tally->n_wanted += item->wanted != NULL;
    tally->n_right += answer->is_right;
    tally->n_tooled += item->tools != NULL;
    tally->n_calling += answer->n_calls > 0;
    tally->n_calls += answer->n_calls;
    tally->n_parsed += answer->n_parsed;
    tally->n_valid += answer->n_valid;
    tally->is_held |= answer->is_held;
}

void cli_chat_tally_note(const cli_chat_tally *tally)
{
    if (tally->is_held) cli_note("a grammar constrained the calls of these answers, so all of them are valid");
}

static bool keep_text(void *user, const char *text, size_t n_bytes)
{
    return whit_buf_append(user, text, n_bytes);
}

/* Returns the schema of the parameters of the tool with this name, or NULL. *is_known: there is such a tool. */
static const json_t *find_parameters(const json_t *tools, const char *name, bool *is_known)
{
    size_t i;
    json_t *tool;
    *is_known = false;
    json_array_foreach(tools, i, tool)
    {
        const json_t *function = json_object_get(tool, "function");
        const char *known = json_string_value(json_object_get(function, "name"));
        if (!known || strcmp(known, name) != 0) continue;
        *is_known = true;
        return json_object_get(function, "parameters");
    }
    return NULL;
}

static int judge_call(cli_call *call, const cli_chat_item *item, const char *path, const whit_conversation_call *made,
                      cli_chat_answer *answer)
{
    bool is_known, is_valid = true;
    whit_error error;
    char place[512];
    answer->n_calls++;
    json_t *arguments = json_loadb(made->arguments, made->arguments_bytes, 0, NULL);
    const bool is_object = json_is_object(arguments);
    json_decref(arguments);
    if (!is_object) return CLI_OK;
    answer->n_parsed++;
    const json_t *parameters = find_parameters(json_object_get(item->object, "tools"), made->name, &is_known);
    char *schema = parameters ? json_dumps(parameters, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (parameters && !schema) return cli_fail(call, CLI_LIMIT, "not enough memory for the schema of a tool");
    snprintf(place, sizeof place, "%s: line %zu: parameters of %s", path, item->line, made->name);
    const whit_status status = schema ? whit_json_schema_check(place, schema, strlen(schema), made->arguments,
                                                               made->arguments_bytes, &is_valid, &error)
                                      : WHIT_OK;
    free(schema);
    if (status != WHIT_OK) return cli_fail_error(call, &error);
    answer->n_valid += is_known && is_valid;
    return CLI_OK;
}

/* Judges all calls of the last answer. Each call is given an empty result, because only then the next one can be
 * read. */
static int judge_calls(cli_call *call, const cli_chat_item *item, const char *path, whit_conversation *conversation,
                       cli_chat_answer *answer)
{
    const whit_conversation_call *made;
    whit_error error;
    int status = CLI_OK;
    while (status == CLI_OK && (made = whit_conversation_next_call(conversation)) != NULL) {
        status = judge_call(call, item, path, made, answer);
        if (status == CLI_OK && whit_conversation_return(conversation, "", 0, &error) != WHIT_OK)
            status = cli_fail_error(call, &error);
    }
    return status;
}

static int generate_answer(cli_call *call, const cli_chat_item *item, whit_conversation *conversation,
                           whit_sampler *sampler, uint32_t n_tokens, cli_chat_answer *answer)
{
    whit_error error;
    whit_answer made = whit_answer_default();
    whit_answer_options wanted = whit_answer_options_default();
    wanted.n_tokens = n_tokens;
    wanted.on_text = keep_text;
    wanted.user = &answer->text;
    wanted.choice = item->must_call ? WHIT_CALL_REQUIRED : WHIT_CALL_AUTO;
    if (whit_conversation_append(conversation, item->messages, strlen(item->messages), &error) != WHIT_OK ||
        (item->tools &&
         whit_conversation_set_tools(conversation, item->tools, strlen(item->tools), &error) != WHIT_OK) ||
        whit_conversation_answer(conversation, sampler, &wanted, &made, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    size_t n;
    const int32_t *ids = whit_conversation_ids(conversation, &n);
    answer->n_prompt = (size_t)made.n_kept + made.n_prompt;
    answer->is_held = made.is_held;
    if (!whit_buf_append(&answer->ids, ids, n * sizeof *ids) || !whit_buf_append(&answer->text, "", 1))
        return cli_fail(call, CLI_LIMIT, "not enough memory for an answer");
    answer->text.size_bytes--; /* the added zero byte terminates the text */
    answer->is_right = item->wanted && strstr(whit_chars(&answer->text), item->wanted);
    return CLI_OK;
}

int cli_chat_items_answer(cli_call *call, const cli_chat_item *item, const char *path, const whit_model *model,
                          whit_session *session, const whit_chat_template *chat, uint32_t n_tokens,
                          cli_chat_answer *answer)
{
    whit_error error;
    whit_conversation *conversation = NULL;
    whit_sampler *sampler = NULL;
    whit_sampler_options greedy = whit_sampler_options_default();
    greedy.temperature = 0;
    int status = CLI_OK;
    if (whit_sampler_open(model, &greedy, &sampler, &error) != WHIT_OK ||
        whit_session_truncate(session, 0, 0, &error) != WHIT_OK ||
        whit_conversation_open(session, 0, chat, &conversation, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    if (status == CLI_OK) status = generate_answer(call, item, conversation, sampler, n_tokens, answer);
    if (status == CLI_OK) status = judge_calls(call, item, path, conversation, answer);
    whit_conversation_close(conversation);
    whit_sampler_close(sampler);
    return status;
}
