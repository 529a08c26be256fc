# SPDX-License-Identifier: MIT
# The machine's profile: used silently, never changes a result, ignored where it is damaged, removed where it is stale.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache
tiny model.gguf
say='whit run model.gguf -p the -n 60 --raw --temp 0.7 --seed 3 --no-stats'
expect 0 env WHIT_PROFILE=off $EMULATOR $WHIT run model.gguf -p the -n 60 --raw --temp 0.7 --seed 3 --no-stats
mv out plain
expect 0 whit doctor --json
cp out report
file=$(python3 -c 'import json; print(json.load(open("report"))["profile"]["file"])')
grep -q '"state": "absent"' report || complain "doctor: $(grep -A5 '"profile"' out)"

# write_profile VERSION "NAME VALUE GAIN"...: a profile of this machine.
write_profile() {
    python3 - "$file" report "$@" <<'END' || complain "no profile"
import hashlib, json, re, sys
path, report, version, *values = sys.argv[1:]
report = json.load(open(report))
cores, threads, memory = re.search(r"-(\d+)-(\d+)-(\d+)g\.txt$", path).groups()
text = "whit profile 1\nversion %s\nprocessor %s %s, %s cores, %s threads, %s GB\n%s\n" % (
    version, report["processor"][:60], report["isa"], cores, threads, memory, "\n".join(values))
check = hashlib.blake2b(text.encode(), digest_size=32, person=b"whit-profile".ljust(16, b"\0")).hexdigest()
open(path, "w").write(text + "check %s\n" % check)
END
}
version=$(python3 -c 'import json; print(json.load(open("report"))["version"])')
write_profile "$version" 'threads 3 1.500' 'ubatch 5 1.200' 'guesses 2 1.100'
cp "$file" whole
expect 0 $say
cmp -s out plain || complain "another text with a profile"
[ -s err ] && complain "the profile is not silent: $(cat err)"
expect 0 $say -t 1 -ub 2 --spec 0
cmp -s out plain || complain "another text with options"
expect 0 whit doctor
grep -q 'profile      in use: threads 3, ubatch 5, guesses 2' out || complain "doctor: $(grep profile out)"
expect 0 env WHIT_PROFILE=off $EMULATOR $WHIT doctor
grep -q 'profile      switched off' out || complain "doctor: $(grep profile out)"

# A damaged profile is one line, and ignored; a stale one goes.
sed 's/threads 3/threads 4/' whole >"$file"
expect 0 $say
cmp -s out plain || complain "another text with a damaged profile"
one_line "is damaged and ignored"
write_profile "$version" 'threads 4000000000 1.500' 'ubatch 5 1.200' 'guesses 2 1.100'
expect 0 $say
one_line "is damaged and ignored"
write_profile 0.0.1 'threads 3 1.500' 'ubatch 5 1.200' 'guesses 2 1.100'
expect 0 $say
cmp -s out plain || complain "another text with a stale profile"
[ -s err ] && complain "a stale profile is not silent: $(cat err)"
[ -e "$file" ] && complain "the stale profile is still there"
finish
