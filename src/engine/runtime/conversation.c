/* SPDX-License-Identifier: MIT
 * Generates the answers of a conversation: makes a prompt of its messages, runs a generation, and appends the generated
 * text as a message. conversation_messages.c manages the messages themselves. */
#include "runtime/conversation.h"

#include "base/items.h"
#include "base/json.h"
#include "base/options.h"
#include "runtime/answer.h"
#include "runtime/chat.h"
#include "runtime/session.h"

whit_status whit_conversation_open(whit_session *session, uint32_t sequence, const whit_chat_template *chat,
                                   whit_conversation **out, whit_error *error)
{
    WHIT_NEED(out);
    *out = NULL;
    WHIT_NEED(session);
    WHIT_NEED(chat);
    WHIT_TRY(whit_session_check_sequence(session, sequence, error));
    const whit_allocator *allocator = session->allocator;
    whit_conversation *c = whit_zalloc(allocator, sizeof *c);
    if (!c) return whit_fail_memory(error, "the conversation", sizeof *c);
    *c = (whit_conversation){.session = session,
                             .chat = chat,
                             .allocator = allocator,
                             .sequence = sequence,
                             .messages = {.allocator = allocator},
                             .call_texts = {.allocator = allocator},
                             .tools = {.allocator = allocator},
                             .held = {.allocator = allocator}};
    *out = c;
    return WHIT_OK;
}

void whit_conversation_close(whit_conversation *c)
{
    if (!c) return;
    whit_conversation_keep(c, 0);
    whit_buf_free(&c->messages);
    whit_buf_free(&c->call_texts);
    whit_buf_free(&c->tools);
    whit_buf_free(&c->held);
    whit_grammar_vocabulary_close(c->vocabulary);
    whit_chat_prompt_close(c->prompt);
    whit_free(c->allocator, c, sizeof *c);
}

/* Returns the maximum number of tokens of prompt and answer together, which is practically unlimited in an endless
 * session. */
static size_t limit_of(const whit_conversation *c)
{
    return c->session->options.endless ? UINT32_MAX / 2 : whit_session_context_size(c->session);
}

/* ---- tools ---------------------------------------------------------------------------------- */

whit_status whit_conversation_set_tools(whit_conversation *c, const char *tools, size_t tools_bytes, whit_error *error)
{
    WHIT_NEED(c);
    whit_json json = {0};
    whit_buf copy = {.allocator = c->allocator};
    bool is_strict = false;
    if (tools) {
        WHIT_TRY(whit_json_parse("tools", tools, tools_bytes, c->allocator, &json, error));
        const bool is_list = whit_json_type_of(&json, WHIT_JSON_ROOT) == WHIT_JSON_ARRAY;
        const size_t n = is_list ? whit_json_count(&json, WHIT_JSON_ROOT) : 0;
        for (uint32_t at = n ? whit_json_first(&json, WHIT_JSON_ROOT) : WHIT_JSON_NONE; at != WHIT_JSON_NONE;
             at = whit_json_next(&json, WHIT_JSON_ROOT, at))
            is_strict |=
                whit_json_bool(&json, whit_json_get(&json, whit_json_get(&json, at, "function"), "strict"), false);
        whit_json_close(&json);
        if (!is_list) return whit_fail(error, WHIT_ERROR_ARGUMENT, "tools: expected a JSON list");
        if (n && !whit_chat_template_takes_tools(c->chat))
            return whit_fail(
                error, WHIT_ERROR_UNSUPPORTED,
                "the model's chat template has no place for tools: leave tools out, or choose another template");
        if (n && !whit_buf_append(&copy, tools, tools_bytes)) return whit_fail_memory(error, "the tools", tools_bytes);
    }
    whit_buf_free(&c->tools);
    c->tools = copy;
    c->is_strict = is_strict;
    return WHIT_OK;
}

/* Grammar that constrains the calls of one answer, and the stages of the answer's generation. */
struct form {
    whit_grammar *grammar;
    whit_grammar_state *state;
    whit_thinking_limit *limit;
    whit_stage stage, limit_stage;
    const whit_stage *stages[17];
    size_t n_stages;
};

