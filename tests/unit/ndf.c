/* SPDX-License-Identifier: MIT
 * Tests the .ndf container: written content is read again, identities, and tables. */
#include "test.h"

#include <sys/stat.h>

#include "format/ndf_layout.h"
#include "ndf_sample.h"

static int remove_folder(void **state)
{
    (void)state;
    return ndf_sample_path(NULL) ? 0 : -1;
}

static void check_tensors(const whit_ndf *ndf, const ndf_sample_options *options)
{
    assert_int_equal(whit_ndf_n_tensors(ndf), options->n_tensors);
    for (uint32_t i = 0; i < options->n_tensors; i++) {
        int64_t at = whit_ndf_find(ndf, ndf_sample_name(i));
        assert_true(at >= 0);
        assert_string_equal(whit_ndf_tensor_name(ndf, (uint32_t)at), ndf_sample_name(i));
        whit_tensor tensor;
        whit_ndf_tensor(ndf, (uint32_t)at, &tensor);
        assert_int_equal(tensor.type.n_rows, 4 + i);
        assert_int_equal(tensor.part_bytes[0], options->row_bytes + i);
        assert_int_equal(tensor.part_bytes[1], 4 * (4 + i));
        assert_null(tensor.part[2]);
        for (uint32_t k = 0; k < 2; k++) {
            assert_int_equal((uintptr_t)tensor.part[k] % 64, 0);
            for (uint64_t j = 0; j < tensor.part_bytes[k]; j++)
                if (tensor.part[k][j] != ndf_sample_byte(i, k, j)) fail_msg("tensor %u byte", i);
        }
        if (at > 0)
            assert_true(strcmp(whit_ndf_tensor_name(ndf, (uint32_t)at - 1), whit_ndf_tensor_name(ndf, (uint32_t)at)) <
                        0);
    }
    assert_int_equal(whit_ndf_find(ndf, "tensor"), -1);
    assert_int_equal(whit_ndf_find(ndf, ""), -1);
}

static void check_tables(const whit_ndf *ndf)
{
    whit_value value;
    size_t n;
    assert_string_equal(whit_table_get_string(whit_ndf_config(ndf), "family"), "llama");
    double theta;
    assert_true(whit_table_get_f64(whit_ndf_config(ndf), "rope.theta", &theta));
    assert_true(theta == 10000.0);
    uint64_t n_layers;
    assert_true(whit_table_get_u64(whit_ndf_config(ndf), "n_layers", &n_layers));
    assert_int_equal(n_layers, 5);
    assert_true(whit_table_get(whit_ndf_config(ndf), "heads", &value));
    assert_int_equal(value.type, WHIT_VALUE_U64_ARRAY);
    assert_int_equal(value.count, 3);
    assert_int_equal(value.u64s[2], 2);
    assert_true(whit_table_get(whit_ndf_meta(ndf), "general.tags", &value));
    assert_int_equal(value.count, 3);
    assert_string_equal(whit_value_string_at(&value, 0, &n), "tiny");
    assert_string_equal(whit_value_string_at(&value, 1, NULL), "");
    assert_string_equal(whit_value_string_at(&value, 2, NULL), "test");
    assert_int_equal(n, 4);
    int64_t negative;
    assert_true(whit_table_get_i64(whit_ndf_meta(ndf), "general.negative", &negative));
    assert_int_equal(negative, -7);
    assert_false(whit_table_get_u64(whit_ndf_meta(ndf), "general.negative", &n_layers));
    bool odd = false;
    assert_true(whit_table_get_bool(whit_ndf_meta(ndf), "general.odd", &odd));
    assert_true(odd);
    assert_true(whit_table_get(whit_ndf_meta(ndf), "general.blob", &value));
    assert_memory_equal(value.bytes, "\0\1\2", 3);
    assert_false(whit_table_get(whit_ndf_meta(ndf), "general", &value));
    assert_string_equal(whit_table_get_string(whit_ndf_templates(ndf), "default"), "{{ messages }}");
    assert_memory_equal(whit_ndf_tokenizer(ndf, &n), "tokenizer image", 15);
    assert_int_equal(n, 15);
}

