SELECT c.schedule_id, c.revision, c.audience_id
FROM unnest($1::uuid[], $2::int[]) AS wanted (schedule_id, revision)
JOIN api.content_public AS c ON c.schedule_id = wanted.schedule_id AND c.revision = wanted.revision
