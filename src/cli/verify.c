/* SPDX-License-Identifier: MIT
 * Implements whit verify, which checks every byte of an .ndf against its hashes. */
#include "base/phrase.h"
#include "cli/flags.h"
#include "cli/names.h"
#include "cli/verbs.h"
#include "format/file_sign.h"
#include "format/ndf_verify.h"
#include "model/adapter.h"
#include "runtime/session_frames.h"

struct verify_values {
    uint32_t n_threads;
    const char *key;
    bool json, replay, detached;
    cli_model_flags model;
    cli_adapter_flags adapters;
};
static const struct verify_values defaults;

#define AT(member) offsetof(struct verify_values, member)
static const cli_option options[] = {
    {"-t, --threads", CLI_COUNT, AT(n_threads), "N", "Threads; 0, the default, is one per physical core.", 0, 1024},
    {"--key", CLI_FILE, AT(key), "PUB", "Ask for a signature by this public key, too."},
    {"--detached", CLI_FLAG, AT(detached), NULL, "Check any file against FILE.sig and --key (whit sign --detached)."},
    {"--replay", CLI_FLAG, AT(replay), NULL,
     "For a session: feed its tokens to the model again (-m, --adapter), and say whether it answers the same."},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object with the list \"damage\"."},
    {0},
};

struct listener {
    cli_call *call;
    json_t *list; /* list for --json; NULL: each damage is printed as a line */
};

static void on_damage(void *user, const whit_ndf_damage *damage)
{
    struct listener *listener = user;
    const char *frame = damage->type ? whit_ndf_frame_type_name(damage->type) : "after the last commit";
    if (listener->list)
        json_array_append_new(listener->list,
                              json_pack("{s:o, s:s, s:i, s:I, s:I, s:s}", "file", cli_json_path(damage->path), "frame",
                                        frame, "index", (int)damage->frame, "offset", (json_int_t)damage->offset,
                                        "bytes", (json_int_t)damage->size_bytes, "what", damage->what));
    else
        cli_print(listener->call, "%s: bytes %llu to %llu (%s): %s\n", damage->path, (unsigned long long)damage->offset,
                  (unsigned long long)(damage->offset + damage->size_bytes), frame, damage->what);
}

/* Checks that the adapters in the file are valid and, if the file has a model, belong to this model. The hashes of
 * their frames have been checked before. */
static whit_status check_adapters(const whit_ndf *ndf, whit_error *error)
{
    if (whit_ndf_is_loose(ndf) && whit_ndf_appended_type(ndf, 0) != WHIT_NDF_ADAPTER) return WHIT_OK;
    for (uint32_t i = 0; i < whit_ndf_n_appended(ndf); i++) {
        whit_ndf_appended frame;
        whit_adapter_view view;
        WHIT_TRY(whit_ndf_appended_at(ndf, i, &frame, error));
        if (frame.type != WHIT_NDF_ADAPTER) continue;
        WHIT_TRY(whit_adapter_check(frame.data, frame.size_bytes, frame.name, &view, error));
        if (!whit_ndf_is_loose(ndf) && memcmp(view.identity, whit_ndf_identity(ndf), WHIT_HASH_BYTES))
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "%s: adapter '%s' belongs to another model: convert it again for this one",
                             whit_ndf_path(ndf), frame.name);
    }
    return WHIT_OK;
}

/* Returns the identity of the file's model. For a file without a model, returns the identity of the model for which the
 * adapter in its first frame was made, or zeros if that frame contains no adapter. */
static const uint8_t *identity_of(const whit_ndf *ndf)
{
    whit_ndf_appended frame;
    static const uint8_t none[WHIT_HASH_BYTES];
    if (!whit_ndf_is_loose(ndf)) return whit_ndf_identity(ndf);
    if (whit_ndf_appended_type(ndf, 0) != WHIT_NDF_ADAPTER) return none;
    return whit_ndf_appended_at(ndf, 0, &frame, NULL) == WHIT_OK && frame.size_bytes >= sizeof none ? frame.data : none;
}

/* Facts from the file's frames, collected after all hashes were checked. */
struct facts {
    uint32_t n_turns; /* number of turns if the file is a session, else 0 */
    size_t n_tokens;
    bool is_session;
    whit_ndf_signed signatures;
};

