/* SPDX-License-Identifier: MIT
 * Declarations that the parts of the editor share; for this room alone. Names begin with ed_. */
#ifndef WHIT_EDITOR_STATE_H
#define WHIT_EDITOR_STATE_H

#include "code/git.h"
#include "code/graph.h"
#include "editor/buffer.h"
#include "editor/editor.h"
#include "editor/editorconfig.h"
#include "editor/language.h"
#include "editor/layout.h"
#include "editor/shell.h"
#include "editor/suggest.h"
#include "editor/syntax.h"
#include "editor/tree.h"
#include "editor/vi.h"

#include <limits.h>

#define ED_CURSORS_MAX 1024
#define ED_JUMPS_MAX   64
#define ED_NONE        UINT64_MAX

#define ED_GIT_CHANGES_MAX 4096

/* Changes since the last commit, as of one version of the text. */
struct ed_git {
    whit_git_file *file;
    bool asked; /* git was asked whether there is a committed file */
    uint64_t version;
    whit_git_change *changes;
    size_t n_changes;
};

/* The text that a document is compared with, and the runs of lines that differ (whit_diff_run), as of two versions. */
struct ed_compared {
    struct ed_doc *with; /* NULL: none */
    whit_buf runs;
    uint64_t version, other_version;
};

/* A buffer with what the editor knows about it. */
struct ed_doc {
    struct ed_doc *next;
    whit_buffer *buffer;
    whit_syntax *syntax;
    whit_syntax_states states;
    int tab_columns, indent_columns;
    bool indent_tabs, told;    /* told: the person was told that another editor has it open */
    whit_editorconfig project; /* the project's settings for the text */
    struct ed_git git;
    struct ed_compared compared;
    struct ed_language language;
    ed_tree *tree; /* NULL: not looked for yet */
    bool conflict_shown, looked_for_server;
    uint64_t last_offset; /* the cursor of a view that was closed */
    uint64_t marks[ED_VI_MARKS], mark_jump, mark_change, mark_begin, mark_end; /* vi's; ED_NONE: not set */
    uint64_t conflict_version;
};

struct ed_cursor {
    uint64_t offset, anchor; /* anchor ED_NONE: nothing is selected */
    int goal;                /* column that up and down keep; -1: where it is */
};

/* A part of the screen with a view of a document; an inner node has two children instead. */
struct ed_window {
    struct ed_window *parent, *child[2];
    bool beside;                 /* children stand side by side */
    int first_columns;           /* width of the first child, 0: half of it */
    int x, y, n_columns, n_rows; /* the last row is the status line */
    struct ed_doc *doc;
    whit_layout layout;
    struct ed_cursor *cursors; /* the last is the main one */
    size_t n_cursors;
    uint64_t top;
    int left;
    bool wrap, moved_away; /* moved_away: the wheel has scrolled away from the cursor */
};

typedef enum ed_prompt_kind {
    ED_PROMPT_NONE,
    ED_PROMPT_FIND,
    ED_PROMPT_REPLACE,
    ED_PROMPT_REPLACE_BY,
    ED_PROMPT_REPLACE_PROJECT, /* the same in all files */
    ED_PROMPT_REPLACE_PROJECT_BY,
    ED_PROMPT_REPLACING, /* y, n, a, q at each match */
    ED_PROMPT_LINE,
    ED_PROMPT_SAVE_AS,
    ED_PROMPT_OPEN,
    ED_PROMPT_PALETTE,
    ED_PROMPT_FILES,
    ED_PROMPT_BUFFERS,
    ED_PROMPT_PROJECT,
    ED_PROMPT_RESULTS, /* a list to choose a place from, which is shown above it */
    ED_PROMPT_SYMBOLS,
    ED_PROMPT_CLOSE, /* save, discard, cancel */
    ED_PROMPT_QUIT,
    ED_PROMPT_CONFLICT,
    ED_PROMPT_OVERWRITE, /* saving under the name of a file that exists, which is the prompt's text */
    ED_PROMPT_RECOVER,
    ED_PROMPT_HELP,
    ED_PROMPT_VI,       /* a line after ':' */
    ED_PROMPT_COMPLETE, /* a list of completions from a language server */
    ED_PROMPT_RENAME,
    ED_PROMPT_SHELL, /* a command */
    ED_PROMPT_AGENT, /* a task */
    ED_PROMPT_AGENT_REPLY,
    ED_PROMPT_REWRITE,
    ED_PROMPT_HUNK, /* y, n, a, d at each */
    ED_PROMPT_SERVERS,
    ED_PROMPT_ACTIONS, /* a list from a language server */
} ed_prompt_kind;

