/* SPDX-License-Identifier: MIT
 * Holds the table of vi's keys. Of several rows with the same mode, prefix and key the first counts. docs/use/editor.md
 * lists the keys by topic. */
#include "editor/state.h"
#include "editor/vi_action.h"
#include "editor/vi_table.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define N         ED_VI_IN_NORMAL
#define V         ED_VI_IN_VISUAL
#define NV        (N | V)
#define NVO       (N | V | ED_VI_IN_OPERATOR)
#define VO        (V | ED_VI_IN_OPERATOR)
#define I         ED_VI_IN_INSERT
#define G(k)      (ED_VI_G | (k))
#define C(k)      (ED_VI_CTRL | (k))
#define KEY(name) WHIT_KEY_##name

/* Macros for rows, whose parameters are: m modes, p prefix, k key, f flags, h `how`, fn function, arg argument's name,
 * text help. */
#define MOVE(p, k, f, h, fn, text)                                                                                     \
    {                                                                                                                  \
        p, k, NVO, f, ED_VI_MOTION, h, NULL, {.motion = fn}, NULL, text                                                \
    }
#define MOVE_TO(p, k, f, h, fn, arg, text)                                                                             \
    {                                                                                                                  \
        p, k, NVO, f, ED_VI_MOTION, h, arg, {.motion = fn}, NULL, text                                                 \
    }
#define OPERATE(m, p, k, h, text)                                                                                      \
    {                                                                                                                  \
        p, k, m, 0, ED_VI_OPERATOR, h, NULL, {NULL}, NULL, text                                                        \
    }
#define OBJECT(k, h, fn, text)                                                                                         \
    {                                                                                                                  \
        'i', k, VO, 0, ED_VI_OBJECT, h, NULL, {.object = fn}, NULL, text                                               \
    }
#define PREFIX(m, k)                                                                                                   \
    {                                                                                                                  \
        0, k, m, 0, ED_VI_PREFIX, 0, NULL, {NULL}, NULL, NULL                                                          \
    }
#define ACT(m, p, k, f, h, fn, text)                                                                                   \
    {                                                                                                                  \
        p, k, m, f, ED_VI_ACTION, h, NULL, {.action = fn}, NULL, text                                                  \
    }
#define ACT_ON(m, p, k, f, h, fn, arg, text)                                                                           \
    {                                                                                                                  \
        p, k, m, f, ED_VI_ACTION, h, arg, {.action = fn}, NULL, text                                                   \
    }
#define COMMAND(m, p, k, name, text)                                                                                   \
    {                                                                                                                  \
        p, k, m, 0, ED_VI_COMMAND, 0, NULL, {NULL}, name, text                                                         \
    }
#define LINE(m, p, k, line, text)                                                                                      \
    {                                                                                                                  \
        p, k, m, 0, ED_VI_LINE, 0, NULL, {NULL}, line, text                                                            \
    }
#define NOTHING(m, k)                                                                                                  \
    {                                                                                                                  \
        0, k, m, 0, ED_VI_NOTHING, 0, NULL, {NULL}, NULL, NULL                                                         \
    }
#define NOTE(keys, text)                                                                                               \
    {                                                                                                                  \
        0, 0, 0, 0, ED_VI_NOTE, 0, NULL, {NULL}, keys, text                                                            \
    }

