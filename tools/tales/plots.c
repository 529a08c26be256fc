/* SPDX-License-Identifier: MIT */
#include "plots.h"

#include "world.h"

/* ---- sentences that plots share ------------------------------------------------------------- */

#define OPEN                                                                                                           \
    "[[Once upon a time|Once upon a time|Once upon a time|Once upon a time|Long ago|Once], there was {a.intro}.|"      \
    "[Once upon a time|Once upon a time|Long ago], {a.intro} lived near {p}.|"                                         \
    "There once was {a.intro}.|{^a.intro} lived near {p}.]"
#define TRAIT                                                                                                          \
    "[|{^a.he} [was always kind to others|loved to play outside|liked to sing|had a big heart|was very curious|"       \
    "loved sunny days|liked to laugh|had many big dreams].]"
#define ONE_DAY                                                                                                        \
    "[One day|One day|One morning|One sunny day|One warm afternoon|One fine morning|One bright day|One windy day]"
#define SUDDENLY "[Suddenly|Just then|All at once|At that moment]"
#define FRIENDS                                                                                                        \
    "[From that day on, {a} and {b} were [best|good|the best of] friends.|{^a} and {b} were [best|good] friends "      \
    "from then on.|After that, {a} and {b} [played together every day|were never lonely again|always helped each "     \
    "other].]"
#define END "[|||The end.]"

