/* SPDX-License-Identifier: MIT
 * Opens a container and returns its parts. */
#include "format/ndf_head.h"
#include "base/items.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* The payloads of the frames HEAD, SEAL and PART, if not larger than this, are compared with their hashes on opening,
 * which takes a quarter of a millisecond at most. Larger ones are only checked by whit_ndf_verify. */
#define CHECKED_AT_OPEN_BYTES ((uint64_t)256 << 10)

bool whit_ndf_has_magic(const void *data, size_t size_bytes)
{
    return size_bytes >= 8 && memcmp(data, WHIT_NDF_MAGIC, 8) == 0;
}

static const uint8_t *payload_at(const whit_ndf_file_view *file, uint32_t i)
{
    return file->map.data + whit_ndf_payload_offset(whit_ndf_chain_at(&file->chain, i));
}

static whit_status bad_frame(const whit_ndf_file_view *file, uint32_t i, const char *reason, whit_error *error)
{
    const whit_ndf_frame *frame = whit_ndf_chain_at(&file->chain, i);
    return whit_fail(error, WHIT_ERROR_FORMAT,
                     "%s: frame %" PRIu32 " (%s) at byte %" PRIu64 ": %s; the file is damaged: get or make it again",
                     file->map.path, i, whit_ndf_frame_type_name(frame->type), frame->offset, reason);
}

/* Checks that frame `i` exists and has this type. The payload of HEAD, SEAL or PART, if not larger than
 * CHECKED_AT_OPEN_BYTES, is also compared with its hash. */
static whit_status expect_frame(const whit_ndf_file_view *file, uint32_t i, uint32_t type, whit_error *error)
{
    if (i >= file->chain.n_frames)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: the file has no %s frame: it is truncated or not an .ndf model; get or make it again",
                         file->map.path, whit_ndf_frame_type_name(type));
    const whit_ndf_frame *frame = whit_ndf_chain_at(&file->chain, i);
    if (frame->type != type) return bad_frame(file, i, "its type is not expected here", error);
    bool directory = type == WHIT_NDF_HEAD || type == WHIT_NDF_SEAL || type == WHIT_NDF_PART;
    if (!directory || frame->payload_bytes > CHECKED_AT_OPEN_BYTES) return WHIT_OK;
    const whit_ndf_header *header = (const whit_ndf_header *)(file->map.data + frame->offset);
    uint8_t root[WHIT_HASH_BYTES];
    whit_ndf_small_root(payload_at(file, i), frame->payload_bytes, root);
    if (memcmp(root, header->root, sizeof root) != 0) return bad_frame(file, i, "its payload is damaged", error);
    return WHIT_OK;
}

static whit_status map_file(const whit_ndf_input *input, const char *path, const whit_allocator *allocator,
                            whit_ndf_file_view *file, whit_error *error)
{
    for (int n_tries = 0; n_tries < 100; n_tries++) {
        if (input->data)
            WHIT_TRY(whit_map_open_memory(input->data, input->size_bytes, path, allocator, &file->map, error));
        else
            WHIT_TRY(whit_map_open_fd(input->fd, path, allocator, &file->map, error));
        WHIT_TRY(whit_ndf_chain_read(input, path, allocator, &file->chain, error));
        if (file->chain.end_bytes <= file->map.size_bytes) return WHIT_OK;
        /* Another process has appended between the two steps, so the map does not cover the chain: try again. */
        whit_ndf_chain_free(&file->chain);
        whit_map_close(&file->map);
    }
    return whit_fail(error, WHIT_ERROR_IO,
                     "%s: another program keeps appending to the file; try again when it has ended", path);
}

