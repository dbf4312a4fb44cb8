#!/usr/bin/env python3
"""Trains an EAGLE-3 head for a small llama model on texts of its own, on the processor.

The head guesses the target's next tokens from three of its hidden states (see docs/glossary.md).
What comes out is a GGUF file in the layout of the pinned llama.cpp, beside the target's file.

    python3 -m venv /tmp/train && /tmp/train/bin/pip install torch numpy gguf
    ./dev models smollm2_q4_0
    /tmp/train/bin/python bench/train_eagle3.py TARGET.gguf HEAD.gguf --minutes 50
    /tmp/train/bin/python bench/train_eagle3.py TARGET.gguf WIDE.gguf --weights HEAD.pt --widen 4

It is no part of any build, and needs a few GB of memory. What it does:

1. Texts. The target answers a few thousand prompts, which are made here of subjects and tasks, at
   temperatures from 0 to 1. PyTorch evaluates the weights of the GGUF file (dequantised), many
   texts at once; the hidden states that the head will read are kept on the way, so the target never
   reads a text twice. They are written to HEAD.texts.pt, and `--texts` takes them again.
2. Training. From each position the head guesses `--depth` tokens in a row, each from its own state
   after the guess before (training-time test), and learns the target's distributions. Guesses are
   of the `--vocab` tokens that the target says most (d2t), 0 for all. Embedding and output are the
   target's and stay as they are.
3. Measuring. On texts at temperature 0 that were kept apart: of the guesses at depth 1, 2, 3 and so
   on whose forerunners were all right, how many are right, and how many tokens a step of so many
   guesses yields.

`--minutes` is the time for the whole; 45 % of it go into texts. It needs about an hour of one idle
core for a modest head. HEAD.pt holds the trained weights and is written every few minutes, with the
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
import itertools
import math
import re
import sys
import time

import gguf
import numpy
import torch
import torch.nn.functional as F

SUBJECTS = """the sea|a lost dog|photosynthesis|the Roman Empire|baking bread|a haunted house|black holes
a bicycle|climate change|prime numbers|the human heart|jazz music|a robot|volcanoes|gardening|chess
the printing press|dinosaurs|a job interview|electric cars|the moon|a birthday party|Python lists
vaccines|rivers|sorting algorithms|friendship|the Great Wall of China|a thunderstorm|coffee|bees
the internet|a train journey|healthy food|the French Revolution|magnets|a small village|painting
running a marathon|databases|whales|an old library|gravity|saving money|recursion|the desert|football
the water cycle|a secret door|email|penguins|time zones|a grandmother|hash tables|airplanes|sleep
rainbows|learning a language|the stock market|a dragon|recycling|Shakespeare|camping|the brain
cats|city traffic|a mountain guide|binary search|soil|a violin|Mars|the alphabet|salt|a lighthouse
tea|bridges|glaciers|a detective|cooking rice|the calendar|owls|swimming|a clockmaker|wind power
elections|maps|a letter from the past|insects|strings in Python|teamwork|islands|a museum|yoga
""".replace("\n", "|").strip("|").split("|")
TASKS = """Write a short story about {}.|Explain {} to a child.|Write a poem about {}.
What should I know about {}?|List five facts about {}.|Write a Python function that has to do with {}.
Give me some advice about {}.|Summarize what you know about {} in three sentences.
Write a dialogue between two friends about {}.|What are the advantages and disadvantages of {}?
Write an email to a colleague about {}.|Describe {} in detail.|Why is {} important?
Write a news article about {}.|Make a plan for a lesson about {}.|Ask me ten questions about {}.
Compare {} with something else.|Write a description of {} for a web page.
What is the history of {}?|Write a step-by-step guide that has to do with {}.
How would you explain {} to an expert?|Translate a sentence about {} into French and explain it.
""".replace("\n", "|").strip("|").split("|")
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
KEPT_APART = 12  # texts, at temperature 0, that are measured on


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


class Tokenizer:
    """Byte-level BPE of the GGUF file; cuts of words only as exact as training texts need."""

    def __init__(self, reader):
        field = lambda name: reader.fields["tokenizer.ggml." + name].contents()
        if field("model") != "gpt2":
            sys.exit("the target's tokenizer is not of the kind gpt2 (byte-level BPE)")
        self.ids = {text: i for i, text in enumerate(field("tokens"))}
        self.ranks = {tuple(merge.split(" ")): i for i, merge in enumerate(field("merges"))}
        self.special = [t for t in ("<|im_start|>", "<|im_end|>") if t in self.ids]
        plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [b for b in range(256) if b not in plain]
        self.letters = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}

    def encode(self, text):
        if self.special:
            parts = re.split("(" + "|".join(map(re.escape, self.special)) + ")", text)
        else:
            parts = [text]
        ids = []
        for part in parts:
            if part in self.special:
                ids.append(self.ids[part])
                continue
            for word in re.findall(r"'(?:[stmd]|ll|ve|re)| ?[^\W\d_]+|\d| ?[^\s\w]+|\s+(?!\S)|\s", part):
                ids += self.encode_word(word)
        return ids

    def encode_word(self, word):
        pieces = [self.letters[b] for b in word.encode()]
        while len(pieces) > 1:
            pairs = [(self.ranks.get(p, math.inf), i) for i, p in enumerate(itertools.pairwise(pieces))]
            rank, i = min(pairs)
            if rank == math.inf:
                break
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
        return [self.ids[piece] for piece in pieces]


def rotate(x, angles):
    """Rotary position as llama.cpp's llama models and EAGLE-3 heads have it: neighbours are pairs.

    x [..., n, size], angles [n, size / 2], or anything that broadcasts so.
    """
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def rms_norm(x, weight, epsilon):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * weight


class Target:
    """The GGUF file's model, evaluated one token of many texts at a time."""

    def __init__(self, path, multiplied_in):
        self.reader = gguf.GGUFReader(path)
        self.tensors = {tensor.name: tensor for tensor in self.reader.tensors}
        key = lambda name, other=None: (
            self.reader.fields[name].contents() if name in self.reader.fields else other)
        self.architecture = key("general.architecture")
        if self.architecture != "llama":
            sys.exit(f"'{path}' has the architecture '{self.architecture}'; give one of 'llama'")
        self.name = key("general.name", "target")
        self.n_layer = key("llama.block_count")
        self.n_embd = key("llama.embedding_length")
        self.n_ff = key("llama.feed_forward_length")
        self.n_head = key("llama.attention.head_count")
        self.n_head_kv = key("llama.attention.head_count_kv", self.n_head)
        self.size = key("llama.rope.dimension_count", self.n_embd // self.n_head)
        self.n_ctx = key("llama.context_length")
        self.epsilon = key("llama.attention.layer_norm_rms_epsilon")
        self.rope_base = key("llama.rope.freq_base", 10000.0)
        if "rope_freqs.weight" in self.tensors:
            sys.exit(f"'{path}' has factors of rotary position, which this script does not know")
        self.frequencies = self.rope_base ** (-torch.arange(0, self.size, 2).float() / self.size)
        self.output_name = "output.weight" if "output.weight" in self.tensors else "token_embd.weight"
        self.w = {name: self.dequantised(name) for name in self.tensors}
        # Of the layers' matrices, in the type that they are multiplied in.
        self.matrices = {name: tensor.to(multiplied_in) for name, tensor in self.w.items()
                         if name.startswith("blk.") and tensor.dim() == 2}
        self.n_vocab = self.w["token_embd.weight"].shape[0]

    def dequantised(self, name):
        tensor = self.tensors[name]
        return torch.from_numpy(
            numpy.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=numpy.float32))

    def linear(self, x, name):
        weight = self.matrices[name + ".weight"]
        return F.linear(x.to(weight.dtype), weight).float()

    def output(self):
        return self.w[self.output_name]

    def start(self, n_texts, n_tokens):
        shape = (n_texts, self.n_head_kv, n_tokens, self.size)
        self.cache = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(self.n_layer)]

    def step(self, tokens, position, taps):
        """Evaluates tokens [n] at `position`; returns the inputs of layers `taps`, [n, taps, n_embd],
        and what the output matrix reads, [n, n_embd]."""
        w, groups = self.w, self.n_head // self.n_head_kv
        n, angles, kept = len(tokens), position * self.frequencies, []
        x = w["token_embd.weight"][tokens]
        for layer in range(self.n_layer):
            b = f"blk.{layer}."
            if layer in taps:
                kept.append(x)
            h = rms_norm(x, w[b + "attn_norm.weight"], self.epsilon)
            q = self.linear(h, b + "attn_q").view(n, self.n_head, self.size)
            k = self.linear(h, b + "attn_k").view(n, self.n_head_kv, self.size)
            v = self.linear(h, b + "attn_v").view(n, self.n_head_kv, self.size)
            keys, values = self.cache[layer]
            keys[:, :, position] = rotate(k, angles)
            values[:, :, position] = v
            q = rotate(q, angles).view(n, self.n_head_kv, groups, self.size)
            scores = q @ keys[:, :, : position + 1].transpose(2, 3) / math.sqrt(self.size)
            mixed = scores.softmax(-1) @ values[:, :, : position + 1]
            x = x + self.linear(mixed.view(n, -1), b + "attn_output")
            h = rms_norm(x, w[b + "ffn_norm.weight"], self.epsilon)
            gate = F.silu(self.linear(h, b + "ffn_gate")) * self.linear(h, b + "ffn_up")
            x = x + self.linear(gate, b + "ffn_down")
        return torch.stack(kept, 1), rms_norm(x, w["output_norm.weight"], self.epsilon)


