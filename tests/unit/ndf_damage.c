/* SPDX-License-Identifier: MIT
 * Tests damaged .ndf files: every flipped bit is found, every cut is refused, and the reported places are right. */
#include "test.h"

#include "format/ndf_append.h"
#include "format/ndf_frame.h"
#include "format/ndf_verify.h"
#include "ndf_reseal.h"
#include "ndf_sample.h"

static int remove_folder(void **state)
{
    (void)state;
    return ndf_sample_path(NULL) ? 0 : -1;
}

/* Makes a small model with one appended frame as a file in memory. Returns its descriptor. */
static int make_small(size_t *size_bytes)
{
    whit_error error;
    int fd = -1;
    ndf_sample_options options = {.n_tensors = 2, .row_bytes = 70};
    assert_ok(ndf_sample_write(NULL, &options, NULL, &fd, &error), error);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_ok(whit_ndf_append(path, WHIT_NDF_ADAPTER, "a", "data", 4, NULL, &error), error);
    *size_bytes = (size_t)lseek(fd, 0, SEEK_END);
    return fd;
}

/* Returns whether opening or verifying the file finds damage. */
static bool finds_damage(int fd)
{
    whit_error error = {0};
    whit_ndf *ndf;
    whit_status status = whit_ndf_open_fd(fd, "damaged.ndf", NULL, &ndf, &error);
    if (status == WHIT_OK) {
        status = whit_ndf_verify(ndf, 1, NULL, NULL, NULL, &error);
        whit_ndf_close(ndf);
    }
    if (status == WHIT_OK) return false;
    assert_int_equal(status, WHIT_ERROR_FORMAT);
    assert_memory_equal(error.message, "damaged.ndf: ", 13);
    return true;
}

static void every_flipped_bit_is_found(void **state)
{
    (void)state;
    size_t size_bytes;
    int fd = make_small(&size_bytes);
    assert_false(finds_damage(fd));
    for (size_t i = 0; i < size_bytes; i++)
        for (int bit = 0; bit < 8; bit++) {
            uint8_t right, wrong;
            assert_int_equal(pread(fd, &right, 1, (off_t)i), 1);
            wrong = right ^ (uint8_t)(1 << bit);
            assert_int_equal(pwrite(fd, &wrong, 1, (off_t)i), 1);
            if (!finds_damage(fd)) fail_msg("bit %d of byte %zu of %zu", bit, i, size_bytes);
            assert_int_equal(pwrite(fd, &right, 1, (off_t)i), 1);
        }
    assert_false(finds_damage(fd));
    close(fd);
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    whit_error error;
    int fd = -1;
    ndf_sample_options options = {.n_tensors = 2, .row_bytes = 70};
    assert_ok(ndf_sample_write(NULL, &options, NULL, &fd, &error), error);
    for (off_t size = lseek(fd, 0, SEEK_END) - 1; size >= 0; size--) {
        whit_ndf *ndf;
        assert_int_equal(ftruncate(fd, size), 0);
        assert_int_equal(whit_ndf_open_fd(fd, "cut.ndf", NULL, &ndf, &error), WHIT_ERROR_FORMAT);
        assert_memory_equal(error.message, "cut.ndf: ", 9);
        assert_null(ndf);
    }
    close(fd);
}

/* The damage that was reported, one line each, in the order of the reports. */
typedef struct places {
    char lines[64][300];
    uint32_t n;
} places;

static void note(void *user, const whit_ndf_damage *damage)
{
    places *told = user;
    if (told->n < 64)
        snprintf(told->lines[told->n], sizeof told->lines[0], "%s %u %s %llu+%llu %s", strrchr(damage->path, '/') + 1,
                 damage->frame, whit_ndf_frame_type_name(damage->type), (unsigned long long)damage->offset,
                 (unsigned long long)damage->size_bytes, damage->what);
    told->n++;
}

