/* SPDX-License-Identifier: MIT */
#include "assistant/shown_turn.h"

#include "agent/hunks.h"
#include "base/items.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct part {
    size_t path, diff, end;
};

/* Adds a change to the texts. On failure they are marked as failed. */
static void add_change(void *user, const whit_change *change)
{
    whit_shown_turn *shown = user;
    whit_error ignored;
    struct part part = {.path = shown->texts.size_bytes};
    bool ok = whit_buf_append(&shown->texts, change->path, strlen(change->path) + 1);
    part.diff = shown->texts.size_bytes;
    ok = ok && whit_change_show(change, &shown->texts, &ignored) == WHIT_OK;
    part.end = shown->texts.size_bytes;
    if (!ok || !whit_buf_append(&shown->parts, &part, sizeof part)) shown->texts.failed = true;
}

static whit_status make_hunks(whit_shown_turn *shown, whit_error *error)
{
    const struct part *parts = WHIT_ITEMS(const struct part, &shown->parts);
    shown->n = shown->parts.size_bytes / sizeof *parts;
    shown->hunks = calloc(shown->n + 1, sizeof *shown->hunks);
    if (!shown->hunks || shown->texts.failed)
        return whit_fail_memory(error, "the difference of a turn", shown->texts.size_bytes);
    const char *texts = shown->n ? whit_chars(&shown->texts) : "";
    for (size_t i = 0; i < shown->n; i++)
        shown->hunks[i] = (whit_panel_hunk){texts + parts[i].path, shown->reason, texts + parts[i].diff,
                                            parts[i].end - parts[i].diff};
    return WHIT_OK;
}

whit_status whit_shown_turn_read(const char *project, bool redo, whit_shown_turn *shown, whit_error *error)
{
    whit_turns *journal;
    *shown = (whit_shown_turn){0};
    WHIT_TRY(whit_turns_open(project, NULL, &journal, &shown->recovered, error));
    whit_status status =
        (redo ? whit_turns_redo : whit_turns_undo)(journal, &shown->number, true, add_change, shown, error);
    whit_turns_close(journal);
    snprintf(shown->reason, sizeof shown->reason, "turn %u, of another run, would be %s", shown->number,
             redo ? "redone" : "undone");
    return status == WHIT_OK ? make_hunks(shown, error) : status;
}

void whit_shown_turn_free(whit_shown_turn *shown)
{
    free(shown->hunks);
    whit_buf_free(&shown->texts);
    whit_buf_free(&shown->parts);
}
