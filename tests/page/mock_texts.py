"""What the mock server says, chosen by a word of the prompt, and how it is cut into tokens."""

import random
import re

PROSE = """Speculative decoding lets a **small draft model** guess several tokens, and the large \
target model checks all of them in *one* step.

1. The drafter proposes a chain such as `the`, `quick`, `brown`.
2. The target evaluates the chain at once, which costs little more than a single token.
3. What agrees is accepted; the first disagreement is replaced by the target's own token.

The text is the same as without: only the target decides. More in \
[the paper](https://arxiv.org/abs/2211.17192), section 2.
"""

CODE = """Here is a function that merges two sorted lists:

```python
def merge(left, right):
    \"\"\"Returns one sorted list of all values of both.\"\"\"
    result, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            result.append(left[i])
            i += 1
        else:
            result.append(right[j])
            j += 1
    return result + left[i:] + right[j:]
```

It looks at each value once, so it takes `O(n + m)` steps. Use it like this:

```python
print(merge([1, 4, 9], [2, 3, 10]))  # [1, 2, 3, 4, 9, 10]
```
"""

TABLE = """## The planets

| Planet | Diameter (km) | Moons |
|:-------|--------------:|:-----:|
| Mercury | 4,879 | 0 |
| Venus | 12,104 | 0 |
| Earth | 12,756 | 1 |
| Mars | 6,792 | 2 |

> Counts of moons change as *new ones* are found.

- Inner planets
  - Mercury, Venus
  - Earth, Mars
- Outer planets: ~~nine~~ four
"""

HOSTILE = """<img src=x onerror="window.hacked=1"> <script>window.hacked=2</script>

[click](javascript:window.hacked=3) and [data](data:text/html,<script>window.hacked=4</script>) \
and <a href="javascript:window.hacked=5">raw</a> and [ok](https://example.org/a_b_c?x=<b>)

![pic](https://example.org/pixel.png) `<svg onload=window.hacked=6>` **<b>bold</b>**

```html"><img src=x onerror=window.hacked=7>
<script>window.hacked=8</script>
```

| <img src=x onerror=window.hacked=9> | b |
|---|---|
| [x](vbscript:window.hacked=10) | <iframe srcdoc="<script>parent.hacked=11</script>"> |
"""

# A character cut over three tokens, as byte-level vocabularies do it.
EMOJI = "Good morning \U0001F600! Ça va? 日本語も大丈夫。"

REASONING = "The user asks for a sum. 17 and 25 make 42. That was easy, so the answer is short."

LONG = "\n\n".join(f"Paragraph {i} tells once more what the one before it told: that a text of "
                   "some length scrolls, and that its end stays in sight." for i in range(1, 40))

HEBREW = """\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd, **Python**:

- \u05d0\u05d7\u05d3
- \u05e9\u05e0\u05d9\u05d9\u05dd

```python
print(1)
```

And English.
"""

# word of the prompt -> (reasoning, text)
ANSWERS = {"merge": ("", CODE), "planets": ("", TABLE), "hostile": ("", HOSTILE),
           "emoji": ("", EMOJI), "sum": (REASONING, "17 + 25 = **42**."), "long": ("", LONG),
           "hebrew": ("", HEBREW)}


def answer_for(prompt):
    for word, answer in ANSWERS.items():
        if word in prompt.lower():
            return answer
    return "", PROSE


def tokens_of(text):
    """[(id, token text, content)]: a character beyond the BMP becomes three tokens, of which only
    the last one completes some content."""
    tokens = []
    for piece in re.findall(r" ?[A-Za-z]{1,6}|\d|\n+| +|[^A-Za-z0-9 ]", text):
        number = sum(ord(c) * 31 ** i for i, c in enumerate(piece)) % 49152
        if ord(piece[0]) > 0xFFFF:
            tokens += [(240, "\ufffd", ""), (159, "\ufffd", ""), (number, "\ufffd", piece)]
        else:
            tokens.append((number, piece, piece))
    return tokens


def steps_of(tokens, drafters, width):
    """Cuts tokens into steps: [([by of each], [token, ...], drafted)]. The last token of a step is
    the target's own; without drafters each step has one token."""
    chance = random.Random(7)
    steps, at = [], 0
    while at < len(tokens):
        by = chance.choices(drafters, [5, 3, 2, 1][:len(drafters)])[0] if drafters else None
        drafted = width - 1 if by and at > 0 else 0
        accepted = 0
        while accepted < drafted and chance.random() < 0.78:
            accepted += 1
        said = tokens[at:at + accepted + 1]
        names = [by] * (len(said) - 1) + ["target"]
        steps.append((names, said, drafted))
        at += len(said)
    return steps
