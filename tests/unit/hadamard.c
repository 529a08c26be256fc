/* SPDX-License-Identifier: MIT
 * Tests rotated matrices: the rotation against its definition, and GGUF files like Bonsai 2's, made here by rotating
 * the matrices of tiny models. Logits must be near those of the unrotated models and have the same bits on all
 * levels; files with unknown settings must be refused. */
#include "prompt_logits.h"
#include "test_folder.h"

#include "base/half.h"
#include "format/gguf_write.h"
#include "kernels/kernels.h"
#include "model/convert.h"
#include "runtime/session.h"

#include <math.h>

enum { MAX_COLS = 2048, GROUP = 128 };

static const char *const levels[] = {"generic", "avx2", "avx512", "amx"};

static float next_float(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (float)((int64_t)(*state >> 40) - (1 << 23)) / (float)(1 << 23);
}

/* ---- the rotation ------------------------------------------------------------------------------- */

static void rotations_are_sylvesters(void **state)
{
    static const uint32_t blocks[] = {2, 8, 16, 32, 64, 128, 512, 1024, 2048};
    float x[MAX_COLS], signs[MAX_COLS], out[MAX_COLS], again[MAX_COLS], back[MAX_COLS];
    uint64_t random = 7;
    whit_error error;
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    (void)state;
    for (uint32_t i = 0; i < MAX_COLS; i++) {
        x[i] = next_float(&random);
        signs[i] = next_float(&random) < 0 ? -1 : 1;
    }
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        const uint32_t block = blocks[b], n = block * (MAX_COLS / block > 3 ? 3 : MAX_COLS / block);
        for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
            whit_kernels kernels;
            assert_ok(whit_kernels_select(&cpu, levels[l], &kernels, &error), error);
            kernels.hadamard_row(x, signs, n, block, false, l ? again : out);
            if (l) assert_memory_equal(out, again, n * sizeof *out);
            kernels.hadamard_row(out, signs, n, block, true, l ? again : back);
            if (l) assert_memory_equal(back, again, n * sizeof *out);
            memcpy(again, x, n * sizeof *x);
            kernels.hadamard_row(again, signs, n, block, false, again); /* the output may be the input */
            assert_memory_equal(out, again, n * sizeof *out);
        }
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t first = i / block * block;
            double sum = 0;
            for (uint32_t k = 0; k < block; k++)
                sum += (__builtin_parity(k & (i - first)) ? -1.0 : 1.0) * signs[first + k] * x[first + k];
            assert_true(fabs(sum / sqrt(block) - out[i]) < 2e-6 * sqrt(block));
            assert_true(fabsf(back[i] - x[i]) < 1e-5f);
        }
    }
}

/* ---- files -------------------------------------------------------------------------------------- */

struct form {
    const char *file; /* path of the tiny model */
    uint32_t block;
    bool is_ternary, has_signs, groups_heads;
    uint32_t value_heads, key_heads;
    /* Wrong values for a damaged file; NULL and 0: the right ones. */
    const char *transform, *axis, *sign_mode, *extra_name, *left_out, *extra_key;
    uint32_t version, bad_block, bad_signs;
    bool is_tied_wrong, no_version;
};

static const struct form hybrid = {.file = "qwen35-hybrid/qwen35-hybrid-bf16.gguf",
                                   .block = 64,
                                   .is_ternary = true,
                                   .has_signs = true,
                                   .groups_heads = true,
                                   .value_heads = 4,
                                   .key_heads = 2},
                         mixture = {.file = "qwen35-moe/qwen35-moe-f16.gguf", .block = 16, .has_signs = true};

static bool is_of(const whit_gguf_tensor *t, const char *end)
{
    const size_t n = strlen(end);
    return t->name_bytes >= n && memcmp(t->name + t->name_bytes - n, end, n) == 0;
}

