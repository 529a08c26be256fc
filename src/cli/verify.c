/* SPDX-License-Identifier: MIT
 * whit verify: every byte of an .ndf against its hashes. */
#include "cli/verbs.h"
#include "format/ndf_verify.h"
#include "model/adapter.h"

struct verify_values {
    uint32_t n_threads;
    bool json;
};
static const struct verify_values defaults;

#define AT(member) offsetof(struct verify_values, member)
static const cli_option options[] = {
    {"-t, --threads", CLI_COUNT, AT(n_threads), "N", "Threads; 0, the default, is one per physical core.", 0, 1024},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object with the list \"damage\"."},
    {0},
};

struct listener {
    cli_call *call;
    json_t *list; /* NULL: print lines */
};

static void on_damage(void *user, const whit_ndf_damage *damage)
{
    struct listener *listener = user;
    const char *frame = damage->type ? whit_ndf_frame_type_name(damage->type) : "after the last commit";
    if (listener->list)
        json_array_append_new(listener->list,
                              json_pack("{s:s, s:s, s:i, s:I, s:I, s:s}", "file", damage->path, "frame", frame, "index",
                                        (int)damage->frame, "offset", (json_int_t)damage->offset, "bytes",
                                        (json_int_t)damage->size_bytes, "what", damage->what));
    else
        cli_print(listener->call, "%s: bytes %llu to %llu (%s): %s\n", damage->path, (unsigned long long)damage->offset,
                  (unsigned long long)(damage->offset + damage->size_bytes), frame, damage->what);
}

/* Whole frames may still hold what is no adapter. */
static whit_status check_adapters(const whit_ndf *ndf, whit_error *error)
{
    for (uint32_t i = 0; i < whit_ndf_n_appended(ndf); i++) {
        whit_ndf_appended frame;
        whit_adapter_view view;
        WHIT_TRY(whit_ndf_appended_at(ndf, i, &frame, error));
        if (frame.type != WHIT_NDF_ADAPTER) continue;
        WHIT_TRY(whit_adapter_check(frame.data, frame.size_bytes, frame.name, &view, error));
        if (!whit_ndf_is_loose(ndf) && memcmp(view.identity, whit_ndf_identity(ndf), WHIT_HASH_BYTES))
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: adapter '%s' is of another model", whit_ndf_path(ndf),
                             frame.name);
    }
    return WHIT_OK;
}

static const uint8_t *identity_of(const whit_ndf *ndf)
{
    whit_ndf_appended frame;
    static const uint8_t none[WHIT_HASH_BYTES];
    if (!whit_ndf_is_loose(ndf)) return whit_ndf_identity(ndf);
    return whit_ndf_appended_at(ndf, 0, &frame, NULL) == WHIT_OK && frame.size_bytes >= sizeof none ? frame.data : none;
}

static int run(cli_call *call)
{
    const struct verify_values *values = call->values;
    whit_ndf *ndf = NULL;
    whit_error error;
    cli_guard_likely(call->operands[0]);
    if (whit_ndf_open_loose(call->operands[0], NULL, &ndf, &error) != WHIT_OK &&
        whit_ndf_open(call->operands[0], NULL, &ndf, &error) != WHIT_OK)
        return cli_fail_error(call, &error);

    struct listener listener = {call, values->json ? json_array() : NULL};
    whit_ndf_verify_result result = {0};
    whit_status status = whit_ndf_verify(ndf, values->n_threads, on_damage, &listener, &result, &error);
    if (status == WHIT_OK) status = check_adapters(ndf, &error);
    char identity[2 * WHIT_HASH_BYTES + 1];
    whit_hash_hex(identity_of(ndf), identity);
    if (values->json)
        cli_print_json(call,
                       json_pack("{s:b, s:s, s:I, s:o}", "ok", status == WHIT_OK, "identity", identity, "bytes",
                                 (json_int_t)result.n_bytes, "damage", listener.list));
    else if (status == WHIT_OK)
        cli_print(call, "%s: whole, %.1f MB, %s %s\n", call->operands[0], (double)result.n_bytes / 1e6,
                  whit_ndf_is_loose(ndf) ? "adapter of the model" : "identity", identity);
    whit_ndf_close(ndf);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

const cli_verb cli_verify_verb = {
    "verify",
    "FILE",
    1,
    1,
    "check every byte of an .ndf against its hashes",
    "Reads the whole file with several threads and names the places that are damaged. The exit "
    "status is 3 where there are any.",
    {{"OPTIONS", options, 0}},
    sizeof(struct verify_values),
    &defaults,
    run,
};
