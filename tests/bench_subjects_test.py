#!/usr/bin/env python3
"""Tests of bench/subjects.py: the programs that are measured run at their own defaults. And of the
intervals of bench/compare_peers.py."""

import os
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import compare_peers  # noqa: E402
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


class Intervals(unittest.TestCase):
    def test_students_t_of_few_degrees_is_the_tables(self):
        table = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 7: 2.3646, 8: 2.3060,
                 9: 2.2622, 10: 2.2281, 11: 2.2010, 12: 2.1788, 20: 2.0860, 30: 2.0423, 100: 1.9840}
        for freedom, t in table.items():
            self.assertAlmostEqual(compare_peers.student(freedom) / t, 1.0, delta=0.01, msg=freedom)


if __name__ == "__main__":
    unittest.main()
