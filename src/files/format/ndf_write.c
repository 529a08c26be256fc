/* SPDX-License-Identifier: MIT
 * Implements the writer. At first a plan assigns a position to every part; then the data is written in that order. */
#include "format/ndf_write.h"
#include "base/items.h"

#include "format/ndf_file.h"
#include "format/ndf_head.h"
#include "format/ndf_identity.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define HEAD_LIMIT_BYTES ((size_t)1 << 31) /* name offsets are u32 */

typedef enum stage { STAGE_DECLARING, STAGE_DATA, STAGE_COMMITTED } stage;

typedef struct declared {
    size_t name_offset, name_bytes; /* position in writer->names */
    whit_tensor_type type;
    uint64_t part_bytes[WHIT_PART_COUNT];
    uint32_t place;      /* index in the order of names */
    uint32_t first_part; /* index of the tensor's first part in writer->plan */
    bool has_digest;
    uint8_t digest[WHIT_HASH_BYTES];
} declared;

/* A part to be written. The plan lists parts in the order of the data. */
typedef struct planned {
    uint64_t offset, size_bytes;
    uint32_t file, tensor, part;
} planned;

typedef struct output {
    whit_writer file;
    whit_ndf_stream stream;
    uint64_t data_bytes; /* size of the file's tensor data according to the plan */
} output;

struct whit_ndf_writer {
    const whit_allocator *allocator;
    char *path; /* NULL for a file in memory */
    whit_ndf_write_options options;
    stage stage;
    whit_table_builder config, meta, templates;
    const void *tokenizer;
    size_t tokenizer_bytes;
    whit_buf tensors; /* array of `declared` */
    whit_buf names;   /* names of tensors, NUL-terminated */

    output *outputs;
    uint32_t n_outputs;
    whit_buf plan;     /* array of `planned` */
    uint32_t *by_name; /* (n_tensors) numbers of tensors, sorted by name */
    uint8_t set[WHIT_HASH_BYTES];
    uint8_t config_digest[WHIT_HASH_BYTES], tokenizer_digest[WHIT_HASH_BYTES];
    uint32_t next_part, file; /* index in the plan of the part that is being written, and index of its file */
    uint64_t done_bytes;      /* bytes of plan[next_part] written so far */
    /* If a model is replaced, its part files stay until the new main file is in place. The new part files therefore get
     * the other of two sets of names (see part_path). */
    bool second_names;
    uint32_t n_replaced; /* number of files of the replaced model; 0: it has no part files */
};

static uint32_t count_tensors(const whit_ndf_writer *writer)
{
    return (uint32_t)(writer->tensors.size_bytes / sizeof(declared));
}

static declared *tensor_at(const whit_ndf_writer *writer, uint32_t i)
{
    return WHIT_ITEMS(declared, &writer->tensors) + i;
}

static const char *name_of(const whit_ndf_writer *writer, const declared *tensor)
{
    return whit_chars(&writer->names) + tensor->name_offset;
}

static uint32_t count_parts(const whit_ndf_writer *writer)
{
    return (uint32_t)(writer->plan.size_bytes / sizeof(planned));
}

static const planned *part_at(const whit_ndf_writer *writer, uint32_t i)
{
    return WHIT_ITEMS(const planned, &writer->plan) + i;
}

static const char *shown_path(const whit_ndf_writer *writer)
{
    return writer->path ? writer->path : "memory file";
}

/* If writer->path is a symbolic link, replaces it by the link's target, because part files must be in the folder of the
 * main file. */
static whit_status follow_path(whit_ndf_writer *writer, whit_error *error)
{
    const whit_writer *file = &writer->outputs[0].file;
    if (!file->path || file->is_special || strcmp(file->path, writer->path) == 0) return WHIT_OK;
    char *followed = whit_strndup(writer->allocator, file->path, strlen(file->path));
    if (!followed) return whit_fail_memory(error, "a file name", strlen(file->path) + 1);
    whit_free(writer->allocator, writer->path, strlen(writer->path) + 1);
    writer->path = followed;
    return WHIT_OK;
}

