/* SPDX-License-Identifier: MIT
 * Opens draft models in damaged files, guesses and generates with them. Bits of the input's first byte:
 *   bit 0: a draft model that reads the keys of a valid model; otherwise a model with a draft block
 *   bit 1: edits are in the first 8 KiB, where configuration and directory are
 * The rest of the input is edits: three bytes of offset, one of value. Hashes are made right again. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "ndf_reseal.h"
#include "random_model.h"
#include "runtime/drafter.h"
#include "runtime/session.h"
#include "whit/generation.h"
#include "whit/steps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOCK, READER, N_BASES };
static whit_buf base[N_BASES];
static whit_model *target; /* model whose keys the draft model READER reads */

static void read_written(whit_ndf_writer *writer, whit_buf *buf)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(writer));
    if (whit_read_file(path, 1 << 26, buf, NULL) != WHIT_OK) abort();
}

/* Returns the index of the first random model with a draft block, or of the given family. */
static uint32_t find_model(const char *family)
{
    for (uint32_t i = 0; i < random_model_count(); i++) {
        whit_error error;
        whit_config config;
        whit_ndf_writer *writer;
        if (random_model_make(i, &writer, &config, &error) != WHIT_OK) abort();
        whit_ndf_writer_close(writer);
        if (family ? strcmp(config.family, family) == 0 : config.n_draft_layers != 0) return i;
    }
    abort();
}

static void make_bases(void)
{
    static whit_ndf_writer *kept;
    whit_error error;
    whit_config config;
    whit_ndf_writer *writer;
    char path[64];
    if (random_model_make(find_model(NULL), &writer, &config, &error) != WHIT_OK) abort();
    read_written(writer, &base[BLOCK]);
    whit_ndf_writer_close(writer);
    if (random_model_make_drafter(false, &writer, &error) != WHIT_OK) abort();
    read_written(writer, &base[READER]);
    whit_ndf_writer_close(writer);
    if (random_model_make(find_model("gemma4"), &kept, &config, &error) != WHIT_OK) abort();
    const whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(kept));
    if (whit_model_open(path, &options, &target, &error) != WHIT_OK) abort();
}

static void edit(whit_buf *file, const uint8_t *data, size_t size, bool near)
{
    const size_t reach = near && file->size_bytes > 8192 ? 8192 : file->size_bytes;
    for (; size >= 4; data += 4, size -= 4) {
        const size_t at = ((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2]) % reach;
        file->data[at] = data[3];
    }
}

/* Generates guesses after a prompt, then a text that uses guesses. */
static void use_drafter(const whit_model *model, const whit_model *drafter)
{
    enum { N_PROMPT = 5, N_GUESSES = 3 };
    whit_error error;
    whit_session *session;
    whit_sampler *sampler = NULL;
    whit_step_token tokens[N_PROMPT] = {{0}};
    int32_t ids[N_PROMPT] = {0}, guesses[N_GUESSES];
    const uint32_t n_vocab = whit_model_vocab_size(model);
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 24;
    options.n_batch_tokens = 8;
    options.n_threads = 1;
    options.n_logits = 1 + N_GUESSES;
    if (whit_session_open_drafting(model, &options, drafter, &session, &error) != WHIT_OK) return;
    for (uint32_t i = 0; i < N_PROMPT; i++) {
        ids[i] = (int32_t)(i % n_vocab);
        tokens[i] = (whit_step_token){.id = ids[i], .want_logits = i + 1 == N_PROMPT};
    }
    if (whit_session_step(session, tokens, N_PROMPT, &error) == WHIT_OK) {
        const uint32_t n = whit_drafter_guess(session->drafter, 0, N_PROMPT, 0, N_GUESSES, guesses, NULL);
        for (uint32_t i = 0; i < n; i++)
            if (guesses[i] < 0 || (uint32_t)guesses[i] >= n_vocab) abort();
    }
    whit_generate_options generate = whit_generate_options_default();
    generate.n_tokens = 6;
    generate.n_draft_tokens = N_GUESSES;
    if (whit_session_truncate(session, 0, 0, &error) == WHIT_OK &&
        whit_sampler_open(model, NULL, &sampler, &error) == WHIT_OK)
        whit_ignore(whit_generate(session, sampler, ids, N_PROMPT, &generate, NULL, &error));
    whit_sampler_close(sampler);
    whit_session_close(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!target) make_bases();
    if (size < 1) return 0;
    const int which = data[0] & 1 ? READER : BLOCK;
    whit_buf file = {0};
    whit_buf_append(&file, base[which].data, base[which].size_bytes);
    if (file.failed) return 0;
    edit(&file, data + 1, size - 1, data[0] & 2);
    ndf_reseal(file.data, file.size_bytes);
    const int fd = memfd_create("drafter", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, file.data, file.size_bytes) == (ssize_t)file.size_bytes) {
        whit_error error;
        whit_model *model;
        char path[64];
        const whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (whit_model_open(path, &options, &model, &error) == WHIT_OK) {
            use_drafter(which == READER ? target : model, model);
            whit_model_close(model);
        }
    }
    if (fd >= 0) close(fd);
    whit_buf_free(&file);
    return 0;
}
