/* SPDX-License-Identifier: MIT
 * Tests the block that predicts one more token, added to the tiny hybrid in a Hugging Face folder and in a GGUF
 * file: both, and .ndf files made of them, must give the same guesses, and guesses may not change the text. */
#include "test.h"
#include "damage_tensors.h"
#include "test_folder.h"

#include <sys/stat.h>

#include "base/rng.h"
#include "format/gguf_write.h"
#include "format/hf.h"
#include "model/convert.h"
#include "model/export_gguf.h"
#include "runtime/generation.h"

enum { N_EMBD = 128, N_FF = 64, Q = 2 * 64, KV = 64, LAYER = 4 };

/* Tensors of the draft block: names in both kinds of files, rows (0: a vector) and columns. */
static const struct block_tensor {
    const char *hf, *gguf;
    uint32_t n_rows, n_cols;
} block[] = {
    {"mtp.fc.weight", "nextn.eh_proj.weight", N_EMBD, 2 * N_EMBD},
    {"mtp.pre_fc_norm_embedding.weight", "nextn.enorm.weight", 0, N_EMBD},
    {"mtp.pre_fc_norm_hidden.weight", "nextn.hnorm.weight", 0, N_EMBD},
    {"mtp.norm.weight", "nextn.shared_head_norm.weight", 0, N_EMBD},
    {"mtp.layers.0.input_layernorm.weight", "attn_norm.weight", 0, N_EMBD},
    {"mtp.layers.0.post_attention_layernorm.weight", "post_attention_norm.weight", 0, N_EMBD},
    {"mtp.layers.0.self_attn.q_proj.weight", "attn_q.weight", 2 * Q, N_EMBD},
    {"mtp.layers.0.self_attn.k_proj.weight", "attn_k.weight", KV, N_EMBD},
    {"mtp.layers.0.self_attn.v_proj.weight", "attn_v.weight", KV, N_EMBD},
    {"mtp.layers.0.self_attn.o_proj.weight", "attn_output.weight", N_EMBD, Q},
    {"mtp.layers.0.self_attn.q_norm.weight", "attn_q_norm.weight", 0, 64},
    {"mtp.layers.0.self_attn.k_norm.weight", "attn_k_norm.weight", 0, 64},
    {"mtp.layers.0.mlp.gate_proj.weight", "ffn_gate.weight", N_FF, N_EMBD},
    {"mtp.layers.0.mlp.up_proj.weight", "ffn_up.weight", N_FF, N_EMBD},
    {"mtp.layers.0.mlp.down_proj.weight", "ffn_down.weight", N_EMBD, N_FF},
};
enum { N_BLOCK = sizeof block / sizeof *block };

static size_t count_elems(const struct block_tensor *t)
{
    return (size_t)(t->n_rows ? t->n_rows : 1) * t->n_cols;
}

/* Fills tensor i with the same values for both kinds of files, except for the 1 that GGUF files add to norms. */
static void fill_values(uint32_t i, bool is_gguf, float *values)
{
    whit_rng rng = {.state = 77 + i};
    const float size = block[i].n_rows ? 2.0f / (float)block[i].n_cols : 0.2f;
    for (size_t k = 0; k < count_elems(&block[i]); k++) {
        values[k] = ((float)whit_rng_uniform(&rng) * 2 - 1) * size;
        if (is_gguf && !block[i].n_rows) values[k] += 1;
    }
}

static float values[2 * N_EMBD * N_EMBD];

