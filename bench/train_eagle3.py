#!/usr/bin/env python3
"""Trains an EAGLE-3 head for a small llama model on texts of its own, on the processor or a GPU.

The head guesses the target's next tokens from three of its hidden states (see docs/glossary.md).
What comes out is a GGUF file in the layout of the pinned llama.cpp, beside the target's file.

    python3 -m venv /tmp/train && /tmp/train/bin/pip install torch numpy gguf
    ./dev models smollm2_q4_0
    /tmp/train/bin/python bench/train_eagle3.py TARGET.gguf HEAD.gguf --minutes 50
    /tmp/train/bin/python bench/train_eagle3.py TARGET.gguf WIDE.gguf --weights HEAD.pt --widen 4
    /tmp/train/bin/python bench/train_eagle3.py TARGET.gguf HEAD.gguf --device cuda --minutes 4 \
        --batch 1200 --length 320 --rounds 8 --train-batch 64 --depth 5

It is no part of any build, and needs a few GB of memory. What it does:

1. Texts. The target answers a few thousand prompts, which are made here of subjects and tasks, at
   temperatures from 0 to 1. PyTorch evaluates the weights of the GGUF file (dequantised), many
   texts at once; the hidden states that the head will read are kept on the way, so the target never
   reads a text twice. `--texts FILE` writes them there, or takes them from there if it exists.
2. Training. The head starts from what least squares give in seconds (Head.fit). From each position
   it then guesses `--depth` tokens in a row, each from its own state after the guess before
   (training-time test), and learns the target's distributions. Guesses are of the `--vocab` tokens
   that the target says most (d2t), 0 for all. Embedding and output are the target's and stay.
3. Measuring. On texts at temperature 0 that were kept apart: of the guesses at depth 1, 2, 3 and so
   on whose forerunners were all right, how many are right, and how many tokens a step of so many
   guesses yields.

`--minutes` is the processor time for the whole, so that other work on the machine makes a head later
and not worse; 45 % of it go into texts. With a GPU it is the time by the clock, of which texts may
take 20 %. A modest head needs about an hour. Measured,
SmolLM2-135M-Instruct in Q4_0 (2026-11-25, `--minutes 58`): after 4,005 steps the guesses of depth 1 to
5 are right at 0.491, 0.475, 0.487, 0.392 and 0.077. Least squares alone, on 96 texts: 0.216, 0.109 and
0.000. llama.cpp's guesses are those measured here, but for rounding (outrider-head-acceptance, in
testing/tools).

HEAD.pt holds the trained weights and is written every few minutes, with the
GGUF file; `--weights HEAD.pt` exports or measures them without training, or, with `--minutes`,
goes on. The same seed, threads and number of steps give the same head; with `--minutes` the number
of steps depends on the machine.

`--widen N` writes the head for the target widened N-fold by testing/widen.h: its hidden states are
the old ones followed by zeros, of which `fc` reads the first part. The file then has the embedding
itself, since the widened target's is too wide.

Source: Li, Wei, Zhang, Zhang, "EAGLE-3: Scaling up Inference Acceleration of Large Language Models
via Training-Time Test", 2025 (2503.01840).
"""

import argparse
import math
import os
import sys
import time

import gguf
import numpy
import torch
import torch.nn.functional as F

from eagle3_head import Head
from eagle3_target import Target, Tokenizer, make_texts, make_prompts

KEPT_APART = 12  # texts, at temperature 0, that are measured on
FITTED = 1000  # texts at most that least squares read: they are held as floats, all at once


class Progress:
    """One line that says the part, the count and the time left."""

    def __init__(self):
        self.shown = 0.0

    def show(self, text, last=False):
        now = time.monotonic()
        end = "\r" if sys.stderr.isatty() and not last else "\n"
        if last or now - self.shown > (1 if end == "\r" else 60):
            print(f"{text:<78}", end=end, file=sys.stderr, flush=True)
            self.shown = now


