/* SPDX-License-Identifier: MIT
 * Tests the parts of compression that save memory: square matrices are permuted in place, and large buffers are
 * unnamed files. */
#include "base/rng.h"
#include "compress/permute.h"
#include "compress/spool.h"
#include "test.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void shuffle(uint32_t *order, uint32_t n, uint32_t step, whit_rng *rng)
{
    /* one cycle, several cycles, or the identity */
    for (uint32_t i = 0; i < n; i++) order[i] = step ? (i + step) % n : i;
    for (uint32_t i = n; !step && i > 1; i--) {
        uint32_t k = (uint32_t)whit_rng_below(rng, i), kept = order[k];
        order[k] = order[i - 1];
        order[i - 1] = kept;
    }
}

static void test_permute(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 16, 129};
    whit_rng rng = {.state = 11};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (uint32_t turn = 0; turn < 8; turn++) {
            uint32_t n = sizes[s], *order = calloc(n, sizeof *order);
            float *square = calloc((size_t)n * n, sizeof *square), *before = calloc((size_t)n * n, sizeof *before),
                  *scratch = calloc(WHIT_PERMUTE_SCRATCH(n), sizeof *scratch);
            assert_true(order && square && before && scratch);
            shuffle(order, n, turn < 4 ? turn % n : 0, &rng);
            for (size_t i = 0; i < (size_t)n * n; i++) square[i] = before[i] = (float)i;
            whit_permute_square(square, n, order, scratch);
            for (uint32_t i = 0; i < n; i++)
                for (uint32_t j = 0; j < n; j++)
                    assert_true(square[(size_t)i * n + j] == before[(size_t)order[i] * n + order[j]]);
            whit_permute_back(square, n, order, scratch);
            assert_memory_equal(square, before, (size_t)n * n * sizeof *square);
            free(order), free(square), free(before), free(scratch);
        }
}

static void test_spool(void **state)
{
    (void)state;
    char folder[] = "spool.XXXXXX";
    const size_t bytes = 100000;
    assert_non_null(mkdtemp(folder));
    assert_null(whit_spool_map(NULL, bytes));
    assert_null(whit_spool_map("absent/folder", bytes));
    assert_null(whit_spool_map(folder, 0));
    assert_null(whit_spool_map(folder, (size_t)1 << 60)); /* no disk has room for this */
    unsigned char *memory = whit_spool_map(folder, bytes), *other = whit_spool_map(folder, bytes);
    if (memory && other) { /* some file systems do not support unnamed files */
        for (size_t i = 0; i < bytes; i++) assert_int_equal(memory[i], 0);
        memset(memory, 7, bytes);
        assert_int_equal(other[bytes - 1], 0);
    }
    DIR *names = opendir(folder);
    assert_non_null(names);
    for (struct dirent *entry; (entry = readdir(names));) assert_int_equal(entry->d_name[0], '.');
    closedir(names);
    whit_spool_unmap(memory, bytes);
    whit_spool_unmap(other, bytes);
    whit_spool_unmap(NULL, bytes);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_permute), cmocka_unit_test(test_spool)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
