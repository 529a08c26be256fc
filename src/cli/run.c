/* SPDX-License-Identifier: MIT
 * Implements whit run, which reads a prompt and prints the model's answer to it, or continues it as a text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/items.h"
#include "base/path.h"
#include "cli/names.h"
#include "cli/parts.h"
#include "cli/ranks.h"
#include "cli/stage.h"
#include "cli/tales.h"
#include "cli/keep.h"
#include "cli/talk.h"
#include "cli/verbs.h"
#include "cli/view.h"

struct run_values {
    const char *prompt, *prompt_file, *system, *template, *program;
    int32_t n_tokens;
    uint32_t n_draft;
    bool no_display_prompt, ignore_end, json, chat, raw, no_statistics;
    cli_list stops;
    cli_keep_flags keep;
    cli_model_flags model;
    cli_session_flags session;
    cli_adapter_flags adapters;
    cli_grammar_flags grammar;
    cli_sampler_flags sampler;
};
#define TALES_BEGIN "Once upon a time"
enum { NOT_GIVEN = INT32_MIN, USUAL_TOKENS = 128 };
static const struct run_values defaults = {.n_draft = WHIT_DRAFT_BY_COST,
                                           .n_tokens = NOT_GIVEN,
                                           .session = {.n_sinks = CLI_SINKS},
                                           .sampler = CLI_SAMPLER_DEFAULTS};

#define AT(member) offsetof(struct run_values, member)
static const cli_option options[] = {
    {"-p, --prompt", CLI_TEXT, AT(prompt), "TEXT", "The prompt; \"\" starts from the beginning-of-text token alone."},
    {"-f, --file", CLI_FILE, AT(prompt_file), "FILE",
     "Read the prompt from a file, without its last newline; - is stdin. Text on stdin is appended to a prompt."},
    {"-n, --predict, --n-predict", CLI_INT, AT(n_tokens), "N",
     "Number of tokens, or -1 for no limit but the context, which -2 means too; by default -1 for an answer and the "
     "built-in model, else 128.",
     -2, 1 << 30},
    {"--raw, -no-cnv, --no-conversation", CLI_FLAG, AT(raw), NULL,
     "Continue the prompt as a text, also where the model has a chat template."},
    {"--chat", CLI_FLAG, AT(chat), NULL,
     "Answer the prompt as a message, and print the answer alone; the default for a model with a chat template."},
    {"-sys, --system-prompt", CLI_TEXT, AT(system), "TEXT", "The system message; means --chat."},
    {"--chat-template, --template, --chat-template-file", CLI_FILE, AT(template), "NAME|FILE",
     "A chat template in place of the model's own; means --chat."},
    {"--spec", CLI_COUNT, AT(n_draft), "N", CLI_DRAFT_HELP, 0, 31},
    CLI_DRAFT_OPTION(AT(session)),
    {"-r, --reverse-prompt, --stop", CLI_REPEAT, AT(stops), "TEXT", "Stop before this text; may be given again."},
    {"--no-display-prompt", CLI_FLAG, AT(no_display_prompt), NULL, "Print the continuation alone."},
    {"--program", CLI_FILE, AT(program), "FILE", "A program of the array language that changes each token's logits."},
    {"--ignore-eos", CLI_FLAG, AT(ignore_end), NULL, "Go on after the end-of-text token."},
    {"--no-stats", CLI_FLAG, AT(no_statistics), NULL, "Leave out the line of statistics."},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object when done."},
    CLI_KEEP_OPTIONS(AT(keep)),
    CLI_ENDLESS_OPTIONS(AT(session)),
    CLI_EXPERTS_OPTION(AT(session)),
    {0},
};

struct output {
    cli_call *call;
    whit_buf *kept; /* receives the text for --json; NULL: the text is printed immediately */
    whit_buf *ids;  /* int32_t[]; picked ids are appended to it; NULL: they are not collected */
};

static bool on_text(void *user, const char *text, size_t text_bytes)
{
    struct output *output = user;
    if (output->kept) return whit_buf_append(output->kept, text, text_bytes);
    return cli_write_data(output->call, text, text_bytes) && cli_flush(output->call);
}

static bool is_chat(const struct run_values *values)
{
    return values->chat || values->system || values->template;
}

/* Returns whether the options request that the prompt is continued as a text. If neither this nor is_chat is true, the
 * model's chat template decides. */
