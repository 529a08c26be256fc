/* SPDX-License-Identifier: MIT
 * Maps vi's keys. Mappings are written as Vim writes them: "imap jj <Esc>", "nmap <Space>w :w<CR>". The keys that a
 * mapping plays are not mapped again. */
#include "editor/state.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

#define WAIT_NS 1000000000ull /* nanoseconds that keys which begin a mapping wait for the next key */

enum { NORMAL = 1, INSERT = 2, VISUAL = 4 };

static const struct {
    const char *name;
    uint8_t modes;
} commands[] = {
    {"map", NORMAL | VISUAL}, {"noremap", NORMAL | VISUAL}, {"nmap", NORMAL}, {"nnoremap", NORMAL},
    {"imap", INSERT},         {"inoremap", INSERT},         {"vmap", VISUAL}, {"vnoremap", VISUAL},
    {"xmap", VISUAL},         {"xnoremap", VISUAL},
};

/* ---- notation of keys ---------------------------------------------------------------------- */

static bool named_key(const char *name, size_t n, whit_key *key)
{
    static const struct {
        const char *theirs, *ours;
    } names[] = {{"CR", "Enter"},  {"Return", "Enter"}, {"BS", "Backspace"}, {"Del", "Delete"}, {"PageUp", "PageUp"},
                 {"leader", "\\"}, {"lt", "<"},         {"Bar", "|"},        {"Space", " "}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i].theirs) != n || strncasecmp(names[i].theirs, name, n) != 0) continue;
        if (!names[i].ours[1]) {
            *key = (whit_key){.code = (uint8_t)*names[i].ours};
            return true;
        }
        return whit_key_parse(names[i].ours, strlen(names[i].ours), key);
    }
    char text[24];
    if (n >= sizeof text) return false;
    snprintf(text, sizeof text, "%.*s", (int)n, name);
    if ((*text == 'c' || *text == 'a' || *text == 'A') && text[1] == '-') *text = *text == 'c' ? 'C' : 'M';
    return whit_key_parse(text, n, key);
}

/* Reads keys and stores the first `max`. Returns how many there are. */
static size_t read_keys(const char *text, whit_key *keys, size_t max)
{
    size_t n_keys = 0, n = strlen(text), length;
    for (size_t at = 0; at < n; at += length) {
        const char *close = text[at] == '<' ? strchr(text + at, '>') : NULL;
        whit_key key = {0};
        length = close ? (size_t)(close - text) + 1 - at : 0;
        if (!close || !named_key(text + at + 1, length - 2, &key)) {
            uint32_t code = whit_utf8_decode((const uint8_t *)text + at, n - at, &length);
            if (code == WHIT_UTF8_INVALID) continue;
            key = (whit_key){.code = code};
        }
        if (n_keys < max) keys[n_keys] = key;
        n_keys++;
    }
    return n_keys;
}

bool ed_vi_map(ed *e, const char *line, char *why, size_t why_bytes)
{
    size_t n = strcspn(line, " \t"), command = 0;
    while (command < sizeof commands / sizeof *commands &&
           (strlen(commands[command].name) != n || strncmp(commands[command].name, line, n) != 0))
        command++;
    if (command == sizeof commands / sizeof *commands) return false;
    const char *from = line + n + strspn(line + n, " \t"), *to = from + strcspn(from, " \t");
    char typed[200];
    snprintf(typed, sizeof typed, "%.*s", (int)(to - from), from);
    to += strspn(to, " \t");
    struct ed_mapping mapping = {.modes = commands[command].modes};
    const size_t n_typed = read_keys(typed, mapping.typed, ED_MAP_TYPED_MAX);
    const size_t n_played = read_keys(to, mapping.played, ED_MAP_PLAYED_MAX);
    if (!n_typed || !*to) {
        snprintf(why, why_bytes, "a mapping is written as: %s jj <Esc>", commands[command].name);
        return true;
    }
    if (n_typed > ED_MAP_TYPED_MAX || n_played > ED_MAP_PLAYED_MAX) {
        snprintf(why, why_bytes, "a mapping has at most %u keys, and plays at most %u", ED_MAP_TYPED_MAX,
                 ED_MAP_PLAYED_MAX);
        return true;
    }
    mapping.n_typed = (uint8_t)n_typed;
    mapping.n_played = (uint8_t)n_played;
    if (e->vi.n_mappings == ED_MAPPINGS_MAX) {
        snprintf(why, why_bytes, "there are %u mappings already, the limit", ED_MAPPINGS_MAX);
        return true;
    }
    struct ed_mapping *grown = realloc(e->vi.mappings, (e->vi.n_mappings + 1) * sizeof *grown);
    if (!grown) {
        snprintf(why, why_bytes, "not enough memory for a mapping");
        return true;
    }
    e->vi.mappings = grown;
    grown[e->vi.n_mappings++] = mapping;
    return true;
}

/* ---- applying mappings --------------------------------------------------------------------- */

static uint8_t mode_of(const ed *e)
{
    if (ed_vi_is_inserting(e)) return INSERT;
    return ed_vi_is_visual(e) ? VISUAL : NORMAL;
}

static bool begins_with(const struct ed_mapping *mapping, const whit_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (i >= mapping->n_typed || mapping->typed[i].code != keys[i].code || mapping->typed[i].mods != keys[i].mods)
            return false;
    return true;
}

/* Plays keys; mappings are not applied to them. */
static void play_plain(ed *e, const whit_key *keys, size_t n)
{
    whit_key copy[ED_MAP_PLAYED_MAX];
    memcpy(copy, keys, n * sizeof *keys);
    ed_vi_play(e, copy, n);
}

void ed_vi_map_flush(ed *e)
{
    struct ed_vi *vi = &e->vi;
    size_t n = vi->n_begun;
    vi->n_begun = 0;
    vi->begun_ns = 0;
    if (n) play_plain(e, vi->begun, n);
}

bool ed_vi_map_key(ed *e, whit_key key)
{
    struct ed_vi *vi = &e->vi;
    bool may = vi->n_mappings && !vi->depth && !vi->repeating && !vi->pending && key.code < WHIT_KEY_PRESS;
    if (!may) return false;
    const struct ed_mapping *found = NULL;
    bool longer = false;
    vi->begun[vi->n_begun++] = key;
    for (size_t i = 0; i < vi->n_mappings; i++) {
        const struct ed_mapping *mapping = &vi->mappings[i];
        if (!(mapping->modes & mode_of(e)) || !begins_with(mapping, vi->begun, vi->n_begun)) continue;
        if (mapping->n_typed == vi->n_begun)
            found = mapping; /* the last matching definition takes precedence */
        else
            longer = true;
    }
    if (longer && !found) {
        vi->begun_ns = whit_now_ns();
        return true;
    }
    size_t n = vi->n_begun;
    vi->n_begun = 0;
    vi->begun_ns = 0;
    if (found) {
        vi->n_played = 0;
        vi->failed = false;
        play_plain(e, found->played, found->n_played);
        return true;
    }
    if (n == 1) return false;
    play_plain(e, vi->begun, n);
    return true;
}

int ed_vi_map_wait_ms(const ed *e)
{
    if (!e->vi.begun_ns) return -1;
    uint64_t waited = whit_now_ns() - e->vi.begun_ns;
    return waited >= WAIT_NS ? 0 : (int)((WAIT_NS - waited + 999999) / 1000000);
}
