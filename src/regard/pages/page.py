"""One self-contained HTML file out of a body, styles, a program and data.

The page may load nothing and run nothing but what is in it: its content security policy names the hashes of its own style
and script. Data is JSON in a block that is never executed. Programs are ES modules, so that a server can host them as they
are; a file cannot import its neighbours, so here they are joined into one script, without comments and indentation.
"""

import base64
import hashlib
import html
import json
import posixpath
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import rcssmin
import rjsmin

IMPORT = re.compile(r'^import \{ [\w, $]+ \} from "(\.{1,2}/[\w./-]+\.js)";\n', flags=re.MULTILINE)
EXPORT = re.compile(r"^export (?=function |async function |const )", flags=re.MULTILINE)


def assemble(title: str, body: str, styles: Sequence[str], program: str, data: Any, without: str = "") -> str:
    """The page; `body`, `styles` and `program`, its first module, are names of assets.

    `without` is HTML for those who run no scripts: it takes the place {{without}} in the body.
    """
    style, script = sheet(styles), bundle(program)
    parts = {
        "title": html.escape(title),
        "policy": html.escape(policy(style, script)),
        "style": style,
        "body": _fill(asset(body), {"without": without}),
        "data": embedded(data),
        "script": script,
    }
    return _fill(asset("page.html"), parts)


def asset(name: str) -> str:
    """A file that comes with this package."""
    return (files("regard.pages") / "assets" / name).read_text(encoding="utf-8")


def bundle(program: str) -> str:
    """A module and all it imports, each after what it needs, as one script with a scope of its own."""
    joined = "".join(EXPORT.sub("", IMPORT.sub("", asset(name))) for name in modules(program))
    small: str = rjsmin.jsmin(f'(() => {{\n"use strict";\n{joined}}})();\n')
    return small


def sheet(styles: Sequence[str]) -> str:
    """All styles as one."""
    small: str = rcssmin.cssmin("\n".join(map(asset, styles)))
    return small


def modules(program: str) -> list[str]:
    """The module and all it imports, directly or not, each after those it imports.

    >>> modules("compare.js")
    ['dom.js', 'charts.js', 'compare.js']
    """
    found: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"{name} imports itself, by way of {', '.join(above)}")
        if name in found:
            return
        for other in IMPORT.findall(asset(name)):
            visit(posixpath.normpath(posixpath.join(posixpath.dirname(name), other)), (*above, name))
        found.append(name)

    visit(program, ())
    return found


def policy(style: str, script: str) -> str:
    """Nothing from anywhere, but for this style and this script."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def embedded(data: Any) -> str:
    """JSON that can stand inside a script element whatever texts it holds.

    >>> embedded("</script>")
    '"\\\\u003c/script>"'
    """
    return json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def _fill(text: str, parts: dict[str, str]) -> str:
    """In one pass, so that nothing in a part can be taken for the place of another."""
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], text)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
