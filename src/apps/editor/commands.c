/* SPDX-License-Identifier: MIT
 * Holds the editor's commands in one table of names, usual keys and help. */
#include "editor/state.h"

/* ---- moving -------------------------------------------------------------------------------- */

/* Moves every cursor to the offset that `to` returns. */
static void each(ed *e, uint64_t (*to)(ed *e, struct ed_cursor *cursor))
{
    for (size_t i = 0; i < e->window->n_cursors; i++) {
        struct ed_cursor *cursor = &e->window->cursors[i];
        ed_move_to(e, cursor, to(e, cursor));
    }
}

static uint64_t to_left(ed *e, struct ed_cursor *cursor)
{
    whit_range range = ed_selection(cursor);
    if (!e->shift && range.end > range.begin) return range.begin;
    return whit_layout_before(ed_layout(e), cursor->offset);
}
uint64_t ed_to_right(ed *e, struct ed_cursor *cursor)
{
    whit_range range = ed_selection(cursor);
    if (!e->shift && range.end > range.begin) return range.end;
    return whit_layout_behind(ed_layout(e), cursor->offset);
}
uint64_t ed_to_word_left(ed *e, struct ed_cursor *cursor)
{
    return ed_word_left(e, cursor->offset);
}
uint64_t ed_to_word_right(ed *e, struct ed_cursor *cursor)
{
    return ed_word_right(e, cursor->offset);
}
/* Returns the offset of the first character of the line that is not blank or, if the cursor is already there, of the
 * line's beginning. */
static uint64_t to_home(ed *e, struct ed_cursor *cursor)
{
    uint64_t begin = whit_layout_line_begin(ed_layout(e), cursor->offset), at = begin;
    int byte;
    while ((byte = whit_layout_byte(ed_layout(e), at)) == ' ' || byte == '\t') at++;
    return cursor->offset == at ? begin : at;
}
static uint64_t to_end(ed *e, struct ed_cursor *cursor)
{
    return whit_layout_line_end(ed_layout(e), cursor->offset);
}
static uint64_t to_top(ed *e, struct ed_cursor *cursor)
{
    (void)e;
    (void)cursor;
    return 0;
}
static uint64_t to_bottom(ed *e, struct ed_cursor *cursor)
{
    (void)cursor;
    return whit_text_size(ed_text(e));
}
#define BRACKET_BYTES 1000000u /* maximum number of bytes searched for a bracket, which bounds the delay of the key */
static uint64_t to_bracket(ed *e, struct ed_cursor *cursor)
{
    uint64_t at = ed_bracket(e, cursor->offset, BRACKET_BYTES);
    if (at == ED_NONE && cursor->offset) at = ed_bracket(e, cursor->offset - 1, BRACKET_BYTES);
    if (at == ED_NONE) ed_complain(e, "there is no bracket here, or its partner is not within 1,000,000 bytes");
    return at == ED_NONE ? cursor->offset : at;
}

static void by_rows(ed *e, int rows)
{
    whit_layout *layout = ed_layout(e);
    for (size_t i = 0; i < e->window->n_cursors; i++) {
        struct ed_cursor *cursor = &e->window->cursors[i];
        uint64_t row = whit_layout_row(layout, cursor->offset), next;
        int goal = cursor->goal >= 0 ? cursor->goal : whit_layout_column(layout, row, cursor->offset);
        int left = rows < 0 ? -rows : rows;
        for (; left > 0; left--) {
            next = rows < 0 ? whit_layout_previous_row(layout, row) : whit_layout_next_row(layout, row);
            if (next == UINT64_MAX) break;
            row = next;
        }
        bool stuck = left == (rows < 0 ? -rows : rows);
        uint64_t to;
        if (stuck)
            to = rows < 0 ? 0 : whit_text_size(ed_text(e));
        else
            to = whit_layout_at_column(layout, row, goal);
        ed_move_to(e, cursor, to);
        if (!stuck) cursor->goal = goal;
    }
}

