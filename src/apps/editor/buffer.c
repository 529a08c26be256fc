/* SPDX-License-Identifier: MIT */
#include "editor/buffer.h"

#include "base/file.h"
#include "base/path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void on_change(void *user, uint64_t offset, uint64_t n_removed, uint64_t n_inserted)
{
    whit_buffer *buffer = user;
    buffer->version++;
    for (size_t i = 0; i < WHIT_BUFFER_WATCHERS; i++)
        if (buffer->watchers[i].change)
            buffer->watchers[i].change(buffer->watchers[i].user, offset, n_removed, n_inserted);
}

bool whit_buffer_watch(whit_buffer *buffer, whit_undo_fn *change, void *user)
{
    for (size_t i = 0; i < WHIT_BUFFER_WATCHERS; i++) {
        if (buffer->watchers[i].change) continue;
        buffer->watchers[i].change = change;
        buffer->watchers[i].user = user;
        return true;
    }
    return false;
}

static void unwatch_buffer(whit_buffer *buffer, whit_undo_fn *change, const void *user)
{
    for (size_t i = 0; i < WHIT_BUFFER_WATCHERS; i++)
        if (buffer->watchers[i].change == change && buffer->watchers[i].user == user) buffer->watchers[i].change = NULL;
}

static whit_status begin_text(whit_buffer *buffer, whit_span bytes, whit_error *error)
{
    WHIT_TRY(whit_text_open(&buffer->text, error));
    WHIT_TRY(whit_text_adopt(buffer->text, bytes.data, bytes.size_bytes, error));
    if (bytes.size_bytes <= WHIT_FILE_COPIED_BYTES) whit_text_count(buffer->text, UINT64_MAX, NULL, NULL);
    WHIT_TRY(whit_undo_open(buffer->text, &buffer->history, error));
    whit_undo_watch(buffer->history, on_change, buffer);
    return WHIT_OK;
}

/* ---- the journal --------------------------------------------------------------------------- */

/* Applies a record of the journal to the text. Returns false if the record does not fit the text. */
static bool apply_record(whit_buffer *buffer, const whit_record *record)
{
    whit_range changed;
    switch (record->kind) {
    case WHIT_RECORD_STEP:
    case WHIT_RECORD_EDIT:
        if (record->kind == WHIT_RECORD_STEP) whit_undo_seal(buffer->history);
        return whit_undo_edit(buffer->history, record->offset, record->n_removed, record->data, record->size_bytes,
                              NULL) == WHIT_OK;
    case WHIT_RECORD_UNDO: return whit_undo_back(buffer->history, &changed, NULL);
    case WHIT_RECORD_REDO: return whit_undo_forward(buffer->history, &changed, NULL);
    case WHIT_RECORD_BRANCH: whit_undo_next_branch(buffer->history); return true;
    case WHIT_RECORD_SAVED:
        buffer->saved_state = whit_undo_state(buffer->history);
        buffer->file.identity = record->identity;
        return true;
    default: return false;
    }
}

static bool replay(whit_buffer *buffer, const whit_span *contents, size_t offset, size_t *good_bytes)
{
    whit_record record;
    *good_bytes = offset;
    while (whit_journal_next(contents->data, contents->size_bytes, &offset, &record)) {
        if (!apply_record(buffer, &record)) return false;
        *good_bytes = offset;
    }
    return true;
}

static bool equal_texts(const whit_text *a, const whit_text *b)
{
    uint64_t size_bytes = whit_text_size(a);
    if (size_bytes != whit_text_size(b)) return false;
    for (uint64_t at = 0; at < size_bytes;) {
        whit_span x = whit_text_at(a, at), y = whit_text_at(b, at);
        uint64_t n = x.size_bytes < y.size_bytes ? x.size_bytes : y.size_bytes;
        if (memcmp(x.data, y.data, n)) return false;
        at += n;
    }
    return true;
}

static void free_buffer(whit_buffer *buffer)
{
    if (!buffer) return;
    free_buffer(buffer->recovered);
    whit_undo_close(buffer->history);
    whit_text_close(buffer->text);
    whit_file_close(&buffer->file);
    whit_journal_close(&buffer->journal, false);
    free(buffer->path);
    free(buffer->name);
    free(buffer->spare);
    free(buffer->base);
    free(buffer);
}

