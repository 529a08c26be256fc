/* SPDX-License-Identifier: MIT
 * Opens a model: an .ndf file is used in place, and any other format is converted first, into a cache on disk or in
 * memory, so that all models run the same way. */
#include "runtime/model.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/options.h"
#include "model/convert.h"
#include "model/draft_block.h"
#include "model/families.h"
#include "model/rope_scaling.h"
#include "model/source.h"
#include "runtime/split.h"
#include "format/conversion_cache.h"
#include "kernels/codec.h"
#include "whit/facts.h"
#include "whit/steps.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- recognising .ndf files ----------------------------------------------------------------- */

static whit_status looks_like_ndf(const char *path, bool *yes, whit_error *error)
{
    *yes = false;
    struct stat info;
    if (stat(path, &info) != 0) return whit_fail_errno(error, path, "open");
    if (!S_ISREG(info.st_mode)) return WHIT_OK;
    uint8_t head[64];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return whit_fail_errno(error, path, "open");
    ssize_t n = read(fd, head, sizeof head);
    close(fd);
    if (n < 0) return whit_fail_errno(error, path, "read");
    size_t length = strlen(path);
    /* A file named .ndf without the magic bytes is damaged; the .ndf reader then gives the best error message. */
    *yes = whit_ndf_has_magic(head, (size_t)n) || (length > 4 && strcmp(path + length - 4, ".ndf") == 0);
    return WHIT_OK;
}

/* ---- sources -------------------------------------------------------------------------------- */

static whit_status convert_to(const char *path, const whit_model_options *options, const char *to,
                              whit_ndf_writer **writer, whit_error *error)
{
    const whit_allocator *a = options->allocator;
    whit_source source;
    const whit_family_program family = {options->family_name, options->family_program};
    const whit_source_options wanted = {.program = options->family_program ? &family : NULL,
                                        .is_strict = options->strict,
                                        .overrides = options->overrides,
                                        .n_overrides = options->n_overrides};
    WHIT_TRY(whit_source_open_as(path, &wanted, a, &source, error));
    whit_convert_options convert = {.progress = options->progress, .user = options->progress_user};
    whit_status status = whit_ndf_writer_open(to, NULL, a, writer, error);
    if (status == WHIT_OK) status = whit_convert(&source, &convert, *writer, error);
    whit_source_close(&source);
    if (status != WHIT_OK) {
        whit_ndf_writer_close(*writer);
        *writer = NULL;
    }
    return status;
}

static whit_status open_in_memory(whit_model *model, const char *path, const whit_model_options *options,
                                  whit_error *error)
{
    WHIT_TRY(convert_to(path, options, NULL, &model->in_memory, error));
    return whit_ndf_open_fd(whit_ndf_writer_fd(model->in_memory), path, model->allocator, &model->file, error);
}

/* Opens a converted model of the cache. Returns false if it is damaged, or was written by another version of whit under
 * the same name. */
static bool open_entry(whit_model *model, const char *path)
{
    whit_config config;
    if (whit_ndf_open(path, model->allocator, &model->file, NULL) != WHIT_OK) return false;
    if (whit_config_load(model->file, &config, NULL) == WHIT_OK) return true;
    whit_ndf_close(model->file);
    model->file = NULL;
    return false;
}

/* Writes a name for the options that affect a conversion (a hash in hexadecimal); "" if no such option is set. */
static void name_conversion(const whit_model_options *options, char name[2 * WHIT_HASH_BYTES + 1])
{
    uint8_t digest[WHIT_HASH_BYTES];
    whit_hash hash;
    name[0] = 0;
    if (!options->family_program && !options->n_overrides) return;
    whit_hash_begin(&hash, "whit.family");
    if (options->family_program) whit_hash_add(&hash, options->family_program, strlen(options->family_program));
    for (size_t i = 0; i < options->n_overrides; i++) {
        whit_hash_add(&hash, "", 1); /* a zero byte separates the texts, which contain none */
        whit_hash_add(&hash, options->overrides[i], strlen(options->overrides[i]));
    }
    whit_hash_end(&hash, digest);
    whit_hash_hex(digest, name);
}

/* Opens the converted model of the cache, converting it first if it is not there. If the cache cannot be used, returns
 * WHIT_OK and leaves model->file NULL. */
static whit_status open_cached(whit_model *model, const char *path, const whit_model_options *options,
                               whit_error *error)
{
    whit_cache_entry entry;
    whit_error ignored;
    char conversion[2 * WHIT_HASH_BYTES + 1];
    name_conversion(options, conversion);
    if (whit_cache_find(options->cache_dir, path, WHIT_CONVERT_VERSION, conversion, &entry, &ignored) != WHIT_OK)
        return WHIT_OK;
    if (access(entry.path, R_OK) == 0 && open_entry(model, entry.path)) return WHIT_OK;
    if (access(entry.folder, W_OK) != 0 || whit_cache_lock(&entry, &ignored) != WHIT_OK) return WHIT_OK;
    whit_status status = WHIT_OK;
    /* Another process may have finished the conversion while this one waited. */
    if (!open_entry(model, entry.path)) {
        whit_ndf_writer *writer = NULL;
        status = convert_to(path, options, entry.path, &writer, error);
        whit_ndf_writer_close(writer);
        if (status == WHIT_OK) {
            whit_cache_note_source(&entry, path);
            status = whit_ndf_open(entry.path, model->allocator, &model->file, error);
            /* An I/O error means that another process removed the file; the caller then converts in memory. */
            if (status == WHIT_ERROR_IO) status = WHIT_OK;
            whit_cache_trim(&entry, WHIT_CACHE_LIMIT_BYTES);
        } else if (status == WHIT_ERROR_IO) {
            status = WHIT_OK; /* for example the disk is full; the caller tries to convert in memory */
        }
    }
    whit_cache_unlock(&entry);
    return status;
}

