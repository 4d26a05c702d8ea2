"""`loopscope completion`: the script that teaches a shell to complete our verbs, options, samples and files."""

from __future__ import annotations

import click

__all__ = ["command"]

_BASH = """\
%(complete_func)s() {
    local line="${COMP_LINE:0:$COMP_POINT}" words current before type value
    IFS=$' \\t' read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    current="${words[${#words[@]}-1]}"
    # bash breaks words at colons, as in sample:NAME, and replaces only what is behind the last one.
    [[ "$current" == *:* && "$COMP_WORDBREAKS" == *:* ]] && before="${current%%:*}:"
    while IFS=',' read -r type value; do
        case "$type" in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$before"}") ;;
        esac
    done < <(COMP_WORDS="$line" COMP_CWORD=$((${#words[@]} - 1)) %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash: eval "$(loopscope completion bash)" in ~/.bashrc
    zsh:  eval "$(loopscope completion zsh)" in ~/.zshrc, after compinit
    fish: loopscope completion fish > ~/.config/fish/completions/loopscope.fish
    """  # noqa: D301 - click looks for the character
    from click.shell_completion import get_completion_class

    from loopscope.cli import cli

    known = get_completion_class(shell)
    assert known is not None  # noqa: S101 - the choice above holds what click knows
    completion = known(cli, {}, "loopscope", "_LOOPSCOPE_COMPLETE")
    if shell == "bash":
        completion.source_template = _BASH  # type: ignore[misc]
    click.echo(completion.source())
