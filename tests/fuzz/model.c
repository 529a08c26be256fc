/* SPDX-License-Identifier: MIT
 * Uses a damaged model file: opens it (other formats than .ndf are imported and converted), makes a session, tokenises,
 * steps, picks and prints. Bits of the input's first byte:
 *   bit 0: edits of a valid .ndf, whose hashes are made right again; otherwise of a valid GGUF
 *   bit 1: edits are in the first 8 KiB, where configuration and directory are
 *   bit 2: no edits: the rest of the input is the file
 * An edit is three bytes of offset and one of value. */
#include "ndf_reseal.h"
#include "tiny_model.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static whit_buf base[2]; /* sound files: [0] GGUF, [1] .ndf */

static bool read_whole(const char *path, whit_buf *buf)
{
    return whit_read_file(path, 1 << 24, buf, NULL) == WHIT_OK;
}

static void make_bases(void)
{
    tiny_model tiny = {.seed = 5, .n_layers = 1, .n_embd = 16, .n_ff = 16, .n_heads = 2, .n_kv_heads = 1, .n_ctx = 64};
    char folder[] = "/tmp/whit-fuzz-XXXXXX", gguf[64], command[128];
    whit_error error;
    whit_model *model;
    if (!mkdtemp(folder)) abort();
    snprintf(gguf, sizeof gguf, "%s/tiny.gguf", folder);
    if (!tiny_model_write(&tiny, gguf) || !read_whole(gguf, &base[0])) abort();
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    if (whit_model_open(gguf, &options, &model, &error) != WHIT_OK) abort();
    const void *address;
    size_t size;
    const char *path;
    if (!whit_model_mapping(model, 0, &address, &size, &path) || !whit_buf_append(&base[1], address, size)) abort();
    whit_model_close(model);
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0) abort();
}

static void edit(whit_buf *file, const uint8_t *data, size_t size, bool near)
{
    size_t reach = near && file->size_bytes > 8192 ? 8192 : file->size_bytes;
    for (; size >= 4 && reach; data += 4, size -= 4) {
        size_t at = ((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2]) % reach;
        file->data[at] = data[3];
    }
}

static bool ignore(void *user, const char *text, size_t n)
{
    (void)user;
    return n == 0 || text[0] != 1;
}

static void live(const char *path)
{
    whit_error error;
    whit_model *model = NULL;
    whit_session *session = NULL;
    whit_sampler *sampler = NULL;
    whit_model_options model_options = {.struct_bytes = sizeof model_options, .no_cache = true};
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 24;
    options.n_batch_tokens = 8;
    options.n_threads = 1;
    if (whit_model_open(path, &model_options, &model, &error) == WHIT_OK &&
        whit_session_open(model, &options, &session, &error) == WHIT_OK &&
        whit_sampler_open(model, NULL, &sampler, &error) == WHIT_OK) {
        int32_t ids[16] = {1, 2};
        size_t n = 2;
        if (whit_model_has_tokenizer(model) &&
            (whit_tokenize(model, "the end\n", 8, true, true, ids, 16, &n, &error) != WHIT_OK || n == 0))
            n = 1;
        whit_generate_options generate = whit_generate_options_default();
        generate.n_tokens = 4;
        generate.on_text = ignore;
        whit_ignore(whit_generate(session, sampler, ids, n, &generate, NULL, &error));
    }
    whit_sampler_close(sampler);
    whit_session_close(session);
    whit_model_close(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!base[0].size_bytes) make_bases();
    if (size < 1) return 0;
    uint8_t how = data[0];
    whit_buf file = {0};
    if (how & 4) {
        whit_buf_append(&file, data + 1, size - 1);
    } else {
        whit_buf_append(&file, base[how & 1].data, base[how & 1].size_bytes);
        edit(&file, data + 1, size - 1, how & 2);
        if (how & 1) ndf_reseal(file.data, file.size_bytes);
    }
    int fd = memfd_create("model", MFD_CLOEXEC);
    if (fd >= 0 && !file.failed && write(fd, file.data, file.size_bytes) == (ssize_t)file.size_bytes) {
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        live(path);
    }
    if (fd >= 0) close(fd);
    whit_buf_free(&file);
    return 0;
}
