/* SPDX-License-Identifier: MIT
 * Reads the keys of rotated matrices in GGUF files: keys "prism.hadamard.*" (Bonsai 2). They name the tensors that are
 * rotated, the size of blocks, and a vector of signs for each width of inputs. All other values are refused, because a
 * model whose matrices are rotated differently would load and generate nonsense. */
#include "model/hadamard.h"
#include "model/import_gguf.h"

#include <stdio.h>

#define SPACE "prism.hadamard."

static const char *const names[] = {
    "version",      "transform",   "axis",         "sign_mode",   "block_size",
    "sign_widths",  "sign_values", "weight_names", "tied_output", "inverse_weight_names",
    "gdn_v_grouped"};

bool whit_import_gguf_is_of_hadamard(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char key[64];
        if ((size_t)snprintf(key, sizeof key, SPACE "%s", names[i]) == n && memcmp(key, name, n) == 0) return true;
    }
    return false;
}

struct reading {
    const whit_gguf *gguf;
    struct whit_gguf_rotation *rotation;
    const char *path;
    whit_error *error;
};

static whit_status refuse_key(const struct reading *r, const char *suffix, const char *why)
{
    return whit_fail(r->error, WHIT_ERROR_UNSUPPORTED, "%s: key '" SPACE "%s' %s", r->path, suffix, why);
}

/* Reads a text and refuses it unless it equals `only` or `other` (NULL: no other text is allowed); sets *is_other to
 * whether it equals `other`. */
static whit_status read_choice(const struct reading *r, const char *suffix, const char *only, const char *other,
                               bool *is_other)
{
    char name[64], why[160];
    const char *text = NULL;
    size_t n = 0;
    snprintf(name, sizeof name, SPACE "%s", suffix);
    WHIT_TRY(whit_gguf_string(r->gguf, name, &text, &n, r->error));
    const bool first = text && n == strlen(only) && memcmp(text, only, n) == 0;
    *is_other = text && other && n == strlen(other) && memcmp(text, other, n) == 0;
    if (first || *is_other) return WHIT_OK;
    snprintf(why, sizeof why, "is '%.*s', which is not known (known: %s%s%s)", (int)(n < 40 ? n : 40), text ? text : "",
             only, other ? ", " : "", other ? other : "");
    return refuse_key(r, suffix, why);
}

/* Marks the tensors whose names a key lists as rotated. */
static whit_status mark_tensors(const struct reading *r, const char *suffix)
{
    char key[64], why[160];
    const whit_gguf_key *array = NULL;
    const char *text;
    size_t n;
    snprintf(key, sizeof key, SPACE "%s", suffix);
    WHIT_TRY(whit_gguf_array(r->gguf, key, WHIT_GGUF_STRING, &array, r->error));
    if (!array && strcmp(suffix, "weight_names") == 0) return refuse_key(r, suffix, "is missing");
    whit_gguf_strings strings = whit_gguf_strings_of(array);
    while (whit_gguf_strings_next(&strings, &text, &n)) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), text);
        const whit_gguf_tensor *tensor = strlen(name) == n ? whit_gguf_find_tensor(r->gguf, name) : NULL;
        const bool is_table = tensor && strcmp(name, "token_embd.weight") == 0;
        snprintf(why, sizeof why, "names '%.60s', which is %s", name,
                 !tensor ? "not a tensor of the file" : "named twice, or not rotated in such a way");
        if (!tensor || is_table != (strcmp(suffix, "inverse_weight_names") == 0) ||
            r->rotation->is_rotated[tensor - r->gguf->tensors])
            return refuse_key(r, suffix, why);
        r->rotation->is_rotated[tensor - r->gguf->tensors] = true;
    }
    return WHIT_OK;
}

