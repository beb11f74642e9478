"""Finds the function bodies of C++ code that is laid out as clang-format's Google style does.

A brace matcher, not a parser. Whatever stands inside a function (lambdas, local classes) counts
with it; namespaces, classes, enums, extern blocks and initializers do not count, what they hold
does.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class FunctionBody:
    first_line: int  # of the opening brace, from 1
    last_line: int   # of the closing brace
    name: str

    @property
    def lines(self):
        return self.last_line - self.first_line + 1


@dataclasses.dataclass
class _Frame:
    kind: str        # "container", "initializer" or "function"
    head_start: int  # where the head that led to this brace began
    open_parens: int
    name: str
    line: int


_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r"^(?:(?:public|private|protected)\s*:(?!:)\s*)+")
_ATTRIBUTE = re.compile(r"\[\[.*?\]\]|\balignas\s*\([^()]*\)|\b__attribute__\s*\(\(.*?\)\)"
                        r"|\b[A-Z][A-Z0-9_]{3,}(?:\s*\([^()]*\))?(?=\s+[A-Za-z_])", re.DOTALL)
_CONTAINER = re.compile(r"^(?:inline\s+)?namespace\b|^extern\s*\"\s*\"\s*$"
                        r"|^(?:(?:typedef|static|const|constexpr|inline)\s+)*"
                        r"(?:class|struct|union|enum)\b(?![^{]*=\s*$)")
_MEMBER_INITIALIZER = re.compile(r"(?:(?<!:):(?!:)|,)\s*[\w:]+(?:<.*>)?\s*$", re.DOTALL)
_LAMBDA = re.compile(r"\]\s*(?:\(.*\))?\s*(?:mutable\b|noexcept\b|->[^{};]*|\s)*$", re.DOTALL)
_NAME = re.compile(r"([~\w:]+|operator\s*\S+?)\s*\(")


def _without_templates(head):
    """Drops leading `template <...>` lists."""
    while match := re.match(r"\s*template\s*<", head):
        depth, at = 1, match.end()
        while at < len(head) and depth:
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
        head = head[at:]
    return head.strip()


def _classify(head, in_parens):
    """Says what a brace opens, given the text between the last statement's end and the brace."""
    if in_parens:
        return "function" if _LAMBDA.search(head) else "initializer"
    head = _LABEL.sub("", head.strip())
    head = _without_templates(head)
    plain = _without_templates(_ATTRIBUTE.sub("", head).strip())
    if _CONTAINER.match(plain):
        return "container"
    if _MEMBER_INITIALIZER.search(head):
        return "initializer"
    if re.search(r"(?:[=,(]|\breturn)$", head):
        return "initializer"
    if "(" in head or _LAMBDA.search(head):
        return "function"
    return "initializer"


def _name_of(head):
    match = _NAME.search(_without_templates(_LABEL.sub("", head.strip())))
    return match.group(1) if match else "lambda"


def find_functions(code):
    """Returns the FunctionBody list of `code`, which is SourceText.code."""
    code = _DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), code)
    found, frames = [], []
    head_start = open_parens = functions_open = 0
    line = 1
    for at, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == "(":
            open_parens += 1
        elif char == ")":
            open_parens = max(0, open_parens - 1)
        elif char == ";" and open_parens == 0:
            head_start = at + 1
        elif char == "{":
            head = code[head_start:at]
            kind = "function" if functions_open else _classify(head, open_parens > 0)
            frames.append(_Frame(kind, head_start, open_parens, _name_of(head), line))
            functions_open += kind == "function"
            head_start, open_parens = at + 1, 0
        elif char == "}" and frames:
            frame = frames.pop()
            functions_open -= frame.kind == "function"
            open_parens = frame.open_parens
            goes_on = frame.kind == "initializer" or open_parens > 0
            head_start = frame.head_start if goes_on else at + 1
            if frame.kind == "function" and not functions_open:
                found.append(FunctionBody(frame.line, line, frame.name))
    return found
