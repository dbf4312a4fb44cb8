"""The target of train_eagle3.py: its GGUF file evaluated by PyTorch, and the texts that it makes."""

import itertools
import math
import re
import sys
import typing

import gguf
import numpy
import torch
import torch.nn.functional as F

SUBJECTS = (
    """the sea|a lost dog|photosynthesis|the Roman Empire|baking bread|a haunted house|black holes
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
)
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
            for word in re.findall(
                r"'(?:[stmd]|ll|ve|re)| ?[^\W\d_]+|\d| ?[^\s\w]+|\s+(?!\S)|\s", part
            ):
                ids += self.encode_word(word)
        return ids

    def encode_word(self, word):
        pieces = [self.letters[b] for b in word.encode()]
        while len(pieces) > 1:
            pairs = [
                (self.ranks.get(p, math.inf), i) for i, p in enumerate(itertools.pairwise(pieces))
            ]
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
    """The GGUF file's model, evaluated one token of many texts at a time. Its tensors, and all that
    is made with them, are on PyTorch's `device`."""

    def __init__(self, path, multiplied_in, device):
        self.device = torch.device(device)
        self.reader = gguf.GGUFReader(path)
        self.tensors = {tensor.name: tensor for tensor in self.reader.tensors}
        key = lambda name, other=None: (
            self.reader.fields[name].contents() if name in self.reader.fields else other
        )
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
        self.frequencies = self.rope_base ** (
            -torch.arange(0, self.size, 2, device=self.device).float() / self.size
        )
        self.output_name = (
            "output.weight" if "output.weight" in self.tensors else "token_embd.weight"
        )
        self.w = {name: self.dequantised(name) for name in self.tensors}
        # Of the layers' matrices, in the type that they are multiplied in.
        self.matrices = {
            name: tensor.to(multiplied_in)
            for name, tensor in self.w.items()
            if name.startswith("blk.") and tensor.dim() == 2
        }
        self.n_vocab = self.w["token_embd.weight"].shape[0]

    def dequantised(self, name):
        tensor = self.tensors[name]
        return torch.from_numpy(
            numpy.array(
                gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=numpy.float32
            )
        ).to(self.device)

    def linear(self, x, name):
        weight = self.matrices[name + ".weight"]
        return F.linear(x.to(weight.dtype), weight).float()

    def output(self):
        return self.w[self.output_name]

    def start(self, n_texts, n_tokens):
        shape = (n_texts, self.n_head_kv, n_tokens, self.size)
        zeros = lambda: torch.zeros(shape, device=self.device)
        self.cache = [(zeros(), zeros()) for _ in range(self.n_layer)]

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


class Prompt(typing.NamedTuple):
    """What a text begins with, and how the target goes on."""

    tokens: list[int]
    temperature: float
    n_ends: int  # the text ends with the so-many-th end of a message that the target says


def make_prompts(tokenizer, n_greedy, rounds, seed):
    """Prompts in an order drawn from the seed, the first `n_greedy` at temperature 0. Each round has
    every task with every subject, in another order and at other temperatures. From the second round
    on there are as many prompts that end where the user's words begin: the target asks itself (Xu
    et al., "Magpie", 2406.08464), so that texts are about more than is listed here."""
    generator = torch.Generator().manual_seed(seed)
    system = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n"
    questions = [
        tokenizer.encode(f"{system}{task.format(subject)}<|im_end|>\n<|im_start|>assistant\n")
        for task in TASKS
        for subject in SUBJECTS
    ]
    unasked = tokenizer.encode(system)
    prompts = []
    for k in range(rounds):
        for n, i in enumerate(torch.randperm(len(questions), generator=generator).tolist()):
            heat = 0.0 if k == 0 and n < n_greedy else (0.0, 0.4, 0.7, 1.0)[(n + k) % 4]
            prompts.append(Prompt(questions[i], heat, n_ends=1))
            if k > 0:
                prompts.append(Prompt(unasked, 1.0, n_ends=2))
    return prompts


def make_batch(target, options, prompts, generator, goes_on):
    """The texts of these prompts, all at once; `goes_on()` is asked after each token."""
    n, device = len(prompts), target.device
    end = target.reader.fields["tokenizer.ggml.eos_token_id"].contents()
    column = lambda values: torch.tensor(values, device=device)
    heat = column([prompt.temperature for prompt in prompts])[:, None]
    n_prompt = column([len(prompt.tokens) for prompt in prompts])
    n_ends = column([prompt.n_ends for prompt in prompts])
    given = torch.full((n, options.length + 1), -1)  # -1: the target chooses
    for i, prompt in enumerate(prompts):
        given[i, : len(prompt.tokens)] = torch.tensor(prompt.tokens)[: options.length + 1]
    given = given.to(device)
    length = torch.full((n,), options.length, device=device)
    tokens, rows, all_taps, all_last = given[:, 0], [], [], []
    target.start(n, options.length)
    for position in range(options.length):
        taps, last = target.step(tokens, position, options.taps)
        rows.append(tokens)
        all_taps.append(taps.half())
        all_last.append(last.half())
        n_ends -= ((tokens == end) & (position >= n_prompt)).int()
        length = torch.where(n_ends <= 0, length.clamp(max=position + 1), length)
        logits = F.linear(last, target.output())
        noise = torch.empty_like(logits).exponential_(generator=generator).log()
        chosen = (logits - heat * noise).argmax(-1)  # Gumbel's trick
        tokens = torch.where(given[:, position + 1] < 0, chosen, given[:, position + 1])
        if not goes_on() or (position % 16 == 15 and int(n_ends.max()) <= 0):  # asking a GPU waits
            break
    ids, taps, last = torch.stack(rows, 1), torch.stack(all_taps, 1), torch.stack(all_last, 1)
    for i, n_text in enumerate(length.clamp(max=ids.shape[1]).tolist()):
        if n_text > len(prompts[i].tokens) + 4:
            parts = (ids[i, :n_text], taps[i, :n_text], last[i, :n_text])
            yield (*(part.clone() for part in parts), len(prompts[i].tokens))


@torch.no_grad()
def make_texts(target, options, prompts, deadline, clock, progress):
    """A list of (tokens [n], taps [n, 3, n_embd], last [n, n_embd]), as half floats, and how many
    tokens of each were the prompt. `clock`: what the deadline is a time of."""
    texts, done, began = [], 0, clock()
    generator = torch.Generator(target.device).manual_seed(options.seed)

    def goes_on():
        nonlocal done
        done += len(batch)
        left = deadline - clock()
        progress.show(
            f"texts: {done} tokens, {done / (clock() - began):.0f} a second, "
            f"{max(0, left) / 60:.0f} min left"
        )
        return left > 0 or not texts

    for start in range(0, len(prompts), options.batch):
        batch = prompts[start : start + options.batch]
        texts += make_batch(target, options, batch, generator, goes_on)
        if clock() > deadline:
            break
    return texts
