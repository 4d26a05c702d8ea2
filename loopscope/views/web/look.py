"""How drawings and pages look: style sheets with a name for each colour, and the colours for it.

Apart from what they style. No rule refers to anything outside of its document.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from loopscope.views.palette import DARK, LIGHT, Palette

__all__ = ["THEMES", "page_style", "picture_style"]

THEMES = {"dark": DARK, "light": LIGHT}
MONO = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace'

_DRAWING = f"""
.loopscope text{{font-family:{MONO};font-size:12px;fill:var(--text)}}
.loopscope .sheet{{fill:var(--background)}}
.loopscope .dim{{fill:var(--dim)}}
.loopscope .title{{font-weight:700}}
.loopscope .name{{font-size:16px;font-weight:700}}
.loopscope .number{{font-size:9px;fill:var(--dim)}}
.loopscope .number.here{{fill:var(--text);font-weight:700}}
.loopscope .cursor{{fill:none;stroke:var(--text);stroke-width:1.5}}
.loopscope .chip{{fill:none;stroke:var(--line)}}
.loopscope .chip.repeat{{fill:var(--repeat);fill-opacity:.16;stroke:var(--repeat)}}
.loopscope .chip.warn{{fill:var(--warn);fill-opacity:.22;stroke:var(--warn)}}
.loopscope .chip.stop{{fill:var(--stop);stroke:var(--stop)}}
.loopscope .chip.ahead{{stroke-dasharray:2 2}}
.loopscope .letter{{font-weight:600}}
.loopscope .letter.stop{{fill:var(--background)}}
.loopscope .letter.ahead{{fill:var(--ahead);font-weight:400}}
.loopscope .count{{font-size:10px}}
.loopscope .new{{fill:var(--ok)}}
.loopscope .count.repeat,.loopscope .shape.repeat,.loopscope .fill.repeat,.loopscope .piece.repeat,
.loopscope .said.repeat{{fill:var(--repeat)}}
.loopscope .count.warn,.loopscope .shape.warn,.loopscope .fill.warn,.loopscope .piece.warn,
.loopscope .said.warn{{fill:var(--warn)}}
.loopscope .count.stop,.loopscope .shape.stop,.loopscope .fill.stop,.loopscope .piece.stop,
.loopscope .said.stop{{fill:var(--stop)}}
.loopscope .count.ahead,.loopscope .shape.ahead{{fill:var(--ahead)}}
.loopscope .letter.new{{fill:var(--text)}}
.loopscope .chip.new{{fill:none}}
.loopscope .track{{fill:var(--cursor)}}
.loopscope .tick{{fill:var(--text)}}
.loopscope .tick.warn{{fill-opacity:.55}}
.loopscope .part{{fill:var(--text)}}
.loopscope .under{{fill:var(--background)}}
.loopscope .heat.warn{{fill:var(--warn)}}
.loopscope .heat.stop{{fill:var(--stop)}}
.loopscope .node{{fill:none;stroke:var(--dim)}}
.loopscope .node.here{{stroke:var(--text);stroke-width:2}}
.loopscope .way{{fill:none;stroke:var(--dim);stroke-width:1.5}}
.loopscope .way.possible{{stroke:var(--line);stroke-dasharray:4 3}}
.loopscope .head{{fill:var(--dim)}}
.loopscope .head.possible{{fill:var(--line)}}
"""
"""Of the drawings, inside a page or alone."""


_PAGE = f"""
*{{box-sizing:border-box}}
html{{-webkit-text-size-adjust:100%}}
body{{margin:0 auto;max-width:92rem;padding:clamp(1rem,3vw,2.25rem);background:var(--background);color:var(--text);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif}}
h1{{margin:0;font:700 1.4rem/1.3 {MONO};overflow-wrap:anywhere}}
h2{{margin:0 0 .75rem;font-size:1.05rem}}
h3{{margin:1rem 0 .4rem;font-size:.95rem;overflow-wrap:anywhere}}
h2+h3{{margin-top:0}}
a{{color:inherit;text-decoration-color:var(--dim);text-underline-offset:.15em}}
code,pre,.letter{{font-family:{MONO}}}
code{{font-size:.93em;overflow-wrap:anywhere}}
section{{margin:0 0 1rem;padding:1rem 1.15rem;background:var(--panel);border:1px solid var(--line);border-radius:10px}}
header{{margin:0 0 1.25rem}}
header p{{margin:.6rem 0}}
footer{{color:var(--dim);font-size:.85rem}}
.dim,.note,.legend,dt,.gap td{{color:var(--dim)}}
.note{{font-weight:400;font-size:.9rem;overflow-wrap:anywhere}}
p.dim,p.legend{{margin:.5rem 0 0;font-size:.875rem}}
.verdict{{display:inline-block;padding:.2rem .65rem;border:1px solid var(--line);border-radius:6px;font-weight:600;
overflow-wrap:anywhere}}
.verdict.warn{{color:var(--warn);border-color:var(--warn)}}
.verdict.stop{{background:var(--stop);border-color:var(--stop);color:var(--background)}}
.loopscope .verdict.stop .shape{{fill:var(--background)}}
.sign{{width:.8em;height:.8em;vertical-align:-.05em}}
.facts{{display:flex;flex-wrap:wrap;gap:.5rem 1.75rem;margin:.75rem 0 0}}
.facts dt{{font-size:.8rem}}
.facts dd{{margin:0;font-variant-numeric:tabular-nums}}
.tiles{{display:flex;flex-wrap:wrap;gap:.5rem 0}}
.tiles svg{{display:block}}
.overview{{display:block;width:100%;height:auto;max-height:3rem}}
.overview+p{{margin:.1rem 0 .75rem}}
.legend span{{white-space:nowrap;margin-right:.75rem}}
.beside{{display:grid;grid-template-columns:minmax(0,1fr);gap:0 1rem;align-items:start}}
table{{width:100%;border-collapse:collapse;font-size:.875rem;line-height:1.4}}
table+table{{margin-top:1.1rem}}
th,td{{padding:.32rem .5rem;text-align:left;vertical-align:top;font-weight:400}}
th:first-child,td:first-child{{padding-left:.25rem}}
thead th{{color:var(--dim);font-size:.8rem;vertical-align:bottom}}
tbody tr{{border-top:1px solid var(--line)}}
.n{{width:1%;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}}
.time,.scope{{color:var(--dim)}}
td.scope{{min-width:7.5rem;font-size:.8rem}}
.scope div{{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden;
overflow-wrap:anywhere}}
.call{{display:flex;gap:.4rem;min-width:8rem}}
th.what{{width:32%}}
.call code{{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden}}
.nodes th[scope=row]{{width:38%}}
td.outcome{{min-width:9rem}}
td.worst{{white-space:nowrap}}
.letter{{font-weight:700}}
tr.here{{box-shadow:inset .2rem 0 var(--text)}}
tr.here th{{font-weight:700}}
tr:target{{outline:2px solid var(--repeat);outline-offset:-2px}}
tr.warn td:last-child{{color:var(--warn);font-weight:600}}
tr.stop td:last-child{{color:var(--stop);font-weight:600}}
.gap td{{padding:.15rem .5rem;font-size:.8rem}}
.meters thead th:first-child{{color:var(--text);font-weight:700;font-size:.875rem}}
.meters th[scope=row]{{width:45%}}
.moved th,.moved .value{{font-weight:700}}
.bar{{display:block;width:100%;height:14px;margin-top:.15rem}}
td.value.warn{{color:var(--warn)}}
td.value.stop{{color:var(--stop)}}
td.value.repeat{{color:var(--repeat)}}
td.next span{{display:block}}
.s-dim,.s-ok{{color:var(--dim)}}
.s-title{{font-weight:700}}
.s-repeat{{color:var(--repeat)}}
.s-warn,.s-bar_warn{{color:var(--warn)}}
.s-stop,.s-bar_stop{{color:var(--stop)}}
.why{{margin:0;padding-left:1.6rem}}
.why li{{margin:.2rem 0;overflow-wrap:anywhere}}
.why li::marker{{color:var(--dim)}}
.branches{{white-space:pre;font-family:{MONO};color:var(--dim)}}
.inside{{padding-left:1.5rem}}
.drawn{{overflow-x:auto;margin-bottom:.5rem}}
.drawn svg{{display:block;max-width:100%;height:auto}}
.graph-note{{margin:.1rem 0;font-size:.875rem;white-space:pre-wrap;overflow-wrap:anywhere}}
pre{{margin:0;font-size:.82rem;line-height:1.45;white-space:pre-wrap;overflow-wrap:anywhere}}
.hidden{{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}}
@media (min-width:52rem){{td.outcome{{white-space:nowrap}}
.graph{{display:grid;grid-template-columns:auto minmax(0,1fr);gap:1.5rem;align-items:start}}}}
@media (min-width:68rem){{.beside{{grid-template-columns:repeat(2,minmax(0,1fr))}}}}
@media (max-width:40rem){{.time,.cells{{display:none}}td.scope,.call,td.outcome{{min-width:4rem}}
section{{padding:.85rem .8rem}}th,td{{padding:.3rem}}}}
@media print{{:root{{--background:#FFF;--panel:#FFF}}
body{{max-width:none;padding:0;font-size:10pt}}section{{border:0;padding:0;border-radius:0}}
.beside{{display:block}}tr,h2,h3,.tiles svg,.drawn{{break-inside:avoid}}h2,h3{{break-after:avoid}}
thead{{display:table-header-group}}*{{print-color-adjust:exact;-webkit-print-color-adjust:exact}}}}
"""
"""Of a page, beside its drawings."""


def _nothing(_palette: Palette) -> str:
    return ""


def picture_style(theme: str | None, more: Callable[[Palette], str] = _nothing) -> str:
    """The style sheet of a picture that stands alone: its colours written out, as not every viewer knows names.

    Args:
        theme: `dark` or `light`; None follows whoever looks at it, light where that is not known.
        more: further rules, for a palette.
    """
    light, dark = (_written_out(_DRAWING + more(palette), palette) for palette in (LIGHT, DARK))
    if theme is not None:
        return dark if theme == "dark" else light
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}"


def _written_out(style: str, palette: Palette) -> str:
    return re.sub(r"var\(--(\w+)\)", lambda found: str(getattr(palette, found[1])), style)


def page_style(theme: str | None, more: Callable[[Palette], str] = _nothing) -> str:
    """The style sheet of a page; printed, every page is light.

    Args:
        theme: `dark` or `light`; None follows the reader.
        more: further rules, for a palette.
    """
    on_screen = {None: "screen and (prefers-color-scheme:dark)", "dark": "screen"}
    dark = f"@media {on_screen[theme]}{{{_named(DARK)}{more(DARK)}}}" if theme in on_screen else ""
    return f"{_named(LIGHT)}{more(LIGHT)}{dark}{_PAGE}{_DRAWING}"


def _named(palette: Palette) -> str:
    # What is ahead stands on panels here, on which its own grey is too faint to be read.
    colours = palette._replace(ahead=palette.dim)._asdict()
    names = ";".join(f"--{name}:{colour}" for name, colour in colours.items())
    scheme = "dark" if palette is DARK else "light"
    return f":root{{color-scheme:{scheme};{names}}}"
