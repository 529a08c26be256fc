/* SPDX-License-Identifier: MIT
 * Reads HEAD. It is small, and everything relies on it, so it is checked completely whenever a file is opened. */
#include "format/ndf_head.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct section {
    const uint8_t *data;
    uint64_t size_bytes;
} section;

static whit_status bad(const char *path, whit_error *error, const char *place, const char *reason)
{
    return whit_fail(error, WHIT_ERROR_FORMAT, "%s: HEAD: %s: %s; the file is damaged: get or make it again", path,
                     place, reason);
}

static whit_status read_sections(const whit_ndf *ndf, const char *path, section sections[WHIT_NDF_SECTION_COUNT],
                                 whit_error *error)
{
    static const char *const names[WHIT_NDF_SECTION_COUNT] = {"",          "configuration",    "metadata",
                                                              "templates", "tensor directory", "file directory"};
    const whit_ndf_head *head = (const whit_ndf_head *)ndf->head;
    if (ndf->head_bytes < sizeof *head) return bad(path, error, "sections", "it is too short");
    if (head->n_sections > (ndf->head_bytes - sizeof *head) / sizeof(whit_ndf_section))
        return bad(path, error, "sections", "there are more sections than fit");
    if (head->reserved) return bad(path, error, "sections", "the reserved word is not 0");
    const whit_ndf_section *at = (const whit_ndf_section *)(head + 1);
    uint64_t end = sizeof *head + head->n_sections * sizeof *at;
    uint32_t last_kind = 0;
    for (uint32_t i = 0; i < head->n_sections; i++, at++) {
        if (at->reserved) return bad(path, error, "sections", "a reserved word is not 0");
        if (at->kind <= last_kind) return bad(path, error, "sections", "the sections are out of order");
        if (at->offset % WHIT_NDF_ALIGN_BYTES) return bad(path, error, "sections", "a section is not aligned");
        if (at->offset < end) return bad(path, error, "sections", "two sections overlap");
        if (!whit_in_bounds(at->offset, at->size_bytes, ndf->head_bytes))
            return bad(path, error, "sections", "a section is outside the frame");
        end = at->offset + at->size_bytes;
        last_kind = at->kind;
        if (at->kind < WHIT_NDF_SECTION_COUNT) sections[at->kind] = (section){ndf->head + at->offset, at->size_bytes};
    }
    for (uint32_t kind = 1; kind < WHIT_NDF_SECTION_COUNT; kind++)
        if (!sections[kind].data) return bad(path, error, names[kind], "it is missing");
    return WHIT_OK;
}

static whit_status read_table(const char *path, const char *name, section from, whit_table *table, whit_error *error)
{
    char place[4096 + 64];
    snprintf(place, sizeof place, "%s: HEAD: %s", path, name);
    return whit_table_open(from.data, from.size_bytes, place, table, error);
}

/* Returns NULL, or the reason why a part file's name is invalid. It must not contain a folder: part files are in the
 * main file's folder. */
