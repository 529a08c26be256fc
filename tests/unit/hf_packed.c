/* SPDX-License-Identifier: MIT
 * Tests packed matrices of Hugging Face folders: every form against the values that were packed, as single tensors
 * and as weights of a folder; damaged shapes must be refused. */
#include "test_folder.h"

#include <math.h>

#include "base/fp8.h"
#include "base/rng.h"
#include "format/hf_packed.h"
#include "model/source.h"
#include "model_folder.h"

/* ---- safetensors in memory ------------------------------------------------------------------ */

enum { TENSORS_MAX = 64 };

struct tensor {
    char name[96];
    const char *dtype;
    uint64_t dims[2];
    int n_dims;
    uint8_t *bytes;
    size_t size;
};

struct file {
    struct tensor tensors[TENSORS_MAX];
    int n;
};

/* Adds a tensor of zeros to the file and returns its bytes. */
static uint8_t *add(struct file *f, const char *module, const char *end, const char *dtype, uint64_t rows,
                    uint64_t cols, size_t elem_bytes)
{
    struct tensor *t = &f->tensors[f->n++];
    assert_true(f->n <= TENSORS_MAX);
    snprintf(t->name, sizeof t->name, "%s%s", module, end);
    t->dtype = dtype;
    t->n_dims = cols ? 2 : 1;
    t->dims[0] = rows, t->dims[1] = cols;
    t->size = rows * (cols ? cols : 1) * elem_bytes;
    return t->bytes = calloc(1, t->size + 8);
}