static void reads_what_was_written(void **state)
{
    (void)state;
    whit_error error;
    const char *path = ndf_sample_path("a.ndf");
    ndf_sample_options options = {.n_tensors = 11, .row_bytes = 3000};
    uint8_t identity[WHIT_HASH_BYTES];
    assert_ok(ndf_sample_write(path, &options, identity, NULL, &error), error);
    whit_ndf *ndf;
    assert_ok(whit_ndf_open(path, NULL, &ndf, &error), error);
    assert_string_equal(whit_ndf_path(ndf), path);
    assert_memory_equal(whit_ndf_identity(ndf), identity, sizeof identity);
    assert_int_equal(whit_ndf_torn_bytes(ndf), 0);
    assert_int_equal(whit_ndf_n_appended(ndf), 0);
    check_tensors(ndf, &options);
    check_tables(ndf);
    whit_ndf_close(ndf);
    whit_ndf_close(NULL);
    unlink(path);
}

static void crosses_chunks(void **state)
{
    (void)state;
    whit_error error;
    int fd = -1;
    ndf_sample_options options = {.n_tensors = 3, .row_bytes = (1 << 20) - 100};
    assert_ok(ndf_sample_write(NULL, &options, NULL, &fd, &error), error);
    whit_ndf *ndf;
    assert_ok(whit_ndf_open_fd(fd, "in memory", NULL, &ndf, &error), error);
    close(fd);
    check_tensors(ndf, &options);
    whit_ndf_close(ndf);
}