static bool is_text(const struct run_values *values)
{
    return values->raw || values->keep.path || values->session.endless || cli_is_tales(values->model.path) ||
        (values->prompt && !values->prompt[0]);
}

static int take_text(cli_call *call, const char *given, cli_text *prompt)
{
    prompt->size_bytes = strlen(given);
    prompt->data = strdup(given);
    return prompt->data ? CLI_OK : cli_fail(call, CLI_LIMIT, "not enough memory for the prompt");
}

static void drop_line_feed(cli_text *text)
{
    if (text->size_bytes && text->data[text->size_bytes - 1] == '\n') text->data[--text->size_bytes] = 0;
}

/* Returns whether stdin is a pipe or a regular file, from which a prompt's text is read. A terminal, a socket or
 * /dev/null is not read. */
static bool is_piped(void)
{
    struct stat info;
    return fstat(STDIN_FILENO, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISREG(info.st_mode));
}

/* Appends the text on stdin, if there is any, to the prompt, after an empty line. Returns an exit status. */
static int append_input(cli_call *call, cli_text *prompt)
{
    enum { SILENT_MS = 1500 };
    cli_text more = {0};
    if (!is_piped()) return CLI_OK;
    struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&wait, 1, SILENT_MS) == 0)
        cli_note("waiting for the end of stdin, whose text is appended to the prompt ('</dev/null' appends none)");
    int status = cli_read_text(call, "-", &more);
    if (status == CLI_OK) drop_line_feed(&more);
    if (status == CLI_OK && more.size_bytes) {
        size_t n = prompt->size_bytes ? prompt->size_bytes + 2 : 0;
        char *both = malloc(n + more.size_bytes + 1);
        if (!both) status = cli_fail(call, CLI_LIMIT, "not enough memory for the prompt and the text of stdin");
        if (both) {
            if (n) memcpy(both, prompt->data, n - 2), memcpy(both + n - 2, "\n\n", 2);
            memcpy(both + n, more.data, more.size_bytes + 1);
            free(prompt->data);
            *prompt = (cli_text){both, n + more.size_bytes};
        }
    }
    free(more.data);
    return status;
}

/* Reads the prompt from the options and stdin. With the built-in model the prompt may be missing; TALES_BEGIN then
 * replaces it. Returns CLI_OK, or an exit status after a message. */
static int read_prompt(cli_call *call, const struct run_values *values, cli_text *prompt)
{
    const char *path = values->prompt_file, *given = values->prompt;
    bool tells = !path && !given && cli_is_tales(values->model.path) && !is_chat(values);
    if (tells && isatty(STDIN_FILENO)) given = TALES_BEGIN;
    if (!path && !given && isatty(STDIN_FILENO))
        return cli_fail(call, CLI_USAGE,
                        "no prompt: 'whit run MODEL \"TEXT\"' answers or continues a text, 'whit chat MODEL' is a "
                        "conversation");
    int status;
    if (!path && given)
        status = take_text(call, given, prompt);
    else
        status = cli_read_text(call, path ? path : "-", prompt);
    if (status == CLI_OK && (path || !given)) drop_line_feed(prompt);
    if (status == CLI_OK && (path ? strcmp(path, "-") != 0 : given != NULL)) return append_input(call, prompt);
    if (status != CLI_OK || prompt->size_bytes || !tells) return status;
    free(prompt->data);
    return take_text(call, TALES_BEGIN, prompt);
}

static const char *finish_name(whit_finish finish)
{
    static const char *const names[] = {"length", "end", "stop", "cancelled"};
    return names[finish];
}

static double rate(uint32_t n, uint64_t ns)
{
    return ns ? (double)n * 1e9 / (double)ns : 0;
}

static void print_statistics(const whit_session *session, const whit_generate_result *result, uint64_t seed)
{
    fprintf(stderr,
            "whit: prompt %u tokens in %.3f s (%.1f/s), generated %u in %.3f s (%.1f/s), "
            "context %u of %u, seed %" PRIu64 "\n",
            result->n_prompt_tokens, (double)result->prompt_ns / 1e9, rate(result->n_prompt_tokens, result->prompt_ns),
            result->n_generated_tokens, (double)result->generate_ns / 1e9,
            rate(result->n_generated_tokens, result->generate_ns), whit_session_position(session, 0),
            whit_session_context_size(session), seed);
}

