"""Reports of a study: figures for notebooks, and one self-contained page. Needs the extra `report` (plotly)."""

from cascada.report.acquisition import plot_acquisition
from cascada.report.contributions import gap_contributions, plot_gap_contributions
from cascada.report.graph import plot_network
from cascada.report.history import plot_optimization_history
from cascada.report.image import save_figure
from cascada.report.page import report_html, write_report
from cascada.report.parallel import plot_parallel_coordinate
from cascada.report.regret import plot_regret
from cascada.report.stages import plot_stage

__all__ = [
    "gap_contributions",
    "plot_acquisition",
    "plot_gap_contributions",
    "plot_network",
    "plot_optimization_history",
    "plot_parallel_coordinate",
    "plot_regret",
    "plot_stage",
    "report_html",
    "save_figure",
    "write_report",
]
