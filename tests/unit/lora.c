/* SPDX-License-Identifier: MIT
 * Tests LoRA folders of PEFT: what they compute, against dense W + scale B A, and what is refused. */
#include "adapter_run.h"

#include <sys/stat.h>

#include "format/ndf_append.h"
#include "model/import_lora.h"

/* ---- making folders ------------------------------------------------------------------------- */

typedef struct lora_tensor {
    char name[128];
    uint32_t n_rows, n_cols;
    float *values;
} lora_tensor;

typedef struct lora {
    lora_tensor tensors[64];
    size_t n;
    whit_rng rng;
} lora;

/* Adds a tensor of values that int8 with one scale per row stores exactly: codes from -127 to 127 over 1,024, with one
 * code of 127 in each row. */
static void add_tensor(lora *l, const char *name, uint32_t n_rows, uint32_t n_cols)
{
    lora_tensor *tensor = &l->tensors[l->n++];
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    tensor->n_rows = n_rows;
    tensor->n_cols = n_cols;
    tensor->values = malloc((size_t)n_rows * n_cols * sizeof(float));
    for (uint32_t r = 0; r < n_rows; r++)
        for (uint32_t k = 0; k < n_cols; k++) {
            int code = k == r % n_cols ? 127 : (int)whit_rng_below(&l->rng, 255) - 127;
            tensor->values[(size_t)r * n_cols + k] = (float)code / 1024.0f;
        }
}

static void add_pair(lora *l, const char *module, uint32_t n_rows, uint32_t n_cols, uint32_t rank)
{
    char name[128];
    snprintf(name, sizeof name, "base_model.model.%s.lora_A.weight", module);
    add_tensor(l, name, rank, n_cols);
    snprintf(name, sizeof name, "base_model.model.%s.lora_B.weight", module);
    add_tensor(l, name, n_rows, rank);
}

static void lora_free(lora *l)
{
    for (size_t i = 0; i < l->n; i++) free(l->tensors[i].values);
    l->n = 0;
}

static const char *write_lora(const lora *l, const char *config)
{
    whit_error error;
    whit_buf header = {0}, file = {0};
    size_t at = 0;
    whit_buf_append_str(&header, "{");
    for (size_t i = 0; i < l->n; i++) {
        size_t bytes = (size_t)l->tensors[i].n_rows * l->tensors[i].n_cols * sizeof(float);
        whit_buf_printf(&header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%u,%u],\"data_offsets\":[%zu,%zu]}",
                        i ? "," : "", l->tensors[i].name, l->tensors[i].n_rows, l->tensors[i].n_cols, at, at + bytes);
        at += bytes;
    }
    whit_buf_append_str(&header, "}");
    uint64_t header_bytes = header.size_bytes;
    whit_buf_append(&file, &header_bytes, sizeof header_bytes);
    whit_buf_append(&file, header.data, header.size_bytes);
    for (size_t i = 0; i < l->n; i++)
        whit_buf_append(&file, l->tensors[i].values,
                        (size_t)l->tensors[i].n_rows * l->tensors[i].n_cols * sizeof(float));
    mkdir(in_folder("lora"), 0700);
    assert_ok(whit_write_file(in_folder("lora/adapter_model.safetensors"), file.data, file.size_bytes, &error), error);
    assert_ok(whit_write_file(in_folder("lora/adapter_config.json"), config, strlen(config), &error), error);
    whit_buf_free(&header), whit_buf_free(&file);
    return in_folder("lora");
}

/* ---- results -------------------------------------------------------------------------------- */

static double *doubles(const lora_tensor *tensor)
{
    size_t n = (size_t)tensor->n_rows * tensor->n_cols;
    double *values = malloc(n * sizeof *values);
    for (size_t i = 0; i < n; i++) values[i] = (double)tensor->values[i];
    return values;
}

static void import_to(const whit_model *model, const char *path, const char *name)
{
    whit_error error;
    whit_buf image = {0};
    assert_ok(whit_lora_import(path, model->file, "sample", NULL, &image, &error), error);
    assert_ok(whit_ndf_write_loose(in_folder(name), WHIT_NDF_ADAPTER, name, image.data, image.size_bytes, NULL, &error),
              error);
    whit_buf_free(&image);
}

/* Mounts the folder as an adapter and compares the logits with those of a model whose dense weights have the pairs
 * added with these scales. */
