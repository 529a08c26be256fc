/* SPDX-License-Identifier: MIT
 * Tests importers' tables: the tensor names of a family, and which rows of a fused matrix become which rows here. */
#include "model/import_names.h"
#include "test.h"

static const whit_import_name own[] = {
    {"qkv", "q", WHIT_IMPORT_Q},
    {"qkv", "k", WHIT_IMPORT_K},
    {"qkv", "v", WHIT_IMPORT_V},
    {"norm", "post_norm"},
    {NULL},
};
static const whit_import_name common[] = {{"norm", "pre_norm"}, {"down", "down"}, {NULL}};

static void own_names_are_found_first(void **state)
{
    (void)state;
    const whit_import_name *row = whit_import_find_name(own, common, "qkv");
    const char *const parts[] = {"q", "k", "v"};
    for (int i = 0; i < 3; i++, row = whit_import_next_name(row)) {
        assert_non_null(row);
        assert_string_equal(row->ours, parts[i]);
    }
    assert_null(row);
    assert_string_equal(whit_import_find_name(own, common, "norm")->ours, "post_norm");
    assert_string_equal(whit_import_find_name(NULL, common, "norm")->ours, "pre_norm");
    assert_string_equal(whit_import_find_name(own, common, "down")->ours, "down");
    assert_null(whit_import_find_name(own, common, "up"));
}

