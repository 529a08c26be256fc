/* SPDX-License-Identifier: MIT
 * Writes the text from which the default model is trained.
 *
 *   tales SEED MEGABYTES train|held
 *
 * Writes documents to stdout, one a line: "<s>" TALE "</s>", or a conversation, "<s><|user|>" ... "<|assistant|>" ...
 * "</s>". The same arguments give the same bytes. Tales of `held` combine heroes, things and places that no tale of
 * `train` combines. A tale has 60 to 250 words. */
#include "grammar.h"
#include "plots.h"
#include "talk.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHAT_SHARE 2 /* one in CHAT_SHARE documents is a conversation, on average */

static size_t count_words(const char *text)
{
    size_t n = 0;
    for (bool inside = false; *text; text++) {
        bool letter = !isspace((unsigned char)*text);
        n += letter && !inside;
        inside = letter;
    }
    return n;
}

struct tale {
    struct scene scene;
    const struct plot *plot;
    struct text text;
};

static void tell(struct tale *tale, whit_rng *rng)
{
    struct text *text = &tale->text;
    tale->plot = &tales_plots[tales_draw(rng, tales_n_plots)];
    if (tale->plot->flags & PLOT_FLIES) tales_draw_flyer(rng, &tale->scene.q);
    if (tale->plot->flags & PLOT_FLOATS) tales_draw_floater(rng, &tale->scene.o);
    text->n = 0;
    text->failed = false;
    for (int i = 0; i < MAX_BEATS && tale->plot->beats[i]; i++) {
        size_t before = text->n;
        tales_expand(text, text->n ? " " : "", &tale->scene, rng);
        size_t begin = text->n;
        tales_expand(text, tale->plot->beats[i], &tale->scene, rng);
        while (text->n > begin && text->data[text->n - 1] == ' ') text->n--; /* left by an empty choice */
        if (text->n == begin) text->n = before;
        text->data[text->n] = 0;
    }
    /* An empty choice between two words leaves two spaces, of which one is removed. */
    size_t n = 0;
    for (size_t i = 0; i < text->n; i++)
        if (text->data[i] != ' ' || text->data[i + 1] != ' ') text->data[n++] = text->data[i];
    text->data[text->n = n] = 0;
}

/* Makes a tale of 60 to 250 words whose scene is held out if `held`, and otherwise is not. Returns false, after a
 * message, if a pattern of the plot is invalid. */
static bool make_tale(struct tale *tale, bool held, whit_rng *rng)
{
    for (;;) {
        do tales_draw_scene(rng, &tale->scene);
        while (tales_scene_is_held(&tale->scene) != held);
        tell(tale, rng);
        if (tale->text.failed) {
            fprintf(stderr, "tales: the grammar of \"%s\" is broken: %s\n", tale->plot->about, tale->text.data);
            return false;
        }
        size_t words = count_words(tale->text.data);
        /* Some plots replace a thing of the scene after it was drawn, so the scene must be checked again. */
        if (words >= 60 && words <= 250 && tales_scene_is_held(&tale->scene) == held) return true;
    }
}

static void say(const struct text *said, const struct text *answer)
{
    printf("<|user|>%s<|assistant|>%s</s>", said->data, answer->data);
}

static bool write_conversation(struct tale *tale, bool held, whit_rng *rng)
{
    struct text said = {0}, answer = {0};
    printf("<s>");
    bool small_talk = tales_draw(rng, 4) == 0;
    if (!make_tale(tale, held, rng)) return false;
    if (small_talk) {
        tales_small_talk(&said, &answer, false, &tale->scene, rng);
        say(&said, &answer);
        if (tales_draw(rng, 3) == 0) return true;
        said.n = 0;
    }
    tales_request(&said, tale->plot, &tale->scene, rng);
    say(&said, &tale->text);
    if (tales_draw(rng, 2)) {
        said.n = answer.n = 0;
        if (tales_draw(rng, 2))
            tales_question(&said, &answer, &tale->scene, rng);
        else
            tales_small_talk(&said, &answer, true, &tale->scene, rng);
        say(&said, &answer);
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 4 || (strcmp(argv[3], "train") != 0 && strcmp(argv[3], "held") != 0)) {
        fprintf(stderr, "usage: tales SEED MEGABYTES train|held\n");
        return 2;
    }
    bool held = !strcmp(argv[3], "held");
    whit_rng rng = {strtoull(argv[1], NULL, 10) * 2 + held};
    double wanted = strtod(argv[2], NULL) * 1e6;
    struct tale tale;
    for (double written = 0; written < wanted; written += (double)tale.text.n + 9) {
        bool ok;
        if (tales_draw(&rng, CHAT_SHARE) == 0)
            ok = write_conversation(&tale, held, &rng);
        else if ((ok = make_tale(&tale, held, &rng)))
            printf("<s>%s</s>", tale.text.data);
        if (!ok) return 1;
        putchar('\n');
    }
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
