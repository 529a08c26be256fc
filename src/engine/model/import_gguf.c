/* SPDX-License-Identifier: MIT
 * Reads GGUF files as sources: converts keys to the canonical configuration, names to canonical names, and rows of
 * queries and keys to half-split RoPE pairs. Anything unknown that would change the mathematics is refused by name;
 * keys that only describe the model are ignored. */
#include "model/import_gguf.h"

#include "model/unknown_family.h"

#include <stdio.h>

/* ---- configuration -------------------------------------------------------------------------- */

static void key_name(const whit_gguf_keys *k, const char *suffix, char out[128])
{
    snprintf(out, 128, "%s.%s", k->architecture, suffix);
}

const whit_gguf_key *whit_gguf_key_find(const whit_gguf_keys *k, const char *suffix)
{
    char name[128];
    key_name(k, suffix, name);
    return whit_gguf_find(k->gguf, name);
}

whit_status whit_gguf_key_u32(const whit_gguf_keys *k, const char *suffix, bool required, uint32_t *value)
{
    char name[128];
    uint64_t number = *value;
    key_name(k, suffix, name);
    if (required && !whit_gguf_find(k->gguf, name))
        return whit_fail(k->error, WHIT_ERROR_FORMAT,
                         "%s: key '%s' is missing: the file is incomplete; convert the original again", k->path, name);
    WHIT_TRY(whit_gguf_u64(k->gguf, name, &number, k->error));
    if (number > UINT32_MAX)
        return whit_fail(k->error, WHIT_ERROR_FORMAT, "%s: key '%s' must be below 2^32", k->path, name);
    *value = (uint32_t)number;
    return WHIT_OK;
}

whit_status whit_gguf_key_f64(const whit_gguf_keys *k, const char *suffix, double *value)
{
    char name[128];
    key_name(k, suffix, name);
    return whit_gguf_f64(k->gguf, name, value, k->error);
}

whit_status whit_gguf_key_string(const whit_gguf_keys *k, const char *suffix, const char **text, size_t *n)
{
    char name[128];
    key_name(k, suffix, name);
    return whit_gguf_string(k->gguf, name, text, n, k->error);
}

/* Reads a number; of an array with one number per layer, the largest element. import_gguf_layers.c reads the numbers of
 * the layers. */
static whit_status get_largest(const whit_gguf_keys *k, const char *suffix, bool required, uint32_t *value)
{
    const whit_gguf_key *key = whit_gguf_key_find(k, suffix);
    if (!key || key->type != WHIT_GGUF_ARRAY) return whit_gguf_key_u32(k, suffix, required, value);
    int64_t largest = 0, other;
    for (uint64_t i = 0; i < key->n_elems; i++) {
        if (!whit_gguf_element_i64(key, i, &other) || other < 0 || other > UINT32_MAX)
            return whit_fail(k->error, WHIT_ERROR_FORMAT, "%s: key '%s.%s' must have numbers from 0 to 2^32 - 1",
                             k->path, k->architecture, suffix);
        if (other > largest) largest = other;
    }
    if (key->n_elems) *value = (uint32_t)largest;
    return WHIT_OK;
}

static whit_status read_numbers(const whit_gguf_keys *k, const whit_gguf_architecture *a, whit_config *c)
{
    for (const whit_import_number *row = a->numbers; row && row->theirs; row++) {
        double number = 0;
        WHIT_TRY(whit_gguf_key_f64(k, row->theirs, &number));
        whit_config_set_number(c, row->ours, number == 1 ? 0 : number);
    }
    if (c->temperature_scale == 0) c->temperature_length = 0;
    return WHIT_OK;
}

