/* SPDX-License-Identifier: MIT */
#include "train/checkpoint.h"

#include "base/file.h"

static const char magic[8] = {'W', 'H', 'I', 'T', 'R', 'U', 'N', '1'};

struct head {
    char magic[8];
    whit_progress progress;
    uint64_t n_floats;
};

static void digest_of(const struct head *head, const uint8_t *const part[3], uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, "whit.run");
    whit_hash_add(&hash, head, sizeof *head);
    for (int i = 0; i < 3; i++) whit_hash_add(&hash, part[i], head->n_floats * sizeof(float));
    whit_hash_end(&hash, digest);
}

whit_status whit_checkpoint_write(const char *path, const whit_progress *progress, const whit_params *params,
                                  whit_error *error)
{
    whit_writer writer;
    struct head head = {.progress = *progress, .n_floats = params->n_floats};
    const uint8_t *const part[3] = {(uint8_t *)params->run, (uint8_t *)params->moment1, (uint8_t *)params->moment2};
    uint8_t digest[WHIT_HASH_BYTES];
    memcpy(head.magic, magic, sizeof magic);
    digest_of(&head, part, digest);
    WHIT_TRY(whit_writer_open(path, params->allocator, &writer, error));
    whit_status status = whit_writer_append(&writer, &head, sizeof head, error);
    for (int i = 0; status == WHIT_OK && i < 3; i++)
        status = whit_writer_append(&writer, part[i], params->n_floats * sizeof(float), error);
    if (status == WHIT_OK) status = whit_writer_append(&writer, digest, sizeof digest, error);
    if (status == WHIT_OK) status = whit_writer_commit(&writer, error);
    whit_writer_discard(&writer);
    return status;
}

static whit_status check_checkpoint(const whit_map *map, const whit_progress *progress, const whit_params *params,
                                    whit_error *error)
{
    struct head head;
    uint64_t part_bytes = params->n_floats * sizeof(float);
    if (map->size_bytes < sizeof head || memcmp(map->data, magic, sizeof magic) != 0)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file is not a checkpoint: name another", map->path);
    memcpy(&head, map->data, sizeof head);
    if (memcmp(head.progress.settings, progress->settings, WHIT_HASH_BYTES) != 0 || head.n_floats != params->n_floats)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s: the checkpoint belongs to a run with another model, text or settings, or of another "
                         "version of whit; give the options of that run, including --steps or --minutes, or remove the "
                         "checkpoint to start again",
                         map->path);
    if (map->size_bytes != sizeof head + 3 * part_bytes + WHIT_HASH_BYTES)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the checkpoint is truncated: remove it to start again",
                         map->path);
    const uint8_t *at = map->data + sizeof head;
    const uint8_t *const part[3] = {at, at + part_bytes, at + 2 * part_bytes};
    uint8_t digest[WHIT_HASH_BYTES];
    digest_of(&head, part, digest);
    if (memcmp(digest, at + 3 * part_bytes, sizeof digest) != 0)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the checkpoint is damaged: remove it to start again",
                         map->path);
    return WHIT_OK;
}

whit_status whit_checkpoint_read(const char *path, whit_progress *progress, whit_params *params, whit_error *error)
{
    whit_map map;
    WHIT_TRY(whit_map_open(path, params->allocator, &map, error));
    whit_status status = check_checkpoint(&map, progress, params, error);
    if (status == WHIT_OK) {
        float *const part[3] = {params->run, params->moment1, params->moment2};
        size_t part_bytes = params->n_floats * sizeof(float), at = sizeof(struct head);
        memcpy(progress, map.data + offsetof(struct head, progress), sizeof *progress);
        for (int i = 0; i < 3; i++, at += part_bytes) memcpy(part[i], map.data + at, part_bytes);
    }
    whit_map_close(&map);
    return status;
}