/* ---- open and close ------------------------------------------------------------------------- */

static void pass_over(void *user, int32_t tensor)
{
    (void)user, (void)tensor;
}

static whit_status open_parts(whit_model *model, whit_error *error)
{
    WHIT_TRY(whit_config_load(model->file, &model->config, error));
    WHIT_TRY(whit_weights_open(model->file, model->allocator, &model->weights, error));
    whit_error inner = {0};
    whit_graph_begin(&model->graph, model->allocator, whit_weights_resolver(&model->weights), &inner);
    whit_status status = whit_family_build(&model->config, &model->graph);
    if (status != WHIT_OK) return whit_fail(error, status, "%s: %s", model->path, inner.message);
    const whit_resolver resolver = whit_weights_resolver(&model->weights);
    whit_config block;
    model->has_draft_block = whit_draft_block_config(&model->config, &resolver, &block);
    status = whit_draft_block_visit(&model->config, &resolver, pass_over, NULL, model->allocator, &inner);
    if (status != WHIT_OK)
        return whit_fail(error, status, "%s: the draft block is invalid: %s", model->path, inner.message);
    WHIT_TRY(whit_rope_check_tensors(&model->config, &resolver, model->path, error));
    size_t n;
    const void *image = whit_ndf_tokenizer(model->file, &n);
    if (!image) return WHIT_OK;
    status = whit_tokenizer_check(image, n, &model->tokenizer, &inner);
    if (status != WHIT_OK) return whit_fail(error, status, "%s: tokenizer: %s", model->path, inner.message);
    if (whit_tokenizer_n_tokens(&model->tokenizer) > model->config.n_vocab)
        return whit_fail(
            error, WHIT_ERROR_FORMAT,
            "%s: the tokenizer has ids up to %u, but the model's vocabulary has %u: the file is inconsistent",
            model->path, whit_tokenizer_n_tokens(&model->tokenizer), model->config.n_vocab);
    model->has_tokenizer = true;
    return whit_tokenizers_open(model->allocator, &model->tokenizers, error);
}

static whit_status begin_model(const char *path, const whit_allocator *allocator, whit_model **out, whit_error *error)
{
    whit_model *model = whit_zalloc(allocator, sizeof *model);
    if (!model) return whit_fail_memory(error, "the model", sizeof *model);
    if (allocator) {
        model->own_allocator = *allocator;
        model->allocator = &model->own_allocator;
    }
    *out = model;
    model->path = whit_strndup(model->allocator, path, strlen(path));
    return model->path ? WHIT_OK : whit_fail_memory(error, "a file name", strlen(path));
}

/* If status is WHIT_OK, opens the parts of a model whose file is open. On failure closes the model. */
static whit_status finish_model(whit_status status, whit_model *model, whit_model **out, whit_error *error)
{
    if (status == WHIT_OK) status = open_parts(model, error);
    if (status == WHIT_OK)
        *out = model;
    else
        whit_model_close(model);
    return status;
}

whit_status whit_model_open(const char *path, const whit_model_options *options, whit_model **out, whit_error *error)
{
    WHIT_NEED(out);
    *out = NULL;
    WHIT_NEED(path);
    whit_model_options own = whit_model_options_default();
    bool is_ndf;
    WHIT_TRY(whit_options_read(&own, sizeof own, options, "whit_model_options", error));
    WHIT_TRY(looks_like_ndf(path, &is_ndf, error));
    WHIT_NEED_ARRAY(own.overrides, own.n_overrides);
    for (size_t i = 0; i < own.n_overrides; i++) WHIT_NEED(own.overrides[i]);
    /* An .ndf file with another program or with overrides is converted like any source. */
    is_ndf &= !own.family_program && !own.n_overrides;
    whit_model *model = NULL;
    whit_status status = begin_model(path, own.allocator, &model, error);
    if (model) own.allocator = model->allocator;
    if (status == WHIT_OK && is_ndf)
        status = whit_ndf_open(path, model->allocator, &model->file, error);
    else if (status == WHIT_OK) {
        if (!own.no_cache && !own.strict) status = open_cached(model, path, &own, error);
        if (status == WHIT_OK && !model->file) status = open_in_memory(model, path, &own, error);
    }
    return finish_model(status, model, out, error);
}

