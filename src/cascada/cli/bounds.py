"""`cascada bounds`: print the regret bounds that the theory gives for a network."""

import math
from collections.abc import Sequence
from typing import Annotated, cast, get_args

import typer

from cascada.cli.output import print_json
from cascada.cli.terminal import say
from cascada.errors import ArgumentError
from cascada.kernels import Matern
from cascada.outwards import rounded_down, rounded_up
from cascada.theory.layers import Layers, Structure
from cascada.theory.promises import Promise, network_of, promise
from cascada.theory.statement import Bound
from cascada.theory.summary import as_markdown, as_text

_NEEDED = ("structure", "dims", "norm-bound", "lipschitz", "nu")


def bounds(
    spec: Annotated[
        str | None, typer.Argument(help="A problem, module:object, file.py:object or file.toml; or give the options.")
    ] = None,
    structure: Annotated[str | None, typer.Option(help=f"One of {', '.join(get_args(Structure))}.")] = None,
    dims: Annotated[str | None, typer.Option(help="Inputs of every layer, such as 2,1,1.")] = None,
    norm_bound: Annotated[str | None, typer.Option(help="B: one number, or one per layer.")] = None,
    lipschitz: Annotated[str | None, typer.Option(help="L (ℓ2): one number, or one per layer.")] = None,
    nu: Annotated[float | None, typer.Option(help="ν of the Matérn kernel.")] = None,
    lengthscale: Annotated[float | None, typer.Option(help="Lengthscale of the Matérn kernel; 1 by default.")] = None,
    horizon: Annotated[int, typer.Option(help="T, the number of rounds.")] = 200,
    points: Annotated[int, typer.Option(help="Size of the grid in each layer's domain that Σ_T is bounded by.")] = 2500,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown tables.")] = False,
) -> None:
    """Print regret bounds with every constant, Σ_T of every layer, the paper's tables of rates, and comparisons.

    Without SPEC the domain is [0, 1]^d, as in the paper.
    """
    options = dict(zip(_NEEDED, (structure, dims, norm_bound, lipschitz, nu), strict=True))
    if json_output and markdown:
        raise ArgumentError("--json and --markdown are two ways to print; give one of them.")
    if spec is not None:
        stray = [f"--{name}" for name, value in (options | {"lengthscale": lengthscale}).items() if value is not None]
        if stray:
            raise ArgumentError(
                f"SPEC describes the whole network, so no option may describe it too; got {spec} and "
                f"{', '.join(stray)}. Either leave out {', '.join(stray)}, or leave out {spec}."
            )
        from cascada.specs.spec import load

        if spec == "sampled-chain":
            raise ArgumentError(
                "the stages of sampled-chain are paths of Gaussian processes, which have no norm. Its B is a width, "
                "so the theory gives no bound. Use a certified problem."
            )
        result = promise(load(spec), horizon, points)
    else:
        missing = [f"--{name}" for name, value in options.items() if value is None]
        if missing:
            raise ArgumentError(
                f"give a SPEC, or describe the network: {', '.join(missing)} missing. For example: cascada bounds "
                f"--structure chain --dims 2,1,1 --norm-bound 2 --lipschitz 2 --nu 2.5."
            )
        assert structure is not None, "missing options are an error above"
        assert dims is not None, "missing options are an error above"
        assert norm_bound is not None, "missing options are an error above"
        assert lipschitz is not None, "missing options are an error above"
        assert nu is not None, "missing options are an error above"
        kernel = Matern(nu, 1.0 if lengthscale is None else lengthscale)
        result = _of_options(structure, dims, norm_bound, lipschitz, kernel, horizon, points)
    if json_output:
        print_json(result.as_dict())
    else:
        say(_text(result, markdown))


def _of_options(
    structure: str, dims: str, norm_bound: str, lipschitz: str, kernel: Matern, horizon: int, points: int
) -> Promise:
    sizes = _numbers(dims, "--dims")
    if any(size != int(size) for size in sizes if math.isfinite(size)):
        raise ArgumentError(f"--dims must be whole numbers, such as 2,1,1; got {dims!r}.")
    layers = Layers(
        cast(Structure, structure),  # Layers validates it
        [int(size) if math.isfinite(size) else 0 for size in sizes],
        _one_or_more(norm_bound, "--norm-bound"),
        _one_or_more(lipschitz, "--lipschitz"),
    )
    return promise(network_of(layers, kernel), horizon, points, layers)


