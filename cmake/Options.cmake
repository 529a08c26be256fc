# Compiler flags shared by every target. Each line says why it is there.
add_library(whit_options INTERFACE)
target_compile_definitions(whit_options INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
target_compile_options(whit_options INTERFACE
  -Wall -Wextra
  -Wshadow             # a shadowed name has hidden real bugs
  -Wstrict-prototypes -Wmissing-prototypes
  -Wpointer-arith -Wvla -Wundef
  -Wno-missing-field-initializers   # zero-initialised handles are the house style
  -ffp-contract=off    # numerics contract: FMA only where it is written (docs/dev/numerics.md)
  -fno-math-errno      # lets sqrtf become one instruction; changes no value
  -fno-strict-aliasing # codes are read through several widths
)
if(WHIT_WERROR)
  target_compile_options(whit_options INTERFACE -Werror)
endif()
if(WHIT_SANITIZE_ADDRESS)
  target_compile_options(whit_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(whit_options INTERFACE -fsanitize=address,undefined)
endif()
if(WHIT_SANITIZE_THREAD)
  target_compile_options(whit_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(whit_options INTERFACE -fsanitize=thread)
endif()
if(WHIT_FUZZ)
  target_compile_options(whit_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  target_link_options(whit_options INTERFACE -fsanitize=address,undefined)
endif()
if(WIN32)
  target_compile_definitions(whit_options INTERFACE __USE_MINGW_ANSI_STDIO=1 _WIN32_WINNT=0x0A00 WINVER=0x0A00
                             WIN32_LEAN_AND_MEAN NOMINMAX)
  target_compile_options(whit_options INTERFACE
    -Wno-format       # checks Microsoft's printf, while mingw-w64's own is called
    -Wno-shadow       # functions of POSIX are macros
    -Wno-attributes   # visibility means nothing here
  )
  target_link_options(whit_options INTERFACE -Wl,--stack,8388608) # as Linux gives the main thread
endif()
