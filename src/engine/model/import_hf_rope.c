/* SPDX-License-Identifier: MIT
 * Reads RoPE from a config.json: rope_parameters of transformers 5, or rope_theta and rope_scaling of older versions.
 * Scalings become numbers of a RoPE table (rope_scaling.h). The scaling of Llama 3.1, Gemma's proportional scaling, and
 * a linear scaling of all layers become vectors of divisors, as in GGUF files. */
#include "model/import_hf.h"

#include "kernels/math.h"

#include <math.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { SCALING_LLAMA3 = WHIT_ROPE_SCALING_COUNT, SCALING_PROPORTIONAL, N_SCALINGS };

/* Lists the kinds of scaling, each with its fields in addition to type and theta. */
static const struct scaling {
    const char *name;
    uint8_t kind;
    const char *fields[9];
} scalings[] = {
    {"default", WHIT_ROPE_PLAIN, {NULL}},
    {"linear", WHIT_ROPE_LINEAR, {"factor"}},
    {"dynamic",
     WHIT_ROPE_DYNAMIC,
     {"factor", "alpha", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "original_max_position_embeddings"}},
    {"llama3", SCALING_LLAMA3, {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}},
    {"yarn",
     WHIT_ROPE_YARN,
     {"factor", "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow", "mscale",
      "mscale_all_dim", "truncate", "llama_4_scaling_beta"}},
    {"longrope",
     WHIT_ROPE_LONG,
     {"factor", "short_factor", "long_factor", "attention_factor", "original_max_position_embeddings"}},
    {"su",
     WHIT_ROPE_LONG,
     {"factor", "short_factor", "long_factor", "attention_factor", "original_max_position_embeddings"}},
    {"proportional", SCALING_PROPORTIONAL, {"partial_rotary_factor"}},
};

/* Holds the context of reading a RoPE table. */
struct reading {
    struct whit_hf_importer *importer;
    const whit_hf_document *config;
    const char *object; /* path of the JSON object with the table's fields; NULL: there is no such object */
    const struct scaling *scaling;
    whit_config *c;
    uint32_t head_dim;
    whit_error *error;
};

static whit_status get_number(const struct reading *r, const char *name, double *value)
{
    char path[96];
    snprintf(path, sizeof path, "%s.%s", r->object, name);
    return whit_hf_f64(r->config, path, value, r->error);
}

static whit_status get_positive(const struct reading *r, const char *name, double *value)
{
    *value = 0;
    WHIT_TRY(get_number(r, name, value));
    if (*value > 0 && *value < 1e9) return WHIT_OK;
    return whit_json_fail(&r->config->json, whit_hf_node(r->config, r->object), r->error,
                          "%s.%s is missing or not in (0, 1e9)", r->object, name);
}

/* ---- which scaling --------------------------------------------------------------------------- */

/* Returns whether a field has no effect because of its value or of the kind of scaling. */
static bool is_idle(const struct reading *r, uint32_t key)
{
    const whit_json *json = &r->config->json;
    double number = 0;
    bool scales = r->scaling->kind != WHIT_ROPE_PLAIN;
    if (!scales && whit_json_is(json, key, "original_max_position_embeddings")) return true;
    if (whit_json_is(json, key, "partial_rotary_factor") && r->importer->class->rotary_share != 0) return true;
    /* Sections are for pictures: in a text, a token has the same position in all sections. */
    if (whit_json_is(json, key, "mrope_section") || whit_json_is(json, key, "mrope_interleaved")) return true;
    return (whit_json_is(json, key, "partial_rotary_factor") || whit_json_is(json, key, "attention_factor") ||
            (!scales && whit_json_is(json, key, "factor"))) &&
        whit_json_f64(json, key + 1, &number) && number == 1;
}