/* clang-format off */
static const struct ed_vi_row rows[] = {
    {0, '1', NVO, 0, ED_VI_DIGIT, 0, NULL, {NULL}, NULL, "a count before a key: 3j three lines, 2dw two words"},
    PREFIX(NVO, 'g'), PREFIX(VO, 'i'), PREFIX(VO, 'a'), PREFIX(NV, 'z'), PREFIX(NV, 'Z'), PREFIX(NV, C('w')),

    /* motions */
    MOVE(0, 'h',            0, 0, ed_vi_to_left, "a character to the left"),
    MOVE(0, KEY(LEFT),      0, 0, ed_vi_to_left, NULL),
    MOVE(0, C('h'),         0, 0, ed_vi_to_left, NULL),
    MOVE(0, 'l',            0, 0, ed_vi_to_right, "a character to the right"),
    MOVE(0, KEY(RIGHT),     0, 0, ed_vi_to_right, NULL),
    MOVE(0, ' ',            ED_VI_FIXED, ' ', ed_vi_by_chars, "a character, across the ends of lines"),
    MOVE(0, KEY(BACKSPACE), ED_VI_FIXED, KEY(BACKSPACE), ed_vi_by_chars, NULL),
    MOVE(0, 'j',            ED_VI_LINES | ED_VI_KEEPS_COLUMN, 'j', ed_vi_by_lines, "a line down"),
    MOVE(0, KEY(DOWN),      ED_VI_LINES | ED_VI_KEEPS_COLUMN, 'j', ed_vi_by_lines, NULL),
    MOVE(0, C('n'),         ED_VI_LINES | ED_VI_KEEPS_COLUMN, 'j', ed_vi_by_lines, NULL),
    MOVE(0, C('j'),         ED_VI_LINES | ED_VI_KEEPS_COLUMN, 'j', ed_vi_by_lines, NULL),
    MOVE(0, 'k',            ED_VI_LINES | ED_VI_KEEPS_COLUMN, 'k', ed_vi_by_lines, "a line up"),
    MOVE(0, KEY(UP),        ED_VI_LINES | ED_VI_KEEPS_COLUMN, 'k', ed_vi_by_lines, NULL),
    MOVE(0, C('p'),         ED_VI_LINES | ED_VI_KEEPS_COLUMN, 'k', ed_vi_by_lines, NULL),
    MOVE('g', 'j',          0, 'j', ed_vi_by_rows, "a row of a wrapped line down, up"),
    MOVE('g', KEY(DOWN),    0, 'j', ed_vi_by_rows, NULL),
    MOVE('g', 'k',          0, 'k', ed_vi_by_rows, NULL),
    MOVE('g', KEY(UP),      0, 'k', ed_vi_by_rows, NULL),
    MOVE(0, 'w',            0, 'w', ed_vi_by_words, "the next word; W: words end at blanks only"),
    MOVE(0, 'W',            0, 'W', ed_vi_by_words, NULL),
    MOVE(0, 'b',            0, 'b', ed_vi_back_by_words, "back to where a word begins"),
    MOVE(0, 'B',            0, 'B', ed_vi_back_by_words, NULL),
    MOVE(0, 'e',            ED_VI_INCLUSIVE, 'e', ed_vi_to_word_end, "the end of a word"),
    MOVE(0, 'E',            ED_VI_INCLUSIVE, 'E', ed_vi_to_word_end, NULL),
    MOVE('g', 'e',          ED_VI_INCLUSIVE, 'e', ed_vi_back_to_word_end, "back to the end of a word"),
    MOVE('g', 'E',          ED_VI_INCLUSIVE, 'E', ed_vi_back_to_word_end, NULL),
    MOVE(0, '0',            0, '0', ed_vi_to_line_begin, "the beginning of the line"),
    MOVE(0, KEY(HOME),      0, '0', ed_vi_to_line_begin, NULL),
    MOVE(0, '^',            0, '^', ed_vi_to_line_begin, "the first sign of the line"),
    MOVE(0, '$',            ED_VI_FIXED | ED_VI_TO_LINE_END, '$', ed_vi_to_line_end, "the end of the line"),
    MOVE(0, KEY(END),       ED_VI_FIXED | ED_VI_TO_LINE_END, '$', ed_vi_to_line_end, NULL),
    MOVE('g', '_',          ED_VI_INCLUSIVE, '_', ed_vi_to_line_end, "the last sign of the line"),
    MOVE(0, '|',            0, 0, ed_vi_to_column, "the column that the count names"),
    MOVE(0, '_',            ED_VI_LINES, '_', ed_vi_to_first_sign, "the first sign of this, the next, the last line"),
    MOVE(0, '+',            ED_VI_LINES, '+', ed_vi_to_first_sign, NULL),
    MOVE(0, KEY(ENTER),     ED_VI_LINES, '+', ed_vi_to_first_sign, NULL),
    MOVE(0, '-',            ED_VI_LINES, '-', ed_vi_to_first_sign, NULL),
    MOVE('g', 'g',          ED_VI_LINES | ED_VI_JUMPS, 'g', ed_vi_to_line, "the first line; 12gg: line 12"),
    MOVE(0, 'G',            ED_VI_LINES | ED_VI_JUMPS, 'G', ed_vi_to_line, "the last line; 12G: line 12"),
    MOVE(0, 'H',            ED_VI_LINES | ED_VI_JUMPS, 'H', ed_vi_to_window_row, "the window's top, middle, last row"),
    MOVE(0, 'M',            ED_VI_LINES | ED_VI_JUMPS, 'M', ed_vi_to_window_row, NULL),
    MOVE(0, 'L',            ED_VI_LINES | ED_VI_JUMPS, 'L', ed_vi_to_window_row, NULL),
    MOVE(0, '(',            ED_VI_JUMPS, '(', ed_vi_by_sentences, "the previous, the next sentence"),
    MOVE(0, ')',            ED_VI_JUMPS, ')', ed_vi_by_sentences, NULL),
    MOVE(0, '{',            ED_VI_JUMPS, '{', ed_vi_by_paragraphs, "the previous, the next paragraph"),
    MOVE(0, '}',            ED_VI_JUMPS, '}', ed_vi_by_paragraphs, NULL),
    MOVE(0, '%',            ED_VI_JUMPS, 0, ed_vi_to_match, "the bracket that matches; 50%: half of the text"),
    MOVE_TO(0, 'f', ED_VI_INCLUSIVE, 'f', ed_vi_to_char, "{char}", "onto the next such character of the line; F: back"),
    MOVE_TO(0, 'F', 0, 'F', ed_vi_to_char, "{char}", NULL),
    MOVE_TO(0, 't', ED_VI_INCLUSIVE, 't', ed_vi_to_char, "{char}", "up to the next such character; T: back"),
    MOVE_TO(0, 'T', 0, 'T', ed_vi_to_char, "{char}", NULL),
    MOVE(0, ';',            0, ';', ed_vi_to_char_again, "the last f, F, t or T again; , turns back"),
    MOVE(0, ',',            0, ',', ed_vi_to_char_again, NULL),
    ACT(NVO, 0, '/',        ED_VI_UNFINISHED, '/', ed_vi_open_search, "search for a regular expression; ? back"),
    ACT(NVO, 0, '?',        ED_VI_UNFINISHED, '?', ed_vi_open_search, NULL),
    MOVE(0, 'n',            ED_VI_JUMPS, 'n', ed_vi_search_again, "the next match; N: the previous one"),
    MOVE(0, 'N',            ED_VI_JUMPS, 'N', ed_vi_search_again, NULL),
    MOVE(0, '*',            ED_VI_JUMPS, '*', ed_vi_search_word, "search for the word here; # back"),
    MOVE(0, '#',            ED_VI_JUMPS, '#', ed_vi_search_word, NULL),
    MOVE('g', '*',          ED_VI_JUMPS, G('*'), ed_vi_search_word, "the same as a part of other words"),
    MOVE('g', '#',          ED_VI_JUMPS, G('#'), ed_vi_search_word, NULL),
    MOVE_TO(0, '`', ED_VI_JUMPS, '`', ed_vi_to_mark, "{mark}", "a mark; `` before the last jump, `. the change"),
    MOVE_TO(0, '\'', ED_VI_JUMPS | ED_VI_LINES, '\'', ed_vi_to_mark, "{mark}", "the line of a mark"),
    ACT_ON(NV, 0, 'm',      0, 0, ed_vi_set_mark, "{a-z}", "set a mark"),

    /* operators */
    OPERATE(NVO, 0, 'd', 'd', "operator: delete up to a motion or an object; dd: lines"),
    OPERATE(NVO, 0, 'c', 'c', "operator: change; cc: lines"),
    OPERATE(NVO, 0, 'y', 'y', "operator: copy; yy: lines"),
    OPERATE(NVO, 0, '<', '<', "operator: indent less, more; << >>: lines"),
    OPERATE(NVO, 0, '>', '>', NULL),
    OPERATE(NVO, 0, '=', '=', "operator: indent by brackets; ==: lines"),
    OPERATE(NVO, 'g', 'q', G('q'), "operator: break lines anew"),
    OPERATE(NVO, 'g', '~', G('~'), "operator: turn the case of letters, lower, upper"),
    OPERATE(NVO, 'g', 'u', G('u'), NULL),
    OPERATE(NVO, 'g', 'U', G('U'), NULL),
    OPERATE(NVO, 'g', 'c', G('c'), "operator: make comments or undo them"),

    /* text objects; they follow i or, including blanks or signs around them, a */
    OBJECT('w', 'w', ed_vi_words, "object: a word; iW: up to blanks; aw: with its blanks"),
    OBJECT('W', 'W', ed_vi_words, NULL),
    OBJECT('s', 0, ed_vi_sentences, "object: a sentence"),
    OBJECT('p', 0, ed_vi_paragraphs, "object: a paragraph"),
    OBJECT('"', '"', ed_vi_quotes, "object: text between quotes; a\": with them"),
    OBJECT('\'', '\'', ed_vi_quotes, NULL),
    OBJECT('`', '`', ed_vi_quotes, NULL),
    OBJECT('(', '(', ed_vi_brackets, "object: text between brackets; a(: with them"),
    OBJECT(')', '(', ed_vi_brackets, NULL),
    OBJECT('b', '(', ed_vi_brackets, NULL),
    OBJECT('{', '{', ed_vi_brackets, NULL),
    OBJECT('}', '{', ed_vi_brackets, NULL),
    OBJECT('B', '{', ed_vi_brackets, NULL),
    OBJECT('[', '[', ed_vi_brackets, NULL),
    OBJECT(']', '[', ed_vi_brackets, NULL),
    OBJECT('<', '<', ed_vi_brackets, NULL),
    OBJECT('>', '<', ed_vi_brackets, NULL),
    OBJECT('t', 0, ed_vi_tags, "object: text between tags; at: with them"),

    /* changes in normal mode */
    ACT(N, 0, 'i',         0, 'i', ed_vi_insert_here, "insert before the cursor; Esc ends it"),
    ACT(N, 0, KEY(INSERT), 0, 'i', ed_vi_insert_here, NULL),
    ACT(N, 0, 'a',         0, 'a', ed_vi_insert_here, "insert after the cursor"),
    ACT(N, 0, 'I',         0, 'I', ed_vi_insert_here, "insert at the first sign of the line, at its beginning"),
    ACT(N, 'g', 'I',       0, G('I'), ed_vi_insert_here, NULL),
    ACT(N, 0, 'A',         0, 'A', ed_vi_insert_here, "insert at the end of the line"),
    ACT(N, 'g', 'i',       0, G('i'), ed_vi_insert_here, "insert where inserting ended last"),
    ACT(N, 0, 'o',         0, 'o', ed_vi_open_line, "a new line below, above"),
    ACT(N, 0, 'O',         0, 'O', ed_vi_open_line, NULL),
    ACT(N, 0, 'x',         0, 'x', ed_vi_delete_chars, "delete characters at, before the cursor"),
    ACT(N, 0, KEY(DELETE), 0, 'x', ed_vi_delete_chars, NULL),
    ACT(N, 0, 'X',         0, 'X', ed_vi_delete_chars, NULL),
    ACT(N, 0, 's',         0, 0, ed_vi_substitute_chars, "change characters, lines"),
    ACT(N, 0, 'S',         0, 'c', ed_vi_operate_lines, NULL),
    ACT(N, 0, 'Y',         0, 'y', ed_vi_operate_lines, "copy lines"),
    ACT(N, 0, 'D',         0, 'd', ed_vi_operate_to_end, "delete, change to the end of the line"),
    ACT(N, 0, 'C',         0, 'c', ed_vi_operate_to_end, NULL),
    ACT_ON(N, 0, 'r',      0, 0, ed_vi_replace_char, "{char}", "put another character in place of this one"),
    ACT(N, 0, 'R',         0, 0, ed_vi_replace_mode, "type over the text; Esc ends it"),
    ACT(N, 0, '~',         0, 0, ed_vi_toggle_case, "turn the case of letters"),
    ACT(N, 0, 'J',         0, 'J', ed_vi_join_lines, "join lines; gJ: without a blank"),
    ACT(N, 'g', 'J',       0, G('J'), ed_vi_join_lines, NULL),
    ACT(N, 0, 'p',         0, 'p', ed_vi_put_text, "put a register after, before the cursor; g: cursor after it"),
    ACT(N, 0, 'P',         0, 'P', ed_vi_put_text, NULL),
    ACT(N, 'g', 'p',       0, G('p'), ed_vi_put_text, NULL),
    ACT(N, 'g', 'P',       0, G('P'), ed_vi_put_text, NULL),
    ACT_ON(NV, 0, '"', ED_VI_UNFINISHED, 0, ed_vi_choose_register, "{register}", "for the next key; A: append"),
    ACT(NV, 0, C('a'),     0, 'a', ed_vi_change_number, "add to, subtract from the number here"),
    ACT(NV, 0, C('x'),     0, 'x', ed_vi_change_number, NULL),
    ACT(N, 0, 'u',         0, 'u', ed_vi_undo, "undo; C-r: redo"),
    ACT(NV, 0, C('r'),     0, 'r', ed_vi_undo, NULL),
    ACT(N, 0, '.',         0, 0, ed_vi_repeat, "the last change again"),
    LINE(N, 0, '&', "s", "the last :s again, in this line, in all"),
    LINE(NV, 'g', '&', "%s", NULL),
    ACT_ON(NV, 0, 'q',     0, 0, ed_vi_record_macro, "{a-z}", "record keys; q ends it"),
    ACT_ON(NV, 0, '@', ED_VI_UNFINISHED, 0, ed_vi_play_macro, "{a-z}", "play them; @@ again, @: the last line"),

    /* visual modes and their keys */
    ACT(NV, 0, 'v',        0, ED_VI_VISUAL, ed_vi_select, "select characters, lines, a block"),
    ACT(NV, 0, 'V',        0, ED_VI_VISUAL_LINES, ed_vi_select, NULL),
    ACT(NV, 0, C('v'),     0, ED_VI_VISUAL_BLOCK, ed_vi_select, NULL),
    ACT(NV, 'g', 'v',      0, 0, ed_vi_select_again, "select the same again"),
    ACT(V, 0, 'o',         0, 0, ed_vi_visual_turn, "selected: go to the other end"),
    ACT(V, 0, 'O',         0, 0, ed_vi_visual_turn, NULL),
    OPERATE(V, 0, 'x', 'd', "selected: delete; X D: its lines"),
    OPERATE(V, 0, KEY(DELETE), 'd', NULL),
    ACT(V, 0, 'X',         0, 'X', ed_vi_visual_lines, NULL),
    ACT(V, 0, 'D',         0, 'D', ed_vi_visual_lines, NULL),
    OPERATE(V, 0, 's', 'c', "selected: change; S R C: its lines"),
    ACT(V, 0, 'S',         0, 'S', ed_vi_visual_lines, NULL),
    ACT(V, 0, 'R',         0, 'R', ed_vi_visual_lines, NULL),
    ACT(V, 0, 'C',         0, 'C', ed_vi_visual_lines, NULL),
    ACT(V, 0, 'Y',         0, 'Y', ed_vi_visual_lines, "selected: copy its lines"),
    OPERATE(V, 0, '~', G('~'), "selected: turn the case, lower, upper"),
    OPERATE(V, 0, 'u', G('u'), NULL),
    OPERATE(V, 0, 'U', G('U'), NULL),
    ACT(V, 0, 'J',         0, 'J', ed_vi_visual_join, "selected: join lines; gJ: without a blank"),
    ACT(V, 'g', 'J',       0, G('J'), ed_vi_visual_join, NULL),
    ACT(V, 0, 'p',         0, 'p', ed_vi_visual_put, "selected: put a register in its place; P keeps the register"),
    ACT(V, 0, 'P',         0, 'P', ed_vi_visual_put, NULL),
    ACT(V, 'g', 'p',       0, 'p', ed_vi_visual_put, NULL),
    ACT(V, 'g', 'P',       0, 'P', ed_vi_visual_put, NULL),
    ACT(V, 0, 'I',         0, 'I', ed_vi_visual_insert, "selected: insert before, after; a block: in all lines"),
    ACT(V, 0, 'A',         0, 'A', ed_vi_visual_insert, NULL),
    ACT_ON(V, 0, 'r',      0, 0, ed_vi_visual_replace, "{char}", "selected: every character becomes this one"),

    /* view, windows, buffers, language server */
    ACT(NV, 0, C('d'),     0, 'd', ed_vi_scroll, "half a window down, up"),
    ACT(NV, 0, C('u'),     0, 'u', ed_vi_scroll, NULL),
    ACT(NV, 0, C('f'),     0, 'f', ed_vi_scroll, "a window down, up"),
    ACT(NV, 0, C('b'),     0, 'b', ed_vi_scroll, NULL),
    ACT(NV, 0, C('e'),     0, 'e', ed_vi_scroll, "a row down, up; the cursor stays"),
    ACT(NV, 0, C('y'),     0, 'y', ed_vi_scroll, NULL),
    ACT(NV, 'z', 't',      0, 't', ed_vi_show_row, "the cursor's row to the top, middle, bottom"),
    ACT(NV, 'z', KEY(ENTER), 0, 't', ed_vi_show_row, NULL),
    ACT(NV, 'z', 'z',      0, 'z', ed_vi_show_row, NULL),
    ACT(NV, 'z', '.',      0, 'z', ed_vi_show_row, NULL),
    ACT(NV, 'z', 'b',      0, 'b', ed_vi_show_row, NULL),
    ACT(NV, 'z', '-',      0, 'b', ed_vi_show_row, NULL),
    COMMAND(NV, 'z', 'a', "fold", "fold the lines that belong to this one, or unfold them"),
    COMMAND(NV, 'z', 'o', "fold", NULL),
    COMMAND(NV, 'z', 'c', "fold", NULL),
    ACT(NV, C('w'), 's',   0, 's', ed_vi_choose_window, "split the window: one below, one beside"),
    ACT(NV, C('w'), 'v',   0, 'v', ed_vi_choose_window, NULL),
    ACT(NV, C('w'), 'w',   0, 'w', ed_vi_choose_window, "the next window"),
    ACT(NV, C('w'), 'j',   0, 'w', ed_vi_choose_window, NULL),
    ACT(NV, C('w'), 'l',   0, 'w', ed_vi_choose_window, NULL),
    ACT(NV, C('w'), KEY(DOWN), 0, 'w', ed_vi_choose_window, NULL),
    ACT(NV, C('w'), KEY(RIGHT), 0, 'w', ed_vi_choose_window, NULL),
    ACT(NV, C('w'), 'W',   0, 'p', ed_vi_choose_window, "the previous window"),
    ACT(NV, C('w'), 'p',   0, 'p', ed_vi_choose_window, NULL),
    ACT(NV, C('w'), 'k',   0, 'p', ed_vi_choose_window, NULL),
    ACT(NV, C('w'), 'h',   0, 'p', ed_vi_choose_window, NULL),
    ACT(NV, C('w'), KEY(UP), 0, 'p', ed_vi_choose_window, NULL),
    ACT(NV, C('w'), KEY(LEFT), 0, 'p', ed_vi_choose_window, NULL),
    ACT(NV, C('w'), 'c',   0, 'c', ed_vi_choose_window, "close this window, all others"),
    ACT(NV, C('w'), 'q',   0, 'c', ed_vi_choose_window, NULL),
    ACT(NV, C('w'), 'o',   0, 'o', ed_vi_choose_window, NULL),
    ACT(NV, 'g', 't',      0, 't', ed_vi_show_buffer, "the next, the previous buffer"),
    ACT(NV, 'g', 'T',      0, 'T', ed_vi_show_buffer, NULL),
    ACT(NV, 0, C('^'),     0, 'T', ed_vi_show_buffer, NULL),
    ACT(NV, 0, C('6'),     0, 'T', ed_vi_show_buffer, NULL),
    COMMAND(NV, 0, C(']'), "definition", "go to the definition"),
    COMMAND(NV, 'g', 'd', "definition", NULL),
    COMMAND(NV, 'g', 'r', "references", "list the references"),
    COMMAND(NV, 0, C('o'), "jump-back", "back to before the last jump"),
    COMMAND(N, 0, 'K', "hover", "show what the language server says about the name here"),
    COMMAND(NV, 0, C('g'), "info", "the file's whole path, lines and size"),
    NOTHING(NV, C('l')),
    LINE(NV, 'Z', 'Z', "x", "save and close; ZQ: close without saving"),
    LINE(NV, 'Z', 'Q', "q!", NULL),
    ACT(NV, 0, ':',        ED_VI_UNFINISHED, 0, ed_vi_open_line_prompt, "a command; selected lines are its range"),

    /* insert mode */
    ACT(I, 0, C('w'),      0, 'w', ed_vi_typed_delete, "inserting: delete the word, the line before the cursor"),
    ACT(I, 0, C('u'),      0, 'u', ed_vi_typed_delete, NULL),
    COMMAND(I, 0, C('h'), "backspace", "inserting: delete a character, begin a line"),
    COMMAND(I, 0, C('j'), "new-line", NULL),
    COMMAND(I, 0, C('m'), "new-line", NULL),
    ACT(I, 0, C('t'),      0, 't', ed_vi_typed_indent, "inserting: indent more, less"),
    ACT(I, 0, C('d'),      0, 'd', ed_vi_typed_indent, NULL),
    ACT_ON(I, 0, C('r'),   0, 0, ed_vi_typed_register, "{register}", "inserting: a register"),
    {0, C('v'), I, 0, ED_VI_ACTION, 0, "{key}", {NULL}, NULL,
        "inserting: a key as it is, or a number: 65, x41, u20ac"},
    ACT(I, 0, C('o'),      0, 0, ed_vi_typed_once, "inserting: one command of normal mode"),
    COMMAND(I, 0, C('n'), "complete", "inserting: complete the name"),
    COMMAND(I, 0, C('p'), "complete", NULL),
    NOTHING(I, C('a')),
    NOTHING(I, C('x')),
    NOTHING(I, C('k')),
    NOTHING(I, C('b')),
    NOTHING(I, C('g')),

    NOTE(":w :q :wq :x :e :bn :sp", "files; :q! :wa :qa :e! :bd :vs :on :set"),
    NOTE(":!sort :r :make :cn :reg", "the shell: 1,5!sort filters; :r !date, :w !wc; :grep, :cp :cc :copen"),
    NOTE(":%s/a/b/gc :g/a/d :v", "lines: 1,5 . $ % 'a /x/ +1 before d y m t j > < s g norm pu k"),
};
/* clang-format on */

