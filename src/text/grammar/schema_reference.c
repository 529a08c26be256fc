/* SPDX-License-Identifier: MIT
 * Resolves references of JSON Schema. A schema with $id is a resource. References in it are resolved against its URI.
 * They name resources of the same document, positions in them by JSON pointers, or anchors. */
#include <stdlib.h>

#include "base/utf8.h"
#include "grammar/schema_parts.h"
#include "base/items.h"
#include "grammar/uri.h"

enum { SLOTS = 1 << 13 };

/* A schema with $id, which occupies the nodes from `node` to before `end`. Its URI is the n bytes at `uri` in
 * c->uris. */
typedef struct resource {
    uint32_t node, end;
    size_t uri, n;
} resource;

typedef struct anchor {
    uint32_t node, name, resource; /* node of the schema; node of the anchor's name; index of the resource */
    bool dynamic;
} anchor;

/* A slot of the cache: the last reference that was resolved in it. */
typedef struct known_reference {
    uint32_t ref, to, resource; /* ref: node of the reference; 0: the slot is free */
} known_reference;

/* ---- resources and anchors --------------------------------------------------------------------- */

static void add_anchor(whit_json_schema_compiler *c, uint32_t schema, uint32_t name, uint32_t at, bool dynamic)
{
    anchor a = {schema, name, at, dynamic};
    size_t n;
    if (whit_json_string(&c->json, name, &n) && !whit_buf_append(&c->anchors, &a, sizeof a)) c->graph->failed = true;
}

/* Adds a resource for a schema with $id. Returns its index; for a schema without $id that of the enclosing resource. */
static uint32_t open_resource(whit_json_schema_compiler *c, uint32_t schema, uint32_t around)
{
    size_t n;
    uint32_t id = whit_json_schema_get(c, schema, "$id");
    const char *text = whit_json_string(&c->json, id, &n);
    uint32_t count = (uint32_t)(c->resources.size_bytes / sizeof(resource));
    if (count && (!text || n == 0)) return around;
    if (count && text[0] == '#') return around; /* in drafts before 2019-09 this is an anchor */
    resource own = {.node = schema, .uri = c->uris.size_bytes};
    own.end = (WHIT_ITEMS(const whit_json_node, &c->json.nodes))[schema].next;
    whit_buf uri = {.allocator = c->graph->allocator};
    if (text) {
        resource base = count ? (WHIT_ITEMS(const resource, &c->resources))[around] : (resource){0};
        whit_uri_resolve(whit_chars(&c->uris) + base.uri, base.n, text, n, &uri);
    }
    own.n = uri.size_bytes;
    if (uri.failed || (uri.size_bytes && !whit_buf_append(&c->uris, uri.data, uri.size_bytes)) ||
        !whit_buf_append(&c->resources, &own, sizeof own))
        c->graph->failed = true;
    whit_buf_free(&uri);
    return count;
}

static void find_resources(whit_json_schema_compiler *c, uint32_t schema, uint32_t around);

static void find_in_list(whit_json_schema_compiler *c, uint32_t list, uint32_t around)
{
    bool object = whit_json_type_of(&c->json, list) == WHIT_JSON_OBJECT;
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, list, k))
        find_resources(c, object ? k + 1 : k, around);
}

/* Searches a schema and its subschemas for resources and anchors. Other values are skipped, since an "$id" in an enum,
 * for example, has no meaning. The recursion is as deep as the JSON document. */
static void find_resources(whit_json_schema_compiler *c, uint32_t schema, uint32_t around)
{
    static const char *const maps[] = {"properties",  "patternProperties", "$defs",
                                       "definitions", "dependentSchemas",  "dependencies"};
    static const char *const others[] = {"allOf",
                                         "anyOf",
                                         "oneOf",
                                         "prefixItems",
                                         "items",
                                         "additionalItems",
                                         "contains",
                                         "not",
                                         "if",
                                         "then",
                                         "else",
                                         "propertyNames",
                                         "additionalProperties",
                                         "unevaluatedItems",
                                         "unevaluatedProperties"};
    size_t n;
    if (whit_json_type_of(&c->json, schema) != WHIT_JSON_OBJECT || c->graph->failed) return;
    uint32_t own = open_resource(c, schema, around);
    for (uint32_t k = whit_json_first(&c->json, schema); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, schema, k)) {
        uint32_t value = k + 1;
        const char *id = whit_json_is(&c->json, k, "$id") ? whit_json_string(&c->json, value, &n) : NULL;
        if ((id && n && id[0] == '#') || whit_json_is(&c->json, k, "$anchor")) add_anchor(c, schema, value, own, false);
        if (whit_json_is(&c->json, k, "$dynamicAnchor")) add_anchor(c, schema, value, own, true);
        for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
            if (whit_json_is(&c->json, k, maps[i])) find_in_list(c, value, own);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            if (!whit_json_is(&c->json, k, others[i])) continue;
            if (whit_json_type_of(&c->json, value) == WHIT_JSON_ARRAY)
                find_in_list(c, value, own);
            else
                find_resources(c, value, own);
        }
    }
}

