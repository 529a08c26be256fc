/* SPDX-License-Identifier: MIT */
#include "agent/loop.h"

#include "agent/gate.h"
#include "agent/guard.h"
#include "agent/light.h"
#include "agent/tools.h"
#include "base/flag.h"
#include "base/hash.h"
#include "base/items.h"
#include "base/phrase.h"
#include "base/plain.h"
#include "base/status.h"
#include "base/utf8.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_MAX 32 /* maximum number of tool calls in one answer */

typedef struct loop {
    const whit_agent_options *options;
    const whit_agent_model *model;
    whit_agent_report *report;
    whit_agent_messages *messages;
    json_t *tools;
    size_t result_bytes; /* maximum size of a tool's result in bytes */
    const char *task;
    whit_changes staged;
    whit_buf *refused; /* hashes of changes refused in this task; shared with sub-agents */
    whit_buf *taken;   /* struct taken[]: files that the sub-agents started by this answer have changed */
    bool was_cut;      /* the last answer was cut off at its length limit, and the next answer continues it */
    uint32_t number;   /* number of this sub-agent within the answer that started it; 0: this is not a sub-agent */
    uint32_t n_agents; /* number of sub-agents that the current answer has started */
    uint32_t n_before; /* number of answers before the task, which its bound does not count */
    whit_buf proposed; /* hashes of the changes that a person is being asked to approve */
} loop;

struct taken {
    uint8_t path[WHIT_HASH_BYTES];
    uint32_t by;
};

static whit_status run_loop(loop *l, const char *task, whit_error *error);

static whit_status no_memory(whit_error *error)
{
    return whit_fail_memory(error, "the messages", 0);
}

/* Fails if the person has cancelled the task. Then no later call of the answer runs, and no staged change is
 * written. */
static whit_status check_cancel(const loop *l, whit_error *error)
{
    if (!whit_flag_is_set(l->options->cancel)) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_CANCELLED, "interrupted");
}

/* ---- staged changes of an answer ---------------------------------------------------------- */

static void hash_change(const whit_change *c, uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, "agent-refused");
    whit_hash_add_u64(&hash, strlen(c->path));
    whit_hash_add(&hash, c->path, strlen(c->path));
    whit_hash_add_u64(&hash, c->is);
    if (c->after_bytes) whit_hash_add(&hash, c->after, c->after_bytes);
    whit_hash_end(&hash, digest);
}

static bool was_answered(const loop *l, const uint8_t digest[WHIT_HASH_BYTES])
{
    for (size_t at = 0; at + WHIT_HASH_BYTES <= l->refused->size_bytes; at += WHIT_HASH_BYTES)
        if (memcmp(l->refused->data + at, digest, WHIT_HASH_BYTES) == 0) return true;
    return false;
}

static void hash_changes(const whit_changes *set, uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    uint8_t one[WHIT_HASH_BYTES];
    whit_hash_begin(&hash, "agent-approved");
    for (size_t i = 0; i < whit_changes_count(set); i++) {
        hash_change(whit_changes_at(set, i), one);
        whit_hash_add(&hash, one, sizeof one);
    }
    whit_hash_end(&hash, digest);
}

/* Returns whether a check may run. Inside the sandbox it always may. Outside it, the changes are shown and a person is
 * asked, as for any command; if nobody can answer, it may not run. A check runs the project's own code, so the
 * permission is valid for one run: the project may have other code when the same changes are proposed again. */
static bool may_check(void *user, const char *line)
{
    loop *l = user;
    const whit_agent_options *o = l->options;
    char text[200];
    snprintf(text, sizeof text, "checks: %.150s", line);
    o->note(o->user, text);
    if (!o->runner || !o->runner->no_sandbox) return true;
    whit_buf reason = {0};
    whit_error ignored;
    for (size_t i = 0; i < whit_changes_count(&l->staged); i++)
        if (o->show(o->user, whit_changes_at(&l->staged, i), &ignored) != WHIT_OK) return false;
    const bool yes = whit_tool_reason(&reason, "outside the sandbox this check would run: ", line) && !o->is_alone &&
        o->agreed(o->user, whit_chars(&reason), 0);
    whit_buf_free(&reason);
    return yes;
}

