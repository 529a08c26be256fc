#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes whit's wheel for Python, or writes the package into a folder.

    make_wheel.py LIBRARY -o FOLDER         FOLDER/whit-VERSION-py3-none-PLATFORM.whl, with the library inside
    make_wheel.py LIBRARY --package FOLDER  FOLDER/whit, for use in place

_abi.py, the structs and functions as ctypes has them, is made from the headers, so that they cannot differ. The same
inputs give the same bytes."""
import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include" / "whit"
SCALARS = {
    "bool": "c_bool", "char": "c_char", "int": "c_int", "float": "c_float", "double": "c_double", "size_t": "c_size_t",
    "int8_t": "c_int8", "uint8_t": "c_uint8", "uint16_t": "c_uint16", "int32_t": "c_int32", "uint32_t": "c_uint32",
    "int64_t": "c_int64", "uint64_t": "c_uint64", "void": None,
}
MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64"}
BUNDLED = ("libjansson", "libpcre2-8", "libutf8proc", "libsodium")


class Headers:
    """Structs, enums and functions of the public headers; their style is one declaration a line or more, no macros."""

    def __init__(self):
        self.kinds = dict(SCALARS)
        self.structs, self.functions = [], []
        for path in self.in_order():
            self.read(path.read_text(encoding="utf-8"))

    @staticmethod
    def in_order():
        done = []

        def add(path):
            if path in done:
                return
            for name in re.findall(r'#include "(?:whit/)?(\w+\.h)"', path.read_text(encoding="utf-8")):
                add(INCLUDE / name)
            done.append(path)

        for path in sorted(INCLUDE.glob("*.h")):
            add(path)
        return done

    def read(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        text = re.sub(r"^\s*#.*?$", "", text, flags=re.M)
        for name in re.findall(r"typedef enum (\w+)", text):
            self.kinds[name] = "c_int"
        for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, flags=re.S):
            self.structs.append((name, [field for line in body.split(";") for field in self.fields(line)]))
            self.kinds[name] = name
        for result, name, arguments in re.findall(r"WHIT_API (?:WHIT_CHECKED )?([^;{}]*?)\b(\w+)\(([^;{}]*)\);", text, flags=re.S):
            kinds = [] if arguments.strip() == "void" else [self.kind(one) for one in arguments.split(",")]
            self.functions.append((name, self.kind(result + " x", True), kinds))

    def kind(self, declaration, is_result=False):
        words = " ".join(declaration.split())
        if "*" in words or "[" in words:
            is_text = re.fullmatch(r"const char \*\s*\w*", words) is not None
            # Texts that a function returns with a length are no C strings: they stay pointers.
            if is_text and not is_result:
                return "c_char_p"
            return "c_void_p"
        base = [word for word in words.split(" ") if word not in ("const", "volatile", "struct")][0]
        return self.kinds[base]

    def fields(self, line):
        line = " ".join(line.split())
        if not line:
            return
        callback = re.match(r".*\(\*(\w+)\)\(", line)
        if callback:
            yield callback.group(1), "c_void_p"
            return
        first, *others = line.split(",")
        base = first[: len(first) - len(re.search(r"[\s*]*\w+(\[\w+\])?$", first).group(0))].strip()
        for declarator in [first[len(base):], *others]:
            declarator = declarator.strip()
            size = re.search(r"\[(\d+)\]$", declarator)
            name = re.search(r"(\w+)(\[\d+\])?$", declarator).group(1)
            if "*" in declarator:
                is_text = base == "const char" and declarator.count("*") == 1
                yield name, "c_char_p" if is_text else "c_void_p"
            else:
                kind = self.kind(base + " x")
                yield name, f"{kind} * {size.group(1)}" if size else kind


# Texts that functions return with a terminator.
STRINGS = {"whit_version", "whit_status_name", "whit_model_metadata", "whit_chat_template_stop"}


def abi_text():
    headers = Headers()
    out = ['# SPDX-License-Identifier: MIT', '"""Made from whit\'s headers by make_wheel.py."""',
           "# pylint: disable=all", "# mypy: ignore-errors", "from ctypes import *", ""]
    for name, fields in headers.structs:
        out += [f"class {name}(Structure):", f"    _fields_ = [{', '.join(f'({n!r}, {k})' for n, k in fields)}]", ""]
    out.append("FUNCTIONS = {")
    for name, result, kinds in headers.functions:
        result = "c_char_p" if name in STRINGS else result
        out.append(f"    {name!r}: ({result}, [{', '.join(str(kind) for kind in kinds)}]),")
    out += ["}", ""]
    return "\n".join(out)


def version():
    text = (INCLUDE / "base.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"WHIT_VERSION_{part}\s+(\d+)", text).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


def machine(library):
    """The processor that a library is for."""
    number = int.from_bytes(pathlib.Path(library).read_bytes()[18:20], "little")
    return MACHINES[number]


def needed(library):
    """Libraries that come with the wheel: those that systems need not have. Of another processor they are those of
    Debian's packages for it."""
    if machine(library) == platform.machine():
        listed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
        found = re.findall(r"^\s*(\S+) => (/\S+)", listed, flags=re.M)
    else:
        listed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        folder = f"/usr/lib/{machine(library)}-linux-gnu/"
        found = [(name, folder + name) for name in re.findall(r"\(NEEDED\).*\[(\S+)\]", listed)]
    return {name: pathlib.Path(path).resolve() for name, path in found if name.startswith(BUNDLED)}


def package(library):
    files = {f"whit/{path.name}": path.read_bytes() for path in sorted((HERE / "whit").iterdir())
             if path.suffix == ".py" and path.name != "_abi.py" or path.name == "py.typed"}
    files["whit/_abi.py"] = abi_text().encode()
    files["whit/lib/libwhit.so.0"] = pathlib.Path(library).resolve().read_bytes()
    for name, path in needed(library).items():
        files["whit/lib/" + name] = path.read_bytes()
    return files


def tag(library):
    libc, libc_version = platform.libc_ver() # also that of the cross compilers of this machine
    system = f"manylinux_{libc_version.replace('.', '_')}" if libc == "glibc" else "linux"
    return f"py3-none-{system}_{machine(library)}"


def write_wheel(files, folder, library):
    name = f"whit-{version()}"
    info = f"{name}.dist-info/"
    files[info + "METADATA"] = (f"Metadata-Version: 2.1\nName: whit\nVersion: {version()}\n"
                                "Summary: Low-bit language models on the CPU\nLicense: MIT\n"
                                "Requires-Python: >=3.8\n").encode()
    files[info + "WHEEL"] = f"Wheel-Version: 1.0\nGenerator: whit\nRoot-Is-Purelib: false\nTag: {tag(library)}\n".encode()
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for path, data in sorted(files.items()))
    files[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    path = pathlib.Path(folder) / f"{name}-{tag(library)}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file, data in sorted(files.items()):
            entry = zipfile.ZipInfo(file, (2020, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            wheel.writestr(entry, data)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("-o", "--output", default=".")
    parser.add_argument("--package")
    arguments = parser.parse_args()
    files = package(arguments.library)
    if not arguments.package:
        print(write_wheel(files, arguments.output, arguments.library))
        return 0
    for name, data in files.items():
        path = pathlib.Path(arguments.package) / name
        os.makedirs(path.parent, exist_ok=True)
        path.write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
