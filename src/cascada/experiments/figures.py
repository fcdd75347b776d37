"""The figures of the paper and one of the family, drawn from results as PDF and PNG.

The same results give the same bytes. matplotlib is optional and imported by the functions that draw. pyplot is not
used, so drawing leaves no state behind.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.experiments.stage_figure import stage_figure
from cascada.experiments.statistics import (
    BASELINES,
    COMPARED,
    NON_ADAPTIVE,
    OI,
    OURS,
    SWEEP,
    ChainRuns,
    Results,
    Sample,
    ratio_interval,
    read,
    simple_regret,
    squares,
)
from cascada.whole_file import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: One colour (of Okabe and Ito, safe for colour blindness) and one marker per algorithm, the same in every figure.
STYLES: Mapping[str, tuple[str, str]] = {
    OURS: ("#D55E00", "o"),
    NON_ADAPTIVE: ("#000000", "D"),
    "cUCB": ("#0072B2", "^"),
    OI: ("#56B4E9", "v"),
    "cEI": ("#009E73", "s"),
    "GP-UCB": ("#E69F00", "P"),
    "EI": ("#CC79A7", "X"),
}

#: Markers of the chains of a family; g1 and g2 are highlighted and drawn on top.
_MARKS: Mapping[str, dict[str, Any]] = {
    "a chain": {"marker": "o", "markersize": 6, "linestyle": "none", "markeredgecolor": "white"},
    "$g_1$": {"marker": "<", "markersize": 8, "linestyle": "none", "markeredgecolor": "black", "zorder": 4},
    "$g_2$": {"marker": ">", "markersize": 8, "linestyle": "none", "markeredgecolor": "black", "zorder": 4},
}

LOOK = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "figure.titlesize": 11.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "pdf.fonttype": 42,  # text stays text
}


def draw(results: Results, out: Path) -> list[Path]:
    """Write all figures to the folder `out`; return the paths."""
    try:
        from matplotlib import style
    except ImportError:
        raise ArgumentError(
            "figures need matplotlib, which is not installed. Run: pip install 'cascada[paper]'."
        ) from None

    sample = read(results)
    figures: Mapping[str, Callable[[], Figure]] = {
        "stages": lambda: stage_figure(sample.g1.seed, sample.g2.seed),
        "oi": lambda: _sweep(sample),
        "cumulative": lambda: _cumulative(sample),
        "simple": lambda: _simple(sample),
        "family": lambda: _family(sample),
    }
    out.mkdir(parents=True, exist_ok=True)
    written = []
    with style.context(["default", LOOK]):  # independent of the user's settings
        for name, figure in figures.items():
            drawn = figure()
            for kind, metadata in (("pdf", {"CreationDate": None}), ("png", {})):
                path = out / f"{name}.{kind}"
                with whole_file(path) as file:
                    drawn.savefig(file, format=kind, metadata=metadata, dpi=160)
                written.append(path)
    return written


def _pair(size: tuple[float, float], shape: tuple[int, int], sample: Sample) -> "tuple[Figure, list[Axes]]":
    """A figure with a panel for g1 and one for g2."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = [figure.add_subplot(*shape, number) for number in (1, 2)]
    for i, (ax, chain) in enumerate(zip(axes, (sample.g1, sample.g2), strict=True)):
        ax.set_title(f"$g_{i + 1}$ (seed {chain.seed})", loc="left")
    return figure, axes


