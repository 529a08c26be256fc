/* SPDX-License-Identifier: MIT
 * Tests Gemma 4's mobile checkpoints: 2-, 4- and 8-bit weights whose inputs and outputs have fixed int8 scales.
 * Single layers must be right to the last integer on every level; logits must have one hash over levels, threads and
 * splits; damaged folders must be refused. */
#include "damage_tensors.h"
#include "test_folder.h"

#include <jansson.h>
#include <math.h>

#include "base/cpu.h"
#include "format/hf_packed.h"
#include "kernels/kernels.h"

#define FOLDER "models-tiny/gemma4-mobile"

static const char *const levels[] = {"generic", "avx2", "avx512", "amx", "neon", "dotprod", "i8mm"};

/* ---- single layers --------------------------------------------------------------------------- */

static whit_tensor pack_matrix(const whit_hf_packed *packed)
{
    whit_error error;
    whit_tensor tensor = {.type = packed->type};
    whit_geometry g = whit_codec_geometry(&packed->type);
    uint8_t *parts[WHIT_PART_COUNT] = {NULL};
    int8_t *codes = malloc(packed->n_rows * packed->n_cols);
    float *fields = calloc(packed->n_rows, g.row_fields * sizeof(float));
    for (uint64_t row = 0; row < packed->n_rows; row++)
        whit_hf_packed_row(packed, row,
                           &(whit_rows){.elems = codes + row * packed->n_cols, .fields = fields + row * g.row_fields});
    for (int part = 0; part < WHIT_PART_COUNT; part++) {
        assert_true(whit_codec_part_bytes(&packed->type, (whit_part)part, &tensor.part_bytes[part]));
        if (tensor.part_bytes[part]) tensor.part[part] = parts[part] = whit_alloc(NULL, tensor.part_bytes[part]);
    }
    assert_ok(whit_codec_pack(&packed->type, 0, packed->type.n_rows, &(whit_rows){.elems = codes, .fields = fields},
                              parts, &error),
              error);
    free(codes);
    free(fields);
    return tensor;
}

static void free_matrix(whit_tensor *tensor)
{
    for (int part = 0; part < WHIT_PART_COUNT; part++)
        if (tensor->part[part]) whit_free(NULL, (void *)(uintptr_t)tensor->part[part], tensor->part_bytes[part]);
}

/* Checks one token of a layer: the int8 inputs, the integer sums and the int8 outputs must equal the golden's. */
static void check_token(const whit_kernels *kernels, const whit_tensor *w, const float *scales, const json_t *token)
{
    const uint32_t n_cols = w->type.n_cols, n_rows = w->type.n_rows, n_tiles = (n_rows + 15) / 16;
    const whit_acts_spec spec = whit_acts_spec_for(&w->type, WHIT_ACT_F32);
    const whit_matmul_kernel *kernel = whit_matmul_find(kernels, &w->type, &spec, 1);
    void *memory = whit_alloc(NULL, whit_acts_bytes(&spec, 1, n_cols)),
         *scratch = whit_alloc(NULL, kernel->scratch_bytes ? kernel->scratch_bytes(&w->type, &spec, 1) + 64 : 64);
    whit_acts acts = whit_acts_place(&spec, 1, n_cols, memory);
    float *x = malloc(n_cols * sizeof *x), *y = malloc(n_rows * sizeof *y);
    for (uint32_t k = 0; k < n_cols; k++)
        x[k] = (float)json_number_value(json_array_get(json_object_get(token, "x"), k));
    kernels->quantise(x, n_cols, &acts, 0, 1);
    for (uint32_t k = 0; k < n_cols; k++)
        assert_int_equal(acts.i8[k], json_integer_value(json_array_get(json_object_get(token, "q"), k)));
    whit_matmul_prepare(kernel, &acts, scratch);
    kernel->run(w, &acts, 0, n_tiles, y, n_rows, scratch);
    for (uint32_t r = 0; r < n_rows; r++) {
        float sum = (float)json_integer_value(json_array_get(json_object_get(token, "acc"), r));
        assert_true(y[r] == sum * (scales[r] * w->type.scale));
    }
    kernels->fix_scale(y, w->type.scale_b, n_rows);
    for (uint32_t r = 0; r < n_rows; r++) {
        float out = (float)json_integer_value(json_array_get(json_object_get(token, "out"), r));
        assert_true(y[r] == out * w->type.scale_b);
    }
    free(x);
    free(y);
    whit_free(NULL, memory, whit_acts_bytes(&spec, 1, n_cols));
    whit_free(NULL, scratch, 0);
}

