/* SPDX-License-Identifier: MIT */
#include "agent/config.h"

#include "agent/guard.h"
#include "agent/programs.h"
#include "agent/project.h"
#include "base/file.h"
#include "base/items.h"
#include "base/path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_BYTES ((size_t)1 << 20)
#define LIST_MAX   32

static whit_status wrong(whit_error *error, const char *name, const char *key, const char *wanted)
{
    return whit_fail(error, WHIT_ERROR_FORMAT, "%s: '%.60s' must be %s", name, key, wanted);
}

/* Appends the strings of a JSON list to `list`, which has room for LIST_MAX of them. */
static whit_status add_list(const char **list, const json_t *value, const char *name, const char *key,
                            whit_error *error)
{
    size_t n = 0, i;
    json_t *item;
    while (list[n]) n++;
    if (!json_is_array(value)) return wrong(error, name, key, "a list of strings");
    json_array_foreach(value, i, item)
    {
        if (!json_string_length(item) || strlen(json_string_value(item)) != json_string_length(item))
            return wrong(error, name, key, "a list of strings, none of them empty");
        if (n == LIST_MAX) return wrong(error, name, key, "a list of at most 32 strings");
        list[n++] = json_string_value(item);
    }
    return WHIT_OK;
}

/* Returns whether an object is a valid set of environment variables for a server: {NAME: value}. */
static bool is_environment(const json_t *variables)
{
    const char *name;
    json_t *value;
    if (!json_is_object(variables)) return false;
    json_object_foreach((json_t *)(uintptr_t)variables, name,
                        value) if (!*name || strchr(name, '=') || !json_is_string(value)) return false;
    return true;
}

static whit_status check_servers(const json_t *servers, const char *name, whit_error *error)
{
    const char *key, *setting;
    json_t *server, *value, *item;
    size_t i;
    if (!json_is_object(servers)) return wrong(error, name, "mcp", "an object of servers by name");
    if (json_object_size(servers) > LIST_MAX) return wrong(error, name, "mcp", "at most 32 servers");
    json_object_foreach((json_t *)(uintptr_t)servers, key, server)
    {
        const json_t *command = json_object_get(server, "command");
        if (!*key || strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != strlen(key) ||
            /* "__" is not allowed, since it separates the parts of a tool's name (mcp.h) */
            strlen(key) > 32 || strstr(key, "__") || *key == '_' || key[strlen(key) - 1] == '_')
            return wrong(error, name, key, "a name of letters, digits, - and single _ between them, 32 at most");
        if (!json_array_size(command)) return wrong(error, name, key, "an object with \"command\": [program, ...]");
        json_array_foreach(command, i, item) if (!json_is_string(item)) return wrong(error, name, key,
                                                                                     "a command of strings");
        json_object_foreach(server, setting, value)
        {
            if (strcmp(setting, "command") == 0) continue;
            if (strcmp(setting, "env") == 0 && is_environment(value)) continue;
            const char *word = json_is_string(value) ? json_string_value(value) : "";
            if (strcmp(setting, "allow") == 0 && (strcmp(word, "red") == 0 || strcmp(word, "green") == 0)) continue;
            if (strcmp(setting, "folder") == 0 && (strcmp(word, "home") == 0 || strcmp(word, "project") == 0)) continue;
            return wrong(error, name, setting,
                         "command, allow (red, green), env (strings by name) or folder (home, project)");
        }
    }
    return WHIT_OK;
}