static int open_to_read(const char *path)
{
    /* With O_NONBLOCK, opening a FIFO does not wait for a writer. The FIFO is refused afterwards. */
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static void take_data(whit_ndf_file_view *file, uint32_t i)
{
    file->data = payload_at(file, i);
    file->data_bytes = whit_ndf_chain_at(&file->chain, i)->payload_bytes;
    file->data_frame = i;
}

/* Reads the frames HEAD, TOKENIZER (optional), DATA, SEAL and COMMIT of the main file. */
static whit_status read_main(whit_ndf *ndf, whit_error *error)
{
    whit_ndf_file_view *file = &ndf->files[0];
    const char *path = file->map.path;
    if (whit_ndf_chain_at(&file->chain, 0)->type == WHIT_NDF_PART)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: the file is a part of a split model; open the model's main file", path);
    if (whit_ndf_chain_at(&file->chain, 0)->type >= WHIT_NDF_ADAPTER) {
        const char *what = "a frame";
        if (whit_ndf_chain_at(&file->chain, 0)->type == WHIT_NDF_ADAPTER)
            what = "an adapter";
        else if (whit_ndf_chain_at(&file->chain, 0)->type == WHIT_NDF_SESSION)
            what = "a session";
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: the file is %s without a model; open the model to which it belongs", path, what);
    }
    uint32_t i = 0;
    WHIT_TRY(expect_frame(file, i, WHIT_NDF_HEAD, error));
    ndf->head = payload_at(file, i);
    ndf->head_bytes = whit_ndf_chain_at(&file->chain, i)->payload_bytes;
    WHIT_TRY(whit_ndf_read_head(ndf, path, error));
    if (++i < file->chain.n_frames && whit_ndf_chain_at(&file->chain, i)->type == WHIT_NDF_TOKENIZER) {
        ndf->tokenizer = payload_at(file, i);
        ndf->tokenizer_bytes = whit_ndf_chain_at(&file->chain, i)->payload_bytes;
        i++;
    }
    WHIT_TRY(expect_frame(file, i, WHIT_NDF_DATA, error));
    take_data(file, i);
    if (file->data_bytes != ndf->file_entries[0].data_bytes)
        return bad_frame(file, i, "its length is not the one in the file directory", error);
    WHIT_TRY(expect_frame(file, ++i, WHIT_NDF_SEAL, error));
    uint64_t seal_bytes = whit_ndf_chain_at(&file->chain, i)->payload_bytes;
    uint64_t n_digests = (uint64_t)ndf->tensors.n_entries + ndf->n_files_room - 1;
    if (seal_bytes != sizeof *ndf->seal + n_digests * WHIT_HASH_BYTES)
        return bad_frame(file, i, "its length does not fit the number of tensors and files", error);
    ndf->seal = (const whit_ndf_seal *)payload_at(file, i);
    static const uint8_t zeros[sizeof ndf->seal->reserved];
    if (memcmp(ndf->seal->reserved, zeros, sizeof zeros) != 0)
        return bad_frame(file, i, "its reserved words are not 0", error);
    if (ndf->seal->n_tensors != ndf->tensors.n_entries || ndf->seal->n_part_files != ndf->n_files_room - 1)
        return bad_frame(file, i, "it gives another number of tensors or files", error);
    WHIT_TRY(expect_frame(file, ++i, WHIT_NDF_COMMIT, error));
    ndf->n_base_frames = i + 1;
    for (i = ndf->n_base_frames; i < file->chain.n_frames; i++) {
        uint32_t type = whit_ndf_chain_at(&file->chain, i)->type;
        if (type < WHIT_NDF_ADAPTER && type != WHIT_NDF_COMMIT)
            return bad_frame(file, i, "its type is not expected after the model", error);
    }
    return WHIT_OK;
}

/* Checks a part file. It must consist of PART, DATA and COMMIT, and the frame hash of its commit must equal the hash in
 * the main file's seal. */
static whit_status check_part_file(const whit_ndf *ndf, uint32_t number, whit_ndf_file_view *file, whit_error *error)
{
    const char *path = file->map.path;
    WHIT_TRY(expect_frame(file, 0, WHIT_NDF_PART, error));
    const whit_ndf_part_file *part = (const whit_ndf_part_file *)payload_at(file, 0);
    if (whit_ndf_chain_at(&file->chain, 0)->payload_bytes != sizeof *part)
        return bad_frame(file, 0, "its length is wrong", error);
    uint8_t set[WHIT_HASH_BYTES];
    whit_hash hash;
    whit_hash_begin(&hash, WHIT_NDF_DOMAIN_SET);
    whit_hash_add(&hash, ndf->head, ndf->head_bytes);
    whit_hash_end(&hash, set);
    if (memcmp(set, part->set, sizeof set) != 0)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file is a part of another model: get the part of this one",
                         path);
    if (part->file != number || part->n_files != ndf->n_files_room)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: another part belongs here: the file is part %" PRIu32 " of %" PRIu32, path,
                         part->file + 1, part->n_files);
    WHIT_TRY(expect_frame(file, 1, WHIT_NDF_DATA, error));
    WHIT_TRY(expect_frame(file, 2, WHIT_NDF_COMMIT, error));
    take_data(file, 1);
    const uint8_t *sealed =
        (const uint8_t *)(ndf->seal + 1) + ((size_t)ndf->tensors.n_entries + number - 1) * WHIT_HASH_BYTES;
    if (file->data_bytes != ndf->file_entries[number].data_bytes || file->chain.n_frames != 3 ||
        file->chain.end_bytes != file->chain.file_bytes || memcmp(sealed, file->chain.last_hash, WHIT_HASH_BYTES) != 0)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: its contents differ from those recorded in the main file: get both again", path);
    return WHIT_OK;
}

