-- outside a transaction
-- Only what has succeeded is found: a step that fails often is not read through.
DROP INDEX CONCURRENTLY IF EXISTS step_found;
CREATE INDEX CONCURRENTLY step_found ON step (project_id, cache_key, ended_at) WHERE cache_key IS NOT NULL AND state = 'succeeded';
DROP INDEX CONCURRENTLY IF EXISTS step_cache;
