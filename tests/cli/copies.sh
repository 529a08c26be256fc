# SPDX-License-Identifier: MIT
# The cache of converted sources shows itself: where a copy goes, list, rm, and why there is none.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache sub other.gguf own.ndf
mkdir sub
tiny model.gguf
tiny sub/second.gguf 2 tied

# ---- the first conversion says where the copy goes and how large it is; the next says nothing
expect 0 whit list
grep -q "nothing is here yet" err || complain "an empty list: $(cat err)"
expect 0 whit run model.gguf the -n 2 --no-stats
one_line "model.gguf: converted once, into $PWD/cache/whit/[0-9a-f]*.ndf (.* kB)"
expect 0 whit run model.gguf the -n 2 --no-stats
[ ! -s err ] || complain "the second run: $(cat err)"
expect 0 whit run model.gguf the -n 2 --no-stats --no-cache
[ ! -s err ] || complain "--no-cache: $(cat err)"
expect 0 whit inspect sub/second.gguf

# ---- an .ndf is used where it lies
expect 0 whit convert model.gguf -o own.ndf
copies=$(find cache -name '*.ndf' | wc -l)
expect 0 whit run own.ndf the -n 2 --no-stats
[ "$(find cache -name '*.ndf' | wc -l)" = "$copies" ] || complain "an .ndf was copied into the cache"

# ---- list and rm
expect 0 whit list
grep -q "^$PWD/model.gguf .* kB  converted" out || complain "list: $(cat out)"
grep -q "^$PWD/sub/second.gguf " out || complain "list: $(cat out)"
expect 0 whit list --json
python3 -c 'import json, os
rows = json.load(open("out"))
assert len(rows) == 2 and all(os.path.getsize(r["path"]) == r["bytes"] and r["format"] == "converted" for r in rows), rows' ||
    complain "list --json: $(cat out)"
expect 0 whit rm model.gguf
grep -q "freed .* kB, .* the model itself stays" out || complain "rm: $(cat out)"
[ -s model.gguf ] || complain "rm removed the model itself"
[ "$(find cache -name '*.ndf' | wc -l)" = 1 ] || complain "rm left the copy: $(ls cache/whit)"
expect 2 whit rm model.gguf
one_line "has no converted copy"
expect 5 whit rm sub
[ -s sub/second.gguf ] || complain "rm removed a folder's file"
rm sub/second.gguf
expect 0 whit list
grep -q "^$PWD/sub/second.gguf .* orphan" out || complain "an orphan: $(cat out)"
expect 0 whit rm "$PWD/sub/second.gguf"
[ "$(find cache -name '*.ndf' | wc -l)" = 0 ] || complain "rm of an orphan"
# An edited source is converted again: both copies are found by its name.
expect 0 whit inspect model.gguf
touch -d '2001-01-01' model.gguf
expect 0 whit inspect model.gguf
[ "$(find cache -name '*.ndf' | wc -l)" = 2 ] || complain "an edited source: $(ls cache/whit)"
expect 0 whit list --names
[ "$(grep -c "^$PWD/model.gguf$" out)" = 1 ] || complain "a source with two copies: $(cat out)"
expect 0 whit list --json
python3 -c 'import glob, json, os
row, = json.load(open("out"))
copies = glob.glob("cache/whit/*.ndf")
assert row["bytes"] == sum(map(os.path.getsize, copies)) and os.path.relpath(row["path"]) in copies, row' ||
    complain "list of two copies: $(cat out)"
expect 0 whit rm model.gguf
[ "$(find cache -name '*.ndf' | wc -l)" = 0 ] || complain "rm of two copies"
grep -q ", 2 copies that were converted from it; the model itself stays" out || complain "rm of two copies: $(cat out)"
# One that a process is about to use stays, and rm says so.
expect 0 whit inspect model.gguf
lock=$(find cache -name '*.ndf' | sed 's/ndf$/lock/')
python3 - "$lock" $EMULATOR "$WHIT" rm model.gguf 2>err <<'END' || complain "rm of a copy that is locked: $(cat err)"
import fcntl, subprocess, sys
with open(sys.argv[1], "r+") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    sys.exit(subprocess.run(sys.argv[2:]).returncode != 5)
END
one_line "another process uses the converted copy"
[ "$(find cache -name '*.ndf' | wc -l)" = 1 ] || complain "rm of a copy that is locked removed it"
expect 0 whit rm model.gguf

# ---- a name that is not UTF-8: listed like others, and in JSON with U+FFFD
odd=$(printf 'm\350.gguf')
cp model.gguf "$odd"
expect 0 whit convert "$odd" -o odd.ndf --json
python3 -c 'import json; r = json.load(open("out", encoding="utf-8")); assert r["source"] == "m\ufffd.gguf", r' ||
    complain "convert --json: $(cat out)"
expect 0 whit inspect "$odd"
expect 0 whit list
[ "$(grep -c ' kB  converted' out)" = 1 ] || complain "list of a name that is not UTF-8: $(cat out)"
expect 0 whit rm "$odd"
[ "$(find cache -name '*.ndf' | wc -l)" = 0 ] || complain "rm of a name that is not UTF-8"
rm "$odd" odd.ndf

# ---- a cache that cannot be used is said by the run and by doctor
place=/dev/null
expect 0 env XDG_CACHE_HOME=$place $EMULATOR "$WHIT" run model.gguf the -n 2 --no-stats
one_line "converted in memory, and again next time"
XDG_CACHE_HOME=$place whit doctor --json >out 2>err
grep -q "$place/whit.*converted again each time" out || complain "doctor with the cache in $place: $(head -n 9 out)"
chmod 755 cache/whit
expect 0 whit run model.gguf the -n 2 --no-stats
one_line "converted in memory" "chmod 700"
expect 0 whit doctor --json
grep -q "chmod 700" out || complain "doctor: $(head -n 9 out)"
finish