/* Runs the checks before writing. If a check fails or the checks cannot run, *passed becomes false, `outcome` gets the
 * reason, and the changes must not be written. */
static whit_status pass_gate(loop *l, bool *passed, whit_buf *outcome, whit_error *error)
{
    whit_buf why = {0};
    whit_runner none = {.project = l->options->project};
    whit_status status =
        whit_gate_pass(l->options->runner ? l->options->runner : &none, &l->staged, may_check, l, passed, &why, error);
    if (status == WHIT_OK && !*passed) {
        whit_buf_append_str(outcome, "nothing is written, and the files are unchanged: ");
        whit_buf_append(outcome, why.data, why.size_bytes);
        l->report->n_held++;
        l->options->note(l->options->user, "a check before writing refused the change: nothing is written");
    } else if (status == WHIT_ERROR_UNSUPPORTED) { /* checks that cannot run count as failed */
        *passed = false;
        whit_buf_printf(outcome, "nothing is written, because the project's checks cannot be run: %s", error->message);
        l->options->note(l->options->user, error->message);
        status = WHIT_OK;
    }
    whit_buf_free(&why);
    return status;
}

static void hash_path(const char *path, uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, "agent-taken");
    whit_hash_add(&hash, path, strlen(path));
    whit_hash_end(&hash, digest);
}

/* Returns the number of another sub-agent of the same answer that has changed the file, or 0. */
static uint32_t taken_by(const loop *l, const char *path)
{
    uint8_t digest[WHIT_HASH_BYTES];
    const struct taken *taken = l->taken ? WHIT_ITEMS(const struct taken, l->taken) : NULL;
    hash_path(path, digest);
    for (size_t i = 0; taken && i < l->taken->size_bytes / sizeof *taken; i++)
        if (taken[i].by != l->number && memcmp(taken[i].path, digest, sizeof digest) == 0) return taken[i].by;
    return 0;
}

static whit_status keep_taken(loop *l, whit_error *error)
{
    for (size_t i = 0; l->taken && i < whit_changes_count(&l->staged); i++) {
        struct taken own = {.by = l->number};
        hash_path(whit_changes_at(&l->staged, i)->path, own.path);
        if (!whit_buf_append(l->taken, &own, sizeof own)) return no_memory(error);
    }
    return WHIT_OK;
}

/* Clears the person's words about the last refusal before another question. */
static void forget_words(const loop *l)
{
    if (l->options->why) l->options->why->size_bytes = 0;
}

/* Asks about the hunks and removes refused ones from the staged changes. *n_left gets the number of refused hunks.
 * *edits becomes true if the person wants to edit the changes; then no hunk is decided. */
static whit_status choose_hunks(loop *l, size_t *n_left, bool *edits, whit_error *error)
{
    const whit_agent_options *o = l->options;
    whit_hunks hunks = {0};
    whit_status status = whit_hunks_make(&hunks, o->project, &l->staged, error);
    uint8_t *taken = status == WHIT_OK ? calloc(hunks.n + 1, 1) : NULL;
    *n_left = 0;
    if (status == WHIT_OK && !taken) status = no_memory(error);
    forget_words(l);
    if (status == WHIT_OK) status = o->choose(o->user, &hunks, taken, error);
    *edits = status == WHIT_OK && o->edit && hunks.n && taken[0] == WHIT_TAKEN_EDIT;
    for (size_t i = 0; !*edits && status == WHIT_OK && i < hunks.n; i++) *n_left += !taken[i];
    if (status == WHIT_OK && *n_left) status = whit_hunks_keep(&hunks, taken, &l->staged, error);
    whit_hunks_free(&hunks);
    free(taken);
    return status;
}

static whit_status keep_refused(loop *l, whit_error *error)
{
    return whit_buf_append(l->refused, l->proposed.data, l->proposed.size_bytes) ? WHIT_OK : no_memory(error);
}

/* Writes open texts first, since their editor detects at once whether they have changed since they were shown, and then
 * the files, as one turn of the journal. If writing the files fails, the open texts are restored. */
