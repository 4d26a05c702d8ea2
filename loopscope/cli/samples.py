"""`loopscope samples`: the recorded runs that come with loopscope."""

from __future__ import annotations

import json

import click

from loopscope.cli.options import json_option

__all__ = ["command"]


@click.command()
@json_option("Print one JSON object a sample, one a line.")
def command(*, as_json: bool) -> None:
    """List the recorded runs that come with loopscope.

    Each can be named wherever a TARGET can: loopscope attach sample:NAME.
    """
    from loopscope.samples import samples

    listed = samples()
    width = max(len(sample.name) for sample in listed)
    for sample in listed:
        if as_json:
            click.echo(json.dumps({"name": sample.name, "summary": sample.summary, "file": str(sample.file)}))
        else:
            click.echo(f"{sample.name:{width}}  {sample.summary}")