/* A file in memory is used in place, without a copy; if it is cut at any length, it must be refused. */
static void opens_in_memory(void **state)
{
    (void)state;
    whit_error error;
    char *path = ndf_sample_path("memory.ndf");
    ndf_sample_options options = {.n_tensors = 4, .row_bytes = 300};
    assert_ok(ndf_sample_write(path, &options, NULL, NULL, &error), error);
    size_t size_bytes;
    uint8_t *loaded = ndf_sample_load(path, &size_bytes), *bytes = NULL;
    assert_int_equal(posix_memalign((void **)&bytes, 64, size_bytes + 64), 0);
    memcpy(bytes, loaded, size_bytes);
    whit_ndf *ndf;
    assert_ok(whit_ndf_open_memory(bytes, size_bytes, "built in", NULL, &ndf, &error), error);
    assert_string_equal(whit_ndf_path(ndf), "built in");
    check_tensors(ndf, &options);
    check_tables(ndf);
    whit_tensor tensor;
    whit_ndf_tensor(ndf, 0, &tensor);
    assert_true(tensor.part[0] > bytes && tensor.part[0] < bytes + size_bytes);
    const void *address;
    const char *mapped;
    size_t mapped_bytes;
    assert_false(whit_ndf_mapping(ndf, 0, &address, &mapped_bytes, &mapped));
    whit_ndf_close(ndf);
    for (size_t n = 0; n < size_bytes; n += 61)
        assert_int_equal(whit_ndf_open_memory(bytes, n, "cut", NULL, &ndf, &error), WHIT_ERROR_FORMAT);
    assert_int_equal(whit_ndf_open_memory(bytes + 8, size_bytes - 8, "askew", NULL, &ndf, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_ndf_open_memory(NULL, 0, "nothing", NULL, &ndf, &error), WHIT_ERROR_ARGUMENT);
    assert_null(ndf);
    free(bytes);
    free(loaded);
    unlink(ndf_sample_path("memory.ndf"));
}

static void identity_is_of_the_model(void **state)
{
    (void)state;
    whit_error error;
    uint8_t first[WHIT_HASH_BYTES], second[WHIT_HASH_BYTES], third[WHIT_HASH_BYTES];
    ndf_sample_options options = {.n_tensors = 5, .row_bytes = 70};
    assert_ok(ndf_sample_write(NULL, &options, first, NULL, &error), error);
    size_t sizes[2];
    uint8_t *bytes[2];
    for (int i = 0; i < 2; i++) { /* the same input gives the same bytes */
        const char *path = ndf_sample_path("twice.ndf");
        assert_ok(ndf_sample_write(path, &options, NULL, NULL, &error), error);
        bytes[i] = ndf_sample_load(path, &sizes[i]);
        unlink(path);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    free(bytes[0]);
    free(bytes[1]);
    options.reversed = true;
    assert_ok(ndf_sample_write(NULL, &options, second, NULL, &error), error);
    assert_memory_equal(first, second, sizeof first);
    options.row_bytes++;
    assert_ok(ndf_sample_write(NULL, &options, third, NULL, &error), error);
    assert_memory_not_equal(first, third, sizeof first);
}

static void splits_into_files(void **state)
{
    (void)state;
    whit_error error;
    const char *path = ndf_sample_path("big.ndf");
    ndf_sample_options options = {.n_tensors = 7, .row_bytes = 1000, .max_data_bytes = 2500};
    uint8_t whole[WHIT_HASH_BYTES], split[WHIT_HASH_BYTES];
    assert_ok(ndf_sample_write(path, &options, split, NULL, &error), error);
    options.max_data_bytes = 0;
    assert_ok(ndf_sample_write(NULL, &options, whole, NULL, &error), error);
    assert_memory_equal(whole, split, sizeof whole);
    whit_ndf *ndf;
    assert_ok(whit_ndf_open(path, NULL, &ndf, &error), error);
    assert_int_equal(whit_ndf_n_files(ndf), 4);
    assert_string_equal(whit_ndf_file(ndf, 3, NULL), ndf_sample_path("big-00004-of-00004.ndf"));
    check_tensors(ndf, &options);
    check_tables(ndf);
    whit_ndf_close(ndf);

    /* A part of a split model must not open as a model. */
    const char *part = ndf_sample_path("big-00002-of-00004.ndf");
    assert_int_equal(whit_ndf_open(part, NULL, &ndf, &error), WHIT_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "part of a split model"));
    /* A part that is missing, a part with another number, and a part of another model. */
    assert_int_equal(rename(part, ndf_sample_path("hidden")), 0);
    assert_int_equal(whit_ndf_open(path, NULL, &ndf, &error), WHIT_ERROR_IO);
    assert_non_null(strstr(error.message, "big-00002-of-00004.ndf: cannot open"));
    assert_null(ndf);
    assert_int_equal(link(ndf_sample_path("big-00003-of-00004.ndf"), part), 0);
    assert_int_equal(whit_ndf_open(path, NULL, &ndf, &error), WHIT_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "the file is part 3 of 4"));
    unlink(part);
    const char *other = ndf_sample_path("other.ndf");
    options.row_bytes = 1001;
    options.max_data_bytes = 2500;
    assert_ok(ndf_sample_write(other, &options, NULL, NULL, &error), error);
    assert_int_equal(rename(ndf_sample_path("other-00002-of-00004.ndf"), part), 0);
    assert_int_equal(whit_ndf_open(path, NULL, &ndf, &error), WHIT_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "part of another model"));
    assert_int_equal(rename(ndf_sample_path("hidden"), part), 0);
    assert_ok(whit_ndf_open(path, NULL, &ndf, &error), error);
    whit_ndf_close(ndf);
    for (int i = 2; i <= 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "big-%05d-of-00004.ndf", i);
        unlink(ndf_sample_path(name));
        snprintf(name, sizeof name, "other-%05d-of-00004.ndf", i);
        unlink(ndf_sample_path(name));
    }
    unlink(path);
    unlink(other);
}

/* A model that is written through a link has its parts beside the link's target, and opens by either name. If main file
 * and parts are links to other files, they are found by the links' names. */
