/* SPDX-License-Identifier: MIT
 * Compares the piece table and the undo tree with a plain string. */
#include "test.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "base/rng.h"
#include "editor/text_tree.h"
#include "editor/undo.h"

/* Returns whether the sums, heights and numbers of entries of the node and of all nodes below it are right. */
static bool check_node(const struct whit_text_node *node, int *height)
{
    if (!node->refs || node->n > TREE_FAN) return false;
    if (node->is_leaf) {
        const struct leaf *leaf = (const struct leaf *)node;
        for (unsigned i = 0; i < node->n; i++)
            if (!leaf->size[i] ||
                (leaf->lines[i] != TREE_UNCOUNTED && leaf->lines[i] != tree_count(leaf->data[i], leaf->size[i])))
                return false;
        *height = 0;
        return true;
    }
    const struct inner *inner = (const struct inner *)node;
    int common = -1;
    for (unsigned i = 0; i < node->n; i++) {
        int below;
        struct sum sum = tree_sum(inner->child[i]);
        if (!check_node(inner->child[i], &below) || (common >= 0 && below != common) || !inner->child[i]->n)
            return false;
        common = below;
        if (sum.bytes != inner->bytes[i] || sum.lines != inner->lines[i] || sum.unknown != inner->unknown[i])
            return false;
    }
    *height = common + 1;
    return node->n > 0;
}

static bool is_sound(whit_text *text)
{
    int height;
    whit_snapshot snapshot = whit_text_snapshot(text);
    bool sound = check_node(snapshot.root, &height) && tree_sum(snapshot.root).bytes == whit_text_size(text);
    whit_snapshot_release(text, &snapshot);
    return sound;
}

static struct plain {
    char *data;
    size_t n, capacity;
} plain;

static void plain_replace(size_t offset, size_t n_remove, const char *data, size_t n)
{
    if (plain.n + n + 1 > plain.capacity) { /* grow by half: sanitizers copy all of it */
        plain.capacity = (plain.n + n + 1) * 3 / 2;
        plain.data = realloc(plain.data, plain.capacity);
    }
    memmove(plain.data + offset + n, plain.data + offset + n_remove, plain.n - offset - n_remove);
    memcpy(plain.data + offset, data, n);
    plain.n += n - n_remove;
}

static bool equals(const whit_text *text, const char *data, size_t n)
{
    if (whit_text_size(text) != n) return false;
    for (size_t at = 0; at < n;) {
        whit_span span = whit_text_at(text, at);
        if (!span.size_bytes || memcmp(span.data, data + at, span.size_bytes)) return false;
        at += span.size_bytes;
    }
    return true;
}

static size_t random_text(whit_rng *rng, char *data, size_t most)
{
    size_t n = whit_rng_next(rng) % most;
    for (size_t i = 0; i < n; i++) data[i] = whit_rng_next(rng) % 9 ? (char)('a' + whit_rng_next(rng) % 26) : '\n';
    return n;
}

static void check_lines(whit_text *text, whit_rng *rng)
{
    assert_false(whit_text_count(text, UINT64_MAX, NULL, NULL));
    size_t at = plain.n ? whit_rng_next(rng) % (plain.n + 1) : 0, line = 0, begin = 0, n_lines = 0;
    for (size_t i = 0; i < plain.n; i++) {
        if (plain.data[i] != '\n') continue;
        n_lines++;
        if (i < at) {
            line++;
            begin = i + 1;
        }
    }
    assert_int_equal(whit_text_line_at(text, at), line);
    assert_int_equal(whit_text_line_start(text, line), begin);
    assert_int_equal(whit_text_line_begin(text, at), begin);
    const char *end = plain.n > at ? memchr(plain.data + at, '\n', plain.n - at) : NULL;
    assert_int_equal(whit_text_line_end(text, at), end ? (size_t)(end - plain.data) : plain.n);
    assert_int_equal(whit_text_n_lines(text), n_lines);
    assert_int_equal(whit_text_line_start(text, n_lines + 1), plain.n);
}