static whit_status write_all(loop *l, uint32_t *turn, whit_error *error)
{
    const whit_agent_options *o = l->options;
    size_t n = whit_changes_count(&l->staged), n_open = 0;
    whit_change *all = calloc(n + 1, sizeof *all);
    whit_turns *journal;
    uint32_t recovered;
    *turn = 0;
    if (!all) return no_memory(error);
    for (size_t i = 0; i < n; i++)
        if (whit_changes_at(&l->staged, i)->open) all[n_open++] = *whit_changes_at(&l->staged, i);
    for (size_t i = 0, k = n_open; i < n; i++)
        if (!whit_changes_at(&l->staged, i)->open) all[k++] = *whit_changes_at(&l->staged, i);
    whit_status status = n_open ? o->open->write(o->open->user, all, n_open, error) : WHIT_OK;
    if (status == WHIT_OK && n > n_open) {
        whit_buf note = {0};
        if (l->number) whit_buf_printf(&note, "agent %u: ", l->number);
        whit_buf_append_str(&note, l->task);
        status = whit_buf_append(&note, "", 1) ? whit_turns_open(o->project, o->state_dir, &journal, &recovered, error)
                                               : no_memory(error);
        if (status == WHIT_OK) {
            status = whit_turns_write(journal, all + n_open, n - n_open, whit_chars(&note), error);
            if (status == WHIT_OK) *turn = whit_turns_at(journal, whit_turns_count(journal) - 1)->number;
            if (status == WHIT_OK && whit_turns_commit_error(journal))
                o->note(o->user, whit_turns_commit_error(journal)->message);
            whit_turns_close(journal);
        }
        whit_buf_free(&note);
        if (status != WHIT_OK && n_open) {
            whit_error ignored;
            for (size_t i = 0; i < n_open; i++) whit_change_turn_round(&all[i]);
            (void)o->open->write(o->open->user, all, n_open, &ignored);
        }
    }
    free(all);
    return status;
}

/* Reports that no shown change is written. */
static void drop_shown(const loop *l)
{
    if (l->options->written) l->options->written(l->options->user, 0, NULL, 0);
}

/* Reports to the person why changes that were agreed to are not written. */
static void tell_unwritten(const loop *l, const whit_error *error)
{
    whit_buf line = {0};
    if (whit_buf_printf(&line, "nothing of this answer is written: %s", error->message) &&
        whit_buf_append(&line, "", 1))
        l->options->note(l->options->user, whit_chars(&line));
    whit_buf_free(&line);
    drop_shown(l);
}

/* Appends the person's words about a refusal. */
static void add_words(const loop *l, whit_buf *outcome)
{
    const whit_buf *why = l->options->why;
    if (why && why->size_bytes)
        whit_buf_printf(outcome, "; the person says: %.*s", (int)why->size_bytes, whit_chars(why));
}

/* Tells the model and the person why the changes are not written. `before`: the same changes were refused earlier.
 * `reason` is "" if no change always needs approval. */
static void tell_refused(const loop *l, bool before, const char *reason, whit_buf *outcome)
{
    const whit_agent_options *o = l->options;
    whit_buf line = {0};
    const char *who = o->is_alone ? "refused, since nobody is there to agree" : "refused by the person";
    whit_buf_printf(outcome, "%s, nothing of this answer is written%s%s", who, *reason ? ": " : "", reason);
    if (!before) add_words(l, outcome);
    if (before)
        whit_buf_printf(&line, "%s%s%s before, so nothing is written", reason, *reason ? ", and " : "",
                        o->is_alone ? "it was refused" : "the person refused it");
    else {
        const char *missing = o->is_alone ? "nobody is there to agree to it" : "not agreed to";
        whit_buf_printf(&line, "%s%s%s: nothing is written", reason, *reason ? ", and " : "", missing);
    }
    if (whit_buf_append(&line, "", 1)) o->note(o->user, whit_chars(&line));
    whit_buf_free(&line);
    drop_shown(l);
}

/* Runs the checks on the staged changes, shows the changes, asks about them if that is needed, and writes them.
 * `outcome` gets the result, for the model. */