static void layers_have_the_golden_integers(void **state)
{
    (void)state;
    whit_error error;
    whit_safetensors *set;
    assert_ok(whit_safetensors_open(shared_path(FOLDER "/ct/model.safetensors"), NULL, &set, &error), error);
    json_t *root = json_load_file(shared_path(FOLDER "/linear.json"), 0, NULL), *layer, *token;
    size_t i, t, n_checked = 0;
    assert_non_null(root);
    json_array_foreach(json_object_get(root, "layers"), i, layer)
    {
        whit_hf_packed packed;
        assert_ok(whit_hf_packed_open(set, WHIT_HF_COMPRESSED, json_string_value(json_object_get(layer, "name")), 0,
                                      &packed, &error),
                  error);
        whit_tensor w = pack_matrix(&packed);
        float *scales = malloc(packed.n_rows * sizeof *scales);
        for (uint64_t row = 0; row < packed.n_rows; row++) {
            int8_t codes[1024];
            assert_true(packed.n_cols <= sizeof codes);
            whit_hf_packed_row(&packed, row, &(whit_rows){.elems = codes, .fields = &scales[row]});
            if (packed.bits == 2) scales[row] = -scales[row]; /* two-bit codes are stored negated */
        }
        for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
            whit_kernels kernels;
            whit_cpu cpu;
            whit_cpu_detect(&cpu);
            assert_ok(whit_kernels_select(&cpu, levels[l], &kernels, &error), error);
            json_array_foreach(json_object_get(layer, "tokens"), t, token)
            {
                check_token(&kernels, &w, scales, token);
                n_checked++;
            }
        }
        free(scales);
        free_matrix(&w);
    }
    assert_int_equal(n_checked, 6 * sizeof levels / sizeof *levels);
    json_decref(root);
    whit_safetensors_close(set);
}

/* ---- equal logits over levels and threads ---------------------------------------------------- */

static uint64_t hash_logits(const whit_model *model, const whit_session_options *options, uint32_t split)
{
    whit_error error;
    whit_session *session;
    uint64_t hash = 0xCBF29CE484222325u;
    assert_ok(whit_session_open(model, options, &session, &error), error);
    for (uint32_t i = 0; i < options->n_ctx_tokens;) {
        whit_step_token tokens[256];
        uint32_t n = 0;
        for (; n < split && i < options->n_ctx_tokens; n++, i++)
            tokens[n] = (whit_step_token){.id = (int32_t)((i * 7919 + i * i) % 512), .want_logits = true};
        assert_ok(whit_session_step(session, tokens, n, &error), error);
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t v = 0; v < whit_model_vocab_size(model); v++) {
                uint32_t bits;
                memcpy(&bits, whit_session_logits(session, k) + v, sizeof bits);
                hash = (hash ^ bits) * 0x100000001B3u;
            }
    }
    whit_session_close(session);
    return hash;
}

static void one_hash_over_levels_threads_and_splits(void **state)
{
    static const struct {
        whit_kv_type kv;
        whit_act_type act;
        uint64_t hash; /* hash of the reference run */
    } settings[] = {{WHIT_KV_F32, WHIT_ACT_F32, 0x2c59b4252161c180}, {WHIT_KV_F16, WHIT_ACT_I8, 0x23e0b4ca129d0e7b}};
    static const uint32_t splits[] = {1, 7, 64, 150};
    (void)state;
    whit_model *model = open_model_at(shared_path(FOLDER "/ct"));
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
        whit_session_options options = whit_session_options_default();
        options.kv = settings[s].kv;
        options.act = settings[s].act;
        options.n_ctx_tokens = options.n_logits = 150;
        options.n_threads = 1;
        options.cpu = "generic";
        uint64_t found = hash_logits(model, &options, 150);
        print_message("kv %d act %d: %016llx\n", options.kv, options.act, (unsigned long long)found);
        assert_int_equal(found, settings[s].hash);
        for (size_t l = 1; l < sizeof levels / sizeof *levels; l++) {
            options.cpu = levels[l];
            assert_int_equal(hash_logits(model, &options, 64), found);
        }
        options.cpu = NULL;
        for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
            options.n_threads = 1 + (uint32_t)(i % 3);
            assert_int_equal(hash_logits(model, &options, splits[i]), found);
        }
        options.no_fuse = true;
        assert_int_equal(hash_logits(model, &options, 150), found);
    }
    whit_model_close(model);
}

