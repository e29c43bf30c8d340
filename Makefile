# `make` alone lists the targets. Everything is installed into .venv, and nothing outside this folder is touched.

# Which torch is installed when .venv is made; options of pip are passed on, as in
#   make demo TORCH="torch --index-url https://download.pytorch.org/whl/cpu"
TORCH ?= torch==2.13.0
PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEMO := $(BIN)/algolen train --task addition --seeds 0 --device cpu --db demo.sqlite

.DEFAULT_GOAL := help
STUDIES := $(sort $(basename $(notdir $(wildcard algolen/studies/*.toml))))
PROCESSES ?= 2
# A folder of its own, since checkpoints lie beside the database: one that is there already would be no reproduction.
REPRODUCED := reproduced
STUDY := $(BIN)/algolen study --processes $(PROCESSES) --device cpu --db $(REPRODUCED)/experiments.sqlite
COMPARE := $(BIN)/algolen compare experiments.sqlite $(REPRODUCED)/experiments.sqlite

.PHONY: help demo results test test-all lint check bench clean reproduce reproduce-quick $(STUDIES:%=reproduce-%)

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' Makefile
	@for study in $(STUDIES); do printf 'make %-15s one study of them\n' reproduce-$$study; done
	@echo
	@echo 'PROCESSES=8 lets reproductions train as many runs at once, of one thread each; 2 is the default.'
	@echo 'TORCH="torch --index-url https://download.pytorch.org/whl/cpu" chooses another build of torch.'
	@echo 'PYTHON=python3.12 chooses the Python that .venv is made with (3.11 or newer).'

# The two trainings are background jobs, so that a signal ends the shell's `wait` at once. Ctrl-C reaches them without
# our help, unless they are still importing, when a shell's background jobs ignore it: whoever is left after a few
# seconds is told again. A signal sent to make alone reaches the shell only, and is passed on.
demo: $(INSTALLED)  ## train addition with coupling and with nope, one seed each, and print the report (minutes)
	@mkdir -p runs
	@echo 'Training addition twice, one process each. nope writes to runs/demo-nope.log; this is coupling:'
	@running() { kill -0 $$nope 2>/dev/null || kill -0 $$coupling 2>/dev/null; }; \
	end() { kill $$nope $$coupling 2>/dev/null; wait; exit $$1; }; \
	interrupted() { for second in 1 2 3 4 5; do if running; then sleep 1; fi; done; end 130; }; \
	trap interrupted INT; trap 'end 143' TERM HUP; \
	$(DEMO) --pe nope >runs/demo-nope.log 2>&1 & nope=$$!; \
	$(DEMO) --pe coupling >/dev/null & coupling=$$!; \
	wait $$coupling || { echo 'coupling failed; stopping nope' >&2; end 1; }; \
	echo 'Waiting for nope.'; \
	wait $$nope || { tail -n 5 runs/demo-nope.log >&2; echo 'nope failed; see runs/demo-nope.log' >&2; exit 1; }
	@$(BIN)/algolen report --db demo.sqlite

# All of these go on where they stopped; remove the folder to begin again.
reproduce: $(INSTALLED)  ## train all studies into a database of their own and compare it with the one that is here (hours)
	@mkdir -p $(REPRODUCED)
	$(STUDY) $(STUDIES)
	$(COMPARE)

reproduce-quick: $(INSTALLED)  ## the same for a seed of a few encodings of each study
	@mkdir -p $(REPRODUCED)
	$(STUDY) --quick --seeds 0 $(STUDIES)
	$(COMPARE)

$(STUDIES:%=reproduce-%): reproduce-%: $(INSTALLED)
	@mkdir -p $(REPRODUCED)
	$(STUDY) $*
	$(COMPARE)

results: $(INSTALLED)  ## make the tables of RESULTS.md anew from experiments.sqlite
	$(BIN)/python -m algolen.sweep.results RESULTS.md experiments.sqlite

test: $(INSTALLED)  ## run the tests, without the slow ones
	$(BIN)/python -m pytest -n 2 -m 'not slow'

test-all: $(INSTALLED)  ## run all tests
	$(BIN)/python -m pytest -n 2

lint: $(INSTALLED)  ## look for faults in style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict algolen

check: lint test  ## what has to pass before a change is taken: lint, then test

bench: $(INSTALLED)  ## measure speed against hand-written rivals, and fail where a bar is missed
	$(BIN)/python -m benchmarks

clean:  ## remove .venv and caches; databases and runs/ stay
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The list of development tools is read from pyproject.toml, since pip understands dependency groups only from 25.1 on.
$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'algolen needs Python 3.11 or newer; name one, as in: make test PYTHON=python3.12' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(TORCH)
	$(BIN)/python -c 'import tomllib; groups = tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]; \
	  print(*groups["dev"], sep="\n")' >$(VENV)/development.txt
	$(BIN)/python -m pip install -e . -r $(VENV)/development.txt
	touch $@
