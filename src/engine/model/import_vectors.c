/* SPDX-License-Identifier: MIT
 * Imports the parts of embedding and rerank models that decoders do not have: the pooling, dense layers after it,
 * classification heads, and the numbers of encoders, from GGUF files and from folders of sentence-transformers. */
#include "base/phrase.h"
#include "kernels/kernels.h"
#include "model/import_gguf.h"
#include "model/import_hf.h"

#include <stdio.h>

/* ---- GGUF -------------------------------------------------------------------------------------- */

/* Returns the number of rows of a matrix in the file; 0 if it is absent or has another number of dimensions than 2. */
static uint32_t rows_of(const whit_gguf *gguf, const char *name)
{
    const whit_gguf_tensor *tensor = whit_gguf_find_tensor(gguf, name);
    return tensor && tensor->n_dims == 2 && tensor->dims[1] <= UINT32_MAX ? (uint32_t)tensor->dims[1] : 0;
}

whit_status whit_import_gguf_vectors(const whit_gguf_keys *k, const whit_gguf_architecture *a, whit_config *c)
{
    const whit_gguf_key *causal = whit_gguf_key_find(k, "attention.causal");
    c->input_norms = whit_gguf_find_tensor(k->gguf, "blk.0.attn_q_norm_in.weight") != NULL;
    c->n_labels = rows_of(k->gguf, "cls.output.weight");
    c->bidirectional = a->is_encoder;
    if (a->is_encoder && causal && (causal->type != WHIT_GGUF_BOOL || causal->data[0]))
        return whit_fail(k->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: key '%s.attention.causal' says that tokens attend only to earlier tokens, which is not "
                         "supported in this architecture",
                         k->path, k->architecture);
    return WHIT_OK;
}

whit_status whit_import_gguf_gemma_embedding(const whit_gguf_keys *k, whit_config *c)
{
    c->dense_1 = rows_of(k->gguf, "dense_2.weight");
    c->dense_2 = rows_of(k->gguf, "dense_3.weight");
    if (c->dense_2 && !c->dense_1)
        return whit_fail(k->error, WHIT_ERROR_FORMAT, "%s: tensor 'dense_2.weight' is missing before 'dense_3.weight'",
                         k->path);
    return WHIT_OK;
}

/* Makes all layers alike, without RoPE and without a window. */
static void drop_ropes(whit_config *c)
{
    c->n_ropes = c->n_kinds = c->rope_dim = c->window = 0;
    c->rope_theta = 10000;
    c->rope_factors = false;
    for (int i = 0; i < WHIT_ROPES_MAX; i++) c->ropes[i] = (whit_rope){0};
}

