/* SPDX-License-Identifier: MIT
 * Implements whit train, which trains a new model from a configuration and texts, or trains a given model further. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/items.h"
#include "cli/recorded.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "model/config_json.h"
#include "tokenizer/from_path.h"
#include "tokenizer/learn.h"
#include "train/new_model.h"

struct train_values {
    const char *start, *config, *tokenizer, *chat_template, *name;
    cli_list specials;
    int codec;
    uint32_t n_vocab, n_embd, n_layers, n_heads, n_kv_heads, n_ff, n_ctx;
    bool own_head;
    cli_training_flags training;
};
static const struct train_values defaults = {.codec = 2, .training = CLI_TRAINING_DEFAULTS};

#define AT(member) offsetof(struct train_values, member)
static const cli_option options[] = {
    {"--start", CLI_FILE, AT(start), "MODEL", "Go on with the weights of a model; its shape and tokenizer stay."},
    {"--config", CLI_FILE, AT(config), "FILE", "The model's shape, in the fields of a Hugging Face config.json."},
    {"--width", CLI_COUNT, AT(n_embd), "N", "Width of the residual stream; 256 by default.", 1, 65536},
    {"--layers", CLI_COUNT, AT(n_layers), "N", "Number of layers; 4 by default.", 1, 1024},
    {"--heads", CLI_COUNT, AT(n_heads), "N", "Attention heads; by default one per 64 of the width.", 1, 4096},
    {"--kv-heads", CLI_COUNT, AT(n_kv_heads), "N", "Heads of keys and values; by default as many as --heads.", 1, 4096},
    {"--ffn", CLI_COUNT, AT(n_ff), "N",
     "Width of the feed-forward part; by default 8/3 of the width, rounded to a multiple of 64.", 1, 65536},
    {"--context", CLI_COUNT, AT(n_ctx), "N", "Context in tokens; 512 by default.", 2, 1 << 26},
    {"--own-head", CLI_FLAG, AT(own_head), NULL, "A head of its own in place of the embedding."},
    {"--tokenizer", CLI_FILE, AT(tokenizer), "PATH",
     "A tokenizer.json, tokenizer.model, GGUF file or folder; without it a vocabulary is learned from the text."},
    {"--vocab", CLI_COUNT, AT(n_vocab), "N", "Pieces of a learned vocabulary; by default 4096, or the configuration's.",
     1, 1 << 20},
    {"--special", CLI_REPEAT, AT(specials), "TEXT", "A special token of a learned vocabulary, beside <s> and </s>."},
    {"--template", CLI_FILE, AT(chat_template), "FILE", "The model's chat template."},
    {"--name", CLI_TEXT, AT(name), "TEXT", "The model's name."},
    {"--codec", CLI_CHOICE, AT(codec), "f16|f32|t|b1|q2|q2-planes",
     "Codec of the layers' matrices; t, the default, b1 and q2 are rounded in training."},
    {"--embedding", CLI_CHOICE, AT(training.embedding), "i8|f16|f32",
     "Codec of embedding and head; i8 is the default."},
    {0},
};

/* ---- shape ---------------------------------------------------------------------------------- */

static void replace_value(uint32_t *value, uint32_t option)
{
    if (option) *value = option;
}

static whit_config default_config(uint32_t width)
{
    whit_config c = {.family = "llama",
                     .n_layers = 4,
                     .n_embd = width,
                     .n_ff = (width * 8 / 3 + 63) / 64 * 64,
                     .n_heads = width >= 64 ? width / 64 : 1,
                     .n_vocab = 4096,
                     .n_ctx = 512,
                     .tied_head = true,
                     .norm_eps = 1e-5f,
                     .rope_theta = 10000};
    return c;
}

/* Applies --context, --vocab and --own-head to a configuration whose layers differ or have experts. Refuses the other
 * options of the shape, because only the configuration itself can describe such layers. */
static whit_status check_own_shape(const struct train_values *v, whit_config *c, whit_error *error)
{
    if (v->n_embd || v->n_layers || v->n_heads || v->n_kv_heads || v->n_ff)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s: --width, --layers, --heads, --kv-heads and --ffn do not apply to this configuration; "
                         "change the configuration instead",
                         v->config);
    replace_value(&c->n_ctx, v->n_ctx);
    replace_value(&c->n_vocab, v->n_vocab);
    if (v->own_head) c->tied_head = false;
    return whit_config_check(c, v->config, error);
}

static whit_status find_config(const struct train_values *v, whit_config *c, whit_error *error)
{
    *c = default_config(v->n_embd ? v->n_embd : 256);
    if (v->config) WHIT_TRY(whit_config_read_json(v->config, NULL, c, error));
    if (whit_config_is_extended(c)) return check_own_shape(v, c, error);
    replace_value(&c->n_embd, v->n_embd);
    replace_value(&c->n_layers, v->n_layers);
    replace_value(&c->n_heads, v->n_heads);
    replace_value(&c->n_ff, v->n_ff);
    replace_value(&c->n_ctx, v->n_ctx);
    replace_value(&c->n_vocab, v->n_vocab);
    if (v->n_heads || !c->n_kv_heads) c->n_kv_heads = c->n_heads;
    replace_value(&c->n_kv_heads, v->n_kv_heads);
    if (v->own_head) c->tied_head = false;
    if (!c->head_dim || v->n_heads || v->n_embd) c->rope_dim = c->head_dim = c->n_embd / c->n_heads;
    return whit_config_check(c, v->config ? v->config : "the model's shape", error);
}

/* ---- vocabulary ----------------------------------------------------------------------------- */