static void splits_beside_the_file_of_a_link(void **state)
{
    (void)state;
    enum { N_FILES = 4 };
    whit_error error;
    whit_ndf *ndf;
    char target[256], link_path[256], part[256], elsewhere[256];
    const char *folder = ndf_sample_path("models");
    ndf_sample_options options = {.n_tensors = 7, .row_bytes = 1000, .max_data_bytes = 2500};
    snprintf(target, sizeof target, "%s/real.ndf", folder);
    snprintf(link_path, sizeof link_path, "%s", ndf_sample_path("link.ndf"));
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(symlink("models/real.ndf", link_path), 0);
    for (int round = 0; round < 2; round++) { /* in round 1 a new model replaces the first and its parts */
        assert_ok(ndf_sample_write(link_path, &options, NULL, NULL, &error), error);
        for (int i = 2; i <= N_FILES; i++) {
            snprintf(part, sizeof part, "%s/real-%05d-of-00004%s.ndf", folder, i, round ? "b" : "");
            assert_int_equal(access(part, F_OK), 0);
        }
        const char *const names[] = {target, link_path};
        for (size_t i = 0; i < 2; i++) {
            assert_ok(whit_ndf_open(names[i], NULL, &ndf, &error), error);
            assert_int_equal(whit_ndf_n_files(ndf), N_FILES);
            check_tensors(ndf, &options);
            whit_ndf_close(ndf);
        }
        options.row_bytes++;
    }
    options.row_bytes--;
    unlink(link_path);
    snprintf(elsewhere, sizeof elsewhere, "%s/0", folder);
    assert_int_equal(rename(target, elsewhere), 0);
    assert_int_equal(symlink("models/0", link_path), 0);
    for (int i = 2; i <= N_FILES; i++) {
        char name[64];
        snprintf(name, sizeof name, "real-%05d-of-00004b.ndf", i);
        snprintf(part, sizeof part, "%s/%s", folder, name);
        snprintf(elsewhere, sizeof elsewhere, "%s/%d", folder, i);
        assert_int_equal(rename(part, elsewhere), 0);
        snprintf(part, sizeof part, "models/%d", i);
        assert_int_equal(symlink(part, ndf_sample_path(name)), 0);
    }
    assert_ok(whit_ndf_open(link_path, NULL, &ndf, &error), error);
    check_tensors(ndf, &options);
    whit_ndf_close(ndf);
    for (int i = 2; i <= N_FILES; i++) {
        char name[64];
        snprintf(name, sizeof name, "real-%05d-of-00004b.ndf", i);
        assert_int_equal(unlink(ndf_sample_path(name)), 0);
        snprintf(elsewhere, sizeof elsewhere, "%s/%d", folder, i);
        assert_int_equal(unlink(elsewhere), 0);
    }
    snprintf(elsewhere, sizeof elsewhere, "%s/0", folder);
    assert_int_equal(unlink(elsewhere), 0);
    unlink(link_path);
    assert_int_equal(rmdir(folder), 0);
}

/* New parts must not take the names of parts that an intact model still uses; the old parts are removed when the new
 * model is complete. */
static void replaces_a_split_model(void **state)
{
    (void)state;
    whit_error error;
    whit_ndf *ndf;
    const char *path = ndf_sample_path("again.ndf");
    ndf_sample_options old = {.n_tensors = 7, .row_bytes = 1000, .max_data_bytes = 2500}, new = old;
    new.row_bytes = 1001;
    assert_ok(ndf_sample_write(path, &old, NULL, NULL, &error), error);
    for (int round = 0; round < 3; round++, old = new, new.row_bytes++) {
        const char *part = round % 2 ? "again-00002-of-00004b.ndf" : "again-00002-of-00004.ndf";
        assert_int_equal(access(ndf_sample_path(part), F_OK), 0);
        assert_ok(ndf_sample_write(path, &new, NULL, NULL, &error), error);
        assert_int_not_equal(access(ndf_sample_path(part), F_OK), 0);
        assert_ok(whit_ndf_open(path, NULL, &ndf, &error), error);
        assert_int_equal(whit_ndf_n_files(ndf), 4);
        check_tensors(ndf, &new);
        whit_ndf_close(ndf);
    }
    for (int i = 2; i <= 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "again-%05d-of-00004b.ndf", i);
        assert_int_equal(unlink(ndf_sample_path(name)), 0);
    }
    unlink(path);
}

