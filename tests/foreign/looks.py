# SPDX-License-Identifier: MIT
"""Looks at a home and its project before and after a command: what has changed, what ran, what got about."""
import hashlib
import os
import re
import stat
import time
import zlib

from project import ESCAPE, FORMATTERS, HIDDEN

OWN = (".local/state/whit", ".cache/whit", ".local/share/whit")  # the folders that are whit's, in a home
ON_AT_THE_END = {"25"}  # of the terminal's private modes: a cursor that is seen
HASHED_MAX = 1 << 20


def describe(path):
    """What must stay of a file, link or folder. Times tell that a file was written again with the same bytes."""
    info = os.lstat(path)
    if stat.S_ISLNK(info.st_mode):
        return ("link", os.readlink(path))
    if not stat.S_ISREG(info.st_mode):
        return (stat.S_IFMT(info.st_mode), stat.S_IMODE(info.st_mode))
    digest = ""
    if info.st_size <= HASHED_MAX:
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
    return ("file", stat.S_IMODE(info.st_mode), info.st_size, info.st_mtime_ns, info.st_ino, digest)


def photograph(home):
    seen = {}
    own = {os.path.join(home, name) for name in OWN}
    for at, folders, files in os.walk(home):
        folders[:] = [name for name in folders if os.path.join(at, name) not in own]
        for name in folders + files:
            path = os.path.join(at, name)
            if path != os.path.join(home, ".ran"):
                seen[path] = describe(path)
    return seen


def changed(before, after):
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def find_secrets(project, data, allowed=()):
    """The secrets of the project that the bytes contain."""
    return [text for text in project.secrets if text.encode() in data and text not in allowed]


def read_small(path):
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode) or os.lstat(path).st_size > 64 << 20:
            return b""
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def kept_bytes(project, already):
    """The files of whit's own folders and of git's objects that are new or changed since the last look, with their bytes."""
    folders = [os.path.join(project.home, name) for name in OWN]
    for name in (".git/objects", ".git/refs"):
        folder = os.path.join(project.root, name)
        if os.path.realpath(folder) == folder:
            folders.append(folder)
    for folder in folders:
        for at, _, files in os.walk(folder):
            for name in files:
                path = os.path.join(at, name)
                info = os.lstat(path)
                key = (info.st_ino, info.st_size, info.st_mtime_ns)
                if already.get(path) == key:
                    continue
                already[path] = key
                data = read_small(path)
                if "/objects/" in path:
                    try:
                        data = zlib.decompress(data)
                    except zlib.error:
                        pass
                yield path, data


def modes_left(output):
    """The private modes that the terminal still has when the program is gone."""
    state = {}
    for numbers, letter in re.findall(rb"\x1b\[\?([0-9;]+)([hl])", output):
        for number in numbers.decode().split(";"):
            state[number] = letter == b"h"
    return sorted(number for number, on in state.items() if on != (number in ON_AT_THE_END) and number not in ("7", "2501"))


def find_processes(home):
    """Processes that were started with this home."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = file.read().split(b"\0")
            if b"HOME=" + home.encode() in variables:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    found.append(f"{pid} {file.read().replace(bytes(1), b' ').decode(errors='replace')}")
        except OSError:
            pass  # it has ended, or is another user's
    return found


def await_end(home):
    """Waits a while for the processes of a command that has ended. Returns those that are left."""
    end = time.monotonic() + 10
    while (found := find_processes(home)) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def judge(project, play, already):
    """The faults of a command that was played, as lines."""
    faults = [f"process: it is left: {process}" for process in await_end(project.home)]
    before, after = play.before, photograph(project.home)
    for path in changed(before, after):
        name = os.path.relpath(path, project.root)
        is_inside = path.startswith(project.root + "/")
        if is_inside and play.may_change(name):
            continue
        kind = "appeared" if path not in before else "is gone" if path not in after else "changed"
        where = "in the project" if is_inside else "outside of the project"
        faults.append(f"tree: {name!r} {kind} {where}: {before.get(path)} {after.get(path)}")
    for line in read_small(project.ran).decode(errors="replace").splitlines():
        words, _, folder = line.rpartition(" ") if line.startswith("started") else (line, "", "")
        tool = words.removeprefix("started ")
        if line.startswith("started") and tool in FORMATTERS and play.may_format and not (folder + "/").startswith(project.root + "/"):
            continue
        faults.append(f"program: {line}")
    open(project.ran, "w").close()
    for what, data in play.sent:
        faults += [f"sent: a secret of {project.secrets[text]} is in {what}" for text in find_secrets(project, data, play.sendable)]
    visible = play.exposed | {text for text, place in project.secrets.items() if place.startswith(project.root + "/")}
    for what, data in play.shown:  # the person may see all files of the project: a change is shown with the lines that it takes away
        faults += [f"shown: a secret of {project.secrets[text]} is in {what}" for text in find_secrets(project, data, visible)]
        for text in (ESCAPE, HIDDEN):
            if text.encode() in data:
                faults.append(f"escape: {text!r} is passed on in {what}")
    for path, data in kept_bytes(project, already):
        faults += [f"kept: a secret of {project.secrets[text]} is in {path}" for text in find_secrets(project, data, play.exposed)]
    if play.hangs:
        faults.append(f"hang: it has not ended: {play.hangs[-300:]!r}")
    for left in play.left:
        faults.append(f"terminal: {left}")
    if play.crash:
        faults.append(f"crash: {play.crash}")
    return faults