def _legend(figure: "Figure", axes: "Axes", columns: int) -> None:
    """A legend below all panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def _sweep(sample: Sample) -> "Figure":
    """`fig:oi`: the mean simple regret of OI for every b, and of cUCB."""
    import matplotlib

    figure, panels = _pair((9.0, 4.2), (1, 2), sample)
    shades = matplotlib.colormaps["plasma"](np.linspace(0.0, 0.92, len(SWEEP)))
    for ax, chain in zip(panels, (sample.g1, sample.g2), strict=True):
        steps = np.arange(1, chain.horizon + 1)
        curves = {label: simple_regret(chain.regret[label]).mean(axis=0) for label in (*SWEEP, "cUCB")}
        widths = np.linspace(2.6, 1.2, len(SWEEP))  # so that coinciding curves stay visible
        for label, shade, width in zip(SWEEP, shades, widths, strict=True):
            ax.plot(steps, curves[label], color=shade, linewidth=width, label=label)
        ax.plot(steps, curves["cUCB"], color="black", linestyle=(0, (4, 2)), label="cUCB")
        ax.set(xlabel="runs $T$", xlim=(0, chain.horizon))
        _logarithmic(ax, np.concatenate(list(curves.values())), "mean simple regret of the best run")
    _legend(figure, panels[0], 5)
    figure.suptitle(f"OI with different $b$, and cUCB: simple regret, {_trials(sample)}")
    return figure


def _cumulative(sample: Sample) -> "Figure":
    """`fig:cml`: mean cumulative regret with bars of one standard deviation, shifted for each algorithm."""
    from matplotlib.ticker import MaxNLocator

    figure, panels = _pair((9.0, 4.0), (1, 2), sample)
    for ax, chain in zip(panels, (sample.g1, sample.g2), strict=True):
        steps = np.arange(1, chain.horizon + 1)
        every = max(1, chain.horizon // 8)
        shown = []
        for i, label in enumerate(COMPARED):
            mean, sd = _mean_sd(np.cumsum(chain.regret[label], axis=1))
            shown.append(mean)
            start = every - 1 - i * every // (2 * len(COMPARED))
            bars = slice(start, None, every)
            colour, marker = STYLES[label]
            style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5, "markevery": (start, every)}
            ax.plot(steps, mean, **style, zorder=4 if label == OURS else 3, label=label)
            ax.errorbar(steps[bars], mean[bars], sd[bars], fmt="none", ecolor=colour, elinewidth=1, capsize=2)
        ax.set(xlabel="runs $T$", ylabel="cumulative regret $R_T$", xlim=(0, 1.02 * chain.horizon))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        top = ax.get_ylim()[1] if max(map(np.max, shown)) > 0 else 1.0
        ax.set_ylim(-0.02 * top, top)  # markers at 0 are fully visible
    _legend(figure, panels[0], len(COMPARED))
    figure.suptitle(f"Cumulative regret: mean ± one standard deviation, {_trials(sample)}")
    return figure


def _simple(sample: Sample) -> "Figure":
    """`fig:sim`: simple regret at T = 2², …, 14², side by side; NonAda has a separate run for every T."""
    figure, panels = _pair((9.0, 7.6), (2, 1), sample)
    for ax, chain in zip(panels, (sample.g1, sample.g2), strict=True):
        chosen = np.array(squares(chain.horizon))
        shown = []
        for i, label in enumerate(STYLES):
            mean, sd = _simple_at(chain, label, chosen)
            colour, marker = STYLES[label]
            x = np.sqrt(chosen) + 0.07 * (i - len(STYLES) // 2)  # side by side
            bars = np.stack([np.minimum(sd, mean), sd])  # a regret is never below 0
            line = "none" if label == NON_ADAPTIVE else "-"
            style: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": line, "markersize": 5}
            ax.errorbar(x, mean, bars, **style, linewidth=0.8, elinewidth=1, capsize=2, label=label)
            shown += [mean, mean + sd]
        ax.set(xlabel="runs $T$", xlim=(np.sqrt(chosen[0]) - 0.5, np.sqrt(chosen[-1]) + 0.5))
        ax.set_xticks(np.sqrt(chosen), [str(T) for T in chosen])
        _logarithmic(ax, np.concatenate(shown), "simple regret")
    _legend(figure, panels[0], len(STYLES))
    figure.suptitle(
        f"Simple regret of the best run (NonAda: of the point it returns): mean ± one sd, {_trials(sample)}"
    )
    return figure


def _simple_at(chain: ChainRuns, label: str, chosen: Array) -> tuple[Array, Array]:
    if label == NON_ADAPTIVE:
        return np.array([chain.non_adaptive[int(T)] for T in chosen]), np.zeros(len(chosen))
    return _mean_sd(simple_regret(chain.regret[label])[:, chosen - 1])


def _family(sample: Sample) -> "Figure":
    """R_T of every baseline over that of GPN-UCB, for every chain, with geometric means and their intervals."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(9.0, 4.4), layout="constrained")
    ax = figure.add_subplot()
    ax.axvline(1.0, color="0.4", linewidth=1)
    rows = list(reversed(BASELINES))
    for row, label in enumerate(rows):
        ratios = [chain.regret_ratio(label) for chain in sample.family]
        for i, (chain, ratio) in enumerate(zip(sample.family, ratios, strict=True)):
            mark = "$g_1$" if chain.seed == sample.g1.seed else "$g_2$" if chain.seed == sample.g2.seed else "a chain"
            y = row - 0.1 - 0.075 * (i % 4)  # so that markers do not cover each other
            ax.plot(ratio, y, **_MARKS[mark], color=STYLES[label][0])
        found = ratio_interval(ratios)
        text = _short(found.mean)
        if found.low is not None and found.high is not None:
            ax.plot([found.low, found.high], [row + 0.17] * 2, color="black", linewidth=1.8)
            text += f"  [{_short(found.low)}, {_short(found.high)}]"
        ax.plot(found.mean, row + 0.17, marker="d", color="black", markersize=7)
        ax.annotate(text, (1.01, row), xycoords=("axes fraction", "data"), va="center", annotation_clip=False)
    _ratio_axis(ax)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(-0.6, len(rows) - 0.5)
    entries = [Line2D([], [], **style, color="0.5", label=mark) for mark, style in _MARKS.items()]
    entries.append(Line2D([], [], color="black", marker="d", label="geometric mean, 95% interval"))
    figure.legend(handles=entries, loc="outside lower center", ncols=len(entries))
    chains = "one sampled chain" if len(sample.family) == 1 else f"{len(sample.family)} sampled chains"
    figure.suptitle(f"Cumulative regret of each baseline over that of GPN-UCB, on {chains}, one trial each")
    return figure