whit_status whit_import_gguf_bert(const whit_gguf_keys *k, whit_config *c)
{
    drop_ropes(c);
    c->norm_eps = 1e-12f;
    WHIT_TRY(whit_gguf_key_f64(k, "attention.layer_norm_epsilon", &c->norm_eps));
    c->n_positions = rows_of(k->gguf, "position_embd.weight");
    c->n_token_types = rows_of(k->gguf, "token_types.weight");
    c->score_dense = whit_gguf_find_tensor(k->gguf, "cls.weight") != NULL;
    if (!c->n_positions || !c->n_token_types)
        return whit_fail(k->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: a BERT without learned positions or token types (position_embd.weight, "
                         "token_types.weight) is not supported",
                         k->path);
    if (c->n_ctx > c->n_positions) c->n_ctx = c->n_positions;
    return WHIT_OK;
}

void whit_import_gguf_pooling(const whit_gguf *gguf, whit_table_builder *meta)
{
    static const char *const names[] = {"none", "mean", "cls", "last", "rank"};
    const char *architecture = NULL, *text = NULL;
    size_t n = 0;
    uint64_t pooling = UINT64_MAX;
    char key[128];
    if (whit_gguf_string(gguf, "general.architecture", &architecture, &n, NULL) != WHIT_OK || !architecture) return;
    snprintf(key, sizeof key, "%.*s.pooling_type", (int)(n < 64 ? n : 64), architecture);
    if (whit_gguf_u64(gguf, key, &pooling, NULL) == WHIT_OK && pooling < sizeof names / sizeof *names)
        whit_table_set_string(meta, "embedding.pooling", names[pooling]);
    if (whit_gguf_string(gguf, "tokenizer.chat_template.rerank", &text, &n, NULL) == WHIT_OK && text &&
        !memchr(text, 0, n))
        whit_table_set_string_n(meta, "embedding.rerank_template", text, n);
}

/* ---- folders: encoders ------------------------------------------------------------------------- */

static bool is_absolute(const whit_json *json, uint32_t node)
{
    return node == WHIT_JSON_NONE || whit_json_is(json, node, "absolute");
}

static whit_status read_activation(const whit_hf_document *config, whit_config *c, whit_error *error)
{
    static const struct {
        const char *name;
        uint32_t activation;
    } rows[] = {{"gelu", WHIT_ACTIVATE_GELU},
                {"gelu_new", WHIT_ACTIVATE_GELU_TANH},
                {"gelu_pytorch_tanh", WHIT_ACTIVATE_GELU_TANH},
                {"relu", WHIT_ACTIVATE_RELU},
                {"tanh", WHIT_ACTIVATE_TANH}};
    const char *name = "gelu";
    size_t n = strlen(name);
    WHIT_TRY(whit_hf_string(config, "hidden_act", &name, &n, error));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        c->activation = rows[i].activation;
        if (whit_hf_text_is(name, n, rows[i].name)) return WHIT_OK;
    }
    return whit_json_fail(&config->json, whit_hf_node(config, "hidden_act"), error,
                          "hidden_act '%.*s' is not supported in encoders (gelu, gelu_new, relu and tanh are)",
                          (int)(n < 40 ? n : 40), name);
}

whit_status whit_import_hf_bert(const struct whit_hf_importer *importer, whit_config *c, whit_error *error)
{
    const whit_hf_document *config = &importer->text;
    const whit_hf_class *class = importer->class;
    const whit_json *json = &config->json;
    drop_ropes(c);
    c->bidirectional = true;
    WHIT_TRY(read_activation(config, c, error));
    c->norm_eps = class->norm_eps;
    WHIT_TRY(whit_hf_read_float(config, "layer_norm_eps", &c->norm_eps, error));
    c->n_token_types = 2;
    WHIT_TRY(whit_hf_read_u32(config, "type_vocab_size", false, &c->n_token_types, error));
    if (!is_absolute(json, whit_hf_node(config, "position_embedding_type")))
        return whit_json_fail(json, whit_hf_node(config, "position_embedding_type"), error,
                              "positions other than absolute ones are not supported");
    if (c->n_ctx <= class->n_positions_cut || !c->n_token_types)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: an encoder of %u positions and %u token types is not supported",
                         config->path, c->n_ctx, c->n_token_types);
    c->n_ctx -= class->n_positions_cut;
    c->n_positions = c->n_ctx;
    if (!class->has_scores) return WHIT_OK;
    c->score_dense = true;
    c->n_labels = whit_json_count(json, whit_hf_node(config, "id2label"));
    if (!c->n_labels) c->n_labels = 2; /* default of transformers' PretrainedConfig */
    return WHIT_OK;
}

/* ---- folders: the modules of sentence-transformers ---------------------------------------------- */

/* Reads the file FOLDER/`name` of a module into *document; FOLDER is the module's "path" in modules.json. Sets `path`
 * to "FOLDER/`name`". */
static whit_status read_module(struct whit_hf_importer *importer, uint32_t entry, const char *name,
                               char path[WHIT_HF_MODULE_PATH_BYTES], whit_hf_document *document, whit_error *error)
{
    const whit_json *json = &importer->modules.list.json;
    size_t n = 0;
    const char *folder = whit_json_string(json, whit_json_get(json, entry, "path"), &n);
    if (!folder || !n || n > 64 || folder[0] == '/' || memchr(folder, 0, n) || memchr(folder, '.', n))
        return whit_json_fail(json, entry, error, "a module's path must be the name of a folder next to this file");
    snprintf(path, WHIT_HF_MODULE_PATH_BYTES, "%.*s/%s", (int)n, folder, name);
    WHIT_TRY(whit_hf_read_document(importer->hf, path, document, error));
    if (!document->present) return whit_json_fail(json, entry, error, "the module's file '%s' is not there", path);
    return WHIT_OK;
}

