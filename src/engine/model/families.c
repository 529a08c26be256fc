/* SPDX-License-Identifier: MIT
 * Builds graphs of model families. Families are programs of the array language (src/engine/model/families,
 * docs/use/arrays.md): they define the forward pass by calls of the functions below. The fields of the configuration
 * are variables of the program. Built-in programs are compiled with the library (families/compile.c); programs of model
 * files are parsed and run when a model is opened.
 *
 * A program may come from an untrusted source: its steps and memory are bounded, and it can access only the graph. */
#include "kernels/codec.h"
#include "kernels/kv_block.h"
#include "kernels/quat/quat.h"
#include "lang/core/lang.h"
#include "model/families.h"
#include "model/families_compiled.h"
#include "model/unknown_family.h"

#include <stdio.h>

#define MAX_STEPS 4000000 /* limit of a program's steps: fifty times those of the largest graph */
#define MAX_BYTES ((size_t)1 << 20)

/* ---- functions of programs -------------------------------------------------------------------- */

enum {
    FN_EMBED,
    FN_RMS_NORM,
    FN_HEAD_NORM,
    FN_LINEAR,
    FN_ROPE,
    FN_ATTENTION,
    FN_CONV,
    FN_DELTA_RULE,
    FN_GATED,
    FN_ADD,
    FN_SCALED,
    FN_SELECTED,
    FN_OUTPUT,
    FN_WHEN,
    FN_KIND,
    FN_TEMPERATURE,
    FN_ATTENTION_SHARED,
    FN_SLICE,
    FN_SOFTCAP,
    FN_SCALED_BY,
    FN_CLAMPED,
    FN_SCALED_ROWS,
    FN_ROUTE,
    FN_DISPATCH,
    FN_EXPERT_LINEAR,
    FN_COMBINE,
    FN_LAYER_NORM,
    FN_ACTIVATED,
    FN_EMBED_POSITIONS,
    FN_EMBED_TYPES,
    FN_ATTENTION_BOTH,
    FN_VECTOR,
    FN_ATTENTION_SINKS,
    FN_JOINED,
    FN_GIVEN,
    FN_ATTENTION_TARGET,
    N_FUNCTIONS
};

/* Names and signatures of the functions: i integer, f float, t text, h value of the graph; the result's type follows
 * ":" (-: no result). If the first argument is an integer, it is the layer, or -1 outside layers (except in `when`).
 * The comments list the arguments. */
