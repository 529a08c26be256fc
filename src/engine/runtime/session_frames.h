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

/* Header of a TURN's data. The parts follow in this order: ids (i32), settings (a table, at the next multiple of 8
 * bytes), note (at the next multiple of 8), blocks (at the next multiple of 64), tail (kv/tail.h, directly after the
 * blocks). */
typedef struct whit_turn_header {
    uint32_t kind, finish;     /* finish: a whit_finish */
    uint64_t n_keep;           /* number of first ids of the sequence that are kept from earlier turns */
    uint64_t n_ids;            /* number of ids that this turn adds */
    uint64_t n_given;          /* the first n_given of the added ids were given, the others were picked by the
                                * sampler */
    uint64_t n_present;        /* number of tokens of the sequence after the turn: all ids, or all but the last */
    whit_sampler_state before; /* sampler state before the first pick */
    whit_sampler_state after;  /* sampler state after the last pick */
    uint64_t settings_bytes;   /* size of the sampler settings; 0: the settings of the turn before apply */
    uint64_t note_bytes;
    uint64_t block_bytes;
    uint32_t first_block, n_blocks; /* index of the first stored block, and number of stored blocks; a block has 64
                                     * positions */
    uint64_t tail_bytes;            /* size of the tail at n_present; 0: no tail */
    uint64_t reserved[2];
} whit_turn_header;
_Static_assert(sizeof(whit_turn_header) == 128, "turn");

/* A turn that is being read or was written; its pointers are valid only during the call of on_turn or
 * whit_session_record_add that receives it. */
typedef struct whit_turn_view {
    const whit_turn_header *header;
    uint32_t frame, number;     /* frame: index in the chain; number: index of the turn, from 0 */
    const int32_t *ids;         /* (header->n_ids): ids that the turn adds */
    const whit_table *settings; /* sampler settings, from this turn or an earlier one; NULL: no settings so far */
    const char *note;
    uint64_t blocks_offset, tail_offset; /* offsets in the file of the turn's blocks and tail */
} whit_turn_view;

/* A tail in the file (offset, n_bytes), with which the sequence can resume at position n_tokens. */
typedef struct whit_tail_view {
    uint64_t n_tokens, offset, n_bytes;
} whit_tail_view;

/* Contents of a session file; blocks and tails are represented by offsets in the file. */
typedef struct whit_session_record {
    whit_ndf_log *log;
    const whit_allocator *allocator;
    whit_buf begin;   /* bytes of the BEGIN table */
    whit_table about; /* the BEGIN table; points into `begin` */
    whit_buf ids;     /* int32_t[]: ids of the sequence after all turns */
    uint64_t n_present;
    whit_buf blocks; /* uint64_t[]: offset of each block in the file, by block index */
    uint64_t block_bytes;
    whit_buf tails;    /* whit_tail_view[], in order of position */
    whit_buf settings; /* bytes of the table of the last settings */
    whit_table settings_table;
    whit_sampler_state after;
    bool has_picks;     /* a turn picked ids, so `settings` and `after` are set */
    whit_buf notes;     /* concatenated notes of all turns */
    whit_buf note_ends; /* uint64_t[n_turns]: offset in `notes` of the end of each turn's note */
    uint32_t n_turns;
} whit_session_record;

typedef whit_status whit_turn_fn(void *user, const whit_session_record *before, const whit_turn_view *turn,
                                 whit_error *error);

/* Reads all session frames of an open log: checks their hashes, and that lengths and counts agree; other frames are
 * skipped. Calls on_turn (may be NULL) with each turn before the turn is added to the record. The caller frees the
 * record, also on failure. */
whit_status whit_session_record_read(whit_ndf_log *log, const whit_allocator *allocator, whit_turn_fn *on_turn,
                                     void *user, whit_session_record *record, whit_error *error);
void whit_session_record_free(whit_session_record *record);
/* Adds a turn, which was read or written, to the record. */
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
/* Builds the data of the BEGIN frame for a sequence of a session. */
whit_status whit_session_begin_build(const whit_session *session, uint32_t sequence, const char *purpose, whit_buf *out,
                                     whit_error *error);
/* Checks that a sequence has the adapters with which the file was written; the error names the first difference. */
whit_status whit_session_adapters_check(const whit_session_record *record, const whit_session *session,
                                        uint32_t sequence, whit_error *error);
/* Checks that the BEGIN table of a file matches a sequence (model, purpose, cache, activations, adapters, and the
 * context if RoPE frequencies depend on it); the error names the first difference. */
whit_status whit_session_begin_check(const whit_session_record *record, const whit_session *session, uint32_t sequence,
                                     const char *purpose, whit_error *error);

/* Returns the options with which a sampler was opened; the arrays of biases belong to the sampler. */
whit_sampler_options whit_sampler_options_of(const whit_sampler *sampler);
/* _build appends sampler options to `out` as a table; _read reads such a table. The arrays of biases in the read
 * options point into bias_ids and bias_values, which the caller frees. */
whit_status whit_session_settings_build(const whit_sampler_options *options, uint64_t n_stages, whit_buf *out,
                                        whit_error *error);
whit_status whit_session_settings_read(const whit_table *table, whit_sampler_options *options, whit_buf *bias_ids,
                                       whit_buf *bias_values, whit_error *error);

#endif
