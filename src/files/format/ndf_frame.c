/* SPDX-License-Identifier: MIT
 * Computes the layout and the hashes of frames, and reads chains. */
#include "format/ndf_frame.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t whit_ndf_n_chunks(uint64_t payload_bytes)
{
    return (payload_bytes + WHIT_NDF_CHUNK_BYTES - 1) / WHIT_NDF_CHUNK_BYTES;
}

static uint64_t align(uint64_t n)
{
    return (n + WHIT_NDF_ALIGN_BYTES - 1) & ~(uint64_t)(WHIT_NDF_ALIGN_BYTES - 1);
}

uint64_t whit_ndf_leaves_offset(uint64_t payload_bytes)
{
    return sizeof(whit_ndf_header) + align(payload_bytes);
}

uint64_t whit_ndf_frame_bytes(uint64_t payload_bytes)
{
    return whit_ndf_leaves_offset(payload_bytes) + align(whit_ndf_n_chunks(payload_bytes) * WHIT_HASH_BYTES);
}

void whit_ndf_leaf(const void *chunk, size_t size_bytes, uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, WHIT_NDF_DOMAIN_LEAF);
    whit_hash_add(&hash, chunk, size_bytes);
    whit_hash_end(&hash, digest);
}

void whit_ndf_root(const uint8_t *leaves, uint64_t n_chunks, uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, WHIT_NDF_DOMAIN_NODE);
    whit_hash_add_u64(&hash, n_chunks);
    whit_hash_add(&hash, leaves, (size_t)n_chunks * WHIT_HASH_BYTES);
    whit_hash_end(&hash, digest);
}

void whit_ndf_small_root(const uint8_t *payload, uint64_t payload_bytes, uint8_t digest[WHIT_HASH_BYTES])
{
    uint64_t n_chunks = whit_ndf_n_chunks(payload_bytes);
    whit_hash hash;
    whit_hash_begin(&hash, WHIT_NDF_DOMAIN_NODE);
    whit_hash_add_u64(&hash, n_chunks);
    for (uint64_t i = 0; i < n_chunks; i++) {
        uint64_t offset = i * WHIT_NDF_CHUNK_BYTES, rest = payload_bytes - offset;
        uint8_t leaf[WHIT_HASH_BYTES];
        whit_ndf_leaf(payload + offset, rest < WHIT_NDF_CHUNK_BYTES ? rest : WHIT_NDF_CHUNK_BYTES, leaf);
        whit_hash_add(&hash, leaf, sizeof leaf);
    }
    whit_hash_end(&hash, digest);
}

void whit_ndf_frame_hash(const whit_ndf_header *header, uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, WHIT_NDF_DOMAIN_FRAME);
    whit_hash_add(&hash, header, offsetof(whit_ndf_header, hash));
    whit_hash_end(&hash, digest);
}

const char *whit_ndf_frame_type_name(uint32_t type)
{
    switch (type) {
    case WHIT_NDF_HEAD: return "HEAD";
    case WHIT_NDF_TOKENIZER: return "TOKENIZER";
    case WHIT_NDF_DATA: return "DATA";
    case WHIT_NDF_SEAL: return "SEAL";
    case WHIT_NDF_COMMIT: return "COMMIT";
    case WHIT_NDF_PART: return "PART";
    case WHIT_NDF_ADAPTER: return "ADAPTER";
    case WHIT_NDF_SESSION: return "SESSION";
    case WHIT_NDF_SIGNATURE: return "SIGNATURE";
    case WHIT_NDF_PROGRAM: return "PROGRAM";
    case WHIT_NDF_MEMORY: return "MEMORY";
    case WHIT_NDF_JOURNAL: return "JOURNAL";
    }
    return "unknown";
}