const whit_lang_host_function whit_family_functions[N_FUNCTIONS] = {
    [FN_EMBED] = {"embed", "tti:h"},               /* name, table, rows */
    [FN_RMS_NORM] = {"rms_norm", "ithtf:h"},       /* layer, name, x, weight, eps */
    [FN_HEAD_NORM] = {"head_norm", "ithtif:h"},    /* layer, name, x, weight, head size, eps */
    [FN_LINEAR] = {"linear", "ithtti:h"},          /* layer, name, x, weight, bias or "", outputs */
    [FN_ROPE] = {"rope", "ithii:h"},               /* layer, name, x, head size, number of rotated dimensions */
    [FN_ATTENTION] = {"attention", "ithhhiif:h"},  /* layer, name, q, k, v, head size, window, scale */
    [FN_CONV] = {"conv", "ithtii:h"},              /* layer, name, x, weights of the taps, number of taps, 1: SiLU
                                                    * follows */
    [FN_DELTA_RULE] = {"delta_rule", "ithhhtt:h"}, /* layer, name, q k v joined, beta, decay, A, dt */
    [FN_GATED] = {"gated", "itihh:h"},             /* layer, name, gate function, a, b */
    [FN_ADD] = {"add", "ithh:h"},                  /* layer, name, a, b */
    [FN_SCALED] = {"scaled", "ithf:h"},            /* layer, name, x, factor */
    [FN_SELECTED] = {"selected", "th:h"},          /* name, x */
    [FN_OUTPUT] = {"output", "hh:-"},              /* input of the head, logits */
    /* number, text: returns the text if the number is not 0, else "" */
    [FN_WHEN] = {"when", "it:t"},
    [FN_TEMPERATURE] = {"temperature", "ithfi:h"},            /* layer, name, x, factor, length in tokens */
    [FN_KIND] = {"kind", "it:i"},                             /* layer, name of a field of the layer's kind: returns the
                                                               * field */
    [FN_ATTENTION_SHARED] = {"attention_shared", "ithiif:h"}, /* layer, name, q, owner layer, head size, scale */
    [FN_SLICE] = {"slice", "ithii:h"},                        /* layer, name, x, first element, number of elements */
    [FN_SOFTCAP] = {"softcap", "ithf:h"},                     /* layer, name, x, cap */
    [FN_SCALED_BY] = {"scaled_by", "itht:h"},                 /* layer, name, x, weight with one element */
    [FN_CLAMPED] = {"clamped", "ithfi:h"},                    /* layer, name, x, limit, 1: no lower limit */
    [FN_SCALED_ROWS] = {"scaled_rows", "ithh:h"},             /* layer, name, x, gate with one element per row */
    [FN_ROUTE] = {"route", "ithtt:h"},                        /* layer, name, logits, choice vector or "", scales vector
                                                               * or "" */
    [FN_DISPATCH] = {"dispatch", "ithh:h"},                   /* layer, name, x, route */
    [FN_EXPERT_LINEAR] = {"expert_linear", "ithtti:h"},       /* layer, name, x, weight, bias or "", outputs */
    [FN_COMBINE] = {"combine", "ithh:h"},                     /* layer, name, x, route */
    [FN_LAYER_NORM] = {"layer_norm", "ithttf:h"},             /* layer, name, x, weight, bias, eps */
    [FN_ACTIVATED] = {"activated", "ithi:h"},                 /* layer, name, x, activation */
    [FN_EMBED_POSITIONS] = {"embed_positions", "tti:h"},      /* name, table, rows */
    [FN_EMBED_TYPES] = {"embed_types", "tti:h"},              /* name, table, rows */
    /* the same arguments as attention; attends to both sides */
    [FN_ATTENTION_BOTH] = {"attention_both", "ithhhiif:h"},
    [FN_VECTOR] = {"vector", "h:-"},                         /* declares the value from which vectors are pooled */
    [FN_ATTENTION_SINKS] = {"attention_sinks", "iht:h"},     /* layer, attention to which the sinks are added, weight */
    [FN_JOINED] = {"joined", "ithh:h"},                      /* layer, name, a, b */
    [FN_GIVEN] = {"given", "ti:h"},                          /* name, width: rows that the caller writes before a
                                                              * pass */
    [FN_ATTENTION_TARGET] = {"attention_target", "ithif:h"}, /* layer, name, q, head size, scale */
};

const uint32_t whit_family_n_functions = N_FUNCTIONS;

/* Holds what the called functions need while a program runs. */
struct builder {
    whit_graph *graph;
    const whit_config *config;
};

/* Sets *value to one field of a layer's kind. */
static whit_status kind_of(const whit_config *config, int layer, const char *field, int64_t *value, whit_error *error)
{
    if (layer < 0 || (uint32_t)layer >= config->n_layers)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "'kind': the layer is outside the model, which has %u, counted from 0", config->n_layers);
    const whit_layer_kind kind = whit_config_kind(config, (uint32_t)layer);
    if (whit_layer_kind_field(&kind, field, value)) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "'kind': a layer's kind has no field '%.32s'", field);
}

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

/* Returns how the configuration's router chooses experts; choice and scales are names of tensors or NULL. */
static whit_route_shape route_shape(const whit_config *c, const char *choice, const char *scales)
{
    return (whit_route_shape){
        .n_used = c->n_experts_used,
        .flags = (uint8_t)((c->router_sigmoid ? WHIT_ROUTE_SIGMOID : 0) | (c->router_norm ? WHIT_ROUTE_NORM : 0)),
        .added = c->router_norm_eps,
        .factor = c->router_scale != 0 ? c->router_scale : 1,
        .choice = choice,
        .scales = scales};
}

static whit_status call_builtin(void *user, uint32_t function, const whit_lang_argument *a, whit_lang_argument *result,
                                whit_error *error)
{
    const struct builder *builder = user;
    whit_graph *g = builder->graph;
    whit_ref ref = 0;
    /* No integer argument may be negative, because it is a layer, a size, a switch or the number of a value; only a
     * layer may be -1. */
    for (const char *s = whit_family_functions[function].signature, *begin = s; *s != ':'; s++)
        if (*s == 'i' && (a[s - begin].i < -(s == begin) || a[s - begin].i > INT32_MAX))
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%s': %lld is not a size or layer from 0 to 2^31 - 1",
                             whit_family_functions[function].name, (long long)a[s - begin].i);
    if (whit_family_functions[function].signature[0] == 'i' && a[0].i > UINT16_MAX)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%s': %lld is not a layer from 0 to 65535",
                         whit_family_functions[function].name, (long long)a[0].i);
    int layer = (int)a[0].i;
