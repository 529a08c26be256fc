/* SPDX-License-Identifier: MIT */
#include "model/source.h"
#include "base/file.h"
#include "base/items.h"
#include "base/path.h"

#include "model/draft_block.h"
#include "model/rope_scaling.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_TENSORS 1000000

whit_source_tensor *whit_source_add(whit_source *source, const char *name, whit_error *error)
{
    if (whit_source_find(source, name)) {
        whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file has two tensors for '%s'", source->path, name);
        return NULL;
    }
    if (source->n_tensors == source->capacity_tensors) {
        uint32_t capacity = source->capacity_tensors ? 2 * source->capacity_tensors : 64;
        if (capacity > MAX_TENSORS) {
            whit_fail(error, WHIT_ERROR_LIMIT, "%s: the file has more than %u tensors, the limit", source->path,
                      source->n_tensors);
            return NULL;
        }
        whit_source_tensor *larger = whit_zalloc_array(source->allocator, capacity, sizeof *larger);
        if (!larger) {
            whit_fail_memory(error, "the list of tensors", capacity * sizeof *larger);
            return NULL;
        }
        if (source->n_tensors) memcpy(larger, source->tensors, source->n_tensors * sizeof *larger);
        whit_free(source->allocator, source->tensors, source->capacity_tensors * sizeof *larger);
        source->tensors = larger;
        source->capacity_tensors = capacity;
    }
    whit_source_tensor *tensor = &source->tensors[source->n_tensors++];
    *tensor = (whit_source_tensor){0};
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    return tensor;
}

/* ---- tensors of parts ------------------------------------------------------------------------ */

whit_source_tensor *whit_source_add_part(whit_source *source, const char *name, uint32_t part, uint32_t n_parts,
                                         whit_error *error)
{
    whit_source_tensor *tensor = (whit_source_tensor *)whit_source_find(source, name);
    if (part >= n_parts) {
        whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file has '%s' of expert %u, but the model has %u experts",
                  source->path, name, part, n_parts);
        return NULL;
    }
    if (!tensor) {
        whit_source_tensor *parts = whit_zalloc_array(source->allocator, n_parts, sizeof *parts);
        tensor = parts ? whit_source_add(source, name, error) : NULL;
        if (!parts) whit_fail_memory(error, "a list of experts", n_parts * sizeof *parts);
        if (!tensor) {
            whit_free(source->allocator, parts, n_parts * sizeof *parts);
            return NULL;
        }
        tensor->parts = parts;
        tensor->n_parts = n_parts;
    }
    if (!tensor->parts || tensor->parts[part].name[0]) {
        whit_fail(error, WHIT_ERROR_FORMAT,
                  "%s: the file has two tensors for '%s' of expert %u, but only one is possible", source->path, name,
                  part);
        return NULL;
    }
    snprintf(tensor->parts[part].name, sizeof tensor->parts[part].name, "%.26s of expert %u", name, part);
    return &tensor->parts[part];
}

static whit_status read_part(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    const uint32_t n_rows = tensor->parts[0].type.n_rows;
    const whit_source_tensor *part = &tensor->parts[row / n_rows];
    WHIT_TRY(part->read_row(part, row % n_rows, rows, error));
    if (part->type.scale_kind == WHIT_SCALE_TENSOR) rows->fields[0] = part->type.scale;
    return WHIT_OK;
}

static void drop_parts(const whit_source_tensor *tensor)
{
    for (uint32_t i = 0; i < tensor->n_parts; i++)
        if (tensor->parts[i].drop) tensor->parts[i].drop(&tensor->parts[i]);
}

