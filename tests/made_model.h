/* SPDX-License-Identifier: MIT
 * Makes models of BF16 tensors in memory: read from the tiny ones, changed, and written as folders and GGUF files.
 * They stand in for families without a published tiny model, and are compared with equal models of another family. */
#ifndef WHIT_TESTS_MADE_MODEL_H
#define WHIT_TESTS_MADE_MODEL_H

#include "test_folder.h"

#include "base/file.h"
#include "base/half.h"
#include "format/gguf_write.h"
#include "format/safetensors.h"
#include "kernels/math.h"
#include "runtime/model.h"

enum { N_TENSORS_MAX = 96 };

struct matrix {
    char name[160];
    uint32_t n_dims;
    uint64_t dims[3]; /* dims[n_dims - 1] is the length of a row */
    uint8_t *data;    /* bf16 values */
    size_t n_elems;
};

struct made {
    struct matrix items[N_TENSORS_MAX];
    uint32_t n;
};

static inline struct matrix *add_matrix(struct made *made, const char *name, uint32_t n_dims, const uint64_t *dims)
{
    assert_true(made->n < N_TENSORS_MAX);
    struct matrix *m = &made->items[made->n++];
    *m = (struct matrix){.n_dims = n_dims, .n_elems = 1};
    snprintf(m->name, sizeof m->name, "%s", name);
    for (uint32_t i = 0; i < n_dims; i++) m->n_elems *= m->dims[i] = dims[i];
    m->data = malloc(m->n_elems * 2);
    assert_non_null(m->data);
    return m;
}

static inline void free_made(struct made *made)
{
    for (uint32_t i = 0; i < made->n; i++) free(made->items[i].data);
    *made = (struct made){0};
}

static inline size_t row_bytes(const struct matrix *m)
{
    return m->n_elems / m->dims[0] * 2;
}

static inline const struct matrix *find_matrix(const struct made *made, const char *name)
{
    for (uint32_t i = 0; i < made->n; i++)
        if (strcmp(made->items[i].name, name) == 0) return &made->items[i];
    fail_msg("no matrix '%s'", name);
    return NULL;
}

static inline bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Copies rows [row, row + n) of `from` to *at and advances *at. */
static inline void append_rows(uint8_t **at, const struct matrix *from, uint32_t row, uint32_t n)
{
    const size_t bytes = row_bytes(from);
    assert_true(row + n <= from->dims[0]);
    memcpy(*at, from->data + row * bytes, n * bytes);
    *at += n * bytes;
}

static inline float value_at(const struct matrix *m, size_t i)
{
    uint16_t stored;
    memcpy(&stored, m->data + 2 * i, 2);
    return whit_f32_from_bf16(stored);
}

/* Reads the tensors of a tiny model's folder, under names without the prefix of multimodal models. */
static inline void read_made(struct made *made, const char *folder)
{
    static const char nested[] = "model.language_model.";
    char relative[128];
    whit_error error;
    whit_safetensors *set;
    snprintf(relative, sizeof relative, "models-tiny/%s/hf/model.safetensors", folder);
    assert_ok(whit_safetensors_open(shared_path(relative), NULL, &set, &error), error);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const whit_safetensor *t = &set->tensors[i];
        char name[120], bare[160];
        snprintf(name, sizeof name, "%.*s", (int)t->name_bytes, t->name);
        const bool is_nested = strncmp(name, nested, strlen(nested)) == 0;
        snprintf(bare, sizeof bare, "%s%s", is_nested ? "model." : "", is_nested ? name + strlen(nested) : name);
        assert_int_equal(t->dtype, WHIT_DTYPE_BF16);
        memcpy(add_matrix(made, bare, t->n_dims, t->dims)->data, t->data, t->size_bytes);
    }
    whit_safetensors_close(set);
}

/* Writes the tensors as a safetensors file. */
static inline void write_made(const struct made *made, const char *path)
{
    whit_buf file = {0}, header = {0};
    whit_error error;
    size_t offset = 0;
    whit_buf_append_str(&header, "{");
    for (uint32_t i = 0; i < made->n; i++) {
        const struct matrix *m = &made->items[i];
        whit_buf_printf(&header, "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[", i ? "," : "", m->name);
        for (uint32_t k = 0; k < m->n_dims; k++) whit_buf_printf(&header, "%s%u", k ? "," : "", (unsigned)m->dims[k]);
        whit_buf_printf(&header, "],\"data_offsets\":[%zu,%zu]}", offset, offset + m->n_elems * 2);
        offset += m->n_elems * 2;
    }
    whit_buf_append_str(&header, "}");
    const uint64_t n = header.size_bytes;
    whit_buf_append(&file, &n, sizeof n);
    whit_buf_append(&file, header.data, header.size_bytes);
    for (uint32_t i = 0; i < made->n; i++) whit_buf_append(&file, made->items[i].data, made->items[i].n_elems * 2);
    assert_ok(whit_write_file(path, file.data, file.size_bytes, &error), error);
    whit_buf_free(&file);
    whit_buf_free(&header);
}