static void layers_have_one_spelling(void **state)
{
    uint32_t layer = 9;
    (void)state;
    assert_string_equal(whit_import_layer("layers.3.mlp.down", "layers", 4, &layer), "mlp.down");
    assert_int_equal(layer, 3);
    static const char *const others[] = {"layers.4.x", "layers.03.x", "layers.3", "layers.-1.x", "blk.3.x", "layers.x"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_null(whit_import_layer(others[i], "layers", 4, &layer));
}

/* Splits a matrix of n_rows rows; found[i] becomes the file's row for row i, and -1 after the last. */
static whit_status split(uint8_t rows, uint32_t n_rows, bool is_permuted, int found[64], whit_error *error)
{
    whit_source source = {.path = "test",
                          .config = {.n_layers = 1,
                                     .n_heads = 2,
                                     .n_kv_heads = 1,
                                     .head_dim = 4,
                                     .rope_dim = 4,
                                     .n_ff = 6,
                                     .delta_heads = 4,
                                     .delta_key_heads = 2,
                                     .delta_key_dim = 1,
                                     .delta_value_dim = 1}};
    whit_source_tensor tensor = {.name = "t", .type = {.layout = WHIT_LAYOUT_TILE16, .n_rows = n_rows, .n_cols = 8}};
    if (is_permuted) tensor.unpermute_head_dim = tensor.unpermute_rope_dim = 4;
    WHIT_TRY(whit_import_split(&source, &tensor, 0, rows, error));
    for (uint32_t i = 0; i < tensor.type.n_rows; i++) found[i] = (int)whit_source_row(&tensor, i);
    found[tensor.type.n_rows] = -1;
    return WHIT_OK;
}

static void fused_rows_are_split(void **state)
{
    static const struct {
        uint8_t rows;
        uint32_t n_rows;
        bool is_permuted;
        int expected[13];
    } cases[] = {
        {WHIT_IMPORT_ALL, 3, false, {0, 1, 2, -1}},
        {WHIT_IMPORT_Q, 16, false, {0, 1, 2, 3, 4, 5, 6, 7, -1}},
        {WHIT_IMPORT_K, 16, false, {8, 9, 10, 11, -1}},
        {WHIT_IMPORT_V, 16, false, {12, 13, 14, 15, -1}},
        {WHIT_IMPORT_GATE, 12, false, {0, 1, 2, 3, 4, 5, -1}},
        {WHIT_IMPORT_UP, 12, false, {6, 7, 8, 9, 10, 11, -1}},
        {WHIT_IMPORT_HEAD_FIRST, 16, false, {0, 1, 2, 3, 8, 9, 10, 11, -1}},
        {WHIT_IMPORT_HEAD_SECOND, 16, false, {4, 5, 6, 7, 12, 13, 14, 15, -1}},
        {WHIT_IMPORT_QKVZ_MIXED, 12, false, {0, 6, 1, 7, 2, 3, 8, 9, -1}}, /* per key head: q, k, v, v, z, z */
        {WHIT_IMPORT_QKVZ_Z, 12, false, {4, 5, 10, 11, -1}},
        {WHIT_IMPORT_BA_BETA, 8, false, {0, 1, 4, 5, -1}},
        {WHIT_IMPORT_BA_DECAY, 8, false, {2, 3, 6, 7, -1}},
        {WHIT_IMPORT_K, 16, true, {8, 10, 9, 11, -1}}, /* pairs (2i, 2i + 1) become (i, i + 2) */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int found[64];
        whit_error error;
        assert_ok(split(cases[i].rows, cases[i].n_rows, cases[i].is_permuted, found, &error), error);
        for (size_t k = 0; k == 0 || found[k - 1] >= 0; k++) assert_int_equal(found[k], cases[i].expected[k]);
        if (cases[i].rows == WHIT_IMPORT_ALL) continue;
        assert_int_equal(split(cases[i].rows, cases[i].n_rows + 1, false, found, &error), WHIT_ERROR_FORMAT);
        assert_non_null(strstr(error.message, "rows where the configuration needs"));
    }
}

static void shared_layers_pass_over_their_keys(void **state)
{
    const whit_config c = {.n_layers = 5, .n_shared_layers = 2};
    (void)state;
    assert_true(whit_import_is_unused(&c, 3, "k"));
    assert_true(whit_import_is_unused(&c, 4, "v"));
    assert_true(whit_import_is_unused(&c, 4, "k_norm"));
    assert_false(whit_import_is_unused(&c, 2, "k"));
    assert_false(whit_import_is_unused(&c, 4, "q"));
    assert_false(whit_import_is_unused(&c, UINT32_MAX, "k"));
}

/* Values that importers collect per kind of layer: if all layers are of one kind, its values become the configuration's
 * scalars; otherwise the largest do. */
static void kinds_settle(void **state)
{
    whit_config c = {.n_layers = 2};
    whit_error error;
    const whit_layer_kind a = {.n_heads = 4, .n_kv_heads = 2, .head_dim = 8, .rope_dim = 8, .n_ff = 20},
                          b = {.n_heads = 4, .n_kv_heads = 1, .head_dim = 16, .rope_dim = 8, .window = 5, .n_ff = 10};
    (void)state;
    for (uint32_t i = 0; i < 2; i++) assert_ok(whit_config_set_kind(&c, i, &a, "test", &error), error);
    whit_config_settle_kinds(&c);
    assert_int_equal(c.n_kinds, 0);
    assert_int_equal(c.head_dim, 8);
    assert_ok(whit_config_set_kind(&c, 0, &a, "test", &error), error);
    assert_ok(whit_config_set_kind(&c, 1, &b, "test", &error), error);
    whit_config_settle_kinds(&c);
    assert_int_equal(c.n_kinds, 2);
    assert_int_equal(c.head_dim, 16);
    assert_int_equal(c.n_kv_heads, 2);
    assert_int_equal(c.window, 5);
    assert_int_equal(whit_config_kind(&c, 1).n_ff, 10);
    for (uint32_t i = 0; i < WHIT_KINDS_MAX; i++) {
        whit_layer_kind other = a;
        other.n_ff = 100 + i;
        whit_status status = whit_config_set_kind(&c, 0, &other, "test", &error);
        assert_int_equal(status, i < WHIT_KINDS_MAX - 2 ? WHIT_OK : WHIT_ERROR_UNSUPPORTED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_names_are_found_first), cmocka_unit_test(layers_have_one_spelling),
        cmocka_unit_test(fused_rows_are_split), cmocka_unit_test(shared_layers_pass_over_their_keys),
        cmocka_unit_test(kinds_settle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
