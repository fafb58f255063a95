"""display: what people see: sheets for terminals, notebooks and files, colours, progress, errors and modules in them.

Open `sheet.py` first: what every `show()` goes through. `screen.py` says where output goes, `colours.py` colours
program text, `progress.py` is the line of what takes long, `page.py` the frame of reports as HTML, `quantities.py` has
numbers with their units. The runtime does not import this layer:
`runtime/shown.py` finds by name what shows errors and modules.
"""
