"""The history of the bound of a study whose readings scatter.

What such a bound says depends on the order of the readings and on the nominal inputs that were chosen before each of
them. So the readings are learned again in the order of the log, with the nominal inputs in it.
"""

from collections.abc import Collection

from cascada.report.bound_after import BoundAfter
from cascada.study.reader import Reader
from cascada.study.silent_study import SilentStudy


def bounds_from_reports(study: Reader, after: Collection[int], cells: int) -> list[BoundAfter]:
    """Recompute the bound after the complete runs with these positions, in the order in which they were completed.

    `cells`: of the search for each bound. Bounds hold at all times together, so a later one is never worse.
    """
    replay = SilentStudy(study.network, algorithm="random_search", confidence=study.certificate().confidence)
    found: list[BoundAfter] = []
    copies: dict[int, int] = {}
    done, sign = 0, study.network.sign
    for event in study.events:
        if event.kind not in ("observed", "told") or event.trial is None:
            continue
        if event.trial not in copies:
            copies[event.trial] = replay.begin_trial(study.trials[event.trial].controls).number
        replay.learn(copies[event.trial], event.data["outputs"], event.data.get("nominal", {}))
        if event.kind == "told":
            done += 1
            bound = replay.certificate(cells=cells).bound if done - 1 in after else None
            if bound is not None:
                bound = sign * min(sign * bound, sign * found[-1].bound) if found else bound
                last = max(event.trial, found[-1].trial if found else 0)  # runs may end in another order
                found.append(BoundAfter(last, bound, "confident"))
    return found