def batches(texts, n_texts, seed):
    """Texts of like lengths together, cut to the shortest, in an order drawn from the seed."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(texts), generator=generator).tolist()
        for i in range(0, len(order), 8 * n_texts):
            near = sorted(order[i : i + 8 * n_texts], key=lambda j: len(texts[j][0]))
            for j in range(0, len(near), n_texts):
                chosen = [texts[k] for k in near[j : j + n_texts]]
                n = min(len(text[0]) for text in chosen)
                yield [torch.stack([text[part][:n] for text in chosen]) for part in range(3)]


def loss_of(head, tokens, taps, last, output, depth):
    """Cross-entropy with the target's distributions, each depth weighing 0.8 of the one before; and
    that of depth 1 alone."""
    with torch.no_grad():
        goal = F.linear(last, output).float().softmax(-1)
    losses = []
    for k, rows in enumerate(head(tokens, taps, depth)):
        n = rows.shape[1] - 1  # the last row guesses behind the text's end: no distribution
        guess = F.linear(rows[:, :n], output).float().log_softmax(-1)
        losses.append(-(goal[:, k + 1 : k + 1 + n] * guess).sum(-1).mean())
    return sum(0.8**k * loss for k, loss in enumerate(losses)), losses[0].detach()


def train(head, texts, vocab, options, deadline, clock, progress, save):
    optimiser = torch.optim.AdamW(head.parameters(), lr=1.0, betas=(0.9, 0.95), weight_decay=0.01)
    output = head.target.output()[vocab]
    began, saved, step, smooth = clock(), clock(), 0, None
    for tokens, taps, last in batches(texts, options.train_batch, options.seed):
        now = clock()
        part = step / options.steps if options.steps else (now - began) / max(1, deadline - began)
        if part >= 1:
            break
        rate = (
            options.rate
            * min(1, (step + 1) / 50)
            * (0.05 + 0.95 * (1 + math.cos(math.pi * part)) / 2)
        )
        for group in optimiser.param_groups:
            group["lr"] = rate
        # Deeper guesses are learnt later: at first they are made of states that say nothing.
        depth = min(options.depth, 1 + int(part * options.depth))
        with torch.autocast(options.device, torch.bfloat16, enabled=not options.exact):
            loss, first = loss_of(head, tokens, taps.float(), last.float(), output, depth)
        smooth = first if smooth is None else 0.97 * smooth + 0.03 * first
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()
        step += 1
        if step % 10 == 0:  # a GPU is waited for
            left = f"{options.steps - step} steps"
            if not options.steps:
                left = f"{(deadline - now) / 60:.0f} min"
            progress.show(f"training: step {step}, loss at depth 1 {smooth:.3f}, {left} left")
        if now - saved > 300:
            save()
            saved = now
    progress.show(f"training: {step} steps, loss at depth 1 {smooth or 0:.3f}", last=True)


@torch.no_grad()
def measure(head, texts, vocab, depth):
    """Of the guesses at each depth whose forerunners were right: how many there are, and right."""
    output, counts = head.target.output()[vocab], [[0, 0] for _ in range(depth)]
    for tokens, taps, last, n_prompt in texts:
        alive = torch.arange(len(tokens) - 1, device=tokens.device) + 2 >= n_prompt
        for k, rows in enumerate(head(tokens[None], taps[None].float(), depth)):
            n = rows.shape[1] - 1
            guess = vocab[F.linear(rows[0, :n], output).argmax(-1)]
            right = guess == tokens[k + 2 : k + 2 + n]
            alive = alive[:n]
            counts[k][0] += int(alive.sum())
            counts[k][1] += int((alive & right).sum())
            alive = alive & right
    return counts


def report(counts):
    print("depth  guesses  right  share  tokens a step of so many guesses")
    tokens, alive = 1.0, 1.0
    for k, (n, right) in enumerate(counts):
        share = right / max(1, n)
        alive *= share
        tokens += alive
        print(f"{k + 1:5}  {n:7}  {right:5}  {share:5.3f}  {tokens:.2f}")


def add_keys(writer, target, taps, wide):
    """Metadata: the head's shape, the target's tokenizer. `wide`: the target's n_embd."""
    writer.add_name(target.name + " eagle3")
    writer.add_block_count(1)
    writer.add_context_length(target.n_ctx)
    writer.add_embedding_length(target.n_embd)
    writer.add_feed_forward_length(target.n_ff)
    writer.add_head_count(target.n_head)
    writer.add_head_count_kv(target.n_head_kv)
    writer.add_key_length(target.size)
    writer.add_value_length(target.size)
    writer.add_rope_dimension_count(target.size)
    writer.add_rope_freq_base(target.rope_base)
    writer.add_layer_norm_rms_eps(target.epsilon)
    writer.add_vocab_size(target.n_vocab)
    writer.add_array("eagle3.target_layers", list(taps))
    writer.add_uint32("eagle3.target_hidden_size", wide)
    for name, field in target.reader.fields.items():
        if name.startswith("tokenizer."):
            kind = field.types[0]
            sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), kind, sub)


