/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <stdint.h>
#include <string.h>

static const char *const girls[] = {"Lily",  "Mia",  "Anna", "Sara", "Lucy",  "Emma", "Rosa",  "Ella",  "Nora", "Zoe",
                                    "Clara", "Ruby", "Maya", "Ivy",  "Alice", "Nina", "Molly", "Grace", "Tara", "Lena"};
static const char *const boys[] = {"Tom",  "Ben",  "Max",   "Sam",  "Leo",  "Jack", "Tim", "Finn",  "Noah",  "Oscar",
                                   "Luke", "Adam", "Peter", "Hugo", "Will", "Theo", "Dan", "Felix", "Henry", "Otto"};
static const char *const female_animals[] = {"Daisy", "Poppy", "Dot",  "Honey", "Bella", "Tilly",
                                             "Pearl", "Hazel", "Coco", "Misty", "Penny", "Fern"};
static const char *const male_animals[] = {"Pip",   "Rusty", "Bruno", "Toby", "Milo", "Rocky",
                                           "Fuzzy", "Teddy", "Buddy", "Gus",  "Chip", "Oliver"};
static const char *const kinds[] = {"fox",  "rabbit", "bear", "mouse",    "squirrel", "duck",
                                    "frog", "cat",    "dog",  "hedgehog", "turtle",   "owl",
                                    "goat", "pig",    "lamb", "pony",     "badger",   "beaver"};
static const char *const smalls[] = {"kitten", "bird", "puppy", "chick", "duckling", "bunny"};

static const struct helper helpers[] = {
    {"kind old", "farmer", false},   {"friendly", "baker", true},      {"tall", "gardener", false},
    {"wise old", "woman", true},     {"cheerful", "fisherman", false}, {"friendly", "teacher", true},
    {"strong", "woodcutter", false}, {"kind", "shepherd", true},       {"gentle old", "man", false},
    {"clever", "painter", true},
};

static const struct {
    const char *noun;
    bool toy;
} nouns[] = {
    {"ball", true},      {"kite", true},         {"toy car", true},  {"doll", true},     {"teddy bear", true},
    {"drum", true},      {"toy boat", true},     {"wagon", true},    {"puzzle", true},   {"toy train", true},
    {"toy horse", true}, {"spinning top", true}, {"hat", false},     {"scarf", false},   {"book", false},
    {"bell", false},     {"key", false},         {"ring", false},    {"whistle", false}, {"shell", false},
    {"lantern", false},  {"coin", false},        {"blanket", false}, {"basket", false},
};
static const char *const adjectives[] = {"red",   "blue", "green",  "yellow", "little",
                                         "shiny", "new",  "pretty", "purple", "special"};
static const char *const foods[] = {"apple",  "cookie", "pear",    "sandwich", "carrot",
                                    "muffin", "peach",  "cupcake", "banana",   "pancake"};

static const struct place places[] = {
    {"the park",
     "in",
     {"under the bench", "behind the slide", "in the tall grass", "near the fountain", "beside the swings"}},
    {"the forest",
     "in",
     {"beside an old log", "behind a big rock", "inside a hollow tree", "beside a mushroom", "behind a tall fern"}},
    {"the garden",
     "in",
     {"behind the rose bush", "under the apple tree", "beside the watering can", "near the fence",
      "among the flowers"}},
    {"the beach",
     "on",
     {"behind a sand castle", "behind a beach chair", "among the shells", "beside a big rock", "near the water"}},
    {"the farm",
     "on",
     {"behind the barn", "under the old cart", "in the hay", "beside the well", "near the hen house"}},
    {"the meadow",
     "in",
     {"in the tall grass", "behind a stone", "under a bush", "beside the stream", "among the daisies"}},
    {"the market",
     "at",
     {"under a table", "behind a basket of pears", "beside the flower stand", "near the bakery", "between two boxes"}},
    {"the river",
     "by",
     {"behind a rock", "under the little bridge", "in the reeds", "beside a fallen tree", "near the old boat"}},
    {"the hill",
     "on",
     {"behind a stone wall", "under an oak tree", "in the soft moss", "beside the path", "near the windmill"}},
    {"the playground",
     "at",
     {"under the slide", "behind the big tree", "beside the seesaw", "in the sandbox", "near the gate"}},
    {"the lake",
     "by",
     {"under a willow tree", "behind the boat house", "in the reeds", "beside a wooden bench", "near the dock"}},
    {"the village square",
     "in",
     {"under a bench", "behind the fountain", "beside the clock tower", "near the bakery", "behind a flower pot"}},
};

static struct person draw_person(whit_rng *rng, bool animal)
{
    struct person person = {.female = tales_draw(rng, 2), .animal = animal};
    if (animal) {
        person.kind = kinds[tales_draw(rng, COUNT(kinds))];
        person.name = person.female ? female_animals[tales_draw(rng, COUNT(female_animals))]
                                    : male_animals[tales_draw(rng, COUNT(male_animals))];
    } else {
        person.kind = person.female ? "girl" : "boy";
        person.name = person.female ? girls[tales_draw(rng, COUNT(girls))] : boys[tales_draw(rng, COUNT(boys))];
    }
    return person;
}

static struct thing draw_thing(whit_rng *rng, bool toy)
{
    struct thing thing = {.adjective = adjectives[tales_draw(rng, COUNT(adjectives))]};
    do {
        size_t i = tales_draw(rng, COUNT(nouns));
        thing.noun = nouns[i].noun;
        thing.toy = nouns[i].toy;
    } while (toy && !thing.toy);
    return thing;
}

void tales_draw_flyer(whit_rng *rng, struct thing *thing)
{
    static const char *const flyers[] = {"ball", "kite", "balloon", "paper plane"};
    thing->noun = flyers[tales_draw(rng, COUNT(flyers))];
    thing->toy = true;
}

void tales_draw_floater(whit_rng *rng, struct thing *thing)
{
    static const char *const floaters[] = {"ball", "toy boat", "hat", "basket"};
    thing->noun = floaters[tales_draw(rng, COUNT(floaters))];
    thing->toy = false; /* no plot with PLOT_FLOATS uses <x|y>, which depends on it */
}

void tales_draw_scene(whit_rng *rng, struct scene *s)
{
    bool animals = tales_draw(rng, 2);
    s->a = draw_person(rng, animals);
    do s->b = draw_person(rng, animals);
    while (s->a.name == s->b.name || (animals && s->a.kind == s->b.kind));
    s->h = helpers[tales_draw(rng, COUNT(helpers))];
    s->o = draw_thing(rng, false);
    do s->q = draw_thing(rng, true);
    while (s->q.noun == s->o.noun);
    s->food = foods[tales_draw(rng, COUNT(foods))];
    s->p = &places[tales_draw(rng, COUNT(places))];
    size_t first = tales_draw(rng, N_SPOTS), step = 1 + tales_draw(rng, N_SPOTS - 1);
    s->s1 = s->p->spots[first];
    s->s2 = s->p->spots[(first + step) % N_SPOTS];
    s->s3 = s->p->spots[(first + 2 * step) % N_SPOTS]; /* the three spots differ, because N_SPOTS is prime */
    s->small = smalls[tales_draw(rng, COUNT(smalls))];
}

static uint64_t mix(uint64_t hash, const char *text)
{
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 0x100000001B3u;
    return hash;
}

bool tales_scene_is_held(const struct scene *s)
{
    uint64_t hash = mix(mix(mix(0xCBF29CE484222325u, s->a.name), s->o.noun), s->p->name);
    return (hash >> 20) % 16 == 0;
}
