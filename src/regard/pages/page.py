"""One self-contained HTML file out of a body, styles, scripts and data.

The page may load nothing and run nothing but what is in it: its content security policy names the hashes of its own style
and script. Data is JSON in a block that is never executed.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any


def assemble(title: str, body: str, styles: Sequence[str], scripts: Sequence[str], data: Any) -> str:
    """The page; `body`, `styles` and `scripts` are names of assets, the last two joined in this order."""
    style, script = "\n".join(map(asset, styles)), "\n".join(map(asset, scripts))
    parts = {
        "title": html.escape(title),
        "policy": html.escape(policy(style, script)),
        "style": style,
        "body": asset(body),
        "data": embedded(data),
        "script": script,
    }
    # In one pass, so that nothing in a part can be taken for the place of another.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], asset("page.html"))


def asset(name: str) -> str:
    """A file that comes with this package."""
    return (files("regard.pages") / "assets" / name).read_text(encoding="utf-8")


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


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