def add_weights(writer, head, wide):
    """The head's own tensors. Matrices are Q8_0, since a head's errors only cost acceptance."""
    q8 = gguf.GGMLQuantizationType.Q8_0

    def add(name, tensor):
        data = tensor.detach().float().cpu().numpy()
        if data.ndim == 1:
            writer.add_tensor(name, data)
        else:
            writer.add_tensor(name, gguf.quants.quantize(data, q8), raw_dtype=q8)

    n = head.target.n_embd
    fc = torch.zeros(n, 3 * wide)
    for i in range(3):
        columns = slice(i * n, (i + 1) * n)
        fc[:, i * wide : i * wide + n] = (head.fc.detach()[:, columns] / head.scale[columns]).cpu()
    add("fc.weight", fc)
    for name in (
        "attn_norm",
        "attn_norm_2",
        "attn_q",
        "attn_k",
        "attn_v",
        "attn_output",
        "ffn_norm",
        "ffn_gate",
        "ffn_up",
        "ffn_down",
    ):
        add(f"blk.0.{name}.weight", getattr(head, name))
    add("output_norm.weight", head.output_norm)


def export(head, vocab, path, options):
    """The GGUF file."""
    target, widen, vocab = head.target, options.widen, vocab.cpu()
    wide = target.n_embd * widen
    unfinished = path + ".part"
    writer = gguf.GGUFWriter(unfinished, "eagle3")
    add_keys(writer, target, options.taps, wide)
    add_weights(writer, head, wide)
    if widen > 1:
        embedding = target.tensors["token_embd.weight"]
        writer.add_tensor("token_embd.weight", embedding.data, raw_dtype=embedding.tensor_type)
    if widen > 1 or len(vocab) < target.n_vocab:
        output = target.tensors[target.output_name]  # its rows, as they are
        rows = output.data if len(vocab) == target.n_vocab else output.data[vocab.numpy()]
        writer.add_tensor(
            "output.weight", numpy.ascontiguousarray(rows), raw_dtype=output.tensor_type
        )
    if len(vocab) < target.n_vocab:
        writer.add_tensor("d2t", vocab.numpy().astype(numpy.int64))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(unfinished, path)


def parse_arguments():
    parser = argparse.ArgumentParser(
        formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__
    )
    parser.add_argument("target", help="GGUF file of a llama model")
    parser.add_argument(
        "head", help="the GGUF file to write; HEAD.pt, the trained weights, lies beside it"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="(cpu)")
    parser.add_argument(
        "--minutes", type=float, help="for all of it, of processor time, with a GPU by the clock (50)"
    )
    parser.add_argument("--steps", type=int, default=0, help="of training, instead of its time")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch (1)")
    parser.add_argument("--seed", type=int, default=1, help="of everything random (1)")
    parser.add_argument(
        "--texts", help="file to keep the texts in, or to take them from if it is there"
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="times that each task meets each subject at most (1)"
    )
    parser.add_argument("--weights", help="a .pt file of an earlier run for the same target")
    parser.add_argument(
        "--vocab", type=int, default=8192, help="tokens that the head knows, 0: all (8192)"
    )
    parser.add_argument("--depth", type=int, default=3, help="guesses in a row in training (3)")
    parser.add_argument(
        "--measured-depth", type=int, default=5, help="guesses in a row at the end (5)"
    )
    parser.add_argument(
        "--taps",
        type=lambda text: tuple(map(int, text.split(","))),
        help="three layers whose input is read (2, the middle, the last but one)",
    )
    parser.add_argument("--batch", type=int, default=96, help="texts that are made at a time (96)")
    parser.add_argument("--length", type=int, default=224, help="tokens of a text at most (224)")
    parser.add_argument("--train-batch", type=int, default=4, help="texts a step (4)")
    parser.add_argument("--rate", type=float, default=1e-3, help="learning rate (0.001)")
    parser.add_argument(
        "--exact",
        action="store_true",
        help="multiply in float32, not in bfloat16, which some processors do twice as fast",
    )
    parser.add_argument(
        "--widen", type=int, default=1, help="write the head for the target widened so (1)"
    )
    options = parser.parse_args()
    if options.minutes is None:
        options.minutes = 0 if options.weights else 50
    return options


