"""Recipes for studies of agent architectures, prompts, guidance, teams and search strategies."""

from __future__ import annotations

from dataclasses import replace

from fairtrial import Block, DesignKind, DesignSpec, Hypothesis, HypothesisDirection, Study
from fairtrial.compat.recipes.bundles import optimization_bundle
from fairtrial.compat.recipes.recipe import PLAN, Recipe, make_factor
from fairtrial.compat.recipes.recipe_config import (
    AgentArchitectureComparisonConfig,
    DiversityAndExplorationConfig,
    GrammarScaffoldConfig,
    HumanVsAgentProcessConfig,
    OptimizationBenchmarkConfig,
    PromptFramingConfig,
)
from fairtrial.study import HypothesisKind

AGENT_ARCHITECTURE = Recipe(
    study_id="agent-architecture-comparison",
    title="Agent Architecture Comparison",
    description="Crosses the way an agent is built with the difficulty of its prompts.",
    rationale="A more complex agent costs more; its gain should show, at least on hard tasks.",
    tags=("ideation", "architecture"),
    hypothesis=Hypothesis(
        hypothesis_id="h1",
        label="The architecture has an effect",
        statement="Scores depend on how the agent is built, and maybe on the prompt's difficulty.",
    ),
    factors=(
        make_factor(
            "agent_architecture",
            "How the agent is built.",
            direct="direct-llm",
            multistep="multi-step",
            reflective="reflective",
        ),
        make_factor(
            "prompt_difficulty",
            "The difficulty of the prompt.",
            easy="easy",
            medium="medium",
            hard="hard",
        ),
    ),
    blocks=(Block(name="problem_family", levels=("ideation", "optimization")),),
    design_spec=DesignSpec(kind=DesignKind.CONSTRAINED_FACTORIAL, randomize=True),
    base_seed=7,
    problem_ids=("problem-a", "problem-b"),
    agent_specs=("direct-llm", "multi-step", "reflective"),
)
PROMPT_FRAMING = Recipe(
    study_id="prompt-framing-study",
    title="Prompt Framing Study",
    description="Compares different framings of the same ideation tasks.",
    rationale="The wording of a prompt is cheap to change, and its effect is easily overrated.",
    tags=("ideation", "framing"),
    hypothesis=Hypothesis(
        hypothesis_id="h1",
        label="Framing has an effect",
        statement="The framing of a prompt changes the scores of its answers.",
    ),
    factors=(
        make_factor(
            "prompt_frame",
            "How the task is framed.",
            neutral="neutral",
            challenge="challenge",
            analogy="analogy",
        ),
        make_factor("prompt_difficulty", "The difficulty of the prompt.", low="low", high="high"),
    ),
    blocks=(Block(name="domain", levels=("mobility", "health")),),
    design_spec=DesignSpec(kind=DesignKind.RANDOMIZED_BLOCK, randomize=True),
    base_seed=11,
    replicates=3,
    problem_ids=("ideation-1", "ideation-2", "ideation-3"),
    agent_specs=("baseline-agent", "creative-agent"),
)
GRAMMAR_SCAFFOLD = Recipe(
    study_id="grammar-scaffold-study",
    title="Grammar Scaffold Study",
    description="Compares free design, design with a grammar, and with a tool that enforces it.",
    rationale="A grammar excludes bad designs but also good ones; its net effect is unknown.",
    tags=("grammar", "constrained-generation"),
    hypothesis=Hypothesis(
        hypothesis_id="h1",
        label="Guidance helps",
        statement="Designs made with a grammar score higher than designs made freely.",
        direction=HypothesisDirection.GREATER,
    ),
    factors=(
        make_factor(
            "generation_mode",
            "How designs are guided by rules.",
            free="unconstrained",
            grammar="grammar-guided",
            tool="tool-guided",
        ),
    ),
    blocks=(Block(name="problem_family", levels=("grammar", "text")),),
    design_spec=DesignSpec(randomize=True),
    base_seed=19,
    problem_ids=("grammar-1", "grammar-2"),
    agent_specs=("direct-llm", "workflow-agent"),
)
HUMAN_VS_AGENT = Recipe(
    study_id="human-vs-agent-process",
    title="Human vs Agent Process Study",
    description="Compares teams of people, teams with an assistant, and teams with agents.",
    rationale="The process of a team depends on its members; results alone don't show that.",
    tags=("teaming", "process-trace"),
    hypothesis=Hypothesis(
        hypothesis_id="h1",
        label="The composition of the team has an effect",
        statement="Teams with agents in them work, and score, differently from teams without.",
        kind=HypothesisKind.MODERATION,
    ),
    factors=(
        make_factor(
            "team_mode",
            "The composition of the team.",
            human="human-only",
            assist="ai-assisted",
            hybrid="hybrid",
        ),
    ),
    blocks=(Block(name="cohort", levels=("novice", "expert")),),
    design_spec=DesignSpec(kind=DesignKind.REPEATED_MEASURES, counterbalance=True),
    base_seed=23,
    replicates=1,
    problem_ids=("teaming-1", "teaming-2"),
    agent_specs=("human-only", "ai-assisted", "hybrid"),
)
DIVERSITY = Recipe(
    study_id="diversity-exploration",
    title="Diversity and Exploration Study",
    description="Compares search strategies with more and less exploration on problem families.",
    rationale="Exploration finds solutions that greedy search misses, at a cost in quality.",
    tags=("optimization", "diversity"),
    hypothesis=Hypothesis(
        hypothesis_id="h1",
        label="Exploration helps",
        statement="Strategies that explore more score higher in every family of problems.",
        kind=HypothesisKind.ROBUSTNESS,
        direction=HypothesisDirection.GREATER,
    ),
    factors=(
        make_factor(
            "search_strategy",
            "How the next candidate is chosen.",
            greedy="greedy",
            epsilon="epsilon-greedy",
            ucb="ucb",
        ),
    ),
    blocks=(Block(name="problem_family", levels=("bench-a", "bench-b", "bench-c")),),
    design_spec=DesignSpec(kind=DesignKind.RANDOMIZED_BLOCK, randomize=True),
    base_seed=29,
    problem_ids=("opt-a", "opt-b", "opt-c"),
    agent_specs=("deterministic", "self-learning"),
)
OPTIMIZATION = Recipe(
    study_id="optimization-benchmark",
    title="Optimization Benchmark Study",
    description="Compares a learning optimizer with a fixed one on problems of three sizes.",
    rationale="Learning should generalize to sizes that an optimizer was not tuned on.",
    tags=("optimization", "benchmark", "generalization"),
    hypothesis=Hypothesis(
        hypothesis_id="h1",
        label="Learning generalizes",
        statement="An agent that learns scores higher than a fixed one at every problem size.",
        kind=HypothesisKind.ROBUSTNESS,
        direction=HypothesisDirection.GREATER,
    ),
    factors=(
        make_factor(
            "learning_strategy",
            "Whether the agent learns from earlier candidates.",
            deterministic="deterministic-baseline",
            self_learning="self-learning-agent",
        ),
        make_factor(
            "tuning_regime",
            "How aggressively its settings are tuned.",
            conservative="conservative",
            aggressive="aggressive",
        ),
    ),
    blocks=(Block(name="problem_family", levels=("small", "medium", "large")),),
    design_spec=DesignSpec(kind=DesignKind.RANDOMIZED_BLOCK, randomize=True),
    base_seed=31,
    problem_ids=optimization_bundle().problem_ids,
    agent_specs=optimization_bundle().agent_specs,
    plan=replace(
        PLAN,
        tests=("difference_in_means", "mixed_effects"),
        random_effects=("problem_family",),
        plots=("family_condition_means",),
        export_tables=("optimization_summary",),
    ),
)


