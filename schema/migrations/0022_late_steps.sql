-- Somebody has to look at the run: what follows from its state was not written at once.
ALTER TABLE run ADD COLUMN look boolean NOT NULL DEFAULT false;
CREATE INDEX run_look ON run (id) WHERE look;

-- The step names what other steps put out: its spec is as it was written, and filled in when the step becomes ready.
ALTER TABLE step ADD COLUMN late boolean NOT NULL DEFAULT false;
