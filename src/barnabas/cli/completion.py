"""`barnabas completion`: what a shell is told so that it completes commands, options and the names in a cluster."""

import contextlib
import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import typer

#: What makes the command line print completions instead of running a command.
_VARIABLE = "_BARNABAS_COMPLETE"

#: Bash takes `:` and `=` for ends of words: the words are cut by hand, and what is there already is taken off.
_BASH = """\
_barnabas_completion() {
    local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}" current prefix=""
    local words; IFS=$' \\t\\n' read -r -a words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    current="${words[${#words[@]}-1]}"
    [[ "$COMP_WORDBREAKS" == *[:=]* && "$current" == *[:=]* ]] && prefix="${current%"${current##*[:=]}"}"
    COMPREPLY=($(COMP_WORDS="$line" COMP_CWORD=$((${#words[@]}-1)) _BARNABAS_COMPLETE=complete_bash "$1" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
    [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *[:=/] ]] && compopt -o nospace
    return 0
}
complete -o default -F _barnabas_completion barnabas
"""
_ZSH = """\
#compdef barnabas
_barnabas_completion() {
    eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _BARNABAS_COMPLETE=complete_zsh barnabas 2>/dev/null)
}
compdef _barnabas_completion barnabas
"""
_FISH = """\
function __barnabas_complete
    _BARNABAS_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=$argv[1] \\
        _TYPER_COMPLETE_ARGS=(commandline -cp) barnabas 2>/dev/null
end
complete --command barnabas --no-files --arguments "(__barnabas_complete get-args)" \\
    --condition "__barnabas_complete is-args"
"""


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help=f"One of {', '.join(Shell)}.")],
) -> None:
    """Print the script that lets a shell complete commands, options, and the names of what is in the cluster.

    For this session: source <(barnabas completion bash). For all: into ~/.bashrc; for zsh into ~/.zshrc below compinit;
    for fish: barnabas completion fish > ~/.config/fish/completions/barnabas.fish.
    """
    print(_SCRIPTS[shell], end="")


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Where a shell asks for completions, end the process after the answer, whoever still waits for a broker."""
    if _VARIABLE not in os.environ:
        yield
        return
    from typer.completion import completion_init  # type: ignore[attr-defined]  # imported there for others

    completion_init()
    try:
        yield
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(end.code if isinstance(end.code, int) else 0)
