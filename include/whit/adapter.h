/* SPDX-License-Identifier: MIT
 * Adapters: int8 low-rank additions to the matrices of a model. */
#ifndef WHIT_ADAPTER_H
#define WHIT_ADAPTER_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An adapter is an int8 low-rank addition to the matrices of one model. The model must stay open as long as the
 * adapter. An adapter never changes; threads and sessions may share it. */
typedef struct whit_adapter whit_adapter;

/* Opens the adapter called `name` in the model's own file. If that file has no such adapter, `name` is the path of an
 * adapter file. Refuses an adapter that was made for a model with another identity (whit_model_identity). */
WHIT_API WHIT_CHECKED whit_status whit_adapter_open(const whit_model *model, const char *name, whit_adapter **adapter,
                                                    whit_error *error);
WHIT_API void whit_adapter_close(whit_adapter *adapter);
/* Returns the largest rank of the adapter's additions. */
WHIT_API uint32_t whit_adapter_rank(const whit_adapter *adapter);
/* Sets *address, *size_bytes and *path to the mapped range and the path of the adapter's own file, as
 * whit_model_mapping does. Returns false if the adapter is stored in the model's file. */
WHIT_API bool whit_adapter_mapping(const whit_adapter *adapter, const void **address, size_t *size_bytes,
                                   const char **path);

#define WHIT_MOUNTS_MAX 8

typedef struct whit_mount {
    const whit_adapter *adapter;
    float scale; /* factor of the addition: 1 is as trained, 0 is as without the adapter */
} whit_mount;

/* Mounts n adapters (at most WHIT_MOUNTS_MAX) on a sequence: the sum of their additions applies. They replace the
 * adapters that were mounted before, and stay mounted until the next call; n = 0 unmounts all. An adapter must stay
 * open while it is mounted. The call is cheap and does not affect other sequences. Tokens that the sequence already has
 * are not recomputed. Errors: WHIT_ERROR_ARGUMENT, WHIT_ERROR_LIMIT, and WHIT_ERROR_UNSUPPORTED (several processes run
 * the model, or an adapter changes matrices that run only for wanted tokens). */
WHIT_API WHIT_CHECKED whit_status whit_session_mount_strided(whit_session *session, uint32_t sequence,
                                                             const void *mounts, size_t n, size_t stride_bytes,
                                                             whit_error *error);
static inline whit_status whit_session_mount(whit_session *session, uint32_t sequence, const whit_mount *mounts,
                                             size_t n, whit_error *error)
{
    return whit_session_mount_strided(session, sequence, mounts, n, sizeof *mounts, error);
}
/* Predicts the bytes of a session's memory: its arena plus the memory for mounting these adapters (n may be 0). All
 * sequences share the memory for adapters: if sequences mount different adapters, the largest prediction counts. */
WHIT_API WHIT_CHECKED whit_status whit_session_predict_bytes_strided(const whit_model *model,
                                                                     const whit_session_options *options,
                                                                     const void *mounts, size_t n, size_t stride_bytes,
                                                                     size_t *bytes, whit_error *error);
static inline whit_status whit_session_predict_bytes(const whit_model *model, const whit_session_options *options,
                                                     const whit_mount *mounts, size_t n, size_t *bytes,
                                                     whit_error *error)
{
    return whit_session_predict_bytes_strided(model, options, mounts, n, sizeof *mounts, bytes, error);
}

#ifdef __cplusplus
}
#endif
#endif