static whit_buffer *new_buffer(void)
{
    whit_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer) return NULL;
    buffer->file.guard = -1;
    buffer->journal.fd = -1;
    return buffer;
}

/* Swaps the texts of two buffers: text, undo history, base and file data. `a` keeps the identity of its file on disk
 * and takes over the saved state of `b`. */
static void swap_texts(whit_buffer *a, whit_buffer *b)
{
    whit_text *text = a->text;
    whit_undo *history = a->history;
    uint8_t *base = a->base;
    whit_file file = a->file;
    a->text = b->text;
    a->history = b->history;
    a->base = b->base;
    a->file = b->file;
    b->text = text;
    b->history = history;
    b->base = base;
    b->file = file;
    whit_undo_watch(a->history, on_change, a);
    whit_undo_watch(b->history, on_change, b);
    a->file.identity = b->file.identity; /* the identity of the file on disk stays with the buffer, not with its text */
    a->saved_state = b->saved_state;
    a->version++;
}

/* Finds the complete text that an interrupted save in place left in the spare file, and sets `recovered` to it. Returns
 * false if there is no such text. */
static bool find_spare(whit_buffer *buffer)
{
    if (!whit_path_exists(buffer->spare)) return false;
    whit_buffer *old = new_buffer();
    if (!old || whit_file_open(buffer->spare, &old->file, NULL) != WHIT_OK ||
        begin_text(old, whit_file_text(&old->file), NULL) != WHIT_OK) {
        free_buffer(old);
        return false;
    }
    if (equal_texts(old->text, buffer->text)) { /* the save had finished, and only the spare file was left */
        free_buffer(old);
        unlink(buffer->spare);
        return false;
    }
    old->never_saved = true;
    buffer->recovered = old;
    buffer->found = WHIT_FOUND_PARTIAL;
    return true;
}

#define COMPARED_MAX 1000

/* Returns whether replaying the journal yields `text` at some point. Then an editor with this journal wrote the file,
 * but was killed before it recorded the save. At most COMPARED_MAX states of the same size are compared. */
static bool is_of_journal(const whit_record *base, const whit_span *contents, size_t offset, const whit_text *text)
{
    whit_buffer *then = new_buffer();
    whit_record record;
    bool found = false, more = then && begin_text(then, (whit_span){base->data, base->size_bytes}, NULL) == WHIT_OK;
    for (int n = 0; more && !found && n < COMPARED_MAX;) {
        if (whit_text_size(then->text) == whit_text_size(text)) {
            found = equal_texts(then->text, text);
            n++;
        }
        more = whit_journal_next(contents->data, contents->size_bytes, &offset, &record) && apply_record(then, &record);
    }
    free_buffer(then);
    return found;
}

/* Evaluates the journal that an earlier run left: takes over its undo history, offers its unsaved text, or, if it has
 * neither, empties the journal. Unsaved edits that cannot be applied stay in it. Sets `found`. */
