# SPDX-License-Identifier: MIT
# The part of packaging/deb/check that runs in the bare system.
cd /packages
fail() {
    echo "FAILED: $*"
    exit 1
}
# Files outside what apt and dpkg keep about every package.
list() {
    find / -xdev \( -path /proc -o -path /dev -o -path /packages -o -path /tmp -o -path /var/lib/dpkg -o -path /var/lib/apt \
        -o -path /var/cache/apt -o -path /var/cache/debconf -o -path /var/cache/ldconfig -o -path /var/log \) -prune -o -print | sort
}
names=$(for package in *.deb; do dpkg-deb -f "$package" Package; done)
# Packages for other architectures have the static program alone.
has_library=$(echo "$names" | grep -x libwhit-dev || true)
apt-get -q update >/dev/null
apt-get -q install -y --no-install-recommends curl ${has_library:+gcc libc6-dev libjansson-dev} >log 2>&1 ||
    { tail log; fail "apt-get"; }
getent passwd >accounts.before

apt-get -q install -y --no-install-recommends ./*.deb >log 2>&1 || { tail log; fail "apt-get install ./*.deb"; }
echo "installed:" $names
whit run -n 20 --seed 1 -p "Once upon a time" >tale 2>log || { cat log; fail "whit run"; }
[ -s tale ] || fail "whit run printed nothing"
getent passwd whit >/dev/null || fail "no user of the service"
mkdir -p /var/cache/whit
chown whit /var/cache/whit
XDG_CACHE_HOME=/var/cache/whit setpriv --reuid whit --regid whit --clear-groups whit serve --port 8099 >log 2>&1 &
server=$!
answer=''
for _ in $(seq 120); do
    answer=$(curl -s http://127.0.0.1:8099/v1/models) && break
    sleep 1
done
kill $server
wait $server || true
echo "$answer" | grep -q tales || { cat log; fail "whit serve does not answer: $answer"; }
echo "whit run and whit serve work"
if [ -n "$has_library" ]; then
    gcc open.c -o open -lwhit -I/usr/include
    ldd open | grep -q 'libwhit.so.0 => /' || fail "a program does not find the library"
    echo "a program links the library"
fi
[ -x "$(command -v systemd-analyze)" ] && systemd-analyze verify /usr/lib/systemd/system/whit.service


for shell in bash; do bash -n /usr/share/bash-completion/completions/whit || fail "completion for $shell"; done
dpkg -L $names | sort -u >files
apt-get -q remove -y $names >log 2>&1 || { tail log; fail "apt-get remove"; }
[ -f /etc/whit/serve.env ] || fail "removing took the settings away"
apt-get -q purge -y whit >log 2>&1 || { tail log; fail "apt-get purge"; }
left=$(while read -r path; do if [ -e "$path" ] && [ ! -d "$path" ]; then echo "$path"; fi; done <files)
[ -z "$left" ] || fail "left after purge: $left"
left=$(list | grep -E '/(lib|_)?whit([^a-z]|$)' || true)
[ -z "$left" ] || fail "left after purge: $left"
getent passwd | cmp -s - accounts.before || fail "the user is left after purge"
[ -z "$(dpkg -l | grep -i whit || true)" ] || fail "dpkg still knows it"
echo "removed and purged: nothing is left"