static whit_status read_signs(const struct reading *r)
{
    struct whit_gguf_rotation *rotation = r->rotation;
    const whit_gguf_key *widths = whit_gguf_find(r->gguf, SPACE "sign_widths"),
                        *values = whit_gguf_find(r->gguf, SPACE "sign_values");
    int64_t number;
    uint64_t total = 0;
    if (!widths || widths->type != WHIT_GGUF_ARRAY || !widths->n_elems || widths->n_elems > WHIT_GGUF_SIGN_WIDTHS_MAX)
        return refuse_key(r, "sign_widths", "is not a list of one to eight widths");
    for (uint64_t i = 0; i < widths->n_elems; i++) {
        if (!whit_gguf_element_i64(widths, i, &number) || number < 1 || number > WHIT_MAX_COLS)
            return refuse_key(r, "sign_widths", "contains a width that is not from 1 to 65536");
        for (uint32_t k = 0; k < rotation->n_widths; k++)
            if (rotation->widths[k] == number) return refuse_key(r, "sign_widths", "contains a width twice");
        rotation->widths[rotation->n_widths++] = (uint32_t)number;
        total += (uint64_t)number;
    }
    if (!values || values->type != WHIT_GGUF_ARRAY || values->n_elems != total)
        return refuse_key(r, "sign_values", "does not have one sign for each input of all widths");
    rotation->n_signs = (size_t)total;
    rotation->signs = whit_zalloc_array(r->gguf->allocator, rotation->n_signs, sizeof *rotation->signs);
    if (!rotation->signs)
        return whit_fail_memory(r->error, "the signs of rotated matrices", rotation->n_signs * sizeof *rotation->signs);
    for (uint64_t i = 0; i < total; i++) {
        if (!whit_gguf_element_i64(values, i, &number) || (number != 1 && number != -1))
            return refuse_key(r, "sign_values", "contains a sign that is neither 1 nor -1");
        rotation->signs[i] = (float)number;
    }
    return WHIT_OK;
}

/* Reads whether rotated output matrices of delta rules expect value heads grouped by key head. */
static whit_status read_grouping(const struct reading *r, whit_config *c)
{
    static const char end[] = ".ssm_out.weight";
    bool is_grouped = false, has_output = false;
    WHIT_TRY(whit_gguf_bool(r->gguf, SPACE "gdn_v_grouped", &is_grouped, r->error));
    for (size_t i = 0; i < r->gguf->n_tensors; i++) {
        const whit_gguf_tensor *t = &r->gguf->tensors[i];
        const size_t n = strlen(end);
        has_output |=
            r->rotation->is_rotated[i] && t->name_bytes > n && memcmp(t->name + t->name_bytes - n, end, n) == 0;
    }
    if (!is_grouped || !has_output || c->delta_heads == c->delta_key_heads) return WHIT_OK;
    if (c->delta_grouped)
        return refuse_key(
            r, "gdn_v_grouped",
            "is true, although value heads of this architecture are grouped in any case: the file is damaged");
    r->rotation->groups_heads = c->delta_grouped = true;
    return WHIT_OK;
}