@torch.no_grad()
def make_texts(target, options, prompts, temperatures, deadline, progress):
    """A list of (tokens [n], taps [n, 3, n_embd], last [n, n_embd]), as half floats, and how many
    tokens of each were the prompt."""
    texts, done, began = [], 0, time.monotonic()
    generator = torch.Generator().manual_seed(options.seed)
    ends = {target.reader.fields["tokenizer.ggml.eos_token_id"].contents()}
    for start in range(0, len(prompts), options.batch):
        batch = prompts[start : start + options.batch]
        heat = torch.tensor(temperatures[start : start + len(batch)])[:, None]
        n = len(batch)
        target.start(n, options.length)
        tokens = torch.tensor([prompt[0] for prompt in batch])
        rows, all_taps, all_last, length = [], [], [], [0] * n
        for position in range(options.length):
            taps, last = target.step(tokens, position, options.taps)
            rows.append(tokens)
            all_taps.append(taps.half())
            all_last.append(last.half())
            logits = F.linear(last, target.output())
            noise = torch.empty_like(logits).exponential_(generator=generator).log()
            tokens = (logits - heat * noise).argmax(-1)  # Gumbel's trick
            for i, prompt in enumerate(batch):
                if position + 1 < len(prompt):
                    tokens[i] = prompt[position + 1]
                elif length[i] == 0 and int(rows[-1][i]) in ends and position >= len(prompt):
                    length[i] = position + 1
            done += n
            left = deadline - time.monotonic()
            progress.show(f"texts: {done} tokens, {done / (time.monotonic() - began):.0f} a second, "
                          f"{max(0, left) / 60:.0f} min left")
            if all(length) or (left < 0 and texts):
                break
        ids, taps, last = torch.stack(rows, 1), torch.stack(all_taps, 1), torch.stack(all_last, 1)
        for i, prompt in enumerate(batch):
            end = length[i] or ids.shape[1]
            if end > len(prompt) + 4:
                texts.append((ids[i, :end].clone(), taps[i, :end].clone(), last[i, :end].clone(),
                              len(prompt)))
        if left < 0:
            break
    return texts