static void examine(whit_buffer *buffer, const whit_span *contents)
{
    whit_record base;
    size_t offset = 0;
    if (!whit_journal_next(contents->data, contents->size_bytes, &offset, &base) || base.kind != WHIT_RECORD_BASE) {
        whit_journal_restart(&buffer->journal);
        return;
    }
    size_t good_bytes, first = offset;
    bool reachable = base.data || whit_file_same(&base.identity, &buffer->file.identity);
    whit_buffer *old = NULL;
    if (reachable) {
        old = new_buffer();
        bool ok = old != NULL;
        whit_span bytes = whit_file_text(&buffer->file);
        if (ok && base.data) {
            old->base = malloc(base.size_bytes ? base.size_bytes : 1);
            ok = old->base != NULL;
            if (ok) memcpy(old->base, base.data, base.size_bytes);
            bytes = (whit_span){old->base, base.size_bytes};
            old->file.identity = base.identity;
            old->file.has_mark = base.has_mark;
        } else if (ok && buffer->path) {
            ok = whit_file_open(buffer->path, &old->file, NULL) == WHIT_OK;
            bytes = whit_file_text(&old->file);
        }
        if (!ok || begin_text(old, bytes, NULL) != WHIT_OK || !replay(old, contents, offset, &good_bytes)) {
            free_buffer(old);
            old = NULL;
        }
    } else {
        whit_record record, last = base;
        while (whit_journal_next(contents->data, contents->size_bytes, &offset, &record)) last = record;
        if (last.kind != WHIT_RECORD_SAVED && last.kind != WHIT_RECORD_BASE) {
            buffer->found = WHIT_FOUND_LOST;
            return;
        }
    }
    if (old && equal_texts(old->text, buffer->text)) {
        uint32_t state = whit_undo_state(old->history);
        bool large = old->file.data != NULL;
        if (!large) {
            bool has_mark = buffer->file.has_mark; /* keep the current file's byte order mark through the swap */
            swap_texts(buffer, old);
            buffer->file.has_mark = has_mark;
            buffer->saved_state = state;
            buffer->journal.has_base = true;
            buffer->found = WHIT_FOUND_HISTORY;
            whit_journal_cut(&buffer->journal, good_bytes);
        } else {
            whit_journal_restart(&buffer->journal);
        }
        free_buffer(old);
        return;
    }
    if (old && old->saved_state != whit_undo_state(old->history)) {
        /* size of the journal's usable records, to which whit_buffer_recover() cuts it */
        old->journal.size_bytes = good_bytes;
        if (base.data && !whit_file_same(&old->file.identity, &buffer->file.identity) &&
            is_of_journal(&base, contents, first, buffer->text))
            old->file.identity = buffer->file.identity;
        buffer->recovered = old;
        buffer->found = WHIT_FOUND_UNSAVED;
        return;
    }
    free_buffer(old);
    whit_journal_restart(&buffer->journal);
}

static whit_status must_be_decided(const whit_buffer *buffer, whit_error *error)
{
    bool waits =
        buffer->found == WHIT_FOUND_UNSAVED || buffer->found == WHIT_FOUND_PARTIAL || buffer->found == WHIT_FOUND_LOST;
    return waits
        ? whit_fail(error, WHIT_ERROR_ARGUMENT,
                    "%s has unsaved text of an earlier run: open it to recover or delete that text", buffer->name)
        : WHIT_OK;
}

/* Removes temporary files of saves that were interrupted by a crash. */
static void clean(const whit_buffer *buffer)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(buffer->path, '/');
    if (!slash) return;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash + 1 - buffer->path), buffer->path);
    whit_writer_clean(folder, slash + 1);
}

static whit_status attach_journal(whit_buffer *buffer, const char *folder, whit_error *error)
{
    whit_span contents;
    bool busy = false;
    whit_status status = whit_journal_open(folder, buffer->path, &buffer->journal, &contents, &busy, error);
    if (status == WHIT_OK && busy) buffer->found = WHIT_FOUND_BUSY;
    if (status == WHIT_OK && !busy) {
        if (asprintf(&buffer->spare, "%s.save", buffer->journal.path) < 0) buffer->spare = NULL;
        if (!buffer->spare || !find_spare(buffer)) examine(buffer, &contents);
        if (must_be_decided(buffer, NULL) != WHIT_OK) clean(buffer);
    }
    whit_journal_unmap(&contents);
    return status;
}

/* Maximum number of journals of texts without a file. Their keys "unnamed 0", "unnamed 1", ... cannot be absolute
 * paths. */
#define NAMELESS_MAX 16

whit_status whit_buffer_keep_nameless(whit_buffer *buffer, const char *folder, bool offer, whit_error *error)
{
    /* with `offer`, first look for a journal that an earlier run left; then look for an unused one */
    for (int want_left = offer; want_left >= 0; want_left--)
        for (int i = 0; i < NAMELESS_MAX; i++) {
            char key[32];
            whit_span contents;
            whit_journal journal;
            bool busy;
            snprintf(key, sizeof key, "unnamed %d", i);
            WHIT_TRY(whit_journal_open(folder, key, &journal, &contents, &busy, error));
            bool fits = !busy && want_left == (contents.size_bytes > 0);
            if (fits) {
                buffer->journal = journal;
                examine(buffer, &contents);
            } else if (!busy) {
                whit_journal_close(&journal, !contents.size_bytes);
            }
            whit_journal_unmap(&contents);
            if (fits) return WHIT_OK;
        }
    return whit_fail(error, WHIT_ERROR_LIMIT,
                     "what you type here cannot be recovered until it is saved: there are already %d recoverable texts "
                     "without a name (`whit edit` without a file offers them)",
                     NAMELESS_MAX);
}

