-- outside a transaction
-- Lists of runs by state, and by pipeline (and state), newest first.
DROP INDEX CONCURRENTLY IF EXISTS run_project_state;
CREATE INDEX CONCURRENTLY run_project_state ON run (project_id, state, id);
DROP INDEX CONCURRENTLY IF EXISTS run_project_pipeline;
CREATE INDEX CONCURRENTLY run_project_pipeline ON run (project_id, pipeline, state, id);