static void close_form(struct form *form)
{
    whit_grammar_state_close(form->state);
    whit_grammar_close(form->grammar);
    whit_thinking_limit_close(form->limit);
}

static whit_status open_form(whit_conversation *c, const whit_answer_options *options, struct form *form,
                             whit_error *error)
{
    const bool is_required = options->choice == WHIT_CALL_REQUIRED || options->call_name;
    const bool is_plain = whit_chat_template_is_plain(c->chat) && !options->n_stages;
    if (options->n_stages > 15)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%zu stages, but at most 15 are possible", options->n_stages);
    for (; form->n_stages < options->n_stages; form->n_stages++)
        form->stages[form->n_stages] = options->stages[form->n_stages];
    if (options->n_thinking_tokens)
        WHIT_TRY(whit_thinking_limit_open(c->chat, c->prompt, options->n_thinking_tokens, &form->limit, error));
    if (form->limit) {
        form->limit_stage = whit_thinking_limit_stage(form->limit);
        form->stages[form->n_stages++] = &form->limit_stage;
    }
    if (is_required && !c->tools.size_bytes)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "a call is required, but no tools are set: set tools first");
    const bool is_wanted = is_required || options->single_call || c->is_strict;
    if (!c->tools.size_bytes || !(is_wanted || is_plain)) return WHIT_OK;
    whit_call_options calls = whit_call_options_default();
    calls.tools = whit_chars(&c->tools);
    calls.tools_bytes = c->tools.size_bytes;
    calls.name = options->call_name;
    calls.single = options->single_call;
    calls.choice = is_required ? WHIT_CALL_REQUIRED : WHIT_CALL_AUTO;
    if (!c->vocabulary) {
        whit_status status = whit_chat_template_keep_special(c->chat)
            ? whit_call_vocabulary_open(c->chat, &c->vocabulary, error)
            : whit_grammar_vocabulary_open(c->session->model, &c->vocabulary, error);
        /* Without a grammar, a template that describes tools in the prompt still works. */
        if (status == WHIT_ERROR_UNSUPPORTED && !is_wanted) return WHIT_OK;
        WHIT_TRY(status);
    }
    WHIT_TRY(whit_call_grammar_open(c->chat, c->prompt, c->vocabulary, &calls, &form->grammar, error));
    WHIT_TRY(whit_grammar_state_open(form->grammar, &form->state, error));
    form->stage = whit_grammar_stage(form->state);
    /* added last, because it checks the tokens that the other stages allow */
    form->stages[form->n_stages++] = &form->stage;
    return WHIT_OK;
}

/* ---- prompts -------------------------------------------------------------------------------- */

static whit_status render(whit_conversation *c, whit_thinking thinking, whit_error *error)
{
    const size_t n_system = whit_conversation_n_system(c);
    whit_chat_request request = whit_chat_request_default();
    whit_buf messages = {.allocator = c->allocator};
    whit_chat_prompt *prompt = NULL;
    whit_status status = whit_fail_memory(error, "the conversation", c->messages.size_bytes);
    if (whit_conversation_write(c, n_system, n_system + c->n_left_out, &messages)) {
        request.messages = whit_chars(&messages);
        request.messages_bytes = messages.size_bytes;
        request.tools = c->tools.size_bytes ? whit_chars(&c->tools) : NULL;
        request.tools_bytes = c->tools.size_bytes;
        request.thinking = thinking;
        status = whit_chat_render(c->chat, &request, &prompt, error);
    }
    whit_buf_free(&messages);
    WHIT_TRY(status);
    whit_chat_prompt_close(c->prompt);
    c->prompt = prompt;
    return WHIT_OK;
}

static size_t n_prompt_ids(const whit_conversation *c)
{
    size_t n;
    (void)whit_chat_prompt_ids(c->prompt, &n);
    return n;
}

