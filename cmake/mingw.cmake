# SPDX-License-Identifier: MIT
# Cross-compilation for Windows on x86-64, by mingw-w64 with its threads of POSIX. Libraries come from
# WHIT_WINDOWS_DEPS, where tools/cross/windows.sh has built them.
get_filename_component(whit_root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# The stack is aligned to 16 bytes only (gcc bug 54412): the assembler replaces moves that need more. No path of
# this machine is left in the objects, nor the time in the file.
set(CMAKE_C_FLAGS_INIT "-Wa,-muse-unaligned-vector-move -ffile-prefix-map=${whit_root}=.")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -Wl,--no-insert-timestamp")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static -Wl,--no-insert-timestamp")
if(NOT WHIT_WINDOWS_DEPS)
  set(WHIT_WINDOWS_DEPS ${whit_root}/build-windows/deps)
endif()
set(ENV{PKG_CONFIG_LIBDIR} ${WHIT_WINDOWS_DEPS}/lib/pkgconfig)
# Tests run under wine.
set(CMAKE_CROSSCOMPILING_EMULATOR ${whit_root}/tools/cross/wine)
