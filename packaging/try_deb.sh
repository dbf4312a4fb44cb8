#!/bin/sh
# Runs in a clean Debian that holds /packages, ours and what it needs, and two tiny models: installs
# ours and uses it.
set -eu
export DEBIAN_FRONTEND=noninteractive OUTRIDER_PROBE_BUDGET_MS=300 OMP_WAIT_POLICY=passive
fail() {
  echo "try_deb.sh: not so: $*" >&2
  exit 1
}
dpkg --install /packages/*.deb >/dev/null || fail "what it needs is what it says"

for file in /usr/bin/outrider /usr/include/outrider.h /usr/share/man/man1/outrider.1 \
  /usr/share/bash-completion/completions/outrider /usr/share/zsh/site-functions/_outrider \
  /usr/share/fish/vendor_completions.d/outrider.fish /lib/systemd/system/outrider.service \
  /etc/outrider/outrider.toml /usr/share/doc/outrider/THIRD_PARTY; do
  [ -e "$file" ] || [ -e "$file.gz" ] || [ -e "/usr$file" ] || fail "the package has $file"
done
for name in 'The Outrider authors' llama.cpp nlohmann cpp-httplib CLI11 toml++; do
  grep -qF "$name" /usr/share/doc/outrider/copyright || fail "the licence of $name is in the package"
done
outrider --version
shlibs=/var/lib/dpkg/info/outrider.shlibs
for library in outrider rpcserver; do
  soversion=$(sed -n "s/^lib$library \([0-9.]*\) outrider (>= .*), outrider (<< .*~)$/\1/p" $shlibs)
  [ -n "$soversion" ] || fail "the package says what programs that link lib$library need"
  # The next library's package is no longer one of them: 0.2 after 0.1, 2 after 1.
  last=${soversion##*.}
  before=${soversion%"$last"}$((last + 1))~
  grep -qF "lib$library $soversion outrider (>= $(dpkg-query -W -f '${Version}' outrider)), outrider (<< $before)" $shlibs ||
    fail "programs that link lib$library ask for a package that has it: $(cat $shlibs)"
  ldconfig -p | grep -q "lib$library.so.$soversion " || fail "the linker knows lib$library"
done
ldd /usr/bin/outrider | grep 'not found' && fail "the package names all libraries that it needs"

# The same text with speculation off and on, by the command and over HTTP by the unit's settings.
run() { outrider run -m /tiny-target.gguf -d /tiny-draft.gguf -p 'Once upon a time' -n 32 --seed 1 "$@"; }
plain=$(run --drafter none)
[ -n "$plain" ] || fail "there is a text"
[ "$plain" = "$(run --width 4)" ] || fail "speculation changes no text"
sed -i 's/^# model = .*/model = "\/tiny-target.gguf"/' /etc/outrider/outrider.toml
port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 20000))
outrider serve --port $port --config /etc/outrider/outrider.toml >/dev/null 2>&1 &
server=$!
healthy() {
  bash -c 'exec 3<>/dev/tcp/127.0.0.1/'"$port"' && printf "GET /health HTTP/1.0\r\n\r\n" >&3 &&
           grep -q " 200 " <&3' 2>/dev/null
}
until healthy; do
  kill -0 $server || fail "the server runs with the package's settings"
  sleep 0.2
done
kill $server
wait $server || fail "the server ends in order"

dpkg --purge outrider >/dev/null
[ ! -e /usr/bin/outrider ] || fail "nothing of the package stays"
[ ! -e /etc/outrider ] || fail "a purge takes the settings away"
echo "try_deb.sh: installed, used and purged"
