"""Contestants of a benchmark: an algorithm of cascada in a `Study`, or a peer, which gets only the objective."""

from typing import Protocol

from cascada.arrays import Array
from cascada.experiments.peers import PEERS, Peer, require
from cascada.network import Network
from cascada.network.outputs import Outputs
from cascada.study import Study, Trial
from cascada.study.certificate import Certificate


class Contestant(Protocol):
    """Suggests points (d,) in user units and receives the outputs of all runs, those of the initial design first."""

    def ask(self) -> Array | None:
        """The next point, or None if no point is worth a run."""
        ...

    def tell(self, point: Array, outputs: Outputs) -> None:
        """Receive the outputs of a run at the suggested point or at another one."""
        ...

    def certificate(self) -> Certificate | None:
        """The certificate of the best run, or None if the contestant has none."""
        ...


class StudyContestant:
    """An algorithm of cascada or of the user, which gets the outputs of every stage.

    Bounds refuted by the data are enlarged, so that the benchmark continues.
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
    """A peer, which gets only the objective, with the sign for maximisation."""

    def __init__(self, network: Network, peer: Peer) -> None:
        self._network, self._peer = network, peer

    def ask(self) -> Array | None:
        return self._peer.ask()

    def tell(self, point: Array, outputs: Outputs) -> None:
        self._peer.tell(point, self._network.sign * objective_of(self._network, outputs))

    def certificate(self) -> Certificate | None:
        return None


def contestant(network: Network, algorithm: str, seed: int, initial: int, budget: int) -> Contestant:
    """The contestant with a name: a peer, one of `cascada.algorithms.NAMES`, or "module:Class"."""
    if algorithm in PEERS:
        require(algorithm)
        return PeerContestant(network, PEERS[algorithm].make(network.domain, seed, initial))
    return StudyContestant(network, algorithm, seed, initial + budget)


def objective_of(network: Network, outputs: Outputs) -> float:
    """The objective among the outputs of a run, with the sign of the user's process."""
    stage, output = network.objective
    return outputs[stage][network.node(stage).stage.outputs.index(output)]
