# SPDX-License-Identifier: MIT
# How long the context is without -c, and what is said where it is longer than the model knows.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
tiny model.gguf 1 chat
expect 0 whit inspect model.gguf --json
trained=$(python3 -c 'import json; print(json.load(open("out"))["context"])')
printf 'the land and the ocean and then an inn on the land. %.0s' {1..60} >text

# ---- perplexity: as trained, as its manual says
expect 0 whit perplexity model.gguf -f text -c "$trained" --json
cp out as_trained
for given in "" "-c 0" "-c -1"; do
    # shellcheck disable=SC2086
    expect 0 whit perplexity model.gguf -f text $given --json
    cmp -s out as_trained || complain "perplexity $given is not that of $trained tokens: $(cat out)"
done
expect 0 whit perplexity model.gguf -f text
grep -q "n_ctx=$trained" out || complain "perplexity: $(cat out)"
expect 0 whit perplexity model.gguf -f text -c $((trained * 2)) --json
cmp -s out as_trained && complain "-c makes no difference"
one_line "trained for $trained"

# ---- run and chat: said once, on stderr, and nothing where the context is as trained
expect 0 whit run model.gguf 'the land' -n 4 -c $((trained + 1))
grep -q "the context has $((trained + 1)) tokens, but the model was trained for $trained" err || complain "run: $(cat err)"
printf 'the land\n' | whit chat model.gguf -n 4 -c $((trained + 1)) >out 2>err
grep -q "trained for $trained" err || complain "chat: $(cat err)"
expect 0 whit run model.gguf 'the land' -n 4 -c "$trained"
grep -q "trained" err && complain "a remark without a cause: $(cat err)"
finish