whit_status whit_ndf_writer_open(const char *path, const whit_ndf_write_options *options,
                                 const whit_allocator *allocator, whit_ndf_writer **writer, whit_error *error)
{
    *writer = NULL;
    whit_hash_prepare();
    whit_ndf_writer *made = whit_zalloc(allocator, sizeof *made);
    if (!made) return whit_fail_memory(error, "writing the file", sizeof *made);
    made->allocator = allocator;
    if (options) made->options = *options;
    made->config.allocator = made->meta.allocator = made->templates.allocator = allocator;
    made->tensors.allocator = made->names.allocator = made->plan.allocator = allocator;
    made->names.limit_bytes = HEAD_LIMIT_BYTES;
    whit_status status = WHIT_OK;
    if (path && !(made->path = whit_strndup(allocator, path, strlen(path))))
        status = whit_fail_memory(error, "a file name", strlen(path) + 1);
    if (status == WHIT_OK && !(made->outputs = whit_zalloc(allocator, sizeof *made->outputs)))
        status = whit_fail_memory(error, "writing the file", sizeof *made->outputs);
    if (status == WHIT_OK) {
        made->n_outputs = 1;
        status = whit_writer_open(path, allocator, &made->outputs[0].file, error);
    }
    if (status == WHIT_OK) status = follow_path(made, error);
    if (status == WHIT_OK) status = whit_writer_gather(&made->outputs[0].file, error);
    if (status != WHIT_OK) {
        whit_ndf_writer_close(made);
        return status;
    }
    *writer = made;
    return WHIT_OK;
}

whit_table_builder *whit_ndf_writer_config(whit_ndf_writer *writer)
{
    return &writer->config;
}

whit_table_builder *whit_ndf_writer_meta(whit_ndf_writer *writer)
{
    return &writer->meta;
}

whit_table_builder *whit_ndf_writer_templates(whit_ndf_writer *writer)
{
    return &writer->templates;
}

void whit_ndf_writer_set_tokenizer(whit_ndf_writer *writer, const void *image, size_t size_bytes)
{
    writer->tokenizer = image;
    writer->tokenizer_bytes = size_bytes;
}

whit_status whit_ndf_writer_declare(whit_ndf_writer *writer, const char *name, const whit_tensor_type *type,
                                    const uint64_t part_bytes[WHIT_PART_COUNT], uint32_t *tensor, whit_error *error)
{
    declared added = {.name_offset = writer->names.size_bytes, .name_bytes = strlen(name), .type = *type};
    memcpy(added.part_bytes, part_bytes, sizeof added.part_bytes);
    if (writer->stage != STAGE_DECLARING || !*name || part_bytes[WHIT_PART_CODES] == 0)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "tensor '%s': it must be declared before whit_ndf_writer_begin, with a name and codes", name);
    for (uint32_t k = 0; k < WHIT_PART_COUNT; k++)
        if (part_bytes[k] > WHIT_NDF_MAX_PAYLOAD_BYTES / 1024)
            return whit_fail(error, WHIT_ERROR_LIMIT, "tensor '%s': a part of it exceeds 1 PiB, the limit", name);
    if (tensor) *tensor = count_tensors(writer);
    if (!whit_buf_append(&writer->names, name, added.name_bytes + 1) ||
        !whit_buf_append(&writer->tensors, &added, sizeof added))
        return whit_fail_memory(error, "a list of tensors", writer->tensors.size_bytes);
    return WHIT_OK;
}

/* ---- begin: the plan and the directory ---- */

static int compare_names(const void *left, const void *right, void *user)
{
    const whit_ndf_writer *writer = user;
    return strcmp(name_of(writer, tensor_at(writer, *(const uint32_t *)left)),
                  name_of(writer, tensor_at(writer, *(const uint32_t *)right)));
}