whit_status whit_model_open_memory(const void *data, size_t size_bytes, const char *name,
                                   const whit_allocator *allocator, whit_model **out, whit_error *error)
{
    WHIT_NEED(out);
    *out = NULL;
    WHIT_NEED(data);
    WHIT_NEED(name);
    whit_model *model = NULL;
    whit_status status = begin_model(name, allocator, &model, error);
    if (status == WHIT_OK) status = whit_ndf_open_memory(data, size_bytes, name, model->allocator, &model->file, error);
    return finish_model(status, model, out, error);
}

whit_status whit_model_open_written(whit_ndf_writer *writer, const char *name, const whit_allocator *allocator,
                                    whit_model **out, whit_error *error)
{
    *out = NULL;
    whit_model *model = NULL;
    whit_status status = begin_model(name, allocator, &model, error);
    if (model)
        model->in_memory = writer;
    else
        whit_ndf_writer_close(writer);
    if (status == WHIT_OK)
        status = whit_ndf_open_fd(whit_ndf_writer_fd(writer), name, model->allocator, &model->file, error);
    return finish_model(status, model, out, error);
}

void whit_model_close(whit_model *model)
{
    if (!model) return;
    whit_split_close(model);
    whit_tokenizers_close(model->tokenizers);
    whit_graph_free(&model->graph);
    whit_weights_close(&model->weights);
    whit_ndf_close(model->file);
    whit_ndf_writer_close(model->in_memory);
    whit_allocator own = model->own_allocator;
    const whit_allocator *a = model->allocator ? &own : NULL;
    if (model->path) whit_free(a, model->path, strlen(model->path) + 1);
    whit_free(a, model, sizeof *model);
}

whit_status whit_model_set_name(whit_model *model, const char *name, whit_error *error)
{
    WHIT_NEED(model);
    WHIT_NEED(name);
    char *copy = whit_strndup(model->allocator, name, strlen(name));
    if (!copy) return whit_fail_memory(error, "a model's name", strlen(name));
    whit_free(model->allocator, model->path, strlen(model->path) + 1);
    model->path = copy;
    return WHIT_OK;
}

/* ---- properties of a model ------------------------------------------------------------------ */

uint32_t whit_model_vocab_size(const whit_model *model)
{
    return model->config.n_vocab;
}

uint32_t whit_model_context_size(const whit_model *model)
{
    return model->config.n_ctx;
}

uint32_t whit_model_embedding_size(const whit_model *model)
{
    return model->graph.values[model->graph.vector - 1].width;
}

static double count_parameters(const whit_weights *weights)
{
    double n = 0;
    for (uint32_t i = 0; i < weights->n_tensors; i++)
        n += (double)weights->tensors[i].type.n_rows * weights->tensors[i].type.n_cols;
    return n;
}

double whit_model_number(const whit_model *model, const char *name)
{
    const whit_config *config = &model->config;
    const whit_layer_kind kind = whit_config_kind(config, 0);
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"layers", config->n_layers},
                   {"width", config->n_embd},
                   {"feed_forward", kind.n_ff},
                   {"heads", kind.n_heads},
                   {"kv_heads", kind.n_kv_heads},
                   {"head_width", kind.head_dim},
                   {"rope_theta", config->n_ropes ? config->ropes[0].theta : config->rope_theta},
                   {"norm_epsilon", config->norm_eps},
                   {"window", config->window},
                   {"experts", config->n_experts},
                   {"experts_used", config->n_experts_used}};
    if (!strcmp(name, "parameters")) return count_parameters(&model->weights);
    if (!strcmp(name, "bits")) return whit_weights_layer_bits(&model->weights);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!strcmp(name, numbers[i].name)) return numbers[i].value;
    return -1;
}

const char *whit_model_weight_type(const whit_model *model)
{
    double n_weights[WHIT_CODEC_COUNT] = {0};
    unsigned most = WHIT_CODEC_F32;
    for (uint32_t i = 0; i < model->weights.n_tensors; i++) {
        const whit_tensor_type *type = &model->weights.tensors[i].type;
        if (type->layout == WHIT_LAYOUT_PLAIN || type->codec >= WHIT_CODEC_COUNT) continue;
        n_weights[type->codec] += (double)type->n_rows * type->n_cols;
        if (n_weights[type->codec] > n_weights[most]) most = type->codec;
    }
    return whit_codec_find(most)->name;
}

bool whit_model_has_draft_block(const whit_model *model)
{
    return model->has_draft_block && !model->split;
}

const char *whit_model_metadata(const whit_model *model, const char *key)
{
    const char *text = whit_table_get_string(whit_ndf_meta(model->file), key);
    /* "general.architecture" is copied from the source file. A model without a source, such as one that whit trained,
     * lacks it, so its family is returned. */
    if (!(text && *text) && key && !strcmp(key, "general.architecture")) return model->config.family;
    return text;
}

const uint8_t *whit_model_identity(const whit_model *model)
{
    return whit_ndf_identity(model->file);
}

bool whit_model_mapping(const whit_model *model, size_t i, const void **address, size_t *size_bytes, const char **path)
{
    if (i > UINT32_MAX) return false;
    return whit_ndf_mapping(model->file, (uint32_t)i, address, size_bytes, path);
}