/* Copies a folder's model.safetensors and appends the draft block's tensors. */
static void write_folder(const char *from)
{
    whit_error error;
    whit_buf in = {0}, header = {0};
    char path[1024];
    uint64_t header_bytes, offset;
    assert_int_equal(mkdir(in_folder("hf"), 0700), 0);
    snprintf(path, sizeof path, "cp %s/config.json %s/hf/", from, test_folder);
    assert_int_equal(system(path), 0);
    snprintf(path, sizeof path, "%s/model.safetensors", from);
    assert_ok(whit_read_file(path, 64 << 20, &in, &error), error);
    memcpy(&header_bytes, in.data, 8);
    offset = in.size_bytes - 8 - header_bytes;
    while (in.data[8 + header_bytes - 1] != '}') header_bytes--;
    whit_buf_append(&header, in.data + 8, header_bytes - 1);
    for (uint32_t i = 0; i < N_BLOCK; i++) {
        const uint64_t end = offset + count_elems(&block[i]) * sizeof(float);
        whit_buf_printf(&header, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[", block[i].hf);
        if (block[i].n_rows) whit_buf_printf(&header, "%u,", block[i].n_rows);
        whit_buf_printf(&header, "%u],\"data_offsets\":[%llu,%llu]}", block[i].n_cols, (unsigned long long)offset,
                        (unsigned long long)end);
        offset = end;
    }
    whit_buf_append_str(&header, "}");
    uint64_t first_bytes;
    memcpy(&first_bytes, in.data, 8);
    FILE *out = fopen(in_folder("hf/model.safetensors"), "wb");
    assert_non_null(out);
    const uint64_t n = header.size_bytes;
    fwrite(&n, 8, 1, out);
    fwrite(header.data, 1, n, out);
    fwrite(in.data + 8 + first_bytes, 1, in.size_bytes - 8 - first_bytes, out);
    for (uint32_t i = 0; i < N_BLOCK; i++) {
        fill_values(i, false, values);
        fwrite(values, sizeof *values, count_elems(&block[i]), out);
    }
    assert_int_equal(fclose(out), 0);
    whit_buf_free(&in);
    whit_buf_free(&header);
}

static void copy_key(whit_gguf_writer *writer, const char *name, const whit_gguf_key *key)
{
    if (key->type == WHIT_GGUF_STRING)
        whit_gguf_put_string(writer, name, (const char *)key->data, key->size_bytes);
    else if (key->type == WHIT_GGUF_ARRAY)
        whit_gguf_put_array(writer, name, key->element_type, key->data, key->n_elems);
    else
        whit_gguf_put(writer, name, key->type, key->data);
}

/* Copies a GGUF file and adds the draft block after its last layer. */
static void write_gguf(const char *from, const char *to)
{
    whit_error error;
    whit_gguf *gguf;
    whit_gguf_writer writer;
    whit_writer file;
    char name[96];
    assert_ok(whit_gguf_open(from, NULL, &gguf, &error), error);
    whit_gguf_writer_init(&writer, WHIT_GGUF_ALIGNMENT_BYTES, NULL);
    for (size_t i = 0; i < gguf->n_keys; i++) {
        const whit_gguf_key *key = &gguf->keys[i];
        snprintf(name, sizeof name, "%.*s", (int)key->name_bytes, key->name);
        if (strcmp(name, "qwen35.block_count") == 0)
            whit_gguf_put_u32(&writer, name, LAYER + 1);
        else
            copy_key(&writer, name, key);
    }
    whit_gguf_put_u32(&writer, "qwen35.nextn_predict_layers", 1);
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const whit_gguf_tensor *t = &gguf->tensors[i];
        snprintf(name, sizeof name, "%.*s", (int)t->name_bytes, t->name);
        whit_gguf_put_tensor(&writer, name, t->id, t->n_dims, t->dims, t->size_bytes);
    }
    for (uint32_t i = 0; i < N_BLOCK; i++) {
        const uint64_t dims[2] = {block[i].n_cols, block[i].n_rows};
        snprintf(name, sizeof name, "blk.%d.%s", LAYER, block[i].gguf);
        whit_gguf_put_tensor(&writer, name, 0, block[i].n_rows ? 2 : 1, dims, count_elems(&block[i]) * sizeof(float));
    }
    assert_ok(whit_writer_open(to, NULL, &file, &error), error);
    assert_ok(whit_gguf_write_head(&writer, &file, &error), error);
    for (size_t i = 0; i < gguf->n_tensors; i++)
        assert_ok(whit_gguf_write_data(&writer, gguf->tensors[i].data, gguf->tensors[i].size_bytes, &error), error);
    for (uint32_t i = 0; i < N_BLOCK; i++) {
        fill_values(i, true, values);
        assert_ok(whit_gguf_write_data(&writer, values, count_elems(&block[i]) * sizeof(float), &error), error);
    }
    assert_ok(whit_gguf_write_end(&writer, &error), error);
    assert_ok(whit_writer_commit(&file, &error), error);
    whit_gguf_writer_close(&writer);
    whit_gguf_close(gguf);
}

static void convert_to(const char *from, const char *to)
{
    whit_error error;
    whit_source source;
    whit_ndf_writer *writer;
    const whit_convert_options options = {0};
    assert_ok(whit_source_open(from, NULL, &source, &error), error);
    assert_ok(whit_ndf_writer_open(to, NULL, NULL, &writer, &error), error);
    assert_ok(whit_convert(&source, &options, writer, &error), error);
    whit_ndf_writer_close(writer);
    whit_source_close(&source);
}

static void export_to(const char *from, const char *to)
{
    whit_error error;
    whit_source source;
    const whit_export_options options = {.no_tokenizer = true};
    assert_ok(whit_source_open(from, NULL, &source, &error), error);
    assert_ok(whit_export_gguf(&source, &options, to, &error), error);
    whit_source_close(&source);
}

enum { N_PROMPT = 20, N_MADE = 40, N_GUESSES = 4 };

/* Generates the model's text, and the guesses of its draft block after the prompt. */
static void run_model(const char *path, bool drafts, int32_t text[N_MADE], int32_t guesses[N_GUESSES])
{
    whit_error error;
    whit_session *session;
    whit_sampler *sampler;
    whit_generation *g;
    size_t n, n_open = 1;
    int32_t prompt[N_PROMPT];
    whit_model *model = open_model_at(path);
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 128;
    options.n_threads = 1;
    options.n_logits = 1 + N_GUESSES;
    whit_sampler_options sampling = whit_sampler_options_default();
    sampling.temperature = 0;
    whit_generate_options generate = whit_generate_options_default();
    generate.n_tokens = N_MADE;
    generate.n_draft_tokens = drafts ? N_GUESSES : 0;
    generate.ignore_end = true;
    for (int32_t i = 0; i < N_PROMPT; i++) prompt[i] = 3 + i * 23 % 500;
    assert_ok(whit_session_open_drafting(model, &options, drafts ? model : NULL, &session, &error), error);
    assert_ok(whit_sampler_open(model, &sampling, &sampler, &error), error);
    assert_ok(whit_generation_open(session, sampler, prompt, N_PROMPT, &generate, &g, &error), error);
    assert_ok(whit_generations_step(session, &g, 1, &n_open, &error), error);
    if (drafts)
        assert_int_equal(whit_drafter_guess(session->drafter, 0, N_PROMPT, g->next, N_GUESSES, guesses, NULL),
                         N_GUESSES);
    while (n_open) assert_ok(whit_generations_step(session, &g, 1, &n_open, &error), error);
    const int32_t *ids = whit_generation_ids(g, &n);
    assert_int_equal(n, N_PROMPT + N_MADE);
    memcpy(text, ids + N_PROMPT, N_MADE * sizeof *text);
    whit_generation_close(g);
    whit_sampler_close(sampler);
    whit_session_close(session);
    whit_model_close(model);
}

static void folders_and_files_have_the_same_block(void **state)
{
    (void)state;
    int32_t plain[N_MADE], text[N_MADE], first[N_GUESSES], guesses[N_GUESSES];
    write_folder(shared_path("models-tiny/qwen35-hybrid/hf"));
    write_gguf(shared_path("models-tiny/qwen35-hybrid/qwen35-hybrid-bf16.gguf"), in_folder("a.gguf"));
    run_model(shared_path("models-tiny/qwen35-hybrid/hf"), false, plain, NULL);
    run_model(in_folder("hf"), true, text, first);
    assert_memory_equal(text, plain, sizeof plain);
    run_model(in_folder("a.gguf"), true, text, guesses);
    assert_memory_equal(text, plain, sizeof plain);
    assert_memory_equal(guesses, first, sizeof first);
    convert_to(in_folder("hf"), in_folder("a.ndf"));
    convert_to(in_folder("a.ndf"), in_folder("b.ndf"));
    run_model(in_folder("b.ndf"), true, text, guesses);
    assert_memory_equal(text, plain, sizeof plain);
    assert_memory_equal(guesses, first, sizeof first);
    export_to(in_folder("b.ndf"), in_folder("c.gguf"));
    run_model(in_folder("c.gguf"), true, text, guesses);
    assert_memory_equal(text, plain, sizeof plain);
    assert_memory_equal(guesses, first, sizeof first);
}

/* ---- damage ------------------------------------------------------------------------------------ */

static uint32_t n_refused;

/* Asserts that the file is refused with one line that names it, when it is opened or when it is used as a draft model
 * of `target` (NULL: of itself). */
static void expect_refusal(const char *path, const whit_model *target, const char *what, const char *how)
{
    whit_error error = {.message = ""};
    whit_model *model = NULL;
    whit_session *session = NULL;
    const whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    whit_session_options wanted = whit_session_options_default();
    wanted.n_ctx_tokens = 64;
    wanted.n_threads = 1;
    whit_status status = whit_model_open(path, &options, &model, &error);
    if (status == WHIT_OK)
        status = whit_session_open_drafting(target ? target : model, &wanted, model, &session, &error);
    if (status == WHIT_OK) fail_msg("%s is accepted with another %s", what, how);
    if (!error.message[0] || strchr(error.message, '\n'))
        fail_msg("%s, %s: not one line: %s", what, how, error.message);
    whit_session_close(session);
    whit_model_close(model);
    n_refused++;
}

static void write_copy(const char *path, const whit_buf *bytes)
{
    whit_error error;
    assert_ok(whit_write_file(path, bytes->data, bytes->size_bytes, &error), error);
}

/* Damages each named tensor of a file in four ways. `path` is opened; `file` is the damaged file that it reads. */
static void damage_each(const whit_buf *bytes, const char *const *names, uint32_t n_names, bool is_gguf,
                        const char *path, const char *file, const whit_model *target)
{
    for (uint32_t i = 0; i < n_names; i++)
        for (int how = 0; how < N_DAMAGES; how++) {
            whit_buf copy = {0};
            whit_buf_append(&copy, bytes->data, bytes->size_bytes);
            const bool has = is_gguf ? damage_gguf(copy.data, copy.size_bytes, names[i], how)
                                     : damage_safetensors(copy.data, copy.size_bytes, names[i], how);
            if (!has) fail_msg("no tensor %s", names[i]);
            write_copy(file, &copy);
            expect_refusal(path, target, names[i], damage_names[how]);
            whit_buf_free(&copy);
        }
}

static void read_whole(const char *path, whit_buf *bytes)
{
    whit_error error;
    assert_ok(whit_read_file(path, 64 << 20, bytes, &error), error);
}

static void copy_config(const char *from, const char *folder)
{
    char command[2300];
    snprintf(command, sizeof command, "mkdir -p %s && cp %s/config.json %s/ && chmod u+w %s/config.json", folder, from,
             folder, folder);
    assert_int_equal(system(command), 0);
}

static void each_damaged_block_is_one_line(void **state)
{
    (void)state;
    const char *hf[N_BLOCK], *gguf[N_BLOCK];
    static char names[N_BLOCK][64];
    whit_buf bytes = {0};
    n_refused = 0;
    for (uint32_t i = 0; i < N_BLOCK; i++) {
        hf[i] = block[i].hf;
        snprintf(names[i], sizeof names[i], "blk.%d.%s", LAYER, block[i].gguf);
        gguf[i] = names[i];
    }
    copy_config(shared_path("models-tiny/qwen35-hybrid/hf"), in_folder("bad"));
    read_whole(in_folder("hf/model.safetensors"), &bytes);
    damage_each(&bytes, hf, N_BLOCK, false, in_folder("bad"), in_folder("bad/model.safetensors"), NULL);
    whit_buf_free(&bytes);
    read_whole(in_folder("a.gguf"), &bytes);
    damage_each(&bytes, gguf, N_BLOCK, true, in_folder("bad.gguf"), in_folder("bad.gguf"), NULL);
    static const uint32_t counts[] = {0, 2, 4, 5, 0x7FFFFFFF, 0xFFFFFFFF};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint8_t *at = damage_find_gguf(bytes.data, bytes.size_bytes, "qwen35.nextn_predict_layers");
        assert_non_null(at);
        memcpy(at + 4, &counts[i], 4);
        write_copy(in_folder("bad.gguf"), &bytes);
        expect_refusal(in_folder("bad.gguf"), NULL, "nextn_predict_layers", "number");
    }
    whit_buf_free(&bytes);
    print_message("%u refused\n", n_refused);
    assert_int_equal(n_refused, 2 * N_BLOCK * N_DAMAGES + sizeof counts / sizeof *counts);
}

