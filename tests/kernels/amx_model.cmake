# The AMX kernels once more, against the model of their tile instructions.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # With every check inlined GCC compiles two of these unrolled files for 100 seconds each; so for 29. AddressSanitizer
  # sees the same faults of addresses.
  if(WHIT_SANITIZE_ADDRESS AND CMAKE_C_COMPILER_ID STREQUAL GNU)
    set(fewer ";--param=asan-instrumentation-with-call-threshold=0;-fno-sanitize=alignment,bounds,object-size,null,pointer-overflow")
  endif()
  whit_test(kernels_amx_model ${CMAKE_CURRENT_LIST_DIR}/amx_model.c
            ${PROJECT_SOURCE_DIR}/src/engine/kernels/x86/matmul_i8_block_amx.c ${PROJECT_SOURCE_DIR}/src/engine/kernels/x86/matmul_i8_rows_amx.c
            ${PROJECT_SOURCE_DIR}/src/engine/kernels/x86/matmul_i8_gemv_amx.c ${PROJECT_SOURCE_DIR}/src/engine/kernels/x86/attention_amx.c
            ${PROJECT_SOURCE_DIR}/src/engine/kernels/x86/matmul_i8_strip_amx.c)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/engine/kernels/x86/matmul_i8_block_amx.c
                              ${PROJECT_SOURCE_DIR}/src/engine/kernels/x86/matmul_i8_rows_amx.c
                              ${PROJECT_SOURCE_DIR}/src/engine/kernels/x86/matmul_i8_gemv_amx.c
                              ${PROJECT_SOURCE_DIR}/src/engine/kernels/x86/attention_amx.c
                              ${PROJECT_SOURCE_DIR}/src/engine/kernels/x86/matmul_i8_strip_amx.c PROPERTIES COMPILE_OPTIONS
    "-DWHIT_AMX_MODEL;-mavx2;-mfma;-mf16c;-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512vbmi;-mavx512vnni${fewer}")
endif()
