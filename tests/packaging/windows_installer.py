#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The installer for Windows under wine, without questions: it installs program, library, documents and licences, adds
the folder to a PATH of any length, installs again over itself, refuses while the program runs, and its uninstaller
leaves nothing, PATH as it was.

    windows_installer.py WINE SETUP.EXE VERSION SCRATCH
"""
import os
import pathlib
import shutil
import subprocess
import sys
import time

wine, setup, version, scratch = sys.argv[1:]
if not os.path.exists(setup):
    print("[ SKIPPED ] no", setup, "(makensis makes it: apt-get install nsis)")
    sys.exit(77)
shutil.rmtree(scratch, ignore_errors=True)
prefix = pathlib.Path(scratch, "wine")
prefix.mkdir(parents=True)
os.environ["WHIT_WINE_PREFIX"] = str(prefix)
UNINSTALL = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Uninstall\whit"


def call(*command, status=0):
    done = subprocess.run([wine, *command], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    if status is not None and done.returncode != status:
        sys.exit("FAILED: %s: exit status %d\n%s%s" % (command, done.returncode, done.stdout, done.stderr))
    return done.stdout


def value(key, name):
    """(type, text) of a value of the registry; None if it is not there."""
    for line in call("reg", "query", key, "/v", name, status=None).splitlines():
        if line.strip().startswith(name):
            return tuple(line.strip().split("    ", 2)[1:])
    return None


def expect(found, wanted, what):
    if found != wanted:
        sys.exit("FAILED: %s: found %r, not %r" % (what, found, wanted))


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def wait_until_gone(path):
    """The uninstaller goes on as a copy of itself, since its own file goes, too."""
    until = time.monotonic() + 120
    while path.exists():
        if time.monotonic() > until:
            sys.exit("FAILED: left: %s" % files(path))
        time.sleep(0.2)


def install(target, status=0):
    """A batch file gives the folder as a person types it: without quotes, though it has blanks."""
    batch = pathlib.Path(scratch, "install.bat")
    folder = " /D=" + target if target else ""
    batch.write_text('@"Z:%s" /S%s\r\n' % (os.path.abspath(setup).replace("/", "\\"), folder))
    call("cmd", "/c", "Z:" + str(batch.resolve()).replace("/", "\\"), status=status)


def round_trip(target, folder, path):
    """Installs to `target`, which this machine sees as `folder`, with a PATH of (type, text) or none."""
    if path:
        call("reg", "add", r"HKCU\Environment", "/v", "Path", "/t", path[0], "/d", path[1], "/f")
    else:
        call("reg", "delete", r"HKCU\Environment", "/v", "Path", "/f", status=None)
    for _ in range(2):  # the second time over the first
        install(target)
        shown = value(UNINSTALL, "InstallLocation")[1]
        with_it = (path[0], path[1] + ";" + shown) if path else ("REG_EXPAND_SZ", shown)
        expect(value(r"HKCU\Environment", "Path"), with_it, "PATH")
    for name in ("whit.exe", "whit.dll", "README.txt", "licences/whit.txt", "docs/use/chat.md", "include/whit.h"):
        if not (folder / name).is_file():
            sys.exit("FAILED: %s is not installed: %s" % (name, files(folder)))
    expect(value(UNINSTALL, "DisplayVersion")[1], version, "the version")
    if not path:  # wine's shell does not search a long one
        expect(call("cmd", "/c", "whit", "--version").strip(), "whit " + version, "whit by PATH")


drive = prefix / "drive_c"
users = drive / "users"
target = r"C:\tools of mine\whit"
folder = drive / "tools of mine" / "whit"
long_path = ("REG_EXPAND_SZ", ";".join(r"C:\folder %d\%%USERNAME%%\bin" % i for i in range(150)))

# In a folder of one's own, beside a file of one's own, which stays.
round_trip(target, folder, long_path)
(folder / "notes.txt").write_text("mine")
running = subprocess.Popen([wine, str(folder / "whit.exe"), "serve", "-m", "tales", "--port", "0"],
                           stderr=subprocess.PIPE, text=True)
while "http://" not in running.stderr.readline():
    if running.poll() is not None:
        sys.exit("FAILED: no server")
install(target, status=2)
expect((folder / "whit.dll").is_file(), True, "the library after a refused installation")
running.terminate()
running.wait()
call("taskkill", "/f", "/im", "whit.exe", status=None)
call(str(folder / "uninstall.exe"), "/S")
wait_until_gone(folder / "whit.exe")
wait_until_gone(folder / "uninstall.exe")
expect(files(folder), ["notes.txt"], "what is left")
expect(value(r"HKCU\Environment", "Path"), long_path, "PATH after the uninstaller")
expect(value(UNINSTALL, "DisplayName"), None, "the entry of the uninstaller")

# In the usual folder, without a PATH.
usual = next(users.glob("*/AppData/Local")) / "Programs" / "whit"
round_trip("", usual, None)
call(str(usual / "uninstall.exe"), "/S")
wait_until_gone(usual)
expect(value(r"HKCU\Environment", "Path"), None, "PATH after the uninstaller")
