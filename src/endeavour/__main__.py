"""`endeavour STAGE key=value …`: names to stage functions, and errors to one or two lines. Nothing else."""

import os
import re
import sys
import traceback
from importlib import import_module
from typing import NoReturn

USAGE = """\
endeavour STAGE [key=value …]

  prepare    obtain a corpus, clean it, learn the vocabulary, encode it
  train      prepare, train and evaluate a model; goes on where it was stopped
  evaluate   score a trained model on the test splits, or on other files (also: eval)
  translate  text="…", input=FILE, or standard input, to standard output or output=FILE
  compare    runs="a b": which run is better, tested for significance, and where; also systems=FILE; sick outputs
  export     write a trained model for CTranslate2 or Hugging Face: format=…, quantization=…
  sweep      train every combination, model=tiny,small seed=1,2, or search with hydra/sweeper=optuna
  bench      measure training, decoding, preparation and start-up on this machine, beside other toolkits

endeavour STAGE --help shows every group and key, --cfg job the config of a command; -v adds the traceback of an error.
"""

STAGES = {
    "prepare": "prepare",
    "train": "train",
    "evaluate": "evaluate",
    "eval": "evaluate",
    "translate": "translate",
    "compare": "compare",
    "export": "export",
    "sweep": "sweep",
}

# What they do not say of decoding they take from the trained run.
OF_A_RUN = {"evaluate", "translate", "export"}
# What they did before they were stopped is on disk, and need not be done again.
GO_ON = {"prepare", "train", "sweep"}

USER_ERROR = 2
FAILURE = 1
VERBOSE = "-v"
MULTIRUN = {"--multirun", "-m"}

# Keys that these stages read, and all others would leave unread.
ONLY_FOR = {
    "text": ("translate",),
    "input": ("translate",),
    "output": ("translate",),
    "runs": ("compare",),
    "systems": ("compare",),
    "split": ("compare",),
    "format": ("export",),
    "ensemble": ("eval", "translate"),
}
# What to do instead, by key and stage.
INSTEAD = {
    ("split", "evaluate"): "evaluation.splits=[…] is what it evaluates",
    ("ensemble", "train"): "each run trains its own model, with a seed=… of its own",
    ("ensemble", "compare"): "its evaluation has a folder of its own, to be named in runs=…",
    ("ensemble", "export"): "an export holds one model",
}

# Their values are text, file names or names of runs, never Hydra's grammar.
LITERAL_KEYS = ("text", "input", "output", "runs", "systems", "ensemble", "teachers")


def main() -> None:
    """Runs one stage and ends the process: 0 done, 2 the user's error, 1 any other, 128 + n after signal n."""
    arguments = [argument for argument in sys.argv[1:] if argument != VERBOSE]
    verbose = VERBOSE in sys.argv[1:] or os.environ.get("HYDRA_FULL_ERROR", "0") == "1"
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        sys.exit(0 if arguments else USER_ERROR)
    name, *overrides = arguments
    if name not in STAGES:
        known = ", ".join(dict.fromkeys(STAGES.values()))
        _fail("endeavour", f"no stage {name!r}; choose one of {known}", USER_ERROR)
    command = f"endeavour {name}"
    stage = STAGES[name]
    if stage == "train" and MULTIRUN & set(overrides):
        stage = "sweep"
    if "TORCHELASTIC_RUN_ID" in os.environ and stage != "train":
        _fail(
            command,
            "torchrun starts `train` and nothing else: all its processes would do the same",
            USER_ERROR,
        )
    from endeavour.errors import RunError, UserError
    from endeavour.training.signals import Interrupted

    try:
        refuse_secrets(overrides)
        refuse_unread(stage, overrides)
        # In a sweep commas and quotes have the meaning that Hydra gives them.
        run_stage(
            stage, overrides if stage == "sweep" else [quote_literal(override) for override in overrides]
        )
    except UserError as error:
        _fail(command, str(error), USER_ERROR, verbose=verbose)
    except RunError as error:
        _fail(command, str(error), FAILURE, verbose=verbose)
    except Interrupted as stop:
        _fail(command, str(stop), stop.exit_code)
    except KeyboardInterrupt:
        then = "goes on from what is on disk" if stage in GO_ON else "begins anew"
        _fail(command, f"stopped; the same command {then}", 130)
    except BrokenPipeError:  # whoever read our output has seen enough, as in `endeavour translate … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        _fail(command, unexpected(error), FAILURE, verbose=verbose)


