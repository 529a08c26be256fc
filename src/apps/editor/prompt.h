/* SPDX-License-Identifier: MIT
 * Declares the prompt at the bottom of the screen, and the list above it. */
#ifndef WHIT_EDITOR_PROMPT_H
#define WHIT_EDITOR_PROMPT_H

#include "editor/window.h"
#include "editor/keys.h"

typedef enum ed_prompt_kind {
    ED_PROMPT_NONE,
    ED_PROMPT_FIND,
    ED_PROMPT_REPLACE,
    ED_PROMPT_REPLACE_BY,
    ED_PROMPT_REPLACE_PROJECT, /* pattern to replace in all files of the project */
    ED_PROMPT_REPLACE_PROJECT_BY,
    ED_PROMPT_REPLACING, /* question about each match: y, n, a (all) or q (quit) */
    ED_PROMPT_LINE,
    ED_PROMPT_SAVE_AS,
    ED_PROMPT_OPEN,
    ED_PROMPT_PALETTE,
    ED_PROMPT_FILES,
    ED_PROMPT_BUFFERS,
    ED_PROMPT_PROJECT,
    ED_PROMPT_RESULTS, /* list of places above the prompt, from which one is chosen */
    ED_PROMPT_SYMBOLS,
    ED_PROMPT_CLOSE, /* question whether to save, discard or cancel */
    ED_PROMPT_QUIT,
    ED_PROMPT_CONFLICT,
    ED_PROMPT_OVERWRITE, /* question whether to replace the existing file named by the prompt's text */
    ED_PROMPT_RECOVER,
    ED_PROMPT_HELP,
    ED_PROMPT_VI,       /* line after vi's ':' */
    ED_PROMPT_COMPLETE, /* list of completions from a language server */
    ED_PROMPT_RENAME,
    ED_PROMPT_SHELL, /* shell command */
    ED_PROMPT_AGENT, /* task for the agent */
    ED_PROMPT_AGENT_REPLY,
    ED_PROMPT_REWRITE,
    ED_PROMPT_HUNK, /* question about each hunk: y, n, a (all) or d (none) */
    ED_PROMPT_SERVERS,
    ED_PROMPT_ACTIONS, /* list of code actions from a language server */
} ed_prompt_kind;

struct ed_item {
    char *label; /* text that is displayed and matched against the typed text */
    char *path;  /* file to which the item leads, or NULL; of a completion, the text that it inserts */
    /* line in `path`, counted from 1; 0: unknown; of a completion, the offset at which the replaced text begins; of a
     * code action, its index */
    uint64_t line;
    int command;
};

struct ed_prompt {
    ed_prompt_kind kind;
    char label[200];
    char text[1024];
    size_t n, at; /* n: length of the text in bytes; at: offset of the cursor in it */
    struct ed_item *items;
    size_t n_items, items_room;
    uint32_t *shown; /* indices of the items that match the text, best match first */
    size_t n_shown, chosen;
    /* beginning of the selection, or the cursor, when the prompt was opened; of completions, where the typed word
     * ends */
    uint64_t origin;
    bool found;      /* the pattern was found */
    bool is_offered; /* the text was filled in by the editor; the first typed letter replaces it */
    uint64_t origin_top;
    uint64_t version;         /* version of the text for which completions or the overwriting of a file are offered */
    whit_file_identity there; /* state of the file whose overwriting is offered */
    uint64_t asked_ns;        /* time of opening or, until the first pause, of the last key: see HASTE_NS */
};

/* These functions are in prompt.c. */
void ed_prompt_open(ed *e, ed_prompt_kind kind, const char *label, const char *text);
void ed_prompt_close(ed *e);
bool ed_prompt_key(ed *e, whit_key key, const char *paste, size_t n_paste);
bool ed_prompt_add(ed *e, const char *label, const char *path, uint64_t line, int command);
void ed_prompt_filter(ed *e);
void ed_go_to_file(ed *e, const char *path, uint64_t line);
/* writes the names of a command's keys, separated by blanks */
void ed_keys_of(const ed *e, int command, char *keys, size_t room_bytes);
bool ed_prompt_has_list(ed_prompt_kind kind);

/* These functions are in editor.c. */
/* Shows a document with unsaved changes and asks whether to save it. Returns false, without a question, if nothing
 * would be lost. */
bool ed_ask_to_save(ed *e, struct ed_doc *doc, ed_prompt_kind kind);
void ed_quit_next(ed *e); /* asks about the next unsaved document, or ends the editor if all are saved */

#endif
