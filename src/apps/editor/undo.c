/* SPDX-License-Identifier: MIT */
#include "editor/undo.h"

#include <stdlib.h>

#include "editor/pages.h"

struct edit {
    uint64_t offset, n_removed, n_inserted;
    const uint8_t *inserted;
    size_t first_span; /* index in `spans` of the removed text's first span */
    uint32_t n_spans;
};
struct step {
    uint32_t parent, redo; /* redo: index of the child step to which redo leads; 0: none */
    size_t first_edit, n_edits;
};

struct room {
    size_t n_elems, ready_bytes;
};

struct whit_undo {
    whit_text *text;
    struct edit *edits;
    size_t n_edits;
    whit_span *spans;
    size_t n_spans;
    struct step *steps; /* steps[0] is the text as it was opened */
    uint32_t n_steps;
    struct room edits_room, spans_room, steps_room;
    uint32_t current;
    bool open; /* further edits join the current step */
    whit_undo_fn *watch;
    void *user;
};

static bool grow_array(void *array, struct room *room, size_t wanted, size_t elem_bytes)
{
    if (wanted > room->n_elems) {
        size_t next = room->n_elems ? room->n_elems * 2 : 64, bytes;
        while (next < wanted) next *= 2;
        if (!whit_mul_size(next, elem_bytes, &bytes)) return false;
        void *grown = realloc(*(void **)array, bytes);
        if (!grown) return false;
        *(void **)array = grown;
        room->n_elems = next;
    }
    room->ready_bytes =
        whit_pages_ahead(*(void **)array, wanted * elem_bytes, room->ready_bytes, room->n_elems * elem_bytes);
    return true;
}

whit_status whit_undo_open(whit_text *text, whit_undo **history, whit_error *error)
{
    *history = calloc(1, sizeof **history);
    if (!*history || !grow_array(&(*history)->steps, &(*history)->steps_room, 1, sizeof(struct step))) {
        free(*history);
        *history = NULL;
        return whit_fail_memory(error, "the undo history", sizeof **history);
    }
    (*history)->text = text;
    (*history)->steps[0] = (struct step){0};
    (*history)->n_steps = 1;
    return WHIT_OK;
}

void whit_undo_close(whit_undo *history)
{
    if (!history) return;
    free(history->edits);
    free(history->spans);
    free(history->steps);
    free(history);
}

void whit_undo_watch(whit_undo *history, whit_undo_fn *watch, void *user)
{
    history->watch = watch;
    history->user = user;
}

static void tell_listener(const whit_undo *history, uint64_t offset, uint64_t n_removed, uint64_t n_inserted)
{
    if (history->watch) history->watch(history->user, offset, n_removed, n_inserted);
}

/* Stores the pieces of the text [offset, offset + n) after the end of `spans`; the caller then increases n_spans. */
static bool keep_spans(whit_undo *history, uint64_t offset, uint64_t n, uint32_t *n_kept)
{
    *n_kept = 0;
    while (n) {
        whit_span span = whit_text_at(history->text, offset);
        if (!span.size_bytes || *n_kept == UINT32_MAX) return false;
        if (span.size_bytes > n) span.size_bytes = n;
        if (!grow_array(&history->spans, &history->spans_room, history->n_spans + *n_kept + 1, sizeof *history->spans))
            return false;
        history->spans[history->n_spans + (*n_kept)++] = span;
        offset += span.size_bytes;
        n -= span.size_bytes;
    }
    return true;
}

whit_status whit_undo_edit(whit_undo *history, uint64_t offset, uint64_t n_remove, const void *data, size_t n_insert,
                           whit_error *error)
{
    if (!n_remove && !n_insert) return WHIT_OK;
    if (!whit_in_bounds(offset, n_remove, whit_text_size(history->text)))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "an edit reaches beyond the end of the text");
    uint32_t n_spans;
    if (history->n_steps == UINT32_MAX - 1 || !keep_spans(history, offset, n_remove, &n_spans) ||
        !grow_array(&history->edits, &history->edits_room, history->n_edits + 1, sizeof *history->edits) ||
        !grow_array(&history->steps, &history->steps_room, (size_t)history->n_steps + 1, sizeof *history->steps))
        return whit_fail_memory(error, "the undo history", sizeof *history->edits);
    const uint8_t *kept = NULL;
    WHIT_TRY(whit_text_replace(history->text, offset, n_remove, data, n_insert, &kept, error));
    if (!history->open) {
        history->steps[history->n_steps] = (struct step){.parent = history->current, .first_edit = history->n_edits};
        history->steps[history->current].redo = history->n_steps;
        history->current = history->n_steps++;
        history->open = true;
    }
    struct step *step = &history->steps[history->current];
    struct edit *last = step->n_edits ? &history->edits[history->n_edits - 1] : NULL;
    /* Typing extends the last edit if the new bytes directly follow its bytes, both in the text and in memory. */
    if (last && !n_remove && last->n_inserted && last->offset + last->n_inserted == offset &&
        last->inserted + last->n_inserted == kept) {
        last->n_inserted += n_insert;
    } else {
        history->edits[history->n_edits++] = (struct edit){offset, n_remove, n_insert, kept, history->n_spans, n_spans};
        history->n_spans += n_spans;
        step->n_edits++;
    }
    tell_listener(history, offset, n_remove, n_insert);
    return WHIT_OK;
}