/* ---- GGUF files ------------------------------------------------------------------------------ */

enum value { BF16_AS_IS, F32_AS_IS, F32_PLUS_ONE, F32_NEG_EXP };

struct gguf_name {
    const char *theirs, *ours; /* names in the folder and in GGUF, after "layers.N." and "blk.N." or as a whole */
    enum value value;
};

static inline const struct gguf_name *gguf_name_of(const struct gguf_name *names, const struct matrix *m, char name[96])
{
    unsigned layer;
    int n = 0;
    const bool is_of_layer = sscanf(m->name, "model.layers.%u.%n", &layer, &n) == 1 && n;
    for (; names->theirs; names++) {
        if (strcmp(m->name + n, names->theirs) != 0) continue;
        if (is_of_layer)
            snprintf(name, 96, "blk.%u.%s", layer, names->ours);
        else
            snprintf(name, 96, "%s", names->ours);
        return names;
    }
    fail_msg("no name for '%s'", m->name);
    return NULL;
}

/* Writes the tensors as a GGUF file, with names by a table that {NULL} ends. put_keys adds the metadata. */
static inline void write_made_gguf(const struct made *made, const struct gguf_name *names,
                                   void put_keys(whit_gguf_writer *, const void *), const void *user, const char *path)
{
    whit_gguf_writer writer;
    whit_writer file;
    whit_error error;
    whit_gguf_writer_init(&writer, WHIT_GGUF_ALIGNMENT_BYTES, NULL);
    put_keys(&writer, user);
    for (uint32_t i = 0; i < made->n; i++) {
        const struct matrix *m = &made->items[i];
        char name[96];
        const bool is_bf16 = gguf_name_of(names, m, name)->value == BF16_AS_IS;
        uint64_t dims[3];
        uint32_t n_dims = 0;
        for (uint32_t k = m->n_dims; k--;) /* drops the 1 of a convolution's shape (channels, 1, taps) */
            if (m->dims[k] != 1 || m->n_dims == 1) dims[n_dims++] = m->dims[k];
        whit_gguf_put_tensor(&writer, name, is_bf16 ? 30 : 0, n_dims, dims, m->n_elems * (is_bf16 ? 2 : 4));
    }
    assert_ok(whit_writer_open(path, NULL, &file, &error), error);
    assert_ok(whit_gguf_write_head(&writer, &file, &error), error);
    for (uint32_t i = 0; i < made->n; i++) {
        const struct matrix *m = &made->items[i];
        char name[96];
        const enum value value = gguf_name_of(names, m, name)->value;
        if (value == BF16_AS_IS) {
            assert_ok(whit_gguf_write_data(&writer, m->data, m->n_elems * 2, &error), error);
            continue;
        }
        for (size_t k = 0; k < m->n_elems; k++) {
            float x = value_at(m, k);
            if (value == F32_PLUS_ONE) x += 1;
            if (value == F32_NEG_EXP) x = (float)-whit_exp_f64((double)x);
            assert_ok(whit_gguf_write_data(&writer, &x, sizeof x, &error), error);
        }
    }
    assert_ok(whit_gguf_write_end(&writer, &error), error);
    assert_ok(whit_writer_commit(&file, &error), error);
    whit_gguf_writer_close(&writer);
}

/* ---- checks ----------------------------------------------------------------------------------- */

static inline void identity_of(const char *path, uint8_t identity[32])
{
    whit_model *model = open_model_at(path);
    memcpy(identity, whit_model_identity(model), 32);
    whit_model_close(model);
}

static inline void assert_one_model(const char *a, const char *b)
{
    uint8_t identity[2][32];
    identity_of(a, identity[0]);
    identity_of(b, identity[1]);
    if (memcmp(identity[0], identity[1], 32) != 0) fail_msg("%s and %s differ", a, b);
}

static inline void assert_refused(const char *path, const char *word)
{
    whit_error error;
    whit_model *model;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    if (whit_model_open(path, &options, &model, &error) == WHIT_OK) fail_msg("opened, without '%s'", word);
    if (!strstr(error.message, word) || strchr(error.message, '\n')) fail_msg("'%s' lacks '%s'", error.message, word);
}

#endif
