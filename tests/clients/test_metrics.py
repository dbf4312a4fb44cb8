"""/metrics read by Prometheus' own parser, and against what responses say of themselves.

OUTRIDER_URL is the address of a running server, as http://127.0.0.1:8080; OUTRIDER_KEY its key, if
it has one. Needs the package prometheus-client.
"""

import json
import os
import unittest
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from sanitized import bound

URL = os.environ.get("OUTRIDER_URL", "")
KEY = os.environ.get("OUTRIDER_KEY", "")
PREFIX = "outrider:spec_decode_num_"


def fetch(path, body=None):
    request = urllib.request.Request(URL + path)
    if KEY:
        request.add_header("Authorization", "Bearer " + KEY)
    if body is not None:
        request.add_header("Content-Type", "application/json")
        request.data = json.dumps(body).encode()
    with urllib.request.urlopen(request, timeout=bound(300)) as response:
        return response.headers, response.read().decode()


def families():
    headers, text = fetch("/metrics")
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers["Content-Type"]
    # The parser takes "_total" off a counter's name.
    return {family.name: family for family in text_string_to_metric_families(text)}


def total(all_families, name):
    samples = all_families[name].samples if name in all_families else []
    return sum(s.value for s in samples if s.name in (name, name + "_total"))


@unittest.skipUnless(URL, "OUTRIDER_URL is not set")
class MetricsTest(unittest.TestCase):
    def test_every_family_has_a_type_and_help(self):
        for family in families().values():
            self.assertIn(family.type, ("counter", "gauge", "histogram"), family.name)
            self.assertTrue(family.documentation, family.name)

    def test_a_completion_adds_what_it_says(self):
        before = families()
        body = {"prompt": "one two three one two three one two", "max_tokens": 24, "temperature": 0}
        answer = json.loads(fetch("/v1/completions", body)[1])
        after = families()

        def added(name):
            return total(after, name) - total(before, name)

        speculation = answer["speculation"]
        self.assertEqual(added("outrider:generation_tokens"), answer["usage"]["completion_tokens"])
        self.assertEqual(added(PREFIX + "draft_tokens"), speculation["drafted"])
        self.assertEqual(added(PREFIX + "accepted_tokens"), speculation["accepted"])
        # What only filled a step up and was right is accepted, and no guess of a position.
        self.assertLessEqual(added(PREFIX + "accepted_tokens_per_pos"), speculation["accepted"])
        self.assertLessEqual(added(PREFIX + "drafts"), speculation["steps"])

    def test_histograms_count_upwards(self):
        histograms = [f for f in families().values() if f.type == "histogram"]
        self.assertGreaterEqual(len(histograms), 4)
        for family in histograms:
            buckets = {}
            counts = {}
            for sample in family.samples:
                model = sample.labels.get("model")
                if sample.name.endswith("_bucket"):
                    buckets.setdefault(model, []).append((float(sample.labels["le"]), sample.value))
                elif sample.name.endswith("_count"):
                    counts[model] = sample.value
            for model, list_of in buckets.items():
                self.assertEqual(list_of, sorted(list_of), family.name)
                values = [value for _, value in list_of]
                self.assertEqual(values, sorted(values), family.name)
                self.assertEqual(values[-1], counts[model], family.name)

    def test_the_process_is_described(self):
        all_families = families()
        self.assertGreater(total(all_families, "process_resident_memory_bytes"), 1e6)
        self.assertGreater(total(all_families, "process_open_fds"), 2)


if __name__ == "__main__":
    unittest.main()
