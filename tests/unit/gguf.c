/* SPDX-License-Identifier: MIT
 * Tests the GGUF reader: what it returns, what it refuses with which message, and damaged files of all kinds. */
#include "test.h"

#include "base/rng.h"
#include "failing_memory.h"
#include "gguf_sample.h"
#include "gguf_touch.h"

static whit_gguf *open_sample(const uint8_t *bytes, size_t size)
{
    whit_gguf *gguf;
    whit_error error;
    assert_ok(whit_gguf_open_memory(bytes, size, "sample", NULL, &gguf, &error), error);
    return gguf;
}

/* Checks that the file is refused with a message that contains both words. */
static void assert_refused(const void *bytes, size_t size, const char *first, const char *second)
{
    whit_gguf *gguf = (whit_gguf *)1;
    whit_error error = {0};
    if (whit_gguf_open_memory(bytes, size, "bad.gguf", NULL, &gguf, &error) == WHIT_OK)
        fail_msg("accepted, expected \"%s\"", first);
    assert_null(gguf);
    if (!strstr(error.message, "bad.gguf: ") || !strstr(error.message, first) || !strstr(error.message, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error.message, first, second);
}

static void sample_reads_back(void **state)
{
    (void)state;
    static const uint32_t alignments[] = {8, 16, 32, 64, 4096, 24};
    for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++) {
        size_t size;
        whit_error error;
        uint8_t *bytes = make_sample_gguf(alignments[a], &size);
        whit_gguf *gguf = open_sample(bytes, size);
        assert_int_equal(gguf->version, 3);
        assert_int_equal(gguf->files[0].data_start_bytes % alignments[a], 0);
        uint64_t u = 1;
        int64_t i = 0;
        double f = 0;
        bool b = false;
        const char *text = NULL;
        size_t n = 0;
        assert_ok(whit_gguf_u64(gguf, "a.u16", &u, &error), error);
        assert_int_equal(u, 65535);
        assert_ok(whit_gguf_u64(gguf, "a.u64", &u, &error), error);
        assert_true(u == UINT64_MAX);
        assert_ok(whit_gguf_u64(gguf, "absent", &u, &error), error);
        assert_true(u == UINT64_MAX);
        assert_ok(whit_gguf_i64(gguf, "a.i32", &i, &error), error);
        assert_int_equal(i, -7);
        assert_int_equal(whit_gguf_u64(gguf, "a.i32", &u, &error), WHIT_ERROR_FORMAT);
        assert_int_equal(whit_gguf_i64(gguf, "a.u64", &i, &error), WHIT_ERROR_FORMAT);
        assert_ok(whit_gguf_f64(gguf, "a.f32", &f, &error), error);
        assert_true(f == (double)1e-5f);
        assert_ok(whit_gguf_f64(gguf, "a.u32", &f, &error), error);
        assert_true(f == 7);
        assert_ok(whit_gguf_bool(gguf, "a.bool", &b, &error), error);
        assert_true(b);
        assert_ok(whit_gguf_string(gguf, "general.architecture", &text, &n, &error), error);
        assert_int_equal(n, 5);
        assert_memory_equal(text, "llama", 5);
        assert_int_equal(whit_gguf_string(gguf, "a.u32", &text, &n, &error), WHIT_ERROR_FORMAT);
        assert_string_equal(error.message, "sample: key a.u32: has the type u32, but must be a string");

        const whit_gguf_key *array;
        assert_ok(whit_gguf_array(gguf, "tokenizer.ggml.scores", WHIT_GGUF_F32, &array, &error), error);
        assert_true(whit_gguf_element_f64(array, 2, &f) && f == 0.25);
        assert_false(whit_gguf_element_f64(array, 3, &f));
        assert_int_equal(whit_gguf_array(gguf, "tokenizer.ggml.scores", WHIT_GGUF_I32, &array, &error),
                         WHIT_ERROR_FORMAT);
        whit_gguf_strings strings = whit_gguf_strings_of(whit_gguf_find(gguf, "tokenizer.ggml.tokens"));
        assert_true(whit_gguf_strings_next(&strings, &text, &n) && n == 3);
        assert_true(whit_gguf_strings_next(&strings, &text, &n) && n == 0);
        assert_true(whit_gguf_strings_next(&strings, &text, &n) && n == 3 && memcmp(text, "a\0b", 3) == 0);
        assert_false(whit_gguf_strings_next(&strings, &text, &n));

        const whit_gguf_tensor *tensor = whit_gguf_find_tensor(gguf, "q8");
        assert_non_null(tensor);
        assert_int_equal(tensor->kind, WHIT_GGML_Q8_0);
        assert_int_equal(tensor->size_bytes, 68);
        assert_int_equal(tensor->data[67], 68);
        assert_null(whit_gguf_find_tensor(gguf, "q9"));
        assert_string_equal(whit_gguf_notes(gguf), "");
        whit_gguf_close(gguf);
        free(bytes);
    }
}

