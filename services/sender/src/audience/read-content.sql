SELECT c.schedule_id, c.revision, c.audience_id, c.content, c.category
FROM unnest($1::uuid[], $2::int[]) AS asked (schedule_id, revision)
JOIN api.content_public AS c ON c.schedule_id = asked.schedule_id AND c.revision = asked.revision
