/* SPDX-License-Identifier: MIT */
#include "grammar.h"

#include <ctype.h>
#include <string.h>

struct expansion {
    struct text *text;
    const struct scene *scene;
    whit_rng *rng;
};

static void expand_range(struct expansion *e, const char *begin, const char *end);

static void put(struct expansion *e, const char *text, size_t n)
{
    struct text *out = e->text;
    if (out->n + n >= sizeof out->data) {
        out->failed = true;
        return;
    }
    memcpy(out->data + out->n, text, n);
    out->n += n;
    out->data[out->n] = 0;
}

static void put_text(struct expansion *e, const char *text)
{
    put(e, text, strlen(text));
}

static void put_with_article(struct expansion *e, const char *text)
{
    put_text(e, strchr("aeiou", *text) ? "an " : "a ");
    put_text(e, text);
}

/* ---- contents of the scene ------------------------------------------------------------------ */

static void put_pronoun(struct expansion *e, bool female, const char *form)
{
    static const char *const forms[][3] = {
        {"he", "he", "she"}, {"him", "him", "her"}, {"his", "his", "her"}, {"self", "himself", "herself"}};
    for (size_t i = 0; i < COUNT(forms); i++)
        if (!strcmp(form, forms[i][0])) {
            put_text(e, forms[i][female ? 2 : 1]);
            return;
        }
    e->text->failed = true;
}

static void put_intro(struct expansion *e, const struct person *person)
{
    static const char *const child[] = {"little", "young", "cheerful", "kind", "curious", "brave", "clever", "happy"};
    static const char *const animal[] = {"little", "small", "young", "clever", "friendly", "curious", "brown", "kind"};
    put_with_article(
        e, person->animal ? animal[tales_draw(e->rng, COUNT(animal))] : child[tales_draw(e->rng, COUNT(child))]);
    put_text(e, " ");
    put_text(e, person->kind);
    put_text(e, tales_draw(e->rng, 2) ? " named " : " called ");
    put_text(e, person->name);
}

static void put_person(struct expansion *e, const struct person *person, const char *form)
{
    if (!*form)
        put_text(e, person->name);
    else if (!strcmp(form, "kind"))
        put_text(e, person->kind);
    else if (!strcmp(form, "akind"))
        put_with_article(e, person->kind);
    else if (!strcmp(form, "intro"))
        put_intro(e, person);
    else
        put_pronoun(e, person->female, form);
}

static void put_helper(struct expansion *e, const struct helper *helper, const char *form)
{
    if (!*form) {
        put_text(e, "the ");
        put_text(e, helper->noun);
    } else if (!strcmp(form, "a")) {
        put_with_article(e, helper->adjectives);
        put_text(e, " ");
        put_text(e, helper->noun);
    } else {
        put_pronoun(e, helper->female, form);
    }
}

/* Appends a noun in one of the forms of {o}, with its adjective unless that is NULL. */
static void put_thing(struct expansion *e, const char *adjective, const char *noun, const char *form)
{
    if (!strcmp(form, "n")) adjective = NULL;
    if (!*form) put_text(e, "the ");
    if (!strcmp(form, "a")) {
        put_with_article(e, adjective ? adjective : noun);
        if (!adjective) return;
    } else if (adjective) {
        put_text(e, adjective);
    }
    if (adjective) put_text(e, " ");
    put_text(e, noun);
}

static void put_slot(struct expansion *e, const char *name, const char *form)
{
    const struct scene *s = e->scene;
    if (!strcmp(name, "a"))
        put_person(e, &s->a, form);
    else if (!strcmp(name, "b"))
        put_person(e, &s->b, form);
    else if (!strcmp(name, "h"))
        put_helper(e, &s->h, form);
    else if (!strcmp(name, "o"))
        put_thing(e, s->o.adjective, s->o.noun, form);
    else if (!strcmp(name, "q"))
        put_thing(e, s->q.adjective, s->q.noun, form);
    else if (!strcmp(name, "f"))
        put_thing(e, NULL, s->food, form);
    else if (!strcmp(name, "c"))
        put_thing(e, NULL, s->small, form);
    else if (!strcmp(name, "s1"))
        put_text(e, s->s1);
    else if (!strcmp(name, "s2"))
        put_text(e, s->s2);
    else if (!strcmp(name, "s3"))
        put_text(e, s->s3);
    else if (!strcmp(name, "p")) {
        if (*form) {
            put_text(e, s->p->preposition);
            put_text(e, " ");
        }
        put_text(e, s->p->name);
    } else {
        e->text->failed = true;
    }
}

/* ---- choices in a pattern ------------------------------------------------------------------- */

/* Returns the bracket that closes the group opened at `begin`; NULL if it is not found before `end`. */
static const char *close_of(const char *begin, const char *end)
{
    int depth = 0;
    for (const char *c = begin; c < end; c++) {
        if (*c == '[' || *c == '<') depth++;
        if ((*c == ']' || *c == '>') && --depth == 0) return c;
    }
    return NULL;
}

/* Sets [*from, *to) to alternative number `wanted`, from 0, of the group whose inside is [begin, end). Returns the
 * number of alternatives; if `wanted` is not below it, nothing is set. */
static size_t find_alternative(const char *begin, const char *end, size_t wanted, const char **from, const char **to)
{
    size_t n = 0;
    const char *start = begin;
    int depth = 0;
    for (const char *c = begin; c <= end; c++) {
        if (c < end && (*c == '[' || *c == '<')) depth++;
        if (c < end && (*c == ']' || *c == '>')) depth--;
        if (c < end && (*c != '|' || depth)) continue;
        if (n++ == wanted) {
            *from = start;
            *to = c;
        }
        start = c + 1;
    }
    return n;
}

static void expand_group(struct expansion *e, const char *begin, const char *close)
{
    const char *from = begin, *to = begin;
    size_t n = find_alternative(begin + 1, close, 0, &from, &to);
    size_t chosen = *begin == '<' ? !e->scene->o.toy : tales_draw(e->rng, n);
    if (chosen >= n) {
        e->text->failed = true;
        return;
    }
    find_alternative(begin + 1, close, chosen, &from, &to);
    expand_range(e, from, to);
}

static const char *expand_slot(struct expansion *e, const char *begin, const char *end)
{
    char name[16] = "", *form;
    bool capital = begin[1] == '^';
    const char *close = memchr(begin, '}', (size_t)(end - begin));
    size_t n = close ? (size_t)(close - begin) - 1 - capital : sizeof name;
    if (n >= sizeof name) {
        e->text->failed = true;
        return end;
    }
    memcpy(name, begin + 1 + capital, n);
    form = strchr(name, '.');
    if (form) *form++ = 0;
    size_t at = e->text->n;
    put_slot(e, name, form ? form : "");
    if (capital) e->text->data[at] = (char)toupper((unsigned char)e->text->data[at]);
    return close + 1;
}

static void expand_range(struct expansion *e, const char *begin, const char *end)
{
    for (const char *c = begin; c < end && !e->text->failed;) {
        if (*c == '[' || *c == '<') {
            const char *close = close_of(c, end);
            if (!close) {
                e->text->failed = true;
                return;
            }
            expand_group(e, c, close);
            c = close + 1;
        } else if (*c == '{') {
            c = expand_slot(e, c, end);
        } else {
            put(e, *c == '`' ? "\"" : c, 1);
            c++;
        }
    }
}

void tales_expand(struct text *text, const char *pattern, const struct scene *scene, whit_rng *rng)
{
    struct expansion e = {text, scene, rng};
    expand_range(&e, pattern, pattern + strlen(pattern));
}