/* Opens and checks part file `number`, which is in the main file's folder. *path receives its path, which the caller
 * must free. */
static whit_status open_beside(whit_ndf *ndf, uint32_t number, whit_buf *path, int *fd, whit_error *error)
{
    const char *main_path = ndf->files[0].map.path;
    char target[PATH_MAX];
    /* If the main file was opened through a symbolic link, the folder of the link's target is tried first, because that
     * is where the parts were written. Then the folder of the link is tried: in a folder of links, the targets may have
     * other names. */
    bool is_link = readlink(main_path, target, sizeof target) >= 0 && realpath(main_path, target);
    const char *beside[] = {target, main_path};
    const char *name = (const char *)ndf->file_names + ndf->file_entries[number].name.offset;
    whit_error inner = {0};
    for (int i = is_link ? 0 : 1; i < 2 && *fd < 0; i++) {
        const char *slash = strrchr(beside[i], '/');
        path->size_bytes = 0;
        if (!whit_buf_printf(path, "%.*s%s", slash ? (int)(slash + 1 - beside[i]) : 0, beside[i], name))
            return whit_fail_memory(error, "a file name", path->size_bytes);
        *fd = open_to_read(whit_chars(path));
    }
    whit_ndf_file_view *file = &ndf->files[number];
    const char *text = whit_chars(path);
    whit_status status = *fd < 0 ? whit_fail_errno(&inner, text, "open")
                                 : map_file(&(whit_ndf_input){.fd = *fd}, text, ndf->allocator, file, &inner);
    if (status == WHIT_OK) status = check_part_file(ndf, number, file, &inner);
    if (status != WHIT_OK)
        whit_fail(error, status, "%s (needed: part %" PRIu32 " of %" PRIu32 " of %s)", inner.message, number + 1,
                  ndf->n_files_room, main_path);
    return status;
}

static whit_status open_part_file(whit_ndf *ndf, uint32_t number, whit_error *error)
{
    whit_buf path = {.allocator = ndf->allocator};
    int fd = -1;
    whit_status status = open_beside(ndf, number, &path, &fd, error);
    if (fd >= 0) close(fd);
    whit_buf_free(&path);
    return status;
}

static whit_status open_parts(whit_ndf *ndf, bool has_folder, whit_error *error)
{
    uint32_t n_files = ndf->n_files_room;
    if (n_files == 1) return WHIT_OK;
    if (!has_folder)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: a model in memory cannot have part files: open it by its path", whit_ndf_path(ndf));
    whit_ndf_file_view *files = whit_zalloc_array(ndf->allocator, n_files, sizeof *files);
    if (!files) return whit_fail_memory(error, "part files", n_files * sizeof *files);
    files[0] = ndf->files[0];
    whit_free(ndf->allocator, ndf->files, sizeof *ndf->files);
    ndf->files = files;
    ndf->n_files = n_files;
    for (uint32_t i = 1; i < n_files; i++) WHIT_TRY(open_part_file(ndf, i, error));
    return WHIT_OK;
}

/* Checks a loose file, which may only have appended frames and their commits. */
static whit_status read_loose(const whit_ndf *ndf, whit_error *error)
{
    const whit_ndf_file_view *file = &ndf->files[0];
    for (uint32_t i = 0; i < file->chain.n_frames; i++) {
        whit_ndf_appended appended;
        uint32_t type = whit_ndf_chain_at(&file->chain, i)->type;
        if (i == 0 && type < WHIT_NDF_ADAPTER)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file is not an adapter", file->map.path);
        if (i && type == WHIT_NDF_COMMIT) continue;
        if (type < WHIT_NDF_ADAPTER) return bad_frame(file, i, "its type is not expected here", error);
        WHIT_TRY(whit_ndf_read_appended(ndf, i, &appended, error));
    }
    return WHIT_OK;
}

typedef enum open_as { AS_MODEL, AS_MODEL_WITHOUT_FOLDER, AS_LOOSE } open_as;