static void left(ed *e)
{
    each(e, to_left);
}
static void right(ed *e)
{
    each(e, ed_to_right);
}
static void up(ed *e)
{
    by_rows(e, -1);
}
static void down(ed *e)
{
    by_rows(e, 1);
}
static void word_left(ed *e)
{
    each(e, ed_to_word_left);
}
static void word_right(ed *e)
{
    each(e, ed_to_word_right);
}
static void home(ed *e)
{
    each(e, to_home);
}
static void go_to_end(ed *e)
{
    each(e, to_end);
}
static void page_up(ed *e)
{
    by_rows(e, -(e->window->n_rows > 3 ? e->window->n_rows - 3 : 1));
}
static void page_down(ed *e)
{
    by_rows(e, e->window->n_rows > 3 ? e->window->n_rows - 3 : 1);
}
static void top(ed *e)
{
    each(e, to_top);
}
static void bottom(ed *e)
{
    each(e, to_bottom);
}
static void bracket(ed *e)
{
    each(e, to_bracket);
}

static void select_all(ed *e)
{
    ed_only_main(e);
    *ed_cursor(e) = (struct ed_cursor){whit_text_size(ed_text(e)), 0, -1};
}

static void jump_back(ed *e)
{
    if (!e->n_jumps) {
        ed_complain(e, "there is no earlier place to go back to");
        return;
    }
    struct ed_jump jump = e->jumps[--e->n_jumps];
    ed_show(e, jump.doc);
    ed_only_main(e);
    ed_move_to(e, ed_cursor(e), jump.offset);
}

static void go_to_line(ed *e)
{
    ed_prompt_open(e, ED_PROMPT_LINE, "Line: ", "");
}

/* ---- more cursors -------------------------------------------------------------------------- */

static void add_cursor(ed *e, int rows)
{
    whit_layout *layout = ed_layout(e);
    struct ed_cursor *cursor = ed_cursor(e);
    uint64_t row = whit_layout_row(layout, cursor->offset);
    int goal = cursor->goal >= 0 ? cursor->goal : whit_layout_column(layout, row, cursor->offset);
    row = rows < 0 ? whit_layout_previous_row(layout, row) : whit_layout_next_row(layout, row);
    if (row == UINT64_MAX) return;
    cursor->goal = goal;
    if (ed_add_cursor(e, whit_layout_at_column(layout, row, goal), ED_NONE)) ed_cursor(e)->goal = goal;
}
static void cursor_up(ed *e)
{
    add_cursor(e, -1);
}
static void cursor_down(ed *e)
{
    add_cursor(e, 1);
}

/* Selects the word at the cursor. If text is selected already, adds a cursor at its next occurrence. */
static void cursor_next(ed *e)
{
    struct ed_cursor *cursor = ed_cursor(e);
    whit_range range = ed_selection(cursor), match;
    if (range.begin == range.end) {
        uint64_t from = cursor->offset, to = from;
        while (from && ed_is_word(whit_layout_byte(ed_layout(e), from - 1))) from--;
        while (ed_is_word(whit_layout_byte(ed_layout(e), to))) to++;
        if (from == to)
            ed_complain(e, "there is no word at the cursor");
        else
            *cursor = (struct ed_cursor){to, from, -1};
        return;
    }
    char word[256], why[200];
    size_t n = (size_t)(range.end - range.begin);
    if (n >= sizeof word) {
        ed_complain(e, "the selection is longer than 255 bytes, the limit of this command");
        return;
    }
    word[whit_text_read(ed_text(e), range.begin, word, n)] = 0;
    if (!ed_search_set(e, word, false, why, sizeof why)) return;
    bool found = ed_search_forward(e, ed_text(e), range.end, ED_NONE, &match) ||
        ed_search_forward(e, ed_text(e), 0, range.begin, &match);
    if (!found || !ed_add_cursor(e, match.end, match.begin))
        ed_complain(e, "the text has no other '%s', or it has 1,024 cursors, the limit", word);
}

/* ---- files, windows, views ----------------------------------------------------------------- */