static json_t *describe_answer(const char *prompt, size_t prompt_bytes, const whit_buf *text,
                               const whit_generate_result *result, uint64_t seed)
{
    /* JSON is UTF-8, but prompt and text may have any bytes: a text that is not UTF-8 becomes null. */
    json_t *given = json_stringn(prompt, prompt_bytes);
    json_t *written = json_stringn(text->data ? whit_chars(text) : "", text->size_bytes);
    json_t *asked = given ? given : json_null();
    json_t *said = written ? written : json_null();
    return json_pack("{s:o, s:o, s:i, s:i, s:f, s:f, s:s, s:I}", "prompt", asked, "text", said, "prompt_tokens",
                     (int)result->n_prompt_tokens, "generated_tokens", (int)result->n_generated_tokens,
                     "prompt_seconds", (double)result->prompt_ns / 1e9, "generate_seconds",
                     (double)result->generate_ns / 1e9, "finish", finish_name(result->finish), "seed",
                     (json_int_t)seed);
}

/* ---- one turn of a chat --------------------------------------------------------------------- */

static int print_answer(cli_call *call, cli_talk *talk, cli_keep *keep, const cli_grammar *grammar,
                        whit_sampler *sampler, uint64_t seed)
{
    const struct run_values *values = call->values;
    whit_buf kept = {0};
    whit_answer answer = whit_answer_default();
    whit_error error;
    cli_view view = cli_view_begin(call, false, false);
    struct output output = {.call = call, .kept = &kept};
    whit_answer_options wanted = whit_answer_options_default();
    if (values->n_tokens >= 0) wanted.n_tokens = (uint32_t)values->n_tokens;
    wanted.n_draft_tokens = values->n_draft;
    wanted.ignore_end = values->ignore_end;
    wanted.stop = values->stops.items;
    wanted.n_stop = values->stops.n;
    wanted.stages = grammar->stages;
    wanted.n_stages = grammar->n_stages;
    cli_view_receive(&view, false, &wanted);
    if (values->json) {
        wanted.on_event = NULL;
        wanted.on_text = on_text;
        wanted.user = &output;
    }
    cli_keep_begin(keep, sampler, grammar->n_stages);
    whit_status ended = whit_conversation_answer(talk->conversation, sampler, &wanted, &answer, &error);
    if (ended != WHIT_OK && ended != WHIT_ERROR_CANCELLED) {
        whit_buf_free(&kept);
        return cli_fail_error(call, &error);
    }
    if (values->json) {
        size_t prompt_bytes;
        const char *prompt = whit_conversation_prompt(talk->conversation, &prompt_bytes);
        whit_generate_result result = {.struct_bytes = sizeof result,
                                       .n_prompt_tokens = answer.n_prompt,
                                       .n_generated_tokens = answer.n_generated,
                                       .prompt_ns = answer.prompt_ns,
                                       .generate_ns = answer.generate_ns,
                                       .finish = answer.finish};
        cli_print_json(call, describe_answer(prompt, prompt_bytes, &kept, &result, seed));
    } else {
        cli_view_end(&view);
    }
    cli_flush(call);
    cli_talk_remarks(talk, &answer);
    cli_talk_remark_system(talk);
    if (!values->no_statistics) cli_talk_statistics(talk, &answer, seed);
    whit_buf_free(&kept);
    int status = CLI_OK;
    if (ended == WHIT_OK || answer.n_generated)
        status = cli_keep_conversation(call, keep, talk->conversation, sampler, answer.finish);
    return *cli_cancelled() ? CLI_INTERRUPTED : status;
}

/* Answers a prompt through the chat template. Takes ownership of `model`; if it is NULL, opens the model of the
 * options. Returns an exit status. */
