"""`loopscope completion`: the script that teaches a shell to complete our verbs, options, samples and files."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    r"""Print the completion script for SHELL.

    \b
    bash: eval "$(loopscope completion bash)" in ~/.bashrc
    zsh:  eval "$(loopscope completion zsh)" in ~/.zshrc, after compinit
    fish: loopscope completion fish > ~/.config/fish/completions/loopscope.fish
    """
    from click.shell_completion import get_completion_class

    from loopscope.cli import cli

    completion = get_completion_class(shell)
    assert completion is not None  # noqa: S101 - the choice above holds what click knows
    click.echo(completion(cli, {}, "loopscope", "_LOOPSCOPE_COMPLETE").source())