static whit_status sort_names(whit_ndf_writer *writer, whit_error *error)
{
    uint32_t n = count_tensors(writer);
    writer->by_name = whit_zalloc_array(writer->allocator, n, sizeof *writer->by_name);
    if (!writer->by_name) return whit_fail_memory(error, "a list of tensors", n * sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++) writer->by_name[i] = i;
    if (n) qsort_r(writer->by_name, n, sizeof *writer->by_name, compare_names, writer);
    for (uint32_t i = 0; i < n; i++) {
        declared *tensor = tensor_at(writer, writer->by_name[i]);
        tensor->place = i;
        if (i && compare_names(&writer->by_name[i - 1], &writer->by_name[i], writer) == 0)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "two tensors have the name '%s'", name_of(writer, tensor));
    }
    return WHIT_OK;
}

static uint64_t align(uint64_t n)
{
    return (n + WHIT_NDF_ALIGN_BYTES - 1) & ~(uint64_t)(WHIT_NDF_ALIGN_BYTES - 1);
}

/* Assigns a file and an offset to every part. data_bytes[f] receives the size of the data of file f. */
static whit_status plan_parts(whit_ndf_writer *writer, whit_buf *data_bytes, whit_error *error)
{
    uint64_t at = 0;
    uint32_t file = 0;
    for (uint32_t i = 0; i < count_tensors(writer); i++) {
        declared *tensor = tensor_at(writer, i);
        uint64_t total = 0;
        for (uint32_t k = 0; k < WHIT_PART_COUNT; k++) total += align(tensor->part_bytes[k]);
        uint64_t limit = writer->options.max_data_bytes;
        if (limit && at && align(at) + total > limit) {
            whit_buf_append(data_bytes, &at, sizeof at);
            file++;
            at = 0;
        }
        tensor->first_part = count_parts(writer);
        for (uint32_t k = 0; k < WHIT_PART_COUNT; k++) {
            if (tensor->part_bytes[k] == 0) continue;
            planned part = {align(at), tensor->part_bytes[k], file, i, k};
            at = part.offset + part.size_bytes;
            whit_buf_append(&writer->plan, &part, sizeof part);
        }
        if (at > WHIT_NDF_MAX_PAYLOAD_BYTES)
            return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the tensors exceed 1 EiB together, the limit",
                             shown_path(writer));
    }
    whit_buf_append(data_bytes, &at, sizeof at);
    if (writer->plan.failed || data_bytes->failed)
        return whit_fail_memory(error, "a list of tensors", writer->plan.size_bytes);
    if (file && !writer->path)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "a model in memory cannot have part files: give no part size");
    if (file >= WHIT_NDF_MAX_FILES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the model needs more than %u files; choose a larger file size",
                         shown_path(writer), WHIT_NDF_MAX_FILES);
    return WHIT_OK;
}

/* Builds "dir/NAME-00002-of-00003.ndf", or "dir/NAME-00002-of-00003b.ndf" for the second set of names. *from is the
 * offset at which the file name begins. */
static bool part_path(const whit_ndf_writer *writer, bool second, uint32_t file, uint32_t n_files, whit_buf *path,
                      size_t *from)
{
    size_t n = strlen(writer->path);
    const char *slash = strrchr(writer->path, '/');
    *from = slash ? (size_t)(slash + 1 - writer->path) : 0;
    if (n > *from + 4 && strcmp(writer->path + n - 4, ".ndf") == 0) n -= 4;
    return whit_buf_printf(path, "%.*s-%05" PRIu32 "-of-%05" PRIu32 "%s.ndf", (int)n, writer->path, file + 1, n_files,
                           second ? "b" : "");
}

/* If the writer will replace a model, finds out which set of names its part files have, and how many there are. */
static void look_at_replaced(whit_ndf_writer *writer)
{
    whit_ndf *old;
    whit_buf name = {.allocator = writer->allocator};
    size_t from;
    if (!writer->path || whit_ndf_open(writer->path, writer->allocator, &old, NULL) != WHIT_OK) return;
    if (old->n_files > 1 && part_path(writer, false, 1, old->n_files, &name, &from)) {
        const whit_ndf_string *used = &old->file_entries[1].name;
        writer->n_replaced = old->n_files;
        writer->second_names = used->bytes == name.size_bytes - from &&
            memcmp(old->file_names + used->offset, name.data + from, used->bytes) == 0;
    }
    whit_buf_free(&name);
    whit_ndf_close(old);
}