enum { N_NAMES_MAX = 64 };

/* Lists the names of a GGUF file's tensors that are read, which excludes the clusters of tokens. Returns their
 * number. */
static uint32_t names_in_gguf(const char *path, char names[N_NAMES_MAX][96])
{
    whit_error error;
    whit_gguf *gguf;
    uint32_t n = 0;
    assert_ok(whit_gguf_open(path, NULL, &gguf, &error), error);
    assert_in_range(gguf->n_tensors, 1, N_NAMES_MAX);
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        snprintf(names[n], 96, "%.*s", (int)gguf->tensors[i].name_bytes, gguf->tensors[i].name);
        n += strncmp(names[n], "masked", 6) != 0;
    }
    whit_gguf_close(gguf);
    return n;
}

/* Lists the names of a safetensors file's tensors. Returns their number. */
static uint32_t names_in_safetensors(const whit_buf *bytes, char names[N_NAMES_MAX][96])
{
    static const char mark[] = "\":{\"dtype\"";
    uint8_t *end = bytes->data + bytes->size_bytes, *at = bytes->data;
    uint32_t n = 0;
    while ((at = damage_find(at, (size_t)(end - at), mark, sizeof mark - 1))) {
        const uint8_t *begin = at;
        while (begin[-1] != '"') begin--;
        assert_in_range(n, 0, N_NAMES_MAX - 1);
        snprintf(names[n], 96, "%.*s", (int)(at - begin), (const char *)begin);
        n += strncmp(names[n], "masked", 6) != 0;
        at++;
    }
    return n;
}