static whit_status read_pooling(struct whit_hf_importer *importer, uint32_t entry, whit_error *error)
{
    static const struct {
        const char *field, *name;
    } modes[] = {{"pooling_mode_cls_token", "cls"},           {"pooling_mode_mean_tokens", "mean"},
                 {"pooling_mode_lasttoken", "last"},          {"pooling_mode_max_tokens", NULL},
                 {"pooling_mode_mean_sqrt_len_tokens", NULL}, {"pooling_mode_weightedmean_tokens", NULL}};
    whit_hf_document *document = &importer->modules.pooling;
    char path[WHIT_HF_MODULE_PATH_BYTES];
    if (document->path)
        return whit_json_fail(&importer->modules.list.json, entry, error,
                              "the model has a second Pooling module, which is not supported");
    WHIT_TRY(read_module(importer, entry, "config.json", path, document, error));
    const char *mode = NULL;
    size_t n = 0;
    bool includes_prompt = true;
    WHIT_TRY(whit_hf_bool(document, "include_prompt", &includes_prompt, error));
    importer->modules.excludes_prompt = !includes_prompt;
    WHIT_TRY(whit_hf_string(document, "pooling_mode", &mode, &n, error));
    for (size_t i = 0; mode && i < 3; i++)
        if (whit_hf_text_is(mode, n, modes[i].name) || (i == 2 && whit_hf_text_is(mode, n, "lasttoken")))
            importer->modules.pooling_name = modes[i].name;
    bool is_several = false;
    for (size_t i = 0; !mode && i < sizeof modes / sizeof *modes; i++) {
        bool is_on = false;
        WHIT_TRY(whit_hf_bool(document, modes[i].field, &is_on, error));
        if (is_on && (!modes[i].name || importer->modules.pooling_name)) is_several = true;
        if (is_on) importer->modules.pooling_name = modes[i].name;
    }
    if (importer->modules.pooling_name && !is_several) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "%s: pooling other than by one of cls, mean and lasttoken is not supported", document->path);
}

static whit_status read_dense(struct whit_hf_importer *importer, uint32_t entry, whit_config *c, whit_error *error)
{
    struct whit_hf_modules *modules = &importer->modules;
    const whit_json *json = &modules->list.json;
    char path[WHIT_HF_MODULE_PATH_BYTES];
    if (modules->n_dense == WHIT_HF_DENSE_MAX)
        return whit_json_fail(json, entry, error, "more than %d Dense modules are not supported", WHIT_HF_DENSE_MAX);
    whit_hf_document *document = &modules->dense_config[modules->n_dense];
    WHIT_TRY(read_module(importer, entry, "config.json", path, document, error));
    const char *activation = "";
    size_t n = 0;
    uint32_t width = 0;
    bool has_bias = true;
    WHIT_TRY(whit_hf_bool(document, "bias", &has_bias, error));
    WHIT_TRY(whit_hf_string(document, "activation_function", &activation, &n, error));
    WHIT_TRY(whit_hf_read_u32(document, "out_features", true, &width, error));
    if (has_bias || n < 8 || memcmp(activation + n - 8, "Identity", 8) != 0)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: dense layers with a bias or an activation other than Identity are not supported",
                         document->path);
    *(modules->n_dense ? &c->dense_2 : &c->dense_1) = width;
    char *slash = strrchr(path, '/');
    snprintf(slash, sizeof path - (size_t)(slash - path), "/model.safetensors");
    return whit_hf_open_safetensors(importer->hf, path, &modules->dense[modules->n_dense++], error);
}