/* Deletes part files [first, n_files) of a set of names. */
static void remove_parts(const whit_ndf_writer *writer, bool second, uint32_t first, uint32_t n_files)
{
    for (uint32_t f = first; f < n_files; f++) {
        whit_buf path = {.allocator = writer->allocator};
        size_t from;
        if (part_path(writer, second, f, n_files, &path, &from)) (void)unlink(whit_chars(&path));
        whit_buf_free(&path);
    }
}

static bool write_files(const whit_ndf_writer *writer, whit_buf *out)
{
    size_t start = out->size_bytes;
    whit_ndf_files_header header = {writer->n_outputs, 0};
    whit_buf_append(out, &header, sizeof header);
    whit_buf_append_zeros(out, writer->n_outputs * sizeof(whit_ndf_file_entry));
    for (uint32_t f = 0; f < writer->n_outputs && !out->failed; f++) {
        whit_ndf_file_entry entry = {.data_bytes = writer->outputs[f].data_bytes};
        if (f) {
            whit_buf path = {.allocator = writer->allocator};
            size_t from = 0;
            if (!part_path(writer, writer->second_names, f, writer->n_outputs, &path, &from)) out->failed = true;
            entry.name = (whit_ndf_string){(uint32_t)(out->size_bytes - start), (uint32_t)(path.size_bytes - from)};
            whit_buf_append(out, path.data + from, path.size_bytes - from);
            whit_buf_append_zeros(out, 1);
            whit_buf_free(&path);
        }
        if (!out->failed) memcpy(out->data + start + sizeof header + f * sizeof entry, &entry, sizeof entry);
    }
    return !out->failed;
}

static bool write_tensors(const whit_ndf_writer *writer, whit_buf *out)
{
    uint32_t n = count_tensors(writer), n_parts = count_parts(writer);
    whit_ndf_tensors_header header = {n, n_parts, whit_ndf_n_buckets(n), 0};
    size_t start = out->size_bytes, entries = start + sizeof header;
    size_t buckets = entries + n * sizeof(whit_ndf_tensor_entry) + n_parts * sizeof(whit_ndf_part_entry);
    size_t names = buckets + header.n_buckets * sizeof(uint32_t);
    whit_buf_append(out, &header, sizeof header);
    for (uint32_t i = 0; i < n; i++) {
        const declared *tensor = tensor_at(writer, writer->by_name[i]);
        whit_ndf_tensor_entry entry = {
            .name = {(uint32_t)(names - start + tensor->name_offset), (uint32_t)tensor->name_bytes,
                     whit_ndf_name_hash(name_of(writer, tensor), tensor->name_bytes)},
            .type = tensor->type,
        };
        for (uint32_t k = 0, part = tensor->first_part; k < WHIT_PART_COUNT; k++)
            if (tensor->part_bytes[k]) entry.part[k] = ++part;
        whit_buf_append(out, &entry, sizeof entry);
    }
    for (uint32_t i = 0; i < n_parts; i++) {
        const planned *part = part_at(writer, i);
        whit_ndf_part_entry entry = {
            part->offset, part->size_bytes, part->file, tensor_at(writer, part->tensor)->place, part->part, 0};
        whit_buf_append(out, &entry, sizeof entry);
    }
    whit_buf_append_zeros(out, header.n_buckets * sizeof(uint32_t));
    if (out->failed) return false;
    whit_ndf_fill_buckets(out->data + entries, sizeof(whit_ndf_tensor_entry), n, (uint32_t *)(out->data + buckets),
                          header.n_buckets);
    return whit_buf_append(out, writer->names.data, writer->names.size_bytes);
}

