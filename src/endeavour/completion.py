"""Completion in a shell: commands, then the keys, groups and options of the command's root, and the names of runs.

Hydra knows keys and options; its own installer knows no commands and does not run in fish. Imports nothing heavy: a
completion must not keep the user waiting.
"""

from collections.abc import Mapping, Sequence
from glob import glob
from pathlib import Path

from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.plugins.completion_plugin import DefaultCompletionPlugin

from endeavour.settings import config_folder, hydras_options

SCRIPTS = {
    "bash": """\
_endeavour() {
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
    """What the last word of a command line up to the cursor may become. `commands`: command → its root in conf/."""
    _, *words = line.split() or [""]
    if line.endswith(" "):
        words.append("")
    if len(words) <= 1:
        return [f"{command} " for command in commands if command.startswith("".join(words))]
    command, *overrides = words
    if command not in commands:
        return []
    key, equals, value = overrides[-1].partition("=")
    if equals and key in ("run", "runs", "pretrained", "teachers"):
        return [f"{key}={name}" for name in _run_names(overrides) if name.startswith(value)]
    with initialize_config_dir(version_base="1.3", config_dir=str(config_folder().resolve())):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        plugin = DefaultCompletionPlugin(hydra.config_loader)
        with hydras_options():
            return plugin._query(commands[command], " ".join(overrides))  # pyright: ignore[reportPrivateUsage]


def _run_names(overrides: Sequence[str]) -> list[str]:
    given = [override.partition("=")[2] for override in overrides if override.startswith("output_folder=")]
    root = Path(given[-1] if given else "outputs").expanduser()
    models = glob("**/model/model.json", root_dir=root, recursive=True)  # noqa: PTH207 -- Path.glob follows no links
    return sorted(Path(model).parent.parent.as_posix() for model in models)