static whit_status join_parts(const whit_source *source, whit_source_tensor *tensor, whit_error *error)
{
    whit_tensor_type type = tensor->parts[0].type;
    const bool has_scale = type.scale_kind == WHIT_SCALE_TENSOR && type.codec != WHIT_CODEC_Q2 && !type.has_offset;
    if (has_scale) type.scale = 0;
    for (uint32_t i = 0; i < tensor->n_parts; i++) {
        const whit_source_tensor *part = &tensor->parts[i];
        whit_tensor_type other = part->type;
        if (has_scale) other.scale = 0;
        if (!part->name[0])
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: '%s' of expert %u of %u is missing", source->path,
                             tensor->name, i, tensor->n_parts);
        if (memcmp(&other, &type, sizeof type) != 0)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "%s: '%s' differs from the matrix of expert 0 in size or type", source->path, part->name);
    }
    if (type.n_rows > INT32_MAX / tensor->n_parts)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: '%s' has more than 2^31 rows over all experts, the limit",
                         source->path, tensor->name);
    if (has_scale) type.scale_kind = WHIT_SCALE_ROW;
    type.n_rows *= tensor->n_parts;
    tensor->type = type;
    tensor->read_row = read_part;
    tensor->drop = drop_parts;
    return WHIT_OK;
}

whit_status whit_source_join_parts(whit_source *source, whit_error *error)
{
    for (uint32_t i = 0; i < source->n_tensors; i++)
        if (source->tensors[i].parts) WHIT_TRY(join_parts(source, &source->tensors[i], error));
    return WHIT_OK;
}

const whit_source_tensor *whit_source_find(const whit_source *source, const char *name)
{
    for (uint32_t i = 0; i < source->n_tensors; i++)
        if (strcmp(source->tensors[i].name, name) == 0) return &source->tensors[i];
    return NULL;
}

whit_status whit_source_add_template(whit_source *source, const char *name, size_t name_bytes, const char *text,
                                     size_t text_bytes, whit_error *error)
{
    char key[64];
    if (!name_bytes || name_bytes >= sizeof key || memchr(name, 0, name_bytes) || memchr(text, 0, text_bytes))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: a chat template has an invalid name or contains a zero byte",
                         source->path);
    memcpy(key, name, name_bytes);
    key[name_bytes] = 0;
    whit_table_set_string_n(&source->templates, key, text, text_bytes);
    return WHIT_OK;
}

/* Returns the row of the file that stores a canonical row: the two rows of a RoPE pair are adjacent in the file (2i, 2i
 * + 1), and half of rope_dim apart in canonical order (i, i + half). */
static uint32_t unpermuted(const whit_source_tensor *tensor, uint32_t row)
{
    uint32_t head_dim = tensor->unpermute_head_dim, rope_dim = tensor->unpermute_rope_dim;
    if (!head_dim) return row;
    uint32_t in_head = row % head_dim, half = rope_dim / 2;
    if (in_head >= rope_dim) return row;
    return row - in_head + (in_head < half ? 2 * in_head : 2 * (in_head - half) + 1);
}

uint32_t whit_source_head_order(const whit_source_tensor *tensor, uint32_t i)
{
    const uint32_t begin = tensor->order_begin, dim = tensor->order_dim;
    if (!dim || i < begin) return i;
    const uint32_t head = (i - begin) / dim, n_keys = tensor->order_key_heads;
    return begin + (head % n_keys * (tensor->order_heads / n_keys) + head / n_keys) * dim + (i - begin) % dim;
}

uint32_t whit_source_row(const whit_source_tensor *tensor, uint32_t row)
{
    if (!tensor->orders_columns) row = whit_source_head_order(tensor, row);
    row = unpermuted(tensor, row);
    for (uint32_t i = 0; i < tensor->n_sections; i++) {
        const whit_source_section *s = &tensor->sections[i];
        if (row < s->n) return s->begin + (s->run ? row / s->run * s->stride + row % s->run : row);
        row -= s->n;
    }
    return row;
}

/* ---- resolver for a graph ------------------------------------------------------------------- */

static int32_t find_tensor(void *context, const char *name)
{
    const whit_source *source = context;
    const whit_source_tensor *tensor = whit_source_find(source, name);
    return tensor ? (int32_t)(tensor - source->tensors) : -1;
}

static const whit_tensor_type *tensor_type(void *context, int32_t index)
{
    const whit_source *source = context;
    return &source->tensors[index].type;
}

