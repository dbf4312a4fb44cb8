"""OpenAI's Python client: chat, at once and streamed."""

import asyncio

import openai

STORY = "Tell me a short story about a fox."


def streamed(chat, text, **options):
    return list(chat(text, stream=True, **options))


def text_of(chunks, index=0):
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices
                   if choice.index == index)


def test_the_models_are_listed(client, place):
    models = list(client.models.list())
    assert place.model in [model.id for model in models]
    assert all(model.object == "model" and model.owned_by for model in models)


def test_an_answer_has_a_message_a_reason_and_counts(chat, place):
    answer = chat("Say hello.", max_completion_tokens=8, max_tokens=openai.omit, temperature=0)
    assert answer.object == "chat.completion" and answer.model == place.model
    choice, = answer.choices
    assert choice.message.role == "assistant" and choice.message.content
    assert choice.finish_reason in ("stop", "length")
    usage = answer.usage
    assert 1 <= usage.completion_tokens <= 8
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_every_answer_says_what_guessing_brought(chat):
    answer = chat(STORY, temperature=0)
    assert answer.speculation["exactness"]
    assert answer.speculation["emitted"] == answer.usage.completion_tokens
    assert answer.timings["predicted_per_second"] > 0


def test_a_stream_begins_with_the_role_and_has_one_reason_at_its_end(chat):
    chunks = streamed(chat, STORY, temperature=0)
    first = chunks[0].choices[0]
    assert first.delta.role == "assistant" and not first.delta.content
    reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert reasons[-1] in ("stop", "length")
    assert reasons[:-1] == [None] * (len(reasons) - 1)
    assert len({chunk.id for chunk in chunks}) == 1
    assert all(chunk.usage is None for chunk in chunks)


def test_a_stream_says_the_same_as_an_answer_at_once(chat):
    whole = chat(STORY, seed=5).choices[0].message.content
    chunks = streamed(chat, STORY, seed=5)
    assert text_of(chunks) == whole
    assert len(chunks) > 5  # token by token, not in one piece


def test_the_counts_of_a_stream_come_last_and_on_request(chat):
    chunks = streamed(chat, STORY, max_tokens=6, stream_options={"include_usage": True})
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 6
    assert all(chunk.usage is None and chunk.choices for chunk in chunks[:-1])


def test_logprobs_are_of_the_tokens_said(chat):
    answer = chat("Count to five.", logprobs=True, top_logprobs=3, max_tokens=6, temperature=0)
    entries = answer.choices[0].logprobs.content
    assert "".join(entry.token for entry in entries) == answer.choices[0].message.content
    for entry in entries:
        assert entry.logprob <= 0 and bytes(entry.bytes).decode(errors="replace") == entry.token
        assert len(entry.top_logprobs) == 3
        logprobs = [other.logprob for other in entry.top_logprobs]
        assert logprobs == sorted(logprobs, reverse=True)
        assert entry.logprob == logprobs[0]  # at temperature 0 the likeliest is said
    chunks = streamed(chat, "Count to five.", logprobs=True, top_logprobs=3, max_tokens=6, temperature=0)
    parts = [entry.token for chunk in chunks for choice in chunk.choices if choice.logprobs
             for entry in choice.logprobs.content]
    assert parts == [entry.token for entry in entries]


def test_logprobs_without_alternatives_and_none(chat):
    entries = chat("Hi", logprobs=True, max_tokens=2).choices[0].logprobs.content
    assert [entry.top_logprobs for entry in entries] == [[], []]
    assert chat("Hi", logprobs=False, max_tokens=2).choices[0].logprobs is None


def test_several_answers_have_indices_and_texts_of_their_own(chat):
    answer = chat(STORY, n=3, seed=1, temperature=1.0)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    texts = [choice.message.content for choice in answer.choices]
    assert len(set(texts)) == 3
    assert answer.usage.completion_tokens > 24
    chunks = streamed(chat, STORY, n=3, seed=1, temperature=1.0)
    assert [text_of(chunks, index) for index in range(3)] == texts


def test_a_stop_text_ends_the_answer_and_is_not_in_it(chat):
    whole = chat(STORY, temperature=0, max_tokens=40).choices[0].message.content
    stop = whole.split()[4]
    for stops in (stop, [stop, "never said"]):
        choice = chat(STORY, temperature=0, max_tokens=40, stop=stops).choices[0]
        assert choice.finish_reason == "stop"
        assert choice.message.content == whole[:whole.index(stop)]


