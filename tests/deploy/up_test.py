#!/usr/bin/env python3
"""Runs deploy/up from a copy of the tree, with a fake cmake in PATH and fake programs in build/bin
that record their arguments, and looks at what it started, what it ended and its exit status. It is
also interrupted at every step; nothing of it may be left then."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import unittest

import fake_path

PROGRAM = "deploy/up"
PLAN = json.dumps({"distinct_blocks": 1000, "distinct_bytes": 4096000, "block_tokens": 512})
# Notes its pid, says where it serves (with port 0 at one that its pid stands for), and lives until
# it is ended.
SERVER = """echo "$$" >> "{pids}"
for flag in "$@"; do [[ $flag == --listen=* ]] && address=${{flag#--listen=}}; done
[[ $address == *:0 ]] && address=${{address%0}}$((10000 + $$ % 50000))
echo "serving on $address" | tee -a "{pids}.addresses"
exec sleep 600"""
# Says that it was come to, and stays there.
STUCK = 'echo "$$" >> "{pids}"; echo stuck > "{stuck}"; exec sleep 600'
CAIRNCTL = """if [[ $* == *--plan* ]]; then echo '{plan}'
elif [[ $1 == replay ]]; then echo "the table"; exit {result}; fi"""
WAIT_S = 60


class UpTest(unittest.TestCase):
    def setUp(self):
        self.fakes = self.enterContext(fake_path.FakePath())
        self.pids = self.fakes.folder / "pids"
        self.fakes.add("dpkg-query", 'for p in "${@:4}"; do echo "installed $p"; done')
        self.bin = self.fakes.root / "build" / "bin"
        self.bin.mkdir(parents=True)
        self.set_up_programs()
        self.environment = {**os.environ, "TMPDIR": str(self.fakes.folder),
                            "PATH": f"{self.fakes.folder}:{os.environ['PATH']}"}
        self.environment.pop("CAIRN_TRACE", None)
        self.trace = self.fakes.folder / "trace.jsonl"
        self.trace.write_text("{}\n", encoding="utf-8")

    def set_up_programs(self):
        self.fakes.add("cmake")
        self.add_program("cairn-node", SERVER.format(pids=self.pids))
        self.add_program("cairn-router", SERVER.format(pids=self.pids))
        self.set_result(0)

    def add_program(self, name, script):
        self.fakes.add(name, script)
        (self.fakes.folder / name).rename(self.bin / name)

    def set_result(self, result):
        self.add_program("cairnctl", CAIRNCTL.format(plan=PLAN, result=result))

    def up(self, *arguments, **environment):
        return subprocess.run([self.fakes.root / PROGRAM, *arguments], check=False, text=True,
                              env={**self.environment, **environment}, timeout=WAIT_S,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def calls_of(self, start):
        return [call for call in self.fakes.calls() if call.startswith(start)]

    def replay_call(self):
        call, = [one for one in self.calls_of("cairnctl replay") if "--plan" not in one]
        return call

    def assert_all_ended(self, started=4, at_most=None):
        pids = self.pids.read_text(encoding="utf-8").split()
        if at_most is None:
            self.assertEqual(len(pids), started)
        self.assertLessEqual(len(pids), at_most or started)
        for pid in pids:
            self.assertFalse(pathlib.Path("/proc", pid).exists(), f"{pid} still runs")

    def assert_no_folder(self):
        self.assertEqual(list(self.fakes.folder.glob("cairn-up.*")), [])

    def test_once_starts_a_fleet_replays_and_ends_it(self):
        result = self.up("--once")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("the table", result.stdout)
        self.assertEqual(len(self.calls_of("cairn-node ")), 3)
        router, = self.calls_of("cairn-router ")
        addresses = pathlib.Path(f"{self.pids}.addresses").read_text(encoding="utf-8").split()[2::3]
        self.assertIn("--nodes=", router)
        nodes = router.split("--nodes=")[1].split(",")
        self.assertEqual(sorted(nodes), sorted(addresses[:3]))
        self.assertIn(f"--router {addresses[3]}", self.replay_call())
        self.assert_all_ended()
        self.assert_no_folder()

    def test_nodes_have_room_for_the_whole_trace(self):
        self.up("--once")
        for node in self.calls_of("cairn-node "):
            flags = dict(flag.split("=", 1) for flag in node.split() if "=" in flag)
            self.assertGreaterEqual(int(flags["--host-memory"]), 4096000)
            self.assertGreaterEqual(int(flags["--index-memory"]), 1000 * 512 * 4)

    def test_builds_only_the_programs(self):
        self.up("--once")
        build, = self.calls_of("cmake --build")
        self.assertIn("--target cairn-node cairn-router cairnctl", build)

    def test_with_tls_each_program_gets_its_own_certificate(self):
        result = self.up("--once", "--tls")
        self.assertEqual(result.returncode, 0, result.stderr)
        for call in [*self.calls_of("cairn-node "), *self.calls_of("cairn-router ")]:
            self.assertNotIn("--insecure", call)
            self.assertIn("--access-file=", call)
        for i in (1, 2, 3):
            node, = [one for one in self.calls_of("cairn-node ") if f"--node-id=node-{i}" in one]
            self.assertIn(f"/node-{i}/cert.pem", node)
        router, = self.calls_of("cairn-router ")
        self.assertIn("--node-tls-ca=", router)
        self.assertIn("/worker/key.pem", self.replay_call())
        self.assertIn("--tenant demo", self.replay_call())
        self.assert_all_ended()
        self.assert_no_folder()

    def test_a_failing_replay_fails_it(self):
        self.set_result(1)
        self.assertEqual(self.up("--once").returncode, 1)
        self.assert_all_ended()

    def test_a_node_that_ends_early_fails_it_with_its_log(self):
        self.add_program("cairn-node", 'echo "no such flag"; exit 2')
        self.add_program("cairnctl", f"[[ $* == *--plan* ]] && echo '{PLAN}'")
        result = self.up("--once")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no such flag", result.stderr)
        self.assertIn("ended; its log is", result.stderr)

    def test_a_failing_build_fails_it_and_starts_nothing(self):
        self.fakes.add("cmake", 'echo "error: broken"; exit 1')
        result = self.up("--once")
        self.assertEqual(result.returncode, 1)
        self.assertIn("error: broken", result.stderr)
        self.assertFalse(self.pids.exists())

    def test_the_logs_of_a_failure_stay_where_it_says(self):
        self.set_result(1)
        folder = self.up("--once").stdout.split("logs are in ")[1].split()[0]
        self.assertTrue((pathlib.Path(folder) / "router.log").exists())

    def interrupt_at(self, step, send):
        """Starts it with one step stuck, sends the signal, and returns its exit status."""
        stuck = self.fakes.folder / "stuck"
        os.mkfifo(stuck)
        script = STUCK.format(pids=self.pids, stuck=stuck)
        if step == "cmake":
            self.fakes.add("cmake", script)
        elif step == "plan":
            self.add_program("cairnctl", script)
        elif step == "replay":
            self.add_program("cairnctl", f"[[ $* == *--plan* ]] && echo '{PLAN}' && exit; {script}")
        else:
            self.add_program(step, script)
        up = subprocess.Popen([self.fakes.root / PROGRAM, "--once"], env=self.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              start_new_session=True)
        with up:
            stuck.read_text(encoding="utf-8")
            send(up)
            status = up.wait(WAIT_S)
        stuck.unlink()
        return status

    def test_a_signal_at_any_step_leaves_neither_programs_nor_folders(self):
        for step, started in (("cmake", 1), ("plan", 1), ("cairn-node", 3), ("cairn-router", 4),
                              ("replay", 5)):
            for name, send, status in (
                    ("^C", lambda up: os.killpg(up.pid, signal.SIGINT), 130),
                    ("TERM", lambda up: up.send_signal(signal.SIGTERM), 143),
                    ("HUP", lambda up: up.send_signal(signal.SIGHUP), 129)):
                with self.subTest(f"{name} at {step}"):
                    self.pids.unlink(missing_ok=True)
                    self.assertEqual(self.interrupt_at(step, send), status)
                    self.assert_all_ended(at_most=started)
                    self.assert_no_folder()
                    self.set_up_programs()

    def test_two_at_once_build_one_after_the_other(self):
        # Only mkdir is atomic; the second to come finds the folder there.
        busy = self.fakes.folder / "busy"
        self.fakes.add("cmake", f'mkdir "{busy}" || exit 1; sleep 0.2; rmdir "{busy}"')
        results = []
        threads = [threading.Thread(target=lambda: results.append(self.up("--once")))
                   for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([result.returncode for result in results], [0, 0], results)
        self.assert_all_ended(started=8)

    def test_the_trace_comes_from_the_option_or_the_environment(self):
        self.up("--once", "--trace", str(self.trace), "--json", "report.json")
        self.assertIn(f"--trace {self.trace}", self.replay_call())
        self.assertIn("--json report.json", self.replay_call())

    def test_the_environment_names_a_trace(self):
        self.up("--once", CAIRN_TRACE=str(self.trace))
        self.assertIn(f"--trace {self.trace}", self.replay_call())

    def test_ports_follow_the_one_that_is_given(self):
        self.up("--once", "--port", "7100")
        self.assertIn("--listen=127.0.0.1:7100", self.calls_of("cairn-router ")[0])
        self.assertIn("--nodes=127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103",
                      self.calls_of("cairn-router ")[0])

    def test_without_once_it_stays_until_it_is_told_to_end(self):
        up = subprocess.Popen([self.fakes.root / PROGRAM], env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with up:
            said = []
            for line in up.stdout:
                said.append(line)
                if "stops it" in line:
                    break
            self.assertTrue(any("cairnctl replay --router" in line for line in said), said)
            self.assertIsNone(up.poll())
            up.send_signal(signal.SIGTERM)
            self.assertEqual(up.wait(WAIT_S), 0)
        self.assert_all_ended()

    def test_bad_options_are_named_and_start_nothing(self):
        for arguments, message in ((["--twice"], "unknown option '--twice'"),
                                   (["--trace"], "--trace needs a value"),
                                   (["--port", "http"], "--port: 'http'"),
                                   (["--trace", "/nonexistent"], "cannot read the trace")):
            with self.subTest(arguments):
                result = self.up(*arguments)
                self.assertEqual(result.returncode, 2)
                self.assertIn(message, result.stderr)
                self.assertEqual(self.fakes.calls(), [])


if __name__ == "__main__":
    unittest.main()