#define SIZE(k) ((uint32_t)a[k].i)
#define REF(k)  ((whit_ref)a[k].i)
    switch (function) {
    case FN_EMBED: ref = whit_graph_embed(g, a[0].text, a[1].text, SIZE(2)); break;
    case FN_EMBED_POSITIONS: ref = whit_graph_embed_by(g, a[0].text, a[1].text, SIZE(2), WHIT_INDEX_POSITION); break;
    case FN_EMBED_TYPES: ref = whit_graph_embed_by(g, a[0].text, a[1].text, SIZE(2), WHIT_INDEX_TYPE); break;
    case FN_LAYER_NORM: ref = whit_graph_layer_norm(g, layer, a[1].text, REF(2), a[3].text, a[4].text, a[5].f); break;
    case FN_ACTIVATED: ref = whit_graph_activate(g, layer, a[1].text, REF(2), SIZE(3)); break;
    case FN_ATTENTION_BOTH:
        ref = whit_graph_attention_both(g, layer, a[1].text, REF(2), REF(3), REF(4), SIZE(5), SIZE(6), a[7].f);
        break;
    case FN_VECTOR: whit_graph_vector(g, REF(0)); break;
    case FN_RMS_NORM: ref = whit_graph_rms_norm(g, layer, a[1].text, REF(2), a[3].text, a[4].f); break;
    case FN_HEAD_NORM:
        ref = whit_graph_head_norm(g, layer, a[1].text, REF(2), or_null(a[3].text), SIZE(4), a[5].f);
        break;
    case FN_LINEAR: ref = whit_graph_linear(g, layer, a[1].text, REF(2), a[3].text, or_null(a[4].text), SIZE(5)); break;
    case FN_ROPE:
        ref = whit_graph_rope(g, layer, a[1].text, REF(2), SIZE(3), SIZE(4),
                              whit_config_kind(builder->config, (uint32_t)layer).rope);
        break;
    case FN_ATTENTION:
        ref = whit_graph_attention(g, layer, a[1].text, REF(2), REF(3), REF(4), SIZE(5), SIZE(6), a[7].f);
        break;
    case FN_CONV: ref = whit_graph_conv(g, layer, a[1].text, REF(2), a[3].text, SIZE(4), a[5].i != 0); break;
    case FN_DELTA_RULE:
        ref = whit_graph_delta(g, layer, a[1].text, REF(2), REF(3), REF(4), a[5].text, a[6].text,
                               (whit_delta_shape){.n_heads = builder->config->delta_heads,
                                                  .n_key_heads = builder->config->delta_key_heads,
                                                  .key_dim = builder->config->delta_key_dim,
                                                  .value_dim = builder->config->delta_value_dim,
                                                  .is_grouped = builder->config->delta_grouped});
        break;
    case FN_GATED: ref = whit_graph_gate(g, layer, a[1].text, (whit_gate)a[2].i, REF(3), REF(4)); break;
    case FN_ADD: ref = whit_graph_add(g, layer, a[1].text, REF(2), REF(3)); break;
    case FN_SCALED: ref = whit_graph_scale(g, layer, a[1].text, REF(2), a[3].f); break;
    case FN_SELECTED: ref = whit_graph_select(g, a[0].text, REF(1)); break;
    case FN_OUTPUT: whit_graph_output(g, REF(0), REF(1)); break;
    case FN_ATTENTION_SHARED:
        ref = whit_graph_attention_shared(g, layer, a[1].text, REF(2), SIZE(3), SIZE(4), a[5].f);
        break;
    case FN_SLICE: ref = whit_graph_slice(g, layer, a[1].text, REF(2), SIZE(3), SIZE(4)); break;
    case FN_SOFTCAP: ref = whit_graph_softcap(g, layer, a[1].text, REF(2), a[3].f); break;
    case FN_SCALED_BY: ref = whit_graph_scale_by(g, layer, a[1].text, REF(2), a[3].text); break;
    case FN_CLAMPED: ref = whit_graph_clamp(g, layer, a[1].text, REF(2), a[3].f, a[4].i != 0); break;
    case FN_SCALED_ROWS: ref = whit_graph_scale_rows(g, layer, a[1].text, REF(2), REF(3)); break;
    case FN_ROUTE:
        ref = whit_graph_route(g, layer, a[1].text, REF(2),
                               route_shape(builder->config, or_null(a[3].text), or_null(a[4].text)));
        break;
    case FN_DISPATCH: ref = whit_graph_dispatch(g, layer, a[1].text, REF(2), REF(3)); break;
    case FN_EXPERT_LINEAR:
        ref = whit_graph_expert_linear(g, layer, a[1].text, REF(2), a[3].text, or_null(a[4].text), SIZE(5));
        break;
    case FN_ATTENTION_SINKS: ref = whit_graph_attention_sinks(g, layer, REF(1), a[2].text); break;
    case FN_JOINED: ref = whit_graph_join(g, layer, a[1].text, REF(2), REF(3)); break;
    case FN_GIVEN:
        if (!SIZE(1) || (SIZE(1) != builder->config->draft_width && SIZE(1) != 2 * builder->config->draft_width))
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "'given': only draft models read rows of another model");
        ref = whit_graph_given(g, a[0].text, SIZE(1));
        break;
    case FN_ATTENTION_TARGET:
        if (!builder->config->draft_width)
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "'attention_target': only draft models read another model's keys");
        ref = whit_graph_attention_target(g, layer, a[1].text, REF(2), SIZE(3), a[4].f);
        break;
    case FN_COMBINE: ref = whit_graph_combine(g, layer, a[1].text, REF(2), REF(3)); break;
    case FN_TEMPERATURE: ref = whit_graph_temperature(g, layer, a[1].text, REF(2), a[3].f, SIZE(4)); break;
    case FN_KIND: return kind_of(builder->config, layer, a[1].text, &result->i, error);
    case FN_WHEN: result->text = a[0].i ? a[1].text : ""; return WHIT_OK;
    default: break;
    }
    result->i = ref;
    if (g->status != WHIT_OK) *error = *g->error;
    return g->status;
}

