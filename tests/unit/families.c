/* SPDX-License-Identifier: MIT
 * Tests family programs: for every switch they give the same graph as calls in C; what a user's program is not
 * allowed to do; and how long a program takes. */
#include <math.h>

#include "base/clock.h"
#include "model/families.h"
#include "test.h"

/* A made-up model of shapes only: the shape follows from a tensor's name, and there are no weights. */
struct shapes {
    whit_config config;
    char (*names)[WHIT_VALUE_NAME_BYTES];
    whit_tensor_type *types;
    int32_t n;
};
enum { MOST = 4096 };

static int32_t find(void *context, const char *name)
{
    struct shapes *s = context;
    for (int32_t i = s->n; i-- > 0;)
        if (strcmp(s->names[i], name) == 0) return i;
    const whit_config *c = &s->config;
    const char *dot = strrchr(name, '.'), *leaf = dot ? dot + 1 : name;
    bool kv = *leaf == 'k' || *leaf == 'v', ff = strncmp(leaf, "gate", 4) == 0 || strncmp(leaf, "up", 2) == 0;
    uint32_t rows = kv ? c->n_kv_heads * c->head_dim : ff ? c->n_ff : c->n_embd, cols = c->n_embd;
    if (strcmp(leaf, "down") == 0 || strcmp(leaf, "ffn_sub_norm") == 0) cols = c->n_ff;
    if (strcmp(leaf, "o") == 0) cols = c->n_heads * c->head_dim;
    if (strcmp(leaf, "embed") == 0 || strcmp(leaf, "head") == 0) rows = c->n_vocab;
    bool vector = strstr(leaf, "norm") || strstr(leaf, "bias");
    if (strstr(leaf, "bias")) cols = rows;
    if (strcmp(leaf, "q_norm") == 0 || strcmp(leaf, "k_norm") == 0) cols = c->head_dim;
    if (s->n == MOST) return -1;
    snprintf(s->names[s->n], sizeof *s->names, "%s", name);
    s->types[s->n] = vector ? (whit_tensor_type){.n_rows = 1, .n_cols = cols}
                            : (whit_tensor_type){.layout = WHIT_LAYOUT_TILE16, .n_rows = rows, .n_cols = cols};
    return s->n++;
}

static const whit_tensor_type *type_of(void *context, int32_t i)
{
    return &((struct shapes *)context)->types[i];
}

static struct shapes shapes_of(const char *family, uint32_t n_layers)
{
    struct shapes s = {.config = {.n_layers = n_layers,
                                  .n_embd = 64,
                                  .n_ff = 96,
                                  .n_heads = 4,
                                  .n_kv_heads = 2,
                                  .head_dim = 16,
                                  .rope_dim = 16,
                                  .n_vocab = 32,
                                  .n_ctx = 64,
                                  .norm_eps = 1e-5,
                                  .rope_theta = 1e4}};
    snprintf(s.config.family, sizeof s.config.family, "%s", family);
    s.names = calloc(MOST, sizeof *s.names);
    s.types = calloc(MOST, sizeof *s.types);
    assert_true(s.names && s.types);
    return s;
}

static void free_shapes(struct shapes *s)
{
    free(s->names);
    free(s->types);
}

/* ---- the decoder, stated in C ------------------------------------------------------------------- */

static whit_ref layer_in_c(whit_graph *g, const whit_config *c, int layer, whit_ref x)
{
    uint32_t q_width = c->n_heads * c->head_dim, kv_width = c->n_kv_heads * c->head_dim;
    bool bias = c->attn_bias;
    whit_ref h = whit_graph_rms_norm(g, layer, "attn_in", x, "attn_norm", c->norm_eps);
    whit_ref q = whit_graph_linear(g, layer, "q_proj", h, "q", bias ? "q_bias" : NULL, q_width);
    whit_ref k = whit_graph_linear(g, layer, "k_proj", h, "k", bias ? "k_bias" : NULL, kv_width);
    whit_ref v = whit_graph_linear(g, layer, "v_proj", h, "v", bias ? "v_bias" : NULL, kv_width);
    if (c->qk_norm) {
        q = whit_graph_head_norm(g, layer, "q_normed", q, "q_norm", c->head_dim, c->norm_eps);
        k = whit_graph_head_norm(g, layer, "k_normed", k, "k_norm", c->head_dim, c->norm_eps);
    }
    q = whit_graph_rope(g, layer, "q_rotated", q, c->head_dim, c->rope_dim, 0);
    k = whit_graph_rope(g, layer, "k_rotated", k, c->head_dim, c->rope_dim, 0);
    whit_ref a = whit_graph_attention(g, layer, "attended", q, k, v, c->head_dim, c->window, 1.0 / sqrt(c->head_dim));
    if (c->sub_norm) a = whit_graph_rms_norm(g, layer, "attn_sub", a, "attn_sub_norm", c->norm_eps);
    a = whit_graph_linear(g, layer, "attn_out", a, "o", c->out_bias ? "o_bias" : NULL, c->n_embd);
    x = whit_graph_add(g, layer, "attn_residual", x, a);
    h = whit_graph_rms_norm(g, layer, "ffn_in", x, "ffn_norm", c->norm_eps);
    whit_ref gate = whit_graph_linear(g, layer, "gate_proj", h, "gate", c->ffn_bias ? "gate_bias" : NULL, c->n_ff);
    whit_ref up = whit_graph_linear(g, layer, "up_proj", h, "up", c->ffn_bias ? "up_bias" : NULL, c->n_ff);
    h = whit_graph_gate(g, layer, "gated", (whit_gate)c->gate, gate, up);
    if (c->sub_norm) h = whit_graph_rms_norm(g, layer, "ffn_sub", h, "ffn_sub_norm", c->norm_eps);
    h = whit_graph_linear(g, layer, "ffn_out", h, "down", c->ffn_bias ? "down_bias" : NULL, c->n_embd);
    return whit_graph_add(g, layer, "ffn_residual", x, h);
}

