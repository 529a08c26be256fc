# SPDX-License-Identifier: MIT
# What scripts that start several processes by mpirun share: sourced after lib.sh.
[ -e "$BUILD/libwhit_mpi.so" ] || { echo "skipped: a build without OpenMPI"; exit 77; }
command -v mpirun >/dev/null || { echo "skipped: no mpirun"; exit 77; }
[ -z "${EMULATOR:-}" ] || { echo "skipped: an emulated program"; exit 77; }
# Sanitizers find what OpenMPI leaves.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
OMPI_MCA_btl_vader_single_copy_mechanism=none # containers refuse the other one, with a warning
OMPI_MCA_rmaps_base_oversubscribe=1
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
MPIEXEC_TIMEOUT=${MPIEXEC_TIMEOUT:-600} # seconds; mpirun ends ranks that wait for one that is not coming
export MPIEXEC_TIMEOUT ASAN_OPTIONS OMPI_MCA_btl_vader_single_copy_mechanism OMPI_MCA_rmaps_base_oversubscribe OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM

# ranks N ARGUMENT...: the program on N ranks; its stdout lands in the file out, its stderr in err.
ranks() {
    local n=$1
    shift
    mpirun -np "$n" "$BUILD/whit" "$@" >out 2>err </dev/null ||
        { complain "$n ranks: $* ended with $?: $(cat err)"; return 1; }
}
