-- Roles belong to the whole server, so two databases being prepared at once meet here: whoever comes second finds them there.
DO $$
DECLARE
  role_name text;
BEGIN
  FOREACH role_name IN ARRAY ARRAY['punctual_migrator', 'punctual_api', 'punctual_scheduler', 'punctual_sender', 'punctual_receipts'] LOOP
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role_name) THEN
      BEGIN
        IF role_name = 'punctual_migrator' THEN
          EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
        ELSE
          EXECUTE format('CREATE ROLE %I LOGIN', role_name);
        END IF;
      EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL;
      END;
    END IF;
  END LOOP;
  -- Needed where the administrator is no superuser (managed databases): it must be able to act as the owner.
  IF NOT pg_has_role(current_user, 'punctual_migrator', 'MEMBER') THEN
    EXECUTE format('GRANT punctual_migrator TO %I', current_user);
  END IF;
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO punctual_api, punctual_scheduler, punctual_sender, punctual_receipts', current_database());
END
$$;

CREATE SCHEMA IF NOT EXISTS punctual AUTHORIZATION punctual_migrator;
CREATE SCHEMA IF NOT EXISTS api AUTHORIZATION punctual_migrator;
CREATE SCHEMA IF NOT EXISTS scheduler AUTHORIZATION punctual_migrator;
CREATE SCHEMA IF NOT EXISTS sender AUTHORIZATION punctual_migrator;
CREATE SCHEMA IF NOT EXISTS receipts AUTHORIZATION punctual_migrator;

SET LOCAL ROLE punctual_migrator;

-- Everybody may call a new function unless told otherwise, also one that runs with its owner's rights.
ALTER DEFAULT PRIVILEGES FOR ROLE punctual_migrator REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

GRANT USAGE ON SCHEMA api TO punctual_api;
GRANT USAGE ON SCHEMA scheduler TO punctual_scheduler;
GRANT USAGE ON SCHEMA sender TO punctual_sender;
GRANT USAGE ON SCHEMA receipts TO punctual_receipts;
GRANT USAGE ON SCHEMA punctual TO punctual_api, punctual_scheduler, punctual_sender, punctual_receipts;

CREATE TABLE IF NOT EXISTS punctual.applied_file (
  file       text PRIMARY KEY,
  sha256     text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);

CREATE OR REPLACE VIEW punctual.schema_version AS
  SELECT count(*)::int AS version FROM punctual.applied_file;

GRANT SELECT ON punctual.schema_version TO punctual_api, punctual_scheduler, punctual_sender, punctual_receipts;

RESET ROLE;
