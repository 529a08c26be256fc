# SPDX-License-Identifier: MIT
# Replicas behind balancers, and the unit for systemd.
. "$SOURCE/tests/server/lib.sh"
if command -v systemd-analyze >/dev/null; then
    sed "s|/usr/local/bin/whit|$BUILD/whit|" "$SOURCE/deploy/whit.service" >whit.service
    systemd-analyze verify "$PWD/whit.service" >said 2>&1
    [ ! -s said ] || complain "systemd-analyze verify: $(cat said)"
    systemd-analyze security --offline=yes --threshold=20 "$PWD/whit.service" >said 2>&1 ||
        complain "systemd-analyze security: $(tail -1 said)"
else
    echo "not tested: no systemd-analyze"
fi
WHIT_NO_SANDBOX=1 BALANCE_ROUNDS=$([ -n "${LONG:-}" ] && echo 20 || echo 2) python3 "$SOURCE/tests/server/balance.py"
status=$?
[ $status = 77 ] || [ $status = 0 ] || failed=1
exit $failed
