"""Completion in a shell: commands, then the keys, groups and options of the command's root, and the names of runs.

Hydra knows keys and options; its own installer knows no commands and does not run in fish. Imports nothing heavy: a
completion must not keep the user waiting.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import glob
from os.path import expanduser
from pathlib import Path

from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.plugins.completion_plugin import DefaultCompletionPlugin

from endeavour.hydra_messages import hydras_options
from endeavour.settings import config_folder

# What follows may depend on such a word before it: on hydra/sweeper=optuna, or on the option whose values are offered.
CHOICE = re.compile(r"[\w@/.+-]+=[\w/.-]+", re.ASCII)
# A word that stands without quotes in every shell, and of which a run's name can be part as it is.
UNQUOTED = re.compile(r"[\w@%+=:./~-]*")
SCRIPTS = {
    "bash": """\
_endeavour() {
    local IFS=$'\n'
    COMPREPLY=($(endeavour --complete "${COMP_LINE:0:COMP_POINT}" 2> /dev/null))
}
COMP_WORDBREAKS=${COMP_WORDBREAKS//=}
complete -o nospace -o default -F _endeavour endeavour
""",
    "zsh": """\
_endeavour() {
    compadd -Q -S '' -- ${(f)"$(endeavour --complete "$LBUFFER" 2> /dev/null)"}
}
compdef _endeavour endeavour
""",
    "fish": """\
complete -c endeavour -f -a '(endeavour --complete (commandline -cp) 2> /dev/null)'
""",
}
_INSTALL = {
    "bash": "endeavour --install-completion bash >> ~/.bashrc",
    "zsh": "endeavour --install-completion zsh >> ~/.zshrc    # after compinit",
    "fish": "endeavour --install-completion fish > ~/.config/fish/completions/endeavour.fish",
}


def script(shell: str | None) -> str:
    """The lines that make `shell` complete our commands; without one, how to install them."""
    if shell in SCRIPTS:
        return SCRIPTS[shell]
    return "".join(f"{command}\n" for command in _INSTALL.values())


def complete(line: str, commands: Mapping[str, str]) -> list[str]:
    """What the last word of a command line up to the cursor may become. `commands`: command → its root in conf/.

    Only words are offered that need no quotes, and none within a quoted text.
    """
    try:
        _, *words = shlex.split(line) or [""]
    except ValueError:  # a quote that is not closed yet
        return []
    if line.endswith(" "):
        words.append("")
    if len(words) <= 1:
        return [f"{command} " for command in commands if command.startswith("".join(words))]
    command, *before, word = words
    if command not in commands or not UNQUOTED.fullmatch(word):
        return []
    key, equals, value = word.partition("=")
    if equals and key in ("run", "runs", "pretrained", "teachers", "decoding.backward"):
        found = [f"{key}={name}" for name in _run_names(before) if name.startswith(value)]
    else:
        choices = [one for one in before if CHOICE.fullmatch(one)]
        found = _hydras(commands[command], [*choices, word]) or _hydras(commands[command], [word])
    return [one for one in found if UNQUOTED.fullmatch(one)]


def _hydras(root: str, words: Sequence[str]) -> list[str]:
    """What Hydra would make of the last word; nothing where it cannot read them, of which there are many ways."""
    with (
        suppress(Exception),
        initialize_config_dir(version_base="1.3", config_dir=str(config_folder().resolve())),
    ):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        plugin = DefaultCompletionPlugin(hydra.config_loader)
        with hydras_options():
            return plugin._query(root, " ".join(words))  # pyright: ignore[reportPrivateUsage]
    return []


def _run_names(overrides: Sequence[str]) -> list[str]:
    given = [override.partition("=")[2] for override in overrides if override.startswith("output_folder=")]
    folder = given[-1].strip("'") if given else "outputs"
    root = expanduser(folder)  # noqa: PTH111 -- Path.expanduser raises where there is no such home
    models = glob("**/model/model.json", root_dir=root, recursive=True)  # noqa: PTH207 -- Path.glob follows no links
    return sorted(Path(model).parent.parent.as_posix() for model in models)
