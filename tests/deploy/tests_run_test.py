#!/usr/bin/env python3
"""Runs tests/run with fake cmake and ctest in PATH (and a dpkg-query that finds every package), and
looks at how it called them."""

import unittest

import fake_path

PROGRAM = "tests/run"
JUNIT = ('while [[ $1 != --output-junit ]]; do shift; done\n'
         'echo "<testsuite><testcase name=\\"Quick\\" time=\\"0.1\\"/>'
         '<testcase name=\\"Slow\\" time=\\"7.5\\"/></testsuite>" > "$2"\n')


class TestsRunTest(unittest.TestCase):
    def setUp(self):
        self.fakes = self.enterContext(fake_path.FakePath())
        self.fakes.add("dpkg-query", 'for p in "${@:4}"; do echo "installed $p"; done')
        self.fakes.add("cmake")
        self.fakes.add("ctest", f'env | grep SAN_OPTIONS >> "{self.fakes.folder}/seen" || true')

    def calls_of(self, program):
        return [call for call in self.fakes.calls() if call.startswith(program + " ")]

    def test_configures_builds_and_runs_everything(self):
        result = self.fakes.run(PROGRAM)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.calls_of("cmake")[0], "cmake --preset release")
        self.assertIn(f"--build {self.fakes.root}/build -j", self.calls_of("cmake")[1])
        ctest, = self.calls_of("ctest")
        self.assertIn("--no-tests=error", ctest)
        self.assertNotIn(" -L ", ctest)

    def test_build_only_runs_nothing(self):
        self.assertEqual(self.fakes.run(PROGRAM, "--build-only").returncode, 0)
        self.assertEqual(len(self.calls_of("cmake")), 2)
        self.assertEqual(self.calls_of("ctest"), [])

    def test_sanitizer_presets_run_their_label_and_stop_at_errors(self):
        for preset in ("sanitize", "tsan"):
            with self.subTest(preset):
                self.assertEqual(self.fakes.run(PROGRAM, "--preset", preset).returncode, 0)
                ctest = self.calls_of("ctest")[-1]
                self.assertIn(f"--test-dir {self.fakes.root}/build-{preset} ", ctest)
                self.assertTrue(ctest.endswith(" -L ^sanitize$"), ctest)
        environment = (self.fakes.folder / "seen").read_text(encoding="utf-8")
        self.assertIn("ASAN_OPTIONS=halt_on_error=1:detect_leaks=1", environment)
        self.assertIn("UBSAN_OPTIONS=halt_on_error=1", environment)
        self.assertIn("TSAN_OPTIONS=halt_on_error=1", environment)

    def test_filters_go_to_ctest(self):
        self.assertEqual(self.fakes.run(PROGRAM, "--label", "style", "-R", "Rule").returncode, 0)
        self.assertTrue(self.calls_of("ctest")[0].endswith(" -L ^style$ -R Rule"))

    def test_failing_tests_fail_it_and_the_slowest_are_still_printed(self):
        self.fakes.add("ctest", JUNIT + "exit 8")
        (self.fakes.root / "build-dev").mkdir()
        result = self.fakes.run(PROGRAM, "--preset", "dev")
        self.assertEqual(result.returncode, 8)
        self.assertIn("The 2 slowest of 2 tests:\n     7.50 s  Slow\n     0.10 s  Quick\n",
                      result.stdout)

    def test_a_failing_build_stops_it(self):
        self.fakes.add("cmake", "[[ $1 != --build ]]")
        self.assertNotEqual(self.fakes.run(PROGRAM).returncode, 0)
        self.assertEqual(self.calls_of("ctest"), [])

    def test_bad_options_are_named(self):
        for arguments, message in ((["--fast"], "unknown option '--fast'"),
                                   (["--preset", "asan"], "unknown preset 'asan'"),
                                   (["--preset"], "--preset needs a name"),
                                   (["-R"], "-R needs a regular expression")):
            with self.subTest(arguments):
                result = self.fakes.run(PROGRAM, *arguments)
                self.assertEqual(result.returncode, 2)
                self.assertIn(message, result.stderr)
                self.assertEqual(self.fakes.calls(), [])


if __name__ == "__main__":
    unittest.main()