whit_status whit_agent_config_parse(whit_agent_config *config, const char *text, size_t n_bytes, const char *name,
                                    bool is_projects, whit_error *error)
{
    json_error_t at;
    const char *key;
    json_t *value;
    json_t *all = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &at);
    json_decref(config->values[is_projects]);
    config->values[is_projects] = all;
    if (!json_is_object(all))
        return all ? whit_fail(error, WHIT_ERROR_FORMAT, "%s: is not a JSON object", name)
                   : whit_fail(error, WHIT_ERROR_FORMAT, "%s: line %d: %s", name, at.line, at.text);
    json_object_foreach(all, key, value)
    {
        if (strcmp(key, "check") == 0)
            WHIT_TRY(add_list(config->checks, value, name, key, error));
        else if (strcmp(key, "command_seconds") == 0) {
            json_int_t seconds = json_integer_value(value);
            if (seconds < 1 || seconds > 86400) return wrong(error, name, key, "a number of seconds, 1 to 86400");
            /* a project cannot extend the time limit of the user's file, if that sets one */
            if (!is_projects || !config->command_s || seconds < config->command_s)
                config->command_s = (uint32_t)seconds;
        } else if (is_projects) {
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "%s: '%.60s' is not a setting of a project (check and command_seconds are)", name, key);
        } else if (strcmp(key, "read") == 0) {
            WHIT_TRY(add_list(config->read, value, name, key, error));
        } else if (strcmp(key, "mcp") == 0) {
            WHIT_TRY(check_servers(value, name, error));
            config->servers = value;
        } else {
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "%s: '%.60s' is not a setting (check, command_seconds, read, mcp are)", name, key);
        }
    }
    return WHIT_OK;
}

static whit_status load_settings(whit_agent_config *config, const char *path, whit_error *error)
{
    whit_buf text = {0};
    if (!whit_path_exists(path)) return WHIT_OK;
    whit_status status = whit_read_file(path, FILE_BYTES, &text, error);
    if (status == WHIT_OK)
        status = whit_agent_config_parse(config, whit_chars(&text), text.size_bytes, path, false, error);
    whit_buf_free(&text);
    return status;
}

/* Loads the user's file, if it exists. */
static whit_status load_users(whit_agent_config *config, const char *project, whit_error *error)
{
    char folder[PATH_MAX], path[PATH_MAX];
    if (whit_guard_own_folder(WHIT_GUARD_OWN_CONFIG, folder) &&
        snprintf(path, sizeof path, "%s/agent.json", folder) < (int)sizeof path)
        WHIT_TRY(load_settings(config, path, error));
    return config->servers ? whit_programs_know(config->servers, project, error) : WHIT_OK;
}

whit_status whit_agent_config_read(const char *project, whit_buf *text, bool *exists, whit_error *error)
{
    char folder[PATH_MAX], real[PATH_MAX];
    whit_project_file file = {.exists = false};
    *exists = false;
    if (!realpath(project, folder)) return whit_fail_errno(error, project, "find this folder");
    const char *path = whit_project_follow(folder, WHIT_AGENT_CONFIG_FILE, real);
    whit_status status = path ? whit_project_read_file(folder, path, text, &file, error) : WHIT_OK;
    if (status == WHIT_OK && (!path || file.is_hidden))
        status = whit_fail(error, WHIT_ERROR_ARGUMENT,
                           "%s/" WHIT_AGENT_CONFIG_FILE
                           ": a project's settings must be a file of the project, and not one with keys; a link is "
                           "followed only in the project",
                           folder);
    if (status == WHIT_OK && text->size_bytes > FILE_BYTES)
        status = whit_fail(error, WHIT_ERROR_LIMIT,
                           "%s/" WHIT_AGENT_CONFIG_FILE ": is larger than %zu bytes, the limit", folder, FILE_BYTES);
    *exists = status == WHIT_OK && file.exists;
    return status;
}

whit_status whit_agent_config_load(whit_agent_config *config, const char *project, whit_error *error)
{
    char path[PATH_MAX];
    whit_buf text = {0};
    bool exists;
    WHIT_TRY(load_users(config, project, error));
    snprintf(path, sizeof path, "%s/%s", project, WHIT_AGENT_CONFIG_FILE);
    whit_status status = whit_agent_config_read(project, &text, &exists, error);
    if (status == WHIT_OK && exists)
        status = whit_agent_config_parse(config, text.size_bytes ? whit_chars(&text) : "", text.size_bytes, path, true,
                                         error);
    whit_buf_free(&text);
    return status;
}

whit_status whit_agent_config_know_programs(const char *project, whit_error *error)
{
    whit_agent_config config = {0};
    const whit_status status = load_users(&config, project, error);
    whit_agent_config_free(&config);
    return status;
}

void whit_agent_config_free(whit_agent_config *config)
{
    json_decref(config->values[0]);
    json_decref(config->values[1]);
    *config = (whit_agent_config){0};
}