def build_agent_architecture_comparison_study(
    config: AgentArchitectureComparisonConfig | None = None,
) -> Study:
    """Return a study of three agent architectures, crossed with three prompt difficulties."""
    return AGENT_ARCHITECTURE.study(config)


def build_prompt_framing_study(config: PromptFramingConfig | None = None) -> Study:
    """Return a study of three prompt framings at two difficulties, in blocks by domain."""
    return PROMPT_FRAMING.study(config)


def build_grammar_scaffold_study(config: GrammarScaffoldConfig | None = None) -> Study:
    """Return a study of free generation, and of a grammar followed by agent or tool."""
    return GRAMMAR_SCAFFOLD.study(config)


def build_human_vs_agent_process_study(config: HumanVsAgentProcessConfig | None = None) -> Study:
    """Return a study of three team compositions, for novices and experts, counterbalanced."""
    return HUMAN_VS_AGENT.study(config)


def build_diversity_and_exploration_study(
    config: DiversityAndExplorationConfig | None = None,
) -> Study:
    """Return a study of three search strategies, in blocks by problem family."""
    return DIVERSITY.study(config)


def build_optimization_benchmark_study(
    config: OptimizationBenchmarkConfig | None = None,
) -> Study:
    """Return a study of a learning and a fixed agent, two tuning regimes and three sizes."""
    return OPTIMIZATION.study(config)
