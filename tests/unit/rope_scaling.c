/* SPDX-License-Identifier: MIT
 * Tests scaled RoPE as a config.json states it: frequencies, and the factor of cosines and sines, against published
 * formulas in float64. */
#include "test.h"

#include <jansson.h>
#include <math.h>

#include "model/import_hf.h"

/* Writes the config.json of one case. Its class is Phi's, which has heads that are rotated in part, and longrope. */
static void write_config(const char *path, const json_t *c)
{
    json_t *config = json_object();
    const json_t *scaling = json_object_get(c, "rope_scaling"),
                 *share = json_object_get(scaling, "partial_rotary_factor");
    double dims = json_number_value(json_object_get(c, "rotary_dimensions"));
    if (share) dims /= json_number_value(share);
    json_object_set_new(config, "architectures", json_pack("[s]", "Phi3ForCausalLM"));
    json_object_set_new(config, "hidden_size", json_integer((json_int_t)dims));
    json_object_set_new(config, "intermediate_size", json_integer(8));
    json_object_set_new(config, "num_hidden_layers", json_integer(1));
    json_object_set_new(config, "num_attention_heads", json_integer(1));
    json_object_set_new(config, "vocab_size", json_integer(8));
    static const char *const copied[] = {"rope_theta", "rope_scaling", "max_position_embeddings",
                                         "original_max_position_embeddings"};
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
        if (json_object_get(c, copied[i])) json_object_set(config, copied[i], json_object_get(c, copied[i]));
    if (share) json_object_set(config, "partial_rotary_factor", (json_t *)share);
    assert_int_equal(json_dump_file(config, path, 0), 0);
    json_decref(config);
}

static void check_case(const char *path, const json_t *c)
{
    struct whit_hf_importer importer = {0};
    whit_config config = {0};
    whit_error error;
    double frequencies[512];
    const json_t *expected = json_object_get(c, "inverse_frequencies"), *tokens = json_object_get(c, "tokens");
    const char *name = json_string_value(json_object_get(c, "case"));
    write_config(path, c);
    assert_ok(whit_hf_open_config(path, NULL, &importer.hf, &error), error);
    assert_ok(whit_import_hf_config(&importer, &config, &error), error);
    whit_rope rope = whit_config_rope(&config, 0);
    uint32_t n_tokens = tokens ? (uint32_t)json_integer_value(tokens) : 1;
    const char *divisors = whit_rope_divisors(&rope, n_tokens);
    const float *values = NULL;
    for (size_t i = 0; i < 3; i++)
        if (divisors && importer.divisors[i].name && strcmp(importer.divisors[i].name, divisors) == 0)
            values = importer.divisors[i].values;
    assert_true(!divisors == !values);
    assert_int_equal(rope.dims / 2, json_array_size(expected));
    whit_rope_scaled_frequencies(&rope, n_tokens, values, frequencies);
    double worst = 0;
    for (uint32_t i = 0; i < rope.dims / 2; i++) {
        double wanted = json_number_value(json_array_get(expected, i));
        worst = fmax(worst, fabs(frequencies[i] - wanted) / wanted);
    }
    double magnitude = json_number_value(json_object_get(c, "factor_on_cos_and_sin"));
    print_message("%s: %.3g, %.3g\n", name, worst, fabs(rope.magnitude / magnitude - 1));
    assert_true(worst <= 1e-6);
    assert_true(fabs(rope.magnitude / magnitude - 1) <= 1e-6);
    whit_import_hf_free_divisors(&importer);
    whit_hf_close(importer.hf);
}

static void scalings_agree_with_the_reference(void **state)
{
    char path[] = "/tmp/whit-rope-XXXXXX";
    size_t i;
    json_t *cases = json_load_file(shared_path("reference/rope.json"), 0, NULL), *c;
    (void)state;
    assert_non_null(cases);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_true(json_array_size(cases) >= 15);
    json_array_foreach(cases, i, c) check_case(path, c);
    unlink(path);
    json_decref(cases);
}

/* Keys that were computed for one context length may be used for another only if the frequencies are equal. */
static void contexts_share_keys_on_one_side(void **state)
{
    whit_config c = {.n_ropes = 1, .ropes = {{.scaling = WHIT_ROPE_LONG, .length = 100}}};
    (void)state;
    assert_true(whit_rope_same_frequencies(&c, 50, 100));
    assert_false(whit_rope_same_frequencies(&c, 100, 101));
    assert_true(whit_rope_same_frequencies(&c, 101, 500));
    c.ropes[0].scaling = WHIT_ROPE_DYNAMIC;
    assert_true(whit_rope_same_frequencies(&c, 50, 100));
    assert_false(whit_rope_same_frequencies(&c, 101, 500));
    assert_true(whit_rope_same_frequencies(&c, 500, 500));
    c.ropes[0].scaling = WHIT_ROPE_YARN;
    assert_true(whit_rope_same_frequencies(&c, 1, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scalings_agree_with_the_reference),
                                       cmocka_unit_test(contexts_share_keys_on_one_side)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