static void copied_keys_are_equal(void **state)
{
    (void)state;
    size_t size, copy_size;
    whit_error error;
    uint8_t *bytes = make_sample_gguf(32, &size);
    whit_gguf *gguf = open_sample(bytes, size);
    whit_gguf_writer writer;
    whit_writer file;
    whit_gguf_writer_init(&writer, 32, NULL);
    put_sample_keys(&writer);
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const whit_gguf_tensor *tensor = &gguf->tensors[i];
        char name[16];
        snprintf(name, sizeof name, "%.*s", (int)tensor->name_bytes, tensor->name);
        whit_gguf_put_tensor(&writer, name, tensor->id, tensor->n_dims, tensor->dims, tensor->size_bytes);
    }
    assert_ok(whit_writer_open(NULL, NULL, &file, &error), error);
    assert_ok(whit_gguf_write_head(&writer, &file, &error), error);
    assert_int_equal(whit_gguf_write_end(&writer, &error), WHIT_ERROR_ARGUMENT);
    for (size_t i = 0; i < gguf->n_tensors; i++) /* data may be written in pieces of any size */
        for (uint64_t at = 0; at < gguf->tensors[i].size_bytes; at += 5) {
            uint64_t rest = gguf->tensors[i].size_bytes - at;
            assert_ok(whit_gguf_write_data(&writer, gguf->tensors[i].data + at, rest < 5 ? rest : 5, &error), error);
        }
    assert_ok(whit_gguf_write_end(&writer, &error), error);
    assert_int_equal(whit_gguf_write_data(&writer, "x", 1, &error), WHIT_ERROR_ARGUMENT);
    whit_gguf_writer_close(&writer);
    uint8_t *copy = take_memory_file(&file, &copy_size);
    assert_int_equal(copy_size, size);
    assert_memory_equal(copy, bytes, size);
    free(copy);
    whit_gguf_close(gguf);
    free(bytes);
}

/* ---- damage --------------------------------------------------------------------------------- */

static size_t find(const uint8_t *bytes, size_t size, const char *text)
{
    const uint8_t *at = memmem(bytes, size, text, strlen(text));
    assert_non_null(at);
    return (size_t)(at - bytes);
}

static void put_u64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof value);
}

static void heads_are_refused_by_name(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = make_sample_gguf(32, &size);
    bytes[4] = 1;
    assert_refused(bytes, size, "version 1", "not supported");
    memcpy(bytes + 4, "\0\0\0\3", 4);
    assert_refused(bytes, size, "big-endian", "");
    memcpy(bytes + 4, "\x09\0\0\0", 4);
    assert_refused(bytes, size, "version 9", "");
    memcpy(bytes, "tjgg", 4);
    assert_refused(bytes, size, "older than GGUF", "");
    assert_refused("version https://git-lfs.github.com/spec/v1\noid sha256:0", 55, "git-LFS pointer", "");
    assert_refused("hello, world", 12, "is text", "download the file itself");
    assert_refused("\x01hello, world", 13, "not a GGUF file", "byte 0");
    assert_refused("", 0, "is empty", "");
    memcpy(bytes, "GGUF\2\0\0\0", 8);
    whit_gguf_close(open_sample(bytes, size));
    free(bytes);
}