class Head(torch.nn.Module):
    """The head, with its tensors' names in the file (dots are double underscores)."""

    def __init__(self, target, scale):
        super().__init__()
        self.target, self.heads, self.heads_kv = target, target.n_head, target.n_head_kv
        n, size = target.n_embd, target.size
        weight = lambda rows, columns: torch.nn.Parameter(
            torch.randn(rows, columns) / math.sqrt(columns))
        ones = lambda: torch.nn.Parameter(torch.ones(n))
        # Inputs are divided by each dimension's size, which differs by orders of magnitude; the
        # file's fc does both. It starts from the last tap.
        self.register_buffer("scale", scale)
        self.fc = torch.nn.Parameter(0.02 * torch.randn(n, 3 * n) / math.sqrt(3 * n))
        with torch.no_grad():
            self.fc[:, 2 * n :] += torch.eye(n)
        self.attn_norm, self.attn_norm_2 = ones(), ones()
        self.attn_q = weight(self.heads * size, 2 * n)
        self.attn_k = weight(self.heads_kv * size, 2 * n)
        self.attn_v = weight(self.heads_kv * size, 2 * n)
        self.attn_output = weight(n, self.heads * size)
        # The feed-forward part starts as the target's last.
        last = f"blk.{target.n_layer - 1}."
        copy = lambda name: torch.nn.Parameter(target.w[last + name + ".weight"].clone())
        self.ffn_norm = copy("ffn_norm")
        self.ffn_gate, self.ffn_up, self.ffn_down = map(copy, ("ffn_gate", "ffn_up", "ffn_down"))
        # Smaller than the target's: a head that knows nothing should not be sure of it.
        self.output_norm = torch.nn.Parameter(0.3 * target.w["output_norm.weight"])

    def fuse(self, taps):
        return F.linear(taps.flatten(-2) / self.scale, self.fc)

    def forward(self, tokens, taps, depth):
        """Guesses from all positions at once: tokens [b, n], taps [b, n, 3, n_embd]. Yields for each
        depth k = 0.. what the output matrix reads, [b, n - k - 1, n_embd]: row i guesses the token
        at i + k + 2 from the tap of i and the tokens up to i + k + 1."""
        t, eps = self.target, self.target.epsilon
        b, n = tokens.shape
        state = self.fuse(taps[:, : n - 1])
        kept_keys, kept_values = [], []
        for k in range(depth):
            m = n - 1 - k
            state = state[:, :m]
            embedding = t.w["token_embd.weight"][tokens[:, k + 1 : k + 1 + m]]
            h = torch.cat((rms_norm(embedding, self.attn_norm, eps),
                           rms_norm(state, self.attn_norm_2, eps)), -1)
            angles = (torch.arange(m) + k)[:, None] * t.frequencies
            split = lambda x, heads: x.view(b, m, heads, t.size).transpose(1, 2)
            q = rotate(split(F.linear(h, self.attn_q), self.heads), angles)
            key = rotate(split(F.linear(h, self.attn_k), self.heads_kv), angles)
            value = split(F.linear(h, self.attn_v), self.heads_kv)
            kept_keys.append(key)
            kept_values.append(value)
            mixed = self.attend(q, kept_keys, kept_values, m)
            state = state + F.linear(mixed.transpose(1, 2).reshape(b, m, -1), self.attn_output)
            h = rms_norm(state, self.ffn_norm, eps)
            state = state + F.linear(F.silu(F.linear(h, self.ffn_gate)) * F.linear(h, self.ffn_up),
                                     self.ffn_down)
            yield rms_norm(state, self.output_norm, eps)

    def attend(self, q, keys, values, m):
        """The k-th guess from position i sees the taps' entries up to i and its own forerunners."""
        groups, size = self.heads // self.heads_kv, self.target.size
        q = q.unflatten(1, (self.heads_kv, groups)) / math.sqrt(size)  # [b, kv, groups, m, size]
        first = q @ keys[0][:, :, None, :m].transpose(-1, -2)
        first = first + torch.full((m, m), -math.inf).triu(1)
        own = [(q * k[:, :, None, :m]).sum(-1, keepdim=True) for k in keys[1:]]
        weights = torch.cat([first, *own], -1).softmax(-1)
        mixed = weights[..., :m] @ values[0][:, :, None, :m]
        for i, value in enumerate(values[1:]):
            mixed = mixed + weights[..., m + i, None] * value[:, :, None, :m]
        return mixed.flatten(1, 2)


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
    return sum(0.8**k * loss for k, loss in enumerate(losses)), losses[0].item()