static void build_in_c(const whit_config *c, whit_graph *g)
{
    whit_ref x = whit_graph_embed(g, "embedded", "embed", c->n_vocab);
    for (uint32_t layer = 0; layer < c->n_layers; layer++) x = layer_in_c(g, c, (int)layer, x);
    x = whit_graph_select(g, "selected", x);
    x = whit_graph_rms_norm(g, -1, "final", x, "final_norm", c->norm_eps);
    whit_graph_output(g, x, whit_graph_linear(g, -1, "logits", x, c->tied_head ? "embed" : "head", NULL, c->n_vocab));
}

static whit_graph begin(struct shapes *s, whit_error *error)
{
    whit_graph graph;
    whit_graph_begin(&graph, NULL, (whit_resolver){s, find, type_of}, error);
    return graph;
}

/* Returns the text of the program of the library's own families, which is also compiled into it. */
static const char *decoder_text(void)
{
    static char text[16384];
    FILE *in = fopen(WHIT_SOURCE_DIR "/src/engine/model/families/decoder.ndl", "r");
    assert_non_null(in);
    size_t n = fread(text, 1, sizeof text - 1, in);
    fclose(in);
    assert_in_range(n, 1, sizeof text - 2);
    text[n] = 0;
    return text;
}

static void same_graphs(const whit_graph *a, const whit_graph *b)
{
    assert_int_equal(a->n_nodes, b->n_nodes);
    assert_int_equal(a->n_values, b->n_values);
    assert_int_equal(a->output, b->output);
    assert_int_equal(a->hidden, b->hidden);
    assert_memory_equal(a->nodes, b->nodes, a->n_nodes * sizeof *a->nodes);
    assert_memory_equal(a->values, b->values, a->n_values * sizeof *a->values);
}

static void programs_state_what_c_states(void **state)
{
    static const char *const families[] = {"llama", "qwen2", "qwen3", "bitnet"};
    (void)state;
    for (unsigned switches = 0; switches < 256; switches++) {
        struct shapes s = shapes_of(families[switches % 4], 3);
        whit_error error = {0};
        s.config.attn_bias = switches & 1;
        s.config.out_bias = switches & 2;
        s.config.ffn_bias = switches & 4;
        s.config.qk_norm = switches & 8;
        s.config.sub_norm = switches & 16;
        s.config.tied_head = switches & 32;
        s.config.gate = switches & 64 ? WHIT_GATE_RELU2 : WHIT_GATE_SILU;
        s.config.window = switches & 128 ? 24 : 0;
        whit_graph in_c = begin(&s, &error), compiled = begin(&s, &error), by_text = begin(&s, &error);
        build_in_c(&s.config, &in_c);
        assert_ok(whit_graph_finish(&in_c), error);
        assert_ok(whit_family_build(&s.config, &compiled), error);
        s.config.program = decoder_text();
        assert_ok(whit_family_build(&s.config, &by_text), error);
        same_graphs(&in_c, &compiled);
        same_graphs(&in_c, &by_text);
        whit_graph_free(&in_c);
        whit_graph_free(&compiled);
        whit_graph_free(&by_text);
        free_shapes(&s);
    }
}

/* Checks that a program is refused with a line that contains `message`. */
static void refused(const char *program, const char *message)
{
    struct shapes s = shapes_of("any", 1);
    whit_error error = {0};
    whit_graph graph = begin(&s, &error);
    s.config.program = program;
    assert_int_not_equal(whit_family_build(&s.config, &graph), WHIT_OK);
    if (!strstr(error.message, message)) fail_msg("'%s' is not in '%s'", message, error.message);
    whit_graph_free(&graph);
    free_shapes(&s);
}

#define HEAD "let x = embed(\"e\", \"embed\", n_vocab)\n"
#define QKV                                                                                                            \
    "let q = linear(0, \"q\", x, \"q\", \"\", 64)\nlet k = linear(0, \"k\", x, \"k\", \"\", 32)\n"                     \
    "let v = linear(0, \"v\", x, \"v\", \"\", 32)\n"