/* ---- families --------------------------------------------------------------------------------- */

static const struct family {
    const char *name;
    whit_status (*program)(const whit_family_run *run);
    /* one of the earliest families: models with kinds, RoPE tables or optional numbers get another name, which old
     * readers refuse */
    bool is_plain;
} families[] = {
    {"llama", whit_family_decoder, true},
    {"qwen2", whit_family_decoder, true},
    {"qwen3", whit_family_decoder, true},
    {"bitnet", whit_family_decoder, true},
    {WHIT_FAMILY_DECODER, whit_family_decoder},
    {"hybrid", whit_family_hybrid},
    {"gemma3", whit_family_gemma},
    {"gemma4", whit_family_gemma},
    {"decoder-experts", whit_family_decoder},
    {"hybrid-experts", whit_family_hybrid},
    {"gemma4-experts", whit_family_gemma},
    {"gemma4-draft", whit_family_gemma},
    {"hybrid-grouped", whit_family_hybrid},
    {"decoder-rotated", whit_family_decoder},
    {"hybrid-rotated", whit_family_hybrid},
    {"decoder-vectors", whit_family_decoder},
    {"gemma3-vectors", whit_family_gemma},
    {"olmo2", whit_family_olmo},
    {"bert", whit_family_bert},
};

static const struct family *find_family(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strcmp(families[i].name, name) == 0) return &families[i];
    return NULL;
}

static bool family_known(const char *family)
{
    return find_family(family) != NULL;
}

void whit_config_name_family(whit_config *config)
{
    const struct family *family = find_family(config->family);
    char name[WHIT_FAMILY_BYTES];
    if (family && family->is_plain && whit_config_is_extended(config))
        snprintf(config->family, sizeof config->family, "%s", WHIT_FAMILY_DECODER);
    const bool makes_vectors = config->input_norms || config->bidirectional || config->dense_1 || config->n_labels;
    /* The newest extension determines the name's suffix, because a reader that supports it also supports the older
     * ones. */
    const struct {
        bool is_used;
        const char *name;
    } ends[] = {{config->hadamard_block, "rotated"},
                {config->delta_grouped, "grouped"},
                {config->n_experts, "experts"},
                {makes_vectors, "vectors"},
                {config->draft_width, "draft"}};
    const char *end = NULL;
    for (size_t i = 0; !end && i < sizeof ends / sizeof *ends; i++)
        if (ends[i].is_used) end = ends[i].name;
    if (!end || snprintf(name, sizeof name, "%s-%s", config->family, end) >= (int)sizeof name) return;
    if (family_known(name)) memcpy(config->family, name, sizeof name);
}

