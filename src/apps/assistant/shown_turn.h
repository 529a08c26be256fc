/* SPDX-License-Identifier: MIT
 * Shows the turn that an undo or redo would write, for approval: a turn that this editor has not made was not seen in
 * it. */
#ifndef WHIT_ASSISTANT_SHOWN_TURN_H
#define WHIT_ASSISTANT_SHOWN_TURN_H

#include "agent/turns.h"
#include "editor/panel.h"

/* A turn of the journal, with one hunk for each of its files. */
typedef struct whit_shown_turn {
    uint32_t number;
    uint32_t recovered; /* number of the interrupted turn that opening the journal has rolled back, or 0 */
    whit_panel_hunk *hunks;
    size_t n;
    whit_buf texts; /* paths, each ended by a zero byte, and differences */
    whit_buf parts; /* positions in `texts` */
    char reason[80];
} whit_shown_turn;

/* Reads the latest turn that can be undone, or the turn that was undone last. Nothing of it is written. `shown` must be
 * freed, also after a failure. Errors: argument (there is no such turn), and those of whit_turns_open(). */
whit_status whit_shown_turn_read(const char *project, bool redo, whit_shown_turn *shown, whit_error *error);
void whit_shown_turn_free(whit_shown_turn *shown);

#endif