static whit_status check_chain(const char *path, const uint8_t *key, struct facts *facts, whit_error *error)
{
    whit_ndf_log log;
    whit_session_record record = {0};
    WHIT_TRY(whit_ndf_log_open(path, WHIT_NDF_LOG_READ, NULL, &log, error));
    whit_status status = whit_ndf_check_signed(&log, key, &facts->signatures, error);
    facts->is_session = whit_ndf_log_frame(&log, 0)->type == WHIT_NDF_SESSION;
    if (status == WHIT_OK && facts->is_session) {
        status = whit_session_record_read(&log, NULL, NULL, NULL, &record, error);
        facts->n_turns = record.n_turns;
        facts->n_tokens = whit_session_record_n_ids(&record);
    }
    whit_session_record_free(&record);
    whit_ndf_log_close(&log);
    if (status == WHIT_OK && key && facts->signatures.n_signatures == 0)
        status = whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file is not signed with this key", path);
    return status;
}

/* Prints the kind of a file without a model; its first frame determines the kind. */
static void print_loose(cli_call *call, const whit_ndf *ndf)
{
    char identity[2 * WHIT_HASH_BYTES + 1];
    uint32_t type = whit_ndf_appended_type(ndf, 0), n_commits = 0;
    if (type == WHIT_NDF_ADAPTER) {
        whit_hash_hex(identity_of(ndf), identity);
        cli_print(call, "adapter of the model %s\n", identity);
    } else if (type == WHIT_NDF_MEMORY) {
        for (uint32_t i = 0; i < whit_ndf_n_appended(ndf); i++)
            n_commits += whit_ndf_appended_type(ndf, i) == WHIT_NDF_MEMORY;
        cli_print(call, "memory of %u commit%s\n", n_commits, whit_plural(n_commits));
    } else {
        cli_print(call, "frames of type %s\n", whit_ndf_frame_type_name(type));
    }
}

static void print_whole(cli_call *call, const whit_ndf *ndf, uint64_t n_bytes, const struct facts *facts)
{
    const char *path = call->operands[0];
    char identity[2 * WHIT_HASH_BYTES + 1];
    cli_print(call, "%s: every hash matches, %.1f MB, ", path, (double)n_bytes / 1e6);
    if (facts->is_session) {
        cli_print(call, "session of %u turns, %zu tokens\n", facts->n_turns, facts->n_tokens);
    } else if (whit_ndf_is_loose(ndf)) {
        print_loose(call, ndf);
    } else {
        whit_hash_hex(identity_of(ndf), identity);
        cli_print(call, "identity %s\n", identity);
    }
    if (!facts->signatures.n_signatures) return;
    cli_print(call, "%s: signed up to frame %u", path, facts->signatures.n_frames - 1);
    if (facts->signatures.n_unsigned)
        cli_print(call, "; %u later frames are not signed\n", facts->signatures.n_unsigned);
    else
        cli_print(call, ", all of it\n");
}

/* ---- replay --------------------------------------------------------------------------------- */

static int replay(cli_call *call)
{
    const struct verify_values *values = call->values;
    const char *path = call->operands[0];
    whit_model *model = NULL;
    cli_adapters adapters = {0};
    whit_session_replay replay = whit_session_replay_default();
    whit_error error;
    cli_session_flags flags = {.n_threads = values->n_threads};
    int status = cli_open_flagged_model(call, &values->model, &model);
    if (status == CLI_OK) status = cli_open_adapters(call, &values->adapters, model, &adapters);
    if (status == CLI_OK) {
        whit_session_options wanted = cli_session_wanted(&flags, WHIT_ACT_I8);
        if (whit_session_replay_file(model, &wanted, adapters.mounts, adapters.n, path, &replay, &error) != WHIT_OK)
            status = cli_fail_error(call, &error);
        else if (replay.is_same && values->json)
            status = CLI_OK; /* run_verify has printed the JSON object already */
        else if (replay.is_same)
            cli_print(call, "%s: this model gives exactly these %llu tokens in %u turns\n", path,
                      (unsigned long long)replay.n_picked, replay.n_turns);
        else if (replay.id >= 0)
            status = cli_fail(call, CLI_REFUSED,
                              "%s: turn %u, token %llu: the file says %d, and this model with these settings gives %d",
                              path, replay.turn, (unsigned long long)replay.position, replay.id, replay.id_here);
        else
            status = cli_fail(call, CLI_REFUSED,
                              "%s: turn %u, from token %llu on: the KV cache in the file differs from this model's",
                              path, replay.turn, (unsigned long long)replay.position);
    }
    cli_close_adapters(&adapters);
    whit_model_close(model);
    return status;
}

