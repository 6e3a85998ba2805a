"""The names of `fairtrial.study.evaluators`; `_facade.attach` reads them from here."""

from fairtrial.study.evaluators.case import (
    EvaluationCase as EvaluationCase,
    Evaluator as Evaluator,
)
