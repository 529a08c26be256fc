/* SPDX-License-Identifier: MIT
 * Tests safetensors files: reading, shards, and damage of all kinds. */
#include "test.h"

#include "base/half.h"
#include "base/rng.h"
#include "format/safetensors.h"
#include "safetensors_sample.h"

static void sample_reads_back(void **state)
{
    (void)state;
    size_t size;
    whit_error error;
    whit_safetensors *set;
    uint8_t *bytes = make_safetensors(SAMPLE_HEADER, SAMPLE_DATA_BYTES, &size);
    assert_ok(whit_safetensors_open_memory(bytes, size, "s", NULL, &set, &error), error);
    assert_int_equal(set->n_tensors, 5);
    const whit_safetensor *tensor = whit_safetensors_find(set, "b.weight");
    assert_non_null(tensor);
    assert_int_equal(tensor->dtype, WHIT_DTYPE_BF16);
    assert_int_equal(tensor->dims[1], 3);
    assert_int_equal(tensor->data[0], 17);
    whit_ggml_view view;
    assert_true(whit_safetensor_view(tensor, &view));
    assert_int_equal(view.n_rows, 2);
    float row[3];
    double value;
    whit_ggml_row_f32(&view, 1, row);
    assert_true(whit_safetensor_f64(tensor, 3, &value) && value == (double)row[0]);
    assert_false(whit_safetensor_f64(tensor, 6, &value));
    tensor = whit_safetensors_find(set, "scale");
    assert_non_null(tensor); /* the file writes its name with an escape */
    assert_true(whit_safetensor_f64(tensor, 0, &value));
    assert_true(value == (double)whit_f32_from_f16(30 << 8 | 29));
    assert_false(whit_safetensor_view(whit_safetensors_find(set, "none"), &view));
    assert_false(whit_safetensor_view(whit_safetensors_find(set, "packed"), &view));
    assert_null(whit_safetensors_find(set, "__metadata__"));
    whit_safetensors_close(set);
    free(bytes);
}

static void assert_refused(const void *bytes, size_t size, const char *first, const char *second)
{
    whit_safetensors *set = (whit_safetensors *)1;
    whit_error error = {0};
    if (whit_safetensors_open_memory(bytes, size, "bad.st", NULL, &set, &error) == WHIT_OK)
        fail_msg("accepted, expected \"%s\"", first);
    assert_null(set);
    if (!strstr(error.message, "bad.st:") || !strstr(error.message, first) || !strstr(error.message, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error.message, first, second);
}

static void bad_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header, *first, *second;
    } cases[] = {
        {"[]", "not an object", ""},
        {"", "1:1", ""},
        {"{\"a\":", "1:", ""},
        {"{\"a\":3}", "tensor a", "not an object"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[1],\"data_offsets\":[0,4]}}", "tensor a", "F4"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", "tensor a", "dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", "tensor a", "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "tensor a", "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", "tensor a", "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", "tensor a", "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", "tensor a", "bounds"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", "tensor a", "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4]}}", "tensor a", "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,4]}}", "tensor a", "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", "tensor a", "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", "needs 4 bytes", "give 8"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[32,36]}}", "tensor a", "truncated"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[9223372036854775800,"
         "9223372036854775804]}}",
         "tensor a", "truncated"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[2,10]}}",
         "tensor b", "overlaps tensor a"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
         "tensor a occurs twice", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        uint8_t *bytes = make_safetensors(cases[i].header, 32, &size);
        assert_refused(bytes, size, cases[i].first, cases[i].second);
        free(bytes);
    }
    assert_refused("\0\0\0\0\1\0\0\0{}", 10, "claims a header of 4294967296 bytes", "more than the file contains");
    assert_refused("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10, "claims a header", "");
    assert_refused("{}", 2, "too short", "");
    assert_refused("version https://git-lfs.github.com/spec/v1\noid", 46, "git-LFS", "");
    size_t size = (16u << 20) + 16; /* larger than any header */
    uint8_t *large = calloc(1, size);
    uint64_t claimed = size - 8;
    memcpy(large, &claimed, 8);
    assert_refused(large, size, "more than any model has", "");
    free(large);
}

