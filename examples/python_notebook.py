# %% [markdown]
# # Outrider in a notebook
# Open this file in Jupyter (with jupytext), VS Code or Spyder, or run it with `python`. TARGET and
# DRAFT name two GGUF files: a model, and a smaller one of its family that guesses ahead.

# %% Load a target and a draft
import os

import outrider

o = outrider.Outrider(os.environ["TARGET"], os.environ.get("DRAFT"), seed=1)

# %% A text, without and with speculation: the same, and how long it took
plain = o.generate("Once upon a time", max_tokens=48, speculative=False)
fast = o.generate("Once upon a time", max_tokens=48)
print(fast)
print("plain:", plain.stats())
print("speculative:", fast.stats())
print("the same text:", plain.tokens == fast.tokens)

# %% As it comes, what was guessed in green
for piece in o.stream("The three largest cities are", max_tokens=32):
    guessed = piece.by != "target"
    print(f"\033[32m{piece.text}\033[0m" if guessed else piece.text, end="", flush=True)
print()

# %% Who guessed, and how well
for name, drafter in fast.speculation["drafters"].items():
    print(f"{name}: {drafter['accepted']} of {drafter['drafted']} accepted")

# %% A conversation
chat = o.chat("You answer in one sentence.", max_tokens=32)
print(chat.send("What is a kestrel?").message["content"])
print(chat.send("And what does it eat?").message["content"])

# %% Several at once. A notebook has a loop of its own: there, `await` the last line instead
import asyncio


async def several():
    prompts = ["One", "Two", "Three"]
    return await asyncio.gather(*(o.agenerate(prompt, max_tokens=8) for prompt in prompts))


try:
    asyncio.get_running_loop()
except RuntimeError:
    print([completion.text for completion in asyncio.run(several())])

# %% An error names its field
try:
    o.generate("x", top_p=7)
except outrider.Error as error:
    print(f"{error.field}: {error}")

# %% The end
o.close()