static whit_status write_section(whit_ndf_writer *writer, whit_ndf_section_kind kind, whit_buf *head, whit_error *error)
{
    whit_buf_align(head, WHIT_NDF_ALIGN_BYTES);
    size_t start = head->size_bytes;
    switch (kind) {
    case WHIT_NDF_CONFIG: WHIT_TRY(whit_table_build(&writer->config, head, error)); break;
    case WHIT_NDF_META: WHIT_TRY(whit_table_build(&writer->meta, head, error)); break;
    case WHIT_NDF_TEMPLATES: WHIT_TRY(whit_table_build(&writer->templates, head, error)); break;
    case WHIT_NDF_TENSORS: (void)write_tensors(writer, head); break;
    case WHIT_NDF_FILES:
        if (!write_files(writer, head)) return whit_fail_memory(error, "the directory of tensors", head->size_bytes);
        break;
    case WHIT_NDF_SECTION_COUNT: break;
    }
    if (head->failed) return whit_fail_memory(error, "the directory of tensors", head->size_bytes);
    whit_ndf_section section = {kind, 0, start, head->size_bytes - start};
    memcpy(head->data + sizeof(whit_ndf_head) + (kind - 1) * sizeof section, &section, sizeof section);
    return WHIT_OK;
}

static whit_status write_head(whit_ndf_writer *writer, whit_error *error)
{
    whit_buf head = {.allocator = writer->allocator, .limit_bytes = HEAD_LIMIT_BYTES};
    uint32_t n_sections = WHIT_NDF_SECTION_COUNT - 1;
    whit_status status = WHIT_OK;
    whit_buf_append(&head, &(whit_ndf_head){n_sections, 0}, sizeof(whit_ndf_head));
    whit_buf_append_zeros(&head, n_sections * sizeof(whit_ndf_section));
    for (uint32_t kind = 1; status == WHIT_OK && kind < WHIT_NDF_SECTION_COUNT; kind++)
        status = write_section(writer, kind, &head, error);
    if (status == WHIT_OK) {
        /* Apply the reader's checks to types, sizes and names, so that the written file can certainly be opened. */
        whit_ndf check = {.head = head.data, .head_bytes = head.size_bytes};
        status = whit_ndf_read_head(&check, shown_path(writer), error);
        if (status == WHIT_OK) whit_ndf_config_digest(&check.config, writer->config_digest);
    }
    if (status == WHIT_OK) {
        whit_hash hash;
        whit_hash_begin(&hash, WHIT_NDF_DOMAIN_SET);
        whit_hash_add(&hash, head.data, head.size_bytes);
        whit_hash_end(&hash, writer->set);
        status = whit_ndf_stream_frame(&writer->outputs[0].stream, WHIT_NDF_HEAD, head.data, head.size_bytes, error);
    }
    whit_buf_free(&head);
    return status;
}

/* Allocates the list of output files. The first of them is open already. */
static whit_status make_outputs(whit_ndf_writer *writer, const whit_buf *data_bytes, whit_error *error)
{
    uint32_t n = (uint32_t)(data_bytes->size_bytes / sizeof(uint64_t));
    output *outputs = whit_zalloc_array(writer->allocator, n, sizeof *outputs);
    if (!outputs) return whit_fail_memory(error, "a list of files", n * sizeof *outputs);
    outputs[0] = writer->outputs[0];
    for (uint32_t f = 0; f < n; f++) {
        outputs[f].data_bytes = (WHIT_ITEMS(const uint64_t, data_bytes))[f];
        outputs[f].stream.out = &outputs[f].file;
    }
    whit_free(writer->allocator, writer->outputs, sizeof *outputs);
    writer->outputs = outputs;
    writer->n_outputs = n;
    return WHIT_OK;
}

