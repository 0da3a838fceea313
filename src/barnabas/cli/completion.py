"""`barnabas completion`: shell scripts that complete commands, options and names in the cluster."""

from enum import StrEnum
from typing import Annotated

import typer

from barnabas.cli.support.commands import command

#: Bash splits words at `:` and `=`: the script splits the line itself, and strips the part that is already typed.
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

_DETAILS = """\
For the current session: source <(barnabas completion bash). For every session, add that line to ~/.bashrc; for zsh
to ~/.zshrc after compinit; for fish: barnabas completion fish > ~/.config/fish/completions/barnabas.fish.
"""


@command("completion", example="completion bash", details=_DETAILS)
def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help=f"Shell: {', '.join(Shell)}.")],
) -> None:
    print(_SCRIPTS[shell], end="")