static whit_status read_config(const whit_gguf_keys *k, const whit_gguf_architecture *a, whit_config *c)
{
    snprintf(c->family, sizeof c->family, "%.31s", a->family);
    c->gate = a->gate;
    c->sub_norm = a->sub_norm;
    c->qk_norm = a->qk_norm;
    c->norm_after_rope = a->norm_after_rope;
    c->attn_bias = a->attn_bias || whit_gguf_find_tensor(k->gguf, "blk.0.attn_q.bias");
    c->out_bias = whit_gguf_find_tensor(k->gguf, "blk.0.attn_output.bias");
    c->ffn_bias = whit_gguf_find_tensor(k->gguf, "blk.0.ffn_gate.bias");
    c->norm_eps = 1e-5f;
    WHIT_TRY(whit_gguf_key_u32(k, "block_count", true, &c->n_layers));
    WHIT_TRY(whit_gguf_key_u32(k, "embedding_length", true, &c->n_embd));
    WHIT_TRY(get_largest(k, "feed_forward_length", !a->experts, &c->n_ff));
    WHIT_TRY(get_largest(k, "attention.head_count", true, &c->n_heads));
    c->n_kv_heads = c->n_heads;
    WHIT_TRY(get_largest(k, "attention.head_count_kv", false, &c->n_kv_heads));
    WHIT_TRY(whit_gguf_key_u32(k, "context_length", true, &c->n_ctx));
    c->head_dim = c->n_heads ? c->n_embd / c->n_heads : 0;
    WHIT_TRY(whit_gguf_key_u32(k, "attention.key_length", false, &c->head_dim));
    uint32_t value_dim = c->head_dim;
    WHIT_TRY(whit_gguf_key_u32(k, "attention.value_length", false, &value_dim));
    if (value_dim != c->head_dim)
        return whit_fail(k->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: keys of %u and values of %u elements a head are not supported: both must have one size",
                         k->path, c->head_dim, value_dim);
    WHIT_TRY(whit_gguf_key_u32(k, "attention.sliding_window", false, &c->window));
    if (c->window >= c->n_ctx && !a->full_interval) c->window = 0;
    WHIT_TRY(whit_gguf_key_f64(k, "attention.layer_norm_rms_epsilon", &c->norm_eps));
    const whit_gguf_tensor *embed = whit_gguf_find_tensor(k->gguf, "token_embd.weight");
    if (!embed)
        return whit_fail(k->error, WHIT_ERROR_FORMAT,
                         "%s: tensor 'token_embd.weight' is missing: the file is incomplete", k->path);
    if (embed->n_dims != 2 || embed->dims[1] > INT32_MAX)
        return whit_fail(k->error, WHIT_ERROR_FORMAT, "%s: tensor 'token_embd.weight' is not a matrix", k->path);
    c->n_vocab = (uint32_t)embed->dims[1];
    c->tied_head = !whit_gguf_find_tensor(k->gguf, "output.weight");
    WHIT_TRY(read_numbers(k, a, c));
    WHIT_TRY(whit_import_gguf_ropes(k, a, c));
    WHIT_TRY(whit_import_gguf_layers(k, a, c));
    WHIT_TRY(whit_import_gguf_vectors(k, a, c));
    if (a->finish) WHIT_TRY(a->finish(k, c));
    return whit_import_gguf_experts(k, a, c);
}

/* Adds the tensor "rope_factors" with the factor of linear RoPE scaling for all pairs; `linear` 0: no scaling. */
static whit_status add_linear_factors(whit_source *source, struct whit_gguf_importer *importer, double linear,
                                      whit_error *error)
{
    if (linear == 0) return WHIT_OK;
    source->config.rope_factors = true;
    return whit_import_gguf_constant(source, importer, "rope_factors", source->config.rope_dim / 2, (float)linear,
                                     error);
}

/* ---- metadata ------------------------------------------------------------------------------- */

/* Writes the pooling, and copies texts and integers of the keys general.* to the metadata, so that `inspect` can show
 * the model's origin. */
static whit_status write_metadata(const whit_source *source, whit_ndf_writer *writer, whit_error *error)
{
    const struct whit_gguf_importer *importer = source->importer;
    whit_table_builder *meta = whit_ndf_writer_meta(writer);
    (void)error;
    whit_import_gguf_pooling(importer->gguf, meta);
    for (size_t i = 0; i < importer->gguf->n_keys; i++) {
        const whit_gguf_key *key = &importer->gguf->keys[i];
        char name[96];
        if (key->name_bytes >= sizeof name || key->name_bytes < 8 || memcmp(key->name, "general.", 8) != 0) continue;
        memcpy(name, key->name, key->name_bytes);
        name[key->name_bytes] = 0;
        int64_t number;
        if (key->type == WHIT_GGUF_STRING && !memchr(key->data, 0, key->size_bytes))
            whit_table_set_string_n(meta, name, (const char *)key->data, key->size_bytes);
        else if (key->type != WHIT_GGUF_ARRAY && whit_gguf_element_i64(key, 0, &number))
            whit_table_set_i64(meta, name, number);
    }
    return WHIT_OK;
}

static void close_importer(whit_source *source)
{
    struct whit_gguf_importer *importer = source->importer;
    if (!importer) return;
    whit_import_gguf_close_rotation(importer->gguf, &importer->rotation);
    whit_gguf_close(importer->gguf);
    whit_free(source->allocator, importer->tensors, importer->capacity * sizeof *importer->tensors);
    whit_free(source->allocator, importer, sizeof *importer);
    source->importer = NULL;
}