static whit_status settle(loop *l, whit_buf *outcome, whit_error *error)
{
    const whit_agent_options *o = l->options;
    char reason[WHIT_LIGHT_REASONS_BYTES]; /* why a person must be asked whatever permissions are set, or "" */
    bool refused = false, passed = true, agreed, edits = false, was_edited = false;
    uint8_t approved[WHIT_HASH_BYTES], now[WHIT_HASH_BYTES];
    size_t n_left = 0;
    whit_changes_settle(&l->staged);
    size_t n = whit_changes_count(&l->staged);
    if (!n) {
        whit_buf_append_str(outcome, "nothing is written: the files already have this content");
        return WHIT_OK;
    }
    for (size_t i = 0; i < n; i++) {
        const char *path = whit_changes_at(&l->staged, i)->path;
        uint32_t by = taken_by(l, path);
        if (!by) continue;
        whit_buf_printf(outcome, "error: nothing is written: %s was changed by agent %u of the same answer", path, by);
        return WHIT_OK;
    }
    if (o->only_reads) {
        whit_buf_append_str(outcome, "nothing is written: the person asked for a plan only; describe the changes");
        o->note(o->user, "nothing is written, because only a plan was requested");
        return WHIT_OK;
    }
    l->proposed.size_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t digest[WHIT_HASH_BYTES];
        hash_change(whit_changes_at(&l->staged, i), digest);
        if (!whit_buf_append(&l->proposed, digest, sizeof digest)) return no_memory(error);
        refused = refused || was_answered(l, digest);
    }
    /* Checks are skipped for changes that were refused before, so that nobody is asked about the checks either. */
    if (!refused) WHIT_TRY(pass_gate(l, &passed, outcome, error));
    if (!passed) {
        drop_shown(l);
        return WHIT_OK;
    }
    hash_changes(&l->staged, approved);
    (void)whit_light_mark(o->project, &l->staged);
    (void)whit_light_reasons(&l->staged, reason);
    bool is_asked = !refused && (*reason || !o->may_write);
    if (is_asked && o->choose && !o->is_alone) {
        WHIT_TRY(choose_hunks(l, &n_left, &edits, error));
        while (edits) {
            WHIT_TRY(o->edit(o->user, &l->staged, error));
            whit_changes_settle(&l->staged);
            was_edited = true;
            if (!whit_changes_count(&l->staged)) break; /* the person has restored every file */
            (void)whit_light_mark(o->project, &l->staged);
            WHIT_TRY(choose_hunks(l, &n_left, &edits, error));
        }
        agreed = whit_changes_count(&l->staged) > 0;
        if (n_left) WHIT_TRY(keep_refused(l, error)); /* remember the refusal of the whole proposal */
        n = whit_changes_count(&l->staged);
        hash_changes(&l->staged, approved);
        if (agreed && (n_left || was_edited)) WHIT_TRY(pass_gate(l, &passed, outcome, error));
        if (!passed) {
            drop_shown(l);
            return WHIT_OK;
        }
    } else {
        for (size_t i = 0; i < n; i++) WHIT_TRY(o->show(o->user, whit_changes_at(&l->staged, i), error));
        forget_words(l);
        agreed = !refused && (!is_asked || (!o->is_alone && o->agreed(o->user, *reason ? reason : NULL, n)));
        if (!agreed) WHIT_TRY(keep_refused(l, error));
    }
    if (!agreed) {
        tell_refused(l, refused, reason, outcome);
        return WHIT_OK;
    }
    if (check_cancel(l, error) != WHIT_OK) {
        drop_shown(l);
        return WHIT_ERROR_CANCELLED;
    }
    hash_changes(&l->staged, now);
    if (memcmp(approved, now, sizeof now) != 0)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "the change differs from the one that was approved: nothing is written");
    const whit_change *other = whit_light_find_new(o->project, &l->staged);
    if (other) {
        whit_buf_printf(outcome, "error: %s: has changed since it was shown; nothing is written: look at it again",
                        other->path);
        o->note(o->user, "a file has changed since it was shown: nothing is written");
        drop_shown(l);
        return WHIT_OK;
    }
    uint32_t turn;
    whit_status status = write_all(l, &turn, error);
    /* a file was changed meanwhile; the model is told, and can read the file again */
    if (status == WHIT_ERROR_ARGUMENT) {
        whit_buf_printf(outcome, "error: %s", error->message);
        tell_unwritten(l, error);
        return WHIT_OK;
    }
    WHIT_TRY(status);
    WHIT_TRY(keep_taken(l, error));
    if (o->runner) whit_gate_written(o->runner);
    for (size_t i = 0; i < n; i++) l->report->written_bytes += whit_changes_at(&l->staged, i)->after_bytes;
    l->report->n_turns++;
    if (o->written) o->written(o->user, turn, whit_changes_at(&l->staged, 0), n);
    char line[80];
    if (turn)
        snprintf(line, sizeof line, "turn %u: %zu file%s written", turn, n, whit_plural(n));
    else
        snprintf(line, sizeof line, "%zu open text%s changed, not saved", n, whit_plural(n));
    o->note(o->user, line);
    whit_buf_append_str(outcome, line);
    if (n_left) whit_buf_printf(outcome, "; the person refused %zu hunk%s: not written", n_left, whit_plural(n_left));
    if (n_left) add_words(l, outcome);
    if (was_edited) whit_buf_append_str(outcome, "; the person edited them first: read the files again");
    return WHIT_OK;
}

