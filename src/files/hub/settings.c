/* SPDX-License-Identifier: MIT */
#include "hub/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/items.h"
#include "base/path.h"

#define DEFAULT_ENDPOINT "https://huggingface.co"

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

whit_status whit_hub_endpoint(char endpoint[WHIT_HUB_ENDPOINT_BYTES], whit_error *error)
{
    const char *address = variable("HF_ENDPOINT");
    if (!address) address = DEFAULT_ENDPOINT;
    size_t n = strlen(address);
    while (n && address[n - 1] == '/') n--;
    bool is_web = strncmp(address, "https://", 8) == 0 || strncmp(address, "http://", 7) == 0;
    if (!is_web || n < sizeof "http://" || n >= WHIT_HUB_ENDPOINT_BYTES || strpbrk(address, " \t\r\n"))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "HF_ENDPOINT='%.200s' is not an http or https address", address);
    memcpy(endpoint, address, n);
    endpoint[n] = 0;
    return WHIT_OK;
}

/* Checks and copies a token. It is sent in a header, so it must be visible ASCII without blanks. */
static whit_status take_token(const char *text, size_t n, const char *from, char token[WHIT_HUB_TOKEN_BYTES],
                              whit_error *error)
{
    while (n && strchr(" \t\r\n", text[n - 1])) n--;
    while (n && strchr(" \t\r\n", *text)) text++, n--;
    bool is_plain = n < WHIT_HUB_TOKEN_BYTES;
    for (size_t i = 0; i < n; i++) is_plain = is_plain && text[i] > 32 && text[i] < 127;
    if (!is_plain)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "the hub token from %s is not one word of printable ASCII characters", from);
    memcpy(token, text, n);
    token[n] = 0;
    return WHIT_OK;
}

static bool token_path(char *path, size_t path_bytes)
{
    const char *file = variable("HF_TOKEN_PATH"), *hf_home = variable("HF_HOME");
    const char *cache = variable("XDG_CACHE_HOME"), *home = variable("HOME");
    int n = -1;
    if (file)
        n = snprintf(path, path_bytes, "%s", file);
    else if (hf_home)
        n = snprintf(path, path_bytes, "%s/token", hf_home);
    else if (cache)
        n = snprintf(path, path_bytes, "%s/huggingface/token", cache);
    else if (home)
        n = snprintf(path, path_bytes, "%s/.cache/huggingface/token", home);
    return n > 0 && (size_t)n < path_bytes;
}

whit_status whit_hub_token(const char *given, char token[WHIT_HUB_TOKEN_BYTES], const char **from, whit_error *error)
{
    char path[4096];
    token[0] = 0;
    *from = given ? "--token" : "HF_TOKEN";
    if (!given) given = variable("HF_TOKEN");
    if (given) return take_token(given, strlen(given), *from, token, error);
    *from = "";
    if (!token_path(path, sizeof path) || !whit_path_exists(path)) return WHIT_OK;
    *from = "the token file";
    whit_buf text = {0};
    whit_status status = whit_read_file(path, 4 * WHIT_HUB_TOKEN_BYTES, &text, error);
    if (status == WHIT_OK) status = take_token(whit_chars(&text), text.size_bytes, path, token, error);
    whit_buf_free(&text);
    return status;
}