/* ---- one reference ----------------------------------------------------------------------------- */

/* Decodes one part of a JSON pointer in a URI fragment (RFC 6901): %41, ~0 and ~1. Returns its size. */
static size_t decode_part(const char *text, size_t n, char *out)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '%' && n - i > 2 && whit_hex_digit((uint8_t)text[i + 1]) >= 0 &&
            whit_hex_digit((uint8_t)text[i + 2]) >= 0) {
            c = (char)(whit_hex_digit((uint8_t)text[i + 1]) * 16 + whit_hex_digit((uint8_t)text[i + 2]));
            i += 2;
        } else if (c == '~' && n - i > 1) {
            c = text[++i] == '1' ? '/' : '~';
        }
        out[size++] = c;
    }
    out[size] = 0;
    return size;
}

/* Follows a JSON pointer from node `at`. `text` begins with the pointer's first part. Reports errors at `ref`. */
static uint32_t follow_pointer(whit_json_schema_compiler *c, uint32_t ref, uint32_t at, const char *text, size_t n)
{
    char part[512];
    for (size_t from = 0; from <= n;) {
        size_t end = from;
        while (end < n && text[end] != '/') end++;
        if (end - from >= sizeof part)
            return whit_json_schema_refuse(c, ref,
                                           "a part of the reference between two / has more than 511 bytes, the limit"),
                   WHIT_JSON_NONE;
        decode_part(text + from, end - from, part);
        if (!whit_json_schema_work(c, ref, (uint32_t)whit_json_count(&c->json, at))) return WHIT_JSON_NONE;
        if (whit_json_type_of(&c->json, at) == WHIT_JSON_ARRAY) {
            char *rest;
            unsigned long index = strtoul(part, &rest, 10);
            uint32_t k = whit_json_first(&c->json, at);
            while (index-- && k != WHIT_JSON_NONE) k = whit_json_next(&c->json, at, k);
            at = *rest || rest == part ? WHIT_JSON_NONE : k;
        } else {
            at = whit_json_get(&c->json, at, part);
        }
        from = end + 1;
    }
    return at;
}

static uint32_t resource_around(const whit_json_schema_compiler *c, uint32_t node)
{
    const resource *all = WHIT_ITEMS(const resource, &c->resources);
    uint32_t n = (uint32_t)(c->resources.size_bytes / sizeof *all);
    while (n-- > 1) /* in document order, the last resource that contains the node is the innermost */
        if (node >= all[n].node && node < all[n].end) return n;
    return 0;
}

/* Finds an anchor in a resource. A dynamic reference to a dynamic anchor depends on how the schema was reached. This is
 * only supported if a single anchor has the name, and otherwise an error. */
static uint32_t find_anchor(whit_json_schema_compiler *c, uint32_t ref, uint32_t in, const char *name, size_t n,
                            bool dynamic)
{
    const anchor *all = WHIT_ITEMS(const anchor, &c->anchors), *found = NULL;
    size_t n_all = c->anchors.size_bytes / sizeof *all, n_dynamic = 0, m;
    for (size_t i = 0; i < n_all; i++) {
        const char *text = whit_json_string(&c->json, all[i].name, &m);
        if (m && text[0] == '#') text++, m--;
        if (m != n || memcmp(text, name, n) != 0) continue;
        n_dynamic += all[i].dynamic;
        if (all[i].resource == in && !found) found = &all[i];
    }
    if (!found) return WHIT_JSON_NONE;
    if (dynamic && found->dynamic && n_dynamic > 1)
        return whit_json_schema_refuse(
                   c, ref,
                   "several schemas have this $dynamicAnchor, which is not supported: use $ref and one $anchor"),
               WHIT_JSON_NONE;
    return found->node;
}

