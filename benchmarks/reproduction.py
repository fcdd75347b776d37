"""Copying of the results of a reproduction into the documentation: the table of claims and the figures.

cascada reproduce --out build/reproduction
python -m benchmarks.reproduction build/reproduction --write docs/reproduction.md
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from benchmarks.markdown import table, write_section

NAME = "benchmarks.reproduction"
FIGURES = {
    "stages": "The stages and composites of g1 and g2 (`fig:gs`)",
    "oi": "OI with different b against cUCB, simple regret (`fig:oi`)",
    "cumulative": "Cumulative regret (`fig:cml`)",
    "simple": "Simple regret, NonAda for T = 2², …, 14² (`fig:sim`)",
    "family": "R_T of every baseline over that of GPN-UCB, chain by chain",
}


def family_table(results: dict[str, Any]) -> str:
    """The profiles of the chains of the family and the selected ones."""
    rows = []
    for chain in results["family"]:
        picked = {results["g1"]: "g1", results["g2"]: "g2"}.get(chain["seed"], "")
        span = f"{chain['minimum']:.2f} to {chain['maximum']:.2f}"
        share = f"{100 * chain['share']:.1f} %"
        rows.append([str(chain["seed"]), picked, span, str(chain["near"]), share, f"{chain['lead']:.2g}"])
    return table(["seed", "", "values of g", "near-optimal regions", "of the domain", "lead"], rows)


def report(folder: Path, pictures: str) -> str:
    """The section for docs/reproduction.md."""
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    settings = results["settings"]
    lines = [
        f"T = {settings['horizon']}, {settings['trials']} trials on g1 and g2, one on each of the other chains, "
        f"S = {settings['samples']}, seed {settings['seed']}, cascada {settings['version']}. Written by",
        "",
        "    cascada reproduce --out build/reproduction",
        "    python -m benchmarks.reproduction build/reproduction --write docs/reproduction.md",
        "",
        "### Claims",
        "",
        (folder / "claims.md").read_text(encoding="utf-8").partition("\n")[2].strip(),  # without its heading
        "",
        "### The family",
        "",
        family_table(results),
        "",
        "### Figures",
        "",
    ]
    for name, caption in FIGURES.items():
        lines += [f"![{caption}]({pictures}/{name}.png)", "", f"*{caption}.*", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog=f"python -m {NAME}", description=__doc__)
    parser.add_argument("folder", type=Path, help="what `cascada reproduce --out` wrote")
    parser.add_argument("--write", type=Path, required=True)
    given = parser.parse_args()
    pictures = given.write.parent / "figures"
    pictures.mkdir(exist_ok=True)
    for name in FIGURES:
        shutil.copyfile(given.folder / f"{name}.png", pictures / f"{name}.png")
    write_section(given.write, NAME, report(given.folder, "figures"))


if __name__ == "__main__":
    main()
