/* SPDX-License-Identifier: MIT */
#include "cli/keep.h"

#include <inttypes.h>

#include "base/hash.h"
#include "base/items.h"

/* ---- sampling options ----------------------------------------------------------------------- */

/* Sets the sampling options that were not given, except the seed and the biases, to their values in the session
 * file. */
static void take_sampling(const cli_call *call, cli_sampler_flags *flags, const whit_sampler_options *kept)
{
#define TAKE(name, option) flags->name = cli_was_given(call, option) ? flags->name : kept->name
    TAKE(temperature, "--temp");
    TAKE(dynatemp_range, "--dynatemp-range");
    TAKE(dynatemp_exponent, "--dynatemp-exp");
    TAKE(top_k, "--top-k");
    TAKE(top_p, "--top-p");
    TAKE(min_p, "--min-p");
    TAKE(typical_p, "--typical");
    TAKE(top_n_sigma, "--top-nsigma");
    TAKE(xtc_probability, "--xtc-probability");
    TAKE(xtc_threshold, "--xtc-threshold");
    TAKE(repeat_penalty, "--repeat-penalty");
    TAKE(presence_penalty, "--presence-penalty");
    TAKE(frequency_penalty, "--frequency-penalty");
    TAKE(penalty_last_n, "--repeat-last-n");
    TAKE(dry_multiplier, "--dry-multiplier");
    TAKE(dry_base, "--dry-base");
    TAKE(dry_allowed_length, "--dry-allowed-length");
    TAKE(dry_penalty_last_n, "--dry-penalty-last-n");
    TAKE(mirostat, "--mirostat");
    TAKE(mirostat_tau, "--mirostat-ent");
    TAKE(mirostat_eta, "--mirostat-lr");
#undef TAKE
}

int cli_keep_open(cli_call *call, const cli_keep_flags *flags, whit_session *session, const char *purpose,
                  cli_sampler_flags *sampler, cli_keep *keep)
{
    whit_error error;
    whit_sampler_options kept = whit_sampler_options_default();
    bool is_chat = strcmp(purpose, "chat") == 0;
    *keep = (cli_keep){.tokens_only = flags->kv == 1};
    if (!flags->path) return CLI_OK;
    whit_status status = whit_session_load(session, 0, flags->path, purpose, &keep->file, &error);
    if (status == WHIT_ERROR_LIMIT) return cli_fail(call, CLI_LIMIT, "%s (-c)", error.message);
    if (status != WHIT_OK) return cli_fail_error(call, &error);
    if (!whit_session_file_sampler(keep->file, &kept, &keep->before)) return CLI_OK;
    take_sampling(call, sampler, &kept);
    if (sampler->seed < 0) {
        /* A text continues its sequence of random numbers with the same seed; a chat uses another seed for each
         * answer. */
        sampler->seed = (int64_t)(kept.seed + is_chat);
        keep->goes_on = !is_chat;
    }
    return CLI_OK;
}

void cli_keep_close(cli_keep *keep)
{
    whit_session_file_close(keep->file);
    whit_buf_free(&keep->seen);
}

void cli_keep_begin(cli_keep *keep, whit_sampler *sampler, size_t n_stages)
{
    keep->n_stages = n_stages;
    if (keep->goes_on) whit_sampler_restore(sampler, &keep->before);
    keep->goes_on = false;
    whit_sampler_save(sampler, &keep->before);
}

int cli_keep_turn(cli_call *call, cli_keep *keep, whit_session_turn turn)
{
    whit_error error;
    if (!keep->file) return CLI_OK;
    turn.before = keep->before;
    turn.n_stages = turn.sampler ? keep->n_stages : 0;
    turn.tokens_only = keep->tokens_only;
    if (whit_session_save(keep->file, &turn, &error) != WHIT_OK) return cli_fail_error(call, &error);
    return CLI_OK;
}

/* ---- conversations -------------------------------------------------------------------------- */

/* The note of a turn in the session file is {"keep": N, "left_out": M, "messages": [...]}: the first N messages of the
 * conversation are unchanged, and these messages follow them. Prompts omit M messages after the system message. */

static void hash_message(const whit_message *message, uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, "chat.message");
    whit_hash_add(&hash, message->json, message->json_bytes);
    whit_hash_end(&hash, digest);
}

static int out_of_memory(cli_call *call)
{
    return cli_fail(call, CLI_LIMIT, "not enough memory for the session");
}

/* Appends the hashes of all messages to `now`; returns the number of messages at the beginning of the conversation that
 * the file already contains. */