whit_status whit_buffer_later(whit_buffer *buffer, const char *folder, whit_error *error)
{
    free_buffer(buffer->recovered);
    buffer->recovered = NULL;
    buffer->found = WHIT_FOUND_NOTHING;
    whit_journal_close(&buffer->journal, false);
    free(buffer->spare);
    buffer->spare = NULL;
    if (!buffer->path) return whit_buffer_keep_nameless(buffer, folder, false, error);
    buffer->read_only = true;
    return WHIT_OK;
}

void whit_buffer_recover(whit_buffer *buffer)
{
    whit_buffer *old = buffer->recovered;
    if (!old) return;
    bool partial = buffer->found == WHIT_FOUND_PARTIAL;
    buffer->recovered = NULL;
    buffer->found = WHIT_FOUND_NOTHING;
    uint32_t saved_state = old->saved_state;
    whit_file_identity known = old->file.identity;
    uint64_t before = whit_text_size(buffer->text);
    swap_texts(buffer, old);
    on_change(buffer, 0, before, whit_text_size(buffer->text));
    if (partial) {
        whit_journal_restart(&buffer->journal);
        buffer->plain = true;
    } else { /* further records follow the records that made this text */
        whit_journal_cut(&buffer->journal, old->journal.size_bytes);
        buffer->journal.has_base = true;
        /* saving will report a conflict if the file has changed since the journal was written */
        buffer->file.identity = known;
    }
    buffer->saved_state = saved_state;
    buffer->never_saved = true;
    free_buffer(old);
}

void whit_buffer_forget(whit_buffer *buffer)
{
    if (buffer->found == WHIT_FOUND_PARTIAL && buffer->spare) unlink(buffer->spare);
    free_buffer(buffer->recovered);
    buffer->recovered = NULL;
    buffer->found = WHIT_FOUND_NOTHING;
    whit_journal_restart(&buffer->journal);
}

/* Returns whether steps can be undone or redone. A journal that begins with the current text would not contain them. */
static bool has_steps(const whit_buffer *buffer)
{
    return whit_undo_state(buffer->history) != 0 || whit_undo_n_branches(buffer->history) > 0;
}

/* Adds the base record, which holds the text to which the following records apply, or only the file's identity if the
 * text is larger than WHIT_JOURNAL_BASE_BYTES. Does nothing if there is no journal or it has a base record. */
static void journal_base(whit_buffer *buffer)
{
    if (buffer->journal.fd < 0 || buffer->journal.has_base) return;
    whit_record base = {.kind = WHIT_RECORD_BASE, .identity = buffer->file.identity, .has_mark = buffer->file.has_mark};
    uint64_t size_bytes = whit_text_size(buffer->text);
    uint8_t *bytes = NULL;
    if (size_bytes <= WHIT_JOURNAL_BASE_BYTES && (bytes = malloc(size_bytes ? size_bytes : 1))) {
        base.size_bytes = whit_text_read(buffer->text, 0, bytes, size_bytes);
        base.data = bytes;
    }
    if (!bytes || has_steps(buffer)) buffer->plain = true;
    whit_journal_add(&buffer->journal, &base);
    free(bytes);
}

/* State while an undo or redo is journalled as plain edits (see `plain` in whit_buffer). */
struct plain_log {
    whit_buffer *buffer;
    bool first;
};
static void log_plain(void *user, uint64_t offset, uint64_t n_removed, uint64_t n_inserted)
{
    struct plain_log *log = user;
    uint8_t *data = malloc(n_inserted ? n_inserted : 1);
    if (!data) {
        log->buffer->journal.failed = true;
        return;
    }
    whit_text_read(log->buffer->text, offset, data, n_inserted);
    whit_journal_add(&log->buffer->journal,
                     &(whit_record){.kind = log->first ? WHIT_RECORD_STEP : WHIT_RECORD_EDIT,
                                    .offset = offset,
                                    .n_removed = n_removed,
                                    .data = data,
                                    .size_bytes = n_inserted});
    log->first = false;
    free(data);
}

