/* SPDX-License-Identifier: MIT */
#include "model/import_lora.h"
#include "base/items.h"
#include "base/path.h"

#include "format/hf.h"
#include "format/lfs.h"
#include "model/graph.h"
#include "model/import_hf.h"
#include "tokenizer/regex.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array)     (sizeof(array) / sizeof(array)[0])
#define MAX_CONFIG_BYTES (4u << 20)

struct importer {
    const whit_ndf *model;
    const whit_allocator *allocator;
    whit_buf text, config_path, weights_path;
    whit_json config;
    bool has_config;
    whit_safetensors *weights;
    double rank, alpha;
    bool by_root;               /* use_rslora: the factor is alpha / sqrt(r) in place of alpha / r */
    whit_adapter_floats *pairs; /* (capacity_pairs) the first n_pairs are pairs with the factors read so far */
    size_t capacity_pairs;
    uint32_t n_pairs;
    whit_error *error;
};

static const char *config_name(const struct importer *im)
{
    return whit_chars(&im->config_path);
}

static const char *weights_name(const struct importer *im)
{
    return whit_chars(&im->weights_path);
}

/* ---- the configuration ---------------------------------------------------------------------- */

/* Fields of PEFT's LoraConfig that this importer reads. */
static const char *const used[] = {"alpha_pattern", "init_lora_weights", "lora_alpha", "peft_type", "r",
                                   "rank_pattern",  "use_rslora"};
/* Fields about training and bookkeeping, which have no effect: the tensors show which modules are adapted. */
static const char *const harmless[] = {
    "auto_mapping",      "base_model_class", "base_model_name_or_path", "corda_config",   "ensure_weight_tying",
    "eva_config",        "exclude_modules",  "inference_mode",          "layers_pattern", "layers_to_transform",
    "loftq_config",      "lora_dropout",     "megatron_core",           "parent_library", "peft_version",
    "qalora_group_size", "revision",         "runtime_config",          "target_modules", "task_type",
    "unsloth_fixed",
};
static const struct reason {
    const char *name, *text;
} reasons[] = {
    {"alora_invocation_tokens", "adapters that begin at certain tokens are not supported"},
    {"fan_in_fan_out", "transposed matrices are not supported"},
    {"layer_replication", "adapters of models with repeated layers are not supported"},
    {"lora_bias", "biases in addition to the factors are not supported"},
    {"modules_to_save", "whole trained modules are not supported: only low-rank factors are"},
    {"target_parameters", "factors of bare parameters are not supported"},
    {"trainable_token_indices", "trained rows of the embedding are not supported"},
    {"use_dora", "DoRA, which rescales the base weights, is not supported"},
    {"use_qalora", "QA-LoRA, which pools the inputs, is not supported"},
};

static bool in_list(const char *const *list, size_t n, const whit_json *json, uint32_t key)
{
    for (size_t i = 0; i < n; i++)
        if (whit_json_is(json, key, list[i])) return true;
    return false;
}

/* Returns whether a field has no effect; for the field "bias", "none" has no effect, too. */
static bool says_nothing(const whit_json *json, uint32_t key)
{
    if (whit_json_is(json, key, "bias") && whit_json_is(json, key + 1, "none")) return true;
    return whit_hf_says_nothing(json, key + 1);
}

static whit_status check_fields(const struct importer *im)
{
    const whit_json *json = &im->config;
    for (uint32_t key = whit_json_first(json, WHIT_JSON_ROOT); key != WHIT_JSON_NONE;
         key = whit_json_next(json, WHIT_JSON_ROOT, key)) {
        if (says_nothing(json, key) || in_list(used, COUNT(used), json, key) ||
            in_list(harmless, COUNT(harmless), json, key))
            continue;
        size_t n;
        const char *name = whit_json_string(json, key, &n), *reason = "is not known, and it may change the result";
        if (whit_json_is(json, key, "bias")) reason = "trained biases are not supported";
        for (size_t i = 0; i < COUNT(reasons); i++)
            if (whit_json_is(json, key, reasons[i].name)) reason = reasons[i].text;
        return whit_json_fail(json, key, im->error, "field '%.*s': %s", (int)(n < 60 ? n : 60), name, reason);
    }
    return WHIT_OK;
}

