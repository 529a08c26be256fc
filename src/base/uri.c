/* SPDX-License-Identifier: MIT */
#include "base/uri.h"

#include "base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool whit_uri_decode(const char *text, size_t n, bool is_strict, char *decoded, size_t room)
{
    size_t n_decoded = 0;
    for (size_t i = 0; i < n; i++) {
        int byte = (uint8_t)text[i];
        if (byte == '%') {
            const int high = n - i > 2 ? whit_hex_digit((uint8_t)text[i + 1]) : -1;
            const int low = high < 0 ? -1 : whit_hex_digit((uint8_t)text[i + 2]);
            if (low < 0 && is_strict) return false;
            if (low >= 0) {
                byte = high << 4 | low;
                i += 2;
            }
        }
        if (!byte || n_decoded + 1 >= room) return false;
        decoded[n_decoded++] = (char)byte;
    }
    decoded[n_decoded] = 0;
    return true;
}

bool whit_uri_to_path(const char *uri, char *path, size_t path_bytes)
{
    if (strncasecmp(uri, "file://", 7)) return false;
    uri += 7;
    if (!strncasecmp(uri, "localhost/", 10)) uri += 9;
    return *uri == '/' && whit_uri_decode(uri, strlen(uri), true, path, path_bytes);
}

bool whit_uri_of_path(const char *path, char *uri, size_t uri_bytes)
{
    size_t n = (size_t)snprintf(uri, uri_bytes, "file://");
    for (; *path; path++) {
        bool plain = (*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z') || strchr("/-._~", *path) ||
            (*path >= '0' && *path <= '9');
        if (n + 4 > uri_bytes) return false;
        n += (size_t)snprintf(uri + n, uri_bytes - n, plain ? "%c" : "%%%02X", (uint8_t)*path);
    }
    return true;
}
