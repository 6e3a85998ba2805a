"""The names of `fairtrial.arena`; `_facade.attach` reads them from here."""

from fairtrial.arena import (
    commands as commands,
    delivery as delivery,
    events as events,
    gate as gate,
    housekeeping as housekeeping,
    machine_survey as machine_survey,
    problem_files as problem_files,
    self_test as self_test,
    suites as suites,
    targets as targets,
)
from fairtrial.arena.arena import (
    Arena as Arena,
)
from fairtrial.arena.audit.audit import (
    AuditLimits as AuditLimits,
    audit_problem as audit_problem,
)
from fairtrial.arena.candidate_sources import (
    read_candidates as read_candidates,
)
from fairtrial.arena.candidates.editable_match import (
    require_editable_files as require_editable_files,
)
from fairtrial.arena.candidates.folders import (
    DIFF_SUFFIXES as DIFF_SUFFIXES,
    read_candidate as read_candidate,
)
from fairtrial.arena.checks.recorded_calls import (
    record_call as record_call,
    write_calls as write_calls,
)
from fairtrial.arena.comparison import (
    Comparison as Comparison,
    compare_candidates as compare_candidates,
)
from fairtrial.arena.evaluation import (
    Evaluation as Evaluation,
    audit_quickly as audit_quickly,
    evaluate_candidates as evaluate_candidates,
    measure_candidate as measure_candidate,
)
from fairtrial.arena.model.adequacy import (
    Adequacy as Adequacy,
)
from fairtrial.arena.model.candidates import (
    Candidate as Candidate,
    Changes as Changes,
    FileState as FileState,
)
from fairtrial.arena.model.figures import (
    rough_seconds as rough_seconds,
)
from fairtrial.arena.model.judgements import (
    Judgement as Judgement,
)
from fairtrial.arena.model.problem import (
    Benchmark as Benchmark,
    Check as Check,
    CodeProblem as CodeProblem,
)
from fairtrial.arena.model.timings import (
    Estimate as Estimate,
    Measurement as Measurement,
    Pair as Pair,
    Sample as Sample,
    Session as Session,
    Timing as Timing,
    TotalCheck as TotalCheck,
    TotalVerdict as TotalVerdict,
)
from fairtrial.arena.model.verdicts import (
    Basis as Basis,
    Difference as Difference,
    Failure as Failure,
    Reason as Reason,
    Rejection as Rejection,
    Verdict as Verdict,
)
from fairtrial.arena.opening import (
    open_arena as open_arena,
)
from fairtrial.arena.problem_files import (
    load_problem as load_problem,
)
from fairtrial.arena.problem_json_schema import (
    problem_schema as problem_schema,
)
from fairtrial.arena.settings import (
    ArenaSettings as ArenaSettings,
)
from fairtrial.arena.slots.pool import (
    WorktreePool as WorktreePool,
)
from fairtrial.arena.slots.threads import (
    require_room as require_room,
)
from fairtrial.arena.snapshot.project_copy import (
    ProjectCopy as ProjectCopy,
)
from fairtrial.arena.snapshot.snapshot import (
    compute_tree as compute_tree,
)
from fairtrial.arena.sync import (
    compare_candidates_sync as compare_candidates_sync,
    evaluate_candidates_sync as evaluate_candidates_sync,
    measure_candidate_sync as measure_candidate_sync,
)
from fairtrial.arena.timing.bench import (
    Bench as Bench,
)
from fairtrial.arena.timing.measurement_text import (
    describe_measurement as describe_measurement,
)
from fairtrial.arena.timing.samples_table import (
    recompute as recompute,
)
from fairtrial.arena.timing.timing_files import (
    TimingFiles as TimingFiles,
)
from fairtrial.arena.timing_phase import (
    time_candidate as time_candidate,
)
from fairtrial.arena.workshop.agent_slot import (
    AgentChanges as AgentChanges,
    AgentSlot as AgentSlot,
)
from fairtrial.arena.workshop.private_slot import (
    TooLargeError as TooLargeError,
)
from fairtrial.arena.workshop.workshop import (
    Workshop as Workshop,
)
