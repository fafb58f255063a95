"""Reports of a search, for people: a summary as text, a page as HTML, and the figures as plain data.

Open `summary.py` first: what is known of each task, from which the others are made. `differences.py` says what the best
schedule does differently from the rule's, `curve.py` draws how the best came about.
"""

from loopwright.tune.report.html import report_html as report_html
from loopwright.tune.report.summary import Summary as Summary
from loopwright.tune.report.summary import TaskSummary as TaskSummary
from loopwright.tune.report.summary import summary_of as summary_of
from loopwright.tune.report.text import as_text as as_text
from loopwright.tune.report.text import kind_of as kind_of
