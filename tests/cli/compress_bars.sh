# SPDX-License-Identifier: MIT
# prose-6M under a budget of bits, without tuning: mean KL of the file on held-out text of its own books and of others.
# The bound on other text is a multiple of the bound on its own, so that a file that gets nearer on its own alone passes.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
shared=${WHIT_SHARED_DIR:-$SOURCE/../shared}
prose=$shared/models/prose-6M
[ -f "$prose/calibration.txt" ] && [ -f "$shared/corpora/wiki.test.raw" ] || {
    echo "[ SKIPPED ] there is no prose-6M in $shared"
    exit 0
}
rm -rf cache ./*.ndf ./*.work
head -c 80000 "$shared/corpora/wiki.test.raw" >wiki

while read -r bits own wiki; do
    expect 0 whit compress "$prose/prose-6M-f16.gguf" --bits "$bits" --calib "$prose/calibration.txt" -o mixed.ndf
    expect 0 whit compare "$prose/prose-6M-f16.gguf" mixed.ndf -c 256 -f "$prose/own.txt" -f wiki --json
    python3 - "$bits" "$own" "$wiki" <<'END' || complain "$bits bits: $(cat out)"
import json, sys
bits, own, wiki = map(float, sys.argv[1:])
files = [text["files"][0] for text in json.load(open("out"))["texts"]]
print(f"{bits} bits: {files[0]['kld_mean']:.5f} on own.txt, {files[1]['kld_mean']:.5f} on wiki")
assert files[0]["body_bits_per_weight"] <= bits + 1e-3, files[0]
assert files[0]["kld_mean"] <= own and files[1]["kld_mean"] <= wiki * own, files
END
done <<'BARS'
2.4 0.0035 1.7
BARS
finish