static uint32_t resolve_reference(whit_json_schema_compiler *c, uint32_t ref, uint32_t around, const char *text,
                                  size_t n, bool dynamic)
{
    const resource *all = WHIT_ITEMS(const resource, &c->resources);
    uint32_t n_all = (uint32_t)(c->resources.size_bytes / sizeof *all), in = around, to = WHIT_JSON_NONE;
    size_t hash = 0;
    while (hash < n && text[hash] != '#') hash++;
    if (hash) {
        whit_buf uri = {.allocator = c->graph->allocator};
        whit_uri_resolve(whit_chars(&c->uris) + all[around].uri, all[around].n, text, hash, &uri);
        for (in = 0; in < n_all; in++)
            if (all[in].n == uri.size_bytes && all[in].n &&
                memcmp(c->uris.data + all[in].uri, uri.data, all[in].n) == 0)
                break;
        whit_buf_free(&uri);
    }
    if (!text || n == 0 || in == n_all) {
        whit_json_schema_refuse(c, ref,
                                "only references into this schema can be followed: #, #/path, an anchor or $id");
        return WHIT_JSON_NONE;
    }
    const char *fragment = text + hash + 1;
    size_t n_fragment = n > hash + 1 ? n - hash - 1 : 0;
    if (n_fragment == 0)
        to = all[in].node;
    else if (fragment[0] == '/')
        to = follow_pointer(c, ref, all[in].node, fragment + 1, n_fragment - 1);
    else
        to = find_anchor(c, ref, in, fragment, n_fragment, dynamic);
    if (to == WHIT_JSON_NONE)
        whit_json_schema_refuse(c, ref, "the schema has nothing at %.*s", (int)(n < 120 ? n : 120), text);
    return to;
}

/* Resolves a reference with a cache: in large documents, many references name few schemas. */
static uint32_t resolve_known(whit_json_schema_compiler *c, uint32_t ref)
{
    size_t n, n_known;
    const char *text = whit_json_string(&c->json, ref, &n);
    uint32_t hash = 2166136261u, around = resource_around(c, ref); /* the hash is FNV-1a */
    for (size_t i = 0; i < n; i++) hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    known_reference *slot = WHIT_ITEMS(known_reference, &c->references) + (hash ^ hash >> 15) % SLOTS;
    const char *known = slot->ref ? whit_json_string(&c->json, slot->ref, &n_known) : NULL;
    if (known && slot->resource == around && n_known == n && memcmp(known, text, n) == 0) return slot->to;
    uint32_t to = resolve_reference(c, ref, around, text, n, false);
    if (to != WHIT_JSON_NONE) *slot = (known_reference){ref, to, around};
    return to;
}

bool whit_json_schema_open_references(whit_json_schema_compiler *c)
{
    whit_buf *const bufs[] = {&c->resources, &c->anchors, &c->uris, &c->references};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++) bufs[i]->allocator = c->graph->allocator;
    if (!whit_buf_append_zeros(&c->references, SLOTS * sizeof(known_reference)) || !whit_buf_append_zeros(&c->uris, 1))
        return false;
    find_resources(c, WHIT_JSON_ROOT, 0);
    if (c->resources.size_bytes == 0) { /* the whole schema is `true` or `false` */
        resource root = {.node = WHIT_JSON_ROOT, .end = UINT32_MAX};
        if (!whit_buf_append(&c->resources, &root, sizeof root)) c->graph->failed = true;
    }
    return !c->graph->failed;
}

void whit_json_schema_close_references(whit_json_schema_compiler *c)
{
    whit_buf_free(&c->resources);
    whit_buf_free(&c->anchors);
    whit_buf_free(&c->uris);
    whit_buf_free(&c->references);
}

uint32_t whit_json_schema_reference(whit_json_schema_compiler *c, uint32_t schema, uint32_t i)
{
    uint32_t ref = whit_json_schema_get(c, schema, i ? "$dynamicRef" : "$ref");
    size_t n;
    if (ref == WHIT_JSON_NONE) return ref;
    if (i == 0) return resolve_known(c, ref);
    const char *text = whit_json_string(&c->json, ref, &n);
    return resolve_reference(c, ref, resource_around(c, ref), text, n, true);
}