/* Leaves out one more turn, up to the next user message; returns false if only the last turn remains. */
static bool leave_out_turn(whit_conversation *c)
{
    size_t first = whit_conversation_n_system(c) + c->n_left_out;
    for (size_t i = first + 1; i < whit_conversation_count(c); i++)
        if (whit_messages_of(c)[i].role == WHIT_ROLE_USER) {
            c->n_left_out += i - first;
            return true;
        }
    return false;
}

/* Renders a prompt that leaves room for an answer. If turns must be left out, more than necessary are left out, so that
 * the next few prompts need not leave out others: each time the prefix changes, and the rest of the prompt must be
 * computed again. */
static whit_status make_prompt(whit_conversation *c, const whit_answer_options *options, whit_error *error)
{
    size_t n_ctx = limit_of(c), room = n_ctx / 4, n_before = c->n_left_out;
    if (!whit_conversation_count(c))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "the conversation has no message to answer: append one");
    if (whit_conversation_waits(c)) {
        const whit_conversation_call *call = whit_conversation_next_call(c);
        return call ? whit_fail(error, WHIT_ERROR_ARGUMENT,
                                "the call of '%s' has no result yet: append its result first", call->name)
                    : whit_fail_memory(error, "a call", 0);
    }
    if (options->n_tokens < room) room = options->n_tokens;
    WHIT_TRY(render(c, options->thinking, error));
    size_t limit = n_ctx - (room ? room : 1);
    size_t n_least = options->keep_all ? options->n_room : 1;
    while (!options->keep_all && n_prompt_ids(c) > limit && leave_out_turn(c)) {
        limit = n_ctx / 2;
        whit_status status = render(c, options->thinking, error);
        if (status != WHIT_OK) {
            c->n_left_out = n_before;
            return status;
        }
    }
    if (n_prompt_ids(c) + n_least <= n_ctx) return WHIT_OK;
    c->n_left_out = n_before;
    return whit_fail(error, WHIT_ERROR_LIMIT,
                     "the message and the texts that must stay with it have %zu tokens, but the context has "
                     "%zu: shorten the message, or ask for a larger context",
                     n_prompt_ids(c), n_ctx);
}

/* Makes the sequence contain the longest cached prefix of the prompt; in an endless session, truncates it to the prefix
 * that it shares with the prompt. At least the prompt's last token is left out, because it must be evaluated for its
 * logits. *n_kept: number of kept tokens. */
static whit_status keep_common(whit_conversation *c, uint32_t *n_kept, whit_error *error)
{
    size_t n_ids, n_held, common = 0;
    const int32_t *held = whit_conversation_ids(c, &n_held), *ids = whit_chat_prompt_ids(c->prompt, &n_ids);
    if (c->session->options.endless) { /* the session does not store ids beyond its context */
        while (common < n_ids - 1 && common < n_held && held[common] == ids[common]) common++;
        WHIT_TRY(whit_session_truncate(c->session, c->sequence, (uint32_t)common, error));
        *n_kept = whit_session_position(c->session, c->sequence); /* the sequence may now be shorter than `common` */
    } else {
        WHIT_TRY(whit_session_reuse(c->session, c->sequence, ids, n_ids, n_kept, error));
    }
    c->n_given = n_ids;
    c->held.size_bytes = 0;
    /* Reserve memory for the whole context, so that nothing is allocated while tokens are generated. */
    if (whit_buf_reserve(&c->held, whit_session_context_size(c->session) * sizeof *ids) &&
        whit_buf_append(&c->held, ids, n_ids * sizeof *ids))
        return WHIT_OK;
    c->held.failed = false;
    return whit_fail_memory(error, "the conversation", n_ids * sizeof *ids);
}

/* ---- answers -------------------------------------------------------------------------------- */

struct answering {
    whit_conversation *c;
    const whit_answer_options *options;
    whit_chat_parser *parser;
    bool has_text, failed; /* failed: there was no memory for the text */
};

static bool on_text(void *user, const char *text, size_t n)
{
    struct answering *a = user;
    whit_status status = whit_chat_parser_push(a->parser, text, n, NULL);
    a->has_text |= n > 0;
    a->failed |= status == WHIT_ERROR_MEMORY;
    return (!a->options->on_text || a->options->on_text(a->options->user, text, n)) && status == WHIT_OK;
}