static whit_status open_any(const whit_ndf_input *input, const char *path, open_as as, const whit_allocator *allocator,
                            whit_ndf **ndf, whit_error *error)
{
    *ndf = NULL;
    whit_hash_prepare();
    whit_ndf *made = whit_zalloc(allocator, sizeof *made);
    whit_ndf_file_view *files = whit_zalloc(allocator, sizeof *files);
    whit_status status;
    if (!made || !files) {
        whit_free(allocator, made, sizeof *made);
        whit_free(allocator, files, sizeof *files);
        return whit_fail_memory(error, path, sizeof *made);
    }
    made->allocator = allocator;
    made->files = files;
    made->n_files = 1;
    status = map_file(input, path, allocator, &files[0], error);
    if (status == WHIT_OK) status = as == AS_LOOSE ? read_loose(made, error) : read_main(made, error);
    if (status == WHIT_OK && as != AS_LOOSE) status = open_parts(made, as == AS_MODEL, error);
    if (status != WHIT_OK) {
        whit_ndf_close(made);
        return status;
    }
    *ndf = made;
    return WHIT_OK;
}

static whit_status open_path(const char *path, open_as as, const whit_allocator *allocator, whit_ndf **ndf,
                             whit_error *error)
{
    *ndf = NULL;
    int fd = open_to_read(path);
    if (fd < 0) return whit_fail_errno(error, path, "open");
    whit_status status = open_any(&(whit_ndf_input){.fd = fd}, path, as, allocator, ndf, error);
    close(fd);
    return status;
}

whit_status whit_ndf_open(const char *path, const whit_allocator *allocator, whit_ndf **ndf, whit_error *error)
{
    return open_path(path, AS_MODEL, allocator, ndf, error);
}

whit_status whit_ndf_open_loose(const char *path, const whit_allocator *allocator, whit_ndf **ndf, whit_error *error)
{
    return open_path(path, AS_LOOSE, allocator, ndf, error);
}

bool whit_ndf_begins_loose(const char *path)
{
    whit_ndf_header header;
    int fd = open_to_read(path);
    if (fd < 0) return false;
    bool whole = pread(fd, &header, sizeof header, 0) == sizeof header;
    close(fd);
    return whole && whit_ndf_has_magic(&header, sizeof header) && header.type >= WHIT_NDF_ADAPTER;
}

bool whit_ndf_is_loose(const whit_ndf *ndf)
{
    return !ndf->head;
}

whit_status whit_ndf_open_fd(int fd, const char *name, const whit_allocator *allocator, whit_ndf **ndf,
                             whit_error *error)
{
    return open_any(&(whit_ndf_input){.fd = fd}, name, AS_MODEL_WITHOUT_FOLDER, allocator, ndf, error);
}

whit_status whit_ndf_open_memory(const void *data, size_t size_bytes, const char *name, const whit_allocator *allocator,
                                 whit_ndf **ndf, whit_error *error)
{
    *ndf = NULL;
    if (!data || (uintptr_t)data % WHIT_NDF_ALIGN_BYTES)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: a model in memory must be %u-byte aligned", name,
                         WHIT_NDF_ALIGN_BYTES);
    return open_any(&(whit_ndf_input){-1, data, size_bytes}, name, AS_MODEL_WITHOUT_FOLDER, allocator, ndf, error);
}

void whit_ndf_close(whit_ndf *ndf)
{
    if (!ndf) return;
    for (uint32_t i = 0; i < ndf->n_files; i++) {
        whit_map_close(&ndf->files[i].map);
        whit_ndf_chain_free(&ndf->files[i].chain);
    }
    whit_free(ndf->allocator, ndf->files, ndf->n_files * sizeof *ndf->files);
    whit_free(ndf->allocator, ndf, sizeof *ndf);
}

const char *whit_ndf_path(const whit_ndf *ndf)
{
    return ndf->files[0].map.path;
}

const uint8_t *whit_ndf_identity(const whit_ndf *ndf)
{
    return ndf->seal->identity;
}

const whit_table *whit_ndf_config(const whit_ndf *ndf)
{
    return &ndf->config;
}

const whit_table *whit_ndf_meta(const whit_ndf *ndf)
{
    return &ndf->meta;
}

const whit_table *whit_ndf_templates(const whit_ndf *ndf)
{
    return &ndf->templates;
}

const void *whit_ndf_tokenizer(const whit_ndf *ndf, size_t *size_bytes)
{
    if (size_bytes) *size_bytes = ndf->tokenizer_bytes;
    return ndf->tokenizer;
}

uint32_t whit_ndf_n_tensors(const whit_ndf *ndf)
{
    return ndf->tensors.n_entries;
}

const char *whit_ndf_tensor_name(const whit_ndf *ndf, uint32_t i)
{
    return (const char *)ndf->tensors.base + whit_ndf_name_at(&ndf->tensors, i)->name_offset;
}

const whit_tensor_type *whit_ndf_tensor_type(const whit_ndf *ndf, uint32_t i)
{
    return &whit_ndf_tensor_entry_at(ndf, i)->type;
}