static whit_status learn_vocabulary(const struct train_values *v, uint32_t n_tokens, whit_buf *image, whit_error *error)
{
    whit_learn_options learn = {n_tokens, v->specials.items, v->specials.n};
    whit_learner *learner;
    WHIT_TRY(whit_learner_open(&learn, NULL, &learner, error));
    whit_status status = WHIT_OK;
    for (size_t i = 0; status == WHIT_OK && i < v->training.text.n; i++) {
        whit_map map = {0};
        status = whit_map_open(v->training.text.items[i], NULL, &map, error);
        if (status == WHIT_OK) status = whit_learner_add(learner, (const char *)map.data, map.size_bytes, error);
        whit_map_close(&map);
    }
    if (status == WHIT_OK) status = whit_learner_finish(learner, image, error);
    whit_learner_close(learner);
    return status;
}

static whit_status find_tokenizer(const struct train_values *v, whit_config *config, whit_buf *image, whit_error *error)
{
    whit_tokenizer_view view;
    if (v->tokenizer)
        WHIT_TRY(whit_tokenizer_from_path(v->tokenizer, image, error));
    else
        WHIT_TRY(learn_vocabulary(v, config->n_vocab, image, error));
    WHIT_TRY(whit_tokenizer_check(image->data, image->size_bytes, &view, error));
    config->n_vocab = whit_tokenizer_n_tokens(&view);
    cli_note("vocabulary: %u tokens", config->n_vocab);
    return WHIT_OK;
}

/* ---- the verb ------------------------------------------------------------------------------- */

static int train(cli_call *call, const struct train_values *v, const whit_model *start)
{
    static const char *const codecs[] = {"f16", "f32", "t", "b1", "q2", "q2-planes"};
    const cli_training_flags *training = &v->training;
    whit_buf command = {0};
    whit_trainer_options o = cli_training_wanted(training);
    o.codecs.layers = codecs[v->codec];
    o.kl_weight = 0;
    o.ce_weight = 1;
    if (!cli_record_command(call, true, NULL, 0, &command))
        return cli_fail(call, CLI_LIMIT, "not enough memory for the record of the command");
    o.command = whit_chars(&command);
    const int exit = cli_train(call, training, start, NULL, &o);
    whit_buf_free(&command);
    return exit;
}

static int open_new(cli_call *call, const struct train_values *v, whit_model **start)
{
    whit_error error;
    whit_config config;
    whit_buf image = {0};
    cli_text chat_template = {0};
    int exit = v->chat_template ? cli_read_text(call, v->chat_template, &chat_template) : CLI_OK;
    if (!v->tokenizer) cli_progress(NULL, "learning a vocabulary", 0);
    whit_status status = find_config(v, &config, &error);
    if (exit == CLI_OK && status == WHIT_OK) exit = cli_training_check(call, &v->training, config.n_ctx);
    if (exit == CLI_OK && status == WHIT_OK) status = find_tokenizer(v, &config, &image, &error);
    if (exit == CLI_OK && status == WHIT_OK) {
        whit_new_model new_model = {
            &config, image.data, image.size_bytes, chat_template.data, v->name, (uint64_t)v->training.seed};
        status = whit_new_model_open(&new_model, NULL, start, &error);
    }
    whit_buf_free(&image);
    free(chat_template.data);
    return exit == CLI_OK && status != WHIT_OK ? cli_fail_error(call, &error) : exit;
}

/* Refuses options that apply only to a new model, because --start would ignore them. Returns CLI_OK, or an exit status
 * after a message. */
static int check_start(cli_call *call)
{
    static const char *const of_new[] = {"--config",  "--width",    "--layers",   "--heads",     "--kv-heads",
                                         "--ffn",     "--context",  "--own-head", "--tokenizer", "--vocab",
                                         "--special", "--template", "--name"};
    for (size_t i = 0; i < sizeof of_new / sizeof *of_new; i++)
        if (cli_was_given(call, of_new[i]))
            return cli_fail(call, CLI_USAGE,
                            "%s is for a new model; the model of --start keeps its shape, tokenizer, template and name",
                            of_new[i]);
    return CLI_OK;
}

static int run_train(cli_call *call)
{
    const struct train_values *v = call->values;
    whit_model *start = NULL;
    if (!v->training.out || !v->training.text.n) return cli_fail(call, CLI_USAGE, "--text and -o are needed");
    int exit = v->start ? check_start(call) : CLI_OK;
    if (exit == CLI_OK) exit = cli_training_check(call, &v->training, 0);
    if (exit == CLI_OK) exit = v->start ? cli_open_model(call, v->start, false, &start) : open_new(call, v, &start);
    if (exit == CLI_OK) exit = train(call, v, start);
    whit_model_close(start);
    return exit;
}

const cli_verb cli_train_verb = {
    "train",
    "",
    0,
    0,
    "train a new model on text",
    "Learns a vocabulary from the text (byte pairs with byte fallback, as SentencePiece does it), makes a model of "
    "the wanted shape with random weights, and trains it to foretell the text. With --checkpoint FILE a run that is "
    "cut is resumed by --resume and the same options; with --steps it then ends with the same bits.\n"
    "  whit train --text stories.txt --vocab 2048 --codec t --minutes 60 -o stories.ndf",
    {{"MODEL", options, 0},
     {"TRAINING", cli_training_options, AT(training)},
     {"RECIPE", cli_recipe_options, AT(training)}},
    sizeof(struct train_values),
    &defaults,
    run_train,
    .usual = "--text, -o, --minutes, --codec, --checkpoint",
};