static void failed_commits_leave_no_parts(void **state)
{
    enum { N = 3 };
    (void)state;
    whit_error error;
    whit_ndf_writer *writer;
    whit_ndf_write_options options = {.max_data_bytes = 64};
    whit_tensor_type type = {.codec = WHIT_CODEC_F32, .n_rows = 1, .n_cols = 16};
    uint64_t bytes[WHIT_PART_COUNT] = {64};
    uint8_t data[64] = {0}, digest[WHIT_HASH_BYTES] = {1};
    uint32_t tensors[N];
    const char *path = ndf_sample_path("held.ndf");
    assert_ok(whit_ndf_writer_open(path, &options, NULL, &writer, &error), error);
    for (uint32_t i = 0; i < N; i++)
        assert_ok(whit_ndf_writer_declare(writer, ndf_sample_name(i), &type, bytes, &tensors[i], &error), error);
    assert_ok(whit_ndf_writer_begin(writer, &error), error);
    for (uint32_t i = 0; i < N; i++) {
        assert_ok(whit_ndf_writer_add(writer, tensors[i], WHIT_PART_CODES, data, 64, &error), error);
        whit_ndf_writer_set_digest(writer, tensors[i], digest);
    }
    assert_int_equal(mkdir(path, 0700), 0); /* a folder has the name of the main file, which is renamed last */
    assert_int_equal(whit_ndf_writer_commit(writer, NULL, &error), WHIT_ERROR_IO);
    assert_non_null(strstr(error.message, "held.ndf"));
    assert_int_equal(access(ndf_sample_path("held-00002-of-00003.ndf"), F_OK), -1);
    assert_int_equal(access(ndf_sample_path("held-00003-of-00003.ndf"), F_OK), -1);
    whit_ndf_writer_close(writer);
    assert_int_equal(rmdir(path), 0); /* nothing may be left in the test's folder */
}

