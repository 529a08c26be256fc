/* SPDX-License-Identifier: MIT
 * Implements whit pull, which downloads a model from a hub into the cache. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/phrase.h"
#include "cli/names.h"
#include "cli/verbs.h"
#include "hub/pull.h"
#include "hub/settings.h"

struct pull_values {
    const char *revision, *token;
    bool json;
};
static const struct pull_values defaults;

#define AT(member) offsetof(struct pull_values, member)
static const cli_option options[] = {
    {"--revision", CLI_TEXT, AT(revision), "REV",
     "Branch, tag or commit; main by default. It becomes a part of the name: OWNER/NAME@REV."},
    {"--token", CLI_TEXT, AT(token), "TOKEN",
     "The hub's token; others see it in the list of processes, so better set HF_TOKEN."},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object when done."},
    {0},
};

/* Measures the download rate over the last seconds, so that it reflects changes of the connection. */
struct meter {
    uint64_t since_ns, since_bytes;
    double bytes_per_s;
    bool begun;
};

static void measure_speed(struct meter *meter, uint64_t done_bytes)
{
    uint64_t now_ns = whit_now_ns(), passed_ns = now_ns - meter->since_ns;
    if (!meter->begun || done_bytes < meter->since_bytes) {
        *meter = (struct meter){now_ns, done_bytes, 0, true};
        return;
    }
    if (passed_ns < 500000000) return;
    double rate = (double)(done_bytes - meter->since_bytes) * 1e9 / (double)passed_ns;
    meter->bytes_per_s = meter->bytes_per_s > 0 ? 0.7 * meter->bytes_per_s + 0.3 * rate : rate;
    meter->since_ns = now_ns;
    meter->since_bytes = done_bytes;
}

static bool on_progress(void *user, const whit_hub_progress *progress)
{
    struct meter *meter = user;
    char line[256], done[32], total[32], rate[32], left[32] = "";
    measure_speed(meter, progress->done_bytes);
    if (meter->bytes_per_s > 0 && progress->total_bytes > progress->done_bytes) {
        uint64_t s = (uint64_t)((double)(progress->total_bytes - progress->done_bytes) / meter->bytes_per_s);
        int64_t first = s < 3600 ? s / 60 : s / 3600;
        int64_t second = s < 3600 ? s % 60 : s / 60 % 60;
        snprintf(left, sizeof left, s < 3600 ? ", %d:%02d left" : ", %d h %02d min left", (int)first, (int)second);
    }
    const char *slash = strrchr(progress->file, '/');
    int n = snprintf(line, sizeof line, "%.40s  %s", slash ? slash + 1 : progress->file,
                     cli_bytes(progress->done_bytes, done));
    if (progress->total_bytes)
        n += snprintf(line + n, sizeof line - (size_t)n, " of %s", cli_bytes(progress->total_bytes, total));
    if (meter->bytes_per_s > 0)
        snprintf(line + n, sizeof line - (size_t)n, ", %s/s%s", cli_bytes((uint64_t)meter->bytes_per_s, rate), left);
    return cli_progress(NULL, line,
                        progress->total_bytes ? (double)progress->done_bytes / (double)progress->total_bytes : 0);
}

static void report_pulled(cli_call *call, const whit_hub_name *name, const whit_hub_pulled *pulled, bool json)
{
    char text[WHIT_HUB_FOLDER_BYTES], size[32];
    whit_hub_name_print(name, text);
    if (json) {
        cli_print_json(call,
                       json_pack("{s:s, s:o, s:s, s:s, s:I, s:I, s:I}", "name", text, "path",
                                 cli_json_path(pulled->path), "commit", pulled->commit, "licence", pulled->licence,
                                 "files", (json_int_t)pulled->n_files, "bytes", (json_int_t)pulled->size_bytes,
                                 "fetched_bytes", (json_int_t)pulled->fetched_bytes));
        return;
    }
    const char *kept = pulled->fetched_bytes ? "" : ", all of it here already";
    const char *licence = pulled->licence[0] ? ", licence " : "";
    cli_note("%s%s%s: %zu file%s, %s%s%s%s", text, name->file[0] ? ":" : "", name->file, pulled->n_files,
             whit_plural(pulled->n_files), cli_bytes(pulled->size_bytes, size), kept, licence, pulled->licence);
    cli_print(call, "%s\n", pulled->path);
}

static int run_pull(cli_call *call)
{
    const struct pull_values *values = call->values;
    char endpoint[WHIT_HUB_ENDPOINT_BYTES], token[WHIT_HUB_TOKEN_BYTES], asking[WHIT_HUB_ENDPOINT_BYTES + 8];
    const char *from;
    struct meter meter = {0};
    const whit_hub_pull_options pull = {
        .endpoint = endpoint, .token = token, .cancel = cli_cancelled(), .progress = on_progress, .user = &meter};
    whit_hub_pulled pulled;
    whit_hub_name name;
    whit_error error;
    whit_status status = whit_hub_name_parse(call->operands[0], &name, &error);
    if (status == WHIT_OK && values->revision) status = whit_hub_name_revise(&name, values->revision, &error);
    if (status == WHIT_OK) status = whit_hub_endpoint(endpoint, &error);
    if (status == WHIT_OK) status = whit_hub_token(values->token, token, &from, &error);
    if (status == WHIT_OK) {
        snprintf(asking, sizeof asking, "asking %s", endpoint);
        /* shown before the first request, because the request to a wrong host fails only after some time */
        cli_progress(NULL, asking, 0);
        status = whit_hub_pull(&name, &pull, &pulled, &error);
    }
    cli_progress_end();
    if (status == WHIT_OK) {
        report_pulled(call, &name, &pulled, values->json);
        return CLI_OK;
    }
    if (*cli_cancelled()) return cli_fail(call, CLI_INTERRUPTED, "interrupted; the same command resumes the download");
    return cli_fail_error(call, &error);
}

const cli_verb cli_pull_verb = {
    "pull",
    "REPO[:FILE]",
    1,
    1,
    "download a model from a hub",
    "REPO is OWNER/NAME, or the address that a browser shows for it, for a branch or for a file. FILE is a file's "
    "name, a pattern in quotes, or a tag of GGUF files such as Q4_K_M or "
    "i2_s; all parts of a split file come along. Without it the repository's safetensors with their "
    "configuration and tokenizer are taken, or its GGUF file where it has only one.\n"
    "The model is kept in the cache and known by its name to all verbs: OWNER/NAME, OWNER/NAME:FILE, or NAME alone "
    "where no other ends so. 'whit list' shows what is there, 'whit rm' removes it. Its path is printed on stdout.\n"
    "A download that was interrupted resumes where it stopped when it is started again. Every file is checked "
    "against the digest that the hub names, and files that are here already are not fetched again.\n"
    "  whit pull OWNER/NAME:i2_s\n"
    "  whit pull https://huggingface.co/OWNER/NAME\n"
    "  whit run -m NAME:i2_s -p \"Once upon a time\"",
    {{"OPTIONS", options, 0}},
    sizeof(struct pull_values),
    &defaults,
    run_pull,
};
