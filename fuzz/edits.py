"""Small damages, each a pure function of the file and three numbers, so that hypothesis and atheris can both choose them.

A damage to JSON is done to its values and not to its bytes: what reads on has more that can go wrong than the parser.
"""

import json
import struct
from typing import Any

PIECES: list[bytes] = [
    *(b"", b"\0", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\xef\xbb\xbf", b"\x1b[2J", b"\r", b"\n", b"\r\n", b"\t"),
    *(b'"', b'""', b",", b"=", b"[", b"]", b"{", b"}", b"-", b".", b"0", b"1e999", b"nan", b"true", b"null", b"_"),
    *(
        b"\xe2\x80\xa8",
        b"\x0b",
        b"\x85",
        "é".encode(),
        "\U0001f600".encode(),
        b"9" * 400,
        b"0x" + b"f" * 4000,
        b"[" * 3000,
        b"a" * 5000,
    ),
    *(b"source", b"target", b"label", b"en,fr", b"1,2", b"0,1", "²,³".encode(), b"model.width=", b"train.", b"<mask>"),
]
DEEP = "[" * 3000 + "]" * 3000
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 7, 10**9, 10**12, 2**63, -(10**30), 10**400, 0.5, -0.0, 1e300, 1e-300),
    *(float("nan"), float("inf"), float("-inf")),
    *(
        "",
        "a",
        "0",
        "-1",
        "1e999",
        "\ud800",
        "\0",
        "\x1b[2J",
        "a\nb",
        "../../a",
        "bpe",
        "words",
        "characters",
        "x" * 5000,
    ),
    *([], [None], [[]], [0, 1], [-1], [[0, 0]], ["a", "a"], {}, {"": ""}, {"a": {"a": []}}, {"type": "a"}),
    *("F16", "BF16", "F64", "I64", "U8", "BOOL", "F8_E4M3"),
]
KINDS = 9


def edited(content: bytes, kind: int, place: int, piece: int) -> bytes:
    """The file, damaged in one place."""
    kind %= KINDS
    if kind >= 4 and (damaged := _in_json(content, kind, place, piece)) is not None:
        return damaged
    at, new = place % (len(content) + 1), PIECES[piece % len(PIECES)]
    if kind % 4 == 0:  # a piece comes in
        return content[:at] + new + content[at:]
    if kind % 4 == 1:  # something is overwritten
        return content[:at] + new + content[at + max(1, len(new)) :]
    if kind % 4 == 2:  # the end is lost, or a part
        return content[:at] + content[at + 1 + piece :]
    return content[:at] + content[max(0, at - piece) :]  # a part is there twice


def _in_json(content: bytes, kind: int, place: int, piece: int) -> bytes | None:
    """The same inside a safetensors header, a JSON file or a line of one, maybe after a byte that tells which file it is."""
    for start in (0, 1):
        mark, body = content[:start], content[start:]
        if len(body) > 8 and body[8:9] == b"{":
            end = 8 + struct.unpack("<Q", body[:8])[0]
            if (header := _valued(body[8:end], kind, place, piece)) is not None:
                return mark + struct.pack("<Q", len(header)) + header + body[end:]
        if (whole := _valued(body, kind, place, piece)) is not None:
            return mark + whole
        lines = body.split(b"\n")
        number = place % len(lines)
        if len(lines) > 1 and (line := _valued(lines[number], kind, place // len(lines), piece)) is not None:
            return mark + b"\n".join([*lines[:number], line, *lines[number + 1 :]])
    return None


def _valued(content: bytes, kind: int, place: int, piece: int) -> bytes | None:
    try:
        table = json.loads(content)
    except (ValueError, RecursionError):
        return None
    places = list(_places(table))
    if not places:
        return None
    holder, key = places[place % len(places)]
    value = VALUES[piece % len(VALUES)]
    if kind == 5 and isinstance(holder, dict):  # a value is lost, or it has another name
        lost = holder.pop(key)
        if piece % 2:
            holder[str(value)] = lost
    elif kind == 6:  # a value from elsewhere
        other, where = places[(place + piece) % len(places)]
        holder[key] = json.loads(json.dumps(other[where]))
    elif kind == 7:
        holder[key] = [holder[key], value] if piece % 2 else {"a": holder[key]}
    elif kind == 8 and isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
        holder[key] = holder[key] * 2 if piece % 2 else holder[key] - 1
    else:
        holder[key] = value
    written = json.dumps(table).encode()
    return written.replace(b'"' + b"x" * 5000 + b'"', DEEP.encode()) if piece % 5 == 0 else written


def _places(table: Any) -> Any:
    """Every place in a nested table that holds a value: what it is in, and its key."""
    held = list(table.items()) if isinstance(table, dict) else list(enumerate(table)) if isinstance(table, list) else []
    for key, value in held:
        yield table, key
        yield from _places(value)