/* Returns the last part of a module's class name, such as "Pooling" for "sentence_transformers.models.Pooling". */
static const char *module_kind(const whit_json *json, uint32_t entry, size_t *n)
{
    const char *type = whit_json_string(json, whit_json_get(json, entry, "type"), n);
    for (size_t i = *n; type && i > 0; i--)
        if (type[i - 1] == '.') {
            *n -= i;
            return type + i;
        }
    return type;
}

whit_status whit_import_hf_modules(struct whit_hf_importer *importer, whit_config *c, whit_error *error)
{
    const whit_hf_document *list = &importer->modules.list;
    const whit_json *json = &list->json;
    WHIT_TRY(whit_hf_read_document(importer->hf, "modules.json", &importer->modules.list, error));
    if (!list->present || c->program) return WHIT_OK;
    if (whit_json_type_of(json, WHIT_JSON_ROOT) != WHIT_JSON_ARRAY)
        return whit_json_fail(json, WHIT_JSON_ROOT, error, "this is not a list of modules");
    WHIT_TRY(
        whit_hf_read_document(importer->hf, "config_sentence_transformers.json", &importer->modules.prompts, error));
    for (uint32_t at = whit_json_first(json, WHIT_JSON_ROOT); at != WHIT_JSON_NONE;
         at = whit_json_next(json, WHIT_JSON_ROOT, at)) {
        size_t n = 0;
        const char *kind = module_kind(json, at, &n);
        if (whit_hf_text_is(kind, n, "Pooling"))
            WHIT_TRY(read_pooling(importer, at, error));
        else if (whit_hf_text_is(kind, n, "Dense"))
            WHIT_TRY(read_dense(importer, at, c, error));
        else if (!whit_hf_text_is(kind, n, "Transformer") && !whit_hf_text_is(kind, n, "Normalize"))
            return whit_json_fail(json, at, error, "a module '%.*s' is not supported", (int)(n < 40 ? n : 40),
                                  whit_or_empty(kind));
    }
    if (c->dense_1 && c->n_labels)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: Dense modules are not supported in a model with score labels", list->path);
    whit_config_name_family(c);
    return WHIT_OK;
}

void whit_import_hf_close_modules(struct whit_hf_importer *importer)
{
    struct whit_hf_modules *modules = &importer->modules;
    whit_hf_close_document(importer->hf, &modules->list);
    whit_hf_close_document(importer->hf, &modules->pooling);
    whit_hf_close_document(importer->hf, &modules->prompts);
    for (uint32_t i = 0; i < WHIT_HF_DENSE_MAX; i++) {
        whit_hf_close_document(importer->hf, &modules->dense_config[i]);
        whit_safetensors_close(modules->dense[i]);
    }
}

void whit_import_hf_set_prompts(const struct whit_hf_importer *importer, whit_table_builder *meta)
{
    const whit_hf_document *prompts = &importer->modules.prompts;
    const whit_json *json = &prompts->json;
    size_t n, name_bytes;
    const char *text;
    if (importer->modules.pooling_name)
        whit_table_set_string(meta, "embedding.pooling", importer->modules.pooling_name);
    if (importer->modules.excludes_prompt) whit_table_set_bool(meta, "embedding.include_prompt", false);
    if (importer->class->has_scores) whit_table_set_string(meta, "embedding.pooling", "rank");
    const uint32_t list = whit_hf_node(prompts, "prompts");
    for (uint32_t at = whit_json_first(json, list); at != WHIT_JSON_NONE; at = whit_json_next(json, list, at)) {
        const char *name = whit_json_string(json, at, &name_bytes);
        char key[128];
        text = whit_json_string(json, at + 1, &n);
        if (!name || !text || name_bytes > 64 || memchr(name, 0, name_bytes) || memchr(text, 0, n)) continue;
        snprintf(key, sizeof key, "embedding.prompt.%.*s", (int)name_bytes, name);
        whit_table_set_string_n(meta, key, text, n);
    }
    text = whit_json_string(json, whit_hf_node(prompts, "default_prompt_name"), &n);
    if (text && n <= 64 && !memchr(text, 0, n)) whit_table_set_string_n(meta, "embedding.default_prompt", text, n);
}
