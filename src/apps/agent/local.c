/* SPDX-License-Identifier: MIT
 * Runs a model in this process. Each answer is one JSON object, {"tool": NAME, "arguments": {...}} or {"answer":
 * TEXT}, and not the call notation of the model's template, since small models can write only the former. */
#include "agent/model.h"
#include "base/items.h"
#include "agent/plain.h"

#include "base/phrase.h"
#include "whit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define USUAL_TOKENS 2048
/* number of tokens that suffices to write all remaining names of an unfinished object and its closing brackets */
#define END_TOKENS 192

struct whit_local_model {
    const whit_model *model;
    whit_session *session;
    uint32_t sequence;
    whit_local_options options;
    whit_chat_template *chat;
    whit_conversation *conversation;
    whit_grammar_vocabulary *vocabulary;
    uint64_t *closing; /* bit set over token ids: tokens that begin with one of " } ] , : */
    uint32_t n_vocab;
    uint64_t n_answers;
    /* The members below are the state of the answer being generated. */
    uint32_t n_written;
    whit_buf text;
};

/* ---- the grammar ----------------------------------------------------------------------------------- */

/* Grammar rules for values: strings of any length without \u escapes, integers of at most nine digits, and booleans. */
static const char common_rules[] =
    "string ::= \"\\\"\" ([^\"\\\\\\x00-\\x1f\\x7f] | \"\\\\\" [\"\\\\/bfnrt])* \"\\\"\"\n"
    "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,8})\n"
    "boolean ::= \"true\" | \"false\"\n";

/* Returns whether a grammar can be made from the schema. Schemas of tools of MCP servers may use features that grammars
 * do not support. */
static bool can_hold(const whit_local_model *l, const char *schema)
{
    whit_grammar *grammar = NULL;
    whit_error ignored;
    bool can = schema &&
        whit_grammar_open_json_schema(l->vocabulary, "a property", schema, strlen(schema), &grammar, &ignored) ==
            WHIT_OK;
    whit_grammar_close(grammar);
    return can;
}

/* Writes the grammar rule for a tool's arguments. Properties come in the schema's order; optional properties may be
 * omitted. A property that is not a string, integer or boolean (a list, an object) may be any JSON that its schema
 * allows or, if grammars do not support the schema, any JSON. The rule leaves out optional properties before the first
 * required one, and names with characters other than letters, digits and '_'. */
static void write_arguments(const whit_local_model *l, whit_buf *out, const json_t *parameters)
{
    const char *name;
    json_t *property;
    const json_t *required = json_object_get(parameters, "required");
    bool first = true;
    whit_buf_append_str(out, "\"{\"");
    json_object_foreach(json_object_get(parameters, "properties"), name, property)
    {
        const char *type = json_string_value(json_object_get(property, "type"));
        bool must = false,
             plain = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(name);
        size_t i;
        json_t *own;
        json_array_foreach(required, i, own) must =
            must || strcmp(json_string_value(own) ? json_string_value(own) : "", name) == 0;
        /* an optional property needs a member before it that is always present, since its rule begins with a comma */
        if (!plain || (!must && first)) continue;
        const char *open = must ? "" : "(";
        whit_buf_printf(out, " %s\"%s\\\"%s\\\":\" ", open, first ? "" : ",", name);
        if (type && (strcmp(type, "string") == 0 || strcmp(type, "integer") == 0 || strcmp(type, "boolean") == 0)) {
            whit_buf_append_str(out, type);
        } else {
            char *schema = json_dumps(property, JSON_COMPACT);
            whit_buf_printf(out, "%%json %s", can_hold(l, schema) ? schema : "{}");
            free(schema);
        }
        whit_buf_append_str(out, must ? "" : ")?");
        first = false;
    }
    whit_buf_append_str(out, " \"}\"");
}

static whit_status write_grammar(const whit_local_model *l, const json_t *tools, whit_buf *out, whit_error *error)
{
    size_t i;
    json_t *tool;
    whit_buf_append_str(out, "root ::= \"{\" (answer");
    for (i = 0; i < json_array_size(tools); i++) whit_buf_printf(out, " | tool%zu", i);
    whit_buf_append_str(out, ") \"}\"\nanswer ::= \"\\\"answer\\\":\" string\n");
    json_array_foreach(tools, i, tool)
    {
        const json_t *function = json_object_get(tool, "function");
        const char *name = json_string_value(json_object_get(function, "name"));
        whit_buf_printf(out, "tool%zu ::= \"\\\"tool\\\":\\\"%s\\\",\\\"arguments\\\":\" ", i, whit_or_empty(name));
        write_arguments(l, out, json_object_get(function, "parameters"));
        whit_buf_append_str(out, "\n");
    }
    whit_buf_append_str(out, common_rules);
    return out->failed ? whit_fail_memory(error, "a grammar", out->size_bytes) : WHIT_OK;
}

