/* SPDX-License-Identifier: MIT
 * Opens the model that answers in an editor, in this process or at an endpoint. */
#ifndef WHIT_ASSISTANT_ANSWERING_MODEL_H
#define WHIT_ASSISTANT_ANSWERING_MODEL_H

#include "agent/find_server.h"
#include "agent/model.h"
#include "editor/panel.h"
#include "format/conversion_cache.h"

/* Finds the file of a model from the user's words, which are a path or the name of a pulled model. Errors: io,
 * argument. */
typedef whit_status whit_model_finder(const char *words, char path[WHIT_CACHE_PATH_BYTES], whit_error *error);

/* Holds the options of the command line. `wish` names the wanted model; how it is combined with the editor's settings
 * says whit_assistant_wish_of(). */
typedef struct whit_assistant_options {
    whit_panel_wish wish;
    whit_model_finder *find_model;
} whit_assistant_options;

/* Merges the wishes of the command line and of the settings. If the command line names a model or a URL, the result is
 * its wish alone. Otherwise model and URL come from the settings (the URL only without a model), and `name` and
 * key_file from the command line or, if unset there, from the settings. The result points to the same strings as the
 * two arguments. */
whit_panel_wish whit_assistant_wish_of(const whit_panel_wish *line, const whit_panel_wish *settings);

/* Returns whether a text must not be sent to an endpoint, by the agent's rule for secrets. `name` is the name by which
 * the text was opened, which counts, too, since .netrc often leads to a file whose name has no dot. `path` NULL: the
 * text has no file, and `name` is not used. `around` is the sent text with longer text on both sides. */
bool whit_assistant_is_secret(const char *path, const char *name, const char *around, size_t around_bytes);

typedef struct whit_answering_calls {
    whit_model_finder *find_model;
    void (*on_text)(void *user, const char *text, size_t n_bytes); /* receives the answer in pieces */
    void (*on_note)(void *user, const char *line);                 /* receives lines about the server that was found */
    void *user;
    const volatile bool *cancel;
} whit_answering_calls;

/* Holds a model in this process or at an endpoint; zero-initialised: not open. */
typedef struct whit_answering_model {
    whit_found_server found; /* the server that was found, if neither a model nor an endpoint is named */
    whit_buf key;
    whit_endpoint *endpoint;
    whit_remote_model remote;
    whit_model *model;
    whit_session *session;
    whit_local_model *local;
    whit_agent_model answering;
    bool is_open;
} whit_answering_model;

/* Opens the model, unless it is open. If the wish names neither a model nor a URL, a server of this machine is looked
 * for. Errors: argument (there is no model), and the errors of opening a model. */
whit_status whit_answering_model_open(whit_answering_model *m, const whit_panel_wish *wish,
                                      const whit_answering_calls *calls, whit_error *error);
void whit_answering_model_close(whit_answering_model *m);

#endif
