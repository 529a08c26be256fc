/* SPDX-License-Identifier: MIT
 * Frames of a session file (docs/format.md, section 9): what they hold, reading them in order, and
 * building them. A session file is a loose chain: one BEGIN, then TURNs. */
#ifndef WHIT_RUNTIME_SESSION_FRAMES_H
#define WHIT_RUNTIME_SESSION_FRAMES_H

#include "format/ndf_log.h"
#include "format/ndf_table.h"
#include "runtime/chain.h"
#include "whit.h"

enum { WHIT_SESSION_BEGIN = 1, WHIT_SESSION_TURN = 2 };

/* In front of a TURN's data; its parts follow in this order: ids (i32), settings (a table, at the
 * next multiple of 8), note (at the next multiple of 8), blocks (at the next multiple of 64), tail (kv/tail.h, behind
 * the blocks). */
typedef struct whit_turn_header {
    uint32_t kind, finish;     /* whit_finish */
    uint64_t n_keep;           /* ids of the turns before that stay */
    uint64_t n_ids;            /* ids that this turn adds */
    uint64_t n_given;          /* of these, the first so many were given, the others picked */
    uint64_t n_present;        /* ids of the sequence after it: all, or all but the last */
    whit_sampler_state before; /* of the first pick */
    whit_sampler_state after;  /* of the last */
    uint64_t settings_bytes;   /* 0: those of the turn before */
    uint64_t note_bytes;
    uint64_t block_bytes;
    uint32_t first_block, n_blocks; /* of 64 positions each */
    uint64_t tail_bytes;            /* of the tail at n_present; 0: none */
    uint64_t reserved[2];
} whit_turn_header;
_Static_assert(sizeof(whit_turn_header) == 128, "turn");

/* One turn as it is read; pointers live during the call. */
typedef struct whit_turn_view {
    const whit_turn_header *header;
    uint32_t frame, number;     /* in the chain; of the turns, from 0 */
    const int32_t *ids;         /* of the turn */
    const whit_table *settings; /* those that hold: its own, or of a turn before; NULL: none yet */
    const char *note;
    uint64_t blocks_offset, tail_offset; /* in the file */
} whit_turn_view;

/* A tail that holds: the sequence can go on at n_tokens by it. */
typedef struct whit_tail_view {
    uint64_t n_tokens, offset, n_bytes;
} whit_tail_view;

/* Everything of a file but the blocks. */
typedef struct whit_session_record {
    whit_ndf_log *log;
    const whit_allocator *allocator;
    whit_buf begin;   /* the table's bytes */
    whit_table about; /* of it */
    whit_buf ids;     /* int32_t[]: those that hold */
    uint64_t n_present;
    whit_buf blocks; /* uint64_t[]: for each block from the first on, where it lies in the file */
    uint64_t block_bytes;
    whit_buf tails;    /* whit_tail_view[], by position */
    whit_buf settings; /* the table's bytes */
    whit_table settings_table;
    whit_sampler_state after;
    bool has_picks;     /* `settings` and `after` are there */
    whit_buf notes;     /* all, one after the other */
    whit_buf note_ends; /* uint64_t[], of each turn */
    uint32_t n_turns;
} whit_session_record;

typedef whit_status whit_turn_fn(void *user, const whit_session_record *before, const whit_turn_view *turn,
                                 whit_error *error);

/* Reads the chain of an open log: every frame's bytes are held against their hashes, every length
 * and count against the others. `on_turn` (NULL is fine) sees each turn before it is taken in. The
 * record is freed by the caller in every case. */
whit_status whit_session_record_read(whit_ndf_log *log, const whit_allocator *allocator, whit_turn_fn *on_turn,
                                     void *user, whit_session_record *record, whit_error *error);
void whit_session_record_free(whit_session_record *record);
/* Takes in a turn that was written. */
whit_status whit_session_record_add(whit_session_record *record, const whit_turn_view *turn, whit_error *error);
static inline size_t whit_session_record_n_ids(const whit_session_record *record)
{
    return record->ids.size_bytes / sizeof(int32_t);
}
static inline uint32_t whit_session_record_n_blocks(const whit_session_record *record)
{
    return (uint32_t)(record->blocks.size_bytes / sizeof(uint64_t));
}

static inline uint32_t whit_session_record_n_tails(const whit_session_record *record)
{
    return (uint32_t)(record->tails.size_bytes / sizeof(whit_tail_view));
}

extern const char *const whit_session_kv_names[], *const whit_session_act_names[];
/* The data of BEGIN for a session's sequence. */
whit_status whit_session_begin_build(const whit_session *session, uint32_t sequence, const char *purpose, whit_buf *out,
                                     whit_error *error);
/* Is what a file begins with that of this sequence? Else a line that names what differs. */
/* Are a sequence's adapters those that a file was made with? */
whit_status whit_session_adapters_check(const whit_session_record *record, const whit_session *session,
                                        uint32_t sequence, whit_error *error);
whit_status whit_session_begin_check(const whit_session_record *record, const whit_session *session, uint32_t sequence,
                                     const char *purpose, whit_error *error);

/* What a sampler was opened with; the biases are its own. */
whit_sampler_options whit_sampler_options_of(const whit_sampler *sampler);
/* Sampler options as a table, appended to `out`, and back; the arrays of biases are then `ids` and
 * `values`, which the caller frees. */
whit_status whit_session_settings_build(const whit_sampler_options *options, uint64_t n_stages, whit_buf *out,
                                        whit_error *error);
whit_status whit_session_settings_read(const whit_table *table, whit_sampler_options *options, whit_buf *bias_ids,
                                       whit_buf *bias_values, whit_error *error);

#endif