/* Refuses fields that the kind of scaling does not define, because an unknown field may change the result. */
static whit_status check_fields(const struct reading *r, uint32_t node)
{
    static const char *const always[] = {"type", "rope_type", "rope_theta"};
    const whit_json *json = &r->config->json;
    for (uint32_t key = whit_json_first(json, node); key != WHIT_JSON_NONE; key = whit_json_next(json, node, key)) {
        bool known = whit_hf_is_void(json, key) || is_idle(r, key);
        for (size_t i = 0; i < COUNT(always); i++) known |= whit_json_is(json, key, always[i]);
        for (size_t i = 0; i < COUNT(r->scaling->fields) && r->scaling->fields[i]; i++)
            known |= whit_json_is(json, key, r->scaling->fields[i]);
        if (!known) return whit_json_fail(json, key, r->error, "this kind of RoPE scaling does not have this field");
    }
    return WHIT_OK;
}

static whit_status find_scaling(struct reading *r)
{
    const whit_json *json = &r->config->json;
    const char *type = "default";
    size_t n = strlen(type);
    char path[96];
    r->scaling = &scalings[0];
    if (!r->object) return WHIT_OK;
    uint32_t node = whit_hf_node(r->config, r->object);
    snprintf(path, sizeof path, "%s.type", r->object);
    WHIT_TRY(whit_hf_string(r->config, path, &type, &n, r->error));
    snprintf(path, sizeof path, "%s.rope_type", r->object);
    WHIT_TRY(whit_hf_string(r->config, path, &type, &n, r->error));
    r->scaling = NULL;
    for (size_t i = 0; i < COUNT(scalings); i++)
        if (whit_hf_text_is(type, n, scalings[i].name)) r->scaling = &scalings[i];
    if (!r->scaling)
        return whit_json_fail(json, node, r->error,
                              "RoPE scaling '%.*s' is not supported (linear, dynamic, llama3, yarn and longrope are)",
                              (int)(n < 40 ? n : 40), type);
    return check_fields(r, node);
}

/* ---- vectors of divisors --------------------------------------------------------------------- */

static whit_status new_divisors(const struct reading *r, const char *name, uint32_t n, float **values)
{
    struct whit_hf_importer *importer = r->importer;
    for (size_t i = 0; i < COUNT(importer->divisors); i++) {
        if (importer->divisors[i].name) continue;
        *values = whit_zalloc_array(importer->hf->allocator, n ? n : 1, sizeof **values);
        if (!*values) return whit_fail_memory(r->error, "the list of RoPE factors", n * sizeof **values);
        importer->divisors[i] = (struct whit_hf_divisors){name, *values, n};
        return WHIT_OK;
    }
    return whit_fail(r->error, WHIT_ERROR_UNSUPPORTED,
                     "%s: the model's RoPE scalings need more than 3 lists of factors, the limit (longrope needs two)",
                     r->config->path);
}

void whit_import_hf_free_divisors(struct whit_hf_importer *importer)
{
    for (size_t i = 0; i < COUNT(importer->divisors); i++) {
        struct whit_hf_divisors *divisors = &importer->divisors[i];
        whit_free(importer->hf->allocator, divisors->values, (divisors->n ? divisors->n : 1) * sizeof(float));
        *divisors = (struct whit_hf_divisors){0};
    }
}

/* Reads a list of n divisors from a field and stores it for the tensor `name`. */
static whit_status read_divisors(const struct reading *r, const char *field, const char *name, uint32_t n)
{
    const whit_json *json = &r->config->json;
    char path[96];
    uint32_t i = 0;
    snprintf(path, sizeof path, "%s.%s", r->object, field);
    uint32_t list = whit_hf_node(r->config, path);
    float *values;
    WHIT_TRY(new_divisors(r, name, n, &values));
    for (uint32_t at = whit_json_first(json, list); at != WHIT_JSON_NONE; at = whit_json_next(json, list, at), i++) {
        double number;
        if (!whit_json_f64(json, at, &number) || !(number > 0 && number < 1e9))
            return whit_json_fail(json, at, r->error, "a factor of RoPE is not in (0, 1e9)");
        if (i < n) values[i] = (float)number;
    }
    if (i != n || whit_json_type_of(json, list) != WHIT_JSON_ARRAY)
        return whit_json_fail(json, list == WHIT_JSON_NONE ? whit_hf_node(r->config, r->object) : list, r->error,
                              "%s has %u numbers, but a head has %u pairs", path, i, n);
    return WHIT_OK;
}

