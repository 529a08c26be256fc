/* SPDX-License-Identifier: MIT
 * Frames of a session file (docs/dev/format.md, section 9): their layout, and functions that read them in order and
 * build them. A session file is a loose chain of frames: one BEGIN, then TURNs. */
#ifndef WHIT_RUNTIME_SESSION_FRAMES_H
#define WHIT_RUNTIME_SESSION_FRAMES_H

#include "format/ndf_log.h"
#include "format/ndf_table.h"
#include "runtime/chain.h"
#include "whit.h"

enum { WHIT_SESSION_BEGIN = 1, WHIT_SESSION_TURN = 2 };

/* Describes the header of a TURN's data. Its parts follow in this order: ids (i32), settings (a table, at the next
 * multiple of 8), note (at the next multiple of 8), blocks (at the next multiple of 64), tail (kv/tail.h, after the
 * blocks). */
typedef struct whit_turn_header {
    uint32_t kind, finish;     /* finish: a whit_finish */
    uint64_t n_keep;           /* number of ids of earlier turns that are kept */
    uint64_t n_ids;            /* number of ids that this turn adds */
    uint64_t n_given;          /* how many of the added ids, from the first on, were given; the others were picked */
    uint64_t n_present;        /* length of the sequence after the turn: all ids, or all but the last */
    whit_sampler_state before; /* sampler state before the first pick */
    whit_sampler_state after;  /* sampler state after the last pick */
    uint64_t settings_bytes;   /* size of the settings; 0: the settings of the turn before apply */
    uint64_t note_bytes;
    uint64_t block_bytes;
    uint32_t first_block, n_blocks; /* blocks have 64 positions each */
    uint64_t tail_bytes;            /* size of the tail at n_present; 0: no tail */
    uint64_t reserved[2];
} whit_turn_header;
_Static_assert(sizeof(whit_turn_header) == 128, "turn");

/* A turn while it is read; its pointers are valid only during the call. */
typedef struct whit_turn_view {
    const whit_turn_header *header;
    uint32_t frame, number;     /* frame: index in the chain; number: index of the turn, from 0 */
    const int32_t *ids;         /* (n_ids) the ids that the turn adds */
    const whit_table *settings; /* the settings in effect, from this turn or an earlier one; NULL: none so far */
    const char *note;
    uint64_t blocks_offset, tail_offset; /* offsets in the file of the turn's blocks and tail */
} whit_turn_view;

/* Describes a valid tail, with which the sequence can resume at n_tokens. */
typedef struct whit_tail_view {
    uint64_t n_tokens, offset, n_bytes;
} whit_tail_view;

/* Holds the contents of a session file; blocks and tails are represented by file offsets. */
typedef struct whit_session_record {
    whit_ndf_log *log;
    const whit_allocator *allocator;
    whit_buf begin;   /* bytes of the BEGIN table */
    whit_table about; /* the BEGIN table, which `begin` contains */
    whit_buf ids;     /* int32_t[]: the ids that no later turn removed */
    uint64_t n_present;
    whit_buf blocks; /* uint64_t[]: offset of each block in the file, by position */
    uint64_t block_bytes;
    whit_buf tails;    /* whit_tail_view[], by position */
    whit_buf settings; /* bytes of the current settings table */
    whit_table settings_table;
    whit_sampler_state after;
    bool has_picks;     /* `settings` and `after` are set */
    whit_buf notes;     /* the notes of all turns, concatenated */
    whit_buf note_ends; /* uint64_t[n_turns]: offset of the end of each turn's note */
    uint32_t n_turns;
} whit_session_record;

typedef whit_status whit_turn_fn(void *user, const whit_session_record *before, const whit_turn_view *turn,
                                 whit_error *error);

/* Reads the chain of an open log: the bytes of every frame are checked against their hashes, and every length and count
 * against the others. `on_turn` (may be NULL) is called with each turn before the turn is added. The caller frees the
 * record in every case. */
whit_status whit_session_record_read(whit_ndf_log *log, const whit_allocator *allocator, whit_turn_fn *on_turn,
                                     void *user, whit_session_record *record, whit_error *error);
void whit_session_record_free(whit_session_record *record);
/* Adds a turn that was read or written to the record. */
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
/* Builds the data of BEGIN for a session's sequence. */
whit_status whit_session_begin_build(const whit_session *session, uint32_t sequence, const char *purpose, whit_buf *out,
                                     whit_error *error);
/* Checks that a sequence's adapters are the adapters that the file was written with; the error names the first
 * difference. */
whit_status whit_session_adapters_check(const whit_session_record *record, const whit_session *session,
                                        uint32_t sequence, whit_error *error);
/* Checks that the file's BEGIN matches this sequence (model, purpose, cache, activations, context, adapters); the error
 * names the first difference. */
whit_status whit_session_begin_check(const whit_session_record *record, const whit_session *session, uint32_t sequence,
                                     const char *purpose, whit_error *error);

/* Returns the options that a sampler was opened with; the arrays of biases belong to the sampler. */
whit_sampler_options whit_sampler_options_of(const whit_sampler *sampler);
/* Append sampler options to `out` as a table, and read them back. The arrays of biases of the read options point into
 * bias_ids and bias_values, which the caller frees. */
whit_status whit_session_settings_build(const whit_sampler_options *options, uint64_t n_stages, whit_buf *out,
                                        whit_error *error);
whit_status whit_session_settings_read(const whit_table *table, whit_sampler_options *options, whit_buf *bias_ids,
                                       whit_buf *bias_values, whit_error *error);

#endif