static bool undo_step(whit_buffer *buffer, bool back, whit_range *changed, whit_error *error)
{
    if (buffer->read_only) {
        whit_fail(error, WHIT_ERROR_ARGUMENT, "%s is read-only; 'save-as' writes it elsewhere", buffer->name);
        return false;
    }
    if (must_be_decided(buffer, error) != WHIT_OK) return false;
    journal_base(buffer);
    struct plain_log log = {buffer, true};
    bool logging = buffer->plain && whit_buffer_watch(buffer, log_plain, &log);
    bool done =
        back ? whit_undo_back(buffer->history, changed, error) : whit_undo_forward(buffer->history, changed, error);
    if (logging) unwatch_buffer(buffer, log_plain, &log);
    if (done && !buffer->plain)
        whit_journal_add(&buffer->journal, &(whit_record){.kind = back ? WHIT_RECORD_UNDO : WHIT_RECORD_REDO});
    return done;
}

bool whit_buffer_undo(whit_buffer *buffer, whit_range *changed, whit_error *error)
{
    return undo_step(buffer, true, changed, error);
}

bool whit_buffer_redo(whit_buffer *buffer, whit_range *changed, whit_error *error)
{
    return undo_step(buffer, false, changed, error);
}

bool whit_buffer_next_branch(whit_buffer *buffer)
{
    if (!whit_undo_next_branch(buffer->history)) return false;
    if (!buffer->plain) whit_journal_add(&buffer->journal, &(whit_record){.kind = WHIT_RECORD_BRANCH});
    return true;
}

void whit_buffer_seal(whit_buffer *buffer)
{
    if (!buffer->held) whit_undo_seal(buffer->history);
}

whit_status whit_buffer_edit(whit_buffer *buffer, uint64_t offset, uint64_t n_remove, const void *data, size_t n_insert,
                             whit_error *error)
{
    if (buffer->read_only)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s is read-only; 'save-as' writes it elsewhere", buffer->name);
    if (!n_remove && !n_insert) return WHIT_OK;
    WHIT_TRY(must_be_decided(buffer, error));
    journal_base(buffer);
    bool begins = !whit_undo_is_open(buffer->history);
    WHIT_TRY(whit_undo_edit(buffer->history, offset, n_remove, data, n_insert, error));
    whit_journal_add(&buffer->journal,
                     &(whit_record){.kind = begins ? WHIT_RECORD_STEP : WHIT_RECORD_EDIT,
                                    .offset = offset,
                                    .n_removed = n_remove,
                                    .data = data,
                                    .size_bytes = n_insert});
    return WHIT_OK;
}

whit_status whit_buffer_flush(whit_buffer *buffer, whit_error *error)
{
    return whit_journal_flush(&buffer->journal, error);
}

bool whit_buffer_is_modified(const whit_buffer *buffer)
{
    return buffer->never_saved || buffer->saved_state != whit_undo_state(buffer->history);
}

/* ---- opening and saving -------------------------------------------------------------------- */

char *whit_buffer_full_path(const char *path)
{
    char real[PATH_MAX], *slash;
    if (realpath(path, real)) return strdup(real);
    /* The file does not exist, so only its folder is resolved. A missing folder is reported when the file is saved. */
    char folder[PATH_MAX], *full = NULL;
    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder) return NULL;
    slash = strrchr(folder, '/');
    if (slash) {
        *slash = 0;
        if (!realpath(slash == folder ? "/" : folder, real)) return strdup(path);
        if (asprintf(&full, "%s/%s", strcmp(real, "/") ? real : "", slash + 1) < 0) return NULL;
        return full;
    }
    if (!getcwd(real, sizeof real)) return strdup(path);
    if (asprintf(&full, "%s/%s", strcmp(real, "/") ? real : "", path) < 0) return NULL;
    return full;
}

