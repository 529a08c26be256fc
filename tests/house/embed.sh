# SPDX-License-Identifier: MIT
# whit as a part of another project: add_subdirectory and FetchContent give whit::whit and
# whit::static, and nothing of the other project changes. Building one of them is enough: both are
# made of the same objects. With the argument "long" they are built and run, too.
set -eu
unset DESTDIR
rm -rf app
mkdir app
grep -nE 'CMAKE_(SOURCE|BINARY)_DIR' $(git -C "$SOURCE" ls-files "*CMakeLists.txt" "*.cmake" | sed "s|^|$SOURCE/|") |
    grep -v examples/ && { echo "FAILED: PROJECT_SOURCE_DIR is whit's own also inside another project"; exit 1; }
cp "$SOURCE/examples/open.c" app/main.c
cat >app/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.22)
project(app C)
if(FETCH)
  include(FetchContent)
  FetchContent_Declare(whit SOURCE_DIR "$SOURCE")
  FetchContent_MakeAvailable(whit)
else()
  add_subdirectory("$SOURCE" whit)
endif()
add_executable(with_shared main.c)
target_link_libraries(with_shared PRIVATE whit::whit)
add_executable(with_static main.c)
target_link_libraries(with_static PRIVATE whit::static)
foreach(name BUILD_TESTING CMAKE_C_STANDARD)
  if(DEFINED \${name})
    message(FATAL_ERROR "\${name} leaks out")
  endif()
endforeach()
END
generator=""
command -v ninja >/dev/null && generator="-G Ninja"
launcher=""
command -v ccache >/dev/null && launcher="-DCMAKE_C_COMPILER_LAUNCHER=ccache"
for fetch in OFF ON; do
    # shellcheck disable=SC2086
    cmake -S app -B app/build-$fetch $generator $launcher -DFETCH=$fetch -DCMAKE_BUILD_TYPE=Debug >cmake.log 2>&1 ||
        { cat cmake.log; exit 1; }
done
[ "${1:-}" = long ] || exit 0
cmake --build app/build-OFF --parallel 2 >build.log 2>&1 || { tail -n 30 build.log; exit 1; }
"$TINY" app/model.gguf
export XDG_CACHE_HOME=$PWD/app/cache
app/build-OFF/with_shared app/model.gguf
app/build-OFF/with_static app/model.gguf
[ ! -e app/build-OFF/whit/whit ] || { echo "FAILED: the program was built, too"; exit 1; }