static bool on_token(void *user, int32_t id)
{
    struct answering *a = user;
    if (!a->options->ignore_end && id >= 0 && id == whit_chat_template_end(a->c->chat)) return false;
    /* A last token beyond the capacity of the sequence is not stored; it is not fed to the session either. */
    if (a->c->held.size_bytes < limit_of(a->c) * sizeof id && !whit_buf_append(&a->c->held, &id, sizeof id))
        a->failed = true;
    return !a->failed;
}

/* Truncates `held` to the ids that are in the sequence, plus one that was picked but not fed. */
static void settle_held(whit_conversation *c)
{
    size_t n = (whit_session_position(c->session, c->sequence) + (size_t)1) * sizeof(int32_t);
    if (c->held.size_bytes > n) c->held.size_bytes = n;
}

static whit_status generate(struct answering *a, whit_sampler *sampler, const struct form *form, uint32_t n_kept,
                            whit_answer *answer, whit_error *error)
{
    whit_conversation *c = a->c;
    const whit_answer_options *options = a->options;
    const char *stops[33], *own_stop = whit_chat_template_stop(c->chat);
    whit_generate_options generate = whit_generate_options_default();
    whit_generate_result result = whit_generate_result_default();
    size_t n_ids, n_stop = 0;
    const int32_t *ids = whit_chat_prompt_ids(c->prompt, &n_ids);
    uint32_t room = (uint32_t)(limit_of(c) - n_ids);
    if (options->n_stop > 32)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%zu stop strings, but at most 32 are possible", options->n_stop);
    for (; n_stop < options->n_stop; n_stop++) stops[n_stop] = options->stop[n_stop];
    if (own_stop) stops[n_stop++] = own_stop;
    generate.sequence = c->sequence;
    generate.n_present = n_kept;
    generate.n_tokens = options->n_tokens < room ? options->n_tokens : room;
    generate.n_draft_tokens = options->n_draft_tokens;
    generate.ignore_end = options->ignore_end;
    generate.stop = stops;
    generate.n_stop = n_stop;
    generate.stages = form->stages;
    generate.n_stages = form->n_stages;
    generate.keep_special = c->tools.size_bytes && whit_chat_template_keep_special(c->chat);
    generate.on_text = on_text;
    generate.on_token = on_token;
    generate.user = a;
    whit_status status = whit_generate(c->session, sampler, ids, n_ids, &generate, &result, error);
    settle_held(c);
    answer->n_kept = n_kept;
    answer->n_prompt = result.n_prompt_tokens;
    answer->n_generated = result.n_generated_tokens;
    answer->prompt_ns = result.prompt_ns;
    answer->generate_ns = result.generate_ns;
    answer->finish = result.finish;
    answer->is_held = form->grammar != NULL;
    answer->full = status == WHIT_OK && result.finish == WHIT_FINISH_LENGTH && generate.n_tokens == room &&
        options->n_tokens > room;
    return a->failed ? whit_fail_memory(error, "the answer", 0) : status;
}

/* Returns the number of calls in all messages, so that every call of the conversation gets a different id. */
static uint32_t count_calls(const whit_conversation *c)
{
    uint32_t n = 0;
    for (size_t i = 0; i < whit_conversation_count(c); i++) n += whit_messages_of(c)[i].n_calls;
    return n;
}

/* Appends the parsed answer to the messages. */
static whit_status add_answer(struct answering *a, whit_answer *answer, whit_error *error)
{
    size_t n;
    whit_status status = whit_chat_parser_flush(a->parser, error);
    if (status != WHIT_OK && status != WHIT_ERROR_CANCELLED) return status;
    const char *message = whit_chat_parser_message(a->parser, &n);
    answer->n_calls = whit_chat_parser_n_calls(a->parser);
    return whit_conversation_add(a->c, WHIT_ROLE_ASSISTANT, answer->n_calls, message, n, error);
}

