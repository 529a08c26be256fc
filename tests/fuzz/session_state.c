/* SPDX-License-Identifier: MIT
 * Loads damaged session files with recurrent states into a session, and continues those that can be loaded. Bits of the
 * input's first byte:
 *   bit 0: a model with delta rules, otherwise one with short convolutions
 *   bit 1: the KV cache is packed
 *   bit 2: edits are in the last 8 KiB, where the newest state ends, otherwise anywhere
 *   bit 3: hashes are not made right again
 * The rest of the input is edits: three bytes of offset, one of value. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ndf_reseal.h"
#include "random_model.h"
#include "whit/model.h"
#include "whit/session_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_KINDS = 4, N_TOKENS = 150, N_CTX = 200 };
static whit_ndf_writer *writers[2]; /* writers of the models, which own the memory of the models' files */
static whit_model *models[2];
static whit_session *sessions[N_KINDS];
static whit_buf base[N_KINDS];
static char path[64]; /* path of the session file to load */

static const char purpose[] = "fuzz";

/* Opens the first random model with recurrent layers: with delta rules (has_delta) or with short convolutions. */
static whit_model *open_hybrid(bool has_delta, whit_ndf_writer **writer)
{
    whit_error error;
    whit_config config;
    whit_model *model;
    char from[64];
    for (uint32_t i = 0; i < random_model_count(); i++) {
        if (random_model_make(i, writer, &config, &error) != WHIT_OK) abort();
        if (!config.conv_taps || (config.delta_heads != 0) != has_delta) {
            whit_ndf_writer_close(*writer);
            continue;
        }
        const whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
        snprintf(from, sizeof from, "/proc/self/fd/%d", whit_ndf_writer_fd(*writer));
        if (whit_model_open(from, &options, &model, &error) != WHIT_OK) abort();
        return model;
    }
    abort();
}

/* Feeds n tokens. Returns false if the logits are not finite. */
static bool feed(whit_session *session, uint32_t n)
{
    whit_error error;
    whit_step_token tokens[N_TOKENS];
    for (uint32_t i = 0; i < n; i++) tokens[i] = (whit_step_token){.id = (int32_t)(i * 7 % 60)};
    tokens[n - 1].want_logits = true;
    const whit_status status = whit_session_step(session, tokens, n, &error);
    if (status == WHIT_OK && whit_session_logits(session, 0)) return true;
    /* damaged states may overflow */
    if (status == WHIT_ERROR_NUMERIC) return false;
    fprintf(stderr, "a step: status %d: %s\n", (int)status, error.message);
    abort();
}

static void remove_file(void)
{
    unlink(path);
}

static void make_bases(void)
{
    whit_error error;
    snprintf(path, sizeof path, "/tmp/whit-fuzz-XXXXXX");
    const int fd = mkstemp(path);
    if (fd < 0 || atexit(remove_file) != 0) abort();
    close(fd);
    for (int i = 0; i < 2; i++) models[i] = open_hybrid(i, &writers[i]);
    for (int i = 0; i < N_KINDS; i++) {
        uint32_t n;
        whit_session_options options = whit_session_options_default();
        options.n_ctx_tokens = N_CTX;
        options.n_threads = 1;
        options.n_marks = 4;
        options.n_mark_tokens = 64;
        options.kv = i & 2 ? WHIT_KV_K4V2 : WHIT_KV_F16;
        options.n_kv_window = 1;
        if (whit_session_open(models[i & 1], &options, &sessions[i], &error) != WHIT_OK) abort();
        if (!feed(sessions[i], N_TOKENS) ||
            whit_session_snapshot(sessions[i], 0, path, purpose, &n, &error) != WHIT_OK || n != N_TOKENS ||
            whit_read_file(path, 1 << 26, &base[i], NULL) != WHIT_OK ||
            whit_session_truncate(sessions[i], 0, 0, &error) != WHIT_OK)
            abort();
    }
}

/* Continues a loaded sequence: after its end, after a truncation, and from a mark. */
static void continue_sequence(whit_session *session)
{
    whit_error error;
    int32_t ids[N_TOKENS + 1];
    uint32_t n_present;
    const uint32_t n = whit_session_position(session, 0);
    if (n + 3 <= N_CTX && !feed(session, 3)) return;
    if (whit_session_truncate(session, 0, whit_session_position(session, 0) / 2, &error) != WHIT_OK) abort();
    if (!feed(session, 3)) return;
    for (int32_t i = 0; i <= N_TOKENS; i++) ids[i] = i * 7 % 60;
    if (whit_session_reuse(session, 0, ids, N_TOKENS + 1, &n_present, &error) != WHIT_OK) abort();
    (void)feed(session, 1);
}

static void load(whit_session *session)
{
    whit_error error = {0};
    whit_session_file *file;
    const whit_status status = whit_session_load(session, 0, path, purpose, &file, &error);
    if (status == WHIT_OK) {
        whit_session_file_close(file);
        continue_sequence(session);
    } else if (!error.message[0] || strchr(error.message, '\n') || whit_session_position(session, 0)) {
        fprintf(stderr, "status %d at %u: %s\n", (int)status, whit_session_position(session, 0), error.message);
        abort();
    }
    if (whit_session_truncate(session, 0, 0, &error) != WHIT_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!models[0]) make_bases();
    if (size < 1) return 0;
    const uint8_t how = data[0];
    whit_buf file = {0};
    whit_buf_append(&file, base[how & 3].data, base[how & 3].size_bytes);
    if (file.failed) return 0;
    const size_t reach = how & 4 && file.size_bytes > 8192 ? 8192 : file.size_bytes;
    for (const uint8_t *at = data + 1; size >= 5; at += 4, size -= 4)
        file.data[file.size_bytes - reach + ((size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2]) % reach] = at[3];
    if (!(how & 8)) ndf_reseal(file.data, file.size_bytes);
    const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    const bool is_written = fd >= 0 && write(fd, file.data, file.size_bytes) == (ssize_t)file.size_bytes;
    if (fd >= 0) close(fd);
    if (is_written) load(sessions[how & 3]);
    whit_buf_free(&file);
    return 0;
}
