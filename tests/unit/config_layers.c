/* SPDX-License-Identifier: MIT
 * Tests layer kinds, RoPE tables and optional numbers of a configuration: they are the same after a file is written
 * and read, are refused if invalid, and can be read by family programs. */
#include <math.h>

#include "format/ndf_write.h"
#include "model/families.h"
#include "test.h"

static whit_config sample(void)
{
    whit_config c = {.family = WHIT_FAMILY_DECODER,
                     .n_layers = 3,
                     .n_embd = 64,
                     .n_ff = 96,
                     .n_heads = 4,
                     .n_kv_heads = 2,
                     .head_dim = 16,
                     .rope_dim = 16,
                     .n_vocab = 32,
                     .n_ctx = 64,
                     .norm_eps = 1e-5,
                     .rope_theta = 1e4,
                     .embedding_scale = 8,
                     .n_kinds = 2,
                     .kinds = {{.n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .rope_dim = 16, .window = 8, .n_ff = 96},
                               {.rope = 1, .n_heads = 2, .n_kv_heads = 1, .head_dim = 32, .rope_dim = 8, .n_ff = 48}},
                     .kind_of_layer = {0, 1, 0},
                     .n_ropes = 2,
                     .ropes = {{.theta = 1e4, .dims = 16, .magnitude = 1},
                               {.theta = 1e6,
                                .dims = 8,
                                .scaling = WHIT_ROPE_YARN,
                                .rounds = true,
                                .factor = 4,
                                .length = 32,
                                .beta_fast = 32,
                                .beta_slow = 1,
                                .magnitude = 1.125}}};
    return c;
}

static whit_status load(const whit_table_builder *builder, whit_config *c, whit_error *error)
{
    whit_buf bytes = {0};
    whit_table table;
    assert_ok(whit_table_build(builder, &bytes, error), *error);
    assert_ok(whit_table_open(bytes.data, bytes.size_bytes, "test", &table, error), *error);
    whit_status status = whit_config_load_layers(&table, "test", c, error);
    if (status == WHIT_OK) status = whit_config_check_layers(c, "test", error);
    whit_buf_free(&bytes);
    return status;
}

static void layers_survive_a_file(void **state)
{
    const whit_config c = sample();
    whit_config again = {.n_layers = c.n_layers};
    whit_table_builder builder = {0};
    whit_error error;
    (void)state;
    assert_ok(whit_config_check(&c, "test", &error), error);
    whit_config_save(&c, &builder);
    assert_ok(load(&builder, &again, &error), error);
    assert_int_equal(again.n_kinds, 2);
    assert_memory_equal(again.kinds, c.kinds, sizeof c.kinds);
    assert_memory_equal(again.kind_of_layer, c.kind_of_layer, 3);
    assert_int_equal(again.n_ropes, 2);
    for (int i = 0; i < 2; i++) {
        assert_true(again.ropes[i].theta == c.ropes[i].theta && again.ropes[i].factor == c.ropes[i].factor &&
                    again.ropes[i].length == c.ropes[i].length && again.ropes[i].beta_fast == c.ropes[i].beta_fast &&
                    again.ropes[i].beta_slow == c.ropes[i].beta_slow &&
                    again.ropes[i].magnitude == c.ropes[i].magnitude);
        assert_int_equal(again.ropes[i].dims, c.ropes[i].dims);
        assert_int_equal(again.ropes[i].scaling, c.ropes[i].scaling);
        assert_int_equal(again.ropes[i].rounds, c.ropes[i].rounds);
    }
    whit_table_builder_free(&builder);
}

/* Zero values are not written, so that files of the first families keep their bytes. */
static void zeros_are_not_written(void **state)
{
    whit_config c = sample();
    whit_table_builder builder = {0};
    whit_buf bytes = {0};
    whit_table table;
    whit_value value;
    whit_error error;
    (void)state;
    c.n_kinds = c.n_ropes = 0;
    c.embedding_scale = 0;
    assert_false(whit_config_is_extended(&c));
    whit_config_save(&c, &builder);
    assert_ok(whit_table_build(&builder, &bytes, &error), error);
    assert_ok(whit_table_open(bytes.data, bytes.size_bytes, "test", &table, &error), error);
    static const char *const keys[] = {"kinds", "kind_of_layer", "ropes", "embedding_scale", "norm_after_rope"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) assert_false(whit_table_get(&table, keys[i], &value));
    assert_int_equal(whit_table_count(&table), 21); /* the family and the numbers of the first format version */
    whit_buf_free(&bytes);
    whit_table_builder_free(&builder);
}

static void refused(void (*change)(whit_config *c), const char *message)
{
    whit_config c = sample();
    whit_error error = {0};
    change(&c);
    assert_int_equal(whit_config_check(&c, "test", &error), WHIT_ERROR_FORMAT);
    if (!strstr(error.message, message)) fail_msg("'%s' is not in '%s'", message, error.message);
}