/* ---- damaged folders ------------------------------------------------------------------------- */

struct text {
    char *bytes;
    size_t size;
};

static struct text read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    struct text text = {.size = (size_t)ftell(file)};
    rewind(file);
    text.bytes = calloc(1, text.size + 1);
    assert_int_equal(fread(text.bytes, 1, text.size, file), text.size);
    fclose(file);
    return text;
}

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Replaces the first occurrence of `from` by `to`. In a file of tensors both must have the same length. */
static void replace_text(struct text *text, const char *from, const char *to)
{
    const size_t n = strlen(from), m = strlen(to);
    for (size_t i = 0; i + n <= text->size; i++) {
        if (memcmp(text->bytes + i, from, n) != 0) continue;
        char *bytes = calloc(1, text->size - n + m + 1);
        memcpy(bytes, text->bytes, i);
        memcpy(bytes + i, to, m);
        memcpy(bytes + i + m, text->bytes + i + n, text->size - i - n);
        free(text->bytes);
        *text = (struct text){bytes, text->size - n + m};
        return;
    }
    fail_msg("'%s' is not there", from);
}

struct damage {
    const char *folder;    /* folder to damage: "ct" or "transformers" */
    const char *tensor;    /* name of the damaged tensor after "model.language_model."; NULL: no tensor */
    float value;           /* new value of its first element, if `rename` is NULL */
    const char *rename;    /* new name of the tensor; "": a name that is not read; NULL: not renamed */
    const char *from, *to; /* text in config.json and its replacement */
    const char *message;   /* expected error message; NULL: the folder must open */
    bool is_same;          /* the model must also equal the undamaged one */
};

#define Q    "layers.0.self_attn.q_proj"
#define KEEP "layers.7.self_attn.k_proj" /* a layer that reads the keys of an earlier layer */

static const struct damage damages[] = {
    {"ct", .message = NULL, .is_same = true},
    {"ct", Q ".weight_scale", .rename = "", .message = "'model.language_model." Q "': its scales are missing"},
    {"ct", Q ".weight_scale", NAN, .message = "its scales are not finite numbers"},
    {"ct", Q ".weight_scale", INFINITY, .message = "its scales are not finite numbers"},
    {"ct", Q ".weight_scale", 0},
    {"ct", Q ".weight_shape", .rename = "", .message = "its weight_shape is missing"},
    {"ct", Q ".weight_packed", .rename = "", .message = "tensor 'layers.0.q' is missing"},
    {"ct", Q ".input_scale", NAN, .message = "the scale of its inputs is not one positive number"},
    {"ct", Q ".input_scale", -1, .message = "the scale of its inputs is not one positive number"},
    {"ct", Q ".input_scale", INFINITY, .message = "the scale of its inputs is not one positive number"},
    {"ct", Q ".output_scale", NAN, .message = "the scale of its outputs is not one positive number"},
    {"ct", Q ".input_scale", 0},
    {"ct", Q ".output_scale", 0},
    {"ct", Q ".input_scale", .rename = ""},
    {"ct", Q ".output_scale", .rename = ""},
    {"ct", KEEP ".weight_packed", .rename = "", .is_same = true},
    {"ct", KEEP ".weight_scale", NAN, .is_same = true},
    {"ct", KEEP ".input_scale", NAN, .is_same = true},
    {"ct", .from = "\"dynamic\": false,\n          \"group_size\": null,\n          \"num_bits\": 8",
     .to = "\"dynamic\": true,\n          \"group_size\": null,\n          \"num_bits\": 8",
     .message = "activations of compressed-tensors"},
    {"ct", .from = "\"strategy\": \"tensor\"", .to = "\"strategy\": \"token\"",
     .message = "activations of compressed-tensors"},
    {"ct", .from = "\"format\": \"int-quantized\"", .to = "\"format\": \"float-quantized\"",
     .message = "this group has another format"},
    {"ct", .from = "\"quant_method\": \"compressed-tensors\"", .to = "\"quant_method\": \"gemma\"",
     .message = "is not known in a Gemma4"},
    {"ct", .from = "\"config_groups\"", .to = "\"other_groups\"",
     .message = "has fixed scales of activations, but config.json says that activations are not quantised"},
    {"ct", .from = "\"model_type\": \"gemma4\",", .to = "\"model_type\": \"gemma4\", \"num_hidden_layers\": 7,",
     .message = "field 'num_hidden_layers' contradicts the same field in text_config"},
    {"ct", .from = "\"model_type\": \"gemma4\",", .to = "\"model_type\": \"gemma4\", \"num_hidden_layers\": 8,",
     .is_same = true},
    {"transformers", .is_same = true},
    {"transformers", Q ".weight_scale", .rename = "", .message = "its scales are missing"},
    {"transformers", Q ".weight_scale", NAN, .message = "its scales are not finite numbers"},
    {"transformers", Q ".input_activation_scale", NAN, .message = "the scale of its inputs"},
    {"transformers", "layers.0.self_attn.k_cache_scale", NAN, .is_same = true},
    {"transformers", .from = "\"quant_method\": \"gemma\"",
     .to = "\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\"",
     .message = "is not known in a Gemma4"},
    {"transformers", .from = "\"quant_method\": \"gemma\"", .to = "\"quant_method\": \"other\"",
     .message = "quantisation by 'other' is not supported"},
};