#define TAIL "x = selected(\"s\", x)\noutput(x, linear(-1, \"logits\", x, \"head\", \"\", n_vocab))\n"

static void programs_reach_nothing_else(void **state)
{
    (void)state;
    refused("", "any: layer 0 has no attention");
    refused(HEAD, "any: layer 0 has no attention");
    refused(HEAD QKV "x = attention(0, \"a\", q, k, v, 16, 0, 0.25)\n", "any: the program ends without output");
    refused(HEAD QKV "x = attention(0, \"a\", q, k, v, 16, 0, 0.25)\noutput(x, x)\n", "any: output(x, logits) takes");
    refused(HEAD QKV "x = attention(0, \"a\", q, k, v, 8, 0, 0.25)\n" TAIL, "heads have at least rope_dim");
    refused(HEAD QKV
            "x = attention(0, \"a\", q, k, v, 16, 0, 0.25)\nx = attention(0, \"b\", q, k, v, 16, 0, 0.25)\n" TAIL,
            "'layers.0.b': a layer can attend only once");
    refused(HEAD "x = selected(\"s\", x)\n" QKV "x = attention(0, \"a\", q, k, v, 16, 0, 0.25)\n" TAIL,
            "attention must come before selected()");
    refused(HEAD QKV "x = attention(0, \"a\", q, k, v, 16, 0, 0.25)\nx = selected(\"t\", x)\n" TAIL,
            "any: 's': rows can be selected only once");
    refused(HEAD "x = rope(0, \"r\", x, 32, 32)\n" TAIL, "all of rope_dim is rotated, or nothing");
    refused(HEAD "x = rope(0, \"r\", x, 32, 8)\n" TAIL, "all of rope_dim is rotated, or nothing");
    refused(HEAD "x = rms_norm(7, \"r\", x, \"norm\", 1e-5)\n" TAIL, "the model does not have that many layers");
    refused("let x = embed(\"e\", \"norm\", 1)\n", "any:1:9: ");
    refused("let x = embed(\"e\", \"embed\", -1)\n", "any:1:9: 'embed': -1 is not a size");
    refused("let x = embed(\"e\", \"embed\", 1 << 40)\n", "any:1:9: 'embed': 1099511627776 is not a size");
    refused(HEAD "for i in 0..1000000 { x = scaled(0, \"x\", x, 1) }\n", "any:2:27: the graph has more than");
    refused("fn f(x) { return f(x + 1) + 1\n}\nlet y = f(1)\n", "any:1:18: the type of 'f' is not known here yet");
    refused("while 1 { }\n", "any:1:1: stopped after");
    refused("let v = vec(1 << 30, 0)\n", "any:1:9: ");
    refused("let t = \"no end\n", "any:1:16: a text must end with");
    refused("let t = \"a\" + \"b\"\n", "any:1:9: an operator needs a value, not a text");
    refused(HEAD "print x\n", "any:2:7: only values can be printed, not a value of the host");
    refused(HEAD "let y = x == x\n", "any:2:9: an operator needs a value, not a value of the host");
    refused(HEAD "let y = -x\n", "any:2:10: '-' needs a value");
    refused("let y = [\"a\"]\n", "any:1:10: an element must be a number, not a text");
    refused("let y = gated(0, \"g\", 0, 1, 2)\n",
            "any:1:9: 'gated' takes an integer, a text, an integer, a value of the host");
}

static void opening_is_quick(void **state)
{
    enum { ROUNDS = 21, IN_C = 0, COMPILED, BY_TEXT, WAYS };
    uint64_t best[WAYS] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct shapes s = shapes_of("llama", 24);
        whit_error error = {0};
        whit_graph warm = begin(&s, &error);
        build_in_c(&s.config, &warm); /* brings the code into the CPU's caches */
        for (int way = 0; way < WAYS; way++) {
            whit_graph graph = begin(&s, &error);
            s.config.program = way == BY_TEXT ? decoder_text() : NULL;
            uint64_t t0 = whit_thread_cpu_ns();
            if (way == IN_C)
                build_in_c(&s.config, &graph);
            else
                assert_ok(whit_family_build(&s.config, &graph), error);
            uint64_t t = whit_thread_cpu_ns() - t0;
            if (t < best[way]) best[way] = t;
            whit_graph_free(&graph);
        }
        whit_graph_free(&warm);
        free_shapes(&s);
    }
    print_message("24 layers: %.0f us by calls in C, %.0f us compiled, %.0f us from text\n", (double)best[IN_C] * 1e-3,
                  (double)best[COMPILED] * 1e-3, (double)best[BY_TEXT] * 1e-3);
#ifdef NDEBUG
    /* reading, checking and running the text must take less than a millisecond */
    assert_true(best[BY_TEXT] < best[IN_C] + 1000000);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_state_what_c_states),
                                       cmocka_unit_test(programs_reach_nothing_else),
                                       cmocka_unit_test(opening_is_quick)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