whit_resolver whit_source_resolver(const whit_source *source)
{
    return (whit_resolver){(void *)(uintptr_t)source, find_tensor, tensor_type};
}

/* ---- check that a graph can run the model --------------------------------------------------- */

static void mark_used(void *context, int32_t tensor)
{
    whit_source *source = context;
    if (tensor >= 0) source->tensors[tensor].used = true;
}

static whit_status mark_divisors(void *context, const char *name, uint32_t n, whit_error *error)
{
    whit_source *source = context;
    (void)n;
    (void)error;
    mark_used(source, find_tensor(source, name));
    return WHIT_OK;
}

static whit_status check_runs(whit_source *source, whit_error *error)
{
    WHIT_TRY(whit_config_check(&source->config, source->path, error));
    for (uint32_t i = 0; i < source->n_tensors; i++) {
        whit_error inner;
        if (whit_tensor_type_check(&source->tensors[i].type, &inner) != WHIT_OK)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: tensor '%s': %s", source->path, source->tensors[i].name,
                             inner.message);
    }
    whit_error inner = {0};
    whit_graph graph;
    whit_graph_begin(&graph, source->allocator, whit_source_resolver(source), &inner);
    whit_status status = whit_family_build(&source->config, &graph);
    for (uint32_t i = 0; status == WHIT_OK && i < graph.n_nodes; i++) {
        mark_used(source, graph.nodes[i].weight);
        mark_used(source, graph.nodes[i].bias);
    }
    whit_graph_free(&graph);
    if (status != WHIT_OK && source->config.program_name) return whit_fail(error, status, "%s", inner.message);
    const whit_resolver resolver = whit_source_resolver(source);
    if (status == WHIT_OK)
        status = whit_draft_block_visit(&source->config, &resolver, mark_used, source, source->allocator, &inner);
    if (status != WHIT_OK) return whit_fail(error, status, "%s: %s", source->path, inner.message);
    WHIT_TRY(whit_rope_check_tensors(&source->config, &resolver, source->path, error));
    WHIT_TRY(whit_rope_visit(&source->config, mark_divisors, source, error));
    for (uint32_t i = 0; i < source->n_tensors; i++)
        if (!source->tensors[i].used)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "%s: tensor '%s' is not used by a model of family %s with this configuration",
                             source->path, source->tensors[i].name, source->config.family);
    return WHIT_OK;
}

static bool has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

static bool looks_like_ndf(const char *path)
{
    char head[64];
    return whit_ndf_has_magic(head, whit_read_found_head(path, head, sizeof head));
}

/* Opens the folder that contains a weights file as the model, because the file alone lacks the configuration. */
static whit_status import_beside(whit_source *source, const char *path, whit_error *error)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    char *folder;
    if (slash) {
        const char *name = slash == path ? "/" : path;
        folder = whit_strndup(source->allocator, name, n ? n : 1);
    } else
        folder = whit_strndup(source->allocator, ".", 1);
    if (!folder) return whit_fail_memory(error, "a file name", n);
    char config[PATH_MAX];
    bool fits = snprintf(config, sizeof config, "%s/config.json", folder) < (int)sizeof config;
    whit_status status = fits && !whit_path_exists(config) && errno == ENOENT
        ? whit_fail(error, WHIT_ERROR_IO,
                    "%s: its folder has no config.json, which describes the tensors: download it there", path)
        : whit_import_hf(source, folder, error);
    whit_free(source->allocator, folder, strlen(folder) + 1);
    return status;
}

static void set_program(whit_source *source)
{
    const whit_family_program *program = source->options->program;
    if (!program) return;
    source->config.program = program->text;
    source->config.program_name = program->name;
}

whit_status whit_source_open(const char *path, const whit_allocator *allocator, whit_source *source, whit_error *error)
{
    static const whit_source_options usual = {0};
    return whit_source_open_as(path, &usual, allocator, source, error);
}