static uint8_t *build(struct file *f, size_t *size)
{
    whit_buf text = {0};
    size_t at = 0;
    for (int i = 0; i < f->n; i++) {
        const struct tensor *t = &f->tensors[i];
        assert_true(whit_buf_printf(&text, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%llu", i ? "," : "{", t->name,
                                    t->dtype, (unsigned long long)t->dims[0]));
        if (t->n_dims == 2) assert_true(whit_buf_printf(&text, ",%llu", (unsigned long long)t->dims[1]));
        assert_true(whit_buf_printf(&text, "],\"data_offsets\":[%zu,%zu]}", at, at + t->size));
        at += t->size;
    }
    assert_true(whit_buf_printf(&text, "}"));
    uint64_t header = text.size_bytes;
    uint8_t *bytes = malloc(8 + header + at);
    memcpy(bytes, &header, 8);
    memcpy(bytes + 8, text.data, header);
    at = 8 + header;
    for (int i = 0; i < f->n; at += f->tensors[i++].size) memcpy(bytes + at, f->tensors[i].bytes, f->tensors[i].size);
    *size = at;
    whit_buf_free(&text);
    return bytes;
}

static void clear(struct file *f)
{
    for (int i = 0; i < f->n; i++) free(f->tensors[i].bytes);
    f->n = 0;
}

/* ---- packing -------------------------------------------------------------------------------- */

struct matrix {
    whit_hf_form form;
    unsigned bits;
    uint64_t rows, cols, group; /* group equal to cols: one scale per row */
    bool zeros;                 /* the compressed form with zero points */
    double *values;             /* (rows, cols), by the form's definition */
};

static void put_code(uint8_t *words, unsigned bits, uint64_t first, uint64_t stride, uint64_t i, unsigned code)
{
    uint64_t bit = bits * (i % (32 / bits));
    uint8_t *word = words + 4 * (first + i / (32 / bits) * stride);
    uint32_t old = whit_load_u32(word) | code << bit;
    memcpy(word, &old, 4);
}

static const uint64_t awq_places[8] = {0, 4, 1, 5, 2, 6, 3, 7};

/* Adds random codes, scales and zero points of one matrix as tensors, and fills m->values. */
static void pack(struct file *f, const char *module, struct matrix *m, whit_rng *rng)
{
    uint64_t groups = m->cols / m->group, per = 32 / m->bits, words = m->cols / per;
    unsigned most = (1u << m->bits) - 1;
    bool transposed = m->form == WHIT_HF_GPTQ || m->form == WHIT_HF_GPTQ_V2 || m->form == WHIT_HF_AWQ;
    bool awq = m->form == WHIT_HF_AWQ, mlx = m->form == WHIT_HF_MLX, compressed = m->form == WHIT_HF_COMPRESSED;
    uint8_t *codes = compressed ? add(f, module, ".weight_packed", "I32", m->rows, words, 4)
        : mlx                   ? add(f, module, ".weight", "U32", m->rows, words, 4)
        : awq                   ? add(f, module, ".qweight", "I32", m->cols, m->rows / 8, 4)
                                : add(f, module, ".qweight", "I32", words, m->rows, 4);
    uint8_t *scales = compressed ? add(f, module, ".weight_scale", "BF16", m->rows, groups, 2)
        : mlx                    ? add(f, module, ".scales", "BF16", m->rows, groups, 2)
                                 : add(f, module, ".scales", "F16", groups, m->rows, 2);
    uint8_t *zeros = NULL;
    if (compressed) {
        uint8_t *shape = add(f, module, ".weight_shape", "I64", 2, 0, 8);
        memcpy(shape, &m->rows, 8);
        memcpy(shape + 8, &m->cols, 8);
        if (m->zeros) zeros = add(f, module, ".weight_zero_point", "I32", m->rows / per, groups, 4);
    } else if (mlx) {
        zeros = add(f, module, ".biases", "BF16", m->rows, groups, 2);
    } else {
        zeros = add(f, module, ".qzeros", "I32", groups, m->rows / per, 4);
        uint8_t *index = awq ? NULL : add(f, module, ".g_idx", "I32", m->cols, 0, 4);
        for (uint32_t i = 0; index && i < m->cols; i++) {
            uint32_t g = (uint32_t)(i / m->group);
            memcpy(index + 4 * i, &g, 4);
        }
    }
    m->values = malloc(m->rows * m->cols * sizeof *m->values);
    for (uint64_t row = 0; row < m->rows; row++)
        for (uint64_t g = 0; g < groups; g++) {
            float wanted = 0.01f + 0.02f * (float)whit_rng_uniform(rng);
            uint16_t half = transposed ? whit_f16_from_f32(wanted) : whit_bf16_from_f32(wanted);
            double scale = transposed ? (double)whit_f32_from_f16(half) : (double)whit_f32_from_bf16(half), bias = 0;
            unsigned zero = (unsigned)whit_rng_below(rng, most); /* below the largest: GPTQ adds 1 */
            memcpy(scales + 2 * (transposed ? g * m->rows + row : row * groups + g), &half, 2);
            if (mlx) {
                half = whit_bf16_from_f32((float)-scale * (float)zero);
                bias = (double)whit_f32_from_bf16(half);
                memcpy(zeros + 2 * (row * groups + g), &half, 2);
            } else if (compressed && m->zeros) {
                put_code(zeros, m->bits, g, groups, row, zero);
            } else if (awq) {
                put_code(zeros, 4, g * (m->rows / 8) + row / 8, 1, awq_places[row % 8], zero);
            } else if (!compressed) {
                put_code(zeros, m->bits, g * (m->rows / per), 1, row, zero);
            }
            double z = compressed && !m->zeros ? (double)(1u << (m->bits - 1))
                : m->form == WHIT_HF_GPTQ      ? (double)zero + 1
                                               : (double)zero;
            for (uint64_t k = g * m->group; k < (g + 1) * m->group; k++) {
                unsigned q = (unsigned)whit_rng_below(rng, most + 1);
                if (awq)
                    put_code(codes, 4, k * (m->rows / 8) + row / 8, 1, awq_places[row % 8], q);
                else if (transposed)
                    put_code(codes, m->bits, row, m->rows, k, q);
                else
                    put_code(codes, m->bits, row * words, 1, k, q);
                m->values[row * m->cols + k] = mlx ? q * scale + bias : ((double)q - z) * scale;
            }
        }
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void check_rows(const whit_hf_packed *p, const struct matrix *m)
{
    whit_geometry g = whit_codec_geometry(&p->type);
    int8_t *codes = malloc(p->n_cols);
    float *fields = calloc(g.row_fields, 4), *values = malloc(p->n_cols * 4);
    whit_rows rows = {.elems = codes, .fields = fields};
    for (uint64_t row = 0; row < p->n_rows; row++) {
        whit_hf_packed_row(p, row, &rows);
        whit_codec_content_values(&p->type, &rows, values);
        for (uint64_t k = 0; k < p->n_cols; k++)
            if (values[k] != (float)m->values[row * m->cols + k])
                fail_msg("form %d, %u bits, row %llu column %llu: %a, expected %a", m->form, m->bits,
                         (unsigned long long)row, (unsigned long long)k, (double)values[k],
                         m->values[row * m->cols + k]);
    }
    free(codes);
    free(fields);
    free(values);
}

static const struct matrix forms[] = {
    {.form = WHIT_HF_COMPRESSED, .bits = 4, .rows = 32, .cols = 128, .group = 32},
    {.form = WHIT_HF_COMPRESSED, .bits = 4, .rows = 32, .cols = 128, .group = 128},
    {.form = WHIT_HF_COMPRESSED, .bits = 4, .rows = 32, .cols = 128, .group = 64, .zeros = true},
    {.form = WHIT_HF_COMPRESSED, .bits = 2, .rows = 32, .cols = 128, .group = 64},
    {.form = WHIT_HF_COMPRESSED, .bits = 2, .rows = 32, .cols = 128, .group = 32, .zeros = true},
    {.form = WHIT_HF_COMPRESSED, .bits = 8, .rows = 32, .cols = 128, .group = 128},
    {.form = WHIT_HF_COMPRESSED, .bits = 8, .rows = 32, .cols = 128, .group = 128, .zeros = true},
    {.form = WHIT_HF_GPTQ, .bits = 4, .rows = 32, .cols = 128, .group = 64},
    {.form = WHIT_HF_GPTQ, .bits = 8, .rows = 32, .cols = 128, .group = 128},
    {.form = WHIT_HF_GPTQ_V2, .bits = 2, .rows = 32, .cols = 128, .group = 64},
    {.form = WHIT_HF_AWQ, .bits = 4, .rows = 32, .cols = 128, .group = 64},
    {.form = WHIT_HF_MLX, .bits = 4, .rows = 32, .cols = 128, .group = 64},
    {.form = WHIT_HF_MLX, .bits = 2, .rows = 32, .cols = 128, .group = 32},
    {.form = WHIT_HF_MLX, .bits = 8, .rows = 32, .cols = 128, .group = 64},
};

static void every_form_is_decoded(void **state)
{
    (void)state;
    whit_rng rng = {5};
    whit_error error;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct file f = {0};
        struct matrix m = forms[i];
        size_t size;
        whit_safetensors *set;
        whit_hf_packed p;
        pack(&f, "a.b", &m, &rng);
        uint8_t *bytes = build(&f, &size);
        assert_ok(whit_safetensors_open_memory(bytes, size, "x", NULL, &set, &error), error);
        assert_ok(whit_hf_packed_open(set, m.form, "a.b", m.bits, &p, &error), error);
        assert_int_equal(p.bits, m.bits);
        assert_true(p.exact);
        assert_ok(whit_tensor_type_check(&p.type, &error), error);
        check_rows(&p, &m);
        whit_safetensors_close(set);
        free(bytes);
        free(m.values);
        clear(&f);
    }
}

/* Makes every dimension of every tensor one less, and removes every tensor: the file must be refused or give another
 * valid matrix (fewer groups of more columns, no zero points), and no read may be out of bounds. */
static void damaged_shapes_are_refused(void **state)
{
    (void)state;
    whit_rng rng = {6};
    int n_refused = 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct file f = {0};
        struct matrix m = forms[i];
        pack(&f, "m", &m, &rng);
        for (int t = 0; t < f.n; t++)
            for (int d = -1; d < f.tensors[t].n_dims; d++) {
                struct file damaged = f;
                struct tensor *victim = &damaged.tensors[t];
                size_t size;
                whit_error error;
                whit_safetensors *set;
                whit_hf_packed p;
                if (d < 0)
                    snprintf(victim->name, sizeof victim->name, "gone");
                else
                    victim->size = victim->size / victim->dims[d] * (victim->dims[d] - 1), victim->dims[d]--;
                if (!victim->size) continue;
                uint8_t *bytes = build(&damaged, &size);
                assert_ok(whit_safetensors_open_memory(bytes, size, "x", NULL, &set, &error), error);
                if (whit_hf_packed_open(set, m.form, "m", m.bits, &p, &error) == WHIT_OK) {
                    whit_rows rows = {.elems = malloc(4 * p.n_cols), .fields = malloc(8 * p.n_cols)};
                    for (uint64_t row = 0; row < p.n_rows; row++) whit_hf_packed_row(&p, row, &rows);
                    free(rows.elems);
                    free(rows.fields);
                } else {
                    assert_non_null(strstr(error.message, "'m'"));
                    n_refused++;
                }
                whit_safetensors_close(set);
                free(bytes);
            }
        free(m.values);
        clear(&f);
    }
    assert_true(n_refused >= 50);
}