static void absurd_numbers_are_refused(void **state)
{
    (void)state;
    size_t size;
    uint8_t *good = make_sample_gguf(32, &size), *bytes = malloc(size);
    static const uint64_t absurd[] = {UINT64_MAX, 1ull << 63, 1ull << 40, 1ull << 33, 100000, 4};
#define FRESH() memcpy(bytes, good, size)
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        FRESH(), put_u64(bytes + 8, absurd[i]);
        assert_refused(bytes, size, "", "");
        FRESH(), put_u64(bytes + 16, absurd[i] + 20);
        assert_refused(bytes, size, "", "");
        FRESH(), put_u64(bytes + 24, absurd[i] + size); /* length of the first key's name */
        assert_refused(bytes, size, "", "");
        if (i == 5) break;
        FRESH(), put_u64(bytes + find(bytes, size, "ggml.tokens") + 19, absurd[i]);
        assert_refused(bytes, size, "ggml.tokens", "claims");
        FRESH(), put_u64(bytes + find(bytes, size, "ggml.scores") + 19, absurd[i]);
        assert_refused(bytes, size, "ggml.scores", "claims");
        FRESH(), put_u64(bytes + find(bytes, size, "q8") + 2 + 4, absurd[i]); /* dims[0] of the tensor */
        assert_refused(bytes, size, "tensor q8", "");
        /* the tensor's data offset */
        FRESH(), put_u64(bytes + find(bytes, size, "q8") + 2 + 4 + 16 + 4, absurd[i] & ~31ull);
        assert_refused(bytes, size, "tensor q8", "after the end");
    }
    FRESH(), bytes[find(bytes, size, "a.u32") + 5] = 13;
    assert_refused(bytes, size, "a.u32", "unknown type 13");
    FRESH(), bytes[find(bytes, size, "q8") + 2] = 5;
    assert_refused(bytes, size, "tensor q8", "5 dimensions");
    FRESH(), bytes[find(bytes, size, "q8") + 2 + 4 + 16] = 99;
    assert_refused(bytes, size, "tensor q8: type id 99", "not known");
    FRESH(), bytes[find(bytes, size, "q8") + 2 + 4 + 16] = 38;
    assert_refused(bytes, size, "tensor q8: type id 38", "TL1");
    FRESH(), bytes[find(bytes, size, "q8") + 2 + 4 + 16] = 36;
    assert_refused(bytes, size, "tensor q8: type id 36", "I2_S");
    FRESH(), bytes[find(bytes, size, "q8") + 2 + 4 + 16] = 12;
    assert_refused(bytes, size, "tensor q8", "do not divide");
    FRESH(), bytes[find(bytes, size, "q8") + 2 + 4] = 64; /* the row is twice as long as declared */
    assert_refused(bytes, size, "tensor q8", "overlap tensor tq2");
    FRESH(), bytes[find(bytes, size, "q8") + 2 + 4 + 16 + 4] = 0;
    assert_refused(bytes, size, "same offset", "");
    FRESH(), bytes[find(bytes, size, "q8") + 2 + 4 + 16 + 4] = 33;
    assert_refused(bytes, size, "tensor q8", "not aligned");
    FRESH(), put_u64(bytes + find(bytes, size, "q8") + 2 + 4, 0);
    assert_refused(bytes, size, "tensor q8", "dimension 0 is 0");
    FRESH(), memcpy(bytes + find(bytes, size, "a.u32"), "a.i32", 5);
    assert_refused(bytes, size, "key a.i32 occurs twice", "");
    FRESH(), memcpy(bytes + find(bytes, size, "tq2"), "f32", 3);
    assert_refused(bytes, size, "tensor f32 occurs twice", "");
    assert_refused(good, size - 31, "tensor tq2", "damaged or truncated");
    free(bytes);
    free(good);
    good = make_sample_gguf(64, &size);
    good[find(good, size, "alignment") + 13] = 0;
    assert_refused(good, size, "general.alignment", "");
    free(good);
}

