# SPDX-License-Identifier: MIT
"""Turns in a dirty git work tree: each is a commit under refs/whit, and nothing else of git's has changed.
usage: git.py WHIT TURNS HAS_CURL"""
import hashlib
import os
import random
import shutil
import subprocess
import sys

import checks
from checks import wanted
from endpoint import Endpoint, at_terminal, message

WHIT, TURNS, HAS_CURL = sys.argv[1], int(sys.argv[2]), sys.argv[3] != "0"


env = dict(os.environ, no_proxy="*", HOME=os.path.abspath("home"), XDG_STATE_HOME=os.path.abspath("state"), GIT_CONFIG_NOSYSTEM="1",
           GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")


def git(*words, check=True):
    return subprocess.run(["git", "-C", "repo", *words], env=env, check=check, capture_output=True, text=True).stdout


def whit(*words, patch=None, project="repo/sub"):
    done = subprocess.run([WHIT, "agent", *words, "--project", project], env=env, input=patch, capture_output=True, text=True)
    wanted(done.returncode == 0, f"{words}: {done.stderr}")
    return done


for folder in ("repo", "state", "home"):
    shutil.rmtree(folder, ignore_errors=True)
os.makedirs("repo/sub")
os.makedirs("home")
git("init", "-q", "-b", "main")
for name in ("kept", "staged", "changed", "sub/one", "sub/two", "run"):
    open(f"repo/{name}", "w").write(f"{name}\n0\n")
os.chmod("repo/run", 0o755)
open("repo/.gitignore", "w").write("*.o\n")
git("add", ".")
git("commit", "-qm", "first")
open("repo/changed", "w").write("to stash\n")
git("stash", "-q")
open("repo/staged", "a").write("staged\n")
git("add", "staged")
open("repo/changed", "a").write("dirty\r\n")
open("repo/untracked", "w").write("new\n")
open("repo/sub/x.o", "w").write("object\n")
os.symlink("kept", "repo/link")


def state():
    """Everything that must not change: git's files but for its objects and our reference, files that no turn writes."""
    hashes = {}
    for at, _, files in os.walk("repo"):
        for name in files:
            path = os.path.join(at, name)
            if path.startswith("repo/.git/objects") or path.startswith("repo/.git/refs/whit") or path in ("repo/sub/one", "repo/sub/two", "repo/sub/new"):
                continue
            info = os.lstat(path)
            content = os.readlink(path).encode() if os.path.islink(path) else open(path, "rb").read()
            hashes[path] = (info.st_mode, hashlib.sha256(content).hexdigest())
    return hashes


before = state()
lines = [git(*x.split()) for x in ("stash list", "rev-parse HEAD", "diff --cached", "diff -- changed")]
rng = random.Random(1)
contents = {"one": "sub/one\n0\n", "two": "sub/two\n0\n"}
n, back = 0, 0
while n < TURNS:
    kind = rng.random()
    name = rng.choice(["one", "two"])
    if kind < 0.1 and back == 0 and n > 1:
        whit("undo")
        back = 1
    elif back:
        whit("redo")
        back = 0
    else:
        lines_now = contents[name].splitlines(keepends=True)
        patch = f"{name}\n<<<<<<< SEARCH\n{lines_now[1]}=======\n{n + 1}\n>>>>>>> REPLACE\n"
        whit("apply", "-", "--allow", "yellow", patch=patch)
        contents[name] = lines_now[0] + f"{n + 1}\n"
    n += 1
if back:
    whit("redo")
    n += 1
wanted(state() == before, f"changed: {[p for p in before if state().get(p) != before[p]]} {[p for p in state() if p not in before]}")
wanted([git(*x.split()) for x in ("stash list", "rev-parse HEAD", "diff --cached", "diff -- changed")] == lines, "stash, HEAD, index")
wanted(int(git("rev-list", "--count", "HEAD..refs/whit/turns")) == n, f"commits: {git('rev-list', '--count', 'HEAD..refs/whit/turns')} of {n}")
for name in contents:
    wanted(open(f"repo/sub/{name}").read() == contents[name] == git("show", f"refs/whit/turns:sub/{name}"), f"the tree of the last turn: {name}")
wanted(git("show", "refs/whit/turns:changed") == "changed\n0\n" and git("fsck", "--strict") == "", "the tree beside it")
wanted("100755" in git("ls-tree", "refs/whit/turns", "run"), "modes")

# Files that git ignores stay out; where git takes nothing, the turn is written all the same, and that is said.
whit("apply", "-", "--allow", "yellow", patch="x.o\n<<<<<<< SEARCH\nobject\n=======\nother\n>>>>>>> REPLACE\n")
wanted("x.o" not in git("ls-tree", "-r", "refs/whit/turns"), "an ignored file is committed")
git("update-ref", "-d", "refs/whit/turns")
shutil.rmtree("repo/.git/refs/whit", ignore_errors=True)
open("repo/.git/refs/whit", "w").write("in the way")
done = whit("apply", "-", "--allow", "yellow", patch="x.o\n<<<<<<< SEARCH\nother\n=======\nthird\n>>>>>>> REPLACE\n")
done = whit("apply", "-", "--allow", "yellow", patch="new\n<<<<<<< SEARCH\n=======\nthird\n>>>>>>> REPLACE\n")
wanted("refs/whit/turns" in done.stderr and open("repo/sub/new").read() == "third\n", f"a repository that takes nothing: {done.stderr}")

# Without a repository, and in one without commits.
for folder in ("plain", "new"):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    open(f"{folder}/a", "w").write("a\n")
subprocess.run(["git", "-C", "new", "init", "-q"], env=env, check=True)
for folder in ("plain", "new"):
    whit("apply", "-", "--allow", "yellow", patch="a\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", project=folder)
got = subprocess.run(["git", "-C", "new", "show", "refs/whit/turns:a"], env=env, capture_output=True, text=True).stdout
wanted(got == "b\n" and not os.path.exists("plain/.git"), "a repository without commits")

# Another folder's .git may name any repository: only one that has this folder as its work tree gets its turns.
for folder in ("foreign", "linked", "super"):
    shutil.rmtree(folder, ignore_errors=True)


def turns_of(folder):
    return subprocess.run(["git", "-C", folder, "rev-list", "--count", "HEAD..refs/whit/turns"], env=env, capture_output=True, text=True).stdout.strip()


REPLACED = "kept\n<<<<<<< SEARCH\nkept\n=======\nother\n>>>>>>> REPLACE\n"
git("update-ref", "-d", "refs/whit/turns", check=False)
os.remove("repo/.git/refs/whit")
os.makedirs("foreign")
open("foreign/kept", "w").write("kept\n")
open("foreign/.git", "w").write(f"gitdir: {os.path.abspath('repo/.git')}\n")
done = whit("apply", "-", "--allow", "yellow", patch=REPLACED, project="foreign")
wanted("has another work tree" in done.stderr and open("foreign/kept").read() == "other\n", f"a foreign .git: {done.stderr}")
wanted(git("for-each-ref", "refs/whit") == "", "a foreign project's turn is committed")
git("worktree", "add", "-q", "--detach", os.path.abspath("linked"))
done = whit("apply", "-", "--allow", "yellow", patch=REPLACED, project="linked")
wanted(turns_of("linked") == "1" and done.stderr.count("\n") == 1, f"a linked work tree: {done.stderr}")
git("update-ref", "-d", "refs/whit/turns")
subprocess.run(["git", "init", "-q", "super"], env=env, check=True)
subprocess.run(["git", "-C", "super", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", os.path.abspath("repo"), "part"], env=env, check=True)
done = whit("apply", "-", "--allow", "yellow", patch=REPLACED, project="super/part")
wanted(turns_of("super/part") == "1" and done.stderr.count("\n") == 1, f"a submodule: {done.stderr}")
# A turn of the project around it leaves the submodule's files out of its commit, which another repository has.
subprocess.run(["git", "-C", "super", "commit", "-qm", "with a part"], env=env, check=True)
done = whit("apply", "-", "--allow", "yellow", project="super",
            patch="part/sub/deep\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\nbeside\n<<<<<<< SEARCH\n=======\ny\n>>>>>>> REPLACE\n")
listed = subprocess.run(["git", "-C", "super", "ls-tree", "-r", "--name-only", "refs/whit/turns"], env=env, capture_output=True, text=True).stdout.split()
wanted(done.stderr.count("\n") == 1 and "beside" in listed and "part" in listed and "part/sub/deep" not in listed and open("super/part/sub/deep").read() == "x\n",
       f"a turn in a submodule and beside it: {done.stderr} {listed}")
# Texts with keys stay out, and so do keys in what a person has typed: a reference may be pushed.
TOKEN = "ghp_" + "a1B2" * 9
open("key.patch", "w").write(f"config.py\n<<<<<<< SEARCH\n=======\nKEY = '{TOKEN}'\n>>>>>>> REPLACE\nplain\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n")
status, seen = at_terminal([WHIT, "agent", "apply", "key.patch", "--project", "new"], [("[y/N", "y\n")], env)
wanted(status == 0 and "it adds a key" in seen, f"a key that a person agrees to: {seen}")
if HAS_CURL:
    endpoint = Endpoint([message(None, [("write", {"path": "plain", "content": "y\n"})]), message("done")])
    whit("-p", f"Set {TOKEN} in config.py.", "--url", endpoint.url, "--allow", "yellow", project="new")
    endpoint.server.shutdown()
kept = subprocess.run(["git", "-C", "new", "log", "-p", "refs/whit/turns"], env=env, capture_output=True, text=True).stdout
wanted(TOKEN in open("new/config.py").read() and "+x" in kept and ("Set [a key" in kept or not HAS_CURL) and TOKEN not in kept, f"a key is committed: {kept}")

# A commit is written in the repository alone, wherever its files lead: a project that somebody else has packed may have
# links there, a name of another repository, or the files of a repository in a folder that is not .git.
for folder in ("other", "out"):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
subprocess.run(["git", "init", "-q", "other"], env=env, check=True)


def led(where, lead):
    """Commits a turn where a file of git's leads out of the repository: what is outside afterwards, and what is said."""
    shutil.rmtree("packed", ignore_errors=True)
    shutil.rmtree("out")
    os.makedirs("out")
    open("out/rc", "w").write("# mine\n")
    subprocess.run(["git", "init", "-q", "packed"], env=env, check=True)
    subprocess.run(["git", "-C", "packed", "config", "core.logAllRefUpdates", "always"], env=env, check=True)
    open("packed/kept", "w").write("kept\n")
    shutil.rmtree(f"packed/.git/{where}", ignore_errors=True)
    os.makedirs(os.path.dirname(f"packed/.git/{where}"), exist_ok=True)
    lead(f"packed/.git/{where}")
    done = whit("apply", "-", "--allow", "yellow", patch=REPLACED, project="packed")
    wanted(open("packed/kept").read() == "other\n", f"{where}: the turn is not written")
    return [(name, open(f"out/{name}").read()) for name in os.listdir("out") if os.path.isfile(f"out/{name}")] + \
        [name for name in os.listdir("out") if os.path.isdir(f"out/{name}")], done.stderr


for where in ("logs/refs/whit/turns", "logs/refs/whit", "logs/refs", "logs", "objects", "objects/61", "refs/whit", "refs/whit/turns"):
    target = os.path.abspath("out/rc" if where.endswith("turns") else "out")
    outside, told = led(where, lambda path: os.symlink(target, path))
    wanted(outside == [("rc", "# mine\n")] and "is a link" in told, f"{where}: {outside} {told}")
outside, told = led("logs/refs/whit/turns", lambda path: os.link("out/rc", path))
wanted(outside == [("rc", "# mine\n")] and "is a link" in told, f"a log with another name: {outside} {told}")
outside, told = led("commondir", lambda path: open(path, "w").write(os.path.abspath("other/.git") + "\n"))
refs = subprocess.run(["git", "-C", "other", "for-each-ref"], env=env, capture_output=True, text=True).stdout
wanted(refs == "" and "another work tree" in told, f"the repository of another project: {refs} {told}")
shutil.rmtree("packed")
os.makedirs("packed/sub/objects")
os.makedirs("packed/sub/refs")
open("packed/sub/HEAD", "w").write("ref: refs/heads/main\n")
open("packed/sub/config", "w").write("[core]\n\trepositoryformatversion = 0\n\tworktree = .\n")
open("packed/sub/kept", "w").write("kept\n")
open("patch", "w").write(REPLACED)
status, seen = at_terminal([WHIT, "agent", "apply", "patch", "--project", "packed/sub"], [("[y/N", "y\n")], env)
wanted(open("packed/sub/kept").read() == "other\n" and os.listdir("packed/sub/objects") == os.listdir("packed/sub/refs") == [],
       f"a folder with the files of a repository: {seen}")
print(f"{n} turns")
sys.exit(checks.failed)