static void eight_bit_floats_are_decoded(void **state)
{
    (void)state;
    whit_error error;
    static const struct {
        uint64_t rows, cols;
        const char *end;
        bool exact;
    } scales[] = {{2, 2, ".weight_scale_inv", true}, {130, 1, ".weight_scale", true}, {1, 1, ".weight_scale", false}};
    for (size_t i = 0; i < 3; i++) {
        struct file f = {0};
        size_t size;
        whit_safetensors *set;
        whit_hf_packed p;
        uint8_t *codes = add(&f, "m", ".weight", "F8_E4M3", 130, 160, 1);
        uint8_t *factors = add(&f, "m", scales[i].end, "F32", scales[i].rows, scales[i].cols, 4);
        for (int k = 0; k < 130 * 160; k++) codes[k] = (uint8_t)(k % 127 | (k & 1) << 7);
        for (uint64_t k = 0; k < scales[i].rows * scales[i].cols; k++) {
            float factor = scales[i].exact ? ldexpf(1, -(int)(k % 5)) : 0.3f;
            memcpy(factors + 4 * k, &factor, 4);
        }
        uint8_t *bytes = build(&f, &size);
        assert_ok(whit_safetensors_open_memory(bytes, size, "x", NULL, &set, &error), error);
        assert_ok(whit_hf_packed_open(set, WHIT_HF_FP8, "m", 0, &p, &error), error);
        assert_int_equal(p.exact, scales[i].exact);
        uint16_t row[160];
        for (uint64_t r = 0; r < 130; r++) {
            whit_hf_packed_row(&p, r, &(whit_rows){.elems = row});
            for (uint64_t k = 0; k < 160; k++) {
                uint64_t at = i == 0 ? r / 128 * 2 + k / 128 : i == 1 ? r : 0;
                unsigned code = codes[r * 160 + k], exponent = code >> 3 & 15, fraction = code & 7;
                double value = exponent ? ldexp(8 + fraction, (int)exponent - 10) : ldexp(fraction, -9);
                if (code & 128) value = -value;
                float expected = (float)value * whit_load_f32(factors + 4 * at);
                assert_true(whit_f32_from_f16(row[k]) == whit_f32_from_f16(whit_f16_from_f32(expected)));
                assert_true(!scales[i].exact || whit_f32_from_f16(row[k]) == expected);
            }
        }
        whit_safetensors_close(set);
        free(bytes);
        clear(&f);
    }
}