static bool is_rotated(const whit_gguf_tensor *t)
{
    static const char *const ends[] = {"attn_q.weight",       "attn_k.weight",        "attn_v.weight",
                                       "attn_output.weight",  "attn_qkv.weight",      "attn_gate.weight",
                                       "ssm_out.weight",      "ffn_gate.weight",      "ffn_up.weight",
                                       "ffn_down.weight",     "token_embd.weight",    "ffn_gate_exps.weight",
                                       "ffn_up_exps.weight",  "ffn_down_exps.weight", "ffn_gate_shexp.weight",
                                       "ffn_up_shexp.weight", "ffn_down_shexp.weight"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (is_of(t, ends[i])) return true;
    return t->name_bytes == strlen("output.weight") && is_of(t, "output.weight");
}

/* Returns the sign of element i of an input of n elements, always the same. */
static float sign_of(const struct form *f, uint32_t n, uint32_t i)
{
    return f->has_signs && (i * 2654435761u ^ n * 40503u) >> 13 & 1 ? -1.0f : 1.0f;
}

/* Returns the column of the file's unrotated matrix that becomes column i before the rotation. */
static uint32_t column_of(const struct form *f, const whit_gguf_tensor *t, uint32_t i)
{
    if (!f->groups_heads || !is_of(t, "ssm_out.weight")) return i;
    const uint32_t dim = (uint32_t)t->dims[0] / f->value_heads, head = i / dim, rest = f->value_heads / f->key_heads;
    return (head % rest * f->key_heads + head / rest) * dim + i % dim;
}

static void rotate_row(const struct form *f, uint32_t n, bool is_back, float *row)
{
    double sums[GROUP * 2];
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t first = i / f->block * f->block;
        sums[i] = 0;
        for (uint32_t k = 0; k < f->block; k++)
            sums[i] += (__builtin_parity(k & (i - first)) ? -1.0 : 1.0) * row[first + k] *
                (is_back ? 1 : sign_of(f, n, first + k));
    }
    for (uint32_t i = 0; i < n; i++) row[i] = (float)(sums[i] / sqrt(f->block) * (is_back ? sign_of(f, n, i) : 1));
}

/* Makes a group of 128 values ternary and writes its block of type PQ2_0 or PTQ1_0 to `out`. Returns the block's
 * bytes. */
static size_t pack_group(float *values, bool is_ptq, uint8_t *out)
{
    float mean = 0;
    int codes[GROUP];
    for (int i = 0; i < GROUP; i++) mean += fabsf(values[i]) / GROUP;
    const uint16_t scale = whit_f16_from_f32(mean);
    const float d = whit_f32_from_f16(scale);
    for (int i = 0; i < GROUP; i++) {
        codes[i] = values[i] > d / 2 ? 1 : values[i] < -d / 2 ? -1 : 0;
        values[i] = (float)codes[i] * d;
    }
    if (!is_ptq) {
        memcpy(out, &scale, 2);
        memset(out + 2, 0, GROUP / 4);
        for (int i = 0; i < GROUP; i++) out[2 + i / 4] |= (uint8_t)((codes[i] + 1) << 2 * (i % 4));
        return 34;
    }
    static const struct {
        int bytes, first, step, trits; /* byte m has values first + m + step * n */
    } parts[] = {{16, 0, 16, 5}, {8, 80, 8, 5}, {2, 120, 2, 4}};
    uint8_t *at = out;
    for (int p = 0; p < 3; p++)
        for (int m = 0; m < parts[p].bytes; m++) {
            unsigned v = 0;
            for (int n = 0; n < 5; n++)
                v = 3 * v + (n < parts[p].trits ? (unsigned)(codes[parts[p].first + m + parts[p].step * n] + 1) : 0);
            *at++ = (uint8_t)((v * 256 + 242) / 243);
        }
    memcpy(at, &scale, 2);
    return 28;
}

static void put_text(whit_gguf_writer *w, const char *name, const char *text)
{
    whit_gguf_put_string(w, name, text, strlen(text));
}

