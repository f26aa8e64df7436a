"""The programs of the pages are modules that a server can host as they are and that can be joined into one script."""

import re
from collections import Counter
from importlib.resources import files

import pytest

from regard.pages.page import asset, bundle, modules

# The first modules of our pages: only they do something when they are loaded.
PROGRAMS = [
    name
    for name in ("compare.js", "see/main.js", "see/training.js")
    if (files("regard.pages") / "assets" / name).is_file()
]
EVERY = sorted({name for program in PROGRAMS for name in modules(program)})
NAME = re.compile(r"^(?:export )?(?:async )?(function|const|let|class) (.*)$", flags=re.MULTILINE)
FORBIDDEN = r"\beval\(|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\bfetch\(|XMLHttpRequest|WebSocket|import\(|https?://(?!www\.w3\.org/2000/svg\b)"


def top_level(name: str) -> list[str]:
    """`const { a, b } = ...`, `const a = 1, b = 2` and `function a` name a and b."""
    found = []
    for word, rest in NAME.findall(asset(name)):
        listed = re.match(r"[{[](.*?)[}\]] =", rest)
        found += re.findall(r"\w+", listed[1]) if listed else [rest.split("(")[0].split()[0].strip(";")]
        found += [] if word == "function" or "=>" in rest else re.findall(r", (\w+) = ", rest)
    return found


def test_every_module_belongs_to_a_page() -> None:
    folder = files("regard.pages") / "assets"
    inside = {f"{place}{file.name}" for place in ("", "see/") for file in (folder / place).iterdir()}
    assert {name for name in inside if name.endswith(".js")} == set(EVERY)


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_two_modules_of_a_page_use_one_name(program: str) -> None:
    names = Counter(name for module in modules(program) for name in top_level(module))
    assert not [name for name, count in names.items() if count > 1]


@pytest.mark.parametrize("name", EVERY)
def test_a_module_imports_and_exports_only_by_name(name: str) -> None:
    text = asset(name)
    imports = re.findall(r"^import .*$", text, flags=re.MULTILINE)
    assert all(re.fullmatch(r'import \{ \w+(, \w+)* \} from "\.{1,2}/[\w./]+\.js";', line) for line in imports)
    code = re.sub(r"^(//.*\n)*", "", text)
    assert "import {" not in re.sub(r"^(import .*\n)*", "", code), "imports stand at the top"
    exports = re.findall(r"^[ \t]*export\b.*$", text, flags=re.MULTILINE)
    assert all(re.match(r"export (async )?function \w+|export const \w+", line) for line in exports)


@pytest.mark.parametrize("name", EVERY)
def test_every_name_imported_is_exported_and_used(name: str) -> None:
    text = asset(name)
    found = re.findall(r'^import \{ (.*) \} from "(.*)";$', text, flags=re.MULTILINE)
    for names, other in found:
        place = (
            other.removeprefix("./") if "/" not in name else {"./": "see/", "../": ""}[other[: other.rindex("/") + 1]]
        )
        source = asset(place if place.endswith(".js") else place + other.rsplit("/", 1)[1])
        for word in names.split(", "):
            assert re.search(rf"^export (async )?(function|const) {word}\b", source, flags=re.MULTILINE), (word, other)
            assert len(re.findall(rf"\b{word}\b", text)) > 1, f"{word} is imported, not used"


@pytest.mark.parametrize("name", EVERY)
def test_a_module_neither_loads_nor_evaluates_anything(name: str) -> None:
    text = asset(name)
    assert not re.findall(FORBIDDEN, text)
    assert not re.findall(r"""setAttribute\(\s*["']style|\bstyle: ["'`]|</script""", text)
    if name not in PROGRAMS:
        outside = [line for line in text.splitlines() if re.match(r"[A-Za-z_$(\[`]", line)]
        allowed = r"(import|export|async function|function|const|let) ?"
        assert not [line for line in outside if not re.match(allowed, line)], "nothing is done on loading"


@pytest.mark.parametrize("program", PROGRAMS)
def test_joined_modules_are_one_script_of_its_own_scope(program: str) -> None:
    script = bundle(program)
    assert not re.search(r"^\s*(import|export)\b", script, flags=re.MULTILINE)
    assert script.startswith('(()=>{"use strict";') and script.endswith("})();")


@pytest.mark.parametrize("name", EVERY)
def test_no_template_stands_inside_another(name: str) -> None:
    """The library that takes out comments and spaces would take out spaces of the inner text."""
    assert not re.search(r"\$\{[^}`]*`", asset(name))
