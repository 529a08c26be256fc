/* SPDX-License-Identifier: MIT
 * The calibration text on its way through a model: the programs of families that are not Llama's, and what a stage of
 * compression is told about the matrices in them. */
#include "compress/rotate.h"
#include "test.h"
#include "tiny_model.h"

#define N_TOKENS 16
#define N_IDS    64

static char model_path[] = "compress_stream.XXXXXX";
static int32_t ids[N_IDS];
static whit_pool *pool;

/* ---- a source that a test changes ---------------------------------------------------------------- */

/* The attention of a layer, with the names of the matrices of keys, values and outputs; it gives a. */
#define ATTENTION(k, v, o)                                                                                             \
    "fn layer(l, x) {\n"                                                                                               \
    "let h = rms_norm(l, \"attn_in\", x, \"attn_norm\", norm_eps)\n"                                                   \
    "let q = rope(l, \"q_rotated\", linear(l, \"q_proj\", h, \"q\", \"\", n_heads * head_dim), head_dim, rope_dim)\n"  \
    "let k = rope(l, \"k_rotated\", linear(l, \"k_proj\", h, \"" k                                                     \
    "\", \"\", n_kv_heads * head_dim), head_dim, rope_dim)\n"                                                          \
    "let v = linear(l, \"v_proj\", h, \"" v "\", \"\", n_kv_heads * head_dim)\n"                                       \
    "let a = attention(l, \"attended\", q, k, v, head_dim, window, 1.0 / sqrt(head_dim))\n"                            \
    "a = linear(l, \"attn_out\", a, \"" o "\", \"\", n_embd)\n"
/* The sum behind the attention, and the feed-forward part f of what `input` names. */
#define RESIDUAL "let y = add(l, \"attn_residual\", x, a)\n"
#define FEED(input)                                                                                                    \
    "h = rms_norm(l, \"ffn_in\", " input ", \"ffn_norm\", norm_eps)\n"                                                 \
    "let g = linear(l, \"gate_proj\", h, \"gate\", \"\", n_ff)\n"                                                      \
    "let u = linear(l, \"up_proj\", h, \"up\", \"\", n_ff)\n"                                                          \
    "let f = linear(l, \"ffn_out\", gated(l, \"gated\", gate, g, u), \"down\", \"\", n_embd)\n"
#define MODEL(table, head)                                                                                             \
    "}\n"                                                                                                              \
    "let x = embed(\"embedded\", \"" table "\", n_vocab)\n"                                                            \
    "for l in 0..n_layers { x = layer(l, x) }\n"                                                                       \
    "x = rms_norm(-1, \"final\", selected(\"last\", x), \"final_norm\", norm_eps)\n"                                   \
    "output(x, linear(-1, \"logits\", x, \"" head "\", \"\", n_vocab))\n"
#define SEQUENTIAL RESIDUAL FEED("y") "return add(l, \"ffn_residual\", y, f)\n"

/* The small model under a program, NULL: its family's own. */
static void open_source(whit_source *source, const char *program)
{
    whit_error error = {0};
    assert_ok(whit_source_open(model_path, NULL, source, &error), error);
    if (program) source->config.program = program;
}

static whit_source_tensor *tensor_named(whit_source *source, const char *name)
{
    for (uint32_t i = 0; i < source->n_tensors; i++)
        if (strcmp(source->tensors[i].name, name) == 0) return &source->tensors[i];
    fail_msg("no tensor '%s'", name);
    return NULL;
}

static void rename_tensor(whit_source *source, const char *from, const char *to)
{
    whit_source_tensor *tensor = tensor_named(source, from);
    snprintf(tensor->name, sizeof tensor->name, "%s", to);
}

static whit_status open_stream(whit_stream *stream, const whit_source *source, const whit_allocator *allocator,
                               whit_error *error)
{
    const whit_source_tensor *embed = whit_source_find(source, "embed");
    return whit_stream_open(stream, source, ids, N_IDS, N_TOKENS, N_IDS, -1, &embed->type, NULL, pool, allocator,
                            error);
}

/* ---- tests ----------------------------------------------------------------------------------------- */

/* Is there a rotation in layer 0 under a program whose matrix of values is `kv`? */
static bool finds_rotation(const char *program)
{
    whit_error error = {0};
    whit_source source;
    whit_stream stream;
    whit_rotation rotation = {0};
    open_source(&source, program);
    rename_tensor(&source, "layers.0.v", "layers.0.kv");
    rename_tensor(&source, "layers.1.v", "layers.1.kv");
    assert_ok(open_stream(&stream, &source, NULL, &error), error);
    assert_ok(whit_stream_load(&stream, 0, &error), error);
    bool found = whit_rotation_find(&stream, &rotation);
    whit_stream_close(&stream);
    whit_source_close(&source);
    return found;
}

static void test_rotation_of_shared_matrices(void **state)
{
    (void)state;
    assert_true(finds_rotation(ATTENTION("k", "kv", "o") SEQUENTIAL MODEL("embed", "head")));
    assert_false(finds_rotation(ATTENTION("kv", "kv", "o") SEQUENTIAL MODEL("embed", "head")));
    assert_false(finds_rotation(ATTENTION("k", "kv", "q") SEQUENTIAL MODEL("embed", "head")));
}

static int set_up(void **state)
{
    (void)state;
    tiny_model model = tiny_model_default();
    for (int i = 0; i < N_IDS; i++) ids[i] = (i * 37 + 5) % TINY_N_VOCAB;
    return tiny_model_make(&model, model_path) != 0 || whit_pool_open(1, NULL, &pool, NULL) != WHIT_OK;
}

static int tear_down(void **state)
{
    (void)state;
    whit_pool_close(pool);
    unlink(model_path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rotation_of_shared_matrices)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
