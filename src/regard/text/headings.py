"""Whether the first line of a table without a header row of its own names its columns, and is no text to learn from.

A real pair must never be taken for a heading. Names that nobody would write for a translation of each other are enough by
themselves; words that might be one, such as `it` and `es`, only above a line that is much longer.
"""

import re

from regard.text.pair import Pair

LABELS = {"label", "labels", "class", "category", "target"}
SURE = [({"source", "src"}, {"target", "tgt", "trg"})]
LIKELY = [
    (
        {"text", "document", "article", "dialogue", "content"},
        {"summary", "highlights", "abstract", "headline", "title"},
    ),
    ({"text", "sentence", "input", "source", "src", "original"}, {"translation", "output", "target", "reference"}),
    ({"question", "query"}, {"answer", "response"}),
    ({"sentence1", "text1", "sentence_1", "text_1"}, {"sentence2", "text2", "sentence_2", "text_2"}),
    ({"prompt", "instruction"}, {"completion", "response", "output", "answer"}),
]
LIKELY_BELOW = 20
"""Characters of the longer side of the next line: more than of a word in a dictionary."""

# The ISO 639-1 codes of languages that much text is in; those of the second list are also words of some language.
CODES = (
    "ar az bg bn cs eu fi fr gl gu hr hu hy ja ka kk kn ko ky lt lv mk ml mn mr nb nl nn pl pt ru sk sq sr sv sw th tk tr uk "
    "ur uz xh yo zh"
)
WORD_CODES = (
    "af am as be bs ca cy da de el en eo es et fa ga gd ha he hi ht id ig is it km ku la lo mi ms my ne no or pa ps ro sa si sl "
    "so su ta te to vi zu"
)
CODE = re.compile(
    r"([a-z]{2}|[A-Z]{2})([-_]([A-Z]{2}|[a-z]{2}|[A-Z][a-z]{3}))?"
)  # a sentence begins with one capital letter
LANGUAGES = {
    "arabic": "ar", "bulgarian": "bg", "catalan": "ca", "chinese": "zh", "croatian": "hr", "czech": "cs", "danish": "da",
    "dutch": "nl", "english": "en", "estonian": "et", "finnish": "fi", "french": "fr", "german": "de", "greek": "el",
    "hebrew": "he", "hindi": "hi", "hungarian": "hu", "icelandic": "is", "indonesian": "id", "irish": "ga",
    "italian": "it", "japanese": "ja", "korean": "ko", "latin": "la", "latvian": "lv", "lithuanian": "lt",
    "norwegian": "no", "persian": "fa", "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru",
    "serbian": "sr", "slovak": "sk", "slovenian": "sl", "spanish": "es", "swedish": "sv", "thai": "th", "turkish": "tr",
    "ukrainian": "uk", "vietnamese": "vi", "welsh": "cy", "deutsch": "de", "français": "fr", "español": "es",
    "italiano": "it", "português": "pt", "nederlands": "nl", "polski": "pl", "русский": "ru", "українська": "uk",
    "中文": "zh", "日本語": "ja", "한국어": "ko",
}  # fmt: skip


def labels_heading(pair: Pair) -> bool:
    """Whether this first line names a column of labels."""
    return pair.target.lower() in LABELS


def pairs_heading(pair: Pair, below: Pair | None) -> bool:
    """Whether this first line names two columns of text, to judge by the names and the line `below`."""
    sides = pair.source.lower(), pair.target.lower()
    if _named(sides, SURE) or (codes := _languages(pair)) == "sure":
        return True
    likely = codes == "likely" or _named(sides, LIKELY)
    return likely and below is not None and max(map(len, below)) > LIKELY_BELOW


def _named(sides: tuple[str, str], names: list[tuple[set[str], set[str]]]) -> bool:
    one, other = sides
    return any(
        (one in sources and other in targets) or (other in sources and one in targets) for sources, targets in names
    )


def _languages(pair: Pair) -> str:
    """Whether the two sides name two languages: "sure", "likely" if they may be words as well, or ""."""
    names = [LANGUAGES.get(side.lower(), "") for side in pair]
    if all(names):
        return "sure" if names[0] != names[1] else ""
    codes = [side[:2].lower() for side in pair if CODE.fullmatch(side)]
    if len(codes) < 2 or codes[0] == codes[1] or not set(codes) <= {*CODES.split(), *WORD_CODES.split()}:
        return ""
    return "likely" if set(codes) <= set(WORD_CODES.split()) else "sure"