/* Makes 10,000 edits of a text of 1 MiB; undo and redo must give the same bytes again. */
static void test_random_edits(void **state)
{
    (void)state;
    whit_rng rng = {7};
    whit_error error;
    whit_text *text;
    whit_undo *history;
    enum { N_EDITS = 10000, SIZE = 1 << 20, N_KEPT = 12 };
    char *original = malloc(SIZE), typed[300];
    for (size_t i = 0; i < SIZE; i++) original[i] = i % 61 ? (char)('A' + i % 26) : '\n';
    plain_replace(0, plain.n, original, SIZE);
    assert_ok(whit_text_open(&text, &error), error);
    assert_ok(whit_text_adopt(text, (const uint8_t *)original, SIZE, &error), error);
    assert_int_equal(whit_text_line_at(text, SIZE), UINT64_MAX); /* lines are not counted yet */
    assert_ok(whit_undo_open(text, &history, &error), error);
    whit_snapshot snapshots[N_KEPT];
    char *kept[N_KEPT];
    size_t kept_bytes[N_KEPT], n_kept = 0;
    for (size_t i = 0; i < N_EDITS; i++) {
        size_t offset = whit_rng_next(&rng) % (plain.n + 1);
        size_t most = i % 100 == 0 ? 40000 : i % 3 ? 3 : 60;
        size_t n_remove = i % 2 ? whit_rng_next(&rng) % most : 0;
        if (n_remove > plain.n - offset) n_remove = plain.n - offset;
        size_t n = random_text(&rng, typed, sizeof typed);
        assert_ok(whit_undo_edit(history, offset, n_remove, typed, n, &error), error);
        whit_undo_seal(history);
        plain_replace(offset, n_remove, typed, n);
        if (i % 500 == 0) {
            assert_true(is_sound(text));
            assert_true(equals(text, plain.data, plain.n));
            check_lines(text, &rng);
        }
        if (i % 900 == 0 && n_kept < N_KEPT) {
            snapshots[n_kept] = whit_text_snapshot(text);
            kept[n_kept] = memcpy(malloc(plain.n + 1), plain.data, plain.n);
            kept_bytes[n_kept++] = plain.n;
        }
    }
    assert_true(equals(text, plain.data, plain.n));
    whit_range changed;
    size_t n_undone = 0;
    while (whit_undo_back(history, &changed, &error)) n_undone++;
    assert_true(n_undone > N_EDITS * 9 / 10);
    assert_true(equals(text, original, SIZE));
    assert_true(is_sound(text));
    assert_int_equal(whit_undo_state(history), 0);
    while (whit_undo_forward(history, &changed, &error)) n_undone--;
    assert_int_equal(n_undone, 0);
    assert_true(equals(text, plain.data, plain.n));
    /* Snapshots must be unchanged by the edits. */
    for (size_t k = 0; k < n_kept; k++) {
        assert_int_equal(snapshots[k].size_bytes, kept_bytes[k]);
        for (size_t at = 0; at < kept_bytes[k];) {
            whit_span span = whit_snapshot_at(&snapshots[k], at);
            assert_memory_equal(span.data, kept[k] + at, span.size_bytes);
            at += span.size_bytes;
        }
        whit_snapshot_release(text, &snapshots[k]);
        free(kept[k]);
    }
    whit_undo_close(history);
    whit_text_close(text);
    free(original);
}

static void type(whit_text *text, whit_undo *history, const char *word)
{
    whit_error error;
    for (; *word; word++) assert_ok(whit_undo_edit(history, whit_text_size(text), 0, word, 1, &error), error);
    whit_undo_seal(history);
}