def train(head, texts, vocab, options, deadline, progress, save):
    optimiser = torch.optim.AdamW(head.parameters(), lr=1.0, betas=(0.9, 0.95), weight_decay=0.01)
    output = head.target.output()[vocab]
    began, saved, step, smooth = time.monotonic(), time.monotonic(), 0, None
    for tokens, taps, last in batches(texts, options.train_batch, options.seed):
        now = time.monotonic()
        part = step / options.steps if options.steps else (now - began) / max(1, deadline - began)
        if part >= 1:
            break
        rate = options.rate * min(1, (step + 1) / 50) * (0.05 + 0.95 * (1 + math.cos(math.pi * part)) / 2)
        for group in optimiser.param_groups:
            group["lr"] = rate
        # Deeper guesses are learnt later: at first they are made of states that say nothing.
        depth = min(options.depth, 1 + int(part * options.depth))
        with torch.autocast("cpu", torch.bfloat16, enabled=not options.exact):
            loss, first = loss_of(head, tokens, taps.float(), last.float(), output, depth)
        smooth = first if smooth is None else 0.97 * smooth + 0.03 * first
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()
        step += 1
        progress.show(f"training: step {step}, loss at depth 1 {smooth:.3f}, "
                      f"{max(0, deadline - now) / 60:.0f} min left")
        if now - saved > 300:
            save()
            saved = now
    progress.show(f"training: {step} steps, loss at depth 1 {smooth or 0:.3f}", last=True)


