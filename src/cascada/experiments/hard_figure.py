"""The figure `fig:gtil` of the paper: Matérn kernels and their amplifiers."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cascada.errors import ArgumentError
from cascada.experiments.figures import LOOK
from cascada.kernels import Matern
from cascada.theory.amplifier import Amplifier
from cascada.whole_file import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The smoothnesses of the paper's panels.
PANELS = (1.0, 1.5, 2.0)

_KERNEL, _AMPLIFIER = "#0072B2", "#D55E00"
#: Metadata without dates, so that the same numbers give the same bytes.
_DATES = {"pdf": {"CreationDate": None}, "png": {}, "svg": {"Date": None}}


def draw_hard(amplifier: Amplifier, path: Path) -> Path:
    """Write the figure for the amplifier's B, u, ũ and lengthscale, with panels for its ν and those of the paper."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in _DATES:
        raise ArgumentError(f"a figure is a file that ends in .pdf, .png or .svg; got {str(path)!r}.")
    try:
        from matplotlib import style
    except ImportError:
        raise ArgumentError("figures need matplotlib; install it with: pip install 'cascada[paper]'.") from None
    with style.context(["default", LOOK, {"svg.hashsalt": "cascada"}]):  # whatever the user's own settings are
        figure = hard_figure(amplifier)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as file:
                figure.savefig(file, format=kind, metadata=_DATES[kind], dpi=160)
        except OSError as error:
            raise ArgumentError(f"the figure cannot be written to {str(path)!r}: {error}.") from error
    return path


def hard_figure(amplifier: Amplifier) -> "Figure":
    """One panel per smoothness: k(0, ·) and g̃_k with ũ and g̃_k(ũ)."""
    from matplotlib.figure import Figure

    shown = [drawn for nu in sorted({*PANELS, amplifier.kernel.nu}) if (drawn := _of(amplifier, nu)) is not None]
    figure = Figure(figsize=(3.0 * len(shown), 3.0), layout="constrained")
    axes = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for ax, drawn in zip(axes, shown, strict=True):
        _panel(ax, drawn)
    axes[0].legend(loc="lower right")
    return figure


def _of(amplifier: Amplifier, nu: float) -> Amplifier | None:
    """The amplifier of another smoothness, or None if one of its conditions fails."""
    kernel = Matern(nu, amplifier.kernel.lengthscale, amplifier.kernel.variance)
    try:
        return Amplifier(kernel, amplifier.norm_bound, amplifier.u, amplifier.u_tilde)
    except ArgumentError:
        return None


def _panel(axes: "Axes", amplifier: Amplifier) -> None:
    scale = amplifier.kernel.lengthscale
    assert isinstance(scale, float), "checked by the amplifier"
    end = 3.0 * max(scale, amplifier.u)
    z = np.linspace(-end, end, 1201)[:, None]
    top = amplifier.top
    axes.axvspan(0.0, amplifier.u_tilde, color="0.91", linewidth=0)
    axes.plot(z[:, 0], amplifier.kernel(z, np.zeros((1, 1)))[:, 0], color=_KERNEL, label="$k(0, z)$")
    axes.plot(z[:, 0], amplifier(z), color=_AMPLIFIER, label=r"$\widetilde{g}_k(z)$")
    axes.plot([amplifier.u_tilde], [top], marker="o", color=_AMPLIFIER, linestyle="none")
    axes.annotate(f"{top:.4f}", (amplifier.u_tilde, top), xytext=(-9, 3), textcoords="offset points", ha="right")
    axes.set_title(f"$\\nu = {amplifier.kernel.nu:g}$,  $r_{{min}}/r_{{max}} = {amplifier.ratio:.3f}$")
    axes.set(xlabel="$z$  (grey: $[0, \\widetilde{u}]$)", xlim=(-end, end))
