"""What takes part in a benchmark: an algorithm of ours, through a `Study`, or a peer, which sees only the objective."""

from typing import Protocol

from cascada.arrays import Array
from cascada.experiments.peers import PEERS, Peer, require
from cascada.network import Network
from cascada.network.outputs import Outputs
from cascada.study import Study, Trial
from cascada.study.certificate import Certificate


class Contestant(Protocol):
    """Chooses points, (d,) in user units, and is told what all runs gave, those of the initial design first."""

    def ask(self) -> Array | None:
        """The point to run next, or None when none is worth a run."""
        ...

    def tell(self, point: Array, outputs: Outputs) -> None:
        """What a run gave, be it at the point asked for or at another."""
        ...

    def certificate(self) -> Certificate | None:
        """How good the best run is, where something can be said about that."""
        ...


class StudyContestant:
    """An algorithm of ours (or of the user), which sees the outputs of every stage.

    Bounds that the data refute are enlarged: a benchmark is no proof, and goes on.
    """

    def __init__(self, network: Network, algorithm: str, seed: int, horizon: int) -> None:
        self._study = Study(network, algorithm=algorithm, seed=seed, horizon=horizon, on_violation="enlarge")
        self._asked: Trial | None = None

    def ask(self) -> Array | None:
        self._asked = self._study.ask()
        return None if self._asked is None else self._study.network.domain.row(self._asked.controls)

    def tell(self, point: Array, outputs: Outputs) -> None:
        controls = self._study.network.domain.named(point)
        asked, self._asked = self._asked, None
        if asked is None or asked.controls != controls:
            if asked is not None:
                self._study.fail(asked, "another point was run in its place")
            asked = self._study.enqueue_trial(controls)
        self._study.tell(asked, outputs)

    def certificate(self) -> Certificate | None:
        return self._study.certificate()


class PeerContestant:
    """A peer, which is told nothing but the objective, so signed that larger is better."""

    def __init__(self, network: Network, peer: Peer) -> None:
        self._network, self._peer = network, peer

    def ask(self) -> Array | None:
        return self._peer.ask()

    def tell(self, point: Array, outputs: Outputs) -> None:
        self._peer.tell(point, self._network.sign * objective_of(self._network, outputs))

    def certificate(self) -> Certificate | None:
        return None


def contestant(network: Network, algorithm: str, seed: int, initial: int, budget: int) -> Contestant:
    """The contestant of a name: a peer's, one of `cascada.algorithms.NAMES`, or "module:Class"."""
    if algorithm in PEERS:
        require(algorithm)
        return PeerContestant(network, PEERS[algorithm].make(network.domain, seed, initial))
    return StudyContestant(network, algorithm, seed, initial + budget)


def objective_of(network: Network, outputs: Outputs) -> float:
    """The objective among the outputs of a run, as the user's process gives it."""
    stage, output = network.objective
    return outputs[stage][network.node(stage).stage.outputs.index(output)]
