/* SPDX-License-Identifier: MIT
 * Implements whit sign, which makes Ed25519 signatures in models, adapters and sessions, and beside other files. */
#include "cli/verbs.h"
#include "format/file_sign.h"

struct sign_values {
    const char *new_key, *key;
    bool detached;
};
static const struct sign_values defaults;

#define AT(member) offsetof(struct sign_values, member)
static const cli_option options[] = {
    {"--new-key", CLI_FILE, AT(new_key), "KEY", "Make a pair of keys: KEY, to be kept secret, and KEY.pub."},
    {"--key", CLI_FILE, AT(key), "KEY", "The secret key to sign with."},
    {"--detached", CLI_FLAG, AT(detached), NULL, "Sign any file; the signature goes into FILE.sig beside it."},
    {0},
};

static int run_sign(cli_call *call)
{
    const struct sign_values *values = call->values;
    whit_error error;
    if (!values->new_key == !values->key || (values->key && call->n_operands == 0) ||
        (values->new_key && call->n_operands))
        return cli_fail(call, CLI_USAGE, "give either --new-key KEY, or FILE --key KEY");
    if (values->new_key) {
        uint8_t public_key[WHIT_SIGN_KEY_BYTES];
        char hex[2 * WHIT_SIGN_KEY_BYTES + 1];
        if (whit_sign_new_key(values->new_key, public_key, &error) != WHIT_OK) return cli_fail_error(call, &error);
        whit_hash_hex(public_key, hex);
        cli_print(call, "%s: secret; %s.pub: public, %s\n", values->new_key, values->new_key, hex);
        return CLI_OK;
    }
    const char *path = call->operands[0];
    whit_status status =
        values->detached ? whit_file_sign(path, values->key, &error) : whit_ndf_sign(path, values->key, NULL, &error);
    if (status != WHIT_OK) return cli_fail_error(call, &error);
    cli_print(call, "%s: signed\n", path);
    return CLI_OK;
}

const cli_verb cli_sign_verb = {
    "sign",
    "[FILE]",
    0,
    1,
    "sign an .ndf, or any file, with a key of one's own",
    "Appends an Ed25519 signature of everything that the file holds: a model, an adapter or a session. Frames "
    "that are appended later are not covered; whit verify FILE --key KEY.pub says so.\n"
    "  whit sign --new-key mine\n"
    "  whit sign model.ndf --key mine\n"
    "  whit verify model.ndf --key mine.pub\n"
    "Other files are not changed: their signature lies beside them.\n"
    "  whit sign SHA256SUMS --detached --key mine\n"
    "  whit verify SHA256SUMS --detached --key mine.pub",
    {{"OPTIONS", options, 0}},
    sizeof(struct sign_values),
    &defaults,
    run_sign,
};
