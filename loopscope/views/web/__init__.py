"""Pages and pictures: a run as HTML and SVG, drawn from the presenters of the panes, with their numbers.

`page` and `picture` are the two ways in. `markup` is the only place where text becomes markup; `report` bounds what is
told; `strip`, `meters` and `diagram` draw; `panels` and `counts` write tables; `look` is how it all looks.
"""
