# Every target makes .venv and installs into it what pyproject.toml asks for, whenever that file is newer.
# Hydra overrides pass through: make train model=small training.learning_rate=1e-3

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
ENDEAVOUR := $(VENV)/bin/endeavour

# `make train model=small` defines make's variable `model`. Each one from the command line is handed on as one
# word, quoted for the shell; MAKEOVERRIDES has them too, but escapes neither quotes nor parentheses.
# (Loop variables have names that no key has: within a loop `name` would be the loop's, and the user's were lost.)
define line_break_


endef
quote = '$(subst $(line_break_),'$$'\n'',$(subst ','\'',$(1)))'
typed = $(filter-out PYTHON SHELL VENV ENDEAVOUR,$(foreach key_,$(.VARIABLES),$(if $(findstring command,$(origin $(key_))),$(key_))))
OVERRIDES = $(foreach key_,$(typed),$(call quote,$(key_)=$(value $(key_))))
# make would expand `$(…)` in a text to export it, and so run $(shell …).
unexport $(typed)

.DEFAULT_GOAL := help
.PHONY: prepare train eval translate score filter play pictures compare average export sweep bench test slow faults mutants docs check format clean help

prepare: $(VENV)/installed  ## download or read a corpus, clean and encode it
	@$(ENDEAVOUR) prepare $(OVERRIDES)

train: $(VENV)/installed  ## prepare, train, evaluate; continues a run that was stopped
	@$(ENDEAVOUR) train $(OVERRIDES)

eval: $(VENV)/installed  ## score a trained run: run=NAME, or the newest finished one
	@$(ENDEAVOUR) evaluate $(OVERRIDES)

translate: $(VENV)/installed  ## text="A sentence.", or input=FILE, or standard input; run=NAME
	@$(ENDEAVOUR) translate $(OVERRIDES)

play: $(VENV)/installed  ## open a page to watch, question and steer a trained run: run=NAME
	@$(ENDEAVOUR) play $(OVERRIDES)

pictures: $(VENV)/installed  ## draw one sentence on its way through a trained run: run=NAME text="…"
	@$(ENDEAVOUR) pictures $(OVERRIDES)

score: $(VENV)/installed  ## how probable given translations are: pairs=[a.en,a.de], or standard input; run=NAME
	@$(ENDEAVOUR) score $(OVERRIDES)

filter: $(VENV)/installed  ## the pairs of a noisy corpus worth training on: pairs=[a.en,a.de] runs="NAME NAME"
	@$(ENDEAVOUR) filter $(OVERRIDES)

compare: $(VENV)/installed  ## runs="a b" systems=FILE: which is better, by significance tests, and where
	@$(ENDEAVOUR) compare $(OVERRIDES)

average: $(VENV)/installed  ## a run of checkpoints of another one, or of one alone: run=NAME "updates=[600,800]"
	@$(ENDEAVOUR) average $(OVERRIDES)

export: $(VENV)/installed  ## a trained run for other programs: format=ctranslate2, huggingface, argos or all
	@$(ENDEAVOUR) export $(OVERRIDES)

sweep: $(VENV)/installed  ## train every combination: model=tiny,small seed=1,2; or search: hydra/sweeper=optuna
	@$(ENDEAVOUR) sweep $(OVERRIDES)

bench: $(VENV)/installed  ## measure what training, decoding and preparation cost on this machine
	@$(ENDEAVOUR) bench $(OVERRIDES)

test: $(VENV)/developed  ## run the tests, on all cores (at most eight)
	$(VENV)/bin/python -m pytest -n auto --maxprocesses=8 --dist loadfile --no-loadscope-reorder

slow: $(VENV)/developed  ## run the tests that take minutes
	TORCHINDUCTOR_COMPILE_THREADS=1 $(VENV)/bin/python -m pytest -m slow  # in forks its pool would hang

faults: $(VENV)/developed  ## kill, stop, starve and damage a small run some 200 times; minutes
	cd tests && ../$(VENV)/bin/python -m faults

mutants: $(VENV)/developed  ## change the arithmetic in thousands of places; which changes no test notices; half an hour
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[mutants]'
	$(VENV)/bin/python tests/mutants.py

docs: $(VENV)/installed  ## the documents and the Python reference as a site, build/site/index.html; checks their links
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	rm -rf build && mkdir -p build/pages
	tar cf - --exclude=__pycache__ README.md LICENSE *.md docs conf notebooks src data/README.md outputs/README.md \
	    | tar xf - -C build/pages
	$(VENV)/bin/zensical build --strict --clean
	@echo build/site/index.html

check: $(VENV)/developed  ## format, lint and types, then the tests: what CI runs
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/pyright
	$(MAKE) test

format: $(VENV)/developed  ## bring the code into shape
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

clean:  ## delete .venv and caches; data/ and outputs/ stay
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis mutants build
	find src tests -name __pycache__ -type d -exec rm -rf {} +

help:  ## this list
	@awk -F ':.*## *' '/^[a-z]+:.*##/ {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Settings follow a target: make train model=small seed=2. All keys: $(ENDEAVOUR) train --help"

$(VENV)/installed: pyproject.toml
	@test -x $(VENV)/bin/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "$(PYTHON) is not Python 3.11 or later: make PYTHON=python3.12 …" >&2; exit 2; }
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV) || { rm -f $(VENV)/bin/python; exit 1; }
	@echo "installing into $(VENV) (once; a minute or two)" >&2
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[play,export,filter,sweep]'
	@touch $@

$(VENV)/developed: $(VENV)/installed
	@echo "installing what tests need into $(VENV) (once)" >&2
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