static whit_status fill_llama3(const struct reading *r, whit_rope *rope)
{
    whit_rope_llama3 rule = {0};
    WHIT_TRY(get_positive(r, "factor", &rule.factor));
    WHIT_TRY(get_positive(r, "low_freq_factor", &rule.low_freq_factor));
    WHIT_TRY(get_positive(r, "high_freq_factor", &rule.high_freq_factor));
    WHIT_TRY(get_positive(r, "original_max_position_embeddings", &rule.original_context));
    if (rule.high_freq_factor <= rule.low_freq_factor)
        return whit_json_fail(&r->config->json, whit_hf_node(r->config, r->object), r->error,
                              "high_freq_factor must be above low_freq_factor");
    float *values;
    WHIT_TRY(new_divisors(r, "rope_factors", rope->dims / 2, &values));
    whit_rope_llama3_factors(&rule, rope->theta, rope->dims, values);
    rope->has_factors = true;
    return WHIT_OK;
}

/* Computes the divisors of Gemma's proportional RoPE: of all pairs of a head, the leading ones rotate as usual, and the
 * others do not rotate. The divisor of the others is 1e30, as in GGUF files. */
static whit_status fill_proportional(const struct reading *r, whit_rope *rope)
{
    double share = 1;
    WHIT_TRY(get_number(r, "partial_rotary_factor", &share));
    if (!(share >= 0 && share <= 1))
        return whit_json_fail(&r->config->json, whit_hf_node(r->config, r->object), r->error,
                              "RoPE cannot rotate a share of %g of each head", share);
    float *values;
    WHIT_TRY(new_divisors(r, "rope_factors", rope->dims / 2, &values));
    for (uint32_t i = 0; i < rope->dims / 2; i++) values[i] = i < (uint32_t)(share * rope->dims / 2) ? 1 : 1e30f;
    rope->has_factors = true;
    return WHIT_OK;
}

/* ---- numbers of a scaling -------------------------------------------------------------------- */

/* Reads the context before scaling: a field of the scaling, else a field of the configuration (as in Phi's), else the
 * model's own context. */
static whit_status read_length(const struct reading *r, whit_rope *rope)
{
    rope->length = r->c->n_ctx;
    WHIT_TRY(whit_hf_f64(r->config, "original_max_position_embeddings", &rope->length, r->error));
    return get_number(r, "original_max_position_embeddings", &rope->length);
}

static whit_status read_yarn(const struct reading *r, whit_rope *rope)
{
    double one = 0, all = 0, stated = 0, beta = 0;
    rope->beta_fast = 32;
    rope->beta_slow = 1;
    rope->rounds = true;
    char path[96];
    snprintf(path, sizeof path, "%s.truncate", r->object);
    WHIT_TRY(whit_hf_bool(r->config, path, &rope->rounds, r->error));
    WHIT_TRY(get_number(r, "beta_fast", &rope->beta_fast));
    WHIT_TRY(get_number(r, "beta_slow", &rope->beta_slow));
    WHIT_TRY(get_number(r, "mscale", &one));
    WHIT_TRY(get_number(r, "mscale_all_dim", &all));
    WHIT_TRY(get_number(r, "attention_factor", &stated));
    WHIT_TRY(get_number(r, "llama_4_scaling_beta", &beta));
    rope->magnitude = whit_rope_yarn_magnitude(rope->factor, 1);
    if (one != 0 && all != 0)
        rope->magnitude = whit_rope_yarn_magnitude(rope->factor, one) / whit_rope_yarn_magnitude(rope->factor, all);
    if (stated != 0) rope->magnitude = stated;
    r->c->temperature_scale = whit_round_to_f32(beta);
    r->c->temperature_length = beta != 0 ? (uint32_t)fmin(fmax(rope->length, 0), 1e9) : 0;
    return WHIT_OK;
}