static size_t n_kept(const cli_keep *keep, const whit_conversation *conversation, whit_buf *now)
{
    const size_t n = whit_conversation_count(conversation), n_seen = keep->seen.size_bytes / WHIT_HASH_BYTES;
    size_t n_same = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t digest[WHIT_HASH_BYTES];
        hash_message(&whit_messages_of(conversation)[i], digest);
        whit_buf_append(now, digest, sizeof digest);
        if (n_same == i && i < n_seen && memcmp(keep->seen.data + i * sizeof digest, digest, sizeof digest) == 0)
            n_same++;
    }
    return n_same;
}

/* Writes the note of the next turn, and the hashes of all messages into `now`. */
static whit_status write_note(const cli_keep *keep, const whit_conversation *conversation, whit_buf *note,
                              whit_buf *now, whit_error *error)
{
    const size_t n_same = n_kept(keep, conversation, now);
    bool ok = whit_buf_printf(note, "{\"keep\": %zu, \"left_out\": %zu, \"messages\": ", n_same,
                              whit_conversation_n_left_out(conversation)) &&
        whit_conversation_write(conversation, 0, n_same, note) && whit_buf_append_str(note, "}\n");
    return ok && !now->failed ? WHIT_OK : whit_fail_memory(error, "the session", note->size_bytes);
}

static whit_status read_note(const char *text, size_t n_bytes, whit_conversation *conversation, whit_error *error)
{
    json_t *note = json_loadb(text, n_bytes, JSON_ALLOW_NUL, NULL);
    const json_int_t n = json_integer_value(json_object_get(note, "keep"));
    const json_int_t left_out = json_integer_value(json_object_get(note, "left_out"));
    bool is_sane =
        json_is_object(note) && n >= 0 && (size_t)n <= whit_conversation_count(conversation) && left_out >= 0;
    json_decref(note);
    if (is_sane) {
        whit_conversation_keep(conversation, (size_t)n);
        WHIT_TRY(whit_conversation_append(conversation, text, n_bytes, error));
        is_sane = whit_conversation_leave_out(conversation, (size_t)left_out);
    }
    return is_sane ? WHIT_OK
                   : whit_fail(error, WHIT_ERROR_FORMAT,
                               "the session's messages are damaged: move the file away to begin a new one");
}

int cli_keep_resume(cli_call *call, cli_keep *keep, whit_conversation *conversation)
{
    whit_error error;
    if (!keep->file) return CLI_OK;
    for (uint32_t i = 0; i < whit_session_file_n_turns(keep->file); i++) {
        size_t n_bytes;
        const char *note = whit_session_file_note(keep->file, i, &n_bytes);
        if (read_note(note, n_bytes, conversation, &error) != WHIT_OK) return cli_fail_error(call, &error);
    }
    size_t n_ids;
    const int32_t *ids = whit_session_file_ids(keep->file, &n_ids);
    n_kept(keep, conversation, &keep->seen);
    if (keep->seen.failed) return out_of_memory(call);
    if (whit_conversation_resume(conversation, ids, n_ids, &error) != WHIT_OK) return cli_fail_error(call, &error);
    if (n_ids) cli_note("the session has %zu messages, %zu tokens", whit_conversation_count(conversation), n_ids);
    return CLI_OK;
}

int cli_keep_conversation(cli_call *call, cli_keep *keep, whit_conversation *conversation, const whit_sampler *sampler,
                          whit_finish finish)
{
    whit_error error;
    whit_buf note = {0}, now = {0};
    whit_session_turn turn = whit_session_turn_default();
    turn.sampler = sampler;
    turn.finish = finish;
    if (!keep->file) return CLI_OK;
    if (sampler) {
        turn.ids = whit_conversation_turn(conversation, &turn.n_ids, &turn.n_given);
    } else {
        turn.ids = whit_conversation_ids(conversation, &turn.n_ids);
        turn.n_given = turn.n_ids;
    }
    int status = write_note(keep, conversation, &note, &now, &error) == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
    turn.note = whit_chars(&note);
    turn.note_bytes = note.size_bytes;
    if (status == CLI_OK) status = cli_keep_turn(call, keep, turn);
    whit_buf_free(&note);
    /* After a failure the file still has the messages of `seen` alone, and the next turn brings the others. */
    if (status == CLI_OK) {
        const whit_buf before = keep->seen;
        keep->seen = now;
        now = before;
    }
    whit_buf_free(&now);
    return status;
}