static void try_open(const uint8_t *bytes, size_t size)
{
    /* The allocation has the exact size, so that sanitizers see a read beyond it. */
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    whit_gguf *gguf;
    whit_error error = {0};
    if (whit_gguf_open_memory(copy, size, "damaged", NULL, &gguf, &error) == WHIT_OK) {
        touch_gguf(gguf);
        whit_gguf_close(gguf);
    } else {
        assert_non_null(strstr(error.message, "damaged: "));
    }
    free(copy);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = make_sample_gguf(32, &size);
    size_t used = size - 30; /* end of the last tensor; padding follows */
    for (size_t cut = 0; cut < used; cut++) assert_refused(bytes, cut, "", "");
    for (size_t cut = used; cut <= size; cut++) whit_gguf_close(open_sample(bytes, cut));
    free(bytes);
}

static void every_flipped_bit_and_many_bytes_are_survived(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = make_sample_gguf(32, &size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        try_open(bytes, size);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    whit_rng rng = {3};
    static const uint8_t values[] = {0, 0x7F, 0x80, 0xFF};
    for (size_t at = 0; at < size; at++) {
        uint8_t old = bytes[at];
        for (size_t v = 0; v < sizeof values; v++) bytes[at] = values[v], try_open(bytes, size);
        bytes[at] = (uint8_t)whit_rng_next(&rng);
        try_open(bytes, size);
        bytes[at] = old;
    }
    free(bytes);
}

/* ---- type ids that collide ------------------------------------------------------------------ */

/* Writes a file with two tensors of type `id`, n_cols x n_rows each, and data_bytes of data for each. */
static uint8_t *make_collision(uint32_t id, uint64_t n_cols, uint64_t n_rows, const uint8_t *data, uint64_t data_bytes,
                               size_t *size)
{
    whit_gguf_writer writer;
    whit_writer file;
    whit_error error;
    const uint64_t dims[] = {n_cols, n_rows};
    whit_gguf_writer_init(&writer, 32, NULL);
    whit_gguf_put_tensor(&writer, "one", id, 2, dims, data_bytes);
    whit_gguf_put_tensor(&writer, "two", id, 2, dims, data_bytes);
    assert_ok(whit_writer_open(NULL, NULL, &file, &error), error);
    assert_ok(whit_gguf_write_head(&writer, &file, &error), error);
    assert_ok(whit_gguf_write_data(&writer, data, data_bytes, &error), error);
    assert_ok(whit_gguf_write_data(&writer, data, data_bytes, &error), error);
    assert_ok(whit_gguf_write_end(&writer, &error), error);
    whit_gguf_writer_close(&writer);
    return take_memory_file(&file, size);
}

static void ids_are_decided_by_stride(void **state)
{
    (void)state;
    static const struct {
        uint32_t id;
        uint64_t n_cols, n_rows, data_bytes;
        int kind; /* -1: refused */
    } cases[] = {
        {42, 256, 16, 72 * 16, WHIT_GGML_Q2_0},
        {42, 256, 16, 68 * 16, WHIT_GGML_PQ2_0},
        {42, 256, 16, 42 * 16, WHIT_GGML_STQ1_0},
        {42, 256, 16, 50 * 16, -1},
        {43, 256, 16, 42 * 16, WHIT_GGML_STQ1_0},
        {43, 256, 16, 64 * 16, -1},
        {41, 128, 8, 18 * 8, WHIT_GGML_Q1_0},
        {36, 128, 8, 32 * 8 + 32, WHIT_GGML_I2_S},
        {36, 128, 8, 32 * 8, -1},
        {142, 128, 8, 34 * 8, WHIT_GGML_PQ2_0},
        {142, 128, 64, 36 * 64, -1},
        {143, 128, 64, 28 * 64, WHIT_GGML_PTQ1_0},
        {39, 128, 8, 32 * 8, -1},
    };
    uint8_t data[8192];
    memset(data, 0x2C, sizeof data); /* as f16: 0.06 */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        uint8_t *bytes =
            make_collision(cases[i].id, cases[i].n_cols, cases[i].n_rows, data, cases[i].data_bytes, &size);
        if (cases[i].kind < 0) {
            char id[32];
            snprintf(id, sizeof id, "type id %u: ", cases[i].id);
            assert_refused(bytes, size, id, "tensor ");
        } else {
            whit_gguf *gguf = open_sample(bytes, size);
            assert_int_equal(gguf->tensors[0].kind, cases[i].kind);
            assert_int_equal(gguf->tensors[1].size_bytes, cases[i].data_bytes);
            char note[64];
            snprintf(note, sizeof note, "type id %u is read as %s (", cases[i].id,
                     whit_ggml_kind_info((whit_ggml_kind)cases[i].kind)->name);
            assert_non_null(strstr(whit_gguf_notes(gguf), note));
            whit_gguf_close(gguf);
        }
        free(bytes);
    }
}

