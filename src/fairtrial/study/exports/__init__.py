"""Runs in the formats of other tools: OpenTelemetry, Inspect, MLflow."""