static void damage_tensor(struct text *file, const struct damage *d)
{
    char name[160], other[160];
    snprintf(name, sizeof name, "model.language_model.%s", d->tensor);
    if (d->rename) { /* tensors of the vision tower are not read */
        snprintf(other, sizeof other, "model.vision_tower.p.%s", d->tensor);
        replace_text(file, name, other);
        return;
    }
    whit_error error;
    whit_safetensors *set;
    assert_ok(whit_safetensors_open_memory(file->bytes, file->size, "x", NULL, &set, &error), error);
    const whit_safetensor *tensor = whit_safetensors_find(set, name);
    assert_non_null(tensor);
    uint16_t half = whit_bf16_from_f32(d->value);
    char *at = file->bytes + ((const char *)tensor->data - file->bytes);
    if (tensor->dtype == WHIT_DTYPE_BF16)
        memcpy(at, &half, sizeof half);
    else
        memcpy(at, &d->value, sizeof d->value);
    whit_safetensors_close(set);
}

static void damaged_folders_are_refused_or_right(void **state)
{
    (void)state;
    whit_model *sound = open_model_at(shared_path(FOLDER "/ct"));
    char config_path[512], weights_path[512];
    snprintf(config_path, sizeof config_path, "%s", in_folder("config.json"));
    snprintf(weights_path, sizeof weights_path, "%s", in_folder("model.safetensors"));
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const struct damage *d = &damages[i];
        char path[256];
        whit_error error;
        whit_model *model;
        whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
        snprintf(path, sizeof path, FOLDER "/%s/config.json", d->folder);
        struct text config = read_file(shared_path(path));
        snprintf(path, sizeof path, FOLDER "/%s/model.safetensors", d->folder);
        struct text weights = read_file(shared_path(path));
        if (d->tensor) damage_tensor(&weights, d);
        if (d->from) replace_text(&config, d->from, d->to);
        write_file(config_path, config.bytes, config.size);
        write_file(weights_path, weights.bytes, weights.size);
        free(config.bytes);
        free(weights.bytes);
        whit_status status = whit_model_open(in_folder(""), &options, &model, &error);
        if (d->message) {
            if (status == WHIT_OK || !strstr(error.message, d->message) || strchr(error.message, '\n'))
                fail_msg("damage %zu: '%s', expected '%s'", i, status ? error.message : "opened", d->message);
            continue;
        }
        if (status != WHIT_OK) fail_msg("damage %zu: %s", i, error.message);
        if ((memcmp(whit_model_identity(model), whit_model_identity(sound), 32) == 0) != d->is_same)
            fail_msg("damage %zu: %s model", i, d->is_same ? "another" : "the same");
        whit_model_close(model);
    }
    whit_model_close(sound);
}

/* Returns whether a tensor is to be damaged: those of layer 0 and those outside layers, except the vision tower's. */
static bool is_looked_at(const char *name)
{
    const char *layer = strstr(name, "layers.");
    return strncmp(name, "model.language_model.", 21) == 0 && (!layer || strncmp(layer, "layers.0.", 9) == 0);
}