/* Returns whether init_lora_weights is absent, true, false, or a method that leaves the base weights unchanged. */
static bool starts_beside_the_weights(const whit_json *json, uint32_t node)
{
    return whit_json_type_of(json, node) <= WHIT_JSON_BOOL || whit_json_is(json, node, "gaussian") ||
        whit_json_is(json, node, "eva") || whit_json_is(json, node, "orthogonal");
}

static whit_status read_config(struct importer *im)
{
    const whit_json *json = &im->config;
    uint32_t type = whit_json_get(json, WHIT_JSON_ROOT, "peft_type"),
             start = whit_json_get(json, WHIT_JSON_ROOT, "init_lora_weights");
    if (whit_json_type_of(json, WHIT_JSON_ROOT) != WHIT_JSON_OBJECT)
        return whit_json_fail(json, WHIT_JSON_ROOT, im->error, "this is not an object");
    if (!whit_json_is(json, type, "LORA"))
        return whit_json_fail(json, type == WHIT_JSON_NONE ? WHIT_JSON_ROOT : type, im->error,
                              "only adapters of peft_type \"LORA\" are supported");
    if (!starts_beside_the_weights(json, start))
        return whit_json_fail(
            json, start, im->error,
            "training began by changing the base weights (init_lora_weights), which the adapter does not contain");
    if (!whit_json_f64(json, whit_json_get(json, WHIT_JSON_ROOT, "r"), &im->rank) ||
        !whit_json_f64(json, whit_json_get(json, WHIT_JSON_ROOT, "lora_alpha"), &im->alpha))
        return whit_json_fail(json, WHIT_JSON_ROOT, im->error, "\"r\" and \"lora_alpha\" must be numbers");
    im->by_root = whit_json_bool(json, whit_json_get(json, WHIT_JSON_ROOT, "use_rslora"), false);
    return check_fields(im);
}

/* Sets *yes to whether a module's name matches a key of a pattern; the key KEY stands for the regular expression
 * "^(.*\.)?(KEY)$", as in PEFT. */
static whit_status matches(const struct importer *im, uint32_t key, const char *module, bool *yes)
{
    size_t n;
    const char *text = whit_json_string(&im->config, key, &n);
    whit_buf pattern = {.allocator = im->allocator};
    whit_regex *regex = NULL;
    whit_match match = {0};
    whit_status status = WHIT_OK;
    *yes = false;
    if (!whit_buf_printf(&pattern, "^(?:.*\\.)?(?:%.*s)$", (int)n, text))
        status = whit_fail_memory(im->error, "a pattern", n);
    if (status == WHIT_OK)
        status = whit_regex_compile(pattern.data, pattern.size_bytes, im->allocator, &regex, im->error);
    if (status == WHIT_OK) {
        whit_regex_begin(regex, strlen(module));
        status = whit_regex_next(regex, (const uint8_t *)module, strlen(module), &match, yes, im->error);
    }
    whit_regex_close(regex);
    whit_buf_free(&pattern);
    return status;
}

/* Sets *value to the value of the first key of a pattern field that matches the module; *value is unchanged if no key
 * matches. */
static whit_status pattern_value(const struct importer *im, const char *field, const char *module, double *value)
{
    const whit_json *json = &im->config;
    uint32_t pattern = whit_json_get(json, WHIT_JSON_ROOT, field);
    if (whit_json_type_of(json, pattern) != WHIT_JSON_OBJECT) return WHIT_OK;
    for (uint32_t key = whit_json_first(json, pattern); key != WHIT_JSON_NONE;
         key = whit_json_next(json, pattern, key)) {
        bool yes;
        WHIT_TRY(matches(im, key, module, &yes));
        if (!yes) continue;
        if (!whit_json_f64(json, key + 1, value))
            return whit_json_fail(json, key, im->error, "its value is not a number");
        return WHIT_OK;
    }
    return WHIT_OK;
}

/* ---- names of tensors ----------------------------------------------------------------------- */

static const struct projection {
    const char *theirs, *ours;
} projections[] = {
    {"self_attn.q_proj", "q"}, {"self_attn.k_proj", "k"}, {"self_attn.v_proj", "v"}, {"self_attn.o_proj", "o"},
    {"mlp.gate_proj", "gate"}, {"mlp.up_proj", "up"},     {"mlp.down_proj", "down"},
};

