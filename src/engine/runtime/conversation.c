/* SPDX-License-Identifier: MIT */
#include "runtime/conversation.h"

#include "runtime/session.h"

struct whit_conversation {
    whit_session *session;
    const whit_prompter *prompter;
    const whit_allocator *allocator;
    uint32_t sequence;
    whit_messages messages;
    whit_prompt prompt; /* the prompt of the last answer */
    whit_buf held;      /* int32_t[]: the ids in the sequence, and maybe one more that was picked last */
    size_t n_given;     /* how many of these ids belong to the last prompt */
};

whit_status whit_conversation_open(whit_session *session, uint32_t sequence, const whit_prompter *prompter,
                                   whit_conversation **out, whit_error *error)
{
    *out = NULL;
    const whit_allocator *allocator = session->allocator;
    whit_conversation *c = whit_zalloc(allocator, sizeof *c);
    if (!c) return whit_fail_memory(error, "the conversation", sizeof *c);
    *c = (whit_conversation){.session = session,
                             .prompter = prompter,
                             .allocator = allocator,
                             .sequence = sequence,
                             .messages = {.items = {.allocator = allocator}},
                             .prompt = {.text = {.allocator = allocator}, .ids = {.allocator = allocator}},
                             .held = {.allocator = allocator}};
    *out = c;
    return WHIT_OK;
}

void whit_conversation_close(whit_conversation *c)
{
    if (!c) return;
    whit_messages_free(&c->messages);
    whit_prompt_free(&c->prompt);
    whit_buf_free(&c->held);
    whit_free(c->allocator, c, sizeof *c);
}

whit_messages *whit_conversation_messages(whit_conversation *c)
{
    return &c->messages;
}

/* Maximum number of tokens of prompt and answer together; practically unlimited in an endless session. */
static size_t limit_of(const whit_conversation *c)
{
    return c->session->options.endless ? UINT32_MAX / 2 : whit_session_context_size(c->session);
}

/* ---- prompts -------------------------------------------------------------------------------- */

static size_t n_system(const whit_conversation *c)
{
    return whit_messages_system(&c->messages) != NULL;
}

static whit_status render(whit_conversation *c, whit_thinking thinking, whit_error *error)
{
    const whit_message *items = whit_messages_at(&c->messages, 0);
    size_t n = whit_messages_count(&c->messages), first = n_system(c) + c->messages.n_left_out;
    whit_buf chosen = {.allocator = c->allocator};
    whit_status status;
    if (whit_buf_append(&chosen, items, n_system(c) * sizeof *items) &&
        whit_buf_append(&chosen, items + first, (n - first) * sizeof *items))
        status = whit_prompter_render(c->prompter, (const whit_message *)(void *)chosen.data,
                                      chosen.size_bytes / sizeof *items, thinking, &c->prompt, error);
    else
        status = whit_fail_memory(error, "the conversation", n * sizeof *items);
    whit_buf_free(&chosen);
    return status;
}

/* Leaves out one more turn, up to the next question; false if only the last turn remains. */
static bool leave_out_turn(whit_conversation *c)
{
    size_t first = n_system(c) + c->messages.n_left_out;
    for (size_t i = first + 1; i < whit_messages_count(&c->messages); i++)
        if (whit_messages_at(&c->messages, i)->role == WHIT_ROLE_USER) {
            c->messages.n_left_out += i - first;
            return true;
        }
    return false;
}

/* Renders a prompt that leaves room for an answer. Once turns must go, enough of them go that the
 * next few questions need not drop any: every drop makes the rest of the prompt new. */
static whit_status make_prompt(whit_conversation *c, const whit_answer_options *options, whit_error *error)
{
    size_t n_ctx = limit_of(c), room = n_ctx / 4, n_before = c->messages.n_left_out;
    if (!whit_messages_count(&c->messages))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "there is no message to answer");
    if (options->n_tokens < room) room = options->n_tokens;
    WHIT_TRY(render(c, options->thinking, error));
    size_t limit = n_ctx - (room ? room : 1);
    while (whit_prompt_n_ids(&c->prompt) > limit && leave_out_turn(c)) {
        limit = n_ctx / 2;
        whit_status status = render(c, options->thinking, error);
        if (status != WHIT_OK) {
            c->messages.n_left_out = n_before;
            return status;
        }
    }
    if (whit_prompt_n_ids(&c->prompt) < n_ctx) return WHIT_OK;
    c->messages.n_left_out = n_before;
    return whit_fail(error, WHIT_ERROR_LIMIT,
                     "the message and what must stand around it are %zu tokens, the context has "
                     "%zu: say it shorter, or ask for a larger context",
                     whit_prompt_n_ids(&c->prompt), n_ctx);
}