/* Reads exactly `size_bytes` at `offset`; returns false if that fails. errno is then 0 if the file ended before. */
static bool read_at(const whit_ndf_input *input, void *data, size_t size_bytes, uint64_t offset)
{
    uint8_t *bytes = data;
    errno = 0;
    if (input->data) {
        if (!whit_in_bounds(offset, size_bytes, input->size_bytes)) return false;
        memcpy(data, input->data + offset, size_bytes);
        return true;
    }
    while (size_bytes) {
        ssize_t n = pread(input->fd, bytes, size_bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes += n;
        size_bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return true;
}

/* Returns NULL, or the reason why this is not a valid header of frame `index` whose previous frame has the hash
 * `previous`. */
static const char *check_header(const whit_ndf_header *header, uint32_t index, const uint8_t previous[WHIT_HASH_BYTES])
{
    if (memcmp(header->magic, WHIT_NDF_MAGIC, sizeof header->magic) != 0)
        return index ? "no frame starts here" : "this is not an .ndf file";
    if (header->version == 0)
        return "it has version 0 of the format, from before the first release: make it again from its original";
    if (header->version != WHIT_NDF_VERSION) return "its format version is not one that this program reads";
    uint8_t hash[WHIT_HASH_BYTES];
    whit_ndf_frame_hash(header, hash);
    if (memcmp(hash, header->hash, sizeof hash) != 0) return "its header is damaged";
    if (header->flags != 0) return "it has flags that this program does not know";
    if (header->index != index) return "its number is wrong";
    if (memcmp(header->previous, previous, WHIT_HASH_BYTES) != 0) return "it does not belong to the frame before it";
    return NULL;
}

/* Returns NULL, or the reason why the commit frame at `offset` is not complete. All its bytes are compared, padding
 * included, because a crash may have left only some of them. */
static const char *check_commit(const whit_ndf_input *input, uint64_t offset, const whit_ndf_header *header)
{
    struct {
        whit_ndf_commit commit;
        uint8_t zeros[48], leaf[WHIT_HASH_BYTES], more_zeros[32];
    } body, right = {.commit = {.n_frames = (uint64_t)header->index + 1}};
    _Static_assert(sizeof body == 128, "what follows the header of a commit");
    if (header->payload_bytes != sizeof body.commit) return "its length is not that of a commit";
    if (!read_at(input, &body, sizeof body, offset + sizeof *header)) return "it cannot be read";
    right.commit.end_bytes = offset + sizeof *header + sizeof body;
    if (memcmp(&body.commit, &right.commit, sizeof right.commit) != 0) return "it commits another length";
    whit_ndf_leaf(&right.commit, sizeof right.commit, right.leaf);
    uint8_t root[WHIT_HASH_BYTES];
    whit_ndf_root(right.leaf, 1, root);
    if (memcmp(root, header->root, sizeof root) != 0 || memcmp(&body, &right, sizeof body) != 0)
        return "its payload is damaged";
    return NULL;
}

bool whit_ndf_is_commit(int fd, uint64_t offset)
{
    whit_ndf_header header;
    whit_ndf_input input = {.fd = fd};
    return read_at(&input, &header, sizeof header, offset) && header.type == WHIT_NDF_COMMIT &&
        !check_header(&header, header.index, header.previous) && !check_commit(&input, offset, &header);
}

/* Reads the header of the frame at `offset`. Returns NULL, or the reason why the header is invalid or the frame is not
 * complete. */
static const char *read_frame(const whit_ndf_input *input, uint64_t file_bytes, uint64_t offset, uint32_t index,
                              const uint8_t previous[WHIT_HASH_BYTES], whit_ndf_header *header)
{
    if (file_bytes - offset < sizeof *header) return "the file ends inside its header";
    if (!read_at(input, header, sizeof *header, offset))
        return errno ? "it cannot be read" : "another program truncated the file meanwhile";
    const char *reason = check_header(header, index, previous);
    if (reason) return reason;
    if (header->payload_bytes > WHIT_NDF_MAX_PAYLOAD_BYTES) return "its length is not possible";
    if (whit_ndf_frame_bytes(header->payload_bytes) > file_bytes - offset) return "the file ends inside it";
    if (header->type != WHIT_NDF_COMMIT) return NULL;
    return check_commit(input, offset, header);
}

/* Returns whether the chain is that of a loose file. Such chains (sessions, journals) may have more than
 * WHIT_NDF_MAX_FRAMES frames. */
static bool is_loose(const whit_ndf_chain *chain)
{
    return chain->frames.size_bytes && whit_ndf_chain_at(chain, 0)->type >= WHIT_NDF_ADAPTER;
}

whit_status whit_ndf_chain_read(const whit_ndf_input *input, const char *path, const whit_allocator *allocator,
                                whit_ndf_chain *chain, whit_error *error)
{
    *chain = (whit_ndf_chain){.frames = {.allocator = allocator}, .file_bytes = input->size_bytes};
    struct stat info;
    if (!input->data && fstat(input->fd, &info) != 0) return whit_fail_errno(error, path, "examine");
    if (!input->data) chain->file_bytes = (uint64_t)info.st_size;
    uint8_t previous[WHIT_HASH_BYTES] = {0};
    uint64_t offset = 0;
    for (uint32_t index = 0; offset < chain->file_bytes; index++) {
        whit_ndf_header header;
        uint32_t most = is_loose(chain) ? UINT32_MAX : WHIT_NDF_MAX_FRAMES;
        const char *reason = index < most ? read_frame(input, chain->file_bytes, offset, index, previous, &header)
                                          : "there are too many frames";
        if (reason) {
            snprintf(chain->stop, sizeof chain->stop, "frame %" PRIu32 " at byte %" PRIu64 ": %s", index, offset,
                     reason);
            break;
        }
        whit_ndf_frame frame = {offset, header.payload_bytes, header.type};
        if (!whit_buf_append(&chain->frames, &frame, sizeof frame)) {
            whit_ndf_chain_free(chain);
            return whit_fail_memory(error, "a list of frames", index * sizeof frame);
        }
        memcpy(previous, header.hash, sizeof previous);
        offset += whit_ndf_frame_bytes(header.payload_bytes);
        if (header.type == WHIT_NDF_COMMIT) {
            chain->n_frames = index + 1;
            chain->end_bytes = offset;
            memcpy(chain->last_hash, header.hash, sizeof header.hash);
        }
    }
    uint32_t n_read = (uint32_t)(chain->frames.size_bytes / sizeof(whit_ndf_frame));
    if (!*chain->stop && chain->n_frames && n_read > chain->n_frames)
        snprintf(chain->stop, sizeof chain->stop, "frame %" PRIu32 " at byte %" PRIu64 ": the file ends before it",
                 n_read, offset);
    if (chain->n_frames) return WHIT_OK;
    whit_status status = whit_fail(error, WHIT_ERROR_FORMAT, "%s: %s", path,
                                   *chain->stop ? chain->stop : "the file ends before its commit");
    whit_ndf_chain_free(chain);
    return status;
}

void whit_ndf_chain_free(whit_ndf_chain *chain)
{
    whit_buf_free(&chain->frames);
    chain->n_frames = 0;
}
