#!/usr/bin/env python3
"""Feeds style_check small files of its own: each rule must fire on what breaks it, at the right
line, and must leave alone what only looks like it."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import function_length
import source_text
import style_check


def check(path, text):
    """The (line, rule) pairs of one file, in a tree whose folders have a README."""
    readme = style_check.SourceFile(path.split("/")[0] + "/README.md", "# why\n")
    return [(found.line, found.rule)
            for found in style_check.check_files([readme, style_check.SourceFile(path, text)])]


def function_of(lines, head="int Sum(int a)"):
    """A C++ function whose body, braces included, is `lines` long."""
    return head + " {\n" + "  a += 1;\n" * (lines - 2) + "}\n"


def bodies(code):
    found = function_length.find_functions(source_text.split_source(code).code)
    return [(body.name, body.first_line, body.lines) for body in found]


class LayoutTest(unittest.TestCase):
    def test_file_length(self):
        self.assertEqual(check("common/a.cc", "int a;\n" * 400), [])
        self.assertEqual(check("common/a.cc", "int a;\n" * 401), [(401, "file-length")])
        self.assertEqual(check("proto/cairn/v1/a.proto", "\n" * 401), [(401, "file-length")])

    def test_columns(self):
        self.assertEqual(check("common/a.cc", "\n// " + "x" * 97 + "\n"), [])
        self.assertEqual(check("common/a.cc", "\n// " + "x" * 98 + "\n"), [(2, "columns")])
        self.assertEqual(check("tests/go", "#!/bin/bash\n# " + "x" * 99), [(2, "columns")])
        self.assertEqual(check("common/b.md", "x" * 200), [])

    def test_tab(self):
        self.assertEqual(check("common/a.cc", "{\n\tint a;\n}\n"), [(2, "tab")])


class FunctionLengthTest(unittest.TestCase):
    def test_fires_at_the_brace_of_what_is_too_long(self):
        self.assertEqual(check("common/a.cc", function_of(70)), [])
        self.assertEqual(check("common/a.cc", "\n" + function_of(71)), [(2, "function-length")])

    def test_gtest_bodies_and_kernels_count(self):
        self.assertEqual(check("tests/a_test.cc", function_of(71, "TEST_F(Pool, Evicts)")),
                         [(1, "function-length")])
        self.assertEqual(check("kernels/a.cu", function_of(71, "__global__ void Copy(int a)")),
                         [(1, "function-length")])

    def test_python_counts(self):
        text = "def f():\n" + "    print()\n" * 70
        self.assertEqual(check("tests/a.py", text), [(1, "function-length")])

    def test_containers_do_not_count(self):
        inside = function_of(40, "int F(int a)") + function_of(40, "int G(int a)")
        for head in ("namespace cairn::store", "namespace", 'extern "C"', "class Pool : public A",
                     "template <class T, int N>\nstruct Pool<T>",
                     "class ABSL_LOCKABLE Pool final", "struct alignas(64) Slot",
                     "class [[nodiscard]] Pin"):
            with self.subTest(head):
                self.assertEqual(check("common/a.cc", head + " {\n" + inside + "};\n"), [])
        for head in ("enum class E : int", "const int kA[] =", "std::array<int, 80> kA"):
            with self.subTest(head):
                self.assertEqual(check("common/a.cc", head + " {\n" + "1,\n" * 80 + "};\n"), [])

    def test_functions_in_containers_count(self):
        text = "namespace a {\nclass B {\n public:\n" + function_of(71) + "};\n}  // namespace a\n"
        self.assertEqual(check("common/a.cc", text), [(4, "function-length")])

    def test_lambdas_count_with_their_function(self):
        text = "void F() {\n  auto g = [&](int a) {\n" + "    ++a;\n" * 67 + "  };\n}\n"
        self.assertEqual(bodies(text), [("F", 1, 71)])

    def test_member_initializers_are_not_the_body(self):
        text = ("Pool::Pool(int a)\n    : base_(a), sizes_{1, 2},\n      map_<int>{}, last_{3} {\n"
                "  Start();\n}\n")
        self.assertEqual(bodies(text), [("Pool::Pool", 3, 3)])

    def test_heads_of_many_kinds_are_functions(self):
        for head in ("int F() const", "void F() noexcept override",
                     "auto F(int a) -> std::map<int, A>", "template <class T> T F(T a)",
                     "bool operator==(const A& a, const A& b)",
                     "void F() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_)",
                     "explicit A(int a) : a_(a)",
                     "std::map<int, int> A::F(std::function<int(int)> f)",
                     "const auto kF = [](int a)"):
            with self.subTest(head):
                self.assertEqual(len(bodies(head + " {\n  Go();\n}\n")), 1)

    def test_braces_in_text_are_text(self):
        text = ('void F() {\n  G("{", \'{\', R"(}}\n{)");  // {\n  /* { */\n'
                "#define OPEN {\n  int n = 1\'000;\n}\nvoid H() {\n}\n")
        self.assertEqual(bodies(text), [("F", 1, 7), ("H", 8, 2)])


class WordsTest(unittest.TestCase):
    def test_leftovers_in_comments(self):
        for word in ("TODO", "FIXME", "XXX", "HACK", "Not implemented", "for now", "a placeholder",
                     "a stub"):
            with self.subTest(word):
                self.assertEqual(check("common/a.cc", f"int a;\n// x {word}: y\n"),
                                 [(2, "leftover")])
                self.assertEqual(check("tests/a.py", f"a = 1\nb = 2  # x {word}\n"),
                                 [(2, "leftover")])
                self.assertEqual(check("tests/a", f"#!/usr/bin/env bash\ngo  # {word}\n"),
                                 [(2, "leftover")])
        self.assertEqual(check("proto/cairn/v1/a.proto", "/* a\n TODO */"), [(2, "leftover")])

    def test_leftover_in_a_message(self):
        self.assertEqual(check("common/a.cc", 'F("not implemented");\n'), [(1, "leftover")])

    def test_what_only_looks_like_a_leftover(self):
        self.assertEqual(check("common/a.cc", 'auto stub_ = Node::NewStub(c); Stub* stub;\n'
                               'F("/tmp/cairn_XXXXXX", placeholder);  // for nowait\n'), [])

    def test_using_namespace_std(self):
        self.assertEqual(check("common/a.cc", "\nusing namespace std;\n"),
                         [(2, "using-namespace-std")])
        self.assertEqual(check("common/a.cc", "// using namespace std\n"), [])

    def test_for_testing(self):
        self.assertEqual(check("common/a.cc", "int SizeForTesting();\n"), [(1, "for-testing")])

    def test_string_view_in_headers(self):
        text = "#pragma once\nint F(std::string_view a);\n"
        self.assertEqual(check("common/a.h", text), [(2, "string-view")])
        self.assertEqual(check("common/a.cc", text), [])

    def test_machine_paths(self):
        for folder in ("work", "root", "home"):
            path = "/" + folder + "/x"
            with self.subTest(path):
                self.assertEqual(check("common/a.cc", f'F("{path}");\n'), [(1, "machine-path")])
                self.assertEqual(check("common/a.md", f"see {path}\n"), [(1, "machine-path")])
                self.assertEqual(check("common/a.cc", f'F("tree{path}");\n'), [])


class HeaderTest(unittest.TestCase):
    def test_pragma_once_comes_first(self):
        self.assertEqual(check("common/a.h", "// What it is.\n\n#pragma once\nint a;\n"), [])
        self.assertEqual(check("common/a.h", "int a;\n#pragma once\n"), [(1, "pragma-once")])
        self.assertEqual(check("kernels/a.cuh", "// #pragma once\n"), [(1, "pragma-once")])


class TestFilesTest(unittest.TestCase):
    def test_sleeps(self):
        for call in ("std::this_thread::sleep_for(a)", "absl::SleepFor(a)", "usleep(1)"):
            with self.subTest(call):
                self.assertEqual(check("tests/a_test.cc", call + ";\n"), [(1, "test-sleep")])
                self.assertEqual(check("common/a.cc", call + ";\n"), [])
                self.assertEqual(check("tests/bench/a.cc", call + ";\n"), [])

    def test_skips(self):
        for text in ("GTEST_SKIP();", "TEST(A, DISABLED_B);", "EXPECT_TRUE(true);"):
            with self.subTest(text):
                self.assertEqual(check("tests/a_test.cc", "\n" + text), [(2, "test-skip")])


class IncludesTest(unittest.TestCase):
    def test_includes_run_one_way(self):
        wrong = [("common/a.cc", "client/cpp/b.h"), ("common/a.cc", "cache_node/b.h"),
                 ("kernels/a.cc", "common/base/b.h"), ("router/a.cc", "cache_node/store/b.h"),
                 ("router/a.cc", "kernels/b.h"), ("cache_node/a.cc", "router/b.h"),
                 ("client/cpp/a.cc", "cache_node/b.h"), ("cache_node/a.cc", "tests/testing/b.h"),
                 ("client/ctl/a.cc", "tests/b.h"), ("common/a.cc", "../b.h"),
                 ("common/a.cc", "b.h")]
        for path, included in wrong:
            with self.subTest(f"{path} {included}"):
                self.assertEqual(check(path, f'\n#include "{included}"\n'), [(2, "include")])
        self.assertEqual(check("proto/cairn/v1/a.proto", 'import "common/b.proto";\n'),
                         [(1, "include")])

    def test_what_is_allowed(self):
        right = [("common/a.cc", "cairn/v1/block.pb.h"), ("common/a.cc", "kernels/b.h"),
                 ("cache_node/a.cc", "client/cpp/b.h"), ("router/a.cc", "client/cpp/b.h"),
                 ("client/ctl/a.cc", "cache_node/b.h"), ("tests/bench/a.cc", "router/b.h"),
                 ("common/a.cc", "absl/strings/str_cat.h"), ("tests/a.cc", "tests/testing/b.h")]
        for path, included in right:
            with self.subTest(f"{path} {included}"):
                self.assertEqual(check(path, f'#include "{included}"\n'), [])
        self.assertEqual(check("proto/cairn/v1/a.proto", 'import "cairn/v1/b.proto";\n'), [])
        self.assertEqual(check("common/a.cc", '// #include "router/b.h"\n'), [])


class ReadmesTest(unittest.TestCase):
    def test_a_folder_with_sources_has_one_at_or_above_it(self):
        source = style_check.SourceFile("common/wire/a.cc", "int a;\n")
        self.assertEqual([str(found) for found in style_check.check_files([source])],
                         ["common/wire/README.md:1: readme: missing: why the folder exists"])
        for readme in ("common/README.md", "common/wire/README.md"):
            with self.subTest(readme):
                there = style_check.SourceFile(readme, "")
                self.assertEqual(style_check.check_files([source, there]), [])
        at_root = style_check.SourceFile("README.md", "")
        self.assertEqual(len(style_check.check_files([source, at_root])), 1)


class ProgramTest(unittest.TestCase):
    def run_on(self, files, with_git):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                target = pathlib.Path(root, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            if with_git:
                subprocess.run(["git", "init", "-q", root], check=True)
            program = pathlib.Path(__file__).with_name("style_check.py")
            return subprocess.run([sys.executable, "-B", program, root], check=False,
                                  capture_output=True, text=True)

    def test_names_each_violation_and_fails(self):
        files = {"common/README.md": "", "common/a.cc": "\n// TODO x\n", "build/b.cc": "// TODO\n",
                 ".gitignore": "/build/\n"}
        for with_git in (True, False):
            with self.subTest(with_git=with_git):
                result = self.run_on(files, with_git)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("common/a.cc:2: leftover: 'TODO'", result.stdout)
                self.assertIn("1 sources, 1 violations", result.stdout)

    def test_passes_a_clean_tree(self):
        result = self.run_on({"common/README.md": "", "common/a.cc": "int a;\n"}, True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_an_empty_tree_is_an_error(self):
        result = self.run_on({"README.md": ""}, True)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("no C++ source", result.stderr)


if __name__ == "__main__":
    unittest.main()