/* Removes the suffix `end` from a name; returns false if the name does not end so. */
static bool cut_suffix(char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    if (n < m || strcmp(name + n - m, end) != 0) return false;
    name[n - m] = 0;
    return true;
}

static whit_status refuse_tensor(const struct importer *im, const char *tensor, const char *why)
{
    return whit_fail(im->error, WHIT_ERROR_UNSUPPORTED, "%s: tensor '%s': %s", weights_name(im), tensor, why);
}

/* Splits the name of a tensor such as "base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight" into the
 * module's name in PEFT, the name of our tensor, and whether it is factor A. */
static whit_status find_place(const struct importer *im, const char *tensor, char module[160],
                              char ours[WHIT_VALUE_NAME_BYTES], bool *is_a)
{
    static const char outer[] = "base_model.model.";
    if (strlen(tensor) >= 160 || strncmp(tensor, outer, strlen(outer)) != 0)
        return refuse_tensor(im, tensor, "is not known in a LoRA adapter");
    snprintf(module, 160, "%s", tensor + strlen(outer));
    if (strstr(module, "lora_embedding_") || strstr(module, "embed_tokens"))
        return refuse_tensor(im, tensor, "changes the embedding, which is not supported: train the adapter without it");
    if (strncmp(module, "lm_head.", 8) == 0)
        return refuse_tensor(im, tensor, "changes the head, which is not supported: train the adapter without it");
    if (strstr(module, "lora_magnitude_vector"))
        return refuse_tensor(im, tensor, "DoRA is not supported: train the adapter without use_dora");
    if (!cut_suffix(module, ".weight"))
        return refuse_tensor(im, tensor, "does not end in .weight, and only weights are supported");
    (void)cut_suffix(module, ".default"); /* the adapter's name, if the file contains it */
    *is_a = cut_suffix(module, ".lora_A");
    if (!*is_a && !cut_suffix(module, ".lora_B"))
        return refuse_tensor(
            im, tensor,
            "whole modules are not supported, only low-rank factors: train the adapter without modules_to_save");
    const char *place = module;
    if (strncmp(place, "model.", 6) == 0) place += 6;
    unsigned layer;
    int n_used = 0;
    if (sscanf(place, "layers.%5u.%n", &layer, &n_used) == 1 && n_used)
        for (size_t i = 0; i < COUNT(projections); i++)
            if (strcmp(place + n_used, projections[i].theirs) == 0) {
                snprintf(ours, WHIT_VALUE_NAME_BYTES, "layers.%u.%s", layer, projections[i].ours);
                return WHIT_OK;
            }
    return refuse_tensor(im, tensor, "does not name a matrix of the layers, and only these can be adapted");
}

/* ---- factors -------------------------------------------------------------------------------- */

static whit_adapter_floats *pair_of(struct importer *im, const char *model_name)
{
    for (uint32_t i = 0; i < im->n_pairs; i++)
        if (strcmp(im->pairs[i].name, model_name) == 0) return &im->pairs[i];
    im->pairs[im->n_pairs] = (whit_adapter_floats){.name = model_name};
    return &im->pairs[im->n_pairs++];
}

/* Returns all elements of a matrix times `factor`, row-major; NULL and an error if one is not finite or memory is
 * exhausted. */
static float *read_values(const struct importer *im, const whit_ggml_view *view, const char *tensor, double factor)
{
    size_t n = (size_t)(view->n_rows * view->n_cols);
    float *values = whit_zalloc_array(im->allocator, n, sizeof *values);
    if (!values) {
        whit_fail_memory(im->error, tensor, n * sizeof *values);
        return NULL;
    }
    for (uint64_t r = 0; r < view->n_rows; r++) whit_ggml_row_f32(view, r, values + r * view->n_cols);
    for (size_t i = 0; i < n; i++) {
        values[i] = (float)((double)values[i] * factor);
        if (isfinite(values[i])) continue;
        whit_fail(im->error, WHIT_ERROR_FORMAT,
                  "%s: tensor '%s' contains numbers that are NaN or infinite: the file is damaged", weights_name(im),
                  tensor);
        whit_free(im->allocator, values, n * sizeof *values);
        return NULL;
    }
    return values;
}

