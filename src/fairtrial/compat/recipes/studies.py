"""Ready-made studies of agents at work: who they are, how they are asked, what guides them."""

from __future__ import annotations

from dataclasses import replace

from fairtrial.compat.recipes.bundles import optimization_bundle
from fairtrial.compat.recipes.config import (
    AgentArchitectureComparisonConfig,
    DiversityAndExplorationConfig,
    GrammarScaffoldConfig,
    HumanVsAgentProcessConfig,
    OptimizationBenchmarkConfig,
    PromptFramingConfig,
)
from fairtrial.compat.recipes.recipe import PLAN, Recipe, make_factor
from fairtrial.study import (
    Block,
    DesignKind,
    DesignSpec,
    Hypothesis,
    HypothesisDirection,
    HypothesisKind,
    Study,
)

AGENT_ARCHITECTURE = Recipe(
    study_id="agent-architecture-comparison",
    title="Agent Architecture Comparison",
    description="Crosses the way an agent is built with the difficulty of its prompts.",
    rationale="More machinery costs more; it should pay off, at least where tasks are hard.",
    tags=("ideation", "architecture"),
    claim=Hypothesis(
        hypothesis_id="h1",
        label="The architecture matters",
        statement="Scores depend on how the agent is built, and perhaps on how hard the prompt is.",
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
            "How much the prompt demands.",
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
    description="Words the same task in different ways and looks at the ideas that come back.",
    rationale="Wording is the cheapest thing to change about an agent, and easily overrated.",
    tags=("ideation", "framing"),
    claim=Hypothesis(
        hypothesis_id="h1",
        label="The frame matters",
        statement="The frame of a prompt changes how its answers score.",
    ),
    factors=(
        make_factor(
            "prompt_frame",
            "The light that the task is put in.",
            neutral="neutral",
            challenge="challenge",
            analogy="analogy",
        ),
        make_factor("prompt_difficulty", "How much the prompt demands.", low="low", high="high"),
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
    description="Lets agents design freely, within a grammar, and with a tool that keeps to it.",
    rationale="Rules rule out bad designs and good ones; which weighs more has to be measured.",
    tags=("grammar", "constrained-generation"),
    claim=Hypothesis(
        hypothesis_id="h1",
        label="Guidance helps",
        statement="Designs made under a grammar score higher than designs made freely.",
        direction=HypothesisDirection.GREATER,
    ),
    factors=(
        make_factor(
            "generation_mode",
            "What keeps a design within the rules.",
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
    description="Has teams work alone, with an assistant, and with agents as members.",
    rationale="How a team works changes with who is in it; results alone don't show that.",
    tags=("teaming", "process-trace"),
    claim=Hypothesis(
        hypothesis_id="h1",
        label="The team's make-up matters",
        statement="Teams with agents in them work, and score, differently from teams without.",
        kind=HypothesisKind.MODERATION,
    ),
    factors=(
        make_factor(
            "team_mode",
            "Who is in the team.",
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
    description="Gives search strategies that explore more or less the same families of problems.",
    rationale="Exploring finds what greed misses, and pays for it in quality; how much is open.",
    tags=("optimization", "diversity"),
    claim=Hypothesis(
        hypothesis_id="h1",
        label="Exploring pays",
        statement="Strategies that explore more score higher, whatever the family of problems.",
        kind=HypothesisKind.ROBUSTNESS,
        direction=HypothesisDirection.GREATER,
    ),
    factors=(
        make_factor(
            "search_strategy",
            "How the next point to try is chosen.",
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
    description="Sets an optimiser that learns against one that doesn't, on problems that grow.",
    rationale="Learning should carry over to sizes that an optimiser was not tuned on.",
    tags=("optimization", "benchmark", "generalization"),
    claim=Hypothesis(
        hypothesis_id="h1",
        label="Learning carries over",
        statement="An agent that learns scores higher than a fixed one at every problem size.",
        kind=HypothesisKind.ROBUSTNESS,
        direction=HypothesisDirection.GREATER,
    ),
    factors=(
        make_factor(
            "learning_strategy",
            "Whether the agent learns from what it has tried.",
            deterministic="deterministic-baseline",
            self_learning="self-learning-agent",
        ),
        make_factor(
            "tuning_regime",
            "How boldly its settings are tuned.",
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
    """Three ways to build an agent, crossed with three difficulties of prompts."""
    return AGENT_ARCHITECTURE.study(config)


def build_prompt_framing_study(config: PromptFramingConfig | None = None) -> Study:
    """Three frames of a prompt at two difficulties, in blocks by domain."""
    return PROMPT_FRAMING.study(config)


def build_grammar_scaffold_study(config: GrammarScaffoldConfig | None = None) -> Study:
    """Free generation against generation under a grammar, kept by the agent or by a tool."""
    return GRAMMAR_SCAFFOLD.study(config)


def build_human_vs_agent_process_study(config: HumanVsAgentProcessConfig | None = None) -> Study:
    """Three make-ups of a team, each met by novices and experts, in counterbalanced order."""
    return HUMAN_VS_AGENT.study(config)


def build_diversity_and_exploration_study(
    config: DiversityAndExplorationConfig | None = None,
) -> Study:
    """Three search strategies, from greedy to exploring, in blocks by problem family."""
    return DIVERSITY.study(config)


def build_optimization_benchmark_study(
    config: OptimizationBenchmarkConfig | None = None,
) -> Study:
    """An agent that learns against one that doesn't, under two tuning regimes and three sizes."""
    return OPTIMIZATION.study(config)
