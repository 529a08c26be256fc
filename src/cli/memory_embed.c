/* SPDX-License-Identifier: MIT */
#include "cli/memory_embed.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "cli/embed_text.h"
#include "cli/flags.h"

enum { CONTEXT_TOKENS = 2048, IDENTITY_BYTES = 65 };

/* ---- the model of a store -------------------------------------------------------------------------- */

static int check_store(cli_call *call, const whit_model *model, const char *store)
{
    char path[PATH_MAX], own[IDENTITY_BYTES + 1];
    whit_buf text = {0};
    whit_error error;
    int status = CLI_OK;
    if (snprintf(path, sizeof path, "%s.model", store) >= (int)sizeof path)
        return cli_fail(call, CLI_USAGE, "%.200s: the path is longer than about 4,090 bytes, the limit", store);
    const bool is_named = whit_path_exists(path);
    if (!model)
        return is_named
            ? cli_fail(call, CLI_USAGE,
                       "%s: its vectors were computed by a model (%s): name that model by --embed MODEL", store, path)
            : CLI_OK;
    for (size_t i = 0; i < 32; i++) snprintf(own + 2 * i, 3, "%02x", whit_model_identity(model)[i]);
    memcpy(own + 64, "\n", 2);
    if (!is_named && whit_path_exists(store))
        return cli_fail(call, CLI_USAGE,
                        "%s: its vectors were computed without a model, so --embed needs another store", store);
    if (!is_named) {
        if (whit_write_file(path, own, IDENTITY_BYTES, &error) != WHIT_OK) status = cli_fail_error(call, &error);
    } else if (whit_read_file(path, 4096, &text, &error) != WHIT_OK) {
        status = cli_fail_error(call, &error);
    } else if (text.size_bytes != IDENTITY_BYTES || memcmp(text.data, own, IDENTITY_BYTES) != 0) {
        status =
            cli_fail(call, CLI_REFUSED,
                     "%s: its vectors were computed by another model; %s contains that model's identity", store, path);
    }
    whit_buf_free(&text);
    return status;
}

/* ---- the model ------------------------------------------------------------------------------------- */

int cli_memory_embedder_open(cli_call *call, const char *path, const char *store, cli_memory_embedder *embedder)
{
    whit_session_options wanted = whit_session_options_default();
    whit_error error;
    *embedder = (cli_memory_embedder){.model = NULL};
    if (!path) return check_store(call, NULL, store);
    int status = cli_open_model(call, path, false, &embedder->model);
    if (status == CLI_OK && whit_model_n_labels(embedder->model))
        status = cli_fail(call, CLI_REFUSED,
                          "%s: this model computes scores of documents, not vectors: name an embedding model", path);
    if (status == CLI_OK) status = check_store(call, embedder->model, store);
    if (status != CLI_OK) return status;
    embedder->query = whit_model_metadata(embedder->model, "embedding.prompt.query");
    embedder->document = whit_model_metadata(embedder->model, "embedding.prompt.document");
    embedder->width = whit_model_embedding_size(embedder->model);
    embedder->values = malloc((embedder->width + 1) * sizeof *embedder->values);
    if (!embedder->values) return cli_fail(call, CLI_LIMIT, "not enough memory for a vector");
    const uint32_t n_ctx = whit_model_context_size(embedder->model);
    wanted.n_ctx_tokens = n_ctx < CONTEXT_TOKENS ? n_ctx : CONTEXT_TOKENS;
    wanted.kv = WHIT_KV_F32;
    wanted.only_vectors = true;
    if (whit_session_open(embedder->model, &wanted, &embedder->session, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    return CLI_OK;
}

void cli_memory_embedder_close(cli_memory_embedder *embedder)
{
    whit_session_close(embedder->session);
    whit_model_close(embedder->model);
    free(embedder->values);
}

/* ---- random planes --------------------------------------------------------------------------------- */

/* Returns the i-th number of Steele's generator SplitMix64; its bits are the signs of coordinates of the planes. */
static uint64_t plane_signs(uint64_t i)
{
    uint64_t z = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Sets bit b to the side of plane b on which a vector lies. Sums are double and in the order of the coordinates, so
 * that the bits are the same on every machine. */
static void round_to_planes(const float *values, size_t width, uint64_t out[WHIT_MEMORY_WORDS])
{
    const size_t n_blocks = (width + 63) / 64;
    memset(out, 0, WHIT_MEMORY_WORDS * sizeof *out);
    for (size_t bit = 0; bit < WHIT_MEMORY_BITS; bit++) {
        double sum = 0;
        for (size_t block = 0; block < n_blocks; block++) {
            uint64_t signs = plane_signs(bit * n_blocks + block);
            for (size_t i = 64 * block; i < width && i < 64 * block + 64; i++, signs >>= 1)
                sum += signs & 1 ? (double)values[i] : -(double)values[i];
        }
        if (sum > 0) out[bit / 64] |= UINT64_C(1) << bit % 64;
    }
}

int cli_memory_embed(cli_call *call, cli_memory_embedder *embedder, const char *text, size_t n_bytes, bool is_query,
                     uint64_t out[WHIT_MEMORY_WORDS])
{
    const char *prompt = is_query ? embedder->query : embedder->document;
    whit_embed_text made = {0};
    whit_error error;
    int status = cli_embed_text(call, embedder->model, prompt, text, n_bytes, &made);
    if (status == CLI_OK && whit_embed_texts(embedder->session, &made, 1, NULL, embedder->values, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    if (status == CLI_OK) round_to_planes(embedder->values, embedder->width, out);
    cli_embed_text_free(&made);
    return status;
}
