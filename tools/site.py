"""The documentation site: docs/ and the generated reference, gathered in build/docs and built into build/site.

make docs
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools import reference

ROOT = Path(__file__).parents[1]
GATHERED = ROOT / "build" / "docs"
# Pages that stand elsewhere in the repository, because that is where one looks for them there.
ELSEWHERE = {
    "recipes/README.md": "recipes.md",
    "bench/README.md": "bench.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "README.md": "index.md",
}


def gather() -> None:
    """Every page in one folder, with links that lead there."""
    shutil.rmtree(GATHERED, ignore_errors=True)
    shutil.copytree(ROOT / "docs", GATHERED, ignore=shutil.ignore_patterns("*.py", "*.json", "*.jsonl"))
    for path in GATHERED.glob("*.md"):
        path.write_text(linked(path.read_text(), "docs"))
    for place, name in ELSEWHERE.items():
        (GATHERED / name).write_text(linked((ROOT / place).read_text(), str(Path(place).parent)))
    (GATHERED / "reference").mkdir()
    for name, page in reference.pages().items():
        (GATHERED / "reference" / f"{name}.md").write_text(page)


def linked(page: str, folder: str) -> str:
    """A page's links, which are relative to its folder in the repository, as they are in the site.

    >>> linked("[a](../recipes/README.md#x) [b](see.md)", "docs")
    '[a](recipes.md#x) [b](see.md)'
    >>> linked("[a](docs/see.md) [all](recipes/)", ".")
    '[a](see.md) [all](recipes.md)'
    """

    def new(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        place = (ROOT / folder / target).resolve()
        if not place.is_relative_to(ROOT):
            return match[0]
        inside = str(place.relative_to(ROOT))
        inside = next((one for one in (inside, f"{inside}/README.md") if one in ELSEWHERE), inside)
        if inside in ELSEWHERE:
            return f"]({ELSEWHERE[inside]}{anchor})"
        if inside.startswith("docs/"):
            return f"]({inside.removeprefix('docs/')}{anchor})"
        return match[0]

    return re.sub(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)", new, page)


def main() -> int:
    """Gather the pages and build the site; a warning is an error."""
    gather()
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", str(ROOT / "zensical.toml")]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
