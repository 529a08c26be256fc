#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes whit's package for JavaScript from the module that tools/cross/wasm.sh compiled.

    make_npm.py BUILD -o FOLDER         FOLDER/whit-VERSION.tgz, for npm install
    make_npm.py BUILD --package FOLDER  FOLDER/package, for use in place
    make_npm.py BUILD --page FILE       the demo page, one HTML file with everything inside
    make_npm.py --abi FILE              the structs of the public headers as WebAssembly has them
    make_npm.py --exports FILE          the functions that the module exports

The same inputs give the same bytes."""
import argparse
import base64
import gzip
import io
import json
import pathlib
import re
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "python"))
from make_wheel import Headers, version  # noqa: E402 # pylint: disable=wrong-import-position

SOURCES = ("index.mjs", "index.d.ts", "engine.mjs", "chat.mjs", "worker.mjs", "worker_node.mjs", "worker_browser.mjs", "files.mjs", "store.mjs", "host_node.mjs",
           "host_browser.mjs")
BUILT = ("whit-core.mjs", "whit-core.wasm")
TALES = ROOT / "tools" / "tales" / "tales.ndf"
# Kinds of the headers' reader in wasm32, with their sizes, which are their alignments too.
SCALARS = {
    "c_bool": ("bool", 1), "c_char": ("u8", 1), "c_int": ("i32", 4), "c_float": ("f32", 4), "c_double": ("f64", 8),
    "c_size_t": ("u32", 4), "c_int8": ("i8", 1), "c_uint8": ("u8", 1), "c_uint16": ("u16", 2), "c_int32": ("i32", 4),
    "c_uint32": ("u32", 4), "c_int64": ("i64", 8), "c_uint64": ("u64", 8), "c_void_p": ("u32", 4),
    "c_char_p": ("u32", 4),
}


def layouts(headers):
    """{struct: {"size", "align", "fields": {name: [offset, kind]}}} of all structs, in the order of the headers."""
    found = {}
    for name, fields in headers.structs:
        offset, most, places = 0, 1, {}
        for field, kind in fields:
            base, _, count = kind.partition(" * ")
            if base in found:
                name_of_kind, size, align = base, found[base]["size"], found[base]["align"]
            else:
                name_of_kind, size = SCALARS[base]
                align = size
            offset = -(-offset // align) * align
            places[field] = [offset, name_of_kind]
            offset += size * int(count or 1)
            most = max(most, align)
        found[name] = {"size": -(-offset // most) * most, "align": most, "fields": places}
    return found


def abi_text():
    lines = ["// SPDX-License-Identifier: MIT", "// Made from whit's headers by make_npm.py.", "export const structs = {"]
    for name, layout in layouts(Headers()).items():
        lines.append(f"  {name}: {json.dumps({'size': layout['size'], 'fields': layout['fields']})},")
    return "\n".join([*lines, "};", ""])


def exports_text():
    """The public functions that a module has: pulled models have names where there is a store of them."""
    stored = (ROOT / "include/whit/names.h").read_text(encoding="utf-8")
    names = sorted(name for name, _result, _kinds in Headers().functions if name + "(" not in stored)
    return "\n".join("_" + name for name in ["malloc", "free", "aligned_alloc", *names]) + "\n"


def package_json():
    about = json.loads((HERE / "package.json").read_text(encoding="utf-8"))
    about["version"] = version()
    return json.dumps(about, indent=2) + "\n"


def package(build):
    files = {name: (HERE / name).read_bytes() for name in SOURCES}
    files.update({name: (pathlib.Path(build) / "js" / name).read_bytes() for name in BUILT})
    files["abi.mjs"] = abi_text().encode()
    files["package.json"] = package_json().encode()
    files["tales.ndf"] = TALES.read_bytes()
    files["README.md"] = (ROOT / "docs" / "use" / "javascript.md").read_bytes()
    files["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    return files


def write_tgz(files, folder):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo("package/" + name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    path = pathlib.Path(folder) / f"whit-{version()}.tgz"
    path.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))
    return path


def without_modules(text):
    """A module's text for one script: without imports, and with its exports as plain names."""
    text = re.sub(r"^(import|export \{) [^;]*;\n", "", text, flags=re.M)
    text = re.sub(r"^export default \w+;?\n?", "", text, flags=re.M)
    return re.sub(r"^export (?=(async |const |class |function |let ))", "", text, flags=re.M)


def packed(data):
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def page_text(build):
    files = {name: data.decode() for name, data in package(build).items() if name.endswith(".mjs")}
    worker = "\n".join(without_modules(files[name]) for name in (
        "abi.mjs", "whit-core.mjs", "engine.mjs", "store.mjs", "files.mjs", "chat.mjs", "host_browser.mjs", "worker.mjs"))
    worker += "\nserve({ listen, isFile, fileBytes, pause });\n"
    page = "\n".join(without_modules(files[name]) for name in ("store.mjs", "index.mjs", "host_browser.mjs"))
    page += "\n" + (HERE / "page.js").read_text(encoding="utf-8")
    parts = {
        "STYLE": (HERE / "page.css").read_text(encoding="utf-8"),
        "WORKER": packed(worker.encode()),
        "SCRIPT": page.replace("</script", "<\\/script"),
        "CORE": packed((pathlib.Path(build) / "js" / "whit-core.wasm").read_bytes()),
        "TALES": base64.b64encode(TALES.read_bytes()).decode(),
        "VERSION": version(),
    }
    return re.sub(r"@([A-Z]+)@", lambda found: parts[found.group(1)], (HERE / "page.html").read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?")
    parser.add_argument("-o", "--output", default=".")
    parser.add_argument("--package")
    parser.add_argument("--page")
    parser.add_argument("--abi")
    parser.add_argument("--exports")
    arguments = parser.parse_args()
    if arguments.abi:
        pathlib.Path(arguments.abi).write_text(abi_text(), encoding="utf-8")
    elif arguments.exports:
        pathlib.Path(arguments.exports).write_text(exports_text(), encoding="utf-8")
    elif not arguments.build:
        parser.error("BUILD is missing: the folder that tools/cross/wasm.sh made")
    elif arguments.page:
        pathlib.Path(arguments.page).write_text(page_text(arguments.build), encoding="utf-8")
    elif arguments.package:
        folder = pathlib.Path(arguments.package) / "package"
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in package(arguments.build).items():
            (folder / name).write_bytes(data)
    else:
        print(write_tgz(package(arguments.build), arguments.output))
    return 0


if __name__ == "__main__":
    sys.exit(main())