static void check_folder(const whit_model *model, const lora *l, const char *path, const char *const *ours,
                         const double *scales)
{
    whit_error error;
    whit_buf file = {0};
    import_to(model, path, "lora.ndf");
    dense_open(model, &file);
    for (size_t i = 0; i < l->n / 2; i++) {
        double *a = doubles(&l->tensors[2 * i]), *b = doubles(&l->tensors[2 * i + 1]);
        dense_add(model, &file, ours[i], scales[i], l->tensors[2 * i].n_rows, a, b);
        free(a), free(b);
    }
    assert_ok(whit_write_file(in_folder("dense.ndf"), file.data, file.size_bytes, &error), error);
    whit_buf_free(&file);
    whit_model *dense = open_model("dense.ndf");
    whit_adapter *adapter = open_adapter(model, "lora.ndf");
    float *plain = run(model, options_of(WHIT_ACT_F32), NULL, 0, N_TOKENS);
    float *expected = run(dense, options_of(WHIT_ACT_F32), NULL, 0, N_TOKENS);
    float *found = run(model, options_of(WHIT_ACT_F32), &(whit_mount){adapter, 1}, 1, N_TOKENS);
    assert_far(expected, plain);
    assert_near(found, expected, 2e-5);
    free(plain), free(expected), free(found);
    whit_adapter_close(adapter);
    whit_model_close(dense);
}

/* Adds pairs for width 64, 4 heads and 2 KV heads of 16, feed-forward width 96. */
static void add_usual_pairs(lora *l)
{
    *l = (lora){.rng = {5}};
    add_pair(l, "model.layers.0.self_attn.q_proj", 64, 64, 4);
    add_pair(l, "model.layers.0.self_attn.k_proj", 32, 64, 4);
    add_pair(l, "model.layers.1.self_attn.v_proj", 32, 64, 4);
    add_pair(l, "model.layers.1.self_attn.o_proj", 64, 64, 4);
    add_pair(l, "model.layers.0.mlp.gate_proj", 96, 64, 4);
    add_pair(l, "model.layers.1.mlp.down_proj", 64, 96, 4);
}
static const char *const usual[] = {"layers.0.q", "layers.0.k",    "layers.1.v",
                                    "layers.1.o", "layers.0.gate", "layers.1.down"};

static void equals_dense_weights(void **state)
{
    (void)state;
    whit_model *model = open_model("a.ndf");
    lora l;
    add_usual_pairs(&l);
    const char *path =
        write_lora(&l,
                   "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8, \"bias\": \"none\", "
                   "\"lora_dropout\": 0.05, \"target_modules\": [\"q_proj\"], \"modules_to_save\": null, "
                   "\"use_dora\": false, \"fan_in_fan_out\": false, \"base_model_name_or_path\": \"tiny\"}");
    check_folder(model, &l, path, usual, (const double[]){2, 2, 2, 2, 2, 2});
    path = write_lora(&l,
                      "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8, \"use_rslora\": true, "
                      "\"init_lora_weights\": \"gaussian\"}");
    check_folder(model, &l, path, usual, (const double[]){4, 4, 4, 4, 4, 4});
    lora_free(&l);

    /* Ranks and alphas may depend on patterns of names; the first matching key counts. */
    l.rng.state = 6;
    add_pair(&l, "model.layers.0.self_attn.q_proj", 64, 64, 8);
    add_pair(&l, "model.layers.1.self_attn.q_proj", 64, 64, 2);
    add_pair(&l, "model.layers.1.mlp.up_proj", 96, 64, 4);
    path = write_lora(&l,
                      "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 4, "
                      "\"rank_pattern\": {\"layers.0.self_attn.q_proj\": 8, \"q_proj\": 2}, "
                      "\"alpha_pattern\": {\"layers\\\\.\\\\d+\\\\.self_attn\\\\.(q|k)_proj\": 8}}");
    check_folder(model, &l, path, (const char *const[]){"layers.0.q", "layers.1.q", "layers.1.up"},
                 (const double[]){1, 4, 1});
    lora_free(&l);
    whit_model_close(model);
}

/* ---- refusals ------------------------------------------------------------------------------- */