static whit_status declare(whit_lang *lang, const whit_config *config, whit_error *error)
{
    whit_config_number number;
    for (size_t i = 0; whit_config_number_at(config, i, &number); i++) {
        WHIT_TRY(whit_lang_declare(lang, number.key, number.is_float ? WHIT_LANG_FLOAT : WHIT_LANG_INT, error));
        WHIT_TRY(number.is_float ? whit_lang_set_float(lang, number.key, number.f, error)
                                 : whit_lang_set_int(lang, number.key, number.i, error));
    }
    return WHIT_OK;
}

/* Refuses graphs that violate assumptions of the executor. The programs of model files are checked; built-in programs
 * meet the assumptions. */
static whit_status check_graph(const char *name, const whit_config *c, const whit_graph *graph, whit_error *error)
{
#define VALUE(ref) (graph->values[(ref)-1])
    bool attends[WHIT_MAX_LAYERS] = {false};
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        const whit_node *node = &graph->nodes[i];
        const char *made = VALUE(node->output).name, *why = NULL;
        if (node->layer >= c->n_layers) why = "the model does not have that many layers";
        if (node->op == WHIT_OP_EMBED) {
            const uint32_t n_rows[] = {[WHIT_INDEX_ID] = c->n_vocab,
                                       [WHIT_INDEX_POSITION] = c->n_positions,
                                       [WHIT_INDEX_TYPE] = c->n_token_types};
            if (graph->resolver.type(graph->resolver.context, node->weight)->n_rows != n_rows[node->gate])
                why = "a table has n_vocab rows of tokens, n_positions of positions or n_token_types of types";
        }
        /* All of a RoPE table's dimensions must be rotated, or none: with fewer, cosines would be read as sines. */
        const whit_layer_kind kind = whit_config_kind(c, node->layer);
        if (node->op == WHIT_OP_ROPE && node->rotary && node->rotary != whit_config_rope(c, kind.rope).dims)
            why = "all of rope_dim is rotated, or nothing (0)";
        if (node->op == WHIT_OP_SELECT && VALUE(node->input[0]).rows != WHIT_ROWS_BATCH)
            why = "rows can be selected only once";
        if (node->op == WHIT_OP_ATTENTION) {
            if (node->head_dim < 2 || node->head_dim < kind.rope_dim || node->head_dim > WHIT_KV_MAX_HEAD_DIM)
                why = "heads have at least rope_dim and 2 dimensions, and not over 1,024";
            if (node->layer < c->n_layers) {
                if (attends[node->layer]) why = "a layer can attend only once";
                attends[node->layer] = true;
            }
            if (VALUE(node->output).width > WHIT_MAX_COLS) why = "the queries are too wide";
            if (node->is_bidirectional != c->bidirectional)
                why = "all layers of a bidirectional model attend to both sides";
            for (int k = 0; k < 3; k++)
                if (VALUE(node->input[k]).rows != WHIT_ROWS_BATCH) why = "attention must come before selected()";
        }
        if ((node->op == WHIT_OP_CONV || node->op == WHIT_OP_DELTA) && VALUE(node->input[0]).rows != WHIT_ROWS_BATCH)
            why = "recurrent layers must come before selected()";
        if (node->op == WHIT_OP_ATTENTION_SHARED && node->layer < c->n_layers) {
            if (attends[node->layer]) why = "a layer can attend only once";
            attends[node->layer] = true;
        }
        if (why) return whit_fail(error, WHIT_ERROR_FORMAT, "%s: '%s': %s", name, made, why);
    }
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (!attends[i] && whit_config_kind(c, i).mixer == WHIT_MIXER_ATTENTION)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: layer %u has no attention", name, i);
    if (graph->vector && VALUE(graph->vector).rows != WHIT_ROWS_SELECTED)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: vector(x) needs a value of selected rows", name);
    if (!graph->output && graph->vector) return WHIT_OK;
    if (!graph->output)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the program ends without output(x, logits) or vector(x)", name);
    if (VALUE(graph->output).width != c->n_vocab || VALUE(graph->output).rows != WHIT_ROWS_SELECTED || !graph->hidden ||
        VALUE(graph->hidden).width != c->n_embd || VALUE(graph->hidden).rows != WHIT_ROWS_SELECTED)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: output(x, logits) takes n_embd and n_vocab elements of selected rows", name);
    return WHIT_OK;
}