/* Damages the name, shape, type and place of each of these tensors in turn; each must give one line of error, or no
 * change. */
static void each_damaged_tensor_is_one_line(void **state)
{
    (void)state;
    const char *path = shared_path(FOLDER "/ct/model.safetensors");
    struct text weights = read_file(path), config = read_file(shared_path(FOLDER "/ct/config.json"));
    whit_error error;
    whit_safetensors *set;
    uint32_t n_refused = 0, n_tensors = 0;
    assert_ok(whit_safetensors_open_memory(weights.bytes, weights.size, "x", NULL, &set, &error), error);
    write_file(in_folder("config.json"), config.bytes, config.size);
    for (size_t i = 0; i < set->n_tensors; i++) {
        char name[160];
        snprintf(name, sizeof name, "%.*s", (int)set->tensors[i].name_bytes, set->tensors[i].name);
        if (!is_looked_at(name)) continue;
        n_tensors++;
        for (int how = 0; how < N_DAMAGES; how++) {
            whit_model *model;
            whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
            uint8_t *copy = malloc(weights.size);
            assert_non_null(copy);
            memcpy(copy, weights.bytes, weights.size);
            assert_true(damage_safetensors(copy, weights.size, name, how));
            write_file(in_folder("model.safetensors"), (const char *)copy, weights.size);
            free(copy);
            if (whit_model_open(in_folder(""), &options, &model, &error) == WHIT_OK)
                fail_msg("%s is accepted with another %s", name, damage_names[how]);
            const bool is_named = strstr(error.message, test_folder) || strstr(error.message, "'model.language_model.");
            if (!is_named || strchr(error.message, '\n'))
                fail_msg("%s, %s: %s", name, damage_names[how], error.message);
            n_refused++;
        }
    }
    print_message("%u refused\n", n_refused);
    assert_int_equal(n_refused, n_tensors * N_DAMAGES);
    assert_true(n_refused >= 50);
    whit_safetensors_close(set);
    free(weights.bytes);
    free(config.bytes);
}

/* Codes at the ends of their ranges must give the same bits on all levels. They include -128, which rounding to a
 * symmetric range never produces. */
static void codes_at_the_ends_are_right(void **state)
{
    (void)state;
    struct text weights = read_file(shared_path(FOLDER "/ct/model.safetensors")),
                config = read_file(shared_path(FOLDER "/ct/config.json"));
    whit_error error;
    whit_safetensors *set;
    uint32_t n_changed = 0;
    assert_ok(whit_safetensors_open_memory(weights.bytes, weights.size, "x", NULL, &set, &error), error);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const whit_safetensor *tensor = &set->tensors[i];
        if (tensor->dtype != WHIT_DTYPE_I8 && tensor->dtype != WHIT_DTYPE_I32) continue;
        uint8_t *codes = (uint8_t *)weights.bytes + ((const char *)tensor->data - weights.bytes);
        memset(codes, tensor->dtype == WHIT_DTYPE_I8 ? 0x80 : 0, 16);
        memset(codes + 16, tensor->dtype == WHIT_DTYPE_I8 ? 0x7F : 0xFF, 16);
        n_changed++;
    }
    assert_true(n_changed > 50);
    whit_safetensors_close(set);
    write_file(in_folder("config.json"), config.bytes, config.size);
    write_file(in_folder("model.safetensors"), weights.bytes, weights.size);
    free(weights.bytes);
    free(config.bytes);
    whit_model *model = open_model("");
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = options.n_logits = 40;
    options.n_threads = 1;
    options.cpu = "generic";
    const uint64_t found = hash_logits(model, &options, 40);
    for (size_t l = 1; l < sizeof levels / sizeof *levels; l++) {
        options.cpu = levels[l];
        assert_int_equal(hash_logits(model, &options, 7), found);
    }
    whit_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_have_the_golden_integers), cmocka_unit_test(one_hash_over_levels_threads_and_splits),
        cmocka_unit_test(damaged_folders_are_refused_or_right), cmocka_unit_test(each_damaged_tensor_is_one_line),
        cmocka_unit_test(codes_at_the_ends_are_right)};
    return cmocka_run_group_tests_name("golden mobile", tests, make_folder, remove_folder);
}