static void save(ed *e)
{
    ed_save(e, e->window->doc, false);
}
static void save_as(ed *e)
{
    const char *path = e->window->doc->buffer->path;
    ed_prompt_open(e, ED_PROMPT_SAVE_AS, "Save as: ", path ? e->window->doc->buffer->name : "");
}
static void save_all(ed *e)
{
    ed_save_all(e);
}
static void open_file(ed *e)
{
    ed_prompt_open(e, ED_PROMPT_OPEN, "Open: ", "");
}
static void files(ed *e)
{
    ed_prompt_open(e, ED_PROMPT_FILES, "File: ", "");
}
static void buffers(ed *e)
{
    ed_prompt_open(e, ED_PROMPT_BUFFERS, "Buffer: ", "");
}
static void palette(ed *e)
{
    ed_prompt_open(e, ED_PROMPT_PALETTE, "Command: ", "");
}
static void help(ed *e)
{
    ed_prompt_open(e, ED_PROMPT_HELP, "Help: ", "");
}
static void quit(ed *e)
{
    ed_quit_next(e);
}
static void close_buffer(ed *e)
{
    struct ed_doc *doc = e->window->doc;
    if (!ed_ask_to_save(e, doc, ED_PROMPT_CLOSE)) ed_close_doc(e, doc);
}
static void next_buffer(ed *e)
{
    ed_show(e, e->window->doc->next ? e->window->doc->next : e->docs);
}
static void previous_buffer(ed *e)
{
    struct ed_doc *doc = e->docs, *wanted = e->window->doc == e->docs ? NULL : e->window->doc;
    while (doc->next != wanted) doc = doc->next;
    ed_show(e, doc);
}
static void split_below(ed *e)
{
    ed_window_split(e, false);
}
static void split_beside(ed *e)
{
    ed_window_split(e, true);
}
static void next_window(ed *e)
{
    e->window = ed_window_next(e, e->window);
    ed_check_journal(e);
}
static void close_window(ed *e)
{
    ed_window_close(e);
}
static void toggle_wrap(ed *e)
{
    e->window->wrap = !e->window->wrap;
    e->window->left = 0;
    ed_say(e, e->window->wrap ? "lines are wrapped" : "lines are not wrapped");
}
static void info(ed *e)
{
    const whit_buffer *buffer = e->window->doc->buffer;
    const uint64_t size = whit_text_size(buffer->text), last = size ? whit_text_line_at(buffer->text, size - 1) : 0;
    char lines[40] = "", state[24] = "";
    if (last != UINT64_MAX) snprintf(lines, sizeof lines, ", %llu lines", (unsigned long long)(size ? last + 1 : 0));
    if (buffer->read_only)
        snprintf(state, sizeof state, ", read-only");
    else if (whit_buffer_is_new(buffer))
        snprintf(state, sizeof state, ", not on disk yet");
    else if (whit_buffer_is_modified(buffer))
        snprintf(state, sizeof state, ", not saved");
    ed_say(e, "%s%s, %llu bytes%s", buffer->path ? buffer->path : buffer->name, lines, (unsigned long long)size, state);
}
static void numbers(ed *e)
{
    e->settings.numbers = !e->settings.numbers;
}
static void toggle_vi(ed *e)
{
    if (e->vi.on) ed_vi_hold(e, false);
    e->vi.on = !e->vi.on;
    e->vi.mode = ED_VI_NORMAL;
    ed_say(e, e->vi.on ? "the keys are vi's now" : "the keys are the usual ones now");
}

/* Folds the following lines that are indented deeper than the cursor's line, or unfolds them. */
static void fold(ed *e)
{
    whit_layout *layout = ed_layout(e);
    uint64_t begin = whit_layout_line_begin(layout, ed_cursor(e)->offset), at = begin, last = 0;
    uint64_t line_end = whit_layout_line_end(layout, begin);
    if (whit_layout_unfold(layout, line_end)) return;
    int own_column = whit_layout_column(layout, begin, ed_skip_blanks(e, begin));
    for (int n = 0; n < 100000; n++) {
        at = whit_text_line_end(ed_text(e), at);
        if (at >= whit_text_size(ed_text(e))) break;
        uint64_t first = ed_skip_blanks(e, ++at);
        int byte = whit_layout_byte(layout, first);
        if (byte == '\n' || byte == '\r') continue;
        if (byte < 0 || whit_layout_column(layout, at, first) <= own_column) break;
        last = whit_layout_line_end(layout, at);
    }
    if (!last) {
        ed_complain(e, "the line below is not indented deeper than this one");
        return;
    }
    if (!whit_layout_fold(layout, (whit_range){line_end, last}))
        ed_complain(e, "the text has 64 folds, the limit: open one first");
    ed_only_main(e);
    *ed_cursor(e) = (struct ed_cursor){begin, ED_NONE, -1};
}