static void refused(const whit_model *model, const char *path, const char *words)
{
    whit_error error = {0};
    whit_buf image = {0};
    whit_status status = whit_lora_import(path, model->file, "x", NULL, &image, &error);
    assert_true(status == WHIT_ERROR_FORMAT || status == WHIT_ERROR_UNSUPPORTED || status == WHIT_ERROR_IO);
    if (!strstr(error.message, words)) fail_msg("'%s' lacks '%s'", error.message, words);
    whit_buf_free(&image);
}

static void fields_that_change_the_maths(void **state)
{
    (void)state;
    static const struct {
        const char *fields, *words;
    } cases[] = {
        {"\"use_dora\": true", "DoRA"},
        {"\"bias\": \"all\"", "biases"},
        {"\"lora_bias\": true", "biases"},
        {"\"modules_to_save\": [\"lm_head\"]", "whole trained modules"},
        {"\"init_lora_weights\": \"pissa_niter_4\"", "base weights"},
        {"\"init_lora_weights\": \"olora\"", "base weights"},
        {"\"layer_replication\": [[0, 4], [2, 5]]", "repeated layers"},
        {"\"fan_in_fan_out\": true", "transposed"},
        {"\"trainable_token_indices\": [1, 2]", "embedding"},
        {"\"something_new\": 1", "may change the result"},
        {"\"peft_type\": \"IA3\"", "peft_type"},
        {"\"r\": 5", "rank 4"},
        {"\"rank_pattern\": {\"q_proj\": 3}", "rank 4"},
        {"\"alpha_pattern\": {\"q_proj\": \"x\"}", "not a number"},
        {"\"alpha_pattern\": {\"(q_proj\": 1}", ""},
        {"\"lora_alpha\": null", "lora_alpha"},
    };
    whit_model *model = open_model("a.ndf");
    lora l;
    add_usual_pairs(&l);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char config[512];
        snprintf(config, sizeof config, "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8, %s}", cases[i].fields);
        refused(model, write_lora(&l, config), cases[i].words);
    }
    refused(model, write_lora(&l, "[]"), "not an object");
    refused(model, write_lora(&l, "{"), "adapter_config.json");
    refused(model, in_folder("nowhere"), "nowhere");
    lora_free(&l);
    whit_model_close(model);
}

static void tensors_that_do_not_fit(void **state)
{
    (void)state;
    static const struct {
        const char *module;
        uint32_t n_rows, n_cols;
        const char *words;
    } cases[] = {
        {"lm_head", 310, 64, "head"},
        {"model.embed_tokens", 310, 64, "embedding"},
        {"model.layers.7.self_attn.q_proj", 64, 64, "no such matrix"},
        {"model.layers.0.self_attn.rotary", 64, 64, "does not name a matrix"},
        {"model.layers.0.self_attn.q_proj", 64, 63, "inputs"},
        {"model.layers.0.self_attn.q_proj", 65, 64, "outputs"},
    };
    static const char config[] = "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8}";
    whit_model *model = open_model("a.ndf");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lora l = {.rng = {1}};
        add_pair(&l, cases[i].module, cases[i].n_rows, cases[i].n_cols, 4);
        refused(model, write_lora(&l, config), cases[i].words);
        lora_free(&l);
    }
    static const struct {
        const char *name, *words;
    } names[] = {
        {"base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector", "DoRA"},
        {"base_model.model.model.layers.0.self_attn.q_proj.weight", "whole modules"},
        {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", "only one"},
        {"model.layers.0.self_attn.q_proj.lora_A.weight", "not known"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        lora l = {.rng = {1}};
        add_tensor(&l, names[i].name, 4, 64);
        refused(model, write_lora(&l, config), names[i].words);
        lora_free(&l);
    }
    lora l = {.rng = {1}};
    add_pair(&l, "model.layers.0.self_attn.q_proj", 64, 64, 4);
    l.tensors[1].values[3] = NAN;
    refused(model, write_lora(&l, config), "NaN or infinite");
    lora_free(&l);
    refused(model, write_lora(&l, config), "contains no factors");
    whit_model_close(model);
}

static int make_files(void **state)
{
    if (make_folder(state)) return -1;
    make_model("a.ndf", 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_dense_weights),
        cmocka_unit_test(fields_that_change_the_maths),
        cmocka_unit_test(tensors_that_do_not_fit),
    };
    return cmocka_run_group_tests_name("lora", tests, make_files, remove_folder);
}