/* Hides keys in a result, which a command may have printed or a search may have found, and cuts it to result_bytes. */
static void cut_result(const loop *l, whit_buf *result)
{
    whit_guard_hide_keys(result);
    size_t n = result->size_bytes, kept = whit_utf8_cut(whit_chars(result), n, l->result_bytes);
    if (n == kept) return;
    result->size_bytes = kept;
    whit_buf_printf(result, "\n[cut: %zu of %zu bytes; ask for less]", kept, n);
}

/* Runs a sub-agent: another loop with the same model and permissions but its own messages. `result` gets its last
 * answer, for the agent that called it. */
static whit_status run_agent(loop *l, const char *arguments_text, whit_buf *result, whit_error *error)
{
    json_t *arguments = json_loads(arguments_text, JSON_REJECT_DUPLICATES, NULL);
    const char *task = json_string_value(json_object_get(arguments, "task"));
    whit_agent_messages messages = {0};
    whit_status status = WHIT_OK;
    char line[80];
    if (l->number || !task) {
        whit_buf_append_str(result,
                            l->number ? "error: an agent that another agent started cannot start agents"
                                      : "error: agent: 'task' must be a string");
        json_decref(arguments);
        return WHIT_OK;
    }
    loop sub = {.options = l->options,
                .model = l->model,
                .report = l->report,
                .messages = &messages,
                .tools = l->tools,
                .result_bytes = l->result_bytes,
                .refused = l->refused,
                .taken = l->taken,
                .number = ++l->n_agents,
                .n_before = l->n_before};
    uint32_t n_turns = l->report->n_turns;
    snprintf(line, sizeof line, "agent %u begins", sub.number);
    l->options->note(l->options->user, line);
    status = whit_agent_messages_begin(&messages, l->options->project, l->messages->limit_bytes, error);
    if (status == WHIT_OK) status = run_loop(&sub, task, error);
    if (status == WHIT_OK) {
        const whit_buf *answer = &l->report->answer;
        whit_buf_printf(result, "agent %u wrote %u turn%s and %s:\n", sub.number, l->report->n_turns - n_turns,
                        whit_plural(l->report->n_turns - n_turns), l->report->done ? "says" : "did not finish");
        if (l->report->done) whit_buf_append(result, answer->data, answer->size_bytes);
    }
    l->report->done = false;
    whit_agent_messages_free(&messages);
    json_decref(arguments);
    return status;
}

/* Adds the answer to one call. Endpoints refuse all later messages if a call has no answer, so every call gets one. */
static whit_status answer_call(loop *l, const json_t *call, const whit_buf *result, whit_error *error)
{
    static const char ended[] = "error: the task ended before this was done";
    const char *id = json_string_value(json_object_get(call, "id"));
    const char *content = result ? whit_chars(result) : ended;
    return whit_agent_messages_add(l->messages, "tool", whit_or_empty(id), content,
                                   result ? result->size_bytes : sizeof ended - 1, error);
}

