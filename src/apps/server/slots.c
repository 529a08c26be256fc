/* SPDX-License-Identifier: MIT
 * Serves llama.cpp's POST /slots/ID?action=save, restore or erase, which act on a slot's tokens and on their session
 * file in --cache-dir. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "server/access.h"
#include "server/endpoints.h"
#include "server/fields.h"

enum { NAME_BYTES_MAX = 100, PATH_BYTES = 4096 };

/* Returns whether a name can be that of a file in the folder: it has only letters, digits, ".", "_" and "-", does not
 * begin with ".", and has at most NAME_BYTES_MAX bytes. */
static bool is_file_name(const char *name)
{
    size_t n = strlen(name);
    return n && n <= NAME_BYTES_MAX && name[0] != '.' &&
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

/* Makes the path of the session file that the request's member `filename` names: "saved-NAME" in the folder of
 * --cache-dir. Fills in the reply and returns false on failure. */
static bool read_path(const whit_call *call, char path[PATH_BYTES], const char **name)
{
    const json_t *given;
    const char *folder = call->site->options->cache_dir;
    if (!whit_field_text(call->body, "filename", &given, call->reply)) return false;
    *name = given ? json_string_value(given) : "";
    if (!folder) {
        whit_api_fail(call->reply, 501, "not_supported_error", NULL,
                      "slots are saved in the folder of --cache-dir, which this server was started without");
        return false;
    }
    if (!is_file_name(*name))
        return whit_field_refuse(call->reply, "filename",
                                 "expected a name of at most 100 letters, digits, dots, underscores and hyphens");
    return snprintf(path, PATH_BYTES, "%s/saved-%s", folder, *name) < PATH_BYTES ||
        whit_field_refuse(call->reply, "filename",
                          "the path of --cache-dir and this name together are longer than 4,095 bytes, the limit");
}

/* Replies with the reason of a failure. A file is called by its name in the request, since no reply names a folder. */
static void refuse_action(const whit_call *call, const whit_slot_action *action, const whit_error *error,
                          const char *name)
{
    const size_t n_path = strlen(action->path), n = name && !strncmp(error->message, action->path, n_path) ? n_path : 0;
    const bool is_io = name && error->status == WHIT_ERROR_IO;
    if (is_io && action->kind == WHIT_SLOT_RESTORE && !whit_path_exists(action->path) && errno == ENOENT)
        whit_api_fail(call->reply, 404, "invalid_request_error", NULL,
                      "there is no such file in the folder of --cache-dir");
    else if (is_io) /* the disk is full, or the folder or the file cannot be used */
        whit_api_fail(call->reply, 500, "server_error", NULL, "%s%s", n ? name : "", error->message + n);
    else
        whit_api_fail(call->reply, 400, "invalid_request_error", NULL, "%s%s", n ? name : "", error->message + n);
}

void whit_slots_act(whit_call *call)
{
    static const char *const kinds[] = {"save", "restore", "erase"};
    const char *wanted = whit_web_query(call->request, "action"), *name = NULL;
    char path[PATH_BYTES], digits[12], *end;
    whit_slot_action action = {.path = path};
    whit_error error;
    int kind = 0;
    if (whit_key_is_limited(call->site, call->key)) { /* a slot and its file may contain conversations of any key */
        whit_api_fail(call->reply, 403, "permission_error", NULL, "this key may not save, restore or erase slots");
        return;
    }
    while (kind < 3 && (!wanted || strcmp(wanted, kinds[kind]) != 0)) kind++;
    if (kind == 3) {
        whit_field_refuse(call->reply, "action", "expected ?action=save, restore or erase");
        return;
    }
    snprintf(digits, sizeof digits, "%.*s", (int)(call->n_rest < 11 ? call->n_rest : 11), call->rest);
    unsigned long id = strtoul(digits, &end, 10);
    if (kind == 0)
        action.kind = WHIT_SLOT_SAVE;
    else if (kind == 1)
        action.kind = WHIT_SLOT_RESTORE;
    else
        action.kind = WHIT_SLOT_ERASE;
    action.id_slot = *end || end == digits || id > UINT32_MAX ? UINT32_MAX : (uint32_t)id;
    if (action.kind != WHIT_SLOT_ERASE && !read_path(call, path, &name)) return;
    uint64_t begun_ns = whit_now_ns();
    if (whit_engine_act(call->api->engine, &action, &error) != WHIT_OK) {
        refuse_action(call, &action, &error, name);
        return;
    }
    static const char *const counts[] = {"n_saved", "n_restored", "n_erased"};
    static const char *const times[] = {"save_ms", "restore_ms", "erase_ms"};
    whit_api_reply(call->reply,
                   json_pack("{s:I, s:s*, s:I, s:{s:f}}", "id_slot", (json_int_t)action.id_slot, "filename", name,
                             counts[kind], (json_int_t)action.n_tokens, "timings", times[kind],
                             (double)(whit_now_ns() - begun_ns) / 1e6));
}