static const char *check_file_name(const section *from, const whit_ndf_string *name)
{
    if (!whit_in_bounds(name->offset, (uint64_t)name->bytes + 1, from->size_bytes) ||
        from->data[(size_t)name->offset + name->bytes] != 0)
        return "a name is outside the frame";
    const char *text = (const char *)from->data + name->offset;
    if (name->bytes == 0 || name->bytes > 255 || strlen(text) != name->bytes || strchr(text, '/') ||
        strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        return "a name is not a plain file name";
    return NULL;
}

static whit_status read_files(whit_ndf *ndf, const char *path, section from, whit_error *error)
{
    static const char place[] = "file directory";
    const whit_ndf_files_header *header = (const whit_ndf_files_header *)from.data;
    if (from.size_bytes < sizeof *header) return bad(path, error, place, "it is too short");
    if (header->n_files == 0 || header->n_files > WHIT_NDF_MAX_FILES ||
        header->n_files > (from.size_bytes - sizeof *header) / sizeof(whit_ndf_file_entry))
        return bad(path, error, place, "its number of files is not possible");
    if (header->reserved) return bad(path, error, place, "the reserved word is not 0");
    ndf->file_entries = (const whit_ndf_file_entry *)(header + 1);
    ndf->file_names = from.data;
    ndf->n_files_room = header->n_files;
    for (uint32_t i = 1; i < header->n_files; i++) {
        const char *reason = check_file_name(&from, &ndf->file_entries[i].name);
        if (reason) return bad(path, error, place, reason);
    }
    return WHIT_OK;
}

static const char *check_type(const whit_tensor_type *type)
{
    if (type->codec >= WHIT_CODEC_COUNT) return "its codec is unknown";
    if (type->layout >= WHIT_LAYOUT_COUNT) return "its layout is unknown";
    if (type->scale_kind > WHIT_SCALE_GROUP) return "its kind of scales is unknown";
    if (type->scale_type >= WHIT_SCALE_TYPE_COUNT) return "its type of scales is unknown";
    if (type->has_offset > 1) return "its offset flag is neither 0 nor 1";
    if (type->act > WHIT_TENSOR_ACT_FIXED) return "its kind of activations is unknown";
    if (type->reserved != 0) return "its reserved word is not 0";
    if (type->n_rows == 0 || type->n_cols == 0) return "it has no elements";
    bool grouped = type->scale_kind == WHIT_SCALE_GROUP;
    bool power = type->group >= 16 && type->group <= 256 && (type->group & (type->group - 1)) == 0;
    if (grouped ? !power : type->group != 0) return "its group size is not one of 16 to 256";
    return NULL;
}

/* Returns NULL, or the reason why tensor `i` is invalid. Each part of the tensor must refer back to it; *n_used counts
 * these parts, so that the caller can find parts that belong to no tensor. */
static const char *check_tensor(const whit_ndf *ndf, uint32_t i, uint32_t *n_used)
{
    const whit_ndf_tensor_entry *entry = whit_ndf_tensor_entry_at(ndf, i);
    const char *reason = check_type(&entry->type);
    if (reason) return reason;
    if (entry->reserved) return "its reserved word is not 0";
    if (entry->part[WHIT_PART_CODES] == 0) return "it has no codes";
    for (uint32_t k = 0; k < WHIT_PART_COUNT; k++) {
        if (entry->part[k] == 0) continue;
        if (entry->part[k] > ndf->n_parts) return "one of its parts does not exist";
        const whit_ndf_part_entry *part = &ndf->parts[entry->part[k] - 1];
        if (part->tensor != i || part->part != k) return "one of its parts belongs to another";
        ++*n_used;
    }
    return NULL;
}

/* Returns NULL, or the reason why part `i` is invalid. Parts are sorted by file and offset, so only neighbours can
 * overlap. */
static const char *check_part(const whit_ndf *ndf, uint32_t i)
{
    const whit_ndf_part_entry *part = &ndf->parts[i];
    if (part->tensor >= ndf->tensors.n_entries) return "it belongs to no tensor";
    if (part->file >= ndf->n_files_room) return "its file does not exist";
    if (part->reserved) return "its reserved word is not 0";
    if (part->offset % WHIT_NDF_ALIGN_BYTES) return "it is not aligned to 64 bytes";
    if (part->size_bytes == 0) return "it is empty";
    if (!whit_in_bounds(part->offset, part->size_bytes, ndf->file_entries[part->file].data_bytes))
        return "it is outside the DATA frame";
    if (i == 0) return NULL;
    const whit_ndf_part_entry *before = part - 1;
    if (before->file > part->file) return "it is out of order";
    if (before->file == part->file && part->offset < before->offset + before->size_bytes)
        return "it overlaps another part or is out of order";
    return NULL;
}

static whit_status read_tensors(whit_ndf *ndf, const char *path, section from, whit_error *error)
{
    static const char place[] = "tensor directory";
    const whit_ndf_tensors_header *header = (const whit_ndf_tensors_header *)from.data;
    if (from.size_bytes < sizeof *header) return bad(path, error, place, "it is too short");
    if (header->reserved) return bad(path, error, place, "the reserved word is not 0");
    uint64_t room = from.size_bytes - sizeof *header;
    uint64_t entries = (uint64_t)header->n_tensors * sizeof(whit_ndf_tensor_entry);
    uint64_t parts = (uint64_t)header->n_parts * sizeof(whit_ndf_part_entry);
    uint64_t buckets = (uint64_t)header->n_buckets * sizeof(uint32_t);
    if (entries + parts + buckets > room)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: HEAD: %s: %" PRIu32 " tensors and %" PRIu32 " parts do not fit into %" PRIu64 " bytes",
                         path, place, header->n_tensors, header->n_parts, room);
    const uint8_t *at = (const uint8_t *)(header + 1);
    ndf->parts = (const whit_ndf_part_entry *)(at + entries);
    ndf->n_parts = header->n_parts;
    ndf->tensors = (whit_ndf_names){
        .base = from.data,
        .size_bytes = from.size_bytes,
        .entries = at,
        .stride_bytes = sizeof(whit_ndf_tensor_entry),
        .n_entries = header->n_tensors,
        .buckets = (const uint32_t *)(at + entries + parts),
        .n_buckets = header->n_buckets,
    };
    uint32_t i = 0, n_used = 0;
    const char *reason = whit_ndf_names_check(&ndf->tensors, &i);
    if (reason)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: HEAD: %s: tensor %" PRIu32 ": %s; the file is damaged: get or make it again", path, place,
                         i, reason);
    for (i = 0; i < header->n_tensors; i++)
        if ((reason = check_tensor(ndf, i, &n_used)))
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "%s: HEAD: tensor '%.200s': %s; the file is damaged: get or make it again", path,
                             whit_ndf_tensor_name(ndf, i), reason);
    if (n_used != header->n_parts) return bad(path, error, place, "a part belongs to no tensor");
    for (i = 0; i < header->n_parts; i++)
        if ((reason = check_part(ndf, i)))
            return whit_fail(
                error, WHIT_ERROR_FORMAT,
                "%s: HEAD: part %" PRIu32 " of tensor '%.200s': %s; the file is damaged: get or make it again", path,
                ndf->parts[i].part,
                ndf->parts[i].tensor < header->n_tensors ? whit_ndf_tensor_name(ndf, ndf->parts[i].tensor) : "?",
                reason);
    return WHIT_OK;
}

whit_status whit_ndf_read_head(whit_ndf *ndf, const char *path, whit_error *error)
{
    section sections[WHIT_NDF_SECTION_COUNT] = {0};
    WHIT_TRY(read_sections(ndf, path, sections, error));
    WHIT_TRY(read_table(path, "configuration", sections[WHIT_NDF_CONFIG], &ndf->config, error));
    WHIT_TRY(read_table(path, "metadata", sections[WHIT_NDF_META], &ndf->meta, error));
    WHIT_TRY(read_table(path, "templates", sections[WHIT_NDF_TEMPLATES], &ndf->templates, error));
    WHIT_TRY(read_files(ndf, path, sections[WHIT_NDF_FILES], error));
    return read_tensors(ndf, path, sections[WHIT_NDF_TENSORS], error);
}