static void put_rotation(whit_gguf_writer *w, const struct form *f, const whit_gguf *from, bool is_tied)
{
    enum { WIDTHS_MAX = 8 };
    int32_t widths[WIDTHS_MAX];
    int8_t signs[WIDTHS_MAX * MAX_COLS];
    uint64_t n_widths = 0, n_signs = 0, n_names = 0;
    for (size_t i = 0; i < from->n_tensors; i++) {
        const whit_gguf_tensor *t = &from->tensors[i];
        bool is_new = is_rotated(t);
        for (uint64_t k = 0; k < n_widths; k++) is_new &= widths[k] != (int32_t)t->dims[0];
        if (is_new) widths[n_widths++] = (int32_t)t->dims[0];
        n_names += is_rotated(t) && !is_of(t, "token_embd.weight") && !(f->left_out && is_of(t, f->left_out));
    }
    for (uint64_t k = 0; k < n_widths; k++)
        for (int32_t i = 0; i < widths[k]; i++) signs[n_signs++] = (int8_t)sign_of(f, (uint32_t)widths[k], (uint32_t)i);
    if (f->bad_signs == 1) n_signs--;
    if (f->bad_signs == 2) signs[3] = 2;
    if (!f->no_version) whit_gguf_put_u32(w, "prism.hadamard.version", f->version ? f->version : is_tied ? 2 : 1);
    whit_gguf_put_u32(w, "prism.hadamard.block_size", f->bad_block ? f->bad_block : f->block);
    put_text(w, "prism.hadamard.transform", f->transform ? f->transform : "normalized-sylvester-walsh-hadamard");
    put_text(w, "prism.hadamard.axis", f->axis ? f->axis : "input-last-dimension");
    put_text(w, "prism.hadamard.sign_mode", f->sign_mode ? f->sign_mode : f->has_signs ? "explicit" : "identity");
    if (f->has_signs) {
        whit_gguf_put_array(w, "prism.hadamard.sign_widths", WHIT_GGUF_I32, widths, n_widths);
        whit_gguf_put_array(w, "prism.hadamard.sign_values", WHIT_GGUF_I8, signs, n_signs);
    }
    whit_gguf_put_strings(w, "prism.hadamard.weight_names", n_names + (f->extra_name != NULL));
    for (size_t i = 0; i < from->n_tensors; i++) {
        const whit_gguf_tensor *t = &from->tensors[i];
        if (!is_rotated(t) || is_of(t, "token_embd.weight") || (f->left_out && is_of(t, f->left_out))) continue;
        whit_gguf_put_element(w, t->name, t->name_bytes);
    }
    if (f->extra_name) whit_gguf_put_element(w, f->extra_name, strlen(f->extra_name));
    whit_gguf_put_strings(w, "prism.hadamard.inverse_weight_names", 1);
    whit_gguf_put_element(w, "token_embd.weight", strlen("token_embd.weight"));
    whit_gguf_put_bool(w, "prism.hadamard.gdn_v_grouped", f->groups_heads);
    if (is_tied != f->is_tied_wrong) whit_gguf_put_bool(w, "prism.hadamard.tied_output", true);
    if (f->extra_key) put_text(w, f->extra_key, "new");
}

/* Returns the type id of a rotated matrix in the file: F32, PQ2_0 or PTQ1_0 in turn. */
static uint32_t id_of(const struct form *f, const whit_gguf_tensor *t, size_t i)
{
    if (!f->is_ternary || t->dims[0] % GROUP) return 0;
    return 142 + i % 2;
}

static uint64_t bytes_of(const whit_gguf_tensor *t, uint32_t id)
{
    const uint64_t n = t->dims[0] * t->dims[1] * t->dims[2];
    return id == 0 ? 4 * n : n / GROUP * (id == 142 ? 34 : 28);
}

/* Writes one matrix: rotated as the file stores it, or (is_plain) the same values unrotated in F32. */
static void write_matrix(const struct form *f, const whit_gguf_tensor *t, uint32_t id, bool is_plain,
                         whit_gguf_writer *w)
{
    const whit_ggml_view view = whit_gguf_view(t);
    const uint32_t n = (uint32_t)view.n_cols;
    whit_error error;
    for (uint32_t r = 0; r < view.n_rows; r++) {
        float row[GROUP * 2], ordered[GROUP * 2];
        uint8_t packed[GROUP];
        size_t n_packed = 0;
        assert_true(n <= GROUP * 2);
        whit_ggml_row_f32(&view, r, row);
        for (uint32_t i = 0; i < n; i++) ordered[i] = row[column_of(f, t, i)];
        rotate_row(f, n, false, ordered);
        for (uint32_t i = 0; id && i < n; i += GROUP) n_packed += pack_group(ordered + i, id == 143, packed + n_packed);
        if (!is_plain) {
            const void *data = id ? (const void *)packed : ordered;
            assert_ok(whit_gguf_write_data(w, data, id ? n_packed : n * sizeof *ordered, &error), error);
            continue;
        }
        rotate_row(f, n, true, ordered);
        for (uint32_t i = 0; i < n; i++) row[column_of(f, t, i)] = ordered[i];
        assert_ok(whit_gguf_write_data(w, row, n * sizeof *row, &error), error);
    }
}