/* Truncates the sequence to its common prefix with the prompt. At least the prompt's last token is evaluated, for its
 * logits. */
static whit_status keep_common(whit_conversation *c, uint32_t *n_kept, whit_error *error)
{
    const int32_t *held = (const int32_t *)(const void *)c->held.data, *ids = whit_prompt_ids(&c->prompt);
    size_t n = whit_prompt_n_ids(&c->prompt) - 1, n_held;
    (void)whit_conversation_ids(c, &n_held);
    if (n > n_held) n = n_held;
    size_t common = 0;
    while (common < n && held[common] == ids[common]) common++;
    WHIT_TRY(whit_session_truncate(c->session, c->sequence, (uint32_t)common, error));
    *n_kept = whit_session_position(c->session, c->sequence); /* maybe less */
    c->n_given = whit_prompt_n_ids(&c->prompt);
    c->held.size_bytes = 0;
    /* Reserve memory for the whole context, so that nothing is allocated while tokens are generated. */
    if (whit_buf_reserve(&c->held, whit_session_context_size(c->session) * sizeof *ids) &&
        whit_buf_append(&c->held, ids, whit_prompt_n_ids(&c->prompt) * sizeof *ids))
        return WHIT_OK;
    c->held.failed = false;
    return whit_fail_memory(error, "the conversation", c->prompt.ids.size_bytes);
}

/* ---- answers -------------------------------------------------------------------------------- */

struct answering {
    whit_conversation *c;
    const whit_answer_options *options;
    whit_thinking_stream thinking;
    whit_buf text;
    bool failed; /* no memory for the text */
};

/* Bytes reserved for the text before the first token; longer text is reallocated. */
enum { TEXT_BYTES = 1 << 16 };

static bool on_part(void *user, const char *text, size_t n, bool thinking)
{
    struct answering *a = user;
    return !a->options->on_part || a->options->on_part(a->options->user, text, n, thinking);
}

static bool on_text(void *user, const char *text, size_t n)
{
    struct answering *a = user;
    a->failed |= !whit_buf_append(&a->text, text, n);
    return whit_thinking_push(&a->thinking, text, n) && !a->failed;
}

static bool on_token(void *user, int32_t id)
{
    struct answering *a = user;
    if (!a->options->ignore_end && whit_prompter_ends_turn(a->c->prompter, id)) return false;
    /* The last token may be more than the sequence can hold; it is not fed either. */
    if (a->c->held.size_bytes < limit_of(a->c) * sizeof id && !whit_buf_append(&a->c->held, &id, sizeof id))
        a->failed = true;
    return !a->failed;
}

/* Cuts `held` to the ids that are in the sequence, plus one that was picked but not fed. */
static void settle_held(whit_conversation *c)
{
    size_t n = (whit_session_position(c->session, c->sequence) + (size_t)1) * sizeof(int32_t);
    if (c->held.size_bytes > n) c->held.size_bytes = n;
}