/* Finds the tokens that begin with one of " } ] , : as the mask of a small grammar, so that no token has to be
 * decoded. */
static whit_status find_closing(whit_local_model *l, whit_error *error)
{
    static const char text[] = "root ::= [\"}\\],:] [^\\x00]*\n";
    whit_grammar *grammar = NULL;
    whit_grammar_state *state = NULL;
    const uint64_t *bits;
    size_t n_words = (l->n_vocab + 63) / 64;
    whit_status status = whit_grammar_open_gbnf(l->vocabulary, "closing", text, sizeof text - 1, &grammar, error);
    if (status == WHIT_OK) status = whit_grammar_state_open(grammar, &state, error);
    if (status == WHIT_OK) status = whit_grammar_mask(state, &bits, error);
    l->closing = status == WHIT_OK ? malloc(n_words * sizeof *l->closing) : NULL;
    if (l->closing) memcpy(l->closing, bits, n_words * sizeof *l->closing);
    whit_grammar_state_close(state);
    whit_grammar_close(grammar);
    if (status == WHIT_OK && !l->closing) status = whit_fail_memory(error, "a mask", n_words * sizeof *l->closing);
    return status;
}

/* Sampling stage that follows the grammar's stage. When at most END_TOKENS tokens are left, allows only the tokens of
 * `closing`, if the grammar allows at least one of them. */
static whit_status end_in_time(void *user, float *logits, uint32_t n_vocab, whit_error *error)
{
    whit_local_model *l = user;
    bool any = false;
    (void)error;
    /* every token before the one being sampled is already in the session */
    const uint32_t n_free = whit_session_context_size(l->session) - whit_session_position(l->session, l->sequence);
    const uint32_t n_more = l->options.n_tokens - l->n_written;
    if (n_free > END_TOKENS && n_more > END_TOKENS) return WHIT_OK;
    for (uint32_t i = 0; i < n_vocab && !any; i++) any = (l->closing[i / 64] >> (i % 64) & 1) && logits[i] > -INFINITY;
    for (uint32_t i = 0; i < n_vocab && any; i++)
        if (!(l->closing[i / 64] >> (i % 64) & 1)) logits[i] = -INFINITY;
    return WHIT_OK;
}

static whit_status count_token(void *user, int32_t id, bool *end, whit_error *error)
{
    whit_local_model *l = user;
    (void)id, (void)end, (void)error;
    l->n_written++;
    return WHIT_OK;
}

/* ---- generating and parsing answers ---------------------------------------------------------------- */

static bool on_text(void *user, const char *text, size_t n)
{
    whit_local_model *l = user;
    return whit_buf_append(&l->text, text, n);
}

static whit_status generate(whit_local_model *l, const json_t *messages, const json_t *tools,
                            const whit_stage *const *stages, size_t n_stages, whit_answer *answer, whit_error *error)
{
    whit_answer_options options = whit_answer_options_default();
    whit_sampler_options sampling = whit_sampler_options_default();
    whit_sampler *sampler = NULL;
    json_t *list = whit_plain_messages(messages, tools);
    char *text = list ? json_dumps(list, JSON_COMPACT) : NULL;
    sampling.temperature = l->options.temperature;
    sampling.seed = l->options.seed + l->n_answers++;
    options.n_tokens = l->options.n_tokens;
    options.thinking = WHIT_THINKING_OFF;
    options.keep_all = true;
    options.n_room = 2 * END_TOKENS + 1;
    options.on_text = on_text;
    options.user = l;
    options.stages = stages;
    options.n_stages = n_stages;
    l->n_written = 0;
    l->text.size_bytes = 0;
    whit_conversation_keep(l->conversation, 0);
    whit_status status = text ? whit_conversation_append(l->conversation, text, strlen(text), error)
                              : whit_fail_memory(error, "the prompt", 0);
    if (status == WHIT_OK) status = whit_sampler_open(l->model, &sampling, &sampler, error);
    if (status == WHIT_OK) status = whit_conversation_answer(l->conversation, sampler, &options, answer, error);
    whit_sampler_close(sampler);
    free(text);
    json_decref(list);
    if (status == WHIT_OK && answer->finish == WHIT_FINISH_CANCELLED)
        status = whit_fail(error, WHIT_ERROR_CANCELLED, "interrupted");
    return status;
}

/* Parses the answer into a message with either a tool call or a text. If the answer has one of these two forms
 * (*is_formed), the text is also passed to on_text. */
static json_t *read_answer(whit_local_model *l, bool *is_formed)
{
    json_t *message = whit_plain_answer(whit_chars(&l->text), l->text.size_bytes, l->n_answers, is_formed);
    const json_t *text = json_object_get(message, "content");
    if (*is_formed && json_is_string(text) && l->options.on_text)
        l->options.on_text(l->options.user, json_string_value(text), json_string_length(text));
    return message;
}