static void refuses_misuse(void **state)
{
    (void)state;
    whit_error error;
    whit_ndf_writer *writer;
    whit_tensor_type type = {.codec = WHIT_CODEC_F32, .n_rows = 1, .n_cols = 16};
    uint64_t bytes[WHIT_PART_COUNT] = {64};
    uint8_t data[64] = {0}, digest[WHIT_HASH_BYTES] = {1};
    uint32_t a, b;
    const char *path = ndf_sample_path("misuse.ndf");
    assert_ok(whit_ndf_writer_open(path, NULL, NULL, &writer, &error), error);
    assert_ok(whit_ndf_writer_declare(writer, "a", &type, bytes, &a, &error), error);
    assert_ok(whit_ndf_writer_declare(writer, "b", &type, bytes, &b, &error), error);
    assert_int_equal(whit_ndf_writer_commit(writer, NULL, &error), WHIT_ERROR_ARGUMENT);
    assert_ok(whit_ndf_writer_begin(writer, &error), error);
    assert_int_equal(whit_ndf_writer_add(writer, b, WHIT_PART_CODES, data, 64, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_ndf_writer_add(writer, a, WHIT_PART_CODES, data, 65, &error), WHIT_ERROR_ARGUMENT);
    assert_ok(whit_ndf_writer_add(writer, a, WHIT_PART_CODES, data, 64, &error), error);
    assert_ok(whit_ndf_writer_add(writer, b, WHIT_PART_CODES, data, 64, &error), error);
    whit_ndf_writer_set_digest(writer, a, digest);
    assert_int_equal(whit_ndf_writer_commit(writer, NULL, &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "'b' has no digest"));
    whit_ndf_writer_close(writer);
    assert_int_equal(access(path, F_OK), -1);

    assert_ok(whit_ndf_writer_open(NULL, NULL, NULL, &writer, &error), error);
    assert_ok(whit_ndf_writer_declare(writer, "a", &type, bytes, &a, &error), error);
    assert_ok(whit_ndf_writer_declare(writer, "a", &type, bytes, &b, &error), error);
    assert_int_equal(whit_ndf_writer_begin(writer, &error), WHIT_ERROR_ARGUMENT);
    assert_string_equal(error.message, "two tensors have the name 'a'");
    whit_ndf_writer_close(writer);

    assert_ok(whit_ndf_writer_open(NULL, NULL, NULL, &writer, &error), error);
    whit_table_set_f64(whit_ndf_writer_config(writer), "eps", 0.0 / 0.0);
    assert_int_equal(whit_ndf_writer_begin(writer, &error), WHIT_ERROR_ARGUMENT);
    assert_string_equal(error.message, "key 'eps': a number is NaN");
    whit_ndf_writer_close(writer);
}

/* A model without tensors and tokenizer is a valid file. */
static void empty_model_is_sound(void **state)
{
    (void)state;
    whit_error error;
    whit_ndf_writer *writer;
    assert_ok(whit_ndf_writer_open(NULL, NULL, NULL, &writer, &error), error);
    assert_ok(whit_ndf_writer_begin(writer, &error), error);
    assert_ok(whit_ndf_writer_commit(writer, NULL, &error), error);
    whit_ndf *ndf;
    assert_ok(whit_ndf_open_fd(whit_ndf_writer_fd(writer), "empty", NULL, &ndf, &error), error);
    whit_ndf_writer_close(writer);
    size_t n = 1;
    assert_null(whit_ndf_tokenizer(ndf, &n));
    assert_int_equal(n, 0);
    assert_int_equal(whit_ndf_n_tensors(ndf), 0);
    assert_int_equal(whit_ndf_find(ndf, "x"), -1);
    whit_ndf_close(ndf);
}

static void tables_are_canonical(void **state)
{
    (void)state;
    whit_error error;
    whit_buf out[2] = {{0}, {0}};
    for (int order = 0; order < 2; order++) {
        whit_table_builder builder = {0};
        char key[16];
        for (int i = 0; i < 1000; i++) {
            int k = order ? 999 - i : i;
            snprintf(key, sizeof key, "key%d", k);
            whit_table_set_u64(&builder, key, 77);
            if (k % 3 == 0) whit_table_set_string(&builder, key, key); /* the later value counts */
        }
        assert_ok(whit_table_build(&builder, &out[order], &error), error);
        whit_table_builder_free(&builder);
    }
    assert_int_equal(out[0].size_bytes, out[1].size_bytes);
    assert_memory_equal(out[0].data, out[1].data, out[0].size_bytes);
    whit_table table;
    assert_ok(whit_table_open(out[0].data, out[0].size_bytes, "table", &table, &error), error);
    assert_int_equal(whit_table_count(&table), 1000);
    assert_string_equal(whit_table_get_string(&table, "key999"), "key999");
    /* Copying all values into another builder must give the same bytes. */
    whit_table_builder copy = {0};
    whit_buf again = {0};
    for (uint32_t i = 0; i < whit_table_count(&table); i++) {
        whit_value value;
        const char *key = whit_table_at(&table, i, &value);
        whit_table_set_value(&copy, key, &value);
    }
    assert_ok(whit_table_build(&copy, &again, &error), error);
    assert_int_equal(again.size_bytes, out[0].size_bytes);
    assert_memory_equal(again.data, out[0].data, again.size_bytes);
    whit_table_builder_free(&copy);
    whit_buf_free(&again);
    whit_buf_free(&out[0]);
    whit_buf_free(&out[1]);
}

/* Names that differ in one place only, anywhere in a word, must not collide so often that the index grows long. */
static void similar_names_are_spread(void **state)
{
    (void)state;
    whit_error error;
    for (int n_prefix = 0; n_prefix < 20; n_prefix++) {
        whit_table_builder builder = {0};
        whit_buf out = {0};
        char key[32] = "pppppppppppppppppppp";
        for (int i = 0; i < 500; i++) {
            snprintf(key + n_prefix, sizeof key - (size_t)n_prefix, "%d%s", i, n_prefix % 3 ? "" : ".w");
            whit_table_set_bool(&builder, key, true);
        }
        whit_table table;
        assert_ok(whit_table_build(&builder, &out, &error), error);
        assert_ok(whit_table_open(out.data, out.size_bytes, "table", &table, &error), error);
        assert_int_equal(whit_table_count(&table), 500);
        whit_table_builder_free(&builder);
        whit_buf_free(&out);
    }
}

/* Values or names may not share bytes, because a small file could then cost every reader much work. */
static void overlaps_are_refused(void **state)
{
    (void)state;
    enum { N_ENTRIES = 30, LONG = 4999 };
    whit_error error;
    static char text[LONG + 1];
    static const char *texts[1000];
    for (int i = 0; i < 1000; i++) texts[i] = "x";
    memset(text, 'x', LONG);
    for (int kind = 0; kind < 3; kind++) { /* strings, arrays of strings, names */
        whit_table_builder builder = {0};
        whit_buf out = {0};
        char key[16];
        for (int i = 0; i < N_ENTRIES; i++) {
            snprintf(key, sizeof key, "y%02d", i);
            whit_table_set_string(&builder, key, "short");
        }
        if (kind == 0) whit_table_set_string(&builder, "first", text);
        if (kind == 1) whit_table_set_string_array(&builder, "first", texts, NULL, 1000);
        if (kind == 2) whit_table_set_string(&builder, text, "short");
        whit_table table;
        assert_ok(whit_table_build(&builder, &out, &error), error);
        assert_ok(whit_table_open(out.data, out.size_bytes, "table", &table, &error), error);
        whit_ndf_entry *entry = (whit_ndf_entry *)(out.data + sizeof(whit_ndf_table_header));
        const uint32_t long_name = entry[0].name.name_offset;
        for (uint32_t i = 0; i < N_ENTRIES; i++) {
            if (kind == 2) { /* the name is the end of a long one; order and hashes are right */
                uint32_t n = LONG - N_ENTRIES + i;
                entry[i].name = (whit_ndf_name){long_name + LONG - n, n, whit_ndf_name_hash(text, n)};
            } else {
                entry[i].type = entry[0].type;
                entry[i].count = entry[0].count;
                entry[i].value = entry[0].value;
            }
        }
        assert_int_equal(whit_table_open(out.data, out.size_bytes, "table", &table, &error), WHIT_ERROR_FORMAT);
        assert_non_null(strstr(error.message, kind == 2 ? "its name overlaps others" : "its value overlaps others"));
        whit_table_builder_free(&builder);
        whit_buf_free(&out);
    }
}

/* Sets every byte of a table of all types to hostile values: the table must be refused or readable without reads out of
 * bounds (AddressSanitizer checks). */
static void hostile_tables_are_refused_or_safe(void **state)
{
    (void)state;
    static const uint8_t hostile[] = {0x00, 0x01, 0x07, 0x15, 0x7F, 0x80, 0xFF};
    whit_error error;
    whit_table_builder builder = {0};
    whit_buf out = {0};
    uint64_t words[] = {1, 2};
    const char *texts[] = {"x", "yz"};
    whit_table_set_u64_array(&builder, "array", words, 2);
    whit_table_set_string_array(&builder, "texts", texts, NULL, 2);
    whit_table_set_string(&builder, "string", "text");
    whit_table_set_bytes(&builder, "bytes", "abc", 3);
    whit_table_set_bool_array(&builder, "bools", (const uint8_t *)"\0\1", 2);
    whit_table_set_bool(&builder, "bool", true);
    assert_ok(whit_table_build(&builder, &out, &error), error);
    whit_table_builder_free(&builder);
    uint8_t *copy = aligned_alloc(64, whit_round_up(out.size_bytes, 64));
    for (size_t i = 0; i < out.size_bytes; i++)
        for (size_t h = 0; h < sizeof hostile; h++) {
            memcpy(copy, out.data, out.size_bytes);
            copy[i] = hostile[h];
            whit_table table;
            if (whit_table_open(copy, out.size_bytes, "table", &table, &error) != WHIT_OK) continue;
            whit_table_builder again = {0};
            whit_buf rebuilt = {0};
            for (uint32_t e = 0; e < whit_table_count(&table); e++) {
                whit_value value;
                const char *key = whit_table_at(&table, e, &value);
                assert_true(whit_table_get(&table, key, &value));
                whit_table_set_value(&again, key, &value);
            }
            (void)whit_table_build(&again, &rebuilt, &error);
            whit_table_builder_free(&again);
            whit_buf_free(&rebuilt);
        }
    free(copy);
    for (size_t n = 0; n < out.size_bytes; n++) {
        whit_table table;
        assert_int_equal(whit_table_open(out.data, n, "table", &table, &error), WHIT_ERROR_FORMAT);
    }
    whit_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written), cmocka_unit_test(crosses_chunks),
        cmocka_unit_test(opens_in_memory),        cmocka_unit_test(identity_is_of_the_model),
        cmocka_unit_test(splits_into_files),      cmocka_unit_test(splits_beside_the_file_of_a_link),
        cmocka_unit_test(replaces_a_split_model), cmocka_unit_test(failed_commits_leave_no_parts),
        cmocka_unit_test(refuses_misuse),         cmocka_unit_test(empty_model_is_sound),
        cmocka_unit_test(tables_are_canonical),   cmocka_unit_test(similar_names_are_spread),
        cmocka_unit_test(overlaps_are_refused),   cmocka_unit_test(hostile_tables_are_refused_or_safe),
    };
    return cmocka_run_group_tests_name("ndf", tests, NULL, remove_folder);
}