/* Opens a folder whose first query projection is packed: its values must be as packed, and the other tensors
 * unchanged. */
static void folders_open(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        struct matrix m;
    } kinds[] = {
        {"\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\","
         "\"config_groups\":{\"group_0\":{\"weights\":{\"num_bits\":4},\"input_activations\":null}},\"ignore\":[\"lm_"
         "head\"]}",
         {.form = WHIT_HF_COMPRESSED, .bits = 4}},
        {"\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32,\"desc_act\":false}",
         {.form = WHIT_HF_GPTQ, .bits = 4}},
        {"\"quantization_config\":{\"quant_method\":\"awq\",\"bits\":4,\"version\":\"gemm\"}",
         {.form = WHIT_HF_AWQ, .bits = 4}},
        {"\"quantization\":{\"group_size\":32,\"bits\":2,\"model.layers.0.self_attn.q_proj\":{\"bits\":4}}",
         {.form = WHIT_HF_MLX, .bits = 4}},
    };
    const char *packed_name = "model.layers.0.self_attn.q_proj";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        folder_model model = folder_reduce(folder_find("llama-3.2-1b"), 1, 8, 300);
        whit_rng rng = {9};
        whit_error error;
        whit_safetensors *set;
        struct file f = {0};
        struct matrix m = kinds[i].m;
        char path[1024], config[1100];
        snprintf(path, sizeof path, "%s", in_folder("packed"));
        assert_true(folder_write(&model, path, 1, NULL, NULL));
        snprintf(config, sizeof config, "%s/config.json", path);
        snprintf(path, sizeof path, "%s/model.safetensors", in_folder("packed"));
        assert_ok(whit_safetensors_open(path, NULL, &set, &error), error);
        for (size_t t = 0; t < set->n_tensors; t++) {
            const whit_safetensor *from = &set->tensors[t];
            char name[96];
            snprintf(name, sizeof name, "%.*s", (int)from->name_bytes, from->name);
            if (strncmp(name, packed_name, strlen(packed_name)) == 0) {
                m.rows = from->dims[0], m.cols = from->dims[1], m.group = 32;
                continue;
            }
            uint64_t cols = from->n_dims == 2 ? from->dims[1] : 0;
            static const char *const dtypes[] = {
                [WHIT_DTYPE_F32] = "F32", [WHIT_DTYPE_F16] = "F16", [WHIT_DTYPE_BF16] = "BF16"};
            memcpy(add(&f, name, "", dtypes[from->dtype], from->dims[0], cols, whit_dtype_bytes(from->dtype)),
                   from->data, from->size_bytes);
        }
        whit_safetensors_close(set);
        pack(&f, packed_name, &m, &rng);
        size_t size;
        uint8_t *bytes = build(&f, &size);
        FILE *out = fopen(path, "wb");
        assert_int_equal(fwrite(bytes, 1, size, out), size);
        fclose(out);
        char text[4096] = "";
        FILE *in = fopen(config, "rb");
        size_t n = fread(text, 1, sizeof text - 1, in);
        fclose(in);
        assert_true(n > 2 && strchr(text, '{'));
        out = fopen(config, "wb");
        fprintf(out, "{%s,%s", kinds[i].config, strchr(text, '{') + 1);
        fclose(out);

        whit_source source;
        assert_ok(whit_source_open(in_folder("packed"), NULL, &source, &error), error);
        const whit_source_tensor *q = whit_source_find(&source, "layers.0.q");
        whit_geometry g = whit_codec_geometry(&q->type);
        float *values = malloc(m.cols * 4), *fields = calloc(g.row_fields, 4);
        int8_t *codes = malloc(m.cols);
        for (uint32_t row = 0; row < q->type.n_rows; row++) {
            assert_ok(q->read_row(q, row, &(whit_rows){.elems = codes, .fields = fields}, &error), error);
            whit_codec_content_values(&q->type, &(whit_rows){.elems = codes, .fields = fields}, values);
            for (uint32_t k = 0; k < m.cols; k++) assert_true(values[k] == (float)m.values[row * m.cols + k]);
        }
        whit_source_close(&source);
        free(values);
        free(fields);
        free(codes);
        free(bytes);
        free(m.values);
        clear(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_decoded),
        cmocka_unit_test(damaged_shapes_are_refused),
        cmocka_unit_test(eight_bit_floats_are_decoded),
        cmocka_unit_test(folders_open),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
