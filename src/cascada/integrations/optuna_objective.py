"""An Optuna objective made of stages, which stores what each of them gives as soon as it has finished."""

from typing import TYPE_CHECKING

from cascada.integrations.optuna_runs import PREFIX
from cascada.network import Network, Outputs, StageError
from cascada.process import Functions, Process

if TYPE_CHECKING:
    from optuna.trial import Trial


class StagewiseObjective:
    """Suggests every control, runs the stages one by one, and returns the network's objective."""

    def __init__(self, network: Network, functions: Functions) -> None:
        self._process = Process(network, functions)

    def __call__(self, trial: "Trial") -> float:
        """The objective of one run; `StageError` when a stage fails, after what came before it was stored.

        A stage may raise Optuna's `TrialPruned`, to say that the rest of the run is not worth its while.
        """
        from optuna import TrialPruned

        network = self._process.network
        controls: dict[str, float] = {
            name: trial.suggest_int(name, int(control.low), int(control.high))
            if control.integer
            else trial.suggest_float(name, control.low, control.high, log=control.log)
            for name, control in network.domain.controls.items()
        }
        outputs: Outputs = {}
        stored: set[str] = set()

        def store(stage: str, values: tuple[float, ...]) -> None:
            if stage not in stored:
                trial.set_user_attr(PREFIX + stage, values[0] if len(values) == 1 else list(values))
                stored.add(stage)

        try:
            outputs = self._process.run(controls, ended=store)
        except StageError as error:
            outputs = error.outputs
            if isinstance(error.__cause__, TrialPruned):
                raise error.__cause__ from None
            raise
        finally:  # one evaluate() for all stages gives everything at its end
            for stage, values in outputs.items():
                store(stage, values)
        stage, output = network.objective
        return outputs[stage][network.node(stage).stage.outputs.index(output)]