/* ---- searching, macros --------------------------------------------------------------------- */

static void open_find(ed *e)
{
    char word[256] = "";
    whit_range range = ed_selection(ed_cursor(e));
    if (range.end > range.begin && range.end - range.begin < sizeof word) {
        word[whit_text_read(ed_text(e), range.begin, word, (size_t)(range.end - range.begin))] = 0;
        if (strchr(word, '\n')) word[0] = 0;
    }
    ed_prompt_open(e, ED_PROMPT_FIND, "Find: ", word);
}
static void find_next(ed *e)
{
    ed_search_next(e, false, ed_selection(ed_cursor(e)).end);
}
static void find_previous(ed *e)
{
    ed_search_next(e, true, ed_selection(ed_cursor(e)).begin);
}
static void open_replace(ed *e)
{
    ed_prompt_open(e, ED_PROMPT_REPLACE, "Replace: ", e->find.pattern);
}
static void replace_in_files(ed *e)
{
    ed_prompt_open(e, ED_PROMPT_REPLACE_PROJECT, "Replace in all files: ", e->find.pattern);
}
static void project(ed *e)
{
    ed_prompt_open(e, ED_PROMPT_PROJECT, "Find in all files: ", "");
}

static void run_shell(ed *e)
{
    ed_prompt_open(e, ED_PROMPT_SHELL, "Run: ", "");
}
static void run_make(ed *e)
{
    ed_make(e, "");
}

static void record_macro(ed *e)
{
    if (e->macro.playing) return;
    e->macro.recording = !e->macro.recording;
    if (e->macro.recording)
        e->macro.n = 0;
    else if (e->macro.n)
        e->macro.n--; /* drop the key that ended the recording */
    ed_say(e, e->macro.recording ? "recording a macro; the same key ends it" : "recorded %zu keys", e->macro.n);
}
static void play_macro(ed *e)
{
    if (e->macro.recording || e->macro.playing || !e->macro.n) {
        ed_complain(
            e, e->macro.n ? "a macro cannot play itself" : "no macro was recorded yet: record-macro (M-q) begins one");
        return;
    }
    e->macro.playing = true;
    for (size_t i = 0; i < e->macro.n && !e->done; i++) whit_editor_key(e, e->macro.keys[i], NULL, 0);
    e->macro.playing = false;
}

