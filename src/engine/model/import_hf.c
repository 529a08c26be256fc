/* SPDX-License-Identifier: MIT
 * Reads Hugging Face folders as sources: opens the folder, and reads the parts that describe a model (templates,
 * metadata, generation defaults). The other import_hf_*.c files read the configuration and the weights. */
#include "model/import_hf.h"
#include "base/items.h"

#include "tokenizer/from_path.h"

#include <dirent.h>
#include <stdio.h>

#define MAX_TEMPLATE_BYTES (4u << 20)
#define MAX_FOLDER_ENTRIES 1000

/* ---- templates ------------------------------------------------------------------------------ */

/* Adds the chat templates of a document: "chat_template" is a text, or a list of {"name", "template"}. */
static whit_status add_templates(whit_source *source, const whit_hf_document *document, whit_error *error)
{
    const whit_json *json = &document->json;
    uint32_t node = whit_hf_node(document, "chat_template");
    size_t n, name_bytes;
    const char *text = whit_json_string(json, node, &n), *name;
    if (text) return whit_source_add_template(source, "default", strlen("default"), text, n, error);
    for (uint32_t at = whit_json_first(json, node); at != WHIT_JSON_NONE; at = whit_json_next(json, node, at)) {
        name = whit_json_string(json, whit_json_get(json, at, "name"), &name_bytes);
        text = whit_json_string(json, whit_json_get(json, at, "template"), &n);
        if (!name || !text) return whit_json_fail(json, at, error, "this chat template lacks its name or its text");
        WHIT_TRY(whit_source_add_template(source, name, name_bytes, text, n, error));
    }
    return WHIT_OK;
}

static whit_status add_template_file(whit_source *source, const char *name, size_t name_bytes, const char *path,
                                     whit_error *error)
{
    whit_buf text = {.allocator = source->allocator};
    whit_status status = whit_read_found_file(path, MAX_TEMPLATE_BYTES, &text, error);
    if (status == WHIT_OK)
        status = whit_source_add_template(source, name, name_bytes, whit_chars(&text), text.size_bytes, error);
    whit_buf_free(&text);
    return status;
}

/* Adds the chat templates in the files additional_chat_templates/NAME.jinja. */
static whit_status add_template_folder(whit_source *source, const char *folder, whit_error *error)
{
    static const char suffix[] = ".jinja";
    char path[4096];
    if (snprintf(path, sizeof path, "%s/additional_chat_templates", folder) >= (int)sizeof path) return WHIT_OK;
    DIR *directory = opendir(path);
    if (!directory) return WHIT_OK;
    whit_status status = WHIT_OK;
    const struct dirent *entry;
    for (int i = 0; status == WHIT_OK && i < MAX_FOLDER_ENTRIES && (entry = readdir(directory)); i++) {
        size_t n = strlen(entry->d_name), m = strlen(suffix);
        int used = snprintf(path, sizeof path, "%s/additional_chat_templates/%s", folder, entry->d_name);
        if (n <= m || strcmp(entry->d_name + n - m, suffix) != 0 || used >= (int)sizeof path) continue;
        status = add_template_file(source, entry->d_name, n - m, path, error);
    }
    closedir(directory);
    return status;
}

/* Reads all chat templates; a later template replaces an earlier one with the same name, as in transformers. */
static whit_status read_templates(whit_source *source, const whit_hf *hf, whit_error *error)
{
    WHIT_TRY(add_templates(source, &hf->template_json, error));
    WHIT_TRY(add_templates(source, &hf->tokenizer_config, error));
    if (hf->template_jinja)
        WHIT_TRY(add_template_file(source, "default", strlen("default"), hf->template_jinja, error));
    return add_template_folder(source, hf->folder, error);
}

/* ---- metadata ------------------------------------------------------------------------------- */

static void set_name(const whit_hf *hf, whit_table_builder *meta)
{
    size_t n = 0;
    const char *name = NULL, *slash;
    if (whit_hf_string(&hf->config, "_name_or_path", &name, &n, NULL) != WHIT_OK || !n) {
        slash = strrchr(hf->folder, '/');
        name = slash && slash[1] ? slash + 1 : hf->folder;
        n = strlen(name);
    }
    whit_table_set_string_n(meta, "general.name", name, n);
}

