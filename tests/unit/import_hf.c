/* SPDX-License-Identifier: MIT
 * Tests Hugging Face folders that the project writes itself: they are converted and run; the same model in different
 * storage forms has one identity; unknown settings are refused by name. */
#include "test.h"

#include <math.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/half.h"
#include "format/hf.h"
#include "format/ndf.h"
#include "model/convert.h"
#include "model/export_gguf.h"
#include "model_folder.h"

static char root[64];

static const char *in_root(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/whit-import-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static folder_model reduced(const char *name)
{
    const folder_model *model = folder_find(name);
    assert_non_null(model);
    return folder_reduce(model, 2, 8, 300);
}

static void write_folder(const folder_model *model, const char *name)
{
    assert_true(folder_write(model, in_root(name), 7, NULL, NULL));
}

/* Replaces the first `from` in a text file of the folder by `to`. */
static void edit(const char *file, const char *from, const char *to)
{
    whit_error error;
    whit_buf text = {0}, changed = {0};
    assert_ok(whit_read_file(in_root(file), 64 << 20, &text, &error), error);
    whit_buf_append_zeros(&text, 1);
    char *at = strstr((char *)text.data, from);
    assert_non_null(at);
    whit_buf_append(&changed, text.data, (size_t)((uint8_t *)at - text.data));
    whit_buf_append_str(&changed, to);
    whit_buf_append_str(&changed, at + strlen(from));
    assert_ok(whit_write_file(in_root(file), changed.data, changed.size_bytes, &error), error);
    whit_buf_free(&text);
    whit_buf_free(&changed);
}

enum { N_TOKENS = 5 };

/* Returns the logits (n_vocab) of the last of a few tokens; the caller frees them. */
static float *run(const char *path, uint32_t *n_vocab, uint8_t identity[32])
{
    whit_error error;
    whit_model *model;
    whit_session *session;
    whit_model_options model_options = {.struct_bytes = sizeof model_options, .no_cache = true};
    assert_ok(whit_model_open(path, &model_options, &model, &error), error);
    whit_session_options options = whit_session_options_default();
    options.n_threads = 1;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    whit_step_token tokens[N_TOKENS];
    for (int i = 0; i < N_TOKENS; i++)
        tokens[i] = (whit_step_token){.id = 40 + 17 * i, .want_logits = i == N_TOKENS - 1};
    assert_ok(whit_session_step(session, tokens, N_TOKENS, &error), error);
    *n_vocab = whit_model_vocab_size(model);
    float *logits = malloc(*n_vocab * sizeof *logits);
    assert_non_null(logits);
    memcpy(logits, whit_session_logits(session, 0), *n_vocab * sizeof *logits);
    if (identity) memcpy(identity, whit_model_identity(model), 32);
    whit_session_close(session);
    whit_model_close(model);
    return logits;
}

static void convert(const char *from, const char *to, const whit_convert_options *options)
{
    whit_error error;
    whit_source source;
    whit_ndf_writer *writer;
    assert_ok(whit_source_open(from, NULL, &source, &error), error);
    assert_ok(whit_ndf_writer_open(to, NULL, NULL, &writer, &error), error);
    assert_ok(whit_convert(&source, options, writer, &error), error);
    whit_ndf_writer_close(writer);
    whit_source_close(&source);
}

static void assert_refused(const char *folder, const char *first, const char *second)
{
    whit_error error;
    whit_source source;
    whit_status status = whit_source_open(in_root(folder), NULL, &source, &error);
    assert_int_not_equal(status, WHIT_OK);
    if (!strstr(error.message, first) || !strstr(error.message, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error.message, first, second);
}

static void published_models_run(void **state)
{
    (void)state;
    for (int i = 0; folder_names[i]; i++) {
        folder_model model = reduced(folder_names[i]);
        write_folder(&model, model.name);
        uint32_t n_vocab;
        float *logits = run(in_root(model.name), &n_vocab, NULL);
        assert_int_equal(n_vocab, 300);
        for (uint32_t k = 0; k < n_vocab; k++) assert_true(isfinite(logits[k]));
        free(logits);
    }
}

/* Opens the same ternary weights packed in U8, as I8, and as floats (scale 1) that are recognised as ternary. */
static void ternary_clothes(void **state)
{
    (void)state;
    uint32_t n_vocab;
    folder_model model = reduced("bitnet-2b4t");
    uint8_t multiplied[32], divided[32], again[32];
    write_folder(&model, "packed");
    free(run(in_root("packed"), &n_vocab, multiplied));
    /* If weight_scale divides instead of multiplying, the model is another; quantization_mode does not decide that. */
    edit("packed/config.json", "autobitlinear", "bitlinear");
    free(run(in_root("packed"), &n_vocab, divided));
    assert_memory_not_equal(multiplied, divided, 32);
    edit("packed/config.json", "\"linear_class\": \"bitlinear\", \"quantization_mode\": \"offline\"",
         "\"modules_to_not_convert\": null");
    free(run(in_root("packed"), &n_vocab, again));
    assert_memory_equal(again, divided, 32);

    model.weights = FOLDER_TERNARY;
    write_folder(&model, "floats");
    free(run(in_root("floats"), &n_vocab, again));
    convert(in_root("floats"), in_root("floats.ndf"), &(whit_convert_options){0});
    whit_error error;
    whit_ndf *file;
    assert_ok(whit_ndf_open(in_root("floats.ndf"), NULL, &file, &error), error);
    const whit_tensor_type *type = whit_ndf_tensor_type(file, (uint32_t)whit_ndf_find(file, "layers.0.q"));
    assert_int_equal(type->codec, WHIT_CODEC_T5);
    assert_int_equal(type->act, WHIT_TENSOR_ACT_TOKEN);
    assert_true(type->scale == 0.03125f);
    whit_ndf_close(file);

    model.weights = FOLDER_I8;
    write_folder(&model, "bytes");
    free(run(in_root("bytes"), &n_vocab, again));
}

static float scale_of(const char *folder, const char *name, double *mean)
{
    whit_error error;
    whit_source source;
    assert_ok(whit_source_open(in_root(folder), NULL, &source, &error), error);
    const whit_source_tensor *tensor = whit_source_find(&source, name);
    float scale = tensor->type.scale;
    int8_t codes[4096];
    assert_int_equal(tensor->type.codec, WHIT_CODEC_T5);
    assert_ok(tensor->read_row(tensor, 0, &(whit_rows){.elems = codes}, &error), error);
    double sum = 0;
    for (uint32_t k = 0; k < tensor->type.n_cols; k++) sum += codes[k] * codes[k];
    *mean = sum / tensor->type.n_cols;
    whit_source_close(&source);
    return scale;
}

/* The weights w are uniform between -w_max and w_max = sqrt(3 / n): the mean of |w| is w_max / 2, and for three
 * quarters of them |w| is above half the mean, w_max / 4. */
static void latent_weights_are_rounded_online(void **state)
{
    (void)state;
    double share;
    folder_model model = reduced("bitnet-2b4t-bf16");
    write_folder(&model, "latent");
    float scale = scale_of("latent", "layers.0.q", &share);
    double expected = sqrt(3.0 / model.hidden) / 2;
    assert_true(fabs(scale / expected - 1) < 0.02);
    assert_true(share > 0.6 && share < 0.9);
    edit("latent/config.json", "\"online\"", "\"offline\"");
    assert_refused("latent", "model.layers.0.mlp.down_proj.weight", "latent");
    model = reduced("1bitllm-3b");
    write_folder(&model, "1bitllm");
    scale = scale_of("1bitllm", "layers.1.down", &share);
    assert_true(fabs(scale / (sqrt(3.0 / model.intermediate) / 2) - 1) < 0.02);
    edit("1bitllm/config.json", "\"weight_bits\": 1", "\"weight_bits\": 2");
    assert_refused("1bitllm", "weight_bits", "config.json:1:");
}

static void embeddings_are_tied_as_they_lie(void **state)
{
    (void)state;
    uint32_t n_vocab;
    uint8_t both[32], only_embed[32], only_head[32];
    folder_model model = reduced("qwen3-0.6b");
    write_folder(&model, "both");
    free(run(in_root("both"), &n_vocab, both));
    model.head = false;
    write_folder(&model, "embed");
    free(run(in_root("embed"), &n_vocab, only_embed));
    model.head = true;
    model.embed = false;
    write_folder(&model, "head");
    free(run(in_root("head"), &n_vocab, only_head));
    assert_memory_equal(both, only_embed, 32);
    assert_memory_equal(both, only_head, 32);
    edit("head/config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
    assert_refused("head", "model.embed_tokens.weight", "missing");
    edit("embed/config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
    assert_refused("embed", "lm_head.weight", "tie_word_embeddings");
    model = reduced("tinyllama-1.1b");
    write_folder(&model, "untied");
    edit("untied/config.json", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
    assert_refused("untied", "lm_head.weight", "differ");
}

static void rope_is_scaled(void **state)
{
    (void)state;
    whit_error error;
    whit_source source;
    folder_model model = reduced("llama-3.2-1b");
    write_folder(&model, "rope");
    assert_ok(whit_source_open(in_root("rope"), NULL, &source, &error), error);
    const whit_source_tensor *factors = whit_source_find(&source, "rope_factors");
    float values[64];
    assert_true(source.config.rope_factors && factors && factors->type.n_cols == source.config.rope_dim / 2);
    assert_ok(factors->read_row(factors, 0, &(whit_rows){.elems = values}, &error), error);
    assert_true(values[0] == 1 && values[factors->type.n_cols - 1] == 32);
    for (uint32_t i = 1; i < factors->type.n_cols; i++) assert_true(values[i] >= values[i - 1]);
    whit_source_close(&source);
    edit("rope/config.json", "\"factor\": 32.0", "\"factor\": 32.0, \"beta_fast\": 32");
    assert_refused("rope", "RoPE", "config.json:1:");
    edit("rope/config.json", "llama3", "alibi");
    assert_refused("rope", "'alibi'", "llama3");
}

static void fields_decide(void **state)
{
    static const struct {
        const char *from, *to, *first, *second; /* first is NULL: the file is accepted */
    } cases[] = {
        {"\"use_cache\": true", "\"use_cache\": true, \"unheard_of\": null", NULL, NULL},
        {"\"use_cache\": true", "\"use_cache\": true, \"_anything\": 3", NULL, NULL},
        {"\"use_cache\": true", "\"use_cache\": true, \"num_experts\": 0", NULL, NULL},
        {"\"use_cache\": true", "\"use_cache\": true, \"partial_rotary_factor\": 1.0", NULL, NULL},
        {"\"use_cache\": true", "\"use_cache\": true, \"is_causal\": true, \"causal\": null", NULL, NULL},
        {"\"use_cache\": true", "\"use_cache\": true, \"is_causal\": false", "is_causal", "both sides"},
        {"\"use_cache\": true", "\"use_cache\": true, \"causal\": false", "causal", "both sides"},
        {"\"use_cache\": true",
         "\"use_cache\": true, \"rope_parameters\": {\"rope_type\": \"default\", \"factor\": 1.0, \"_made_by\": 3, "
         "\"attention_factor\": 1.0, \"original_max_position_embeddings\": 2048, \"beta_fast\": null}",
         NULL, NULL},
        {"\"use_cache\": true",
         "\"use_cache\": true, \"rope_parameters\": {\"rope_type\": \"default\", \"attention_factor\": 1.5}", "RoPE",
         "config.json:1:"},
        {"\"use_cache\": true", "\"use_cache\": true, \"unheard_of\": 2", "unheard_of", "config.json:1:"},
        {"\"use_cache\": true", "\"use_cache\": true, \"num_experts\": 8", "num_experts", "experts"},
        {"\"use_cache\": true", "\"use_cache\": true, \"partial_rotary_factor\": 0.5", "partial_rotary_factor", "part"},
        {"\"use_cache\": true", "\"use_cache\": true, \"logit_scale\": 0.0625", "logit_scale", "logits"},
        {"\"use_cache\": true", "\"use_cache\": true, \"residual_multiplier\": 0.22", "residual_multiplier",
         "residuals"},
        {"\"use_cache\": true", "\"use_cache\": true, \"attn_logit_softcapping\": 50.0", "softcapping", "scores"},
        {"\"use_cache\": true", "\"use_cache\": true, \"quantization_config\": {\"quant_method\": \"hqq\"}", "'hqq'",
         "bitnet"},
        {"\"silu\"", "\"gelu\"", "hidden_act", "'gelu'"},
        {"LlamaForCausalLM", "MixtralForCausalLM", "MixtralForCausalLM", "mixture of experts"},
        {"LlamaForCausalLM", "NovelForCausalLM", "NovelForCausalLM", "known: Llama"},
        {"LlamaForCausalLM", "LlamaForSequenceClassification", "LlamaForSequenceClassification", "continues"},
        {"\"num_attention_heads\": 8", "\"num_attention_heads\": 0", "num_attention_heads", "missing"},
        {"\"hidden_size\": 256", "\"hidden_size\": \"wide\"", "hidden_size", "config.json:1:"},
        {"\"hidden_size\": 256", "\"hidden_size\": 128", "layers.0.", "128"},
        {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1", "model.layers.1.", "1 layers"},
        {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", "layers.2.", ""},
        {"\"attention_bias\": false", "\"attention_bias\": true", "q_bias", ""},
    };
    (void)state;
    folder_model model = reduced("tinyllama-1.1b");
    whit_buf text = {0};
    whit_error error;
    write_folder(&model, "fields");
    edit("fields/config.json", "\"hidden_size\"", "\"hidden_size\"");
    assert_ok(whit_read_file(in_root("fields/config.json"), 1 << 20, &text, &error), error);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(whit_write_file(in_root("fields/config.json"), text.data, text.size_bytes, &error), error);
        edit("fields/config.json", cases[i].from, cases[i].to);
        if (cases[i].first) {
            assert_refused("fields", cases[i].first, cases[i].second);
            continue;
        }
        whit_source source;
        assert_ok(whit_source_open(in_root("fields"), NULL, &source, &error), error);
        whit_source_close(&source);
    }
    whit_buf_free(&text);
}

/* Adds an entry to the header of a safetensors file; its data is empty or the first bytes of other tensors. */
static void add_tensor(const char *file, const char *entry)
{
    whit_error error;
    whit_buf old = {0}, new = {0};
    uint64_t header_bytes;
    assert_ok(whit_read_file(in_root(file), 64 << 20, &old, &error), error);
    memcpy(&header_bytes, old.data, 8);
    const uint8_t *end = memrchr(old.data + 8, '}', (size_t)header_bytes);
    assert_non_null(end);
    whit_buf_append_zeros(&new, 8);
    whit_buf_append(&new, old.data + 8, (size_t)(end - old.data) - 8);
    whit_buf_append_str(&new, entry);
    whit_buf_append_str(&new, "}");
    uint64_t longer = new.size_bytes - 8;
    memcpy(new.data, &longer, 8);
    whit_buf_append(&new, old.data + 8 + header_bytes, old.size_bytes - 8 - (size_t)header_bytes);
    assert_ok(whit_write_file(in_root(file), new.data, new.size_bytes, &error), error);
    whit_buf_free(&old);
    whit_buf_free(&new);
}

/* Fields of trainers and publishers are named in one note, and refused when the reading is strict. */
static void describing_fields_are_noted(void **state)
{
    (void)state;
    whit_error error;
    whit_source source;
    folder_model model = reduced("llama-3.2-1b");
    write_folder(&model, "noted");
    edit("noted/config.json", "\"use_cache\": true",
         "\"use_cache\": true, \"license\": \"mit\", \"base_model\": \"x/y\", \"is_llama_config\": true, "
         "\"neftune_noise_alpha\": 5, \"kv_cache_dtype\": \"fp8\", \"attn_implementation\": \"eager\", "
         "\"training_args\": {\"rope\": 1}");
    assert_ok(whit_source_open(in_root("noted"), NULL, &source, &error), error);
    static const whit_source_options strict = {.is_strict = true};
    static const char note[] = "ignored: license, base_model, is_llama_config, neftune_noise_alpha, kv_cache_dtype, "
                               "attn_implementation, training_args\n";
    assert_non_null(memmem(source.notes.data, source.notes.size_bytes, note, strlen(note)));
    whit_source_close(&source);
    assert_int_equal(whit_source_open_as(in_root("noted"), &strict, NULL, &source, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "'license'"));
    edit("noted/config.json", "\"license\"", "\"rope_license\"");
    assert_refused("noted", "rope_license", "may change the result");
}

/* A tensor without elements is ignored; an unknown one with elements is refused. */
static void unused_tensors(void **state)
{
    (void)state;
    folder_model model = reduced("tinyllama-1.1b");
    whit_source source;
    whit_error error;
    write_folder(&model, "unused");
    add_tensor("unused/model.safetensors",
               ", \"model.left_over\": {\"dtype\": \"F32\", \"shape\": [0], "
               "\"data_offsets\": [0, 0]}");
    add_tensor("unused/model.safetensors",
               ", \"model.inv_freq\": {\"dtype\": \"F32\", \"shape\": [0, 3], "
               "\"data_offsets\": [0, 0]}");
    assert_ok(whit_source_open(in_root("unused"), NULL, &source, &error), error);
    whit_source_close(&source);
    add_tensor("unused/model.safetensors",
               ", \"model.norm.bias\": {\"dtype\": \"U8\", \"shape\": [], "
               "\"data_offsets\": [0, 1]}");
    assert_int_not_equal(whit_source_open(in_root("unused"), NULL, &source, &error), WHIT_OK);
    whit_source_close(&source);
}

/* Checks the windows of the two layers of a folder, and that its family is the decoder. */
static void has_windows(const char *folder, uint32_t first, uint32_t second)
{
    whit_error error;
    whit_source source;
    assert_ok(whit_source_open(in_root(folder), NULL, &source, &error), error);
    assert_string_equal(source.config.family, WHIT_FAMILY_DECODER);
    assert_int_equal(whit_config_kind(&source.config, 0).window, first);
    assert_int_equal(whit_config_kind(&source.config, 1).window, second);
    whit_source_close(&source);
}

static void windows(void **state)
{
    (void)state;
    whit_error error;
    whit_source source;
    folder_model model = reduced("mistral-7b-v0.1");
    write_folder(&model, "window");
    assert_ok(whit_source_open(in_root("window"), NULL, &source, &error), error);
    assert_int_equal(source.config.window, 4096);
    assert_string_equal(source.config.family, "llama");
    whit_source_close(&source);
    edit("window/config.json", "\"sliding_window\": 4096", "\"sliding_window\": null");
    assert_ok(whit_source_open(in_root("window"), NULL, &source, &error), error);
    assert_int_equal(source.config.window, 0);
    whit_source_close(&source);
    model = reduced("qwen2.5-0.5b");
    write_folder(&model, "mixed");
    edit("mixed/config.json", "\"use_sliding_window\": false", "\"use_sliding_window\": true");
    edit("mixed/config.json", "\"sliding_window\": 32768", "\"sliding_window\": 1024");
    edit("mixed/config.json", "\"max_window_layers\": 21", "\"max_window_layers\": 1");
    has_windows("mixed", 0, 1024);
    edit("mixed/config.json", "\"max_window_layers\": 1", "\"max_window_layers\": 0");
    assert_ok(whit_source_open(in_root("mixed"), NULL, &source, &error), error);
    assert_int_equal(source.config.window, 1024);
    whit_source_close(&source);
    edit("mixed/config.json", "\"use_cache\": true",
         "\"use_cache\": true, \"layer_types\": [\"sliding_attention\", \"full_attention\"]");
    has_windows("mixed", 1024, 0);
    edit("mixed/config.json", "[\"sliding_attention\", ", "[");
    assert_refused("mixed", "layer_types has 1 entries, but the model has 2 layers", "config.json");
}

/* If use_sliding_window is true, Qwen's classes have a window of 4,096 from layer 28 on by default. */
static void windows_by_default(void **state)
{
    static const struct {
        const char *name, *window, *layers; /* fields of config.json */
    } cases[] = {{"qwen2.5-0.5b", "\"sliding_window\": 32768, ", "\"max_window_layers\": 21"},
                 {"qwen3-0.6b", "\"sliding_window\": null, ", "\"max_window_layers\": 28"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_error error;
        whit_source source;
        folder_model model = reduced(cases[i].name);
        write_folder(&model, "default");
        edit("default/config.json", "\"use_sliding_window\": false", "\"use_sliding_window\": true");
        edit("default/config.json", cases[i].window, "");
        edit("default/config.json", cases[i].layers, "\"max_window_layers\": 0");
        assert_ok(whit_source_open(in_root("default"), NULL, &source, &error), error);
        assert_int_equal(source.config.window, 4096);
        whit_source_close(&source);
        edit("default/config.json", "\"max_window_layers\": 0, ", ""); /* both layers are below 28 */
        assert_ok(whit_source_open(in_root("default"), NULL, &source, &error), error);
        assert_int_equal(source.config.window, 0);
        whit_source_close(&source);
    }
}

static void biases_everywhere(void **state)
{
    (void)state;
    uint32_t n_vocab;
    folder_model model = reduced("llama-3.2-1b");
    model.qkv_bias = model.out_bias = model.mlp_bias = true;
    write_folder(&model, "biases");
    assert_refused("biases", "_bias'", "is not used");
    edit("biases/config.json", "\"attention_bias\": false", "\"attention_bias\": true");
    edit("biases/config.json", "\"mlp_bias\": false", "\"mlp_bias\": true");
    free(run(in_root("biases"), &n_vocab, NULL));
}

static void damaged_folders(void **state)
{
    (void)state;
    whit_error error;
    folder_model model = reduced("1bitllm-3b"); /* a model with three shards */
    write_folder(&model, "damaged");
    unlink(in_root("damaged/tokenizer.json"));
    assert_int_equal(mkfifo(in_root("damaged/tokenizer.json"), 0600), 0); /* a pipe is not waited for */
    assert_refused("damaged", "tokenizer.json", "not a regular file");
    unlink(in_root("damaged/tokenizer.json"));
    edit("damaged/model.safetensors.index.json", "model-00002-of-00003", "model-00009-of-00003");
    assert_refused("damaged", "model-00009-of-00003.safetensors", "");
    edit("damaged/model.safetensors.index.json", "model-00009-of-00003", "model-00002-of-00003");
    const char *shard = in_root("damaged/model-00002-of-00003.safetensors");
    assert_int_equal(truncate(shard, 20000), 0);
    assert_refused("damaged", "model-00002-of-00003.safetensors", "");
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
    assert_ok(whit_write_file(shard, pointer, strlen(pointer), &error), error);
    assert_refused("damaged", "LFS", "model-00002-of-00003.safetensors");
    unlink(shard);
    assert_refused("damaged", "model-00002-of-00003.safetensors", "");
    /* pipes are not waited for */
    assert_int_equal(mkfifo(shard, 0600), 0);
    assert_refused("damaged", "model-00002-of-00003.safetensors", "not a regular file");
    unlink(in_root("damaged/model.safetensors.index.json"));
    assert_int_equal(mkfifo(in_root("damaged/model.safetensors"), 0600), 0);
    assert_refused("damaged", "model.safetensors", "not a regular file");
    unlink(in_root("damaged/config.json"));
    assert_int_equal(mkfifo(in_root("damaged/config.json"), 0600), 0);
    assert_refused("damaged", "config.json", "not a regular file");
    unlink(in_root("damaged/config.json"));
    assert_refused("damaged", "config.json", "");
    assert_int_equal(mkdir(in_root("empty"), 0700), 0);
    assert_refused("empty", "config.json", "");
    /* Packed weights whose scale is missing, and packed weights without a quantization_config. */
    model = reduced("falcon3-1b-1.58");
    write_folder(&model, "unexplained");
    edit("unexplained/config.json", "\"quant_method\": \"bitnet\"", "\"quant_method\": \"bitnet\", \"bits\": 2");
    assert_refused("unexplained", "quantization_config", "config.json:1:");
    edit("unexplained/config.json", "\"quantization_config\"", "\"_was\"");
    assert_refused("unexplained", "U8", "quantization_config");
}

/* An invalid code at a place that only the conversion reads. */
static void damaged_codes(void **state)
{
    (void)state;
    whit_error error;
    whit_source source;
    whit_ndf_writer *writer;
    folder_model model = reduced("bitnet-2b4t");
    write_folder(&model, "codes");
    whit_map map;
    const char *weights = in_root("codes/model.safetensors");
    assert_ok(whit_map_open(weights, NULL, &map, &error), error);
    uint64_t header = whit_load_u64(map.data);
    char *text = strndup((const char *)map.data + 8, header);
    const char *entry = strstr(text, "\"model.layers.1.mlp.up_proj.weight\"");
    unsigned long long offset;
    assert_non_null(entry);
    assert_int_equal(sscanf(strstr(entry, "data_offsets") + strlen("data_offsets\":["), "%llu", &offset), 1);
    free(text);
    whit_map_close(&map);
    FILE *file = fopen(weights, "r+b");
    assert_int_equal(fseek(file, (long)(8 + header + offset + 5), SEEK_SET), 0);
    assert_int_equal(fputc(0x0C, file), 0x0C);
    fclose(file);
    assert_ok(whit_source_open(in_root("codes"), NULL, &source, &error), error);
    assert_ok(whit_ndf_writer_open(in_root("codes.ndf"), NULL, NULL, &writer, &error), error);
    assert_int_equal(whit_convert(&source, &(whit_convert_options){0}, writer, &error), WHIT_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "model.layers.1.mlp.up_proj.weight"));
    assert_non_null(strstr(error.message, "code 3"));
    whit_ndf_writer_close(writer);
    whit_source_close(&source);
    assert_int_not_equal(access(in_root("codes.ndf"), F_OK), 0);
}

static void texts_travel(void **state)
{
    (void)state;
    whit_error error;
    whit_ndf *file;
    folder_model model = reduced("qwen3-0.6b");
    write_folder(&model, "texts");
    edit("texts/tokenizer_config.json", "\"chat_template\": \"",
         "\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"T\"}, "
         "{\"name\": \"default\", \"template\": \"D\"}], \"was\": \"");
    convert(in_root("texts"), in_root("texts.ndf"), &(whit_convert_options){0});
    assert_ok(whit_ndf_open(in_root("texts.ndf"), NULL, &file, &error), error);
    assert_string_equal(whit_table_get_string(whit_ndf_templates(file), "default"), "D");
    assert_string_equal(whit_table_get_string(whit_ndf_templates(file), "tool_use"), "T");
    double temperature;
    assert_true(whit_table_get_f64(whit_ndf_meta(file), "generation.temperature", &temperature) && temperature == 0.6);
    assert_non_null(strstr(whit_table_get_string(whit_ndf_meta(file), "hf.config"), "Qwen3ForCausalLM"));
    size_t n;
    assert_non_null(whit_ndf_tokenizer(file, &n));
    whit_ndf_close(file);
    assert_ok(whit_write_file(in_root("texts/chat_template.jinja"), "J", 1, &error), error);
    assert_int_equal(mkdir(in_root("texts/additional_chat_templates"), 0700), 0);
    assert_ok(whit_write_file(in_root("texts/additional_chat_templates/rag.jinja"), "R", 1, &error), error);
    convert(in_root("texts"), in_root("texts.ndf"), &(whit_convert_options){0});
    assert_ok(whit_ndf_open(in_root("texts.ndf"), NULL, &file, &error), error);
    assert_string_equal(whit_table_get_string(whit_ndf_templates(file), "default"), "J");
    assert_string_equal(whit_table_get_string(whit_ndf_templates(file), "rag"), "R");
    whit_ndf_close(file);
}

/* Converts between codecs through .ndf files: the identity must stay, and each conversion is recorded. */
static void containers_are_sources(void **state)
{
    (void)state;
    whit_error error;
    whit_ndf *file;
    whit_buf first = {0}, last = {0};
    folder_model model = reduced("bitnet-2b4t");
    write_folder(&model, "chain");
    convert(in_root("chain"), in_root("a.ndf"), &(whit_convert_options){.command = "one"});
    convert(in_root("a.ndf"), in_root("b.ndf"),
            &(whit_convert_options){.ternary = "t2", .command = "two", .n_threads = 1});
    convert(in_root("b.ndf"), in_root("c.ndf"), &(whit_convert_options){.command = "three", .n_threads = 3});
    static const char *const names[] = {"a.ndf", "b.ndf", "c.ndf"};
    uint8_t identity[3][32];
    for (int i = 0; i < 3; i++) {
        assert_ok(whit_ndf_open(in_root(names[i]), NULL, &file, &error), error);
        memcpy(identity[i], whit_ndf_identity(file), 32);
        whit_tensor tensor;
        whit_ndf_tensor(file, (uint32_t)whit_ndf_find(file, "layers.1.down"), &tensor);
        assert_int_equal(tensor.type.codec, i == 1 ? WHIT_CODEC_T2 : WHIT_CODEC_T5);
        if (i != 1) whit_buf_append(i ? &last : &first, tensor.part[0], tensor.part_bytes[0]);
        if (i == 2) {
            assert_string_equal(whit_table_get_string(whit_ndf_meta(file), "whit.command"), "three");
            assert_string_equal(whit_table_get_string(whit_ndf_meta(file), "whit.previous.command"), "two");
            assert_string_equal(whit_table_get_string(whit_ndf_meta(file), "whit.previous.previous.command"), "one");
            assert_non_null(whit_table_get_string(whit_ndf_templates(file), "default"));
        }
        whit_ndf_close(file);
    }
    assert_memory_equal(identity[0], identity[1], 32);
    assert_memory_equal(identity[0], identity[2], 32);
    assert_int_equal(first.size_bytes, last.size_bytes);
    assert_memory_equal(first.data, last.data, first.size_bytes);
    whit_buf_free(&first);
    whit_buf_free(&last);
    /* Codecs with loss may also be chosen for an .ndf file. */
    convert(in_root("c.ndf"), in_root("d.ndf"), &(whit_convert_options){.embd = "i8"});
    convert(in_root("d.ndf"), in_root("e.ndf"), &(whit_convert_options){.embd = "i4"});
    uint32_t n_vocab;
    free(run(in_root("e.ndf"), &n_vocab, NULL));
}

static void export(const char *from, const char *to, const whit_export_options *options)
{
    whit_error error;
    whit_source source;
    assert_ok(whit_source_open(from, NULL, &source, &error), error);
    assert_ok(whit_export_gguf(&source, options, to, &error), error);
    whit_source_close(&source);
}

/* Exports to GGUF and imports again: weights, configuration and vocabulary must be unchanged. */
static void exports_come_back(void **state)
{
    static const char *const names[] = {"tinyllama-1.1b", "llama-3.2-1b", "qwen2.5-0.5b", "qwen3-0.6b",
                                        "mistral-7b-v0.1"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint8_t identity[2][32];
        uint32_t n_vocab;
        folder_model model = reduced(names[i]);
        char folder[64], tokenizer[96];
        snprintf(folder, sizeof folder, "exported-%s", names[i]);
        snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json", folder);
        write_folder(&model, folder);
        export(in_root(folder), in_root("exported.gguf"), &(whit_export_options){.no_tokenizer = true});
        unlink(in_root(tokenizer));
        free(run(in_root(folder), &n_vocab, identity[0]));
        free(run(in_root("exported.gguf"), &n_vocab, identity[1]));
        assert_memory_equal(identity[0], identity[1], 32);
    }
    /* The scales of packed ternary weights are no float16 numbers and are therefore stored separately. */
    static const char *const types[] = {"tq2_0", "tq1_0", NULL};
    folder_model model = folder_reduce(folder_find("bitnet-2b4t"), 2, 8, 300);
    model.n_heads = 8;
    model.n_kv_heads = 2;
    model.hidden = 256;
    model.intermediate = 512;
    write_folder(&model, "ternary");
    for (size_t i = 0; i < 3; i++) {
        uint8_t identity[2][32];
        uint32_t n_vocab;
        export(in_root("ternary"), in_root("ternary.gguf"),
               &(whit_export_options){.coded = types[i], .no_tokenizer = true});
        unlink(in_root("ternary/tokenizer.json"));
        free(run(in_root("ternary"), &n_vocab, identity[0]));
        free(run(in_root("ternary.gguf"), &n_vocab, identity[1]));
        assert_memory_equal(identity[0], identity[1], 32);
    }
    /* A codec that cannot store the weights is named in the error. */
    whit_error error;
    whit_source source;
    assert_ok(whit_source_open(in_root("ternary"), NULL, &source, &error), error);
    assert_int_not_equal(whit_export_gguf(&source, &(whit_export_options){.coded = "q1_0"}, in_root("no.gguf"), &error),
                         WHIT_OK);
    assert_non_null(strstr(error.message, "Q1_0"));
    assert_non_null(strstr(error.message, "layers."));
    assert_int_not_equal(access(in_root("no.gguf"), F_OK), 0);
    whit_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_models_run),
        cmocka_unit_test(ternary_clothes),
        cmocka_unit_test(latent_weights_are_rounded_online),
        cmocka_unit_test(embeddings_are_tied_as_they_lie),
        cmocka_unit_test(rope_is_scaled),
        cmocka_unit_test(fields_decide),
        cmocka_unit_test(describing_fields_are_noted),
        cmocka_unit_test(unused_tensors),
        cmocka_unit_test(windows),
        cmocka_unit_test(windows_by_default),
        cmocka_unit_test(biases_everywhere),
        cmocka_unit_test(damaged_folders),
        cmocka_unit_test(damaged_codes),
        cmocka_unit_test(texts_travel),
        cmocka_unit_test(containers_are_sources),
        cmocka_unit_test(exports_come_back),
    };
    return cmocka_run_group_tests_name("Hugging Face folders", tests, make_root, remove_root);
}