/* Adds one note that names all skipped fields. */
static whit_status note_passed_over(whit_source *source, whit_error *error)
{
    if (!source->passed_over.size_bytes) return WHIT_OK;
    whit_buf_printf(&source->notes, "%s: fields without effect on the computation were ignored: %.*s\n", source->path,
                    (int)source->passed_over.size_bytes, whit_chars(&source->passed_over));
    return source->notes.failed ? whit_fail_memory(error, "the notes on the file", source->notes.size_bytes) : WHIT_OK;
}

whit_status whit_source_pass_over(whit_source *source, const char *name, size_t name_bytes, whit_error *error)
{
    char shown[64];
    size_t n = name_bytes < sizeof shown ? name_bytes : sizeof shown - 1;
    for (size_t i = 0; i < n; i++) shown[i] = name[i] > ' ' && name[i] < 127 ? name[i] : '?';
    if (source->options->is_strict)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: field '%.*s' is not known (--strict)", source->path,
                         (int)n, shown);
    whit_buf_printf(&source->passed_over, "%s%.*s", source->passed_over.size_bytes ? ", " : "", (int)n, shown);
    return source->passed_over.failed ? whit_fail_memory(error, "the notes on the file", n) : WHIT_OK;
}

/* Refuses overrides, because only the metadata of GGUF files can be replaced. */
static whit_status refuse_overrides(const whit_source *source, const char *what, const char *advice, whit_error *error)
{
    if (!source->options->n_overrides) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: overrides change the metadata of GGUF files; this is %s: %s",
                     source->path, what, advice);
}

static whit_status import_source(whit_source *source, whit_error *error)
{
    static const char folder_advice[] = "edit its config.json";
    const char *path = source->path;
    struct stat info;
    if (stat(path, &info) != 0) return whit_fail_errno(error, path, "open");
    if (S_ISDIR(info.st_mode)) {
        WHIT_TRY(refuse_overrides(source, "a folder", folder_advice, error));
        return whit_import_hf(source, path, error);
    }
    if (has_suffix(path, ".safetensors")) {
        WHIT_TRY(refuse_overrides(source, "a part of a folder", folder_advice, error));
        return import_beside(source, path, error);
    }
    if (!looks_like_ndf(path)) return whit_import_gguf(source, error);
    WHIT_TRY(refuse_overrides(source, "an .ndf", "convert its GGUF file again, with them", error));
    return whit_import_ndf(source, error);
}

whit_status whit_source_open_as(const char *path, const whit_source_options *options, const whit_allocator *allocator,
                                whit_source *source, whit_error *error)
{
    const whit_family_program *program = options->program;
    *source = (whit_source){.options = options, .allocator = allocator, .path = path};
    if (program && strlen(program->text) > WHIT_FAMILY_MAX_PROGRAM_BYTES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the file has more bytes than a family's program may, %zu",
                         program->name ? program->name : "the program", WHIT_FAMILY_MAX_PROGRAM_BYTES);
    source->tokenizer.allocator = source->templates.allocator = source->notes.allocator = allocator;
    source->passed_over.allocator = allocator;
    set_program(source);
    whit_status status = import_source(source, error);
    set_program(source); /* an .ndf file may contain another program, which the option replaces */
    if (status == WHIT_OK) status = note_passed_over(source, error);
    if (status == WHIT_OK) status = check_runs(source, error);
    if (status != WHIT_OK) whit_source_close(source);
    return status;
}

whit_status whit_source_open_values(const char *path, const whit_allocator *allocator, whit_source *source,
                                    whit_error *error)
{
    static const whit_source_options values = {.reads_values = true};
    return whit_source_open_as(path, &values, allocator, source, error);
}

void whit_source_close(whit_source *source)
{
    if (source->close) source->close(source);
    for (uint32_t i = 0; i < source->n_tensors; i++)
        whit_free(source->allocator, source->tensors[i].parts,
                  source->tensors[i].n_parts * sizeof *source->tensors[i].parts);
    whit_free(source->allocator, source->tensors, source->capacity_tensors * sizeof *source->tensors);
    whit_buf_free(&source->tokenizer);
    whit_table_builder_free(&source->templates);
    whit_buf_free(&source->notes);
    whit_buf_free(&source->passed_over);
    *source = (whit_source){0};
}