whit_status whit_ndf_writer_begin(whit_ndf_writer *writer, whit_error *error)
{
    if (writer->stage != STAGE_DECLARING)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: whit_ndf_writer_begin was called twice", shown_path(writer));
    writer->stage = STAGE_DATA;
    WHIT_TRY(sort_names(writer, error));
    whit_buf data_bytes = {.allocator = writer->allocator};
    whit_status status = plan_parts(writer, &data_bytes, error);
    if (status == WHIT_OK) status = make_outputs(writer, &data_bytes, error);
    whit_buf_free(&data_bytes);
    WHIT_TRY(status);
    look_at_replaced(writer);
    WHIT_TRY(write_head(writer, error));
    whit_ndf_stream *stream = &writer->outputs[0].stream;
    whit_ndf_tokenizer_digest(writer->tokenizer, writer->tokenizer_bytes, writer->tokenizer_digest);
    if (writer->tokenizer_bytes)
        WHIT_TRY(whit_ndf_stream_frame(stream, WHIT_NDF_TOKENIZER, writer->tokenizer, writer->tokenizer_bytes, error));
    return whit_ndf_stream_begin(stream, WHIT_NDF_DATA, error);
}

/* ---- writing data ---- */

static whit_status end_file(whit_ndf_writer *writer, whit_error *error)
{
    whit_ndf_stream *stream = &writer->outputs[writer->file].stream;
    WHIT_TRY(whit_ndf_stream_end(stream, error));
    return writer->file ? whit_ndf_stream_commit(stream, error) : WHIT_OK;
}

static whit_status next_file(whit_ndf_writer *writer, whit_error *error)
{
    WHIT_TRY(end_file(writer, error));
    output *out = &writer->outputs[++writer->file];
    whit_buf path = {.allocator = writer->allocator};
    size_t from;
    if (!part_path(writer, writer->second_names, writer->file, writer->n_outputs, &path, &from))
        return whit_fail_memory(error, "a file name", path.size_bytes);
    whit_status status = whit_writer_open(whit_chars(&path), writer->allocator, &out->file, error);
    whit_buf_free(&path);
    WHIT_TRY(status);
    WHIT_TRY(whit_writer_gather(&out->file, error));
    whit_ndf_part_file part = {.file = writer->file, .n_files = writer->n_outputs};
    memcpy(part.set, writer->set, sizeof part.set);
    WHIT_TRY(whit_ndf_stream_frame(&out->stream, WHIT_NDF_PART, &part, sizeof part, error));
    return whit_ndf_stream_begin(&out->stream, WHIT_NDF_DATA, error);
}

whit_status whit_ndf_writer_add(whit_ndf_writer *writer, uint32_t tensor, whit_part part, const void *data,
                                size_t size_bytes, whit_error *error)
{
    const planned *next = part_at(writer, writer->next_part);
    if (writer->stage != STAGE_DATA || writer->next_part >= count_parts(writer) || next->tensor != tensor ||
        next->part != (uint32_t)part || size_bytes > next->size_bytes - writer->done_bytes)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s: data of tensor %" PRIu32 " came out of order or is longer than declared",
                         shown_path(writer), tensor);
    if (next->file != writer->file) WHIT_TRY(next_file(writer, error));
    whit_ndf_stream *stream = &writer->outputs[writer->file].stream;
    WHIT_TRY(whit_ndf_stream_pad(stream, next->offset, error));
    WHIT_TRY(whit_ndf_stream_add(stream, data, size_bytes, error));
    writer->done_bytes += size_bytes;
    if (writer->done_bytes == next->size_bytes) {
        writer->next_part++;
        writer->done_bytes = 0;
    }
    return WHIT_OK;
}

void whit_ndf_writer_set_digest(whit_ndf_writer *writer, uint32_t tensor, const uint8_t digest[WHIT_HASH_BYTES])
{
    if (tensor >= count_tensors(writer)) return;
    memcpy(tensor_at(writer, tensor)->digest, digest, WHIT_HASH_BYTES);
    tensor_at(writer, tensor)->has_digest = true;
}

/* ---- committing ---- */

