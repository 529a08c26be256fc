/* SPDX-License-Identifier: MIT
 * Reads and writes the frames of a journal (turns.h). */
#ifndef WHIT_AGENT_TURNS_FRAMES_H
#define WHIT_AGENT_TURNS_FRAMES_H

#include "agent/turns.h"
#include "base/items.h"
#include "format/ndf_log.h"

#define WHIT_FRAME_CHANGES_MAX 10000u
#define WHIT_FRAME_NAME        "turn"

enum { WHIT_FRAME_BEGIN = 1, WHIT_FRAME_END = 2, WHIT_FRAME_HEAD = 3 };
/* Where a frame's changes are: in the frame itself, or, for an undo or redo, in the frame of turn `of` (an undo swaps
 * their sides). */
enum { WHIT_FRAME_OWN = 0, WHIT_FRAME_OTHER = 1 };

typedef struct whit_frame_head {
    uint32_t record, kind, number, of;
    int64_t time_s;
    uint32_t n_changes, where;
    char note[120];
} whit_frame_head;

struct whit_turns {
    char *project, *path;
    whit_ndf_log log;
    whit_buf turns; /* whit_turn[] */
    /* uint32_t[]: index of each turn's frame in the log; UINT32_MAX: not known until the log is read again */
    whit_buf frames;
    uint32_t recovered;    /* number of the turn that was rolled back when the journal was opened; 0: none, or told */
    bool only_looks;       /* nothing is written; `interrupted` and its frame in the log are set */
    whit_turn interrupted; /* number 0: no turn was interrupted */
    uint32_t interrupted_frame;
    whit_status commit; /* result of committing the last turn to git */
    whit_error commit_error;
};

/* Changes of a frame. Their texts point into `data`, their paths into `paths`, in which each path ends with a zero
 * byte. */
typedef struct whit_frame {
    whit_frame_head head;
    whit_buf data, paths, changes;
} whit_frame;

static inline whit_turn *whit_frame_turn(const whit_turns *journal, uint32_t i)
{
    return WHIT_ITEMS(whit_turn, &journal->turns) + i;
}

/* Appends a frame with the changes, flushes it and commits it. */
whit_status whit_frame_append(whit_turns *journal, const whit_frame_head *head, const whit_change *changes, size_t n,
                              whit_error *error);
/* Reads a frame of the log: its head or, with `whole`, also its changes, which for an undo or redo are those of its
 * turn. whit_frame_free() must follow, also after a failure. Errors: format, io, memory. */
whit_status whit_frame_load(const whit_turns *journal, uint32_t frame, bool whole, whit_frame *l, whit_error *error);
void whit_frame_free(whit_frame *l);
/* Swaps the two sides of a change. */
void whit_frame_swap(whit_change *c);

#endif
