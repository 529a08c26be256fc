# SPDX-License-Identifier: MIT
# The examples run on the small model and do what their first lines say.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache
example() {
    local name=$1
    shift
    # shellcheck disable=SC2086 # the emulator is a command with arguments
    ${EMULATOR:-} "$BUILD/examples/$name" "$@"
}
tiny model.gguf

expect 0 example open model.gguf
grep -q '^tiny: vocabulary 310, width 64' out || complain "open: $(cat out)"
expect 1 example open absent.gguf
one_line absent.gguf
one_line "No such file"
expect 0 example open tales
grep -q '^tales: vocabulary' out || complain "the built-in model: $(cat out)"
expect 0 example generate model.gguf "the land"
cp out first
expect 0 example generate model.gguf "the land"
cmp -s <(head -n 1 first) <(head -n 1 out) || complain "generate: the same seed gave another text"
expect 0 example stream model.gguf "and then"
[ "$(grep -c '^[01]: and then' out)" = 2 ] || complain "stream: $(cat out)"
expect 0 example embed model.gguf "the land" "the land"
grep -q 'similarity 1.000000' out || complain "embed: $(cat out)"
expect 0 example embed model.gguf "the land" "an ocean"
grep -q 'similarity 1.000000' out && complain "embed: different texts look the same"
expect 0 example batch model.gguf "the land"
[ "$(grep -ac '^[0-7]: the land' out)" = 8 ] || complain "batch: $(cat out)"
printf 'the land\nand then\n' >questions
tiny chat.gguf 1 chat
example chat chat.gguf <questions >out 2>err || complain "chat: $(cat err)"
[ "$(wc -l <out)" -ge 2 ] || complain "chat: two answers: $(cat out)"
expect 1 example chat model.gguf
one_line template
# Two calls, their results, and an answer.
expect 0 example conversation chat.gguf "How is it?"
grep -Eq '^weather\(\{"city": *"(Bern|Rome)"\}\): 18 degrees, rain$' out && grep -Eq '^clock\(\{ *\}\): 12:30$' out ||
    complain "conversation: $(cat out)"
[ "$(wc -l <out)" = 3 ] && tail -n 1 out | grep -q '^{"role": "assistant", "content": "' || complain "its answer: $(cat out)"
expect 1 example conversation model.gguf x
one_line template
# The first program of the page on embedding, as it stands there; a sanitized library cannot be loaded by a plain program.
if [ -z "${EMULATOR:-}" ] && [ -f "$BUILD/libwhit.so" ] && ! grep -qE 'WHIT_SANITIZE_[A-Z]*:BOOL=ON' "$BUILD/CMakeCache.txt"
then
    sed -n '/^```c$/,/^```$/p' "$SOURCE/docs/use/embedding.md" | sed '1d;/^```$/,$d' >app.c
    "$CC" -Wall -Wextra -Werror -I"$SOURCE/include" app.c -L"$BUILD" -lwhit -Wl,-rpath,"$BUILD" -o app 2>err ||
        complain "the program of embedding.md: $(cat err)"
    ./app >out 2>err && [ "$(wc -c <out)" -gt 40 ] || complain "it says: $(cat out err)"
fi
# The same text is C++.
if command -v c++ >/dev/null; then
    for name in batch chat conversation embed; do
        c++ -std=c++17 -Wall -Wextra -Werror -x c++ -fsyntax-only -I"$SOURCE/include" "$SOURCE/examples/$name.c" ||
            complain "$name.c is not C++"
        [ "$(wc -l <"$SOURCE/examples/$name.c")" -lt 60 ] || complain "$name.c has 60 lines or more"
    done
fi
for _ in 1 2 3 4 5 6 7 8; do echo "the land and the time of an ocean, then the end."; done >text
expect 0 whit tune -m model.gguf --text text --steps 20 --rate 0.01 --sequences 2 -c 16 --rank 4 -o voice.ndf
expect 0 example adapters model.gguf voice.ndf "the land"
[ "$(grep -c ': the land' out)" = 2 ] || complain "adapters: $(cat out)"
[ "$(sed -n 's/^without: //p' out)" != "$(sed -n 's/^with it: //p' out)" ] || complain "adapters: both say the same"
finish