whit_status whit_buffer_open(const char *path, const char *folder, whit_buffer **buffer, whit_error *error)
{
    whit_buffer *made = new_buffer();
    *buffer = NULL;
    if (!made) return whit_fail_memory(error, "a buffer of the file", sizeof *made);
    whit_status status = WHIT_OK;
    made->name = strdup(path ? path : "unnamed");
    made->path = path ? whit_buffer_full_path(path) : NULL;
    if (!made->name || (path && !made->path)) status = whit_fail_memory(error, "a buffer of the file", PATH_MAX);
    if (status == WHIT_OK && path) status = whit_file_open(made->path, &made->file, error);
    if (status == WHIT_OK) status = begin_text(made, whit_file_text(&made->file), error);
    if (status != WHIT_OK) {
        free_buffer(made);
        return status;
    }
    if (path && made->file.identity.exists && access(made->path, W_OK)) made->read_only = true;
    /* Without a journal the file can still be edited; `error` then only gets a message for the user. */
    if (error) error->status = WHIT_OK;
    if (path && folder && !made->read_only) attach_journal(made, folder, error);
    *buffer = made;
    return WHIT_OK;
}

void whit_buffer_close(whit_buffer *buffer)
{
    if (!buffer) return;
    bool decided = buffer->found == WHIT_FOUND_NOTHING || buffer->found == WHIT_FOUND_HISTORY;
    if (decided) {
        whit_journal_flush(&buffer->journal, NULL);
        /* The journal is kept, as undo history for the next run, only if it leads to the text that is in the file. */
        bool keep = buffer->path && buffer->journal.has_base && !buffer->journal.failed && !buffer->plain &&
            !whit_buffer_is_modified(buffer);
        whit_journal_close(&buffer->journal, !keep && !buffer->keep_journal);
    }
    free_buffer(buffer);
}

bool whit_buffer_is_new(const whit_buffer *buffer)
{
    return buffer->path && !buffer->file.identity.exists;
}

bool whit_buffer_is_conflicting(const whit_buffer *buffer)
{
    if (!buffer->path) return false;
    whit_file_identity now;
    whit_file_identify(buffer->path, &now);
    if (!now.exists && !buffer->file.identity.exists) return whit_file_is_lost(&buffer->file);
    return whit_file_is_lost(&buffer->file) || !whit_file_same(&now, &buffer->file.identity);
}

static whit_status read_again(whit_buffer *buffer, whit_error *error)
{
    whit_buffer *reread = new_buffer();
    if (!reread) return whit_fail_memory(error, "a buffer of the file", sizeof *reread);
    whit_status status = whit_file_open(buffer->path, &reread->file, error);
    if (status == WHIT_OK) status = begin_text(reread, whit_file_text(&reread->file), error);
    if (status == WHIT_OK) {
        uint64_t before = whit_text_size(buffer->text), after = whit_text_size(reread->text);
        whit_file_identity identity = reread->file.identity;
        swap_texts(buffer, reread);
        buffer->file.identity = identity;
        buffer->saved_state = whit_undo_state(buffer->history);
        buffer->plain = buffer->never_saved = false;
        on_change(buffer, 0, before, after);
    }
    free_buffer(reread);
    return status;
}

/* Records that the file now contains the current text. */
static void note_saved(whit_buffer *buffer, const whit_file_identity *now)
{
    buffer->file.identity = *now;
    buffer->saved_state = whit_undo_state(buffer->history);
    buffer->never_saved = false;
    whit_undo_seal(buffer->history);
    if (buffer->plain || buffer->journal.failed || buffer->journal.size_bytes > WHIT_JOURNAL_LIMIT_BYTES) {
        whit_journal_restart(&buffer->journal);
        buffer->plain = has_steps(buffer);
    } else if (buffer->journal.has_base) {
        whit_journal_add(&buffer->journal, &(whit_record){.kind = WHIT_RECORD_SAVED, .identity = *now});
        whit_journal_flush(&buffer->journal, NULL);
    }
}

/* Names the spare copy that is written beside a file without a journal: a name that no file and no link has, unless all
 * 1000 tried names are taken. */
static void name_spare(const char *path, char spare[PATH_MAX + 16])
{
    struct stat about;
    snprintf(spare, PATH_MAX + 16, "%s.save", path);
    for (int i = 1; i < 1000 && lstat(spare, &about) == 0; i++) snprintf(spare, PATH_MAX + 16, "%s.save-%d", path, i);
}

