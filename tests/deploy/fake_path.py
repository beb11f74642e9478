"""Runs our scripts from a copy of the tree, with fake programs first in PATH that record their
arguments and answer as told."""

import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ("deploy/dev-certificates", "deploy/install-deps", "deploy/up", "tests/run")


class FakePath:
    """Context manager; programs are added with `add`, calls are read with `calls`."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)
        self._log = self.folder / "calls.log"
        self.root = self.folder / "tree"
        for script in SCRIPTS:
            (self.root / script).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / script, self.root / script)
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def add(self, name, script="exit 0"):
        """A fake program `name` that logs its call and then runs the given bash."""
        path = self.folder / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >> "{self._log}"\n{script}\n',
                        encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def calls(self):
        """Every call so far, as "program arguments"."""
        return self._log.read_text(encoding="utf-8").splitlines() if self._log.exists() else []

    def run(self, program, *arguments):
        """Runs one of SCRIPTS with the fakes first in PATH."""
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        return subprocess.run([self.root / program, *arguments], env=environment, check=False,
                              capture_output=True, text=True)