void whit_ndf_tensor(const whit_ndf *ndf, uint32_t i, whit_tensor *tensor)
{
    const whit_ndf_tensor_entry *entry = whit_ndf_tensor_entry_at(ndf, i);
    *tensor = (whit_tensor){.type = entry->type};
    for (uint32_t k = 0; k < WHIT_PART_COUNT; k++) {
        if (entry->part[k] == 0) continue;
        const whit_ndf_part_entry *part = &ndf->parts[entry->part[k] - 1];
        tensor->part[k] = ndf->files[part->file].data + part->offset;
        tensor->part_bytes[k] = part->size_bytes;
    }
}

int64_t whit_ndf_find(const whit_ndf *ndf, const char *name)
{
    return whit_ndf_names_find(&ndf->tensors, name, strlen(name));
}

const uint8_t *whit_ndf_tensor_digest(const whit_ndf *ndf, uint32_t i)
{
    return (const uint8_t *)(ndf->seal + 1) + (size_t)i * WHIT_HASH_BYTES;
}

uint32_t whit_ndf_n_files(const whit_ndf *ndf)
{
    return ndf->n_files;
}

const char *whit_ndf_file(const whit_ndf *ndf, uint32_t i, uint64_t *size_bytes)
{
    if (size_bytes) *size_bytes = ndf->files[i].chain.end_bytes;
    return ndf->files[i].map.path;
}

bool whit_ndf_mapping(const whit_ndf *ndf, uint32_t i, const void **address, size_t *size_bytes, const char **path)
{
    if (i >= ndf->n_files) return false;
    const whit_map *map = &ndf->files[i].map;
    if (map->borrowed) return false;
    *address = map->data;
    *size_bytes = map->size_bytes;
    *path = map->path;
    return true;
}

uint64_t whit_ndf_torn_bytes(const whit_ndf *ndf)
{
    return ndf->files[0].chain.file_bytes - ndf->files[0].chain.end_bytes;
}

uint32_t whit_ndf_n_appended(const whit_ndf *ndf)
{
    uint32_t n = 0;
    const whit_ndf_chain *chain = &ndf->files[0].chain;
    for (uint32_t i = ndf->n_base_frames; i < chain->n_frames; i++)
        n += whit_ndf_chain_at(chain, i)->type != WHIT_NDF_COMMIT;
    return n;
}

whit_status whit_ndf_read_appended(const whit_ndf *ndf, uint32_t i, whit_ndf_appended *appended, whit_error *error)
{
    const whit_ndf_file_view *file = &ndf->files[0];
    const whit_ndf_frame *frame = whit_ndf_chain_at(&file->chain, i);
    const uint8_t *payload = payload_at(file, i);
    const whit_ndf_appended_header *header = (const whit_ndf_appended_header *)payload;
    if (frame->payload_bytes < sizeof *header) return bad_frame(file, i, "it is too short", error);
    if (!whit_in_bounds(sizeof *header, (uint64_t)header->name_bytes + 1, frame->payload_bytes) ||
        payload[sizeof *header + header->name_bytes] != 0)
        return bad_frame(file, i, "its name is outside the frame", error);
    if (header->reserved) return bad_frame(file, i, "its reserved word is not 0", error);
    if (header->data_offset % WHIT_NDF_ALIGN_BYTES) return bad_frame(file, i, "its data is not aligned", error);
    if (!whit_in_bounds(header->data_offset, header->data_bytes, frame->payload_bytes))
        return bad_frame(file, i, "its data is outside the frame", error);
    *appended = (whit_ndf_appended){
        .type = frame->type,
        .name = (const char *)payload + sizeof *header,
        .data = payload + header->data_offset,
        .size_bytes = header->data_bytes,
        .digest = file->map.data + frame->offset + offsetof(whit_ndf_header, root),
    };
    return WHIT_OK;
}

/* Returns the chain index of appended frame `i`, skipping commits. */
static uint32_t place_of(const whit_ndf *ndf, uint32_t i)
{
    const whit_ndf_chain *chain = &ndf->files[0].chain;
    uint32_t at = ndf->n_base_frames;
    while (whit_ndf_chain_at(chain, at)->type == WHIT_NDF_COMMIT || i-- > 0) at++;
    return at;
}

uint32_t whit_ndf_appended_type(const whit_ndf *ndf, uint32_t i)
{
    return whit_ndf_chain_at(&ndf->files[0].chain, place_of(ndf, i))->type;
}

whit_status whit_ndf_appended_at(const whit_ndf *ndf, uint32_t i, whit_ndf_appended *appended, whit_error *error)
{
    return whit_ndf_read_appended(ndf, place_of(ndf, i), appended, error);
}