struct ed_item {
    char *label;   /* shown, and searched */
    char *path;    /* file of a place, or NULL */
    uint64_t line; /* from 1 */
    int command;
};

struct ed_prompt {
    ed_prompt_kind kind;
    char label[200];
    char text[1024];
    size_t n, at; /* bytes, cursor */
    struct ed_item *items;
    size_t n_items, items_room;
    uint32_t *shown; /* items that match the text, best first */
    size_t n_shown, chosen;
    uint64_t origin; /* where a search began */
    bool found;      /* the pattern was found */
    bool is_offered; /* the text: the first letter that is typed takes its place */
    uint64_t origin_top;
};

/* The tree of the project's files. */
struct ed_files {
    struct ed_doc *doc;            /* NULL: not shown yet */
    char **paths, **open, **lines; /* files; open folders, with a slash; a path for each line */
    size_t n_paths, n_open, n_lines;
};

/* The last list of places, and the preview of the list that is open. */
struct ed_results {
    char label[64];
    struct ed_item *items;
    size_t n, at;
    bool was_at;                  /* the person has been at that place */
    struct ed_doc *from, *peeked; /* from: the text that was shown before, NULL: no preview; peeked: a copy of a file */
    struct ed_cursor from_cursor;
    uint64_t from_top;
};

struct ed_jump {
    struct ed_doc *doc;
    uint64_t offset;
};

typedef void ed_command_fn(ed *e);
struct ed_command {
    const char *name, *keys, *help;
    ed_command_fn *run;
    uint8_t flags;
};
enum { ED_MOVES = 1, ED_EDITS = 2, ED_JUMPS = 4, ED_ONE = 8 }; /* ED_ONE: further cursors go first */
extern const struct ed_command ed_commands[];
extern const size_t ed_n_commands;

struct ed_binding {
    whit_key key;
    int command;
    bool is_own; /* from the settings: goes before vi's keys */
};

/* The agent's panel. */
struct ed_panel {
    struct ed_doc *doc; /* NULL: not used yet */
    bool working;
    const whit_panel_hunk *hunks; /* hunks that wait for an answer, or NULL */
    size_t n_hunks, at, shown;
    uint8_t *taken;
    char question[200]; /* question that waits for an answer; "": no question */
    uint64_t asked_ns;
    struct ed_doc *rewritten; /* document whose `range` is to be replaced while it has `version` */
    whit_range range;
    uint64_t version;
    char *model, *url, *name, *key_file; /* from the settings; NULL: not set */
};

struct whit_editor {
    whit_editor_options options;
    struct ed_doc *docs;
    struct ed_window *root, *window; /* window: the current one */
    struct ed_prompt prompt;
    char message[600];
    bool message_is_error;
    bool pairs; /* typing an opening bracket or quote puts the closing one in, too */
    bool done, quitting, mouse, numbers, wrap, editorconfig;
    ed_suggest suggest;
    whit_theme theme;
    int text_columns;        /* width of reflowed paragraphs */
    int tab_columns, indent; /* indent: 0 detected, -1 tabs, n spaces */
    int n_columns, n_rows;
    struct ed_binding *bindings;
    size_t n_bindings;
    char *clipboard;
    size_t clipboard_bytes;
    bool clipboard_lines, clipboard_block;
    char pattern[512];
    bool regex;
    struct ed_search *search;
    char replacement[1024]; /* as long as a prompt's text */
    size_t n_replaced;
    char **replace_files; /* files in which to replace; replace_at: index of the next */
    size_t n_replace_files, replace_at;
    uint64_t replace_to;     /* end of the part in which to replace; ED_NONE: the text's end */
    uint64_t replace_line;   /* beginning of the last match; ED_NONE: no match yet */
    uint64_t replace_behind; /* end of the last match's replacement */
    bool replace_ended;      /* an empty match at the end of the text was the last one there */
    bool replace_once_line;  /* the first match of each line */
    bool paste_mode;         /* unused */
    whit_key *macro;
    size_t n_macro, macro_room;
    bool recording, playing;
    struct ed_jump jumps[ED_JUMPS_MAX];
    size_t n_jumps;
    struct ed_vi vi;
    bool shift; /* a movement that selects */
    struct ed_server servers[ED_SERVERS_MAX];
    size_t n_servers;
    struct ed_asked asked;
    json_t *actions; /* code actions that the prompt offers */
    bool acting;     /* an action was chosen whose changes the server will send */
    struct ed_panel panel;
    struct ed_results results;
    struct ed_files files;
    struct ed_shell shell;
    enum { ED_FIND_ASK, ED_FIND_NEVER, ED_FIND_ALWAYS } find_servers;
    uint64_t servers_asked_ns; /* 0: not asked in this run */
    char *make;                /* the settings' command of :make; NULL: make */
    struct ed_suggestion suggestion;
    enum { ED_GIT_NOTHING, ED_GIT_NEXT, ED_GIT_PREVIOUS } git_wish; /* for when git's answer has come */
    whit_graph *graph;                                              /* the project's; NULL: not asked for yet */
    bool config_read;
    char config_path[512];
};