/* Copies a key, if it is the architecture's or a general one; the vocabulary is omitted. */
static void copy_key(whit_gguf_writer *w, const whit_gguf_key *key)
{
    char name[128];
    double number = 0;
    snprintf(name, sizeof name, "%.*s", (int)(key->name_bytes < 127 ? key->name_bytes : 127), key->name);
    if (strncmp(name, "tokenizer.", 10) == 0) return;
    if (key->type == WHIT_GGUF_STRING)
        whit_gguf_put_string(w, name, (const char *)key->data, key->size_bytes);
    else if (key->type == WHIT_GGUF_ARRAY)
        whit_gguf_put_array(w, name, key->element_type, key->data, key->n_elems);
    else if (whit_gguf_element_f64(key, 0, &number) && key->type == WHIT_GGUF_F32)
        whit_gguf_put_f32(w, name, (float)number);
    else
        whit_gguf_put_u32(w, name, (uint32_t)number);
}

static void write_model(const struct form *f, bool is_plain, const char *path)
{
    char relative[128];
    whit_gguf *from;
    whit_gguf_writer w;
    whit_writer file;
    whit_error error;
    snprintf(relative, sizeof relative, "models-tiny/%s", f->file);
    assert_ok(whit_gguf_open(shared_path(relative), NULL, &from, &error), error);
    whit_gguf_writer_init(&w, WHIT_GGUF_ALIGNMENT_BYTES, NULL);
    for (size_t i = 0; i < from->n_keys; i++) copy_key(&w, &from->keys[i]);
    if (!is_plain) put_rotation(&w, f, from, !whit_gguf_find_tensor(from, "output.weight"));
    for (size_t i = 0; i < from->n_tensors; i++) {
        const whit_gguf_tensor *t = &from->tensors[i];
        char name[96];
        snprintf(name, sizeof name, "%.*s", (int)t->name_bytes, t->name);
        const uint32_t id = is_plain ? 0 : id_of(f, t, i);
        whit_gguf_put_tensor(&w, name, is_rotated(t) ? id : t->id, t->n_dims, t->dims,
                             is_rotated(t) ? bytes_of(t, id) : t->size_bytes);
    }
    assert_ok(whit_writer_open(path, NULL, &file, &error), error);
    assert_ok(whit_gguf_write_head(&w, &file, &error), error);
    for (size_t i = 0; i < from->n_tensors; i++) {
        const whit_gguf_tensor *t = &from->tensors[i];
        if (is_rotated(t))
            write_matrix(f, t, id_of(f, t, i), is_plain, &w);
        else
            assert_ok(whit_gguf_write_data(&w, t->data, t->size_bytes, &error), error);
    }
    assert_ok(whit_gguf_write_end(&w, &error), error);
    assert_ok(whit_writer_commit(&file, &error), error);
    whit_gguf_writer_close(&w);
    whit_gguf_close(from);
}

/* ---- models ------------------------------------------------------------------------------------- */

/* Returns the prompt's logits for a CPU level, thread count, batch size and activation type; the caller frees them. */
static float *run_prompt(const whit_model *model, const char *cpu, uint32_t n_threads, uint32_t n_batch,
                         whit_act_type act)
{
    whit_session_options options = whit_session_options_default();
    options.cpu = cpu;
    options.n_threads = n_threads;
    options.kv = WHIT_KV_F32;
    options.act = act;
    options.n_batch_tokens = n_batch;
    return prompt_logits(model, options);
}