@torch.no_grad()
def measure(head, texts, vocab, depth):
    """Of the guesses at each depth whose forerunners were right: how many there are, and right."""
    output, counts = head.target.output()[vocab], [[0, 0] for _ in range(depth)]
    for tokens, taps, last, n_prompt in texts:
        alive = torch.arange(len(tokens) - 1) + 2 >= n_prompt
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


def export(head, vocab, path, options):
    """The GGUF file. Matrices are Q8_0, since a head's errors only cost acceptance."""
    target, widen = head.target, options.widen
    wide = target.n_embd * widen
    writer = gguf.GGUFWriter(path, "eagle3")
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
    writer.add_array("eagle3.target_layers", list(options.taps))
    writer.add_uint32("eagle3.target_hidden_size", wide)
    for name, field in target.reader.fields.items():
        if name.startswith("tokenizer."):
            kind = field.types[0]
            sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), kind, sub)
    q8 = gguf.GGMLQuantizationType.Q8_0

    def add(name, tensor):
        data = tensor.detach().float().numpy()
        if data.ndim == 1:
            writer.add_tensor(name, data)
        else:
            writer.add_tensor(name, gguf.quants.quantize(data, q8), raw_dtype=q8)

    n = target.n_embd
    fc = torch.zeros(n, 3 * wide)
    for i in range(3):
        columns = slice(i * n, (i + 1) * n)
        fc[:, i * wide : i * wide + n] = head.fc.detach()[:, columns] / head.scale[columns]
    add("fc.weight", fc)
    for name in ("attn_norm", "attn_norm_2", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm",
                 "ffn_gate", "ffn_up", "ffn_down"):
        add(f"blk.0.{name}.weight", getattr(head, name))
    add("output_norm.weight", head.output_norm)
    if widen > 1:
        embedding = target.tensors["token_embd.weight"]
        writer.add_tensor("token_embd.weight", embedding.data, raw_dtype=embedding.tensor_type)
    if widen > 1 or len(vocab) < target.n_vocab:
        output = target.tensors[target.output_name]  # its rows, as they are
        rows = output.data if len(vocab) == target.n_vocab else output.data[vocab.numpy()]
        writer.add_tensor("output.weight", numpy.ascontiguousarray(rows), raw_dtype=output.tensor_type)
    if len(vocab) < target.n_vocab:
        writer.add_tensor("d2t", vocab.numpy().astype(numpy.int64))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def parse_arguments():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description=__doc__)
    parser.add_argument("target", help="GGUF file of a llama model")
    parser.add_argument("head", help="the GGUF file to write; HEAD.pt and HEAD.texts.pt lie beside it")
    parser.add_argument("--minutes", type=float, help="time for all of it (50)")
    parser.add_argument("--steps", type=int, default=0, help="of training, instead of its time")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch (1)")
    parser.add_argument("--seed", type=int, default=1, help="of everything random (1)")
    parser.add_argument("--texts", help="a .texts.pt file of an earlier run for the same target")
    parser.add_argument("--weights", help="a .pt file of an earlier run for the same target")
    parser.add_argument("--vocab", type=int, default=8192, help="tokens that the head knows, 0: all (8192)")
    parser.add_argument("--depth", type=int, default=3, help="guesses in a row in training (3)")
    parser.add_argument("--measured-depth", type=int, default=5, help="guesses in a row at the end (5)")
    parser.add_argument("--taps", type=lambda text: tuple(map(int, text.split(","))),
                        help="three layers whose input is read (2, the middle, the last but one)")
    parser.add_argument("--batch", type=int, default=96, help="texts that are made at a time (96)")
    parser.add_argument("--length", type=int, default=224, help="tokens of a text at most (224)")
    parser.add_argument("--train-batch", type=int, default=4, help="texts a step (4)")
    parser.add_argument("--rate", type=float, default=1e-3, help="learning rate (0.001)")
    parser.add_argument("--exact", action="store_true",
                        help="multiply in float32, not in bfloat16, which some processors do twice as fast")
    parser.add_argument("--widen", type=int, default=1, help="write the head for the target widened so (1)")
    options = parser.parse_args()
    if options.minutes is None:
        options.minutes = 0 if options.weights else 50
    return options