def _numbers(text: str, name: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentError(f"{name} must be numbers separated by commas, such as 2,1,1; got {text!r}.") from None


def _one_or_more(text: str, name: str) -> float | list[float]:
    values = _numbers(text, name)
    return values[0] if len(values) == 1 else values


def _text(result: Promise, markdown: bool) -> str:
    layers = result.layers
    dims = " → ".join(map(str, (*layers.dims, 1)))
    table = as_markdown if markdown else as_text
    head = "## " if markdown else ""
    lines = [
        f"{head}{layers.structure}, {dims}, m = {layers.count}, T = {result.horizon}",
        "",
        f"B  {_list(layers.norm_bounds)}",
        f"L  {_list(layers.lipschitz)}",
        "",
        f"{head}Σ_T, over the whole domain of each layer",
        "",
        *_rows(
            ("layer", "domain", "greedy ≤ Σ_T", "Σ_T ≤", "by", "paper's form"),
            [
                (
                    str(i),
                    " × ".join(f"[{low:.4g}, {high:.4g}]" for low, high in domain),
                    rounded_down(one.greedy, 4),
                    rounded_up(one.upper, 4),
                    one.by if one.gain is None else f"γ_T ≤ {rounded_up(one.gain, 4)} at λ' = {one.noise:g}",
                    rounded_up(one.cauchy_schwarz, 4),
                )
                for i, (domain, one) in enumerate(zip(result.domains, result.sums, strict=True), 1)
            ],
            markdown,
        ),
        "",
        f"{head}R_T of GPN-UCB is at most",
        "",
        *_rows(("bound", "value", "from"), [_bound(one) for one in (*result.bounds, result.trivial)], markdown),
        "",
    ]
    sharpest = min(result.bounds, key=lambda bound: bound.value)
    if sharpest.value >= result.trivial.value:
        lines += ["At this T no theorem says more than that a round cannot regret more than the range of g.", ""]
    for assumption in dict.fromkeys(one for bound in result.bounds for one in bound.assumptions):
        lines.append(f"- assumed: {assumption}")
    if result.rates:
        lines += ["", f"{head}Rates of Σ_T", ""]
        lines += [f"- {rate.formula}: {rate.status} ({rate.label})" for rate in result.rates]
        lines += ["", f"{head}Rates of the regret (tab:summary; c = 1)", "", table(result.summary, result.horizon)]
        lines += [
            "",
            f"{head}The same, in short (tab:summary_cml; c = 1)",
            "",
            table(result.cumulative, result.horizon),
        ]
    if result.comparisons:
        lines += ["", f"{head}Factors in front of the rate, theirs over ours (sec:comparison)", ""]
        header = ("algorithm", "ratio", "T to the, theirs", "ours", "theirs")
        body = [
            (
                one.name,
                f"10^{one.log10_ratio:.2f}",
                f"{one.theirs.exponents[0]:.3g}",
                f"{one.ours.exponents[0]:.3g}",
                one.theirs.formula,
            )
            for one in result.comparisons
        ]
        lines += _rows(header, body, markdown)
    lines += ["", *(f"- {note}" for note in result.notes)] if result.notes else []
    return "\n".join(lines)


def _bound(bound: Bound) -> tuple[str, str, str]:
    return bound.formula, bound.shown(6), bound.label


def _list(values: tuple[float, ...]) -> str:
    if len(set(values)) == 1:
        return f"{values[0]:g} in every layer"
    return ", ".join(f"{value:g}" for value in values)


def _rows(header: tuple[str, ...], rows: Sequence[Sequence[str]], markdown: bool) -> list[str]:
    if markdown:
        lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
        return lines + ["| " + " | ".join(row) + " |" for row in rows]
    widths = [max(len(line[j]) for line in (header, *rows)) for j in range(len(header))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in (header, *rows)]