/* 36 and 34 bytes are both padded to 64: the padding and the scales must decide. */
static void ids_are_decided_by_content_where_strides_agree(void **state)
{
    (void)state;
    uint8_t upstream[36], prism[34];
    memset(upstream, 0xE4, sizeof upstream); /* as f16: below zero */
    memset(prism, 0xE4, sizeof prism);
    memcpy(upstream, "\x00\x2C", 2);
    memcpy(upstream + 18, "\x00\x2C", 2);
    memcpy(prism, "\x00\x2C", 2);
    size_t size;
    uint8_t *bytes = make_collision(42, 128, 1, upstream, sizeof upstream, &size);
    whit_gguf *gguf = open_sample(bytes, size);
    assert_int_equal(gguf->tensors[0].kind, WHIT_GGML_Q2_0);
    whit_gguf_close(gguf);
    free(bytes);
    bytes = make_collision(42, 128, 1, prism, sizeof prism, &size);
    gguf = open_sample(bytes, size);
    assert_int_equal(gguf->tensors[0].kind, WHIT_GGML_PQ2_0);
    whit_gguf_close(gguf);
    free(bytes);
}

/* ---- split sets ----------------------------------------------------------------------------- */

static void write_split(const char *folder, unsigned number, unsigned count, unsigned claimed, const char *tensor)
{
    char path[128];
    whit_gguf_writer writer;
    whit_writer file;
    whit_error error;
    float data[8] = {(float)number};
    snprintf(path, sizeof path, "%s/m-%05u-of-%05u.gguf", folder, number + 1, count);
    whit_gguf_writer_init(&writer, 32, NULL);
    if (number == 0) whit_gguf_put_string(&writer, "general.architecture", "llama", 5);
    whit_gguf_put(&writer, "split.no", WHIT_GGUF_U16, &(uint16_t){(uint16_t)claimed});
    whit_gguf_put(&writer, "split.count", WHIT_GGUF_U16, &(uint16_t){(uint16_t)count});
    whit_gguf_put(&writer, "split.tensors.count", WHIT_GGUF_I32, &(int32_t){(int32_t)count});
    whit_gguf_put_tensor(&writer, tensor, 0, 1, (const uint64_t[]){8}, 32);
    assert_ok(whit_writer_open(path, NULL, &file, &error), error);
    assert_ok(whit_gguf_write_head(&writer, &file, &error), error);
    assert_ok(whit_gguf_write_data(&writer, data, sizeof data, &error), error);
    assert_ok(whit_writer_commit(&file, &error), error);
    whit_gguf_writer_close(&writer);
}

