"""From recorded requests to inputs of the fuzz targets. Part of record_fuzz_inputs.py.

Of a client's requests to an endpoint a few are taken that have together as many fields of the JSON, each
with its types, as so few can: first the one with the most, then the one with most of those that no
other has, of another client neither. What differs from run to run or says something of a machine is left out: addresses,
keys, random ids, most headers. Models' names become "fake", the name of the fuzz target's model."""

import collections
import json
import re
import urllib.parse

MOST = 4096  # bytes of an input: ./dev fuzz reads no more
MOST_LINES = 16  # that the target json_rpc reads
MOST_OF_A_KIND = 2  # of a client's requests to an endpoint, and of the schemas that it sends
# What the server reads of a request's headers, and what says which client it was.
HEADERS = {"accept", "access-control-request-headers", "access-control-request-method",
           "anthropic-version", "authorization", "content-type", "host", "origin", "user-agent",
           "x-api-key"}
SECRETS = re.compile(r"^(Bearer )?.*$", re.IGNORECASE)
# What the tests ask themselves, and a generator of requests.
HARNESS = re.compile(r"Python-urllib|schemathesis|node$")
OF_A_MODEL = "/v1/models/"
UNKNOWN = re.compile(r"no-such-model|.*\b(gpt|claude)-17")  # names that are to be no model's
ID = re.compile(r"\b(call|cmpl|chatcmpl|fc|msg|resp|rs|toolu)([_-])[0-9A-Za-z]{8,}\b")
NOT_TO_BE_SHOWN = re.compile(r"/(root|home|tmp|work|usr|var)/|https?://(?!127\.0\.0\.1|localhost)")
TELLING_HEADERS = {"header anthropic-version", "header origin", "header x-api-key"}
NAMES_OF_OTHERS = ("properties", "$defs", "logit_bias")  # what their members are called says nothing
# Fields whose value says as much as their name.
TELLING = {"type", "role", "method", "tool_choice", "object"}
# Fields that are in nearly every request, and name none.
COMMON = {"model", "messages", "prompt", "input", "max_tokens", "max_output_tokens", "n_predict",
          "seed", "temperature", "jsonrpc", "id"}
LABELS = {"/v1/chat/completions": "chat", "/chat/completions": "chat", "/v1/completions": "text",
          "/completions": "completion", "/": "page"}  # one for two paths of the same
SCHEMAS = {"schema", "json_schema", "parameters", "input_schema"}


def read(journal):
    """The requests of a journal (recording_server.py), without the tests' own."""
    if not journal.exists():
        return []
    found = []
    for line in journal.read_text().splitlines():
        request = clean(json.loads(line))
        if request and request not in found:
            found.append(request)
    return found


def clean(recorded):
    """{"first", "headers", "body", "json", "path", "method"} of a recorded request; None: it is not a
    client's, or not to be shown."""
    headers = [(name, value) for name, value in recorded["headers"] if name.lower() in HEADERS]
    if any(HARNESS.match(value) for name, value in headers if name.lower() == "user-agent"):
        return None
    headers = [(name, own(name, value)) for name, value in headers]
    target = urllib.parse.urlsplit(recorded["target"])
    path = urllib.parse.unquote(target.path)
    if path.startswith(OF_A_MODEL) and not UNKNOWN.match(path[len(OF_A_MODEL):]):
        path = OF_A_MODEL + "fake"
    query = [(name, "fake" if name == "model" and not UNKNOWN.match(value) else value)
             for name, value in urllib.parse.parse_qsl(target.query, keep_blank_values=True)]
    query = "&".join(f"{name}={value}" for name, value in query)
    first = f"{recorded['method']} {path}" + ("?" + query if query else "")
    body, value = recorded["body"], None
    try:
        value = json.loads(body)
    except ValueError:
        pass
    else:
        if isinstance(value, dict) and isinstance(value.get("model"), str):
            value["model"] = value["model"] if UNKNOWN.match(value["model"]) else "fake"
        body = ID.sub(r"\1\g<2>1", json.dumps(value, separators=(",", ":"), ensure_ascii=False))
        value = json.loads(body)
    if NOT_TO_BE_SHOWN.search(first + body):
        return None
    return {"first": first, "method": recorded["method"], "path": path, "headers": headers,
            "body": body, "json": value}


def own(name, value):
    """A header's value, without what is a secret or the machine's."""
    if name.lower() in ("authorization", "x-api-key"):
        return SECRETS.sub(lambda found: (found[1] or "") + "sk-of-nobody", value, count=1)
    if name.lower() in ("host", "origin"):
        return re.sub(r":\d+$", "", value)
    return value


def fields(value, name=""):
    """Each field of a JSON value with its type: {"messages[].role=user", "n:int"}."""
    if isinstance(value, dict):
        found = {name + "{}"}
        for key, part in value.items():
            key = "#" if name.endswith(NAMES_OF_OTHERS) else key
            found |= fields(part, f"{name}.{key}" if name else key)
            if key in TELLING and isinstance(part, str):
                found.add(f"{name}.{key}={part}" if name else f"{key}={part}")
        return found
    if isinstance(value, list):
        return {name + "[]"}.union(*(fields(part, name + "[]") for part in value))
    return {f"{name}:{type(value).__name__}"}


