"""One loaded model for all threads of a process; after a fork, or sent to another process, one of its own."""

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.fast import encoder, lm_translator, translator
from regard.fast.loaded_models import Loaded
from untrained import leaning, made

TEXTS = ["a b c", "d", "o n m l k j i h", "c <mask> a b a"]
USES = {"transformer": "translate", "lm": "translate", "bert": "fill", "classifier": "classify"}


@pytest.fixture(params=USES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(name: str, tmp_path: Path) -> Path:
    return made(name, tmp_path / "m") if name in ("bert", "classifier") else leaning(tmp_path / "m", name=name)


def test_one_model_is_loaded_however_many_batches_there_are(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[Any] = []
    for module, kind in ((translator, "Translator"), (lm_translator, "Generator"), (encoder, "Encoder")):
        real = getattr(module.ctranslate2, kind)  # type: ignore[attr-defined]
        counted = lambda *given, real=real, **more: loads.append(real) or real(*given, **more)  # noqa: E731
        monkeypatch.setattr(module.ctranslate2, kind, counted)  # type: ignore[attr-defined]
    model = regard.load(path, engine="ctranslate2", threads=3)
    model.batch_tokens = 1
    for count in (1, 2, 3, 4):
        getattr(model, USES[name])(TEXTS[:count])
    assert len(loads) == 1


# The model is used, and while it is used again, the process forks. All end as a process ends.
FORK = """
import os, sys
from threading import Event, Thread
from regard.inference.load import load

path, use, *texts = sys.argv[1:]
model = load(path, engine="ctranslate2", threads=2)
before, busy = getattr(model, use)(texts), Event()

def again():
    for _ in range(50):
        assert getattr(model, use)(texts) == before
        busy.set()

thread = Thread(target=again)
thread.start()
busy.wait()
children = []
for uses in (True, False):
    if not (child := os.fork()):
        if uses:
            assert getattr(model, use)(texts) == before
        sys.exit()
    children.append(child)
thread.join()
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""


def test_a_forked_process_loads_its_own_and_ends(path: Path, name: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK, str(path), USES[name], *TEXTS]
    with subprocess.Popen(command, start_new_session=True) as running:
        try:
            assert running.wait(timeout=60) == 0
        finally:
            if running.returncode is None:  # it hangs
                os.killpg(running.pid, signal.SIGKILL)


SENT = """
import pickle, sys
model = pickle.load(sys.stdin.buffer)
found = getattr(model, sys.argv[1])(sys.argv[2:])
assert "torch" not in sys.modules
sys.stdout.buffer.write(pickle.dumps(found))
"""


def test_a_model_can_be_sent_to_another_process(path: Path, name: str) -> None:
    model = regard.load(path, engine="ctranslate2", threads=1)
    unused = pickle.dumps(model)
    expected = getattr(model, USES[name])(TEXTS)
    assert getattr(pickle.loads(unused), USES[name])(TEXTS) == expected
    command = [sys.executable, "-c", SENT, USES[name], *TEXTS]
    done = subprocess.run(command, input=pickle.dumps(model), capture_output=True, check=True)
    assert pickle.loads(done.stdout) == expected


def test_what_is_left_to_torch_can_be_sent_too(tmp_path: Path) -> None:
    model = regard.load(leaning(tmp_path / "m"), engine="auto", threads=1)
    expected = model.translate(TEXTS, no_repeat=2)
    assert pickle.loads(pickle.dumps(model)).translate(TEXTS, no_repeat=2) == expected


def test_what_cannot_be_loaded_is_tried_again() -> None:
    loaded: Loaded[int] = Loaded()
    with pytest.raises(ZeroDivisionError):
        loaded.get("key", lambda: 1 // 0)
    assert loaded.get("key", lambda: 2) == loaded.get("key", lambda: 3) == 2