/* Sets *factor to the number by which B is multiplied: alpha / r (or alpha / sqrt(r)), with r and alpha of the patterns
 * if these match. Refuses tensors whose rank is not r. */
static whit_status find_factor(const struct importer *im, const char *module, const char *tensor, uint64_t rank,
                               double *factor)
{
    double r = im->rank, alpha = im->alpha;
    WHIT_TRY(pattern_value(im, "rank_pattern", module, &r));
    WHIT_TRY(pattern_value(im, "alpha_pattern", module, &alpha));
    if (r != (double)rank)
        return whit_fail(im->error, WHIT_ERROR_FORMAT,
                         "%s: tensor '%s' has rank %llu, but %s says %g: the folder is inconsistent", weights_name(im),
                         tensor, (unsigned long long)rank, config_name(im), r);
    *factor = alpha / (im->by_root ? sqrt(r) : r);
    return isfinite(*factor) ? WHIT_OK
                             : refuse_tensor(im, tensor, "its alpha divided by its rank is not a finite number");
}

static whit_status add_factor(struct importer *im, const whit_safetensor *file)
{
    char tensor[160], module[160], ours[WHIT_VALUE_NAME_BYTES];
    whit_ggml_view view;
    bool is_a = false;
    snprintf(tensor, sizeof tensor, "%.*s", (int)(file->name_bytes < 159 ? file->name_bytes : 159), file->name);
    WHIT_TRY(find_place(im, tensor, module, ours, &is_a));
    int64_t index = whit_ndf_find(im->model, ours);
    const whit_tensor_type *type = index >= 0 ? whit_ndf_tensor_type(im->model, (uint32_t)index) : NULL;
    if (type && strstr(ours, ".expert_")) return refuse_tensor(im, tensor, "adapters of experts are not supported");
    if (!type || !whit_adapter_may_change(ours, type))
        return refuse_tensor(im, tensor, "the model has no such matrix: the adapter is for another model");
    if (file->n_dims != 2 || !whit_safetensor_view(file, &view))
        return refuse_tensor(im, tensor, "is not a matrix of F32, F16 or BF16");
    uint64_t rank = is_a ? view.n_rows : view.n_cols;
    uint64_t width = is_a ? view.n_cols : view.n_rows;
    uint32_t wanted = is_a ? type->n_cols : type->n_rows;
    if (width != wanted)
        return whit_fail(im->error, WHIT_ERROR_FORMAT, "%s: tensor '%s' is for %llu %s, but the model's '%s' has %u",
                         weights_name(im), tensor, (unsigned long long)width, is_a ? "inputs" : "outputs", ours,
                         wanted);
    if (rank > WHIT_ADAPTER_MAX_RANK) return refuse_tensor(im, tensor, "its rank is above 1024, the limit");
    double factor = 1;
    if (!is_a) WHIT_TRY(find_factor(im, module, tensor, rank, &factor));
    whit_adapter_floats *pair = pair_of(im, whit_ndf_tensor_name(im->model, (uint32_t)index));
    if (is_a ? pair->a != NULL : pair->b != NULL) return refuse_tensor(im, tensor, "occurs twice: the file is damaged");
    if (pair->rank && pair->rank != rank)
        return refuse_tensor(im, tensor, "its rank differs from that of the other factor: the file is damaged");
    pair->n_rows = type->n_rows;
    pair->n_cols = type->n_cols;
    pair->rank = (uint32_t)rank;
    float *values = read_values(im, &view, tensor, factor);
    if (!values) return im->error ? im->error->status : WHIT_ERROR_FORMAT;
    *(is_a ? &pair->a : &pair->b) = values;
    return WHIT_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const whit_adapter_floats *)a)->name, ((const whit_adapter_floats *)b)->name);
}