static int verify_detached(cli_call *call)
{
    const struct verify_values *values = call->values;
    const char *path = call->operands[0];
    uint8_t key[WHIT_SIGN_KEY_BYTES];
    whit_error error;
    if (!values->key || values->replay || values->json)
        return cli_fail(call, CLI_USAGE, "--detached needs --key PUB and no other option");
    if (whit_sign_read_public(values->key, key, &error) != WHIT_OK ||
        whit_file_check_signed(path, key, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    cli_print(call, "%s: the signature in %s.sig is valid\n", path, path);
    return CLI_OK;
}

static int run_verify(cli_call *call)
{
    const struct verify_values *values = call->values;
    whit_ndf *ndf = NULL;
    whit_error error;
    uint8_t key[WHIT_SIGN_KEY_BYTES];
    struct facts facts = {.n_turns = 0};
    char found[CLI_PATH_BYTES];
    if (values->detached) return verify_detached(call);
    if (cli_find_model(call->operands[0], found, &error) != WHIT_OK) return cli_fail_error(call, &error);
    call->operands[0] = found;
    cli_guard_likely(found);
    if (values->key && whit_sign_read_public(values->key, key, &error) != WHIT_OK) return cli_fail_error(call, &error);
    if ((whit_ndf_begins_loose(call->operands[0]) ? whit_ndf_open_loose : whit_ndf_open)(call->operands[0], NULL, &ndf,
                                                                                         &error) != WHIT_OK)
        return cli_fail_error(call, &error);

    struct listener listener = {call, values->json ? json_array() : NULL};
    whit_ndf_verify_result result = {0};
    whit_status status = whit_ndf_verify(ndf, values->n_threads, on_damage, &listener, &result, &error);
    if (status == WHIT_OK) status = check_adapters(ndf, &error);
    if (status == WHIT_OK) status = check_chain(call->operands[0], values->key ? key : NULL, &facts, &error);
    char identity[2 * WHIT_HASH_BYTES + 1];
    whit_hash_hex(identity_of(ndf), identity);
    if (values->json)
        cli_print_json(call,
                       json_pack("{s:b, s:s, s:I, s:I, s:I, s:o}", "ok", status == WHIT_OK, "identity", identity,
                                 "bytes", (json_int_t)result.n_bytes, "signatures",
                                 (json_int_t)facts.signatures.n_signatures, "unsigned_frames",
                                 (json_int_t)facts.signatures.n_unsigned, "damage", listener.list));
    else if (status == WHIT_OK)
        print_whole(call, ndf, result.n_bytes, &facts);
    whit_ndf_close(ndf);
    if (status != WHIT_OK) return cli_fail_error(call, &error);
    if (!values->replay) return CLI_OK;
    return facts.is_session
        ? replay(call)
        : cli_fail(call, CLI_USAGE, "--replay is for sessions; %s is not a session", call->operands[0]);
}

const cli_verb cli_verify_verb = {
    "verify",
    "FILE",
    1,
    1,
    "check every byte of an .ndf against its hashes",
    "Reads the whole file with several threads and names the places that are damaged, the first frame that was "
    "altered, cut, reordered or exchanged before all. Signatures in it must hold; --key asks for one by that key. "
    "--replay shows that a session was answered by this very model. The exit status is 3 where anything is wrong.\n"
    "  whit verify model.ndf --key mine.pub\n"
    "  whit verify chat.ndf --replay -m model.ndf",
    {{"OPTIONS", options, 0}, {"MODEL", cli_model_options, AT(model)}, {"ADAPTERS", cli_adapter_options, AT(adapters)}},
    sizeof(struct verify_values),
    &defaults,
    run_verify,
};
