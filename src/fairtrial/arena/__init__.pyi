"""The names of `fairtrial.arena`; `_facade.attach` reads them from here."""

from fairtrial.arena.arena import (
    Arena as Arena,
)
from fairtrial.arena.audit.audit import (
    AuditLimits as AuditLimits,
    audit_arena as audit_arena,
    audit_problem as audit_problem,
)
from fairtrial.arena.candidates.diff_parser import (
    read_diff as read_diff,
)
from fairtrial.arena.candidates.diffs import (
    FileDiff as FileDiff,
    UnreadableDiff as UnreadableDiff,
)
from fairtrial.arena.candidates.editable_match import (
    require_editable_files as require_editable_files,
)
from fairtrial.arena.candidates.folders import (
    DIFF_SUFFIXES as DIFF_SUFFIXES,
    MAX_CANDIDATE_MB as MAX_CANDIDATE_MB,
    disambiguate_names as disambiguate_names,
    read_candidate as read_candidate,
)
from fairtrial.arena.checks.function_check import (
    SEEDED as SEEDED,
)
from fairtrial.arena.checks.recorded_calls import (
    record_call as record_call,
    write_calls as write_calls,
)
from fairtrial.arena.comparison import (
    Comparison as Comparison,
    SelfTest as SelfTest,
    builtin_problem as builtin_problem,
    check_clock as check_clock,
    compare_candidates as compare_candidates,
)
from fairtrial.arena.delivery.apply import (
    apply_to_tree as apply_to_tree,
    write_patch as write_patch,
)
from fairtrial.arena.delivery.branch import (
    WinnerBranch as WinnerBranch,
    check_branch as check_branch,
    put_on_branch as put_on_branch,
)
from fairtrial.arena.delivery.edits import (
    FileEdit as FileEdit,
    FileEdits as FileEdits,
)
from fairtrial.arena.delivery.explanation import (
    WinnerEvidence as WinnerEvidence,
)
from fairtrial.arena.delivery.markdown_quoting import (
    ASSUMES as ASSUMES,
    as_message as as_message,
    spell_command as spell_command,
)
from fairtrial.arena.delivery.recheck import (
    recheck as recheck,
)
from fairtrial.arena.delivery.winner import (
    gather_evidence as gather_evidence,
)
from fairtrial.arena.evaluation import (
    Evaluation as Evaluation,
    audit_quickly as audit_quickly,
    evaluate_candidates as evaluate_candidates,
    judge_candidates as judge_candidates,
    read_candidates as read_candidates,
)
from fairtrial.arena.events import (
    CandidateJudged as CandidateJudged,
    CheckStarted as CheckStarted,
    TimingProgress as TimingProgress,
)
from fairtrial.arena.machine_survey import (
    survey_machine as survey_machine,
)
from fairtrial.arena.model.adequacy import (
    Adequacy as Adequacy,
    MutantResult as MutantResult,
    NullKind as NullKind,
    NullResult as NullResult,
)
from fairtrial.arena.model.candidates import (
    Candidate as Candidate,
    Changes as Changes,
    FileState as FileState,
)
from fairtrial.arena.model.judgements import (
    Judgement as Judgement,
)
from fairtrial.arena.model.problem import (
    Benchmark as Benchmark,
    Check as Check,
    CodeProblem as CodeProblem,
    problem_identity as problem_identity,
)
from fairtrial.arena.model.timings import (
    Estimate as Estimate,
    Measurement as Measurement,
    Pair as Pair,
    Sample as Sample,
    Session as Session,
    SlowInput as SlowInput,
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
from fairtrial.arena.plain_data import (
    judgement_as_dict as judgement_as_dict,
)
from fairtrial.arena.preflight import (
    check_problem_file as check_problem_file,
)
from fairtrial.arena.problem_files import (
    is_problem_file as is_problem_file,
    load_problem as load_problem,
    read_problem as read_problem,
)
from fairtrial.arena.problem_json_schema import (
    problem_schema as problem_schema,
)
from fairtrial.arena.settings import (
    ArenaSettings as ArenaSettings,
)
from fairtrial.arena.slots.pool_folders import (
    PoolFolderInfo as PoolFolderInfo,
    find_pool_folders as find_pool_folders,
    remove_orphaned_pools as remove_orphaned_pools,
)
from fairtrial.arena.slots.threads import (
    NoRoomError as NoRoomError,
    has_room as has_room,
)
from fairtrial.arena.snapshot.snapshot import (
    find_top as find_top,
    take_snapshot as take_snapshot,
)
from fairtrial.arena.timing.bench import (
    Bench as Bench,
    can_time as can_time,
)
from fairtrial.arena.timing.contradictions import (
    name_inputs as name_inputs,
)
from fairtrial.arena.timing.samples_table import (
    recompute as recompute,
)
from fairtrial.arena.timing.stats.ratio_text import (
    estimate_text as estimate_text,
    point_text as point_text,
    ratio_text as ratio_text,
    seconds_text as seconds_text,
)
from fairtrial.arena.timing.stats.sequential import (
    LOOKS as LOOKS,
)
from fairtrial.arena.timing.timing_files import (
    check_timing_options as check_timing_options,
    write_timing_files as write_timing_files,
)
from fairtrial.arena.timing.total_checks import (
    describe_total_check as describe_total_check,
)
from fairtrial.arena.timing_phase import (
    time_candidate as time_candidate,
    timing_rules as timing_rules,
    with_timing as with_timing,
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