/* Fails if the name by which the file was opened leads to another file now, as when a link was changed. */
static whit_status check_name(const whit_buffer *buffer, whit_error *error)
{
    struct stat about;
    char *full = lstat(buffer->name, &about) == 0 ? whit_buffer_full_path(buffer->name) : NULL;
    const bool is_another = full && strcmp(full, buffer->path) != 0;
    free(full);
    return is_another
        ? whit_fail(error, WHIT_ERROR_ARGUMENT,
                    "%s leads to another file now, so nothing was saved: save-as asks where the text belongs",
                    buffer->name)
        : WHIT_OK;
}

whit_status whit_buffer_replace(whit_buffer *buffer, const whit_file_identity *there, whit_error *error)
{
    if (!buffer->path)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "the text has no file name yet: save-as gives it one");
    WHIT_TRY(must_be_decided(buffer, error));
    WHIT_TRY(check_name(buffer, error));
    char other[PATH_MAX + 16];
    const char *spare = buffer->spare;
    if (!spare) {
        name_spare(buffer->path, other);
        spare = other;
    }
    whit_file_identity before = buffer->file.identity, now = before;
    whit_buffer_flush(buffer, NULL);
    whit_status status = whit_file_save(buffer->path, buffer->text, spare, &buffer->file, there, &now, error);
    buffer->file.identity = now;
    WHIT_TRY(status);
    bool over_map = buffer->file.is_mapped && now.inode == before.inode && now.device == before.device;
    note_saved(buffer, &now);
    /* The file was overwritten in place, so the mapped pieces of the text have changed: read it again. */
    if (over_map) return read_again(buffer, error);
    return WHIT_OK;
}

whit_status whit_buffer_save(whit_buffer *buffer, bool force, whit_error *error)
{
    const whit_file_identity known = buffer->file.identity;
    if (!force && whit_buffer_is_conflicting(buffer) && must_be_decided(buffer, error) == WHIT_OK)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s was changed by another program and is not saved: save it alone to choose", buffer->name);
    return whit_buffer_replace(buffer, force ? NULL : &known, error);
}

/* Refuses to write a file whose journal has unsaved text of an earlier run, which nobody has decided about. */
static whit_status check_target(const char *full, const char *folder, whit_error *error)
{
    whit_buffer *there;
    /* no journals are kept, or saving will fail, too */
    if (!folder || whit_buffer_open(full, folder, &there, NULL) != WHIT_OK) return WHIT_OK;
    const whit_status status = must_be_decided(there, error);
    whit_buffer_close(there);
    return status;
}

/* Opens the journal of a file that will be written, if journals are kept, and sets *spare to the path of its spare
 * copy. Fails if the file has unsaved text of an earlier run. */
static whit_status open_target(const char *full, const char *folder, whit_journal *journal, char **spare, bool *busy,
                               whit_error *error)
{
    whit_span contents = {0};
    WHIT_TRY(check_target(full, folder, error));
    if (folder) (void)whit_journal_open(folder, full, journal, &contents, busy, NULL);
    whit_journal_unmap(&contents);
    char name[PATH_MAX + 16];
    name_spare(full, name);
    if (!journal->path && (*spare = strdup(name))) return WHIT_OK;
    if (journal->path && asprintf(spare, "%s.save", journal->path) >= 0) return WHIT_OK;
    *spare = NULL;
    return whit_fail_memory(error, "a path", PATH_MAX);
}

whit_status whit_buffer_save_as(whit_buffer *buffer, const char *path, const char *folder,
                                const whit_file_identity *there, whit_error *error)
{
    WHIT_TRY(must_be_decided(buffer, error));
    char *full = whit_buffer_full_path(path), *name = strdup(path), *spare = NULL;
    whit_journal journal = {.fd = -1};
    bool busy = false;
    whit_file_identity now = {0}, before = buffer->file.identity;
    whit_status status = full && name ? WHIT_OK : whit_fail_memory(error, "a path", PATH_MAX);
    if (status == WHIT_OK && buffer->path &&
        !strcmp(full, buffer->path)) { /* this buffer has the file's journal open already */
        free(full);
        free(name);
        return whit_buffer_replace(buffer, there, error);
    }
    if (status == WHIT_OK) status = open_target(full, folder, &journal, &spare, &busy, error);
    if (status == WHIT_OK) status = whit_file_save(full, buffer->text, spare, &buffer->file, there, &now, error);
    if (status != WHIT_OK) {
        whit_journal_close(&journal, !journal.size_bytes);
        free(full);
        free(name);
        free(spare);
        return status;
    }
    bool over_map = buffer->file.is_mapped && now.inode == before.inode && now.device == before.device;
    whit_journal_close(&buffer->journal, true);
    free(buffer->path);
    free(buffer->name);
    free(buffer->spare);
    if (!journal.path) {
        free(spare);
        spare = NULL;
    }
    buffer->path = full;
    buffer->name = name;
    buffer->spare = spare;
    buffer->journal = journal;
    buffer->found = busy ? WHIT_FOUND_BUSY : WHIT_FOUND_NOTHING;
    buffer->read_only = false;
    buffer->plain = true; /* the new journal does not contain earlier steps of undo */
    note_saved(buffer, &now);
    return over_map ? read_again(buffer, error) : WHIT_OK;
}