/* Gemma 4's draft model ("assistant"), from a folder and from a GGUF file. */
static void each_damaged_assistant_is_one_line(void **state)
{
    static const struct {
        const char *from, *to;
    } edits[] = {{"\"backbone_hidden_size\": 64", "\"backbone_hidden_size\": 65"},
                 {"\"backbone_hidden_size\": 64", "\"backbone_hidden_size\": 00"},
                 {"\"backbone_hidden_size\": 64", "\"backbone_hidden_size\": -4"},
                 {"\"backbone_hidden_size\": 64", "\"backbone_hidden_size\": {}"},
                 {"\"num_hidden_layers\": 3", "\"num_hidden_layers\": 4"},
                 {"\"num_hidden_layers\": 3", "\"num_hidden_layers\": 2"},
                 {"\"global_head_dim\": 32", "\"global_head_dim\": 16"},
                 {"\"num_attention_heads\": 2", "\"num_attention_heads\": 3"},
                 {"\"vocab_size\": 512", "\"vocab_size\": 511"},
                 {"\"hidden_size\": 32", "\"hidden_size\": 33"},
                 {"\"sliding_window\": 8", "\"sliding_window\": 9"},
                 {"\"intermediate_size\": 64", "\"intermediate_size\": 63"}};
    enum { N_EDITS = sizeof edits / sizeof *edits };
    (void)state;
    static char names[N_NAMES_MAX][96];
    const char *list[N_NAMES_MAX];
    whit_buf bytes = {0}, config = {0};
    uint32_t n_expected = N_EDITS;
    n_refused = 0;
    whit_model *target = open_model_at(shared_path("models-tiny/gemma4-e2b/hf"));
    for (uint32_t i = 0; i < N_NAMES_MAX; i++) list[i] = names[i];
    copy_config(shared_path("models-tiny/gemma4-e2b/assistant/hf"), in_folder("bad"));
    read_whole(shared_path("models-tiny/gemma4-e2b/assistant/hf/model.safetensors"), &bytes);
    uint32_t n = names_in_safetensors(&bytes, names);
    damage_each(&bytes, list, n, false, in_folder("bad"), in_folder("bad/model.safetensors"), target);
    n_expected += n * N_DAMAGES;
    write_copy(in_folder("bad/model.safetensors"), &bytes);
    for (size_t i = 0; i < N_EDITS; i++) {
        read_whole(shared_path("models-tiny/gemma4-e2b/assistant/hf/config.json"), &config);
        uint8_t *at = damage_find(config.data, config.size_bytes, edits[i].from, strlen(edits[i].from));
        assert_non_null(at);
        memcpy(at, edits[i].to, strlen(edits[i].to));
        write_copy(in_folder("bad/config.json"), &config);
        expect_refusal(in_folder("bad"), target, "config.json", edits[i].to);
        whit_buf_free(&config);
    }
    whit_buf_free(&bytes);
    const char *gguf = shared_path("models-tiny/gemma4-e2b/assistant/gemma4-e2b-assistant-bf16.gguf");
    n = names_in_gguf(gguf, names);
    read_whole(gguf, &bytes);
    damage_each(&bytes, list, n, true, in_folder("bad.gguf"), in_folder("bad.gguf"), target);
    n_expected += n * N_DAMAGES;
    whit_buf_free(&bytes);
    whit_model_close(target);
    print_message("%u refused\n", n_refused);
    assert_int_equal(n_refused, n_expected);
}

