# SPDX-License-Identifier: MIT
# pull, list, rm, and the other verbs by a model's name, against a hub on this machine.
. "$SOURCE/tests/cli/lib.sh"
serve=$1
whit doctor --json 2>/dev/null | grep -q '"hub_library": "libcurl' || { echo "no libcurl: no downloads to test"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache HF_HOME=$PWD/none no_proxy=127.0.0.1
unset HF_TOKEN HF_TOKEN_PATH
rm -rf cache files
mkdir files
tiny files/tiny-f32.gguf
tiny files/other-q8_0.gguf 2
hub=""
# start [BYTES_PER_SECOND]: the hub, its address in HF_ENDPOINT, its requests in the file requests.
start() {
    rm -f pipe address
    mkfifo pipe
    $EMULATOR "$serve" "${repository:-owner/tiny-GGUF}" files "$@" <pipe >address 2>requests &
    hub=$!
    exec 9>pipe
    while [ ! -s address ]; do sleep 0.05; done
    HF_ENDPOINT=$(cat address)
    export HF_ENDPOINT
}
stop() {
    exec 9>&-
    wait "$hub"
}

start
expect 2 whit pull owner/tiny-GGUF
one_line "other-q8_0.gguf, tiny-f32.gguf"
expect 0 whit pull owner/tiny-GGUF:f32
[ "$(wc -l <out)" = 1 ] && cmp -s "$(cat out)" files/tiny-f32.gguf || complain "pull: $(cat out)"
one_line "1 file"
expect 0 whit pull owner/tiny-GGUF:F32 --json
python3 -c 'import json; r = json.load(open("out")); assert r["fetched_bytes"] == 0 and r["files"] == 1 and r["name"] == "owner/tiny-GGUF"' ||
    complain "pull --json: $(cat out)"

expect 0 whit pull "$HF_ENDPOINT/owner/tiny-GGUF/blob/main/tiny-f32.gguf" --json
python3 -c 'import json; r = json.load(open("out")); assert r["fetched_bytes"] == 0 and r["name"] == "owner/tiny-GGUF"' ||
    complain "pull of an address: $(cat out)"

# ---- by name, in every place where a model is wanted
cp files/tiny-f32.gguf here.gguf
expect 0 whit run -m here.gguf -p 'the land' --temp 0 -n 8 -c 64
cp out text
for name in owner/tiny-GGUF tiny-GGUF tiny-GGUF:f32 owner/tiny-GGUF:tiny-f32.gguf; do
    expect 0 whit run -m "$name" -p 'the land' --temp 0 -n 8 -c 64
    cmp -s out text || complain "-m $name gave another text"
done
# The library finds the same names.
for name in owner/tiny-GGUF tiny-GGUF:f32; do
    expect 0 "$BUILD/examples/open" "$name"
    grep -q '^tiny: vocabulary 310' out || complain "the library opens $name: $(cat out)"
done
expect 1 "$BUILD/examples/open" nobody/nothing
one_line "nobody/nothing: is not downloaded"
expect 0 whit inspect tiny-GGUF
expect 0 whit convert tiny-GGUF -o model.ndf
expect 0 whit export tiny-GGUF -o again.gguf
mkdir -p owner
cp here.gguf owner/tiny-GGUF # a file of that name comes first
expect 0 whit inspect owner/tiny-GGUF --json
grep -q '"path": "owner/tiny-GGUF"' out || complain "a file should come before a name"
rm -r owner
expect 5 whit run -m nobody/nothing -p x
one_line "whit pull nobody/nothing"
expect 5 whit run -m nothing -p x
one_line "whit list"
expect 5 whit run -m ./nothing.gguf -p x
one_line "./nothing.gguf"
expect 5 whit run -m tiny-GGUF@v2 -p x
one_line "tiny-GGUF@v2"

# ---- list
expect 0 whit pull owner/tiny-GGUF:q8_0
expect 0 whit list
[ "$(grep -c GGUF: out)" = 2 ] && grep -q '^owner/tiny-GGUF:tiny-f32.gguf .* GGUF ' out || complain "list: $(cat out)"
expect 0 whit list --json
python3 - <<'END' || complain "list --json: $(cat out)"
import json, os
rows = [row for row in json.load(open("out")) if row["format"] == "GGUF"]
assert [row["name"].split(":")[1] for row in rows] == ["other-q8_0.gguf", "tiny-f32.gguf"]
assert all(row["bytes"] == os.path.getsize(row["path"]) and row["finished"] and len(row["date"]) == 20 for row in rows)
END
expect 2 whit run -m tiny-GGUF -p x
one_line "choose one, as REPO:FILE"

# ---- rm takes what was converted along, and nothing else
n_converted=$(find cache/whit -maxdepth 1 -name '*.ndf' | wc -l)
expect 0 whit rm tiny-GGUF:f32
grep -q 'freed .* kB, and .* kB converted from it' out || complain "rm: $(cat out)"
[ "$(find cache/whit -maxdepth 1 -name '*.ndf' | wc -l)" = $((n_converted - 1)) ] || complain "rm left the converted file"
expect 0 whit rm owner/tiny-GGUF
expect 0 whit list --json
grep -q GGUF: out && complain "rm left $(cat out)"
expect 0 whit rm ./here.gguf # its converted copy
expect 2 whit rm here.gguf
one_line "here.gguf"
[ -s here.gguf ] || complain "rm removed a file of the user"

# ---- mistakes and refusals
expect 2 whit pull 'not a name'
expect 2 whit pull owner/tiny-GGUF --revision ../x
expect 5 whit pull owner/absent
one_line "404"
expect 2 env HF_ENDPOINT=gopher://x $EMULATOR "$WHIT" pull owner/tiny-GGUF
one_line "HF_ENDPOINT"
(
    ulimit -f 100 # in KiB; the file has 400
    expect 5 whit pull owner/tiny-GGUF:f32
    one_line "resumes after them"
    exit $failed
) || failed=1
stop

# ---- killed in the middle, by a signal that no program sees: the next pull goes on
expect 0 whit rm owner/tiny-GGUF
start 200000
# shellcheck disable=SC2086 # the emulator is a command with arguments
$EMULATOR "$WHIT" pull owner/tiny-GGUF:f32 >out 2>err &
part=cache/whit/hub/owner--tiny-GGUF/tiny-f32.gguf.part
while kill -0 $! 2>/dev/null && [ ! -s $part ]; do sleep 0.05; done
kill -9 $!
wait $! 2>/dev/null
have=$(stat -c %s $part 2>/dev/null || echo 0)
[ "$have" -gt 0 ] && [ "$have" -lt "$(stat -c %s files/tiny-f32.gguf)" ] || complain "killed with $have bytes"
expect 5 whit run -m tiny-GGUF:f32 -p x
one_line "not finished"
expect 0 whit list
grep -q unfinished out || complain "list of an unfinished download: $(cat out)"
grep -q ' 0 bytes' out && complain "an unfinished download seems to be lost: $(cat out)"
stop
start 2000000
expect 0 whit pull owner/tiny-GGUF:f32
cmp -s "$(cat out)" files/tiny-f32.gguf || complain "after the kill: $(cat err)"
grep -q "range=bytes=$have-" requests || complain "it did not go on at $have: $(cat requests)"
stop

# ---- a token, which the second port never hears
export WANTED_TOKEN=hf_secret
start
expect 0 whit rm tiny-GGUF
expect 5 whit pull owner/tiny-GGUF:f32
one_line "HF_TOKEN"
expect 5 whit pull owner/tiny-GGUF:f32 --token wrong
one_line "401"
mkdir -p token
echo hf_secret >token/token
expect 0 env HF_HOME="$PWD/token" $EMULATOR "$WHIT" pull owner/tiny-GGUF:f32
expect 0 whit rm tiny-GGUF
expect 0 env HF_TOKEN=hf_secret $EMULATOR "$WHIT" pull owner/tiny-GGUF:f32
grep -q '^2 .*auth=$' requests || complain "no request to the second port: $(cat requests)"
grep '^2 ' requests | grep -q secret && complain "the token went to the second port"
stop
unset WANTED_TOKEN

# ---- a folder by its name: Gemma 4's mobile form, with the licence that the hub names
mobile=$SHARED/models-tiny/gemma4-mobile/ct
if [ -r "$mobile/config.json" ]; then
    rm -r files
    mkdir files
    cp "$mobile"/* files/
    export LICENCE=apache-2.0 repository=google/gemma-4-E2B-it-qat-mobile-ct
    start
    expect 0 whit pull "$repository"
    one_line "2 files" "licence apache-2.0"
    expect 0 whit pull "$repository" --json
    python3 -c 'import json; assert json.load(open("out"))["licence"] == "apache-2.0"' || complain "pull --json: $(cat out)"
    expect 0 whit inspect gemma-4-E2B-it-qat-mobile-ct --json
    grep -q '"family": "gemma4"' out || complain "inspect of a mobile folder: $(cat out)"
    stop
fi
finish