/* Reads the default template, and named templates from keys tokenizer.chat_template.NAME. */
static whit_status read_templates(whit_source *source, const whit_gguf *gguf, whit_error *error)
{
    static const char prefix[] = "tokenizer.chat_template";
    size_t n = strlen(prefix);
    for (size_t i = 0; i < gguf->n_keys; i++) {
        const whit_gguf_key *key = &gguf->keys[i];
        if (key->type != WHIT_GGUF_STRING || key->name_bytes < n || memcmp(key->name, prefix, n) != 0) continue;
        bool named = key->name_bytes > n + 1 && key->name[n] == '.';
        if (!named && key->name_bytes != n) continue;
        const char *name = named ? key->name + n + 1 : "default";
        WHIT_TRY(whit_source_add_template(source, name, named ? key->name_bytes - n - 1 : strlen(name),
                                          (const char *)key->data, key->size_bytes, error));
    }
    return WHIT_OK;
}

/* Refuses files whose general.type says that they are not models. */
static whit_status check_type(const whit_gguf *gguf, const char *path, whit_error *error)
{
    static const struct {
        const char *type, *reason;
    } types[] = {
        {"adapter", "is an adapter, as GGUF; take the PEFT folder that it was made of, and convert it for its model"},
        {"imatrix", "is an importance matrix, not a model; give it to whit compress"},
        {"mmproj", "is the part of a model for images or sound; open the text model that it was published with"},
    };
    const char *type = "";
    size_t n = 0;
    WHIT_TRY(whit_gguf_string(gguf, "general.type", &type, &n, error));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (n == strlen(types[i].type) && memcmp(type, types[i].type, n) == 0)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: %s", path, types[i].reason);
    return WHIT_OK;
}

whit_status whit_import_gguf(whit_source *source, whit_error *error)
{
    struct whit_gguf_importer *importer = whit_zalloc(source->allocator, sizeof *importer);
    if (!importer) return whit_fail_memory(error, "reading the model", sizeof *importer);
    source->importer = importer;
    source->close = close_importer;
    source->write_metadata = write_metadata;
    WHIT_TRY(whit_gguf_open(source->path, source->allocator, &importer->gguf, error));
    const whit_source_options *options = source->options;
    WHIT_TRY(whit_gguf_override(importer->gguf, options->overrides, options->n_overrides, error));
    const whit_gguf *gguf = importer->gguf;
    whit_buf_append_str(&source->notes, whit_gguf_notes(gguf));
    WHIT_TRY(check_type(gguf, source->path, error));

    const char *name = NULL;
    size_t n = 0;
    WHIT_TRY(whit_gguf_string(gguf, "general.architecture", &name, &n, error));
    if (!name)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: key 'general.architecture' is missing: the file is incomplete",
                         source->path);
    const whit_gguf_architecture *architecture = whit_gguf_find_architecture(name, n);
    char unknown[64];
    /* If the architecture is unknown, a family program given by the user defines the computation. */
    whit_gguf_architecture other = {unknown, unknown, .permuted = whit_gguf_is_permuted(name, n)};
    if (!architecture && source->config.program && n && n < sizeof unknown && !memchr(name, 0, n)) {
        snprintf(unknown, sizeof unknown, "%.*s", (int)n, name);
        architecture = &other;
    }
    if (!architecture) return whit_unknown_family(source->path, name, n, error);
    if (!gguf->n_tensors)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: contains no weights, only a vocabulary", source->path);
    whit_gguf_keys keys = {gguf, architecture->name, source->path, error};
    whit_config *config = &source->config;
    WHIT_TRY(read_config(&keys, architecture, config));
    double linear = 0;
    if (!config->n_ropes) {
        linear = config->ropes[0].scaling == WHIT_ROPE_LINEAR ? config->ropes[0].factor : 0;
        config->ropes[0] = (whit_rope){0};
    }
    WHIT_TRY(whit_import_gguf_hadamard(gguf, source, &importer->rotation, error));
    whit_config_name_family(config);
    if (config->hadamard_block && !config->program && !strstr(config->family, "-rotated"))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: rotated matrices are not supported for architecture '%s'",
                         source->path, architecture->name);
    WHIT_TRY(whit_config_check(config, source->path, error));
    if (!config->program) WHIT_TRY(whit_import_gguf_keys(gguf, source, architecture, error));
    WHIT_TRY(whit_import_gguf_tensors(source, importer, architecture, error));
    WHIT_TRY(add_linear_factors(source, importer, linear, error));
    WHIT_TRY(read_templates(source, gguf, error));
    return whit_import_gguf_tokenizer(source, gguf, error);
}