/* Generates the answer and appends it to the messages; a failed answer is appended if it has any text. */
static whit_status generate_and_add(whit_conversation *c, whit_sampler *sampler, const whit_answer_options *options,
                                    whit_answer *answer, whit_error *error)
{
    struct answering a = {.c = c, .options = options};
    struct form form = {.n_stages = 0};
    whit_error inner;
    uint32_t n_kept = 0;
    whit_status status = whit_chat_parser_open(c->chat, c->prompt, c->tools.size_bytes > 0, options->on_event,
                                               options->user, &a.parser, error);
    if (status == WHIT_OK) status = whit_answer_prepare(a.parser, count_calls(c), error);
    if (status == WHIT_OK) status = open_form(c, options, &form, error);
    if (status == WHIT_OK) status = keep_common(c, &n_kept, error);
    if (status == WHIT_OK) status = generate(&a, sampler, &form, n_kept, answer, error);
    if (status == WHIT_OK)
        status = add_answer(&a, answer, error);
    else if (a.has_text)
        add_answer(&a, answer, &inner);
    close_form(&form);
    whit_chat_parser_close(a.parser);
    return status;
}

whit_status whit_conversation_answer(whit_conversation *c, whit_sampler *sampler, const whit_answer_options *given,
                                     whit_answer *result, whit_error *error)
{
    WHIT_NEED(c);
    WHIT_NEED(sampler);
    whit_answer_options options = whit_answer_options_default();
    whit_answer answer = whit_answer_default();
    WHIT_TRY(whit_options_read(&options, sizeof options, given, "whit_answer_options", error));
    WHIT_NEED_ARRAY(options.stop, options.n_stop);
    WHIT_NEED_ARRAY(options.stages, options.n_stages);
    const size_t n_left_out = c->n_left_out, n_messages = whit_conversation_count(c);
    whit_status status = make_prompt(c, &options, error);
    if (status == WHIT_OK) {
        answer.n_left_out = (uint32_t)(c->n_left_out - n_left_out);
        status = generate_and_add(c, sampler, &options, &answer, error);
    }
    /* The next prompt may have space for messages that this prompt left out. */
    if (whit_conversation_count(c) == n_messages) {
        c->n_left_out = n_left_out;
        answer.n_left_out = 0;
    }
    if (result) {
        const size_t their = result->struct_bytes, n = their < sizeof answer ? their : sizeof answer;
        if (n > sizeof n) memcpy((uint8_t *)result + sizeof n, (const uint8_t *)&answer + sizeof n, n - sizeof n);
    }
    return status;
}

const char *whit_conversation_prompt(const whit_conversation *c, size_t *text_bytes)
{
    *text_bytes = 0;
    return c->prompt ? whit_chat_prompt_text(c->prompt, text_bytes) : "";
}

const int32_t *whit_conversation_ids(const whit_conversation *c, size_t *n_ids)
{
    uint32_t position = whit_session_position(c->session, c->sequence);
    *n_ids = c->held.size_bytes / sizeof(int32_t);
    if (*n_ids > position) *n_ids = position;
    return WHIT_ITEMS(const int32_t, &c->held);
}

const int32_t *whit_conversation_turn(const whit_conversation *c, size_t *n_ids, size_t *n_given)
{
    *n_ids = c->held.size_bytes / sizeof(int32_t);
    *n_given = c->n_given < *n_ids ? c->n_given : *n_ids;
    return WHIT_ITEMS(const int32_t, &c->held);
}

whit_status whit_conversation_resume(whit_conversation *c, const int32_t *ids, size_t n_ids, whit_error *error)
{
    c->held.size_bytes = 0;
    c->n_given = n_ids;
    if (whit_buf_reserve(&c->held, (whit_session_context_size(c->session) + (size_t)1) * sizeof *ids) &&
        whit_buf_append(&c->held, ids, n_ids * sizeof *ids))
        return WHIT_OK;
    c->held.failed = false;
    return whit_fail_memory(error, "the conversation", n_ids * sizeof *ids);
}
