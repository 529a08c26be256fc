# SPDX-License-Identifier: MIT
# What a type of KV cache costs: perplexity --kv-base compares two caches of one model.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache
tiny model.gguf
expect 0 whit convert model.gguf -o model.ndf
for i in $(seq 40); do echo "the land and the ice of the north, he said, and then no more $i"; done >text
check() {
    python3 - "$@" <<'END' || complain "$*: $(cat out)"
import json, sys
facts, (low, high) = json.load(open("out")), map(float, sys.argv[1:3])
assert low <= facts["kld_mean"] <= high, facts
assert abs(facts["ppl"] / facts["ppl_base"] - facts["ppl_ratio"]) < 1e-9
assert (facts["ppl_ratio"] == 1) == (high == 0), facts
END
}
for kv in f32 f16 i8; do
    expect 0 whit perplexity -m model.ndf -f text -c 128 --second-half --kv $kv --kv-base f32 --json
    case $kv in
    f32) check 0 0 ;;
    f16) check 1e-14 1e-5 ;;
    i8) check 1e-9 1e-3 ;;
    esac
done
expect 2 whit perplexity -m model.ndf -f text --kv-base f32 --kl-base model.ndf
one_line 'one of them'
expect 0 whit perplexity -m model.ndf -f text -c 128 --kv i8 --kv-base f16
grep -q 'Base: PPL = .*, ratio .*, mean KLD = ' out || complain "$(cat out)"
finish