static whit_status run_calls(loop *l, const whit_tool_place *place, const json_t *calls, whit_error *error)
{
    whit_buf results[CALLS_MAX] = {{0}}, outcome = {0};
    bool stages[CALLS_MAX] = {false}, any = false;
    size_t n = json_array_size(calls), n_done = 0;
    whit_status status = WHIT_OK;
    l->n_agents = 0;
    if (!l->number) l->taken->size_bytes = 0;
    if (n > CALLS_MAX) {
        for (size_t i = 0; i < n; i++) WHIT_TRY(answer_call(l, json_array_get(calls, i), NULL, error));
        return whit_fail(error, WHIT_ERROR_LIMIT, "the model made %zu calls in one answer; at most %d are run", n,
                         CALLS_MAX);
    }
    for (size_t i = 0; i < n && status == WHIT_OK; i++) {
        const json_t *function = json_object_get(json_array_get(calls, i), "function");
        const char *name = json_string_value(json_object_get(function, "name"));
        const char *arguments = json_string_value(json_object_get(function, "arguments"));
        char line[WHIT_TOOL_LINE_BYTES];
        status = check_cancel(l, error);
        if (status != WHIT_OK) break;
        whit_tool_tell(name ? name : "nothing", whit_or_empty(arguments), line);
        l->options->note(l->options->user, line);
        l->report->n_calls++;
        if (name && strcmp(name, WHIT_TOOL_AGENT) == 0)
            status = run_agent(l, whit_or_empty(arguments), &results[i], error);
        else
            stages[i] = whit_tool_call(place, whit_or_empty(name), whit_or_empty(arguments), &results[i]);
        any = any || stages[i];
        n_done += status == WHIT_OK;
        cut_result(l, &results[i]);
    }
    if (any && status == WHIT_OK) status = check_cancel(l, error);
    if (any && status == WHIT_OK) status = settle(l, &outcome, error);
    whit_guard_hide_keys(&outcome); /* the outcome quotes the output of checks, which may contain keys */
    for (size_t i = 0; i < n; i++) {
        /* a call that finished keeps its result even if a later call failed */
        const bool stands = i < n_done && !stages[i] && !results[i].failed;
        if (stages[i]) {
            whit_buf_append_str(&results[i], "; ");
            whit_buf_append(&results[i], outcome.data, outcome.size_bytes);
        }
        if (status == WHIT_OK && results[i].failed) status = no_memory(error);
        whit_error ignored;
        if (status == WHIT_OK)
            status = answer_call(l, json_array_get(calls, i), &results[i], error);
        else
            (void)answer_call(l, json_array_get(calls, i), stands ? &results[i] : NULL, &ignored);
        whit_buf_free(&results[i]);
    }
    whit_buf_free(&outcome);
    return status;
}

/* Returns whether a line begins a fenced block of a patch. *n_ticks gets the length of its fence. */
static bool begins_patch(const char *line, size_t *n_ticks)
{
    *n_ticks = strspn(line, "`");
    const char *word = line + *n_ticks;
    return *n_ticks >= 3 && strchr(line, '\n') && (strncmp(word, "patch", 5) == 0 || strncmp(word, "diff", 4) == 0);
}

/* Runs fenced blocks that begin with "```patch" or "```diff" as patches. *n_blocks gets the number of blocks. */
static whit_status run_fenced(loop *l, const whit_tool_place *place, const char *text, size_t *n_blocks,
                              whit_error *error)
{
    whit_buf result = {0};
    bool any = false;
    whit_status status = WHIT_OK;
    *n_blocks = 0;
    for (const char *at = text; at && *n_blocks < CALLS_MAX; at = strchr(at, '\n'), at += at != NULL) {
        size_t ticks;
        if (!begins_patch(at, &ticks)) continue;
        const char *body = strchr(at, '\n');
        const char *end = body + 1;
        while (end && *end && strspn(end, "`") < ticks) end = strchr(end, '\n'), end += end != NULL;
        if (!end || !*end) {
            whit_buf_printf(&result, "error: the fenced block is not closed\n");
            ++*n_blocks;
            break;
        }
        any = whit_tool_patch(place, body + 1, (size_t)(end - body - 1), NULL, &result) || any;
        whit_buf_append_str(&result, "\n");
        ++*n_blocks;
        at = end;
    }
    if (any) status = settle(l, &result, error);
    cut_result(l, &result);
    if (status == WHIT_OK && result.failed) status = no_memory(error);
    if (status == WHIT_OK && *n_blocks)
        status = whit_agent_messages_add(l->messages, "user", NULL, whit_chars(&result), result.size_bytes, error);
    whit_buf_free(&result);
    return status;
}

