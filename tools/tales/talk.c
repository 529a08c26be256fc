/* SPDX-License-Identifier: MIT */
#include "talk.h"

#include <string.h>

#define TALE "[story|story|tale|short story|bedtime story]"

/* Patterns of requests: the text before the subject, and the text that ends the sentence. */
static const char *const asks[][2] = {
    {"[Tell me|Tell me|Please tell me|Tell us] a " TALE, "[.|!|]"},
    {"[Can you tell me|Could you tell me|Will you tell me|Do you know] a " TALE, "?"},
    {"[Write|Please write|Make up] a " TALE, "[.|]"},
    {"I [want|would like] [a|to hear a] " TALE, "[.|]"},
};

/* Returns the pattern for the subject of a request. If it ends with a space, the caller appends plot->about. */
static const char *subject_of(const struct plot *plot, const struct scene *scene, whit_rng *rng)
{
    const char *child = "[{a}|a {a.kind}|a {a.kind} named {a}|a {a.kind} called {a}]";
    const char *animal = "[{a.akind}|{a.akind}|{a.akind} named {a}|{a} the {a.kind}]";
    const char *both = scene->a.animal ? "{a.akind} and {b.akind}" : "{a} and {b}";
    switch (tales_draw(rng, 5)) {
    case 0: return plot->about;
    case 1: return plot->flags & PLOT_IS_A_THING ? "{a.akind} and " : plot->about;
    case 2: return plot->flags & PLOT_HAS_FRIEND ? both : plot->about;
    default: return scene->a.animal ? animal : child;
    }
}

void tales_request(struct text *text, const struct plot *plot, const struct scene *scene, whit_rng *rng)
{
    const char *const *ask = asks[tales_draw(rng, COUNT(asks))];
    tales_expand(text, ask[0], scene, rng);
    if (tales_draw(rng, 12)) {
        const char *subject = subject_of(plot, scene, rng);
        tales_expand(text, " about ", scene, rng);
        tales_expand(text, subject, scene, rng);
        if (subject[strlen(subject) - 1] == ' ') tales_expand(text, plot->about, scene, rng);
    }
    tales_expand(text, ask[1], scene, rng);
}

void tales_question(struct text *question, struct text *answer, const struct scene *scene, whit_rng *rng)
{
    tales_expand(question, "[Who was the story about?|What was the name of the {a.kind}?|Who was it about?]", scene,
                 rng);
    tales_expand(
        answer, "[It was about {a}, {a.akind}.|The {a.kind} was called {a}.|The story was about {a.akind} called {a}.]",
        scene, rng);
}

void tales_small_talk(struct text *said, struct text *answer, bool after_tale, const struct scene *scene, whit_rng *rng)
{
    static const char *const before[][2] = {
        {"[Hello|Hello!|Hi|Hi!|Hi there!|Good morning!|Good evening!|Hey]",
         "[Hello! Do you want to hear a story?|Hi! I can tell you a story, if you like.|Hello! What shall the story be "
         "about?]"},
        {"[How are you?|How are you today?]",
         "[I am fine, thank you. Shall I tell you a story?|Very well, thank you! A story comes to my mind.]"},
        {"[Who are you?|What is your name?|What are you?]",
         "[I am Tales, a very small model that tells stories.|My name is Tales. I am a small program that makes up "
         "stories.]"},
        {"[What can you do?|Can you help me?|What do you know?]",
         "[I can tell short stories about children and animals. That is all I can do.|I make up little stories. Ask me "
         "for one about a fox, or a lost ball.]"},
    };
    static const char *const after[][2] = {
        {"[Thank you!|Thanks!|Thank you, that was nice.|I liked that.|That was a nice story.]",
         "[You are welcome!|I am glad that you liked it.|You are welcome! Do you want to hear another one?]"},
        {"[Good night!|Goodbye!|Bye!|Good night]",
         "[Good night! Sleep well.|Goodbye! Come back for another story.|Sweet dreams!]"},
    };
    const char *const *pair =
        after_tale ? after[tales_draw(rng, COUNT(after))] : before[tales_draw(rng, COUNT(before))];
    tales_expand(said, pair[0], scene, rng);
    tales_expand(answer, pair[1], scene, rng);
}
