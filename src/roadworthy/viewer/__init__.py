"""A web viewer for run folders and trainings: served live, or as static files. It reads records alone."""