static whit_status read_long(const struct reading *r, whit_rope *rope)
{
    double stated = 0;
    rope->factor = r->c->n_ctx / rope->length;
    rope->magnitude = rope->factor > 1 ? sqrt(1 + whit_log_f64(rope->factor) / whit_log_f64(rope->length)) : 1;
    WHIT_TRY(get_number(r, "attention_factor", &stated));
    if (stated != 0) rope->magnitude = stated;
    WHIT_TRY(read_divisors(r, "short_factor", "rope_factors_short", rope->dims / 2));
    return read_divisors(r, "long_factor", "rope_factors_long", rope->dims / 2);
}

/* Reads dynamic scaling. In Hunyuan's form, `alpha` changes theta once and nothing else is scaled; its GGUF files
 * contain the changed theta. */
static whit_status read_dynamic(const struct reading *r, whit_rope *rope)
{
    double alpha = 0;
    WHIT_TRY(get_number(r, "alpha", &alpha));
    if (alpha == 0) return get_positive(r, "factor", &rope->factor);
    if (!(alpha > 0 && alpha < 1e9) || rope->dims < 4)
        return whit_json_fail(&r->config->json, whit_hf_node(r->config, r->object), r->error,
                              "alpha %g is not in (0, 1e9), or RoPE rotates fewer than 4 dimensions", alpha);
    rope->theta = whit_round_to_f32(rope->theta * whit_pow_f64(alpha, rope->dims / (rope->dims - 2.0)));
    rope->scaling = WHIT_ROPE_PLAIN;
    rope->factor = rope->length = 0;
    return WHIT_OK;
}

/* Reads a table. The caller has set rope->dims, and rope->theta to its default. */
static whit_status read_table(struct reading *r, whit_rope *rope)
{
    rope->magnitude = 1;
    WHIT_TRY(find_scaling(r));
    if (r->object) WHIT_TRY(get_number(r, "rope_theta", &rope->theta));
    rope->theta = whit_round_to_f32(rope->theta);
    if (r->scaling->kind == WHIT_ROPE_PLAIN) return WHIT_OK;
    if (r->scaling->kind == SCALING_LLAMA3) return fill_llama3(r, rope);
    if (r->scaling->kind == SCALING_PROPORTIONAL) return fill_proportional(r, rope);
    rope->scaling = r->scaling->kind;
    if (rope->scaling != WHIT_ROPE_LINEAR) WHIT_TRY(read_length(r, rope));
    if (rope->scaling == WHIT_ROPE_LINEAR || rope->scaling == WHIT_ROPE_YARN)
        WHIT_TRY(get_positive(r, "factor", &rope->factor));
    if (rope->scaling == WHIT_ROPE_DYNAMIC) WHIT_TRY(read_dynamic(r, rope));
    if (rope->scaling == WHIT_ROPE_YARN) WHIT_TRY(read_yarn(r, rope));
    if (rope->scaling == WHIT_ROPE_LONG) WHIT_TRY(read_long(r, rope));
    double *const numbers[] = {&rope->factor, &rope->length, &rope->beta_fast, &rope->beta_slow, &rope->magnitude};
    for (size_t i = 0; i < COUNT(numbers); i++) *numbers[i] = whit_round_to_f32(*numbers[i]);
    return WHIT_OK;
}

/* ---- all tables ------------------------------------------------------------------------------ */

/* Reads the number of rotated dimensions of a head: a share of the head size, rounded down to an even number. */
static whit_status read_dims(const struct reading *r, uint32_t *dims)
{
    static const char *const names[] = {"rotary_pct", "partial_rotary_factor", "rope_parameters.partial_rotary_factor"};
    double share = r->importer->class->rotary_share;
    bool is_read = r->c->program || share != 0;
    if (share == 0) share = 1;
    for (size_t i = 0; is_read && i < COUNT(names); i++) WHIT_TRY(whit_hf_f64(r->config, names[i], &share, r->error));
    if (!(share >= 0 && share <= 1))
        return whit_fail(r->error, WHIT_ERROR_FORMAT,
                         "%s: RoPE rotates a share of %g of each head, but it must be from 0 to 1", r->config->path,
                         share);
    *dims = (uint32_t)(share * r->head_dim) / 2 * 2;
    return WHIT_OK;
}