whit_status whit_buffer_save_copy(whit_buffer *buffer, const char *path, const char *folder,
                                  const whit_file_identity *there, whit_error *error)
{
    WHIT_TRY(must_be_decided(buffer, error));
    whit_file_identity now = {0};
    /* Refused under another name of the same file, since writing it would overwrite the pieces of this text. */
    whit_file_identify(path, &now);
    if (now.exists && now.inode == buffer->file.identity.inode && now.device == buffer->file.identity.device)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s is the same file as %s", path, buffer->name);
    char *full = whit_buffer_full_path(path), *spare = NULL;
    whit_journal journal = {.fd = -1}; /* opened only for its path, which gives the spare file's name */
    bool busy = false;
    whit_status status = full ? WHIT_OK : whit_fail_memory(error, "a path", PATH_MAX);
    if (status == WHIT_OK) status = open_target(full, folder, &journal, &spare, &busy, error);
    if (status == WHIT_OK) status = whit_file_save(full, buffer->text, spare, &buffer->file, there, &now, error);
    whit_journal_close(&journal, !journal.size_bytes);
    free(full);
    free(spare);
    return status;
}

whit_status whit_buffer_reload(whit_buffer *buffer, whit_error *error)
{
    WHIT_TRY(must_be_decided(buffer, error));
    WHIT_TRY(read_again(buffer, error));
    whit_journal_restart(&buffer->journal);
    return WHIT_OK;
}

whit_status whit_buffer_become(whit_buffer *buffer, const char *data, size_t n_bytes, whit_error *error)
{
    bool has_mark = whit_file_has_mark(data, n_bytes);
    if (has_mark) {
        data += 3;
        n_bytes -= 3;
    }
    size_t size = (size_t)whit_text_size(buffer->text), least = size < n_bytes ? size : n_bytes, same = 0, behind = 0;
    char *now = malloc(size + 1);
    if (!now) return whit_fail_memory(error, "a text", size);
    whit_text_read(buffer->text, 0, now, size);
    while (same < least && now[same] == data[same]) same++;
    while (same && now[same - 1] != '\n') same--;
    while (behind < least - same && now[size - behind - 1] == data[n_bytes - behind - 1]) behind++;
    while (behind && size - behind > same && now[size - behind - 1] != '\n') behind--;
    free(now);
    whit_undo_seal(buffer->history);
    whit_status status =
        whit_buffer_edit(buffer, same, size - same - behind, data + same, n_bytes - same - behind, error);
    whit_undo_seal(buffer->history);
    if (status == WHIT_OK) buffer->file.has_mark = has_mark;
    return status;
}

whit_status whit_buffer_take(whit_buffer *buffer, whit_error *error)
{
    whit_file file;
    WHIT_TRY(whit_file_open(buffer->path, &file, error));
    if (file.is_mapped || buffer->file.is_mapped || buffer->read_only) {
        whit_file_close(&file);
        return whit_buffer_reload(buffer, error);
    }
    whit_status status =
        whit_buffer_become(buffer, file.size_bytes ? (const char *)file.data : "", (size_t)file.size_bytes, error);
    if (status == WHIT_OK) note_saved(buffer, &file.identity);
    whit_file_close(&file);
    return status;
}

void whit_buffer_mark_saved(whit_buffer *buffer)
{
    whit_undo_seal(buffer->history);
    buffer->saved_state = whit_undo_state(buffer->history);
    buffer->never_saved = false;
}