static void check_agreement(const struct form *f, const char *family)
{
    whit_error error;
    whit_source source;
    whit_ndf_writer *writer;
    const whit_convert_options convert = {.n_threads = 1};
    write_model(f, false, in_folder("rotated.gguf"));
    write_model(f, true, in_folder("plain.gguf"));
    whit_model *rotated = open_model("rotated.gguf"), *plain = open_model("plain.gguf");
    const size_t n = PROMPT_TOKENS * (size_t)whit_model_vocab_size(plain);
    float *expected = run_prompt(plain, "generic", 1, 64, WHIT_ACT_F32), *one = NULL;
    for (int k = 0; k < 2; k++) { /* float and int8 activations */
        const whit_act_type act = k ? WHIT_ACT_I8 : WHIT_ACT_F32;
        one = run_prompt(rotated, "generic", 1, 64, act);
        float worst = 0;
        for (size_t i = 0; i < n; i++) worst = fmaxf(worst, fabsf(one[i] - expected[i]));
        print_message("%s: worst %g\n", f->file, (double)worst);
        assert_true(k || worst < 1e-4f);
        for (uint32_t i = 0; i < 4; i++) {
            float *again = run_prompt(rotated, levels[i], 1 + i % 3, i % 2 ? 7 : 64, act);
            if (memcmp(one, again, n * sizeof *one) != 0) fail_msg("other bits with %s", levels[i]);
            free(again);
        }
        free(one);
    }
    assert_ok(whit_source_open(in_folder("rotated.gguf"), NULL, &source, &error), error);
    assert_string_equal(source.config.family, family);
    assert_ok(whit_ndf_writer_open(in_folder("rotated.ndf"), NULL, NULL, &writer, &error), error);
    assert_ok(whit_convert(&source, &convert, writer, &error), error);
    whit_ndf_writer_close(writer);
    whit_source_close(&source);
    whit_model *written = open_model("rotated.ndf");
    assert_memory_equal(whit_model_identity(written), whit_model_identity(rotated), 32);
    free(expected);
    whit_model_close(rotated);
    whit_model_close(plain);
    whit_model_close(written);
}

static void rotated_models_compute_the_same(void **state)
{
    struct form f = hybrid;
    (void)state;
    check_agreement(&f, "hybrid-rotated");
    f.has_signs = f.groups_heads = false;
    f.block = 32;
    check_agreement(&f, "hybrid-rotated");
    check_agreement(&mixture, "hybrid-rotated");
}

static void unknown_rotations_are_refused(void **state)
{
    static const struct {
        struct form with;
        const char *word;
    } cases[] = {
        {{.transform = "normalized-sequency-walsh"}, "'normalized-sequency-walsh', which is not known"},
        {{.axis = "output"}, "prism.hadamard.axis"},
        {{.sign_mode = "seeded"}, "prism.hadamard.sign_mode"},
        {{.version = 3}, "neither 1 nor 2"},
        {{.version = 1}, "tied_output"},
        {{.is_tied_wrong = true}, "tied_output"},
        {{.no_version = true}, "prism.hadamard."},
        {{.bad_block = 48}, "power of two"},
        {{.bad_block = 1}, "power of two"},
        {{.bad_block = 1u << 20}, "power of two"},
        {{.bad_block = 128}, "not blocks of 128"},
        {{.bad_signs = 1}, "sign_values"},
        {{.bad_signs = 2}, "neither 1 nor -1"},
        {{.extra_name = "blk.9.ffn_up.weight"}, "'blk.9.ffn_up.weight', which is not a tensor"},
        {{.extra_name = "blk.0.ffn_up.weight"}, "named twice"},
        {{.extra_name = "blk.0.ssm_alpha.weight"}, "'decay' in some layers only"},
        {{.left_out = "blk.1.ffn_up.weight"}, "'up' in some layers only"},
        {{.extra_key = "prism.hadamard.outer_block"}, "prism.hadamard.outer_block"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_error error;
        whit_model *model;
        whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
        struct form f = cases[i].with;
        f.file = hybrid.file;
        f.block = hybrid.block;
        f.has_signs = f.groups_heads = true;
        f.value_heads = hybrid.value_heads;
        f.key_heads = hybrid.key_heads;
        write_model(&f, false, in_folder("damaged.gguf"));
        if (whit_model_open(in_folder("damaged.gguf"), &options, &model, &error) == WHIT_OK)
            fail_msg("opened, without '%s'", cases[i].word);
        if (!strstr(error.message, cases[i].word) || strchr(error.message, '\n'))
            fail_msg("'%s' lacks '%s'", error.message, cases[i].word);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotations_are_sylvesters),
        cmocka_unit_test(rotated_models_compute_the_same),
        cmocka_unit_test(unknown_rotations_are_refused),
    };
    return cmocka_run_group_tests_name("hadamard", tests, make_folder, remove_folder);
}
