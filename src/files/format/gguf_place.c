/* SPDX-License-Identifier: MIT
 * Checks bounds and overlaps of GGUF tensors and decides their types.
 *
 * A tensor's *room* is the distance from its offset to the next tensor's, or to the end of the file. It decides the
 * kind of type ids whose meaning differs between forks: with the right kind, every tensor of that id fills its room
 * except for padding. */
#include "base/phrase.h"
#include "format/gguf_place.h"

#include "format/gguf_meta.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct place {
    uint32_t tensor; /* index into gguf->tensors */
    uint32_t file;
    uint64_t offset_bytes;
    uint64_t room_bytes;
    bool last; /* this is the last tensor of its file */
};

static int compare_places(const void *a, const void *b)
{
    const struct place *p = a, *q = b;
    if (p->file != q->file) return p->file < q->file ? -1 : 1;
    if (p->offset_bytes != q->offset_bytes) return p->offset_bytes < q->offset_bytes ? -1 : 1;
    return p->tensor < q->tensor ? -1 : p->tensor > q->tensor;
}

/* Returns the number of rows. The product cannot overflow: gguf.c has checked that the product of all dimensions fits
 * 64 bits. */
static uint64_t n_rows(const whit_gguf_tensor *tensor)
{
    return tensor->dims[1] * tensor->dims[2] * tensor->dims[3];
}

static bool tensor_size(const whit_gguf_tensor *tensor, whit_ggml_kind kind, uint64_t *size_bytes)
{
    return whit_ggml_size(kind, tensor->dims[0], n_rows(tensor), size_bytes);
}

static whit_status fail_at(const whit_gguf *gguf, const whit_gguf_tensor *tensor, whit_status status, whit_error *error,
                           const char *format, ...) __attribute__((format(printf, 5, 6)));

static whit_status fail_at(const whit_gguf *gguf, const whit_gguf_tensor *tensor, whit_status status, whit_error *error,
                           const char *format, ...)
{
    char reason[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return whit_fail(error, status, "%s: tensor %.*s: %s", gguf->files[tensor->file].path,
                     whit_gguf_shown(tensor->name_bytes), tensor->name, reason);
}

/* ---- ids with several meanings ------------------------------------------------------------- */

#define MAX_PADDING_BYTES (1u << 20)

enum fit { FIT_NONE, FIT_PADDED, FIT_STRIDE, FIT_EXACT };

/* Returns whether the bytes are only zeros; false if they are too many to check quickly. */
static bool is_padding(const uint8_t *bytes, uint64_t n_bytes)
{
    if (n_bytes > MAX_PADDING_BYTES) return false;
    for (uint64_t i = 0; i < n_bytes; i++)
        if (bytes[i]) return false;
    return true;
}

/* Returns how well a kind fills the room of a tensor. FIT_EXACT: the gap is only the padding to the alignment, and
 * zero. FIT_STRIDE: the same, but the gap has other bytes. FIT_PADDED: a larger gap, all zeros. FIT_NONE: neither. */
static enum fit fit_of(const whit_gguf *gguf, const struct place *place, whit_ggml_kind kind)
{
    const whit_gguf_tensor *tensor = &gguf->tensors[place->tensor];
    const whit_gguf_file *file = &gguf->files[place->file];
    uint64_t size;
    if (!tensor_size(tensor, kind, &size) || size > place->room_bytes) return FIT_NONE;
    uint64_t gap = place->room_bytes - size;
    bool zero = is_padding(tensor->data + size, gap);
    if (gap < file->alignment_bytes &&
        (gap == 0 || (place->offset_bytes + place->room_bytes) % file->alignment_bytes == 0))
        return zero ? FIT_EXACT : FIT_STRIDE;
    return zero ? FIT_PADDED : FIT_NONE;
}

/* Counts those of the first 1024 blocks of row 0 whose first scale is implausible (not finite, negative or above 1000).
 * Many of them indicate that the kind is wrong. */
static uint64_t count_odd_scales(const whit_gguf_tensor *tensor, whit_ggml_kind kind)
{
    whit_ggml_view view = whit_gguf_view(tensor);
    view.kind = kind;
    int8_t codes[WHIT_GGML_BLOCK_ELEMS];
    float scales[WHIT_GGML_BLOCK_GROUPS], offsets[WHIT_GGML_BLOCK_GROUPS];
    uint64_t n_blocks = view.n_cols / whit_ggml_kind_info(kind)->block_elems, n_odd = 0;
    for (uint64_t block = 0; block < n_blocks && block < 1024; block++) {
        whit_ggml_block_codes(&view, 0, block, codes, scales, offsets);
        n_odd += !isfinite(scales[0]) || scales[0] < 0 || scales[0] > 1000;
    }
    return n_odd;
}

struct meaning {
    whit_ggml_kind kind;
    bool possible;
    uint64_t fit, n_odd;
};

static struct meaning judge(const whit_gguf *gguf, const struct place *places, uint32_t id, whit_ggml_kind kind)
{
    struct meaning meaning = {.kind = kind, .possible = true};
    for (size_t i = 0; i < gguf->n_tensors && meaning.possible; i++) {
        const whit_gguf_tensor *tensor = &gguf->tensors[places[i].tensor];
        if (tensor->id != id) continue;
        enum fit fit = fit_of(gguf, &places[i], kind);
        meaning.possible = fit != FIT_NONE;
        meaning.fit += fit;
        if (meaning.possible) meaning.n_odd += count_odd_scales(tensor, kind);
    }
    return meaning;
}

static whit_status no_meaning(const whit_gguf *gguf, const struct place *places, uint32_t id,
                              const whit_ggml_kind *kinds, size_t n_kinds, whit_error *error)
{
    const struct place *place = places;
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        bool fits = false;
        if (gguf->tensors[places[i].tensor].id != id) continue;
        place = &places[i];
        for (size_t k = 0; k < n_kinds; k++) fits |= fit_of(gguf, place, kinds[k]) != FIT_NONE;
        if (!fits) break;
    }
    const whit_gguf_tensor *tensor = &gguf->tensors[place->tensor];
    char names[64] = "";
    for (size_t k = 0; k < n_kinds; k++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", k ? ", " : "",
                 whit_ggml_kind_info(kinds[k])->name);
    const char *hint = whit_ggml_refusal(id);
    return fail_at(gguf, tensor, WHIT_ERROR_FORMAT, error,
                   "type id %u: %llu rows of %llu weights in %llu bytes fit no known meaning of it (%s)%s%s", id,
                   (unsigned long long)n_rows(tensor), (unsigned long long)tensor->dims[0],
                   (unsigned long long)place->room_bytes, names, hint ? "; " : "", whit_or_empty(hint));
}