static void assert_path_refused(const char *path, const char *first, const char *second)
{
    whit_gguf *gguf;
    whit_error error = {0};
    assert_int_not_equal(whit_gguf_open(path, NULL, &gguf, &error), WHIT_OK);
    assert_null(gguf);
    if (!strstr(error.message, first) || !strstr(error.message, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error.message, first, second);
}

static void split_sets_open_together(void **state)
{
    (void)state;
    char folder[] = "/tmp/whit-gguf-XXXXXX", path[128], other[128];
    whit_error error;
    whit_gguf *gguf;
    assert_non_null(mkdtemp(folder));
    write_split(folder, 0, 3, 0, "a");
    write_split(folder, 1, 3, 1, "b");
    write_split(folder, 2, 3, 2, "c");
    for (unsigned i = 1; i <= 3; i++) { /* the path of any part opens the whole model */
        snprintf(path, sizeof path, "%s/m-%05u-of-00003.gguf", folder, i);
        assert_ok(whit_gguf_open(path, NULL, &gguf, &error), error);
        assert_int_equal(gguf->n_tensors, 3);
        assert_int_equal(gguf->n_files, 3);
        assert_non_null(whit_gguf_find(gguf, "general.architecture"));
        assert_true(whit_load_f32(whit_gguf_find_tensor(gguf, "c")->data) == 2.0f);
        whit_gguf_close(gguf);
    }
    snprintf(path, sizeof path, "%s/m-00001-of-00003.gguf", folder);
    snprintf(other, sizeof other, "%s/odd.gguf", folder);
    assert_int_equal(rename(path, other), 0);
    assert_path_refused(other, "odd.gguf", "name does not end");
    assert_int_equal(rename(other, path), 0);
    write_split(folder, 1, 3, 2, "b");
    assert_path_refused(path, "m-00002-of-00003.gguf", "says that it is file 3 of 3");
    write_split(folder, 1, 3, 1, "c");
    assert_path_refused(path, "tensor c occurs twice", "");
    snprintf(other, sizeof other, "%s/m-00002-of-00003.gguf", folder);
    unlink(other);
    assert_path_refused(path, "m-00002-of-00003.gguf", "file 2 of a split set of 3");
    unlink(path);
    snprintf(path, sizeof path, "%s/m-00003-of-00003.gguf", folder);
    unlink(path);
    rmdir(folder);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void every_failing_allocation_ends_cleanly(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = make_sample_gguf(32, &size);
    whit_status status = WHIT_ERROR_MEMORY;
    for (long n = 0; status != WHIT_OK; n++) {
        struct failing failing = {.n_left = n};
        whit_allocator allocator = {failing_alloc, failing_free, &failing};
        whit_gguf *gguf;
        whit_error error;
        status = whit_gguf_open_memory(bytes, size, "sample", &allocator, &gguf, &error);
        if (status == WHIT_OK)
            whit_gguf_close(gguf);
        else
            assert_int_equal(status, WHIT_ERROR_MEMORY);
        assert_int_equal(failing.n_live, 0);
        assert_true(n < 100);
    }
    free(bytes);
}

static void tiny_models_open(void **state)
{
    (void)state;
    static const char *const names[] = {
        "models-tiny/bitnet-b158/bitnet-b158-i2_s-embd-q6_k.gguf", "models-tiny/bitnet-b158/bitnet-b158-tq1_0.gguf",
        "models-tiny/bitnet-b158/bitnet-b158-tq2_0.gguf",          "models-tiny/qwen3-tied/qwen3-tied-bf16.gguf",
        "models-tiny/llama-gqa-untied/llama-gqa-untied-f16.gguf",  "models/stories260K/stories260K.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        whit_gguf *gguf;
        whit_error error;
        assert_ok(whit_gguf_open(shared_path(names[i]), NULL, &gguf, &error), error);
        assert_non_null(whit_gguf_find(gguf, "general.architecture"));
        assert_non_null(whit_gguf_find_tensor(gguf, "token_embd.weight"));
        whit_gguf_close(gguf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_reads_back),
        cmocka_unit_test(copied_keys_are_equal),
        cmocka_unit_test(heads_are_refused_by_name),
        cmocka_unit_test(absurd_numbers_are_refused),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_flipped_bit_and_many_bytes_are_survived),
        cmocka_unit_test(ids_are_decided_by_stride),
        cmocka_unit_test(ids_are_decided_by_content_where_strides_agree),
        cmocka_unit_test(split_sets_open_together),
        cmocka_unit_test(every_failing_allocation_ends_cleanly),
        cmocka_unit_test(tiny_models_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