static bool is_object(const whit_hf_document *config, const char *path)
{
    return whit_json_type_of(&config->json, whit_hf_node(config, path)) == WHIT_JSON_OBJECT;
}

/* Reads one table for all layers; or two, if layers with a window have another table than layers that attend to all
 * positions. */
static whit_status read_tables(struct reading *r)
{
    const whit_hf_class *class = r->importer->class;
    whit_config *c = r->c;
    whit_rope *ropes = c->ropes;
    const bool two = is_object(r->config, "rope_parameters.full_attention");
    double theta = class->rope_theta;
    r->object = two ? "rope_parameters.full_attention" : "rope_parameters";
    if (!is_object(r->config, r->object)) r->object = "rope_scaling";
    uint32_t node = whit_hf_node(r->config, r->object);
    if (node == WHIT_JSON_NONE || whit_json_type_of(&r->config->json, node) == WHIT_JSON_NULL)
        r->object = NULL;
    else if (!is_object(r->config, r->object))
        return whit_json_fail(&r->config->json, node, r->error, "%s is not an object", r->object);
    WHIT_TRY(whit_hf_f64(r->config, "rope_theta", &theta, r->error));
    WHIT_TRY(read_dims(r, &ropes[0].dims));
    ropes[0].theta = theta;
    WHIT_TRY(whit_hf_read_u32(r->config, "global_head_dim", false, &ropes[0].dims, r->error));
    WHIT_TRY(read_table(r, &ropes[0]));
    c->n_ropes = 1;
    bool scaled = ropes[0].scaling != WHIT_ROPE_PLAIN || ropes[0].has_factors;
    if (!two && class->local_theta == 0 && !(class->scales_full_only && scaled)) return WHIT_OK;
    c->n_ropes = 2;
    r->object =
        two && is_object(r->config, "rope_parameters.sliding_attention") ? "rope_parameters.sliding_attention" : NULL;
    WHIT_TRY(read_dims(r, &ropes[1].dims));
    ropes[1].theta = class->local_theta != 0 ? class->local_theta : theta;
    if (class->local_theta != 0) WHIT_TRY(whit_hf_f64(r->config, "rope_local_base_freq", &ropes[1].theta, r->error));
    return read_table(r, &ropes[1]);
}

/* Moves a single table without scaling, or with linear scaling, to the scalar fields, which the earliest families
 * have. */
static whit_status settle_tables(struct reading *r)
{
    whit_config *c = r->c;
    const whit_rope rope = c->ropes[0];
    c->rope_theta = rope.theta;
    c->rope_dim = rope.dims;
    for (uint32_t i = 0; i < c->n_ropes; i++) c->rope_factors |= c->ropes[i].has_factors;
    if (c->n_ropes > 1 || rope.scaling > WHIT_ROPE_LINEAR) return WHIT_OK;
    if (rope.scaling == WHIT_ROPE_LINEAR) {
        float *values;
        WHIT_TRY(new_divisors(r, "rope_factors", rope.dims / 2, &values));
        for (uint32_t i = 0; i < rope.dims / 2; i++) values[i] = (float)rope.factor;
        c->rope_factors = true;
    }
    c->n_ropes = 0;
    c->ropes[0] = (whit_rope){0};
    return WHIT_OK;
}

whit_status whit_import_hf_rope(struct whit_hf_importer *importer, whit_config *c, whit_error *error)
{
    struct reading r = {importer, &importer->text, NULL, NULL, c, c->head_dim, error};
    WHIT_TRY(read_tables(&r));
    return settle_tables(&r);
}
