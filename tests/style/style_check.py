#!/usr/bin/env python3
"""Checks that every source of the tree keeps the rules of style that a compiler does not check.

usage: style_check.py ROOT. Prints file:line: rule: what for each violation and exits 1 when there
are any. Looks at what git tracks or would add; without git, at every file outside build folders.
"""

import ast
import dataclasses
import io
import os
import pathlib
import re
import subprocess
import sys
import tokenize

import function_length
import layering
import source_text

LINES_IN_FILE_MAX = 400
LINES_IN_FUNCTION_MAX = 70
COLUMNS_MAX = 100

CPP = {".h", ".cc", ".cu", ".cuh"}
HEADERS = {".h", ".cuh"}

MARKERS = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
LEFTOVER_IN_COMMENT = re.compile(r"(?i:\bnot implemented\b|\bfor now\b|\bplaceholder\b)|\bstub\b")
LEFTOVER_IN_LITERAL = re.compile(r"(?i)\bnot implemented\b")
MACHINE_PATH = re.compile(r"(?<![\w.\-~])/(?:work|root|home)/")
WAITS_BLINDLY = re.compile(r"\b(?:sleep_for|sleep_until|SleepFor|usleep|nanosleep)\b")
SKIPS = re.compile(r"\bGTEST_SKIP\b|\bDISABLED_\w+|\bEXPECT_TRUE\(\s*true\s*\)")


@dataclasses.dataclass(frozen=True)
class Violation:
    path: str
    line: int
    rule: str
    what: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.what}"


@dataclasses.dataclass
class SourceFile:
    """One file: its path from the root with slashes, its text and its views."""
    path: str
    text: str

    def __post_init__(self):
        self.suffix = os.path.splitext(self.path)[1]
        if not self.suffix and re.match(r"#!.*\bpython", self.text):
            self.suffix = ".py"
        if not self.suffix and re.match(r"#!.*\b(?:ba)?sh\b", self.text):
            self.suffix = ".sh"
        self.is_cpp = self.suffix in CPP
        self.is_code = self.is_cpp or self.suffix in {".proto", ".py", ".sh"}
        self.is_cmake = self.path.endswith("CMakeLists.txt") or self.suffix == ".cmake"
        self.is_text = self.is_code or self.is_cmake or self.suffix == ".md"
        if self.is_cpp or self.suffix == ".proto":
            self.views = source_text.split_source(self.text)
        elif self.suffix == ".py":
            self.views = source_text.SourceText("", _python_comments(self.text), "")
        elif self.suffix == ".sh" or self.is_cmake:
            self.views = source_text.SourceText("", _hash_comments(self.text), "")
        else:
            self.views = source_text.SourceText("", "", "")


def _python_comments(text):
    """The comments of Python text, each on its own line."""
    lines = [""] * (text.count("\n") + 2)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = token.string
    return "\n".join(lines)


def _hash_comments(text):
    """The comments of shell or CMake text; a # inside a quoted word may pass for one."""
    return "\n".join(match.group() if (match := re.search(r"(?:^|(?<=\s))#.*", line)) else ""
                     for line in text.split("\n"))


def _search(pattern, text):
    """Yields (line, matched text) of every match."""
    for match in pattern.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group()


def check_layout(file):
    """Length of the file and of its lines, tabs."""
    if not file.is_code and not file.is_cmake:
        return
    lines = file.text.splitlines()
    if len(lines) > LINES_IN_FILE_MAX:
        yield len(lines), "file-length", f"{len(lines)} lines, at most {LINES_IN_FILE_MAX}"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX:
            yield number, "columns", f"{len(line)} columns, at most {COLUMNS_MAX}"
        if "\t" in line:
            yield number, "tab", "a tab; indent with spaces"


def check_function_length(file):
    if file.is_cpp:
        bodies = [(body.name, body.first_line, body.lines)
                  for body in function_length.find_functions(file.views.code)]
    elif file.suffix == ".py":
        bodies = [(node.name, node.lineno, node.end_lineno - node.lineno + 1)
                  for node in ast.walk(ast.parse(file.text))
                  if isinstance(node, ast.FunctionDef)]
    else:
        return
    for name, line, lines in bodies:
        if lines > LINES_IN_FUNCTION_MAX:
            yield line, "function-length", f"{name}: {lines} lines, max {LINES_IN_FUNCTION_MAX}"