void whit_undo_seal(whit_undo *history)
{
    history->open = false;
}

bool whit_undo_is_open(const whit_undo *history)
{
    return history->open;
}

static void widen(whit_range *range, uint64_t offset, uint64_t n_removed, uint64_t n_inserted)
{
    /* Extends the range of earlier edits by this one; the range's end moves with the text. */
    uint64_t end = offset + n_inserted;
    if (range->begin == UINT64_MAX) {
        *range = (whit_range){offset, end};
        return;
    }
    if (range->end > offset) {
        uint64_t old_end = range->end < offset + n_removed ? offset + n_removed : range->end;
        range->end = old_end - n_removed + n_inserted;
    }
    if (range->end < end) range->end = end;
    if (range->begin > offset) range->begin = offset;
}

static bool apply_edit(whit_undo *history, const struct edit *edit, bool back, whit_range *changed, whit_error *error)
{
    whit_span inserted = {edit->inserted, edit->n_inserted};
    whit_status status = back
        ? whit_text_splice(history->text, edit->offset, edit->n_inserted, history->spans + edit->first_span,
                           edit->n_spans, error)
        : whit_text_splice(history->text, edit->offset, edit->n_removed, &inserted, edit->n_inserted > 0, error);
    if (status != WHIT_OK) return false;
    uint64_t n_removed = back ? edit->n_inserted : edit->n_removed;
    uint64_t n_inserted = back ? edit->n_removed : edit->n_inserted;
    widen(changed, edit->offset, n_removed, n_inserted);
    tell_listener(history, edit->offset, n_removed, n_inserted);
    return true;
}

/* Undoes (`back`) or redoes all edits of a step. On failure the text is unchanged. */
static bool apply_step(whit_undo *history, uint32_t number, bool back, whit_range *changed, whit_error *error)
{
    const struct step *step = &history->steps[number];
    *changed = (whit_range){UINT64_MAX, 0};
    if (error) error->status = WHIT_OK;
    whit_snapshot before = whit_text_snapshot(history->text);
    bool ok = true;
    for (size_t i = 0; i < step->n_edits && ok; i++)
        ok = apply_edit(history, &history->edits[step->first_edit + (back ? step->n_edits - 1 - i : i)], back, changed,
                        error);
    if (!ok) whit_text_restore(history->text, &before);
    whit_snapshot_release(history->text, &before);
    return ok;
}

bool whit_undo_back(whit_undo *history, whit_range *changed, whit_error *error)
{
    if (error) error->status = WHIT_OK;
    if (!history->current || !apply_step(history, history->current, true, changed, error)) return false;
    uint32_t parent = history->steps[history->current].parent;
    history->steps[parent].redo = history->current;
    history->current = parent;
    history->open = false;
    return true;
}

bool whit_undo_forward(whit_undo *history, whit_range *changed, whit_error *error)
{
    if (error) error->status = WHIT_OK;
    uint32_t next = history->steps[history->current].redo;
    if (!next || !apply_step(history, next, false, changed, error)) return false;
    history->current = next;
    history->open = false;
    return true;
}

size_t whit_undo_n_branches(const whit_undo *history)
{
    size_t n = 0;
    for (uint32_t i = 1; i < history->n_steps; i++) n += history->steps[i].parent == history->current;
    return n;
}

bool whit_undo_next_branch(whit_undo *history)
{
    uint32_t now = history->steps[history->current].redo, first = 0, next = 0;
    for (uint32_t i = 1; i < history->n_steps; i++) {
        if (history->steps[i].parent != history->current) continue;
        if (!first) first = i;
        if (i > now && !next) next = i;
    }
    if (!next) next = first;
    if (!next || next == now) return false;
    history->steps[history->current].redo = next;
    history->open = false;
    return true;
}

uint32_t whit_undo_state(const whit_undo *history)
{
    return history->current;
}
