"""The EAGLE-3 head of train_eagle3.py, as PyTorch evaluates and llama.cpp's "eagle3" lays it out."""

import math

import torch
import torch.nn.functional as F

from eagle3_target import rms_norm, rotate


class Head(torch.nn.Module):
    """The head, with its tensors' names in the file (dots are double underscores)."""

    def __init__(self, target, scale):
        super().__init__()
        self.target, self.heads, self.heads_kv = target, target.n_head, target.n_head_kv
        n, size = target.n_embd, target.size
        weight = lambda rows, columns: torch.nn.Parameter(
            torch.randn(rows, columns, device=target.device) / math.sqrt(columns)
        )
        ones = lambda: torch.nn.Parameter(torch.ones(n, device=target.device))
        # Inputs are divided by each dimension's size, which differs by orders of magnitude; the
        # file's fc does both.
        self.register_buffer("scale", scale)
        self.fc = weight(n, 3 * n)
        self.attn_norm, self.attn_norm_2 = ones(), ones()
        self.attn_q = weight(self.heads * size, 2 * n)
        self.attn_k = weight(self.heads_kv * size, 2 * n)
        self.attn_v = weight(self.heads_kv * size, 2 * n)
        self.attn_output = weight(n, self.heads * size)
        self.ffn_norm = ones()
        self.ffn_gate, self.ffn_up = weight(target.n_ff, n), weight(target.n_ff, n)
        self.ffn_down = torch.nn.Parameter(torch.zeros(n, target.n_ff, device=target.device))
        self.output_norm = torch.nn.Parameter(target.w["output_norm.weight"].clone())

    @torch.no_grad()
    def fit(self, texts, vocab, ridge=0.1):
        """Starts from what least squares give in seconds: a linear guess of the target's next last
        state from the taps, which fc makes, and from the token, which attention passes on. So its
        first heads look at their own position, by a query and a key that rotary position turns
        alike, and the others one and two positions back. REQUIRES: a new head."""
        t, size = self.target, self.target.size
        n, groups = t.n_embd, self.heads // self.heads_kv
        taps = torch.cat([text[1][:-2].float().flatten(1) for text in texts]) / self.scale
        tokens = torch.cat([text[0][1:-1] for text in texts])
        goal = torch.cat([text[2][1:-1].float() for text in texts]) / self.output_norm
        token = rms_norm(t.w["token_embd.weight"][tokens], self.attn_norm, t.epsilon)

        def solve(inputs, outputs):
            gram = inputs.T @ inputs
            gram.diagonal().add_(ridge * len(inputs))
            return torch.linalg.solve(gram, inputs.T @ outputs)  # [inputs, outputs]

        linear = solve(torch.cat((taps, token), 1), goal)
        self.fc.copy_(linear[: 3 * n].T)
        left, values, right = torch.linalg.svd(linear[3 * n :], full_matrices=False)
        rank = self.heads_kv * size
        self.attn_v.zero_()
        self.attn_v[:, :n] = (left * values)[:, :rank].T
        self.attn_output.mul_(0.05)
        state = rms_norm(self.fuse(taps.unflatten(1, (3, n))), self.attn_norm_2, t.epsilon)
        constant = solve(torch.cat((token, state), 1), torch.ones_like(token[:, :1]))[:, 0]
        for head in range(self.heads):
            rows, kv = slice(head * size, (head + 1) * size), head // groups
            back = (head % groups) * t.frequencies
            pair = torch.stack((back.cos() + back.sin(), back.cos() - back.sin()), -1).flatten()
            self.attn_q[rows] = 6 * pair[:, None] * constant
            if head % groups == 0:
                self.attn_k[kv * size : (kv + 1) * size] = 6 * constant
                self.attn_output[:, rows] = right[kv * size : (kv + 1) * size].T
        self.output_norm.mul_(self.best_scale(texts, vocab))

    def best_scale(self, texts, vocab):
        """Of the output's norm: least squares say nothing about how sure guesses are."""
        output, rows, goals = self.target.output()[vocab], [], []
        for tokens, taps, last, _ in texts[:8]:
            rows.append(next(self(tokens[None], taps[None].float(), 1))[0, :-1])
            goals.append(F.linear(last[1:-1].float(), output).softmax(-1))
        logits, goal = F.linear(torch.cat(rows), output), torch.cat(goals)
        loss = lambda scale: -(goal * (scale * logits).log_softmax(-1)).sum()
        return min((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0), key=loss)

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
            h = torch.cat(
                (rms_norm(embedding, self.attn_norm, eps), rms_norm(state, self.attn_norm_2, eps)),
                -1,
            )
            angles = (torch.arange(m, device=t.device) + k)[:, None] * t.frequencies
            split = lambda x, heads: x.view(b, m, heads, t.size).transpose(1, 2)
            q = rotate(split(F.linear(h, self.attn_q), self.heads), angles)
            key = rotate(split(F.linear(h, self.attn_k), self.heads_kv), angles)
            value = split(F.linear(h, self.attn_v), self.heads_kv)
            kept_keys.append(key)
            kept_values.append(value)
            mixed = self.attend(q, kept_keys, kept_values, m)
            state = state + F.linear(mixed.transpose(1, 2).reshape(b, m, -1), self.attn_output)
            h = rms_norm(state, self.ffn_norm, eps)
            state = state + F.linear(
                F.silu(F.linear(h, self.ffn_gate)) * F.linear(h, self.ffn_up), self.ffn_down
            )
            yield rms_norm(state, self.output_norm, eps)

    def attend(self, q, keys, values, m):
        """The k-th guess from position i sees the taps' entries up to i and its own forerunners."""
        groups, size = self.heads // self.heads_kv, self.target.size
        q = q.unflatten(1, (self.heads_kv, groups)) / math.sqrt(size)  # [b, kv, groups, m, size]
        first = q @ keys[0][:, :, None, :m].transpose(-1, -2)
        first = first + torch.full((m, m), -math.inf, device=q.device).triu(1)
        own = [(q * k[:, :, None, :m]).sum(-1, keepdim=True) for k in keys[1:]]
        weights = torch.cat([first, *own], -1).softmax(-1)
        mixed = weights[..., :m] @ values[0][:, :, None, :m]
        for i, value in enumerate(values[1:]):
            mixed = mixed + weights[..., m + i, None] * value[:, :, None, :m]
        return mixed.flatten(1, 2)
