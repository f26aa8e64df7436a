"""A trace as a file, by the ending of its name, and as what a notebook shows."""

from pathlib import Path
from typing import Any

from regard.errors import TraceError
from regard.interpret.trace import Trace
from regard.interpret.views import show
from regard.pages.see import notebook_frame
from regard.system.storage import write_file

ENDINGS = (".html", ".svg", ".csv", ".txt")
_HIGHEST, _AROUND, _ROW = 900, 420, 28  # pixels of a frame in a notebook: at most, without words, and for each word


def save(trace: Trace, path: Path, **chosen: Any) -> None:
    """Write the page, the picture, all weights or the text; `chosen` is what picture or text shall show."""
    ending = path.suffix.lower()
    if ending == ".png":
        raise TraceError(
            f"{path} is made by the page, not here: open the page and press e. "
            f"Name it {path.with_suffix('.svg').name} for a picture that any program can turn into pixels."
        )
    if ending not in ENDINGS:
        raise TraceError(f"{path} has no ending that says what to write. End its name in one of: {' '.join(ENDINGS)}")
    if ending == ".svg":
        content = trace.svg(**chosen)
    elif ending == ".txt":
        content = trace.text(**chosen) + "\n"
    else:
        content = trace.html() if ending == ".html" else trace.csv()
    write_file(path, content.encode("utf-8", "replace"))


def notebook(trace: Trace) -> dict[str, str]:
    """The page in a frame of its own, the picture for where frames are not shown, the text for where pictures are not."""
    bundle = {"text/plain": repr(trace)}
    if trace.maps:
        shown = show(trace)
        height = min(_HIGHEST, _AROUND + _ROW * max(len(shown.queries), len(shown.keys)))
        bundle |= {"text/html": notebook_frame(trace.html(), height), "image/svg+xml": trace.svg()}
    return bundle
