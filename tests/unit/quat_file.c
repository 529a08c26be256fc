/* SPDX-License-Identifier: MIT
 * Matrix files: what was written comes back, packed and padded, and products with it are those of
 * its elements; damaged files are refused with their place. */
#include "base/rng.h"
#include "format/quat_file.h"
#include "test.h"
#include "test_folder.h"

static void test_round_trip(void **state)
{
    (void)state;
    whit_rng rng = {1};
    whit_error error;
    whit_cpu cpu;
    whit_quat_kernels kernels;
    const char *path = in_folder("matrix");
    whit_cpu_detect(&cpu);
    assert_ok(whit_quat_select(&cpu, NULL, &kernels, &error), error);
    static const uint32_t sizes[][2] = {{1, 1}, {3, 7}, {5, 64}, {4, 65}, {9, 200}, {2, 4097}, {2, 8200}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint32_t rows = sizes[k][0], cols = sizes[k][1], words = whit_quat_words(cols);
        size_t n = (size_t)rows * words;
        uint64_t *m = calloc(2 * n, 8), *x = calloc(2 * words, 8), *row = calloc(2 * words, 8);
        float *y = calloc(rows, sizeof *y);
        for (size_t i = 0; i < 2 * n; i++) m[i] = whit_rng_next(&rng);
        for (size_t i = 0; i < 2 * words; i++) x[i] = whit_rng_next(&rng);
        whit_quat_view matrix = {m, m + n}, vector = {x, x + words}, found = {row, row + words};
        for (int padded = 0; padded < 2; padded++) {
            whit_quat_file file;
            assert_ok(whit_quat_file_write(path, matrix, rows, cols, words, 0.5f, padded, &error), error);
            assert_ok(whit_quat_file_open(path, NULL, &file, &error), error);
            assert_int_equal(file.padded, padded);
            whit_quat_file_gemv(&file, &kernels, vector, 1, y);
            for (uint32_t r = 0; r < rows; r++) {
                int64_t sum = 0;
                whit_quat_file_row(&file, r, 0, words, (whit_quat_planes){row, row + words});
                for (uint32_t c = 0; c < cols; c++) {
                    int v = whit_quat_at((whit_quat_view){m + (size_t)r * words, m + n + (size_t)r * words}, c);
                    assert_int_equal(whit_quat_at(found, c), v);
                    sum += v * whit_quat_at(vector, c);
                }
                assert_true(y[r] == (float)sum); /* 0.5 * 2^1 */
            }
            whit_quat_file_close(&file);
        }
        free(m);
        free(x);
        free(row);
        free(y);
    }
}

static void test_damage(void **state)
{
    (void)state;
    uint8_t good[WHIT_QUAT_FILE_HEADER_BYTES + 2] = {'N', 'D', 'A', 'M', 2, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 128, 63};
    whit_error error;
    whit_quat_file file;
    assert_ok(whit_quat_file_open_memory(good, sizeof good, "m", NULL, &file, &error), error);
    assert_int_equal(file.n_rows * 10 + file.n_cols, 23);
    whit_quat_file_close(&file);
    for (size_t n = 1; n < sizeof good; n++)
        assert_int_equal(whit_quat_file_open_memory(good, n, "m", NULL, &file, &error), WHIT_ERROR_FORMAT);
    static const struct {
        uint8_t at, value;
        const char *says;
    } damage[] = {{0, 'X', "NDAM"}, {4, 3, "version 3"}, {6, 0, "neither"}, {13, 255, "need"}, {17, 255, "finite"}};
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        uint8_t bad[sizeof good];
        memcpy(bad, good, sizeof good);
        bad[damage[i].at] = damage[i].value;
        if (damage[i].at == 17) bad[16] = 128;
        assert_int_not_equal(whit_quat_file_open_memory(bad, sizeof bad, "m", NULL, &file, &error), WHIT_OK);
        assert_non_null(strstr(error.message, damage[i].says));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