def check_taps(taps, n_layer):
    rising = len(taps) == 3 and list(taps) == sorted(set(taps))
    if not rising or not (0 <= taps[0] and taps[2] < n_layer):
        sys.exit(f"--taps wants three rising layers from 0 to {n_layer - 1}")


def find_texts(target, options, began, clock, progress):
    """Those of --texts, else as many as the time allows; None: none are needed."""
    if options.texts and os.path.exists(options.texts):
        kept = torch.load(options.texts, map_location=target.device)
        if tuple(kept["taps"]) != tuple(options.taps):
            sys.exit(f"--texts was made with --taps {kept['taps']}")
        return kept["texts"]
    if options.minutes <= 0:
        return None
    prompts = make_prompts(Tokenizer(target.reader), KEPT_APART, options.rounds, options.seed)
    share = 0.45 if options.device == "cpu" else 0.2
    deadline = began + 60 * share * options.minutes
    texts = make_texts(target, options, prompts, deadline, clock, progress)
    if options.texts:
        torch.save({"texts": texts, "taps": options.taps}, options.texts)
    n = sum(len(text[0]) for text in texts)
    progress.show(f"texts: {len(texts)} of {n} tokens in {clock() - began:.0f} s", last=True)
    return texts


def choose_vocab(target, texts, n_wanted):
    """The tokens that the texts have most, `n_wanted` of them (0: all), and the size of each of the
    inputs that the head reads."""
    counts = torch.zeros(target.n_vocab, device=target.device)
    squares, n = torch.zeros(3 * target.n_embd, device=target.device), 0
    for tokens, taps, _, _ in texts:
        counts += torch.bincount(tokens, minlength=target.n_vocab)
        squares += taps.float().flatten(1).pow(2).sum(0)
        n += len(tokens)
    scale = (squares / n).sqrt() + 1e-3
    size = n_wanted if 0 < n_wanted < target.n_vocab else target.n_vocab
    return counts.argsort(descending=True, stable=True)[:size].sort().values, scale


def main():
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    clock = time.process_time if options.device == "cpu" else time.monotonic
    began, progress = clock(), Progress()
    target = Target(
        options.target, torch.float32 if options.exact else torch.bfloat16, options.device
    )
    saved = torch.load(options.weights, map_location=target.device) if options.weights else None
    if saved:
        options.taps = saved["taps"]
    options.taps = options.taps or (2, target.n_layer // 2, target.n_layer - 2)
    check_taps(options.taps, target.n_layer)
    texts = find_texts(target, options, began, clock, progress)
    if saved:
        vocab, scale = saved["vocab"], saved["state"]["scale"]
    else:
        vocab, scale = choose_vocab(target, texts[KEPT_APART:], options.vocab)
    head = Head(target, scale)
    if saved:
        head.load_state_dict(saved["state"])
    else:
        head.fit(texts[KEPT_APART : KEPT_APART + FITTED], vocab)

    def save():
        torch.save(
            {"state": head.state_dict(), "vocab": vocab, "taps": options.taps},
            options.head.removesuffix(".gguf") + ".pt",
        )
        export(head, vocab, options.head, options)

    if options.minutes > 0 or options.steps > 0:
        deadline = began + 60 * options.minutes
        train(head, texts[KEPT_APART:], vocab, options, deadline, clock, progress, save)
        save()
    else:
        export(head, vocab, options.head, options)
    if texts:
        report(measure(head, texts[:KEPT_APART], vocab, options.measured_depth))
    print(
        f"{options.head}: EAGLE-3, taps {options.taps}, {len(vocab)} tokens, seed {options.seed}, "
        f"{clock() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