def prompts_of(tokenizer, seed):
    """Token lists, in an order drawn from the seed, and a temperature for each; the first
    KEPT_APART at 0."""
    pairs = [task.format(subject) for task in TASKS for subject in SUBJECTS]
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(seed)).tolist()
    prompts = [tokenizer.encode(f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n"
                                f"{pairs[i]}<|im_end|>\n<|im_start|>assistant\n") for i in order]
    heats = [0.0 if i < KEPT_APART else (0.0, 0.4, 0.7, 1.0)[i % 4] for i in range(len(prompts))]
    return prompts, heats


def main():
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    began, progress = time.monotonic(), Progress()
    target = Target(options.target, torch.float32 if options.exact else torch.bfloat16)
    options.taps = options.taps or (2, target.n_layer // 2, target.n_layer - 2)
    if len(options.taps) != 3 or list(options.taps) != sorted(set(options.taps)) or not (
            0 <= options.taps[0] and options.taps[2] < target.n_layer):
        sys.exit(f"--taps wants three rising layers from 0 to {target.n_layer - 1}")
    saved = torch.load(options.weights) if options.weights else None
    texts = None
    if options.texts:
        kept = torch.load(options.texts)
        if tuple(kept["taps"]) != tuple(options.taps):
            sys.exit(f"--texts was made with --taps {kept['taps']}")
        texts = kept["texts"]
    elif options.minutes > 0:
        prompts, heats = prompts_of(Tokenizer(target.reader), options.seed)
        texts = make_texts(target, options, prompts, heats, began + 60 * 0.45 * options.minutes, progress)
        torch.save({"texts": texts, "taps": options.taps}, options.head.removesuffix(".gguf") + ".texts.pt")
        n = sum(len(text[0]) for text in texts)
        progress.show(f"texts: {len(texts)} of {n} tokens in {time.monotonic() - began:.0f} s", last=True)

    if saved:
        vocab, scale, options.taps = saved["vocab"], saved["state"]["scale"], saved["taps"]
    else:
        counts = torch.zeros(target.n_vocab)
        squares, n = torch.zeros(3 * target.n_embd), 0
        for tokens, taps, _, _ in texts[KEPT_APART:]:
            counts += torch.bincount(tokens, minlength=target.n_vocab)
            squares += taps.float().flatten(1).pow(2).sum(0)
            n += len(tokens)
        scale = (squares / n).sqrt() + 1e-3
        size = options.vocab if 0 < options.vocab < target.n_vocab else target.n_vocab
        vocab = counts.argsort(descending=True, stable=True)[:size].sort().values
    head = Head(target, scale)
    if saved:
        head.load_state_dict(saved["state"])

    def save():
        torch.save({"state": head.state_dict(), "vocab": vocab, "taps": options.taps},
                   options.head.removesuffix(".gguf") + ".pt")
        export(head, vocab, options.head, options)

    if options.minutes > 0 or options.steps > 0:
        train(head, texts[KEPT_APART:], vocab, options, began + 60 * options.minutes, progress, save)
        save()
    else:
        export(head, vocab, options.head, options)
    if texts:
        report(measure(head, texts[:KEPT_APART], vocab, options.measured_depth))
    print(f"{options.head}: EAGLE-3, taps {options.taps}, {len(vocab)} tokens, seed {options.seed}, "
          f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