/* clang-format off */
const struct ed_command ed_commands[] = {
    {"save", "C-s", "Save the buffer.", save, 0},
    {"save-as", "M-s", "Save the buffer under another name.", save_as, 0},
    {"save-all", "M-S", "Save all buffers.", save_all, 0},
    {"open", "C-o", "Open a file by its name.", open_file, 0},
    {"files", "C-p", "Find a file of the project; .gitignore is respected.", files, 0},
    {"tree", "M-T", "Show the project's files as a tree, or close it.", ed_files_toggle, 0},
    {"buffers", "M-b", "Choose one of the open buffers.", buffers, 0},
    {"close", "C-w", "Close the buffer; asks when it is not saved.", close_buffer, 0},
    {"quit", "C-q", "Quit; asks for every buffer that is not saved.", quit, 0},
    {"next-buffer", "C-PageDown M-.", "Show the next buffer.", next_buffer, 0},
    {"previous-buffer", "C-PageUp M-,", "Show the previous buffer.", previous_buffer, 0},
    {"palette", "F2 M-x", "Run a command by its name.", palette, 0},
    {"help", "F1", "Show all commands and their keys.", help, 0},

    {"undo", "C-z", "Take the last step back.", ed_do_undo, 0},
    {"redo", "C-y", "Do the step again that was taken back.", ed_do_redo, 0},
    {"undo-branch", "M-z", "Let redo go along another branch of what was typed.", ed_do_branch, 0},
    {"cut", "C-x", "Cut the selection, or the line where nothing is selected.", ed_do_cut, ED_EDITS},
    {"copy", "C-c", "Copy the selection or the line, to the terminal's clipboard, too.", ed_do_copy, 0},
    {"paste", "C-v", "Paste what was copied.", ed_do_paste, ED_EDITS},
    {"select-all", "C-a", "Select everything.", select_all, ED_JUMPS},

    {"find", "C-f", "Find as you type; M-r in the prompt switches regular expressions.", open_find, ED_JUMPS},
    {"find-next", "F3 C-g", "Go to the next match.", find_next, ED_ONE},
    {"find-previous", "S-F3 M-g", "Go to the previous match.", find_previous, ED_ONE},
    {"replace", "C-r", "Replace, asking at each match.", open_replace, ED_JUMPS},
    {"find-in-files", "M-f", "Find in all files of the project.", project, ED_JUMPS},
    {"replace-in-files", "M-R", "Replace in all files, asking at each match.", replace_in_files, ED_JUMPS},
    {"results", "M-l", "Show the last list of places again.", ed_results_list, 0},
    {"next-result", "F4", "Go to the next place of the last list.", ed_results_next, 0},
    {"previous-result", "S-F4", "Go to the previous place of the last list.", ed_results_previous, 0},
    {"make", "F5", "Run make, or what the settings name; its places become the list.", run_make, 0},
    {"run", "M-!", "Run a command of the shell and show what it prints.", run_shell, 0},
    {"go-to-line", "C-l", "Go to a line.", go_to_line, ED_JUMPS},
    {"symbols", "M-t", "Go to a symbol of the project.", ed_symbols_open, ED_JUMPS},
    {"definition", "F12", "Go to the definition of the word.", ed_definition, 0},
    {"references", "S-F12 M-r", "List the references to the word.", ed_references, 0},
    {"complete", "C-Space", "Complete the word, as the language server says.", ed_complete, ED_ONE},
    {"hover", "M-h", "Show what the language server knows of the word.", ed_hover, ED_ONE},
    {"rename", "S-F2", "Rename the word everywhere, by the language server.", ed_rename, ED_ONE},
    {"code-actions", "M-a", "Choose from what the language server offers to change here.", ed_code_actions, ED_ONE},
    {"format", "M-F", "Format: by the language server, or clang-format, gofmt, rustfmt, black, zig fmt.", ed_format, 0},
    {"signature", "M-i", "Show the parameters of the call at the cursor.", ed_signature, ED_ONE},
    {"next-diagnostic", "F8", "Go to the language server's next complaint.", ed_diagnostic_next, ED_JUMPS | ED_ONE},
    {"previous-diagnostic", "S-F8", "Go to the previous complaint.", ed_diagnostic_previous, ED_JUMPS | ED_ONE},
    {"next-change", "F7", "Go to the next change since the last commit.", ed_git_next, ED_JUMPS | ED_ONE},
    {"previous-change", "S-F7", "Go to the previous change since the last commit.", ed_git_previous, ED_JUMPS | ED_ONE},
    {"bracket", "C-]", "Go to the bracket that matches.", bracket, ED_MOVES},
    {"jump-back", "M-Left", "Go back to before the last jump.", jump_back, 0},

    {"agent", "F9", "Give the agent a task, or answer what it asks.", ed_agent, 0},
    {"agent-stop", "S-F9", "Stop what the agent is doing.", ed_agent_stop, 0},
    {"agent-undo", "F10", "Take the agent's latest turn back.", ed_agent_undo, 0},
    {"agent-redo", "S-F10", "Make the turn again that was taken back.", ed_agent_redo, 0},
    {"explain", "F6", "Let the model explain the selection, or the line.", ed_explain, 0},
    {"rewrite", "S-F6", "Let the model rewrite the selection or line; the difference is shown first.", ed_rewrite, 0},

    {"left", "Left", "Move left.", left, ED_MOVES},
    {"right", "Right", "Move right.", right, ED_MOVES},
    {"up", "Up", "Move up.", up, ED_MOVES},
    {"down", "Down", "Move down.", down, ED_MOVES},
    {"word-left", "C-Left", "Move left by a word.", word_left, ED_MOVES},
    {"word-right", "C-Right", "Move right by a word.", word_right, ED_MOVES},
    {"home", "Home", "Move to the first character of the line, then to its beginning.", home, ED_MOVES},
    {"end", "End", "Move to the end of the line.", go_to_end, ED_MOVES},
    {"page-up", "PageUp", "Move up by a page.", page_up, ED_MOVES},
    {"page-down", "PageDown", "Move down by a page.", page_down, ED_MOVES},
    {"top", "C-Home", "Move to the beginning of the text.", top, ED_MOVES},
    {"bottom", "C-End", "Move to the end of the text.", bottom, ED_MOVES},

    {"new-line", "Enter", "Begin a new line, indented as this one.", ed_do_new_line, ED_EDITS},
    {"backspace", "Backspace", "Delete the character before the cursor, or the selection.", ed_do_backspace, ED_EDITS},
    {"delete", "Delete", "Delete the character at the cursor, or the selection.", ed_do_delete, ED_EDITS},
    {"delete-word-left", "M-Backspace C-Backspace", "Delete to the word start.", ed_do_delete_word_left, ED_EDITS},
    {"delete-word-right", "C-Delete M-d", "Delete to the next word.", ed_do_delete_word_right, ED_EDITS},
    {"delete-line", "C-k", "Delete the line.", ed_do_delete_line, ED_EDITS | ED_ONE},
    {"duplicate-line", "C-u", "Copy the line or the selected lines below.", ed_do_duplicate_line, ED_EDITS | ED_ONE},
    {"line-up", "M-Up", "Move the lines up.", ed_do_line_up, ED_EDITS | ED_ONE},
    {"line-down", "M-Down", "Move the lines down.", ed_do_line_down, ED_EDITS | ED_ONE},
    {"tab", "Tab", "Indent to the next stop; several lines by a level.", ed_do_tab, ED_EDITS},
    {"indent", "M-]", "Indent the lines by a level.", ed_do_indent, ED_EDITS},
    {"outdent", "S-Tab M-[", "Take a level off the lines' indentation.", ed_do_outdent, ED_EDITS},
    {"toggle-comment", "C-_ M-/", "Make lines comments, or comments text.", ed_do_toggle_comment, ED_EDITS},

    {"reflow", "M-j", "Break the paragraph or the selected lines at a width.", ed_do_reflow, ED_EDITS | ED_ONE},
    {"reindent", "M-=", "Indent the line or the selected lines by their brackets.", ed_do_reindent, ED_EDITS | ED_ONE},

    {"cursor-next", "C-d", "Select the word; then add a cursor at the next one like it.", cursor_next, 0},
    {"cursor-up", "C-Up", "Add a cursor in the row above.", cursor_up, 0},
    {"cursor-down", "C-Down", "Add a cursor in the row below.", cursor_down, 0},
    {"fold", "M-o", "Hide the deeper lines below, or show them again.", fold, 0},
    {"record-macro", "M-q", "Record keys; the same key ends it.", record_macro, 0},
    {"play-macro", "M-e", "Play the recorded keys.", play_macro, 0},

    {"split-below", "M--", "Split the window into two, one above the other.", split_below, 0},
    {"split-beside", "M-|", "Split the window into two, side by side.", split_beside, 0},
    {"next-window", "M-w", "Go to the next window.", next_window, 0},
    {"close-window", "M-c", "Close the window; its buffer stays open.", close_window, 0},
    {"only-window", "", "Close all other windows.", ed_window_only, 0},
    {"info", "S-F1", "Show the whole path of the file, its lines and its size.", info, 0},
    {"wrap", "M-\\", "Wrap long lines, or not.", toggle_wrap, 0},
    {"numbers", "M-n", "Show line numbers, or not.", numbers, 0},
    {"vi", "M-v", "Switch between vi's keys and the usual ones.", toggle_vi, 0},
};
/* clang-format on */
const size_t ed_n_commands = sizeof ed_commands / sizeof *ed_commands;

bool whit_editor_command(size_t i, const char **name, const char **keys, const char **help_text)
{
    if (i >= ed_n_commands) return false;
    *name = ed_commands[i].name;
    *keys = ed_commands[i].keys;
    *help_text = ed_commands[i].help;
    return true;
}