static whit_status generate(struct answering *a, whit_sampler *sampler, uint32_t n_kept, whit_answer *answer,
                            whit_error *error)
{
    whit_conversation *c = a->c;
    const whit_answer_options *options = a->options;
    const char *stops[33];
    whit_generate_options generate = whit_generate_options_default();
    whit_generate_result result = whit_generate_result_default();
    size_t n_ids = whit_prompt_n_ids(&c->prompt), n_stop = 0;
    uint32_t room = (uint32_t)(limit_of(c) - n_ids);
    if (options->n_stop > 32)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%zu stop strings; 32 are the most", options->n_stop);
    for (; n_stop < options->n_stop; n_stop++) stops[n_stop] = options->stop[n_stop];
    if (whit_prompter_stop(c->prompter)) stops[n_stop++] = whit_prompter_stop(c->prompter);
    generate.sequence = c->sequence;
    generate.n_present = n_kept;
    generate.n_tokens = options->n_tokens < room ? options->n_tokens : room;
    generate.n_draft_tokens = options->n_draft_tokens;
    generate.ignore_end = options->ignore_end;
    generate.stop = stops;
    generate.n_stop = n_stop;
    generate.stages = options->stages;
    generate.n_stages = options->n_stages;
    generate.on_text = on_text;
    generate.on_token = on_token;
    generate.user = a;
    whit_status status =
        whit_generate(c->session, sampler, whit_prompt_ids(&c->prompt), n_ids, &generate, &result, error);
    settle_held(c);
    answer->n_kept = n_kept;
    answer->n_prompt = result.n_prompt_tokens;
    answer->n_generated = result.n_generated_tokens;
    answer->prompt_ns = result.prompt_ns;
    answer->generate_ns = result.generate_ns;
    answer->finish = result.finish;
    answer->full = status == WHIT_OK && result.finish == WHIT_FINISH_LENGTH && generate.n_tokens == room &&
        options->n_tokens > room;
    return a->failed ? whit_fail_memory(error, "the answer", a->text.size_bytes) : status;
}

/* Generates the answer and appends it to the messages; a failed answer is appended if it has any text. */
static whit_status generate_and_add(whit_conversation *c, whit_sampler *sampler, const whit_answer_options *options,
                                    uint32_t n_kept, whit_answer *answer, whit_error *error)
{
    struct answering a = {.c = c,
                          .options = options,
                          .thinking = {.open = whit_prompter_thinking_open(c->prompter),
                                       .close = whit_prompter_thinking_close(c->prompter),
                                       .inside = c->prompt.thinking,
                                       .on_part = on_part,
                                       .user = &a},
                          .text = {.allocator = c->allocator}};
    whit_status status = whit_buf_reserve(&a.text, TEXT_BYTES) ? generate(&a, sampler, n_kept, answer, error)
                                                               : whit_fail_memory(error, "the answer", TEXT_BYTES);
    whit_thinking_flush(&a.thinking);
    if (status == WHIT_OK || a.text.size_bytes) {
        whit_error inner;
        whit_status added =
            whit_messages_add(&c->messages, WHIT_ROLE_ASSISTANT, (const char *)a.text.data, a.text.size_bytes, &inner);
        if (status == WHIT_OK && added != WHIT_OK) {
            status = added;
            if (error) *error = inner;
        }
    }
    whit_buf_free(&a.text);
    return status;
}

whit_status whit_conversation_answer(whit_conversation *c, whit_sampler *sampler, const whit_answer_options *options,
                                     whit_answer *answer, whit_error *error)
{
    whit_answer own;
    if (!answer) answer = &own;
    *answer = (whit_answer){0};
    const size_t n_left_out = c->messages.n_left_out, n_messages = whit_messages_count(&c->messages);
    uint32_t n_kept = 0;
    WHIT_TRY(make_prompt(c, options, error));
    answer->n_left_out = (uint32_t)(c->messages.n_left_out - n_left_out);
    whit_status status = keep_common(c, &n_kept, error);
    if (status == WHIT_OK) status = generate_and_add(c, sampler, options, n_kept, answer, error);
    if (whit_messages_count(&c->messages) == n_messages) { /* the next prompt may have room for what this one had not */
        c->messages.n_left_out = n_left_out;
        answer->n_left_out = 0;
    }
    return status;
}

const char *whit_conversation_prompt(const whit_conversation *c, size_t *n_bytes)
{
    *n_bytes = c->prompt.text.size_bytes;
    return *n_bytes ? (const char *)c->prompt.text.data : "";
}

const int32_t *whit_conversation_ids(const whit_conversation *c, size_t *n_ids)
{
    uint32_t position = whit_session_position(c->session, c->sequence);
    *n_ids = c->held.size_bytes / sizeof(int32_t);
    if (*n_ids > position) *n_ids = position;
    return (const int32_t *)(const void *)c->held.data;
}

const int32_t *whit_conversation_turn(const whit_conversation *c, size_t *n_ids, size_t *n_given)
{
    *n_ids = c->held.size_bytes / sizeof(int32_t);
    *n_given = c->n_given < *n_ids ? c->n_given : *n_ids;
    return (const int32_t *)(const void *)c->held.data;
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