static int run_chat(cli_call *call, whit_model *model)
{
    struct run_values *values = call->values;
    whit_sampler *sampler = NULL;
    cli_text prompt = {0};
    cli_grammar grammar = {0};
    cli_talk talk = {.model = model};
    cli_keep keep = {0};
    cli_stage stage;
    whit_error error;
    uint64_t seed;
    int status = cli_stage_open(call, values->program, &stage);
    if (status != CLI_OK) {
        cli_stage_close(&stage);
        whit_model_close(model);
        return status;
    }
    status = cli_talk_open(call, &values->model, &values->session, &values->adapters, values->template, values->n_draft,
                           &talk);
    if (status == CLI_OK) status = read_prompt(call, values, &prompt);
    if (status == CLI_OK) status = cli_keep_open(call, &values->keep, talk.session, "chat", &values->sampler, &keep);
    if (status == CLI_OK) status = cli_keep_resume(call, &keep, talk.conversation);
    if (status == CLI_OK) {
        cli_fill_sampler(&values->sampler, talk.model);
        status = cli_open_sampler(call, &values->sampler, talk.model, &seed, &sampler);
    }
    if (status == CLI_OK) {
        if ((values->system &&
             whit_conversation_set_system(talk.conversation, values->system, strlen(values->system), &error) !=
                 WHIT_OK) ||
            whit_conversation_say(talk.conversation, "user", prompt.data, prompt.size_bytes, &error) != WHIT_OK)
            status = cli_fail_error(call, &error);
    }
    if (status == CLI_OK) status = cli_open_grammar(call, &values->grammar, talk.model, &grammar);
    if (status == CLI_OK && stage.path && !stage.n_stages) status = cli_stage_begin(call, &stage, NULL, 0);
    cli_grammar_after(&grammar, stage.stages, stage.n_stages);
    if (status == CLI_OK) status = print_answer(call, &talk, &keep, &grammar, sampler, seed);
    cli_close_grammar(&grammar);
    whit_sampler_close(sampler);
    cli_stage_close(&stage);
    cli_keep_close(&keep);
    cli_talk_close(&talk);
    free(prompt.data);
    return status;
}

/* ---- a text --------------------------------------------------------------------------------- */

/* ids of a text in this order: n_held ids of its session file, the ids of the prompt, the picked ids */
struct text {
    cli_text prompt;
    whit_buf ids; /* int32_t[] */
    size_t n_held;
};

static size_t n_ids(const struct text *text)
{
    return text->ids.size_bytes / sizeof(int32_t);
}

static bool on_token(void *user, int32_t id)
{
    struct output *output = user;
    return !output->ids || whit_buf_append(output->ids, &id, sizeof id);
}

/* Fills `text` with the ids of the session file, if there is one, and of the prompt. If there are ids in the file and
 * no prompt is given, the text in the file is continued. Returns CLI_OK, or an exit status after a message. */
static int begin_text(cli_call *call, const whit_model *model, const cli_keep *keep, struct text *text)
{
    const struct run_values *values = call->values;
    int32_t *ids = NULL;
    size_t n = 0;
    if (keep->file) {
        const int32_t *held = whit_session_file_ids(keep->file, &text->n_held);
        whit_buf_append(&text->ids, held, text->n_held * sizeof *held);
    }
    bool goes_on = text->n_held && !values->prompt && !values->prompt_file;
    int status = goes_on ? take_text(call, "", &text->prompt) : read_prompt(call, values, &text->prompt);
    if (status == CLI_OK && !goes_on)
        status = cli_tokenize(call, model, text->prompt.data, text->prompt.size_bytes, !text->n_held, true, &ids, &n);
    if (status == CLI_OK && n && !whit_buf_append(&text->ids, ids, n * sizeof *ids)) text->ids.failed = true;
    free(ids);
    return status == CLI_OK && text->ids.failed ? cli_fail(call, CLI_LIMIT, "not enough memory for the prompt's tokens")
                                                : status;
}

/* Removes the last id from the session's sequence if the sequence already contains all ids of the text. The id is then
 * fed again, which computes the logits after it. Returns CLI_OK, or an exit status after a message. */