static whit_status run_program(const char *name, const char *program, const whit_config *config, whit_graph *graph,
                               whit_error *error)
{
    whit_quat_kernels quat;
    whit_lang *lang;
    const whit_cpu any = {0}; /* generic kernels run on every CPU; speed does not matter here */
    WHIT_TRY(whit_quat_select(&any, NULL, &quat, error));
    struct builder builder = {graph, config};
    const whit_lang_host host = {whit_family_functions, N_FUNCTIONS, call_builtin, &builder};
    const whit_lang_options options = {.max_steps = MAX_STEPS,
                                       .max_bytes = MAX_BYTES,
                                       .tier = WHIT_LANG_WALK,
                                       .quat = &quat,
                                       .host = &host,
                                       .allocator = graph->allocator};
    WHIT_TRY(whit_lang_open(&options, &lang, error));
    whit_status status = declare(lang, config, error);
    if (status == WHIT_OK) status = whit_lang_load(lang, name, program, strlen(program), error);
    if (status == WHIT_OK) status = whit_lang_run(lang, error);
    whit_lang_close(lang);
    return status;
}

/* Runs a built-in program, which was compiled into the library. */
static whit_status run_compiled(const struct family *family, const whit_config *config, whit_graph *graph,
                                whit_error *error)
{
    enum { FIELDS_MAX = 128 };
    whit_lang_argument fields[FIELDS_MAX] = {0};
    whit_config_number number;
    for (size_t i = 0; i < FIELDS_MAX && whit_config_number_at(config, i, &number); i++)
        fields[i] = number.is_float ? (whit_lang_argument){.f = number.f} : (whit_lang_argument){.i = number.i};
    struct builder builder = {graph, config};
    return family->program(&(whit_family_run){fields, call_builtin, &builder, error});
}

/* Refuses a file whose configuration and family program disagree on bidirectional attention, because sessions rely on
 * the configuration. */
static whit_status check_sides(const whit_config *config, const whit_graph *graph, whit_error *error)
{
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].op == WHIT_OP_ATTENTION && graph->nodes[i].is_bidirectional != config->bidirectional)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "the file contradicts its family: in models of family '%s' tokens attend to %s",
                             config->family, config->bidirectional ? "earlier tokens only" : "both sides");
    return WHIT_OK;
}

whit_status whit_family_build(const whit_config *config, whit_graph *graph)
{
    const struct family *family = find_family(config->family);
    whit_error own, error = {0};
    if (!graph->error) graph->error = &own;
    graph->hadamard_block = config->hadamard_block;
    graph->hadamard_matrices = config->hadamard_matrices;
    graph->hadamard_layers = config->n_layers;
    graph->hadamard_signs = config->hadamard_signs;
    if (config->program) {
        const char *name = config->program_name ? config->program_name : config->family;
        graph->status = run_program(name, config->program, config, graph, &error);
        if (graph->status == WHIT_OK) graph->status = check_graph(name, config, graph, &error);
        if (graph->status == WHIT_ERROR_ARGUMENT && !config->program_name)
            /* the program is part of a file, so its errors are errors of the file */
            graph->status = error.status = WHIT_ERROR_FORMAT;
        if (graph->status != WHIT_OK) *graph->error = error;
    } else if (!family)
        graph->status = whit_fail(graph->error, WHIT_ERROR_UNSUPPORTED,
                                  "model family '%s' is not known (known: " WHIT_KNOWN_FAMILIES ")", config->family);
    else if (family->is_plain && whit_config_is_extended(config))
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT,
                      "the file has layers, RoPE tables or numbers that its family '%s' does not use", config->family);
    else {
        /* A built-in program has no source file, so the graph's errors are reported without a line. */
        whit_status status = run_compiled(family, config, graph, &error);
        if (graph->status == WHIT_OK && status != WHIT_OK) {
            graph->status = status;
            *graph->error = error;
        }
        if (graph->status == WHIT_OK) graph->status = check_sides(config, graph, graph->error);
    }
    return whit_graph_finish(graph);
}