/* Chooses one kind for all tensors with this id, since all tensors of a file come from the same fork. */
static whit_status decide(whit_gguf *gguf, const struct place *places, uint32_t id, whit_error *error)
{
    whit_ggml_kind kinds[WHIT_GGML_MAX_CANDIDATES];
    size_t n_kinds = whit_ggml_candidates(id, kinds), n_tensors = 0;
    struct meaning best = {0};
    for (size_t k = 0; k < n_kinds; k++) {
        struct meaning meaning = judge(gguf, places, id, kinds[k]);
        if (!meaning.possible) continue;
        if (!best.possible || meaning.fit > best.fit || (meaning.fit == best.fit && meaning.n_odd < best.n_odd))
            best = meaning;
    }
    if (!best.possible) return no_meaning(gguf, places, id, kinds, n_kinds, error);
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        if (gguf->tensors[i].id != id) continue;
        gguf->tensors[i].kind = best.kind;
        n_tensors++;
    }
    const whit_ggml_info *info = whit_ggml_kind_info(best.kind);
    if (!whit_buf_printf(&gguf->notes,
                         "type id %u is read as %s (%u bytes for %u weights), by the stride of %zu tensor%s\n", id,
                         info->name, info->block_bytes, info->block_elems, n_tensors, whit_plural(n_tensors)))
        return whit_fail_memory(error, "the notes on the file", gguf->notes.size_bytes);
    return WHIT_OK;
}

/* ---- all tensors --------------------------------------------------------------------------- */