static void flip(const char *path, uint64_t offset)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, (long)offset, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, (long)offset, SEEK_SET);
    fputc(byte ^ 0x10, file);
    fclose(file);
}

static void damage_is_named_and_threads_agree(void **state)
{
    (void)state;
    whit_error error;
    const char *path = ndf_sample_path("a.ndf"), *part = ndf_sample_path("a-00002-of-00002.ndf");
    ndf_sample_options options = {.n_tensors = 6, .row_bytes = 700000, .max_data_bytes = 4u << 20};
    assert_ok(ndf_sample_write(path, &options, NULL, NULL, &error), error);
    whit_ndf *ndf;
    assert_ok(whit_ndf_open(path, NULL, &ndf, &error), error);
    whit_ndf_verify_result result;
    assert_ok(whit_ndf_verify(ndf, 3, NULL, NULL, &result, &error), error);
    assert_int_equal(result.n_damaged, 0);
    assert_true(result.n_bytes > 6 * 700000);
    whit_tensor tensor[6];
    for (uint32_t i = 0; i < 6; i++) whit_ndf_tensor(ndf, i, &tensor[i]);
    size_t n;
    const uint8_t *tokenizer = whit_ndf_tokenizer(ndf, &n);
    uint64_t data = (uint64_t)(tensor[0].part[0] - tokenizer); /* relative to the tokenizer's first byte */
    whit_buf whole = {0};
    assert_ok(whit_read_file(path, 100u << 20, &whole, &error), error);
    uint64_t tokenizer_at = 0;
    while (memcmp(whole.data + tokenizer_at, "tokenizer image", 15) != 0) tokenizer_at++;
    whit_buf_free(&whole);
    uint64_t data_at = tokenizer_at + data;
    whit_ndf_close(ndf);

    flip(path, tokenizer_at + 3);
    flip(path, data_at + 10);             /* chunk 0: tensor 0 and the start of tensor 1 */
    flip(path, data_at + (3u << 20) + 9); /* chunk 3: only the last tensors of this file */
    flip(part, 128 + 64 + 64 + 128 + 5);  /* PART has 256 bytes; then comes DATA's header */
    assert_ok(whit_ndf_open(path, NULL, &ndf, &error), error);
    places serial = {.n = 0};
    assert_int_equal(whit_ndf_verify(ndf, 1, note, &serial, &result, &error), WHIT_ERROR_FORMAT);
    assert_int_equal(result.n_damaged, 4);
    assert_int_equal(serial.n, 4);
    assert_non_null(strstr(error.message, "a.ndf: frame 1 (TOKENIZER), bytes "));
    assert_non_null(strstr(error.message, "chunk 0 is damaged (and 3 more places)"));
    char expected[128];
    snprintf(expected, sizeof expected, "a.ndf 2 DATA %llu+1048576 chunk 0 is damaged: tensors 'tensor.0', 'tensor.1'",
             (unsigned long long)data_at);
    assert_string_equal(serial.lines[1], expected);
    assert_non_null(strstr(serial.lines[2], "chunk 3 is damaged: tensors 'tensor.4'"));
    assert_non_null(strstr(serial.lines[3], "a-00002-of-00002.ndf 1 DATA 384+"));
    assert_non_null(strstr(serial.lines[3], "chunk 0 is damaged: tensors 'tensor.5'"));
    for (uint32_t n_threads = 2; n_threads <= 5; n_threads++) {
        places parallel = {.n = 0};
        assert_int_equal(whit_ndf_verify(ndf, n_threads, note, &parallel, NULL, &error), WHIT_ERROR_FORMAT);
        assert_int_equal(parallel.n, serial.n);
        for (uint32_t i = 0; i < serial.n; i++) assert_string_equal(parallel.lines[i], serial.lines[i]);
    }
    whit_ndf_close(ndf);
    unlink(path);
    unlink(part);
}

