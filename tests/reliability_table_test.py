#!/usr/bin/env python3
"""docs/reliability.md names tests that exist; what is fuzzed has inputs; what sanitizers pass over is
not ours; what they run on each week. Run without arguments."""

import contextlib
import json
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/reliability.md").read_text()
ROW = re.compile(r"^\| (\d+) \|(.*)\|$", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")
FILE = re.compile(r"^[\w/]+\.(cc|py|h)$")
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
TEST = re.compile(r"^(\w+)\.(\w+)$")
# Where what must hold is that all of something happens, and nothing is counted or timed.
ALL_OF_THEM = {"refused", "all refused", "all stopped", "each is noticed", "same text", "every call",
               "below"}


def is_figure(cell):
    return bool(re.search(r"\d", cell)) or cell in ALL_OF_THEM or cell.startswith("[the last runs]")


def missing_tests(text):
    """What TEXT names that is not there: "`file` `Suite.Test`, `Suite.Test`"."""
    missing, source, named = [], None, 0
    for quoted in QUOTED.findall(text):
        if FILE.match(quoted):
            path = ROOT / quoted
            source = path.read_text() if path.is_file() else ""
            if not source:
                missing.append(quoted)
            continue
        test = TEST.match(quoted)
        if not test or source is None:
            continue
        named += 1
        suite, name = test.groups()
        cc = re.search(rf"^TEST(_F|_P)?\({suite},\s*{name}\)", source, re.MULTILINE)
        py = re.search(rf"^class {suite}\(.*?^    def {name}\(", source, re.MULTILINE | re.DOTALL)
        if not cc and not py:
            missing.append(quoted)
    return missing, named


def commit_of_undated():
    """Of figures without a date: what the page says above the table."""
    return re.search(DATE.pattern + r", ([0-9a-f]{7})\b", PAGE.split("| |")[0]).group(1)


def tests_at(commit):
    """The lines that begin tests there, wherever their files were; none where COMMIT is not known (a
    shallow clone, no checkout)."""
    command = ["git", "-C", ROOT, "grep", "--no-color", "-h", "-A1", "-E",
               r"^TEST(_F|_P)?\(|^    def test_", commit, "--", "*.cc", "*.py"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return found.stdout if found.returncode == 0 else ""


def too_young(row, tests):
    """What ROW names whose beginning is not among TESTS."""
    named = [TEST.match(quoted) for quoted in QUOTED.findall(row) if not FILE.match(quoted)]
    return [test[0] for test in named if test and not re.search(
        rf"\({test[1]},\s*{test[2]}\)|def {test[2]}\(", tests)]


class Table(unittest.TestCase):
    def test_it_has_33_rows_in_order(self):
        self.assertEqual([int(number) for number, _ in ROW.findall(PAGE)], list(range(1, 34)))

    def test_every_row_names_a_test_and_every_test_exists(self):
        for number, row in ROW.findall(PAGE):
            missing, named = missing_tests(row)
            self.assertEqual(missing, [], f"row {number}")
            self.assertGreater(named, 0, f"row {number} names no test")

    def test_every_row_ends_with_a_figure(self):
        for number, row in ROW.findall(PAGE):
            cell = row.rsplit("|", 1)[1].strip()
            self.assertTrue(is_figure(cell), f"row {number}: '{cell}'")
        self.assertFalse(is_figure("ends"))
        self.assertFalse(is_figure(""))

    def test_a_figure_of_another_day_names_its_commit(self):
        for number, row in ROW.findall(PAGE):
            cell = row.rsplit("|", 1)[1]
            for date in DATE.finditer(cell):
                self.assertRegex(cell[date.end():], r"^, [0-9a-f]{7}\b", f"row {number}")
        self.assertRegex(PAGE.split("| |")[0], DATE.pattern + r", [0-9a-f]{7}\b", "of all others")

    def test_a_figure_without_a_date_is_of_a_commit_that_had_all_tests_of_its_row(self):
        tests = tests_at(commit_of_undated())
        if not tests:
            self.skipTest("the history is not here")
        for number, row in ROW.findall(PAGE):
            cell = row.rsplit("|", 1)[1].strip()
            if not DATE.search(cell) and cell != "below" and not cell.startswith("[the last runs]"):
                self.assertEqual(too_young(row, tests), [], f"row {number}: its figure needs a date")
        self.assertEqual(too_young("`tests/a_test.cc` `A.B`, `C.Of`", "TEST_F(A,\n    B) {\nTEST(C, OfIt)"),
                         ["C.Of"])

    def test_the_text_around_it_names_what_exists(self):
        self.assertEqual(missing_tests(ROW.sub("", PAGE))[0], [])

    def test_control_what_does_not_exist_is_noticed(self):
        self.assertEqual(missing_tests("`tests/none_test.cc` `A.B`")[0], ["tests/none_test.cc", "A.B"])
        page = "`src/store/atomic_file_test.cc` `AtomicFileTest.NoSuchTest`"
        self.assertEqual(missing_tests(page)[0], ["AtomicFileTest.NoSuchTest"])


class Numbers(unittest.TestCase):
    """What the pages say of how often inputs are changed is what the scripts do."""

    def test_the_mutations_of_a_soak_and_of_the_tests_are_those_that_the_pages_name(self):
        soak = (ROOT / "scripts/dev/soak.sh").read_text()
        asked = [int(re.search(rf"^{name}=(\d+)\b", soak, re.MULTILINE).group(1))
                 for name in ("SOAK_MUTATIONS", "SANITIZED_MUTATIONS")]
        said = re.search(r"with ([\d,]+) mutations each, and (\d+) each under the address sanitizer",
                         (ROOT / "CONTRIBUTING.md").read_text())
        self.assertEqual([int(number.replace(",", "")) for number in said.groups()], asked)
        self.assertIn("set(OUTRIDER_FUZZ_MUTATIONS 10)", (ROOT / "cmake/fuzz.cmake").read_text())
        self.assertIn("each with ten random changes too", PAGE)


class Suppressions(unittest.TestCase):
    OURS = re.compile(r"outrider|src/|tools/|testing/")

    def test_only_ggml_and_libraries_are_named(self):
        for path in sorted((ROOT / "cmake/sanitizers").glob("*.supp")):
            for line in path.read_text().splitlines():
                if not line.strip() or line.startswith("#"):
                    continue
                ours = self.OURS.search(line.replace("ggml/src/", "").replace("llama.cpp/src/", ""))
                self.assertIsNone(ours, f"{path.name}: {line}")


class Threads(unittest.TestCase):
    """`./dev test` has the sanitizers of addresses and of undefined behaviour; that of threads is run
    by a job of its own."""

    def test_the_layers_that_start_threads_meet_their_sanitizer_on_a_schedule_and_by_hand(self):
        head, jobs = (ROOT / ".github/workflows/test.yml").read_text().split("\njobs:\n")
        self.assertRegex(head, r"\n  schedule:\n    - cron: ")
        self.assertIn("\n  workflow_dispatch:\n", head)
        job = re.search(r"^  threads:\n((?:    .*\n|\n)+)", jobs, re.MULTILINE).group(1)
        for event in ("schedule", "workflow_dispatch"):
            self.assertIn(f"github.event_name == '{event}'", job)
        layers = re.search(r"\./dev sanitize thread (.+)", job).group(1).split()
        self.assertLessEqual({"engine", "serve", "catalog", "http", "capi", "rpcserver", "remote"},
                             set(layers))
        for layer in layers:
            self.assertTrue(any((ROOT / "src" / layer).glob("*_test.cc")), layer)


class Fuzzing(unittest.TestCase):
    def test_every_target_has_inputs_and_is_replayed(self):
        declared = re.findall(r"^void (\w+)\(Bytes input\);", (ROOT / "fuzz/targets.h").read_text(),
                              re.MULTILINE)
        self.assertGreater(len(declared), 10)
        replayed = (ROOT / "fuzz/replay_main.cc").read_text()
        built = (ROOT / "CMakeLists.txt").read_text()
        run = (ROOT / "scripts/dev/fuzz.sh").read_text()
        for target in declared:
            self.assertIn(f'"{target}"', replayed)
            self.assertRegex(built, rf"outrider_fuzz_target\({target} ")
            self.assertRegex(run, rf"\b{target}\b")
            self.assertTrue(any((ROOT / "fuzz/corpus" / target).iterdir()), target)

    def test_all_that_strangers_send_is_listed_with_its_targets(self):
        declared = set(re.findall(r"^void (\w+)\(Bytes input\);",
                                  (ROOT / "fuzz/targets.h").read_text(), re.MULTILINE))
        listed = set()
        table = PAGE.split("| bytes | read by | targets |")[1].split("\n\n")[0]
        for row in table.strip().splitlines()[1:]:
            _, _, code, targets, _ = row.split("|")
            for folder in re.findall(r"`([\w/]+)`", code):
                self.assertTrue((ROOT / folder).is_dir(), folder)
            if not targets.strip().startswith("none"):
                self.assertTrue(QUOTED.findall(targets), row)
                listed |= set(QUOTED.findall(targets))
        self.assertEqual(listed, declared)
        figures = PAGE.split("| target | executions |")[1].split("\n\n")[0]
        self.assertEqual(set(re.findall(r"^\| `(\w+)` \|", figures, re.MULTILINE)), declared)

    ENDPOINT = re.compile(r'\.method = "(\w+)",\s*\.path = "([^"]+)",\s*\.summary = "(?!the same|501)')

    def test_each_endpoint_that_takes_a_body_is_asked_with_json(self):
        wanted = set()
        for table in ("src/http/endpoints.cc", "src/http/llama/llama_endpoints.cc"):
            wanted |= {found[:2] for found in self.ENDPOINT.findall((ROOT / table).read_text())
                       if found[0] == "POST"}
        self.assertGreater(len(wanted), 10)
        for path in sorted((ROOT / "fuzz/corpus/http").iterdir()):
            head, _, body = path.read_text(encoding="utf-8", errors="replace").partition("\n\n")
            first = re.match(r"([A-Z]+) (/[^?\n]*)", head)
            with contextlib.suppress(ValueError):
                json.loads(body)
                wanted.discard(first and first.groups())
        self.assertEqual(wanted, set())

    def test_no_request_names_a_machine(self):
        for path in sorted((ROOT / "fuzz/corpus").glob("*/*-*")):
            text = path.read_text(encoding="utf-8")
            self.assertNotRegex(text, r"/(root|home|tmp|work|usr|var)/", path.name)
            self.assertNotRegex(text, r"https?://(?!127\.0\.0\.1)", path.name)
            self.assertLess(len(text), 4096, path.name)


if __name__ == "__main__":
    unittest.main()
