"""An Optuna objective that runs the stages of a network and stores the outputs of each stage when it ends.

With Optuna 5 it also sets the limits of the network as constraints, for any sampler.
"""

from typing import TYPE_CHECKING

from cascada.integrations.optuna_constraints import excesses
from cascada.integrations.optuna_runs import PREFIX
from cascada.network import Network, Outputs, StageError
from cascada.process import Functions, Process
from cascada.space import Choice, Control, ControlValue

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial


class StagewiseObjective:
    """Objective that suggests every control, runs the stages one by one, and returns the network's objective."""

    def __init__(self, network: Network, functions: Functions) -> None:
        self._process = Process(network, functions)

    def __call__(self, trial: "Trial") -> float:
        """Return the objective of one run; raise `StageError` if a stage fails, after storing the outputs before it.

        A stage may raise Optuna's `TrialPruned` to end the run early.
        """
        from optuna import TrialPruned

        network = self._process.network
        controls = {name: _suggested(trial, name, control) for name, control in network.domain.controls.items()}
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
        finally:  # one evaluate() for all stages returns all outputs at its end
            for stage, values in outputs.items():
                store(stage, values)
            if hasattr(trial, "set_constraint"):  # Optuna 5; in Optuna 4 the sampler stores the constraints
                for name, excess in excesses(network, outputs).items():
                    trial.set_constraint(name, excess)
        stage, output = network.objective
        return outputs[stage][network.node(stage).stage.outputs.index(output)]


def distribution_of(control: Control) -> "BaseDistribution":
    """Return a control as one of Optuna's distributions."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(control, Choice):
        return CategoricalDistribution(control.values)
    if control.integer:
        return IntDistribution(int(control.low), int(control.high), log=control.log)
    return FloatDistribution(control.low, control.high, log=control.log, step=control.step)


def _suggested(trial: "Trial", name: str, control: Control) -> ControlValue:
    if isinstance(control, Choice):
        return trial.suggest_categorical(name, control.values)
    if control.integer:
        return trial.suggest_int(name, int(control.low), int(control.high), log=control.log)
    return trial.suggest_float(name, control.low, control.high, log=control.log, step=control.step)
