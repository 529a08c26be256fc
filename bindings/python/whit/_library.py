# SPDX-License-Identifier: MIT
"""Finds the library and gives its functions the types of whit's headers (_abi.py is made from these)."""
import ctypes
import ctypes.util
import os
import pathlib

from . import _abi


def _open_library() -> ctypes.CDLL:
    named = os.environ.get("WHIT_LIBRARY")
    if named:
        return ctypes.CDLL(named)
    folder = pathlib.Path(__file__).parent / "lib"
    if (folder / "libwhit.so.0").exists():
        # The libraries that whit needs come with it; loaded first, they are found by their names.
        for path in sorted(folder.glob("lib*.so*")):
            if not path.name.startswith("libwhit."):
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(str(folder / "libwhit.so.0"))
    found = ctypes.util.find_library("whit")
    if not found:
        raise ImportError("libwhit is not there: install it, or name the file in WHIT_LIBRARY")
    return ctypes.CDLL(found)


lib = _open_library()
for _name, (_result, _arguments) in _abi.FUNCTIONS.items():
    _function = getattr(lib, _name, None)
    if _function is not None:
        _function.restype = _result
        _function.argtypes = _arguments


def defaults(struct):
    """A struct filled with the library's defaults."""
    value = struct()
    getattr(lib, struct.__name__ + "_init")(ctypes.byref(value), ctypes.sizeof(value))
    return value
