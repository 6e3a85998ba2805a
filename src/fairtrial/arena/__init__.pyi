"""The names of `fairtrial.arena`; `_facade.attach` reads them from here."""

from fairtrial.arena.arena import (
    Arena as Arena,
)
from fairtrial.arena.candidates.diff_parser import (
    read_diff as read_diff,
)
from fairtrial.arena.candidates.diffs import (
    FileDiff as FileDiff,
    UnreadableDiff as UnreadableDiff,
)
from fairtrial.arena.candidates.editable_match import (
    refuse_matching_nothing as refuse_matching_nothing,
)
from fairtrial.arena.candidates.folders import (
    LARGEST_MB as LARGEST_MB,
    SUFFIXES as SUFFIXES,
    read_candidate as read_candidate,
    tell_apart as tell_apart,
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
    Branched as Branched,
    check_branch as check_branch,
    put_on_branch as put_on_branch,
)
from fairtrial.arena.delivery.coverage import (
    coverage as coverage,
)
from fairtrial.arena.delivery.edits import (
    Edit as Edit,
    Edits as Edits,
    find_edits as find_edits,
)
from fairtrial.arena.delivery.explanation import (
    Finding as Finding,
    explain as explain,
)
from fairtrial.arena.delivery.markdown_quoting import (
    ASSUMES as ASSUMES,
    as_message as as_message,
    spell_command as spell_command,
)
from fairtrial.arena.delivery.profile import (
    profile as profile,
)
from fairtrial.arena.delivery.recheck import (
    recheck as recheck,
)
from fairtrial.arena.evaluation import (
    Evaluation as Evaluation,
    evaluate_candidates as evaluate_candidates,
    judge_candidates as judge_candidates,
    judgement_as_dict as judgement_as_dict,
    measured_as_dict as measured_as_dict,
)
from fairtrial.arena.events import (
    CandidateJudged as CandidateJudged,
    CheckStarted as CheckStarted,
    TimingProgress as TimingProgress,
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
)
from fairtrial.arena.model.timings import (
    Estimate as Estimate,
    Measurement as Measurement,
    Pair as Pair,
    Sample as Sample,
    Session as Session,
    Timing as Timing,
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
from fairtrial.arena.preflight import (
    missing_parts as missing_parts,
)
from fairtrial.arena.problem_files import (
    is_problem_file as is_problem_file,
    load_problem as load_problem,
    locate as locate,
    read_problem as read_problem,
)
from fairtrial.arena.problem_json_schema import (
    problem_schema as problem_schema,
)
from fairtrial.arena.settings import (
    ArenaSettings as ArenaSettings,
)
from fairtrial.arena.slots.pool import (
    WorktreePool as WorktreePool,
    WorktreeSlot as WorktreeSlot,
)
from fairtrial.arena.slots.pool_folders import (
    HOME_VARIABLE as HOME_VARIABLE,
    Found as Found,
    find_homes as find_homes,
    list_places as list_places,
    remove_orphans as remove_orphans,
)
from fairtrial.arena.slots.threads import (
    NoRoomError as NoRoomError,
    has_room as has_room,
)
from fairtrial.arena.snapshot.snapshot import (
    find_top as find_top,
    take_snapshot as take_snapshot,
)
from fairtrial.arena.task_groups import (
    single_cause as single_cause,
)
from fairtrial.arena.timing.bench import (
    Bench as Bench,
    can_time as can_time,
)
from fairtrial.arena.timing.interval_plot import (
    check_plot_path as check_plot_path,
    interval_rows as interval_rows,
    plot_intervals as plot_intervals,
)
from fairtrial.arena.timing.samples_table import (
    check_samples_path as check_samples_path,
    recompute as recompute,
    write_samples as write_samples,
)
from fairtrial.arena.timing.stats.detectable_effect import (
    seconds_needed as seconds_needed,
    visible_effect as visible_effect,
    visible_within as visible_within,
)
from fairtrial.arena.timing.stats.ratio_text import (
    estimate_text as estimate_text,
    point_text as point_text,
    ratio_text as ratio_text,
)
from fairtrial.arena.timing.stats.sequential import (
    LOOKS as LOOKS,
)
from fairtrial.arena.timing.valgrind import (
    MACOS as MACOS,
    find_valgrind as find_valgrind,
)
from fairtrial.arena.timing_phase import (
    rules_of as rules_of,
    time_candidate as time_candidate,
    with_timing as with_timing,
)
from fairtrial.arena.workshop.folder import (
    TooLargeError as TooLargeError,
)
from fairtrial.arena.workshop.place import (
    AgentSlot as AgentSlot,
    Taken as Taken,
)
from fairtrial.arena.workshop.workshop import (
    ArenaWorkshop as ArenaWorkshop,
    Workshop as Workshop,
)
