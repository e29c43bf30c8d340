"""Tasks: one file a task. Importable as `algolen.tasks`, through the link of that name."""
