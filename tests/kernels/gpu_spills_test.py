#!/usr/bin/env python3
"""Compiles kernels for each architecture and reads the compiler's report: no register may spill.

usage: gpu_spills_test.py --nvcc NVCC --root ROOT [--architectures 90a,80,100] FILE.cu...
Prints a line for each kernel: architecture, registers, and its name.
"""

import argparse
import re
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def read_report(report):
    """Kernels of a report of ptxas -v as (name, architecture, spilled bytes, registers)."""
    kernels = []
    entry = spilled = None
    for line in report.splitlines():
        if match := ENTRY.search(line):
            entry, spilled = match.groups(), None
        elif match := SPILLS.search(line):
            spilled = int(match[2]) + int(match[3])
        elif (match := REGISTERS.search(line)) and entry:
            kernels.append((*entry, spilled, int(match[1])))
            entry = None
    return kernels


def compile_for_report(nvcc, root, architectures, source):
    command = [nvcc, "-std=c++17", "-O2", f"-I{root}", "-Xptxas", "-v", "-c", source,
               "-o", "/dev/null"]
    for architecture in architectures:
        command += ["-gencode", f"arch=compute_{architecture},code=sm_{architecture}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{source} does not compile:\n{done.stdout}")
    return done.stdout


def check(source, architectures, kernels):
    """What is wrong, in words."""
    problems = []
    for architecture in architectures:
        if not any(kernel[1] == architecture for kernel in kernels):
            problems.append(f"{source}: no kernel for sm_{architecture}")
    for name, architecture, spilled, registers in kernels:
        print(f"sm_{architecture:5} {registers:4} registers  {name}")
        if spilled is None:
            problems.append(f"{name}: the report for sm_{architecture} says nothing of spills")
        elif spilled > 0:
            problems.append(f"{name}: {spilled} bytes of spills for sm_{architecture}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--architectures", default="90a", help="separated by commas")
    parser.add_argument("sources", nargs="+", metavar="FILE.cu")
    arguments = parser.parse_args()
    architectures = arguments.architectures.split(",")
    problems = []
    for source in arguments.sources:
        report = compile_for_report(arguments.nvcc, arguments.root, architectures, source)
        problems += check(source, architectures, read_report(report))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
