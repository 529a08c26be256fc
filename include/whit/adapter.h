/* SPDX-License-Identifier: MIT
 * Adapters: int8 low-rank additions to the matrices of a model. */
#ifndef WHIT_ADAPTER_H
#define WHIT_ADAPTER_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An int8 low-rank addition to the matrices of one model. It refers to the model, which outlives
 * it; like the model it never changes and may be shared by threads and sessions. */
typedef struct whit_adapter whit_adapter;

/* Opens an adapter by the name of one in the model's own file, else as a file of its own. One that
 * was made for another model (by identity) is refused. */
WHIT_API whit_status whit_adapter_open(const whit_model *model, const char *name, whit_adapter **adapter,
                                       whit_error *error);
WHIT_API void whit_adapter_close(whit_adapter *adapter);
WHIT_API uint32_t whit_adapter_rank(const whit_adapter *adapter); /* the largest of its matrices */
/* As whit_model_mapping, of the adapter's own file; false where it has none. */
WHIT_API bool whit_adapter_mapping(const whit_adapter *adapter, const void **address, size_t *size_bytes,
                                   const char **path);

#define WHIT_MOUNTS_MAX 8

typedef struct whit_mount {
    const whit_adapter *adapter;
    float scale; /* its strength: 1 is as made, 0 is as if it were not there */
} whit_mount;

/* Mounts adapters (n at most WHIT_MOUNTS_MAX, together their sum) on a sequence in place of those it
 * has, until another call; 0: none. They must stay open so long. Costs next to nothing and changes
 * nothing of other sequences. Tokens that the sequence holds already stay as they were computed. */
WHIT_API whit_status whit_session_mount_strided(whit_session *session, uint32_t sequence, const void *mounts, size_t n,
                                                size_t stride_bytes, whit_error *error);
static inline whit_status whit_session_mount(whit_session *session, uint32_t sequence, const whit_mount *mounts,
                                             size_t n, whit_error *error)
{
    return whit_session_mount_strided(session, sequence, mounts, n, sizeof *mounts, error);
}
/* The bytes that a session will take: its arena and, beside it, what mounting these takes (n may be
 * 0). Its sequences share that: of the predictions for the mounts of each, the largest holds. */
WHIT_API whit_status whit_session_predict_bytes_strided(const whit_model *model, const whit_session_options *options,
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