/* A wrong identity, configuration hash or tokenizer hash in a file whose other hashes are right must be found. */
static void lies_in_the_seal_are_found(void **state)
{
    (void)state;
    whit_error error;
    for (int field = 0; field < 3; field++) {
        whit_buf copy = {0};
        int fd = -1;
        assert_ok(ndf_sample_write(NULL, NULL, NULL, &fd, &error), error);
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        assert_ok(whit_read_file(path, 1u << 20, &copy, &error), error);
        whit_ndf *ndf;
        assert_ok(whit_ndf_open_fd(fd, "lie.ndf", NULL, &ndf, &error), error);
        const uint8_t *identity = whit_ndf_identity(ndf);
        uint8_t *found = memmem(copy.data, copy.size_bytes, identity, WHIT_HASH_BYTES);
        whit_ndf_close(ndf);
        found[32 * field] ^= 1;
        ndf_reseal(copy.data, copy.size_bytes);
        assert_int_equal(pwrite(fd, copy.data, copy.size_bytes, 0), (ssize_t)copy.size_bytes);
        assert_ok(whit_ndf_open_fd(fd, "lie.ndf", NULL, &ndf, &error), error);
        assert_int_equal(whit_ndf_verify(ndf, 1, NULL, NULL, NULL, &error), WHIT_ERROR_FORMAT);
        static const char *const reasons[] = {"the identity differs", "the configuration differs",
                                              "the tokenizer differs"};
        assert_non_null(strstr(error.message, reasons[field]));
        whit_ndf_close(ndf);
        whit_buf_free(&copy);
        close(fd);
    }
}

/* ---- an allocation that fails ---- */

typedef struct budget {
    int64_t left;
    uint64_t n_live;
} budget;

static void *limited_alloc(void *user, size_t size_bytes, size_t align_bytes)
{
    budget *b = user;
    if (b->left-- <= 0) return NULL;
    b->n_live++;
    return aligned_alloc(align_bytes, whit_round_up(size_bytes, align_bytes));
}

static void limited_free(void *user, void *memory, size_t size_bytes)
{
    (void)size_bytes;
    budget *b = user;
    if (memory) b->n_live--;
    free(memory);
}

static whit_status write_append_open_verify(const whit_allocator *allocator, whit_error *error)
{
    const char *path = ndf_sample_path("m.ndf");
    ndf_sample_options options = {.n_tensors = 6, .row_bytes = 300, .max_data_bytes = 1200, .allocator = allocator};
    WHIT_TRY(ndf_sample_write(path, &options, NULL, NULL, error));
    WHIT_TRY(whit_ndf_append(path, WHIT_NDF_SESSION, "s", "data", 4, allocator, error));
    whit_ndf *ndf;
    WHIT_TRY(whit_ndf_open(path, allocator, &ndf, error));
    whit_status status = whit_ndf_verify(ndf, 2, NULL, NULL, NULL, error);
    whit_ndf_close(ndf);
    return status;
}

static void failed_allocations_are_clean(void **state)
{
    (void)state;
    whit_status status = WHIT_ERROR_MEMORY;
    int64_t n = 0;
    for (; status != WHIT_OK && n < 10000; n++) {
        budget limit = {.left = n};
        whit_allocator allocator = {.alloc = limited_alloc, .free = limited_free, .user = &limit};
        whit_error error = {0};
        status = write_append_open_verify(&allocator, &error);
        assert_int_equal(limit.n_live, 0);
        if (status != WHIT_OK) {
            assert_int_equal(status, WHIT_ERROR_MEMORY);
            assert_non_null(strstr(error.message, "not enough memory"));
        }
    }
    assert_in_range(n, 30, 9999);
    unlink(ndf_sample_path("m.ndf"));
    unlink(ndf_sample_path("m-00002-of-00002.ndf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flipped_bit_is_found),        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(damage_is_named_and_threads_agree), cmocka_unit_test(lies_in_the_seal_are_found),
        cmocka_unit_test(failed_allocations_are_clean),
    };
    return cmocka_run_group_tests_name("ndf_damage", tests, NULL, remove_folder);
}
