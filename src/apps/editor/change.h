/* SPDX-License-Identifier: MIT
 * Declares changes of a text: typing, pasting, saving, reflow, indentation. */
#ifndef WHIT_EDITOR_CHANGE_H
#define WHIT_EDITOR_CHANGE_H

#include "editor/window.h"

#include <limits.h>

/* The copied text. */
struct ed_clipboard {
    char *text; /* NULL: nothing was copied */
    size_t n_bytes;
    bool lines, block; /* lines: the text consists of whole lines; block: it is a rectangular block of vi */
};

/* These functions are in change.c. */
bool ed_edit(ed *e, uint64_t offset, uint64_t n_remove, const void *data, size_t n);
void ed_type(ed *e, const char *text, size_t n);
/* returns the closing bracket or quote for the opening `byte`; 0 if `byte` opens nothing */
uint32_t ed_closing(int byte);
void ed_paste(ed *e, const char *text, size_t n);
bool ed_delete_selection(ed *e, struct ed_cursor *cursor);
void ed_copy_range(ed *e, whit_range range, bool lines);
void ed_indent_detect(struct ed_doc *doc, int tab_columns, int indent);
/* Reads the settings of .editorconfig files into doc->project; those about indentation override the detected one. */
void ed_project_settings(struct ed_doc *doc);
void ed_save(ed *e, struct ed_doc *doc, bool force);
/* Saves over a file in the state `there`, to whose replacement the person has agreed. */
void ed_save_over(ed *e, struct ed_doc *doc, const whit_file_identity *there);
/* Saves all modified texts. Stops and returns false at the first text that cannot be saved or needs a question. */
bool ed_save_all(ed *e);
/* Without `force`, asks before it replaces another file; `agreed` is the state of that file to whose replacement the
 * person has agreed, or NULL. */
void ed_save_under(ed *e, const char *path, bool force, const whit_file_identity *agreed);
/* Writes the text to another file; the buffer keeps its own file. Refuses a file that is open in the editor and,
 * without `force`, an existing file. */
void ed_save_copy(ed *e, const char *path, bool force);
/* Expands "~/" at the beginning of a typed path to the home folder. Copies the path unchanged if HOME is not set or the
 * result would be too long. */
const char *ed_typed_path(const char *typed, char path[PATH_MAX]);

/* Inserts whole lines at `at`, which is the beginning of a line or the end of the text, as one step of undo. If the
 * current window shows the document, its cursor moves to the first of the lines. */
bool ed_put_lines(ed *e, struct ed_doc *doc, uint64_t at, const char *text, size_t n);

/* reflow.c: both functions change whole lines. ed_reflow returns the end of the last line, before its line feed, or
 * lines.begin on failure. ed_reindent returns false, with a message, if the language has no brackets or the lines are
 * too long. */
uint64_t ed_reflow(ed *e, whit_range lines);
bool ed_reindent(ed *e, whit_range lines);

/* These functions are in commands_edit.c. */
/* Returns the line end of the line that begins at an offset. If the text ends without one, returns the line end to add:
 * that of the line before or, in the first line, that of the .editorconfig settings. */
const char *ed_line_ending(ed *e, uint64_t begin);
/* Indent or outdent the line that begins at `begin` by one level. even_empty: empty lines, too. */
void ed_indent_line(ed *e, uint64_t begin, bool even_empty);
void ed_outdent_line(ed *e, uint64_t begin);
/* Undoes (`back`) or redoes n steps. Returns false, with a message, if fewer steps exist or one fails. *changed gets
 * the range that the last step changed, with begin ED_NONE if no step was made. */
bool ed_steps(ed *e, bool back, uint32_t n, whit_range *changed);

#endif
