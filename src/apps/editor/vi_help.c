/* SPDX-License-Identifier: MIT
 * vi's keys for the help inside; docs/use/editor.md has the same. */
#include "editor/state.h"

#include <stddef.h>

static const char *const help[][2] = {
    {"h j k l, arrows", "a character, a line; 3j three lines: a number goes before any of these"},
    {"w b e ge W B E gE", "words; large: up to blanks"},
    {"0 ^ $ g_ |", "in the line: its ends, its first and last sign, a column"},
    {"f t F T ; ,", "to a character of the line, up to it; again, and back"},
    {"gg G 12G 50% H M L", "lines, a part of the text, the window's rows"},
    {"( ) { } %", "sentences, paragraphs, the bracket that matches"},
    {"/ ? n N * # g* g#", "search, again, the word here"},
    {"ma `a 'a `` `. `[ `]", "marks; where the last jump began, the last change"},
    {"C-d C-u C-f C-b C-e C-y", "half a window, a window, a row"},
    {"zt zz zb za", "the row to the top, middle, bottom; fold"},
    {"d c y > < = gq g~ gu gU gc",
     "delete, change, copy, indent, break lines, letters, comment: with a motion or object; doubled: lines"},
    {"iw aw iW is ip", "objects: word, sentence, paragraph; a: with the blanks"},
    {"i( a[ iB i< it i\" a'", "objects: what brackets, tags and quotes enclose; a: with them"},
    {"x X D C s S Y r R ~ J gJ", "characters and lines"},
    {"p P gp gP", "put behind, before"},
    {"\"a to \"z \"0 \"1 \"_ \"+", "a register for what follows; large: append"},
    {"i a I A o O gi gI", "insert; Esc ends it; in it C-w C-u C-h C-t C-d C-r C-v C-o C-n"},
    {"u C-r . &", "undo, redo, the last change again, the last :s again"},
    {"v V C-v o gv", "select characters, lines, a block; the other end; again"},
    {"qa q @a @@", "record keys, play them"},
    {"C-a C-x", "add to the number here, subtract"},
    {"C-w s v w c o", "windows: split, next, close, only this one"},
    {"gt gT C-^ gd gr K C-] C-o", "buffers, definition, references, hover, back"},
    {":w :q :wq :x :e :bn :sp", "files; :q! ZZ ZQ :wa :qa :e! :bd :vs :on :set"},
    {":!sort :r :make :cn :reg", "the shell: 1,5!sort filters; :r !date, :w !wc; :grep, :cp :cc :copen"},
    {":%s/a/b/gc :g/a/d :v", "lines: 1,5 . $ % 'a /x/ +1 before d y m t j > < s g norm pu k"},
};

bool ed_vi_help(size_t i, const char **keys, const char **what)
{
    if (i >= sizeof help / sizeof *help) return false;
    *keys = help[i][0];
    *what = help[i][1];
    return true;
}