/* A draft block with a wrong shape is refused with one line; without its first matrix it is not a draft block. */
static void damaged_blocks_are_refused(void **state)
{
    (void)state;
    whit_error error;
    whit_source source;
    char command[512];
    (void)shared_path("models-tiny/qwen35-hybrid/hf");
    snprintf(command, sizeof command, "sed -i 's/mtp.norm.weight/mtp.nurm.weight/' %s/hf/model.safetensors",
             test_folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(whit_source_open(in_folder("hf"), NULL, &source, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "mtp.nurm.weight"));
    snprintf(command, sizeof command,
             "sed -i 's/mtp.nurm.weight/mtp.norm.weight/; s/mtp.fc.weight/mtp.fk.weight/' %s/hf/model.safetensors",
             test_folder);
    assert_int_equal(system(command), 0);
    assert_ok(whit_source_open(in_folder("hf"), NULL, &source, &error), error);
    assert_int_equal(source.config.n_draft_layers, 0);
    whit_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_and_files_have_the_same_block),
        cmocka_unit_test(each_damaged_block_is_one_line),
        cmocka_unit_test(each_damaged_assistant_is_one_line),
        cmocka_unit_test(damaged_blocks_are_refused),
    };
    return cmocka_run_group_tests_name("draft_import", tests, make_folder, remove_folder);
}