static whit_status write_seal(whit_ndf_writer *writer, uint8_t identity[WHIT_HASH_BYTES], whit_error *error)
{
    uint32_t n = count_tensors(writer);
    whit_buf payload = {.allocator = writer->allocator};
    whit_ndf_seal seal = {.n_tensors = n, .n_part_files = writer->n_outputs - 1};
    memcpy(seal.config, writer->config_digest, sizeof seal.config);
    memcpy(seal.tokenizer, writer->tokenizer_digest, sizeof seal.tokenizer);
    whit_hash hash;
    whit_ndf_identity_begin(&hash, seal.config, seal.tokenizer, n);
    whit_buf_append(&payload, &seal, sizeof seal);
    for (uint32_t i = 0; i < n; i++) {
        const declared *tensor = tensor_at(writer, writer->by_name[i]);
        whit_ndf_identity_add(&hash, name_of(writer, tensor), tensor->type.n_rows, tensor->type.n_cols, tensor->digest);
        whit_buf_append(&payload, tensor->digest, sizeof tensor->digest);
    }
    whit_hash_end(&hash, seal.identity);
    for (uint32_t f = 1; f < writer->n_outputs; f++)
        whit_buf_append(&payload, writer->outputs[f].stream.previous, WHIT_HASH_BYTES);
    whit_status status;
    if (payload.failed) {
        status = whit_fail_memory(error, "a seal", payload.size_bytes);
    } else {
        memcpy(payload.data, seal.identity, sizeof seal.identity);
        if (identity) memcpy(identity, seal.identity, sizeof seal.identity);
        status =
            whit_ndf_stream_frame(&writer->outputs[0].stream, WHIT_NDF_SEAL, payload.data, payload.size_bytes, error);
    }
    whit_buf_free(&payload);
    return status;
}

whit_status whit_ndf_writer_commit(whit_ndf_writer *writer, uint8_t identity[WHIT_HASH_BYTES], whit_error *error)
{
    if (writer->stage != STAGE_DATA || writer->next_part != count_parts(writer))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: whit_ndf_writer_commit was called before all data was added",
                         shown_path(writer));
    for (uint32_t i = 0; i < count_tensors(writer); i++)
        if (!tensor_at(writer, i)->has_digest)
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "tensor '%s' has no digest: whit_ndf_writer_commit needs one for each",
                             name_of(writer, tensor_at(writer, i)));
    WHIT_TRY(end_file(writer, error));
    WHIT_TRY(write_seal(writer, identity, error));
    WHIT_TRY(whit_ndf_stream_commit(&writer->outputs[0].stream, error));
    for (uint32_t f = writer->n_outputs; f-- > 0;) {
        whit_status status = whit_writer_commit(&writer->outputs[f].file, error);
        if (status == WHIT_OK) continue;
        /* The main file was not replaced, so no file refers to the new part files. */
        remove_parts(writer, writer->second_names, f + 1, writer->n_outputs);
        return status;
    }
    writer->stage = STAGE_COMMITTED;
    remove_parts(writer, !writer->second_names, 1, writer->n_replaced);
    return WHIT_OK;
}

int whit_ndf_writer_fd(const whit_ndf_writer *writer)
{
    return writer->stage == STAGE_COMMITTED && !writer->path ? writer->outputs[0].file.fd : -1;
}

void whit_ndf_writer_close(whit_ndf_writer *writer)
{
    if (!writer) return;
    const whit_allocator *allocator = writer->allocator;
    for (uint32_t f = 0; f < writer->n_outputs; f++) {
        whit_writer_discard(&writer->outputs[f].file);
        whit_ndf_stream_free(&writer->outputs[f].stream);
    }
    whit_free(allocator, writer->outputs, writer->n_outputs * sizeof *writer->outputs);
    whit_free(allocator, writer->by_name, count_tensors(writer) * sizeof *writer->by_name);
    if (writer->path) whit_free(allocator, writer->path, strlen(writer->path) + 1);
    whit_table_builder_free(&writer->config);
    whit_table_builder_free(&writer->meta);
    whit_table_builder_free(&writer->templates);
    whit_buf_free(&writer->tensors);
    whit_buf_free(&writer->names);
    whit_buf_free(&writer->plan);
    whit_free(allocator, writer, sizeof *writer);
}
