/* SPDX-License-Identifier: MIT
 * Declares the agent in the editor: its panel, its questions and its rewrites of selections. */
#ifndef WHIT_EDITOR_AGENT_H
#define WHIT_EDITOR_AGENT_H

#include "editor/command.h"
#include "editor/panel.h"

/* State of the agent's panel. */
struct ed_panel {
    struct ed_doc *doc; /* pad that shows the panel; NULL: not open */
    bool working;
    bool is_turning;              /* the running job is an undo or a redo, whose question opens the panel */
    const whit_panel_hunk *hunks; /* hunks that the agent wants approved, or NULL */
    /* at: index of the first hunk that the person has not decided about; asked: number of hunks whose own question was
     * opened; shown: number of hunks that were appended to the panel's text */
    size_t n_hunks, at, asked, shown;
    uint64_t from; /* offset in the panel's text at which hunk `at`, or the reason before it, or the question begins */
    /* The text of the open question begins at this offset, and was shown in a window of this size. asks_all: it is the
     * question about all hunks that follow. */
    uint64_t shown_from;
    int shown_columns, shown_rows;
    bool asks_all;
    uint8_t *taken;
    char *question; /* question that waits for an answer, or NULL */
    bool is_seen;   /* the end of the question, or of its change, was visible since its prompt was opened */
    /* document of the last request about a selection; a rewrite replaces `range` in it if it still has `version` */
    struct ed_doc *rewritten;
    whit_range range;
    uint64_t version;
    char *model, *url, *name, *key_file; /* settings model, model_url, model_name and model_key_file; NULL: not set */
};

/* These functions are in panel.c. */
extern ed_command_fn ed_agent, ed_agent_stop, ed_agent_undo, ed_agent_redo, ed_explain, ed_rewrite;
void ed_agent_task(ed *e, const char *text);
void ed_rewrite_as(ed *e, const char *text);
whit_panel_wish ed_panel_wish(const ed *e);
bool ed_panel_waits(const ed *e); /* returns whether the agent waits for decisions about hunks or for an answer */
void ed_panel_answer(ed *e, uint32_t letter);
/* Shows a change or a question from its beginning again if the size of its window has changed. */
void ed_panel_fit(ed *e);
/* Writes the prompt of a change or of a question, which says whether a part of it is below the window. */
void ed_panel_label(ed *e);
void ed_panel_scroll(ed *e, whit_key key);
/* Sends the reply to the agent's question; text NULL: the person declines to answer. A reply is only valid if
 * ed_panel_may_reply(), which is whether the end of the question was visible. */
void ed_panel_reply(ed *e, const char *text);
bool ed_panel_may_reply(const ed *e);
void ed_panel_forget(ed *e, const struct ed_doc *doc);
void ed_panel_close(ed *e);

#endif
