# shellcheck shell=bash
# A part of ./dev: what must be installed.

have_cmake() {
  local version
  version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p') && [[ -n $version ]] &&
    [[ $(printf '%s\n' 3.25 "$version" | sort -V | head -n1) == 3.25 ]]
}
have_header() {
  [[ -e /usr/include/$1 || -e /usr/local/include/$1 ]] ||
    printf '#include <%s>\n' "$1" | g++ -std=c++20 -E -x c++ - >/dev/null 2>&1
}
have_pip() {
  python3 -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("pip"))' 2>/dev/null
}
have_venv() { python3 -c 'import ensurepip, venv' 2>/dev/null; }
have_chromium() {
  [[ -n ${OUTRIDER_CHROMIUM:-} ]] || command -v chromium chromium-browser google-chrome >/dev/null
}
have_llama() {
  [[ -d $CACHE/llama.cpp-$LLAMA_COMMIT || -n ${OUTRIDER_LLAMA_PACKAGE:-} ]] ||
    [[ ${OUTRIDER_CMAKE_ARGS:-} == *OUTRIDER_LLAMA_SOURCE_DIR=* ]]
}

# Prints the Debian packages that are wanting for one purpose, one a line.
wanting() {
  case $1 in
    build)
      command -v g++ >/dev/null || echo g++
      have_cmake || echo cmake
      command -v ninja >/dev/null || echo ninja-build
      command -v git >/dev/null || echo git
      have_header CLI/CLI.hpp || echo libcli11-dev
      have_header toml++/toml.h || echo libtomlplusplus-dev
      have_header gtest/gtest.h || echo libgtest-dev
      have_header openssl/ssl.h || echo libssl-dev
      command -v python3 >/dev/null || echo python3
      have_llama || command -v npm >/dev/null || echo npm ;;
    models) have_pip || echo python3-pip ;;
    examples) command -v pkg-config >/dev/null || echo pkg-config ;;
    node)
      command -v node >/dev/null || echo nodejs
      command -v npm >/dev/null || echo npm ;;
    clients)
      command -v curl >/dev/null || echo curl
      have_venv || echo python3-venv ;;
    page) have_chromium || echo chromium ;;
    speed) command -v ccache >/dev/null || echo ccache ;;
    editing) have_header histedit.h || echo libedit-dev ;;
    bench) have_header benchmark/benchmark.h || echo libbenchmark-dev ;;
    package)
      have_venv || echo python3-venv
      have_pip || echo python3-pip
      command -v dpkg-shlibdeps >/dev/null || echo dpkg-dev
      command -v file >/dev/null || echo file  # CPack asks it what is a program
      command -v debootstrap >/dev/null || echo debootstrap
      [[ $(uname -m) != x86_64 ]] || command -v qemu-x86_64 >/dev/null || echo qemu-user ;;
    arm)  # scripts/test_arm.sh
      command -v aarch64-linux-gnu-g++ >/dev/null || echo g++-aarch64-linux-gnu
      command -v qemu-aarch64 >/dev/null || echo qemu-user
      [[ -e /usr/src/googletest/googletest/src/gtest-all.cc ]] || echo libgtest-dev ;;
    shells)
      command -v zsh >/dev/null || echo zsh
      command -v fish >/dev/null || echo fish
      command -v mandoc >/dev/null || echo mandoc ;;
    style)
      clang_format_14 >/dev/null || echo clang-format-14
      wanting shellcheck ;;
    shellcheck) command -v shellcheck >/dev/null || echo shellcheck ;;
    lint) command -v clang-tidy >/dev/null || echo clang-tidy ;;
  esac
}

install_packages() {
  local as_root=() proxies=() name
  command -v apt-get >/dev/null || { say "./dev: there is no apt-get here"; return 1; }
  if [[ $(id -u) != 0 ]]; then
    if sudo -n true 2>/dev/null || { command -v sudo >/dev/null && [[ -t 0 ]]; }; then
      as_root=(sudo)
    else
      say "./dev: not root, and no sudo without a password"
      return 1
    fi
  fi
  for name in http_proxy https_proxy no_proxy; do  # sudo drops them
    [[ -z ${!name:-} ]] || proxies+=("$name=${!name}")
  done
  local apt=(${as_root[@]+"${as_root[@]}"} env ${proxies[@]+"${proxies[@]}"}
    DEBIAN_FRONTEND=noninteractive apt-get
    -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -qq)
  local install=("${apt[@]}" install -y --no-install-recommends "$@")
  say "./dev: installing $*"
  "${install[@]}" >&2 || { "${apt[@]}" update >&2 && "${install[@]}" >&2; }
}

# need PURPOSE...: installs what is wanting; if it can't, says what is missing and how to get it.
need() {
  local purpose missing=()
  for purpose in "$@"; do
    mapfile -t -O "${#missing[@]}" missing < <(wanting "$purpose")
  done
  [[ ${#missing[@]} == 0 ]] && return
  if install_packages "${missing[@]}"; then
    mapfile -t missing < <(for purpose in "$@"; do wanting "$purpose"; done)
    [[ ${#missing[@]} == 0 ]] && return
  fi
  [[ " ${missing[*]} " != *" cmake "* ]] || say "./dev: CMake must be 3.25 or newer;" \
    "where apt-get has an older one: pip install 'cmake>=3.25', in an environment on the PATH"
  die "missing: ${missing[*]}. They can't be installed from here (see above: no root, no" \
    "network, or no package of that name). Install them by hand; on Debian or Ubuntu: apt-get install ${missing[*]}"
}

# What every build needs. ccache only saves time, libedit edits the lines of a chat.
need_build() {
  need build
  (need speed editing) || say "./dev: going on without these: ccache saves time," \
    "libedit gives 'outrider chat' arrow keys"
}

# What checks the style. Only some distributions have clang-format 14 (Debian 12 and Ubuntu 22.04 do),
# and apt-get installs nothing at all where it does not know one name: so it is asked for by itself.
# False: going on without it.
need_style() {
  (need shellcheck) && (need style) && return
  [[ ${CI:-} != true ]] ||
    die "the style must be checked by CI, with clang-format 14: run it on Debian 12, which has that"
  say "./dev: going on without the check of the style, which CI makes with clang-format 14"
  return 1
}

# What tests the page in Chromium. Ubuntu has no package of that name: so it is asked for by itself, as
# clang-format 14 is. False: going on without it.
need_page() {
  (need page) && return
  say "./dev: going on without the tests of the page in Chromium (OUTRIDER_CHROMIUM names one that is there)"
  return 1
}

setup_page() {
  need_page || [[ ${CI:-} != true ]] || die "the page must be tested by CI, in Chromium"
}

cmd_setup() {
  need_build
  need models
  case ${1:-} in
    --all)
      need examples node clients shells bench lint package shellcheck
      need_style || true
      setup_page ;;
    --test)
      need examples node clients shells shellcheck
      need_style || true
      setup_page ;;
  esac
}
