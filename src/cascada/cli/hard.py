"""`cascada hard`: networks on which every algorithm needs many runs, and how many."""

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from cascada.cli.output import print_json
from cascada.cli.terminal import say
from cascada.errors import ArgumentError
from cascada.kernels import Matern
from cascada.outwards import rounded_down, rounded_up
from cascada.theory.hard import HardFamily, hard_family
from cascada.theory.layers import Structure
from cascada.theory.lower import (
    average_cumulative_regret,
    average_simple_regret,
    longest_horizon,
    lower_cumulative_regret_order,
    lower_simple_regret_order,
    rounds_order,
)


def hard(
    structure: Annotated[str, typer.Option(help="chain, multi-output or feed-forward.")] = "chain",
    nu: Annotated[float, typer.Option(help="Smoothness ν of the Matérn kernel, 1 or more.")] = 1.5,
    lengthscale: Annotated[float, typer.Option(help="Its lengthscale.")] = 1.0,
    u: Annotated[float, typer.Option(help="Where the amplifier's two kernel sections stand, ±u.")] = 0.5,
    u_tilde: Annotated[float, typer.Option(help="ũ < u: the amplifier grows on [0, ũ].")] = 0.3,
    norm_bound: Annotated[float, typer.Option(help="B, the norm of every layer.")] = 5.0,
    depth: Annotated[int, typer.Option(help="m, the number of layers.")] = 3,
    dim: Annotated[int, typer.Option(help="d, the dimension of the cube [0, 1]^d.")] = 1,
    layer_width: Annotated[
        int | None, typer.Option(help="Outputs of every layer but the last; 1 in a chain, else 2.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="ε: the composite is 2ε high.")] = 0.05,
    horizon: Annotated[
        int | None, typer.Option(help="T, for the lower bounds; by default the largest up to M/2 − 1.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the amplifiers into this .pdf, .png or .svg.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Build the paper's hard functions, with every constant, and print lower bounds on the regret of any algorithm.

    Each of M networks hides a needle of height 2ε in a cell of its own; all layers have norm exactly B.
    """
    if structure not in ("chain", "multi-output", "feed-forward"):
        raise ArgumentError(f"--structure must be chain, multi-output or feed-forward; got {structure!r}.")
    if depth < 1 or dim < 1 or (layer_width is not None and layer_width < 1):
        raise ArgumentError(
            f"--depth, --dim and --layer-width must be 1 or more; got {depth}, {dim} and {layer_width or 'none'}."
        )
    width = (1 if structure == "chain" else 2) if layer_width is None else layer_width
    dims = (dim, *(width for _ in range(depth - 1)))
    family = hard_family(
        Matern(nu, lengthscale),
        norm_bound,
        epsilon,
        dims=dims,
        u=u,
        u_tilde=u_tilde,
        structure=cast(Structure, structure),  # validated above
    )
    rounds = max(0, longest_horizon(family)) if horizon is None else horizon
    content = _content(family, rounds)
    if figure is not None:
        from cascada.experiments.hard_figure import draw_hard

        content["figure"] = str(draw_hard(family.amplifier, figure))
    if json_output:
        print_json(content)
        return
    say(_text(family, rounds))
    if figure is not None:
        say(f"figure      {figure}")


def _content(family: HardFamily, rounds: int) -> dict[str, Any]:
    amplifier, needle = family.amplifier, family.needle
    section_norms = [float(amplifier.expansion(d).norm[0]) for d in family.dims[1:]]
    return {
        "structure": family.structure,
        "nu": family.kernel.nu,
        "lengthscale": family.kernel.lengthscale,
        "dims": list(family.dims),
        "norm_bound": family.norm_bound,
        "u": amplifier.u,
        "u_tilde": amplifier.u_tilde,
        "ratio": amplifier.ratio,
        "r_min": amplifier.r_min,
        "r_max": amplifier.r_max,
        "scale": amplifier.scale,
        "g_tilde": amplifier.top,
        "norm": float(amplifier.expansion().norm[0]),
        "norms": [needle.norm(family.kernel), *section_norms],
        "height": family.heights[-1],
        "heights": list(family.heights),
        "epsilon": family.epsilon,
        "epsilon_1": 0.5 * needle.height,
        "width": needle.width,
        "cells": family.cells,
        "members": family.members,
        "lipschitz": family.lipschitz,
        "layer_lipschitz": list(family.layer_lipschitz),
        "chord_slopes": [amplifier.scale * amplifier.r_min, amplifier.scale * amplifier.r_max],
        "alpha": family.alpha,
        "amplification": family.amplification,
        "horizon": rounds,
        "longest_horizon": longest_horizon(family),
        "simple_regret": average_simple_regret(family, rounds).as_dict(),
        "cumulative_regret": average_cumulative_regret(family, rounds).as_dict(),
        "orders": [
            lower_simple_regret_order(family).as_dict(),
            rounds_order(family).as_dict(),
            lower_cumulative_regret_order(family).as_dict(),
        ],
    }


def _text(family: HardFamily, rounds: int) -> str:
    amplifier, needle = family.amplifier, family.needle
    simple, cumulative = average_simple_regret(family, rounds), average_cumulative_regret(family, rounds)
    heights = " → ".join(f"{height:.6g}" for height in family.heights)
    orders = (lower_simple_regret_order(family), rounds_order(family), lower_cumulative_regret_order(family))
    lines = [
        f"{family.structure}, {family.kernel!r}, dimensions {', '.join(map(str, family.dims))}",
        f"norms       {family.norm_bound:g} in every layer",
        f"amplifier   g̃(ũ) = {amplifier.top:.4f}, r_min/r_max = {rounded_down(amplifier.ratio, 4)}",
        f"heights     {heights}",
        f"width       {needle.width:.6g}",
        f"members     {family.members}",
        f"L, c        {rounded_up(family.lipschitz, 5)}, {rounded_down(family.alpha, 4)}",
        "",
        f"After {rounds} runs, on average over the members, every algorithm has",
        f"  simple regret      ≥ {simple.shown(6)}   {simple.formula}",
        f"  cumulative regret  ≥ {cumulative.shown(6)}   {cumulative.formula}",
        "",
        "For many runs, up to a constant that is not known:",
        *(f"  {order.formula:<36} {order.label}" for order in orders),
    ]
    return "\n".join(lines)