#define N_ROWS (sizeof rows / sizeof *rows)

const struct ed_vi_row *ed_vi_row_find(uint32_t prefix, uint32_t key, uint8_t mode)
{
    if (prefix == 'a') prefix = 'i'; /* i and a share the rows of text objects */
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].key == key && rows[i].prefix == prefix && (rows[i].modes & mode)) return &rows[i];
    return NULL;
}

void ed_vi_row_run(ed *e, const struct ed_vi_row *row, uint32_t given)
{
    if (row->effect == ED_VI_COMMAND)
        ed_vi_run(e, row->command);
    else if (row->effect == ED_VI_LINE)
        ed_vi_line(e, row->command);
    else
        row->run.action(e, (struct ed_vi_call){row->how, given});
}

static void append_text(char *text, size_t text_bytes, const char *more)
{
    size_t n = strlen(text);
    snprintf(text + n, text_bytes - n, "%s", more);
}

static void append_code(char *text, size_t text_bytes, uint32_t code)
{
    char name[24];
    whit_key key = {.code = code & ~(uint32_t)ED_VI_CTRL, .mods = code & ED_VI_CTRL ? WHIT_MOD_CTRL : 0};
    whit_key_name(key, name, sizeof name);
    append_text(text, text_bytes, code == ' ' ? "Space" : name);
}