/* Copies the sampling options that the model's authors recommend into the metadata, one entry per option; only numbers
 * and booleans are copied. */
static void set_generation(const whit_hf *hf, whit_table_builder *meta)
{
    static const char *const keys[] = {"do_sample", "temperature",       "top_k", "top_p", "min_p",
                                       "typical_p", "repetition_penalty"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char name[64];
        double number;
        uint32_t node = whit_hf_node(&hf->generation_config, keys[i]);
        snprintf(name, sizeof name, "generation.%s", keys[i]);
        if (whit_json_type_of(&hf->generation_config.json, node) == WHIT_JSON_BOOL)
            whit_table_set_bool(meta, name, whit_json_bool(&hf->generation_config.json, node, false));
        else if (whit_json_f64(&hf->generation_config.json, node, &number))
            whit_table_set_f64(meta, name, number);
    }
}

static whit_status write_metadata(const whit_source *source, whit_ndf_writer *writer, whit_error *error)
{
    const struct whit_hf_importer *importer = source->importer;
    const whit_hf *hf = importer->hf;
    whit_table_builder *meta = whit_ndf_writer_meta(writer);
    (void)error;
    set_name(hf, meta);
    whit_import_hf_set_prompts(importer, meta);
    whit_table_set_string(meta, "general.architecture", importer->class->type);
    if (hf->generation_config.present) set_generation(hf, meta);
    if (!memchr(hf->config.text.data, 0, hf->config.text.size_bytes))
        whit_table_set_string_n(meta, "hf.config", whit_chars(&hf->config.text), hf->config.text.size_bytes);
    return WHIT_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void close_importer(whit_source *source)
{
    struct whit_hf_importer *importer = source->importer;
    if (!importer) return;
    if (importer->hf) whit_import_hf_free_divisors(importer);
    if (importer->hf) whit_import_hf_close_modules(importer);
    for (size_t i = 0; i < importer->n_imports; i++)
        whit_free(source->allocator, importer->imports[i].values,
                  importer->imports[i].n_values * sizeof *importer->imports[i].values);
    whit_free(source->allocator, importer->imports, importer->capacity * sizeof *importer->imports);
    whit_hf_close(importer->hf);
    whit_free(source->allocator, importer, sizeof *importer);
    source->importer = NULL;
}

static whit_status add_divisors(whit_source *source, struct whit_hf_importer *importer, whit_error *error)
{
    for (size_t i = 0; i < sizeof importer->divisors / sizeof *importer->divisors; i++) {
        struct whit_hf_divisors *divisors = &importer->divisors[i];
        float *values = divisors->values;
        divisors->values = NULL;
        if (values && divisors->n)
            WHIT_TRY(whit_import_hf_vector(source, importer, divisors->name, values, divisors->n, error));
        else
            whit_free(source->allocator, values, sizeof *values);
    }
    return WHIT_OK;
}

whit_status whit_import_hf(whit_source *source, const char *folder, whit_error *error)
{
    struct whit_hf_importer *importer = whit_zalloc(source->allocator, sizeof *importer);
    if (!importer) return whit_fail_memory(error, "reading the model", sizeof *importer);
    source->importer = importer;
    importer->source = source;
    source->close = close_importer;
    source->write_metadata = write_metadata;
    WHIT_TRY(whit_hf_open(folder, source->allocator, &importer->hf, error));
    WHIT_TRY(whit_import_hf_config(importer, &source->config, error));
    WHIT_TRY(whit_import_hf_modules(importer, &source->config, error));
    WHIT_TRY(whit_hf_open_weights(importer->hf, error));
    WHIT_TRY(whit_import_hf_tensors(source, importer, error));
    WHIT_TRY(add_divisors(source, importer, error));
    WHIT_TRY(read_templates(source, importer->hf, error));
    bool found; /* not needed, because a folder without a vocabulary works with token ids */
    return whit_tokenizer_from_hf(importer->hf, &found, &source->tokenizer, error);
}