/* Adds the token counts that the model reports for an answer. If it reports none, one token is counted for every four
 * bytes of messages and answer. */
static void count_tokens(loop *l, const json_t *answer)
{
    const json_t *usage = json_object_get(answer, "usage");
    json_int_t in = json_integer_value(json_object_get(usage, "prompt_tokens"));
    json_int_t out = json_integer_value(json_object_get(usage, "completion_tokens"));
    const json_int_t cached =
        json_integer_value(json_object_get(json_object_get(usage, "prompt_tokens_details"), "cached_tokens"));
    if (!json_is_object(usage)) {
        size_t i;
        json_t *message;
        l->report->tokens_are_guessed = true;
        in = 0;
        json_array_foreach(l->messages->list, i, message) in +=
            (json_int_t)json_string_length(json_object_get(message, "content")) / 4;
        const json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);
        out = (json_int_t)json_string_length(json_object_get(json_object_get(choice, "message"), "content")) / 4;
    }
    if (in > 0) l->report->tokens_in += (uint64_t)in;
    if (out > 0) l->report->tokens_out += (uint64_t)out;
    if (cached > 0 && cached <= in) l->report->tokens_cached += (uint64_t)cached;
}

/* Returns whether an answer that was cut off ends inside a call, or in the line that begins a fenced block. Such an
 * answer cannot be continued. */
static bool is_part_of_call(const char *text)
{
    const char *begin = text ? text + strspn(text, " \t\r\n") : "", *line = strrchr(begin, '\n');
    return *begin == '{' || strncmp(line ? line + 1 : begin, "```", 3) == 0;
}

static const char go_on[] = "Your answer was cut at its length. Go on exactly where it ended.",
                  once_more[] = "Your answer was cut at its length, within a call or a block, and nothing of it was "
                                "done. Give it again, whole, in smaller pieces.";

bool whit_agent_is_persons(const json_t *before, const json_t *message)
{
    const char *text = json_string_value(json_object_get(message, "content"));
    const char *answer = json_string_value(json_object_get(before, "content"));
    const char *role = json_string_value(json_object_get(before, "role"));
    size_t n_ticks;
    if (!text || strcmp(text, go_on) == 0 || strcmp(text, once_more) == 0) return false;
    if (!role || strcmp(role, "assistant") != 0 || json_object_get(before, "tool_calls")) return true;
    /* after a task that was cancelled at its question there is no result of the block */
    const size_t n_digits = strspn(text, "0123456789");
    if (strncmp(text, "error: ", 7) != 0 && !(n_digits && strncmp(text + n_digits, " file", 5) == 0)) return true;
    for (const char *at = answer; at; at = strchr(at, '\n'), at += at != NULL)
        if (begins_patch(at, &n_ticks)) return false;
    return true;
}

static whit_status one_answer(loop *l, const json_t *answer, whit_error *error)
{
    const json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);
    const json_t *message = json_object_get(choice, "message");
    const json_t *calls = json_object_get(message, "tool_calls");
    const char *text = json_string_value(json_object_get(message, "content"));
    const whit_agent_options *o = l->options;
    whit_tool_place place = {.project = o->project,
                             .staged = &l->staged,
                             .runner = o->runner,
                             .mcp = o->mcp,
                             .show = o->show,
                             .agreed = o->agreed,
                             .ask = o->ask,
                             .cancel = o->cancel,
                             .is_alone = o->is_alone,
                             .only_reads = o->only_reads,
                             .why = o->why,
                             .user = o->user};
    size_t n_blocks = 0;
    if (!json_is_object(message))
        return whit_fail(
            error, WHIT_ERROR_FORMAT,
            "the endpoint's answer has no choices[0].message: is it OpenAI's API (an address that ends in /v1)?");
    count_tokens(l, answer);
    WHIT_TRY(whit_agent_messages_add_answer(l->messages, message, error));
    if (json_array_size(calls)) {
        l->was_cut = false;
        return run_calls(l, &place, calls, error);
    }
    WHIT_TRY(run_fenced(l, &place, whit_or_empty(text), &n_blocks, error));
    const char *finish = json_string_value(json_object_get(choice, "finish_reason"));
    bool is_cut = !n_blocks && finish && strcmp(finish, "length") == 0, is_part = is_cut && is_part_of_call(text);
    if (is_cut && !(text && *text))
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "the model's answer ended before its first word: the context is full, or the endpoint's limit "
                         "on answers is too small");
    if (!l->was_cut || is_part) l->report->answer.size_bytes = 0;
    l->was_cut = is_cut && !is_part;
    l->report->done = !n_blocks && !is_cut;
    if (is_cut) {
        o->note(o->user, "the answer reached its length limit: the model is asked to continue");
        const char *how = is_part ? once_more : go_on;
        WHIT_TRY(whit_agent_messages_add(l->messages, "user", NULL, how, strlen(how), error));
    }
    if (is_part) return WHIT_OK;
    if (whit_buf_append_str(&l->report->answer, whit_or_empty(text))) return WHIT_OK;
    return no_memory(error);
}

