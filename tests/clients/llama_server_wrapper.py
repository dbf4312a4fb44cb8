#!/usr/bin/env python3
"""llama-server's command line for `outrider serve`, as far as llama.cpp's server tests use it.

The tests start a server by LLAMA_SERVER_BIN_PATH; this is that program. Options become those of
`outrider serve`, and models of a hub become tiny ones with random weights, made by
outrider-tiny-model: there is no hub here. An option that has no counterpart is an error, so that the
test that needs it fails.

  OUTRIDER              the command `outrider`
  OUTRIDER_TINY_MODEL   the program `outrider-tiny-model`
  OUTRIDER_TEST_MODELS  a folder for the models

Run by llama_server_tests.py.
"""
import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path

# What outrider-tiny-model makes in place of a model, by a part of its name; the first that fits.
MODELS = {
    "stories260K-infill": ["--fill-in"],
    "stories15M_MOE": ["--experts", "4"],
    "stories260K": [],
}
SPACE_PREFIX = ["--space-prefix"]  # as the tokenizer of the real ones

# Templates that llama-server knows by name, as files of its source; None: what tiny models have.
TEMPLATES = {"chatml": None, "llama3": "meta-llama-Llama-3.1-8B-Instruct.jinja"}

# Options that change nothing here: how the engine computes, or what is always so.
WITHOUT_EFFECT = ["--offline", "--cont-batching", "--jinja", "--metrics", "--slots", "--verbose",
                  "--swa-full", "--no-mmproj", "--no-cache-idle-slots", "--backend_sampling"]
WITHOUT_EFFECT_VALUES = ["--ubatch-size", "--cache-ram", "--spec-draft-n-min", "--spec-type",
                         "--reasoning-format"]


def parse(arguments):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in WITHOUT_EFFECT:
        parser.add_argument(name, action="store_true")
    for name in WITHOUT_EFFECT_VALUES:
        parser.add_argument(name)
    for name in ["--hf-repo", "--hf-file", "--model", "--model-draft", "--host", "--port", "--alias",
                 "--temp", "--seed", "--threads", "--batch-size", "--n-predict", "--api-key",
                 "--chat-template", "--chat-template-file", "--reasoning", "--cors-origins",
                 "--spec-draft-n-max"]:
        parser.add_argument(name)
    parser.add_argument("--ctx-size", type=int, default=4096)
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("-ctk", dest="cache_type_k")
    parser.add_argument("-ctv", dest="cache_type_v")
    parser.add_argument("-fa", dest="flash_attention")
    for name in ["--kv-unified", "--no-jinja", "--no-slots", "--no-ui", "--context-shift",
                 "--embedding", "--reranking"]:
        parser.add_argument(name, action="store_true")
    return parser.parse_args(arguments)


def template_file(options, folder):
    """A file with the template that is asked for; None: the model's own."""
    if options.chat_template_file:
        return Path(options.chat_template_file)
    text = options.chat_template
    if text is None or TEMPLATES.get(text, "") is None:
        return None
    if text in TEMPLATES:
        return Path("../../../models/templates") / TEMPLATES[text]
    if " " not in text and "{" not in text:
        sys.exit(f"there is no file for the built-in template '{text}'")
    path = folder / f"template-{hashlib.sha256(text.encode()).hexdigest()[:12]}.jinja"
    path.write_text(text)
    return path


def model_file(options, folder):
    """The tiny model in place of the one that is asked for, under the name that it is to have."""
    asked = options.hf_repo or options.model or ""
    making = next((made for part, made in MODELS.items() if part in asked + (options.hf_file or "")),
                  None)
    if making is None and options.model and Path(options.model).is_file():
        return Path(options.model)
    template = template_file(options, folder)
    flags = SPACE_PREFIX + (making or [])
    if template is not None:
        flags = flags + ["--chat-template-file", str(template)]
    named = ",".join(sorted((options.alias or "tiny").split(","))).split(",")[0]
    key = hashlib.sha256(" ".join(flags).encode()).hexdigest()[:12]
    path = folder / key / f"{named}.gguf"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([os.environ["OUTRIDER_TINY_MODEL"], str(path), *flags], check=True)
    return path


def serve_arguments(options, folder):
    model = model_file(options, folder)
    # llama-server's context is for all slots together, unless they share it.
    context = options.ctx_size if options.kv_unified else options.ctx_size // options.parallel
    result = ["serve", "-m", str(model), "--ctx", str(context), "--slots", str(options.parallel)]
    if options.model_draft:
        result += ["--draft-model", options.model_draft]
    elif options.spec_type is None:
        result += ["--drafter", "none"]
    if options.spec_draft_n_max:
        result += ["--width", str(int(options.spec_draft_n_max) + 1)]
    for name, value in [("--port", options.port), ("--temp", options.temp),
                        ("--seed", options.seed), ("--threads", options.threads),
                        ("--max-tokens", options.n_predict), ("--api-key", options.api_key),
                        ("--cache-type-k", options.cache_type_k),
                        ("--cache-type-v", options.cache_type_v),
                        ("--flash-attn", options.flash_attention),
                        ("--batch", options.batch_size)]:
        if value is not None:
            result += [name, value]
    if options.host:
        result += ["--host", options.host.split(",")[0]]
    names = [name for name in (options.alias or "").split(",") if name and name != model.stem]
    for name in names:
        result += ["--alias", name]
    for origin in (options.cors_origins or "*").split(","):
        result += ["--cors-origin", origin]
    if options.context_shift:
        result += ["--shift-keep", "0"]
    if options.reasoning == "off":
        result += ["--reasoning=false"]
    if options.no_ui:
        result += ["--no-page"]
    return result


def main():
    options = parse(sys.argv[1:])
    folder = Path(os.environ["OUTRIDER_TEST_MODELS"])
    folder.mkdir(parents=True, exist_ok=True)
    program = os.environ["OUTRIDER"]
    os.execv(program, [program, *serve_arguments(options, folder)])


if __name__ == "__main__":
    main()