static whit_status ask_model(void *user, const json_t *messages, const json_t *tools, json_t **answer,
                             whit_error *error)
{
    whit_local_model *l = user;
    whit_buf gbnf = {0};
    whit_grammar *grammar = NULL;
    whit_grammar_state *state = NULL;
    whit_stage form = whit_stage_default(), ending = whit_stage_default();
    const whit_stage *stages[2] = {&form, &ending};
    whit_answer result = whit_answer_default();
    whit_status status = WHIT_OK;
    *answer = NULL;
    if (!l->options.no_grammar) {
        status = write_grammar(l, tools, &gbnf, error);
        if (status == WHIT_OK)
            status =
                whit_grammar_open_gbnf(l->vocabulary, "the tools", whit_chars(&gbnf), gbnf.size_bytes, &grammar, error);
        if (status == WHIT_OK) status = whit_grammar_state_open(grammar, &state, error);
        if (status == WHIT_OK) form = whit_grammar_stage(state);
        ending.user = l;
        ending.apply = end_in_time;
        ending.accept = count_token;
    }
    if (status == WHIT_OK) status = generate(l, messages, tools, stages, l->options.no_grammar ? 0 : 2, &result, error);
    bool is_formed = false;
    json_t *message = status == WHIT_OK ? read_answer(l, &is_formed) : NULL;
    if (status == WHIT_OK)
        *answer = json_pack("{s:[{s:o}], s:b, s:{s:I, s:I, s:{s:I}}}", "choices", "message", message, "formed",
                            is_formed, "usage", "prompt_tokens", (json_int_t)result.n_kept + result.n_prompt,
                            "completion_tokens", (json_int_t)result.n_generated, "prompt_tokens_details",
                            "cached_tokens", (json_int_t)result.n_kept);
    if (status == WHIT_OK && !*answer) status = whit_fail_memory(error, "an answer", l->text.size_bytes);
    whit_grammar_state_close(state);
    whit_grammar_close(grammar);
    whit_buf_free(&gbnf);
    return status;
}

/* Chat template for models without one: each message is a line that begins with the role's name. */
static const char lines[] = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
                            "{% if add_generation_prompt %}assistant: {% endif %}";

whit_status whit_local_open(const whit_model *model, whit_session *session, uint32_t sequence,
                            const whit_local_options *options, whit_local_model **local, whit_error *error)
{
    whit_chat_template_options own = whit_chat_template_options_default();
    whit_local_model *l = *local = calloc(1, sizeof *l);
    if (!l) return whit_fail_memory(error, "a model", sizeof *l);
    *l = (whit_local_model){.model = model,
                            .session = session,
                            .sequence = sequence,
                            .options = *options,
                            .n_vocab = whit_model_vocab_size(model)};
    if (!l->options.n_tokens) l->options.n_tokens = USUAL_TOKENS;
    if (l->options.n_tokens < END_TOKENS) l->options.n_tokens = END_TOKENS;
    whit_status status = whit_chat_template_open(model, &own, &l->chat, error);
    if (status != WHIT_OK && status != WHIT_ERROR_MEMORY) {
        int32_t added[4];
        size_t n_added = 0;
        bool begins = whit_tokenize(model, "", 0, true, false, added, 4, &n_added, NULL) == WHIT_OK && n_added;
        own.source = begins ? lines : lines + sizeof "{{ bos_token }}" - 1;
        own.source_bytes = strlen(own.source);
        own.name = "lines";
        status = whit_chat_template_open(model, &own, &l->chat, error);
    }
    if (status == WHIT_OK) status = whit_grammar_vocabulary_open(model, &l->vocabulary, error);
    if (status == WHIT_OK) status = whit_conversation_open(session, sequence, l->chat, &l->conversation, error);
    if (status == WHIT_OK) status = find_closing(l, error);
    if (status != WHIT_OK) {
        whit_local_close(l);
        *local = NULL;
    }
    return status;
}

void whit_local_close(whit_local_model *l)
{
    if (!l) return;
    whit_conversation_close(l->conversation);
    whit_chat_template_close(l->chat);
    whit_grammar_vocabulary_close(l->vocabulary);
    whit_buf_free(&l->text);
    free(l->closing);
    free(l);
}

whit_agent_model whit_local_as_model(whit_local_model *l)
{
    /* Number of bytes for the messages: three bytes per token are assumed, and the answer and 1,024 tokens are
     * reserved. */
    uint32_t n_ctx = whit_session_context_size(l->session);
    size_t room = n_ctx > l->options.n_tokens + 1024 ? n_ctx - l->options.n_tokens - 1024 : 512;
    return (whit_agent_model){.ask = ask_model, .user = l, .context_bytes = room * 3};
}
