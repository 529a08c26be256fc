/* SPDX-License-Identifier: MIT
 * Stores a sequence in a session file, which grows turn by turn (docs/use/context.md). */
#ifndef WHIT_SESSION_FILE_H
#define WHIT_SESSION_FILE_H

#include "adapter.h"
#include "generation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Holds the state of a sampler between two picks, except the tokens that the sampler remembers. */
typedef struct whit_sampler_state {
    uint64_t random;    /* state of the random generator */
    double mirostat_mu; /* mirostat's current threshold of surprise, in bits */
} whit_sampler_state;
WHIT_API void whit_sampler_save(const whit_sampler *sampler, whit_sampler_state *state);
WHIT_API void whit_sampler_restore(whit_sampler *sampler, const whit_sampler_state *state);

/* A session file stores a sequence turn by turn: its tokens, the settings of the sampler that picked them, its closed
 * KV blocks, checkpoints if the cache has them, and a note of the caller. The file is locked while it is open here; the
 * session must outlive this handle. */
typedef struct whit_session_file whit_session_file;

/* Restores the sequence from the file at `path`, or creates the file, readable by its owner alone, and empties the
 * sequence. `purpose` names the meaning of notes to the caller ("text", "chat"). A file with another model, other
 * adapters, another type of cache or activations, another n_kv_window, another purpose, or a context in which the
 * model's positions differ, is refused with an error that names the difference. The context must have room for all
 * tokens, the session must not be endless, and only one process may run the model. If the sequence cannot be restored
 * from the blocks and tokens, it is empty afterwards. The restored sequence continues bit for bit as if it had never
 * been closed. */
WHIT_API WHIT_CHECKED whit_status whit_session_load(whit_session *session, uint32_t sequence, const char *path,
                                                    const char *purpose, whit_session_file **file, whit_error *error);
/* Writes a sequence to a new file, `path` with ".whit-snapshot" after it, which then replaces `path`: its tokens, its
 * closed KV blocks and, if the cache has checkpoints, those of its end and of up to two other positions. The sequence
 * is unchanged. *n_tokens: number of tokens written, which is all of them, or whole blocks of 64 if the cache has no
 * checkpoints. On failure an existing file at `path` stays as it was. The session must not be endless, and only one
 * process may run the model. */
WHIT_API WHIT_CHECKED whit_status whit_session_snapshot(whit_session *session, uint32_t sequence, const char *path,
                                                        const char *purpose, uint32_t *n_tokens, whit_error *error);
WHIT_API void whit_session_file_close(whit_session_file *file);

/* Returns all tokens that the file holds. The sequence holds all of them, or all but the last one, which was picked but
 * not yet fed. */
WHIT_API const int32_t *whit_session_file_ids(const whit_session_file *file, size_t *n_ids);
WHIT_API uint32_t whit_session_file_n_turns(const whit_session_file *file);
/* Returns the note of turn i, even if the turn was undone; not terminated. */
WHIT_API const char *whit_session_file_note(const whit_session_file *file, uint32_t i, size_t *n_bytes);
/* Returns the settings of the sampler that picked the last tokens, and its state after the last pick; false if no token
 * was picked, or `options` is invalid. Before the call, the caller fills `options` by whit_sampler_options_default; the
 * pointers to biases in it are valid until the file's next call. */
WHIT_API bool whit_session_file_sampler(whit_session_file *file, whit_sampler_options *options,
                                        whit_sampler_state *state);

typedef struct whit_session_turn {
    size_t struct_bytes;
    const int32_t *ids; /* all tokens of the sequence after this turn, from the first on */
    size_t n_ids;
    size_t n_given; /* number of leading ids that were given (a prompt); the other ids were picked */
    /* The sampler that picked the other ids, and its state before the first pick; NULL: no id was picked. Before its
     * first pick it must have accepted exactly the given ids, as whit_generate does. */
    const whit_sampler *sampler;
    whit_sampler_state before;
    whit_finish finish;
    const char *note; /* a text of the caller, stored unchanged */
    size_t note_bytes;
    bool tokens_only; /* store no KV blocks: the file is smaller, and the blocks are recomputed when it is loaded */
    size_t n_stages;  /* number of the generation's stages (whit_generate_options): the file does not record their
                       * effect, so a turn with stages cannot be replayed */
} whit_session_turn;
static inline whit_session_turn whit_session_turn_default(void)
{
    whit_session_turn turn;
    memset(&turn, 0, sizeof turn);
    turn.struct_bytes = sizeof turn;
    return turn;
}
/* Appends a turn: the ids and closed KV blocks that the file does not have yet, and the note. The sequence must have
 * all ids of the turn, or all but the last one. Tokens of the file after its common prefix with `ids` are undone. After
 * success the turn survives a crash. On failure the file is as before. Only if the failure came after the turn was
 * written may the file contain the turn; further saves are then refused until the file is loaded again. */
WHIT_API WHIT_CHECKED whit_status whit_session_save(whit_session_file *file, const whit_session_turn *turn,
                                                    whit_error *error);

/* Reports whether a model and the recorded settings reproduce exactly the tokens of a file and its KV blocks. */
typedef struct whit_session_replay {
    size_t struct_bytes;
    uint32_t n_turns;
    uint64_t n_picked; /* number of tokens that were picked again with the same result */
    bool is_same;
    /* The first difference, if there is one: index of the turn, position, and ids. */
    uint32_t turn;
    uint64_t position;   /* position in the sequence */
    int32_t id, id_here; /* if a token differs: the id in the file, and the id picked by the replay; otherwise both
                          * -1 */
} whit_session_replay;
static inline whit_session_replay whit_session_replay_default(void)
{
    whit_session_replay replay;
    memset(&replay, 0, sizeof replay);
    replay.struct_bytes = sizeof replay;
    return replay;
}
/* Feeds the tokens of the file at `path` again, picks with the recorded settings, and compares. A difference is not an
 * error but a result in `replay`. The error is WHIT_ERROR_UNSUPPORTED if a turn's generation had stages. `options` are
 * those of whit_session_open, but the types of cache and activations and n_kv_window are taken from the file, the
 * context is chosen for the file's tokens, and n_sequences and n_logits are ignored. */
WHIT_API WHIT_CHECKED whit_status whit_session_replay_file_strided(const whit_model *model,
                                                                   const whit_session_options *options,
                                                                   const void *mounts, size_t n_mounts,
                                                                   size_t stride_bytes, const char *path,
                                                                   whit_session_replay *replay, whit_error *error);
static inline whit_status whit_session_replay_file(const whit_model *model, const whit_session_options *options,
                                                   const whit_mount *mounts, size_t n_mounts, const char *path,
                                                   whit_session_replay *replay, whit_error *error)
{
    return whit_session_replay_file_strided(model, options, mounts, n_mounts, sizeof *mounts, path, replay, error);
}

#ifdef __cplusplus
}
#endif
#endif