/* Returns whether the task may have another answer. The answers of its sub-agents count, too. */
static bool is_within_bounds(const loop *l)
{
    const whit_agent_options *o = l->options;
    const whit_agent_report *r = l->report;
    return r->n_answers - l->n_before < o->n_turns_max &&
        !(o->n_tokens_max && r->tokens_in + r->tokens_out >= o->n_tokens_max);
}

/* Saves the conversation, except in a sub-agent, whose messages are not part of it. */
static void keep_messages(const loop *l)
{
    if (l->options->keep && !l->number) l->options->keep(l->options->user);
}

static whit_status run_loop(loop *l, const char *task, whit_error *error)
{
    const whit_agent_options *o = l->options;
    l->task = task;
    l->staged.open = o->open;
    l->report->done = false;
    l->report->answer.size_bytes = 0;
    whit_status status = whit_agent_messages_add(l->messages, "user", NULL, task, strlen(task), error);
    if (status == WHIT_OK) keep_messages(l);
    while (status == WHIT_OK && !l->report->done && is_within_bounds(l)) {
        json_t *answer;
        whit_agent_messages_shorten(l->messages);
        status = check_cancel(l, error);
        if (status != WHIT_OK) break;
        status = l->model->ask(l->model->user, l->messages->list, l->tools, &answer, error);
        if (status != WHIT_OK) break;
        l->report->n_answers++;
        status = one_answer(l, answer, error);
        json_decref(answer);
        keep_messages(l);
        whit_changes_free(&l->staged);
        l->staged = (whit_changes){.open = o->open};
    }
    whit_changes_free(&l->staged);
    whit_buf_free(&l->proposed);
    return status;
}

whit_status whit_agent_run(const whit_agent_options *options, const whit_agent_model *model,
                           whit_agent_messages *messages, whit_agent_report *report, whit_error *error)
{
    whit_buf refused = {0}, taken = {0};
    loop l = {.options = options,
              .model = model,
              .report = report,
              .messages = messages,
              .tools = whit_tools_schema(options->runner != NULL),
              .refused = &refused,
              .taken = &taken,
              .n_before = report->n_answers};
    l.result_bytes =
        messages->limit_bytes / 4 < WHIT_TOOL_RESULT_BYTES ? messages->limit_bytes / 4 : WHIT_TOOL_RESULT_BYTES;
    if (options->runner) {
        options->runner->note = options->note;
        options->runner->user = options->user;
    }
    const uint32_t number =
        (options->only_reads ? whit_turns_find_interrupted : whit_turns_recover)(options->project, options->state_dir);
    if (number) {
        char line[100];
        snprintf(line, sizeof line, options->only_reads ? WHIT_TURNS_INTERRUPTED : WHIT_TURNS_RECOVERED, number);
        options->note(options->user, line);
    }
    bool ok = l.tools && (!options->mcp || whit_mcp_add_tools(options->mcp, l.tools));
    whit_status status = ok ? run_loop(&l, options->task, error) : no_memory(error);
    whit_buf_free(&refused);
    whit_buf_free(&taken);
    json_decref(l.tools);
    return status;
}