static void append_keys(char *text, size_t text_bytes, const struct ed_vi_row *row)
{
    if (*text) append_text(text, text_bytes, " ");
    if (row->effect == ED_VI_NOTE) {
        append_text(text, text_bytes, row->command);
        return;
    }
    if (row->prefix) append_code(text, text_bytes, row->prefix);
    if (row->prefix & ED_VI_CTRL) append_text(text, text_bytes, " ");
    append_code(text, text_bytes, row->key);
    if (row->argument) append_text(text, text_bytes, row->argument);
    if (row->effect == ED_VI_DIGIT) append_text(text, text_bytes, " to 9");
}

static bool is_hidden(const struct ed_vi_row *row)
{
    return row->effect == ED_VI_PREFIX || row->effect == ED_VI_NOTHING;
}

bool ed_vi_help(size_t line, char *keys, size_t keys_bytes, const char **help)
{
    size_t i = 0;
    for (size_t n = 0; i < N_ROWS && (!rows[i].help || n++ != line); i++) {
    }
    if (i == N_ROWS) return false;
    *help = rows[i].help;
    *keys = 0;
    do {
        append_keys(keys, keys_bytes, &rows[i]);
    } while (++i < N_ROWS && !rows[i].help && !is_hidden(&rows[i]));
    return true;
}
