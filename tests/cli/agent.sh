# SPDX-License-Identifier: MIT
# whit agent: a patch is shown, asked about, written as a turn and taken back; what it may not do.
. "$SOURCE/tests/cli/lib.sh"
rm -rf project state before outside
mkdir -p project/src project/.git project/tests
export XDG_STATE_HOME=$PWD/state
printf 'int main(void)\n{\n    return 0;\n}\n' >project/src/main.c
printf 'void test(void)\n{\n    assert(1);\n}\n' >project/tests/t.c
cp -r project before
cat >good.patch <<'END'
src/main.c
<<<<<<< SEARCH
int main(void)
{
    return 0;
=======
int main(void)
{
    return 1;
>>>>>>> REPLACE
END
# Without anybody to ask nothing is written, and the difference is shown.
expect 1 setsid -w "$WHIT" agent apply good.patch --project project
grep -q '^+    return 1;' out || complain "the difference is not shown: $(cat out)"
cmp -s project/src/main.c before/src/main.c || complain "written without being agreed to"
expect 0 whit agent apply good.patch --project project --allow yellow --preview
cmp -s project/src/main.c before/src/main.c || complain "a preview writes"
expect 2 whit agent -p task -m model.ndf --project project --preview
one_line "is for apply, undo and redo"
expect 0 whit agent apply good.patch --project project --allow yellow
grep -q 'return 1;' project/src/main.c || complain "not written"
expect 0 whit agent apply good.patch --project project --allow yellow
grep -q 'applied already\|unchanged' err || complain "a patch that is there already: $(cat err)"
expect 0 whit agent log --project project --json
python3 -c 'import json; t = json.load(open("out")); assert [x["turn"] for x in t] == [1] and t[0]["files"] == 1, t' || complain "the log: $(cat out)"
expect 0 whit agent undo --project project
cmp -s project/src/main.c before/src/main.c || complain "undo does not give the bytes back"
expect 0 whit agent redo --project project
grep -q 'return 1;' project/src/main.c || complain "redo"
expect 0 whit agent undo --project project
expect 2 whit agent undo 99 --project project
expect 2 whit agent undo x --project project
expect 2 whit agent dance --project project

# Streams that are closed: no file gets their numbers, so that neither a message nor a difference is written into one.
for closed in '2>&-' '>&-' '<&-' '<&- >&- 2>&-'; do
    rm -rf state
    eval "whit agent apply good.patch --project project --allow yellow $closed" >/dev/null 2>&1 || [ $? = 5 ] ||
        complain "closed $closed: the patch"
    grep -q 'return 1;' project/src/main.c || complain "closed $closed: not written"
    expect 0 whit agent undo --project project
    cmp -s project/src/main.c before/src/main.c || complain "closed $closed: undo does not give the bytes back"
done

# A diff deletes a file whose lines it has, no other.
printf -- '--- a/src/main.c\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-int main(void)\n-{\n' >stale.patch
sed 's/^/-/; 1i--- a/src/main.c\n+++ /dev/null\n@@ -1,4 +0,0 @@' project/src/main.c >whole.patch
expect 3 whit agent apply stale.patch --project project --allow yellow
one_line "more lines than the patch deletes"
cmp -s project/src/main.c before/src/main.c || complain "a stale diff deletes"
expect 1 setsid -w "$WHIT" agent apply whole.patch --project project --allow yellow
grep -q "it deletes a file, and nobody is there" err || complain "a diff that deletes: $(cat err)"

# Typed tasks: a slip of a command is none, and changes nothing.
if grep -q 'WHIT_HAVE_CURL *1' "$BUILD/generated/whit_config.h"; then
    expect 0 whit agent redo --project project
    printf '/undo1\n/undone\n' | whit agent --url http://127.0.0.1:1/v1 --project project >out 2>err ||
        complain "slips: $(cat err)"
    [ "$(grep -c 'is not a command' err)" = 2 ] || complain "slips: $(cat err)"
    grep -q '/undo1 is not a command; did you mean /undo; /help lists them' err || complain "slips: $(cat err)"
    grep -q 'return 1;' project/src/main.c || complain "/undo1 undoes"
    printf '/undo\n/redoing\n' | whit agent --url http://127.0.0.1:1/v1 --project project >out 2>err ||
        complain "/undo: $(cat err)"
    cmp -s project/src/main.c before/src/main.c || complain "/undo does not undo, or /redoing does"
    whit agent --url http://127.0.0.1:1/v1 --project project <project >out 2>err
    [ $? = 5 ] || complain "an input that cannot be read: $(cat err)"
    grep -q "stdin: cannot read" err || complain "an input that cannot be read: $(cat err)"
fi

# An editor gives the tasks, of one model.
expect 2 whit agent --acp -p x --project project
one_line "cannot be combined with -p"
expect 2 whit agent --acp -p x --url http://127.0.0.1:1/v1 --project project
one_line "cannot be combined with -p"
expect 2 whit agent log --acp --project project
one_line "'log'"
expect 0 whit agent --acp --project project </dev/null # sessions look for a server when they begin
expect 2 whit agent --acp -m a.gguf --url http://127.0.0.1:1/v1 --project project
one_line "give one model"

# What always needs a person, whatever is allowed: deletion, configuration, fewer checks in a test.
cat >red1.patch <<'END'
*** Begin Patch
*** Delete File: src/main.c
*** End Patch
END
cat >red2.patch <<'END'
*** Begin Patch
*** Add File: .git/config
+[core]
*** End Patch
END
cat >red3.patch <<'END'
--- a/tests/t.c
+++ b/tests/t.c
@@ -2,3 +2,3 @@
 {
-    assert(1);
+    (void)0;
 }
END
cat >red4.patch <<'END'
*** Begin Patch
*** Add File: ../outside
+x
*** End Patch
END
for i in 1 2 3 4; do
    setsid -w "$WHIT" agent apply red$i.patch --project project --allow yellow >out 2>err && complain "red$i was written"
    diff -r project before >/dev/null || complain "red$i changed something: $(diff -r project before)"
done
[ ! -e outside ] || complain "written outside"
# A patch that cannot be applied is a refused file, not a wrong command line.
expect 3 whit agent apply red4.patch --project project --allow yellow
one_line "outside"
printf '*** Begin Patch\n*** Add File: src/main.c\n+x\n*** End Patch\n' >there.patch
expect 3 whit agent apply there.patch --project project --allow yellow
one_line "it exists already"
for path in .git/hooks/pre-commit sub/.gitlab-ci.yml .circleci/config.yml Jenkinsfile .travis.yml azure-pipelines.yml \
    .idea/workspace.xml .vscode/tasks.json .devcontainer/devcontainer.json .exrc sub/.editorconfig .envrc .env.local \
    .husky/pre-commit .pre-commit-config.yaml CLAUDE.md .cursor/rules; do
    printf '*** Begin Patch\n*** Add File: %s\n+x\n*** End Patch\n' "$path" >red.patch
    setsid -w "$WHIT" agent apply red.patch --project project --allow yellow >out 2>err && complain "$path was written"
    grep -q "$path: it belongs to the project's configuration" err || complain "$path: $(cat err)"
done
diff -r project before >/dev/null || complain "configuration was changed: $(diff -r project before)"
for path in environment.c git.c .gitignore src/Jenkins; do
    printf '*** Begin Patch\n*** Add File: %s\n+x\n*** End Patch\n' "$path" >plain.patch
    expect 0 whit agent apply plain.patch --project project --allow yellow
done
printf 'nonsense\n' | whit agent apply - --project project >out 2>err && complain "nonsense is a patch"
one_line "not a patch"
finish