const struct plot tales_plots[] = {
    {"a lost {o.n}",
     PLOT_IS_A_THING | PLOT_HAS_FRIEND,
     {OPEN, TRAIT,
      "{^a.he} had {o.a} that {a.he} [loved very much|took everywhere|had got from {a.his} grandmother|liked more than "
      "anything else].",
      ONE_DAY ", {a} was {p.in} with {o}.",
      "{^a.he} [stayed there for a long time|ran and jumped all morning|stopped to look at {c.a}|watched the clouds in "
      "the "
      "sky].",
      "[But then|Then|When it was time to go home], {a.he} [saw|noticed] that {o} was [gone|missing|not there any "
      "more].",
      "`Oh no!` [said|cried] {a}. `[Where is my {o.n}?|I lost my {o.n}!|My {o.an} is gone!]`",
      "[{^a} looked {s1}, but it was not there.|{^a} looked {s1}. The {o.n} was not there.]",
      "[Then {a.he} looked {s2}, but {o} was not there either.|{^a.he} looked {s2} too, but found only [an old leaf|a "
      "little stone|a sleepy snail|some dust].]",
      "{^a} [felt very sad|began to cry|sat down and sighed|was so sad].", SUDDENLY ", {b.intro} came by.",
      "`[What is wrong|Why are you sad|What happened]?` asked {b}.", "`I [lost|cannot find] my {o.an},` said {a}.",
      "`[Do not worry|Do not cry|Do not be sad]. [I will help you|We can look together|Let us look together],` said "
      "{b}.",
      "[Together they looked|They looked] [everywhere|all over the place|high and low].",
      "[At last|After a while|Finally], {b} looked {s3}. `[Here it is|I found it|Look, here it is]!` "
      "[said|called|shouted] "
      "{b}.",
      "{^a} took {o} and [jumped for joy|smiled a big smile|laughed]. `Thank you, {b}! You are a [good|true|kind] "
      "friend.`",
      "[" FRIENDS
      "|<{^a} and {b} played with {o} [until the sun went down|all afternoon|until it was time to go home].|That "
      "night, {a} kept {o} close and fell asleep with a smile.>]",
      END}},
    {"sharing {f.a}",
     PLOT_HAS_FRIEND,
     {OPEN, TRAIT, ONE_DAY ", {a.his} mother gave {a.him} {f.a}. [It looked so good.|It smelled so good.|]",
      "{^a} took {f} and went to sit {s1} {p.in}.",
      "[There {a.he} saw {b.intro}.|Soon {b.intro} came by.] {^b} [looked sad|was very hungry|looked tired and "
      "hungry].",
      "`[What is wrong|Why are you sad|Are you all right]?` asked {a}.",
      "`I [have not eaten all day|have nothing to eat|am so hungry|forgot my lunch at home],` said {b}.",
      "{^a} looked at {f}. [It was only one, and {a.he} was hungry too.|{^a.he} wanted to eat all of it.|It was small, "
      "but {a.he} "
      "had an idea.]",
      "[Then {a.he} thought for a moment and smiled.|But {a.he} did not want {b} to be sad.|But {a} had a kind heart.]",
      "{^a.he} [divided|split] {f} in two and gave one half to {b}. `[Here, this is for you|We can share|Half for you "
      "and half for "
      "me],` said {a}.",
      "`Thank you! [You are so kind|That is very nice of you|This is the best {f.n} ever],` said {b}[ with a big "
      "smile|].",
      "[They sat together and ate|The two sat side by side and ate]. [The {f.n} tasted even better that way.|Never had "
      "{f.a} "
      "tasted so good.|They talked and laughed the whole time.]",
      "[The next day, {b} came back with {q.a}. `Now I want to share with you,` said {b}. They played with {q} all "
      "day.|After "
      "that, {b} showed {a} {q.a}, and they played with it until evening.|]",
      "[{^a} learned that sharing makes everyone happy.|{^a} felt warm and happy inside.|" FRIENDS "]", END}},
    {"being brave in the dark",
     0,
     {OPEN, "{^a.he} was [afraid of the dark|scared of the dark|afraid of the night].",
      "[Every night|When the sun went down], {a.he} [hid under the blanket|wanted the lamp to stay on|held {a.his} "
      "pillow very "
      "tight].",
      "One night, {a} heard a strange [sound|noise]. [Tap, tap, tap!|Scratch, scratch!|Bump, bump!] It came from [the "
      "window|outside|behind the door].",
      "`[Who is there|What is that]?` whispered {a}. [Nobody answered.|There was no answer.|]",
      "{^a.his} heart [beat fast|went thump, thump]. {^a.he} wanted to [run away|hide], but {a.he} also wanted to "
      "know.",
      "`I can be brave,` {a.he} said to {a.self}.",
      "{^a.he} took a [small lamp|little light|candle] and walked [slowly|very slowly|on tiptoe] to the [window|door].",
      "{^a.he} opened it and looked out. There sat {c.a}! It was [cold and wet|lost and afraid|shaking with fear].",
      "`[You are more scared than I am|Oh, you poor little {c.n}|You do not have to be afraid],` said {a}.",
      "{^a.he} [brought it inside|carried it in] and [put it in a warm box|made a soft bed for it|dried it with a "
      "towel]. The "
      "{c.n} [was not afraid any more|soon fell asleep|became calm and happy].",
      "In the morning, {a.his} mother [smiled|was surprised]. `You were so brave,` she said. `I am proud of you.`",
      "[From then on, {a} was not afraid of the dark.|After that night, the dark did not scare {a} any more.|Now {a} "
      "knew that "
      "the dark was only the day asleep.]",
      "[The {c.n} stayed, and they were friends.|]", END}},
    {"helping {c.a}",
     0,
     {OPEN, TRAIT, ONE_DAY ", {a} was walking {p.in} when {a.he} heard a small [cry|voice|sound].",
      "{^a.he} looked {s1}. There {a.he} saw {c.a}. [It was stuck and could not get out.|It was hurt and could not "
      "move.|It was "
      "stuck in a [net|thorny bush|small hole].]",
      "`[Poor little {c.n}|Oh dear|Do not be afraid]! I will help you,` said {a}.",
      "{^a.he} [tried and tried|pulled and pulled|did {a.his} best], but {a.he} was not strong enough.",
      "So {a.he} ran to [find|get] help. [Near the path|On the way|Not far away] {a.he} met {h.a}.",
      "`Please come quickly! [There is {c.a} that needs help|We must help a little {c.n}],` said {a}.",
      "{^h} [came at once|followed right away|put down everything and came]. Very [gently|carefully], {h} helped {a} "
      "to free the "
      "{c.n}.",
      "`[Well done|Good work], {a}. You did the right thing when you asked for help,` said {h}.",
      "The {c.n} was [free|safe] [at last|again]. It looked at {a} as if to say thank you[, and then it went home|].",
      "[The next day|A few days later|Some days later], {a} could not find {a.his} {o.an}. {^a.he} looked everywhere.",
      SUDDENLY ", the {c.n} came back and [showed {a.him} the way|led {a.him} along the path]. {^o} was {s3}!",
      "`Now you helped me,` [said {a} and laughed|laughed {a}].",
      "[{^a} learned that a kind deed always comes back.|They were friends [from then on|ever after].|Kindness had "
      "come back to {a}.]",
      END}},
    {"a {q.n} in a tall tree",
     PLOT_IS_A_THING | PLOT_FLIES | PLOT_HAS_FRIEND,
     {OPEN,
      "{^a.he} had {q.a}. [It was a gift from {a.his} father.|{^a.he} played with it every day.|It was {a.his} "
      "favorite toy.]",
      ONE_DAY ", {a} was playing {p.in} with {b.intro}.",
      "[The wind blew hard|A strong wind came|{^a} threw {q} too high], and {q} [flew up into|landed in|got stuck in] "
      "a tall tree.",
      "`Oh no! [My {q.n} is stuck|I cannot reach my {q.n}|It is too high]!` said {a}.",
      "{^a} jumped as high as {a.he} could, but {a.he} could not reach it.",
      "[{^b} tried with a long stick, but it was too short.|{^b} shook the tree, but {q} did not fall.|{^b} threw a "
      "stone, but it "
      "missed.]",
      "`[We need help|Let us ask someone|I know who can help],` said {b}.",
      "They [ran to|went to|found] {h.a}. `Can you please help us get {q} down?` asked {a}.",
      "`Of course,` said {h}. {^h.he} [brought a long ladder|had a tall ladder|got a ladder from the shed] and climbed "
      "up.",
      "[A moment later|Soon], {h} came down with {q} in {h.his} hand. `Here you are,` {h.he} said.",
      "`Thank you so much!` [said {a}|said {a} and {b} together].",
      "[To say thank you, {a} gave {h} {f.a}.|{^a} and {b} [helped {h} all afternoon|carried the ladder back "
      "together].|{^h} "
      "[smiled and waved|laughed and waved goodbye].]",
      "Then {a} and {b} played with {q} again, [but far away from the trees|where there were no trees|and this time "
      "they were "
      "careful].",
      END}},
    {"telling the truth",
     0,
     {OPEN, TRAIT, ONE_DAY ", {a} was running around with {q} [inside the house|in the kitchen|in the living room].",
      "`Be careful, {a},` said {a.his} mother. But {a} [did not listen|was having too much fun].",
      "Crash! {^a} bumped into the table, and [the blue vase|the big lamp|the flower pot|the glass bowl] [fell and "
      "broke|broke into pieces].",
      "{^a} was [scared|afraid]. {^a.he} [hid the pieces under the bed|put the pieces in a box|ran to {a.his} room and "
      "closed the "
      "door].",
      "[Soon|Later], {a.his} mother came. `What was that noise?` she asked.",
      "`[I do not know|It was nothing|Maybe it was the wind],` said {a}. But {a.he} [felt bad|had a bad feeling in "
      "{a.his} tummy|could "
      "not look at her].",
      "[All day|All evening] {a} [could not eat|could not play|thought about it]. [Even {f.a} did not taste good.|]",
      "At last, {a} went to {a.his} mother. `I broke it,` {a.he} said. `I am sorry. I was afraid to tell you.`",
      "{^a.his} mother [hugged {a.him}|took {a.his} hand|sat down beside {a.him}]. `Thank you for telling the truth,` "
      "she said. "
      "`[That was brave|Things can be fixed, but the truth matters more|I am not angry any more].`",
      "Together they [picked up the pieces and glued them|cleaned up the floor|fixed it with glue]. [It was not "
      "perfect, but it was "
      "fine.|It took a long time, but they had fun.|]",
      "{^a} felt [much better|light and happy again]. [{^a.he} never hid a mistake again.|After that, {a} played with "
      "{q} outside.|"
      "{^a.he} had learned that the truth is always best.]",
      END}},
    {"a birthday surprise",
     PLOT_IS_A_THING | PLOT_HAS_FRIEND,
     {OPEN, "{^a.he} had a good friend, {b.intro}.",
      "[One morning|One day], {a} woke up and [smiled|jumped out of bed]. It was {a.his} birthday!",
      "{^a.he} ran to {b}. `[Do you know what day it is|Can you guess what day it is]?` {a.he} asked.",
      "`[It is just a normal day|I do not know|I have no time today],` said {b} and walked away.",
      "{^a} was sad. `My friend forgot my birthday,` {a.he} thought.",
      "{^a.he} walked alone {p.in} and sat down {s1}. [A tear fell on the ground.|{^a.he} felt very lonely.|]",
      "In the evening, {a} went home. [The house was dark and quiet.|It was very quiet.] {^a.he} opened the door.",
      "`Surprise!` shouted [everyone|{b} and all the others]. There was a big cake with [candles|cream|fruit] on it.",
      "`I did not forget,` said {b}. `I [made the cake for you|wanted to surprise you|worked on it all day].`",
      "Then {b} gave {a} a [box|big box|present]. Inside was {o.a}.",
      "`[It is just what I wanted|I love it|It is so nice]!` said {a}. `This is the best birthday ever.`",
      "They [ate cake and danced|sang songs and ate cake|laughed and played games] until [late|the moon came up|it was "
      "time for bed].",
      "[That night, {a} put {o} next to {a.his} bed and smiled.|{^a} was the happiest {a.kind} in the world.|]", END}},
    {"a little seed",
     PLOT_IS_A_THING,
     {OPEN,
      ONE_DAY
      ", {h.a} gave {a} a [tiny|small|little] seed. `[Take good care of it|If you are patient, something good will "
      "grow],` said {h}.",
      "{^a} [planted the seed|put the seed into the soft earth] behind {a.his} house. [Then {a.he} gave it some "
      "water.|{^a.he} covered it "
      "and gave it water.]",
      "The next day, {a.he} ran to look. There was nothing. `[Why does it not grow|Where is my plant]?` {a.he} asked.",
      "`[Be patient|Good things take time|Wait and see],` said {h} [with a smile|kindly].",
      "[Every day|Each morning] {a} [brought water|watered the seed and sang to it]. [It rained, and the sun came "
      "out.|Some days were "
      "hot and some days were cold.|]",
      "[One morning|After many days|At last], {a.he} saw a [tiny|small] green leaf. `It is growing!` [shouted|cried] "
      "{a}.",
      "The plant grew [bigger and bigger|taller and taller|a little every day]. [First it was as tall as {a}'s knee, "
      "and then it was "
      "taller than {a}.|Soon there were pretty flowers on it.|]",
      "[In the summer|When autumn came|One day], there was [a big red apple|a sweet pear|a giant pumpkin|a juicy "
      "peach] on it.",
      "{^a} [called|ran to get] {a.his} friend {b}. `Look what I grew!` said {a}[ proudly|].",
      "They shared it with {h}. It was [so sweet|delicious|the best they ever had].",
      "[{^a} kept one seed, to plant it again.|{^a} had learned to be patient.|`Now you know that good things take "
      "time,` said {h}.]",
      END}},
    {"getting lost",
     0,
     {OPEN, TRAIT, ONE_DAY ", {a} went for a walk with {a.his} mother {p.in}.",
      "`Stay close to me,` said {a.his} mother.",
      "But then {a} saw {c.a}. [It was so pretty.|It was so funny.|] {^a.he} followed it [here and there|farther and "
      "farther|over the "
      "path and past the trees].",
      "When {a.he} looked up, {a.his} mother was [gone|not there|nowhere to be seen].",
      "`Mama! Where are you?` [called|cried] {a}. [Nobody answered.|There was no answer.]",
      "{^a} [was scared|felt very small|began to cry] and sat down {s1}.",
      SUDDENLY ", {h.a} came along the path. `[Are you lost|Why are you crying], little one?` asked {h}.",
      "`I cannot find my mother,` said {a}.",
      "`[Stay where you are, and we will wait together|Do not worry, we will find her|I will help you],` said {h}. "
      "{^h.he} gave {a} {f.a}[, and {a} felt a little better|].",
      "[They waited together.|They walked back the way {a} had come.]",
      "Soon {a.his} mother came [running|around the corner]. She hugged {a} [tightly|for a long time]. `I was so "
      "worried,` she said.",
      "`I am sorry, Mama. [I will stay close to you|I will not run away again],` said {a}.",
      "They thanked {h} and [went home hand in hand|walked home together]. [From then on, {a} always stayed "
      "close.|That night, {a} was "
      "glad to be in {a.his} own bed.|]",
      END}},
    {"a race between friends",
     PLOT_IS_A_THING | PLOT_HAS_FRIEND,
     {OPEN, "{^a.he} could run very fast.", ONE_DAY ", {a} met {b.intro} {p.in}.",
      "`[Let us have a race!|Do you want to race?|I bet that I am faster than you!]` said {a}. `[The first one at the "
      "big tree "
      "wins|We will run to the big tree].`",
      "`All right,` said {b}. `[Ready, set, go|One, two, three, go]!`",
      "They ran as fast as they could. {^a} was [in front|far ahead|faster] and [laughed|looked back and smiled].",
      SUDDENLY
      ", {b} [fell down|tripped over a stone|fell into the mud]. `Ouch! [My leg hurts|My foot hurts]!` {b} cried.",
      "{^a} [stopped|slowed down]. The big tree was so close! {^a.he} could win the race.",
      "But {a} [turned around and ran back|did not think about winning any more|went back to {b}|ran back to help].",
      "`Are you hurt? [Take my hand|Lean on me|Let me help you],` said {a}.",
      "`[But you could have won!|But what about the race?]` said {b}.",
      "`[You are more important than a race|A friend is better than a prize|Winning is no fun alone],` said {a}.",
      "[Slowly|Step by step], they walked to the big tree together. They touched it at the same time.",
      "`We both won!` said {b}, and they [laughed|both laughed|cheered].", "[" FRIENDS "|]", END}},
    {"a new friend",
     PLOT_IS_A_THING | PLOT_HAS_FRIEND,
     {OPEN, TRAIT,
      ONE_DAY
      ", {b.intro} [moved in next door|came to live near {p}|was new in town]. {^b} [did not know anyone|was very "
      "shy|had no friends there].",
      "{^b} sat alone {s1} {p.in} and [watched the others play|looked at the ground|said nothing].",
      "{^a} saw {b.him}. `{^b.he} looks [lonely|sad|alone],` thought {a}.",
      "{^a.he} took {a.his} {q.an} and walked over. `Hello! I am {a}. [Do you want to play with me|Would you like to "
      "play]?`",
      "{^b} looked up. `[Really|With me]? [I do not know how to play with it|I would love to],` said {b} in a small "
      "voice.",
      "`[I will show you|It is easy|Come, let us try it]!` said {a}.",
      "At first {b} was [slow|quiet|shy], but soon {b.he} [laughed|smiled] and [ran around|played] with {a}.",
      "[They played with {q} [all day|all afternoon].|They took turns with {q}.] [Then they ate {f.a} together.|]",
      "`[I was afraid that nobody would like me|I thought I would never have a friend here],` said {b}.",
      "`[Everyone is new sometimes|I like you|I am glad that you came],` said {a}.",
      "[When the sun went down, they said goodbye.|Then it was time to go home.] `See you tomorrow!` called {b}[ "
      "happily|].",
      "[" FRIENDS "|The next day, {b} was not shy any more.]", END}},
    {"a rainy day",
     PLOT_IS_A_THING | PLOT_HAS_FRIEND,
     {OPEN, "One day, {a} wanted to play {p.in}. But it [rained and rained|was raining hard|was cold and rainy].",
      "{^a} [looked out of the window and sighed|pressed {a.his} nose to the window]. `[Now I cannot play|This is a "
      "bad day|I do not like "
      "rain],` {a.he} said.",
      "[Knock, knock!|Then there was a knock at the door.] It was {a.his} friend {b}, [all wet|wet from head to toe].",
      "`[I was so bored at home. What can we do?|It is no fun alone. What can we play?|May I come in and play?]` asked "
      "{b}.",
      "{^a} thought for a while. `I know! We can [build a house out of boxes|make a tent with blankets|build a ship "
      "out of chairs]!`",
      "They [worked|built] all morning. {^b} [painted it|put a pillow inside|made a little flag for it], and {a} "
      "brought {q}.",
      "`[This is our castle|We are far away at sea|This is our secret place],` said {b}, and they [laughed|giggled].",
      "{^a.his} mother brought {f.a} for each of them. They ate and told each other [funny stories|stories about "
      "dragons|jokes].",
      "[After a while|Later], {a} looked out of the window. The rain had stopped, and there was a [big|beautiful] "
      "rainbow [over {p}|in "
      "the sky].",
      "`[Do you want to go out now|Look! Shall we go out]?` asked {b}.",
      "`[Not yet|Let us stay a little longer],` said {a}. `This is too much fun.`",
      "[{^a} had learned that a rainy day can be a good day.|From then on, {a} liked the rain.|It had been a wonderful "
      "day after all.]",
      END}},
    {"a quarrel over {q.a}",
     PLOT_IS_A_THING | PLOT_HAS_FRIEND,
     {OPEN, "{^a.he} had a friend, {b.intro}.", ONE_DAY ", {a} and {b} found {q.a} {s1} {p.in}.",
      "`[I saw it first|It is mine],` said {a}. `No, [I saw it first|it is mine]!` said {b}.",
      "{^a} pulled on one side and {b} pulled on the other. [They pulled harder and harder.|Nobody wanted to let go.|]",
      "Crack! {^q} [broke|fell to the ground and broke]. [Now nobody could play with it.|]",
      "[{^a} was angry and went home.|They both went home without a word.|{^b} ran away, and {a} was left alone.]",
      "[That evening|At home], {a} [felt sad|could not stop thinking about it]. `We are best friends. [That is worth "
      "more than a toy|I do not want "
      "to fight],` {a.he} thought.",
      "The next morning, {a} went to {b}. `I am sorry,` said {a}. `[It was silly to fight|I should not have pulled|I "
      "want to be friends "
      "again].`",
      "`I am sorry too,` said {b}. `[Let us fix it together|Maybe we can fix it].`",
      "They got [what they needed|all the pieces] and worked [side by side|all morning]. Soon {q} was [almost as good "
      "as "
      "new|whole again].",
      "`[You play first|You can have it first],` said {a}. `No, [you first|we play together],` said {b}, and they both "
      "laughed.",
      "[From then on, they took turns.|After that, they never fought over a toy again.|They shared {q} [and played all "
      "day|and took turns].]",
      END}},
    {"learning to swim",
     PLOT_FLOATS | PLOT_HAS_FRIEND,
     {OPEN,
      "{^a.he} was afraid of [the water|deep water]. All the others could swim, but {a} [only watched|stayed on the "
      "shore].",
      ONE_DAY ", {a} was at the lake with {a.his} friend {b}. {^a} had {a.his} {o.an} with {a.him}.",
      "[A strong wind came|The wind blew], and {o} [fell into the water|landed in the water]. It [floated|drifted] "
      "away.",
      "`My {o.n}!` cried {a}. `[I cannot swim|I am too afraid to swim]!`",
      "`I will get it,` said {b}. {^b} [jumped in|swam out], took {o} and brought it back.",
      "`Thank you,` said {a}. `I wish I could swim like you.`",
      "`I was afraid once too,` said {b}. `[I can teach you|Come, I will show you]. We will start where it is not "
      "deep.`",
      "{^a} [put one foot into the water|took a deep breath and went in]. It was [cold|cool], but not so bad.",
      "`Kick your legs and [hold my hand|do not stop],` said {b}. {^a} [tried|kicked and kicked]. [First {a.he} "
      "swallowed some water.|At first "
      "it did not work.]",
      "But {a} did not give up. [Day after day|Again and again] {a.he} tried, and {b} [was always there|helped "
      "{a.him}].",
      "[At last|One day], {a} swam all alone. `[Look at me|I can swim]!` {a.he} shouted.",
      "`I knew you could do it!` said {b}[ proudly|].",
      "[{^a} was so proud.|From then on, the two swam together every day.|{^a} had learned that it is fine to be "
      "afraid, and better to try.]",
      END}},
    {"a cold winter day",
     PLOT_IS_A_THING | PLOT_HAS_FRIEND,
     {OPEN, TRAIT, "It was a cold winter day. [Snow fell from the sky.|The snow was deep.|Everything was white.]",
      "{^a} had a new scarf. {^a.his} grandmother had made it for {a.him}. It was [soft and warm|the warmest scarf of "
      "all].",
      "{^a} went for a walk {p.in}. There {a.he} met {b.intro}.",
      "{^b} was [shaking|cold] and had no scarf. `[I am so cold|My home is full of snow|I cannot get warm],` said {b}.",
      "{^a} [thought for a moment|looked at the new scarf]. [The wind was icy.|It was a long way home.]",
      "Then {a.he} took off the scarf and put it around {b}. `[You need it more than I do|Now you will be warm],` said "
      "{a}.",
      "`[But now you will be cold|But it is yours],` said {b}. `[I can run to stay warm|I have a warm home],` said "
      "{a}. `[Come with me|You can come "
      "too]!`",
      "They ran home together. {^a.his} grandmother [opened the door|was waiting]. `[Where is your scarf|Who is your "
      "friend]?` she asked.",
      "{^a} told her everything. Grandmother [smiled|was very proud]. `You have a warm heart,` she said.",
      "She gave them [hot soup|hot milk with honey|warm bread and tea], and they sat by the fire.",
      "[That evening|The next day], grandmother [took some wool and made a second scarf|made one more scarf]. Now both "
      "of them had one.",
      "[" FRIENDS "|And the winter did not feel so cold any more.]", END}},
    {"a present for Grandmother",
     PLOT_IS_A_THING | PLOT_HAS_FRIEND,
     {OPEN, "{^a} loved {a.his} grandmother very much. Soon it was her birthday, but {a} had no money for a present.",
      "`What can I do?` {a.he} asked {a.his} friend {b}.",
      "`You can make something,` said {b}. `[That is even better|I will help you].`",
      "So they went to look for things {p.in}. {^a} found [some feathers|a smooth stone|pretty leaves] {s1}, and {b} "
      "found [a long string|some "
      "flowers|a piece of wood] {s2}.",
      "[All day|For two days] {a} worked. {^a.he} [cut and glued and painted|tied and painted and sewed].",
      "[Once it fell apart, but {a.he} began again.|It was hard, and {a} almost gave up. `Try once more,` said {b}.|]",
      "At last it was done. It was [a little picture|a pretty necklace|a small boat|a box with flowers on it]. {^a} "
      "[wrapped it in paper|tied a "
      "ribbon around it].",
      "On the birthday, {a} gave it to {a.his} grandmother. `[I made it for you|I hope you like it],` {a.he} said.",
      "Grandmother opened it [slowly|carefully]. Then she had tears in her eyes. `[This is the nicest present of "
      "all|You made this with love|I will "
      "keep it always],` she said.",
      "She hugged {a} [and gave {a.him} {f.a}|for a long time].",
      "[{^a} learned that the best gifts come from the heart.|{^a} went to bed very happy that night.|`Thank you for "
      "your help,` {a} said to {b} "
      "later.]",
      END}},
    {"a key and a secret box",
     PLOT_HAS_FRIEND,
     {OPEN, TRAIT, ONE_DAY ", {a} found an old key {s1} {p.in}. [It was small and rusty.|It was golden and very old.]",
      "`[What does it open|Where does it belong]?` {a.he} [wondered|asked {a.self}].",
      "{^a.he} showed the key to {a.his} friend {b}. `[Let us find out|This is an adventure],` said {b}.",
      "They tried it on [the garden gate|the old shed|a wooden door], but it did not fit.",
      "Then they asked {h.a}. `[I have never seen this key|I remember that key],` said {h}. `[Try to look|You should "
      "look] {s2}.`",
      "[So they went there and looked|They ran there at once]. And there, [covered with leaves|under some dust|behind "
      "an old board], was an old wooden box!",
      "{^a} put the key in the lock and turned it. Click! [The box was open.|It fit!]",
      "Inside was {o.a} and a letter. The letter said: `[Who finds this should share it with a friend|This is for "
      "someone with a kind heart].`",
      "{^a} looked at {b}. `[It belongs to both of us|We found it together, so we will share it],` said {a}.",
      "`[That is fair|I like that],` said {b}. `[You keep it today, and I keep it tomorrow|Let us keep it in the box "
      "and play here every day].`",
      "[They put {o} back in the box and closed it.|They took {o} and ran home to tell everyone.] [It was their secret "
      "from then on.|It was the best day "
      "of the summer.|]",
      END}},
    {"a broken {q.n}",
     PLOT_IS_A_THING,
     {OPEN, "{^a.he} had {q.a}. {^a.he} played with it every day.",
      "[One day|One evening], {q} broke. {^a} [cried|was very sad]. `[It will never be the same|"
      "My {q.an} is broken],` {a.he} said.",
      "{^a.his} mother said, `[I know who can fix it|Somebody can fix it].` So {a} took {q} to {h.a} who lived near "
      "{p}.",
      "`Hello,` said {a}. `Can you fix my {q.n}, please? [I have no money|I can pay with {f.a}].`",
      "{^h} looked at it [closely|from all sides]. `[I can fix it, but I need your help|Yes, I can]. [Hold this|Give "
      "me that little piece],` {h.he} said.",
      "They worked together. {^a} [held the pieces|handed over the tools], and {h} [put everything together "
      "again|worked slowly and carefully].",
      "[After an hour|Before long], {q} was [whole again|as good as new]. `[Try it|There you are]!` said {h}.",
      "{^a} [tried it|played a little]. It [worked|was perfect]! `Thank you! [How can I thank you|What can I do for "
      "you]?`",
      "`[Come and visit me sometimes|You can help me in my garden|When somebody needs help, help them too],` said {h}.",
      "[A week later|The next day|Some days later], {a} saw {b.intro} {p.in}. {^b} had a broken [cup|chair|shoe] and "
      "was [sad|crying].",
      "`[I know what to do|Do not be sad],` said {a}. `[I learned how to fix things|I will help you].` And {a.he} did.",
      "[{^b} was so happy.|That made {b} smile again.] [Help goes around, thought {a}.|" FRIENDS "]", END}},
};
const unsigned tales_n_plots = COUNT(tales_plots);