static whit_status add_factors(struct importer *im)
{
    im->capacity_pairs = im->weights->n_tensors + 1;
    im->pairs = whit_zalloc_array(im->allocator, im->capacity_pairs, sizeof *im->pairs);
    if (!im->pairs) return whit_fail_memory(im->error, "the factors", im->capacity_pairs * sizeof *im->pairs);
    for (size_t i = 0; i < im->weights->n_tensors; i++) WHIT_TRY(add_factor(im, &im->weights->tensors[i]));
    for (uint32_t i = 0; i < im->n_pairs; i++)
        if (!im->pairs[i].a || !im->pairs[i].b)
            return whit_fail(im->error, WHIT_ERROR_FORMAT,
                             "%s: '%s' has only one of its two factors (lora_A, lora_B): the file is incomplete",
                             weights_name(im), im->pairs[i].name);
    if (!im->n_pairs)
        return whit_fail(im->error, WHIT_ERROR_FORMAT,
                         "%s: contains no factors (lora_A, lora_B), so it changes nothing", weights_name(im));
    qsort(im->pairs, im->n_pairs, sizeof *im->pairs, by_name);
    return WHIT_OK;
}

/* ---- the whole folder ----------------------------------------------------------------------- */

static bool join_path(whit_buf *path, const char *folder, const char *name)
{
    return whit_buf_printf(path, "%s/%s", folder, name) && whit_buf_append(path, "", 1);
}

bool whit_lora_is_folder(const char *path)
{
    whit_buf config = {0};
    bool found = join_path(&config, path, "adapter_config.json") && whit_path_exists(whit_chars(&config));
    whit_buf_free(&config);
    return found;
}

static whit_status open_files(struct importer *im, const char *folder)
{
    if (!join_path(&im->config_path, folder, "adapter_config.json") ||
        !join_path(&im->weights_path, folder, "adapter_model.safetensors"))
        return whit_fail_memory(im->error, "a file name", strlen(folder));
    WHIT_TRY(whit_read_found_file(config_name(im), MAX_CONFIG_BYTES, &im->text, im->error));
    if (whit_is_lfs_pointer(im->text.data, im->text.size_bytes))
        return whit_fail(im->error, WHIT_ERROR_FORMAT, "%s: " WHIT_LFS_REASON, config_name(im));
    WHIT_TRY(whit_json_parse(config_name(im), whit_chars(&im->text), im->text.size_bytes, im->allocator, &im->config,
                             im->error));
    im->has_config = true;
    if (!whit_path_exists(weights_name(im)))
        return whit_fail(im->error, WHIT_ERROR_IO, "%s: the file is missing; weights in other formats are not read",
                         weights_name(im));
    return whit_safetensors_open(weights_name(im), im->allocator, &im->weights, im->error);
}

static whit_status build_adapter(const struct importer *im, const char *folder, const char *name, whit_buf *out)
{
    whit_table_builder meta = {.allocator = im->allocator};
    size_t n;
    const char *base =
        whit_json_string(&im->config, whit_json_get(&im->config, WHIT_JSON_ROOT, "base_model_name_or_path"), &n);
    whit_table_set_string(&meta, "general.name", name);
    whit_table_set_string(&meta, "adapter.source", folder);
    if (base && !memchr(base, 0, n)) whit_table_set_string_n(&meta, "adapter.base", base, n);
    whit_status status =
        whit_adapter_build(whit_ndf_identity(im->model), &meta, im->pairs, im->n_pairs, out, im->error);
    whit_table_builder_free(&meta);
    return status;
}

whit_status whit_lora_import(const char *folder, const whit_ndf *model, const char *name,
                             const whit_allocator *allocator, whit_buf *out, whit_error *error)
{
    struct importer im = {.model = model, .allocator = allocator, .error = error};
    im.text.allocator = im.config_path.allocator = im.weights_path.allocator = allocator;
    whit_status status = open_files(&im, folder);
    if (status == WHIT_OK) status = read_config(&im);
    if (status == WHIT_OK) status = add_factors(&im);
    if (status == WHIT_OK) status = build_adapter(&im, folder, name, out);
    for (uint32_t i = 0; i < im.n_pairs; i++) {
        const whit_adapter_floats *pair = &im.pairs[i];
        whit_free(allocator, (void *)pair->a, (size_t)pair->rank * pair->n_cols * sizeof(float));
        whit_free(allocator, (void *)pair->b, (size_t)pair->rank * pair->n_rows * sizeof(float));
    }
    whit_free(allocator, im.pairs, im.capacity_pairs * sizeof *im.pairs);
    whit_safetensors_close(im.weights);
    if (im.has_config) whit_json_close(&im.config);
    whit_buf_free(&im.text);
    whit_buf_free(&im.config_path);
    whit_buf_free(&im.weights_path);
    return status;
}
