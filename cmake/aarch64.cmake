# Cross build for 64-bit Arm; tests run under qemu-user.
# Packages: gcc-aarch64-linux-gnu, qemu-user, and the arm64 -dev packages of the required libraries.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# Libraries are those of the arm64 packages, loader included: another loader beside them hangs in
# pthread_create.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-cpu;max)
