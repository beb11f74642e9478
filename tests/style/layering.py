"""Which part of the tree may include which: includes run one way."""

import re

_CORE = {"proto", "common", "kernels", "client/cpp"}
_ALLOWED = {
    "proto": {"proto"},
    "kernels": {"kernels"},
    "common": {"proto", "kernels", "common"},
    "client/cpp": _CORE,
    "client/replay": _CORE | {"client/replay"},
    "cache_node": _CORE | {"cache_node"},
    "router": {"proto", "common", "client/cpp", "router"},
    "client/ctl": _CORE | {"client/replay", "client/ctl", "cache_node", "router"},
    "tests": _CORE | {"client/replay", "client/ctl", "cache_node", "router", "tests"},
}
_DIRECTIVE = re.compile(r"""\s*(?:#\s*include\s*|import\s+(?:public\s+)?)["]([^"]+)["]""")
_GENERATED = re.compile(r"^(?:cairn/v\d+|google/\w+)/.*\.(?:pb\.h|proto)$")


def part_of(path):
    """The part that a path from the root belongs to, or None."""
    if _GENERATED.match(path):
        return "proto"
    return next((part for part in _ALLOWED if path.startswith(part + "/")), None)


def why_wrong(path, line):
    """Says what is wrong with an include or import line of the file at `path`, or None."""
    match = _DIRECTIVE.match(line)
    if not match:
        return None
    included = match.group(1)
    importer, target = part_of(path), part_of(included)
    if importer is None:
        return None
    if target is None:
        is_library = "/" in included and ".." not in included
        return None if is_library else f"\"{included}\": give the path from the root"
    if target not in _ALLOWED[importer]:
        return f"\"{included}\": {importer} must not know {target}"
    return None