/* editor.c */
void ed_say(ed *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ed_complain(ed *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ed_complain_error(ed *e, const whit_error *error);
struct ed_doc *ed_doc_add(ed *e, whit_buffer *buffer); /* takes the buffer, also where it fails */
struct ed_doc *ed_doc_find(const ed *e, const char *path);
struct ed_doc *ed_open_file(ed *e, const char *path, whit_error *error); /* finds one that is open */
/* A copy of a file that is in no list of buffers and has no journal; for ed_doc_free. */
struct ed_doc *ed_doc_peek(ed *e, const char *path);
void ed_doc_free(struct ed_doc *doc);
void ed_show(ed *e, struct ed_doc *doc);
void ed_close_doc(ed *e, struct ed_doc *doc);
void ed_place(ed *e, uint64_t line, uint64_t column); /* from 1 */
/* Gives the shown buffer what its file holds now, which undo takes back (but for mapped files); the cursor keeps line
 * and column. */
bool ed_read_again(ed *e);
void ed_jump_push(ed *e);
void ed_run(ed *e, int command);
int ed_command_find(const char *name);
void ed_check_journal(ed *e);
void ed_take_key(ed *e, whit_key key, const char *paste, size_t n_paste); /* as if it had been typed */
/* Shows a text that is not saved and asks what becomes of it; false where nothing would be lost. */
bool ed_ask_to_save(ed *e, struct ed_doc *doc, ed_prompt_kind kind);
void ed_quit_next(ed *e); /* asks for the next unsaved buffer, or ends */

/* window.c */
void ed_windows_layout(ed *e);
bool ed_window_split(ed *e, bool beside);
void ed_window_close(ed *e);
void ed_window_only(ed *e); /* closes all others */
struct ed_window *ed_window_next(const ed *e, const struct ed_window *window);
void ed_window_free(struct ed_window *window);
struct ed_window *ed_window_new(ed *e, struct ed_doc *doc);
void ed_window_show(ed *e, struct ed_window *window, struct ed_doc *doc);
struct ed_window *ed_window_at(ed *e, int x, int y);
int ed_window_margin(const ed *e, const struct ed_window *window);
void ed_window_follow(ed *e, struct ed_window *window);
void ed_windows_changed(ed *e, struct ed_doc *doc, uint64_t offset, uint64_t n_removed, uint64_t n_inserted);

/* move.c */
struct ed_cursor *ed_cursor(const ed *e);
whit_text *ed_text(const ed *e);
whit_layout *ed_layout(const ed *e);
whit_range ed_selection(const struct ed_cursor *cursor);
void ed_move_to(ed *e, struct ed_cursor *cursor, uint64_t offset);
void ed_only_main(ed *e);
void ed_merge_cursors(ed *e);
bool ed_add_cursor(ed *e, uint64_t offset, uint64_t anchor);
uint64_t ed_word_left(ed *e, uint64_t offset);
uint64_t ed_word_right(ed *e, uint64_t offset);
bool ed_is_word(int byte);
uint64_t ed_skip_blanks(ed *e, uint64_t at);
/* ED_NONE where none matches within `limit` bytes. */
uint64_t ed_bracket(ed *e, uint64_t offset, uint64_t limit);
void ed_click(ed *e, whit_key key);

/* change.c */
bool ed_edit(ed *e, uint64_t offset, uint64_t n_remove, const void *data, size_t n);
void ed_type(ed *e, const char *text, size_t n);
uint32_t ed_closing(int byte); /* the bracket or quote that closes one; 0: it opens nothing */
void ed_paste(ed *e, const char *text, size_t n);
bool ed_delete_selection(ed *e, struct ed_cursor *cursor);
void ed_copy_range(ed *e, whit_range range, bool lines);
void ed_indent_detect(struct ed_doc *doc, int tab_columns, int indent);
/* Applies the .editorconfig files' settings over the detected indentation. */
void ed_project_settings(struct ed_doc *doc);
void ed_save(ed *e, struct ed_doc *doc, bool force);
/* Saves every text that is modified; stops at one that asks or fails, false then. */
bool ed_save_all(ed *e);
void ed_save_under(ed *e, const char *path, bool force); /* without `force`, over another file only after asking */
/* Writes the text to another file; the buffer stays what it is. Without `force`, not over a file that is there. */
void ed_save_copy(ed *e, const char *path, bool force);
/* Expands "~/" in a path as people type it to their home folder; a path that does not fit stays as it is. */
const char *ed_typed_path(const char *typed, char path[PATH_MAX]);

/* Puts whole lines in where a line begins or the text ends, as one step of undo; the cursor goes to the first. */
bool ed_put_lines(ed *e, struct ed_doc *doc, uint64_t at, const char *text, size_t n);

/* reflow.c: whole lines, from the beginning of one. Where the last of them begins; false, with a line, where the
 * language has no brackets. */
uint64_t ed_reflow(ed *e, whit_range lines);
bool ed_reindent(ed *e, whit_range lines);
extern ed_command_fn ed_do_reflow, ed_do_reindent;

/* commands.c: where a movement of a cursor ends */
uint64_t ed_to_right(ed *e, struct ed_cursor *cursor);
uint64_t ed_to_word_left(ed *e, struct ed_cursor *cursor);
uint64_t ed_to_word_right(ed *e, struct ed_cursor *cursor);

/* commands_edit.c */
/* Returns the ending of the line that begins at an offset, or the ending to give it: files with CR LF keep it. */
const char *ed_line_ending(ed *e, uint64_t begin);
/* Indent and outdent the line that begins there by one level. */
void ed_indent_line(ed *e, uint64_t begin, bool even_empty);
void ed_outdent_line(ed *e, uint64_t begin);
/* Makes n steps of undo or redo. False, with a line, if fewer are possible; *changed: the last range, or ED_NONE. */
bool ed_steps(ed *e, bool back, uint32_t n, whit_range *changed);
extern ed_command_fn ed_do_delete, ed_do_backspace, ed_do_delete_word_left, ed_do_delete_word_right, ed_do_new_line,
    ed_do_tab, ed_do_indent, ed_do_outdent, ed_do_toggle_comment, ed_do_delete_line, ed_do_duplicate_line,
    ed_do_line_up, ed_do_line_down, ed_do_copy, ed_do_cut, ed_do_paste, ed_do_undo, ed_do_redo, ed_do_branch;

/* find.c */
struct ed_search;
bool ed_search_set(ed *e, const char *pattern, bool regex, char *why, size_t why_bytes);
void ed_search_free(struct ed_search *search);
bool ed_search_forward(ed *e, const whit_text *text, uint64_t from, uint64_t to, whit_range *match);
bool ed_search_backward(ed *e, const whit_text *text, uint64_t before, whit_range *match);
bool ed_search_next(ed *e, bool back, uint64_t from); /* moves, wraps around, says so */
void ed_replace_here(ed *e);
void ed_replace_skip(ed *e);
void ed_replace_begin(ed *e);
bool ed_replace_step(ed *e);
void ed_replace_all(ed *e);
void ed_replace_in_project(ed *e);
void ed_replace_forget(ed *e); /* the other files, and where the last match was */
/* Asks at each match from the cursor to an offset, or only at each line's first. */
void ed_replace_range(ed *e, uint64_t to, bool once_a_line);
void ed_project_search(ed *e);

/* prompt.c */
void ed_prompt_open(ed *e, ed_prompt_kind kind, const char *label, const char *text);
void ed_prompt_close(ed *e);
bool ed_prompt_key(ed *e, whit_key key, const char *paste, size_t n_paste);
bool ed_prompt_add(ed *e, const char *label, const char *path, uint64_t line, int command);
void ed_prompt_filter(ed *e);
void ed_go_to_file(ed *e, const char *path, uint64_t line);
void ed_keys_of(const ed *e, int command, char *keys, size_t room_bytes); /* a command's keys, blanks between them */
bool ed_prompt_has_list(ed_prompt_kind kind);

/* pad.c: `like` is a file's name, for its colours; *pad NULL: it is made */
struct ed_doc *ed_pad_open(ed *e, struct ed_doc **pad, const char *name, const char *like);
void ed_pad_append(ed *e, struct ed_doc *doc, const char *text, size_t n);
void ed_pad_clear(struct ed_doc *doc);
struct ed_window *ed_pad_window(const ed *e, const struct ed_doc *doc); /* NULL: no window shows it */
void ed_pad_show(ed *e, struct ed_doc *doc, bool beside);               /* its end, in a window that becomes current */

/* results.c */
void ed_results_begin(ed *e, const char *label); /* a new list that no prompt shows */
bool ed_results_add(ed *e, const char *label, const char *path, uint64_t line);
void ed_results_go(ed *e, size_t at);
void ed_results_preview(ed *e); /* shows the place that the prompt has chosen */
void ed_results_keep(ed *e);    /* the prompt closes: its list stays */
void ed_results_close(ed *e);
extern ed_command_fn ed_results_next, ed_results_previous, ed_results_list;

/* servers.c: installed language servers. The first is for when no key waits: true where something was done. The
 * second takes the key that answers; false: the key is for the text. */
bool ed_servers_look(ed *e);
bool ed_servers_answer(ed *e, whit_key key);
bool ed_is_installed(const char *program); /* in an absolute folder of PATH */

/* welcome.c */
void ed_welcome_draw(ed *e, const struct ed_window *window, whit_screen *screen);
void ed_welcome_stranger(ed *e); /* a line was ended: says which keys do what it says, if it is one of vi's */

/* config.c */
void ed_config_read(ed *e, const char *text, const char *path);
int ed_config_command(const ed *e, whit_key key);
bool ed_config_is_own(const ed *e, whit_key key); /* bound by the settings */
bool ed_bind(ed *e, whit_key key, int command, bool is_own);

/* git.c */
void ed_git_forget(struct ed_doc *doc); /* HEAD is looked at again */
bool ed_git_update(struct ed_doc *doc); /* true: the marks may be others now */
/* Takes git's answer as far as it has come; true: the screen would now be another. */
bool ed_git_answer(ed *e);
/* "+", "~" or "-" for a line (from 1); NULL where nothing was changed. */
const char *ed_git_mark(const struct ed_doc *doc, uint64_t line, whit_style *style);
void ed_git_next(ed *e);
void ed_git_previous(ed *e);

/* files.c: the tree of files. True: the key was for it */
extern ed_command_fn ed_files_toggle;
bool ed_files_enter(ed *e);
void ed_files_forget(ed *e, const struct ed_doc *doc);
void ed_files_close(ed *e);

/* compare.c */
void ed_compare(ed *e, struct ed_doc *a, struct ed_doc *b);
void ed_compare_forget(struct ed_doc *doc);
bool ed_compare_update(struct ed_doc *doc); /* for a text that is compared; true: its marks may have changed */
void ed_compare_scroll(ed *e);              /* the other window shows what stands beside the current one */

/* language.c, language_ask.c: see language.h */
struct ed_server *ed_server_of(ed *e, const struct ed_doc *doc); /* NULL: none is configured */
/* Starts the server, tells it of the text; false where it does not have it (yet). */
bool ed_server_has_text(ed *e, struct ed_doc *doc, bool asked);
uint64_t ed_server_offset(const struct ed_server *server, const whit_text *text, const json_t *position);
json_t *ed_server_position(const struct ed_server *server, const whit_text *text, uint64_t offset);
const char *ed_server_error(const json_t *message);
void ed_language_ask_now(ed *e);
void ed_language_answer(ed *e, const json_t *message);
void ed_complete_with(ed *e, const char *text, uint64_t from, uint64_t to);

/* panel.c */
extern ed_command_fn ed_agent, ed_agent_stop, ed_agent_undo, ed_agent_redo, ed_explain, ed_rewrite;
void ed_agent_task(ed *e, const char *text);
void ed_rewrite_as(ed *e, const char *text);
whit_panel_wish ed_panel_wish(const ed *e);
bool ed_panel_waits(const ed *e); /* for an answer of the person's */
void ed_panel_answer(ed *e, uint32_t letter);
void ed_panel_scroll(ed *e, whit_key key);
void ed_panel_reply(ed *e, const char *text); /* NULL: none */
void ed_panel_forget(ed *e, const struct ed_doc *doc);
void ed_panel_close(ed *e);

/* jump.c */
void ed_symbols_open(ed *e);
void ed_definition(ed *e);
void ed_definition_by_graph(ed *e);
void ed_references(ed *e);
void ed_graph_saved(ed *e, const struct ed_doc *doc); /* the graph follows */
void ed_graph_close(ed *e);

#endif
