# Cross build for 64-bit RISC-V; tests run under qemu-user.
# Packages: gcc-riscv64-linux-gnu, qemu-user; tools/cross/static.sh has built the libraries from Debian's sources.
get_filename_component(whit_root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(CMAKE_C_COMPILER riscv64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE riscv64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} ${whit_root}/build-static-riscv64/libraries/lib/pkgconfig)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# No path of this machine is left in the objects.
set(CMAKE_C_FLAGS_INIT "-ffunction-sections -fdata-sections -ffile-prefix-map=${whit_root}=.")
# The loader and the C library are the cross compiler's.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-riscv64;-L;/usr/riscv64-linux-gnu)
