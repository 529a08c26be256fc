/* SPDX-License-Identifier: MIT
 * Finds colours by tree-sitter, if the library and a grammar of the language are installed. A syntax tree follows the
 * text edit by edit, and is parsed in slices while no key waits. This header is private to its folder. */
#ifndef WHIT_EDITOR_TREE_H
#define WHIT_EDITOR_TREE_H

#include "editor/text.h"

struct ed_doc;
struct whit_editor;
typedef struct ed_tree ed_tree;

/* Opens the document's tree or parses its text for one time slice. Returns true if it must be called again, and when
 * the tree of the shown text is complete. *redraw becomes true if the colours have changed or a message was shown. */
bool ed_tree_update(struct whit_editor *e, struct ed_doc *doc, bool *redraw);
/* Updates the tree's positions. Must be called after every change of the text. */
void ed_tree_changed(struct ed_doc *doc, uint64_t offset, uint64_t n_removed, uint64_t n_inserted);
/* Returns whether the document has a syntax tree, which gives its colours. */
bool ed_tree_is_there(const struct ed_doc *doc);
/* Computes the coloured spans in [begin, end) for ed_tree_styles(). The document must have a syntax tree
 * (ed_tree_is_there). */
void ed_tree_prepare(struct ed_doc *doc, uint64_t begin, uint64_t end);
/* Writes the styles of n bytes that begin at `offset`; they must be in the range given to ed_tree_prepare(). */
void ed_tree_styles(const struct ed_doc *doc, uint64_t offset, size_t n, uint8_t *styles);
void ed_tree_close(struct ed_doc *doc);

#endif
