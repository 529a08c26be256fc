/* SPDX-License-Identifier: MIT */
#include "endpoint/libcurl.h"

#include "endpoint/certificates.h"

#include <dlfcn.h>

bool whit_libcurl_load(whit_libcurl *api)
{
    /* The library stays loaded: the exit handlers that it has registered must exist until the process ends. */
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return false;
    /* POSIX lets a pointer from dlsym be used as a function pointer; ISO C allows this conversion only. */
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

/* Was the library built with a place for certificate authorities? */
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
    char path[1024];
    bool is_chosen, found = whit_certificates_find("", path, sizeof path, &is_chosen);
    if (!is_chosen && has_authorities(api, curl)) return true;
    if (found) api->setopt(curl, CURLOPT_CAINFO, path);
    return found;
}
