"""The demo, cut short: the whole of it is `make demo`."""

from dataclasses import replace
from pathlib import Path

import pytest

from regard.cli.main import main
from regard.experiments import demo


def test_a_short_demo_goes_all_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = demo.config

    def short(seed: int, threads: int) -> object:
        config = whole(seed, threads)
        settings = {"steps": 3, "warm_up": 1, "validate_steps": 3, "validate_sentences": 2, "checkpoint_steps": 3}
        return replace(config, train=replace(config.train, **settings))

    monkeypatch.setattr(demo, "config", short)
    monkeypatch.setattr(demo, "AMBIGUOUS", 2)
    assert main(["demo", "--to", str(tmp_path / "demo"), "--threads", "1"]) == 0
    printed = capsys.readouterr().out
    assert "The animal didn't cross the street because it was too tired." in printed
    assert "% of 2 held-out ambiguous sentences" in printed
