"""The page of a study: the varied fields, the results of its trials, and how likely chance explains them.

It shows the document of `jobs/study_status.py` and reads nothing else. An arena has its own page.
"""

from pitboss.report.study.page import compose

__all__ = ["compose"]