static int leave_last(cli_call *call, whit_session *session, const struct text *text)
{
    whit_error error;
    uint32_t position = whit_session_position(session, 0);
    if (!position || position < n_ids(text)) return CLI_OK;
    return whit_session_truncate(session, 0, position - 1, &error) == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

static int keep_text(cli_call *call, cli_keep *keep, const struct text *text, size_t n_given,
                     const whit_session *session, const whit_sampler *sampler, whit_finish finish)
{
    /* A run that was cancelled before the whole prompt was fed saves nothing. */
    if (!keep->file || whit_session_position(session, 0) + (size_t)1 < n_ids(text)) return CLI_OK;
    whit_session_turn turn = whit_session_turn_default();
    turn.ids = WHIT_ITEMS(const int32_t, &text->ids);
    turn.n_ids = n_ids(text);
    turn.n_given = n_given;
    turn.sampler = sampler;
    turn.finish = finish;
    return cli_keep_turn(call, keep, turn);
}

/* A text being continued, with all that this needs. */
struct continuation {
    whit_model *model, *drafter; /* drafter: a separate model that was opened for drafts, or NULL */
    whit_session *session;
    whit_sampler *sampler;
    cli_adapters adapters;
    cli_keep keep;
    cli_grammar grammar;
    cli_stage stage;
    struct text text;
    whit_buf kept; /* text of the continuation, collected for --json */
    uint64_t seed;
};

static int open_session(cli_call *call, struct continuation *c)
{
    const struct run_values *values = call->values;
    const whit_model *drafter;
    whit_error error;
    whit_session_options wanted = cli_session_wanted(&values->session, WHIT_ACT_I8);
    wanted.n_logits = 1 + cli_draft_max(values->n_draft);
    int status = cli_choose_drafter(call, &values->session, values->n_draft, c->model, &drafter, &c->drafter);
    if (status != CLI_OK) return status;
    if (whit_session_open_drafting(c->model, &wanted, drafter, &c->session, &error) != WHIT_OK ||
        cli_limit_experts(&values->session, c->session, &error) != WHIT_OK ||
        whit_session_mount(c->session, 0, c->adapters.mounts, c->adapters.n, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    return CLI_OK;
}

/* Opens all members of a continuation, and the model if c->model is NULL. Returns CLI_OK, or an exit status after a
 * message; the caller calls close_continuation in both cases. */
static int open_continuation(cli_call *call, struct continuation *c)
{
    struct run_values *values = call->values;
    int status = cli_stage_open(call, values->program, &c->stage);
    if (status == CLI_OK && !c->model) status = cli_open_flagged_model(call, &values->model, &c->model);
    if (status == CLI_OK) status = cli_split_model(call, c->model);
    if (status == CLI_OK) status = cli_open_adapters(call, &values->adapters, c->model, &c->adapters);
    if (status == CLI_OK) status = cli_open_grammar(call, &values->grammar, c->model, &c->grammar);
    if (status == CLI_OK) status = open_session(call, c);
    if (status == CLI_OK) status = cli_keep_open(call, &values->keep, c->session, "text", &values->sampler, &c->keep);
    if (status == CLI_OK) status = begin_text(call, c->model, &c->keep, &c->text);
    if (status == CLI_OK) status = cli_open_sampler(call, &values->sampler, c->model, &c->seed, &c->sampler);
    if (status == CLI_OK) status = leave_last(call, c->session, &c->text);
    return status;
}

static void close_continuation(struct continuation *c)
{
    cli_stage_close(&c->stage);
    cli_keep_close(&c->keep);
    whit_session_close(c->session);
    whit_model_close(c->drafter);
    whit_sampler_close(c->sampler);
    cli_close_grammar(&c->grammar);
    cli_close_adapters(&c->adapters);
    whit_model_close(c->model);
    whit_buf_free(&c->kept);
    whit_buf_free(&c->text.ids);
    free(c->text.prompt.data);
}

static whit_generate_options generate_options(const struct run_values *values, const struct continuation *c,
                                              struct output *output)
{
    whit_generate_options generate = whit_generate_options_default();
    const size_t n_given = n_ids(&c->text), n_ctx = whit_session_context_size(c->session);
    uint32_t room = n_given < n_ctx ? (uint32_t)(n_ctx - n_given) : 0;
    if (values->session.endless) room = INT32_MAX;
    uint32_t usual = cli_is_tales(values->model.path) ? room : USUAL_TOKENS; /* tales itself ends its texts */
    if (values->n_tokens == NOT_GIVEN)
        generate.n_tokens = usual;
    else if (values->n_tokens < 0)
        generate.n_tokens = room;
    else
        generate.n_tokens = (uint32_t)values->n_tokens;
    generate.n_draft_tokens = values->n_draft;
    generate.ignore_end = values->ignore_end;
    generate.stop = values->stops.items;
    generate.n_stop = values->stops.n;
    generate.n_present = whit_session_position(c->session, 0);
    generate.on_text = on_text;
    generate.on_token = on_token;
    generate.user = output;
    return generate;
}

/* Prints the statistics, unless the options switch them off. If the built-in model got a prompt and stderr is a
 * terminal, also prints a hint that names a larger model. */
static void print_remarks(const struct run_values *values, const struct continuation *c,
                          const whit_generate_result *result)
{
    if (!values->no_statistics) print_statistics(c->session, result, c->seed);
    if (!values->no_statistics) cli_note_experts(c->session);
    if (!values->no_statistics) cli_note_ranks(c->session);
    if (cli_is_tales(values->model.path) && values->prompt && isatty(STDERR_FILENO))
        cli_note("tales, the built-in toy, can do nothing but tell tales; for a model that answers: 'whit "
                 "pull " CLI_FIRST_MODEL "'");
}

static int generate_text(cli_call *call, struct continuation *c)
{
    struct run_values *values = call->values;
    struct output output = {call, values->json ? &c->kept : NULL, c->keep.file ? &c->text.ids : NULL};
    const size_t n_given = n_ids(&c->text), n_ctx = whit_session_context_size(c->session);
    whit_error error;
    /* The memory is reserved now, because the ids being fed must not move while others are appended. */
    if (!whit_buf_reserve(&c->text.ids, n_ctx * sizeof(int32_t)))
        return cli_fail(call, CLI_LIMIT, "not enough memory for %zu tokens", n_ctx);
    const int32_t *ids = WHIT_ITEMS(const int32_t, &c->text.ids);
    cli_remark_context(whit_model_context_size(c->model), (uint32_t)n_ctx);
    whit_generate_options generate = generate_options(values, c, &output);
    int status = cli_stage_begin(call, &c->stage, ids, n_given);
    if (status != CLI_OK) return status;
    cli_grammar_after(&c->grammar, c->stage.stages, c->stage.n_stages);
    generate.stages = c->grammar.stages;
    generate.n_stages = c->grammar.n_stages;
    cli_keep_begin(&c->keep, c->sampler, c->grammar.n_stages);
    const cli_text *prompt = &c->text.prompt;
    bool fits = values->session.endless || n_given <= n_ctx; /* otherwise whit_generate refuses the prompt */
    if (!values->json && !values->no_display_prompt && fits) on_text(&output, prompt->data, prompt->size_bytes);
    whit_generate_result result = whit_generate_result_default();
    whit_status ended = whit_generate(c->session, c->sampler, ids, n_given, &generate, &result, &error);
    if (ended != WHIT_OK && ended != WHIT_ERROR_CANCELLED) return cli_fail_error(call, &error);
    status = keep_text(call, &c->keep, &c->text, n_given, c->session, c->sampler, result.finish);
    if (*cli_cancelled()) status = CLI_INTERRUPTED;
    if (values->json)
        cli_print_json(call, describe_answer(prompt->data, prompt->size_bytes, &c->kept, &result, c->seed));
    else
        cli_write_data(call, "\n", 1);
    cli_flush(call);
    print_remarks(values, c, &result);
    return status;
}

/* Continues a text. Takes ownership of `model`; if it is NULL, opens the model of the options. Returns an exit
 * status. */
static int continue_text(cli_call *call, whit_model *model)
{
    struct continuation continuation = {.model = model};
    int status = open_continuation(call, &continuation);
    if (status == CLI_OK) status = generate_text(call, &continuation);
    close_continuation(&continuation);
    return status;
}

/* ---- operands ------------------------------------------------------------------------------- */

/* Returns whether an operand is a prompt for the built-in model: it has blanks, does not look like a path, and does not
 * name a file. */
static bool is_prompt(const char *words)
{
    return strpbrk(words, " \t\n") && !cli_looks_like_path(words) && !whit_path_exists(words);
}

/* Reads the operands [MODEL] [PROMPT...]. MODEL is absent if -m is given, or if the first operand is a prompt for the
 * built-in model; with -p or -f, a PROMPT is refused. values->prompt then points to `joined`, which contains the
 * operands of the prompt with blanks between them. Returns CLI_OK, or an exit status after a message. */
static int take_operands(cli_call *call, whit_buf *joined)
{
    struct run_values *values = call->values;
    size_t i = 0;
    if (call->n_operands && !values->model.path && !is_prompt(call->operands[0])) {
        const char *path = values->model.path = call->operands[i++];
        char found[CLI_PATH_BYTES];
        whit_error error;
        if (!cli_is_tales(path) && cli_find_model(path, found, &error) != WHIT_OK) {
            if (strpbrk(path, "/:.")) return cli_fail_error(call, &error);
            if (call->n_operands > 2)
                return cli_fail(call, CLI_IO, "%s (a prompt of several words: in quotes, or after -p)", error.message);
            return cli_fail(call, CLI_IO, "%s (a prompt of one word: -p %s)", error.message, path);
        }
    }
    if (i == call->n_operands) return CLI_OK;
    if (values->prompt || values->prompt_file)
        return cli_fail(call, CLI_USAGE, "unexpected argument '%s': the prompt is given by %s", call->operands[i],
                        values->prompt ? "-p" : "-f");
    for (size_t first = i; i < call->n_operands; i++) {
        if (i > first) whit_buf_append_str(joined, " ");
        whit_buf_append_str(joined, call->operands[i]);
    }
    if (!whit_buf_append(joined, "", 1)) return cli_fail(call, CLI_LIMIT, "not enough memory for the prompt");
    values->prompt = whit_chars(joined);
    return CLI_OK;
}

/* Answers through the chat template if the model has one, otherwise continues the text. Unless statistics are off, a
 * line on stderr says which of the two is done (a continuation is announced only on a terminal). Returns an exit
 * status. */
static int run_by_template(cli_call *call)
{
    const struct run_values *values = call->values;
    whit_model *model = NULL;
    int status = cli_open_flagged_model(call, &values->model, &model);
    if (status == CLI_OK) status = cli_split_model(call, model);
    if (status != CLI_OK) {
        whit_model_close(model);
        return status;
    }
    bool answers = cli_model_template(model) != NULL;
    if (!values->no_statistics && answers)
        cli_note("the model answers through its chat template; --raw continues the text");
    else if (!values->no_statistics && isatty(STDERR_FILENO))
        cli_note("the model has no chat template: it continues the text");
    return answers ? run_chat(call, model) : continue_text(call, model);
}

static int run_run(cli_call *call)
{
    whit_buf joined = {0};
    const struct run_values *values = call->values;
    int status = cli_check_endless(call, &values->session, values->keep.path);
    if (status == CLI_OK) status = take_operands(call, &joined);
    if (status == CLI_OK && is_chat(values) && values->raw)
        status =
            cli_fail(call, CLI_USAGE,
                     "--raw continues a text, --chat, -sys and --template answer a message: give only one of them");
    if (status == CLI_OK) {
        if (is_chat(values))
            status = run_chat(call, NULL);
        else if (is_text(values))
            status = continue_text(call, NULL);
        else
            status = run_by_template(call);
    }
    whit_buf_free(&joined);
    return status;
}

const cli_verb cli_run_verb = {
    "run",
    "[MODEL] [PROMPT]",
    0,
    1 << 20,
    "answer a question or continue a text",
    "Where the model has a chat template, the prompt is a message that it answers, sampled as its authors advise; "
    "else it is a text that is printed and continued, and so with --raw, --session or --endless. A line on stderr says "
    "which, and statistics follow there. The model and the prompt may stand without -m and -p; a text of several words "
    "alone is a prompt for tales, the built-in model, which continues it. Text on stdin is appended to the prompt, or "
    "is the prompt; where there is none tales begins a tale. The same model, prompt, settings and seed give the same "
    "text on every machine and with any number of threads.\n"
    "  whit run -p \"Once upon a time\"\n"
    "  whit run model.gguf \"Why is the sky blue?\"\n"
    "  whit run model.gguf \"Summarise:\" < report.txt\n"
    "  whit run model.gguf \"Once upon a time\" --raw -n 200\n"
    "  whit run -m model.ndf -f prompt.txt --raw --temp 0 --no-display-prompt\n"
    "  whit run -m model.ndf -sys \"Answer in one sentence.\" -p \"Why is the sky blue?\"",
    {{"OPTIONS", options, 0},
     {"MODEL", cli_model_options, AT(model)},
     {"SESSION", cli_session_options, AT(session)},
     {"ADAPTERS", cli_adapter_options, AT(adapters)},
     {"FORM", cli_grammar_options, AT(grammar)},
     {"SAMPLING", cli_sampler_options, AT(sampler)}},
    sizeof(struct run_values),
    &defaults,
    run_run,
    .usual = "-m, -p, -n, --temp, --raw",
};