static void test_undo_is_a_tree(void **state)
{
    (void)state;
    whit_error error;
    whit_text *text;
    whit_undo *history;
    whit_range changed;
    assert_ok(whit_text_open(&text, &error), error);
    assert_ok(whit_undo_open(text, &history, &error), error);
    assert_false(whit_undo_back(history, &changed, &error));
    assert_int_equal(error.status, WHIT_OK);
    type(text, history, "one ");
    type(text, history, "two ");
    assert_true(equals(text, "one two ", 8));
    assert_true(whit_undo_back(history, &changed, &error));
    assert_true(equals(text, "one ", 4));
    assert_int_equal(changed.begin, 4);
    type(text, history, "three ");
    assert_true(whit_undo_back(history, &changed, &error));
    assert_int_equal(whit_undo_n_branches(history), 2);
    assert_true(whit_undo_forward(history, &changed, &error)); /* redo takes the branch that was left last */
    assert_true(equals(text, "one three ", 10));
    assert_int_equal(changed.begin, 4);
    assert_int_equal(changed.end, 10);
    assert_true(whit_undo_back(history, &changed, &error));
    assert_true(whit_undo_next_branch(history));
    assert_true(whit_undo_forward(history, &changed, &error));
    assert_true(equals(text, "one two ", 8));
    assert_false(whit_undo_forward(history, &changed, &error));
    assert_int_equal(whit_undo_edit(history, 9, 0, "x", 1, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_undo_edit(history, 0, UINT64_MAX, "x", 1, &error), WHIT_ERROR_ARGUMENT);
    assert_true(equals(text, "one two ", 8));
    whit_undo_close(history);
    whit_text_close(text);
}

static void test_large_pieces(void **state)
{
    (void)state;
    whit_error error;
    whit_text *text;
    size_t n = 3u << 20;
    char *data = malloc(n);
    memset(data, 'x', n);
    for (size_t i = 0; i < n; i += 1000) data[i] = '\n';
    assert_ok(whit_text_open(&text, &error), error);
    const uint8_t *kept;
    assert_ok(whit_text_replace(text, 0, 0, data, n, &kept, &error), error);
    assert_ok(whit_text_replace(text, n / 2, 0, data, n, &kept, &error), error);
    assert_memory_equal(kept, data, n);
    assert_true(is_sound(text));
    assert_int_equal(whit_text_size(text), 2 * n);
    assert_int_equal(whit_text_n_lines(text), 2 * ((n + 999) / 1000));
    assert_ok(whit_text_replace(text, 1, 2 * n - 2, NULL, 0, &kept, &error), error);
    assert_int_equal(whit_text_size(text), 2);
    assert_int_equal(whit_text_byte(text, 0), '\n');
    assert_int_equal(whit_text_byte(text, 1), 'x');
    assert_int_equal(whit_text_byte(text, 2), -1);
    assert_ok(whit_text_replace(text, 0, 2, NULL, 0, NULL, &error), error);
    assert_int_equal(whit_text_size(text), 0);
    assert_int_equal(whit_text_before(text, 0).size_bytes, 0);
    assert_true(is_sound(text));
    whit_text_close(text);
    free(data);
}

/* At most one edit in 1,000 may cause a page fault, because such edits are slow. */
static void test_few_page_faults(void **state)
{
    (void)state;
#if defined(MADV_POPULATE_WRITE) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    void *page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool can = madvise(page, 1, MADV_POPULATE_WRITE) == 0;
    munmap(page, 1);
    if (!can) skip(); /* kernels before 5.14 lack this */
    whit_error error;
    whit_text *text;
    whit_undo *history;
    whit_rng rng = {17};
    size_t n = 1u << 20, n_edits = 200000, n_slow = 0;
    uint8_t *data = calloc(1, n);
    assert_ok(whit_text_open(&text, &error), error);
    assert_ok(whit_text_adopt(text, data, n, &error), error);
    assert_ok(whit_undo_open(text, &history, &error), error);
    while (whit_text_count(text, UINT64_MAX, NULL, NULL)) continue;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (size_t i = 0; i < n_edits; i++) {
        uint64_t at = whit_rng_below(&rng, whit_text_size(text) - 3);
        assert_ok(whit_undo_edit(history, at, i % 2 ? 3 : 0, "typed", i % 2 ? 1 : 5, &error), error);
        whit_undo_seal(history);
        getrusage(RUSAGE_SELF, &after);
        n_slow += after.ru_minflt != before.ru_minflt;
        before = after;
    }
    assert_in_range(n_slow, 0, n_edits / 1000);
    assert_true(is_sound(text));
    whit_undo_close(history);
    whit_text_close(text);
    free(data);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_edits),
        cmocka_unit_test(test_undo_is_a_tree),
        cmocka_unit_test(test_large_pieces),
        cmocka_unit_test(test_few_page_faults),
    };
    int status = cmocka_run_group_tests(tests, NULL, NULL);
    free(plain.data);
    return status;
}