def run_stage(stage: str, overrides: list[str]) -> None:
    """Calls the function that bears its stage's name with the config that the overrides compose."""
    function = getattr(import_module(f"endeavour.stages.{stage}"), stage)
    if stage == "sweep":
        function([override for override in overrides if override not in MULTIRUN])
        return
    from endeavour.config import run_hydra, to_config

    known = stage not in OF_A_RUN
    run_hydra(stage, lambda composed: function(to_config(composed, decoding_known=known)), overrides)


def quote_literal(override: str) -> str:
    """Text and file names as Hydra takes them literally: its grammar gives commas, brackets and quotes a meaning."""
    key, equals, value = override.partition("=")
    if key not in LITERAL_KEYS or not equals or value == "null":
        return override
    # OmegaConf would resolve ${…}: a backslash before it escapes it, and those that stood there are doubled.
    value = re.sub(r"(\\*)\$\{", lambda match: match[1] * 2 + "\\${", value)
    # In Hydra's quotes a backslash counts only before the quote mark, or where the value ends in it.
    value = re.sub(r"(\\*)('|$)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), value)
    return f"{key}='{value}'"


def refuse_secrets(overrides: list[str]) -> None:
    """Raises `UserError` for an override that holds a key or a token: it would be saved, and all could read it."""
    from endeavour.errors import UserError
    from endeavour.redaction import NAMED_BY_USERS, names_secret, secret_in

    for override in overrides:
        key, equals, _ = override.partition("=")
        named = equals and not key.lstrip("+").startswith(NAMED_BY_USERS) and names_secret(key)
        found = secret_in(override) or ("a secret" if named else None)
        if found:
            which = f"the argument {key.lstrip('+~')}=…" if equals else "an argument"
            raise UserError(
                f"{which} holds {found}: a command line is saved, and every user of this machine can read it\n"
                "set WANDB_API_KEY or HF_TOKEN in the environment instead"
            )


def refuse_unread(stage: str, overrides: list[str]) -> None:
    """Raises `UserError` for a key that another stage reads and this one does not."""
    from endeavour.errors import UserError

    for override in overrides:
        key = override.lstrip("+").partition("=")[0]
        readers = ONLY_FOR.get(key, (stage,))
        if stage not in [STAGES[reader] for reader in readers]:
            commands = " and ".join(f"`endeavour {reader}`" for reader in readers)
            instead = f": {INSTEAD[key, stage]}" if (key, stage) in INSTEAD else ""
            raise UserError(f"{key}=… is for {commands}, not for {stage}{instead}")


def unexpected(error: Exception) -> str:
    """Two lines for an exception that is not the user's: what it is, and how to see where it comes from."""
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")
    where = "HYDRA_FULL_ERROR=1 before the same command shows where it happened"
    return f"{type(error).__name__}: {said}\nnot foreseen; {where}"


def _fail(command: str, message: str, code: int, *, verbose: bool = False) -> NoReturn:
    from endeavour.redaction import redact

    if verbose:
        print(redact(traceback.format_exc()), file=sys.stderr)
    if any(argument.lstrip("+").startswith("training.restart=") for argument in sys.argv):
        # Repeated as it stands it would throw away what it was to go on from.
        message = message.replace("the same command", "the same command without training.restart")
    print(redact(f"{command}: {message}"), file=sys.stderr)
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_initialized():
        # The processes of a run are still joined, and at a usual end this one might wait for the others for ever.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
