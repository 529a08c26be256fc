/* SPDX-License-Identifier: MIT */
#include "endpoint/libcurl.h"

#include "endpoint/certificates.h"

#include <dlfcn.h>
#include <limits.h>

bool whit_libcurl_load(whit_libcurl *api)
{
    /* The library is never unloaded, because it has registered exit handlers that run when the process ends. */
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return false;
    /* ISO C does not allow converting dlsym's void * to a function pointer; POSIX allows storing it in this way. */
    *(void **)&api->global_init = dlsym(library, "curl_global_init");
    *(void **)&api->version = dlsym(library, "curl_version");
    *(void **)&api->easy_init = dlsym(library, "curl_easy_init");
    *(void **)&api->easy_cleanup = dlsym(library, "curl_easy_cleanup");
    *(void **)&api->easy_reset = dlsym(library, "curl_easy_reset");
    *(void **)&api->setopt = dlsym(library, "curl_easy_setopt");
    *(void **)&api->getinfo = dlsym(library, "curl_easy_getinfo");
    *(void **)&api->perform = dlsym(library, "curl_easy_perform");
    *(void **)&api->slist_append = dlsym(library, "curl_slist_append");
    *(void **)&api->slist_free = dlsym(library, "curl_slist_free_all");
    bool whole = api->global_init && api->version && api->easy_init && api->easy_cleanup && api->easy_reset &&
        api->setopt && api->getinfo && api->perform && api->slist_append && api->slist_free;
    dlclose(library);
    return whole;
}

bool whit_libcurl_open(whit_libcurl *api)
{
    return whit_libcurl_load(api) && api->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

/* Returns whether the library was built with a default file or folder of certificate authorities; true if it is too old
 * to report this. */
static bool has_authorities(const whit_libcurl *api, CURL *curl)
{
#if LIBCURL_VERSION_NUM >= 0x075400
    char *file = NULL, *folder = NULL;
    return api->getinfo(curl, CURLINFO_CAINFO, &file) != CURLE_OK || file ||
        api->getinfo(curl, CURLINFO_CAPATH, &folder) != CURLE_OK || folder;
#else
    (void)api, (void)curl;
    return true;
#endif
}

bool whit_libcurl_trust(const whit_libcurl *api, CURL *curl)
{
    char path[PATH_MAX];
    bool is_chosen, found = whit_certificates_find("", path, sizeof path, &is_chosen);
    if (!is_chosen && has_authorities(api, curl)) return true;
    if (found) api->setopt(curl, CURLOPT_CAINFO, path);
    return found;
}

void whit_libcurl_prepare(const whit_libcurl *api, CURL *curl, const whit_libcurl_request *request)
{
    api->easy_reset(curl);
    api->setopt(curl, CURLOPT_URL, request->url);
    api->setopt(curl, CURLOPT_HTTPHEADER, request->headers);
    api->setopt(curl, CURLOPT_USERAGENT, "whit");
    api->setopt(curl, CURLOPT_NOSIGNAL, 1L);
    api->setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    api->setopt(curl, CURLOPT_ERRORBUFFER, request->reason);
    api->setopt(curl, CURLOPT_CONNECTTIMEOUT, request->connect_s);
    api->setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    api->setopt(curl, CURLOPT_LOW_SPEED_TIME, request->stall_s);
    api->setopt(curl, CURLOPT_WRITEFUNCTION, request->on_body);
    api->setopt(curl, CURLOPT_WRITEDATA, request->user);
    api->setopt(curl, CURLOPT_NOPROGRESS, 0L);
    api->setopt(curl, CURLOPT_XFERINFOFUNCTION, request->on_progress);
    api->setopt(curl, CURLOPT_XFERINFODATA, request->user);
}

bool whit_libcurl_may_pass(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_SSL_CONNECT_ERROR: return true;
    default: return false;
    }
}