def shape(request):
    headers = {"header " + name.lower() for name, _ in request["headers"]} & TELLING_HEADERS
    return fields(request["json"]) | headers | {request["first"] if not request["body"] else ""}


def covering(items, shape_of, size_of, seen, always_one=False, most=MOST_OF_A_KIND):
    """The items with most of what shape_of() gives and is neither in `seen` nor in an earlier one, at
    first of fields that are in no object; of equals the small ones. `always_one`: the first is the one
    with the most, seen or not. Adds to `seen`."""
    left = [(item, shape_of(item)) for item in items]
    kept = []
    while left and len(kept) < most:
        known = set() if always_one and not kept else seen

        def worth(entry, known=known):
            new = entry[1] - known
            return sum(not re.search(r"[.\[]", field) for field in new), len(new), -size_of(entry[0])

        best = max(left, key=worth)
        if not best[1] - known:
            break
        kept.append(best[0])
        seen |= best[1]
        left.remove(best)
    return kept


def label_of(request):
    path = request["path"]
    label = LABELS.get(path) or re.sub(r"\W+", "-", path.removeprefix("/v1")).strip("-")
    if request["method"] == "POST":
        return label
    return f"{request['method'].lower()}-" + ("page" if re.search(r"\.(js|css|svg)$", path) else label)


def named_after(request, how_often):
    """A word for it: the field that the fewest requests have."""
    if not isinstance(request["json"], dict):
        return ""
    telling = [name for name in request["json"] if name not in COMMON]
    return "-" + min(telling, key=how_often.get).replace("_", "-") if telling else ""


def numbered(name, taken):
    number, unique = 1, name
    while unique in taken:
        number += 1
        unique = f"{name}-{number}"
    return unique


def as_http(request):
    """As fuzz/http.cc reads it."""
    lines = [request["first"], *(f"{name}: {value}" for name, value in request["headers"])]
    return "\n".join(lines) + "\n\n" + request["body"]


def parts_of(value, names):
    """The values of all members of these names, at any depth."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name in names:
                yield part
            yield from parts_of(part, names)
    elif isinstance(value, list):
        for part in value:
            yield from parts_of(part, names)


def files_of(requests):
    """{"http/openai-python-chat": text} of {client: [request]}."""
    files = {}

    def add(name, text):
        if len(text.encode()) < MOST:
            files[numbered(name, files)] = text

    seen = collections.defaultdict(set)  # by target and endpoint, of all clients
    for client, all_of_it in requests.items():
        endpoints = collections.defaultdict(list)
        for request in all_of_it:
            if len(as_http(request).encode()) < MOST:
                endpoints[label_of(request)].append(request)
        for label, group in sorted(endpoints.items()):
            how_often = collections.Counter(name for request in group
                                            for name in request["json"] or ())
            for request in covering(group, shape, lambda request: len(request["body"]), seen[label],
                                    always_one=bool(group[0]["body"]),
                                    most=MOST_OF_A_KIND if group[0]["body"] else 1):
                add(f"http/{client}-{label}{named_after(request, how_often)}", as_http(request))
        add_other_targets(client, all_of_it, seen, add)
    return files


def add_other_targets(client, requests, seen, add):
    """Of the same JSON what other targets read."""
    calls = [request["json"] for request in requests
             if request["path"] == "/rpc" and isinstance(request["json"], dict)]
    lines = [text_of(call) for call in covering(calls, fields, size, set(), most=MOST_LINES)]
    if lines:
        add(f"json_rpc/{client}-calls", "".join(line + "\n" for line in lines))
        add(f"c_abi/{client}-calls", '\0{"model":{"path":"target","ctx":64},"slots":2}\n' +
            "".join(f"\6{line}\n" for line in lines))
    bodies = [request["json"] for request in requests]
    schemas = [schema for schema in parts_of(bodies, SCHEMAS)
               if isinstance(schema, dict) and "schema" not in schema]
    for schema in covering(schemas, words_of, size, seen["json_schema"]):
        add(f"json_schema/{client}-{next(iter(schema.get('properties', {})), 'schema')}",
            text_of(schema))
    for grammar in sorted({grammar for grammar in parts_of(bodies, {"grammar"})
                           if isinstance(grammar, str) and grammar}):
        add(f"gbnf/{client}-grammar", grammar)


def words_of(schema):
    """A schema's own words with the types of their values; what properties are called is no matter."""
    found = set()
    for name, part in schema.items():
        found.add(f"{name}:{type(part).__name__}" + (f"={part}" if name == "type" else ""))
        if name in ("properties", "$defs"):
            part = list(part.values())
        for inner in part if isinstance(part, list) else [part]:
            if isinstance(inner, dict):
                found |= {f"{name}.{word}" for word in words_of(inner)}
    return found


def text_of(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def size(value):
    return len(text_of(value))


def write(files, corpus, clients):
    """In place of what was written there before: names that begin with a client's."""
    for path in corpus.glob("*/*"):
        if path.name.startswith(tuple(client + "-" for client in clients)):
            path.unlink()
    for name, text in files.items():
        (corpus / name).write_text(text, encoding="utf-8", newline="")