whit_status whit_import_gguf_hadamard(const whit_gguf *gguf, whit_source *source, struct whit_gguf_rotation *rotation,
                                      whit_error *error)
{
    whit_config *c = &source->config;
    const struct reading r = {gguf, rotation, source->path, error};
    uint64_t version = 0, block = 0;
    bool is_tied = false, has_signs = false, unused;
    /* a file without a version has no rotated matrices; import_gguf_keys.c refuses other keys of the namespace */
    if (!whit_gguf_find(gguf, SPACE "version")) return WHIT_OK;
    WHIT_TRY(whit_gguf_u64(gguf, SPACE "version", &version, error));
    WHIT_TRY(whit_gguf_u64(gguf, SPACE "block_size", &block, error));
    WHIT_TRY(whit_gguf_bool(gguf, SPACE "tied_output", &is_tied, error));
    if (version != 1 && version != 2) return refuse_key(&r, "version", "is neither 1 nor 2");
    if (block < 2 || block > WHIT_HADAMARD_BLOCK_MAX || (block & (block - 1)))
        return refuse_key(&r, "block_size", "is not a power of two from 2 to 65536");
    WHIT_TRY(read_choice(&r, "transform", "normalized-sylvester-walsh-hadamard", NULL, &unused));
    WHIT_TRY(read_choice(&r, "axis", "input-last-dimension", NULL, &unused));
    WHIT_TRY(read_choice(&r, "sign_mode", "identity", "explicit", &has_signs));
    rotation->is_rotated = whit_zalloc_array(gguf->allocator, gguf->n_tensors, sizeof *rotation->is_rotated);
    if (!rotation->is_rotated) return whit_fail_memory(error, "marks of tensors", gguf->n_tensors);
    WHIT_TRY(mark_tensors(&r, "weight_names"));
    WHIT_TRY(mark_tensors(&r, "inverse_weight_names"));
    if (has_signs) WHIT_TRY(read_signs(&r));
    const whit_gguf_tensor *embed = whit_gguf_find_tensor(gguf, "token_embd.weight");
    const bool is_table = embed && rotation->is_rotated[embed - gguf->tensors];
    if (is_tied != (version == 2) || (c->tied_head && is_table != is_tied) || (!c->tied_head && is_tied))
        return refuse_key(&r, "tied_output", "does not fit the version, or the presence of a head in the file");
    c->hadamard_block = (uint32_t)block;
    c->hadamard_signs = has_signs;
    return read_grouping(&r, c);
}

whit_status whit_import_gguf_rotate(whit_source *source, struct whit_gguf_importer *importer, size_t file,
                                    const whit_source_tensor *tensor, whit_error *error)
{
    struct whit_gguf_rotation *rotation = &importer->rotation;
    whit_config *c = &source->config;
    const char *weight = strrchr(tensor->name, '.');
    const uint32_t bit = whit_hadamard_bit(weight ? weight + 1 : tensor->name);
    uint32_t layer;
    const bool is_draft = strncmp(tensor->name, "layers.", 7) == 0 &&
        /* a layer number outside the model's layers: the tensor belongs to a draft block */
        !whit_import_layer(tensor->name, "layers", c->n_layers, &layer);
    if (!rotation->is_rotated || tensor->type.layout == WHIT_LAYOUT_PLAIN) return WHIT_OK;
    if (!rotation->is_rotated[file]) {
        if (!is_draft) rotation->plain |= bit;
    } else {
        if (!bit || is_draft || tensor->type.n_cols % c->hadamard_block)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "%s: key '" SPACE
                             "weight_names' names '%s', whose %u inputs are not blocks of %u or which "
                             "cannot be rotated here",
                             source->path, tensor->name, tensor->type.n_cols, c->hadamard_block);
        c->hadamard_matrices |= bit;
    }
    if (c->hadamard_matrices & rotation->plain)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: key '" SPACE "weight_names' names '%s' in some layers only", source->path,
                         weight ? weight + 1 : tensor->name);
    return WHIT_OK;
}

whit_status whit_import_gguf_signs(whit_source *source, struct whit_gguf_importer *importer, whit_error *error)
{
    const struct whit_gguf_rotation *rotation = &importer->rotation;
    const float *signs = rotation->signs;
    for (uint32_t i = 0; i < rotation->n_widths; signs += rotation->widths[i++]) {
        char name[32];
        snprintf(name, sizeof name, "hadamard.%u", rotation->widths[i]);
        WHIT_TRY(whit_import_gguf_vector(source, importer, name, signs, rotation->widths[i], error));
    }
    return WHIT_OK;
}

void whit_import_gguf_close_rotation(const whit_gguf *gguf, struct whit_gguf_rotation *rotation)
{
    if (!gguf) return;
    whit_free(gguf->allocator, rotation->is_rotated, gguf->n_tensors * sizeof *rotation->is_rotated);
    whit_free(gguf->allocator, rotation->signs, rotation->n_signs * sizeof *rotation->signs);
    *rotation = (struct whit_gguf_rotation){0};
}