def _short(number: float) -> str:
    return f"{number:.2f}" if number < 100 else f"{number:.2g}"


def _ratio_axis(axes: "Axes") -> None:
    """A logarithmic axis with plain numbers: 0.5, 1, 2, 5 if it is short, powers of ten if it is long."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.8), max(high, 1.25))
    subs = (1.0, 2.0, 5.0) if high / low < 1e3 else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=12))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.set_xlabel("$R_T$ over that of GPN-UCB, log scale (right of 1: GPN-UCB is better)")


def _logarithmic(axes: "Axes", values: Array, what: str) -> None:
    """A logarithmic axis that is linear near 0, because a regret on a finite domain can be 0; the label says so."""
    positive = values[values > 0]
    largest = float(positive.max()) if len(positive) else 1.0
    smallest = max(float(positive.min()) if len(positive) else 1.0, 1e-4 * largest)
    threshold = 10.0 ** np.floor(np.log10(smallest))
    axes.set_yscale("symlog", linthresh=threshold, linscale=0.5)
    axes.set_ylim(-0.2 * threshold, 1.5 * largest)  # markers at 0 are fully visible
    axes.set_ylabel(f"{what}\n(log scale, linear below {threshold:g})")


def _mean_sd(values: Array) -> tuple[Array, Array]:
    """Mean and standard deviation over trials, the first axis."""
    return values.mean(axis=0), values.std(axis=0, ddof=min(1, len(values) - 1))


def _trials(sample: Sample) -> str:
    count = len(sample.g1.regret[OURS])
    return "one trial" if count == 1 else f"{count} trials"