static void try_open(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    whit_safetensors *set;
    whit_error error = {0};
    if (whit_safetensors_open_memory(copy, size, "damaged", NULL, &set, &error) == WHIT_OK) {
        for (size_t i = 0; i < set->n_tensors; i++) {
            double value, sum = 0;
            for (uint64_t e = 0; whit_safetensor_f64(&set->tensors[i], e, &value); e++) sum += value;
            (void)sum;
        }
        whit_safetensors_close(set);
    } else {
        assert_non_null(strstr(error.message, "damaged:"));
    }
    free(copy);
}

static void damage_is_survived(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = make_safetensors(SAMPLE_HEADER, SAMPLE_DATA_BYTES, &size);
    for (size_t cut = 0; cut < size; cut++) assert_refused(bytes, cut, "", "");
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        try_open(bytes, size);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    whit_rng rng = {5};
    for (size_t i = 0; i < 5 * size; i++) {
        size_t at = whit_rng_below(&rng, size);
        uint8_t old = bytes[at];
        bytes[at] = (uint8_t) "09:,[]{}\"\\-e.\0 \xFF"[whit_rng_below(&rng, 16)];
        try_open(bytes, size);
        bytes[at] = old;
    }
    free(bytes);
}

/* ---- shards --------------------------------------------------------------------------------- */

static char folder[64];

static const char *in_folder(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    whit_error error;
    assert_ok(whit_write_file(in_folder(name), text, strlen(text), &error), error);
}

static void write_shard(const char *name, const char *header, size_t data_bytes)
{
    size_t size;
    whit_error error;
    uint8_t *bytes = make_safetensors(header, data_bytes, &size);
    assert_ok(whit_write_file(in_folder(name), bytes, size, &error), error);
    free(bytes);
}

static void assert_index_refused(const char *text, const char *first, const char *second)
{
    whit_safetensors *set;
    whit_error error = {0};
    write_text("index.json", text);
    assert_int_not_equal(whit_safetensors_open(in_folder("index.json"), NULL, &set, &error), WHIT_OK);
    assert_null(set);
    if (!strstr(error.message, first) || !strstr(error.message, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error.message, first, second);
}

static void shards_follow_the_index(void **state)
{
    (void)state;
    whit_error error;
    whit_safetensors *set;
    snprintf(folder, sizeof folder, "/tmp/whit-shards-XXXXXX");
    assert_non_null(mkdtemp(folder));
    write_shard("one.safetensors",
                "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                "\"stale\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
                4);
    write_shard("two.safetensors",
                "{\"stale\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                "\"c\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[1,4]}}",
                4);
    write_text("index.json",
               "{\"metadata\":{\"total_size\":8},\"weight_map\":{\"c\":\"two.safetensors\","
               "\"a\":\"one.safetensors\",\"stale\":\"two.safetensors\"}}");
    assert_ok(whit_safetensors_open(in_folder("index.json"), NULL, &set, &error), error);
    assert_int_equal(set->n_tensors, 3);
    assert_int_equal(set->n_files, 2);
    /* the tensor in the file that the index lists */
    assert_int_equal(whit_safetensors_find(set, "stale")->size_bytes, 1);
    assert_int_equal(whit_safetensors_find(set, "c")->data[0], 2);
    whit_safetensors_close(set);

    assert_index_refused("{\"weight_map\":{\"a\":\"three.safetensors\"}}", "three.safetensors", "a shard that");
    assert_index_refused("{\"weight_map\":{\"b\":\"one.safetensors\"}}", "tensor b is not in its shard",
                         "index.json:1:");
    assert_index_refused("{\"weight_map\":{\"a\":\"../one.safetensors\"}}", "not a plain file name", "");
    assert_index_refused("{\"weight_map\":{\"a\":\"x/one.safetensors\"}}", "not a plain file name", "");
    assert_index_refused("{\"weight_map\":{\"a\":1}}", "not a plain file name", "");
    assert_index_refused("{\"weight_map\":{}}", "empty", "");
    assert_index_refused("{\"weights\":{}}", "no weight_map", "");
    assert_index_refused("{\"weight_map\":{\"a\":\"one.safetensors\",\"a\":\"one.safetensors\"}}", "occurs twice", "");
    write_text("two.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n");
    assert_index_refused("{\"weight_map\":{\"c\":\"two.safetensors\"}}", "two.safetensors", "git-LFS");
    unlink(in_folder("one.safetensors"));
    unlink(in_folder("two.safetensors"));
    unlink(in_folder("index.json"));
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_reads_back),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(damage_is_survived),
        cmocka_unit_test(shards_follow_the_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