def test_a_seed_gives_its_text_again_and_another_seed_another(chat):
    texts = [chat(STORY, seed=seed, temperature=1.2).choices[0].message.content
             for seed in (7, 7, 8)]
    assert texts[0] == texts[1] != texts[2]


def test_the_text_is_the_same_without_speculation(chat):
    for options in ({"temperature": 0}, {"temperature": 0.8, "seed": 11}):
        plain = chat(STORY, max_tokens=40, extra_body={"speculative": False}, **options)
        guessed = chat(STORY, max_tokens=40, **options)
        assert not plain.speculation["enabled"] and guessed.speculation["enabled"]
        assert plain.choices[0].message.content == guessed.choices[0].message.content


def test_content_may_come_in_parts_and_a_conversation_goes_on(client, place):
    messages = [{"role": "system", "content": "You are brief."},
                {"role": "user", "content": [{"type": "text", "text": "My name is Ada."}]},
                {"role": "assistant", "content": "Hello Ada."},
                {"role": "user", "content": "What is my name?"}]
    answer = client.chat.completions.create(model=place.model, messages=messages, max_tokens=12,
                                            temperature=0)
    assert answer.choices[0].message.content


def test_an_answer_goes_back_as_the_client_has_it(client, place):
    question = {"role": "user", "content": "Say hello."}
    answer = client.chat.completions.create(model=place.model, messages=[question], max_tokens=8)
    message = answer.choices[0].message
    back = message.model_dump() | {"annotations": [], "audio": None, "function_call": None}
    assert back["content"] == message.content
    for said in (message, back):
        again = client.chat.completions.create(model=place.model, max_tokens=8,
                                               messages=[question, said, question])
        assert again.choices[0].message.content


def test_effort_is_taken_beside_the_templates_values(chat):
    values = {"chat_template_kwargs": {"enable_thinking": True}}
    for effort in ("none", "low", "high"):
        assert chat("Say hello.", reasoning_effort=effort, extra_body=values).choices[0].message.content
        other_form = values | {"reasoning": {"effort": effort}}
        assert chat("Say hello.", extra_body=other_form).choices[0].message.content


def test_top_p_of_0_says_the_likeliest_token(chat):
    likeliest = chat(STORY, temperature=0).choices[0].message.content
    assert chat(STORY, top_p=0, temperature=1, seed=3).choices[0].message.content == likeliest


def test_eight_at_once_get_the_texts_they_get_alone(chat, place):
    texts = [f"Tell me about the number {i}." for i in range(8)]

    async def together():
        async with openai.AsyncOpenAI(base_url=place.v1, api_key=place.key, max_retries=0) as many:
            return await asyncio.gather(*(many.chat.completions.create(
                model=place.model, messages=[{"role": "user", "content": text}], max_tokens=12,
                seed=3) for text in texts))

    said = [answer.choices[0].message.content for answer in asyncio.run(together())]
    assert said == [chat(text, max_tokens=12, seed=3).choices[0].message.content for text in texts]


def test_a_text_goes_on(client, place):
    options = {"model": place.model, "prompt": "Once upon a time", "max_tokens": 12, "seed": 2}
    whole = client.completions.create(**options, logprobs=2)
    chunks = list(client.completions.create(**options, stream=True))
    assert whole.choices[0].text
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text
    reasons = [chunk.choices[0].finish_reason for chunk in chunks]
    assert reasons == [None] * (len(reasons) - 1) + ["length"]
    logprobs = whole.choices[0].logprobs
    assert "".join(logprobs.tokens) == whole.choices[0].text
    assert len(logprobs.token_logprobs) == len(logprobs.text_offset) == 12


def test_what_is_said_to_the_services_cache_changes_nothing(client, place):
    part = {"type": "text", "text": "Say hello.", "prompt_cache_breakpoint": {"mode": "explicit"}}
    answer = client.chat.completions.create(
        model=place.model, max_tokens=4, messages=[{"role": "user", "content": [part]}],
        extra_body={"prompt_cache_options": {"mode": "implicit"}})
    assert answer.choices[0].message.content