def check_leftovers(file):
    for pattern, text in ((MARKERS, file.views.comments),
                          (LEFTOVER_IN_COMMENT, file.views.comments),
                          (LEFTOVER_IN_LITERAL, file.views.literals)):
        for line, found in _search(pattern, text):
            yield line, "leftover", f"'{found}': finish it, or say it where work is planned"


def check_machine_paths(file):
    if file.is_text:
        for line, found in _search(MACHINE_PATH, file.text):
            yield line, "machine-path", f"'{found}': a path of one machine"


def check_cpp_words(file):
    """Names and constructs that we do not use."""
    if not file.is_cpp:
        return
    code = file.views.code
    for line, _ in _search(re.compile(r"\busing\s+namespace\s+std\b"), code):
        yield line, "using-namespace-std", "name what is used"
    for line, found in _search(re.compile(r"\b\w*ForTesting\b"), code):
        yield line, "for-testing", f"{found}: pass what a test needs to the constructor"
    if file.suffix in HEADERS:
        for line, _ in _search(re.compile(r"\bstd::string_view\b"), code):
            yield line, "string-view", "absl::string_view: Debian's abseil takes no other"


def check_pragma_once(file):
    if file.suffix in HEADERS and not file.views.code.lstrip().startswith("#pragma once"):
        yield 1, "pragma-once", "a header's first line after its comment is #pragma once"


def check_tests(file):
    """Tests wait for conditions, and run."""
    if not file.is_cpp or not file.path.startswith("tests/"):
        return
    if not file.path.startswith("tests/bench/"):  # a load generator may pace itself
        for line, found in _search(WAITS_BLINDLY, file.views.code):
            yield line, "test-sleep", f"{found}: wait for a condition or move a fake clock"
    for line, found in _search(SKIPS, file.views.code):
        yield line, "test-skip", f"{found}: a test runs and can fail; choose by label"


def check_includes(file):
    if file.is_cpp or file.suffix == ".proto":
        # Directives name their file in a literal: read the text, where the code has a directive.
        code = file.views.code.split("\n")
        for number, line in enumerate(file.text.split("\n"), 1):
            if re.match(r"\s*(?:#\s*include|import)\b", code[number - 1]):
                if what := layering.why_wrong(file.path, line):
                    yield number, "include", what


FILE_RULES = (check_layout, check_function_length, check_leftovers, check_machine_paths,
              check_cpp_words, check_pragma_once, check_tests, check_includes)


def check_readmes(files):
    """Each folder with sources has a README.md, or a folder above it below the root has."""
    documented = {os.path.dirname(file.path) for file in files
                  if os.path.basename(file.path) == "README.md"}
    folders = {os.path.dirname(file.path) for file in files
               if file.is_cpp or file.suffix == ".proto"}
    for folder in sorted(folders - {""}):
        parents = [folder, *map(str, pathlib.PurePosixPath(folder).parents)]
        if not documented.intersection(parents[:-1]):
            yield Violation(f"{folder}/README.md", 1, "readme", "missing: why the folder exists")


def check_files(files):
    """Returns every Violation of the given SourceFiles."""
    violations = [Violation(file.path, *found)
                  for file in files for rule in FILE_RULES for found in rule(file)]
    return violations + list(check_readmes(files))


def list_paths(root):
    """The paths to check, from the root."""
    git = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=False) if (root / ".git").exists() else None
    if git is not None and git.returncode == 0:
        return sorted(set(filter(None, git.stdout.decode().split("\0"))))
    paths = []
    for folder, subfolders, names in os.walk(root):
        at_root = pathlib.Path(folder) == root
        subfolders[:] = [name for name in subfolders if name not in {".git", "__pycache__"} and
                         not (at_root and (name.startswith("build") or name == ".cache"))]
        paths += [(pathlib.Path(folder) / name).relative_to(root).as_posix() for name in names]
    return sorted(paths)


def read_files(root):
    """The SourceFiles below the root; what is not UTF-8 text is left out."""
    files = []
    for path in list_paths(root):
        try:
            files.append(SourceFile(path, (root / path).read_text(encoding="utf-8")))
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # binary, or deleted and not yet committed
    return files


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: style_check.py ROOT")
    files = read_files(pathlib.Path(sys.argv[1]).resolve())
    sources = sum(file.is_code for file in files)
    if not any(file.is_cpp for file in files):
        sys.exit(f"style_check.py: no C++ source under {sys.argv[1]}")
    violations = check_files(files)
    for violation in violations:
        print(violation)
    print(f"{sources} sources, {len(violations)} violations")
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
