#!/usr/bin/env python3
"""Tests of bench/subjects.py: the programs that are measured run at their own defaults."""

import os
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import subjects  # noqa: E402


class Rpc(unittest.TestCase):
    def test_a_shells_settings_reach_no_program_that_is_measured(self):
        settings = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0",
                    "LLAMA_ARG_THREADS": "1", "HOME_OF_ITS_OWN": "stays"}
        echo = ("import json, os, sys\n"
                "for line in sys.stdin:\n"
                "    print(json.dumps({'id': json.loads(line)['id'], 'result': dict(os.environ)}),"
                " flush=True)\n")
        with mock.patch.dict(os.environ, settings):
            program = subjects.Rpc([sys.executable, "-c", echo])
        try:
            told = program.call("environment", {})
        finally:
            program.process.stdin.close()
            program.process.wait()
            program.process.stdout.close()
        self.assertEqual(told.get("HOME_OF_ITS_OWN"), "stays")
        for name in settings.keys() - {"HOME_OF_ITS_OWN"}:
            self.assertNotIn(name, told)


if __name__ == "__main__":
    unittest.main()