static void bad_kind(whit_config *c)
{
    c->kind_of_layer[2] = 2;
}
static void bad_mixer(whit_config *c)
{
    c->kinds[0].mixer = WHIT_MIXER_COUNT;
}
static void bad_rope(whit_config *c)
{
    c->kinds[1].rope = 2;
}
static void bad_dims(whit_config *c)
{
    c->kinds[1].rope_dim = 16;
}
static void bad_heads(whit_config *c)
{
    c->kinds[1].n_kv_heads = 0;
}
static void bad_width(whit_config *c)
{
    c->kinds[0].n_ff = 1u << 31;
}
static void bad_theta(whit_config *c)
{
    c->ropes[1].theta = NAN;
}
static void bad_factor(whit_config *c)
{
    c->ropes[1].factor = 0;
}
static void bad_length(whit_config *c)
{
    c->ropes[1].length = -1;
}
static void bad_ramp(whit_config *c)
{
    c->ropes[1].beta_slow = INFINITY;
}
static void bad_magnitude(whit_config *c)
{
    c->ropes[0].magnitude = 0;
}
static void bad_number(whit_config *c)
{
    c->attention_scale = NAN;
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    refused(bad_kind, "layer 2 has the kind 2, but there are 2 kinds, counted from 0");
    refused(bad_mixer, "layer kind 0: its mixer is not known");
    refused(bad_rope, "layer kind 1: its RoPE table is missing");
    refused(bad_dims, "layer kind 1: its RoPE table rotates another number of dimensions than its rope_dim");
    refused(bad_heads, "layer kind 1: it has no heads, heads of fewer than 2 elements, or heads that are no multiple");
    refused(
        bad_width,
        "layer kind 0: its heads (limit 4096), their size (1024) or its feed-forward width (65536) exceed the limits");
    refused(bad_theta, "RoPE table 1: its theta is not in [1, 1e12)");
    refused(bad_factor, "RoPE table 1: its factor is not in [1e-3, 1e9)");
    refused(bad_length, "RoPE table 1: its length is not in [1, 1e9)");
    refused(bad_ramp, "RoPE table 1: its ramp needs beta_fast and beta_slow");
    refused(bad_magnitude, "RoPE table 0: its magnitude is not in (0, 1e3)");
    refused(bad_number, "attention_scale is not a finite number");
}

static void refused_array(const char *key, size_t n, const char *message)
{
    whit_table_builder builder = {0};
    whit_config c = {.n_layers = 3};
    whit_error error = {0};
    uint64_t u64s[96] = {0};
    double f64s[96] = {0};
    f64s[2] = 77; /* not a valid kind of scaling */
    if (strcmp(key, "ropes") == 0)
        whit_table_set_f64_array(&builder, key, f64s, n);
    else
        whit_table_set_u64_array(&builder, key, u64s, n);
    if (strcmp(key, "kinds") == 0) whit_table_set_bytes(&builder, "kind_of_layer", "\0\0\0\0", n == 8 ? 4 : 3);
    assert_int_equal(load(&builder, &c, &error), WHIT_ERROR_FORMAT);
    if (!strstr(error.message, message)) fail_msg("'%s' is not in '%s'", message, error.message);
    whit_table_builder_free(&builder);
}

static void arrays_of_other_lengths_are_refused(void **state)
{
    (void)state;
    refused_array("kinds", 7, "1 to 8 rows of 8 numbers");
    refused_array("kinds", 72, "1 to 8 rows of 8 numbers");
    refused_array("kinds", 8, "a byte for each layer");
    refused_array("kind_of_layer", 3, "1 to 8 rows of 8 numbers");
    refused_array("ropes", 9, "1 to 4 rows of 10 numbers");
    refused_array("ropes", 50, "1 to 4 rows of 10 numbers");
    refused_array("ropes", 10, "1 to 4 rows of 10 numbers");
}

static void kinds_answer_by_field(void **state)
{
    const whit_config c = sample();
    const whit_layer_kind kind = whit_config_kind(&c, 1);
    int64_t value = -1;
    (void)state;
    assert_true(whit_layer_kind_field(&kind, "head_dim", &value));
    assert_int_equal(value, 32);
    assert_true(whit_layer_kind_field(&kind, "rope", &value));
    assert_int_equal(value, 1);
    assert_false(whit_layer_kind_field(&kind, "n_embd", &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_survive_a_file), cmocka_unit_test(zeros_are_not_written),
                                       cmocka_unit_test(nonsense_is_refused),
                                       cmocka_unit_test(arrays_of_other_lengths_are_refused),
                                       cmocka_unit_test(kinds_answer_by_field)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
