/* SPDX-License-Identifier: MIT
 * Tests hybrids and mixtures of experts as GGUF files: an exported model computes the same bits, and has the keys,
 * names and shapes of the file that llama.cpp's converter made of the same folder. */
#include "prompt_logits.h"
#include "test_folder.h"

#include "format/gguf.h"
#include "model/export_gguf.h"
#include "runtime/session.h"

/* Returns the logits of the prompt for the model at `path`, and their number n; the caller frees them. */
static float *run_prompt(const char *path, size_t *n)
{
    whit_session_options options = whit_session_options_default();
    whit_model *model = open_model_at(path);
    options.n_threads = 1;
    float *logits = prompt_logits(model, options);
    *n = PROMPT_TOKENS * whit_model_vocab_size(model);
    whit_model_close(model);
    return logits;
}

static whit_status export_model(const char *from, const char *to, whit_error *error)
{
    whit_source source;
    const whit_export_options options = {.no_tokenizer = true};
    whit_status status = whit_source_open(from, NULL, &source, error);
    assert_ok(status, *error);
    status = whit_export_gguf(&source, &options, to, error);
    whit_source_close(&source);
    return status;
}

static void text_of(char out[128], const char *text, size_t n)
{
    snprintf(out, 128, "%.*s", (int)(n < 127 ? n : 127), text);
}

/* Keys of the architecture must have the same names and numbers. feed_forward_length is ignored in a mixture of
 * experts. */
static void compare_keys(const whit_gguf *have, const whit_gguf *wanted, const char *architecture)
{
    for (size_t i = 0; i < wanted->n_keys; i++) {
        const whit_gguf_key *key = &wanted->keys[i];
        char name[128];
        text_of(name, key->name, key->name_bytes);
        if (strncmp(name, architecture, strlen(architecture)) != 0 || strstr(name, ".feed_forward_length") ||
            strstr(name, ".rope.dimension_sections"))
            continue;
        const whit_gguf_key *ours = whit_gguf_find(have, name);
        if (!ours || ours->n_elems != key->n_elems) fail_msg("key %s is missing or of another length", name);
        for (uint64_t k = 0; k < key->n_elems; k++) {
            double a, b;
            if (!whit_gguf_element_f64(key, k, &a)) continue;
            if (!whit_gguf_element_f64(ours, k, &b) || a != b) fail_msg("key %s: %g in place of %g", name, b, a);
        }
    }
}

/* Returns whether a tensor is a key or value matrix of a layer that uses the cache of another layer; such a matrix is
 * never read. */
static bool is_unread(const whit_gguf *gguf, const char *name)
{
    uint64_t n_layers = 0, n_shared = 0;
    unsigned layer;
    char part[64];
    whit_error error;
    assert_ok(whit_gguf_u64(gguf, "gemma4.block_count", &n_layers, &error), error);
    assert_ok(whit_gguf_u64(gguf, "gemma4.attention.shared_kv_layers", &n_shared, &error), error);
    if (!n_shared || sscanf(name, "blk.%u.%63s", &layer, part) != 2 || layer + n_shared < n_layers) return false;
    return strncmp(part, "attn_k", 6) == 0 || strncmp(part, "attn_v", 6) == 0;
}

/* Tensors must have the same names and shapes, and F32 tensors the same numbers. */
static void compare_tensors(const whit_gguf *have, const whit_gguf *wanted)
{
    size_t n_unread = 0;
    for (size_t i = 0; i < wanted->n_tensors; i++) {
        char name[128];
        text_of(name, wanted->tensors[i].name, wanted->tensors[i].name_bytes);
        n_unread += is_unread(wanted, name);
    }
    assert_int_equal(have->n_tensors, wanted->n_tensors - n_unread);
    for (size_t i = 0; i < wanted->n_tensors; i++) {
        const whit_gguf_tensor *t = &wanted->tensors[i];
        char name[128];
        text_of(name, t->name, t->name_bytes);
        if (is_unread(wanted, name)) continue;
        const whit_gguf_tensor *ours = whit_gguf_find_tensor(have, name);
        if (!ours || ours->n_dims != t->n_dims || memcmp(ours->dims, t->dims, sizeof t->dims) != 0)
            fail_msg("tensor %s is missing or has another shape", name);
        if ((ours->id == 0) != (t->id == 0)) fail_msg("tensor %s is of type %u, not %u", name, ours->id, t->id);
        for (uint64_t k = 0; t->id == 0 && k < t->size_bytes; k += 4) {
            float a, b;
            memcpy(&a, t->data + k, 4);
            memcpy(&b, ours->data + k, 4);
            const float difference = a - b;
            if (difference > 1e-6f || difference < -1e-6f) fail_msg("tensor %s: %g in place of %g", name, b, a);
        }
    }
}

static void families_come_back(void **state)
{
    static const struct {
        const char *folder, *file, *architecture;
    } cases[] = {
        {"qwen3-moe", "qwen3-moe-f16.gguf", "qwen3moe"},      {"lfm2", "lfm2-f16.gguf", "lfm2"},
        {"lfm2-moe", "lfm2-moe-bf16.gguf", "lfm2moe"},        {"qwen35-hybrid", "qwen35-hybrid-bf16.gguf", "qwen35"},
        {"qwen35-moe", "qwen35-moe-f16.gguf", "qwen35moe"},   {"gpt-oss", "gpt-oss-bf16.gguf", "gpt-oss"},
        {"gemma4-dense", "gemma4-dense-bf16.gguf", "gemma4"}, {"gemma4-moe", "gemma4-moe-bf16.gguf", "gemma4"},
        {"gemma4-e2b", "gemma4-e2b-bf16.gguf", "gemma4"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char relative[128], folder[1100], file[1200];
        whit_error error;
        whit_gguf *have, *wanted;
        size_t n, n_again;
        snprintf(relative, sizeof relative, "models-tiny/%s", cases[i].folder);
        snprintf(folder, sizeof folder, "%s/hf", shared_path(relative));
        snprintf(file, sizeof file, "%s/%s", shared_path(relative), cases[i].file);
        assert_ok(export_model(folder, in_folder("out.gguf"), &error), error);
        float *logits = run_prompt(folder, &n), *again = run_prompt(in_folder("out.gguf"), &n_again);
        assert_int_equal(n, n_again);
        if (memcmp(logits, again, n * sizeof *logits) != 0) fail_msg("%s: other bits come back", cases[i].folder);
        free(logits);
        free(again);
        assert_ok(whit_gguf_open(in_folder("out.gguf"), NULL, &have, &error), error);
        assert_ok(whit_gguf_open(file, NULL, &wanted, &error), error);
        compare_keys(have, wanted, cases[i].architecture);
        compare_tensors(have, wanted);
        whit_gguf_close(have);
        whit_gguf_close(wanted);
    }
}

static void others_are_refused(void **state)
{
    static const char *const folders[] = {"gemma4-mobile/ct", "gemma3-text/hf", "maple/hf",
                                          "granite/hf",       "olmo3/hf",       "smollm3/hf"};
    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char relative[128];
        whit_error error;
        snprintf(relative, sizeof relative, "models-tiny/%s", folders[i]);
        assert_int_equal(export_model(shared_path(relative), in_folder("no.gguf"), &error), WHIT_ERROR_UNSUPPORTED);
        assert_int_not_equal(access(in_folder("no.gguf"), F_OK), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(families_come_back), cmocka_unit_test(others_are_refused)};
    return cmocka_run_group_tests_name("export families", tests, make_folder, remove_folder);
}
