"""A student beside the model it is to replace: sentences a second, with both engines; start-up is not counted."""

import sys
from pathlib import Path

from sacrebleu.metrics import BLEU

from bench import inputs
from bench.contest import Entry, race
from bench.parts.starting import started
from bench.result import Options, Result
from regard.folder import layout as folders

BEAM = 5
ENGINES = ("torch", "ctranslate2")


def compare(options: Options) -> Result:
    """The model with a beam; the student with the same one, and with its own."""
    if not (options.model and options.student):
        sys.exit("The part student compares two folders. Name them: --model DIR --student DIR.")
    texts, right, about = inputs.test_set(options.data)
    path = inputs.stored(texts)

    def entry(who: str, folder: Path, engine: str, beam: int) -> Entry:
        settings = {"folder": str(folder.resolve()), "texts": str(path), "beam": beam, "load": {"engine": engine}}
        return Entry(f"{who}, {engine}, {f'beam {beam}' if beam > 1 else 'greedy'}", "translate_regard", settings)

    own = folders.load_config(options.student)[0].decode.beam
    ours = entry("student", options.student, "torch", own).name
    entries = [
        entry(who, folder, engine, beam)
        for engine in ENGINES
        for who, folder, beam in (
            ("tiny", options.model, BEAM),
            *(("student", options.student, beam) for beam in sorted({BEAM, own}, reverse=True)),
        )
    ]
    result = Result("A student", "sentences a second", f"{about}; both engines are Regard's.", ours)
    measure = BLEU(tokenize="none", force=True)  # the text is tokenised, and is meant to be
    with started(entries, result) as racers:
        result.lines = race(racers, options.rounds, options.seconds)
        for racer in racers:
            result.notes[racer.name] = f"BLEU {measure.corpus_score(racer.last['written'], [right]).score:.2f}"
    result.about += f" BLEU: {measure.get_signature()}."
    return result
