#!/usr/bin/env python3
"""Runs deploy/install-deps with fake dpkg-query, apt-get, id and sudo in PATH, and looks at which
of them it called and at what it said."""

import unittest

import fake_path

PROGRAM = "deploy/install-deps"
ALL_INSTALLED = 'for p in "${@:4}"; do echo "installed $p"; done'
CMAKE_MISSING = ALL_INSTALLED.replace('echo "', '[[ $p == cmake ]] || echo "')


class InstallDepsTest(unittest.TestCase):
    def setUp(self):
        self.fakes = self.enterContext(fake_path.FakePath())
        self.fakes.add("dpkg-query", CMAKE_MISSING)
        self.fakes.add("apt-get")
        self.fakes.add("id", "echo 0")

    def apt_calls(self):
        return [call for call in self.fakes.calls() if call.startswith("apt-get")]

    def test_does_nothing_when_all_is_there(self):
        self.fakes.add("dpkg-query", ALL_INSTALLED)
        result = self.fakes.run(PROGRAM)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        self.assertEqual(self.apt_calls(), [])

    def test_installs_only_what_is_missing(self):
        result = self.fakes.run(PROGRAM)
        self.assertEqual(result.returncode, 0, result.stderr)
        update, install = self.apt_calls()
        self.assertTrue(update.endswith(" update"), update)
        self.assertTrue(install.endswith(" install --no-install-recommends -y cmake"), install)

    def test_takes_removed_but_configured_for_missing(self):
        self.fakes.add("dpkg-query", CMAKE_MISSING + '\necho "config-files cmake"')
        self.assertEqual(self.fakes.run(PROGRAM).returncode, 0)
        self.assertEqual(len(self.apt_calls()), 2)

    def test_uses_sudo_that_asks_no_password(self):
        self.fakes.add("id", "echo 1000")
        self.fakes.add("sudo", 'shift; exec "$@"')
        self.assertEqual(self.fakes.run(PROGRAM).returncode, 0)
        self.assertEqual(len(self.apt_calls()), 2)

    def test_names_packages_and_command_when_it_may_not_install(self):
        self.fakes.add("id", "echo 1000")
        self.fakes.add("sudo", "exit 1")
        result = self.fakes.run(PROGRAM)
        self.assertEqual(result.returncode, 1)
        self.assertIn("missing packages: cmake\n", result.stderr)
        self.assertIn("apt-get install --no-install-recommends -y cmake\n", result.stderr)
        self.assertEqual(self.apt_calls(), [])

    def test_names_packages_when_apt_fails(self):
        self.fakes.add("apt-get", "exit 100")
        result = self.fakes.run(PROGRAM)
        self.assertEqual(result.returncode, 1)
        self.assertIn("missing packages: cmake\n", result.stderr)

    def test_old_package_lists_may_do(self):
        self.fakes.add("apt-get", '[[ $* != *update ]]')
        self.assertEqual(self.fakes.run(PROGRAM).returncode, 0)

    def test_check_installs_nothing(self):
        result = self.fakes.run(PROGRAM, "--check")
        self.assertEqual(result.returncode, 1)
        self.assertIn("missing packages: cmake\n", result.stderr)
        self.assertEqual(self.apt_calls(), [])

    def test_unknown_option_is_named(self):
        result = self.fakes.run(PROGRAM, "--chek")
        self.assertEqual(result.returncode, 2)
        self.assertIn("unknown option '--chek'", result.stderr)


if __name__ == "__main__":
    unittest.main()