static whit_status measure_rooms(const whit_gguf *gguf, struct place *places, whit_error *error)
{
    for (size_t i = 0; i < gguf->n_tensors; i++)
        places[i] = (struct place){(uint32_t)i, gguf->tensors[i].file, gguf->tensors[i].offset_bytes, 0, true};
    qsort(places, gguf->n_tensors, sizeof *places, compare_places);
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        struct place *place = &places[i];
        const whit_gguf_file *file = &gguf->files[place->file];
        whit_gguf_tensor *tensor = &gguf->tensors[place->tensor];
        uint64_t data_bytes = file->size_bytes > file->data_start_bytes ? file->size_bytes - file->data_start_bytes : 0;
        if (place->offset_bytes % file->alignment_bytes)
            return fail_at(gguf, tensor, WHIT_ERROR_FORMAT, error,
                           "its offset is not aligned as the file says: the file is damaged");
        if (place->offset_bytes >= data_bytes)
            return fail_at(gguf, tensor, WHIT_ERROR_FORMAT, error,
                           "begins after the end of the file: the file is damaged or truncated");
        tensor->data = file->data + file->data_start_bytes + place->offset_bytes;
        place->last = i + 1 == gguf->n_tensors || places[i + 1].file != place->file;
        place->room_bytes = (place->last ? data_bytes : places[i + 1].offset_bytes) - place->offset_bytes;
        if (place->room_bytes == 0)
            return fail_at(gguf, tensor, WHIT_ERROR_FORMAT, error,
                           "has the same offset as another tensor: the file is damaged");
    }
    return WHIT_OK;
}

static whit_status decide_kinds(whit_gguf *gguf, const struct place *places, whit_error *error)
{
    bool decided[144] = {false}; /* indexed by type id; ids with several meanings are below 144 */
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        whit_gguf_tensor *tensor = &gguf->tensors[i];
        whit_ggml_kind kinds[WHIT_GGML_MAX_CANDIDATES];
        if (whit_ggml_candidates(tensor->id, kinds) == 0) {
            const char *reason = whit_ggml_refusal(tensor->id);
            return fail_at(gguf, tensor, WHIT_ERROR_UNSUPPORTED, error, "type id %u: %s", tensor->id,
                           reason ? reason : "this type is not known");
        }
        if (!whit_ggml_id_collides(tensor->id)) {
            tensor->kind = kinds[0];
            continue;
        }
        if (decided[tensor->id]) continue;
        WHIT_TRY(decide(gguf, places, tensor->id, error));
        decided[tensor->id] = true;
    }
    return WHIT_OK;
}

static whit_status check_sizes(whit_gguf *gguf, const struct place *places, whit_error *error)
{
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        whit_gguf_tensor *tensor = &gguf->tensors[places[i].tensor];
        const whit_ggml_info *info = whit_ggml_kind_info(tensor->kind);
        if (!tensor_size(tensor, tensor->kind, &tensor->size_bytes))
            return fail_at(gguf, tensor, WHIT_ERROR_FORMAT, error,
                           "%llu rows of %llu do not divide into blocks of %s (%u weights)",
                           (unsigned long long)n_rows(tensor), (unsigned long long)tensor->dims[0], info->name,
                           info->block_elems);
        if (tensor->size_bytes <= places[i].room_bytes) continue;
        if (places[i].last)
            return fail_at(gguf, tensor, WHIT_ERROR_FORMAT, error,
                           "needs %llu bytes, but the file has only %llu: it is damaged or truncated",
                           (unsigned long long)tensor->size_bytes, (unsigned long long)places[i].room_bytes);
        const whit_gguf_tensor *next = &gguf->tensors[places[i + 1].tensor];
        return fail_at(gguf, tensor, WHIT_ERROR_FORMAT, error, "its %llu bytes overlap tensor %.*s",
                       (unsigned long long)tensor->size_bytes, whit_gguf_shown(next->name_bytes), next->name);
    }
    return WHIT_OK;
}

whit_status whit_gguf_place_tensors(whit_gguf *gguf, whit_error *error)
{
    /* The reader has limited n_tensors, so this cannot overflow. */
    size_t n_bytes = gguf->n_tensors * sizeof(struct place);
    struct place *places = whit_alloc(gguf->allocator, n_bytes);
    if (!places) return whit_fail_memory(error, "the list of tensors", n_bytes);
    whit_status status = measure_rooms(gguf, places, error);
    if (status == WHIT_OK) status = decide_kinds(gguf, places, error);
    if (status == WHIT_OK) status = check_sizes(gguf, places, error);
    whit_free(gguf->allocator, places, n_bytes);
    return status;
}
