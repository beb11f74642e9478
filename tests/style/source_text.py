"""Splits C++ and proto text into what is code and what is comment, line by line."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class SourceText:
    """Three views of one file, each as long as the file with the same line breaks.

    code: comments blanked, contents of string and character literals blanked.
    comments: only the comments.
    literals: only the contents of string literals.
    """
    code: str
    comments: str
    literals: str


_TOKEN = re.compile(
    r"""(?P<comment>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/)"""
    r"""|(?P<raw>\bu?8?[uUL]?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)")"""
    r"""|(?P<string>"(?:[^"\\\n]|\\.)*")"""
    r"""|(?P<char>(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+')""",
    re.DOTALL)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def split_source(text):
    """Returns the SourceText of C++ or proto text."""
    code, comments, literals = [], [], []
    end = 0
    for match in _TOKEN.finditer(text):
        before, token = text[end:match.start()], match.group()
        end = match.end()
        code.append(before)
        comments.append(_blank(before))
        literals.append(_blank(before))
        is_comment = match.group("comment") is not None
        is_char = match.group("char") is not None
        comments.append(token if is_comment else _blank(token))
        literals.append(_blank(token) if is_comment or is_char else token)
        code.append(_blank(token) if is_comment else '"' + _blank(token[1:-1]) + '"')
    rest = text[end:]
    return SourceText("".join(code) + rest, "".join(comments) + _blank(rest),
                      "".join(literals) + _blank(rest))
